package arch

import (
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ban is what may not be named outside tests, where it may all the same, and why.
type ban struct {
	pkg   string // import path
	names []string
	why   string
	allow []allowance
}

// allowance is a file, or a package with its name ending in a slash, that may do what is banned.
type allowance struct{ where, why string }

var bans = []ban{
	{
		pkg: "time", names: []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"},
		why: "every duration is scenario time, and the clocks of internal/vtime tell it",
		allow: []allowance{
			{"internal/vtime/", "it is the clock"},
			{"cmd/progress.go", "a person at a terminal waits in real time"},
			{"cmd/classroom.go", "a class watches a picture in real time"},
			{"slowserver/store/postgres/", "a statement runs outside the bubble of its trial, in the server's time"},
			{"caller/transport.go", "a context has its deadline in the time of the bubble; what is left of it is turned into scenario time there"},
			{"caller/trip.go", "limits that end at one instant are told apart by their time, in which a context has its deadline"},
		},
	},
	{
		pkg: "context", names: []string{"Background", "TODO", "WithTimeout", "WithDeadline", "WithTimeoutCause", "WithDeadlineCause"},
		why: "a context comes from the caller, and its time from a clock",
		allow: []allowance{
			{"cmd/main.go", "the root of everything"},
			{"internal/engine/trial.go", "the root of a trial: nothing in a bubble may wait for a context from outside"},
			{"internal/suite/suite.go", "--time-limit is real time"},
			{"internal/suite/databases.go", "what was opened is ended in real time, also after an interrupt"},
			{"internal/vtime/clock.go", "scenario time is turned into a context's here"},
			{"caller/trip.go", "a limit's end comes from the clock, and is kept beside the context to be asked for"},
			{"slowserver/store/sqlite/sqlite.go", "opening a file takes no scenario time, and Open has no context"},
			{"slowserver/store/postgres/", "a statement runs outside the bubble of its trial, in the server's time"},
			{"internal/storage/storage.go", "a container is ended in real time, also after an interrupt"},
		},
	},
	{
		pkg: "os", names: []string{"Exit"},
		why: "an exit code is returned, so that what was opened is closed",
		allow: []allowance{
			{"main.go", "it is the end"},
			{"cmd/interrupts.go", "the second Ctrl-C leaves at once, after it has removed what must not stay"},
		},
	},
	{
		pkg: "os", names: []string{"Stdin", "Stdout", "Stderr", "Args"},
		why: "a writer is handed in, so that a test can hand in another",
		allow: []allowance{
			{"main.go", "it hands them in"},
		},
	},
	{
		pkg: "os", names: []string{"Getenv", "LookupEnv", "Environ", "Setenv", "Unsetenv"},
		why: "what a run does follows from its flags and its file; the command line alone reads the environment",
		allow: []allowance{
			{"cmd/", "flags have defaults in the environment"},
		},
	},
	{
		pkg: "os", names: []string{"MkdirTemp", "TempDir", "CreateTemp"},
		why: "whoever makes a temporary file must remove it, on every way out",
		allow: []allowance{
			{"internal/privatedir/privatedir.go", "it makes those that the next process sweeps if theirs is killed"},
			{"internal/redisserver/directory.go", "the directory that the private one is made in"},
			{"internal/pgcluster/pgcluster.go", "the directory that the private one is made in"},
		},
	},
	{
		pkg: "fmt", names: []string{"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
		why: "stdout is the result, and a report writes it as a whole to the writer it was given",
	},
	{
		pkg: "log", names: []string{"Print", "Printf", "Println", "Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln", "Default", "SetOutput"},
		why: "errors are returned, not logged; what happens in a trial is an event",
	},
	{
		pkg: "log/slog", names: []string{"*"},
		why: "errors are returned, not logged; what happens in a trial is an event",
		allow: []allowance{
			{"cmd/debug.go", "--debug writes what a run does to standard error, where no result stands"},
		},
	},
	{
		pkg: "math/rand", names: []string{"*"},
		why: "what is drawn comes from lab.Draw: the seed and the name of what draws, never a shared stream",
	},
	{
		pkg: "math/rand/v2", names: []string{"*"},
		why: "what is drawn comes from lab.Draw: the seed and the name of what draws, never a shared stream",
	},
	{
		pkg: "crypto/rand", names: []string{"*"},
		why: "what is drawn comes from lab.Draw: the seed and the name of what draws, never a shared stream",
		allow: []allowance{
			{"internal/containers/postgres.go", "a password must not follow from the seed, and no output depends on it"},
			{"internal/redisserver/server.go", "a password, which nobody must guess and no result shows"},
			{"slowserver/store/redis/redis.go", "the name of a trial's keys on a server that other labs use too; no result shows it"},
		},
	},
	{
		pkg: "net/http", names: []string{"DefaultClient", "DefaultTransport", "DefaultServeMux", "Get", "Post", "PostForm", "Head", "Handle", "HandleFunc", "ListenAndServe"},
		why: "the default client resends by itself, and its state is everybody's",
	},
	{
		pkg: "net", names: []string{"Dial", "DialTimeout", "Listen", "ListenPacket", "LookupHost", "LookupIP"},
		why: "connections go through a vtime.Network, which opens nothing but loopback",
		allow: []allowance{
			{"internal/serve/serve.go", "people with curl, and containers, reach a service where they say it shall listen"},
		},
	},
}

// TestBannedCalls finds what may not be named outside tests.
func TestBannedCalls(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, u := range uses(s) {
			for _, b := range bans {
				if b.pkg != u.pkg || !slices.Contains(b.names, "*") && !slices.Contains(b.names, u.name) {
					continue
				}
				allowed := false
				for _, a := range b.allow {
					if a.where == s.name || a.where == path.Dir(s.name)+"/" {
						allowed, used[b.pkg+b.names[0]+a.where] = true, true
					}
				}
				if !allowed {
					t.Errorf("%s: %s.%s must not be used here: %s", s.at(u.node), u.pkg, u.name, b.why)
				}
			}
		}
	}
	for _, b := range bans {
		for _, a := range b.allow {
			if !used[b.pkg+b.names[0]+a.where] {
				t.Errorf("%s does not use %s.%s any more: take it off the list", a.where, b.pkg, strings.Join(b.names, "/"))
			}
		}
	}
}

// use is one place where a file names something of another package.
type use struct {
	pkg, name string
	node      ast.Node
}

// uses lists what a file names of the packages that it imports.
func uses(s *source) []use {
	imported := map[string]string{}
	for _, i := range s.ast.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(p)
		if p == "math/rand/v2" {
			name = "rand"
		}
		if i.Name != nil {
			name = i.Name.Name
		}
		imported[name] = p
	}
	var out []use
	ast.Inspect(s.ast, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if base, ok := selector.X.(*ast.Ident); ok {
			if p, ok := imported[base.Name]; ok {
				out = append(out, use{p, selector.Sel.Name, selector})
			}
		}
		return true
	})
	return out
}

