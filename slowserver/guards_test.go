package slowserver_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"retrylab/internal/lab"
	"retrylab/slowserver"
	"retrylab/slowserver/fault"
	"retrylab/slowserver/guard"
)

// work is how long an order takes in the tests of guards.
const work = 12 * time.Second

// guarded is a guard with its settings, and what it makes of a request that comes twice.
type guarded struct {
	name     string
	settings guard.Settings

	after string // the answer to a second request when the first was answered
	other string // the same with another body

	during        string        // the answer to a second request 6 s after the first
	at            time.Duration // when it is given
	otherDuring   string        // the same with another body
	otherAt       time.Duration
	journal       string // of the second request
	effects       int    // of the two
	twelve        map[string]int
	twelveOverlap int // most of the twelve that are at work at one instant
}

var guards = []guarded{
	{
		name:  "absent",
		after: "201, order 2", other: "201, order 2",
		during: "201, order 2", at: 18 * time.Second, otherDuring: "201, order 2", otherAt: 18 * time.Second,
		journal: "arrival, work, commit, answer 201",
		effects: 2, twelveOverlap: 12,
	},
	{
		name: "none", settings: guard.Settings{Kind: "none"},
		after: "201, order 2", other: "201, order 2",
		during: "201, order 2", at: 18 * time.Second, otherDuring: "201, order 2", otherAt: 18 * time.Second,
		journal: "arrival, work, commit, answer 201",
		effects: 2, twelveOverlap: 12,
	},
	{
		name: "check-then-insert", settings: guard.Settings{Kind: "check-then-insert"},
		after: "201, order 1 again", other: "422, key-conflict",
		during: "201, order 2", at: 18 * time.Second, otherDuring: "201, order 2", otherAt: 18 * time.Second,
		journal: "arrival, check absent, work, commit, answer 201",
		effects: 2, twelveOverlap: 12,
	},
	{
		name: "unique-index", settings: guard.Settings{Kind: "unique-index"},
		after: "201, order 1 again", other: "422, key-conflict",
		during: "409, in-progress", at: 6 * time.Second, otherDuring: "422, key-conflict", otherAt: 6 * time.Second,
		journal: "arrival, claim held, answer 409",
		effects: 1, twelveOverlap: 1,
		twelve: map[string]int{"201, order 1": 1, "409, in-progress": 11},
	},
	{
		name: "unique-index, 409 with Retry-After", settings: guard.Settings{Kind: "unique-index", Claim: "first", InProgress: "409", RetryAfter: 7 * time.Second},
		after: "201, order 1 again", other: "422, key-conflict",
		during: "409, in-progress, retry after 7", at: 6 * time.Second, otherDuring: "422, key-conflict", otherAt: 6 * time.Second,
		journal: "arrival, claim held, answer 409",
		effects: 1, twelveOverlap: 1,
		twelve: map[string]int{"201, order 1": 1, "409, in-progress, retry after 7": 11},
	},
	{
		name: "unique-index, wait", settings: guard.Settings{Kind: "unique-index", InProgress: "wait"},
		after: "201, order 1 again", other: "422, key-conflict",
		during: "201, order 1 again", at: 12 * time.Second, otherDuring: "422, key-conflict", otherAt: 6 * time.Second,
		journal: "arrival, claim held, claim done, answer 201",
		effects: 1, twelveOverlap: 1,
		twelve: map[string]int{"201, order 1": 1, "201, order 1 again": 11},
	},
	{
		// It says "done" of what is not.
		name: "unique-index, replay", settings: guard.Settings{Kind: "unique-index", InProgress: "replay"},
		after: "201, order 1 again", other: "422, key-conflict",
		during: "200, order 0 again", at: 6 * time.Second, otherDuring: "422, key-conflict", otherAt: 6 * time.Second,
		journal: "arrival, claim held, answer 200",
		effects: 1, twelveOverlap: 1,
		twelve: map[string]int{"201, order 1": 1, "200, order 0 again": 11},
	},
	{
		name: "unique-index, at-insert", settings: guard.Settings{Kind: "unique-index", Claim: "at-insert"},
		after: "201, order 1 again", other: "422, key-conflict",
		during: "201, order 1 again", at: 18 * time.Second, otherDuring: "422, key-conflict", otherAt: 18 * time.Second,
		journal: "arrival, work, claim done, rollback duplicate, answer 201",
		effects: 1, twelveOverlap: 12,
		twelve: map[string]int{"201, order 1": 1, "201, order 1 again": 11},
	},
	{
		name: "lock", settings: guard.Settings{Kind: "lock", LockOn: "key"},
		after: "201, order 2", other: "201, order 2",
		during: "409, locked", at: 6 * time.Second, otherDuring: "409, locked", otherAt: 6 * time.Second,
		journal: "arrival, lock held, answer 409",
		effects: 1, twelveOverlap: 1,
		twelve: map[string]int{"201, order 1": 1, "409, locked": 11},
	},
	{
		name: "lock, renewed", settings: guard.Settings{Kind: "lock", LockOn: "key", Lease: 5 * time.Second, Renew: 2 * time.Second},
		after: "201, order 2", other: "201, order 2",
		during: "409, locked", at: 6 * time.Second, otherDuring: "409, locked", otherAt: 6 * time.Second,
		journal: "arrival, lock held, answer 409",
		effects: 1, twelveOverlap: 1,
		twelve: map[string]int{"201, order 1": 1, "409, locked": 11},
	},
	{
		name: "same-transaction", settings: guard.Settings{Kind: "same-transaction"},
		after: "201, order 1 again", other: "422, key-conflict",
		during: "201, order 1 again", at: 12 * time.Second, otherDuring: "422, key-conflict", otherAt: 12 * time.Second,
		journal: "arrival, claim done, answer 201",
		effects: 1, twelveOverlap: 1,
		twelve: map[string]int{"201, order 1": 1, "201, order 1 again": 11},
	},
	{
		name: "unique-index with a lease", settings: guard.Settings{Kind: "unique-index", Lease: 13 * time.Second, Fencing: "owner-and-fence"},
		after: "201, order 1 again", other: "422, key-conflict",
		during: "409, in-progress", at: 6 * time.Second, otherDuring: "422, key-conflict", otherAt: 6 * time.Second,
		journal: "arrival, claim held, answer 409",
		effects: 1, twelveOverlap: 1,
		twelve: map[string]int{"201, order 1": 1, "409, in-progress": 11},
	},
	{
		name: "same-transaction, plain insert", settings: guard.Settings{Kind: "same-transaction", Insert: "plain"},
		after: "201, order 1 again", other: "422, key-conflict",
		during: "201, order 1 again", at: 12 * time.Second, otherDuring: "422, key-conflict", otherAt: 12 * time.Second,
		journal: "arrival, check done, answer 201",
		effects: 1, twelveOverlap: 1,
		twelve: map[string]int{"201, order 1": 1, "201, order 1 again": 11},
	},
	{
		name: "unique-index, at-insert, conflict", settings: guard.Settings{Kind: "unique-index", Claim: "at-insert", OnDuplicate: "conflict"},
		after: "409, duplicate", other: "422, key-conflict",
		during: "409, duplicate", at: 18 * time.Second, otherDuring: "422, key-conflict", otherAt: 18 * time.Second,
		journal: "arrival, work, claim done, rollback duplicate, answer 409",
		effects: 1, twelveOverlap: 12,
		twelve: map[string]int{"201, order 1": 1, "409, duplicate": 11},
	},
	{
		// Nobody has thought of the unique violation.
		name: "unique-index, at-insert, fail", settings: guard.Settings{Kind: "unique-index", Claim: "at-insert", OnDuplicate: "fail"},
		after: "500, store", other: "500, store",
		during: "500, store", at: 18 * time.Second, otherDuring: "500, store", otherAt: 18 * time.Second,
		journal: "arrival, work, claim duplicate, rollback duplicate, answer 500",
		effects: 1, twelveOverlap: 12,
		twelve: map[string]int{"201, order 1": 1, "500, store": 11},
	},
	{
		name: "unique-index, conflict while the first is at work", settings: guard.Settings{Kind: "unique-index", InProgress: "conflict"},
		after: "201, order 1 again", other: "422, key-conflict",
		during: "409, duplicate", at: 6 * time.Second, otherDuring: "422, key-conflict", otherAt: 6 * time.Second,
		journal: "arrival, claim held, answer 409",
		effects: 1, twelveOverlap: 1,
		twelve: map[string]int{"201, order 1": 1, "409, duplicate": 11},
	},
	{
		// The index holds the time as well: the second request comes at another time.
		name: "unique-index over key and time", settings: guard.Settings{Kind: "unique-index", Claim: "at-insert", UniqueOver: "key-and-time"},
		after: "201, order 2", other: "201, order 2",
		during: "201, order 2", at: 18 * time.Second, otherDuring: "201, order 2", otherAt: 18 * time.Second,
		journal: "arrival, work, claim won, commit, answer 201",
		effects: 2, twelveOverlap: 12,
	},
	{
		name: "unique-index over key and day", settings: guard.Settings{Kind: "unique-index", Claim: "at-insert", UniqueOver: "key-and-day"},
		after: "201, order 1 again", other: "422, key-conflict",
		during: "201, order 1 again", at: 18 * time.Second, otherDuring: "422, key-conflict", otherAt: 18 * time.Second,
		journal: "arrival, work, claim done, rollback duplicate, answer 201",
		effects: 1, twelveOverlap: 12,
		twelve: map[string]int{"201, order 1": 1, "201, order 1 again": 11},
	},
	{
		// The order itself has the key; nothing is known of the body that it came from.
		name: "natural-key", settings: guard.Settings{Kind: "natural-key", KeyFrom: "header"},
		after: "201, order 1 again", other: "201, order 1 again",
		during: "201, order 1 again", at: 18 * time.Second, otherDuring: "201, order 1 again", otherAt: 18 * time.Second,
		journal: "arrival, work, rollback duplicate, claim duplicate, answer 201",
		effects: 1, twelveOverlap: 12,
		twelve: map[string]int{"201, order 1": 1, "201, order 1 again": 11},
	},
	{
		name: "natural-key, conflict", settings: guard.Settings{Kind: "natural-key", KeyFrom: "header", OnDuplicate: "conflict"},
		after: "409, duplicate", other: "409, duplicate",
		during: "409, duplicate", at: 18 * time.Second, otherDuring: "409, duplicate", otherAt: 18 * time.Second,
		journal: "arrival, work, rollback duplicate, claim duplicate, answer 409",
		effects: 1, twelveOverlap: 12,
		twelve: map[string]int{"201, order 1": 1, "409, duplicate": 11},
	},
	{
		name: "natural-key, fail", settings: guard.Settings{Kind: "natural-key", KeyFrom: "header", OnDuplicate: "fail"},
		after: "500, store", other: "500, store",
		during: "500, store", at: 18 * time.Second, otherDuring: "500, store", otherAt: 18 * time.Second,
		journal: "arrival, work, rollback duplicate, answer 500",
		effects: 1, twelveOverlap: 12,
		twelve: map[string]int{"201, order 1": 1, "500, store": 11},
	},
	{
		// A request that comes after the first goes to the other replica here.
		name: "per-process", settings: guard.Settings{Kind: "per-process"},
		after: "201, order 2", other: "201, order 2",
		during: "409, in-progress", at: 6 * time.Second, otherDuring: "422, key-conflict", otherAt: 6 * time.Second,
		journal: "arrival, claim held, answer 409",
		effects: 1, twelveOverlap: 1,
		twelve: map[string]int{"201, order 1": 1, "409, in-progress": 11},
	},
	{
		name: "redis-precheck", settings: guard.Settings{Kind: "redis-precheck"},
		after: "201, order 1 again", other: "422, key-conflict",
		during: "409, in-progress", at: 6 * time.Second, otherDuring: "422, key-conflict", otherAt: 6 * time.Second,
		journal: "arrival, claim held, answer 409",
		effects: 1, twelveOverlap: 1,
		twelve: map[string]int{"201, order 1": 1, "409, in-progress": 11},
	},
	{
		name: "redis-precheck, 409 with Retry-After", settings: guard.Settings{Kind: "redis-precheck", RetryAfter: 7 * time.Second, Index: true},
		after: "201, order 1 again", other: "422, key-conflict",
		during: "409, in-progress, retry after 7", at: 6 * time.Second, otherDuring: "422, key-conflict", otherAt: 6 * time.Second,
		journal: "arrival, claim held, answer 409",
		effects: 1, twelveOverlap: 1,
		twelve: map[string]int{"201, order 1": 1, "409, in-progress, retry after 7": 11},
	},
	{
		// It says "done" of what it has only seen the key of.
		name: "redis-precheck, presence", settings: guard.Settings{Kind: "redis-precheck", Presence: "done"},
		after: "200, order 0 again", other: "200, order 0 again",
		during: "200, order 0 again", at: 6 * time.Second, otherDuring: "200, order 0 again", otherAt: 6 * time.Second,
		journal: "arrival, claim held, answer 200",
		effects: 1, twelveOverlap: 1,
		twelve: map[string]int{"201, order 1": 1, "200, order 0 again": 11},
	},
	{
		name: "redis-precheck, write last", settings: guard.Settings{Kind: "redis-precheck", Write: "last"},
		after: "201, order 1 again", other: "422, key-conflict",
		during: "201, order 2", at: 18 * time.Second, otherDuring: "201, order 2", otherAt: 18 * time.Second,
		journal: "arrival, check absent, work, commit, answer 201",
		effects: 2, twelveOverlap: 12,
	},
	{
		name: "redis-precheck, write last, index", settings: guard.Settings{Kind: "redis-precheck", Write: "last", Index: true},
		after: "201, order 1 again", other: "422, key-conflict",
		during: "201, order 1 again", at: 18 * time.Second, otherDuring: "422, key-conflict", otherAt: 18 * time.Second,
		journal: "arrival, check absent, work, claim done, rollback duplicate, answer 201",
		effects: 1, twelveOverlap: 12,
		twelve: map[string]int{"201, order 1": 1, "201, order 1 again": 11},
	},
}

