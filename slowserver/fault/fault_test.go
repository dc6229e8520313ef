package fault

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	dribble := func(chunks, size int) Settings {
		return Settings{At: InReply, Do: "dribble", Chunks: chunks, ChunkSize: size, Pause: time.Second}
	}
	inOrder := "before-guard, after-claim, in-work, before-commit, after-commit, in-reply"
	tests := []struct {
		name     string
		settings Settings
		want     *Problem
	}{
		{"delay", Settings{At: BeforeGuard, Do: "delay", Delay: time.Second}, nil},
		{"close", Settings{At: AfterCommit, Do: "close", Arrivals: []int{1, 3}, Replicas: []int{2}}, nil},
		{"reset", Settings{At: InReply, Do: "reset"}, nil},
		{"status", Settings{At: BeforeCommit, Do: "status", Status: 400}, nil},
		{"status with Retry-After", Settings{At: BeforeGuard, Do: "status", Status: 599, RetryAfter: "garbage"}, nil},
		{"lose", Settings{At: AfterCommit, Do: "lose"}, nil},
		{"dribble", dribble(18, 1024), nil},
		{"the longest dribble", dribble(4096, 1024), nil},
		{"crash", Settings{At: AfterCommit, Do: "crash", Restart: time.Second}, nil},
		{"malformed", Settings{At: InReply, Do: "malformed", From: time.Second}, nil},
		{"truncate", Settings{At: InReply, Do: "truncate"}, nil},
		{"truncate with a reset", Settings{At: InReply, Do: "truncate", Reset: true}, nil},
		{"redirect", Settings{At: BeforeGuard, Do: "redirect", Status: 308}, nil},
		{"a date", Settings{At: BeforeGuard, Do: "status", Status: 429, RetryAfter: "date+2s", Until: 1500 * time.Millisecond}, nil},
		{"unknown-host", Settings{At: AtConnect, Do: "unknown-host", Until: time.Minute}, nil},
		{"lose-request", Settings{At: AtConnect, Do: "lose-request"}, nil},
		{"refuse", Settings{At: AtConnect, Do: "refuse", Replicas: []int{1}}, nil},
		{"blackhole", Settings{At: AtConnect, Do: "blackhole"}, nil},
		{"lose-commit", Settings{At: InCommit, Do: "lose-commit", Arrivals: []int{1}}, nil},
		{"lose-commit-reply", Settings{At: InCommit, Do: "lose-commit-reply"}, nil},
		{"partition", Settings{At: InCommit, Do: "partition"}, nil},
		{"redis-restart", Settings{At: BeforeGuard, Do: "redis-restart", Arrivals: []int{2}}, nil},
		{"redis-failover", Settings{At: BeforeCommit, Do: "redis-failover"}, nil},
		{"redis-lose-reply", Settings{At: AfterCommit, Do: "redis-lose-reply"}, nil},

		{"nothing", Settings{}, &Problem{"do", `unknown fault ""`, "one of: delay, close, reset, status, lose, dribble, crash, lose-commit, lose-commit-reply, lose-finish, partition, redis-restart, redis-failover, redis-lose-reply, redis-down, malformed, empty, truncate, redirect, refuse, blackhole, unknown-host, lose-request"}},
		{"unknown", Settings{At: InReply, Do: "explode"}, &Problem{"do", `unknown fault "explode"`, "one of: delay, close, reset, status, lose, dribble, crash, lose-commit, lose-commit-reply, lose-finish, partition, redis-restart, redis-failover, redis-lose-reply, redis-down, malformed, empty, truncate, redirect, refuse, blackhole, unknown-host, lose-request"}},
		{"nowhere", Settings{Do: "close"}, &Problem{"at", `close cannot strike at ""`, "it strikes at: " + inOrder}},
		{"an unknown place", Settings{At: "lunch", Do: "close"}, &Problem{"at", `close cannot strike at "lunch"`, "it strikes at: " + inOrder}},
		{"close at connect", Settings{At: AtConnect, Do: "close"}, &Problem{"at", `close cannot strike at "connect"`, "it strikes at: " + inOrder}},
		{"refuse after the commit", Settings{At: AfterCommit, Do: "refuse"}, &Problem{"at", `refuse cannot strike at "after-commit"`, "it strikes at: connect"}},
		{"lose before the commit", Settings{At: BeforeCommit, Do: "lose"}, &Problem{"at", `lose cannot strike at "before-commit"`, "it strikes at: after-commit, in-reply"}},

		{"close in the commit", Settings{At: InCommit, Do: "close"}, &Problem{"at", `close cannot strike at "in-commit"`, "it strikes at: " + inOrder}},
		{"lose-commit before the commit", Settings{At: BeforeCommit, Do: "lose-commit"}, &Problem{"at", `lose-commit cannot strike at "before-commit"`, "it strikes at: in-commit"}},
		{"redis-restart in the reply", Settings{At: InReply, Do: "redis-restart"}, &Problem{"at", `redis-restart cannot strike at "in-reply"`, "it strikes at: before-guard, before-commit, after-commit"}},

		{"delay without a time", Settings{At: BeforeGuard, Do: "delay"}, &Problem{"do", `the fault delay needs the key "delay"`, ""}},
		{"status without one", Settings{At: BeforeGuard, Do: "status"}, &Problem{"do", `the fault status needs the key "status"`, ""}},
		{"dribble without chunks", Settings{At: InReply, Do: "dribble", ChunkSize: 1, Pause: 1}, &Problem{"do", `the fault dribble needs the key "chunks"`, ""}},
		{"dribble without a size", Settings{At: InReply, Do: "dribble", Chunks: 1, Pause: 1}, &Problem{"do", `the fault dribble needs the key "chunk-size"`, ""}},
		{"dribble without a pause", Settings{At: InReply, Do: "dribble", Chunks: 1, ChunkSize: 1}, &Problem{"do", `the fault dribble needs the key "pause"`, ""}},

		{"crash for ever", Settings{At: AfterCommit, Do: "crash"}, &Problem{"do", `the fault crash needs the key "restart"`, ""}},
		{"crash in the reply", Settings{At: InReply, Do: "crash", Restart: 1}, &Problem{"at", `crash cannot strike at "in-reply"`, "it strikes at: before-guard, after-claim, in-work, before-commit, after-commit"}},
		{"crash in the work", Settings{At: InWork, Into: time.Second, Do: "crash", Restart: 1}, nil},
		{"somewhere in the work", Settings{At: InWork, Do: "close"}, &Problem{"at", "the fault does not say how far into the work it strikes", "add into: with a time such as 700ms"}},
		{"into the reply", Settings{At: InReply, Do: "close", Into: 1}, &Problem{"into", "into means nothing to a fault at in-reply", "write at: in-work"}},
		{"close with a restart", Settings{At: AfterCommit, Do: "close", Restart: 1}, &Problem{"restart", "restart means nothing to the fault close", ""}},

		{"close with a delay", Settings{At: AfterCommit, Do: "close", Delay: 1}, &Problem{"delay", "delay means nothing to the fault close", ""}},
		{"close with a status", Settings{At: AfterCommit, Do: "close", Status: 500}, &Problem{"status", "status means nothing to the fault close", ""}},
		{"delay with Retry-After", Settings{At: AfterCommit, Do: "delay", Delay: 1, RetryAfter: "1"}, &Problem{"retry-after", "retry-after means nothing to the fault delay", ""}},
		{"lose with chunks", Settings{At: AfterCommit, Do: "lose", Chunks: 1}, &Problem{"chunks", "chunks means nothing to the fault lose", ""}},
		{"lose with a size", Settings{At: AfterCommit, Do: "lose", ChunkSize: 1}, &Problem{"chunk-size", "chunk-size means nothing to the fault lose", ""}},
		{"lose with a pause", Settings{At: AfterCommit, Do: "lose", Pause: 1}, &Problem{"pause", "pause means nothing to the fault lose", ""}},

		{"a window without room", Settings{At: InReply, Do: "close", From: 2 * time.Second, Until: 2 * time.Second}, &Problem{"until", "a fault from 2s until 2s never strikes", "until comes after from"}},
		{"a redirect that is none", Settings{At: BeforeGuard, Do: "redirect", Status: 304}, &Problem{"status", "304 is no redirect", "301, 302, 303, 307 or 308"}},
		{"a date without a time", Settings{At: BeforeGuard, Do: "status", Status: 429, RetryAfter: "date+soon"}, &Problem{"retry-after", `"soon" is no time from now`, "for example date+2s"}},
		{"close with a reset", Settings{At: InReply, Do: "close", Reset: true}, &Problem{"reset", "reset means nothing to the fault close", ""}},
		{"a success", Settings{At: BeforeGuard, Do: "status", Status: 200}, &Problem{"status", "200 is no error status", "400 to 599"}},
		{"status 399", Settings{At: BeforeGuard, Do: "status", Status: 399}, &Problem{"status", "399 is no error status", "400 to 599"}},
		{"status 600", Settings{At: BeforeGuard, Do: "status", Status: 600}, &Problem{"status", "600 is no error status", "400 to 599"}},

		{"too many chunks", dribble(10_001, 1), tooLong()},
		{"a chunk too large", dribble(1, 4<<20+1), tooLong()},
		{"an answer too long", dribble(4097, 1024), tooLong()},
		{"an answer of gigabytes", dribble(10_000, 4<<20), tooLong()},
		{"fewer chunks than none", dribble(-1, 1), tooLong()},
		{"less than nothing in a chunk", dribble(1, -1), tooLong()},

		{"arrival 0", Settings{At: AfterCommit, Do: "close", Arrivals: []int{1, 0}}, &Problem{"arrivals", "arrivals, operations and replicas are counted from 1", ""}},
		{"replica 0", Settings{At: AfterCommit, Do: "close", Replicas: []int{0}}, &Problem{"replicas", "arrivals, operations and replicas are counted from 1", ""}},
		{"an arrival twice", Settings{At: AfterCommit, Do: "close", Arrivals: []int{2, 1, 2}}, &Problem{"arrivals", "arrivals names 2 twice", ""}},
		{"a replica twice", Settings{At: AfterCommit, Do: "close", Replicas: []int{1, 1}}, &Problem{"replicas", "replicas names 1 twice", ""}},
		{"arrivals at connect", Settings{At: AtConnect, Do: "refuse", Arrivals: []int{1}}, &Problem{
			"arrivals", "a fault at connect comes before there is an arrival", "name replicas instead",
		}},
		{"the first of each at connect", Settings{At: AtConnect, Do: "refuse", OfEach: []int{1}}, &Problem{
			"of-each", "a fault at connect comes before there is an arrival", "name operations or a share instead",
		}},
		{"an operation at connect", Settings{At: AtConnect, Do: "refuse", Operations: []int{2}}, nil},
		{"the first of each of two, in part", Settings{At: AfterCommit, Do: "close", OfEach: []int{1}, Operations: []int{1, 2}, Share: share(0.5)}, nil},
		{"arrival 0 of each", Settings{At: AfterCommit, Do: "close", OfEach: []int{0}}, &Problem{"of-each", "arrivals, operations and replicas are counted from 1", ""}},
		{"an operation twice", Settings{At: AfterCommit, Do: "close", Operations: []int{3, 3}}, &Problem{"operations", "operations names 3 twice", ""}},
		{"counted twice", Settings{At: AfterCommit, Do: "close", Arrivals: []int{1}, OfEach: []int{1}}, &Problem{
			"of-each", "arrivals are counted over all operations: with of-each as well they say nothing", "leave one of the two out",
		}},
		{"arrivals of an operation", Settings{At: AfterCommit, Do: "close", Arrivals: []int{1}, Operations: []int{1}}, &Problem{
			"operations", "arrivals are counted over all operations: whose they are is not chosen", "write of-each instead of arrivals",
		}},
		{"a share of what is named", Settings{At: AfterCommit, Do: "close", Arrivals: []int{1}, Share: share(0.5)}, &Problem{
			"share", "the arrivals that are named are struck, all of them", "leave one of the two out",
		}},
		{"none of them", Settings{At: AfterCommit, Do: "close", Share: share(0)}, &Problem{"share", "0 is no share of the requests", "above 0 and below 1; leave it out to strike all"}},
		{"all of them", Settings{At: AfterCommit, Do: "close", Share: share(1)}, &Problem{"share", "1 is no share of the requests", "above 0 and below 1; leave it out to strike all"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, tt.settings.Check()); diff != "" {
				t.Errorf("problem (-want +got):\n%s", diff)
			}
		})
	}
}

