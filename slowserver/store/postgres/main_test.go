package postgres

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"retrylab/internal/pgcluster"
	"retrylab/slowserver/store"
)

// cluster is the server that all tests share; nil where there are no binaries for one.
var cluster *pgcluster.Cluster

func TestMain(m *testing.M) {
	var err error
	cluster, err = pgcluster.Start(context.Background(), pgcluster.Options{MaxConnections: 400})
	if err != nil && os.Getenv("CI") != "" {
		fmt.Fprintln(os.Stderr, "without PostgreSQL nothing here is tested:", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if cluster != nil {
			if err := cluster.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = max(code, 1)
			}
		}
		os.Exit(code)
	}), goleak.IgnoreCurrent())
}

// open opens a database of a test's own.
func open(t testing.TB, o Options) *Database {
	t.Helper()
	if cluster == nil {
		t.Skip("there is no PostgreSQL on this machine")
	}
	if o.DSN == "" {
		o.DSN = cluster.DSN()
	}
	o.Mode, o.Jobs = "test", max(o.Jobs, 1)
	d, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// sit takes a seat for a test.
func sit(t testing.TB, d *Database) store.Seat {
	t.Helper()
	seat, err := d.Seat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := seat.Leave(); err != nil {
			t.Error(err)
		}
	})
	return seat
}
