package slowserver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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

// keyState says what is left of a key: absent, or the state of its record.
func keyState(b *bench, key string) string {
	r, found, err := b.store.Read(context.Background(), key)
	check(err)
	if !found {
		return "absent"
	}
	return r.Status.String()
}

// struck is what a fault does to an order of 1 s of work behind a unique index, whose key is
// claimed first. The client leaves after 10 s.
type struck struct {
	client  string
	at      time.Duration
	orders  int
	key     string
	journal string
}

var faults = map[string]struck{
	"delay@before-guard":  {"201, order 1", 6 * time.Second, 1, "done", "arrival, fault delay@before-guard, claim won, work, commit, answer 201"},
	"delay@after-claim":   {"201, order 1", 6 * time.Second, 1, "done", "arrival, claim won, fault delay@after-claim, work, commit, answer 201"},
	"delay@before-commit": {"201, order 1", 6 * time.Second, 1, "done", "arrival, claim won, work, fault delay@before-commit, commit, answer 201"},
	"delay@in-commit":     {"201, order 1", 6 * time.Second, 1, "done", "arrival, claim won, work, fault delay@in-commit, commit, answer 201"},
	"delay@after-commit":  {"201, order 1", 6 * time.Second, 1, "done", "arrival, claim won, work, commit, fault delay@after-commit, answer 201"},
	"delay@in-reply":      {"201, order 1", 6 * time.Second, 1, "done", "arrival, claim won, work, commit, fault delay@in-reply, answer 201"},

	"close@before-guard":  {"EOF", 0, 0, "absent", "arrival, fault close@before-guard"},
	"close@after-claim":   {"EOF", 0, 0, "processing", "arrival, claim won, fault close@after-claim"},
	"close@before-commit": {"EOF", time.Second, 0, "processing", "arrival, claim won, work, fault close@before-commit"},
	"close@after-commit":  {"EOF", time.Second, 1, "done", "arrival, claim won, work, commit, fault close@after-commit"},
	"close@in-reply":      {"EOF", time.Second, 1, "done", "arrival, claim won, work, commit, fault close@in-reply"},

	"reset@before-guard":  {"reset", 0, 0, "absent", "arrival, fault reset@before-guard"},
	"reset@after-claim":   {"reset", 0, 0, "processing", "arrival, claim won, fault reset@after-claim"},
	"reset@before-commit": {"reset", time.Second, 0, "processing", "arrival, claim won, work, fault reset@before-commit"},
	"reset@after-commit":  {"reset", time.Second, 1, "done", "arrival, claim won, work, commit, fault reset@after-commit"},
	"reset@in-reply":      {"reset", time.Second, 1, "done", "arrival, claim won, work, commit, fault reset@in-reply"},

	"status@before-guard":  {"503, injected, retry after soon", 0, 0, "absent", "arrival, fault status@before-guard, answer 503"},
	"status@after-claim":   {"503, injected, retry after soon", 0, 0, "processing", "arrival, claim won, fault status@after-claim, answer 503"},
	"status@before-commit": {"503, injected, retry after soon", time.Second, 0, "processing", "arrival, claim won, work, fault status@before-commit, answer 503"},
	"status@after-commit":  {"503, injected, retry after soon", time.Second, 1, "done", "arrival, claim won, work, commit, fault status@after-commit, answer 503"},
	"status@in-reply":      {"503, injected, retry after soon", time.Second, 1, "done", "arrival, claim won, work, commit, fault status@in-reply, answer 503"},

	"delay@in-work":  {"201, order 1", 6 * time.Second, 1, "done", "arrival, claim won, work, fault delay@in-work, commit, answer 201"},
	"close@in-work":  {"EOF", 700 * time.Millisecond, 0, "processing", "arrival, claim won, work, fault close@in-work"},
	"reset@in-work":  {"reset", 700 * time.Millisecond, 0, "processing", "arrival, claim won, work, fault reset@in-work"},
	"status@in-work": {"503, injected, retry after soon", 700 * time.Millisecond, 0, "processing", "arrival, claim won, work, fault status@in-work, answer 503"},
	"crash@in-work":  {"EOF", 700 * time.Millisecond, 0, "processing", "arrival, claim won, work, fault crash@in-work, crash"},

	"lose@after-commit": {"silence", 10 * time.Second, 1, "done", "arrival, claim won, work, commit, fault lose@after-commit, client-gone"},
	"lose@in-reply":     {"silence", 10 * time.Second, 1, "done", "arrival, claim won, work, commit, fault lose@in-reply, client-gone"},

	"crash@before-guard":  {"EOF", 0, 0, "absent", "arrival, fault crash@before-guard, crash"},
	"crash@after-claim":   {"EOF", 0, 0, "processing", "arrival, claim won, fault crash@after-claim, crash"},
	"crash@before-commit": {"EOF", time.Second, 0, "processing", "arrival, claim won, work, fault crash@before-commit, crash"},
	"crash@after-commit":  {"EOF", time.Second, 1, "done", "arrival, claim won, work, commit, fault crash@after-commit, crash"},

	// An embedded database has no connection that could break.
	"lose-commit@in-commit":       {"500, store", time.Second, 0, "processing", "arrival, claim won, work, fault lose-commit@in-commit, rollback given up, answer 500"},
	"lose-commit-reply@in-commit": {"500, store", time.Second, 0, "processing", "arrival, claim won, work, fault lose-commit-reply@in-commit, rollback given up, answer 500"},
	// Here the key is finished with the order, so there is nothing to lose.
	"lose-finish@after-commit": {"201, order 1", time.Second, 1, "done", "arrival, claim won, work, commit, fault lose-finish@after-commit, answer 201"},
	"partition@in-commit":      {"500, store", time.Second, 0, "processing", "arrival, claim won, work, fault partition@in-commit, rollback given up, answer 500"},

	"redis-restart@before-guard":     {"201, order 1", time.Second, 1, "done", "arrival, fault redis-restart@before-guard, claim won, work, commit, answer 201"},
	"redis-restart@before-commit":    {"201, order 1", time.Second, 1, "done", "arrival, claim won, work, fault redis-restart@before-commit, commit, answer 201"},
	"redis-restart@after-commit":     {"201, order 1", time.Second, 1, "done", "arrival, claim won, work, commit, fault redis-restart@after-commit, answer 201"},
	"redis-failover@before-guard":    {"201, order 1", time.Second, 1, "done", "arrival, fault redis-failover@before-guard, claim won, work, commit, answer 201"},
	"redis-failover@before-commit":   {"201, order 1", time.Second, 1, "done", "arrival, claim won, work, fault redis-failover@before-commit, commit, answer 201"},
	"redis-failover@after-commit":    {"201, order 1", time.Second, 1, "done", "arrival, claim won, work, commit, fault redis-failover@after-commit, answer 201"},
	"redis-down@before-guard":        {"201, order 1", time.Second, 1, "done", "arrival, fault redis-down@before-guard, claim won, work, commit, answer 201"},
	"redis-down@before-commit":       {"201, order 1", time.Second, 1, "done", "arrival, claim won, work, fault redis-down@before-commit, commit, answer 201"},
	"redis-down@after-commit":        {"201, order 1", time.Second, 1, "done", "arrival, claim won, work, commit, fault redis-down@after-commit, answer 201"},
	"redis-lose-reply@before-guard":  {"201, order 1", time.Second, 1, "done", "arrival, fault redis-lose-reply@before-guard, claim won, work, commit, answer 201"},
	"redis-lose-reply@before-commit": {"201, order 1", time.Second, 1, "done", "arrival, claim won, work, fault redis-lose-reply@before-commit, commit, answer 201"},
	"redis-lose-reply@after-commit":  {"201, order 1", time.Second, 1, "done", "arrival, claim won, work, commit, fault redis-lose-reply@after-commit, answer 201"},

	"malformed@in-reply":    {"201", time.Second, 1, "done", "arrival, claim won, work, commit, fault malformed@in-reply, answer 201"},
	"empty@in-reply":        {"201", time.Second, 1, "done", "arrival, claim won, work, commit, fault empty@in-reply, answer 201"},
	"truncate@in-reply":     {"201, EOF", time.Second, 1, "done", "arrival, claim won, work, commit, fault truncate@in-reply, answer 201"},
	"redirect@before-guard": {"308", 0, 0, "absent", "arrival, fault redirect@before-guard, answer 308"},

	"dribble@in-reply": {"201, order 1", 7 * time.Second, 1, "done", "arrival, claim won, work, commit, fault dribble@in-reply, answer 201, answered 201"},
}

