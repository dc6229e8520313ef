package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retrylab/internal/engine"
	"retrylab/internal/lab"
	"retrylab/scenarios"
)

func file(t *testing.T, text string) *scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func options() Options {
	return Options{Clock: engine.Virtual, Plan: scenarios.Options{Seed: 1}, Version: "test"}
}

// outcome makes the engine of a test: a trial comes to what its configuration is called.
func outcome(_ *engine.Lab, _ context.Context, t scenarios.Trial) lab.Observation {
	obs := lab.Observation{
		Exact:    true,
		Outcomes: []lab.Outcome{{Operation: "op-1", Belief: lab.OK}},
		Nodes:    []lab.Node{{Name: "caller", Role: "caller", Sends: 1}},
		Store:    lab.Store{Engine: "sqlite", Version: "3", Mode: "embedded"},
	}
	switch t.ID {
	case "not-held":
		obs.Nodes[0].Sends = 2
	case "inconclusive":
		obs.Broken = "it broke"
	case "defect":
		obs.Broken, obs.Defect = "panic: a defect", true
	case "no-ground":
		obs.Broken, obs.Environment = "the disk is full", true
	case "panic":
		panic("a defect of the judge's")
	}
	return obs
}

func rows(ids ...string) string {
	text := "name: t\nvariants:\n"
	for _, id := range ids {
		text += fmt.Sprintf("  - {name: %s, expect: {sends: 1}}\n", id)
	}
	return text
}

// TestExitCode takes the worst of what happened, and keeps the results of the others.
func TestExitCode(t *testing.T) {
	t.Parallel()
	lenient := func(o *Options) { o.Lenient, o.NotHeld = true, 77 }
	strict := func(*Options) {}
	for _, test := range []struct {
		ids  []string
		o    func(*Options)
		want int
	}{
		{[]string{"held"}, strict, ExitHeld},
		{[]string{"held", "inconclusive"}, strict, ExitInconclusive},
		{[]string{"inconclusive", "not-held", "held"}, strict, ExitNotHeld},
		{[]string{"held", "defect", "not-held", "inconclusive"}, strict, ExitInternal},
		{[]string{"held", "panic", "not-held"}, strict, ExitInternal},
		{[]string{"held", "no-ground", "not-held"}, strict, ExitEnvironment},
		{[]string{"held", "no-ground"}, lenient, ExitEnvironment},
		{[]string{"held", "inconclusive"}, lenient, ExitHeld},
		{[]string{"held", "inconclusive", "not-held"}, lenient, 77},
		{[]string{"defect", "inconclusive", "not-held"}, lenient, ExitInternal},
	} {
		o := options()
		o.run = outcome
		test.o(&o)
		doc, err := Run(t.Context(), []*scenarios.Scenario{file(t, rows(test.ids...))}, o)
		if err != nil {
			t.Fatal(err)
		}
		if doc.ExitCode != test.want || len(doc.Results) != len(test.ids) {
			t.Errorf("%v: exit %d with %d results, want %d with %d", test.ids, doc.ExitCode, len(doc.Results), test.want, len(test.ids))
		}
	}
}

// TestSameBytes runs one suite with different numbers of jobs: the document is the same.
func TestSameBytes(t *testing.T) {
	t.Parallel()
	s, err := scenarios.Builtin("read-timeout")
	if err != nil {
		t.Fatal(err)
	}
	var first []byte
	for _, jobs := range []int{1, 2, 7} {
		o := options()
		o.Jobs, o.Repeat = jobs, 2
		doc, err := Run(t.Context(), []*scenarios.Scenario{s}, o)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = data
		}
		if !bytes.Equal(first, data) {
			t.Errorf("%d jobs give another document", jobs)
		}
		if doc.Results[0].ID != doc.Results[1].ID || doc.Results[0].Seed != 1 || doc.Results[1].Seed != 2 {
			t.Errorf("the seeds of one configuration do not stand together")
		}
	}
}

