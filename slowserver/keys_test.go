package slowserver_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"retrylab/internal/lab"
	"retrylab/slowserver"
	"retrylab/slowserver/fault"
	"retrylab/slowserver/guard"
)

// memoryKeys is a store of keys that forgets what it is told to forget.
type memoryKeys struct {
	now func() time.Duration

	mu     sync.Mutex
	values map[string]value
	newest string // the key that was written last
	cut    bool
}

type value struct {
	text string
	ends time.Duration // 0 for never
}

var errReplyLost = errors.New("the reply of the keys was lost")

// change performs a command, and loses its reply if that was asked for.
func (k *memoryKeys) change(command func()) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.values == nil {
		k.values = map[string]value{}
	}
	for key, v := range k.values {
		if v.ends != 0 && v.ends <= k.now() {
			delete(k.values, key)
		}
	}
	command()
	if k.cut {
		k.cut = false
		return errReplyLost
	}
	return nil
}

func (k *memoryKeys) put(key, text string, ttl time.Duration) {
	v := value{text: text}
	if ttl > 0 {
		v.ends = k.now() + ttl
	}
	k.values[key], k.newest = v, key
}

func (k *memoryKeys) Claim(_ context.Context, key, text string, ttl time.Duration) (won bool, err error) {
	err = k.change(func() {
		if _, there := k.values[key]; !there {
			k.put(key, text, ttl)
			won = true
		}
	})
	return won, err
}

func (k *memoryKeys) Get(_ context.Context, key string) (text string, found bool, err error) {
	err = k.change(func() {
		v, there := k.values[key]
		text, found = v.text, there
	})
	return text, found, err
}

func (k *memoryKeys) Set(_ context.Context, key, text string, ttl time.Duration) error {
	return k.change(func() { k.put(key, text, ttl) })
}

func (k *memoryKeys) Delete(_ context.Context, key string) error {
	return k.change(func() { delete(k.values, key) })
}

func (k *memoryKeys) Restart(context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.values)
	return nil
}

func (k *memoryKeys) Failover(context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.values, k.newest)
	return nil
}

func (k *memoryKeys) CutNextReply() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cut = true
}

func (k *memoryKeys) Info() lab.Store { return lab.Store{Engine: "memory"} }
func (k *memoryKeys) Close() error    { return nil }

