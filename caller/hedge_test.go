package caller

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"retrylab/caller/policy"
	"retrylab/internal/lab"
)

// hedging makes a layer of so many tries, a second apart.
func hedging(attempts int, change ...func(*policy.Settings)) policy.Layer {
	s := policy.Settings{Preset: "hedge", Attempts: &attempts}
	for _, f := range change {
		f(&s)
	}
	return layerOf(s)
}

func cancelling(s *policy.Settings) { s.Losers = policy.CancelLosers }

// TestHedge plays hedged calls: what is answered to each try, and what comes of it.
func TestHedge(t *testing.T) {
	t.Parallel()
	type play []func(*exchange) // by try; the last for all further ones
	after := func(d time.Duration, then func(*exchange)) func(*exchange) {
		return func(x *exchange) { x.pause(d); then(x) }
	}
	status := func(code int) func(*exchange) { return func(x *exchange) { x.reply(code, "{}") } }
	const s = time.Second
	for _, tt := range []struct {
		name    string
		layers  []policy.Layer
		total   time.Duration
		cancel  time.Duration
		play    play
		starts  []time.Duration
		reason  string
		done    time.Duration
		settled time.Duration // when the last of the events was recorded
	}{
		{"answered in time", []policy.Layer{hedging(2)}, 0, 0, play{after(s/2, ok)}, []time.Duration{0}, "201", s / 2, s / 2},
		{"the first wins", []policy.Layer{hedging(2)}, 0, 0, play{after(3*s, ok)}, []time.Duration{0, s}, "201", 3 * s, 4 * s},
		{"the second wins", []policy.Layer{hedging(2)}, 0, 0, play{after(9*s, ok), after(s/2, ok)}, []time.Duration{0, s}, "201", 3 * s / 2, 9 * s},
		{"the loser is cancelled", []policy.Layer{hedging(2, cancelling)}, 0, 0, play{after(9*s, ok), after(s/2, ok)}, []time.Duration{0, s}, "201", 3 * s / 2, 3 * s / 2},
		{"a failure waits for its turn", []policy.Layer{hedging(3)}, 0, 0, play{status(503), status(503), ok}, []time.Duration{0, s, 2 * s}, "201", 2 * s, 2 * s},
		{"a failure beside one under way", []policy.Layer{hedging(2)}, 0, 0, play{after(3*s, ok), status(503)}, []time.Duration{0, s}, "201", 3 * s, 3 * s},
		{"all fail", []policy.Layer{hedging(2)}, 0, 0, play{after(3*s, status(503)), status(500)}, []time.Duration{0, s}, "503", 3 * s, 3 * s},
		{"a refusal ends it", []policy.Layer{hedging(3)}, 0, 0, play{after(9*s, ok), status(409)}, []time.Duration{0, s}, "409", s, 9 * s},
		{"no time left", []policy.Layer{hedging(3)}, 5 * s / 2, 0, play{after(9*s, ok)}, []time.Duration{0, s, 2 * s}, "total timeout", 5 * s / 2, 5 * s / 2},
		{"no time left between two", []policy.Layer{hedging(3)}, s / 2, 0, play{status(503)}, []time.Duration{0}, "total timeout", s / 2, s / 2},
		{"given up by the user", []policy.Layer{hedging(3)}, 0, 3 * s / 2, play{after(9*s, ok)}, []time.Duration{0, s}, "cancelled", 3 * s / 2, 3 * s / 2},
		{"no budget", []policy.Layer{hedging(3, func(s *policy.Settings) { s.Budget = &policy.Budget{Min: 1} })}, 0, 0, play{after(3*s, ok)}, []time.Duration{0, s}, "201", 3 * s, 4 * s},
		{"no budget, all failed", []policy.Layer{hedging(3, func(s *policy.Settings) { s.Budget = &policy.Budget{Min: 1} })}, 0, 0, play{status(503)}, []time.Duration{0, s}, "503", 2 * s, 2 * s},
		{"over a loop", []policy.Layer{hedging(2), retry(2, waiting(s/4))}, 0, 0, play{status(503)}, []time.Duration{0, s / 4, s, 5 * s / 4}, "503", 5 * s / 4, 5 * s / 4},
		{"under a loop", []policy.Layer{retry(2), hedging(2)}, 0, 0, play{status(503)}, []time.Duration{0, s, s, 2 * s}, "503", 2 * s, 2 * s},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var journals [][]string
			for range 3 {
				inBubble(t, func(b *bench) {
					b.script = func(x *exchange) { tt.play[min(x.number, len(tt.play))-1](x) }
					caller := b.caller(Config{Layers: tt.layers, Timeouts: Timeouts{Total: tt.total}}, Habits{CancelAfter: tt.cancel})
					out := caller.Place(context.Background(), Intent{Operation: "op-1"})
					diff(t, "reason", tt.reason, out.Reason)
					diff(t, "done", tt.done, out.DoneAt.Round(time.Millisecond))
					for b.network.(interface{ Busy() bool }).Busy() {
						b.clock.Sleep(context.Background(), 100*time.Millisecond)
					}
					caller.Close()
					var starts []time.Duration
					for _, x := range b.arrived() {
						starts = append(starts, x.at.Round(time.Millisecond))
					}
					diff(t, "arrivals", tt.starts, starts)
					diff(t, "last event", tt.settled, b.events[len(b.events)-1].At.Round(time.Millisecond))
					journals = append(journals, b.timed())
				})
			}
			diff(t, "a second run", journals[0], journals[1])
			diff(t, "a third run", journals[0], journals[2])
		})
	}
}

