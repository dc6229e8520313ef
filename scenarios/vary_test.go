package scenarios_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"retrylab/scenarios"
)

func TestParseVary(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text   string
		values []string
	}{
		{"caller.timeouts.read=5s", []string{"5s"}},
		{"caller.timeouts.read=5s, 15s", []string{"5s", "15s"}},
		{"caller.timeouts.read=1s..3s/1s", []string{"1s", "2s", "3s"}},
		{"caller.timeouts.read=500ms..2s/500ms,1m..3m/1m", []string{"500ms", "1s", "1.5s", "2s", "1m", "2m", "3m"}},
		{"caller.timeouts.read=59m..1h/30s", []string{"59m", "59m30s", "1h"}},
		{"operations=1..10/4", []string{"1", "5", "9"}},
		{"x=0.1..0.3/0.1", []string{"0.1", "0.2", "0.3"}},
		{"x=3..3/1", []string{"3"}},
		{"server.guard=none,{kind: unique-index, claim: first}", []string{"none", "{kind: unique-index, claim: first}"}},
		{"caller.layers=[],[a, b]", []string{"[]", "[a, b]"}},
		{`x="a,b",'c,d'`, []string{`"a,b"`, `'c,d'`}},
		{"x=a..b", nil},
		{"x=1s..3/1", nil},
		{"x=1..3/0", nil},
		{"x=1..3/-1", nil},
		{"x=3..1/1", nil},
		{"x=1..2/NaN", nil},
		{"x=0..1e9/1", nil},
		{"x=5,5", nil},
		{"x=5,,6", nil},
		{"x=", nil},
		{"x", nil},
		{"=5", nil},
	} {
		got, err := scenarios.ParseVary([]string{c.text})
		switch {
		case c.values == nil && (err == nil || !strings.HasPrefix(err.Error(), "--vary ")):
			t.Errorf("%s: %v, %v; want an error that names it", c.text, got, err)
		case c.values != nil && err != nil:
			t.Errorf("%s: %v", c.text, err)
		case c.values != nil && !slices.Equal(got[0].Values, c.values):
			t.Errorf("%s: %q, want %q", c.text, got[0].Values, c.values)
		}
	}
	if _, err := scenarios.ParseVary([]string{"a=1..200/1", "b=1..200/1"}); err == nil {
		t.Error("40,000 combinations are taken")
	}
	if _, err := scenarios.ParseVary([]string{"a=1", "a=2"}); err == nil {
		t.Error("one setting varies twice")
	}
	names, err := scenarios.ParseVary([]string{"caller.timeouts.read=1s", "hops[0].timeouts.read=1s", "server.guard=none"})
	if err != nil || names[0].Name != "caller.timeouts.read" || names[1].Name != "hops[0].timeouts.read" || names[2].Name != "guard" {
		t.Errorf("they are called %+v, %v", names, err)
	}
}

const swept = `name: mine
caller: {method: POST, timeouts: {read: 5s}, layers: [{preset: retry, attempts: 2, on: [timeout]}]}
server: {processing: 12s}
premises: [arrivals == 7]
focus: two
variants:
  - name: one
    set: {caller.layers: []}
    expect: {effects: 1}
  - name: two
    expect: {effects: 2}
    invariant: effects == wanted
`

func TestSweep(t *testing.T) {
	t.Parallel()
	s := parse(t, swept)
	vary, err := scenarios.ParseVary([]string{"caller.timeouts.read=5s,15s", "server.guard=none,unique-index"})
	if err != nil {
		t.Fatal(err)
	}
	trials, impossible, err := s.Sweep(scenarios.Options{Seed: 7, Set: []string{"caller.key=operation"}}, vary)
	if err != nil || len(impossible) > 0 {
		t.Fatal(err, impossible)
	}
	var got []string
	for i, trial := range trials {
		got = append(got, fmt.Sprintf("%d %s: %s; %v %s", trial.Row, trial.ID, trial.Configuration, trial.Setup.Caller.Timeouts.Read, trial.Setup.Server.Guard.Kind))
		if trial.Expect != nil || trial.Invariants != nil || trial.Setup.Premises != nil {
			t.Errorf("row %d expects what the file says of other settings", i)
		}
		if trial.Seed != 7 || trial.Setup.Caller.Key != "operation" || len(trial.Layers) != 1 {
			t.Errorf("row %d is not the scenario's focus with what was set: %+v", i, trial)
		}
	}
	want := []string{
		"0 read-5s-guard-none: read 5s, guard none; 5s none",
		"1 read-5s-guard-unique-index: read 5s, guard unique-index; 5s unique-index",
		"2 read-15s-guard-none: read 15s, guard none; 15s none",
		"3 read-15s-guard-unique-index: read 15s, guard unique-index; 15s unique-index",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the rows are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if again, _, _ := s.Sweep(scenarios.Options{Only: "one"}, vary); len(again) != 4 || len(again[0].Layers) != 0 {
		t.Errorf("the configuration that is named is not the one that varies: %+v", again)
	}
}

// TestSweepRefused: a value that is wrong everywhere is a mistake, one that cannot be beside another leaves a
// hole.
func TestSweepRefused(t *testing.T) {
	t.Parallel()
	s := parse(t, swept)
	for _, c := range []struct{ vary, want string }{
		{"server.gard=none", "--vary server.gard=none: "},
		{"caller.timeouts.read=5s,soon", "--vary caller.timeouts.read=5s,soon: "},
		{"name=other", "--vary name=other: "},
	} {
		vary, err := scenarios.ParseVary([]string{c.vary})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Sweep(scenarios.Options{}, vary); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v", c.vary, err)
		}
	}
	vary, err := scenarios.ParseVary([]string{"operations=1,5000", "concurrency=1,3"})
	if err != nil {
		t.Fatal(err)
	}
	trials, impossible, err := s.Sweep(scenarios.Options{}, vary)
	if err != nil || len(trials) != 3 || len(impossible) != 1 || impossible[0].ID != "operations-5000-concurrency-3" || impossible[0].Reason() == "" {
		t.Errorf("%d trials, impossible %v, %v", len(trials), impossible, err)
	}
	several := parse(t, "name: mine\nvariants: [{name: one}, {name: two}]\n")
	if _, _, err := several.Sweep(scenarios.Options{}, vary); err == nil || !strings.Contains(err.Error(), "mine has 2 configurations") {
		t.Errorf("which of two configurations varies is not asked: %v", err)
	}
}