func share(x float64) *float64 { return &x }

func tooLong() *Problem {
	return &Problem{"chunks", fmt.Sprintf("an answer has at most 10000 chunks and %d bytes", 4<<20), ""}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	var names []string
	places := map[Place]bool{}
	for _, k := range Kinds {
		if k.Name == "" || strings.Trim(k.Name, "abcdefghijklmnopqrstuvwxyz-") != "" || slices.Contains(names, k.Name) {
			t.Errorf("%q is no name, or there twice", k.Name)
		}
		names = append(names, k.Name)
		if k.Doc == "" || strings.Contains(k.Doc, "\n") || strings.HasSuffix(k.Doc, ".") {
			t.Errorf("%s: its doc is not one line without a full stop: %q", k.Name, k.Doc)
		}
		if len(k.Places) == 0 {
			t.Errorf("%s strikes nowhere", k.Name)
		}
		if !slices.IsSortedFunc(k.Places, func(a, b Place) int { return slices.Index(Places, a) - slices.Index(Places, b) }) {
			t.Errorf("%s: its places are not in the order of a request's life: %v", k.Name, k.Places)
		}
		for _, p := range k.Places {
			if !slices.Contains(Places, p) {
				t.Errorf("%s strikes at %q, which is no place", k.Name, p)
			}
			places[p] = true
			if got, want := (Settings{Do: k.Name, At: p}).Name(), k.Name+"@"+string(p); got != want {
				t.Errorf("called %s, want %s", got, want)
			}
		}
		if found, ok := Find(k.Name); !ok || found.Name != k.Name {
			t.Errorf("Find(%q) found %q, %v", k.Name, found.Name, ok)
		}
	}
	for _, p := range Places {
		if !places[p] {
			t.Errorf("nothing strikes at %s", p)
		}
	}
	if k, ok := Find("explode"); ok {
		t.Errorf("there is a fault %q", k.Name)
	}
}

