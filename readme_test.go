package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retrylab/caller/policy"
	"retrylab/caller/preset"
	command "retrylab/cmd"
	"retrylab/report"
	"retrylab/scenarios"
	"retrylab/slowserver/capacity"
	"retrylab/slowserver/change"
	"retrylab/slowserver/fault"
	"retrylab/slowserver/guard"
	"retrylab/slowserver/ledger"
)

var update = flag.Bool("update", false, "rewrite what the documentation shows with what the tool prints")

// documents are the pages whose commands are run, each in a directory of its own.
var documents = []string{"README.md", "docs/scenario-files.md", "docs/output.md", "docs/clocks.md"}

// TestDocuments runs the commands that the documentation shows, in order, and compares what they
// print with what stands there. In a fenced block of the kind console a line that begins with
// "$ " is a command and what follows is its output; a block of the kind diff is an edit of the
// file that was made last.
func TestDocuments(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	t.Setenv("LC_ALL", "C.UTF-8")
	t.Setenv("NO_COLOR", "1")
	for _, name := range []string{"RETRYLAB_CLOCK", "RETRYLAB_SPEED", "RETRYLAB_SEED", "RETRYLAB_FORMAT", "RETRYLAB_COLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"} {
		t.Setenv(name, "")
	}
	for _, document := range documents {
		t.Run(document, func(t *testing.T) {
			data, err := os.ReadFile(document)
			if err != nil {
				t.Fatal(err)
			}
			home, err := os.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			want := string(data)
			got, commands := rewritten(t, want)
			if commands == 0 {
				t.Fatal("it shows no command: this test looks at the wrong thing")
			}
			if *update {
				if err := os.WriteFile(filepath.Join(home, document), []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(trimmed(want), trimmed(got)); diff != "" {
				t.Errorf("%s does not show what its commands print (-shown +printed; go test . -update rewrites it):\n%s", document, diff)
			}
		})
	}
}

// trimmed is a text as lines without the blanks at their ends.
func trimmed(text string) []string {
	out := strings.Split(text, "\n")
	for i := range out {
		out[i] = strings.TrimRight(out[i], " \r")
	}
	return out
}

// rewritten returns a document with the output of its commands as it is now.
func rewritten(t *testing.T, text string) (string, int) {
	t.Helper()
	var out []string
	commands := 0
	s := session{t: t}
	kind := ""
	var removed, added []string
	for line := range strings.SplitSeq(text, "\n") {
		switch fence, isFence := strings.CutPrefix(line, "```"); {
		case isFence && kind == "":
			if kind = fence; kind == "" {
				kind = "plain"
			}
		case isFence:
			if kind == "diff" {
				s.edit(removed, added)
				removed, added = nil, nil
			}
			kind = ""
		case kind == "diff" && strings.HasPrefix(line, "-"):
			removed = append(removed, line[1:])
		case kind == "diff" && strings.HasPrefix(line, "+"):
			added = append(added, line[1:])
		case kind == "console" && strings.HasPrefix(line, "$ "):
			commands++
			out = append(out, line)
			if printed := strings.TrimRight(s.run(line[2:]), "\n"); printed != "" {
				out = append(out, strings.Split(printed, "\n")...)
			}
			continue
		case kind == "console":
			continue // what was printed when it was written
		}
		out = append(out, line)
	}
	if kind != "" {
		t.Error("a fenced block does not end")
	}
	return strings.Join(out, "\n"), commands
}

// session is what a reader at a terminal does.
type session struct {
	t    *testing.T
	code int    // of the last command
	file string // the last one that was made
}

// run performs a command line and returns what a terminal would show.
func (s *session) run(line string) string {
	s.t.Helper()
	if line == "go build" || line == "go test ./..." {
		return "" // that is how this test came to run
	}
	if line == "echo $?" {
		return fmt.Sprintln(s.code)
	}
	if files, ok := strings.CutPrefix(line, "cmp "); ok {
		return s.compare(strings.Fields(files))
	}
	line, target, redirected := strings.Cut(line, " > ")
	for _, program := range []string{"go run . ", "./retrylab ", "retrylab "} {
		args, ok := strings.CutPrefix(line, program)
		if !ok {
			continue
		}
		var stdout, terminal bytes.Buffer
		var w io.Writer = &terminal
		if redirected {
			w = &stdout
		}
		s.code = command.Main(strings.Fields(args), strings.NewReader(""), w, &terminal)
		if redirected {
			s.file = target
			if err := os.WriteFile(target, stdout.Bytes(), 0o644); err != nil {
				s.t.Fatal(err)
			}
		}
		return terminal.String()
	}
	s.t.Errorf("this test does not know how to run %q", line)
	return ""
}

// compare does what cmp does: it is silent where two files are the same.
func (s *session) compare(files []string) string {
	s.t.Helper()
	a, err := os.ReadFile(files[0])
	if err != nil {
		s.t.Fatal(err)
	}
	b, err := os.ReadFile(files[1])
	if err != nil {
		s.t.Fatal(err)
	}
	if s.code = 0; !bytes.Equal(a, b) {
		s.code = 1
		return strings.Join(files, " ") + " differ\n"
	}
	return ""
}

// edit replaces lines of the file that was made last, each of which must stand in it once.
func (s *session) edit(removed, added []string) {
	s.t.Helper()
	data, err := os.ReadFile(s.file)
	if err != nil {
		s.t.Fatalf("there is nothing to edit: %v", err)
	}
	before, after := strings.Join(removed, "\n")+"\n", strings.Join(added, "\n")+"\n"
	if n := strings.Count(string(data), before); n != 1 || before == "\n" {
		s.t.Fatalf("%s has %d times the lines that are to be replaced:\n%s", s.file, n, before)
	}
	if err := os.WriteFile(s.file, []byte(strings.Replace(string(data), before, after, 1)), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// pages lists everything that is written for people.
func pages(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"*.md", "docs/*.md", ".github/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, found...)
	}
	if len(out) < 5 {
		t.Fatalf("hardly any page was found: %v", out)
	}
	return out
}

var (
	link   = regexp.MustCompile(`\[[^\]\n]*\]\(([^)\s]+)\)`)
	quoted = regexp.MustCompile("`([\\w.-]*/[\\w./-]*\\w)`")
	fenced = regexp.MustCompile("(?ms)^```.*?^```$")
)

// TestLinks follows what the pages link to, and finds the files that they name.
func TestLinks(t *testing.T) {
	t.Parallel()
	for _, page := range pages(t) {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Error(err)
			continue
		}
		text := fenced.ReplaceAllString(string(data), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), filepath.FromSlash(file))
			}
			content, err := os.ReadFile(target)
			if info, e := os.Stat(target); err != nil && (e != nil || !info.IsDir()) {
				t.Errorf("%s links to %s, which is not there", page, m[1])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(string(content)), anchor) {
				t.Errorf("%s links to %s, which has no such heading", page, m[1])
			}
		}
		for _, m := range quoted.FindAllStringSubmatch(text, -1) {
			// A path of ours begins with a folder of ours; others are types, media types, libraries.
			first, _, _ := strings.Cut(m[1], "/")
			if _, err := os.Stat(first); err != nil || first == "." || first == ".." {
				continue
			}
			if _, err := os.Stat(filepath.FromSlash(m[1])); err != nil {
				t.Errorf("%s names %s, which is not there", page, m[1])
			}
		}
	}
}

