// Package guard holds the server-side protections against a request that arrives more than once:
// one file per guard, each a value in [All]. A guard talks to the store and to nothing else; it
// knows neither HTTP nor scenarios.
package guard

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"retrylab/internal/lab"
	"retrylab/slowserver/store"
)

// Answer is what a request gets.
type Answer struct {
	Status     int
	Body       []byte
	RetryAfter time.Duration // 0 for none
	Replayed   bool          // a stored answer
}

// Request is what a guard knows of an arrival.
type Request struct {
	Send string          // names the request: owner of what it claims
	Key  string          // never empty: a request without a key passes every guard that is not exclusive
	Hash string          // fingerprint of its body
	Gone context.Context // ends when the client has left
}

// Desk is what a guard works with.
type Desk struct {
	Settings Settings
	Conflict int // the status of an answer to a key that was used for another request; 422 when 0
	Store    store.Store
	Keys     store.Keys           // nil for a guard that does not ask for it
	Memory   *Memory              // of the process that handles the request
	Now      func() time.Duration // scenario time
	Date     func() time.Time     // the same on the lab's calendar
	Record   func(kind lab.Kind, detail string)
	Life     context.Context // of the process: ends with it, and not with a request
	// AfterFunc calls f after d of scenario time, unless it is stopped before.
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
	// Pause is the moment between a wake-up and the look that follows; it keeps requests that
	// wait for one commit from acting in one instant.
	Pause func(ctx context.Context) error
}

// Pass is a guard's word on a request.
type Pass struct {
	// Answer, when set, is given without any work.
	Answer *Answer
	// Tx, when set, is open since the claim; the order is written in it.
	Tx store.Tx
	// Claim does the guard's part in the order's transaction before the order is written. It
	// returns an answer when the request turns out to be a duplicate; the transaction is then
	// given up.
	Claim func(ctx context.Context, tx store.Tx) (*Answer, error)
	// Finish does the guard's part after the order is written, before the commit. It returns an
	// answer when the request does not hold its claim any more; the transaction, and the order
	// with it, is then given up.
	Finish func(ctx context.Context, tx store.Tx, a Answer) (*Answer, error)
	// Reference, when set, is what the order is known by: no other may have it.
	Reference string
	// Duplicate, when set, is asked what to answer when an order with the Reference was there, and
	// the transaction has been given up.
	Duplicate func(ctx context.Context) (Answer, error)
	// Committed does the guard's part that lies outside the database, after the commit and after
	// whatever strikes there: a process that dies in between never comes to it.
	Committed func(ctx context.Context, a Answer) error
	// Left, when set, is called when the request is over, however it ended, unless its process has died.
	Left func() error
	// Failed tells the guard that the request ended with an error of the service's own.
	Failed func(ctx context.Context, a Answer) error
}

// Guard is one kind of protection.
type Guard struct {
	Name  string
	Doc   string   // one line
	Takes []string // the settings that mean something to it, beside kind
	Keys  bool     // it needs a store of keys beside the database
	// Exclusive guards hold others off whatever their keys are: a request without one does not pass.
	Exclusive bool
	// Admit decides on a request before any work is done for it.
	Admit func(ctx context.Context, d Desk, r Request) (Pass, error)
}

// All lists every guard.
var All = []Guard{None, CheckThenInsert, UniqueIndex, SameTransaction, NaturalKey, PerProcess, RedisPrecheck, Lock}

// Find returns the guard of that name; the empty name is none.
func Find(name string) (Guard, bool) {
	if name == "" {
		return None, true
	}
	i := slices.IndexFunc(All, func(g Guard) bool { return g.Name == name })
	if i < 0 {
		return Guard{}, false
	}
	return All[i], true
}

// problem is an answer that refuses.
func problem(kind, title string, status int) *Answer {
	body, _ := json.Marshal(lab.Problem{Type: kind, Title: title, Status: status})
	return &Answer{Status: status, Body: append(body, '\n')}
}

// inProgress is the answer to a duplicate of a request that is at work.
func (d Desk) inProgress() *Answer {
	if d.Settings.InProgress == "conflict" {
		return duplicate()
	}
	a := problem(lab.ProblemInProgress, "a request with this key is in progress", 409)
	a.RetryAfter = d.Settings.RetryAfter
	return a
}

