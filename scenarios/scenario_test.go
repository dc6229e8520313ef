package scenarios_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retrylab/caller/policy"
	"retrylab/scenarios"
	"retrylab/slowserver/fault"
	"retrylab/slowserver/guard"
)

// TestDefaults reads the smallest file that is a scenario.
func TestDefaults(t *testing.T) {
	t.Parallel()
	s := parse(t, "name: mine\n")
	want := scenarios.Setup{
		Operations: 1, Concurrency: 1, Amount: 5000,
		Caller: scenarios.Caller{
			Name: "caller", Method: "POST", Body: policy.Buffered, Content: "same", Key: "none", Connection: "fresh", Redirects: "none", Deadline: "local",
		},
		Server: scenarios.Server{Name: "order", Replicas: 1, Answer: "done", OnClientGone: "finish", Deadline: "ignore", Shed: "none", RowsOrder: "fixed", OnUnknownCommit: "fail"},
	}
	trials := plan(t, s)
	if len(trials) != 1 {
		t.Fatalf("%d trials", len(trials))
	}
	got := trials[0]
	if diff := cmp.Diff(want, got.Setup); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.Scenario != "mine" || got.Configuration != "as written" || got.ID != "as-written" || got.Seed != 1 || got.Wanted() != 1 {
		t.Errorf("the trial is %q %q %q, seed %d, %d wanted", got.Scenario, got.Configuration, got.ID, got.Seed, got.Wanted())
	}
	if got.Expect != nil || got.Invariants != nil || len(got.Layers) != 0 {
		t.Errorf("out of nothing came %v, %v, %v", got.Expect, got.Invariants, got.Layers)
	}
}

// TestDefaultsFollow checks the defaults that depend on another value.
func TestDefaultsFollow(t *testing.T) {
	t.Parallel()
	setup := func(text string) scenarios.Setup { return plan(t, parse(t, "name: mine\n"+text))[0].Setup }
	if got := setup("caller: {method: GET}\n").Caller.Body; got != policy.NoBody {
		t.Errorf("a GET has the body %q", got)
	}
	if got := setup("caller: {method: PUT}\n").Caller.Body; got != policy.Buffered {
		t.Errorf("a PUT has the body %q", got)
	}
	if got := setup("caller: {connection: reused}\n").Caller.Idle; got != 1 {
		t.Errorf("%d idle connections to reuse", got)
	}
	hops := setup("hops: [{kind: nginx}, {name: gateway}]\n").Hops
	if hops[0].Name != "nginx" || hops[1].Name != "gateway" || hops[1].Kind != "service" {
		t.Errorf("the hops are %+v", hops)
	}
	if len(hops[0].Layers) != 1 || hops[0].Layers[0].Preset != "nginx" || hops[1].Layers != nil {
		t.Errorf("the layers of the hops are %+v and %+v", hops[0].Layers, hops[1].Layers)
	}
	if got := setup("hops: [{kind: nginx, layers: []}]\n").Hops[0].Layers; len(got) != 0 || got == nil {
		t.Errorf("an nginx that was given no layers has %+v", got)
	}
	if got := setup("amount: 49.9\n").Amount; got != 4990 {
		t.Errorf("49.9 is %d", got)
	}
}

// TestShorthands reads what may be written shorter.
func TestShorthands(t *testing.T) {
	t.Parallel()
	short := plan(t, parse(t, `
name: mine
tags: one
caller:
  layers: [feign-retryer, {preset: retry, on: 503, statuses: 404, methods: any}]
server:
  guard: unique-index
  faults:
    - {at: after-commit, do: reset, arrivals: 1}
invariant: effects <= wanted
`))[0]
	long := plan(t, parse(t, `
name: mine
tags: [one]
caller:
  layers:
    - preset: feign-retryer
    - preset: retry
      on: ["503"]
      statuses: ["404"]
      methods: [any]
server:
  guard:
    kind: unique-index
  faults:
    - at: after-commit
      do: reset
      arrivals:
        - 1
invariant:
  - effects <= wanted
`))[0]
	if diff := cmp.Diff(long.Setup, short.Setup); diff != "" {
		t.Errorf("(-long +short):\n%s", diff)
	}
	if !reflect.DeepEqual(long.Layers, short.Layers) {
		t.Errorf("the layers are\n%+v and\n%+v", long.Layers, short.Layers)
	}
	if long.Invariants[0].Expression != short.Invariants[0].Expression {
		t.Errorf("the invariants are %v and %v", long.Invariants, short.Invariants)
	}
}

