package scenarios_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"retrylab/scenarios"
)

var update = flag.Bool("update", false, "write the golden files anew")

// made are files that are wrong in a way that cannot be stored, or read, as a file of testdata.
var made = map[string]string{
	"made-empty":             "",
	"made-blank":             " \n\n",
	"made-document-marker":   "---\n",
	"made-null":              "null\n",
	"made-huge":              "name: mine\n" + strings.Repeat("# "+strings.Repeat("x", 97)+"\n", 1400),
	"made-many-lines":        "name: mine\n" + strings.Repeat("#\n", 5000),
	"made-many-values":       "name: mine\ntags: [" + strings.Repeat("a,", 25_000) + "]\n",
	"made-many-keys":         "name: mine\nexpect: {answers: {" + numbered(9000, "k%d: 1, ") + "}}\n",
	"made-deep-flow":         strings.Repeat("[", 100_000),
	"made-deep-mapping":      strings.Repeat("{a: ", 30_000),
	"made-deep-dashes":       strings.Repeat("- ", 60_000) + "a\n",
	"made-deep-questions":    strings.Repeat("? ", 60_000) + "a\n",
	"made-deep-tags":         strings.Repeat("!a ", 40_000) + "a\n",
	"made-deep-anchors":      strings.Repeat("&a ", 40_000) + "a\n",
	"made-block-of-blanks":   "name: mine\nlesson: |\n" + strings.Repeat(" \n", 4900) + "foo: 1\n",
	"made-many-documents":    "name: mine\n" + strings.Repeat("--- a\n", 4900),
	"made-carriage-return":   "name: mine\rserver:\r  processing: 1\r",
	"made-crlf":              "name: mine\r\nserver:\r\n  processing: 12\r\n",
	"made-byte-order-mark":   "\ufeffname: Mine\n",
	"made-utf-16":            "\xff\xfen\x00a\x00m\x00e\x00:\x00 \x00x\x00\n\x00",
	"made-latin-1":           "name: mine\ntitle: \"caf\xe9\"\n",
	"made-tab-indent":        "name: mine\nserver:\n\tprocessing: 1s\n",
	"made-tab-indent-later":  "name: mine\nserver:\n  guard: none\n\tprocessing: 1s\n",
	"made-tab-in-line":       "name: mine\nserver: {guard:\tnone, processing:\t12}\n",
	"made-nul":               "name: mi\x00ne\n",
	"made-escape":            "name: mine\ntitle: \x1b[31mred\n",
	"made-escape-in-quotes":  "name: mine\ntitle: fine\nserver: {processing: \"\\e[2J\"}\n",
	"made-direction":         "name: mine\nserver: {guard: \"\u202enone\"}\n",
	"made-zero-width":        "name: mi\u200bne\n",
	"made-long-word":         "name: mine\nserver: {processing: " + strings.Repeat("x", 10_000) + "}\n",
	"made-long-number":       "name: mine\noperations: " + strings.Repeat("9", 10_000) + "\n",
	"made-long-key":          "name: mine\n" + strings.Repeat("k", 10_000) + ": 1\n",
	"made-long-line":         "name: mine\nserver: {name: " + strings.Repeat("a", 200) + ", processing: 12}\n",
	"made-high-line":         strings.Repeat("\n", 4990) + "name: mine\noperation: 1\n",
	"made-replicas":          "name: mine\nserver: {replicas: 2147483647}\n",
	"made-sides":             "name: mine\noperations: 2147483647\nconcurrency: 2147483647\n",
	"made-attempts":          "name: mine\ncaller: {layers: [{preset: retry, attempts: 2147483647}]}\n",
	"made-expression-bomb":   "name: mine\ninvariant: " + strings.Repeat("(", 240) + "effects" + strings.Repeat(")", 240) + " + 1 > 0 and\n",
	"made-expression-length": "name: mine\ninvariant: " + strings.Repeat("-", 100_000) + "effects > 0\n",
}

func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// wrongFiles returns every wrong file: those of testdata and those that are made.
func wrongFiles(t testing.TB) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for name, text := range made {
		files[name] = []byte(text)
	}
	paths, err := filepath.Glob("testdata/errors/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimSuffix(filepath.Base(path), ".yaml")] = data
	}
	return files
}

