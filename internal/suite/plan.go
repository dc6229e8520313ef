package suite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"retrylab/internal/engine"
	"retrylab/internal/lab"
	"retrylab/internal/storage"
	"retrylab/scenarios"
)

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