// protects reports whether g lets one of two requests through that overlap.
func (g guarded) protects() bool { return g.effects == 1 }

// eachGuard runs f for every guard on every store.
func eachGuard(t *testing.T, f func(t *testing.T, g guarded, c slowserver.Config)) {
	t.Parallel()
	for i := range stores {
		for _, g := range guards {
			t.Run(stores[i].name+"/"+g.name, func(t *testing.T) {
				t.Parallel()
				f(t, g, slowserver.Config{Processing: work, Guard: g.settings})
			})
		}
	}
}

func TestEveryGuardIsTried(t *testing.T) {
	t.Parallel()
	for _, g := range guard.All {
		if !slices.ContainsFunc(guards, func(tried guarded) bool { return tried.settings.Kind == g.Name }) {
			t.Errorf("nobody tries the guard %s", g.Name)
		}
	}
	for _, g := range guards {
		if p := g.settings.Check(); p != nil {
			t.Errorf("%s: %+v", g.name, *p)
		}
	}
}

func TestGuardOneRequest(t *testing.T) {
	eachGuard(t, func(t *testing.T, g guarded, c slowserver.Config) {
		var got answer
		b := play(t, c, func(b *bench) { got = b.send(order("send-1", "k")) })
		diff(t, "answer", "201, order 1", got.String())
		diff(t, "time", work, got.at)
		diff(t, "effects", []lab.Effect{{
			Order: 1, Operation: "op-1", Send: "send-1", Node: "order-1", Key: "k", Amount: 5000, CreatedMs: 12000,
		}}, withoutTimes(b.effects))
	})
}

