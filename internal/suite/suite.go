// Package suite takes scenarios through the whole pipeline: plan, run, judge, and the document
// that every report is a view of. Trials run side by side; what they come to does not depend on
// how many at a time.
package suite

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"retrylab/internal/engine"
	"retrylab/internal/expression"
	"retrylab/internal/judge"
	"retrylab/internal/lab"
	"retrylab/internal/storage"
	"retrylab/scenarios"
	"retrylab/slowserver/store"
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

// job is one trial to be run.
type job struct {
	scenario int
	trial    scenarios.Trial
	ground   ground
	place    int // in the order of the whole run
	skip     int // place among what is skipped, should it be
}

// ground is what a scenario stands on: what storage.Open and storage.OpenKeys take, and who chose it.
type ground struct{ store, chosenBy, redis, redisBy string }

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

// grace is how long, in real time, whoever leaves at once waits for the run to end in order. What a
// trial has of its own, such as its redis-server, is removed by the trial alone.
const grace = 2 * time.Second

// awaitEnd waits for the end of an interrupted run, and not for long.
func awaitEnd(ctx context.Context, over <-chan struct{}) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	select {
	case <-over:
		return nil
	case <-limited.Done():
		return context.Cause(limited)
	}
}

// open opens what the jobs stand on, each database once, and returns a lab for each ground. The
// function closes them all; it can be called again.
func open(ctx context.Context, jobs []job, o Options) (map[ground]*engine.Lab, func() error, error) {
	labs := map[ground]*engine.Lab{}
	databases := map[string]store.Database{}
	closeAll := sync.OnceValue(func() error {
		var errs []error
		for _, d := range databases {
			errs = append(errs, d.Close())
		}
		return errors.Join(errs...)
	})
	for _, j := range jobs {
		g := j.ground
		if labs[g] != nil {
			continue
		}
		d := databases[g.store]
		if d == nil {
			var err error
			if d, err = openDatabase(ctx, g, o); err != nil {
				needed := slices.ContainsFunc(jobs, func(j job) bool { return j.ground.store == g.store && j.trial.Needs == storage.Postgres })
				return nil, nil, errors.Join(unavailable(ctx, g, needed, err), closeAll())
			}
			databases[g.store] = d
			info := d.Info()
			o.trace("opened", "store", info.Engine, "version", info.Version, "mode", info.Mode, "chosen_by", g.chosenBy)
		}
		keys, err := storage.OpenKeys(ctx, g.redis)
		if err != nil {
			return nil, nil, errors.Join(&EnvironmentError{Err: err, Hint: "--redis embedded needs nothing"}, closeAll())
		}
		labs[g] = engine.New(d, o.Clock, o.Speed).WithKeys(keys)
		labs[g].Replica = o.Replica
	}
	return labs, closeAll, nil
}

// openDatabase opens the database of a ground. Whoever leaves meanwhile waits for it: an interrupt
// ends the opening, and what it has made by then is removed.
func openDatabase(ctx context.Context, g ground, o Options) (d store.Database, err error) {
	over := make(chan struct{})
	defer close(over)
	if o.Opened != nil {
		o.Opened(func() error {
			if <-over; d == nil {
				return nil
			}
			return d.Abandon()
		})
	}
	return storage.Open(ctx, g.store, storage.Options{Jobs: sideBySide(o), Bin: o.Bin})
}

// unavailable says that a database could not be had, and what else there is. needed says that the
// embedded one would not do.
func unavailable(ctx context.Context, g ground, needed bool, err error) error {
	if ctx.Err() != nil {
		return err
	}
	hint := ""
	if engine, _ := storage.Engine(g.store); engine == storage.Postgres {
		asked := strings.Replace(g.store, "postgresql://", "postgres://", 1)
		var ways []string
		for _, way := range []struct{ store, what string }{
			{storage.Postgres, "--store postgres starts one from the binaries on this machine (--pg-bindir DIR says where they are)"},
			{"postgres://", "--store postgres://… uses one that is there"},
			{storage.Docker, "--store docker starts one in a container"},
			{storage.SQLite, "--store sqlite needs nothing"},
		} {
			same := strings.HasPrefix(asked, way.store) && (way.store != storage.Postgres || asked == storage.Postgres)
			if !same && (way.store != storage.SQLite || !needed) {
				ways = append(ways, way.what)
			}
		}
		hint = "other ways: " + strings.Join(ways, "; ")
	}
	return &EnvironmentError{Err: err, Hint: hint}
}

