// Package guard holds the server-side protections against a request that arrives more than once:
// one file per guard, each a value in [All]. A guard talks to the store and to nothing else; it
// knows neither HTTP nor scenarios.
package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"retrylab/internal/lab"
	"retrylab/slowserver/store"
)

// Settings is a guard as a scenario file writes it.
type Settings struct {
	Kind        string        `yaml:"kind" doc:"none, check-then-insert, unique-index or same-transaction"`
	Claim       string        `yaml:"claim" doc:"unique-index: when the key is claimed: first (before the work, the default) or at-insert (with the order)"`
	InProgress  string        `yaml:"in-progress" doc:"unique-index, claim first: what a duplicate gets while the first is at work: 409 (the default), wait, or replay (a success that is not one yet)"`
	RetryAfter  time.Duration `yaml:"retry-after" doc:"Retry-After of a 409 for a duplicate in progress, whole seconds; none when absent"`
	Fingerprint string        `yaml:"fingerprint" doc:"how the bodies of one key are compared: none, raw (bytes, the default) or canonical (white space apart)"`
	KeyValue    string        `yaml:"key-value" doc:"which Idempotency-Key counts when a request carries several: first (the default) or last"`
	OnFailure   string        `yaml:"on-failure" doc:"unique-index, claim first: what a failed request leaves of its key: keep (the default), delete or mark"`
}

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
	Key  string          // never empty: a request without a key passes every guard
	Hash string          // fingerprint of its body
	Gone context.Context // ends when the client has left
}

// Desk is what a guard works with.
type Desk struct {
	Settings Settings
	Store    store.Store
	Now      func() time.Duration // scenario time
	Record   func(kind lab.Kind, detail string)
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
	// Finish does the guard's part after the order is written, before the commit.
	Finish func(ctx context.Context, tx store.Tx, a Answer) error
	// Failed tells the guard that the request ended with an error of the service's own.
	Failed func(ctx context.Context, a Answer) error
}

// Guard is one kind of protection.
type Guard struct {
	Name  string
	Doc   string   // one line
	Takes []string // the settings that mean something to it, beside kind
	// Admit decides on a request before any work is done for it.
	Admit func(ctx context.Context, d Desk, r Request) (Pass, error)
}

// All lists every guard.
var All = []Guard{None, CheckThenInsert, UniqueIndex, SameTransaction}

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

// Problem is what is wrong with settings: which, why, and what would be right.
type Problem struct{ Field, What, Hint string }

var words = []struct {
	field  string
	value  func(Settings) string
	values []string
}{
	{"claim", func(s Settings) string { return s.Claim }, []string{"first", "at-insert"}},
	{"in-progress", func(s Settings) string { return s.InProgress }, []string{"409", "wait", "replay"}},
	{"fingerprint", func(s Settings) string { return s.Fingerprint }, []string{"none", "raw", "canonical"}},
	{"key-value", func(s Settings) string { return s.KeyValue }, []string{"first", "last"}},
	{"on-failure", func(s Settings) string { return s.OnFailure }, []string{"keep", "delete", "mark"}},
}

// Check returns the first thing that is wrong with s, nil when a guard can work with it.
func (s Settings) Check() *Problem {
	g, ok := Find(s.Kind)
	if !ok {
		var names []string
		for _, g := range All {
			names = append(names, g.Name)
		}
		return &Problem{"kind", fmt.Sprintf("unknown guard %q", s.Kind), "one of: " + strings.Join(names, ", ")}
	}
	for _, w := range words {
		v := w.value(s)
		if v == "" {
			continue
		}
		if !slices.Contains(w.values, v) {
			return &Problem{w.field, fmt.Sprintf("%s cannot be %q", w.field, v), "one of: " + strings.Join(w.values, ", ")}
		}
		if !slices.Contains(g.Takes, w.field) {
			return &Problem{w.field, fmt.Sprintf("%s means nothing to the guard %s", w.field, g.Name), ""}
		}
	}
	if s.RetryAfter != 0 {
		switch {
		case !slices.Contains(g.Takes, "retry-after"):
			return &Problem{"retry-after", "retry-after means nothing to the guard " + g.Name, ""}
		case s.RetryAfter%time.Second != 0 || s.RetryAfter < 0:
			return &Problem{"retry-after", fmt.Sprintf("a Retry-After has whole seconds, not %s", s.RetryAfter), ""}
		}
	}
	if s.Claim == "at-insert" {
		for _, field := range []struct {
			name string
			set  bool
		}{{"in-progress", s.InProgress != ""}, {"retry-after", s.RetryAfter != 0}, {"on-failure", s.OnFailure != ""}} {
			if field.set {
				return &Problem{field.name, field.name + " means nothing with claim at-insert: nobody knows of a request in progress", "use claim first"}
			}
		}
	}
	return nil
}

// problem is an answer that refuses.
func problem(kind, title string, status int) *Answer {
	body, _ := json.Marshal(lab.Problem{Type: kind, Title: title, Status: status})
	return &Answer{Status: status, Body: append(body, '\n')}
}

// known returns the answer for a key whose record is finished or belongs to another request. It
// reports false while the record is in progress. kind says how the record was found.
func (d Desk) known(kind lab.Kind, r Request, rec store.Record) (*Answer, bool) {
	if rec.Hash != r.Hash {
		d.Record(kind, "conflict")
		return problem(lab.ProblemConflict, "the key was used for another request", 422), true
	}
	if rec.Status == store.Processing {
		return nil, false
	}
	d.Record(kind, rec.Status.String())
	return &Answer{Status: rec.Code, Body: rec.Body, Replayed: true}, true
}

// claim is what r claims its key with.
func (d Desk) claim(r Request) store.Claim {
	return store.Claim{Hash: r.Hash, Owner: r.Send, Now: d.Now()}
}

// finish stores a as the answer of a request that succeeded.
func finish(r Request) func(context.Context, store.Tx, Answer) error {
	return func(ctx context.Context, tx store.Tx, a Answer) error {
		_, err := tx.Finish(ctx, r.Key, store.Holder{}, store.Record{Status: store.Done, Code: a.Status, Body: a.Body})
		return err
	}
}