// duplicate is the answer of a service that says that it was asked before and not what became of
// that: to a client it is a refusal.
func duplicate() *Answer {
	return problem(lab.ProblemDuplicate, "this was asked for before", 409)
}

// placed is the answer to a request whose order is there, made from the order itself.
func placed(number int64) (*Answer, error) {
	body, err := json.Marshal(lab.OrderReply{Order: number, Status: "created"})
	return &Answer{Status: 201, Body: append(body, '\n'), Replayed: true}, err
}

// fencedOut is the answer to a request whose claim another has taken over. What becomes of the
// intent is up to that other: to its client it is a request in progress like any, and neither a
// refusal nor a success.
func (d Desk) fencedOut() *Answer {
	a := problem(lab.ProblemInProgress, "another request has taken over the claim to this key", 409)
	a.RetryAfter = d.Settings.RetryAfter
	return a
}

// accepted is a success that nobody has seen.
func accepted() *Answer {
	a := Accepted()
	a.Status, a.Replayed = 200, true
	return &a
}

// Accepted is the answer to a request that will be worked on.
func Accepted() Answer {
	return Answer{Status: 202, Body: []byte(`{"order":0,"status":"accepted"}` + "\n")}
}

// known returns the answer for a key whose record is finished or belongs to another request. It
// reports false while the record is in progress. kind says how the record was found.
func (d Desk) known(kind lab.Kind, r Request, rec store.Record) (*Answer, bool) {
	if rec.Hash != r.Hash {
		d.Record(kind, "conflict")
		return problem(lab.ProblemConflict, "the key was used for another request", cmp.Or(d.Conflict, 422)), true
	}
	if rec.Status == store.Processing {
		return nil, false
	}
	d.Record(kind, rec.Status.String())
	if d.Settings.OnDuplicate == "conflict" {
		return duplicate(), true
	}
	return &Answer{Status: rec.Code, Body: rec.Body, Replayed: true}, true
}

// claim is what r claims its key with.
func (d Desk) claim(r Request) store.Claim {
	return store.Claim{Hash: r.Hash, Owner: r.Send, Now: d.Now(), Lease: d.Settings.Lease}
}

// forget deletes the record of key where a look at it is to find that it is too old.
func (d Desk) forget(ctx context.Context, tx store.Tx, key string) error {
	if d.Settings.Expiry != "lookup" {
		return nil
	}
	deleted, err := tx.Expire(ctx, key, d.Settings.Expired(d.Now()))
	if deleted > 0 {
		d.Record(lab.LookUp, "expired")
	}
	return err
}

// Expired says which records are too old at a scenario time.
func (s Settings) Expired(now time.Duration) store.Expiry {
	before := func(ttl time.Duration) time.Duration {
		if ttl == 0 {
			return -1
		}
		return now - ttl
	}
	return store.Expiry{Open: before(cmp.Or(s.OpenTTL, s.TTL)), Ended: before(s.TTL)}
}

// leaves is what a request that failed with a leaves of its key: keep, delete or mark.
func (s Settings) leaves(a Answer) string {
	switch s.OnFailure {
	case "mark-final":
		// Time-out, conflict, too early, too many: the same request may well succeed another time.
		if a.Status < 500 && !slices.Contains([]int{408, 409, 425, 429}, a.Status) {
			return "mark"
		}
		return "delete"
	case "":
		return "keep"
	}
	return s.OnFailure
}

// done is the record of a request that was answered with a.
func done(a Answer) store.Record {
	return store.Record{Status: store.Done, Code: a.Status, Body: a.Body}
}

// failed is the record of a request that failed with a.
func failed(a Answer) store.Record {
	return store.Record{Status: store.Failed, Code: a.Status, Body: a.Body}
}

// finish stores the answer of a request that succeeded, whoever holds its key.
func finish(r Request) func(context.Context, store.Tx, Answer) (*Answer, error) {
	return func(ctx context.Context, tx store.Tx, a Answer) (*Answer, error) {
		_, err := tx.Finish(ctx, r.Key, store.Holder{}, done(a))
		return nil, err
	}
}
