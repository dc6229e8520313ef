package engine_test

import (
	"context"
	"os"
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

// onAny reports whether a trial shows the same on every database.
func onAny(trial scenarios.Trial) bool { return trial.Needs == "" }