// TestKeysBesideTheDatabase has a request come again after 6 s, when the keys beside the database
// have suffered something.
func TestKeysBesideTheDatabase(t *testing.T) {
	t.Parallel()
	struck := func(at fault.Place, do string, arrival int) []fault.Settings {
		return []fault.Settings{{At: at, Do: do, Arrivals: []int{arrival}}}
	}
	guarded := func(change func(*guard.Settings)) guard.Settings {
		s := guard.Settings{Kind: "redis-precheck"}
		if change != nil {
			change(&s)
		}
		return s
	}
	index := func(s *guard.Settings) { s.Index = true }
	ttl := func(d time.Duration) func(*guard.Settings) { return func(s *guard.Settings) { s.TTL = d } }
	tests := []struct {
		name     string
		settings guard.Settings
		faults   []fault.Settings
		answers  []string
		effects  int
		journal  string // of the second
	}{
		{
			name: "they remember", settings: guarded(nil),
			answers: []string{"201, order 1", "201, order 1 again"}, effects: 1,
			journal: "arrival, claim done, answer 201",
		},
		{
			name: "not to be reached", settings: guarded(nil), faults: struck(fault.BeforeGuard, "redis-down", 2),
			answers: []string{"201, order 1", "503, store"}, effects: 1,
			journal: "arrival, fault redis-down@before-guard, answer 503",
		},
		{
			name: "not to be reached, and let through", settings: guarded(func(s *guard.Settings) { s.FailOpen = true }), faults: struck(fault.BeforeGuard, "redis-down", 2),
			answers: []string{"201, order 1", "201, order 2"}, effects: 2,
			journal: "arrival, fault redis-down@before-guard, check unreachable, work, commit, answer 201",
		},
		{
			name: "not to be reached, let through, index", settings: guarded(func(s *guard.Settings) { s.FailOpen, s.Index = true, true }), faults: struck(fault.BeforeGuard, "redis-down", 2),
			answers: []string{"201, order 1", "201, order 1 again"}, effects: 1,
			journal: "arrival, fault redis-down@before-guard, check unreachable, work, claim done, rollback duplicate, answer 201",
		},
		{
			name: "not to be told of the order", settings: guarded(func(s *guard.Settings) { s.FailOpen = true }), faults: struck(fault.AfterCommit, "redis-down", 1),
			answers: []string{"201, order 1", "409, in-progress"}, effects: 1,
			journal: "arrival, claim held, answer 409",
		},
		{
			name: "not to be told of the order, and an error", settings: guarded(nil), faults: struck(fault.AfterCommit, "redis-down", 1),
			answers: []string{"503, store", "409, in-progress"}, effects: 1,
			journal: "arrival, claim held, answer 409",
		},
		{
			name: "a restart", settings: guarded(nil), faults: struck(fault.BeforeGuard, "redis-restart", 2),
			answers: []string{"201, order 1", "201, order 2"}, effects: 2,
			journal: "arrival, fault redis-restart@before-guard, claim won, work, commit, answer 201",
		},
		{
			name: "a restart, with the index", settings: guarded(index), faults: struck(fault.BeforeGuard, "redis-restart", 2),
			answers: []string{"201, order 1", "201, order 1 again"}, effects: 1,
			journal: "arrival, fault redis-restart@before-guard, claim won, work, claim done, rollback duplicate, answer 201",
		},
		{
			name: "a failover", settings: guarded(nil), faults: struck(fault.BeforeGuard, "redis-failover", 2),
			answers: []string{"201, order 1", "201, order 2"}, effects: 2,
			journal: "arrival, fault redis-failover@before-guard, claim won, work, commit, answer 201",
		},
		{
			name: "a time to live that is over", settings: guarded(ttl(4 * time.Second)),
			answers: []string{"201, order 1", "201, order 2"}, effects: 2,
			journal: "arrival, claim won, work, commit, answer 201",
		},
		{
			name: "a time to live that is not", settings: guarded(ttl(6 * time.Second)), // the answer is written at 1 s
			answers: []string{"201, order 1", "201, order 1 again"}, effects: 1,
			journal: "arrival, claim done, answer 201",
		},
		{
			name: "a restart after the commit, before the answer is written", settings: guarded(nil), faults: struck(fault.AfterCommit, "redis-restart", 1),
			answers: []string{"201, order 1", "201, order 1 again"}, effects: 1,
			journal: "arrival, claim done, answer 201",
		},
		{
			// The claim was won, and nobody knows it.
			name: "the reply to a claim is lost", settings: guarded(nil), faults: struck(fault.BeforeGuard, "redis-lose-reply", 1),
			answers: []string{"500, store", "409, in-progress"}, effects: 0,
			journal: "arrival, claim held, answer 409",
		},
		{
			// The order is there, and its client is told that it failed.
			name: "the reply to the writing of the answer is lost", settings: guarded(nil), faults: struck(fault.AfterCommit, "redis-lose-reply", 1),
			answers: []string{"500, store", "201, order 1 again"}, effects: 1,
			journal: "arrival, claim done, answer 201",
		},
		{
			name: "a death between commit and key, claimed first", settings: guarded(nil), faults: struck(fault.AfterCommit, "close", 1),
			answers: []string{"EOF", "409, in-progress"}, effects: 1,
			journal: "arrival, claim held, answer 409",
		},
		{
			name: "a death between commit and key, written last", settings: guarded(func(s *guard.Settings) { s.Write = "last" }), faults: struck(fault.AfterCommit, "close", 1),
			answers: []string{"EOF", "201, order 2"}, effects: 2,
			journal: "arrival, check absent, work, commit, answer 201",
		},
		{
			name: "a death before the commit, presence taken for done", settings: guarded(func(s *guard.Settings) { s.Presence = "done" }), faults: struck(fault.BeforeCommit, "close", 1),
			answers: []string{"EOF", "200, order 0 again"}, effects: 0,
			journal: "arrival, claim held, answer 200",
		},
		{
			name: "a death before the commit, with a status", settings: guarded(nil), faults: struck(fault.BeforeCommit, "close", 1),
			answers: []string{"EOF", "409, in-progress"}, effects: 0,
			journal: "arrival, claim held, answer 409",
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
				got = b.sendAll(order("send-1", "k"), order("send-2", "k").after(6*time.Second))
			})
			diff(t, "answers", tt.answers, texts(got))
			diff(t, "effects", tt.effects, len(b.effects))
			diff(t, "journal", tt.journal, b.journal("send-2"))
			for i := range tt.faults {
				diff(t, "fired", 1, b.service.Tally().Fired()[i])
			}
		})
	}
}

