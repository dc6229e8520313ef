package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"retrylab/internal/engine"
	"retrylab/internal/judge"
	"retrylab/internal/lab"
	"retrylab/internal/simulation"
	"retrylab/internal/storage"
	"retrylab/scenarios"
)

// trialOf reads a scenario of one configuration. What it says is followed by simulate: true.
func trialOf(t testing.TB, text string, seed int64) scenarios.Trial {
	t.Helper()
	s, err := scenarios.Parse("test.yaml", []byte("name: test\n"+text+"\nsimulate: true\n"))
	if err != nil {
		t.Fatal(err)
	}
	trials, err := s.Plan(scenarios.Options{Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return trials[0]
}

// simulate plays a trial without machines, with its events.
func simulate(t testing.TB, trial scenarios.Trial) lab.Observation {
	t.Helper()
	var events []lab.Event
	obs, err := simulation.Record(t.Context(), trial, func(e lab.Event) { events = append(events, e) })
	if err != nil {
		t.Fatal(err)
	}
	obs.Events = events
	return obs
}

// play has real clients play it, on the virtual clock.
func play(t testing.TB, trial scenarios.Trial) lab.Observation {
	t.Helper()
	d, err := storage.Open(t.Context(), storage.SQLite, storage.Options{Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	trial.Setup.Simulate = false
	obs := engine.New(d, engine.Virtual, 1).Run(t.Context(), trial)
	if obs.Broken != "" {
		t.Fatal(obs.Broken)
	}
	return obs
}

// moment is something that a client or the service does.
type moment struct {
	At   time.Duration
	What string
}

// timeline lists what both kinds of machines do, one operation after the other.
func timeline(o lab.Observation) (out []moment) {
	events := slices.Clone(o.Events)
	slices.SortStableFunc(events, func(a, b lab.Event) int { return strings.Compare(a.Operation, b.Operation) })
	for _, e := range events {
		switch {
		case e.Kind == lab.Told, e.Kind == lab.Settled, e.Kind == lab.ClientGone && e.Status == 0:
			continue
		case e.Kind == lab.ClientGone:
			e.Kind = lab.Answer // given, if to nobody
		}
		out = append(out, moment{e.At, fmt.Sprint(e.Kind, " ", e.Path(), " ", e.Node, " ", e.Status, " ", e.Wait, " ", e.Detail)})
	}
	return out
}

// near takes times for the same that differ by as little as keeps the events of real machines apart.
var near = gocmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() < 100*time.Nanosecond })

// alike are layers and services that a simulation must play as machines do.
var alike = map[string]string{
	"one try":             "server: {processing: 1s}",
	"fixed waits":         "caller: {timeouts: {read: 1s}, layers: [{preset: retry, attempts: 4, on: [timeout], wait: 500ms}]}\nserver: {processing: 3s}",
	"jitter":              "caller: {timeouts: {attempt: 1s}, layers: [{preset: retry, attempts: 6, on: [timeout], backoff: {initial: 300ms, jitter: full}}]}\nserver: {processing: 4s}",
	"decorrelated":        "caller: {timeouts: {attempt: 1s}, layers: [{preset: retry, attempts: 6, on: [timeout], backoff: {initial: 300ms, max: 5s, jitter: decorrelated}}]}\nserver: {processing: 4s}",
	"no wait":             "caller: {timeouts: {attempt: 1s}, layers: [{preset: retry, attempts: 3, on: [timeout], wait: 0s}]}\nserver: {processing: 4s}",
	"total in a try":      "caller: {timeouts: {attempt: 1s, total: 2500ms}, layers: [{preset: retry, attempts: 9, on: [timeout], wait: 200ms}]}\nserver: {processing: 4s}",
	"total in a wait":     "caller: {timeouts: {attempt: 1s, total: 2500ms}, layers: [{preset: retry, attempts: 9, on: [timeout], wait: 1s}]}\nserver: {processing: 4s}",
	"limits of a layer":   "caller: {layers: [{preset: retry, attempts: 9, on: [timeout], timeout: 700ms, total: 3s, wait: 300ms}]}\nserver: {processing: 4s}",
	"layers in a layer":   "caller: {timeouts: {read: 900ms}, layers: [{preset: retry, name: outer, attempts: 3, on: [timeout], total: 9s, wait: 1s}, {preset: retry, name: inner, attempts: 2, on: [timeout], timeout: 2s, total: 2200ms, backoff: {initial: 400ms, jitter: equal}}]}\nserver: {processing: 4s}",
	"budget":              "caller: {timeouts: {read: 1s}, layers: [{preset: retry, attempts: 5, on: [timeout], wait: 100ms, budget: {min: 2}}]}\nserver: {processing: 4s}",
	"refused":             "caller: {layers: [{preset: retry, attempts: 5, on: [connect], wait: 1s}]}\nserver: {processing: 1s, faults: [{at: connect, do: refuse, until: 2500ms}]}",
	"refused for ever":    "caller: {layers: [{preset: retry, attempts: 3, on: [connect], wait: 1s}]}\nserver: {faults: [{at: connect, do: refuse}]}",
	"status":              "caller: {layers: [{preset: retry, attempts: 5, on: [503], wait: 1s, retry-after: honour}]}\nserver: {processing: 1s, faults: [{at: before-guard, do: status, status: 503, retry-after: 3, arrivals: [1, 2]}]}",
	"dropped":             "caller: {layers: [{preset: retry, attempts: 5, on: [eof, reset], wait: 1s}]}\nserver: {processing: 1s, faults: [{at: before-guard, do: close, arrivals: [1]}, {at: before-guard, do: reset, arrivals: [2]}]}",
	"share":               "operations: 40\ninterval: 10ms\ncaller: {layers: [{preset: retry, attempts: 3, on: [connect, eof], wait: 1s}]}\nserver: {processing: 1s, faults: [{at: connect, do: refuse, share: 0.2}, {at: before-guard, do: close, share: 0.3}]}",
	"queue":               "operations: 5\ninterval: 100ms\ncaller: {timeouts: {attempt: 1500ms}, layers: [{preset: retry, attempts: 3, on: [timeout, 503], wait: 300ms}]}\nserver: {processing: 1s, workers: 1, queue: 2}",
	"late":                "operations: 5\ninterval: 100ms\ncaller: {deadline: header, timeouts: {attempt: 2500ms}, layers: [{preset: retry, attempts: 3, on: [timeout, 503], wait: 300ms}]}\nserver: {processing: 1s, workers: 1, shed: late}",
	"expired":             "operations: 5\ninterval: 100ms\ncaller: {deadline: header, timeouts: {attempt: 1500ms}, layers: [{preset: retry, attempts: 3, on: [timeout, 503], wait: 300ms}]}\nserver: {processing: 1s, workers: 2, shed: expired}",
	"spread":              "operations: 5\ninterval: 50ms\ncaller: {timeouts: {read: 100ms}, layers: [{preset: retry, attempts: 3, on: [timeout], wait: 30ms}]}\nserver: {processing-spread: {p50: 80ms, p99: 300ms}, workers: 2}",
	"random beginnings":   "load: [{rate: 2, for: 5s, arrivals: random}]\nserver: {processing: 1s}",
	"read without an end": "caller: {method: GET, timeouts: {connect: 1s, read: 1s}, layers: [{preset: okhttp}]}\nserver: {processing: 3s}",
}

// TestAlike: what a simulated client does it does when a real one does, and the counts are the same.
func TestAlike(t *testing.T) {
	t.Parallel()
	for name, text := range alike {
		for seed := int64(1); seed <= 3; seed++ {
			trial := trialOf(t, text, seed)
			real, simulated := play(t, trial), simulate(t, trial)
			if diff := gocmp.Diff(timeline(real), timeline(simulated), near); diff != "" {
				t.Errorf("%s, seed %d (-real +simulated):\n%s", name, seed, diff)
			}
			want, got := judge.Decide(trial, real), judge.Decide(trial, simulated)
			got.Checks, got.Reasons, got.Orders, got.Events = want.Checks, want.Reasons, want.Orders, want.Events
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("%s, seed %d (-real +simulated):\n%s", name, seed, diff)
			}
		}
	}
}

// thousand are populations of which a thousand real clients can be had as well.
var thousand = map[string]string{
	"a herd at a closed door": "operations: 1000\nseries: {window: 200ms, after: 200ms}\n" +
		"caller: {timeouts: {connect: 1s, read: 2s}, layers: [{preset: retry, attempts: 4, on: [connect], backoff: {initial: 1s, jitter: full}}]}\n" +
		"server: {faults: [{at: connect, do: refuse, until: 30s}]}",
	"a herd at a queue": "operations: 1000\nseries: {window: 200ms, after: 200ms}\n" +
		"caller: {timeouts: {attempt: 1s}, layers: [{preset: retry, attempts: 4, on: [timeout, 503], backoff: {initial: 500ms, jitter: equal}, budget: {ratio: 0.5}}]}\n" +
		"server: {processing: 5ms, workers: 2, queue: 300}",
	"a load": "load: [{rate: 50, for: 5s, arrivals: random}, {rate: 150, for: 5s, arrivals: random}]\nseries: {window: 500ms, cause-ends: 5s}\n" +
		"caller: {deadline: header, timeouts: {attempt: 1s}, layers: [{preset: retry, attempts: 3, on: [timeout, 503], wait: 100ms}]}\n" +
		"server: {processing: 10ms, workers: 1, shed: late}",
}

// TestThousand: a thousand simulated clients and as many real ones agree in every window and in every
// count. The draws are the same, and who comes first at a queue is decided by the same latencies.
func TestThousand(t *testing.T) {
	t.Parallel()
	for name, text := range thousand {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trial := trialOf(t, text, 1)
			real, simulated := judge.Decide(trial, play(t, trial)), judge.Decide(trial, run(t, trial))
			if real.Series.PeakStarts == 0 {
				t.Fatal("nobody has sent anything")
			}
			if diff := gocmp.Diff(real.Series, simulated.Series); diff != "" {
				t.Errorf("the series (-real +simulated):\n%s", diff)
			}
			if diff := gocmp.Diff(real.Counts, simulated.Counts); diff != "" {
				t.Errorf("the counts (-real +simulated):\n%s", diff)
			}
			if diff := gocmp.Diff(real.Beliefs, simulated.Beliefs); diff != "" {
				t.Errorf("the beliefs (-real +simulated):\n%s", diff)
			}
		})
	}
}

