// Package storetest says what a [store.Store] is, as a suite that every implementation runs. It is
// for tests, and knows no engine: what only one of them does is tested beside it.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"retrylab/internal/lab"
	"retrylab/internal/vtime"
	"retrylab/slowserver/store"
)

// Sit takes a seat in a database for a test, and leaves it at the test's end. It is called outside
// any bubble.
type Sit func(t *testing.T) store.Seat

// Exercise runs the suite in real time.
func Exercise(t *testing.T, sit Sit) {
	t.Parallel()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(newBench(t, sit(t), vtime.NewWall(time.Time{}, 1)))
		})
	}
}

// ExerciseVirtual runs the suite on the virtual clock, a bubble for each case, and with it the
// cases that need to know when a goroutine is blocked.
func ExerciseVirtual(t *testing.T, sit Sit) {
	t.Parallel()
	for _, c := range slices.Concat(cases, virtualCases) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			seat := sit(t)
			synctest.Test(t, func(t *testing.T) { c.run(newBench(t, seat, vtime.NewVirtual(time.Time{}))) })
		})
	}
}

var cases = []struct {
	name string
	run  func(b *bench)
}{
	{"a key is claimed once", claimedOnce},
	{"what is not committed is seen inside and not outside", isolation},
	{"reading waits for no writer", readDoesNotWait},
	{"finish", finish},
	{"release", release},
	{"orders", orders},
	{"an empty store", empty},
	{"rollback leaves nothing", rollback},
	{"the end of a transaction is the end", ended},
	{"changed is closed by a commit", changed},
	{"changed is not closed by anything else", notChanged},
	{"a transaction outlives the context of its beginning", outlives},
	{"a claim waits for the one before it, which is committed", waitsForCommit},
	{"a claim waits for the one before it, which is rolled back", waitsForRollback},
	{"a wait ends with its context", cancelled},
	{"a context that has ended begins nothing", endedContext},
	{"twelve claims of one key", twelveClaims},
	{"twelve keys side by side", twelveKeys},
	{"a lease that has run out is taken over", takenOver},
	{"who does not hold a key changes nothing", fenced},
	{"a plain insert of a key that is there is a duplicate", duplicate},
	{"records that are too old are deleted", expired},
	{"an order is found by its key", placed},
	{"a reference belongs to one order", referenced},
	{"a row that requests share", shared},
	{"entries of a ledger", entries},
	{"the entries of a send", entriesOf},
	{"an entry in the order's transaction ends with it", entriesWithOrder},
	{"another system waits for no transaction", entriesElsewhere},
}

// virtualCases need a bubble: in real time nobody can know that a goroutine waits.
var virtualCases = []struct {
	name string
	run  func(b *bench)
}{
	{"who waits first is served first", inOrder},
	{"a commit wakes all who watch", wakesAll},
}

// bench is a store in a test. Its methods are for the goroutine of the test, unless they say
// otherwise.
type bench struct {
	*testing.T
	store.Store
}

