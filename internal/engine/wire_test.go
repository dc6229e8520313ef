package engine_test

import (
	"maps"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"retrylab/internal/engine"
	"retrylab/internal/judge"
	"retrylab/internal/lab"
)

// TestWire plays what can go wrong on the way there and back, on both clocks.
func TestWire(t *testing.T) {
	t.Parallel()
	var inRealTime atomic.Int64
	t.Cleanup(func() {
		// A busy machine may decide few of them; that it decided none means that nobody looked.
		if inRealTime.Load() == 0 {
			t.Error("no trial was conclusive on the wall clock")
		}
	})
	const three = "layers: [{preset: retry, attempts: 3, wait: 1s}]"
	for _, c := range []struct {
		name, caller, fault string // members of the mappings
		want                string // sends, arrivals, effects, belief and its reason
	}{
		{"a success that cannot be read", three, "{at: in-reply, do: malformed}", "S3 A3 E3 unknown: 201 malformed"},
		{"the same, not retried", "layers: []", "{at: in-reply, do: malformed}", "S1 A1 E1 unknown: 201 malformed"},
		{"a success without a body", three, "{at: in-reply, do: empty}", "S1 A1 E1 ok: 201"},
		{"the same, taken for a failure", "layers: [{preset: retry, on: [empty]}]", "{at: in-reply, do: empty, arrivals: [1]}", "S2 A2 E2 ok: 201"},
		{"half an answer", three, "{at: in-reply, do: truncate, arrivals: [1]}", "S2 A2 E2 ok: 201"},
		{"half an answer and a reset", "layers: [{preset: retry, on: [reset]}]", "{at: in-reply, do: truncate, reset: true}", "S3 A3 E3 unknown: reset"},
		{"a reset where an end is retried", "layers: [{preset: retry, on: [eof]}]", "{at: in-reply, do: truncate, reset: true}", "S1 A1 E1 unknown: reset"},
		{"301", "redirects: follow", "{at: before-guard, do: redirect, status: 301}", "S2 A2 E0 ok: 200"},
		{"303", "redirects: follow", "{at: before-guard, do: redirect, status: 303}", "S2 A2 E0 ok: 200"},
		{"307", "redirects: follow", "{at: before-guard, do: redirect, status: 307}", "S2 A2 E1 ok: 201"},
		{"308 for a write mapped to GET", "redirects: follow, method: GET", "{at: before-guard, do: redirect, status: 308}", "S2 A2 E1 ok: 201"},
		{"302 for the same", "redirects: follow, method: GET", "{at: before-guard, do: redirect, status: 302}", "S2 A2 E1 ok: 201"},
		{"301 and nobody follows", three, "{at: before-guard, do: redirect, status: 301}", "S1 A1 E0 failed: 301"},
		{"no address", three, "{at: connect, do: unknown-host}", "S3 A0 E0 failed: unknown host"},
		{"no address for a while", three, "{at: connect, do: unknown-host, until: 1500ms}", "S3 A1 E1 ok: 201"},
		{"refused from some time on", three, "{at: connect, do: refuse, from: 500ms}, {at: before-guard, do: close}", "S3 A1 E0 unknown: refused"},
		{"nobody answers for a while", three + ", timeouts: {connect: 2s}", "{at: connect, do: blackhole, until: 1s}", "S2 A1 E1 ok: 201"},
		{"lost on the way", "timeouts: {read: 5s}", "{at: connect, do: lose-request}", "S1 A0 E0 unknown: read timeout"},
		{"refused from the start, with an idle connection", three + ", connection: reused", "{at: connect, do: refuse}, {at: before-guard, do: close, arrivals: [1]}", "S3 A1 E0 unknown: refused"},
		{"lost on the way, but for an idle connection", three + ", connection: reused, timeouts: {read: 5s}", "{at: connect, do: lose-request}, {at: before-guard, do: close, arrivals: [1]}", "S3 A1 E0 unknown: read timeout"},
		{"lost on the way at first", three + ", timeouts: {read: 5s}", "{at: connect, do: lose-request, until: 5s}", "S2 A1 E1 ok: 201"},
		{"429 for a while", "layers: [{preset: retry, on: [429], retry-after: honour}]", `{at: before-guard, do: status, status: 429, retry-after: "2", until: 1500ms}`, "S2 A2 E1 ok: 201"},
		{"the same with a date", "layers: [{preset: retry, on: [429], retry-after: honour}]", "{at: before-guard, do: status, status: 429, retry-after: date+1500ms, until: 1500ms}", "S2 A2 E1 ok: 201"},
		{"a stream that is read again", "body: chunked, layers: [{preset: retry, one-shot: resend-empty}]", "{at: before-guard, do: close, arrivals: [1]}", "S2 A2 E0 failed: 400"},
		{"a buffer that is sent again", "layers: [{preset: retry, one-shot: resend-empty}]", "{at: before-guard, do: close, arrivals: [1]}", "S2 A2 E1 ok: 201"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			trial := parse(t, "{name: t, caller: {"+c.caller+"}, server: {processing: 1s, faults: ["+c.fault+"]}}")
			for _, l := range []*engine.Lab{newLab(t, engine.Virtual, 1), newLab(t, engine.Wall, 10)} {
				obs := l.Run(t.Context(), trial)
				r := judge.Decide(trial, obs)
				if !obs.Exact {
					if obs.Broken != "" && !obs.Defect {
						continue // the machine stumbled
					}
					inRealTime.Add(1)
				}
				if got := summary(r, obs); got != c.want {
					t.Errorf("exact %v: got %s, want %s (%s)", obs.Exact, got, c.want, r.Why)
				}
			}
		})
	}
}