// settings of each kind of fault, without its place.
var kinds = map[string]fault.Settings{
	"delay":   {Delay: 5 * time.Second},
	"status":  {Status: 503, RetryAfter: "soon"}, // goes over the wire as it is written
	"dribble": {Chunks: 3, ChunkSize: 100, Pause: 2 * time.Second},
	"crash":   {Restart: 5 * time.Second},

	"redirect": {Status: 308},
}

func TestEveryFault(t *testing.T) {
	t.Parallel()
	tried := 0
	for _, kind := range fault.Kinds {
		for _, place := range kind.Places {
			if place == fault.AtConnect {
				continue // played by the network
			}
			tried++
			f := kinds[kind.Name]
			f.Do, f.At = kind.Name, place
			if place == fault.InWork {
				f.Into = 700 * time.Millisecond
			}
			t.Run(f.Name(), func(t *testing.T) {
				t.Parallel()
				if p := f.Check(); p != nil {
					t.Fatalf("%+v", *p)
				}
				want, ok := faults[f.Name()]
				if !ok {
					t.Fatal("nobody says what it does")
				}
				var got answer
				var key string
				b := play(t, slowserver.Config{
					Processing: time.Second, Guard: guard.Settings{Kind: "unique-index"}, Faults: []fault.Settings{f},
				}, func(b *bench) {
					got = b.send(order("send-1", "k").leaving(10 * time.Second))
					b.settle()
					key = keyState(b, "k")
				})
				diff(t, "the client got", want.client, got.String())
				diff(t, "at", want.at, got.at)
				diff(t, "orders", want.orders, len(b.effects))
				diff(t, "key", want.key, key)
				diff(t, "journal", want.journal, b.journal("send-1"))
				diff(t, "fired", []int{1}, b.service.Tally().Fired())
			})
		}
	}
	if tried != len(faults) {
		t.Errorf("%d faults were tried, the table has %d", tried, len(faults))
	}
}

