package engine

import (
	"context"
	"errors"
	"time"

	"retrylab/internal/lab"
	"retrylab/internal/vtime"
	"retrylab/scenarios"
	"retrylab/slowserver/store"
	"retrylab/slowserver/store/redis"
)

// place is what a trial has outside its bubble: a seat in the database and, where it needs them,
// keys beside it.
type place struct {
	seat    store.Seat
	keys    store.Keys // nil where nobody needs them
	outside *vtime.Outside
	clock   *vtime.Clock // once the trial has one
}

// place makes room for a trial.
func (l *Lab) place(ctx context.Context, t scenarios.Trial) (p *place, err error) {
	p = &place{}
	if t.Setup.NeedsKeys() {
		p.outside = vtime.NewOutside()
		p.keys, err = l.keys.Open(ctx, redis.Options{
			Now:     func() time.Duration { return p.clock.Now() },
			Outside: p.outside.Do,
			Retries: t.Setup.Server.Guard.Retries,
			Replica: t.Setup.NeedsReplica(),
		})
		if err != nil {
			return nil, errors.Join(err, p.outside.Close())
		}
	}
	if p.seat, err = l.database.Seat(ctx); err != nil {
		return nil, errors.Join(err, p.closeKeys())
	}
	return p, nil
}

// leave gives the room back, when the bubble has ended.
func (p *place) leave() error { return errors.Join(p.seat.Leave(), p.closeKeys()) }

func (p *place) closeKeys() error {
	if p.keys == nil {
		return nil
	}
	return errors.Join(p.keys.Close(), p.outside.Close())
}

// unplaced is what is seen of a trial that there was no room for.
func unplaced(ctx context.Context, err error) lab.Observation {
	if ctx.Err() != nil {
		return lab.Observation{Broken: ErrInterrupted.Error()}
	}
	return lab.Observation{Broken: err.Error(), Environment: true}
}

// left notes that a trial's room could not be given back: what was seen before stands on nothing.
func left(obs lab.Observation, err error) lab.Observation {
	if err != nil && obs.Broken == "" {
		obs.Broken, obs.Environment = err.Error(), true
	}
	return obs
}
