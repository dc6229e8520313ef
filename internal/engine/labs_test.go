package engine_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"retrylab/internal/engine"
	"retrylab/internal/redisserver"
	"retrylab/internal/storage"
	"retrylab/scenarios"
	"retrylab/slowserver/store"
	"retrylab/slowserver/store/redis"
)

// openStore opens a database for a test, and closes it at its end. A test that needs a PostgreSQL
// is skipped on a machine without one, but for one that is there to test.
func openStore(t testing.TB, choice string) store.Database {
	t.Helper()
	database, err := storage.Open(context.Background(), choice, storage.Options{Jobs: 8})
	if err != nil && choice != storage.SQLite && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := database.Close(); err != nil {
			t.Error(err)
		}
	})
	return database
}

// labs are a lab for every trial: over the embedded database, unless another is needed.
type labs struct {
	embedded, postgres *engine.Lab
	server             *redis.Source // nil where there is no redis-server
}

func newLabs(t testing.TB) *labs {
	t.Helper()
	return labsOver(t, engine.New(openStore(t, storage.SQLite), engine.Virtual, 1))
}

// labsOver are labs over one for whatever can be run on any database.
func labsOver(t testing.TB, embedded *engine.Lab) *labs {
	t.Helper()
	l := &labs{embedded: embedded, postgres: engine.New(openStore(t, storage.Postgres), engine.Virtual, 1)}
	var err error
	if l.server, err = redis.NewServer(redisserver.Options{}); err != nil && os.Getenv("CI") != "" {
		t.Fatal(err)
	}
	return l
}

// of returns the lab for a trial, nil where this machine has none.
func (l *labs) of(trial scenarios.Trial) *engine.Lab {
	lab := l.embedded
	if trial.Needs == storage.Postgres {
		lab = l.postgres
	}
	if !trial.Setup.NeedsReplica() {
		return lab
	}
	if l.server == nil {
		return nil
	}
	return lab.WithKeys(l.server)
}

// onAny reports whether a trial shows the same wherever it has its rows and its keys.
func onAny(trial scenarios.Trial) bool {
	return trial.Needs == "" && !trial.Setup.NeedsReplica() && !trial.Setup.Simulate
}

// TestEndless has a transaction hold a key for ever, and another wait for it: the trial is given up,
// and says who waits for whom.
func TestEndless(t *testing.T) {
	t.Parallel()
	s, err := scenarios.Parse("stuck.yaml", []byte(`
name: stuck
concurrency: 2
stagger: 1s
caller: {key: operation}
server:
  processing: 1s
  guard: same-transaction
  faults: [{at: in-commit, do: partition, arrivals: [1]}]
`))
	if err != nil {
		t.Fatal(err)
	}
	trials, err := s.Plan(scenarios.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	obs := engine.New(openStore(t, storage.Postgres), engine.Virtual, 1).Run(t.Context(), trials[0])
	if !strings.Contains(obs.Broken, "waits for ever: op-1/side.2 waits for op-1/side.1 (key ") || obs.Defect {
		t.Errorf("broken %q, defect %v", obs.Broken, obs.Defect)
	}
}
