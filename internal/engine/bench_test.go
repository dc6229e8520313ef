package engine_test

import (
	"testing"

	"retrylab/internal/engine"
	"retrylab/internal/judge"
	"retrylab/internal/lab"
	"retrylab/internal/storage"
	"retrylab/scenarios"
)

// BenchmarkTrial is one trial on the virtual clock over SQLite, database file and schema
// included: three sends and 24 s of scenario time.
func BenchmarkTrial(b *testing.B) { benchmarkTrial(b, storage.SQLite) }

// BenchmarkTrialPostgres is the same over a private PostgreSQL that runs.
func BenchmarkTrialPostgres(b *testing.B) { benchmarkTrial(b, storage.Postgres) }

func benchmarkTrial(b *testing.B, choice string) {
	s, err := scenarios.Builtin("read-timeout")
	if err != nil {
		b.Fatal(err)
	}
	trials, err := s.Plan(scenarios.Options{Seed: 1, Only: "feign-retryer-3"})
	if err != nil {
		b.Fatal(err)
	}
	l := engine.New(openStore(b, choice), engine.Virtual, 1)
	for b.Loop() {
		if r := judge.Decide(trials[0], l.Run(b.Context(), trials[0])); r.Verdict != lab.AsExpected {
			b.Fatalf("%s: %s", r.Verdict, r.Why)
		}
	}
}

// BenchmarkPlan is the parsing and planning of a scenario file with five configurations.
func BenchmarkPlan(b *testing.B) {
	for b.Loop() {
		if _, err := scenarios.Builtin("read-timeout"); err != nil {
			b.Fatal(err)
		}
	}
}
