package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"retrylab/internal/lab"
	"retrylab/internal/vtime"
	"retrylab/scenarios"
)

// smallestGap is how far apart, in real time, two events must be planned whose order decides a
// trial. A timer of an idle machine is late by a tenth of it.
const smallestGap = 5 * time.Millisecond

// wallTries is how often a trial is tried on the wall clock, each time at half the speed, before
// it is given up as inconclusive.
const wallTries = 3

// TooFastError says that a speed makes the gap between two deciding events too small for real
// time.
type TooFastError struct {
	Scenario, ID string
	Pair         string        // the two events
	Gap          time.Duration // scenario time between them
	Speed        float64       // what was asked for
}

// Most is the largest speed at which the trial can be run.
func (e *TooFastError) Most() float64 { return float64(e.Gap) / float64(smallestGap) }

// Hint says what would do, rounded down.
func (e *TooFastError) Hint() string {
	if most := e.Most(); most < 1 {
		return fmt.Sprintf("at most --speed %g", math.Floor(most*100)/100)
	}
	return fmt.Sprintf("at most --speed %.0f", math.Floor(e.Most()))
}

func (e *TooFastError) Error() string {
	return fmt.Sprintf("--speed %g is too fast for %s:%s: %s are %s apart, which is less than %s of real time",
		e.Speed, e.Scenario, e.ID, e.Pair, e.Gap.Round(time.Millisecond), smallestGap)
}

// bearable is how long, in real time, one trial may take of which it is known beforehand.
const bearable = 10 * time.Minute

// TooLongError says that a trial has more scenario time than anybody waits for at a speed.
type TooLongError struct{ Scenario, Real time.Duration }

func (e *TooLongError) Error() string {
	return fmt.Sprintf("%s of scenario time are %s at this speed", e.Scenario.Round(time.Second), e.Real.Round(time.Second))
}

// Check reports whether the lab's clock can run t at its speed, as a [*TooFastError] or a
// [*TooLongError] when it cannot. It runs the trial on the virtual clock to know what decides it.
func (l *Lab) Check(ctx context.Context, t scenarios.Trial) error {
	if l.clock != Wall {
		return nil
	}
	plan, _ := l.onVirtual(ctx, t)
	if plan.Broken != "" {
		return nil // it will say so itself when it runs
	}
	if real := l.real(plan.Settled, l.speed); real > bearable {
		return &TooLongError{Scenario: plan.Settled, Real: real}
	}
	p, ok := deciding(t, plan).closest()
	if !ok || l.real(p.gap, l.speed) >= smallestGap {
		return nil
	}
	return &TooFastError{Scenario: t.Scenario, ID: t.ID, Pair: p.name, Gap: p.gap, Speed: l.speed}
}

func (l *Lab) real(d time.Duration, speed float64) time.Duration {
	return time.Duration(float64(d) / speed)
}

// onWall runs a trial over loopback TCP in real time. The trial on the virtual clock is the plan:
// it says which pairs of events decide and how far apart they are. The trial counts only if it
// took place as planned; a machine that stumbles decides nothing.
func (l *Lab) onWall(ctx context.Context, t scenarios.Trial) lab.Observation {
	plan, err := l.onVirtual(ctx, t)
	switch {
	case errors.Is(err, vtime.ErrNoBubble):
		return l.unplanned(ctx, t)
	case plan.Broken != "":
		return plan
	}
	pairs := deciding(t, plan)
	speed := l.speed
	var obs lab.Observation
	var slipped string
	for range wallTries {
		obs = l.once(ctx, t, speed, plan.Settled)
		if obs.Defect || obs.Environment || ctx.Err() != nil {
			return obs
		}
		played := recast(t, plan, obs)
		if slipped = pairs.slip(t, played); slipped == "" {
			if what := disagreement(plan, played); what != "" && !sameDecisions(plan, played) {
				// Something went another way that no pair watches: not as planned, all the same.
				slipped = what
			}
		}
		if slipped == "" {
			break
		}
		speed /= 2
	}
	switch {
	case slipped != "":
		obs.Broken = fmt.Sprintf("the machine stumbled in %d tries, the last at speed %g: %s", wallTries, speed*2, slipped)
	case obs.Broken != "":
	default:
		if what := disagreement(plan, recast(t, plan, obs)); what != "" {
			obs.Broken, obs.Defect = "the virtual and the wall clock disagree: "+what, true
		}
	}
	return obs
}

// unplannedLimit is how long, in real time, a trial may take of which nobody knows how long it
// will be.
const unplannedLimit = 10 * time.Minute

// unplannedSpeed is the largest speed at which two runs without a plan may vouch for each other.
const unplannedSpeed = 20

