// Package engine runs a trial: the only step of a run that touches the world. It builds clock,
// network, store, service, hops and caller, from the server outwards, starts the operations, waits
// until nothing more can happen, reads the effects, closes everything, and returns what it saw. It
// judges nothing and prints nothing.
package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"retrylab/internal/lab"
	"retrylab/internal/vtime"
	"retrylab/scenarios"
	"retrylab/slowserver/store/sqlite"
)

// The names of the clocks.
const (
	Virtual = "virtual"
	Wall    = "wall"
)

// Lab is where trials run: a private directory and a clock. Several trials may run in it at once.
type Lab struct {
	dir      string
	template *sqlite.Template
	clock    string
	speed    float64
	files    atomic.Int64
}

// New opens a lab. speed is how many scenario seconds go by in a real one, on the wall clock only.
// Close removes what the lab made.
func New(clock string, speed float64) (*Lab, error) {
	dir, err := os.MkdirTemp("", "retrylab-")
	if err != nil {
		return nil, fmt.Errorf("make a private directory for the databases: %w", err)
	}
	template, err := sqlite.NewTemplate(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &Lab{dir: dir, template: template, clock: clock, speed: speed}, nil
}

// Close removes the lab's directory.
func (l *Lab) Close() error {
	if err := os.RemoveAll(l.dir); err != nil {
		return fmt.Errorf("remove the private directory: %w", err)
	}
	return nil
}

// ErrInterrupted is why a trial is broken that was stopped from outside.
var ErrInterrupted = errors.New("interrupted")

// Run runs a trial and returns what was seen. It never fails: a trial that the lab could not
// finish says so in Observation.Broken.
func (l *Lab) Run(ctx context.Context, t scenarios.Trial) lab.Observation {
	if l.clock == Wall {
		return l.onWall(ctx, t)
	}
	obs, _ := l.onVirtual(ctx, t)
	return obs
}

// horizon is the scenario time after which a trial on the virtual clock is given up: far beyond
// anything that a scenario can ask for, so what is still waiting then waits for ever.
const horizon = 100_000 * time.Hour

// onVirtual runs a trial in a bubble of its own. The error is [vtime.ErrNoBubble] where the
// toolchain has no virtual clock; it stands in the observation too.
func (l *Lab) onVirtual(ctx context.Context, t scenarios.Trial) (obs lab.Observation, err error) {
	err = vtime.Bubble(func() {
		clock := vtime.NewVirtual(calendar(t.Begin))
		obs = l.trial(ctx, t, world{clock: clock, network: vtime.NewMemory(clock, t.Seed), horizon: horizon})
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

// storeName is a file name that no other trial of the lab uses.
func (l *Lab) storeName() string { return fmt.Sprintf("trial-%d", l.files.Add(1)) }
