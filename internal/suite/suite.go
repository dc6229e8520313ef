// Package suite takes scenarios through the whole pipeline: plan, run, judge, and the document
// that every report is a view of. Trials run side by side; what they come to does not depend on
// how many at a time.
package suite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"retrylab/internal/engine"
	"retrylab/internal/judge"
	"retrylab/internal/lab"
	"retrylab/internal/storage"
	"retrylab/scenarios"
)

// The exit codes of a run, as OUTPUT and `retrylab help exit-codes` list them.
const (
	ExitHeld         = 0
	ExitNotHeld      = 1
	ExitUsage        = 2
	ExitEnvironment  = 3
	ExitInconclusive = 4
	ExitTimeLimit    = 5
	ExitInternal     = 70
	ExitInterrupted  = 130
)

// wallJobs is how many trials run side by side in real time: they sleep, but each that wakes
// disturbs the others.
const wallJobs = 8

// Options say how scenarios are run.
type Options struct {
	Plan      scenarios.Options // Seed is the first of them
	Only      map[string]string // the one configuration of a scenario, by its name
	Repeat    int               // seeds Seed … Seed+Repeat-1; 0 is one, or those that a scenario names
	Clock     string            // engine.Virtual or engine.Wall
	Speed     float64           // wall clock only
	Jobs      int               // trials side by side; 0 chooses
	FailFast  bool              // start no further trial after the first that does not hold
	TimeLimit time.Duration     // real time; 0 for none
	Lenient   bool              // an inconclusive trial does not fail the run
	NotHeld   int               // exit code in place of ExitNotHeld; 0 for that
	Version   string            // of the tool

	// Opened is called with the function that removes what the run has made, for whoever must
	// leave at once.
	Opened func(remove func() error)
	// Progress is called before the first trial and after each.
	Progress func(done, total int, scenario string)
	// run takes the place of the engine's, in tests.
	run func(*engine.Lab, context.Context, scenarios.Trial) lab.Observation
}

// job is one trial to be run.
type job struct {
	scenario int
	trial    scenarios.Trial
}

// Run takes the scenarios through the pipeline. The error is about what was asked for, or about
// the environment; whatever a trial comes to stands in the document.
func Run(ctx context.Context, list []*scenarios.Scenario, o Options) (*lab.Document, error) {
	doc := newDocument(list, o)
	jobs, err := plan(list, o, doc)
	if err != nil {
		return nil, err
	}
	database, err := storage.Open(ctx, "", storage.Options{})
	if err != nil {
		return nil, &EnvironmentError{err}
	}
	defer database.Close()
	if o.Opened != nil {
		o.Opened(database.Close)
	}
	l := engine.New(database, o.Clock, o.Speed)
	if err := check(ctx, l, jobs, o); err != nil {
		return nil, err
	}
	limited := ctx
	if o.TimeLimit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, o.TimeLimit)
		defer cancel()
	}
	results, stores := perform(limited, l, jobs, o)
	why := ""
	switch {
	case ctx.Err() != nil:
		why = "not run: interrupted"
	case limited.Err() != nil:
		why = fmt.Sprintf("not run: the time limit of %s was spent", o.TimeLimit)
	case o.FailFast:
		why = "not run: another trial did not hold before"
	}
	left := finish(doc, list, jobs, results, stores, why)
	doc.Run.Interrupted = ctx.Err() != nil
	doc.ExitCode = exitCode(doc, o, ctx.Err() != nil, left && limited.Err() != nil)
	if err := database.Close(); err != nil {
		return nil, &EnvironmentError{err}
	}
	return doc, nil
}

// EnvironmentError says that the lab could not be set up.
type EnvironmentError struct{ Err error }

func (e *EnvironmentError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *EnvironmentError) Unwrap() error { return e.Err }

