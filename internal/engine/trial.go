package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"time"

	"retrylab/internal/lab"
	"retrylab/internal/vtime"
	"retrylab/scenarios"
)

// world is what a trial runs in.
type world struct {
	clock   *vtime.Clock
	network vtime.Network
	place   *place
	horizon time.Duration // scenario time at which the trial is given up
	replica []string      // the command of a replica's process; nil where there are none
}

var (
	errTooMuch = fmt.Errorf("more than %d events: the layers multiply beyond what a trial may do", maxEvents)
	errHorizon = errors.New("the trial came to no end: something waits for ever")
)

// trial runs t once in w: build the machines from the server outwards, let the callers act, wait
// until nothing more can happen, read the effects, and take everything down.
func (l *Lab) trial(outer context.Context, t scenarios.Trial, w world) (obs lab.Observation) {
	life, stop := context.WithCancelCause(context.Background())
	r := &rig{
		trial: t, world: w, life: life,
		journal: &journal{clock: w.clock, outer: outer, life: life, stop: stop},
		group:   &vtime.Group{OnPanic: func(err error) { stop(err) }},
		servers: map[string]*http.Server{}, processes: map[string]*process{},
		pausing: map[time.Duration][]string{},
	}
	defer w.clock.AfterFunc(w.horizon, func() { stop(r.endless()) })()
	if w.clock.Virtual() {
		r.group.Go(func() { r.watch(outer, stop) })
	} else {
		// In real time nothing may be recorded for a long while; on the virtual clock nothing
		// inside may wait for what is outside, and there is no long while.
		defer context.AfterFunc(outer, func() { stop(ErrInterrupted) })()
	}
	defer func() {
		stop(nil)
		if err := r.close(); err != nil {
			obs.Broken, obs.Environment = err.Error(), exhausted(err)
			obs.Defect = !obs.Environment
		}
	}()
	obs.Exact, obs.Store = w.clock.Virtual(), l.database.Info()
	w.place.clock = w.clock
	if w.place.keys != nil {
		obs.Keys = w.place.keys.Info()
	}
	for _, step := range []func(*lab.Observation) error{
		r.build,
		r.operate,
		r.settle,
		r.read,
	} {
		if err := step(&obs); err != nil {
			obs.Events = r.journal.sorted()
			if context.Cause(life) == errTooMuch {
				obs.Events = nil // nobody reads so many, and other trials need the memory
			}
			// What fails after the end of the trial's life fails because of that.
			if life.Err() != nil {
				err = context.Cause(life)
			}
			obs.Broken = err.Error()
			var lost *groundError
			obs.Environment = errors.As(err, &lost)
			return obs
		}
	}
	return obs
}

// endless says that a trial came to no end, and who waits for whom in the database if that knows.
func (r *rig) endless() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := r.store.(interface{ Waiting() []string }); ok {
		if waits := s.Waiting(); len(waits) > 0 {
			return fmt.Errorf("%w: %s", errHorizon, strings.Join(waits, "; "))
		}
	}
	return errHorizon
}

// watch ends a trial on the virtual clock that is stopped from outside, also where nothing is
// recorded for a while. It asks at intervals that grow with the scenario time, so that a trial of
// years is not spent on asking.
func (r *rig) watch(outer context.Context, stop func(error)) {
	for r.world.clock.Sleep(r.life, max(time.Second, r.world.clock.Now()/100)) == nil {
		if outer.Err() != nil {
			stop(ErrInterrupted)
		}
	}
}

// exhausted reports whether an error comes from a machine that has no more of what a trial needs.
func exhausted(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// groundError is about what the lab stands on: the database, the ports.
type groundError struct{ error }

func (e *groundError) Unwrap() error { return e.error }

// ground marks an error as one of the environment's.
func ground(err error) error {
	if err == nil {
		return nil
	}
	return &groundError{err}
}
