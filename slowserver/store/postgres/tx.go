package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"retrylab/slowserver/store"
)

// tx is a transaction on a session of its own.
type tx struct {
	store   *Store
	session *session
	id      string
	options store.TxOptions
	pin     bool // its next statement is its first, and takes its snapshot

	mu    sync.Mutex // between its owner and the timer of its idleness
	ended bool
	holds bool        // it may have locked something
	idle  func() bool // stops the timer of its idleness
	work  int         // statements so far: a timer that fires late knows that it is late
	gone  bool        // ended by the server
	cut   store.Cut
}

// exec performs a statement without a result, which waits for nobody.
func (t *tx) exec(ctx context.Context, query string) error {
	return t.query(ctx, "", "", nil, func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, query)
		return err
	})
}

// query performs a statement of the transaction. resource is what it may have to wait for, and
// locks says, once it has succeeded, whether it holds that now.
func (t *tx) query(ctx context.Context, what, resource string, locks func() bool, f func(ctx context.Context, c *pgx.Conn) error) error {
	t.mu.Lock()
	if t.ended {
		t.mu.Unlock()
		return errors.New("the transaction has ended")
	}
	t.busy()
	pin, holds := t.pin && resource != "", t.holds
	if what != "" {
		t.pin = false
	}
	t.holds = t.holds || resource != ""
	t.mu.Unlock()
	defer t.rest()
	s := t.store
	if s.clock != nil && t.options.LockTimeout > 0 && resource != "" {
		var cancel context.CancelFunc
		ctx, cancel = s.clock.WithTimeout(ctx, t.options.LockTimeout, errLockTimeout)
		defer cancel()
	}
	if !s.virtual && holds && resource != "" {
		s.foresee(t.session)
	}
	err := s.perform(ctx, &call{
		id: t.id, session: t.session, resource: resource, pin: pin, locks: locks,
		f: func(ctx context.Context, s *session) error { return f(ctx, s.conn) },
	})
	if err != nil && what != "" {
		return fmt.Errorf("%s: %w", what, err)
	}
	return err
}

// foresee prepares a session for a wait that may close a circle, on the wall clock: that can only
// be if somebody waits for it already. On the virtual clock it is known, and [Store.perform] does it.
func (s *Store) foresee(session *session) {
	if !s.database.detects {
		return
	}
	s.outside.Do(func() {
		ctx, cancel := outsideContext()
		defer cancel()
		if held, err := s.database.monitor.holdsUp(ctx, session.pid); err == nil {
			session.lookForCircles(ctx, held) // if that fails, so does what follows
		}
	})
}

// busy stops the timer of the transaction's idleness.
func (t *tx) busy() {
	t.work++
	if t.idle != nil {
		t.idle()
		t.idle = nil
	}
}

// rest starts it again.
func (t *tx) rest() {
	if t.options.IdleTimeout <= 0 || t.store.clock == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended || t.cut == store.Partition {
		work := t.work
		t.idle = t.store.clock.AfterFunc(t.options.IdleTimeout, func() { t.terminate(work) })
	}
}

// terminate is what a server does to a session that is idle in a transaction for too long: since
// the statement with that number.
func (t *tx) terminate(work int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone || t.work != work || t.ended && t.cut != store.Partition {
		return
	}
	t.gone = true
	t.session.wire.injure()
	t.store.end(t.session.pid, func(ctx context.Context) error {
		return t.store.database.monitor.terminate(ctx, t.session.pid)
	})
	if t.cut == store.Partition {
		t.leave() // its owner does not come back to it
	}
}

// end has the server end a session by f, and wakes who waited for it.
func (s *Store) end(pid uint32, f func(ctx context.Context) error) {
	if s.virtual {
		s.turn.Lock()
		defer s.turn.Unlock()
	}
	s.outside.Do(func() {
		ctx, cancel := outsideContext()
		defer cancel()
		if err := f(ctx); err != nil {
			s.lose(err)
		}
	})
	s.ended(pid)
}

