package slowserver_test

import (
	"testing"
	"time"

	"retrylab/internal/lab"
	"retrylab/slowserver"
	"retrylab/slowserver/fault"
	"retrylab/slowserver/guard"
)

// TestDeadline sends a request with a deadline of 5 s to a service that works for 12 s.
func TestDeadline(t *testing.T) {
	t.Parallel()
	honour := slowserver.Config{Processing: work, HonourDeadline: true}
	guarded := func(g guard.Settings) slowserver.Config {
		c := honour
		c.Guard = g
		return c
	}
	delayed := honour
	delayed.Processing, delayed.Faults = time.Second, []fault.Settings{{At: fault.BeforeGuard, Do: "delay", Delay: 8 * time.Second}}
	late := honour
	late.Processing, late.Faults = time.Second, []fault.Settings{{At: fault.AfterCommit, Do: "delay", Delay: 8 * time.Second}}
	tests := []struct {
		name     string
		config   slowserver.Config
		deadline string
		got      string
		at       time.Duration
		orders   int
		key      string
		journal  string
	}{
		{"ignored", slowserver.Config{Processing: work}, "5S", "201, order 1", work, 1, "absent", "arrival, work, commit, answer 201"},
		{"none", honour, "", "201, order 1", work, 1, "absent", "arrival, work, commit, answer 201"},
		{"one that nobody can read", honour, "soon", "201, order 1", work, 1, "absent", "arrival, work, commit, answer 201"},
		{"long enough", honour, "13S", "201, order 1", work, 1, "absent", "arrival, work, commit, answer 201"},
		{"over", honour, "5S", "504, deadline", 5 * time.Second, 0, "absent", "arrival, work, timeout deadline, answer 504"},
		{"over at once", honour, "0n", "504, deadline", 0, 0, "absent", "arrival, work, timeout deadline, answer 504"},
		{"before the guard", delayed, "5S", "504, deadline", 5 * time.Second, 0, "absent", "arrival, fault delay@before-guard, timeout deadline, answer 504"},
		{
			// What is committed is not taken back.
			"after the commit", late, "5S", "201, order 1", 9 * time.Second, 1, "absent",
			"arrival, work, commit, fault delay@after-commit, answer 201",
		},
		{
			"claim first, kept", guarded(guard.Settings{Kind: "unique-index"}), "5S", "504, deadline", 5 * time.Second, 0, "processing",
			"arrival, claim won, work, timeout deadline, answer 504",
		},
		{
			"claim first, deleted", guarded(guard.Settings{Kind: "unique-index", OnFailure: "delete"}), "5S", "504, deadline", 5 * time.Second, 0, "absent",
			"arrival, claim won, work, timeout deadline, answer 504",
		},
		{
			"same transaction", guarded(guard.Settings{Kind: "same-transaction"}), "5S", "504, deadline", 5 * time.Second, 0, "absent",
			"arrival, claim won, work, rollback given up, timeout deadline, answer 504",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got answer
			var key string
			b := play(t, tt.config, func(b *bench) {
				got = b.send(order("send-1", "k").within(tt.deadline))
				b.settle()
				key = keyState(b, "k")
			})
			diff(t, "the client got", tt.got, got.String())
			diff(t, "at", tt.at, got.at)
			diff(t, "orders", tt.orders, len(b.effects))
			diff(t, "key", tt.key, key)
			diff(t, "journal", tt.journal, b.journal("send-1"))
		})
	}
}

// TestDeadlineOfAClientThatLeft answers as if somebody were there: it has not looked.
func TestDeadlineOfAClientThatLeft(t *testing.T) {
	t.Parallel()
	b := play(t, slowserver.Config{Processing: work, HonourDeadline: true}, func(b *bench) {
		b.send(order("send-1", "").within("5S").leaving(4 * time.Second))
	})
	diff(t, "journal", "arrival, work, timeout deadline, answer 504", b.journal("send-1"))
	diff(t, "at", 5*time.Second, b.when("send-1", lab.Answer))
	diff(t, "orders", 0, len(b.effects))
}
