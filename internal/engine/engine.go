// Package engine runs a trial: the only step of a run that touches the world. It builds clock,
// network, store, service, hops and caller, from the server outwards, starts the operations, waits
// until nothing more can happen, reads the effects, closes everything, and returns what it saw. It
// judges nothing and prints nothing.
package engine

import (
	"context"
	"errors"
	"time"

	"retrylab/internal/lab"
	"retrylab/internal/simulation"
	"retrylab/internal/vtime"
	"retrylab/scenarios"
	"retrylab/slowserver/store"
	"retrylab/slowserver/store/redis"
)

// The names of the clocks.
const (
	Virtual = "virtual"
	Wall    = "wall"
)

// Lab is where trials run: a database, keys beside it, and a clock. Several trials may run in it at
// once.
type Lab struct {
	database store.Database
	keys     *redis.Source
	clock    string
	speed    float64

	// Replica is the command that runs [RunReplica] in a process of its own, for replicas that are
	// to be processes on the wall clock. Without it such a trial cannot be run there.
	Replica []string
}

// New returns a lab over a database, which stays its owner's. speed is how many scenario seconds go
// by in a real one, on the wall clock only.
func New(database store.Database, clock string, speed float64) *Lab {
	return &Lab{database: database, keys: redis.NewEmbedded(), clock: clock, speed: speed}
}

// WithKeys returns a lab whose trials have their keys in another source than the embedded one.
func (l *Lab) WithKeys(source *redis.Source) *Lab {
	other := *l
	other.keys = source
	return &other
}

// Store says which database the lab's trials have.
func (l *Lab) Store() lab.Store { return l.database.Info() }

// ErrInterrupted is why a trial is broken that was stopped from outside.
var ErrInterrupted = errors.New("interrupted")

// Run runs a trial and returns what was seen. It never fails: a trial that the lab could not
// finish says so in Observation.Broken.
func (l *Lab) Run(ctx context.Context, t scenarios.Trial) lab.Observation {
	if t.Setup.Simulate {
		return simulated(ctx, t)
	}
	if l.clock == Wall {
		return l.onWall(ctx, t)
	}
	obs, _ := l.onVirtual(ctx, t)
	if len(t.Varied) > 0 && obs.Broken == "" {
		obs.Ties = ties(t, obs)
	}
	return obs
}

// simulated runs a trial that has no machines: it needs nothing of the lab.
func simulated(ctx context.Context, t scenarios.Trial) lab.Observation {
	obs, err := simulation.Run(ctx, t)
	switch {
	case err != nil && ctx.Err() != nil:
		obs.Broken = ErrInterrupted.Error()
	case err != nil:
		obs.Broken = err.Error()
	}
	return obs
}

// onVirtual runs a trial in a bubble of its own. The error is [vtime.ErrNoBubble] where the
// toolchain has no virtual clock; it stands in the observation too.
func (l *Lab) onVirtual(ctx context.Context, t scenarios.Trial) (obs lab.Observation, err error) {
	p, err := l.place(ctx, t)
	if err != nil {
		return unplaced(ctx, err), nil
	}
	defer func() { obs = left(obs, p.leave()) }()
	err = vtime.Bubble(func() {
		clock := vtime.NewVirtual(calendar(t.Begin))
		obs = l.trial(ctx, t, world{clock: clock, network: vtime.NewMemory(clock, t.Seed), place: p, horizon: lab.Horizon})
	})
	if err == nil {
		return obs, nil
	}
	obs.Broken = err.Error()
	obs.Environment = errors.Is(err, vtime.ErrNoBubble)
	obs.Defect = !obs.Environment
	return obs, err
}

// calendar is the lab's date at scenario time zero. It is fixed: the same run gives the same
// bytes.
func calendar(begin string) time.Time {
	day := time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC)
	if begin == "" {
		return day
	}
	at, err := time.Parse(scenarios.BeginLayout, begin)
	if err != nil {
		return day
	}
	return time.Date(2026, time.January, 5, at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC)
}
