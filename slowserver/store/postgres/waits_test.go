package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"retrylab/internal/vtime"
	"retrylab/slowserver/store"
)

// plot is a script of transactions on the virtual clock, and the journal of what they came to.
type plot struct {
	*testing.T
	store store.Store
	clock *vtime.Clock
	all   sync.WaitGroup

	mu     sync.Mutex
	events []string
}

// play runs a plot in a bubble and returns its journal.
func play(t *testing.T, d *Database, f func(p *plot)) []string {
	t.Helper()
	seat, err := d.Seat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := seat.Leave(); err != nil {
			t.Error(err)
		}
	}()
	var out []string
	synctest.Test(t, func(t *testing.T) {
		p := &plot{T: t, clock: vtime.NewVirtual(time.Time{})}
		yield := func(ctx context.Context, id string) error {
			return p.clock.Sleep(ctx, time.Duration(1000+len(id)+int(id[len(id)-1]))*time.Nanosecond)
		}
		var err error
		if p.store, err = seat.Open(store.Options{Clock: p.clock, Yield: yield}); err != nil {
			t.Fatal(err)
		}
		f(p)
		p.all.Wait()
		out = p.events
	})
	return out
}

// note writes what happened into the journal, with the scenario time.
func (p *plot) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, fmt.Sprintf("%s: ", p.clock.Now().Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

// wait lets scenario time pass.
func (p *plot) wait(d time.Duration) {
	if err := p.clock.Sleep(context.Background(), d); err != nil {
		p.Error(err)
	}
}

// actor is one transaction of a plot.
type actor struct {
	*plot
	name string
	tx   store.Tx
	ctx  context.Context
}

// at starts an actor at a time.
func (p *plot) at(at time.Duration, name string, o store.TxOptions, f func(a *actor)) {
	p.all.Go(func() {
		p.wait(at)
		tx, err := p.store.Begin(p.Context(), name, o)
		if err != nil {
			p.note("%s: %v", name, class(err))
			return
		}
		f(&actor{p, name, tx, p.Context()})
	})
}

// again begins another transaction.
func (a *actor) again() {
	tx, err := a.store.Begin(a.ctx, a.name, none)
	if err != nil {
		a.Error(err)
		return
	}
	a.tx = tx
}

// class is the class of an error, as a journal shows it.
func class(err error) error {
	for _, c := range []error{store.ErrDuplicate, store.ErrSerialization, store.ErrDeadlock, store.ErrBusy, store.ErrAborted, store.ErrUnknownOutcome, store.ErrLost, context.DeadlineExceeded} {
		if errors.Is(err, c) {
			return c
		}
	}
	return err
}

func (a *actor) claim(key string) {
	fence, err := a.tx.Claim(a.ctx, key, store.Claim{Hash: "h", Owner: a.name})
	switch {
	case err != nil:
		a.note("%s claims %s: %v", a.name, key, class(err))
	case fence == 0:
		a.note("%s claims %s: taken", a.name, key)
	default:
		a.note("%s claims %s: won", a.name, key)
	}
}

func (a *actor) touch(row string) {
	if _, err := a.tx.Write(a.ctx, store.Write{Row: row, Do: store.Add, By: 1}); err != nil {
		a.note("%s touches %s: %v", a.name, row, class(err))
		return
	}
	a.note("%s touches %s", a.name, row)
}

func (a *actor) commit() {
	if err := a.tx.Commit(); err != nil {
		a.note("%s commits: %v", a.name, class(err))
		return
	}
	a.note("%s commits", a.name)
}

func (a *actor) rollback() {
	if err := a.tx.Rollback(); err != nil {
		a.note("%s rolls back: %v", a.name, class(err))
		return
	}
	a.note("%s rolls back", a.name)
}

func (a *actor) order() {
	if _, err := a.tx.Order(a.ctx, store.Order{Operation: "op-1", Send: a.name, Node: "n", Amount: 1}); err != nil {
		a.note("%s orders: %v", a.name, class(err))
	}
}

var none store.TxOptions

// plots are lock waits whose course is known to the millisecond.
var plots = []struct {
	name string
	f    func(p *plot)
	want []string
}{
	{
		"a second claim of the key returns when the first has committed",
		func(p *plot) {
			p.at(0, "A", none, func(a *actor) { a.claim("k"); a.wait(12 * time.Second); a.commit() })
			p.at(6*time.Second, "B", none, func(a *actor) { a.claim("k"); a.rollback() })
			p.at(9*time.Second, "C", none, func(a *actor) { a.claim("other"); a.commit() })
		},
		[]string{
			"0s: A claims k: won", "9s: C claims other: won", "9s: C commits",
			"12s: A commits", "12s: B claims k: taken", "12s: B rolls back",
		},
	},
	{
		"a waiter whose holder rolls back has won",
		func(p *plot) {
			p.at(0, "A", none, func(a *actor) { a.claim("k"); a.wait(12 * time.Second); a.rollback() })
			p.at(6*time.Second, "B", none, func(a *actor) { a.claim("k"); a.wait(time.Second); a.commit() })
			p.at(7*time.Second, "C", none, func(a *actor) { a.claim("k"); a.rollback() })
		},
		[]string{
			"0s: A claims k: won", "12s: A rolls back", "12s: B claims k: won",
			"13s: B commits", "13s: C claims k: taken", "13s: C rolls back",
		},
	},
	{
		"a waiter that waits for a waiter",
		func(p *plot) {
			p.at(0, "A", none, func(a *actor) { a.claim("k1"); a.wait(12 * time.Second); a.commit() })
			p.at(time.Second, "B", none, func(a *actor) { a.claim("k2"); a.claim("k1"); a.wait(time.Second); a.commit() })
			p.at(2*time.Second, "C", none, func(a *actor) { a.claim("k2"); a.rollback() })
		},
		[]string{
			"0s: A claims k1: won", "1s: B claims k2: won", "12s: A commits", "12s: B claims k1: taken",
			"13s: B commits", "13s: C claims k2: taken", "13s: C rolls back",
		},
	},
	{
		"one commit lets the waiters of two keys go",
		func(p *plot) {
			p.at(0, "A", none, func(a *actor) { a.claim("k1"); a.claim("k2"); a.wait(5 * time.Second); a.commit() })
			p.at(time.Second, "B", none, func(a *actor) { a.claim("k1"); a.rollback() })
			p.at(2*time.Second, "C", none, func(a *actor) { a.claim("k2"); a.rollback() })
		},
		[]string{
			"0s: A claims k1: won", "0s: A claims k2: won", "5s: A commits",
			"5s: B claims k1: taken", "5s: B rolls back", "5s: C claims k2: taken", "5s: C rolls back",
		},
	},
	{
		"a statement is cancelled while it waits, and the one behind it goes on waiting",
		func(p *plot) {
			p.at(0, "A", none, func(a *actor) { a.claim("k"); a.wait(12 * time.Second); a.commit() })
			p.at(time.Second, "B", none, func(a *actor) {
				var cancel func()
				a.ctx, cancel = context.WithTimeout(a.ctx, 2*time.Second)
				defer cancel()
				a.claim("k")
				a.rollback()
			})
			p.at(2*time.Second, "C", none, func(a *actor) { a.claim("k"); a.rollback() })
			p.at(2*time.Second+time.Millisecond, "D", none, func(a *actor) {
				var cancel func()
				a.ctx, cancel = context.WithTimeout(a.ctx, 2*time.Second)
				defer cancel()
				a.claim("k") // it gives up before its turn has come
				a.rollback()
			})
		},
		[]string{
			"0s: A claims k: won", "3s: B claims k: context deadline exceeded", "3s: B rolls back",
			"4.001s: D claims k: context deadline exceeded", "4.001s: D rolls back",
			"12s: A commits", "12s: C claims k: taken", "12s: C rolls back",
		},
	},
	{
		"a lock time-out, in scenario time",
		func(p *plot) {
			busy := store.TxOptions{LockTimeout: 50 * time.Millisecond}
			p.at(0, "A", busy, func(a *actor) { a.claim("k"); a.wait(12 * time.Second); a.commit() })
			p.at(time.Second, "B", busy, func(a *actor) { a.claim("k"); a.order(); a.rollback() })
			p.at(time.Second+2*time.Millisecond, "C", busy, func(a *actor) { a.claim("k"); a.rollback() })
			p.at(11980*time.Millisecond, "D", busy, func(a *actor) { a.claim("k"); a.rollback() })
		},
		[]string{
			"0s: A claims k: won",
			"1.05s: B claims k: " + store.ErrBusy.Error(), "1.05s: B orders: " + store.ErrAborted.Error(), "1.05s: B rolls back",
			"1.052s: C claims k: " + store.ErrBusy.Error(), "1.052s: C rolls back",
			"12s: A commits", "12s: D claims k: taken", "12s: D rolls back",
		},
	},
	{
		"who closes the circle is the victim",
		func(p *plot) {
			p.at(0, "A", none, func(a *actor) { a.touch("x"); a.wait(2 * time.Second); a.touch("y"); a.commit() })
			p.at(time.Second, "B", none, func(a *actor) { a.touch("y"); a.wait(2 * time.Second); a.touch("x"); a.rollback() })
		},
		[]string{
			"0s: A touches x", "1s: B touches y", "3s: B touches x: " + store.ErrDeadlock.Error(),
			"3s: A touches y", "3s: A commits", "3s: B rolls back",
		},
	},
	{
		"the victim that begins again in the same moment waits for its turn",
		func(p *plot) {
			p.at(0, "A", none, func(a *actor) {
				a.touch("x")
				a.wait(2 * time.Second)
				a.touch("y")
				a.wait(time.Second)
				a.commit()
			})
			p.at(time.Second, "B", none, func(a *actor) {
				a.touch("y")
				a.wait(2 * time.Second)
				a.touch("x")
				a.rollback()
				a.again()
				a.touch("y")
				a.touch("x")
				a.commit()
			})
		},
		[]string{
			"0s: A touches x", "1s: B touches y", "3s: B touches x: " + store.ErrDeadlock.Error(), "3s: B rolls back",
			"3s: A touches y", "4s: A commits", "4s: B touches y", "4s: B touches x", "4s: B commits",
		},
	},
	{
		"a circle of three",
		func(p *plot) {
			for i, name := range []string{"A", "B", "C"} {
				rows := []string{"x", "y", "z"}
				p.at(time.Duration(i)*time.Second, name, none, func(a *actor) {
					a.touch(rows[i])
					a.wait(5 * time.Second)
					a.touch(rows[(i+1)%3])
					if a.name == "C" {
						a.rollback()
					} else {
						a.commit()
					}
				})
			}
		},
		[]string{
			"0s: A touches x", "1s: B touches y", "2s: C touches z",
			"7s: C touches x: " + store.ErrDeadlock.Error(), "7s: B touches z", "7s: B commits",
			"7s: C rolls back", "7s: A touches y", "7s: A commits",
		},
	},
	{
		"a circle through one that waits for its turn",
		func(p *plot) {
			p.at(0, "H", none, func(a *actor) { a.claim("k1"); a.wait(10 * time.Second); a.claim("k2"); a.rollback() })
			p.at(time.Second, "B", none, func(a *actor) { a.claim("k1"); a.rollback() })
			p.at(2*time.Second, "A", none, func(a *actor) { a.claim("k2"); a.claim("k1"); a.commit() })
		},
		[]string{
			"0s: H claims k1: won", "2s: A claims k2: won",
			"10s: A claims k1: " + store.ErrDeadlock.Error(), "10s: A commits: " + store.ErrAborted.Error(),
			"10s: H claims k2: won", "10s: H rolls back", "10s: B claims k1: won", "10s: B rolls back",
		},
	},
	{
		"who holds the key finishes it, whoever waits",
		func(p *plot) {
			p.at(0, "A", none, func(a *actor) {
				a.claim("k")
				a.wait(5 * time.Second)
				held, err := a.tx.Finish(a.ctx, "k", store.Holder{}, store.Record{Status: store.Done, Code: 201})
				a.note("A finishes k: %v, %v", held, err)
				a.commit()
			})
			p.at(time.Second, "B", none, func(a *actor) { a.claim("k"); a.rollback() })
			p.at(2*time.Second, "C", none, func(a *actor) { a.claim("k"); a.rollback() })
		},
		[]string{
			"0s: A claims k: won", "5s: A finishes k: true, <nil>", "5s: A commits",
			"5s: B claims k: taken", "5s: B rolls back", "5s: C claims k: taken", "5s: C rolls back",
		},
	},
	{
		"a session that is idle in its transaction is ended, and the key is free",
		func(p *plot) {
			p.at(0, "A", store.TxOptions{IdleTimeout: 10 * time.Second}, func(a *actor) {
				a.claim("k")
				a.wait(9 * time.Second)
				a.order() // not idle
				a.wait(20 * time.Second)
				a.order()
				a.commit()
			})
			p.at(time.Second, "B", none, func(a *actor) { a.claim("k"); a.commit() })
		},
		[]string{
			"0s: A claims k: won", "19s: B claims k: won", "19s: B commits",
			"29s: A orders: " + store.ErrLost.Error(), "29s: A commits: " + store.ErrUnknownOutcome.Error(),
		},
	},
	{
		"a partition leaves the key held until the session is ended",
		func(p *plot) {
			p.at(0, "A", store.TxOptions{IdleTimeout: 10 * time.Second}, func(a *actor) {
				a.claim("k")
				a.order()
				a.tx.(store.Cutter).Cut(store.Partition)
			})
			p.at(time.Second, "B", store.TxOptions{LockTimeout: 2 * time.Second}, func(a *actor) { a.claim("k"); a.rollback() })
			p.at(9*time.Second, "C", store.TxOptions{LockTimeout: 2 * time.Second}, func(a *actor) { a.claim("k"); a.commit() })
		},
		[]string{
			"0s: A claims k: won", "3s: B claims k: " + store.ErrBusy.Error(), "3s: B rolls back",
			"10s: C claims k: won", "10s: C commits",
		},
	},
	{
		"a snapshot is taken when a claim comes, not when it is let go",
		func(p *plot) {
			rr := store.TxOptions{Isolation: store.RepeatableRead}
			p.at(0, "A", rr, func(a *actor) { a.claim("k"); a.wait(12 * time.Second); a.commit() })
			p.at(6*time.Second, "B", rr, func(a *actor) { a.claim("k"); a.rollback() })
			p.at(7*time.Second, "C", rr, func(a *actor) { a.claim("k"); a.rollback() })
			p.at(13*time.Second, "D", rr, func(a *actor) { a.claim("k"); a.rollback() })
		},
		[]string{
			"0s: A claims k: won", "12s: A commits",
			"12s: B claims k: " + store.ErrSerialization.Error(), "12s: B rolls back",
			"12s: C claims k: " + store.ErrSerialization.Error(), "12s: C rolls back",
			"13s: D claims k: taken", "13s: D rolls back",
		},
	},
}

func TestPlots(t *testing.T) {
	t.Parallel()
	d := open(t, Options{Jobs: 2})
	t.Run("plots", func(t *testing.T) {
		for _, c := range plots {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				got := play(t, d, c.f)
				// Two that act in one millisecond are in the order of the microseconds between them,
				// which is theirs.
				slices.Sort(got)
				want := slices.Sorted(slices.Values(c.want))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("journal, sorted (-want +got):\n%s", diff)
				}
			})
		}
	})
}

