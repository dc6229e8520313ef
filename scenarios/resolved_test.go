package scenarios

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// checks is what a trial demands, without the places.
func demanded(t Trial) []string {
	var out []string
	for _, d := range t.Demands() {
		out = append(out, d.Expression)
	}
	return out
}

// same holds the trials that a resolved file gives against those that it was made of.
func sameTrials(t *testing.T, name string, want []Trial, resolved []byte) {
	t.Helper()
	s, err := Parse("resolved.yaml", resolved)
	if err != nil {
		t.Errorf("%s: what it resolves to is no scenario: %v\n%s", name, err, resolved)
		return
	}
	got, err := s.Plan(Options{Seed: 1})
	if err != nil || len(got) != len(want) {
		t.Errorf("%s: %d trials of %d, %v", name, len(got), len(want), err)
		return
	}
	for i := range want {
		w, g := want[i], got[i]
		if diff := cmp.Diff(placeless(w.Setup), placeless(g.Setup)); diff != "" {
			t.Errorf("%s:%s: another setup (-want +resolved):\n%s", name, w.ID, diff)
		}
		if !reflect.DeepEqual(w.Expect, g.Expect) || !reflect.DeepEqual(w.Said, g.Said) || !slices.Equal(demanded(w), demanded(g)) {
			t.Errorf("%s:%s: other demands", name, w.ID)
		}
		if w.ID != g.ID || w.Configuration != g.Configuration || w.Needs != g.Needs || w.Begin != g.Begin {
			t.Errorf("%s:%s: it has become %s, %q, %q, %q", name, w.ID, g.ID, g.Configuration, g.Needs, g.Begin)
		}
	}
}

// TestResolvedCatalogue resolves every scenario, whole and one configuration at a time, to a file that
// gives the same trials, with every default in it.
func TestResolvedCatalogue(t *testing.T) {
	t.Parallel()
	list, err := Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		ids := []string{""}
		for _, v := range s.Variants {
			ids = append(ids, v.ID)
		}
		for _, id := range ids {
			o := Options{Seed: 1, Only: id}
			want, err := s.Plan(o)
			if err != nil {
				t.Fatal(err)
			}
			out, err := s.Resolved(o, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			sameTrials(t, s.Name, want, out)
			if !strings.Contains(string(out), "# default") {
				t.Errorf("%s:%s: no default is written down: a check minds one\n%s", s.Name, id, out)
			}
		}
	}
}

