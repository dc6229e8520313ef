package slowserver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"retrylab/internal/lab"
	"retrylab/slowserver"
	"retrylab/slowserver/fault"
	"retrylab/slowserver/guard"
	"retrylab/slowserver/store"
)

// refusing is a store that refuses a step the first times it is asked for, or for ever with times
// below 0.
func refusing(step string, err error, times int) *faulty {
	return &faulty{fail: func(at string) error {
		if at != step || times == 0 {
			return nil
		}
		times--
		return fmt.Errorf("%s: %w (code 4711)", at, err)
	}}
}

// TestTransactionRetries has the database refuse what only a concurrent one refuses.
func TestTransactionRetries(t *testing.T) {
	t.Parallel()
	rows := func(c *slowserver.Config) { c.Rows = []string{"stock"} }
	tests := []struct {
		name    string
		guard   guard.Settings
		store   func() *faulty
		change  func(*slowserver.Config)
		retries int
		want    string
		title   string
		at      time.Duration
		journal string
	}{
		{
			name: "not retried", store: func() *faulty { return refusing("order", store.ErrSerialization, 1) },
			want: "500, store", title: "serialization failure: order: ", at: time.Second,
			journal: "arrival, work, rollback serialization, answer 500",
		},
		{
			name: "retried", store: func() *faulty { return refusing("order", store.ErrSerialization, 1) }, retries: 1,
			want: "201, order 1", at: time.Second,
			journal: "arrival, work, rollback serialization, commit, answer 201",
		},
		{
			name: "refused at the commit", store: func() *faulty { return refusing("commit", store.ErrSerialization, 1) }, retries: 1,
			want: "201, order 1", at: time.Second,
			journal: "arrival, work, rollback serialization, commit, answer 201",
		},
		{
			name: "refused too often", store: func() *faulty { return refusing("order", store.ErrSerialization, -1) }, retries: 2,
			want: "500, store", title: "serialization failure: order: ", at: time.Second,
			journal: "arrival, work, rollback serialization, rollback serialization, rollback serialization, answer 500",
		},
		{
			name: "a deadlock", store: func() *faulty { return refusing("write stock", store.ErrDeadlock, 1) }, change: rows, retries: 1,
			want: "201, order 1", at: time.Second,
			journal: "arrival, work, rollback deadlock, commit, answer 201",
		},
		{
			name: "a deadlock, not retried", store: func() *faulty { return refusing("write stock", store.ErrDeadlock, 1) }, change: rows,
			want: "500, store", title: "deadlock: write stock: ", at: time.Second,
			journal: "arrival, work, rollback deadlock, answer 500",
		},
		{
			name: "a lock that is held is another thing", store: func() *faulty { return refusing("order", store.ErrBusy, 1) }, retries: 10,
			want: "500, store", title: "lock not available: order: ", at: time.Second,
			journal: "arrival, work, rollback busy, answer 500",
		},
		{
			// The claim is in a transaction of its own, and the work in none: both stand.
			name: "claim first", guard: guard.Settings{Kind: "unique-index"}, store: func() *faulty { return refusing("order", store.ErrSerialization, 1) }, retries: 1,
			want: "201, order 1", at: time.Second,
			journal: "arrival, claim won, work, rollback serialization, commit, answer 201",
		},
		{
			// The guard is told of a failure as it is of any other: the next request has the key.
			name: "claim first, not retried", guard: guard.Settings{Kind: "unique-index", OnFailure: "delete"}, store: func() *faulty { return refusing("order", store.ErrSerialization, 1) },
			want: "500, store", title: "serialization failure: order: ", at: time.Second,
			journal: "arrival, claim won, work, rollback serialization, answer 500",
		},
		{
			name: "at insert", guard: guard.Settings{Kind: "unique-index", Claim: "at-insert"}, store: func() *faulty { return refusing("claim", store.ErrSerialization, 1) }, retries: 1,
			want: "201, order 1", at: time.Second,
			journal: "arrival, work, rollback serialization, claim won, commit, answer 201",
		},
		{
			name: "same transaction, refused at its claim", guard: guard.Settings{Kind: "same-transaction"}, store: func() *faulty { return refusing("claim", store.ErrSerialization, 1) }, retries: 1,
			want: "201, order 1", at: time.Second,
			journal: "arrival, rollback serialization, claim won, work, commit, answer 201",
		},
		{
			// The work was in the transaction, so it is done again.
			name: "same transaction, refused at its commit", guard: guard.Settings{Kind: "same-transaction"}, store: func() *faulty { return refusing("commit", store.ErrSerialization, 1) }, retries: 1,
			want: "201, order 1", at: 2 * time.Second,
			journal: "arrival, claim won, work, rollback serialization, claim won, work, commit, answer 201",
		},
		{
			name: "a look at the orders", guard: guard.Settings{Kind: "check-then-insert", Isolation: "serializable"}, store: func() *faulty { return refusing("commit", store.ErrSerialization, 1) }, retries: 1,
			want: "201, order 1", at: 2 * time.Second,
			journal: "arrival, check absent, work, rollback serialization, check absent, work, commit, answer 201",
		},
		{
			name: "what has struck does not strike again", guard: guard.Settings{Kind: "same-transaction"}, store: func() *faulty { return refusing("commit", store.ErrSerialization, 1) }, retries: 1,
			change: func(c *slowserver.Config) {
				c.Faults = []fault.Settings{{At: fault.AfterClaim, Do: "delay", Delay: 5 * time.Second}}
			},
			want: "201, order 1", at: 7 * time.Second,
			journal: "arrival, claim won, fault delay@after-claim, work, rollback serialization, claim won, work, commit, answer 201",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := tt.store()
			c := slowserver.Config{Processing: time.Second, Guard: tt.guard, Store: s, TransactionRetries: tt.retries}
			if tt.change != nil {
				tt.change(&c)
			}
			var got, next answer
			b := play(t, c, func(b *bench) {
				s.Store = b.store
				got = b.send(order("send-1", "k"))
				next = b.send(order("send-2", "k"))
			})
			diff(t, "answer", tt.want, got.String())
			diff(t, "at", tt.at, got.at)
			if !strings.Contains(got.body, tt.title) {
				t.Errorf("%s does not say %q", got.body, tt.title)
			}
			diff(t, "journal", tt.journal, b.journal("send-1"))
			if tt.want == "500, store" && next.status != 201 && next.status != 500 {
				t.Errorf("the next request got %s", next)
			}
		})
	}
}