// TestEmptyListIsNotAbsent: `on: []` is a layer that retries nothing, and no `on` is the default.
func TestEmptyListIsNotAbsent(t *testing.T) {
	t.Parallel()
	trial := plan(t, parse(t, "name: mine\ncaller:\n  layers: [{preset: retry, on: []}, {preset: retry, name: other}]\n"))[0]
	layers := trial.Setup.Caller.Layers
	if layers[0].On == nil || len(layers[0].On) != 0 {
		t.Errorf("on: [] is %#v", layers[0].On)
	}
	if layers[1].On != nil {
		t.Errorf("no on is %#v", layers[1].On)
	}
	failed := []policy.Outcome{{Failure: policy.EOF, Method: "POST", Body: policy.Buffered}}
	if d := trial.Layers[0].Next(failed, 0); d.Retry {
		t.Errorf("a layer on nothing retries: %+v", d)
	}
	if d := trial.Layers[1].Next(failed, 0); !d.Retry {
		t.Errorf("a layer with the default does not retry: %+v", d)
	}
}

// TestEmptyMappings: a key with nothing below it is as if it were not there.
func TestEmptyMappings(t *testing.T) {
	t.Parallel()
	full := plan(t, parse(t, "name: mine\ncaller:\n  timeouts:\n  layers:\nhops:\nserver:\nexpect:\ninvariant:\nvariants:\n"))[0]
	if diff := cmp.Diff(plan(t, parse(t, "name: mine\n"))[0].Setup, full.Setup); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := parse(t, "name: mine\nvariants: []\n").Variants; len(got) != 1 {
		t.Errorf("no variants are %v", got)
	}
}

const chain = `
name: mine
caller:
  timeouts: {read: 5s}
  layers:
    - preset: feign-retryer
    - preset: retry
      name: inner
      attempts: 2
hops:
  - name: gateway
    layers: [retry]
server:
  processing: 12s
  guard: unique-index
  faults:
    - {at: after-commit, do: reset}
`