// TestErrors reads files that are wrong, one mistake each, and compares the whole of what a person
// is told with a golden file.
func TestErrors(t *testing.T) {
	t.Parallel()
	files := wrongFiles(t)
	for name, data := range files {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := scenarios.Parse(name+".yaml", data)
			if err == nil {
				t.Fatal("the file is taken for a good one")
			}
			checkError(t, name+".yaml", data, err)
			if found := jargon.FindString(err.Error()); found != "" {
				t.Errorf("%q is for those who know the parser: %v", found, err)
			}
			golden(t, "testdata/errors/"+name+".golden", err.Error()+"\n")
		})
	}
	goldens, err := filepath.Glob("testdata/errors/*.golden")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range goldens {
		if _, ok := files[strings.TrimSuffix(filepath.Base(path), ".golden")]; !ok {
			t.Errorf("%s belongs to no file", path)
		}
	}
}

var placePattern = regexp.MustCompile(`^(\d+):(\d+): `)

// jargon is what only a person who knows the parsers would understand.
var jargon = regexp.MustCompile(`\btoken\b|node|EOF|unmarshal|goccy|expr\.|interface|\bint\b|\bbool\b|\bnil\b|reflect|\[\d+:\d+\]|\(\d+:\d+\)`)

// checkError demands of an error about a file what holds for all of them.
func checkError(t *testing.T, file string, data []byte, err error) {
	t.Helper()
	var e *scenarios.Error
	if !errors.As(err, &e) {
		t.Fatalf("%T is no *scenarios.Error: %v", err, err)
	}
	if e.What == "" {
		t.Error("it does not say what is wrong")
	}
	text := err.Error()
	if len(text) > 1500 {
		t.Errorf("the message has %d bytes", len(text))
	}
	for _, r := range text {
		if r != '\n' && !strconv.IsPrint(r) && r != '\u3000' {
			t.Errorf("%q would reach the terminal", r)
		}
	}
	rest, ok := strings.CutPrefix(text, file+":")
	if !ok {
		t.Fatalf("it does not begin with the file: %s", text)
	}
	place := placePattern.FindStringSubmatch(rest)
	if place == nil {
		if len(data) <= scenarios.MaxFileSize {
			t.Errorf("it has no place: %s", text)
		}
		return
	}
	line, _ := strconv.Atoi(place[1])
	column, _ := strconv.Atoi(place[2])
	lines := strings.Split(string(data), "\n")
	if line < 1 || line > len(lines) {
		t.Errorf("line %d of %d", line, len(lines))
		return
	}
	if n := len([]rune(lines[line-1])); column < 1 || column > n+1 {
		t.Errorf("column %d of line %d, which has %d", column, line, n)
	}
}