// TestFormatsPage: the table of formats, which is what people search, has each of them.
func TestFormatsPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/output.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Formats\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, f := range report.Formats {
		if !regexp.MustCompile("(?m)^\\|.*`" + f.Name + "`.*\\|.+\\|$").MatchString(section) {
			t.Errorf("the table of formats lacks %s", f.Name)
		}
	}
}

// anchors lists the headings of a page as links name them.
func anchors(text string) []string {
	var out []string
	for line := range strings.SplitSeq(fenced.ReplaceAllString(text, ""), "\n") {
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
			slug := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(title), "")
			out = append(out, strings.ReplaceAll(slug, " ", "-"))
		}
	}
	return out
}

// TestNamedScenarios finds scenarios and configurations that a page names and that there are not.
func TestNamedScenarios(t *testing.T) {
	t.Parallel()
	named := regexp.MustCompile(`retrylab (?:run|show|describe) ([a-z][a-z0-9-]*[a-z0-9])\b(?:[^./\w-]|$)`)
	for _, page := range pages(t) {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, m := range named.FindAllStringSubmatch(string(data), -1) {
			// What a command prints may lead to a scenario that is still to be written.
			if _, none := scenarios.Builtin(m[1]); none != nil && !strings.Contains(string(data), "next: "+m[0]) {
				t.Errorf("%s names the scenario %s, which is not there", page, m[1])
			}
		}
	}
}

// The marks between which the page on scenario files holds the keys.
const (
	keysBegin = "<!-- The tables below are made from the Go types: go test . -update -->\n"
	keysEnd   = "<!-- The end of what is made from the Go types. -->\n"
)