// TestCheckHop is what a machine between caller and service cannot play.
func TestCheckHop(t *testing.T) {
	t.Parallel()
	const kinds = "one of: delay, close, reset, status, lose"
	for _, tt := range []struct {
		settings Settings
		want     *Problem
	}{
		{Settings{At: AfterAnswer, Do: "status", Status: 502}, nil},
		{Settings{At: BeforeSend, Do: "lose"}, nil},
		{Settings{At: BeforeSend, Do: "explode"}, &Problem{"do", `unknown fault "explode"`, kinds}},
		{Settings{At: BeforeSend, Do: "crash", Restart: 1}, &Problem{"do", `unknown fault "crash"`, kinds}},
		{Settings{At: AfterCommit, Do: "close"}, &Problem{"at", `close cannot strike at "after-commit"`, "it strikes at: before-send, after-answer"}},
		{Settings{At: AfterAnswer, Do: "close", Delay: 1}, &Problem{"delay", "delay means nothing to the fault close", ""}},
	} {
		if diff := cmp.Diff(tt.want, tt.settings.CheckHop()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.settings.Name(), diff)
		}
	}
	for _, p := range HopPlaces {
		if slices.Contains(Places, p) {
			t.Errorf("%s is a place in the service too", p)
		}
	}
}

// TestRetryAfterAt writes a date as a header has it, in whole seconds and not before its time.
func TestRetryAfterAt(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.March, 1, 9, 0, 0, 1, time.UTC)
	for value, want := range map[string]string{"7": "7", "": "", "soon": "soon", "date+2s": "Sun, 01 Mar 2026 09:00:03 GMT"} {
		if got := RetryAfterAt(value, now); got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}

