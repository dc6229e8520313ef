// Package judge says what an observation comes to. It is pure: it looks at a trial and at what was
// seen, and at nothing else, so a saved observation can be judged again.
package judge

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"retrylab/internal/expression"
	"retrylab/internal/lab"
	"retrylab/scenarios"
	"retrylab/slowserver/ledger"
)

// Decide judges one trial. First comes what the lab itself could not do, then the premises, then
// the expectations and invariants: an incident that did not take place proves nothing.
func Decide(t scenarios.Trial, obs lab.Observation) lab.Result {
	r := lab.Result{
		Scenario: t.Scenario, Configuration: t.Configuration, ID: t.ID, Seed: t.Seed,
		Counts: count(t, obs), SettledMs: lab.Millis(obs.Settled),
		Nodes: obs.Nodes, Orders: obs.Effects, Entries: obs.Entries, Events: obs.Events, Defect: obs.Defect, Environment: obs.Environment,
		Checks: []lab.Check{}, Reasons: []string{}, Uncounted: len(obs.Nodes) == 0,
		Simulated: t.Setup.Simulate,
	}
	for _, c := range t.Varied {
		r.Varied = append(r.Varied, lab.Setting{Path: c.Path, Value: c.Value})
	}
	r.Answers = view{trial: t, obs: obs}.answers()
	r.Ledgers = ledgers(t, obs)
	for _, l := range r.Ledgers {
		r.Counts.LedgerDuplicates += l.Duplicates
	}
	r.Counts.LostUpdates, r.Counts.TurnedAway = lostUpdates(t, obs), turnedAway(obs)
	if obs.Keys.Engine != "" {
		r.Keys = &obs.Keys
	}
	r.Amplification = math.Round(float64(r.Counts.Arrivals)/float64(r.Counts.Operations)*1000) / 1000
	var left lab.Beliefs
	for _, o := range obs.Outcomes {
		r.Beliefs.Add(o.Belief)
		left.Add(o.Done())
		r.Reasons = append(r.Reasons, o.Reason)
		r.CallerDoneMs = max(r.CallerDoneMs, lab.Millis(o.DoneAt))
	}
	if totals := obs.Totals; totals != nil {
		for _, e := range totals.Ends {
			r.Beliefs.AddTimes(e.Belief, e.Operations)
		}
		left = r.Beliefs
		r.CallerDoneMs = lab.Millis(totals.CallerDone)
	}
	if left != r.Beliefs {
		r.BeliefsWhenCallerDone = &left
	}
	r.LongestHoldMs = lab.Millis(longestHold(obs))
	if r.CallerDoneMs > 0 {
		r.GoodputPerS = math.Round(float64(r.Beliefs.OK)/float64(r.CallerDoneMs)*1e5) / 100
	}
	r.Series, r.State = obs.Series, obs.State
	if obs.Broken != "" {
		r.Why = obs.Broken
		return r
	}
	r.Said = said(t.Said, r)
	v := view{trial: t, obs: obs, result: &r}
	r.Checks = append(r.Checks, v.premises()...)
	for _, c := range r.Checks {
		if !c.Held {
			if r.Why = fmt.Sprintf("%s: %s, not %s", c.Name, c.Actual, c.Expected); c.Undefined {
				r.Why = c.Name + ": " + c.Actual
			}
			return r
		}
	}
	demands := slices.Concat(v.expectations(), v.invariants(), v.demands("assert", t.Asserts))
	r.Checks = append(r.Checks, demands...)
	r.Verdict = lab.Measured
	if len(demands) > 0 {
		r.Verdict = lab.AsExpected
	}
	for _, c := range demands {
		switch {
		case c.Undefined && r.Verdict != lab.NotAsExpected && r.Why == "":
			r.Verdict, r.Why = lab.Inconclusive, c.Name+": "+c.Actual
		case !c.Held && !c.Undefined:
			r.Verdict, r.Why = lab.NotAsExpected, ""
		}
	}
	return r
}

// said holds what is widely said against what was counted.
func said(s *scenarios.Said, r lab.Result) []lab.Said {
	if s == nil {
		return nil
	}
	var out []lab.Said
	for _, n := range []struct {
		name     string
		said     *int
		measured int
	}{{"sends", s.Sends, r.Counts.Sends}, {"arrivals", s.Arrivals, r.Counts.Arrivals}, {"effects", s.Effects, r.Counts.Effects}} {
		if n.said != nil {
			out = append(out, lab.Said{Name: n.name, Said: *n.said, Measured: n.measured})
		}
	}
	for _, status := range slices.Sorted(maps.Keys(s.Answers)) {
		out = append(out, lab.Said{Name: "answers " + status, Said: s.Answers[status], Measured: r.Answers[status]})
	}
	return out
}

