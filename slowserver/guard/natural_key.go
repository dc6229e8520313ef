package guard

import (
	"context"
	"errors"
	"fmt"

	"retrylab/internal/lab"
	"retrylab/slowserver/store"
)

// NaturalKey keeps no table of keys: the order itself carries a number that means something to the
// business, such as that of the cart, and the database takes each number once. It holds for whoever
// sends the order again, also with a new key, since the number is made of what was meant and not of
// the request. A duplicate is found out only when its order is written: the work is done by then.
var NaturalKey = Guard{
	Name:  "natural-key",
	Doc:   "the order itself carries a number that no other may have: it is made of what is ordered, not of the request",
	Takes: []string{"on-duplicate", "fingerprint", "key-from", "key-value", "scope"},
	Admit: func(_ context.Context, d Desk, r Request) (Pass, error) {
		pass := Pass{Reference: r.Key}
		if d.Settings.OnDuplicate != "fail" {
			pass.Duplicate = func(ctx context.Context) (Answer, error) { return d.orderThere(ctx, r) }
		}
		return pass, nil
	},
}

// orderThere answers a request whose order was there. It looks in a transaction of its own: on
// PostgreSQL the violation has ended the one that it was found in.
func (d Desk) orderThere(ctx context.Context, r Request) (a Answer, err error) {
	d.Record(lab.Claim, "duplicate")
	if d.Settings.OnDuplicate == "conflict" {
		return *duplicate(), nil
	}
	tx, err := d.Store.Begin(ctx, r.Send, store.TxOptions{})
	if err != nil {
		return Answer{}, err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	number, found, err := tx.Placed(ctx, r.Key)
	switch {
	case err != nil:
		return Answer{}, err
	case !found:
		return Answer{}, fmt.Errorf("the order %s was there and is not any more", r.Key)
	}
	there, err := placed(number)
	if err != nil {
		return Answer{}, err
	}
	return *there, nil
}