func TestWanted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		settings Settings
		want     int
	}{
		{Settings{}, 1},
		{Settings{Arrivals: []int{4, 7}}, 2},
		{Settings{Arrivals: []int{1, 2, 3}, Until: time.Second}, 3},
		{Settings{OfEach: []int{1}}, 5},
		{Settings{OfEach: []int{1, 2}}, 10},
		{Settings{OfEach: []int{1, 2}, Replicas: []int{2}}, 2},
		{Settings{OfEach: []int{1}, From: time.Second}, 1},
		{Settings{OfEach: []int{1, 2}, Operations: []int{1, 4, 5}}, 6},
		{Settings{Operations: []int{1, 4, 5}}, 3},
		{Settings{Share: share(0.5)}, 1},
		{Settings{OfEach: []int{1}, Share: share(0.5)}, 1},
	} {
		if got := tt.settings.Wanted(5); got != tt.want {
			t.Errorf("%+v: of five operations it must fire %d times, want %d", tt.settings, got, tt.want)
		}
	}
}

func TestStrikes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		arrivals, replicas []int
		from, until        time.Duration
		arrival, replica   int
		now                time.Duration
		want               bool
	}{
		{nil, nil, 0, 0, 1, 1, 0, true},
		{nil, nil, 0, 0, 99, 9, 0, true},
		{[]int{2}, nil, 0, 0, 1, 1, 0, false},
		{[]int{2}, nil, 0, 0, 2, 1, 0, true},
		{nil, []int{2}, 0, 0, 2, 1, 0, false},
		{nil, []int{2}, 0, 0, 1, 2, 0, true},
		{[]int{1, 2}, []int{2, 3}, 0, 0, 2, 3, 0, true},
		{[]int{1, 2}, []int{2, 3}, 0, 0, 3, 3, 0, false},
		{[]int{1, 2}, []int{2, 3}, 0, 0, 2, 1, 0, false},
		{nil, nil, 2 * time.Second, 0, 1, 1, time.Second, false},
		{nil, nil, 2 * time.Second, 0, 1, 1, 2 * time.Second, true},
		{nil, nil, 0, 2 * time.Second, 1, 1, 2*time.Second - 1, true},
		{nil, nil, 0, 2 * time.Second, 1, 1, 2 * time.Second, false},
		{[]int{2}, nil, time.Second, 2 * time.Second, 1, 1, time.Second, false},
	}
	for _, tt := range tests {
		s := Settings{Arrivals: tt.arrivals, Replicas: tt.replicas, From: tt.from, Until: tt.until}
		if got := s.Strikes(Arrival{Number: tt.arrival, Replica: tt.replica, At: tt.now}); got != tt.want {
			t.Errorf("arrivals %v, replicas %v, from %v until %v: strikes arrival %d at replica %d at %v: %v, want %v",
				tt.arrivals, tt.replicas, tt.from, tt.until, tt.arrival, tt.replica, tt.now, got, tt.want)
		}
	}
}