// TestNoDotImports keeps uses complete: a dot import would hide what is named.
func TestNoDotImports(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		for _, i := range s.ast.Imports {
			if i.Name != nil && i.Name.Name == "." {
				t.Errorf("%s: a dot import hides where names come from", s.at(i))
			}
		}
	}
}

// TestNoInit finds functions that run because a package is imported. What there is stands in
// lists, which can be read, ordered and tested.
func TestNoInit(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		for _, d := range s.ast.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: no init(): put what it registers into a list", s.at(f))
			}
		}
	}
}

// starters are the files that may start goroutines with the go statement, and why.
var starters = []allowance{
	{"internal/vtime/", "a Group, which starts all others, and a bubble start theirs"},
	{"cmd/interrupts.go", "it waits for signals as long as the process lives"},
	{"cmd/classroom.go", "it reads what is typed, as long as the process lives"},
}

// TestGoroutinesStartInGroups finds goroutines whose panic would end the process with every trial
// in it.
func TestGoroutinesStartInGroups(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if s.test || slices.ContainsFunc(starters, func(a allowance) bool { return a.where == s.name || a.where == path.Dir(s.name)+"/" }) {
			continue
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s: start goroutines through a vtime.Group, which catches their panics", s.at(g))
			}
			return true
		})
	}
}

// TestNoBuiltinPrint finds print and println, which write to stderr past everybody.
func TestNoBuiltinPrint(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if f, ok := call.Fun.(*ast.Ident); ok && (f.Name == "print" || f.Name == "println") {
					t.Errorf("%s: the builtin %s writes past everybody", s.at(f), f.Name)
				}
			}
			return true
		})
	}
}

// bubbles are the calls whose function runs in fake time, where a sleep takes none: those of the
// toolchain and of the lab, and the helpers of tests that do nothing else.
var bubbles = []string{"synctest.Test", "Bubble", "vtime.Bubble", "inBubble"}

// sleepers are the tests that sleep where the syntax does not show a bubble around them, with how
// often and why. It is meant to stay empty but for the tests of the clock itself.
var sleepers = map[string]struct {
	times int
	why   string
}{
	"internal/vtime/bubble_test.go":           {1, "a function of a table that is given to Bubble"},
	"slowserver/store/storetest/storetest.go": {1, "the suite runs each function of its table in a bubble"},
}

// TestNoSleepsInTests refuses sleeps in real time: a timing is a benchmark, never a test's
// condition, and a test that waits for something waits for the thing itself.
func TestNoSleepsInTests(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for _, s := range sources(t) {
		if !s.test {
			continue
		}
		var inside []ast.Node // functions that run in a bubble
		ast.Inspect(s.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !slices.Contains(bubbles, called(call)) {
				return true
			}
			for _, argument := range call.Args {
				if f, ok := argument.(*ast.FuncLit); ok {
					inside = append(inside, f)
				}
			}
			return true
		})
		for _, u := range uses(s) {
			if u.pkg != "time" || u.name != "Sleep" {
				continue
			}
			if slices.ContainsFunc(inside, func(f ast.Node) bool { return f.Pos() <= u.node.Pos() && u.node.Pos() < f.End() }) {
				continue
			}
			if seen[s.name]++; seen[s.name] > sleepers[s.name].times {
				t.Errorf("%s: a test sleeps in real time; wait for what it waits for, or put it into a bubble", s.at(u.node))
			}
		}
	}
	for name, s := range sleepers {
		if seen[name] < s.times {
			t.Errorf("%s sleeps %d times, not %d: lower the number", name, seen[name], s.times)
		}
	}
}

// called is the name of the function that a call calls, as far as it is a plain one.
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if base, ok := f.X.(*ast.Ident); ok {
			return base.Name + "." + f.Sel.Name
		}
	}
	return ""
}

// TestSeededRandomness finds tests that draw from the process's own stream: a failure that cannot
// be repeated teaches nothing.
func TestSeededRandomness(t *testing.T) {
	t.Parallel()
	seeded := []string{"New", "NewPCG", "NewChaCha8", "NewSource", "Rand", "Source"}
	for _, s := range sources(t) {
		for _, u := range uses(s) {
			if s.test && (u.pkg == "math/rand" || u.pkg == "math/rand/v2") && !slices.Contains(seeded, u.name) {
				t.Errorf("%s: %s.%s has no seed; draw from rand.New(rand.NewPCG(…))", s.at(u.node), u.pkg, u.name)
			}
		}
	}
}