func (t *tx) Claim(ctx context.Context, key string, c store.Claim) (fence int64, err error) {
	query, args := t.store.tables.claim, []any{key, c.Hash, c.Owner, c.Now.Microseconds(), lease(c)}
	if c.Lease > 0 {
		query = t.store.tables.takeOver
	}
	err = t.query(ctx, "claim key", "key "+key, func() bool { return fence != 0 || c.Lease > 0 }, func(ctx context.Context, conn *pgx.Conn) error {
		err := conn.QueryRow(ctx, query, args...).Scan(&fence)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	return fence, err
}

func always() bool { return true }

// lease is the end of a claim, NULL for one without.
func lease(c store.Claim) *int64 {
	if c.Lease == 0 {
		return nil
	}
	us := (c.Now + c.Lease).Microseconds()
	return &us
}

func (t *tx) Insert(ctx context.Context, key string, c store.Claim) error {
	return t.query(ctx, "insert key", "key "+key, always, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, t.store.tables.insert, key, c.Hash, c.Owner, c.Now.Microseconds(), lease(c))
		return err
	})
}

// TryLock asks for an advisory lock, which knows nothing of rows and is refused at once.
func (t *tx) TryLock(ctx context.Context, key string) (got bool, err error) {
	err = t.query(ctx, "lock key", "", nil, func(ctx context.Context, conn *pgx.Conn) error {
		// The tables' own name keeps trials apart that use one key at the same time.
		return conn.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))", t.store.tables.idempotencyName+" "+key).Scan(&got)
	})
	return got, err
}

func (t *tx) Read(ctx context.Context, key string) (r store.Record, found bool, err error) {
	err = t.query(ctx, "read key", "", nil, func(ctx context.Context, conn *pgx.Conn) error {
		r, found, err = t.store.tables.readRecord(ctx, conn, key)
		return err
	})
	return r, found, err
}

func (t *tx) Finish(ctx context.Context, key string, by store.Holder, r store.Record) (bool, error) {
	return t.change(ctx, "finish key", "key "+key, t.store.tables.finish, key, by.Owner, by.Fence, int16(r.Status), r.Code, r.Body)
}

func (t *tx) Release(ctx context.Context, key string, by store.Holder) (bool, error) {
	return t.change(ctx, "release key", "key "+key, t.store.tables.release, key, by.Owner, by.Fence)
}

func (t *tx) Expire(ctx context.Context, key string, e store.Expiry) (deleted int64, err error) {
	err = t.query(ctx, "expire keys", "key "+key, func() bool { return deleted > 0 }, func(ctx context.Context, conn *pgx.Conn) error {
		tag, err := conn.Exec(ctx, t.store.tables.expire, key, e.Open.Microseconds(), e.Ended.Microseconds())
		deleted = tag.RowsAffected()
		return err
	})
	return deleted, err
}

func (t *tx) Row(ctx context.Context, name string) (r store.Row, found bool, err error) {
	err = t.query(ctx, "read "+name, "", nil, func(ctx context.Context, conn *pgx.Conn) error {
		r, found, err = t.store.tables.row(ctx, conn, name)
		return err
	})
	return r, found, err
}

func (t *tx) Write(ctx context.Context, w store.Write) (bool, error) {
	what, resource, in := "change "+w.Row, "row "+w.Row, t.store.tables
	switch w.Do {
	case store.Add:
		return t.change(ctx, what, resource, in.addTo, w.Row, w.By)
	case store.Set:
		return t.change(ctx, what, resource, in.set, w.Row, w.To, w.From, w.Version)
	case store.Put:
		return t.change(ctx, what, resource, in.put, w.Row, w.To)
	default:
		return t.change(ctx, what, resource, in.remove, w.Row, w.From)
	}
}

func (t *tx) Enter(ctx context.Context, e store.Entry) (entered bool, err error) {
	resource := ""
	if e.Reference != "" {
		resource = "entry " + e.Ledger + " " + e.Reference
	}
	err = t.query(ctx, "enter in "+e.Ledger, resource, func() bool { return entered }, func(ctx context.Context, conn *pgx.Conn) error {
		entered, err = t.store.tables.enterIn(ctx, conn, e)
		return err
	})
	return entered, err
}

