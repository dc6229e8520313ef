// Package suite takes scenarios through the whole pipeline: plan, run, judge, and the document
// that every report is a view of. Trials run side by side; what they come to does not depend on
// how many at a time.
package suite

import (
	"context"
	"fmt"
	"time"

	"retrylab/internal/engine"
	"retrylab/internal/expression"
	"retrylab/internal/lab"
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
	Vary      []scenarios.Vary  // settings that take several values in turn, in place of the configurations
	Only      map[string]string // the one configuration of a scenario, by its name
	Repeat    int               // seeds Seed … Seed+Repeat-1; 0 is one, or those that a scenario names
	Clock     string            // engine.Virtual or engine.Wall
	Speed     float64           // wall clock only
	Jobs      int               // trials side by side; 0 chooses
	Shard     Shard             // the part that is run; the zero is all
	FailFast  bool              // start no further trial after the first that does not hold
	TimeLimit time.Duration     // real time; 0 for none
	Lenient   bool              // an inconclusive trial does not fail the run
	NotHeld   int               // exit code in place of ExitNotHeld; 0 for that
	Version   string            // of the tool
	Replica   []string          // command of a replica's process: see engine.Lab

	Store      string          // what storage.Open takes; empty for what each scenario needs
	ChosenBy   string          // who chose Store: a flag, a variable of the environment
	Redis      string          // what storage.OpenKeys takes; empty for what each scenario needs
	RedisBy    string          // who chose Redis
	Named      map[string]bool // scenarios that were asked for by name, and not with others
	RequireAll bool            // what is skipped for want of a store fails the run
	Bin        string          // directory of the PostgreSQL binaries; empty to look for them

	// Opened is called with functions that remove what the run has made, for whoever must leave at
	// once: one for the run, and one for each database, before it is opened.
	Opened func(remove func() error)
	// Progress is called before the first trial and after each.
	Progress func(Step)
	// Trace is told what the run does, as keys and values. Several trials call it at once.
	Trace func(what string, about ...any)
	// run takes the place of the engine's, in tests.
	run func(*engine.Lab, context.Context, scenarios.Trial) lab.Observation

	redisServer *bool // whether there is a redis-server, where a test says so
}

// Step is how far a run is: after a trial, or before the first.
type Step struct {
	Done, Total int    // trials
	Scenario    string // of the trial that has just ended
	Trials      int    // how many that scenario has
	Over        bool   // they have all ended
	Failed      int    // of them, those that did not hold or are inconclusive
}

func (o Options) trace(what string, about ...any) {
	if o.Trace != nil {
		o.Trace(what, about...)
	}
}

// Run takes the scenarios through the pipeline. The error is about what was asked for, or about
// the environment; whatever a trial comes to stands in the document.
func Run(ctx context.Context, list []*scenarios.Scenario, o Options) (*lab.Document, error) {
	over := make(chan struct{})
	defer close(over)
	if o.Opened != nil {
		o.Opened(func() error { return awaitEnd(ctx, over) })
	}
	if err := o.measurable(); err != nil {
		return nil, err
	}
	doc := newDocument(list, o)
	jobs, err := plan(list, o, doc)
	if err != nil {
		return nil, err
	}
	jobs = split(jobs, o, doc)
	o.trace("planned", "scenarios", len(list), "trials", len(jobs), "skipped", len(doc.Skipped), "clock", o.Clock, "side_by_side", sideBySide(o))
	labs, closeLabs, err := open(ctx, jobs, o)
	if err != nil {
		return nil, err
	}
	defer closeLabs()
	if jobs, err = check(ctx, labs, jobs, o, doc); err != nil {
		return nil, err
	}
	limited := ctx
	if o.TimeLimit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, o.TimeLimit)
		defer cancel()
	}
	results := perform(limited, labs, jobs, o)
	why := ""
	switch {
	case ctx.Err() != nil:
		why = "not run: interrupted"
	case limited.Err() != nil:
		why = fmt.Sprintf("not run: the time limit of %s was spent", o.TimeLimit)
	case o.FailFast:
		why = "not run: another trial did not hold before"
	}
	left := finish(doc, list, jobs, results, labs, why)
	doc.Run.Interrupted, doc.Run.Incomplete = ctx.Err() != nil, left
	late := left && limited.Err() != nil
	if doc.Run.Shard != nil {
		doc.Run.Shard.Incomplete = late
	}
	doc.ExitCode = exitCode(doc, o, ctx.Err() != nil, late)
	if err := closeLabs(); err != nil {
		// What was seen until then is reported all the same.
		doc.ExitCode = ExitEnvironment
		return doc, &EnvironmentError{Err: err}
	}
	return doc, nil
}

// measurable refuses what cannot be asserted on the clock of the run: real time is not exact, and an
// assertion that nobody looks at would hold always.
func (o Options) measurable() error {
	for _, text := range o.Plan.Assert {
		if condition, err := expression.Compile(text); err == nil && condition.Timed() && o.Clock == engine.Wall {
			return &scenarios.Error{
				What: fmt.Sprintf("--assert %s is about times, to which the wall clock cannot be held", text),
				Hint: "the virtual clock can: leave out --clock wall",
			}
		}
	}
	return nil
}
