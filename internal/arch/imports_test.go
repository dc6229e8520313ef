package arch

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func itoa(n int) string { return strconv.Itoa(n) }

// rule says what a package never imports, directly or through others, and why. Patterns end in
// /... where they mean everything below too. Our own packages are written without the module.
type rule struct {
	pkg    string
	never  []string
	except []string
	why    string
}

var rules = []rule{
	{pkg: "internal/lab", never: []string{"ours/..."}, why: "it is the floor"},
	{pkg: "internal/vtime", never: []string{"ours/..."}, why: "a clock that knows what is timed is no clock"},
	{pkg: "internal/expression", never: []string{"ours/..."}, why: "an expression is over numbers, whoever counted them"},
	{pkg: "caller/policy", never: []string{"ours/...", "net/http", "net", "os"}, why: "a simulation of a million clients shares it: it has no clock, no network and no randomness of its own"},
	{pkg: "caller/preset", never: []string{"net/http", "net", "internal/vtime", "scenarios"}, why: "a preset is data about a real layer; it sends nothing"},
	{pkg: "caller/...", never: []string{"slowserver/..."}, why: "caller and server meet only over HTTP"},
	{pkg: "slowserver/...", never: []string{"caller/..."}, why: "caller and server meet only over HTTP"},
	{pkg: "caller/...", never: []string{"scenarios", "internal/engine", "internal/judge", "report"}, why: "a caller that knows the test is no caller"},
	{pkg: "slowserver/...", never: []string{"scenarios", "internal/engine", "internal/judge", "report"}, why: "a server that knows the test is no server"},
	{pkg: "slowserver/guard", never: []string{"net/http", "internal/vtime"}, why: "a guard talks to the store and to nothing else"},
	{pkg: "slowserver/fault", never: []string{"net/http", "internal/vtime", "slowserver/store"}, why: "it says what may be written down; the service plays it"},
	{pkg: "slowserver/store", never: []string{"database/sql", "slowserver/store/sqlite", "slowserver/store/postgres", "slowserver/store/redis"}, why: "what an engine can do is behind the interface, not in it"},
	{pkg: "scenarios", never: []string{"internal/engine", "internal/judge", "report", "internal/suite", "net/http", "os"}, why: "data does not run, judge or print itself, and opens no file but its own"},
	{pkg: "internal/simulation", never: []string{"internal/engine", "internal/judge", "report", "caller", "slowserver"}, why: "it has no machines: what it shares with them is pure"},
	{pkg: "internal/engine", never: []string{"internal/judge", "report"}, why: "who measures does not judge"},
	{pkg: "internal/judge", never: []string{"internal/engine", "report", "net/http", "os"}, why: "it must judge a saved observation too"},
	{pkg: "report", never: []string{"ours/..."}, except: []string{"internal/lab"}, why: "it prints values"},
	{pkg: "slowserver/store/postgres", never: []string{"internal/pgcluster", "database/sql"}, why: "it speaks to a server, wherever that comes from, and over pgx itself"},
	{pkg: "internal/privatedir", never: []string{"ours/..."}, why: "it does not know what is in a directory"},
	{pkg: "internal/pgcluster", never: []string{"ours/..."}, except: []string{"internal/privatedir", "internal/vtime"}, why: "it starts a database and does not know what for"},
	{pkg: "internal/redisserver", never: []string{"ours/..."}, except: []string{"internal/privatedir", "internal/vtime"}, why: "it starts a database and does not know what for"},
	{pkg: "internal/containers", never: []string{"ours/..."}, except: []string{"internal/vtime"}, why: "it starts a database and does not know what for"},
	{pkg: "internal/suite", never: []string{"report"}, why: "a run ends in a document; who prints it is another's business"},
	{pkg: "internal/classroom", never: []string{"ours/...", "os"}, except: []string{"internal/lab", "report"}, why: "it tells results to a class: who runs them, shows the lines and reads the keys is another's business"},
	{pkg: "internal/schema", never: []string{"internal/engine", "internal/judge", "report"}, why: "a schema comes from types, not from runs"},
	{pkg: "ours/...", never: []string{"cmd"}, except: []string{"."}, why: "the command line is on top: main alone calls it"},
}

// names turns a pattern of a rule into one of import paths.
func names(pattern string) string {
	switch {
	case pattern == "ours/...":
		return module + "/..."
	case pattern == ".":
		return module
	}
	return path.Join(module, pattern)
}

// forbidden turns what a rule forbids into a pattern of import paths: ours where there is such a
// package, else the standard library's.
func forbidden(pattern string, known []string) string {
	ours := names(pattern)
	if pattern == "ours/..." || slices.ContainsFunc(known, func(p string) bool { return within(ours, p) }) {
		return ours
	}
	return pattern
}