func TestStrikesOfEach(t *testing.T) {
	t.Parallel()
	drawn := func(x float64) func() float64 { return func() float64 { return x } }
	for _, tt := range []struct {
		settings Settings
		arrival  Arrival
		want     bool
	}{
		{Settings{OfEach: []int{1}}, Arrival{Number: 7, OfEach: 1, Operation: "op-3"}, true},
		{Settings{OfEach: []int{1}}, Arrival{Number: 1, OfEach: 2, Operation: "op-3"}, false},
		{Settings{Operations: []int{3}}, Arrival{Number: 7, OfEach: 9, Operation: "op-3"}, true},
		{Settings{Operations: []int{3}}, Arrival{Number: 3, OfEach: 3, Operation: "op-33"}, false},
		{Settings{Operations: []int{3}, OfEach: []int{2}}, Arrival{OfEach: 2, Operation: "op-3"}, true},
		{Settings{Operations: []int{3}, OfEach: []int{2}}, Arrival{OfEach: 1, Operation: "op-3"}, false},
		{Settings{Share: share(0.25)}, Arrival{Luck: drawn(0)}, true},
		{Settings{Share: share(0.25)}, Arrival{Luck: drawn(0.25)}, false},
		{Settings{Share: share(0.25)}, Arrival{}, false},
	} {
		if got := tt.settings.Strikes(tt.arrival); got != tt.want {
			t.Errorf("%+v strikes %+v: %v, want %v", tt.settings, tt.arrival, got, tt.want)
		}
	}
}

// TestLuck: what is drawn depends on the seed, the fault and the request, and a share of many requests
// is about that many.
func TestLuck(t *testing.T) {
	t.Parallel()
	if Luck(1, 0, "op-1") != Luck(1, 0, "op-1") {
		t.Error("a second draw comes to something else")
	}
	for _, other := range []float64{Luck(2, 0, "op-1"), Luck(1, 1, "op-1"), Luck(1, 0, "op-2")} {
		if other == Luck(1, 0, "op-1") {
			t.Error("another seed, fault or request has the same luck")
		}
	}
	struck := 0
	for i := range 10_000 {
		if Luck(1, 0, fmt.Sprint("op-", i)) < 0.1 {
			struck++
		}
	}
	if struck < 900 || struck > 1100 {
		t.Errorf("a tenth of 10000 requests is %d", struck)
	}
}