// TestUndone: what would be thrown away without a word is a mistake, and what only says more of it is none.
func TestUndone(t *testing.T) {
	t.Parallel()
	s := parse(t, swept)
	for _, c := range []struct {
		set, vary []string
		want      string // "" for none
	}{
		{[]string{"caller.timeouts.read=3s"}, []string{"caller.timeouts.read=1s,2s"}, `--set caller.timeouts.read=3s: "caller.timeouts.read" is set and varied`},
		{[]string{"caller.timeouts.read=1s", "caller.timeouts.read=2s"}, nil, `--set caller.timeouts.read=2s: "caller.timeouts.read" is set twice`},
		{[]string{"server.guard.kind=none"}, []string{"server.guard=none,unique-index"}, "--vary server.guard=none,unique-index: it undoes --set server.guard.kind=none"},
		{[]string{"server.guard=none"}, []string{"server.guard.kind=none,unique-index"}, "--vary server.guard.kind=none,unique-index: it undoes --set server.guard=none"},
		{[]string{"caller.layers[0].attempts=3"}, []string{"caller.layers=[],[retry]"}, "--vary caller.layers=[],[retry]: it undoes --set caller.layers[0].attempts=3"},
		{[]string{"caller.layers[0].attempts=3", "caller.layers=[]"}, nil, "--set caller.layers=[]: it undoes --set caller.layers[0].attempts=3"},
		{nil, []string{"server.guard.kind=none", "server.guard=none"}, "--vary server.guard=none: it undoes --vary server.guard.kind=none"},
		{[]string{"caller.layers=[{preset: retry, attempts: 2, on: [timeout]}]"}, []string{"caller.layers[0].attempts=1,2"}, ""},
		{[]string{"server.guard=unique-index", "server.guard.claim=first"}, []string{"caller.key=operation"}, ""},
		{[]string{"caller.timeouts.connect=1s", "caller.timeouts.total=9s"}, []string{"caller.timeouts.read=1s,2s"}, ""},
	} {
		vary, err := scenarios.ParseVary(c.vary)
		if err == nil && len(vary) > 0 {
			_, _, err = s.Sweep(scenarios.Options{Set: c.set}, vary)
		} else if err == nil {
			_, err = s.Plan(scenarios.Options{Set: c.set})
		}
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%v %v: %v", c.set, c.vary, err)
		case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)):
			t.Errorf("%v %v: %v, want %s", c.set, c.vary, err, c.want)
		}
	}
}

func TestOverridden(t *testing.T) {
	t.Parallel()
	s := parse(t, `name: mine
variants:
  - {name: one, set: {server.guard: unique-index}}
  - {name: two, set: {server.guard.kind: none, operations: 2}}
  - {name: three}
`)
	for _, c := range []struct{ set, only, want string }{
		{"server.guard=none", "", "2 configurations set server.guard themselves, and --set wins"},
		{"server.guard.kind=none", "", "2 configurations set server.guard.kind themselves, and --set wins"},
		{"operations=3", "", "1 configuration sets operations itself, and --set wins"},
		{"operations=3", "one", ""},
		{"operations=3", "two", "1 configuration sets operations itself, and --set wins"},
		{"server.processing=3s", "", ""},
	} {
		if got := strings.Join(s.Overridden([]string{c.set}, c.only), "; "); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.set, c.only, got, c.want)
		}
	}
}