func count(t scenarios.Trial, obs lab.Observation) lab.Counts {
	c := lab.Counts{Operations: t.Setup.Operations, Wanted: t.Wanted(), Effects: len(obs.Effects)}
	for _, n := range obs.Nodes {
		switch n.Role {
		case "caller":
			c.Sends += n.Sends
		case "server":
			c.Arrivals += n.Arrivals
		}
	}
	if all := obs.Totals; all != nil {
		c.Effects, c.EffectsWhenCallerDone, c.Amount = all.Effects, all.EffectsWhenCallerDone, all.Amount
		c.Duplicates, c.Lost, c.FalseFailures, c.Late = all.Duplicates, all.Lost, all.FalseFailures, all.Late
		return c
	}
	for _, e := range obs.Events {
		if e.Kind == lab.Question {
			c.Lookups++
		}
	}
	perOperation := map[string]int{}
	for _, e := range obs.Effects {
		perOperation[e.Operation]++
		c.Amount += e.Amount
	}
	for _, o := range obs.Outcomes {
		n := perOperation[o.Operation]
		c.EffectsWhenCallerDone += o.Effects
		c.Duplicates += max(0, n-1)
		c.Late += n - o.Effects
		switch {
		case o.Belief == lab.OK && n < 1 && c.Wanted > 0:
			c.Lost++
		case o.Belief == lab.Failed && n > 0:
			c.FalseFailures++
		}
	}
	return c
}

// ledgers counts the entries of each ledger that the trial has, and of those that are results the
// entries above one for each operation.
func ledgers(t scenarios.Trial, obs lab.Observation) (out []lab.Ledger) {
	for _, l := range t.Setup.Server.Ledgers {
		for _, name := range l.Names() {
			counted := lab.Ledger{Name: name, Note: l.When == ledger.BeforeWork || name != l.Name}
			seen := map[string]bool{}
			for _, e := range obs.Entries {
				if e.Ledger != name {
					continue
				}
				counted.Entries++
				if seen[e.Operation] && !counted.Note {
					counted.Duplicates++
				}
				seen[e.Operation] = true
			}
			out = append(out, counted)
		}
	}
	return out
}

// lostUpdates is how many of the effects the number in the row that requests share does not show.
func lostUpdates(t scenarios.Trial, obs lab.Observation) int {
	c := t.Setup.Server.Change
	if obs.State == nil || c.By == 0 {
		return 0
	}
	start, errStart := strconv.Atoi(c.Start)
	value, errValue := strconv.Atoi(obs.State.Value)
	if errStart != nil || errValue != nil {
		return 0
	}
	return len(obs.Effects) - (value-start)/c.By
}

// turnedAway is how many operations found no thread of the caller free.
func turnedAway(obs lab.Observation) (n int) {
	for _, o := range obs.Outcomes {
		if o.Reason == lab.NoThread {
			n++
		}
	}
	return n
}

// longestHold is the longest time from the start of an operation to its end, the wait for a thread
// included.
func longestHold(obs lab.Observation) (longest time.Duration) {
	if obs.Totals != nil {
		return obs.Totals.LongestHold
	}
	started := map[string]time.Duration{}
	for _, e := range obs.Events {
		if e.Kind == lab.Start {
			started[e.Operation] = e.At
		}
	}
	for _, o := range obs.Outcomes {
		longest = max(longest, o.DoneAt-started[o.Operation])
	}
	return longest
}

// view is a trial with what was seen of it, for the checks.
type view struct {
	trial  scenarios.Trial
	obs    lab.Observation
	result *lab.Result
}