// remote is a store at the end of a connection that can break.
type remote struct {
	store.Store

	mu           sync.Mutex
	asked, known int
	committed    map[string]bool
	silent       []store.Tx
	locked       map[string]bool
}

func (r *remote) Begin(ctx context.Context, id string, _ store.TxOptions) (store.Tx, error) {
	tx, err := r.Store.Begin(ctx, id, store.TxOptions{})
	return &remoteTx{Tx: tx, remote: r}, err
}

func (r *remote) ID(_ context.Context, tx store.Tx) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := tx.(*remoteTx)
	r.known++
	t.id = fmt.Sprint(r.known)
	return t.id, nil
}

func (r *remote) Committed(_ context.Context, id string) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	return r.committed[id], nil
}

type remoteTx struct {
	store.Tx
	remote *remote
	id     string
	cut    store.Cut
	lock   string
}

func (t *remoteTx) Cut(c store.Cut) {
	t.cut = c
	if c == store.Partition {
		t.remote.mu.Lock()
		defer t.remote.mu.Unlock()
		t.remote.silent = append(t.remote.silent, t.Tx)
	}
}

func (t *remoteTx) TryLock(_ context.Context, key string) (bool, error) {
	t.remote.mu.Lock()
	defer t.remote.mu.Unlock()
	if t.remote.locked[key] {
		return false, nil
	}
	if t.remote.locked == nil {
		t.remote.locked = map[string]bool{}
	}
	t.lock = key
	t.remote.locked[key] = true
	return true, nil
}

func (t *remoteTx) Commit() error {
	t.remote.mu.Lock()
	defer t.remote.mu.Unlock()
	delete(t.remote.locked, t.lock)
	switch t.cut {
	case store.CutBefore:
		return errors.Join(store.ErrUnknownOutcome, t.Tx.Rollback())
	case store.CutAfter:
		if t.remote.committed == nil {
			t.remote.committed = map[string]bool{}
		}
		t.remote.committed[t.id] = true
		return errors.Join(store.ErrUnknownOutcome, t.Tx.Commit())
	}
	return t.Tx.Commit()
}