// TestPaths sets values by every form of a path.
func TestPaths(t *testing.T) {
	t.Parallel()
	s := parse(t, chain)
	for _, c := range []struct {
		sets []string
		got  func(scenarios.Setup) any
		want any
	}{
		{[]string{"caller.timeouts.read=15s"}, func(s scenarios.Setup) any { return s.Caller.Timeouts.Read }, 15 * time.Second},
		{[]string{"caller.timeouts.total=1m"}, func(s scenarios.Setup) any { return s.Caller.Timeouts.Total }, time.Minute},
		{[]string{"caller.timeouts={connect: 1s}"}, func(s scenarios.Setup) any { return s.Caller.Timeouts }, scenarios.Timeouts{Connect: time.Second}},
		{[]string{"caller.layers[0].attempts=7"}, func(s scenarios.Setup) any { return *s.Caller.Layers[0].Attempts }, 7},
		{[]string{"caller.layers[feign-retryer].attempts=7"}, func(s scenarios.Setup) any { return *s.Caller.Layers[0].Attempts }, 7},
		{[]string{"caller.layers.feign-retryer.attempts=7"}, func(s scenarios.Setup) any { return *s.Caller.Layers[0].Attempts }, 7},
		{[]string{"caller.layers.inner.attempts=7"}, func(s scenarios.Setup) any { return *s.Caller.Layers[1].Attempts }, 7},
		{[]string{"caller.layers[1]=urllib3"}, func(s scenarios.Setup) any { return s.Caller.Layers[1].Preset }, "urllib3"},
		{[]string{"caller.layers=[]"}, func(s scenarios.Setup) any { return len(s.Caller.Layers) }, 0},
		{[]string{"caller.layers="}, func(s scenarios.Setup) any { return len(s.Caller.Layers) }, 0},
		{[]string{"caller.layers=okhttp"}, func(s scenarios.Setup) any { return s.Caller.Layers[0].Preset }, "okhttp"},
		{[]string{"caller.layers[inner].on=[503, eof]"}, func(s scenarios.Setup) any { return s.Caller.Layers[1].On }, []string{"503", "eof"}},
		{[]string{"hops.gateway.timeouts.read=3s"}, func(s scenarios.Setup) any { return s.Hops[0].Timeouts.Read }, 3 * time.Second},
		{[]string{"hops[0].layers[0].attempts=9"}, func(s scenarios.Setup) any { return *s.Hops[0].Layers[0].Attempts }, 9},
		{[]string{"hops=[]"}, func(s scenarios.Setup) any { return len(s.Hops) }, 0},
		{[]string{"server.guard=none"}, func(s scenarios.Setup) any { return s.Server.Guard }, guard.Settings{Kind: "none"}},
		{[]string{"server.guard.claim=first"}, func(s scenarios.Setup) any { return s.Server.Guard }, guard.Settings{Kind: "unique-index", Claim: "first"}},
		{[]string{"server.guard={kind: none}"}, func(s scenarios.Setup) any { return s.Server.Guard }, guard.Settings{Kind: "none"}},
		{[]string{"server.faults=[]"}, func(s scenarios.Setup) any { return len(s.Server.Faults) }, 0},
		{[]string{"server.faults[0].at=before-guard"}, func(s scenarios.Setup) any { return s.Server.Faults[0].At }, fault.BeforeGuard},
		{[]string{"operations=3"}, func(s scenarios.Setup) any { return s.Operations }, 3},
		{[]string{" operations = 3 "}, func(s scenarios.Setup) any { return s.Operations }, 3},
		{[]string{"amount=0.5"}, func(s scenarios.Setup) any { return s.Amount }, scenarios.Money(50)},
		{[]string{"server.name='123'"}, func(s scenarios.Setup) any { return s.Server.Name }, "123"},
		{[]string{"server.processing=0"}, func(s scenarios.Setup) any { return s.Server.Processing }, time.Duration(0)},
		{[]string{"caller.layers=[{preset: retry}]", "caller.layers.retry.attempts=4"}, func(s scenarios.Setup) any { return *s.Caller.Layers[0].Attempts }, 4},
	} {
		setup := plan(t, s, c.sets...)[0].Setup
		if diff := cmp.Diff(c.want, c.got(setup)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.sets, diff)
		}
	}
}

// TestSetPremises: the expressions of a premise can be set too.
func TestSetPremises(t *testing.T) {
	t.Parallel()
	got := plan(t, parse(t, chain), "premises=[overlap >= 2, faults_fired > 0]")[0].Setup.Premises
	if len(got) != 2 || got[0].Expression != "overlap >= 2" || got[1].Expression != "faults_fired > 0" {
		t.Errorf("the premises are %v", got)
	}
}

