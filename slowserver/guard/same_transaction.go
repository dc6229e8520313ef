package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"retrylab/internal/lab"
	"retrylab/slowserver/store"
)

// SameTransaction claims the key and writes the order in one transaction that stays open during
// the work. A duplicate does not see the claim; it waits in the database until the first commits,
// and then gets the stored answer.
//
// A time limit on that wait, or a lock that is asked for first and refused at once, makes a 409 of
// it. A look at the key does not: nobody ever sees the claim of an open transaction.
var SameTransaction = Guard{
	Name:  "same-transaction",
	Doc:   "key and order in one transaction, open during the work: duplicates wait in the database",
	Takes: []string{"fingerprint", "key-from", "key-value", "scope", "isolation", "lock-timeout", "idle-timeout", "lock", "insert", "on-duplicate", "ttl", "expiry", "clean-up"},
	Admit: func(ctx context.Context, d Desk, r Request) (Pass, error) {
		for {
			pass, again, err := d.claimInTransaction(ctx, r)
			if err != nil || !again {
				return pass, err
			}
			if err := d.Pause(ctx); err != nil {
				return Pass{}, err
			}
		}
	},
}

// claimInTransaction begins a transaction and claims the key in it. It reports whether to start
// over.
func (d Desk) claimInTransaction(ctx context.Context, r Request) (pass Pass, again bool, err error) {
	tx, err := d.Store.Begin(ctx, r.Send, store.TxOptions{
		Isolation:   store.Isolation(d.Settings.Isolation),
		LockTimeout: d.Settings.LockTimeout,
		IdleTimeout: d.Settings.IdleTimeout,
	})
	if err != nil {
		return Pass{}, false, err
	}
	defer func() {
		if pass.Tx == nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	if d.Settings.Lock == "advisory" {
		locker, ok := tx.(store.Locker)
		if !ok {
			return Pass{}, false, fmt.Errorf("ask for an advisory lock: %w", store.ErrUnsupported)
		}
		if ok, err := locker.TryLock(ctx, r.Key); err != nil || !ok {
			return d.held(), false, err
		}
	}
	if err := d.forget(ctx, tx, r.Key); err != nil {
		return Pass{}, false, err
	}
	claim := d.claimQuietly
	if d.Settings.Insert == "plain" {
		claim = d.insertPlainly
	}
	a, err := claim(ctx, tx, r)
	switch {
	case errors.Is(err, store.ErrBusy):
		return d.held(), false, nil
	case errors.Is(err, store.ErrDuplicate) && slices.Contains([]string{"start-over", "replay", "conflict"}, d.Settings.OnDuplicate):
		return Pass{}, true, nil // a look in a new transaction finds what is there
	case err != nil:
		return Pass{}, false, err
	case a != nil:
		return Pass{Answer: a}, false, nil
	}
	return Pass{Tx: tx, Finish: finish(r)}, false, nil
}

// held is the word on a request that was told at once that another has the key.
func (d Desk) held() Pass {
	d.Record(lab.Claim, "held")
	return Pass{Answer: d.inProgress()}
}

// claimQuietly inserts the key if there is none, and else reads what is there.
func (d Desk) claimQuietly(ctx context.Context, tx store.Tx, r Request) (*Answer, error) {
	fence, err := tx.Claim(ctx, r.Key, d.claim(r))
	if err != nil {
		return nil, err
	}
	if fence != 0 {
		d.Record(lab.Claim, "won")
		return nil, nil
	}
	return d.stored(ctx, tx, r)
}

// stored returns the answer of a key that was found taken. It was committed with its order, so it
// is not in progress.
func (d Desk) stored(ctx context.Context, tx store.Tx, r Request) (*Answer, error) {
	rec, _, err := tx.Read(ctx, r.Key)
	if err != nil {
		return nil, err
	}
	a, ok := d.known(lab.Claim, r, rec)
	if !ok {
		return nil, errors.New("a key that is claimed with its order was found in progress")
	}
	return a, nil
}

// insertPlainly is the code that many articles print: it looks at the key, says 409 if it is in
// progress, and else inserts it. The 409 is never given, since the key of an open transaction
// cannot be seen; whoever comes meanwhile waits at the insert, and meets a unique violation that
// nobody has thought of.
func (d Desk) insertPlainly(ctx context.Context, tx store.Tx, r Request) (*Answer, error) {
	rec, found, err := tx.Read(ctx, r.Key)
	if err != nil {
		return nil, err
	}
	if found {
		a, ok := d.known(lab.LookUp, r, rec)
		if !ok {
			d.Record(lab.LookUp, rec.Status.String())
			a = d.inProgress()
		}
		return a, nil
	}
	d.Record(lab.LookUp, "absent")
	err = tx.Insert(ctx, r.Key, d.claim(r))
	switch {
	case err == nil:
		d.Record(lab.Claim, "won")
		return nil, nil
	case !errors.Is(err, store.ErrDuplicate):
		return nil, err
	}
	d.Record(lab.Claim, "duplicate")
	if d.Settings.OnDuplicate == "read-on" {
		// On PostgreSQL the violation has ended the transaction, and this read fails.
		return d.stored(ctx, tx, r)
	}
	return nil, err
}
