package engine_test

import (
	"fmt"
	"runtime"
	"testing"

	"retrylab/internal/engine"
	"retrylab/internal/lab"
)

// TestCrashInACrowd kills a replica with many requests under way, each waiting for something else,
// again and again: who was there and what became of them must not depend on the machine.
func TestCrashInACrowd(t *testing.T) {
	// Not parallel: it changes the number of processors for the whole process.
	database := openSQLite(t)
	l := engine.New(database, engine.Virtual, 1)
	for _, guard := range []string{
		"none", "same-transaction", "{kind: unique-index, in-progress: wait, lease: 3s}", "{kind: unique-index, claim: at-insert}", "per-process",
	} {
		trial := parse(t, fmt.Sprintf(`
name: crowd
operations: 4
interval: 300ms
concurrency: 6
stagger: 100ms
caller:
  key: operation
  layers: [{preset: retry, attempts: 4, wait: 2s, on: [eof, reset, refused, 409]}, {preset: spring-lb, same: 0, next: 0}]
server:
  processing: 1s
  replicas: 2
  guard: %s
  faults: [{at: before-commit, do: crash, restart: 1s, arrivals: [1, 9]}]
`, guard))
		seen := map[string]int{}
		crashes := 0
		for _, procs := range []int{1, runtime.NumCPU(), 8} {
			restore := runtime.GOMAXPROCS(procs)
			for range 7 {
				obs := l.Run(t.Context(), trial)
				if obs.Broken != "" {
					t.Fatalf("%s: %s", guard, obs.Broken)
				}
				crashes = 0
				for _, e := range obs.Events {
					if e.Kind == lab.Crash {
						crashes++
					}
				}
				seen[digest(t, trial, obs)]++
			}
			runtime.GOMAXPROCS(restore)
		}
		if len(seen) != 1 || crashes == 0 {
			t.Errorf("%s: %d different hashes, %d crashes", guard, len(seen), crashes)
		}
	}
}
