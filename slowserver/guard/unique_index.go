package guard

import (
	"context"
	"errors"

	"retrylab/internal/lab"
	"retrylab/slowserver/store"
)

// UniqueIndex lets the database decide who is first: a key can be inserted once. The claim stands
// before the work, where a duplicate finds a request in progress, or together with the order,
// where a duplicate has done the work in vain and its transaction is rolled back.
var UniqueIndex = Guard{
	Name:  "unique-index",
	Doc:   "the database decides who is first: a key can be inserted once",
	Takes: []string{"claim", "in-progress", "retry-after", "fingerprint", "key-value", "on-failure"},
	Admit: func(ctx context.Context, d Desk, r Request) (Pass, error) {
		if d.Settings.Claim == "at-insert" {
			return Pass{Claim: d.claimAtInsert(r), Finish: finish(r)}, nil
		}
		return d.claimFirst(ctx, r)
	},
}

func (d Desk) claimAtInsert(r Request) func(context.Context, store.Tx) (*Answer, error) {
	return func(ctx context.Context, tx store.Tx) (*Answer, error) {
		fence, err := tx.Claim(ctx, r.Key, d.claim(r))
		if err != nil {
			return nil, err
		}
		if fence != 0 {
			d.Record(lab.Claim, "won")
			return nil, nil
		}
		rec, _, err := tx.Read(ctx, r.Key)
		if err != nil {
			return nil, err
		}
		dup, ok := d.known(lab.Claim, r, rec)
		if !ok {
			return nil, errors.New("a key that is claimed with its order was found in progress")
		}
		return dup, nil
	}
}

// claimFirst claims the key in a transaction of its own, so that others see it while the work
// goes on.
func (d Desk) claimFirst(ctx context.Context, r Request) (Pass, error) {
	for {
		// Taken before the look, so that a change right after it is not missed.
		changed := d.Store.Changed()
		rec, won, err := d.tryClaim(ctx, r)
		if err != nil {
			return Pass{}, err
		}
		if won {
			d.Record(lab.Claim, "won")
			return d.owner(r), nil
		}
		if a, ok := d.known(lab.Claim, r, rec); ok {
			return Pass{Answer: a}, nil
		}
		d.Record(lab.Claim, "held")
		switch d.Settings.InProgress {
		case "wait":
		case "replay":
			return Pass{Answer: &Answer{Status: 200, Body: []byte(`{"order":0,"status":"accepted"}` + "\n"), Replayed: true}}, nil
		default:
			a := problem(lab.ProblemInProgress, "a request with this key is in progress", 409)
			a.RetryAfter = d.Settings.RetryAfter
			return Pass{Answer: a}, nil
		}
		select {
		case <-changed:
		case <-r.Gone.Done():
			// Nobody is left to wait for: unlike work that has begun, a wait has nothing to finish.
			return Pass{}, ErrGone
		case <-ctx.Done():
			return Pass{}, context.Cause(ctx)
		}
		if err := d.Pause(ctx); err != nil {
			return Pass{}, err
		}
	}
}

// ErrGone says that a duplicate gave up its wait because its client had left.
var ErrGone = errors.New("the client left while its request waited")

func (d Desk) tryClaim(ctx context.Context, r Request) (rec store.Record, won bool, err error) {
	tx, err := d.Store.Begin(ctx, r.Send, store.TxOptions{})
	if err != nil {
		return rec, false, err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	fence, err := tx.Claim(ctx, r.Key, d.claim(r))
	if err != nil {
		return rec, false, err
	}
	if fence != 0 {
		return rec, true, tx.Commit()
	}
	rec, _, err = tx.Read(ctx, r.Key)
	return rec, false, err
}

// owner is the pass of the request that holds the claim.
func (d Desk) owner(r Request) Pass {
	return Pass{
		Finish: finish(r),
		Failed: func(ctx context.Context, a Answer) error {
			if d.Settings.OnFailure == "" || d.Settings.OnFailure == "keep" {
				return nil
			}
			tx, err := d.Store.Begin(ctx, r.Send, store.TxOptions{})
			if err != nil {
				return err
			}
			defer tx.Rollback()
			if d.Settings.OnFailure == "delete" {
				_, err = tx.Release(ctx, r.Key, store.Holder{})
			} else {
				_, err = tx.Finish(ctx, r.Key, store.Holder{}, store.Record{Status: store.Failed, Code: a.Status, Body: a.Body})
			}
			if err != nil {
				return err
			}
			return tx.Commit()
		},
	}
}