// TestHedgeOnLoopback has the second try win over TCP.
func TestHedgeOnLoopback(t *testing.T) {
	t.Parallel()
	onLoopback(t, func(b *bench) {
		b.script = func(x *exchange) {
			if x.number == 1 {
				x.pause(20 * time.Second)
			}
			ok(x)
		}
		out := b.place(Config{Layers: []policy.Layer{hedging(2, cancelling, func(s *policy.Settings) { s.After = new(5 * time.Second) })}}, Habits{})
		diff(t, "belief", lab.OK, out.Belief)
		diff(t, "arrivals", 2, len(b.arrived()))
	})
}

// TestRemainingOfAHedge is what is left for the tries of a hedge: no context of theirs has a deadline.
func TestRemainingOfAHedge(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		b.script = func(x *exchange) { x.pause(9 * time.Second); ok(x) }
		b.place(Config{Layers: []policy.Layer{hedging(2)}, Timeouts: Timeouts{Total: 4 * time.Second}}, Habits{})
		var left []time.Duration
		for _, e := range b.events {
			if e.Kind == lab.Send {
				left = append(left, e.Remaining.Round(time.Millisecond))
			}
		}
		diff(t, "remaining", []time.Duration{4 * time.Second, 3 * time.Second}, left)
	})
}

// TestSharedBudget has calls side by side fail for ever: together they may retry as often as their
// budget says.
func TestSharedBudget(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		budget   *policy.Budget
		arrivals int
		spent    int
	}{
		{nil, 500, 0},
		{&policy.Budget{Ratio: new(0.1)}, 110, 100},
		{&policy.Budget{Tokens: new(100.0), Cost: 5}, 120, 100},
		{&policy.Budget{Tokens: new(100.0), Stop: policy.StopHalf}, 149, 100},
	} {
		t.Run(fmt.Sprint(tt.budget), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bench) {
				b.script = func(x *exchange) { x.pause(5 * time.Millisecond); x.reply(503, "{}") }
				caller := b.caller(Config{Layers: []policy.Layer{retry(5, waiting(100*time.Millisecond), func(s *policy.Settings) { s.Budget = tt.budget })}}, Habits{})
				for _, out := range b.operations(caller, 100) {
					diff(t, "reason", "503", out.Reason)
				}
				caller.Close()
				diff(t, "arrivals", tt.arrivals, len(b.arrived()))
				spent := slices.DeleteFunc(slices.Clone(b.events), func(e lab.Event) bool { return e.Detail != policy.BudgetSpent })
				diff(t, "stopped for want of budget", tt.spent, len(spent))
			})
		})
	}
}