func (t *remoteTx) Rollback() error {
	if t.cut == store.Partition {
		panic("a rollback over a connection that is gone")
	}
	t.remote.mu.Lock()
	defer t.remote.mu.Unlock()
	delete(t.remote.locked, t.lock)
	return t.Tx.Rollback()
}

// TestUnknownCommit loses the COMMIT, or the reply to it.
func TestUnknownCommit(t *testing.T) {
	t.Parallel()
	none, same := guard.Settings{}, guard.Settings{Kind: "same-transaction"}
	first := guard.Settings{Kind: "unique-index", OnFailure: "delete"}
	tests := []struct {
		name    string
		lost    string
		unknown string
		guard   guard.Settings
		want    string
		effects int
		asked   int
		journal string
	}{
		{
			name: "the COMMIT, fail", lost: "lose-commit", want: "500, store",
			journal: "arrival, work, fault lose-commit@in-commit, rollback connection lost, answer 500",
		},
		{
			// The service says that it failed, and the order is there.
			name: "the reply, fail", lost: "lose-commit-reply", want: "500, store", effects: 1,
			journal: "arrival, work, fault lose-commit-reply@in-commit, commit reply lost, answer 500",
		},
		{
			name: "the COMMIT, retry", lost: "lose-commit", unknown: "retry", guard: none, want: "201, order 1", effects: 1,
			journal: "arrival, work, fault lose-commit@in-commit, rollback connection lost, commit, answer 201",
		},
		{
			name: "the reply, retry", lost: "lose-commit-reply", unknown: "retry", guard: none, want: "201, order 2", effects: 2,
			journal: "arrival, work, fault lose-commit-reply@in-commit, commit reply lost, commit, answer 201",
		},
		{
			name: "the COMMIT, retry, key in the transaction", lost: "lose-commit", unknown: "retry", guard: same, want: "201, order 1", effects: 1,
			journal: "arrival, claim won, work, fault lose-commit@in-commit, rollback connection lost, claim won, work, commit, answer 201",
		},
		{
			name: "the reply, retry, key in the transaction", lost: "lose-commit-reply", unknown: "retry", guard: same, want: "201, order 1 again", effects: 1,
			journal: "arrival, claim won, work, fault lose-commit-reply@in-commit, commit reply lost, claim done, answer 201",
		},
		{
			name: "the reply, retry, claim at insert", lost: "lose-commit-reply", unknown: "retry", guard: guard.Settings{Kind: "unique-index", Claim: "at-insert"},
			want: "201, order 1 again", effects: 1,
			journal: "arrival, work, claim won, fault lose-commit-reply@in-commit, commit reply lost, claim done, rollback duplicate, answer 201",
		},
		{
			name: "the reply, retry, claimed before", lost: "lose-commit-reply", unknown: "retry", guard: first, want: "201, order 2", effects: 2,
			journal: "arrival, claim won, work, fault lose-commit-reply@in-commit, commit reply lost, commit, answer 201",
		},
		{
			// The key must not be released: the order may be there, and here it is.
			name: "the reply, fail, claimed before", lost: "lose-commit-reply", guard: first, want: "500, store", effects: 1,
			journal: "arrival, claim won, work, fault lose-commit-reply@in-commit, commit reply lost, answer 500",
		},
		{
			// An empty transaction commits as well as any.
			name: "the COMMIT, again", lost: "lose-commit", unknown: "commit-again", guard: none, want: "201, order 1",
			journal: "arrival, work, fault lose-commit@in-commit, rollback connection lost, answer 201",
		},
		{
			name: "the reply, again", lost: "lose-commit-reply", unknown: "commit-again", guard: none, want: "201, order 1", effects: 1,
			journal: "arrival, work, fault lose-commit-reply@in-commit, commit reply lost, answer 201",
		},
		{
			name: "the COMMIT, ask", lost: "lose-commit", unknown: "ask", guard: none, want: "201, order 1", effects: 1, asked: 1,
			journal: "arrival, work, fault lose-commit@in-commit, rollback connection lost, commit, answer 201",
		},
		{
			name: "the reply, ask", lost: "lose-commit-reply", unknown: "ask", guard: none, want: "201, order 1", effects: 1, asked: 1,
			journal: "arrival, work, fault lose-commit-reply@in-commit, commit reply lost, answer 201",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &remote{}
			var got answer
			b := play(t, slowserver.Config{
				Processing: time.Second, Guard: tt.guard, Store: s, OnUnknownCommit: tt.unknown,
				Faults: []fault.Settings{{At: fault.InCommit, Do: tt.lost, Arrivals: []int{1}}},
			}, func(b *bench) {
				s.Store = b.store
				got = b.send(order("send-1", "k"))
				if tt.guard == first && keyState(b, "k") == "absent" {
					panic("the key was released")
				}
			})
			diff(t, "answer", tt.want, got.String())
			diff(t, "effects", tt.effects, len(b.effects))
			diff(t, "asked", tt.asked, s.asked)
			diff(t, "journal", tt.journal, b.journal("send-1"))
			diff(t, "fired", []int{1}, b.service.Tally().Fired())
		})
	}
}