func newDocument(list []*scenarios.Scenario, o Options) *lab.Document {
	doc := &lab.Document{
		Schema: lab.ResultSchema, SchemaVersion: lab.ResultSchemaVersion,
		Tool:    lab.Tool{Name: "retrylab", Version: o.Version},
		Run:     lab.RunInfo{Seed: o.Plan.Seed, Clock: o.Clock, Set: o.Plan.Set, Repeat: o.Repeat},
		Results: []lab.Result{}, Skipped: []lab.Skip{}, Scenarios: []lab.ScenarioInfo{},
	}
	if o.Clock == engine.Wall {
		doc.Run.Speed = o.Speed
	}
	digest := sha256.New()
	fmt.Fprintln(digest, o.Version, o.Plan.Seed, o.Repeat, o.Clock, doc.Run.Speed, o.Plan.Set)
	for _, s := range list {
		if id := o.Only[s.Name]; id != "" {
			doc.Run.Only = append(doc.Run.Only, s.Name+":"+id)
		}
		fmt.Fprintf(digest, "%s %q %x\n", s.Name, o.Only[s.Name], sha256.Sum256(s.Source))
	}
	doc.Run.ID = hex.EncodeToString(digest.Sum(nil)[:8])
	return doc
}

// plan turns the scenarios into jobs, in the order of the report. What cannot be run here is
// skipped with its reason.
func plan(list []*scenarios.Scenario, o Options, doc *lab.Document) ([]job, error) {
	var jobs []job
	for i, s := range list {
		if reason := unfit(s, o); reason != "" {
			doc.Skipped = append(doc.Skipped, lab.Skip{Scenario: s.Name, ID: o.Only[s.Name], Reason: reason})
			continue
		}
		for _, seed := range seeds(s, o) {
			p := o.Plan
			p.Seed = seed
			p.Only = o.Only[s.Name]
			trials, err := s.Plan(p)
			if err != nil {
				return nil, err
			}
			for _, t := range trials {
				jobs = append(jobs, job{scenario: i, trial: t})
			}
		}
	}
	// One row per configuration, its seeds together.
	slices.SortStableFunc(jobs, func(a, b job) int {
		if a.scenario != b.scenario {
			return a.scenario - b.scenario
		}
		return list[a.scenario].Position(a.trial.ID) - list[b.scenario].Position(b.trial.ID)
	})
	return jobs, nil
}

// seeds lists the seeds that a scenario is run with.
func seeds(s *scenarios.Scenario, o Options) []int64 {
	var out []int64
	if o.Repeat == 0 && len(s.Seeds) > 0 {
		for _, seed := range s.Seeds {
			out = append(out, int64(seed))
		}
		return out
	}
	for n := range max(1, o.Repeat) {
		out = append(out, o.Plan.Seed+int64(n))
	}
	return out
}

// unfit says why a scenario cannot be run as asked, or "".
func unfit(s *scenarios.Scenario, o Options) string {
	if len(s.Needs) > 0 {
		return fmt.Sprintf("needs %s, and this run has sqlite", s.Needs[0])
	}
	if len(s.Clocks) > 0 && !slices.Contains(s.Clocks, o.Clock) {
		return fmt.Sprintf("it is for the %s clock alone", s.Clocks[0])
	}
	return ""
}

// check refuses a speed that real time cannot keep up with, before anything is run.
func check(ctx context.Context, l *engine.Lab, jobs []job, o Options) error {
	if o.Clock != engine.Wall {
		return nil
	}
	errs := make([]error, len(jobs))
	parallel(len(jobs), runtime.NumCPU(), func(i int) {
		if ctx.Err() == nil {
			errs[i] = l.Check(ctx, jobs[i].trial)
		}
	})
	var worst *engine.TooFastError
	for _, err := range errs {
		var e *engine.TooFastError
		if errors.As(err, &e) && (worst == nil || e.Gap < worst.Gap) {
			worst = e
		}
	}
	if worst != nil {
		return worst
	}
	return nil
}

