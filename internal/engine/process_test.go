//go:build unix

package engine_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"retrylab/internal/engine"
	"retrylab/internal/judge"
	"retrylab/internal/lab"
	"retrylab/scenarios"
)

// killed is a trial whose server is killed at a point of the first arrival, and is there again when
// the caller tries again.
func killed(t *testing.T, guard, at string) scenarios.Trial {
	t.Helper()
	return parse(t, fmt.Sprintf(`
name: killed
caller:
  key: operation
  layers: [{preset: retry, attempts: 3, wait: 2s, on: [eof, reset, refused, 409]}]
server:
  processing: 1s
  processes: true
  guard: %s
  faults: [{at: %s, do: crash, restart: 1s, arrivals: [1]}]
`, guard, at))
}

// TestKilled kills real processes at each point, and plays the same on the virtual clock: the counts
// are those that were measured before there was a lab.
func TestKilled(t *testing.T) {
	t.Parallel()
	database := openSQLite(t)
	for _, c := range []struct {
		guard, at       string
		effects, sends  int
		belief          lab.Belief
		reason, because string
	}{
		{"none", "before-guard", 1, 2, lab.OK, "201", "nothing had begun"},
		{"none", "after-claim", 1, 2, lab.OK, "201", "nothing had begun"},
		{"none", "before-commit", 1, 2, lab.OK, "201", "nothing was there"},
		{"none", "after-commit", 2, 2, lab.OK, "201", "nobody knew of the first"},
		{"same-transaction", "after-claim", 1, 2, lab.OK, "201", "the claim went with its transaction"},
		{"same-transaction", "before-commit", 1, 2, lab.OK, "201", "the claim went with its transaction"},
		{"same-transaction", "after-commit", 1, 2, lab.OK, "201 replay", "claim and order are both there"},
		{"unique-index", "before-guard", 1, 2, lab.OK, "201", "nothing was claimed"},
		{"unique-index", "after-claim", 0, 3, lab.Unknown, "409 in progress", "nobody finishes the claim"},
		{"unique-index", "before-commit", 0, 3, lab.Unknown, "409 in progress", "nobody finishes the claim"},
		{"unique-index", "after-commit", 1, 2, lab.OK, "201 replay", "claim and order are both there"},
	} {
		t.Run(c.guard+" "+c.at, func(t *testing.T) {
			t.Parallel()
			trial := killed(t, c.guard, c.at)
			for _, run := range []struct {
				clock string
				lab   *engine.Lab
			}{{"virtual", engine.New(database, engine.Virtual, 1)}, {"wall", newWall(t, database, 8)}} {
				obs := run.lab.Run(t.Context(), trial)
				if obs.Broken != "" {
					if obs.Defect || obs.Environment || run.clock == "virtual" {
						t.Errorf("on the %s clock: %s", run.clock, obs.Broken)
					} else {
						t.Logf("on the %s clock: %s", run.clock, obs.Broken)
					}
					continue
				}
				r := judge.Decide(trial, obs)
				got := fmt.Sprint(r.Counts.Effects, " ", r.Counts.Sends, " ", obs.Outcomes[0].Belief, " ", obs.Outcomes[0].Reason)
				if want := fmt.Sprint(c.effects, " ", c.sends, " ", c.belief, " ", c.reason); got != want {
					t.Errorf("on the %s clock: %s, want %s, since %s\n%s", run.clock, got, want, c.because, journal(obs))
				}
				var lives []string
				for _, e := range obs.Events {
					if e.Kind == lab.Crash || e.Kind == lab.Restart {
						lives = append(lives, e.Node+" "+string(e.Kind))
					}
				}
				if want := []string{"order-1 crash", "order-1 restart"}; !slices.Equal(lives, want) {
					t.Errorf("on the %s clock the replica's life is %v", run.clock, lives)
				}
			}
		})
	}
}

// TestProcessesShare has two replicas in two processes: arrivals are numbered over both, a duplicate
// that waits at the one is woken by the commit of the other, and requests overlap.
func TestProcessesShare(t *testing.T) {
	t.Parallel()
	trial := parse(t, `
name: share
concurrency: 2
stagger: 1s
caller:
  key: operation
  layers: [{preset: spring-lb, same: 0, next: 0}]
server:
  processing: 4s
  processes: true
  replicas: 2
  guard: {kind: unique-index, in-progress: wait}
  faults: [{at: in-reply, do: delay, delay: 1s, arrivals: [2]}]
expect: {sends: 2, effects: 1, arrivals-at: {order-1: 1, order-2: 1}, answers: {201: 2}, orders-told: 1}
premises: [overlap == 1]
`)
	database := openSQLite(t)
	for _, l := range []*engine.Lab{engine.New(database, engine.Virtual, 1), newWall(t, database, 8)} {
		obs := l.Run(t.Context(), trial)
		if obs.Broken != "" && !obs.Defect && !obs.Environment {
			t.Log(obs.Broken)
			continue
		}
		if r := judge.Decide(trial, obs); r.Verdict != lab.AsExpected {
			t.Errorf("%s %s %v\n%s", r.Verdict, r.Why, failed(r), journal(obs))
		}
	}
}

// TestNoProcess: a process that cannot be had, or does not live, is no result.
func TestNoProcess(t *testing.T) {
	t.Parallel()
	database := openSQLite(t)
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		command []string
		says    string
	}{
		{"no command", nil, "nobody has said which command runs them"},
		{"nothing there", []string{t.TempDir() + "/nothing"}, "start order-1 as a process: "},
		{"it ends at once", []string{path, "-test.run=^$"}, "the process of order-1 ended by itself: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := engine.New(database, engine.Wall, 8)
			l.Replica = c.command
			obs := l.Run(t.Context(), killed(t, "none", "after-commit"))
			if !strings.Contains(obs.Broken, c.says) || obs.Defect {
				t.Errorf("broken: %q, defect %v; want %q", obs.Broken, obs.Defect, c.says)
			}
		})
	}
}

// TestProcessesEnd interrupts a trial in the middle: its processes go with it.
func TestProcessesEnd(t *testing.T) {
	// Not parallel: it counts the children of this process.
	trial := parse(t, `{name: long, server: {processing: 1h, processes: true, replicas: 3}}`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan lab.Observation)
	l := newWall(t, openSQLite(t), 1)
	go func() { done <- l.Run(ctx, trial) }()
	for len(children(t, os.Getpid())) < 3 {
		select {
		case obs := <-done:
			t.Fatalf("it ended: %s", obs.Broken)
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if obs := <-done; obs.Broken != engine.ErrInterrupted.Error() {
		t.Errorf("broken: %q", obs.Broken)
	}
	if left := children(t, os.Getpid()); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}