// TestPartition cuts the database off before a COMMIT: its transaction stays open until somebody
// ends it, and nobody gets by.
func TestPartition(t *testing.T) {
	t.Parallel()
	s := &remote{}
	var got []answer
	b := play(t, slowserver.Config{
		Processing: time.Second, Guard: guard.Settings{Kind: "same-transaction"}, Store: s,
		Faults: []fault.Settings{{At: fault.InCommit, Do: "partition", Arrivals: []int{1}}},
	}, func(b *bench) {
		s.Store = b.store
		stop := b.clock.AfterFunc(30*time.Second, func() { check(s.silent[0].Rollback()) })
		defer stop()
		got = b.sendAll(order("send-1", "k").leaving(5*time.Second), order("send-2", "k").after(10*time.Second))
	})
	diff(t, "answers", []string{"silence", "201, order 1"}, texts(got))
	diff(t, "the second at", 31*time.Second, got[1].at)
	diff(t, "journal", "arrival, claim won, work, fault partition@in-commit, client-gone", b.journal("send-1"))
	diff(t, "orders of", []string{"send-2"}, b.owners())
}

// TestRefusedAtOnce has a second request come 6 s after the first, to a guard that does not let it
// wait for the transaction.
func TestRefusedAtOnce(t *testing.T) {
	t.Parallel()
	s := &remote{}
	var got []answer
	b := play(t, slowserver.Config{
		Processing: work, Guard: guard.Settings{Kind: "same-transaction", Lock: "advisory"}, Store: &queueless{s},
	}, func(b *bench) {
		s.Store = b.store
		got = b.sendAll(order("send-1", "k"), order("send-2", "k").after(6*time.Second), order("send-3", "k").after(13*time.Second))
	})
	diff(t, "answers", []string{"201, order 1", "409, in-progress", "201, order 1 again"}, texts(got))
	diff(t, "at", 6*time.Second, got[1].at)
	diff(t, "journal", "arrival, claim held, answer 409", b.journal("send-2"))

	f := refusing("claim", store.ErrBusy, 1)
	b = play(t, slowserver.Config{Guard: guard.Settings{Kind: "same-transaction", LockTimeout: 50 * time.Millisecond}, Store: f}, func(b *bench) {
		f.Store = b.store
		got = []answer{b.send(order("send-1", "k"))}
	})
	diff(t, "answer", []string{"409, in-progress"}, texts(got))
	diff(t, "journal", "arrival, claim held, answer 409", b.journal("send-1"))

	// An engine without such locks says so.
	play(t, slowserver.Config{Guard: guard.Settings{Kind: "same-transaction", Lock: "advisory"}}, func(b *bench) {
		got = []answer{b.send(order("send-1", "k"))}
	})
	if got[0].status != 500 || !strings.Contains(got[0].body, store.ErrUnsupported.Error()) {
		t.Errorf("got %s %s", got[0], got[0].body)
	}
}

// queueless lets a second transaction begin beside the first, as far as a lock of its own goes: it
// stands for an engine whose transactions do not wait for each other at their beginning.
type queueless struct{ *remote }

func (q *queueless) Begin(ctx context.Context, id string, o store.TxOptions) (store.Tx, error) {
	q.mu.Lock()
	busy := len(q.locked) > 0
	q.mu.Unlock()
	if busy {
		return &lockOnly{remote: q.remote}, nil
	}
	return q.remote.Begin(ctx, id, o)
}

type lockOnly struct {
	store.Tx
	remote *remote
}