// premises are what must have taken place: every fault fired, every operation ended, and what the
// file declares.
func (v view) premises() []lab.Check {
	var checks []lab.Check
	configured := v.trial.Setup.AllFaults()
	for i, f := range v.obs.Faults {
		want, name := configured[i].Wanted(v.trial.Setup.Operations), f.Name
		if i >= len(v.trial.Setup.Server.Faults) {
			name += " of " + f.Node
		}
		checks = append(checks, lab.Check{
			Kind: "premise", Name: "fault " + name + " fired",
			Expected: atLeast(want), Actual: times(f.Fired), Held: f.Fired >= want,
		})
	}
	if want := len(v.trial.Setup.Caller.ClockJumps); want > 0 {
		got := len(v.times(func(e lab.Event) bool { return e.Kind == lab.ClockJump }))
		checks = append(checks, lab.Check{
			Kind: "premise", Name: "the caller's clock was set", Expected: times(want), Actual: times(got), Held: got == want,
		})
	}
	ended, all := 0, len(v.obs.Outcomes)
	for _, o := range v.obs.Outcomes {
		if o.Belief != "" {
			ended++
		}
	}
	if totals := v.obs.Totals; totals != nil {
		for _, e := range totals.Ends {
			ended += e.Operations
		}
		all = v.trial.Setup.Operations
	}
	checks = append(checks, lab.Check{
		Kind: "premise", Name: "every operation has an outcome",
		Expected: fmt.Sprint(all), Actual: fmt.Sprint(ended), Held: ended == all,
	})
	if s := v.obs.Series; s != nil {
		checks = append(checks, lab.Check{
			Kind: "premise", Name: fmt.Sprintf("all is over within %d windows of the series", lab.MaxWindows),
			Expected: "true", Actual: fmt.Sprintf("%d beyond", s.Beyond), Held: s.Beyond == 0,
		})
	}
	return append(checks, v.demands("premise", v.trial.Setup.Premises)...)
}

func atLeast(n int) string { return "at least " + times(n) }

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func (v view) invariants() []lab.Check { return v.demands("invariant", v.trial.Invariants) }

func (v view) demands(kind string, list []scenarios.Demand) []lab.Check {
	var checks []lab.Check
	for _, d := range list {
		c := lab.Check{
			Kind: kind, Name: d.Expression, Expected: "true",
			File: d.At.File, Line: d.At.Line, Column: d.At.Column,
		}
		condition, err := expression.Compile(d.Expression)
		if err == nil && condition.Timed() && !v.obs.Exact {
			continue // as with expectations about times
		}
		if err == nil {
			c.Held, c.Actual, err = condition.Holds(v.values())
		}
		if err != nil {
			c.Actual, c.Undefined = err.Error(), true
		}
		checks = append(checks, c)
	}
	return checks
}

func (v view) values() expression.Values {
	c, b := v.result.Counts, v.result.Beliefs
	fired := 0
	for _, f := range v.obs.Faults {
		fired += f.Fired
	}
	return expression.Values{
		Operations: c.Operations, Wanted: c.Wanted, Sends: c.Sends, Arrivals: c.Arrivals, Lookups: c.Lookups,
		Effects: c.Effects, EffectsWhenCallerDone: c.EffectsWhenCallerDone,
		Duplicates: c.Duplicates, Lost: c.Lost, FalseFailures: c.FalseFailures, Late: c.Late,
		LedgerDuplicates: c.LedgerDuplicates, LostUpdates: c.LostUpdates, TurnedAway: c.TurnedAway,
		Amplification: v.result.Amplification, OK: b.OK, Failed: b.Failed, Unknown: b.Unknown,
		CallerDoneMs: v.result.CallerDoneMs, LongestHoldMs: v.result.LongestHoldMs, GoodputPerS: v.result.GoodputPerS,
		PeakStarts: v.series().PeakStarts, RecoveredAfterMs: v.recoveredAfterMs(), GoodputAfterPerS: v.recovery().GoodputPerS,
		SettledMs: v.result.SettledMs,
		Overlap:   v.obs.Overlap, FaultsFired: fired,
	}
}

// evidence names the events of a kind, the first few of them: sends of the caller, arrivals at the
// order service, as they are counted.
func (v view) evidence(kinds ...lab.Kind) []string {
	const most = 6
	servers := v.trial.Setup.Server.ReplicaNames()
	var out []string
	for _, e := range v.obs.Events {
		for _, k := range kinds {
			if e.Kind != k ||
				k == lab.Send && e.Node != v.trial.Setup.Caller.Name ||
				k == lab.Arrival && !slices.Contains(servers, e.Node) {
				continue
			}
			if len(out) == most {
				return append(out, "…")
			}
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s at %s %s %s", e.Kind, lab.Clock(e.At), e.Path(), e.Detail)))
		}
	}
	return out
}