// withoutTimes leaves out the times that are finer than a millisecond.
func withoutTimes(effects []lab.Effect) []lab.Effect {
	for i := range effects {
		effects[i].Created = 0
	}
	return effects
}

func TestGuardDuplicateAfter(t *testing.T) {
	eachGuard(t, func(t *testing.T, g guarded, c slowserver.Config) {
		for _, second := range []struct{ body, want string }{{book, g.after}, {`{"item":"book","amount_minor":5001}`, g.other}} {
			var got answer
			b := play(t, c, func(b *bench) {
				b.send(order("send-1", "k"))
				got = b.send(order("send-2", "k").with(second.body).to(2))
			})
			diff(t, second.body, second.want, got.String())
			diff(t, "Content-Type of "+second.body, contentType(got.status), got.header.Get("Content-Type"))
			want := []string{"send-1"}
			if strings.HasSuffix(second.want, "order 2") {
				want = []string{"send-1", "send-2"}
			}
			diff(t, "orders of", want, b.owners())
		}
	})
}

func contentType(status int) string {
	if status >= 400 {
		return "application/problem+json"
	}
	return "application/json"
}

func TestGuardDuplicateDuring(t *testing.T) {
	eachGuard(t, func(t *testing.T, g guarded, c slowserver.Config) {
		for _, second := range []struct {
			body, want string
			at         time.Duration
		}{
			{book, g.during, g.at},
			{`{"item":"pen","amount_minor":5000}`, g.otherDuring, g.otherAt},
		} {
			var got []answer
			b := play(t, c, func(b *bench) {
				got = b.sendAll(order("send-1", "k"), order("send-2", "k").after(6*time.Second).with(second.body))
			})
			diff(t, "answers with "+second.body, []string{"201, order 1", second.want}, texts(got))
			diff(t, "times with "+second.body, []time.Duration{work, second.at}, []time.Duration{got[0].at, got[1].at})
			diff(t, "effects with "+second.body, g.effects, len(b.effects))
			if second.body == book {
				diff(t, "journal", g.journal, b.journal("send-2"))
			}
		}
	})
}

