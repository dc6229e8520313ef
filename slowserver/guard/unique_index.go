package guard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"retrylab/internal/lab"
	"retrylab/slowserver/store"
)

// UniqueIndex lets the database decide who is first: a key can be inserted once. The claim stands
// before the work, where a duplicate finds a request in progress, or together with the order,
// where a duplicate has done the work in vain and its transaction is rolled back.
var UniqueIndex = Guard{
	Name: "unique-index",
	Doc:  "the database decides who is first: a key can be inserted once",
	Takes: []string{
		"claim", "in-progress", "retry-after", "on-duplicate", "unique-over", "fingerprint", "key-from", "key-value", "scope",
		"on-failure", "finish", "lease", "fencing", "ttl", "open-ttl", "expiry", "clean-up",
	},
	Admit: func(ctx context.Context, d Desk, r Request) (Pass, error) {
		if d.Settings.Claim == "at-insert" {
			return d.admitToInsert(r), nil
		}
		r.Key = d.indexed(r.Key)
		return d.claimFirst(ctx, r)
	},
}

// indexed is what the index holds for a key that is claimed now. The index of a table that is
// partitioned by time has to contain the time, and so lets a key in again with another time.
func (d Desk) indexed(key string) string {
	switch d.Settings.UniqueOver {
	case "key-and-time":
		return fmt.Sprintf("%s@%dus", key, d.Now().Microseconds())
	case "key-and-day":
		return key + "@" + d.Date().Format(time.DateOnly)
	}
	return key
}

// admitToInsert lets a request work; its key is claimed in the order's transaction.
func (d Desk) admitToInsert(r Request) Pass {
	row := r
	return Pass{
		Claim: func(ctx context.Context, tx store.Tx) (*Answer, error) {
			row.Key = d.indexed(r.Key)
			return d.claimAtInsert(row)(ctx, tx)
		},
		Finish: func(ctx context.Context, tx store.Tx, a Answer) (*Answer, error) { return finish(row)(ctx, tx, a) },
	}
}

// insert claims a key for r. It returns 0 when the key is taken, unless nobody has thought of that:
// then the violation is an error like any.
func (d Desk) insert(ctx context.Context, tx store.Tx, r Request) (fence int64, err error) {
	if err := d.forget(ctx, tx, r.Key); err != nil {
		return 0, err
	}
	if d.Settings.OnDuplicate != "fail" {
		return tx.Claim(ctx, r.Key, d.claim(r))
	}
	if err := tx.Insert(ctx, r.Key, d.claim(r)); err != nil {
		if errors.Is(err, store.ErrDuplicate) {
			d.Record(lab.Claim, "duplicate")
		}
		return 0, err
	}
	return 1, nil
}

func (d Desk) claimAtInsert(r Request) func(context.Context, store.Tx) (*Answer, error) {
	return func(ctx context.Context, tx store.Tx) (*Answer, error) {
		fence, err := d.insert(ctx, tx, r)
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
		rec, fence, err := d.tryClaim(ctx, r)
		if err != nil {
			return Pass{}, err
		}
		if fence > 0 {
			d.Record(lab.Claim, won(fence))
			return d.owner(r, fence), nil
		}
		if a, ok := d.known(lab.Claim, r, rec); ok {
			return Pass{Answer: a}, nil
		}
		d.Record(lab.Claim, "held")
		switch d.Settings.InProgress {
		case "wait":
		case "replay":
			return Pass{Answer: accepted()}, nil
		default:
			return Pass{Answer: d.inProgress()}, nil
		}
		if err := d.wait(ctx, r, changed); err != nil {
			return Pass{}, err
		}
	}
}

// won says how a claim with a fence came about.
func won(fence int64) string {
	if fence > 1 {
		return "taken over"
	}
	return "won"
}

// wait waits until something has changed, or the lease that was found has run out: of that nobody
// tells. A holder's lease ends at the latest one lease after it was seen.
func (d Desk) wait(ctx context.Context, r Request, changed <-chan struct{}) error {
	var expired chan struct{}
	if d.Settings.Lease > 0 {
		expired = make(chan struct{})
		defer d.AfterFunc(d.Settings.Lease, func() { close(expired) })()
	}
	select {
	case <-changed:
	case <-expired:
	case <-r.Gone.Done():
		// Nobody is left to wait for: unlike work that has begun, a wait has nothing to finish.
		return ErrGone
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return d.Pause(ctx)
}

// ErrGone says that a duplicate gave up its wait because its client had left.
var ErrGone = errors.New("the client left while its request waited")

// tryClaim returns the fence of the claim, or 0 and the record that stands in its way.
func (d Desk) tryClaim(ctx context.Context, r Request) (rec store.Record, fence int64, err error) {
	tx, err := d.Store.Begin(ctx, r.Send, store.TxOptions{})
	if err != nil {
		return rec, 0, err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	if fence, err = d.insert(ctx, tx, r); err != nil {
		return rec, 0, err
	}
	if fence != 0 {
		return rec, fence, tx.Commit()
	}
	rec, _, err = tx.Read(ctx, r.Key)
	return rec, 0, err
}

// owner is the pass of the request that holds the claim with a fence.
func (d Desk) owner(r Request, fence int64) Pass {
	var by store.Holder
	switch d.Settings.Fencing {
	case "fence":
		by = store.Holder{Fence: fence}
	case "owner-and-fence":
		// The fence alone is not enough where records are deleted: it then begins anew at 1, and
		// the first owner of all is taken for the next.
		by = store.Holder{Owner: r.Send, Fence: fence}
	}
	pass := Pass{Failed: func(ctx context.Context, a Answer) error { return d.ownerFailed(ctx, r, by, a) }}
	if d.Settings.Finish == "after" {
		pass.Committed = func(ctx context.Context, a Answer) error { return d.finishAfter(ctx, r, a) }
		return pass
	}
	pass.Finish = func(ctx context.Context, tx store.Tx, a Answer) (*Answer, error) {
		held, err := tx.Finish(ctx, r.Key, by, done(a))
		// Without fencing nobody looks: the order stands, whoever holds the key by now.
		if err != nil || held || by == (store.Holder{}) {
			return nil, err
		}
		return d.fencedOut(), nil
	}
	return pass
}

// finishAfter stores the answer when the order is committed: whatever comes in between finds an
// order whose key is still in progress.
func (d Desk) finishAfter(ctx context.Context, r Request, a Answer) (err error) {
	tx, err := d.Store.Begin(ctx, r.Send, store.TxOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }() // after a commit this does nothing
	if _, err := finish(r)(ctx, tx, a); err != nil {
		return err
	}
	return tx.Commit()
}

// ownerFailed does with the key of a request that failed as the settings say.
func (d Desk) ownerFailed(ctx context.Context, r Request, by store.Holder, a Answer) (err error) {
	leaves := d.Settings.leaves(a)
	if leaves == "keep" {
		return nil
	}
	tx, err := d.Store.Begin(ctx, r.Send, store.TxOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	held := false
	if leaves == "delete" {
		held, err = tx.Release(ctx, r.Key, by)
	} else {
		held, err = tx.Finish(ctx, r.Key, by, failed(a))
	}
	switch {
	case err != nil:
		return err
	case !held && by != (store.Holder{}):
		d.Record(lab.Rollback, "fenced out")
		return nil
	}
	return tx.Commit()
}