// TestSetErrors does for --set what TestErrors does for files. There is no place but the flag.
func TestSetErrors(t *testing.T) {
	t.Parallel()
	s := parse(t, `
name: mine
caller:
  timeouts: {read: 5s}
  layers: [feign-retryer, {preset: retry, name: inner}]
hops:
  - name: gateway
server:
  processing: 12s
  guard: unique-index
  faults: [{at: after-commit, do: reset}]
`)
	var b strings.Builder
	for _, set := range []string{
		"", "=", "=5s", "caller.timeouts.read", "caller.timeouts.read=", "caller.timeouts.read= ",
		"caller.timeouts.read=5", "caller.timeouts.read=-5s", "caller.timeouts.read=[5s]", "caller.timeouts.read={a: b}",
		"caller.timeouts.red=5s", "calller.timeouts.read=5s", "timeouts.read=5s", "read=5s", "Caller.timeouts.read=5s",
		"caller=POST", "caller.layers=3", "caller.layers={preset: retry}", "caller.layers[2].attempts=3",
		"caller.layers[-1].attempts=3", "caller.layers[x].attempts=3", "caller.layers[inne].attempts=3",
		"caller.layers[].attempts=3", "caller.layers[0=3", "caller.layers[0]x=3", "caller.layers[0].attempts=0", "caller.layers[0].wait=1s",
		"caller.layers.inner.attempts=many", "caller..read=5s", ".caller=5s", "caller.=5s", "[0]=1",
		"hops[0].layers[0].attempts=3", "hops.gateway.name=caller", "hops[1].name=x", "server[0]=1",
		"server.guard=unique", "server.guard.claim=last", "server.guard.kind.x=1", "server.processing.x=1",
		"server.faults[0].do=explode", "server.faults[1].do=reset", "server.faults[reset].at=in-reply", "server.faults=reset",
		"server.replicas=0", "server.replicas=2147483647", "operations=99999999999999999999", "operations=1.5",
		"name=other", "variants=[]", "variants[0].name=x", "expect.effects=1", "invariant=effects <= wanted", "lesson=none",
		"premises=effect > 0", "premises=effects >", "premises=[effects > 0, lsot == 0]",
		"server.processing=[1s", "server.processing={", "server.processing=\"1s", "server.processing=&a 1s", "server.processing=*a",
		"server.processing=!!str 1s", "server.processing=%a", "server.processing=a: b: c", "server.processing=1s\x00", "server.processing=\xff",
		"server.processing=\t1", "server.processing=" + strings.Repeat("[", 2000), "server.processing=" + strings.Repeat("x", 2000),
		"server.processing=" + strings.Repeat("x", 200_000), strings.Repeat("a.", 5000) + "b=1", strings.Repeat("x", 3000),
		"server.processing=1s\n---\n2s", "caller.layers=[{preset: retry}, {preset: retry}]",
		"<<=1", "caller.<<=1", "server={<<: {processing: 1s}}", "server={processing: 1s, processing: 2s}",
	} {
		_, err := s.Plan(scenarios.Options{Set: []string{set}})
		if err == nil {
			t.Errorf("--set %.100q is taken for a good one", set)
			continue
		}
		var e *scenarios.Error
		if !errors.As(err, &e) {
			t.Errorf("--set %.100q: %T is no *scenarios.Error: %v", set, err, err)
			continue
		}
		text := err.Error()
		if found := jargon.FindString(text); found != "" {
			t.Errorf("--set %.100q: %q is for those who know the parser: %s", set, found, e.What)
		}
		if !strings.HasPrefix(text, "--set ") {
			t.Errorf("--set %.100q: the message does not begin with the flag: %s", set, text)
		}
		if len(text) > 1500 {
			t.Errorf("--set %.100q: the message has %d bytes", set, len(text))
		}
		b.WriteString(text + "\n\n")
	}
	golden(t, "testdata/sets.golden", b.String())
}

// TestFirstErrorIsStable checks that the same mistake of several is told every time.
func TestFirstErrorIsStable(t *testing.T) {
	t.Parallel()
	data := []byte("name: mine\nexpect: {sends-by: {c: 1, b: 1, a: 1}, arrivals-at: {z: 1, y: 1}, answers: {x: 1, w: 1}}\n")
	var first string
	for range 50 {
		_, err := scenarios.Parse("mine.yaml", data)
		if err == nil {
			t.Fatal("no error")
		}
		if first == "" {
			first = err.Error()
		}
		if got := err.Error(); got != first {
			t.Fatalf("once\n%s\nand once\n%s", first, got)
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"read-timeout", "order-incident", "unique-index", "ok", "on", "max-period", "all_names"}
	for _, c := range []struct{ word, want string }{
		{"read-timeout", "read-timeout"}, {"read-timout", "read-timeout"}, {"raed-timeout", "read-timeout"},
		{"READ_TIMEOUT", "read-timeout"}, {"incident", "order-incident"}, {"unique", "unique-index"},
		{"maxPeriod", "max-period"}, {"all-names", "all_names"}, {"no", "on"}, {"ko", "ok"},
		{"", ""}, {"x", ""}, {"xy", ""}, {"foo", ""}, {"cashback", ""}, {strings.Repeat("a", 1000), ""},
	} {
		if got := scenarios.Nearest(c.word, known); got != c.want {
			t.Errorf("Nearest(%.20q) = %q, want %q", c.word, got, c.want)
		}
	}
	if got := scenarios.Nearest("anything", nil); got != "" {
		t.Errorf("nearest of nothing is %q", got)
	}
}

// parse reads a good scenario. A line break before its first line is left out.
func parse(t *testing.T, text string) *scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Parse("mine.yaml", []byte(strings.TrimPrefix(text, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// plan resolves a good scenario.
func plan(t *testing.T, s *scenarios.Scenario, sets ...string) []scenarios.Trial {
	t.Helper()
	trials, err := s.Plan(scenarios.Options{Seed: 1, Set: slices.Clone(sets)})
	if err != nil {
		t.Fatal(err)
	}
	return trials
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