func TestGuardTwelveAtOnce(t *testing.T) {
	eachGuard(t, func(t *testing.T, g guarded, c slowserver.Config) {
		var got []answer
		b := play(t, c, func(b *bench) { got = b.sendAll(twelve(order("", "k"))...) })
		want := g.twelve
		if !g.protects() {
			want = map[string]int{}
			for n := range 12 {
				want[fmt.Sprintf("201, order %d", n+1)] = 1
			}
		}
		diff(t, "answers", want, count(texts(got)))
		if wantEffects := map[bool]int{true: 1, false: 12}[g.protects()]; len(b.effects) != wantEffects {
			t.Errorf("%d orders, want %d", len(b.effects), wantEffects)
		}
		diff(t, "overlap", g.twelveOverlap, b.service.Tally().Overlap())
	})
}

func TestGuardWithoutKey(t *testing.T) {
	eachGuard(t, func(t *testing.T, g guarded, c slowserver.Config) {
		var got []answer
		b := play(t, c, func(b *bench) {
			got = b.sendAll(order("send-1", ""), order("send-2", "").after(time.Second))
		})
		diff(t, "answers", []string{"201, order 1", "201, order 2"}, texts(got))
		diff(t, "times", []time.Duration{work, work + time.Second}, []time.Duration{got[0].at, got[1].at})
		diff(t, "journal", "arrival, work, commit, answer 201", b.journal("send-2"))
		for _, e := range b.effects {
			diff(t, "key", "", e.Key)
		}
	})
}

func TestGuardOtherKeys(t *testing.T) {
	eachGuard(t, func(t *testing.T, g guarded, c slowserver.Config) {
		var got []answer
		play(t, c, func(b *bench) {
			got = b.sendAll(order("send-1", "k1"), order("send-2", "k2").after(time.Second))
		})
		diff(t, "answers", []string{"201, order 1", "201, order 2"}, texts(got))
		at := work + time.Second
		if g.settings.Open() {
			at = 2 * work // SQLite has one writer: the transaction of another key is waited for too
		}
		diff(t, "time of the second", at, got[1].at)
	})
}

// TestGuardDeterminism plays twelve requests again and again: not a nanosecond may differ.
func TestGuardDeterminism(t *testing.T) {
	eachGuard(t, func(t *testing.T, g guarded, c slowserver.Config) {
		tell := func() []string {
			b := play(t, c, func(b *bench) { b.sendAll(twelve(order("", "k"))...) })
			var out []string
			for _, e := range b.events {
				out = append(out, fmt.Sprintf("%d %s %s %s %d", e.At, e.Send, e.Kind, e.Detail, e.Status))
			}
			slices.Sort(out) // of one instant, any may be the first to record
			return out
		}
		first := tell()
		for range 3 {
			diff(t, "events", first, tell())
		}
	})
}