func newBench(t *testing.T, seat store.Seat, clock store.Clock) *bench {
	s, err := seat.Open(store.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return &bench{t, s}
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) begin(id string) store.Tx {
	b.Helper()
	tx, err := b.Begin(b.Context(), id, store.TxOptions{})
	b.must(err)
	return tx
}

// do performs f in a transaction and commits it.
func (b *bench) do(f func(tx store.Tx)) {
	b.Helper()
	tx := b.begin("do")
	f(tx)
	b.must(tx.Commit())
}

func (b *bench) claim(tx store.Tx, key string, want bool) {
	b.Helper()
	fence, err := tx.Claim(b.Context(), key, by(key))
	b.must(err)
	if won := fence != 0; won != want {
		b.Errorf("claim of %q: won %v, want %v", key, won, want)
	}
}

// by is the claim of a key's only owner.
func by(key string) store.Claim {
	return store.Claim{Hash: "hash-" + key, Owner: "owner-" + key}
}

// finish finishes the record of a key, whoever holds it.
func (b *bench) finish(tx store.Tx, key string, r store.Record) {
	b.Helper()
	held, err := tx.Finish(b.Context(), key, store.Holder{}, r)
	b.must(err)
	if !held {
		b.Errorf("%q could not be finished", key)
	}
}

// release deletes the record of a key, whoever holds it.
func (b *bench) release(tx store.Tx, key string, want bool) {
	b.Helper()
	held, err := tx.Release(b.Context(), key, store.Holder{})
	b.must(err)
	if held != want {
		b.Errorf("release of %q: %v, want %v", key, held, want)
	}
}

func (b *bench) order(tx store.Tx, operation string) int64 {
	b.Helper()
	id, err := tx.Order(b.Context(), store.Order{Operation: operation, Send: operation + "/1", Node: "order-1", Amount: 5000})
	b.must(err)
	return id
}

// reader is where a key can be looked up: inside a transaction and outside.
type reader interface {
	Read(ctx context.Context, key string) (store.Record, bool, error)
}

func (b *bench) wantRecord(from reader, key string, want store.Record) {
	b.Helper()
	got, found, err := from.Read(b.Context(), key)
	b.must(err)
	if !found {
		b.Errorf("%q is not there, want %+v", key, want)
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("record of %q (-want +got):\n%s", key, diff)
	}
}

func (b *bench) wantAbsent(from reader, key string) {
	b.Helper()
	got, found, err := from.Read(b.Context(), key)
	b.must(err)
	if diff := cmp.Diff(store.Record{}, got); found || diff != "" {
		b.Errorf("%q: found %v, want nothing (-want +got):\n%s", key, found, diff)
	}
}

func (b *bench) wantCount(operation string, want int) {
	b.Helper()
	got, err := b.Count(b.Context(), operation)
	b.must(err)
	if got != want {
		b.Errorf("%q has %d orders, want %d", operation, got, want)
	}
}

// claimed is the record of a key after [bench.claim].
func claimed(key string) store.Record {
	return store.Record{Status: store.Processing, Hash: "hash-" + key, Owner: "owner-" + key, Fence: 1}
}

func claimedOnce(b *bench) {
	b.do(func(tx store.Tx) {
		b.claim(tx, "a", true)
		b.claim(tx, "a", false) // not twice in one transaction either
		b.claim(tx, "b", true)
	})
	b.do(func(tx store.Tx) {
		fence, err := tx.Claim(b.Context(), "a", store.Claim{Hash: "another", Owner: "late"})
		b.must(err)
		if fence != 0 {
			b.Error("a key was claimed twice")
		}
		b.wantRecord(tx, "a", claimed("a")) // the loser changes nothing
		b.claim(tx, "c", true)              // and its transaction goes on
	})
	for _, key := range []string{"a", "b", "c"} {
		b.wantRecord(b, key, claimed(key))
	}
}

func isolation(b *bench) {
	tx := b.begin("inside")
	b.claim(tx, "a", true)
	b.order(tx, "op-1")
	b.wantRecord(tx, "a", claimed("a"))
	b.wantAbsent(tx, "b")
	b.wantAbsent(b, "a")
	b.wantCount("op-1", 0)
	b.must(tx.Commit())
	b.wantRecord(b, "a", claimed("a"))
	b.wantCount("op-1", 1)
}

// readDoesNotWait would never return if it did: the transaction is open in its own goroutine.
func readDoesNotWait(b *bench) {
	b.do(func(tx store.Tx) { b.claim(tx, "a", true) })
	tx := b.begin("writer")
	b.finish(tx, "a", store.Record{Status: store.Done, Code: 201, Body: []byte("x")})
	b.wantRecord(b, "a", claimed("a"))
	if _, err := b.Effects(b.Context()); err != nil {
		b.Error(err)
	}
	b.must(tx.Rollback())
}

func finish(b *bench) {
	b.do(func(tx store.Tx) {
		b.claim(tx, "done", true)
		b.claim(tx, "failed", true)
		b.claim(tx, "open", true)
	})
	done := claimed("done")
	done.Status, done.Code, done.Body = store.Done, 201, []byte("{\"order\":1}\n\x00")
	failed := claimed("failed")
	failed.Status, failed.Code, failed.Body = store.Failed, 503, []byte("no")
	b.do(func(tx store.Tx) {
		b.finish(tx, "done", store.Record{Status: store.Done, Code: 201, Body: done.Body})
		b.finish(tx, "failed", store.Record{Status: store.Failed, Code: 503, Body: failed.Body})
		b.wantRecord(tx, "done", done)
	})
	b.wantRecord(b, "done", done)
	b.wantRecord(b, "failed", failed)
	b.wantRecord(b, "open", claimed("open"))
	b.do(func(tx store.Tx) {
		b.claim(tx, "done", false)
		b.claim(tx, "failed", false)
	})
}

func release(b *bench) {
	b.do(func(tx store.Tx) {
		b.claim(tx, "a", true)
		b.claim(tx, "b", true)
	})
	b.do(func(tx store.Tx) {
		b.release(tx, "a", true)
		b.release(tx, "never claimed", false)
		b.wantAbsent(tx, "a")
		b.wantRecord(b, "a", claimed("a"))
	})
	b.wantAbsent(b, "a")
	b.wantRecord(b, "b", claimed("b"))
	b.do(func(tx store.Tx) { b.claim(tx, "a", true) })
}

// takenOver has a key claimed by one after the other, as their leases run out.
func takenOver(b *bench) {
	claim := func(owner string, now, lease time.Duration, want int64) {
		b.Helper()
		b.do(func(tx store.Tx) {
			fence, err := tx.Claim(b.Context(), "a", store.Claim{Hash: "h", Owner: owner, Now: now, Lease: lease})
			b.must(err)
			if fence != want {
				b.Errorf("%s at %s: fence %d, want %d", owner, now, fence, want)
			}
		})
	}
	claim("A", 0, 10*time.Second, 1)
	claim("early", 10*time.Second-time.Microsecond, 10*time.Second, 0)
	b.wantRecord(b, "a", store.Record{Hash: "h", Owner: "A", Fence: 1})
	claim("B", 10*time.Second, 5*time.Second, 2)
	b.do(func(tx store.Tx) {
		fence, err := tx.Claim(b.Context(), "a", store.Claim{Hash: "other", Owner: "C", Now: time.Hour, Lease: time.Second})
		b.must(err)
		if fence != 0 {
			b.Error("another request has taken the key over")
		}
	})
	claim("C", 20*time.Second, 0, 0) // who knows nothing of leases takes nothing over
	claim("C", 20*time.Second, time.Second, 3)
	b.wantRecord(b, "a", store.Record{Hash: "h", Owner: "C", Fence: 3})
	b.do(func(tx store.Tx) { b.claim(tx, "b", true) })
	b.do(func(tx store.Tx) {
		fence, err := tx.Claim(b.Context(), "b", store.Claim{Hash: "hash-b", Owner: "D", Now: 25 * time.Hour, Lease: time.Second})
		b.must(err)
		if fence != 0 {
			b.Error("a claim without a lease, which holds for ever, was taken over")
		}
	})
	b.do(func(tx store.Tx) {
		held, err := tx.Finish(b.Context(), "b", store.Holder{}, store.Record{Status: store.Done, Code: 201})
		b.must(err)
		fence, err := tx.Claim(b.Context(), "b", store.Claim{Hash: "hash-b", Owner: "late", Now: time.Hour, Lease: time.Second})
		b.must(err)
		if !held || fence != 0 {
			b.Errorf("finished %v, and then claimed with the fence %d", held, fence)
		}
	})
}

// fenced has records finished and released by those who hold them and by those who no longer do.
func fenced(b *bench) {
	take := func(key, owner string, now time.Duration) {
		b.Helper()
		b.do(func(tx store.Tx) {
			fence, err := tx.Claim(b.Context(), key, store.Claim{Hash: "h", Owner: owner, Now: now, Lease: time.Second})
			b.must(err)
			if fence == 0 {
				b.Errorf("%s could not claim %s", owner, key)
			}
		})
	}
	done := store.Record{Status: store.Done, Code: 201, Body: []byte("x")}
	end := func(what string, held bool, err error, want bool) {
		b.Helper()
		b.must(err)
		if held != want {
			b.Errorf("%s: %v, want %v", what, held, want)
		}
	}
	take("a", "A", 0)
	take("a", "B", time.Minute)
	b.do(func(tx store.Tx) {
		held, err := tx.Finish(b.Context(), "a", store.Holder{Owner: "A", Fence: 1}, done)
		end("the first owner finishes", held, err, false)
		held, err = tx.Release(b.Context(), "a", store.Holder{Owner: "A"})
		end("the first owner releases", held, err, false)
		held, err = tx.Finish(b.Context(), "a", store.Holder{Fence: 1}, done)
		end("by the first fence", held, err, false)
		held, err = tx.Finish(b.Context(), "a", store.Holder{Owner: "B", Fence: 2}, done)
		end("the second owner finishes", held, err, true)
		held, err = tx.Finish(b.Context(), "a", store.Holder{Owner: "B", Fence: 2}, done)
		end("the second owner finishes again", held, err, false)
	})
	b.wantRecord(b, "a", store.Record{Status: store.Done, Hash: "h", Owner: "B", Fence: 2, Code: 201, Body: []byte("x")})

	// A record that is deleted takes the fence with it.
	take("c", "A", 0)
	take("c", "B", time.Minute)
	b.do(func(tx store.Tx) {
		held, err := tx.Release(b.Context(), "c", store.Holder{Owner: "B", Fence: 2})
		end("the owner releases", held, err, true)
	})
	take("c", "C", 2*time.Minute)
	b.wantRecord(b, "c", store.Record{Hash: "h", Owner: "C", Fence: 1})
	b.do(func(tx store.Tx) {
		held, err := tx.Finish(b.Context(), "c", store.Holder{Owner: "A", Fence: 1}, done)
		end("a stale owner by owner and fence", held, err, false)
		held, err = tx.Finish(b.Context(), "c", store.Holder{Fence: 1}, done)
		end("a stale owner by the fence alone", held, err, true)
		held, err = tx.Finish(b.Context(), "never claimed", store.Holder{}, done)
		end("a key that is not there", held, err, false)
	})
}

func duplicate(b *bench) {
	b.do(func(tx store.Tx) { b.must(tx.Insert(b.Context(), "a", by("a"))) })
	b.wantRecord(b, "a", claimed("a"))
	tx := b.begin("again")
	if err := tx.Insert(b.Context(), "a", by("a")); !errors.Is(err, store.ErrDuplicate) {
		b.Errorf("inserted twice: %v, want %v", err, store.ErrDuplicate)
	}
	b.must(tx.Rollback()) // what else the transaction can do is the engine's
	b.do(func(tx store.Tx) { b.claim(tx, "a", false) })
}

func placed(b *bench) {
	find := func(from store.Tx, key string, want int64) {
		b.Helper()
		got, found, err := from.Placed(b.Context(), key)
		b.must(err)
		if found != (want != 0) || got != want {
			b.Errorf("an order with the key %q: %d, %v; want %d", key, got, found, want)
		}
	}
	var first int64
	b.do(func(tx store.Tx) {
		find(tx, "k", 0)
		for range 2 {
			id, err := tx.Order(b.Context(), store.Order{Operation: "op-1", Send: "s", Node: "n", Key: "k", Amount: 1})
			b.must(err)
			if first == 0 {
				first = id
			}
		}
		find(tx, "k", first)
		b.order(tx, "op-2") // without a key
	})
	tx := b.begin("later")
	find(tx, "k", first)
	find(tx, "", 0)
	b.must(tx.Rollback())
}

func expired(b *bench) {
	at := func(key string, now time.Duration) store.Claim { return store.Claim{Hash: key, Owner: key, Now: now} }
	b.do(func(tx store.Tx) {
		for key, now := range map[string]time.Duration{"open": time.Second, "done": time.Second, "open later": 2 * time.Second, "done later": 2 * time.Second} {
			_, err := tx.Claim(b.Context(), key, at(key, now))
			b.must(err)
		}
		b.finish(tx, "done", store.Record{Status: store.Done, Code: 201})
		b.finish(tx, "done later", store.Record{Status: store.Failed, Code: 500})
	})
	expire := func(key string, e store.Expiry, want int64) {
		b.Helper()
		b.do(func(tx store.Tx) {
			got, err := tx.Expire(b.Context(), key, e)
			b.must(err)
			if got != want {
				b.Errorf("%d records of %q are older than %+v, want %d", got, key, e, want)
			}
		})
	}
	expire("", store.Expiry{Open: -1, Ended: -1}, 0)
	expire("", store.Expiry{Open: time.Second - time.Microsecond, Ended: time.Second - time.Microsecond}, 0)
	expire("open", store.Expiry{Open: -1, Ended: time.Hour}, 0)
	expire("done", store.Expiry{Open: time.Hour, Ended: -1}, 0)
	expire("open", store.Expiry{Open: time.Second, Ended: -1}, 1)
	b.wantAbsent(b, "open")
	expire("", store.Expiry{Open: time.Second, Ended: time.Second}, 1)
	b.wantAbsent(b, "done")
	expire("", store.Expiry{Open: 2 * time.Second, Ended: -1}, 1)
	b.wantAbsent(b, "open later")
	expire("", store.Expiry{Open: -1, Ended: time.Hour}, 1)
	// A claim that is taken over is as old as its new owner's.
	b.do(func(tx store.Tx) {
		for _, now := range []time.Duration{0, 5 * time.Second} {
			_, err := tx.Claim(b.Context(), "leased", store.Claim{Hash: "h", Owner: "o", Now: now, Lease: time.Second})
			b.must(err)
		}
	})
	expire("leased", store.Expiry{Open: 4 * time.Second, Ended: -1}, 0)
	expire("leased", store.Expiry{Open: 5 * time.Second, Ended: -1}, 1)
}

func referenced(b *bench) {
	insert := func(tx store.Tx, operation, reference string) error {
		_, err := tx.Order(b.Context(), store.Order{Operation: operation, Send: operation, Node: "order-1", Amount: 1, Reference: reference})
		return err
	}
	b.do(func(tx store.Tx) {
		b.must(insert(tx, "op-1", "R1"))
		b.must(insert(tx, "op-2", "R2"))
		b.must(insert(tx, "op-3", "")) // none is no reference
		b.must(insert(tx, "op-4", ""))
	})
	tx := b.begin("second")
	if err := insert(tx, "op-5", "R1"); !errors.Is(err, store.ErrDuplicate) {
		b.Errorf("a second order with the reference: %v, want %v", err, store.ErrDuplicate)
	}
	b.must(tx.Rollback())
	tx = b.begin("given up")
	b.must(insert(tx, "op-6", "R6"))
	b.must(tx.Rollback())
	b.do(func(tx store.Tx) { b.must(insert(tx, "op-7", "R6")) })
	for operation, want := range map[string]int{"op-1": 1, "op-3": 1, "op-4": 1, "op-5": 0, "op-6": 0, "op-7": 1} {
		b.wantCount(operation, want)
	}
}

func shared(b *bench) {
	for _, step := range []struct {
		name    string
		write   store.Write
		changed bool
		want    string // value, version
	}{
		{"nothing to set", store.Write{Do: store.Set, To: "a"}, false, "none"},
		{"nothing to delete", store.Write{Do: store.Delete}, false, "none"},
		{"made by adding", store.Write{Do: store.Add, By: -3}, true, "-3, 1"},
		{"added to", store.Write{Do: store.Add, By: 13}, true, "10, 2"},
		{"set", store.Write{Do: store.Set, To: "9"}, true, "9, 3"},
		{"set to what it is", store.Write{Do: store.Set, To: "9"}, false, "9, 3"},
		{"set in an old version", store.Write{Do: store.Set, To: "8", Version: 2}, false, "9, 3"},
		{"set in its version", store.Write{Do: store.Set, To: "8", Version: 3}, true, "8, 4"},
		{"set from another value", store.Write{Do: store.Set, To: "7", From: "9"}, false, "8, 4"},
		{"set from its value", store.Write{Do: store.Set, To: "7", From: "8"}, true, "7, 5"},
		{"put", store.Write{Do: store.Put, To: "6"}, true, "6, 6"},
		{"put as it is", store.Write{Do: store.Put, To: "6"}, false, "6, 6"},
		{"deleted at another value", store.Write{Do: store.Delete, From: "7"}, false, "6, 6"},
		{"deleted", store.Write{Do: store.Delete, From: "6"}, true, "none"},
		{"put where there is none", store.Write{Do: store.Put, To: "a"}, true, "a, 1"},
		{"deleted whatever it is", store.Write{Do: store.Delete}, true, "none"},
	} {
		step.write.Row = "stock"
		b.do(func(tx store.Tx) {
			changed, err := tx.Write(b.Context(), step.write)
			b.must(err)
			if changed != step.changed {
				b.Errorf("%s: changed %v, want %v", step.name, changed, step.changed)
			}
			b.wantRow(tx, step.name+", in the transaction", step.want)
		})
		b.wantRow(b.Store, step.name, step.want)
	}
	// Of a change that is given up nothing is left, and no other row has felt any of it.
	tx := b.begin("given up")
	_, err := tx.Write(b.Context(), store.Write{Row: "stock", Do: store.Put, To: "b"})
	b.must(err)
	b.must(tx.Rollback())
	b.wantRow(b.Store, "given up", "none")
}

// wantRow reads the row called stock.
func (b *bench) wantRow(from interface {
	Row(ctx context.Context, name string) (store.Row, bool, error)
}, when, want string) {
	b.Helper()
	r, found, err := from.Row(b.Context(), "stock")
	b.must(err)
	got := "none"
	if found {
		got = fmt.Sprintf("%s, %d", r.Value, r.Version)
	}
	if got != want {
		b.Errorf("%s: the row is %s, want %s", when, got, want)
	}
}

// enter makes an entry by f, of a transaction or of the store.
func (b *bench) enter(f func(context.Context, store.Entry) (bool, error), e store.Entry, want bool) {
	b.Helper()
	got, err := f(b.Context(), e)
	b.must(err)
	if got != want {
		b.Errorf("an entry in %s with the reference %q: entered %v, want %v", e.Ledger, e.Reference, got, want)
	}
}

// wantEntries compares all ledgers, each entry as ledger:reference.
func (b *bench) wantEntries(want ...string) {
	b.Helper()
	all, err := b.Entries(b.Context())
	b.must(err)
	var got []string
	for _, e := range all {
		got = append(got, e.Ledger+":"+e.Reference)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("entries (-want +got):\n%s", diff)
	}
}

func entries(b *bench) {
	b.wantEntries()
	e := store.Entry{Ledger: "messages", Operation: "op-1", Send: "op-1/retry.1", Node: "order-1", Reference: "m1", Amount: 5000, Created: 1500 * time.Microsecond}
	b.enter(b.Enter, e, true)
	b.enter(b.Enter, e, false)
	b.enter(b.Enter, store.Entry{Ledger: "charges", Reference: "m1"}, true) // a reference is its ledger's own
	b.enter(b.Enter, store.Entry{Ledger: "charges"}, true)
	b.enter(b.Enter, store.Entry{Ledger: "charges"}, true) // without one every entry is new
	b.do(func(tx store.Tx) {
		b.enter(tx.Enter, store.Entry{Ledger: "events", Reference: "e1"}, true)
		b.enter(tx.Enter, store.Entry{Ledger: "events", Reference: "e1"}, false)
		b.enter(tx.Enter, store.Entry{Ledger: "events"}, true)
		b.enter(tx.Enter, store.Entry{Ledger: "events"}, true)
	})
	b.wantEntries("charges:m1", "charges:", "charges:", "events:e1", "events:", "events:", "messages:m1")
	all, err := b.Entries(b.Context())
	b.must(err)
	want := lab.Entry{
		Ledger: "messages", Operation: "op-1", Send: "op-1/retry.1", Node: "order-1", Reference: "m1",
		Amount: 5000, Created: 1500 * time.Microsecond, CreatedMs: 2,
	}
	if diff := cmp.Diff(want, all[len(all)-1]); diff != "" {
		b.Errorf("entry (-want +got):\n%s", diff)
	}
}

func entriesOf(b *bench) {
	b.do(func(tx store.Tx) {
		for _, e := range []store.Entry{{Ledger: "events", Send: "a"}, {Ledger: "events", Send: "b"}, {Ledger: "mails", Send: "a"}, {Ledger: "events", Send: "a"}} {
			b.enter(tx.Enter, e, true)
		}
	})
	for send, want := range map[string]int{"a": 2, "b": 1, "c": 0} {
		got, err := b.EntriesOf(b.Context(), "events", send)
		b.must(err)
		if len(got) != want {
			b.Errorf("%s has %d entries, want %d", send, len(got), want)
		}
		for _, e := range got {
			if e.Ledger != "events" || e.Send != send {
				b.Errorf("of %s in events: %+v", send, e)
			}
		}
	}
}

func entriesWithOrder(b *bench) {
	tx := b.begin("given up")
	b.enter(tx.Enter, store.Entry{Ledger: "events", Reference: "e1"}, true)
	b.wantEntries() // not committed, and seen by nobody
	b.must(tx.Rollback())
	b.wantEntries()
	b.do(func(tx store.Tx) { b.enter(tx.Enter, store.Entry{Ledger: "events", Reference: "e1"}, true) })
	b.wantEntries("events:e1")
}

func entriesElsewhere(b *bench) {
	tx := b.begin("open")
	b.order(tx, "op-1")
	b.enter(b.Enter, store.Entry{Ledger: "charges", Reference: "c1"}, true)
	b.wantEntries("charges:c1")
	b.must(tx.Rollback())
	b.wantEntries("charges:c1") // it knows nothing of that
}

func orders(b *bench) {
	want := []lab.Effect{
		{Operation: "op-1", Send: "op-1/retry.1", Node: "order-1", Key: "k1", Amount: 5000, Created: 12 * time.Second, CreatedMs: 12000},
		{Operation: "op-2", Send: "op-2/retry.1", Node: "order-2", Amount: 1, Created: 1500 * time.Microsecond, CreatedMs: 2},
		// Neither operation nor key is unique: that is what guards are for.
		{Operation: "op-1", Send: "op-1/retry.2", Node: "order-1", Key: "k1", Amount: 1 << 40, Created: 25 * time.Hour, CreatedMs: 25 * 3600 * 1000},
	}
	for i := range want {
		e := &want[i]
		b.do(func(tx store.Tx) {
			id, err := tx.Order(b.Context(), store.Order{
				Operation: e.Operation, Send: e.Send, Node: e.Node, Key: e.Key, Amount: e.Amount, Created: e.Created,
			})
			b.must(err)
			if id <= 0 || i > 0 && id <= want[i-1].Order {
				b.Errorf("order %d has the number %d after %d", i, id, want[max(0, i-1)].Order)
			}
			e.Order = id
		})
	}
	got, err := b.Effects(b.Context())
	b.must(err)
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("effects (-want +got):\n%s", diff)
	}
	b.wantCount("op-1", 2)
	b.wantCount("op-2", 1)
	b.wantCount("op-3", 0)
}

