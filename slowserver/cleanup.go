package slowserver

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"retrylab/internal/lab"
	"retrylab/slowserver/store"
)

// cleaner is what the job is called that removes old keys.
const cleaner = "clean-up"

// CleanUp is the job that removes keys which are too old. It runs beside the replicas, as often as
// the guard's settings say, until the service ends.
func (s *Service) CleanUp() {
	for n := 0; ; n++ {
		at, more := s.config.Guard.CleanUp.Next(n)
		if !more || s.config.Clock.Sleep(s.life, at-s.config.Clock.Now()) != nil || s.config.Pause(s.life, cleaner) != nil {
			return
		}
		if err := s.cleanUp(s.life); err != nil && s.life.Err() == nil {
			panic(fmt.Errorf("the clean-up of keys: %w", err))
		}
	}
}

// cleanUp removes the keys that are too old now. A run that finds none is nothing that happens.
func (s *Service) cleanUp(ctx context.Context) (err error) {
	tx, err := s.config.Store.Begin(ctx, cleaner, store.TxOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }() // after a commit this does nothing
	deleted, err := tx.Expire(ctx, "", s.config.Guard.Expired(s.config.Clock.Now()))
	if err != nil || deleted == 0 {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	s.config.Record(lab.Event{Kind: lab.CleanedUp, Node: cleaner, Detail: strconv.FormatInt(deleted, 10)})
	return nil
}