// TestPlotsAgain plays each plot again and again: the journals are the same, in their order too.
func TestPlotsAgain(t *testing.T) {
	t.Parallel()
	d := open(t, Options{Jobs: 2})
	t.Run("plots", func(t *testing.T) {
		for _, c := range append(plots, struct {
			name string
			f    func(p *plot)
			want []string
		}{"twelve", twelve, nil}) {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				first := play(t, d, c.f)
				for range 9 {
					if diff := cmp.Diff(first, play(t, d, c.f)); diff != "" {
						t.Fatalf("another journal (-first +now):\n%s", diff)
					}
				}
			})
		}
	})
}

// twelve claim one key while it is held; each that gets it gives it up.
func twelve(p *plot) {
	p.at(0, "holder", none, func(a *actor) { a.claim("k"); a.wait(12 * time.Second); a.rollback() })
	for i := range 12 {
		p.at(time.Duration(i+1)*time.Millisecond, fmt.Sprintf("waiter-%02d", i), none, func(a *actor) {
			a.claim("k")
			a.rollback()
		})
	}
}

// TestTwelveWaitersInOrder lets them go one by one, in the order in which they came.
func TestTwelveWaitersInOrder(t *testing.T) {
	t.Parallel()
	d := open(t, Options{})
	journal := play(t, d, twelve)
	var served []string
	for _, e := range journal {
		if name, ok := strings.CutSuffix(strings.TrimPrefix(e, "12s: "), " claims k: won"); ok && name != "0s: holder" {
			served = append(served, name)
		}
	}
	var want []string
	for i := range 12 {
		want = append(want, fmt.Sprintf("waiter-%02d", i))
	}
	if diff := cmp.Diff(want, served); diff != "" {
		t.Errorf("served (-want +got):\n%s\n%s", diff, strings.Join(journal, "\n"))
	}
}

