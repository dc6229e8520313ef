package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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