// TestGuardFailure has the first request fail with a status of its own, just before its commit.
func TestGuardFailure(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		settings guard.Settings
		again    string // a second request, 13 s after the first
		during   string // a second request, 6 s after the first
		at       time.Duration
		effects  int // after the second of the two
		journal  string
	}{
		{
			name:  "none",
			again: "201, order 1", during: "201, order 1", at: 18 * time.Second, effects: 1,
			journal: "arrival, work, fault status@before-commit, answer 503",
		},
		{
			name: "check-then-insert", settings: guard.Settings{Kind: "check-then-insert"},
			again: "201, order 1", during: "201, order 1", at: 18 * time.Second, effects: 1,
			journal: "arrival, check absent, work, fault status@before-commit, answer 503",
		},
		{
			name: "keep", settings: guard.Settings{Kind: "unique-index"},
			again: "409, in-progress", during: "409, in-progress", at: 6 * time.Second,
			journal: "arrival, claim won, work, fault status@before-commit, answer 503",
		},
		{
			name: "keep, by its name", settings: guard.Settings{Kind: "unique-index", OnFailure: "keep"},
			again: "409, in-progress", during: "409, in-progress", at: 6 * time.Second,
			journal: "arrival, claim won, work, fault status@before-commit, answer 503",
		},
		{
			name: "delete", settings: guard.Settings{Kind: "unique-index", OnFailure: "delete"},
			again: "201, order 1", during: "409, in-progress", at: 6 * time.Second,
			journal: "arrival, claim won, work, fault status@before-commit, answer 503",
		},
		{
			// The waiting request takes the place of the one that failed.
			name: "delete, wait", settings: guard.Settings{Kind: "unique-index", OnFailure: "delete", InProgress: "wait"},
			again: "201, order 1", during: "201, order 1", at: 24 * time.Second, effects: 1,
			journal: "arrival, claim won, work, fault status@before-commit, answer 503",
		},
		{
			name: "mark", settings: guard.Settings{Kind: "unique-index", OnFailure: "mark"},
			again: "503, injected, again", during: "409, in-progress", at: 6 * time.Second,
			journal: "arrival, claim won, work, fault status@before-commit, answer 503",
		},
		{
			name: "mark, wait", settings: guard.Settings{Kind: "unique-index", OnFailure: "mark", InProgress: "wait"},
			again: "503, injected, again", during: "503, injected, again", at: 12 * time.Second,
			journal: "arrival, claim won, work, fault status@before-commit, answer 503",
		},
		{
			// A success was promised, and there is no order: lost.
			name: "mark, replay", settings: guard.Settings{Kind: "unique-index", OnFailure: "mark", InProgress: "replay"},
			again: "503, injected, again", during: "200, order 0 again", at: 6 * time.Second,
			journal: "arrival, claim won, work, fault status@before-commit, answer 503",
		},
		{
			name: "at-insert", settings: guard.Settings{Kind: "unique-index", Claim: "at-insert"},
			again: "201, order 1", during: "201, order 1", at: 18 * time.Second, effects: 1,
			journal: "arrival, work, fault status@before-commit, answer 503",
		},
		{
			name: "same-transaction", settings: guard.Settings{Kind: "same-transaction"},
			again: "201, order 1", during: "201, order 1", at: 24 * time.Second, effects: 1,
			journal: "arrival, claim won, work, fault status@before-commit, rollback failed, answer 503",
		},
		{
			name: "per-process", settings: guard.Settings{Kind: "per-process"},
			again: "409, in-progress", during: "409, in-progress", at: 6 * time.Second,
			journal: "arrival, claim won, work, fault status@before-commit, answer 503",
		},
		{
			name: "per-process, delete", settings: guard.Settings{Kind: "per-process", OnFailure: "delete"},
			again: "201, order 1", during: "409, in-progress", at: 6 * time.Second,
			journal: "arrival, claim won, work, fault status@before-commit, answer 503",
		},
		{
			name: "per-process, mark", settings: guard.Settings{Kind: "per-process", OnFailure: "mark"},
			again: "503, injected, again", during: "409, in-progress", at: 6 * time.Second,
			journal: "arrival, claim won, work, fault status@before-commit, answer 503",
		},
		{
			name: "redis-precheck", settings: guard.Settings{Kind: "redis-precheck"},
			again: "409, in-progress", during: "409, in-progress", at: 6 * time.Second,
			journal: "arrival, claim won, work, fault status@before-commit, answer 503",
		},
		{
			// Nobody is at work any more, and everybody is told that it is done.
			name: "redis-precheck, presence", settings: guard.Settings{Kind: "redis-precheck", Presence: "done"},
			again: "200, order 0 again", during: "200, order 0 again", at: 6 * time.Second,
			journal: "arrival, claim won, work, fault status@before-commit, answer 503",
		},
		{
			name: "redis-precheck, delete", settings: guard.Settings{Kind: "redis-precheck", OnFailure: "delete"},
			again: "201, order 1", during: "409, in-progress", at: 6 * time.Second,
			journal: "arrival, claim won, work, fault status@before-commit, answer 503",
		},
		{
			name: "redis-precheck, mark", settings: guard.Settings{Kind: "redis-precheck", OnFailure: "mark"},
			again: "503, injected, again", during: "409, in-progress", at: 6 * time.Second,
			journal: "arrival, claim won, work, fault status@before-commit, answer 503",
		},
		{
			name: "redis-precheck, write last", settings: guard.Settings{Kind: "redis-precheck", Write: "last"},
			again: "201, order 1", during: "201, order 1", at: 18 * time.Second, effects: 1,
			journal: "arrival, check absent, work, fault status@before-commit, answer 503",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := slowserver.Config{Processing: work, Guard: tt.settings, Faults: []fault.Settings{
				{At: fault.BeforeCommit, Do: "status", Status: 503, Arrivals: []int{1}},
			}}
			var got []answer
			b := play(t, c, func(b *bench) {
				got = b.sendAll(order("send-1", "k"), order("send-2", "k").after(13*time.Second))
			})
			diff(t, "answers", []string{"503, injected", tt.again}, texts(got))
			diff(t, "journal of the first", tt.journal, b.journal("send-1"))
			b = play(t, c, func(b *bench) {
				got = b.sendAll(order("send-1", "k"), order("send-2", "k").after(6*time.Second))
			})
			diff(t, "answers", []string{"503, injected", tt.during}, texts(got))
			diff(t, "time of the second", tt.at, got[1].at)
			diff(t, "effects", tt.effects, len(b.effects))
		})
	}
}

