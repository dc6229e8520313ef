package suite

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"retrylab/internal/engine"
	"retrylab/internal/judge"
	"retrylab/internal/lab"
	"retrylab/scenarios"
)

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