// TestKeys holds the list of keys in docs/scenario-files.md against the types that files are
// decoded into.
func TestKeys(t *testing.T) {
	t.Parallel()
	const page = "docs/scenario-files.md"
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), keysBegin)
	shown, after, closed := strings.Cut(rest, keysEnd)
	if !ok || !closed {
		t.Fatalf("%s has lost the marks around its keys", page)
	}
	want := keys()
	if *update {
		if err := os.WriteFile(page, []byte(before+keysBegin+want+keysEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("%s does not list the keys that there are (-types +page; go test . -update rewrites it):\n%s", page, diff)
	}
}

// keys writes the tables of all keys.
func keys() string {
	var b strings.Builder
	file := scenarios.FileType()
	for _, part := range []struct {
		title string
		typ   reflect.Type
		also  string
	}{
		{"A file", file, ""},
		{"`schedule`, each", reflect.TypeFor[scenarios.Intent](), "An operation that differs from the others. What it leaves out is as for all of them."},
		{"`caller`", reflect.TypeFor[scenarios.Caller](), ""},
		{"`ask`, of the caller", reflect.TypeFor[scenarios.Ask](), ""},
		{"`hops`, each", reflect.TypeFor[scenarios.Hop](), ""},
		{"`faults`, of a hop, each", reflect.TypeFor[scenarios.HopFault](), "Those of the server are further down."},
		{"`timeouts`, of the caller and of each hop", reflect.TypeFor[scenarios.Timeouts](), "Each is off when absent."},
		{"`layers`, each", reflect.TypeFor[policy.Settings](), "No preset takes all of them; `retrylab layers NAME` shows which mean something to it, and its defaults."},
		{"`backoff`, of a layer", reflect.TypeFor[policy.Backoff](), ""},
		{"`limits`, of a layer", reflect.TypeFor[policy.Limits](), ""},
		{"`budget`, of a layer", reflect.TypeFor[policy.Budget](), ""},
		{"`clock-jumps`, of the caller, each", reflect.TypeFor[scenarios.ClockJump](), ""},
		{"`server`", reflect.TypeFor[scenarios.Server](), ""},
		{"`processing-spread`, of the server", reflect.TypeFor[capacity.Spread](), ""},
		{"`change`, of the server", reflect.TypeFor[change.Settings](), "With it the answer to an order is a 200, not a 201: it says what the row has become."},
		{"`ledgers`, of the server, each", reflect.TypeFor[ledger.Settings](), ""},
		{"`relay`, of a ledger", reflect.TypeFor[ledger.Relay](), ""},
		{"`guard`, of the server", reflect.TypeFor[guard.Settings](), "A kind alone may stand for it: `guard: none`."},
		{"`clean-up`, of a guard", reflect.TypeFor[guard.CleanUp](), ""},
		{"`faults`, of the server, each", reflect.TypeFor[fault.Settings](), ""},
		{"`load`, each phase", reflect.TypeFor[scenarios.Phase](), ""},
		{"`series`", reflect.TypeFor[scenarios.Series](), ""},
		{"`reconcile`", reflect.TypeFor[scenarios.Reconcile](), ""},
		{"`variants`, each", variant(file), ""},
		{"`expect`", reflect.TypeFor[scenarios.Expect](), "What is absent is not checked. Times are checked on the virtual clock only, to [the millisecond or so](#what-is-seen-of-a-send)."},
		{"`beliefs`, in expect", reflect.TypeFor[scenarios.Beliefs](), ""},
	} {
		fmt.Fprintf(&b, "\n### %s\n\n", part.title)
		if part.also != "" {
			fmt.Fprintf(&b, "%s\n\n", part.also)
		}
		b.WriteString("| key | value | meaning |\n| --- | --- | --- |\n")
		for _, f := range reflect.VisibleFields(part.typ) {
			if f.Anonymous || !f.IsExported() {
				continue
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Tag.Get("yaml"), valueWord(f.Type), f.Tag.Get("doc"))
		}
	}
	fmt.Fprintf(&b, "\n### What a layer's `on` takes\n\nA status from 300 to 599, or one of: `%s`.\n", strings.Join(policy.TriggerWords(), "`, `"))
	b.WriteString("\n### What a fault does\n\n| `do` | meaning | at |\n| --- | --- | --- |\n")
	for _, k := range fault.Kinds {
		var places []string
		for _, p := range k.Places {
			places = append(places, "`"+string(p)+"`")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", k.Name, k.Doc, strings.Join(places, ", "))
	}
	b.WriteString("\n### What a guard does\n\n| `kind` | meaning | takes |\n| --- | --- | --- |\n")
	for _, g := range guard.All {
		takes := "nothing more"
		if len(g.Takes) > 0 {
			takes = "`" + strings.Join(g.Takes, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", g.Name, g.Doc, takes)
	}
	b.WriteString("\n### Which layers there are\n\n| `preset` | what it is |\n| --- | --- |\n")
	for _, p := range preset.All {
		fmt.Fprintf(&b, "| `%s` | %s |\n", p.Name, p.Title)
	}
	b.WriteString("\n")
	return b.String()
}

// variant is the type of one of a file's variants.
func variant(file reflect.Type) reflect.Type {
	f, _ := file.FieldByName("Variants")
	return f.Type.Elem()
}

// valueWord says in a word what a value looks like.
func valueWord(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "duration"
	case reflect.TypeFor[scenarios.Money]():
		return "amount"
	case reflect.TypeFor[scenarios.Demand]():
		return "expression"
	case scenarios.SetsType():
		return "paths and values"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return valueWord(t.Elem())
	case reflect.Slice:
		return "list of " + plural(valueWord(t.Elem()))
	case reflect.Map:
		return "names and numbers"
	case reflect.Struct:
		return "mapping"
	case reflect.Int, reflect.Int64, reflect.Float64:
		return "number"
	case reflect.Bool:
		return "true or false"
	}
	return "text"
}

func plural(word string) string {
	if word == "text" {
		return "texts"
	}
	return word + "s"
}