// unplanned runs a trial where there is no virtual clock to plan it: twice, the second time at
// half the speed. Where chance decided, the two hardly come to the same.
func (l *Lab) unplanned(ctx context.Context, t scenarios.Trial) lab.Observation {
	limit := time.Duration(float64(unplannedLimit) * l.speed / 2)
	first := l.once(ctx, t, l.speed, limit)
	if first.Broken != "" {
		return first
	}
	second := l.once(ctx, t, l.speed/2, limit)
	if second.Broken != "" {
		return second
	}
	if l.speed > unplannedSpeed {
		second.Broken = fmt.Sprintf("without the virtual clock there is no plan, and nothing faster than --speed %d counts", unplannedSpeed)
		return second
	}
	if what := disagreement(first, recast(t, first, second)); what != "" {
		second.Broken = "without the virtual clock there is no plan, and two runs at different speeds differ: " + what
	}
	return second
}

// once runs a trial in real time. planned is when it settled on the virtual clock.
func (l *Lab) once(ctx context.Context, t scenarios.Trial, speed float64, planned time.Duration) (obs lab.Observation) {
	p, err := l.place(ctx, t)
	if err != nil {
		return unplaced(ctx, err)
	}
	defer func() { obs = left(obs, p.leave()) }()
	clock := vtime.NewWall(calendar(t.Begin), speed)
	// Twice the plan and ten real seconds: what is not over by then waits for ever.
	limit := 2*planned + time.Duration(float64(10*time.Second)*speed)
	return l.trial(ctx, t, world{clock: clock, network: vtime.NewLoopback(), place: p, horizon: limit, replica: l.Replica})
}

// disagreement says in which counts two runs of a trial differ that took place in the same order.
func disagreement(plan, obs lab.Observation) string {
	for i, o := range plan.Outcomes {
		if o.Belief != obs.Outcomes[i].Belief || o.Reason != obs.Outcomes[i].Reason {
			return fmt.Sprintf("%s ends %s (%s) in the one, %s (%s) in the other",
				o.Operation, o.Belief, o.Reason, obs.Outcomes[i].Belief, obs.Outcomes[i].Reason)
		}
	}
	want, seen := tally(plan), tally(obs)
	if endsWithCommit(plan) {
		delete(want, whenCallerDone)
		delete(seen, whenCallerDone)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if want[name] != seen[name] {
			return fmt.Sprintf("%s: %d in the one, %d in the other", name, want[name], seen[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		if _, ok := want[name]; !ok {
			return fmt.Sprintf("%s: none in the one, %d in the other", name, seen[name])
		}
	}
	return ""
}

// endsWithCommit reports whether an operation ends in the instant of one of its commits that it did not wait
// for: which of the two comes first in real time is free, and with it the effects when the caller was done.
func endsWithCommit(o lab.Observation) bool {
	done := map[string]time.Duration{}
	for _, outcome := range o.Outcomes {
		done[outcome.Operation] = outcome.DoneAt
	}
	waitedFor := awaited(o)
	return slices.ContainsFunc(o.Events, func(e lab.Event) bool {
		return e.Kind == lab.Commit && !waitedFor(e) && max(e.At-done[e.Operation], done[e.Operation]-e.At) < tie
	})
}

// sameDecisions reports whether two runs of a trial came to each of their forks in the same way:
// who was sent where and arrived, what guards found, what layers decided.
func sameDecisions(a, b lab.Observation) bool {
	forks := func(o lab.Observation) map[string]int {
		out := map[string]int{}
		for _, e := range o.Events {
			switch e.Kind {
			case lab.Start, lab.Settled, lab.Work, lab.Done:
			default:
				out[fmt.Sprint(e.Kind, e.Node, e.Send, e.Target, e.Status, e.Detail)]++
			}
		}
		return out
	}
	return maps.Equal(forks(a), forks(b))
}

// whenCallerDone is what tally calls the effects at the end of their operations.
const whenCallerDone = "effects when the caller was done"

// tally counts all that a scenario can expect a number of.
func tally(o lab.Observation) map[string]int {
	out := map[string]int{"effects": len(o.Effects)}
	for _, e := range o.Effects {
		out["amount of "+e.Operation] += int(e.Amount)
	}
	for _, e := range o.Entries {
		out["entries in "+e.Ledger]++
	}
	for _, n := range o.Nodes {
		out["sends of "+n.Name] = n.Sends
		out["arrivals at "+n.Name] = n.Arrivals
	}
	if s := o.State; s != nil {
		out[s.Row+" that is "+s.String()]++
	}
	for _, outcome := range o.Outcomes {
		out[whenCallerDone] += outcome.Effects
	}
	told := map[int64]bool{}
	for _, e := range o.Events {
		switch e.Kind {
		case lab.Answer, lab.ClientGone:
			out[fmt.Sprintf("%s with status %d", e.Kind, e.Status)]++
		case lab.Learnt:
			out["questions that came to "+e.Detail]++
		case lab.Told:
			told[e.Order] = true
		}
	}
	out["orders told"] = len(told)
	return out
}
