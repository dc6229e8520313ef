package engine_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retrylab/internal/engine"
	"retrylab/internal/lab"
	"retrylab/scenarios"
)

// TestSeries counts three operations of a service with one worker, of which each takes a second.
func TestSeries(t *testing.T) {
	t.Parallel()
	trial, err := scenarios.Make("queue", scenarios.Setup{
		Operations: 3, Concurrency: 1, Amount: 5000,
		Series: scenarios.Series{Window: 500 * time.Millisecond, After: 500 * time.Millisecond},
		Server: scenarios.Server{Replicas: 1, Processing: time.Second, Workers: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	obs := newLab(t, engine.Virtual, 1).Run(t.Context(), trial)
	want := &lab.Series{
		WindowMs: 500, Operations: []int{3, 0, 0, 0, 0, 0, 0}, Starts: []int{3, 0, 0, 0, 0, 0, 0}, Arrivals: []int{3, 0, 0, 0, 0, 0, 0},
		OK: []int{0, 0, 1, 0, 1, 0, 1}, Queue: []int{2, 2, 1, 1, 0, 0, 0},
		PeakAfterMs: 500,
	}
	if diff := cmp.Diff(want, obs.Series); diff != "" {
		t.Error(diff)
	}
	trial.Setup.Series = scenarios.Series{}
	if obs := newLab(t, engine.Virtual, 1).Run(t.Context(), trial); obs.Series != nil {
		t.Error("counts over time that nobody asked for")
	}
}
