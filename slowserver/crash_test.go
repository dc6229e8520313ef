package slowserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"retrylab/internal/lab"
	"retrylab/slowserver"
	"retrylab/slowserver/fault"
	"retrylab/slowserver/guard"
)

// crashing is a service of 1 s of work whose first arrival kills its replica.
func crashing(kind string, at fault.Place) slowserver.Config {
	return slowserver.Config{
		Processing: time.Second, Guard: guard.Settings{Kind: kind},
		Faults: []fault.Settings{{At: at, Do: "crash", Restart: 5 * time.Second, Arrivals: []int{1}}},
	}
}

// lives is what was recorded of the replicas themselves.
func (b *bench) lives() string {
	var out []string
	for _, e := range b.events {
		if e.Kind == lab.Crash || e.Kind == lab.Restart {
			out = append(out, fmt.Sprintf("%s %s %s", e.Node, e.Kind, e.At.Round(time.Millisecond)))
		}
	}
	return strings.Join(out, ", ")
}

// TestCrashTakesEverybodyAlong: what else is under way at the replica stops where it is, and at the
// other replica nothing does.
func TestCrashTakesEverybodyAlong(t *testing.T) {
	t.Parallel()
	var got []answer
	b := play(t, crashing("none", fault.BeforeCommit), func(b *bench) {
		got = b.sendAll(order("send-1", ""), order("send-2", "").after(300*time.Millisecond), order("send-3", "").after(400*time.Millisecond).to(2))
	})
	diff(t, "answers", []string{"EOF", "EOF", "201, order 1"}, texts(got))
	diff(t, "the first ended at", time.Second, got[0].at)
	diff(t, "the second ended at", time.Second, got[1].at)
	diff(t, "journal of the first", "arrival, work, fault crash@before-commit, crash", b.journal("send-1"))
	diff(t, "journal of the second", "arrival, work", b.journal("send-2"))
	diff(t, "orders of", []string{"send-3"}, b.owners())
	diff(t, "fired", []int{1}, b.service.Tally().Fired())
}

// TestCrashRollsBack: the database gives up what the replica had open, at that instant, and lets in
// who waits for it elsewhere; who waits at the replica itself is not let in any more.
func TestCrashRollsBack(t *testing.T) {
	t.Parallel()
	var got []answer
	var key string
	b := play(t, crashing("same-transaction", fault.BeforeCommit), func(b *bench) {
		got = b.sendAll(order("send-1", "k"),
			order("send-2", "k").after(100*time.Millisecond), order("send-3", "k").after(200*time.Millisecond).to(2))
		key = keyState(b, "k")
	})
	diff(t, "answers", []string{"EOF", "EOF", "201, order 1"}, texts(got))
	diff(t, "created at", 2*time.Second, got[2].at)
	diff(t, "rolled back at", time.Second, b.when("send-1", lab.Rollback))
	diff(t, "journal of the first", "arrival, claim won, work, fault crash@before-commit, crash, rollback crash", b.journal("send-1"))
	diff(t, "journal of the second", "arrival", b.journal("send-2"))
	diff(t, "key", "done", key)
	diff(t, "orders of", []string{"send-3"}, b.owners())
}

// TestRestart: nobody listens until the replica has restarted, and then it serves as before.
func TestRestart(t *testing.T) {
	t.Parallel()
	var again answer
	b := play(t, crashing("none", fault.AfterCommit), func(b *bench) {
		idle := must(b.network.Dial(context.Background(), "order-1", "idle"))
		defer idle.Close()
		b.send(order("send-1", ""))
		if _, err := idle.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			panic(fmt.Errorf("the idle connection: %w", err))
		}
		for _, at := range []time.Duration{1100 * time.Millisecond, 5900 * time.Millisecond} {
			check(b.clock.Sleep(context.Background(), at-b.clock.Now()))
			if _, err := b.network.Dial(context.Background(), "order-1", "early"); !errors.Is(err, syscall.ECONNREFUSED) {
				panic(fmt.Errorf("while it is down: %w", err))
			}
		}
		again = b.send(order("send-2", "").after(6100 * time.Millisecond))
	})
	diff(t, "after the restart", "201, order 2", again.String())
	diff(t, "at", 7100*time.Millisecond, again.at)
	diff(t, "lives", "order-1 crash 1s, order-1 restart 6s", b.lives())
}

// TestCrashAgain kills the second life of a replica too.
func TestCrashAgain(t *testing.T) {
	t.Parallel()
	c := crashing("unique-index", fault.BeforeGuard)
	c.Faults[0].Arrivals = []int{1, 2}
	var got []answer
	b := play(t, c, func(b *bench) {
		got = b.sendAll(order("send-1", "k"), order("send-2", "k").after(6*time.Second), order("send-3", "k").after(12*time.Second))
	})
	diff(t, "answers", []string{"EOF", "EOF", "201, order 1"}, texts(got))
	diff(t, "lives", "order-1 crash 0s, order-1 restart 5s, order-1 crash 6s, order-1 restart 11s", b.lives())
	diff(t, "fired", []int{2}, b.service.Tally().Fired())
}

// TestCrashWithClientsOnTheirWay: half a request, an answer that is being written, and a duplicate
// that waits for the first end with the replica, whatever they wait for.
func TestCrashWithClientsOnTheirWay(t *testing.T) {
	t.Parallel()
	c := crashing("unique-index", fault.BeforeCommit)
	c.Guard.InProgress = "wait"
	c.Faults[0].Arrivals = []int{2}
	c.Faults = append(c.Faults, fault.Settings{At: fault.InReply, Do: "dribble", Chunks: 10, ChunkSize: 100, Pause: time.Second, Arrivals: []int{1}})
	var got []answer
	b := play(t, c, func(b *bench) {
		half := must(b.network.Dial(context.Background(), "order-1", "half"))
		defer half.Close()
		must(half.Write([]byte("POST /orders HTTP/1.1\r\nHost: order\r\nContent-Length: 100\r\n\r\n{")))
		got = b.sendAll(order("send-1", "k1"), order("send-2", "k2").after(3*time.Second), order("send-3", "k2").after(3500*time.Millisecond))
		if _, err := half.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			panic(fmt.Errorf("half a request: %w", err))
		}
	})
	diff(t, "answers", []string{"201, order 1, EOF", "EOF", "EOF"}, texts(got))
	for _, a := range got {
		diff(t, "ended at", 4*time.Second, a.at)
	}
	diff(t, "journal of the duplicate", "arrival, claim held", b.journal("send-3"))
	diff(t, "orders of", []string{"send-1"}, b.owners())
	for _, e := range b.events {
		if e.At > 4*time.Second+time.Millisecond && e.Kind != lab.Restart {
			t.Errorf("after the crash: %+v", e)
		}
	}
}

// TestNoHost refuses the fault where nothing can be killed.
func TestNoHost(t *testing.T) {
	t.Parallel()
	if _, err := slowserver.New(t.Context(), crashing("none", fault.AfterCommit)); err == nil {
		t.Error("a crash without a host was taken")
	}
}