// TestIndexBehindTheKeys: what the index knows is told to the keys that have forgotten it.
func TestIndexBehindTheKeys(t *testing.T) {
	t.Parallel()
	c := slowserver.Config{
		Processing: time.Second, Guard: guard.Settings{Kind: "redis-precheck", Index: true},
		Faults: []fault.Settings{{At: fault.BeforeGuard, Do: "redis-restart", Arrivals: []int{2}}},
	}
	const other = `{"item":"book","amount_minor":1}`
	for _, tt := range []struct {
		body    string
		answers []string
		journal string // of the third
	}{
		{book, []string{"201, order 1", "201, order 1 again", "201, order 1 again"}, "arrival, claim done, answer 201"},
		// The claim of the other request is taken back.
		{other, []string{"201, order 1", "422, key-conflict", "201, order 1 again"}, "arrival, claim won, work, claim done, rollback duplicate, answer 201"},
	} {
		var got []answer
		b := play(t, c, func(b *bench) {
			got = b.sendAll(order("send-1", "k"), order("send-2", "k").after(2*time.Second).with(tt.body), order("send-3", "k").after(4*time.Second))
		})
		diff(t, "answers", tt.answers, texts(got))
		diff(t, "journal", tt.journal, b.journal("send-3"))
	}
}

// TestKeysAreNeeded: what asks for keys is refused without them.
func TestKeysAreNeeded(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]slowserver.Config{
		"the guard redis-precheck needs a store of keys beside the database":             {Guard: guard.Settings{Kind: "redis-precheck"}},
		"the fault redis-restart@before-guard needs a store of keys beside the database": {Faults: []fault.Settings{{At: fault.BeforeGuard, Do: "redis-restart"}}},
	} {
		if _, err := slowserver.New(t.Context(), c); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestMemoryOfAProcess is what a map in the process is worth.
func TestMemoryOfAProcess(t *testing.T) {
	t.Parallel()
	c := slowserver.Config{Processing: time.Second, Guard: guard.Settings{Kind: "per-process"}}
	restarting := c
	restarting.Faults = []fault.Settings{{At: fault.AfterCommit, Do: "crash", Arrivals: []int{1}, Restart: time.Second}}
	for _, tt := range []struct {
		name    string
		c       slowserver.Config
		second  request
		answers []string
		effects int
	}{
		{"the same replica", c, order("send-2", "k"), []string{"201, order 1", "201, order 1 again"}, 1},
		{"the other replica", c, order("send-2", "k").to(2), []string{"201, order 1", "201, order 2"}, 2},
		{"after a restart", restarting, order("send-2", "k"), []string{"EOF", "201, order 2"}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []answer
			b := play(t, tt.c, func(b *bench) {
				got = b.sendAll(order("send-1", "k"), tt.second.after(6*time.Second))
			})
			diff(t, "answers", tt.answers, texts(got))
			diff(t, "effects", tt.effects, len(b.effects))
		})
	}
}