func empty(b *bench) {
	b.wantAbsent(b, "a")
	b.wantCount("op-1", 0)
	got, err := b.Effects(b.Context())
	b.must(err)
	if len(got) != 0 {
		b.Errorf("effects of an empty store: %v", got)
	}
	tx := b.begin("nothing")
	b.wantAbsent(tx, "a")
	b.must(tx.Commit()) // of nothing
}

func rollback(b *bench) {
	b.do(func(tx store.Tx) { b.claim(tx, "old", true) })
	tx := b.begin("given up")
	b.claim(tx, "new", true)
	b.finish(tx, "old", store.Record{Status: store.Done, Code: 201})
	b.order(tx, "op-1")
	b.must(tx.Rollback())
	b.wantAbsent(b, "new")
	b.wantRecord(b, "old", claimed("old"))
	b.wantCount("op-1", 0)
	tx = b.begin("released in vain")
	b.release(tx, "old", true)
	b.must(tx.Rollback())
	b.wantRecord(b, "old", claimed("old"))
	b.do(func(tx store.Tx) { b.claim(tx, "new", true) })
}

// ended also makes sure that an end gives the engine's writer back once, not twice.
func ended(b *bench) {
	committed := b.begin("committed")
	b.order(committed, "op-1")
	b.must(committed.Commit())
	rolledBack := b.begin("rolled back")
	b.order(rolledBack, "op-1")
	b.must(rolledBack.Rollback())

	holder := b.begin("holder")
	b.claim(holder, "a", true)
	b.must(committed.Rollback())
	b.must(rolledBack.Rollback())
	if err := committed.Commit(); err == nil {
		b.Error("a transaction was committed twice")
	}
	if err := rolledBack.Commit(); err == nil {
		b.Error("a transaction that was given up was committed")
	}
	b.wantCount("op-1", 1)

	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Millisecond)
	defer cancel()
	tx, won, err := b.try(ctx, "a")
	if !errors.Is(err, context.DeadlineExceeded) {
		b.Errorf("a second writer has come in: won %v, %v", won, err)
	}
	if err == nil {
		b.must(tx.Rollback())
	}
	b.must(holder.Commit())
	b.do(func(tx store.Tx) { b.claim(tx, "a", false) })
}

