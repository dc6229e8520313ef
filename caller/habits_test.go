package caller

import (
	"context"
	"testing"
	"time"

	"retrylab/caller/policy"
	"retrylab/internal/lab"
)

// TestCancelAfter has whoever wanted the order give it up: before anything left, during a send, and
// during the wait before a retry, which then does not come.
func TestCancelAfter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		config   Config
		habits   Habits
		script   func(*exchange)
		arrivals int
		belief   lab.Belief
		reason   string
		done     time.Duration
	}{
		{"during the send", Config{}, Habits{}, func(x *exchange) { x.pause(5 * time.Second); ok(x) }, 1, lab.Unknown, "cancelled", time.Second},
		{"during the wait", Config{Layers: []policy.Layer{retry(3, waiting(2*time.Second))}}, Habits{}, func(x *exchange) { x.reply(503, "{}") }, 1, lab.Unknown, "cancelled", time.Second},
		{"too late", Config{}, Habits{}, func(x *exchange) { x.pause(time.Second / 2); ok(x) }, 1, lab.OK, "201", time.Second / 2},
		{"nothing has left", Config{Targets: []string{"nobody"}, Layers: []policy.Layer{retry(3, waiting(2*time.Second))}}, Habits{}, nil, 0, lab.Failed, "cancelled", time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bench) {
				b.script = tt.script
				tt.habits.CancelAfter = time.Second
				out := b.place(tt.config, tt.habits)
				diff(t, "belief", tt.belief, out.Belief)
				diff(t, "reason", tt.reason, out.Reason)
				diff(t, "done", tt.done, out.DoneAt)
				diff(t, "arrivals", tt.arrivals, len(b.arrived()))
			})
		})
	}
}

// TestThreads has six operations meet two threads.
func TestThreads(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		threads int
		queue   *int
		cancel  time.Duration
		turned  int // away
		most    int
		done    time.Duration
		reasons map[string]int
	}{
		{"as many as needed", 0, nil, 0, 0, 6, time.Second, map[string]int{"201": 6}},
		{"a queue without end", 2, nil, 0, 0, 2, 3 * time.Second, map[string]int{"201": 6}},
		{"no queue", 2, new(0), 0, 4, 2, time.Second, map[string]int{"201": 2, lab.NoThread: 4}},
		{"a place in the queue", 2, new(1), 0, 3, 2, 2 * time.Second, map[string]int{"201": 3, lab.NoThread: 3}},
		{"given up in the queue", 2, nil, 3 * time.Second / 2, 0, 2, 3 * time.Second / 2, map[string]int{"201": 2, cancelled: 4}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bench) {
				b.script = func(x *exchange) { x.pause(time.Second); ok(x) }
				caller := b.caller(Config{}, Habits{Threads: tt.threads, Queue: tt.queue, CancelAfter: tt.cancel})
				defer caller.Close()
				reasons, failed, done := map[string]int{}, 0, time.Duration(0)
				for _, out := range b.operations(caller, 6) {
					reasons[out.Reason]++
					done = max(done, out.DoneAt.Round(time.Millisecond))
					if out.Reason == lab.NoThread && out.Belief == lab.Failed {
						failed++
					}
				}
				diff(t, "reasons", tt.reasons, reasons)
				diff(t, "turned away", tt.turned, failed)
				diff(t, "threads", tt.most, caller.MostThreads())
				diff(t, "done", tt.done, done)
				sends := map[time.Duration]bool{}
				for _, e := range b.events {
					if e.Kind == lab.Send {
						if sends[e.At] {
							t.Errorf("two sends at %v", e.At)
						}
						sends[e.At] = true
					}
				}
			})
		})
	}
}

// TestPastDeadline has a loop go on that does not look at the limit around it.
func TestPastDeadline(t *testing.T) {
	t.Parallel()
	for _, past := range []bool{false, true} {
		inBubble(t, func(b *bench) {
			b.script = func(x *exchange) { x.pause(5 * time.Second); ok(x) }
			out := b.place(Config{
				Timeouts: Timeouts{Total: time.Second},
				Layers: []policy.Layer{retry(5, waiting(50*time.Millisecond), func(s *policy.Settings) {
					s.PastDeadline, s.On = &past, []string{"timeout"}
				})},
			}, Habits{})
			tries, done, reason := 1, time.Second, "total timeout"
			if past {
				tries, done, reason = 5, 1200*time.Millisecond, "attempt timeout"
			}
			sends, failed := 0, 0
			for _, e := range b.events {
				switch {
				case e.Kind == lab.Send:
					sends++
				case e.Detail == lab.PastDeadline:
					failed++
				}
			}
			diff(t, "sends", 1, sends)
			diff(t, "tries", tries, sends+failed)
			diff(t, "arrivals", 1, len(b.arrived()))
			diff(t, "done", done, out.DoneAt)
			diff(t, "reason", reason, out.Reason)
			diff(t, "belief", lab.Unknown, out.Belief)
		})
	}
}

// TestPastDeadlineEnds ends the lab in a pause of such a loop: it looks at no limit, and at that.
func TestPastDeadlineEnds(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		b.script = func(x *exchange) { x.hang() }
		life, stop := context.WithCancel(context.Background())
		b.clock.AfterFunc(3*time.Second, stop)
		caller := b.caller(Config{
			Timeouts: Timeouts{Total: time.Second},
			Layers: []policy.Layer{retry(9, waiting(time.Hour), func(s *policy.Settings) {
				s.PastDeadline, s.On = new(true), []string{"timeout"}
			})},
		}, Habits{})
		caller.Place(life, Intent{Operation: "op-1"})
		diff(t, "ended", 3*time.Second, b.clock.Now().Round(time.Millisecond))
	})
}