func (t *lockOnly) TryLock(_ context.Context, key string) (bool, error) {
	t.remote.mu.Lock()
	defer t.remote.mu.Unlock()
	return !t.remote.locked[key], nil
}
func (t *lockOnly) Rollback() error { return nil }

// TestPlainInsert is the code of many articles: a look at the key, and an INSERT.
func TestPlainInsert(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		onDuplicate string
		aborts      bool // a transaction that has failed can do no more
		want        string
		title       string
		journal     string
	}{
		{
			name: "fail", want: "500, store", title: "unique violation: insert: ",
			journal: "arrival, check absent, claim duplicate, rollback duplicate, answer 500",
		},
		{
			name: "read on, as in PostgreSQL", onDuplicate: "read-on", aborts: true, want: "500, store", title: "transaction aborted: ",
			journal: "arrival, check absent, claim duplicate, rollback aborted, answer 500",
		},
		{
			name: "start over", onDuplicate: "start-over", want: "201, order 1",
			journal: "arrival, check absent, claim duplicate, check absent, claim won, work, commit, answer 201",
		},
		{
			name: "a 409, which is found in a new one", onDuplicate: "conflict", want: "201, order 1",
			journal: "arrival, check absent, claim duplicate, check absent, claim won, work, commit, answer 201",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			failed := false
			s := &faulty{fail: func(step string) error {
				switch {
				case step == "insert" && !failed:
					failed = true
					return fmt.Errorf("insert: %w", store.ErrDuplicate)
				case step == "read" && failed && tt.aborts:
					return store.ErrAborted
				}
				return nil
			}}
			var got answer
			b := play(t, slowserver.Config{Guard: guard.Settings{Kind: "same-transaction", Insert: "plain", OnDuplicate: tt.onDuplicate}, Store: s}, func(b *bench) {
				s.Store = b.store
				got = b.send(order("send-1", "k"))
			})
			diff(t, "answer", tt.want, got.String())
			if !strings.Contains(got.body, tt.title) {
				t.Errorf("%s does not say %q", got.body, tt.title)
			}
			diff(t, "journal", tt.journal, b.journal("send-1"))
		})
	}

	// Only a claim that was committed before its order can be seen in progress.
	var got answer
	b := play(t, slowserver.Config{Guard: guard.Settings{Kind: "same-transaction", Insert: "plain", Fingerprint: "none"}}, func(b *bench) {
		tx := must(b.store.Begin(context.Background(), "another", store.TxOptions{}))
		check(tx.Insert(context.Background(), "k", store.Claim{Owner: "another"}))
		check(tx.Commit())
		got = b.send(order("send-1", "k"))
	})
	diff(t, "answer", "409, in-progress", got.String())
	diff(t, "journal", "arrival, check processing, answer 409", b.journal("send-1"))
}

// TestTransactionOptions looks at what a guard asks of its transaction.
func TestTransactionOptions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		settings guard.Settings
		want     store.TxOptions
	}{
		{guard.Settings{Kind: "same-transaction"}, store.TxOptions{}},
		{
			guard.Settings{Kind: "same-transaction", Isolation: "repeatable-read", LockTimeout: time.Second, IdleTimeout: 2 * time.Second},
			store.TxOptions{Isolation: store.RepeatableRead, LockTimeout: time.Second, IdleTimeout: 2 * time.Second},
		},
		{guard.Settings{Kind: "check-then-insert", Isolation: "serializable"}, store.TxOptions{Isolation: store.Serializable}},
	} {
		s := &faulty{fail: func(string) error { return nil }}
		var got []answer
		play(t, slowserver.Config{Guard: tt.settings, Store: s}, func(b *bench) {
			s.Store = b.store
			got = b.sendAll(order("send-1", "k"), order("send-2", "k").after(time.Second))
		})
		diff(t, "answers", []string{"201, order 1", "201, order 1 again"}, texts(got))
		diff(t, "options", []store.TxOptions{tt.want, tt.want}, s.options)
	}
}