// parallel calls f for 0 … n-1, at most jobs at a time.
func parallel(n, jobs int, f func(i int)) {
	var workers sync.WaitGroup
	next := make(chan int)
	for range min(n, jobs) {
		workers.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
}

// perform runs the jobs and judges them. A result without a scenario is a job that was not run.
func perform(ctx context.Context, l *engine.Lab, jobs []job, o Options) ([]lab.Result, []lab.Store) {
	results := make([]lab.Result, len(jobs))
	stores := make([]lab.Store, len(jobs))
	run := o.run
	if run == nil {
		run = (*engine.Lab).Run
	}
	n := o.Jobs
	if n == 0 {
		n = runtime.NumCPU()
		if o.Clock == engine.Wall {
			n = wallJobs
		}
	}
	if o.Progress != nil {
		o.Progress(0, len(jobs), "")
	}
	var mu sync.Mutex
	done, failed := 0, false
	parallel(len(jobs), n, func(i int) {
		mu.Lock()
		stop := ctx.Err() != nil || (o.FailFast && failed)
		mu.Unlock()
		if stop {
			return
		}
		r, store := one(ctx, l, jobs[i].trial, run)
		if ctx.Err() != nil && r.Why != "" && !r.Defect {
			return // cut short by whoever stopped the run: there is nothing to judge
		}
		mu.Lock()
		defer mu.Unlock()
		results[i], stores[i] = r, store
		failed = failed || r.Verdict == lab.NotAsExpected || r.Verdict == lab.Inconclusive
		done++
		if o.Progress != nil {
			o.Progress(done, len(jobs), jobs[i].trial.Scenario)
		}
	})
	return results, stores
}

// one runs a trial and judges it. A panic on the way, here or in the engine, is the end of this
// trial alone.
func one(ctx context.Context, l *engine.Lab, t scenarios.Trial, run func(*engine.Lab, context.Context, scenarios.Trial) lab.Observation) (r lab.Result, store lab.Store) {
	defer func() {
		if v := recover(); v != nil {
			r = judge.Decide(t, lab.Observation{Broken: fmt.Sprintf("panic: %v", v), Defect: true})
		}
	}()
	obs := run(l, ctx, t)
	return judge.Decide(t, obs), obs.Store
}

// finish fills the document in. What was not run stands among the skipped, with why. It reports
// whether there is such.
func finish(doc *lab.Document, list []*scenarios.Scenario, jobs []job, results []lab.Result, stores []lab.Store, why string) (left bool) {
	for i, s := range list {
		var own []lab.Result
		for k, j := range jobs {
			switch {
			case j.scenario != i:
				continue
			case results[k].Scenario == "":
				left = true
				skip := lab.Skip{Scenario: s.Name, ID: j.trial.ID, Reason: why}
				if !slices.Contains(doc.Skipped, skip) { // one for all seeds
					doc.Skipped = append(doc.Skipped, skip)
				}
				continue
			}
			own = append(own, results[k])
			if doc.Run.Store.Engine == "" {
				doc.Run.Store = stores[k]
				doc.Run.Store.ChosenBy = "default"
			}
		}
		if len(own) == 0 {
			continue
		}
		doc.Results = append(doc.Results, own...)
		focus := s.Focus
		if !slices.ContainsFunc(own, func(r lab.Result) bool { return r.ID == focus }) {
			focus = judge.Focus(own)
		}
		doc.Scenarios = append(doc.Scenarios, lab.ScenarioInfo{
			Name: s.Name, Title: s.Title, Family: s.Family, Lesson: s.Lesson, Next: s.Next,
			Currency: s.Currency, Begin: s.Begin,
			Shown: judge.Conclude(own, focus, s.Remedy, s.Currency), Baseline: own[0].ID, Focus: focus,
		})
	}
	for _, r := range doc.Results {
		switch r.Verdict {
		case lab.AsExpected:
			doc.Summary.AsExpected++
		case lab.NotAsExpected:
			doc.Summary.NotAsExpected++
		case lab.Measured:
			doc.Summary.Measured++
		default:
			doc.Summary.Inconclusive++
		}
	}
	doc.Summary.Skipped = len(doc.Skipped)
	return left
}

// exitCode is the worst of what happened: 70 > 3 > 5 > 1 > 4 > 0, and an interrupt before all but
// a defect.
func exitCode(doc *lab.Document, o Options, interrupted, late bool) int {
	lost := false
	for _, r := range doc.Results {
		if r.Defect {
			return ExitInternal
		}
		lost = lost || r.Environment
	}
	switch {
	case interrupted:
		return ExitInterrupted
	case lost:
		return ExitEnvironment
	case late:
		return ExitTimeLimit
	case doc.Summary.NotAsExpected > 0 && o.NotHeld != 0:
		return o.NotHeld
	case doc.Summary.NotAsExpected > 0:
		return ExitNotHeld
	case doc.Summary.Inconclusive > 0 && !o.Lenient:
		return ExitInconclusive
	case len(doc.Results) == 0:
		return ExitUsage // nothing was run
	}
	return ExitHeld
}