// TestGuardClientGoneWhileWaiting has the second client leave 2 s after it began to wait.
func TestGuardClientGoneWhileWaiting(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		settings guard.Settings
		cancel   bool
		journal  string
		gone     time.Duration // when the service notices
	}{
		{
			name: "wait", settings: guard.Settings{Kind: "unique-index", InProgress: "wait"},
			journal: "arrival, claim held, client-gone", gone: 8 * time.Second,
		},
		{
			name: "wait, cancel", settings: guard.Settings{Kind: "unique-index", InProgress: "wait"}, cancel: true,
			journal: "arrival, claim held, client-gone", gone: 8 * time.Second,
		},
		{
			// A wait in the database is not interrupted unless the service asks for it.
			name: "same-transaction", settings: guard.Settings{Kind: "same-transaction"},
			journal: "arrival, claim done, client-gone 201", gone: 12 * time.Second,
		},
		{
			name: "same-transaction, cancel", settings: guard.Settings{Kind: "same-transaction"}, cancel: true,
			journal: "arrival, client-gone", gone: 8 * time.Second,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := slowserver.Config{Processing: work, Guard: tt.settings, CancelWhenGone: tt.cancel}
			var got []answer
			b := play(t, c, func(b *bench) {
				got = b.sendAll(order("send-1", "k"), order("send-2", "k").after(6*time.Second).leaving(2*time.Second))
			})
			diff(t, "answers", []string{"201, order 1", "silence"}, texts(got))
			diff(t, "journal", tt.journal, b.journal("send-2"))
			diff(t, "noticed", tt.gone, b.when("send-2", lab.ClientGone))
			diff(t, "orders of", []string{"send-1"}, b.owners())
		})
	}
}

func TestGuardFingerprint(t *testing.T) {
	t.Parallel()
	const (
		spaced  = "{ \"item\": \"book\",\n\t\"amount_minor\": 5000 }"
		other   = `{"item":"book","amount_minor":5001}`
		ordered = `{"amount_minor":5000,"item":"book"}` // another order of the fields is another body
	)
	replay, conflict := "201, order 1 again", "422, key-conflict"
	tests := []struct {
		fingerprint, body, want string
	}{
		{"", book, replay},
		{"", spaced, conflict},
		{"", other, conflict},
		{"raw", book, replay},
		{"raw", spaced, conflict},
		{"raw", ordered, conflict},
		{"raw", other, conflict},
		{"canonical", book, replay},
		{"canonical", spaced, replay},
		{"canonical", ordered, conflict},
		{"canonical", other, conflict},
		{"none", book, replay},
		{"none", spaced, replay},
		{"none", other, replay},
	}
	for _, kind := range []string{"check-then-insert", "unique-index", "same-transaction", "per-process", "redis-precheck"} {
		for _, tt := range tests {
			t.Run(kind+"/"+tt.fingerprint+"/"+tt.body, func(t *testing.T) {
				t.Parallel()
				var got answer
				play(t, slowserver.Config{Guard: guard.Settings{Kind: kind, Fingerprint: tt.fingerprint}}, func(b *bench) {
					b.send(order("send-1", "k"))
					got = b.send(order("send-2", "k").with(tt.body))
				})
				diff(t, "answer", tt.want, got.String())
			})
		}
	}
	t.Run("query", func(t *testing.T) {
		t.Parallel()
		var got []string
		play(t, slowserver.Config{Guard: guard.Settings{Kind: "unique-index", Fingerprint: "canonical"}}, func(b *bench) {
			for i, query := range []string{"item=book&amount_minor=5000", "item=book&amount_minor=5000", "item=book&amount_minor=5001"} {
				got = append(got, b.send(order(fmt.Sprint("send-", i), "k").get(query)).String())
			}
		})
		diff(t, "answers", []string{"201, order 1", replay, conflict}, got)
	})
}

