package engine

import (
	"context"
	"fmt"
	"maps"
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

func (e *TooFastError) Error() string {
	return fmt.Sprintf("--speed %g is too fast for %s:%s: %s are %s apart, which is less than %s of real time",
		e.Speed, e.Scenario, e.ID, e.Pair, e.Gap.Round(time.Millisecond), smallestGap)
}

// Check reports whether the lab's clock can run t at its speed, as a [*TooFastError] when it
// cannot. It runs the trial on the virtual clock to know what decides it.
func (l *Lab) Check(ctx context.Context, t scenarios.Trial) error {
	if l.clock != Wall {
		return nil
	}
	plan := l.onVirtual(ctx, t)
	if plan.Broken != "" {
		return nil // it will say so itself when it runs
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
	plan := l.onVirtual(ctx, t)
	if plan.Broken != "" {
		return plan
	}
	pairs := deciding(t, plan)
	speed := l.speed
	var obs lab.Observation
	var slipped string
	for range wallTries {
		obs = l.once(ctx, t, speed, plan.Settled)
		if obs.Defect || ctx.Err() != nil {
			return obs
		}
		if slipped = pairs.slip(t, obs); slipped == "" {
			break
		}
		speed /= 2
	}
	switch {
	case slipped != "":
		obs.Broken = fmt.Sprintf("the machine stumbled in %d tries, the last at speed %g: %s", wallTries, speed*2, slipped)
	case obs.Broken != "":
	default:
		if what := disagreement(t, plan, obs); what != "" {
			obs.Broken, obs.Defect = "the clocks disagree: "+what, true
		}
	}
	return obs
}

// once runs a trial in real time. planned is when it settled on the virtual clock.
func (l *Lab) once(ctx context.Context, t scenarios.Trial, speed float64, planned time.Duration) lab.Observation {
	clock := vtime.NewWall(calendar(t.Begin), speed)
	// Twice the plan and ten real seconds: what is not over by then waits for ever.
	limit := 2*planned + time.Duration(float64(10*time.Second)*speed)
	return l.trial(ctx, t, world{clock: clock, network: vtime.NewLoopback(), horizon: limit})
}

// disagreement says in which counts two trials differ that took place in the same order.
func disagreement(t scenarios.Trial, plan, obs lab.Observation) string {
	for i, o := range plan.Outcomes {
		if o.Belief != obs.Outcomes[i].Belief || o.Reason != obs.Outcomes[i].Reason {
			return fmt.Sprintf("%s ends %s (%s) on the virtual clock, %s (%s) on the wall clock",
				o.Operation, o.Belief, o.Reason, obs.Outcomes[i].Belief, obs.Outcomes[i].Reason)
		}
	}
	want, seen := tally(plan), tally(obs)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if want[name] != seen[name] {
			return fmt.Sprintf("%s: %d on the virtual clock, %d on the wall clock", name, want[name], seen[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		if _, ok := want[name]; !ok {
			return fmt.Sprintf("%s: none on the virtual clock, %d on the wall clock", name, seen[name])
		}
	}
	return ""
}

// tally counts all that a scenario can expect a number of.
func tally(o lab.Observation) map[string]int {
	out := map[string]int{"effects": len(o.Effects)}
	for _, n := range o.Nodes {
		out["sends of "+n.Name] = n.Sends
		out["arrivals at "+n.Name] = n.Arrivals
	}
	for _, outcome := range o.Outcomes {
		out["effects when the caller was done"] += outcome.Effects
	}
	told := map[int64]bool{}
	for _, e := range o.Events {
		switch e.Kind {
		case lab.Answer, lab.ClientGone:
			out[fmt.Sprintf("%s with status %d", e.Kind, e.Status)]++
		case lab.Told:
			told[e.Order] = true
		}
	}
	out["orders told"] = len(told)
	return out
}
