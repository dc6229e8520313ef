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
	Owner  string // the send that holds the claim
	Fence  int64  // how many have held it: 1 for the first, more for each that took it over
	Code   int    // stored answer: HTTP status, 0 while processing
	Body   []byte // stored answer
}

// Claim is a request's claim to a key. Times are scenario times, given as parameters: the clock of
// a database server goes its own way.
type Claim struct {
	Hash  string
	Owner string
	Now   time.Duration
	Lease time.Duration // how long it holds; 0 is until it is finished or released
}

// Expiry says which records are too old: those claimed at these scenario times or before. A negative
// time is one of none.
type Expiry struct {
	Open  time.Duration // in state Processing
	Ended time.Duration // in any other
}

// Holder says who may change a record. A zero field is not compared: the zero Holder is anybody.
type Holder struct {
	Owner string
	Fence int64
}

// Order is one order to be written.
type Order struct {
	Operation string
	Send      string
	Node      string
	Key       string        // empty where none was sent
	Reference string        // unique among orders; empty where there is none
	Amount    int64         // minor units
	Created   time.Duration // scenario time
}

// Entry is one line of a ledger: a durable result beside the order, such as a message or a charge.
type Entry struct {
	Ledger    string
	Operation string
	Send      string
	Node      string
	Reference string        // what the ledger knows it by: it takes one entry of each; empty for none
	Amount    int64         // minor units
	Created   time.Duration // scenario time
}

// Row is a row that requests share, such as an article's stock.
type Row struct {
	Value   string
	Version int64 // 1 when it was made, and one more for each change
}

// Verb is what a [Write] does.
type Verb int

// The verbs. What would change nothing, since the row has that value or is not there, changes nothing: its
// version stays.
const (
	Add    Verb = iota // a whole number to the value, which is 0 where there is no row
	Set                // the value of a row that is there
	Put                // the value, and the row where there is none
	Delete             // the row
)

// Write is one statement that changes a row which requests share.
type Write struct {
	Row     string
	Do      Verb
	By      int64  // Add
	To      string // Set, Put
	From    string // Set, Delete: only while the value is this one; empty for any
	Version int64  // Set: only while the version is this one; 0 for any
}

// Isolation is how far a transaction is kept from what others do. The zero value is the engine's
// own default.
type Isolation string

// The isolation levels, as SQL names them.
const (
	ReadCommitted  Isolation = "read-committed"
	RepeatableRead Isolation = "repeatable-read"
	Serializable   Isolation = "serializable"
)

// TxOptions say how a transaction behaves. An engine that cannot refuses with [ErrUnsupported].
type TxOptions struct {
	Isolation Isolation
	// LockTimeout is how long a statement may wait for another transaction, in scenario time: it
	// then fails with [ErrBusy]. 0 is for ever.
	LockTimeout time.Duration
	// IdleTimeout is how long the transaction may go without a statement, in scenario time: the
	// engine then ends its session, and with it the transaction. 0 is for ever.
	IdleTimeout time.Duration
}

// The classes of errors that a service reacts to. An engine wraps its own error in one of them.
var (
	ErrDuplicate      = errors.New("the key is there already")
	ErrSerialization  = errors.New("another transaction came in between")
	ErrDeadlock       = errors.New("a deadlock, of which this transaction is the victim")
	ErrBusy           = errors.New("another transaction holds the lock")
	ErrAborted        = errors.New("the transaction has failed before and can only be rolled back")
	ErrUnknownOutcome = errors.New("the outcome of the commit is not known")
	ErrLost           = errors.New("the connection to the database is lost")
	ErrUnreachable    = errors.New("the store of keys cannot be reached")
	ErrUnsupported    = errors.New("the engine cannot do this")
)

// Tx is a writing transaction. It is used by one goroutine at a time.
type Tx interface {
	// Claim inserts a record for key in state Processing. A claim with a lease also takes over one
	// of the same request whose lease has run out. It returns the fence of the claim, or 0, and
	// changes nothing, when another holds the key or has finished it.
	Claim(ctx context.Context, key string, c Claim) (fence int64, err error)
	// Insert inserts a record for key as a plain statement does: [ErrDuplicate] when there is one.
	Insert(ctx context.Context, key string, c Claim) error
	// Read returns the record of key as this transaction sees it.
	Read(ctx context.Context, key string) (r Record, found bool, err error)
	// Finish stores status, code and body of r in the record of key, if by holds it while it is
	// in progress. It reports whether it did; the zero Holder finishes whatever is there.
	Finish(ctx context.Context, key string, by Holder, r Record) (held bool, err error)
	// Release deletes the record of key, if by holds it. It reports whether it did.
	Release(ctx context.Context, key string, by Holder) (held bool, err error)
	// Expire deletes the record of key if it is too old, or all records that are when key is empty. It
	// returns how many it has deleted.
	Expire(ctx context.Context, key string, e Expiry) (deleted int64, err error)
	// Order inserts an order and returns its number: [ErrDuplicate] when there is one with its
	// reference.
	Order(ctx context.Context, o Order) (int64, error)
	// Placed returns the number of an order with key as this transaction sees it, the first of
	// them where there are several.
	Placed(ctx context.Context, key string) (number int64, found bool, err error)
	// Row returns a row that requests share as this transaction sees it.
	Row(ctx context.Context, name string) (r Row, found bool, err error)
	// Write performs a [Write] and reports whether it has changed anything.
	Write(ctx context.Context, w Write) (changed bool, err error)
	// Enter makes an entry in a ledger that lies in this database. It reports false, and changes
	// nothing, where the ledger has one with its reference.
	Enter(ctx context.Context, e Entry) (entered bool, err error)
	// Commit makes the transaction durable. After an error that is not ErrUnknownOutcome nothing is.
	Commit() error
	// Rollback gives the transaction up. After Commit it does nothing.
	Rollback() error
}

