package slowserver_test

import (
	"testing"
	"time"

	"retrylab/slowserver"
	"retrylab/slowserver/fault"
	"retrylab/slowserver/guard"
)

// TestAccepted: a request that the guard lets through is answered at once and done afterwards, whoever
// is there; a duplicate gets what the guard gives.
func TestAccepted(t *testing.T) {
	t.Parallel()
	config := slowserver.Config{AnswerAccepted: true, Processing: 10 * time.Second, Guard: guard.Settings{Kind: "unique-index"}}
	b := play(t, config, func(b *bench) {
		diff(t, "first", 202, b.send(order("send-1", "k").leaving(time.Second)).status)
		diff(t, "while it is at work", 409, b.send(order("send-2", "k").after(5*time.Second)).status)
		diff(t, "when it is done", 201, b.send(order("send-3", "k").after(11*time.Second)).status)
	})
	diff(t, "orders of", []string{"send-1"}, b.owners())
	diff(t, "done at", 10*time.Second, b.effects[0].Created.Round(time.Millisecond))
}

// TestAcceptedWaitsForAWorker: to accept takes no worker, and to do does.
func TestAcceptedWaitsForAWorker(t *testing.T) {
	t.Parallel()
	config := slowserver.Config{AnswerAccepted: true, Processing: 10 * time.Second}
	config.Pool.Workers = 1
	b := play(t, config, func(b *bench) {
		for _, id := range []string{"send-1", "send-2"} {
			diff(t, id, 202, b.send(order(id, "").leaving(time.Second)).status)
		}
	})
	for i, e := range b.effects {
		diff(t, "done at", time.Duration(i+1)*10*time.Second, e.Created.Round(10*time.Millisecond))
	}
	diff(t, "orders", 2, len(b.effects))
}

// TestAcceptedReply: what strikes the 202 does not strike the work.
func TestAcceptedReply(t *testing.T) {
	t.Parallel()
	b := play(t, slowserver.Config{AnswerAccepted: true, Processing: time.Second, Faults: []fault.Settings{{At: fault.InReply, Do: "close"}}}, func(b *bench) {
		diff(t, "answer", "EOF", b.send(order("send-1", "")).broken)
	})
	diff(t, "orders of", []string{"send-1"}, b.owners())
}

// TestImpossibleAccepted: what would promise more than it can keep is refused.
func TestImpossibleAccepted(t *testing.T) {
	t.Parallel()
	afterwards := func(f func()) { go f() }
	for name, c := range map[string]slowserver.Config{
		"nobody runs it":      {AnswerAccepted: true},
		"an open transaction": {AnswerAccepted: true, Afterwards: afterwards, Guard: guard.Settings{Kind: "same-transaction"}},
	} {
		if _, err := slowserver.New(t.Context(), c); err == nil {
			t.Errorf("%s: there is a service", name)
		}
	}
}