// TestFaultsUnderATransaction strikes while the guard's transaction is open: it must be given up,
// and the next request must be let in at once.
func TestFaultsUnderATransaction(t *testing.T) {
	t.Parallel()
	for _, do := range []string{"close", "reset", "status"} {
		for _, at := range []fault.Place{fault.AfterClaim, fault.BeforeCommit} {
			f := kinds[do]
			f.Do, f.At, f.Arrivals = do, at, []int{1}
			t.Run(f.Name(), func(t *testing.T) {
				t.Parallel()
				var got []answer
				b := play(t, slowserver.Config{
					Processing: time.Second, Guard: guard.Settings{Kind: "same-transaction"}, Faults: []fault.Settings{f},
				}, func(b *bench) {
					got = b.sendAll(order("send-1", "k"), order("send-2", "k").after(100*time.Millisecond))
				})
				diff(t, "the second got", "201, order 1", got[1].String())
				at, rolledBack := 1100*time.Millisecond, b.when("send-1", lab.Rollback)
				if f.At == fault.BeforeCommit {
					at = 2 * time.Second
				}
				diff(t, "at", at, got[1].at)
				if struck := b.when("send-1", lab.Fault); rolledBack != struck {
					t.Errorf("struck at %s, rolled back at %s", struck, rolledBack)
				}
				diff(t, "orders of", []string{"send-2"}, b.owners())
			})
		}
	}
}