// TestFreeWhenPaced has a server ask for a pause five times and then accept.
func TestFreeWhenPaced(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		free     bool
		pauses   int
		other    int // failures after them
		arrivals int
		reason   string
	}{
		{false, 5, 0, 4, "429"},
		{true, 5, 0, 6, "201"},
		{true, 2, 9, 6, "500"},
		{true, 5000, 0, policy.MaxAttempts, "429"},
	} {
		inBubble(t, func(b *bench) {
			b.script = func(x *exchange) {
				switch {
				case x.number <= tt.pauses:
					x.reply(429, "{}", "Retry-After: 1")
				case x.number <= tt.pauses+tt.other:
					x.reply(500, "{}")
				default:
					ok(x)
				}
			}
			out := b.place(Config{Layers: []policy.Layer{retry(4, func(s *policy.Settings) {
				s.On, s.RetryAfter, s.FreeWhenPaced = []string{"429", "5xx"}, policy.HonourRetryAfter, &tt.free
			})}}, Habits{})
			diff(t, "reason", tt.reason, out.Reason)
			diff(t, "arrivals", tt.arrivals, len(b.arrived()))
		})
	}
}

// TestLimits has each kind of failure used up by itself: what is absent has no limit of its own.
func TestLimits(t *testing.T) {
	t.Parallel()
	reset := func(x *exchange) { x.reset() }
	status := func(x *exchange) { x.reply(503, "{}") }
	for _, tt := range []struct {
		name   string
		limits policy.Limits
		target string
		script func(*exchange)
		sends  int
	}{
		{"connect, limited", policy.Limits{Connect: new(3)}, "nobody", nil, 4},
		{"read, unset", policy.Limits{Connect: new(3)}, "i1", reset, 11},
		{"read, none", policy.Limits{Connect: new(3), Read: new(0)}, "i1", reset, 1},
		{"read, limited", policy.Limits{Read: new(2)}, "i1", reset, 3},
		{"status, unset", policy.Limits{Read: new(2)}, "i1", status, 11},
		{"status, none", policy.Limits{Status: new(0)}, "i1", status, 1},
		{"status, limited", policy.Limits{Status: new(2)}, "i1", status, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bench) {
				b.script = tt.script
				b.place(Config{Targets: []string{tt.target}, Layers: []policy.Layer{retry(11, func(s *policy.Settings) { s.Limits = &tt.limits })}}, Habits{})
				sends := 0
				for _, e := range b.events {
					if e.Kind == lab.Send {
						sends++
					}
				}
				diff(t, "sends", tt.sends, sends)
			})
		})
	}
}

// TestTotalClock is when a sender that began at 500 ms finds that three seconds have gone by.
func TestTotalClock(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, tt := range []struct {
		name  string
		clock TotalClock
		want  time.Duration
	}{
		{"always looking", TotalClock{}, 3 * s},
		{"every second", TotalClock{Poll: s}, 3 * s},
		{"every 800 ms", TotalClock{Poll: 800 * time.Millisecond}, 3200 * time.Millisecond},
		{"another clock is set", TotalClock{Jumps: []Jump{{s, -time.Hour}}}, 3 * s},
		{"set back", TotalClock{Calendar: true, Jumps: []Jump{{s, -time.Hour}}}, 3603 * s},
		{"set forward", TotalClock{Calendar: true, Jumps: []Jump{{s, time.Hour}}}, s / 2},
		{"set forward, looking later", TotalClock{Calendar: true, Poll: 200 * time.Millisecond, Jumps: []Jump{{s, time.Hour}}}, 600 * time.Millisecond},
		{"set forward by less", TotalClock{Calendar: true, Jumps: []Jump{{s, 2 * s}}}, s},
		{"set before", TotalClock{Calendar: true, Jumps: []Jump{{s / 4, time.Hour}, {s / 2, time.Hour}}}, 3 * s},
		{"set after", TotalClock{Calendar: true, Jumps: []Jump{{4 * s, -time.Hour}}}, 3 * s},
		{"set back between two looks", TotalClock{Calendar: true, Poll: s, Jumps: []Jump{{600 * time.Millisecond, time.Hour}, {700 * time.Millisecond, -time.Hour}}}, 3 * s},
		{"there and back", TotalClock{Calendar: true, Jumps: []Jump{{s, -time.Hour}, {2 * s, time.Hour}}}, 3 * s},
	} {
		if got := tt.clock.after(s/2, 3*s); got != tt.want {
			t.Errorf("%s: after %v, want %v", tt.name, got, tt.want)
		}
	}
	if got := (TotalClock{Calendar: true, Poll: s}).after(s, 0); got != 0 {
		t.Errorf("no limit ends after %v", got)
	}
}

// TestTotalOnCalendar has a call whose limit is measured with a clock that is set while it runs.
func TestTotalOnCalendar(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		b.script = func(x *exchange) { x.pause(2 * time.Hour); ok(x) }
		c := Config{Timeouts: Timeouts{Total: 3 * time.Second}, Clocked: TotalClock{Calendar: true, Jumps: []Jump{{time.Second, -time.Hour}}}}
		caller := b.caller(c, Habits{})
		defer caller.Close()
		out := caller.Place(context.Background(), Intent{Operation: "op-1"})
		diff(t, "done", 3603*time.Second, out.DoneAt.Round(time.Millisecond))
		diff(t, "reason", "total timeout", out.Reason)
	})
}
