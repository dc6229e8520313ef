// Package store is what an order service asks of a database: idempotency keys, orders, and their
// count. It is narrow so that each engine shows its own behaviour behind it. What an
// implementation must do is said by the conformance suite in storetest; this package holds no SQL.
package store

import (
	"context"
	"errors"
	"time"

	"retrylab/internal/lab"
)

// Status is the state of an idempotency key's record.
type Status int

// The states of a record.
const (
	Processing Status = iota // claimed, not finished
	Done                     // finished: its answer can be replayed
	Failed                   // finished without an effect: its answer can be replayed
)

// String returns the state as events and reports name it.
func (s Status) String() string { return [...]string{"processing", "done", "failed"}[s] }

// Record is what is known of a key.
type Record struct {
	Status Status
	Hash   string // fingerprint of the request that claimed it
	Owner  string // the send that claimed it
	Code   int    // stored answer: HTTP status, 0 while processing
	Body   []byte // stored answer
}

// Order is one order to be written.
type Order struct {
	Operation string
	Send      string
	Node      string
	Key       string        // empty where none was sent
	Amount    int64         // minor units
	Created   time.Duration // scenario time
}

// The classes of errors that a service reacts to. An engine wraps its own error in one of them.
var (
	ErrUnknownOutcome = errors.New("the outcome of the commit is not known")
)

// Tx is a writing transaction. It is used by one goroutine.
type Tx interface {
	// Claim inserts a record for key in state Processing. It reports false, and changes nothing,
	// when there is one.
	Claim(ctx context.Context, key string, r Record) (won bool, err error)
	// Read returns the record of key as this transaction sees it.
	Read(ctx context.Context, key string) (r Record, found bool, err error)
	// Finish stores state and answer in the record of key.
	Finish(ctx context.Context, key string, r Record) error
	// Release deletes the record of key.
	Release(ctx context.Context, key string) error
	// Order inserts an order and returns its number.
	Order(ctx context.Context, o Order) (int64, error)
	// Commit makes the transaction durable. After an error that is not ErrUnknownOutcome nothing is.
	Commit() error
	// Rollback gives the transaction up. After Commit it does nothing.
	Rollback() error
}

// Store is one trial's database.
type Store interface {
	// Begin starts a writing transaction, waiting until the engine lets it in or ctx ends. id
	// names the request that asks.
	Begin(ctx context.Context, id string) (Tx, error)
	// Read returns the record of key in a statement of its own, outside any transaction.
	Read(ctx context.Context, key string) (r Record, found bool, err error)
	// Changed returns a channel that is closed when the next transaction has been committed.
	Changed() <-chan struct{}
	// Count returns how many orders an operation has, by SQL.
	Count(ctx context.Context, operation string) (int, error)
	// Effects returns all orders by their number, by SQL.
	Effects(ctx context.Context) ([]lab.Effect, error)
	// Info says which engine this is, as the engine itself reports it.
	Info() lab.Store
	// Close ends the store and removes what it made.
	Close() error
}