// EnvironmentError says that the lab could not be set up.
type EnvironmentError struct {
	Err  error
	Hint string // what to do, or empty
}

func (e *EnvironmentError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *EnvironmentError) Unwrap() error { return e.Err }

func newDocument(list []*scenarios.Scenario, o Options) *lab.Document {
	doc := &lab.Document{
		Schema: lab.ResultSchema, SchemaVersion: lab.ResultSchemaVersion,
		Tool: lab.Tool{Name: "retrylab", Version: o.Version},
		Run: lab.RunInfo{
			Seed: o.Plan.Seed, Clock: o.Clock, Set: o.Plan.Set, Assert: o.Plan.Assert, Repeat: o.Repeat, InconclusivePasses: o.Lenient,
		},
		Results: []lab.Result{}, Skipped: []lab.Skip{}, Scenarios: []lab.ScenarioInfo{},
	}
	if o.Clock == engine.Wall {
		doc.Run.Speed = o.Speed
	}
	if o.Shard.Count > 0 {
		doc.Run.Shard = &lab.Shard{
			Index: o.Shard.Index, Count: o.Shard.Count,
			Results: []int{}, Skipped: []int{}, Scenarios: []lab.ShardScenario{},
			Exit: lab.ShardExitOptions{NotHeld: o.NotHeld, RequireAll: o.RequireAll},
		}
	}
	for _, v := range o.Vary {
		doc.Run.Vary = append(doc.Run.Vary, lab.Varying{Path: v.Path, Values: v.Values})
	}
	digest := sha256.New()               // of the whole run: its parts have the same
	engine, _ := storage.Engine(o.Store) // and no more of it: there may be a password in it
	fmt.Fprintln(digest, o.Version, o.Plan.Seed, o.Repeat, o.Clock, doc.Run.Speed, o.Plan.Set, engine, kindOf(o.Redis))
	for _, text := range o.Plan.Assert {
		fmt.Fprintf(digest, "assert %q\n", text)
	}
	if len(o.Vary) > 0 {
		fmt.Fprintln(digest, doc.Run.Vary)
	}
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
		var trials []scenarios.Trial
		for _, seed := range seeds(s, o) {
			p := o.Plan
			p.Seed = seed
			p.Only = o.Only[s.Name]
			planned, err := o.trials(s, p, doc)
			if err != nil {
				return nil, err
			}
			trials = append(trials, planned...)
		}
		g, skip, err := groundFor(s, trials, o)
		if err != nil {
			return nil, err
		}
		if skip == nil && len(s.Clocks) > 0 && !slices.Contains(s.Clocks, o.Clock) {
			skip = &lab.Skip{Reason: fmt.Sprintf("it is for the %s clock alone", s.Clocks[0])}
		}
		if skip != nil {
			skip.Scenario, skip.ID = s.Name, o.Only[s.Name]
			doc.Skipped = append(doc.Skipped, *skip)
			continue
		}
		g.redis, g.redisBy = redisFor(s, trials, o)
		for _, t := range trials {
			if t.Setup.Simulate && o.Clock == engine.Wall {
				skip := lab.Skip{Scenario: s.Name, ID: t.ID, Reason: "it is simulated: no time passes in it, real time least of all"}
				if !slices.Contains(doc.Skipped, skip) { // one for all seeds
					doc.Skipped = append(doc.Skipped, skip)
				}
				continue
			}
			if t.Setup.NeedsReplica() && g.redis != storage.Server {
				doc.Skipped = append(doc.Skipped, lab.Skip{
					Scenario: s.Name, ID: t.ID, Missing: storage.Server,
					Reason: "it needs a redis-server with a replica, and this run has " + kindOf(g.redis) + " (--redis server)",
				})
				continue
			}
			jobs = append(jobs, job{scenario: i, trial: t, ground: g})
		}
	}
	// One row per configuration, its seeds together.
	slices.SortStableFunc(jobs, func(a, b job) int {
		if a.scenario != b.scenario {
			return a.scenario - b.scenario
		}
		return a.trial.Row - b.trial.Row
	})
	return jobs, nil
}