// try begins a transaction and claims a key in it. Engines differ in which of the two waits for
// another transaction. It can be called by any goroutine.
func (b *bench) try(ctx context.Context, key string) (store.Tx, bool, error) {
	tx, err := b.Begin(ctx, "claim of "+key, store.TxOptions{})
	if err != nil {
		return nil, false, err
	}
	fence, err := tx.Claim(ctx, key, by(key))
	if err != nil {
		return nil, false, errors.Join(err, tx.Rollback())
	}
	return tx, fence != 0, nil
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func changed(b *bench) {
	first, again := b.Changed(), b.Changed()
	if closed(first) {
		b.Error("changed before there was a commit")
	}
	b.do(func(tx store.Tx) { b.claim(tx, "a", true) })
	if !closed(first) || !closed(again) {
		b.Error("not changed by a commit")
	}
	second := b.Changed()
	if closed(second) {
		b.Error("changed again without a commit")
	}
	b.do(func(tx store.Tx) { b.order(tx, "op-1") })
	if !closed(second) {
		b.Error("not changed by a second commit")
	}
}

func notChanged(b *bench) {
	watch := b.Changed()
	tx := b.begin("given up")
	b.claim(tx, "a", true)
	b.order(tx, "op-1")
	if closed(watch) {
		b.Error("changed by what is not committed")
	}
	b.must(tx.Rollback())
	b.must(tx.Rollback())
	if tx.Commit() == nil {
		b.Error("a transaction that was given up was committed")
	}
	b.wantAbsent(b, "a")
	if closed(watch) {
		b.Error("changed by a rollback")
	}
}

func outlives(b *bench) {
	ctx, cancel := context.WithCancel(b.Context())
	tx, err := b.Begin(ctx, "outlives", store.TxOptions{})
	b.must(err)
	b.claim(tx, "a", true)
	cancel()
	b.order(tx, "op-1")
	b.must(tx.Commit())
	b.wantCount("op-1", 1)
	b.wantRecord(b, "a", claimed("a"))
}

// second has a goroutine claim key while first is open, ends first, and returns what the goroutine
// came to. In real time the goroutine may come late; what must hold holds then too.
func second(b *bench, first store.Tx, end func() error) (won bool) {
	var (
		done   sync.WaitGroup
		mu     sync.Mutex
		events []string
	)
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, what)
	}
	done.Go(func() {
		tx, ok, err := b.try(b.Context(), "a")
		note("second has claimed")
		if err != nil {
			b.Error(err)
			return
		}
		won = ok
		if err := tx.Commit(); err != nil {
			b.Error(err)
		}
	})
	b.wantRecord(first, "a", claimed("a"))
	note("first ends")
	b.must(end())
	done.Wait()
	if want := []string{"first ends", "second has claimed"}; !slices.Equal(events, want) {
		b.Errorf("%q, want %q", events, want)
	}
	return won
}

