package engine_test

import (
	"strings"
	"testing"

	"retrylab/internal/engine"
	"retrylab/internal/judge"
	"retrylab/internal/lab"
	"retrylab/scenarios"
)

// parse plans the one configuration of a scenario file.
func parse(t *testing.T, text string) scenarios.Trial {
	t.Helper()
	s, err := scenarios.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	trials, err := s.Plan(scenarios.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return trials[0]
}

// TestInconclusive breaks every kind of premise once: what did not take place proves nothing,
// however well the numbers fit.
func TestInconclusive(t *testing.T) {
	t.Parallel()
	l := newLab(t, engine.Virtual, 1)
	for _, test := range []struct{ name, file, why string }{
		{
			name: "a fault that never fires",
			file: `{name: t, server: {faults: [{at: after-commit, do: close, arrivals: [2]}]}, expect: {sends: 1, effects: 1}}`,
			why:  "fault close@after-commit fired: 0 times, not at least once",
		},
		{
			name: "a fault of which one arrival is missing",
			file: `{name: t, caller: {layers: [{preset: retry, attempts: 2, on: [eof]}]}, server: {faults: [{at: before-guard, do: close, arrivals: [1, 3]}]}, expect: {sends: 2}}`,
			why:  "fault close@before-guard fired: once, not at least 2 times",
		},
		{
			name: "a declared premise",
			file: `{name: t, premises: [overlap >= 2], expect: {sends: 1}}`,
			why:  "overlap >= 2: overlap = 1, not true",
		},
		{
			name: "a caller that waits for ever",
			file: `{name: t, server: {faults: [{at: in-reply, do: lose}]}, expect: {sends: 1}}`,
			why:  "the trial came to no end",
		},
		{
			name: "layers that multiply beyond measure",
			file: `{name: t, caller: {layers: [{preset: retry, name: a, attempts: 1000}, {preset: retry, name: b, attempts: 1000}]}, server: {faults: [{at: before-guard, do: status, status: 503}]}, expect: {effects: 0}}`,
			why:  "more than",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			trial := parse(t, test.file)
			r := judge.Decide(trial, l.Run(t.Context(), trial))
			if r.Verdict != lab.Inconclusive || !strings.Contains(r.Why, test.why) {
				t.Errorf("%s: %q, want inconclusive: %q", r.Verdict, r.Why, test.why)
			}
		})
	}
}
