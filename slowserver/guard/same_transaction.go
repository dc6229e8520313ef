package guard

import (
	"context"
	"errors"

	"retrylab/internal/lab"
	"retrylab/slowserver/store"
)

// SameTransaction claims the key and writes the order in one transaction that stays open during
// the work. A duplicate does not see the claim; it waits in the database until the first commits,
// and then gets the stored answer.
var SameTransaction = Guard{
	Name:  "same-transaction",
	Doc:   "key and order in one transaction, open during the work: duplicates wait in the database",
	Takes: []string{"fingerprint", "key-value"},
	Admit: func(ctx context.Context, d Desk, r Request) (pass Pass, err error) {
		tx, err := d.Store.Begin(ctx, r.Send, store.TxOptions{})
		if err != nil {
			return Pass{}, err
		}
		defer func() {
			if pass.Tx == nil {
				err = errors.Join(err, tx.Rollback())
			}
		}()
		fence, err := tx.Claim(ctx, r.Key, d.claim(r))
		if err != nil {
			return Pass{}, err
		}
		if fence != 0 {
			d.Record(lab.Claim, "won")
			return Pass{Tx: tx, Finish: finish(r)}, nil
		}
		rec, _, err := tx.Read(ctx, r.Key)
		if err != nil {
			return Pass{}, err
		}
		a, ok := d.known(lab.Claim, r, rec)
		if !ok {
			return Pass{}, errors.New("a key that is claimed with its order was found in progress")
		}
		return Pass{Answer: a}, nil
	},
}