// trials are those of a scenario with one seed: its configurations, or one of them with every combination of
// what varies. A combination that cannot be is skipped.
func (o Options) trials(s *scenarios.Scenario, p scenarios.Options, doc *lab.Document) ([]scenarios.Trial, error) {
	if len(o.Vary) == 0 {
		return s.Plan(p)
	}
	trials, impossible, err := s.Sweep(p, o.Vary)
	for _, x := range impossible {
		skip := lab.Skip{Scenario: s.Name, ID: x.ID, Reason: "it cannot be: " + x.Reason()}
		if !slices.Contains(doc.Skipped, skip) { // one for all seeds
			doc.Skipped = append(doc.Skipped, skip)
		}
	}
	return trials, err
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

// groundFor chooses the database for a scenario: what was asked for, what it needs, or the embedded
// one. A scenario that cannot be had on it is skipped, or refused if it was asked for by name.
func groundFor(s *scenarios.Scenario, trials []scenarios.Trial, o Options) (ground, *lab.Skip, error) {
	why := needsPostgres(trials)
	switch {
	case o.Store == "" && why == "":
		return ground{store: storage.SQLite, chosenBy: "default"}, nil, nil
	case o.Store == "" && o.Named[s.Name]:
		return ground{store: storage.Postgres, chosenBy: "the scenario needs it"}, nil, nil
	case o.Store == "":
		return ground{}, &lab.Skip{Reason: why + runsIt, Missing: storage.Postgres}, nil
	}
	engine, err := storage.Engine(o.Store)
	switch {
	case err != nil:
		return ground{}, nil, err
	case why == "" || engine == storage.Postgres:
		return ground{store: o.Store, chosenBy: o.ChosenBy}, nil, nil
	case o.Named[s.Name]:
		return ground{}, nil, &EnvironmentError{
			Err:  fmt.Errorf("%s cannot be run on %s, which %s asks for: %s", s.Name, engine, o.ChosenBy, why),
			Hint: "--store postgres runs it",
		}
	}
	return ground{}, &lab.Skip{Reason: fmt.Sprintf("%s, and this run has %s%s", why, engine, runsIt), Missing: storage.Postgres}, nil
}

// runsIt says how what needs PostgreSQL is run.
const runsIt = "; --store postgres runs it"

// redisFor chooses where a scenario has its keys: where it was asked for, on a server if it was
// asked for by name and needs one, or inside the lab. One that has none opens nothing.
func redisFor(s *scenarios.Scenario, trials []scenarios.Trial, o Options) (choice, chosenBy string) {
	switch {
	case !slices.ContainsFunc(trials, func(t scenarios.Trial) bool { return t.Setup.NeedsKeys() }):
	case o.Redis != "":
		return o.Redis, o.RedisBy
	case !o.Named[s.Name]:
	case !slices.ContainsFunc(trials, func(t scenarios.Trial) bool { return t.Setup.NeedsReplica() }):
	case o.hasRedisServer(), !slices.ContainsFunc(trials, func(t scenarios.Trial) bool { return !t.Setup.NeedsReplica() }):
		// Where there is none and nothing else is asked for, the error says where it was looked for.
		return storage.Server, "the scenario needs it"
	}
	return storage.Embedded, "default"
}

// hasRedisServer reports whether there is a redis-server to start.
func (o Options) hasRedisServer() bool {
	if o.redisServer != nil {
		return *o.redisServer
	}
	return storage.HasRedisServer()
}

// kindOf is a choice of --redis without what may be secret in it.
func kindOf(redis string) string {
	switch redis {
	case "", storage.Embedded:
		return "the embedded one"
	case storage.Server:
		return "a server of the run's own"
	}
	return "one at a URL"
}

// needsPostgres says why a scenario needs PostgreSQL, or "".
func needsPostgres(trials []scenarios.Trial) string {
	why := ""
	for _, t := range trials {
		if t.Needs == storage.Postgres && why == "" {
			if why = "it needs postgres"; t.Why != "" {
				why += " (" + t.Why + ")"
			}
		}
	}
	return why
}

// check looks, before anything is run, which trials the wall clock can run. It leaves out what nobody
// waits for, and refuses a speed that real time cannot keep up with; of scenarios that were asked for
// together with others it leaves that one out.
func check(ctx context.Context, labs map[ground]*engine.Lab, jobs []job, o Options, doc *lab.Document) ([]job, error) {
	if o.Clock != engine.Wall {
		return jobs, nil
	}
	errs := make([]error, len(jobs))
	parallel(len(jobs), runtime.NumCPU(), func(i int) {
		if ctx.Err() == nil {
			errs[i] = labs[jobs[i].ground].Check(ctx, jobs[i].trial)
		}
	})
	var worst *engine.TooFastError
	var fit []job
	for i, err := range errs {
		var fast *engine.TooFastError
		var long *engine.TooLongError
		t, reason := jobs[i].trial, ""
		switch {
		case errors.As(err, &long):
			reason = long.Error()
		case errors.As(err, &fast) && !o.Named[t.Scenario]:
			reason = "the speed is too much for it: " + fast.Hint()
		case errors.As(err, &fast) && (worst == nil || fast.Gap < worst.Gap):
			worst = fast
		}
		if reason == "" {
			fit = append(fit, jobs[i])
			continue
		}
		leaveOut(doc, lab.Skip{Scenario: t.Scenario, ID: t.ID, Reason: reason}, jobs[i].skip)
	}
	if worst != nil {
		return nil, worst
	}
	return fit, nil
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
func perform(ctx context.Context, labs map[ground]*engine.Lab, jobs []job, o Options) []lab.Result {
	results := make([]lab.Result, len(jobs))
	run := o.run
	if run == nil {
		run = (*engine.Lab).Run
	}
	if o.Progress != nil {
		o.Progress(Step{Total: len(jobs)})
	}
	of, ended, unsound := map[int]int{}, map[int]int{}, map[int]int{} // trials by scenario
	for _, j := range jobs {
		of[j.scenario]++
	}
	var mu sync.Mutex
	done, failed := 0, false
	parallel(len(jobs), sideBySide(o), func(i int) {
		mu.Lock()
		stop := ctx.Err() != nil || (o.FailFast && failed)
		mu.Unlock()
		if stop {
			return
		}
		t, s := jobs[i].trial, jobs[i].scenario
		o.trace("trial begins", "scenario", t.Scenario, "configuration", t.ID, "seed", t.Seed)
		r := one(ctx, labs[jobs[i].ground], t, run)
		o.trace("trial ends", "scenario", t.Scenario, "configuration", t.ID, "seed", t.Seed, "verdict", r.Verdict.String(), "events", len(r.Events), "why", r.Why)
		if ctx.Err() != nil && r.Why != "" && !r.Defect {
			return // cut short by whoever stopped the run: there is nothing to judge
		}
		mu.Lock()
		defer mu.Unlock()
		results[i] = r
		done++
		ended[s]++
		if r.Verdict == lab.NotAsExpected || r.Verdict == lab.Inconclusive {
			failed = true
			unsound[s]++
		}
		if o.Progress != nil {
			o.Progress(Step{Done: done, Total: len(jobs), Scenario: t.Scenario, Trials: of[s], Over: ended[s] == of[s], Failed: unsound[s]})
		}
	})
	return results
}

// sideBySide is how many trials are run at a time.
func sideBySide(o Options) int {
	switch {
	case o.Jobs > 0:
		return o.Jobs
	case o.Clock == engine.Wall:
		return wallJobs
	}
	return runtime.NumCPU()
}

// one runs a trial and judges it. A panic on the way, here or in the engine, is the end of this
// trial alone.
func one(ctx context.Context, l *engine.Lab, t scenarios.Trial, run func(*engine.Lab, context.Context, scenarios.Trial) lab.Observation) (r lab.Result) {
	defer func() {
		if v := recover(); v != nil {
			r = judge.Decide(t, lab.Observation{Broken: fmt.Sprintf("panic: %v", v), Defect: true})
		}
	}()
	obs := run(l, ctx, t)
	r = judge.Decide(t, obs)
	if t.Setup.Server.Processing < nudge {
		return r // there is too little to take from
	}
	r.Tie = broken(r, obs.Ties, func(by time.Duration) lab.Result {
		t.Setup.Server.Processing += by
		defer func() { t.Setup.Server.Processing -= by }()
		return judge.Decide(t, run(l, ctx, t))
	})
	return r
}

// nudge is by how much the time of processing is changed to break a tie: more than the latencies and offsets
// that keep flows apart.
const nudge = 2 * time.Millisecond

// broken runs a trial with ties again, with a little more and a little less processing, so that the one and then
// the other event comes first. It is nil where that makes no other number of effects.
func broken(r lab.Result, ties []string, with func(by time.Duration) lab.Result) *lab.Tie {
	if len(ties) == 0 {
		return nil
	}
	tie := lab.Tie{Pairs: ties, Least: r.Counts.Effects, Most: r.Counts.Effects}
	for _, by := range []time.Duration{-nudge, nudge} {
		if other := with(by); other.Verdict != lab.Inconclusive {
			tie.Least, tie.Most = min(tie.Least, other.Counts.Effects), max(tie.Most, other.Counts.Effects)
		}
	}
	if tie.Least == tie.Most {
		return nil
	}
	return &tie
}

// finish fills the document in. What was not run stands among the skipped, with why. It reports
// whether there is such.
func finish(doc *lab.Document, list []*scenarios.Scenario, jobs []job, results []lab.Result, labs map[ground]*engine.Lab, why string) (left bool) {
	for i, s := range list {
		var own []lab.Result
		for k, j := range jobs {
			switch {
			case j.scenario != i:
				continue
			case results[k].Scenario == "":
				left = true
				after := 0
				if doc.Run.Shard != nil {
					after = doc.Run.Shard.Planned
				}
				leaveOut(doc, lab.Skip{Scenario: s.Name, ID: j.trial.ID, Reason: why}, j.skip+after)
				continue
			}
			store := labs[j.ground].Store()
			store.ChosenBy = j.ground.chosenBy
			served(doc, &results[k], store)
			if keys := results[k].Keys; keys != nil {
				keys.ChosenBy = j.ground.redisBy
			}
			own = append(own, results[k])
			if doc.Run.Shard != nil {
				doc.Run.Shard.Results = append(doc.Run.Shard.Results, j.place)
			}
		}
		if len(own) == 0 {
			continue
		}
		info := lab.ScenarioInfo{
			Name: s.Name, Title: s.Title, Family: s.Family, File: s.File, Lesson: s.Lesson, Next: s.Next,
			Currency: s.Currency, Begin: s.Begin,
		}
		if len(doc.Run.Vary) == 0 {
			only := ""
			if i := slices.IndexFunc(doc.Run.Only, func(o string) bool { return strings.HasPrefix(o, s.Name+":") }); i >= 0 {
				only = strings.TrimPrefix(doc.Run.Only[i], s.Name+":")
			}
			info.Notes = s.Overridden(doc.Run.Set, only)
		}
		doc.Results = append(doc.Results, own...)
		doc.Scenarios = append(doc.Scenarios, concluded(info, own, doc.Run.Vary, s.Focus, s.Remedy))
		if doc.Run.Shard != nil {
			doc.Run.Shard.Scenarios = append(doc.Run.Shard.Scenarios, lab.ShardScenario{Name: s.Name, Focus: s.Focus, Remedy: s.Remedy})
		}
	}
	summarize(doc)
	return left
}

// leaveOut adds to what was skipped, once for all seeds. place is where it stands among what the whole
// run skips.
func leaveOut(doc *lab.Document, skip lab.Skip, place int) {
	if slices.Contains(doc.Skipped, skip) {
		return
	}
	doc.Skipped = append(doc.Skipped, skip)
	if doc.Run.Shard != nil {
		doc.Run.Shard.Skipped = append(doc.Run.Shard.Skipped, place)
	}
}

// served notes which store had the orders of a result: that of the first is the run's. What is
// simulated had none.
func served(doc *lab.Document, r *lab.Result, store lab.Store) {
	r.Store = nil
	if r.Simulated {
		return
	}
	if doc.Run.Store.Engine == "" {
		doc.Run.Store = store
	}
	if store.Engine != doc.Run.Store.Engine || store.ChosenBy != doc.Run.Store.ChosenBy {
		r.Store = &store
	}
}

// concluded says what all results of a scenario come to. focus and remedy are those of its file.
func concluded(info lab.ScenarioInfo, own []lab.Result, vary []lab.Varying, focus, remedy string) lab.ScenarioInfo {
	if !slices.ContainsFunc(own, func(r lab.Result) bool { return r.ID == focus }) {
		focus = judge.Focus(own)
	}
	info.Shown, info.Baseline, info.Focus = judge.Conclude(own, focus, remedy, info.Currency), own[0].ID, focus
	if len(vary) > 0 {
		info.Shown = judge.ConcludeSweep(own, vary)
	}
	return info
}

// summarize counts the results by verdict.
func summarize(doc *lab.Document) {
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
}

// exitCode is the worst of what happened.
func exitCode(doc *lab.Document, o Options, interrupted, late bool) int {
	code, defect, lost := ExitHeld, false, false
	add := func(happened bool, with int) {
		if happened {
			code = worse(code, with)
		}
	}
	for _, r := range doc.Results {
		defect, lost = defect || r.Defect, lost || r.Environment
	}
	missing := slices.ContainsFunc(doc.Skipped, func(s lab.Skip) bool { return s.Missing != "" })
	add(defect, ExitInternal)
	add(interrupted, ExitInterrupted)
	add(lost || missing && o.RequireAll, ExitEnvironment)
	add(late, ExitTimeLimit)
	add(doc.Summary.NotAsExpected > 0, cmp.Or(o.NotHeld, ExitNotHeld))
	add(doc.Summary.Inconclusive > 0 && !o.Lenient, ExitInconclusive)
	if code == ExitHeld && len(doc.Results) == 0 && (doc.Run.Shard == nil || doc.Run.Shard.Planned == 0) {
		return ExitUsage // nothing was run, nor is it in another part
	}
	return code
}

// worse is the worse of two exit codes: 70 > 130 > 3 > 5 > 1 > 4 > 0. Whatever else is the code for what does not
// hold, or of a signal.
func worse(a, b int) int {
	rank := func(code int) int {
		switch {
		case code == ExitInternal:
			return 6
		case code > 128:
			return 5
		case code == ExitEnvironment:
			return 4
		case code == ExitTimeLimit:
			return 3
		case code == ExitInconclusive:
			return 1
		case code == ExitHeld:
			return 0
		}
		return 2
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}