func TestFailFast(t *testing.T) {
	t.Parallel()
	o := options()
	o.run, o.FailFast, o.Jobs = outcome, true, 1
	doc, err := Run(t.Context(), []*scenarios.Scenario{file(t, rows("held", "not-held", "after"))}, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(doc.Results) != 2 || doc.ExitCode != ExitNotHeld {
		t.Errorf("%d results, exit %d; want the two up to the failure, exit 1", len(doc.Results), doc.ExitCode)
	}
	if len(doc.Skipped) != 1 || doc.Skipped[0].ID != "after" {
		t.Errorf("%+v, want that the third was skipped", doc.Skipped)
	}
}

// TestStopped stops a run in its second trial: the first is kept, the second is not judged.
func TestStopped(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		stop func(cancel func())
		o    func(*Options)
		want int
	}{
		{"interrupt", func(cancel func()) { cancel() }, func(*Options) {}, ExitInterrupted},
		{"time limit", func(func()) {}, func(o *Options) { o.TimeLimit = time.Millisecond }, ExitTimeLimit},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			o := options()
			o.Jobs = 1
			test.o(&o)
			var trials atomic.Int64
			o.run = func(l *engine.Lab, ctx context.Context, tr scenarios.Trial) lab.Observation {
				if trials.Add(1) == 1 {
					return outcome(l, ctx, tr)
				}
				test.stop(cancel)
				<-ctx.Done()
				return lab.Observation{Broken: engine.ErrInterrupted.Error()}
			}
			doc, err := Run(ctx, []*scenarios.Scenario{file(t, rows("held", "second", "third"))}, o)
			if err != nil {
				t.Fatal(err)
			}
			// With a time limit even the first may be too late; it is never judged half.
			if doc.ExitCode != test.want || len(doc.Results) > 1 {
				t.Errorf("exit %d with %d results, want %d with the first", doc.ExitCode, len(doc.Results), test.want)
			}
			if len(doc.Results)+len(doc.Skipped) != 3 {
				t.Errorf("%d results and %d skipped of 3 configurations", len(doc.Results), len(doc.Skipped))
			}
			for _, r := range doc.Results {
				if r.Verdict != lab.AsExpected {
					t.Errorf("%s is %s", r.ID, r.Verdict)
				}
			}
		})
	}
}