func TestGuardKeyValue(t *testing.T) {
	t.Parallel()
	for value, want := range map[string][]string{
		"":      {"k1", "k1", "201, order 1 again"},
		"first": {"k1", "k1", "201, order 1 again"},
		"last":  {"k2", "k3", "201, order 2"},
	} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			var got answer
			b := play(t, slowserver.Config{Guard: guard.Settings{Kind: "unique-index", KeyValue: value}}, func(b *bench) {
				first, second := order("send-1", ""), order("send-2", "")
				first.keys, second.keys = []string{"k1", "k2"}, []string{"k1", "k2", "k3"}
				b.send(first)
				got = b.send(second)
			})
			diff(t, "answer", want[2], got.String())
			keys := map[string]string{}
			for _, e := range b.events {
				if e.Kind == lab.Claim {
					keys[e.Send] = e.Key
				}
			}
			diff(t, "claimed", map[string]string{"send-1": want[0], "send-2": want[1]}, keys)
		})
	}
}

// TestOwnKeys is a service that makes the key itself: a new one for each arrival protects nothing.
// TestKeyFrom has the service take the key from elsewhere than the header, and look at whose it is.
func TestKeyFrom(t *testing.T) {
	t.Parallel()
	const other = `{"item":"pen","amount_minor":5000}`
	numbered := func(number string) string { return `{"item":"book","amount_minor":5000,"reference":"` + number + `"}` }
	for _, c := range []struct {
		name          string
		settings      guard.Settings
		first, second request
		want          string
	}{
		{"the content, sent again under another key", guard.Settings{KeyFrom: "content"}, order("send-1", "k1"), order("send-2", "k2"), "201, order 1 again"},
		{"other content under the same key", guard.Settings{KeyFrom: "content"}, order("send-1", "k"), order("send-2", "k").with(other), "201, order 2"},
		{"the operation, sent again under another key", guard.Settings{KeyFrom: "reference"}, order("send-1", "k1"), order("send-2", "k2"), "201, order 1 again"},
		{"a number, sent again", guard.Settings{KeyFrom: "reference"}, order("send-1", "k1").with(numbered("7")), order("send-2", "k2").with(numbered("7")), "201, order 1 again"},
		{"another number", guard.Settings{KeyFrom: "reference"}, order("send-1", "k").with(numbered("7")), order("send-2", "k").with(numbered("8")), "201, order 2"},
		{"a key of two tenants", guard.Settings{}, order("send-1", "1").of("a"), order("send-2", "1").of("b"), "201, order 1 again"},
		{"the same, each within its own", guard.Settings{Scope: "tenant"}, order("send-1", "1").of("a"), order("send-2", "1").of("b"), "201, order 2"},
		{"one tenant, twice", guard.Settings{Scope: "tenant"}, order("send-1", "1").of("a"), order("send-2", "1").of("a"), "201, order 1 again"},
		{"tenants that could be taken for each other", guard.Settings{Scope: "tenant"}, order("send-1", "b/c").of("a"), order("send-2", "c").of("a/b"), "201, order 2"},
		{"one tenant, another method", guard.Settings{Scope: "tenant-and-operation"}, order("send-1", "1").of("a"), order("send-2", "1").of("a").by("PUT"), "201, order 2"},
		{"one tenant, the same method", guard.Settings{Scope: "tenant-and-operation"}, order("send-1", "1").of("a"), order("send-2", "1").of("a"), "201, order 1 again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, kind := range []string{"unique-index", "check-then-insert", "same-transaction", "redis-precheck"} {
				g := c.settings
				g.Kind = kind
				var got answer
				play(t, slowserver.Config{Guard: g}, func(b *bench) {
					b.send(c.first)
					got = b.send(c.second)
				})
				diff(t, kind, c.want, got.String())
			}
		})
	}
}