// TestResolved says where each value comes from.
func TestResolved(t *testing.T) {
	t.Parallel()
	const text = `name: mine
title: "50 % off: \"x\" # no comment"
lesson: |
  One.

  Two: three.
operations: 2
caller: {timeouts: {read: 5s}, layers: [feign-retryer]}
server: {processing: 12s, guard: unique-index}
focus: b
variants:
  - name: 'a: "1"'
    id: a
  - name: b
    set: {caller.layers.feign-retryer.attempts: 2, server.guard: none}
    expect: {effects: 4}
    invariant: effects >= wanted
`
	s, err := Parse("my file.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		o     Options
		vary  []string
		seeds []int
		want  []string // lines, however many blanks are in them
		never []string
	}{
		{"all", Options{}, nil, nil, []string{
			`title: "50 % off: \"x\" # no comment" # my file.yaml:2`,
			`operations: 2 # my file.yaml:7`,
			`amount: 50 # default`,
			`read: 5s # my file.yaml:8`,
			`key: none # default`,
			`- preset: feign-retryer # my file.yaml:8`,
			`kind: unique-index # my file.yaml:9`,
			`- name: "a: \"1\"" # my file.yaml:12`, `id: a # my file.yaml:13`,
			`- name: b # my file.yaml:14`, `id: b # default`,
			`attempts: 2 # my file.yaml:15, b`,
			`kind: none # my file.yaml:15, b`,
			`- effects >= wanted # my file.yaml:17`, `effects: 4 # my file.yaml:16`,
			`focus: b # my file.yaml:10`,
		}, []string{"seeds:"}},
		{"one", Options{Only: "a", Set: []string{"caller.timeouts.read=15s", "caller.key=operation"}, Assert: []string{"effects == wanted"}}, nil, []int{7}, []string{
			`read: 15s # --set caller.timeouts.read=15s`,
			`key: operation # --set caller.key=operation`,
			`seeds: [7] # --seed, --repeat`,
			`- effects == wanted # --assert`,
		}, []string{"focus", " set:", "name: b"}},
		{"sweep", Options{}, []string{"caller.timeouts.read=1s..3s/1s", "server.guard=none,unique-index"}, nil, []string{
			`# --vary caller.timeouts.read, 3 values: 1s, 2s, 3s`,
			`# --vary server.guard, 2 values: none, unique-index`,
			`# 6 rows, one for each combination that is possible`,
			`caller.timeouts.read: 1s # --vary caller.timeouts.read=1s..3s/1s`,
			`kind: none # --vary server.guard=none,unique-index`,
		}, []string{"expect:"}},
	} {
		c.o.Seed = 1
		vary, err := ParseVary(c.vary)
		if err != nil {
			t.Fatal(err)
		}
		out, err := s.Resolved(c.o, vary, c.seeds)
		if err != nil {
			t.Fatal(err)
		}
		var trials []Trial
		if c.vary == nil {
			trials, err = s.Plan(c.o)
		} else {
			trials, _, err = s.Sweep(c.o, vary)
		}
		if err != nil {
			t.Fatal(err)
		}
		sameTrials(t, c.name, trials, out)
		var lines []string
		for line := range strings.Lines(string(out)) {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
		for _, want := range c.want {
			if !slices.Contains(lines, want) {
				t.Errorf("%s: there is no line %q in\n%s", c.name, want, out)
			}
		}
		for _, never := range c.never {
			if strings.Contains(string(out), never) {
				t.Errorf("%s: it has %q:\n%s", c.name, never, out)
			}
		}
	}
}

// TestResolvedHostile keeps what is in a file, in a name and on the command line from becoming something else.
func TestResolvedHostile(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`yes`, `~`, `1e3`, `0x1F`, `- x`, `x: y`, `x #y`, `"`, `'`, `\`, `{a}`, `[a]`, `a, b`, `%`, `@x`, `*x`, `&x`, `!x`, `|`, `>`,
		`<script>`, "é 漢字 🙂", "a\u001bb", "tab\tbed", "\u00a0", "a\u2028b", "\u200b", `?`, `x:`, `null`, `.5`, `--- x`, `...`, `12:30:45`, `2001-01-01`, `=`, `<<`, `a  b`, `1_000`,
	} {
		name := "variants: [{name: " + quoteYAML(text) + ", id: x, set: {caller.name: me}}]\ntitle: " + quoteYAML(text) + "\nlesson: " + quoteYAML(text+"\n"+text)
		s, err := Parse("a\nb: c.yaml", []byte("name: mine\n"+name+"\n"))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		o := Options{Seed: 1, Set: []string{"schedule=[{item: " + quoteYAML(text) + "}]"}}
		want, err := s.Plan(o)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		out, err := s.Resolved(o, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		sameTrials(t, text, want, out)
		if again, err := Parse("again", out); err == nil && (again.Title != s.Title || again.Lesson != s.Lesson) {
			t.Errorf("%q: the title is %q and the lesson %q\n%s", text, again.Title, again.Lesson, out)
		}
	}
}

func quoteYAML(text string) string { return strconv.Quote(text) }

// TestSettings lists what is in effect, by paths that --set takes.
func TestSettings(t *testing.T) {
	t.Parallel()
	s, err := Parse("mine.yaml", []byte("name: mine\nserver: {guard: unique-index}\ncaller:\n  timeouts: {read: 5000ms}\n  layers: [{preset: feign-retryer, attempts: 3}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	trials, err := s.Plan(Options{Seed: 1, Set: []string{"caller.key=operation"}})
	if err != nil {
		t.Fatal(err)
	}
	got := trials[0].Settings()
	want := []Setting{
		{"server.guard.kind", "unique-index", "mine.yaml:2"},
		{"server.name", "order", byDefault},
	}
	if diff := cmp.Diff(want, got[:2]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, w := range []Setting{
		{"caller.timeouts.read", "5000ms", "mine.yaml:4"},
		{"caller.layers[0].preset", "feign-retryer", "mine.yaml:5"},
		{"caller.layers[0].attempts", "3", "mine.yaml:5"},
		{"caller.key", "operation", "--set caller.key=operation"},
		{"amount", "50", byDefault},
	} {
		if !slices.Contains(got, w) {
			t.Errorf("there is no %+v in %+v", w, got)
		}
	}
	for _, g := range got {
		if _, err := s.Plan(Options{Seed: 1, Set: []string{g.Path + "=" + g.Value}}); err != nil {
			t.Errorf("%s cannot be set: %v", g.Path, err)
		}
	}
}