func waitsForCommit(b *bench) {
	first := b.begin("first")
	b.claim(first, "a", true)
	if second(b, first, first.Commit) {
		b.Error("a key was claimed twice")
	}
}

func waitsForRollback(b *bench) {
	first := b.begin("first")
	b.claim(first, "a", true)
	if !second(b, first, first.Rollback) {
		b.Error("the claim that was rolled back still holds")
	}
}

func cancelled(b *bench) {
	holder := b.begin("holder")
	b.claim(holder, "a", true)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(b.Context())
	var waiter sync.WaitGroup
	waiter.Go(func() {
		if _, _, err := b.try(ctx, "a"); !errors.Is(err, enough) {
			b.Errorf("a wait that was cancelled returned %v, want %v", err, enough)
		}
	})
	cancel(enough)
	waiter.Wait()

	late := errors.New("too late")
	ctx, stop := context.WithTimeoutCause(b.Context(), 10*time.Millisecond, late)
	defer stop()
	if _, _, err := b.try(ctx, "a"); !errors.Is(err, late) {
		b.Errorf("a wait beyond its deadline returned %v, want %v", err, late)
	}
	b.must(holder.Rollback())
	b.do(func(tx store.Tx) { b.claim(tx, "a", true) }) // who gave up holds nothing
}

