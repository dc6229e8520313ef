package guard

import (
	"context"
	"errors"

	"retrylab/internal/lab"
	"retrylab/slowserver/store"
)

// CheckThenInsert looks the key up before the work and writes it after: two statements with a gap
// between them, in which every other request finds nothing. It passes any test whose requests do
// not overlap.
//
// With an isolation level the look and the order are in one transaction that is open during the
// work. The look is then at the orders themselves, as it is in code that has no table of keys: is
// there an order with this key already? Below the strictest level that changes nothing.
var CheckThenInsert = Guard{
	Name:  "check-then-insert",
	Doc:   "looks the key up before the work and writes it after: requests that overlap all pass",
	Takes: []string{"fingerprint", "key-from", "key-value", "scope", "isolation"},
	Admit: func(ctx context.Context, d Desk, r Request) (Pass, error) {
		if d.Settings.Isolation != "" {
			return d.lookAtOrders(ctx, r)
		}
		rec, found, err := d.Store.Read(ctx, r.Key)
		if err != nil {
			return Pass{}, err
		}
		if found {
			// The record is written finished, so there is nothing in progress to be seen.
			if a, ok := d.known(lab.LookUp, r, rec); ok {
				return Pass{Answer: a}, nil
			}
		}
		d.Record(lab.LookUp, "absent")
		return Pass{Finish: func(ctx context.Context, tx store.Tx, a Answer) (*Answer, error) {
			// A second writer of the key is not noticed: that nobody looks at the result is the
			// defect this guard stands for.
			fence, err := tx.Claim(ctx, r.Key, d.claim(r))
			if err != nil || fence == 0 {
				return nil, err
			}
			return finish(r)(ctx, tx, a)
		}}, nil
	},
}

// lookAtOrders looks for an order with the key in the transaction that the order will be written in.
func (d Desk) lookAtOrders(ctx context.Context, r Request) (pass Pass, err error) {
	tx, err := d.Store.Begin(ctx, r.Send, store.TxOptions{Isolation: store.Isolation(d.Settings.Isolation)})
	if err != nil {
		return Pass{}, err
	}
	defer func() {
		if pass.Tx == nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	number, found, err := tx.Placed(ctx, r.Key)
	if err != nil {
		return Pass{}, err
	}
	if !found {
		d.Record(lab.LookUp, "absent")
		return Pass{Tx: tx}, nil
	}
	d.Record(lab.LookUp, "done")
	a, err := placed(number)
	return Pass{Answer: a}, err
}
