package guard

import (
	"context"
	"errors"
	"time"

	"retrylab/internal/lab"
	"retrylab/slowserver/store"
)

// Lock lets one request work at a time, whichever operation it belongs to, and frees the lock when
// the request is over. It is no key: who comes when it is free again finds nothing of who was there
// before.
var Lock = Guard{
	Name:      "lock",
	Doc:       "one request at a time holds a lock, and frees it when it is over: it remembers nothing of who was there before",
	Takes:     []string{"lock-on", "in-progress", "retry-after", "lease", "release", "renew"},
	Exclusive: true,
	Admit: func(ctx context.Context, d Desk, r Request) (Pass, error) {
		r.Hash = "" // whoever comes asks for the same lock
		for {
			// Taken before the look, so that a change right after it is not missed.
			changed := d.Store.Changed()
			_, fence, err := d.tryClaim(ctx, r)
			switch {
			case err != nil:
				return Pass{}, err
			case fence > 0:
				d.Record(lab.Lock, won(fence))
				return d.locked(r), nil
			}
			d.Record(lab.Lock, "held")
			if d.Settings.InProgress != "wait" {
				a := problem(lab.ProblemLocked, "another request holds the lock", 409)
				a.RetryAfter = d.Settings.RetryAfter
				return Pass{Answer: a}, nil
			}
			if err := d.wait(ctx, r, changed); err != nil {
				return Pass{}, err
			}
		}
	},
}

// locked is the pass of a request that holds the lock.
func (d Desk) locked(r Request) Pass {
	mine := store.Holder{Owner: r.Send}
	// A renewal and the release do not come between each other. It is a channel since on the virtual
	// clock nobody may wait for a mutex.
	turn := make(chan struct{}, 1)
	stop := func() bool { return true }
	every := d.Settings.Renew + 7*time.Microsecond // not in the instant in which work of a round length ends
	over := false
	var renew func()
	renew = func() {
		turn <- struct{}{}
		defer func() { <-turn }()
		if over {
			return
		}
		held, err := d.change(r, func(ctx context.Context, tx store.Tx) (bool, error) {
			held, err := tx.Release(ctx, r.Key, mine)
			if err != nil || !held {
				return false, err
			}
			fence, err := tx.Claim(ctx, r.Key, d.claim(r))
			return fence > 0, err
		})
		if err != nil || !held {
			d.Record(lab.Lock, "lost")
			return
		}
		d.Record(lab.Lock, "renewed")
		stop = d.AfterFunc(every, renew)
	}
	if d.Settings.Renew > 0 {
		stop = d.AfterFunc(every, renew)
	}
	return Pass{Left: func() error {
		turn <- struct{}{}
		defer func() { <-turn }()
		over = true
		stop()
		var there store.Record
		held, err := d.change(r, func(ctx context.Context, tx store.Tx) (held bool, err error) {
			if d.Settings.Release != "any" {
				return tx.Release(ctx, r.Key, mine)
			}
			if there, held, err = tx.Read(ctx, r.Key); err != nil || !held {
				return false, err
			}
			return tx.Release(ctx, r.Key, store.Holder{})
		})
		switch {
		case err != nil:
			return err
		case !held:
			d.Record(lab.Lock, "gone")
		case there.Owner != "" && there.Owner != r.Send:
			d.Record(lab.Lock, "freed another's")
		default:
			d.Record(lab.Lock, "freed")
		}
		return nil
	}}
}

// change does something to the lock in a transaction, which is committed where it has done it.
func (d Desk) change(r Request, do func(ctx context.Context, tx store.Tx) (bool, error)) (done bool, err error) {
	tx, err := d.Store.Begin(d.Life, r.Send, store.TxOptions{})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }() // after a commit this does nothing
	if done, err = do(d.Life, tx); err != nil || !done {
		return false, err
	}
	return true, tx.Commit()
}