func TestWhichArrivalsAreStruck(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name               string
		arrivals, replicas []int
		want               string // of six requests, to the replicas in turn
	}{
		{"all", nil, nil, "xxxxxx"},
		{"arrivals, counted over all replicas", []int{2, 3, 6}, nil, "-xx--x"},
		{"a replica", nil, []int{2}, "-x-x-x"},
		{"both replicas", nil, []int{1, 2}, "xxxxxx"},
		{"arrivals at a replica", []int{1, 2, 3, 4}, []int{2}, "-x-x--"},
		{"an arrival at the other replica", []int{1}, []int{2}, "------"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := ""
			b := play(t, slowserver.Config{Faults: []fault.Settings{
				{At: fault.BeforeGuard, Do: "close", Arrivals: tt.arrivals, Replicas: tt.replicas},
			}}, func(b *bench) {
				for i := range 6 {
					if b.send(order(fmt.Sprint("send-", i+1), "").to(i%2+1)).broken != "" {
						got += "x"
					} else {
						got += "-"
					}
				}
			})
			diff(t, "struck", tt.want, got)
			diff(t, "fired", []int{strings.Count(tt.want, "x")}, b.service.Tally().Fired())
			diff(t, "orders", strings.Count(tt.want, "-"), len(b.effects))
			for i, e := range b.effects {
				if want := "order-" + map[bool]string{true: "1", false: "2"}[strings.HasSuffix(e.Send, "1") || strings.HasSuffix(e.Send, "3") || strings.HasSuffix(e.Send, "5")]; e.Node != want {
					t.Errorf("order %d was written by %s, want %s", i, e.Node, want)
				}
			}
		})
	}
}

// TestOfEach: arrivals of each operation are counted over all replicas.
func TestOfEach(t *testing.T) {
	t.Parallel()
	got := ""
	b := play(t, slowserver.Config{Faults: []fault.Settings{{At: fault.BeforeGuard, Do: "close", OfEach: []int{2}, Operations: []int{1, 2}}}}, func(b *bench) {
		for i, operation := range []string{"op-1", "op-2", "op-1", "op-1", "op-3", "op-3", "op-2"} {
			r := order(fmt.Sprint("send-", i+1), "").to(i%2 + 1)
			r.operation = operation
			if b.send(r).broken != "" {
				got += "x"
			} else {
				got += "-"
			}
		}
	})
	diff(t, "struck", "--x---x", got)
	diff(t, "fired", []int{2}, b.service.Tally().Fired())
}

// TestSeveralFaults strike in the order of the file, until one ends the request.
func TestSeveralFaults(t *testing.T) {
	t.Parallel()
	delay := func(d time.Duration) fault.Settings {
		return fault.Settings{At: fault.BeforeCommit, Do: "delay", Delay: d}
	}
	var got answer
	b := play(t, slowserver.Config{Faults: []fault.Settings{
		{At: fault.AfterCommit, Do: "reset"},
		delay(time.Second),
		delay(2 * time.Second),
		{At: fault.BeforeCommit, Do: "status", Status: 500},
		delay(4 * time.Second),
	}}, func(b *bench) { got = b.send(order("send-1", "")) })
	diff(t, "answer", "500, injected", got.String())
	diff(t, "at", 3*time.Second, got.at)
	diff(t, "fired", []int{0, 1, 1, 1, 0}, b.service.Tally().Fired())
	diff(t, "orders", 0, len(b.effects))
}

