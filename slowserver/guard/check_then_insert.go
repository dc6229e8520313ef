package guard

import (
	"context"

	"retrylab/internal/lab"
	"retrylab/slowserver/store"
)

// CheckThenInsert looks the key up before the work and writes it after: two statements with a gap
// between them, in which every other request finds nothing. It passes any test whose requests do
// not overlap.
var CheckThenInsert = Guard{
	Name:  "check-then-insert",
	Doc:   "looks the key up before the work and writes it after: requests that overlap all pass",
	Takes: []string{"fingerprint", "key-value"},
	Admit: func(ctx context.Context, d Desk, r Request) (Pass, error) {
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
		return Pass{Finish: func(ctx context.Context, tx store.Tx, a Answer) error {
			// A second writer of the key is not noticed: that nobody looks at the result is the
			// defect this guard stands for.
			fence, err := tx.Claim(ctx, r.Key, d.claim(r))
			if err != nil || fence == 0 {
				return err
			}
			return finish(r)(ctx, tx, a)
		}}, nil
	},
}