// change performs a statement and reports whether it changed anything.
func (t *tx) change(ctx context.Context, what, resource, query string, args ...any) (changed bool, err error) {
	err = t.query(ctx, what, resource, func() bool { return changed }, func(ctx context.Context, conn *pgx.Conn) error {
		tag, err := conn.Exec(ctx, query, args...)
		changed = tag.RowsAffected() > 0
		return err
	})
	return changed, err
}

func (t *tx) Order(ctx context.Context, o store.Order) (id int64, err error) {
	resource := ""
	if o.Reference != "" {
		resource = "reference " + o.Reference // of an order that another has not committed yet
	}
	err = t.query(ctx, "insert order", resource, always, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, t.store.tables.order, o.Operation, o.Send, o.Node, o.Key, o.Reference, o.Amount, o.Created.Microseconds()).Scan(&id)
	})
	return id, err
}

func (t *tx) Placed(ctx context.Context, key string) (number int64, found bool, err error) {
	err = t.query(ctx, "look for an order", "", nil, func(ctx context.Context, conn *pgx.Conn) error {
		err := conn.QueryRow(ctx, t.store.tables.placed, key).Scan(&number)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		found = err == nil
		return err
	})
	return number, found, err
}

// Cut arms a failure of the connection.
func (t *tx) Cut(c store.Cut) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cut = c
	t.session.wire.arm(c)
	if c == store.Partition {
		t.ended = true // for its owner; its session on the server stays as it is
	}
}

// errRolledBack is what a COMMIT comes to in a transaction that has failed: the server rolls back
// and calls it a success.
var errRolledBack = fmt.Errorf("%w: the commit was a rollback", store.ErrAborted)

// Commit makes the transaction durable.
func (t *tx) Commit() error {
	rolledBack := false
	err := t.query(context.Background(), "commit", "", nil, func(ctx context.Context, conn *pgx.Conn) error {
		tag, err := conn.Exec(ctx, "COMMIT")
		rolledBack = err == nil && tag.String() == "ROLLBACK"
		return err
	})
	t.finish()
	switch {
	case err == nil && rolledBack:
		return fmt.Errorf("commit: %w", errRolledBack)
	case err == nil:
		t.store.announce()
		return nil
	case !errors.Is(err, store.ErrLost):
		return err
	}
	// The connection is broken, and what became of the COMMIT is not known. What the server does
	// about it, it does at once.
	t.store.end(t.session.pid, func(ctx context.Context) error { return t.store.database.monitor.gone(ctx, t.session.pid) })
	t.store.announce() // who waits for a change may look: there may be one
	return fmt.Errorf("%w (%w: %s)", store.ErrUnknownOutcome, err, t.session.wire)
}

// Rollback gives the transaction up.
func (t *tx) Rollback() error {
	t.mu.Lock()
	ended, gone := t.ended, t.gone
	t.mu.Unlock()
	if ended {
		return nil
	}
	if gone {
		t.finish()
		return nil // by the server
	}
	err := t.exec(context.Background(), "ROLLBACK")
	t.finish()
	if errors.Is(err, store.ErrLost) && t.session.wire.injured() {
		return nil // by the server
	}
	if err != nil {
		return fmt.Errorf("roll back: %w", err)
	}
	return nil
}

// finish gives the session back and wakes who waited for the transaction.
func (t *tx) finish() {
	t.mu.Lock()
	ended := t.ended
	t.ended = true
	t.busy()
	t.mu.Unlock()
	if ended {
		return
	}
	s := t.store
	if s.virtual {
		s.turn.Lock()
		s.ended(t.session.pid)
		s.turn.Unlock()
	}
	t.leave()
}

// leave gives the session and its place in the pool back.
func (t *tx) leave() {
	t.store.give(t.session)
	<-t.store.slots
}