// TestFaultInReplyStrikesEveryAnswer is what sets it apart from one after the commit: duplicates
// are answered too.
func TestFaultInReplyStrikesEveryAnswer(t *testing.T) {
	t.Parallel()
	var got []answer
	b := play(t, slowserver.Config{
		Processing: work, Guard: guard.Settings{Kind: "unique-index"},
		Faults: []fault.Settings{{At: fault.InReply, Do: "close"}, {At: fault.AfterCommit, Do: "delay", Delay: time.Second}},
	}, func(b *bench) {
		got = b.sendAll(order("send-1", "k"), order("send-2", "k").after(6*time.Second), order("send-3", "k").after(20*time.Second))
	})
	diff(t, "answers", []string{"EOF", "EOF", "EOF"}, texts(got))
	diff(t, "times", []time.Duration{13 * time.Second, 6 * time.Second, 20 * time.Second}, []time.Duration{got[0].at, got[1].at, got[2].at})
	diff(t, "fired", []int{3, 1}, b.service.Tally().Fired())
}

// TestFire is how the network reports a fault at connect.
func TestFire(t *testing.T) {
	t.Parallel()
	b := play(t, slowserver.Config{Faults: []fault.Settings{
		{At: fault.BeforeGuard, Do: "close"},
		{At: fault.AtConnect, Do: "refuse"},
	}}, func(b *bench) {
		b.service.Fire(1, "order-1", "op-1", "send-1")
		b.service.Fire(1, "order-2", "op-1", "send-1")
	})
	diff(t, "fired", []int{0, 2}, b.service.Tally().Fired())
	diff(t, "events", []lab.Event{
		{Kind: lab.Fault, Operation: "op-1", Send: "send-1", Node: "order-1", Detail: "refuse@connect"},
		{Kind: lab.Fault, Operation: "op-1", Send: "send-1", Node: "order-2", Detail: "refuse@connect"},
	}, b.events)
}

// TestClientGone has the client leave after 5 s of 12.
func TestClientGone(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		guard   guard.Settings
		faults  []fault.Settings
		cancel  bool
		orders  int
		key     string
		gone    time.Duration
		journal string
	}{
		{
			name: "finish", orders: 1, key: "absent", gone: 12 * time.Second,
			journal: "arrival, work, commit, client-gone 201",
		},
		{
			name: "finish, claim first", guard: guard.Settings{Kind: "unique-index"}, orders: 1, key: "done", gone: 12 * time.Second,
			journal: "arrival, claim won, work, commit, client-gone 201",
		},
		{
			name: "finish, same transaction", guard: guard.Settings{Kind: "same-transaction"}, orders: 1, key: "done", gone: 12 * time.Second,
			journal: "arrival, claim won, work, commit, client-gone 201",
		},
		{
			name: "cancel", cancel: true, key: "absent", gone: 5 * time.Second,
			journal: "arrival, work, client-gone",
		},
		{
			// Nobody tells the guard: its key says "in progress" for ever.
			name: "cancel, claim first", guard: guard.Settings{Kind: "unique-index", OnFailure: "delete"}, cancel: true, key: "processing", gone: 5 * time.Second,
			journal: "arrival, claim won, work, client-gone",
		},
		{
			name: "cancel, at insert", guard: guard.Settings{Kind: "unique-index", Claim: "at-insert"}, cancel: true, key: "absent", gone: 5 * time.Second,
			journal: "arrival, work, client-gone",
		},
		{
			name: "cancel, same transaction", guard: guard.Settings{Kind: "same-transaction"}, cancel: true, key: "absent", gone: 5 * time.Second,
			journal: "arrival, claim won, work, rollback given up, client-gone",
		},
		{
			name: "cancel in a delay before the commit", cancel: true, key: "absent", gone: 5 * time.Second,
			faults:  []fault.Settings{{At: fault.BeforeGuard, Do: "delay", Delay: 8 * time.Second}},
			journal: "arrival, fault delay@before-guard, client-gone",
		},
		{
			// What is committed stays, and the answer is made whether somebody waits or not.
			name: "cancel in a delay after the commit", cancel: true, orders: 1, key: "absent", gone: 9 * time.Second,
			faults:  []fault.Settings{{At: fault.AfterCommit, Do: "delay", Delay: 5 * time.Second}},
			journal: "arrival, work, commit, fault delay@after-commit, client-gone 201",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := slowserver.Config{Processing: work, Guard: tt.guard, Faults: tt.faults, CancelWhenGone: tt.cancel}
			if slices.ContainsFunc(tt.faults, func(f fault.Settings) bool { return f.At == fault.AfterCommit }) {
				c.Processing = 4 * time.Second
			}
			var got answer
			var key string
			b := play(t, c, func(b *bench) {
				got = b.send(order("send-1", "k").leaving(5 * time.Second))
				b.settle()
				key = keyState(b, "k")
			})
			diff(t, "the client got", "silence", got.String())
			diff(t, "noticed", tt.gone, b.when("send-1", lab.ClientGone))
			diff(t, "orders", tt.orders, len(b.effects))
			diff(t, "key", tt.key, key)
			diff(t, "journal", tt.journal, b.journal("send-1"))
		})
	}
}