// Locker is a transaction that can ask for a lock and be refused at once.
type Locker interface {
	// TryLock takes a lock on key that lasts as long as the transaction. It reports false when
	// another holds it.
	TryLock(ctx context.Context, key string) (bool, error)
}

// Cut is what becomes of the connection to the database server at a commit.
type Cut string

// The cuts.
const (
	CutBefore Cut = "before" // the connection breaks before the COMMIT has reached the server
	CutAfter  Cut = "after"  // it breaks when the server has committed, before its reply has come
	Partition Cut = "silent" // nothing gets through any more, and neither side is told
)

// Cutter is a transaction over a connection that can fail.
type Cutter interface {
	// Cut arms the failure. [CutBefore] and [CutAfter] strike at Commit, which then returns
	// ErrUnknownOutcome. Partition strikes at once: the session on the server stays as it is, and
	// the transaction must not be used any more.
	Cut(c Cut)
}

// Asker can find out afterwards what became of a transaction.
type Asker interface {
	// ID returns what the transaction is known by on the server. It is asked before the commit.
	ID(ctx context.Context, tx Tx) (string, error)
	// Committed reports what became of the transaction with an ID.
	Committed(ctx context.Context, id string) (bool, error)
}

// Store is one trial's database.
type Store interface {
	// Begin starts a writing transaction, waiting until the engine lets it in or ctx ends. id
	// names the request that asks.
	Begin(ctx context.Context, id string, o TxOptions) (Tx, error)
	// Read returns the record of key in a statement of its own, outside any transaction.
	Read(ctx context.Context, key string) (r Record, found bool, err error)
	// Changed returns a channel that is closed when the next transaction has been committed.
	Changed() <-chan struct{}
	// Row returns a row that requests share in a statement of its own, outside any transaction.
	Row(ctx context.Context, name string) (r Row, found bool, err error)
	// Count returns how many orders an operation has, by SQL.
	Count(ctx context.Context, operation string) (int, error)
	// Enter makes an entry in a ledger of another system: it is durable at once, and no transaction
	// of this database has a part in it. It reports false where the ledger has one with its reference.
	Enter(ctx context.Context, e Entry) (entered bool, err error)
	// Effects returns all orders by their number, by SQL.
	Effects(ctx context.Context) ([]lab.Effect, error)
	// Entries returns the entries of all ledgers, by SQL: ledger by ledger, each in its order.
	Entries(ctx context.Context) ([]lab.Entry, error)
	// EntriesOf returns the entries that a send has made in a ledger of this database.
	EntriesOf(ctx context.Context, ledger, send string) ([]lab.Entry, error)
	// Close ends the store.
	Close() error
}

// Fallible is a store whose database can fail in the middle of a trial.
type Fallible interface {
	// Lost says how it has failed, in a way that nobody injected: what was seen of the trial then
	// stands on nothing. It is nil if it has not.
	Lost() error
}

// Shareable is a store that other processes can reach while it is open.
type Shareable interface {
	Store
	// Address is what another process attaches to: the name of the engine, a colon, and what the
	// engine needs to find it.
	Address() string
}

// Attached is a store that was opened by another process. Closing it leaves what is in it.
type Attached interface {
	Store
	// Announce tells it that another process has committed a transaction: it closes the channel of
	// Changed.
	Announce()
}

// Clock is what a store needs of the clock of its trial.
type Clock interface {
	// Virtual reports whether time is fake, and stands still while the database works.
	Virtual() bool
	// WithTimeout ends a context after d of scenario time, with cause.
	WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc)
	// AfterFunc calls f after d of scenario time, unless it is stopped before.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// Options say in what world a store lives.
type Options struct {
	Clock Clock
	// Yield is called when a statement had to wait for another transaction: the moment that the
	// hand-over takes, so that what the two do never falls on one instant. Nil for none.
	Yield func(ctx context.Context, id string) error
}

// Seat is room for one trial in a database. It is made outside the trial's bubble, and outlives it.
type Seat interface {
	// Open opens the store, empty, in the bubble of its trial.
	Open(o Options) (Store, error)
	// Leave gives the seat back, when the store is closed and the bubble has ended.
	Leave() error
}

// Database is where the trials of a run have their orders.
type Database interface {
	// Seat makes room for a trial, waiting until there is some or ctx ends.
	Seat(ctx context.Context) (Seat, error)
	// Info says which engine this is, as the engine itself reports it.
	Info() lab.Store
	// Close removes what the run made, when its trials are over. It can be called again.
	Close() error
	// Abandon removes it at once, whatever trials do with it. It is for whoever leaves the process
	// next, and can be called by another goroutine.
	Abandon() error
}
