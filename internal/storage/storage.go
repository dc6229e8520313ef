// Package storage turns what --store names into a database: the embedded one, a PostgreSQL of the
// run's own, one that is there already, or one in a container. Nothing here depends on what happens
// to be installed, and nothing falls back to another than was asked for.
package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"retrylab/internal/containers"
	"retrylab/internal/pgcluster"
	"retrylab/internal/privatedir"
	"retrylab/internal/redisserver"
	"retrylab/slowserver/store"
	"retrylab/slowserver/store/postgres"
	"retrylab/slowserver/store/redis"
	"retrylab/slowserver/store/sqlite"
)

// The engines, as a scenario's needs name them, and the other ways to one of them.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
	Docker   = "docker"
)

// Engine is the engine that a choice of --store comes to, or an error that says what can be chosen.
func Engine(choice string) (string, error) {
	kind, image, colon := strings.Cut(choice, ":")
	switch {
	case choice == SQLite, choice == Postgres:
		return choice, nil
	case isURL(choice):
		return Postgres, nil
	case kind == Docker && !colon:
		return Postgres, nil
	case kind == Docker:
		if err := containers.CheckImage(image); err != nil {
			return "", err
		}
		return Postgres, nil
	}
	return "", fmt.Errorf("there is no store %q", WithoutSecret(choice))
}

// Choices is what --store takes, for messages and completion.
var Choices = []string{SQLite, Postgres, "postgres://…", Docker, "docker:IMAGE"}

func isURL(choice string) bool {
	return strings.HasPrefix(choice, "postgres://") || strings.HasPrefix(choice, "postgresql://")
}

// WithoutSecret is a choice of --store or --redis as a message may show it: what comes after a scheme may be a password.
func WithoutSecret(choice string) string {
	if scheme, _, ok := strings.Cut(choice, "://"); ok {
		return scheme + "://…"
	}
	if strings.ContainsAny(choice, "@=") {
		return "…"
	}
	return choice
}

// Options say how a database is opened.
type Options struct {
	Jobs int    // trials that have a place in it at once; at least 1
	Bin  string // directory of the PostgreSQL binaries; empty to look for them
	// Schema is one that is shared with other processes and kept, for a database that is there
	// already; empty for one of the run's own.
	Schema string
}

// connections is what a private cluster is started with: enough for so many trials side by side.
const connections = 500

// Open opens the database that a choice names.
func Open(ctx context.Context, choice string, o Options) (store.Database, error) {
	switch {
	case choice == SQLite:
		return openSQLite()
	case choice == Postgres:
		return openCluster(ctx, o)
	case isURL(choice):
		return named(postgres.Open(ctx, postgres.Options{DSN: choice, Mode: "server", Jobs: o.Jobs, Schema: o.Schema}))
	case strings.HasPrefix(choice, Docker):
		_, image, _ := strings.Cut(choice, ":")
		return openContainer(ctx, image, o)
	}
	return nil, fmt.Errorf("there is no store %q", WithoutSecret(choice))
}

// named makes sure that no typed nil becomes a database.
func named(d *postgres.Database, err error) (store.Database, error) {
	if err != nil {
		return nil, fmt.Errorf("open store postgres: %w", err)
	}
	return d, nil
}

// openSQLite makes a database in a private directory, which ends with it as a server does, and
// removes those of labs that were killed.
func openSQLite() (store.Database, error) {
	const prefix = "retrylab-sqlite-"
	_, _ = privatedir.Sweep("", prefix, nil) // What cannot be swept is not in the way.
	dir, err := privatedir.New("", prefix)
	if err != nil {
		return nil, fmt.Errorf("make a private directory for the databases: %w", err)
	}
	d, err := sqlite.New(dir.Path())
	if err != nil {
		return nil, errors.Join(err, dir.Remove())
	}
	return &hosted{Database: d, stop: dir.Remove}, nil
}

// hosted is a database whose server ends with it.
type hosted struct {
	store.Database
	stop func() error
}

// Close closes the database and ends its server.
func (h *hosted) Close() error { return errors.Join(h.Database.Close(), h.stop()) }

// Abandon ends the server, and with it everything that is in it.
func (h *hosted) Abandon() error { return h.stop() }

// openCluster starts a private PostgreSQL from the binaries on this machine.
func openCluster(ctx context.Context, o Options) (store.Database, error) {
	c, err := pgcluster.Start(ctx, pgcluster.Options{Bin: o.Bin, MaxConnections: connections})
	if err != nil {
		return nil, fmt.Errorf("open store postgres: %w", err)
	}
	return host(ctx, postgres.Options{DSN: c.DSN(), Private: true, Mode: "private cluster", Jobs: o.Jobs}, c.Stop)
}

func openContainer(ctx context.Context, image string, o Options) (store.Database, error) {
	c, err := containers.Postgres(ctx, image)
	if err != nil {
		return nil, fmt.Errorf("open store docker: %w", err)
	}
	return host(ctx, postgres.Options{DSN: c.DSN(), Mode: "container of " + c.Image(), Jobs: o.Jobs}, func() error {
		// Also after an interrupt.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		return c.Stop(ctx)
	})
}

func host(ctx context.Context, o postgres.Options, stop func() error) (store.Database, error) {
	d, err := named(postgres.Open(ctx, o))
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	return &hosted{Database: d, stop: stop}, nil
}

// Attach opens a store that another process has opened, by its address.
func Attach(address string, o store.Options) (store.Attached, error) {
	engine, rest, _ := strings.Cut(address, ":")
	switch engine {
	case SQLite:
		return sqlite.Attach(rest, o)
	case Postgres:
		return postgres.Attach(rest, o)
	}
	return nil, fmt.Errorf("no process can share a store at %q", WithoutSecret(address))
}

// The places of keys beside the database, as --redis names them.
const (
	Embedded = "embedded"
	Server   = "server"
)

// RedisChoices is what --redis takes, for messages and completion.
var RedisChoices = []string{Embedded, Server, "redis://…"}

// CheckRedis says what is wrong with a choice of --redis.
func CheckRedis(choice string) error {
	if choice == Embedded || choice == Server || isRedisURL(choice) {
		return nil
	}
	return fmt.Errorf("there is no Redis %q", WithoutSecret(choice))
}

// HasRedisServer reports whether this machine has a redis-server that a run can start.
func HasRedisServer() bool {
	_, err := redisserver.Find("")
	return err == nil
}

func isRedisURL(choice string) bool {
	return strings.HasPrefix(choice, "redis://") || strings.HasPrefix(choice, "rediss://") || strings.HasPrefix(choice, "unix://")
}

// OpenKeys opens the place of keys that a choice names. What it starts ends with each trial's keys.
func OpenKeys(ctx context.Context, choice string) (*redis.Source, error) {
	var source *redis.Source
	var err error
	switch {
	case choice == Embedded:
		return redis.NewEmbedded(), nil
	case choice == Server:
		source, err = redis.NewServer(redisserver.Options{})
	case isRedisURL(choice):
		source, err = redis.NewURL(ctx, choice)
	default:
		err = CheckRedis(choice)
	}
	if err != nil {
		return nil, fmt.Errorf("open keys in redis: %w", err)
	}
	return source, nil
}