// TestImportDirections holds every package against the rules. The imports are those of an
// ordinary build, so what a package reaches through others counts too; a rule about the standard
// library is about what our own packages import, since net/http is below half of it.
func TestImportDirections(t *testing.T) {
	t.Parallel()
	all := sources(t)
	known := packages(all)
	direct := map[string][]string{}
	for _, s := range all {
		if s.test {
			continue
		}
		for _, i := range s.ast.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(direct[s.pkg], p) {
				direct[s.pkg] = append(direct[s.pkg], p)
			}
		}
	}
	for _, r := range rules {
		applied := false
		for _, pkg := range known {
			if !within(names(r.pkg), pkg) {
				continue
			}
			if r.pkg == "ours/..." && slices.ContainsFunc(r.except, func(e string) bool { return names(e) == pkg }) {
				continue
			}
			applied = true
			for _, way := range reach(pkg, direct) {
				imported := way[len(way)-1]
				if slices.ContainsFunc(r.except, func(e string) bool { return within(names(e), imported) }) {
					continue
				}
				for _, never := range r.never {
					if within(forbidden(never, known), imported) {
						t.Errorf("%s imports %s: %s must not, because %s", short(pkg), arrows(way[1:]), r.pkg, r.why)
					}
				}
			}
		}
		if !applied {
			t.Errorf("there is no package %s any more: the rule %q holds nothing", r.pkg, r.why)
		}
	}
}

// reach returns the ways from a package to everything that it imports, through our own packages.
func reach(pkg string, direct map[string][]string) [][]string {
	seen := map[string]bool{pkg: true}
	queue := [][]string{{pkg}}
	var out [][]string
	for len(queue) > 0 {
		way := queue[0]
		queue = queue[1:]
		for _, next := range direct[way[len(way)-1]] {
			if seen[next] {
				continue
			}
			seen[next] = true
			longer := append(slices.Clone(way), next)
			out = append(out, longer)
			queue = append(queue, longer)
		}
	}
	return out
}

func arrows(way []string) string {
	var out []string
	for _, p := range way {
		out = append(out, short(p))
	}
	return strings.Join(out, " → ")
}

// TestForbiddenPackagesExist finds rules about packages that have been renamed: they would hold
// for ever.
func TestForbiddenPackagesExist(t *testing.T) {
	t.Parallel()
	known := packages(sources(t))
	var std []string
	for _, r := range rules {
		for _, pattern := range slices.Concat(r.never, r.except) {
			ours := names(pattern)
			if pattern == "ours/..." || slices.ContainsFunc(known, func(p string) bool { return within(ours, p) }) {
				continue
			}
			std = append(std, pattern)
		}
	}
	for _, d := range doors {
		if !strings.Contains(d.library, ".") && d.library != "C" {
			std = append(std, strings.TrimSuffix(d.library, "/..."))
		}
	}
	slices.Sort(std)
	if out, err := goList(t, nil, slices.Compact(std)...); err != nil {
		t.Errorf("a rule names a package that does not exist: %v\n%s", err, out)
	}
}

// door is the one place where a library may be imported outside tests.
type door struct {
	library string
	pkg     string   // the package that imports it
	files   []string // the only files of it that do; all when absent
	why     string
}