// TestSkipped demands a reason for what cannot be run, and no green for a run of nothing.
func TestSkipped(t *testing.T) {
	t.Parallel()
	doc, err := Run(t.Context(), []*scenarios.Scenario{file(t, "{name: t, needs: [postgres]}")}, options())
	if err != nil {
		t.Fatal(err)
	}
	if len(doc.Skipped) != 1 || !strings.Contains(doc.Skipped[0].Reason, "postgres") || doc.ExitCode != ExitUsage {
		t.Errorf("%+v, exit %d; want one skip with its reason, exit 2", doc.Skipped, doc.ExitCode)
	}
	o := options()
	o.Clock, o.Speed = engine.Wall, 100
	doc, err = Run(t.Context(), []*scenarios.Scenario{file(t, "{name: t, clocks: [virtual]}"), file(t, "{name: u}")}, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(doc.Skipped) != 1 || doc.ExitCode != ExitHeld || len(doc.Results) != 1 {
		t.Errorf("%d skipped, %d results, exit %d; want one of each, exit 0", len(doc.Skipped), len(doc.Results), doc.ExitCode)
	}
	doc, err = Run(t.Context(), []*scenarios.Scenario{
		file(t, "{name: t, server: {processing: 200h}}"),
		file(t, "{name: u, variants: [{name: long, set: {server.processing: 200h}}, {name: short}]}"),
	}, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(doc.Skipped) != 2 || len(doc.Results) != 1 || !strings.Contains(doc.Skipped[1].Reason, "200h0m0s of scenario time") {
		t.Errorf("skipped %+v, %d results; want two that take hours skipped, one result", doc.Skipped, len(doc.Results))
	}
	doc, err = Run(t.Context(), []*scenarios.Scenario{file(t, "{name: t, variants: [{name: simulated, set: {simulate: true}}, {name: real}]}")}, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(doc.Skipped) != 1 || doc.Skipped[0].ID != "simulated" || len(doc.Results) != 1 {
		t.Errorf("skipped %+v, %d results; want the simulated one skipped, one result", doc.Skipped, len(doc.Results))
	}
	// One trial that needs a lower speed is left out among others, and refused where it was asked for.
	list := []*scenarios.Scenario{
		file(t, "{name: tight, caller: {timeouts: {read: 1010ms}}, server: {processing: 1s}}"), file(t, "{name: u}"),
	}
	doc, err = Run(t.Context(), list, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(doc.Skipped) != 1 || len(doc.Results) != 1 || !strings.Contains(doc.Skipped[0].Reason, "at most --speed 1") {
		t.Errorf("skipped %+v, %d results; want the tight one skipped with its speed", doc.Skipped, len(doc.Results))
	}
	o.Named = map[string]bool{"tight": true}
	var fast *engine.TooFastError
	if _, err = Run(t.Context(), list, o); !errors.As(err, &fast) {
		t.Errorf("asked for by name: %v, want a TooFastError", err)
	}
}

// TestRunID tells runs apart by what was asked for, and by nothing else.
func TestRunID(t *testing.T) {
	t.Parallel()
	id := func(change func(*Options)) string {
		o := options()
		o.run = outcome
		change(&o)
		doc, err := Run(t.Context(), []*scenarios.Scenario{file(t, rows("held"))}, o)
		if err != nil {
			t.Fatal(err)
		}
		return doc.Run.ID
	}
	base := id(func(*Options) {})
	if again := id(func(o *Options) { o.Jobs = 3 }); again != base {
		t.Errorf("the number of jobs changes the id: %s, %s", base, again)
	}
	for name, change := range map[string]func(*Options){
		"seed": func(o *Options) { o.Plan.Seed = 2 },
		"set":  func(o *Options) { o.Plan.Set = []string{"operations=2"} },
	} {
		if other := id(change); other == base {
			t.Errorf("another %s has the same id", name)
		}
	}
}

// TestNoDirectory says what is wrong when there is no place for the databases.
func TestNoDirectory(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"/missing")
	_, err := Run(t.Context(), []*scenarios.Scenario{file(t, "{name: t}")}, options())
	var environment *EnvironmentError
	if !errors.As(err, &environment) || !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%v (%T), want that the environment lacks the directory", err, err)
	}
}

// TestGround chooses what a scenario stands on: what was asked for, else what it needs, else what
// needs nothing. What is installed has no part in it.
func TestGround(t *testing.T) {
	t.Parallel()
	const needy = "{name: t, needs: [postgres]}"
	const locked = "{name: t, server: {guard: {kind: same-transaction, lock-timeout: 50ms}}, caller: {key: operation}}"
	for _, c := range []struct {
		name, text, store string
		named             bool
		want              ground
		skip, refused     string // parts of the reason
	}{
		{name: "nobody cares", text: "{name: t}", want: ground{store: "sqlite", chosenBy: "default"}},
		{name: "asked for", text: "{name: t}", store: "postgres", want: ground{store: "postgres", chosenBy: "--store"}},
		{name: "a server", text: "{name: t}", store: "postgres://h/d", want: ground{store: "postgres://h/d", chosenBy: "--store"}},
		{name: "needed, by name", text: needy, named: true, want: ground{store: "postgres", chosenBy: "the scenario needs it"}},
		{name: "needed, among others", text: needy, skip: "it needs postgres; --store postgres runs it"},
		{name: "needed by a feature, by name", text: locked, named: true, want: ground{store: "postgres", chosenBy: "the scenario needs it"}},
		{name: "needed by a feature, among others", text: locked, skip: "it needs postgres (a lock-timeout: SQLite has one lock for all rows); --store postgres runs it"},
		{name: "needed and there", text: needy, store: "docker:postgres:16", want: ground{store: "docker:postgres:16", chosenBy: "--store"}},
		{name: "not there, by name", text: needy, store: "sqlite", named: true, refused: "t cannot be run on sqlite, which --store asks for: it needs postgres"},
		{name: "not there, among others", text: needy, store: "sqlite", skip: "it needs postgres, and this run has sqlite; --store postgres runs it"},
	} {
		s := file(t, c.text)
		trials, err := s.Plan(scenarios.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		o := options()
		o.Store, o.ChosenBy, o.Named = c.store, "--store", map[string]bool{"t": c.named}
		got, skip, err := groundFor(s, trials, o)
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		switch {
		case (skip != nil) != (c.skip != ""), skip != nil && (skip.Reason != c.skip || skip.Missing != "postgres"):
			t.Errorf("%s: skipped with %+v, want %q", c.name, skip, c.skip)
		case (err != nil) != (c.refused != ""):
			t.Errorf("%s: refused with %v, want %q", c.name, err, c.refused)
		case err != nil:
			var e *EnvironmentError
			if !errors.As(err, &e) || e.Error() != c.refused || e.Hint != "--store postgres runs it" {
				t.Errorf("%s: refused with %q (%+v), want %q and a hint", c.name, err, e, c.refused)
			}
		}
	}
}

// TestSimulated: a simulated row stands beside real ones, and no store has a part in it.
func TestSimulated(t *testing.T) {
	t.Parallel()
	o := options()
	doc, err := Run(t.Context(), []*scenarios.Scenario{file(t, "{name: t, simulate: true, expect: {effects: 1, belief: ok}}")}, o)
	if err != nil {
		t.Fatal(err)
	}
	if r := doc.Results[0]; r.Verdict != lab.AsExpected || !r.Simulated || doc.Run.Store.Engine != "" {
		t.Errorf("%s, simulated %v, on %q", r.Verdict, r.Simulated, doc.Run.Store.Engine)
	}
	doc, err = Run(t.Context(), []*scenarios.Scenario{file(t, "{name: t, variants: [{name: simulated, set: {simulate: true}}, {name: real}]}")}, o)
	if err != nil {
		t.Fatal(err)
	}
	if simulated, real := doc.Results[0], doc.Results[1]; simulated.Counts != real.Counts || doc.Run.Store.Engine != "sqlite" {
		t.Errorf("%+v and %+v on %q, want the same of both", simulated.Counts, real.Counts, doc.Run.Store.Engine)
	}
}

// replicated needs a replica of Redis in one of its configurations.
const replicated = `
name: t
caller: {key: operation}
server: {guard: redis-precheck}
variants:
  - {name: alone}
  - {name: replica, set: {server.faults: [{at: before-guard, do: redis-failover, arrivals: [1]}]}}
`

// TestPlaceOfKeys chooses where the keys are, and skips the one configuration that cannot be had
// there.
func TestPlaceOfKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, redis string
		named       bool
		without     bool // this machine has no redis-server
		want, by    string
		skip        string
	}{
		{name: "by name, on a machine without", named: true, without: true, want: "embedded", by: "default", skip: "it needs a redis-server with a replica, and this run has the embedded one (--redis server)"},
		{name: "among others", want: "embedded", by: "default", skip: "it needs a redis-server with a replica, and this run has the embedded one (--redis server)"},
		{name: "by name", named: true, want: "server", by: "the scenario needs it"},
		{name: "asked for", redis: "server", want: "server", by: "--redis"},
		{name: "by name, asked for another", named: true, redis: "embedded", want: "embedded", by: "--redis", skip: "it needs a redis-server with a replica, and this run has the embedded one (--redis server)"},
		{name: "a server of others", named: true, redis: "redis://:geheim@h", want: "redis://:geheim@h", by: "--redis", skip: "it needs a redis-server with a replica, and this run has one at a URL (--redis server)"},
	} {
		o := options()
		o.Redis, o.RedisBy, o.Named, o.Only = c.redis, "--redis", map[string]bool{"t": c.named}, map[string]string{}
		o.redisServer = new(!c.without)
		var doc lab.Document
		jobs, err := plan([]*scenarios.Scenario{file(t, replicated)}, o, &doc)
		if err != nil {
			t.Fatal(err)
		}
		var want []lab.Skip
		if c.skip != "" {
			want = []lab.Skip{{Scenario: "t", ID: "replica", Reason: c.skip, Missing: "server"}}
		}
		if diff := cmp.Diff(want, doc.Skipped); diff != "" {
			t.Errorf("%s: skipped -want +got:\n%s", c.name, diff)
		}
		if len(jobs) != 2-len(want) {
			t.Errorf("%s: %d jobs", c.name, len(jobs))
		}
		for _, j := range jobs {
			if j.ground.redis != c.want || j.ground.redisBy != c.by {
				t.Errorf("%s: keys in %+v, want in %q, chosen by %q", c.name, j.ground, c.want, c.by)
			}
		}
	}
}

// TestMissing: what is skipped for want of a store fails the run only where that was asked for, and
// the report is there in any case.
func TestMissing(t *testing.T) {
	t.Parallel()
	const needy = "{name: needy, needs: [postgres]}"
	for _, c := range []struct {
		name  string
		texts []string
		o     func(*Options)
		want  int
	}{
		{"some", []string{needy, rows("held")}, func(*Options) {}, ExitHeld},
		{"some, all required", []string{needy, rows("held")}, func(o *Options) { o.RequireAll = true }, ExitEnvironment},
		{"some, all required, one not held", []string{needy, rows("not-held")}, func(o *Options) { o.RequireAll = true }, ExitEnvironment},
		{"some, all required, a defect", []string{needy, rows("defect")}, func(o *Options) { o.RequireAll = true }, ExitInternal},
		{"one not held", []string{needy, rows("not-held")}, func(*Options) {}, ExitNotHeld},
		{"all", []string{needy}, func(*Options) {}, ExitUsage},
		{"all, on sqlite", []string{needy}, func(o *Options) { o.Store, o.ChosenBy = "sqlite", "--store" }, ExitUsage},
		{"all, all required", []string{needy}, func(o *Options) { o.RequireAll = true }, ExitEnvironment},
		{"a configuration", []string{replicated}, func(*Options) {}, ExitHeld},
		{"a configuration, all required", []string{replicated}, func(o *Options) { o.RequireAll = true }, ExitEnvironment},
		{"nothing for want of a store", []string{"{name: u, clocks: [wall]}", rows("held")}, func(o *Options) { o.RequireAll = true }, ExitHeld},
	} {
		o := options()
		o.run = outcome
		c.o(&o)
		var list []*scenarios.Scenario
		for _, text := range c.texts {
			list = append(list, file(t, text))
		}
		doc, err := Run(t.Context(), list, o)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if doc.ExitCode != c.want || len(doc.Skipped) != 1 || doc.Summary.Skipped != 1 {
			t.Errorf("%s: exit %d, skipped %+v; want exit %d with one skip", c.name, doc.ExitCode, doc.Skipped, c.want)
		}
	}
}

// TestKeysChosenBy says in each result who chose where its keys are.
func TestKeysChosenBy(t *testing.T) {
	t.Parallel()
	o := options()
	o.run = func(l *engine.Lab, ctx context.Context, t scenarios.Trial) lab.Observation {
		obs := outcome(l, ctx, t)
		obs.Keys = lab.Store{Engine: "redis", Version: "7", Mode: "embedded"}
		return obs
	}
	for _, by := range []string{"default", "RETRYLAB_REDIS"} {
		if by != "default" {
			o.Redis, o.RedisBy = "embedded", by
		}
		text := rows("held") + "\ncaller: {key: operation}\nserver: {guard: redis-precheck}\n"
		doc, err := Run(t.Context(), []*scenarios.Scenario{file(t, text)}, o)
		if err != nil {
			t.Fatal(err)
		}
		want := &lab.Store{Engine: "redis", Version: "7", Mode: "embedded", ChosenBy: by}
		if diff := cmp.Diff(want, doc.Results[0].Keys); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if s := doc.Run.Store; s.Engine != "sqlite" || s.ChosenBy != "default" || s.Version == "" || s.Counting == "" || len(s.Settings) == 0 || doc.Results[0].Store != nil {
			t.Errorf("the store of the run is %+v, of the result %+v", s, doc.Results[0].Store)
		}
	}
}

// TestRunIDWithoutSecret: which server it was is not in the id, since its password would be too.
func TestRunIDWithoutSecret(t *testing.T) {
	t.Parallel()
	id := func(store string) string {
		o := options()
		o.Store = store
		return newDocument([]*scenarios.Scenario{file(t, "{name: t}")}, o).Run.ID
	}
	if a, b := id("postgres://u:one@h/d"), id("postgres://u:two@h/d"); a != b {
		t.Errorf("two passwords give two ids: %s, %s", a, b)
	}
	if a, b := id("sqlite"), id("postgres"); a == b {
		t.Errorf("two engines give one id: %s", a)
	}
}

// TestUnavailable: a database that cannot be had names the other ways, and what was opened before
// it is removed.
func TestUnavailable(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	o := options()
	o.Bin = t.TempDir() // which has no programs
	o.Named = map[string]bool{"needy": true}
	var removes []func() error
	o.Opened = func(remove func() error) { removes = append(removes, remove) }
	_, err := Run(t.Context(), []*scenarios.Scenario{file(t, "{name: t}"), file(t, "{name: needy, needs: [postgres]}")}, o)
	var environment *EnvironmentError
	if !errors.As(err, &environment) || !strings.Contains(err.Error(), o.Bin) {
		t.Fatalf("%v (%T), want that the environment lacks the programs", err, err)
	}
	for _, remove := range removes {
		if err := remove(); err != nil {
			t.Error(err)
		}
	}
	if len(removes) != 3 {
		t.Errorf("there are %d things to remove, want the run's own and two databases", len(removes))
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v (%v)", left, err)
	}

	ways := map[string]string{
		"postgres": "--store postgres starts one", "a server": "--store postgres://… uses one", "docker": "--store docker starts one", "sqlite": "--store sqlite needs nothing",
	}
	for store, self := range map[string]string{"postgres": "postgres", "postgres://u@h/d": "a server", "postgresql://u@h/d": "a server", "docker": "docker", "docker:postgres:16": "docker"} {
		var e *EnvironmentError
		if err := unavailable(t.Context(), ground{store: store}, false, errors.New("gone")); !errors.As(err, &e) || e.Error() != "gone" {
			t.Fatalf("%v", err)
		}
		for way, text := range ways {
			if strings.Contains(e.Hint, text) == (way == self) {
				t.Errorf("%s cannot be had, and the hint is %q", store, e.Hint)
			}
		}
	}
	// What is refused there is no way.
	if err := unavailable(t.Context(), ground{store: "docker"}, true, errors.New("gone")); !errors.As(err, &environment) || strings.Contains(environment.Hint, "sqlite") {
		t.Errorf("the scenario needs another than sqlite, and the hint is %q", environment.Hint)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := unavailable(ctx, ground{store: "postgres"}, false, context.Canceled); errors.As(err, &environment) || !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupt is taken for a lack: %v", err)
	}
}

// TestLeave: whoever leaves in the middle of a run waits until it has ended, and not for ever.
func TestLeave(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	for _, stuck := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		o := options()
		var removes []func() error
		o.Opened = func(remove func() error) { removes = append(removes, remove) }
		free, left := make(chan struct{}), make(chan struct{})
		o.run = func(_ *engine.Lab, ctx context.Context, _ scenarios.Trial) lab.Observation {
			cancel()
			go func() {
				defer close(left)
				for k, remove := range removes {
					if err := remove(); (err != nil) != (stuck && k == 0) {
						t.Errorf("stuck %v: %v", stuck, err)
					}
				}
				if found, err := os.ReadDir(tmp); err != nil || len(found) > 0 {
					t.Errorf("stuck %v: it leaves %v (%v)", stuck, found, err)
				}
			}()
			if stuck {
				<-free
			}
			return lab.Observation{Broken: engine.ErrInterrupted.Error()}
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if doc, err := Run(ctx, []*scenarios.Scenario{file(t, "{name: t}")}, o); err != nil || doc.ExitCode != ExitInterrupted {
				t.Errorf("stuck %v: %v, %v", stuck, doc, err)
			}
		}()
		<-left
		close(free)
		<-ended
	}
}

