package suite

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"retrylab/internal/engine"
	"retrylab/internal/storage"
	"retrylab/slowserver/store"
)

// grace is how long, in real time, whoever leaves at once waits for the run to end in order. What a
// trial has of its own, such as its redis-server, is removed by the trial alone.
const grace = 2 * time.Second

// awaitEnd waits for the end of an interrupted run, and not for long.
func awaitEnd(ctx context.Context, over <-chan struct{}) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	select {
	case <-over:
		return nil
	case <-limited.Done():
		return context.Cause(limited)
	}
}

// open opens what the jobs stand on, each database once, and returns a lab for each ground. The
// function closes them all; it can be called again.
func open(ctx context.Context, jobs []job, o Options) (map[ground]*engine.Lab, func() error, error) {
	labs := map[ground]*engine.Lab{}
	databases := map[string]store.Database{}
	closeAll := sync.OnceValue(func() error {
		var errs []error
		for _, d := range databases {
			errs = append(errs, d.Close())
		}
		return errors.Join(errs...)
	})
	for _, j := range jobs {
		g := j.ground
		if labs[g] != nil {
			continue
		}
		d := databases[g.store]
		if d == nil {
			var err error
			if d, err = openDatabase(ctx, g, o); err != nil {
				needed := slices.ContainsFunc(jobs, func(j job) bool { return j.ground.store == g.store && j.trial.Needs == storage.Postgres })
				return nil, nil, errors.Join(unavailable(ctx, g, needed, err), closeAll())
			}
			databases[g.store] = d
			info := d.Info()
			o.trace("opened", "store", info.Engine, "version", info.Version, "mode", info.Mode, "chosen_by", g.chosenBy)
		}
		keys, err := storage.OpenKeys(ctx, g.redis)
		if err != nil {
			return nil, nil, errors.Join(&EnvironmentError{Err: err, Hint: "--redis embedded needs nothing"}, closeAll())
		}
		labs[g] = engine.New(d, o.Clock, o.Speed).WithKeys(keys)
		labs[g].Replica = o.Replica
	}
	return labs, closeAll, nil
}

// openDatabase opens the database of a ground. Whoever leaves meanwhile waits for it: an interrupt
// ends the opening, and what it has made by then is removed.
func openDatabase(ctx context.Context, g ground, o Options) (d store.Database, err error) {
	over := make(chan struct{})
	defer close(over)
	if o.Opened != nil {
		o.Opened(func() error {
			if <-over; d == nil {
				return nil
			}
			return d.Abandon()
		})
	}
	return storage.Open(ctx, g.store, storage.Options{Jobs: sideBySide(o), Bin: o.Bin})
}

// unavailable says that a database could not be had, and what else there is. needed says that the
// embedded one would not do.
func unavailable(ctx context.Context, g ground, needed bool, err error) error {
	if ctx.Err() != nil {
		return err
	}
	hint := ""
	if engine, _ := storage.Engine(g.store); engine == storage.Postgres {
		asked := strings.Replace(g.store, "postgresql://", "postgres://", 1)
		var ways []string
		for _, way := range []struct{ store, what string }{
			{storage.Postgres, "--store postgres starts one from the binaries on this machine (--pg-bindir DIR says where they are)"},
			{"postgres://", "--store postgres://… uses one that is there"},
			{storage.Docker, "--store docker starts one in a container"},
			{storage.SQLite, "--store sqlite needs nothing"},
		} {
			same := strings.HasPrefix(asked, way.store) && (way.store != storage.Postgres || asked == storage.Postgres)
			if !same && (way.store != storage.SQLite || !needed) {
				ways = append(ways, way.what)
			}
		}
		hint = "other ways: " + strings.Join(ways, "; ")
	}
	return &EnvironmentError{Err: err, Hint: hint}
}

// EnvironmentError says that the lab could not be set up.
type EnvironmentError struct {
	Err  error
	Hint string // what to do, or empty
}

func (e *EnvironmentError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *EnvironmentError) Unwrap() error { return e.Err }
