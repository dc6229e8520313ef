package guard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"retrylab/internal/lab"
	"retrylab/slowserver/store"
)

// RedisPrecheck asks a store of keys beside the database before it works, most often Redis: it is
// fast, and it is another place than the one that the order is in. What it forgets, or what is
// written to one of the two alone, nobody notices, unless the database has an index of its own.
var RedisPrecheck = Guard{
	Name:  "redis-precheck",
	Doc:   "asks a store of keys beside the database: what that forgets is done again",
	Takes: []string{"retry-after", "fingerprint", "key-from", "key-value", "scope", "on-failure", "ttl", "open-ttl", "presence", "write", "client-retries", "index", "fail-open"},
	Keys:  true,
	Admit: func(ctx context.Context, d Desk, r Request) (Pass, error) {
		admit := d.claimBeside
		if d.Settings.Write == "last" {
			admit = d.lookBeside
		}
		pass, err := admit(ctx, r)
		if d.Settings.FailOpen && errors.Is(err, store.ErrUnreachable) {
			d.Record(lab.LookUp, "unreachable")
			pass, err = Pass{}, nil
		}
		if err == nil && pass.Answer == nil && d.Settings.Index {
			pass.Claim, pass.Finish = d.claimBehind(r), finish(r)
		}
		return pass, err
	},
}

// beside is the value of a key, as it lies there. Its form is this guard's own.
type beside struct {
	Status string `json:"status"`
	Hash   string `json:"hash"`
	Owner  string `json:"owner"`
	Code   int    `json:"code,omitempty"`
	Body   []byte `json:"body,omitempty"`
}

// claimBeside claims the key before the work.
func (d Desk) claimBeside(ctx context.Context, r Request) (Pass, error) {
	for {
		won, err := d.Keys.Claim(ctx, r.Key, r.value(store.Record{}), cmp.Or(d.Settings.OpenTTL, d.Settings.TTL))
		if err != nil {
			return Pass{}, err
		}
		if won {
			d.Record(lab.Claim, "won")
			return Pass{Committed: d.writeBeside(r), Failed: d.failedBeside(r)}, nil
		}
		a, found, err := d.readBeside(ctx, lab.Claim, r)
		if err != nil || found {
			return Pass{Answer: a}, err
		}
		// It ended between the two commands, so there is nobody to be told of.
		if err := d.Pause(ctx); err != nil {
			return Pass{}, err
		}
	}
}

// lookBeside looks at the key before the work. It is written after the commit.
func (d Desk) lookBeside(ctx context.Context, r Request) (Pass, error) {
	a, found, err := d.readBeside(ctx, lab.LookUp, r)
	if err != nil || found {
		return Pass{Answer: a}, err
	}
	d.Record(lab.LookUp, "absent")
	return Pass{Committed: d.writeBeside(r)}, nil
}

// readBeside returns the answer to a request whose key is there. kind says how that was found.
func (d Desk) readBeside(ctx context.Context, kind lab.Kind, r Request) (a *Answer, found bool, err error) {
	value, found, err := d.Keys.Get(ctx, r.Key)
	if err != nil || !found {
		return nil, false, err
	}
	if d.Settings.Presence == "done" {
		d.Record(kind, "held")
		return accepted(), true, nil
	}
	var v beside
	if err := json.Unmarshal([]byte(value), &v); err != nil {
		return nil, false, fmt.Errorf("read the value of a key: %w", err)
	}
	rec := store.Record{Hash: v.Hash, Owner: v.Owner, Code: v.Code, Body: v.Body}
	for _, status := range []store.Status{store.Done, store.Failed} {
		if v.Status == status.String() {
			rec.Status = status
		}
	}
	a, ok := d.known(kind, r, rec)
	if !ok {
		d.Record(kind, "held")
		a = d.inProgress()
	}
	return a, true, nil
}

// value is what a key has for a value when its request has come to rec.
func (r Request) value(rec store.Record) string {
	text, _ := json.Marshal(beside{Status: rec.Status.String(), Hash: r.Hash, Owner: r.Send, Code: rec.Code, Body: rec.Body})
	return string(text)
}

// writeBeside stores the answer under the key.
func (d Desk) writeBeside(r Request) func(context.Context, Answer) error {
	return func(ctx context.Context, a Answer) error {
		err := d.Keys.Set(ctx, r.Key, r.value(done(a)), d.Settings.TTL)
		if d.Settings.FailOpen && errors.Is(err, store.ErrUnreachable) {
			return nil
		}
		return err
	}
}

// failedBeside does with the key of a request that failed as the settings say.
func (d Desk) failedBeside(r Request) func(context.Context, Answer) error {
	return func(ctx context.Context, a Answer) error {
		switch d.Settings.leaves(a) {
		case "delete":
			return d.Keys.Delete(ctx, r.Key)
		case "mark":
			return d.Keys.Set(ctx, r.Key, r.value(failed(a)), d.Settings.TTL)
		}
		return nil
	}
}

// claimBehind lets the index decide on a request that the keys beside it let pass.
func (d Desk) claimBehind(r Request) func(context.Context, store.Tx) (*Answer, error) {
	claim := d.claimAtInsert(r)
	return func(ctx context.Context, tx store.Tx) (*Answer, error) {
		dup, err := claim(ctx, tx)
		switch {
		case err != nil || dup == nil:
			return nil, err
		case dup.Replayed:
			// The keys had forgotten it. They are told, or the claim of this request would stand
			// there as one in progress.
			err = d.writeBeside(r)(ctx, *dup)
		default:
			err = d.Keys.Delete(ctx, r.Key)
		}
		if d.Settings.FailOpen && errors.Is(err, store.ErrUnreachable) {
			err = nil
		}
		return dup, err
	}
}