// TestLease has a first request pause for longer than its lease, and others come meanwhile.
func TestLease(t *testing.T) {
	t.Parallel()
	leased := func(change func(*guard.Settings)) guard.Settings {
		s := guard.Settings{Kind: "unique-index", Lease: 10 * time.Second}
		if change != nil {
			change(&s)
		}
		return s
	}
	fencing := func(how string) func(*guard.Settings) { return func(s *guard.Settings) { s.Fencing = how } }
	deleting := func(how string) func(*guard.Settings) {
		return func(s *guard.Settings) { s.Fencing, s.OnFailure = how, "delete" }
	}
	pause := func(d time.Duration, arrival int) fault.Settings {
		return fault.Settings{At: fault.AfterClaim, Do: "delay", Delay: d, Arrivals: []int{arrival}}
	}
	failure := func(arrival int) fault.Settings {
		return fault.Settings{At: fault.BeforeCommit, Do: "status", Status: 503, Arrivals: []int{arrival}}
	}
	seconds := func(at ...time.Duration) (out []time.Duration) {
		for _, s := range at {
			out = append(out, s*time.Second)
		}
		return out
	}
	tests := []struct {
		name     string
		settings guard.Settings
		faults   []fault.Settings
		sends    []time.Duration
		answers  []string
		at       []time.Duration
		owners   []string
		journal  string // of the first
	}{
		{
			name: "not run out", settings: leased(nil), faults: []fault.Settings{pause(15*time.Second, 1)}, sends: seconds(0, 9),
			answers: []string{"201, order 1", "409, in-progress"}, at: seconds(16, 9), owners: []string{"send-1"},
			journal: "arrival, claim won, fault delay@after-claim, work, commit, answer 201",
		},
		{
			name: "run out", settings: leased(nil), faults: []fault.Settings{pause(15*time.Second, 1)}, sends: seconds(0, 11),
			answers: []string{"201, order 2", "201, order 1"}, at: seconds(16, 12), owners: []string{"send-2", "send-1"},
			journal: "arrival, claim won, fault delay@after-claim, work, commit, answer 201",
		},
		{
			name: "run out, fence", settings: leased(fencing("fence")), faults: []fault.Settings{pause(15*time.Second, 1)}, sends: seconds(0, 11),
			answers: []string{"409, in-progress", "201, order 1"}, at: seconds(16, 12), owners: []string{"send-2"},
			journal: "arrival, claim won, fault delay@after-claim, work, rollback fenced out, answer 409",
		},
		{
			name: "run out, owner and fence", settings: leased(fencing("owner-and-fence")), faults: []fault.Settings{pause(15*time.Second, 1)}, sends: seconds(0, 11),
			answers: []string{"409, in-progress", "201, order 1"}, at: seconds(16, 12), owners: []string{"send-2"},
			journal: "arrival, claim won, fault delay@after-claim, work, rollback fenced out, answer 409",
		},
		{
			// Nobody tells that a lease has run out: the wait ends by itself.
			name: "waiting for the end of a lease", settings: leased(func(s *guard.Settings) { s.InProgress, s.Fencing = "wait", "fence" }),
			faults: []fault.Settings{pause(30*time.Second, 1)}, sends: seconds(0, 4),
			answers: []string{"409, in-progress", "201, order 1"}, at: seconds(31, 15), owners: []string{"send-2"},
			journal: "arrival, claim won, fault delay@after-claim, work, rollback fenced out, answer 409",
		},
		{
			name: "waiting for a holder that is done before its lease ends", settings: leased(func(s *guard.Settings) { s.InProgress = "wait" }),
			faults: []fault.Settings{pause(5*time.Second, 1)}, sends: seconds(0, 4),
			answers: []string{"201, order 1", "201, order 1 again"}, at: seconds(6, 6), owners: []string{"send-1"},
			journal: "arrival, claim won, fault delay@after-claim, work, commit, answer 201",
		},
		{
			// The late failure of the first deletes the claim of the second, so a third begins too.
			name: "a late failure", settings: leased(deleting("none")), faults: []fault.Settings{pause(14*time.Second, 1), failure(1), pause(7*time.Second, 2)},
			sends:   seconds(0, 11, 16),
			answers: []string{"503, injected", "201, order 2", "201, order 1"}, at: seconds(15, 19, 17), owners: []string{"send-3", "send-2"},
			journal: "arrival, claim won, fault delay@after-claim, work, fault status@before-commit, answer 503",
		},
		{
			name: "a late failure, fence", settings: leased(deleting("fence")), faults: []fault.Settings{pause(14*time.Second, 1), failure(1), pause(7*time.Second, 2)},
			sends:   seconds(0, 11, 16),
			answers: []string{"503, injected", "201, order 1", "409, in-progress"}, at: seconds(15, 19, 16), owners: []string{"send-2"},
			journal: "arrival, claim won, fault delay@after-claim, work, fault status@before-commit, rollback fenced out, answer 503",
		},
		{
			name: "a late failure that is marked, fence", settings: leased(func(s *guard.Settings) { s.Fencing, s.OnFailure = "fence", "mark" }),
			faults: []fault.Settings{pause(14*time.Second, 1), failure(1), pause(7*time.Second, 2)}, sends: seconds(0, 11, 16),
			answers: []string{"503, injected", "201, order 1", "409, in-progress"}, at: seconds(15, 19, 16), owners: []string{"send-2"},
			journal: "arrival, claim won, fault delay@after-claim, work, fault status@before-commit, rollback fenced out, answer 503",
		},
		{
			// The second deletes its claim, the third has the fence 1 again, and so has the first:
			// it finishes what is the third's, which is then refused.
			name: "a fence that begins anew", settings: leased(deleting("fence")), faults: []fault.Settings{pause(21*time.Second, 1), failure(2), pause(2*time.Second, 3)},
			sends:   seconds(0, 11, 20),
			answers: []string{"201, order 1", "503, injected", "409, in-progress"}, at: seconds(22, 12, 23), owners: []string{"send-1"},
			journal: "arrival, claim won, fault delay@after-claim, work, commit, answer 201",
		},
		{
			name: "a fence that begins anew, and the owner", settings: leased(deleting("owner-and-fence")), faults: []fault.Settings{pause(21*time.Second, 1), failure(2), pause(2*time.Second, 3)},
			sends:   seconds(0, 11, 20),
			answers: []string{"409, in-progress", "503, injected", "201, order 1"}, at: seconds(22, 12, 23), owners: []string{"send-3"},
			journal: "arrival, claim won, fault delay@after-claim, work, rollback fenced out, answer 409",
		},
		{
			// The record stays, and with it the fence: the first is still known for what it is.
			name: "marked failures keep the fence", settings: leased(func(s *guard.Settings) { s.Fencing, s.OnFailure = "fence", "mark" }),
			faults: []fault.Settings{pause(21*time.Second, 1), failure(2)}, sends: seconds(0, 11, 20),
			answers: []string{"409, in-progress", "503, injected", "503, injected, again"}, at: seconds(22, 12, 20), owners: nil,
			journal: "arrival, claim won, fault delay@after-claim, work, rollback fenced out, answer 409",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if p := tt.settings.Check(); p != nil {
				t.Fatalf("%+v", *p)
			}
			var got []answer
			b := play(t, slowserver.Config{Processing: time.Second, Guard: tt.settings, Faults: tt.faults}, func(b *bench) {
				var requests []request
				for i, at := range tt.sends {
					requests = append(requests, order(fmt.Sprint("send-", i+1), "k").after(at))
				}
				got = b.sendAll(requests...)
			})
			var at []time.Duration
			for _, a := range got {
				at = append(at, a.at)
			}
			diff(t, "answers", tt.answers, texts(got))
			diff(t, "times", tt.at, at)
			diff(t, "orders of", tt.owners, b.owners())
			diff(t, "journal", tt.journal, b.journal("send-1"))
			for i := range tt.faults {
				diff(t, "fired", 1, b.service.Tally().Fired()[i])
			}
		})
	}
}