// TestPrecedence: a variant stands above the file, the command line above both, and the base below
// the variants.
func TestPrecedence(t *testing.T) {
	t.Parallel()
	s := parse(t, `
name: mine
caller:
  timeouts: {connect: 1s, read: 1s, attempt: 1s, total: 1s}
variants:
  - name: Two, and   more!
    set: {caller.timeouts.read: 2s, caller.timeouts.total: 2s}
    expect: {effects: 1}
    invariant: effects <= wanted
  - name: as the file says
    id: plain
`)
	trials := plan(t, s, "caller.timeouts.total=3s", "caller.timeouts.attempt=3s")
	if len(trials) != 2 || trials[0].ID != "two-and-more" || trials[1].ID != "plain" || trials[0].Configuration != "Two, and   more!" {
		t.Fatalf("the trials are %+v", trials)
	}
	second := time.Second
	if got, want := trials[0].Setup.Caller.Timeouts, (scenarios.Timeouts{Connect: second, Read: 2 * second, Attempt: 3 * second, Total: 3 * second}); got != want {
		t.Errorf("the variant has %v, want %v", got, want)
	}
	if got, want := trials[1].Setup.Caller.Timeouts, (scenarios.Timeouts{Connect: second, Read: second, Attempt: 3 * second, Total: 3 * second}); got != want {
		t.Errorf("the other has %v, want %v", got, want)
	}
	if trials[0].Expect == nil || *trials[0].Expect.Effects != 1 || trials[1].Expect != nil {
		t.Errorf("the expectations are %v and %v", trials[0].Expect, trials[1].Expect)
	}
	if got, want := trials[0].Places["effects"], (scenarios.Place{File: "mine.yaml", Line: 7, Column: 14}); got != want {
		t.Errorf("the expectation stands at %v, want %v", got, want)
	}
	if got, want := trials[0].Invariants[0].At, (scenarios.Place{File: "mine.yaml", Line: 8, Column: 16}); got != want {
		t.Errorf("the invariant stands at %v, want %v", got, want)
	}
	if got := s.Variants[0].Changes; len(got) != 2 || got[0] != (scenarios.Change{Path: "caller.timeouts.read", Value: "2s"}) {
		t.Errorf("the variant changes %v", got)
	}
	base, err := s.Base()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := base.Setup.Caller.Timeouts, (scenarios.Timeouts{Connect: second, Read: second, Attempt: second, Total: second}); got != want {
		t.Errorf("the base has %v, want %v", got, want)
	}
}

// TestOnly plans one configuration of several.
func TestOnly(t *testing.T) {
	t.Parallel()
	s := parse(t, "name: mine\nvariants: [{name: one}, {name: two}, {name: three}]\n")
	trials, err := s.Plan(scenarios.Options{Only: "two", Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	if len(trials) != 1 || trials[0].ID != "two" || trials[0].Seed != 7 {
		t.Errorf("the trials are %+v", trials)
	}
	if trials[0].Row != 1 {
		t.Errorf("it is row %d, not 1", trials[0].Row)
	}
	_, err = s.Plan(scenarios.Options{Only: "thre"})
	if want := "mine has no configuration \"thre\"\n  did you mean \"three\"?"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestPlanIsPure: planning twice gives the same, planning changes nothing, and nothing that is done
// to a trial reaches the next plan.
func TestPlanIsPure(t *testing.T) {
	t.Parallel()
	for _, name := range scenarios.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := scenarios.Builtin(name)
			if err != nil {
				t.Fatal(err)
			}
			untouched, err := scenarios.Builtin(name)
			if err != nil {
				t.Fatal(err)
			}
			first := plan(t, s)
			plan(t, s, "caller.layers=[]", "caller.key=none", "caller.content=same", "server.guard=none", "server.faults=[]", "server.processing=7s")
			for _, trial := range first {
				scribble(reflect.ValueOf(&trial.Setup).Elem())
			}
			if !reflect.DeepEqual(s, untouched) {
				t.Error("planning changed the scenario")
			}
			if !reflect.DeepEqual(plan(t, s), plan(t, untouched)) {
				t.Error("two plans of one scenario differ")
			}
		})
	}
}