// TestExpiredKeys sends an order again when its key may be too old, with a job that removes old keys
// or a look that does.
func TestExpiredKeys(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	job := guard.CleanUp{At: day + 30*time.Minute}
	tests := []struct {
		name     string
		settings guard.Settings
		again    time.Duration
		want     string
	}{
		{"before it is old", guard.Settings{TTL: day, CleanUp: job}, day - time.Hour, "201, order 1 again"},
		{"old, and the job has not run", guard.Settings{TTL: day, CleanUp: job}, day + 10*time.Minute, "201, order 1 again"},
		{"old, and the job has run", guard.Settings{TTL: day, CleanUp: job}, day + time.Hour, "201, order 2"},
		{"the job runs again and again", guard.Settings{TTL: day, CleanUp: guard.CleanUp{Every: 5 * time.Minute}}, day + 10*time.Minute, "201, order 2"},
		{"the job finds it too young", guard.Settings{TTL: 2 * day, CleanUp: job}, day + time.Hour, "201, order 1 again"},
		{"not old for the look", guard.Settings{TTL: day, Expiry: "lookup"}, day - time.Minute, "201, order 1 again"},
		{"old for the look", guard.Settings{TTL: day, Expiry: "lookup"}, day + time.Minute, "201, order 2"},
		{"a time to live for what is in progress", guard.Settings{OpenTTL: time.Hour, Expiry: "lookup"}, day, "201, order 1 again"},
	}
	for _, kind := range []guard.Settings{{Kind: "unique-index"}, {Kind: "unique-index", Claim: "at-insert"}, {Kind: "same-transaction"}} {
		for _, tt := range tests {
			g := tt.settings
			g.Kind, g.Claim = kind.Kind, kind.Claim
			if g.Check() != nil {
				continue // open-ttl of a guard whose keys nobody sees in progress
			}
			t.Run(g.Kind+kind.Claim+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				var got []answer
				play(t, slowserver.Config{Guard: g}, func(b *bench) {
					go b.service.CleanUp()
					got = b.sendAll(order("send-1", "k"), order("send-2", "k").after(tt.again))
				})
				diff(t, "answers", []string{"201, order 1", tt.want}, texts(got))
			})
		}
	}
}

// TestOpenKeys loses the write that would finish a key: whether a later request finds it in progress
// depends on how long such keys are kept.
func TestOpenKeys(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		settings guard.Settings
		again    time.Duration
		want     string
	}{
		{"for ever", guard.Settings{}, 240 * time.Hour, "409, in-progress"},
		{"not yet over", guard.Settings{OpenTTL: 10 * time.Minute, CleanUp: guard.CleanUp{Every: 10 * time.Second}}, 9 * time.Minute, "409, in-progress"},
		{"over", guard.Settings{OpenTTL: 10 * time.Minute, CleanUp: guard.CleanUp{Every: 10 * time.Second}}, 11 * time.Minute, "201, order 2"},
		{"over, and others are kept longer", guard.Settings{OpenTTL: 10 * time.Minute, TTL: 24 * time.Hour, Expiry: "lookup"}, 11 * time.Minute, "201, order 2"},
		{"as long as any other", guard.Settings{TTL: 24 * time.Hour, Expiry: "lookup"}, 11 * time.Minute, "409, in-progress"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := tt.settings
			g.Kind, g.Finish = "unique-index", "after"
			lost := []fault.Settings{{At: fault.AfterCommit, Do: "lose-finish", Arrivals: []int{1}}}
			var got []answer
			play(t, slowserver.Config{Guard: g, Faults: lost}, func(b *bench) {
				go b.service.CleanUp()
				got = b.sendAll(order("send-1", "k"), order("send-2", "k").after(tt.again))
			})
			diff(t, "answers", []string{"201, order 1", tt.want}, texts(got))
		})
	}
}

// TestFinishAfter fails between the commit and the write that finishes the key.
func TestFinishAfter(t *testing.T) {
	t.Parallel()
	for settings, want := range map[guard.Settings]string{
		{Finish: "after", OnFailure: "keep"}:       "409, in-progress",
		{Finish: "after", OnFailure: "delete"}:     "201, order 2",
		{Finish: "after", OnFailure: "mark"}:       "500, injected, again",
		{Finish: "after", OnFailure: "mark-final"}: "201, order 2",
		{OnFailure: "delete"}:                      "201, order 1 again",
	} {
		t.Run(settings.Finish+settings.OnFailure, func(t *testing.T) {
			t.Parallel()
			settings.Kind = "unique-index"
			failing := []fault.Settings{{At: fault.AfterCommit, Do: "status", Status: 500, Arrivals: []int{1}}}
			var got []answer
			play(t, slowserver.Config{Guard: settings, Faults: failing}, func(b *bench) {
				got = append(got, b.send(order("send-1", "k")), b.send(order("send-2", "k")))
			})
			diff(t, "answers", []string{"500, injected", want}, texts(got))
		})
	}
	t.Run("nothing goes wrong", func(t *testing.T) {
		t.Parallel()
		var got []answer
		play(t, slowserver.Config{Guard: guard.Settings{Kind: "unique-index", Finish: "after"}}, func(b *bench) {
			got = append(got, b.send(order("send-1", "k")), b.send(order("send-2", "k")))
		})
		diff(t, "answers", []string{"201, order 1", "201, order 1 again"}, texts(got))
	})
}

func TestOwnKeys(t *testing.T) {
	eachGuard(t, func(t *testing.T, g guarded, c slowserver.Config) {
		c.OwnKeys = true
		var got []answer
		b := play(t, c, func(b *bench) {
			got = b.sendAll(order("send-1", "k"), order("send-2", "k").after(time.Second))
		})
		diff(t, "answers", []string{"201, order 1", "201, order 2"}, texts(got))
		keys := map[string]bool{}
		for _, e := range b.effects {
			keys[e.Key] = true
		}
		diff(t, "keys", []string{"own-1", "own-2"}, slices.Sorted(maps.Keys(keys)))
	})
}