// TestTakenOver says of a claim that it had another owner before.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	b := play(t, slowserver.Config{
		Guard:  guard.Settings{Kind: "unique-index", Lease: time.Second},
		Faults: []fault.Settings{{At: fault.AfterClaim, Do: "close", Arrivals: []int{1}}},
	}, func(b *bench) {
		b.sendAll(order("send-1", "k"), order("send-2", "k").after(2*time.Second))
	})
	diff(t, "journal", "arrival, claim taken over, work, commit, answer 201", b.journal("send-2"))
}

// TestRows changes the rows that orders share, in their order or the other way round.
func TestRows(t *testing.T) {
	t.Parallel()
	for _, alternate := range []bool{false, true} {
		t.Run(fmt.Sprintf("alternate=%v", alternate), func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var touched []string
			var got []answer
			s := &faulty{}
			play(t, slowserver.Config{Processing: time.Second, Store: s, Rows: []string{"stock", "ledger", "points"}, RowTime: 2 * time.Second, AlternateRows: alternate}, func(b *bench) {
				s.Store = b.store
				s.fail = func(step string) error {
					if row, ok := strings.CutPrefix(step, "write "); ok {
						mu.Lock()
						defer mu.Unlock()
						touched = append(touched, fmt.Sprint(row, " at ", b.clock.Now().Round(time.Millisecond)))
					}
					return nil
				}
				got = b.sendAll(order("send-1", ""), order("send-2", "").after(10*time.Second))
			})
			want := []string{"stock at 1s", "ledger at 3s", "points at 5s", "stock at 11s", "ledger at 13s", "points at 15s"}
			if alternate {
				want = []string{"stock at 1s", "ledger at 3s", "points at 5s", "points at 11s", "ledger at 13s", "stock at 15s"}
			}
			diff(t, "touched", want, touched)
			diff(t, "answered", []time.Duration{5 * time.Second, 15 * time.Second}, []time.Duration{got[0].at, got[1].at})
		})
	}
}