var doors = []door{
	{"github.com/spf13/cobra", "cmd", nil, "flags and commands are the command line's"},
	{"github.com/spf13/pflag", "cmd", nil, "flags and commands are the command line's"},
	{"github.com/schollz/progressbar/v3", "cmd", []string{"progress.go"}, "only a person at a terminal waits"},
	{"golang.org/x/term", "cmd", []string{"look.go", "classroom.go"}, "only the command line knows of a terminal"},
	{"github.com/goccy/go-yaml/...", "scenarios", nil, "one strict decoder reads every file"},
	{"github.com/goccy/go-yaml/...", "report", []string{"tap.go"}, "TAP has a block of YAML"},
	{"github.com/olekukonko/tablewriter/...", "report", []string{"grid.go"}, "a change of the library is a change of one file"},
	{"modernc.org/sqlite/...", "slowserver/store/sqlite", nil, "SQL stays in the store that speaks it"},
	{"database/sql/...", "slowserver/store/sqlite", nil, "SQL stays in the store that speaks it"},
	{"github.com/expr-lang/expr/...", "internal/expression", nil, "what an untrusted file may evaluate is decided in one place"},
	{"testing/...", "internal/vtime", []string{"bubble.go"}, "the virtual clock needs testing/synctest; nothing else of a binary needs a test's package"},
	{"os/signal", "cmd", []string{"interrupts.go"}, "one place decides what an interrupt means"},
	{"github.com/jackc/pgx/v5/...", "slowserver/store/postgres", nil, "SQL stays in the store that speaks it"},
	{"github.com/redis/go-redis/v9/...", "slowserver/store/redis", []string{"client.go", "url.go"}, "what a client does by itself is decided in one place"},
	{"github.com/alicebob/miniredis/v2/...", "slowserver/store/redis", []string{"embedded.go"}, "a Redis inside the lab is one kind of store"},
	{"github.com/testcontainers/testcontainers-go/...", "internal/containers", []string{"postgres.go"}, "one place starts containers, and a build without it links none of them"},
	{"github.com/moby/moby/api/...", "internal/containers", []string{"postgres.go"}, "the types in which testcontainers-go is told what to publish"},
	{"os/exec", "internal/pgcluster", nil, "a scenario file names no command; the lab starts a PostgreSQL of its own"},
	{"os/exec", "internal/child", nil, "a scenario file names no command; the lab starts itself as an order service"},
	{"os/exec", "internal/redisserver", []string{"process.go"}, "a scenario file names no command; the lab starts a Redis of its own"},
	{"plugin", "", nil, "nothing is loaded at run time"},
	{"unsafe", "", nil, "nothing here needs it"},
	{"C", "", nil, "the binary is pure Go, for every system"},
}

// testOnly are the libraries that tests may use beside those with a door.
var testOnly = []string{
	"github.com/charmbracelet/ultraviolet/...",
	"github.com/charmbracelet/x/...",
	"github.com/chromedp/cdproto/...",
	"github.com/chromedp/chromedp/...",
	"github.com/compose-spec/compose-go/v2/...",
	"github.com/creack/pty",
	"github.com/google/go-cmp/...",
	"github.com/invopop/jsonschema",
	"github.com/joshdk/go-junit/...",
	"github.com/jstemmer/go-junit-report/v2/...",
	"github.com/mpontillo/tap13/...",
	"github.com/rogpeppe/go-internal/...",
	"github.com/spf13/cobra/doc",
	"github.com/santhosh-tekuri/jsonschema/v6/...",
	"github.com/yuin/goldmark/...",
	"go.yaml.in/yaml/v3/...",
	"go.opentelemetry.io/collector/pdata/...",
	"go.uber.org/goleak/...",
	"pgregory.net/rapid/...",
}

// TestDoors finds libraries that are imported beside their door, and those that have none.
func TestDoors(t *testing.T) {
	t.Parallel()
	all := sources(t)
	used := map[string]bool{}
	for _, s := range all {
		for _, i := range s.ast.Imports {
			imported, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if !s.test && within(module+"/...", imported) && suite(imported) {
				t.Errorf("%s imports %s, which is for tests", s.at(i), imported)
			}
			// A library that several may use has a door for each.
			k := slices.IndexFunc(doors, func(d door) bool { return within(d.library, imported) && d.pkg != "" && names(d.pkg) == s.pkg })
			if k < 0 {
				k = slices.IndexFunc(doors, func(d door) bool { return within(d.library, imported) })
			}
			switch {
			case s.test && k < 0 && thirdParty(imported) && !slices.ContainsFunc(testOnly, func(p string) bool { return within(p, imported) }):
				t.Errorf("%s imports %s: name it in testOnly, with a word in the commit on why", s.at(i), imported)
			case s.test:
			case k < 0 && thirdParty(imported):
				t.Errorf("%s imports %s, a library that has no door: name the one package that may, and why", s.at(i), imported)
			case k < 0:
			case doors[k].pkg == "" || names(doors[k].pkg) != s.pkg:
				t.Errorf("%s imports %s: %s, because %s", s.at(i), imported, or(doors[k].pkg, "nobody")+" alone may", doors[k].why)
			case doors[k].files != nil && !slices.Contains(doors[k].files, path.Base(s.name)):
				t.Errorf("%s imports %s: %s alone may, because %s", s.at(i), imported, strings.Join(doors[k].files, ", "), doors[k].why)
			default:
				used[doors[k].library+doors[k].pkg] = true
			}
		}
	}
	for _, d := range doors {
		if d.pkg != "" && !used[d.library+d.pkg] {
			t.Errorf("nobody uses %s any more: close its door in %s", d.library, d.pkg)
		}
	}
}

// thirdParty reports whether an import path is neither ours nor the standard library's: its first
// element has a dot.
func thirdParty(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return strings.Contains(first, ".")
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