// scribble writes over everything that v and what it refers to hold.
func scribble(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			scribble(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			scribble(v.Index(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			scribble(v.Elem())
		}
	case reflect.Int, reflect.Int64:
		v.SetInt(-1)
	case reflect.String:
		v.SetString("scribbled")
	}
}

// TestMake makes a trial of a setup that stands in no file.
func TestMake(t *testing.T) {
	t.Parallel()
	got, err := scenarios.Make("probe", scenarios.Setup{
		Operations: 1, Concurrency: 1, Amount: 100,
		Caller: scenarios.Caller{Method: "GET", Layers: []policy.Settings{{Preset: "urllib3"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Scenario != "probe" || got.ID != "probe" || got.Setup.Server.Replicas != 1 || got.Setup.Caller.Body != policy.NoBody || len(got.Layers) != 1 || got.Layers[0].Preset != "urllib3" {
		t.Errorf("the trial is %+v", got)
	}
	for _, c := range []struct {
		setup scenarios.Setup
		want  string
	}{
		{scenarios.Setup{Caller: scenarios.Caller{Method: "BREW"}}, `caller.method cannot be "BREW"`},
		{scenarios.Setup{Caller: scenarios.Caller{Layers: []policy.Settings{{Preset: "wget"}}}}, `unknown preset "wget"`},
		{scenarios.Setup{Server: scenarios.Server{Replicas: 1 << 40}}, "server.replicas must be between 1 and 32"},
		{scenarios.Setup{Hops: []scenarios.Hop{{Name: "caller"}}}, `two machines are called "caller"`},
	} {
		if _, err := scenarios.Make("probe", c.setup); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

func TestIsFile(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]bool{
		"-": true, "./mine": true, "mine.yaml": true, "mine.yml": true, `dir\mine`: true, "mine.yaml:two": true, "./mine.yaml:two": true,
		"mine": false, "read-timeout": false, "read-timeout:one-attempt": false, "mine.json": false, "": false, "yaml": false, "a:b.yaml": false,
	} {
		if got := scenarios.IsFile(arg); got != want {
			t.Errorf("IsFile(%q) = %v", arg, got)
		}
	}
}

func TestSlug(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"feign retryer, 3": "feign-retryer-3", "key + unique index": "key-unique-index", "  A  ": "a", "≤ 1 s": "1-s", "": "", "±": "",
	} {
		if got := scenarios.Slug(name); got != want {
			t.Errorf("Slug(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestReplicaNames(t *testing.T) {
	t.Parallel()
	if got := (scenarios.Server{Name: "order", Replicas: 1}).ReplicaNames(); !slices.Equal(got, []string{"order-1"}) {
		t.Errorf("one is %v", got)
	}
	if got := (scenarios.Server{Name: "order", Replicas: 3}).ReplicaNames(); !slices.Equal(got, []string{"order-1", "order-2", "order-3"}) {
		t.Errorf("three are %v", got)
	}
}

// TestLineEndings: a file means the same whoever wrote it, and begins with a mark or not.
func TestLineEndings(t *testing.T) {
	t.Parallel()
	unix := strings.TrimPrefix(chain, "\n")
	want := plan(t, parse(t, unix))[0]
	for name, text := range map[string]string{
		"CRLF":            strings.ReplaceAll(unix, "\n", "\r\n"),
		"byte order mark": "\ufeff" + unix,
		"document marker": "---\n" + unix + "...\n",
		"no last newline": strings.TrimSuffix(unix, "\n"),
		"JSON":            `{"name": "mine", "caller": {"timeouts": {"read": "5s"}, "layers": ["feign-retryer", {"preset": "retry", "name": "inner", "attempts": 2}]}, "hops": [{"name": "gateway", "layers": ["retry"]}], "server": {"processing": "12s", "guard": "unique-index", "faults": [{"at": "after-commit", "do": "reset"}]}}`,
	} {
		if diff := cmp.Diff(want.Setup, plan(t, parse(t, text))[0].Setup); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestText keeps the text of a file as it is, whatever the style.
func TestText(t *testing.T) {
	t.Parallel()
	s := parse(t, `
name: mine
title: "Größer: als \"2\" — 注文"
lesson: |
  First line.
  Second line, with [ and { and - and 'quotes'.
sources: ["yes", 'it''s', plain words]
currency: ₹
begin: "14:08:33.512"
needs: [postgres, redis]
clocks: virtual
next: read-timeout
`)
	if s.Title != `Größer: als "2" — 注文` {
		t.Errorf("the title is %q", s.Title)
	}
	if s.Lesson != "First line.\nSecond line, with [ and { and - and 'quotes'.\n" {
		t.Errorf("the lesson is %q", s.Lesson)
	}
	if !slices.Equal(s.Sources, []string{"yes", "it's", "plain words"}) || s.Currency != "₹" || s.Begin != "14:08:33.512" || s.Next != "read-timeout" {
		t.Errorf("the rest is %q %q %q %q", s.Sources, s.Currency, s.Begin, s.Next)
	}
	if !slices.Equal(s.Needs, []string{"postgres", "redis"}) || !slices.Equal(s.Clocks, []string{"virtual"}) {
		t.Errorf("it needs %q, on %q", s.Needs, s.Clocks)
	}
}