// TestWaiting asks who waits for whom while nobody can go on.
func TestWaiting(t *testing.T) {
	t.Parallel()
	d := open(t, Options{})
	var waits []string
	play(t, d, func(p *plot) {
		p.at(0, "A", none, func(a *actor) { a.claim("k"); a.wait(10 * time.Second); a.commit() })
		p.at(time.Second, "B", none, func(a *actor) { a.claim("k"); a.rollback() })
		p.at(2*time.Second, "C", none, func(a *actor) { a.claim("k"); a.rollback() })
		p.wait(3 * time.Second)
		waits = p.store.(*Store).Waiting()
	})
	if diff := cmp.Diff([]string{"B waits for A (key k)", "C waits for its turn (key k)"}, waits); diff != "" {
		t.Errorf("who waits for whom (-want +got):\n%s", diff)
	}
}

// TestStall has a statement wait for somebody who is none of the trial's and does not end: it is
// given up in real time, and whoever reads the effects is told who waits for whom.
func TestStall(t *testing.T) {
	t.Parallel()
	d := open(t, Options{})
	d.patience = 300 * time.Millisecond
	stranger, err := d.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.close()
	var effects error
	journal := play(t, d, func(p *plot) {
		s := p.store.(*Store)
		s.outside.Do(func() {
			_, err = stranger.conn.Exec(context.Background(), "BEGIN; LOCK TABLE "+s.tables.idempotencyName)
		})
		if err != nil {
			t.Fatal(err)
		}
		p.at(0, "A", none, func(a *actor) { a.claim("k"); a.rollback() })
		p.all.Wait()
		effects = s.Lost()
	})
	if len(journal) == 0 || !strings.HasPrefix(journal[0], "0s: A claims k: "+store.ErrLost.Error()) {
		t.Errorf("%q: want a claim that is lost", journal)
	}
	if effects == nil || !strings.Contains(effects.Error(), "waits for "+fmt.Sprint(stranger.pid)) {
		t.Errorf("%v: want who waits for %d", effects, stranger.pid)
	}
}