// TestCancelWhileTheWriterIsHeld has the client leave while its order waits for SQLite's writer.
func TestCancelWhileTheWriterIsHeld(t *testing.T) {
	t.Parallel()
	for _, cancel := range []bool{false, true} {
		t.Run(fmt.Sprintf("cancel=%v", cancel), func(t *testing.T) {
			t.Parallel()
			b := play(t, slowserver.Config{CancelWhenGone: cancel}, func(b *bench) {
				tx := must(b.store.Begin(context.Background(), "holder", store.TxOptions{}))
				b.send(order("send-1", "").leaving(time.Second))
				check(b.clock.Sleep(context.Background(), time.Second))
				check(tx.Rollback())
			})
			if cancel {
				diff(t, "journal", "arrival, work, client-gone", b.journal("send-1"))
				diff(t, "noticed", time.Second, b.when("send-1", lab.ClientGone))
				diff(t, "orders", 0, len(b.effects))
			} else {
				diff(t, "journal", "arrival, work, commit, client-gone 201", b.journal("send-1"))
				diff(t, "noticed", 2*time.Second, b.when("send-1", lab.ClientGone))
				diff(t, "orders", 1, len(b.effects))
			}
		})
	}
}

func TestDribble(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		fault    fault.Settings
		patience time.Duration
		client   string
		at       time.Duration
		length   int
		journal  string
	}{
		{
			name:   "whole",
			fault:  fault.Settings{Chunks: 18, ChunkSize: 1024, Pause: 5 * time.Second},
			client: "201, order 1", at: 90 * time.Second, length: 18 * 1024,
			journal: "arrival, work, commit, fault dribble@in-reply, answer 201, answered 201",
		},
		{
			name:     "the client leaves in the middle",
			fault:    fault.Settings{Chunks: 18, ChunkSize: 1024, Pause: 5 * time.Second},
			patience: 12 * time.Second,
			client:   "201, order 1, silence", at: 12 * time.Second, length: 2048,
			journal: "arrival, work, commit, fault dribble@in-reply, answer 201, client-gone",
		},
		{
			name:   "chunks too small for the answer",
			fault:  fault.Settings{Chunks: 4, ChunkSize: 1, Pause: time.Second},
			client: "201, order 1", at: 4 * time.Second, length: 4 * 8, // the answer has 30 bytes
			journal: "arrival, work, commit, fault dribble@in-reply, answer 201, answered 201",
		},
		{
			name:   "more chunks than there are bytes",
			fault:  fault.Settings{Chunks: 40, ChunkSize: 1, Pause: time.Second},
			client: "201, order 1", at: 40 * time.Second, length: 40,
			journal: "arrival, work, commit, fault dribble@in-reply, answer 201, answered 201",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.fault.At, tt.fault.Do = fault.InReply, "dribble"
			var got answer
			b := play(t, slowserver.Config{Faults: []fault.Settings{tt.fault}}, func(b *bench) {
				got = b.send(order("send-1", "").leaving(tt.patience))
			})
			diff(t, "the client got", tt.client, got.String())
			diff(t, "at", tt.at, got.at)
			diff(t, "bytes", tt.length, len(got.body))
			diff(t, "journal", tt.journal, b.journal("send-1"))
			if tt.patience > 0 {
				if gone := b.when("send-1", lab.ClientGone); gone != tt.patience {
					t.Errorf("noticed at %s, want %s", gone, tt.patience)
				}
			}
		})
	}
}