func endedContext(b *bench) {
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(b.Context())
	cancel(enough)
	if tx, err := b.Begin(ctx, "late", store.TxOptions{}); !errors.Is(err, enough) {
		b.Errorf("began with %v, want %v", err, enough)
		if err == nil {
			b.must(tx.Rollback())
		}
	}
	b.do(func(tx store.Tx) { b.claim(tx, "a", true) })
}

// race performs f twelve times at once.
func race(b *bench, f func(i int) error) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range 12 {
		all.Go(func() {
			<-start
			if err := f(i); err != nil {
				b.Errorf("goroutine %d: %v", i, err)
			}
		})
	}
	close(start)
	all.Wait()
}

func twelveClaims(b *bench) {
	var mu sync.Mutex
	wins := 0
	race(b, func(i int) error {
		tx, won, err := b.try(b.Context(), "a")
		if err != nil {
			return err
		}
		if !won {
			r, found, err := tx.Read(b.Context(), "a")
			if err == nil && (!found || r.Status != store.Done) {
				err = fmt.Errorf("lost to a key that reads found %v, %+v", found, r)
			}
			return errors.Join(err, tx.Rollback())
		}
		mu.Lock()
		wins++
		mu.Unlock()
		_, err = tx.Order(b.Context(), store.Order{Operation: "op-1", Send: "op-1", Node: "order-1", Key: "a", Amount: 1})
		_, e := tx.Finish(b.Context(), "a", store.Holder{}, store.Record{Status: store.Done, Code: 201})
		return errors.Join(err, e, tx.Commit())
	})
	if wins != 1 {
		b.Errorf("%d claims were won, want 1", wins)
	}
	b.wantCount("op-1", 1)
}