// TestTie: where the look at a key and the commit under it share an instant, both orders of them are tried, and
// what makes no difference is no tie.
func TestTie(t *testing.T) {
	t.Parallel()
	s, err := scenarios.Builtin("read-timeout")
	if err != nil {
		t.Fatal(err)
	}
	vary, err := scenarios.ParseVary([]string{"caller.timeouts.read=10s,11s", "server.guard=check-then-insert,unique-index"})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := Run(t.Context(), []*scenarios.Scenario{s}, Options{
		Plan: scenarios.Options{Seed: 1, Set: []string{"caller.key=operation"}}, Vary: vary, Clock: engine.Virtual,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range doc.Results {
		tied := r.ID == "read-11s-guard-check-then-insert"
		switch {
		case tied != (r.Tie != nil):
			t.Errorf("%s: the tie is %+v", r.ID, r.Tie)
		case tied && (r.Tie.Least != 1 || r.Tie.Most != 2 || len(r.Tie.Pairs) != 1):
			t.Errorf("%s: %+v, want 1 or 2 effects for one pair of events", r.ID, r.Tie)
		}
	}
	if want := "guard check-then-insert: 2 orders at 10s; at 11s the seed decides. guard unique-index: 1 order at each."; doc.Scenarios[0].Shown != want {
		t.Errorf("it says %q, want %q", doc.Scenarios[0].Shown, want)
	}
}