// faulty is a store that fails, or panics, at one step. It takes any options, and remembers them.
type faulty struct {
	store.Store
	fail func(step string) error

	mu      sync.Mutex
	options []store.TxOptions
}

func (f *faulty) Begin(ctx context.Context, id string, o store.TxOptions) (store.Tx, error) {
	if err := f.fail("begin"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.options = append(f.options, o)
	f.mu.Unlock()
	tx, err := f.Store.Begin(ctx, id, store.TxOptions{})
	return &faultyTx{tx, f.fail}, err
}

func (f *faulty) Read(ctx context.Context, key string) (store.Record, bool, error) {
	if err := f.fail("look"); err != nil {
		return store.Record{}, false, err
	}
	return f.Store.Read(ctx, key)
}

type faultyTx struct {
	store.Tx
	fail func(step string) error
}

func (f *faultyTx) Claim(ctx context.Context, key string, c store.Claim) (int64, error) {
	if err := f.fail("claim"); err != nil {
		return 0, err
	}
	return f.Tx.Claim(ctx, key, c)
}

func (f *faultyTx) Insert(ctx context.Context, key string, c store.Claim) error {
	if err := f.fail("insert"); err != nil {
		return err
	}
	return f.Tx.Insert(ctx, key, c)
}

func (f *faultyTx) Placed(ctx context.Context, key string) (int64, bool, error) {
	if err := f.fail("placed"); err != nil {
		return 0, false, err
	}
	return f.Tx.Placed(ctx, key)
}

func (f *faultyTx) Write(ctx context.Context, w store.Write) (bool, error) {
	if err := f.fail("write " + w.Row); err != nil {
		return false, err
	}
	return f.Tx.Write(ctx, w)
}

func (f *faultyTx) Read(ctx context.Context, key string) (store.Record, bool, error) {
	if err := f.fail("read"); err != nil {
		return store.Record{}, false, err
	}
	return f.Tx.Read(ctx, key)
}

func (f *faultyTx) Finish(ctx context.Context, key string, by store.Holder, r store.Record) (bool, error) {
	if err := f.fail("finish"); err != nil {
		return false, err
	}
	return f.Tx.Finish(ctx, key, by, r)
}

func (f *faultyTx) Order(ctx context.Context, o store.Order) (int64, error) {
	if err := f.fail("order"); err != nil {
		return 0, err
	}
	return f.Tx.Order(ctx, o)
}

func (f *faultyTx) Commit() error {
	if err := f.fail("commit"); err != nil {
		return fmt.Errorf("%w, %v", err, f.Tx.Rollback())
	}
	return f.Tx.Commit()
}

func (f *faultyTx) Rollback() error {
	return errors.Join(f.Tx.Rollback(), f.fail("rolled back"))
}

// TestCommitRightAfterTheLook has the first request commit after a waiting one has looked at its key
// and before it waits: the change must not be missed.
func TestCommitRightAfterTheLook(t *testing.T) {
	t.Parallel()
	s := &faulty{}
	var got []answer
	b := play(t, slowserver.Config{
		Processing: 5 * time.Second, Store: s, Guard: guard.Settings{Kind: "unique-index", InProgress: "wait"},
	}, func(b *bench) {
		s.Store = b.store
		s.fail = func(step string) error {
			if step == "rolled back" && b.clock.Now() < 2*time.Second && b.clock.Now() > time.Second {
				return b.clock.Sleep(context.Background(), 10*time.Second)
			}
			return nil
		}
		got = b.sendAll(order("send-1", "k"), order("send-2", "k").after(time.Second).leaving(time.Minute))
	})
	diff(t, "answers", []string{"201, order 1", "201, order 1 again"}, texts(got))
	diff(t, "times", []time.Duration{5 * time.Second, 11 * time.Second}, []time.Duration{got[0].at, got[1].at})
	diff(t, "journal", "arrival, claim held, claim done, answer 201", b.journal("send-2"))
}

// TestStoreFails makes sure that a request whose store fails is answered, that nothing is left of
// it, and that the next one is served.
func TestStoreFails(t *testing.T) {
	eachGuard(t, func(t *testing.T, g guarded, c slowserver.Config) {
		c.Processing = 0
		s := &faulty{}
		c.Store = s
		type failure struct {
			id        string
			got, next answer
		}
		var failures []failure
		b := play(t, c, func(b *bench) {
			s.Store = b.store
			well := func(string) error { return nil }
			for _, step := range []string{"begin", "look", "claim", "read", "finish", "order", "commit"} {
				for _, before := range []bool{false, true} {
					s.fail = well
					key := fmt.Sprintf("%s-%v", step, before)
					if before {
						b.send(order("before-"+key, key)) // so that the one to fail is a duplicate
					}
					s.fail = func(at string) error {
						if at != step {
							return nil
						}
						s.fail = well
						return fmt.Errorf("no %s today", step)
					}
					f := failure{id: "failed-" + key}
					f.got = b.send(order(f.id, key))
					s.fail = well
					f.next = b.send(order("next-"+key, "next-"+key))
					failures = append(failures, f)
				}
			}
		})
		failed := 0
		for _, f := range failures {
			switch {
			case f.got.status == http.StatusOK, f.got.status == http.StatusCreated, // the guard never came to that step
				f.got.String() == g.after && !strings.Contains(f.got.body, "today"): // nor here: the duplicate was found before
			case f.got.status == http.StatusInternalServerError:
				failed++
				if !strings.Contains(f.got.body, lab.ProblemStore) || !strings.Contains(f.got.body, "today") {
					t.Errorf("%s: %s", f.id, f.got.body)
				}
				if slices.Contains(b.owners(), f.id) {
					t.Errorf("%s: an order was left behind", f.id)
				}
			default:
				t.Errorf("%s: %s, want an answer", f.id, f.got)
			}
			if f.next.status != http.StatusCreated {
				t.Errorf("%s: the next request got %s", f.id, f.next)
			}
		}
		if failed < 3 {
			t.Errorf("only %d requests failed", failed)
		}
	})
}

// TestPanic makes sure that a panic is caught, and that the transaction in which it took place
// does not stay open.
func TestPanic(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"order", "finish", "claim"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			s := &faulty{}
			s.fail = func(at string) error {
				if at == step {
					s.fail = func(string) error { return nil }
					panic("out of order")
				}
				return nil
			}
			var next answer
			b := playToPanic(t, slowserver.Config{Store: s, Guard: guard.Settings{Kind: "same-transaction"}}, func(b *bench) {
				s.Store = b.store
				b.send(order("send-1", "k").leaving(time.Second))
				next = b.send(order("send-2", "k").leaving(time.Second))
			})
			if b.panicked == nil || !strings.Contains(b.panicked.Error(), "out of order") {
				t.Errorf("caught %v", b.panicked)
			}
			diff(t, "the next request got", "201, order 1", next.String())
			diff(t, "orders of", []string{"send-2"}, b.owners())
		})
	}
}