// TestOrderOutside writes the order where the failure of its request does not undo it.
func TestOrderOutside(t *testing.T) {
	t.Parallel()
	failure := []fault.Settings{{At: fault.BeforeCommit, Do: "status", Status: 500, Arrivals: []int{1}}}
	deleting := guard.Settings{Kind: "unique-index", OnFailure: "delete"}
	tests := []struct {
		name    string
		guard   guard.Settings
		faults  []fault.Settings
		answers []string
		owners  []string
		journal string // of the first
	}{
		{
			name: "all is well", guard: deleting,
			answers: []string{"201, order 1", "201, order 1 again"}, owners: []string{"send-1"},
			journal: "arrival, claim won, work, commit, answer 201",
		},
		{
			name: "a failure", guard: deleting, faults: failure,
			answers: []string{"500, injected", "201, order 2"}, owners: []string{"send-1", "send-2"},
			journal: "arrival, claim won, work, commit, fault status@before-commit, answer 500",
		},
		{
			// The index refuses the key, and the order is there already.
			name: "a claim that comes too late", guard: guard.Settings{Kind: "unique-index", Claim: "at-insert"},
			answers: []string{"201, order 1", "201, order 1 again"}, owners: []string{"send-1", "send-2"},
			journal: "arrival, work, commit, claim won, answer 201",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []answer
			b := play(t, slowserver.Config{Processing: time.Second, Guard: tt.guard, Faults: tt.faults, OrderOutside: true}, func(b *bench) {
				got = b.sendAll(order("send-1", "k"), order("send-2", "k").after(5*time.Second))
			})
			diff(t, "answers", tt.answers, texts(got))
			diff(t, "orders of", tt.owners, b.owners())
			diff(t, "journal", tt.journal, b.journal("send-1"))
			commits := 0
			for _, e := range b.events {
				if e.Kind == lab.Commit {
					commits++
				}
			}
			diff(t, "commits", len(tt.owners), commits)
		})
	}
}

// TestCannotBe lists what a service refuses to be made of.
func TestCannotBe(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]slowserver.Config{
		"the order cannot be written outside the transaction that the guard same-transaction holds": {OrderOutside: true, Guard: guard.Settings{Kind: "same-transaction"}},
		"ask what became of a commit: the engine cannot do this":                                    {OnUnknownCommit: "ask"},
	} {
		if _, err := slowserver.New(t.Context(), c); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestLookAtOrders finds an order by its key, whatever its body was.
func TestLookAtOrders(t *testing.T) {
	t.Parallel()
	s := &faulty{fail: func(string) error { return nil }}
	var got []answer
	b := play(t, slowserver.Config{Processing: time.Second, Guard: guard.Settings{Kind: "check-then-insert", Isolation: "read-committed"}, Store: s}, func(b *bench) {
		s.Store = b.store
		got = b.sendAll(order("send-1", "k"), order("send-2", "k").after(5*time.Second).with(`{"item":"pen","amount_minor":1}`), order("send-3", "k2").after(10*time.Second))
	})
	diff(t, "answers", []string{"201, order 1", "201, order 1 again", "201, order 2"}, texts(got))
	diff(t, "journal", "arrival, check done, answer 201", b.journal("send-2"))
	if slices.Contains(b.owners(), "send-2") {
		t.Error("the second has an order")
	}
}