// summary writes what a trial of one operation came to.
func summary(r lab.Result, obs lab.Observation) string {
	var b strings.Builder
	for _, n := range []struct {
		letter string
		n      int
	}{{"S", r.Counts.Sends}, {"A", r.Counts.Arrivals}, {"E", r.Counts.Effects}} {
		b.WriteString(n.letter + strconv.Itoa(n.n) + " ")
	}
	for _, o := range obs.Outcomes {
		b.WriteString(string(o.Belief) + ": " + o.Reason)
	}
	return b.String()
}

// TestLeak leaves an answer open: nobody else gets its connection, and the trial ends all the same.
func TestLeak(t *testing.T) {
	t.Parallel()
	const text = "{name: t, operations: 2, interval: 3s, caller: {pool: 1, leak: [%], timeouts: {acquire: 2s}}, server: {processing: 1s}}"
	for leak, want := range map[string]string{"1": "S2 A1 E1 ok: 201failed: acquire timeout", "2": "S2 A2 E2 ok: 201ok: 201"} {
		trial := parse(t, strings.ReplaceAll(text, "%", leak))
		obs := newLab(t, engine.Virtual, 1).Run(t.Context(), trial)
		if got := summary(judge.Decide(trial, obs), obs); got != want || obs.Broken != "" {
			t.Errorf("leak of operation %s: got %s (%s), want %s", leak, got, obs.Broken, want)
		}
	}
}

// TestSchedule starts operations at times of their own, and those without one after the one before.
func TestSchedule(t *testing.T) {
	t.Parallel()
	trial := parse(t, "{name: t, interval: 1s, schedule: [{}, {at: 10s}, {}, {at: 2s}, {}]}")
	obs := newLab(t, engine.Virtual, 1).Run(t.Context(), trial)
	got := map[string]int64{}
	for _, e := range obs.Events {
		if e.Kind == lab.Start {
			got[e.Operation] = lab.Millis(e.At)
		}
	}
	want := map[string]int64{"op-1": 0, "op-2": 10_000, "op-3": 11_000, "op-4": 2000, "op-5": 3000}
	if !maps.Equal(got, want) {
		t.Errorf("started at %v, want %v", got, want)
	}
}

// TestRelays lets one commit wake the relays of several outboxes: no two of them act in one instant,
// in an order that nobody has chosen.
func TestRelays(t *testing.T) {
	t.Parallel()
	trial := parse(t, "{name: t, operations: 2, server: {ledgers: [{name: a, when: outbox}, {name: b, when: outbox}, {name: c, when: outbox}]}}")
	obs := newLab(t, engine.Virtual, 1).Run(t.Context(), trial)
	seen := map[time.Duration]string{}
	for _, e := range obs.Events {
		if e.Kind != lab.Entered || e.Node != "relay" {
			continue
		}
		if other, taken := seen[e.At]; taken {
			t.Errorf("the relays of %s and %s act at %v", other, e.Detail, e.At)
		}
		seen[e.At] = e.Detail
	}
	if len(seen) != 6 {
		t.Errorf("%d entries of relays, want 6 (%s)", len(seen), obs.Broken)
	}
}