// run is [simulation.Run] of a trial that comes to an end.
func run(t testing.TB, trial scenarios.Trial) lab.Observation {
	t.Helper()
	obs, err := simulation.Run(t.Context(), trial)
	if err != nil {
		t.Fatal(err)
	}
	return obs
}

// TestSame: the same trial comes to the same, another seed to something else.
func TestSame(t *testing.T) {
	t.Parallel()
	text := thousand["a herd at a queue"]
	first := run(t, trialOf(t, text, 1))
	if diff := gocmp.Diff(first, run(t, trialOf(t, text, 1))); diff != "" {
		t.Errorf("a second run differs:\n%s", diff)
	}
	if gocmp.Equal(first.Series, run(t, trialOf(t, text, 2)).Series) {
		t.Error("another seed makes no difference")
	}
}

// TestInterrupted: what nobody waits for is given up.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	trial := trialOf(t, "operations: 10000\ncaller: {layers: [{preset: retry, attempts: 1000, on: [connect]}]}\nserver: {faults: [{at: connect, do: refuse}]}", 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := simulation.Run(ctx, trial); !errors.Is(err, context.Canceled) {
		t.Errorf("it goes on though nobody waits: %v", err)
	}
}

// BenchmarkMillionClients has a million clients find a closed door three times over.
func BenchmarkMillionClients(b *testing.B) {
	trial := trialOf(b, "operations: 1000000\nseries: {window: 200ms}\n"+
		"caller: {layers: [{preset: retry, attempts: 3, on: [connect], backoff: {initial: 1s, jitter: full}}]}\n"+
		"server: {faults: [{at: connect, do: refuse}]}", 1)
	benchmark(b, trial)
}

// BenchmarkMillionAtQueue has a million clients with three tries each before a service that can do half
// of what they want.
func BenchmarkMillionAtQueue(b *testing.B) {
	trial := trialOf(b, "load: [{rate: 10000, for: 100s, arrivals: random}]\nseries: {window: 200ms}\n"+
		"caller: {timeouts: {attempt: 1s}, layers: [{preset: retry, attempts: 3, on: [timeout, 503], backoff: {initial: 1s, jitter: full}}]}\n"+
		"server: {processing: 10ms, workers: 50}", 1)
	benchmark(b, trial)
}

func benchmark(b *testing.B, trial scenarios.Trial) {
	b.ReportAllocs()
	for b.Loop() {
		obs := run(b, trial)
		b.ReportMetric(float64(obs.Nodes[0].Sends), "sends/op")
	}
}