func twelveKeys(b *bench) {
	race(b, func(i int) error {
		name := fmt.Sprintf("op-%d", i)
		for n := range 3 {
			if _, _, err := b.Read(b.Context(), name); err != nil {
				return err
			}
			tx, won, err := b.try(b.Context(), name)
			if err != nil {
				return err
			}
			if won != (n == 0) {
				return errors.Join(fmt.Errorf("claim %d of %s: won %v", n, name, won), tx.Rollback())
			}
			_, err = tx.Order(b.Context(), store.Order{Operation: name, Send: name, Node: "order-1", Key: name, Amount: 1})
			if err := errors.Join(err, tx.Commit()); err != nil {
				return err
			}
			if got, err := b.Count(b.Context(), name); err != nil || got != n+1 {
				return fmt.Errorf("%s has %d orders after %d commits: %v", name, got, n+1, err)
			}
		}
		return nil
	})
	effects, err := b.Effects(b.Context())
	b.must(err)
	numbers := map[int64]bool{}
	for _, e := range effects {
		numbers[e.Order] = true
	}
	if len(effects) != 36 || len(numbers) != 36 {
		b.Errorf("%d orders with %d numbers, want 36 each", len(effects), len(numbers))
	}
}

func inOrder(b *bench) {
	holder := b.begin("holder")
	b.claim(holder, "a", true)
	var order []int
	var waiters sync.WaitGroup
	for i := range 12 {
		waiters.Go(func() {
			tx, won, err := b.try(b.Context(), "a")
			if err != nil || !won {
				b.Errorf("waiter %d: won %v, %v", i, won, err)
				return
			}
			order = append(order, i) // one at a time: the claim is held
			if err := tx.Rollback(); err != nil {
				b.Error(err)
			}
		})
		synctest.Wait()
	}
	b.must(holder.Rollback())
	waiters.Wait()
	if want := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}; !slices.Equal(order, want) {
		b.Errorf("served in the order %v, want %v", order, want)
	}
}

func wakesAll(b *bench) {
	var watchers sync.WaitGroup
	start := time.Now()
	for range 3 {
		watchers.Go(func() {
			<-b.Changed()
			// What was committed can be seen by whoever is woken.
			if _, found, err := b.Read(b.Context(), "a"); !found || err != nil {
				b.Errorf("woken by a claim that is found %v, %v", found, err)
			}
			if waited := time.Since(start); waited != time.Second {
				b.Errorf("woken after %s, want 1s", waited)
			}
		})
	}
	time.Sleep(time.Second)
	b.do(func(tx store.Tx) { b.claim(tx, "a", true) })
	watchers.Wait()
}
