package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"retrylab/internal/lab"
	"retrylab/internal/vtime"
	"retrylab/slowserver/store"
)

// tableSet is a set of tables, which one trial after the other has for itself.
type tableSet struct {
	database *Database
	suffix   string // of their names
	tables   tables
	rows     int64 // left in the tables by those who had it before
	store    *Store
}

// Seat waits for a free seat and empties it.
func (d *Database) Seat(ctx context.Context) (store.Seat, error) {
	select {
	case d.seats <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	st, err := d.prepare(ctx)
	if err != nil {
		<-d.seats
		return nil, err
	}
	return st, nil
}

// prepare returns a seat that is free, or makes one.
func (d *Database) prepare(ctx context.Context) (*tableSet, error) {
	if d.options.Schema != "" {
		return &tableSet{database: d, tables: tablesIn(d.schema, "")}, nil // they are there, and what is in them stays
	}
	d.mu.Lock()
	var st *tableSet
	if n := len(d.free); n > 0 {
		st, d.free = d.free[n-1], d.free[:n-1]
	}
	fresh := st == nil
	if fresh {
		d.made++
		suffix := "_" + strconv.Itoa(d.made)
		st = &tableSet{database: d, suffix: suffix, tables: tablesIn(d.schema, suffix)}
	}
	d.mu.Unlock()
	session, err := d.acquire()
	if err != nil {
		return nil, err
	}
	defer d.release(session)
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	query := st.tables.clear
	switch {
	case fresh:
		query = st.tables.create
	case st.rows > 10_000:
		query = st.tables.shrink
	}
	st.rows = 0
	if _, err := session.conn.Exec(ctx, query); err != nil {
		return nil, d.environment("prepare the tables of a trial", err)
	}
	return st, nil
}

// Open opens the trial's store in its bubble.
func (st *tableSet) Open(o store.Options) (store.Store, error) {
	st.store = st.open(o)
	return st.store, nil
}

func (st *tableSet) open(o store.Options) *Store {
	return &Store{
		seat: st, database: st.database, outside: st.database.outside, tables: st.tables,
		clock: o.Clock, yield: o.Yield, virtual: o.Clock != nil && o.Clock.Virtual(),
		slots:    make(chan struct{}, perTrial),
		asking:   make(chan struct{}, asks),
		sessions: map[uint32]*session{},
		queues:   map[string][]*call{},
		waiting:  map[uint32]*call{},
		holders:  map[string]uint32{},
		changed:  make(chan struct{}),
	}
}

// Leave gives the seat back. What the trial has left open is ended, so that nothing of it holds a
// lock on the tables.
func (st *tableSet) Leave() error {
	d := st.database
	defer func() { <-d.seats }()
	if st.store != nil {
		if err := st.store.abandon(); err != nil {
			return err
		}
		st.store = nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.free = append(d.free, st)
	return nil
}

// Store is a trial's orders and keys.
type Store struct {
	seat     *tableSet
	database *Database
	outside  *vtime.Outside
	tables   tables
	clock    store.Clock
	yield    func(ctx context.Context, id string) error
	virtual  bool
	attached bool          // to what another process has made: the database is this store's alone
	slots    chan struct{} // one for each connection of the service's pool
	asking   chan struct{} // one for each connection beside it

	// Of calls on the virtual clock, guarded by turn, which is held while a statement is under way.
	turn    sync.Mutex
	queues  map[string][]*call // by resource, in the order in which they came
	waiting map[uint32]*call   // in the server, by its process
	holders map[string]uint32  // who got a resource last and has not ended, by its process

	mu       sync.Mutex
	sessions map[uint32]*session // in use, by their process
	changed  chan struct{}
	lost     error // why nothing that was seen counts
}

// lose notes that the database has failed the trial, in a way that nobody injected.
func (s *Store) lose(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == nil {
		s.lost = err
	}
}

// Waiting lists who waits for whom, for whoever finds that a trial comes to no end.
func (s *Store) Waiting() (waits []string) {
	s.turn.Lock()
	defer s.turn.Unlock()
	for _, pid := range slices.Sorted(maps.Keys(s.waiting)) {
		var whom []string
		for _, b := range s.waiting[pid].blockers {
			whom = append(whom, s.nameOf(b))
		}
		waits = append(waits, fmt.Sprintf("%s waits for %s (%s)", s.waiting[pid].id, strings.Join(whom, " and "), s.waiting[pid].resource))
	}
	for _, resource := range slices.Sorted(maps.Keys(s.queues)) {
		for _, c := range s.queues[resource] {
			if c.done == nil {
				waits = append(waits, fmt.Sprintf("%s waits for its turn (%s)", c.id, resource))
			}
		}
	}
	return waits
}

// nameOf names the request that a process of the server works for.
func (s *Store) nameOf(pid uint32) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session := s.sessions[pid]; session != nil && session.of != "" {
		return session.of
	}
	return fmt.Sprintf("process %d of the server", pid)
}

// take returns a session for the trial's use.
func (s *Store) take() (session *session, err error) {
	s.outside.Do(func() { session, err = s.database.acquire() })
	if err != nil {
		s.lose(err)
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[session.pid] = session
	return session, nil
}

// give gives a session back.
func (s *Store) give(session *session) {
	s.mu.Lock()
	delete(s.sessions, session.pid)
	session.of = ""
	s.mu.Unlock()
	s.outside.Do(func() { s.database.release(session) })
}

// abandon ends the sessions that are still in use: those that a partition has cut off, and those
// of a trial that broke. It is called outside.
func (s *Store) abandon() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := outsideContext()
	defer cancel()
	var errs []error
	for pid, session := range s.sessions {
		session.hangUp() // a goroutine of a trial that broke may still wait for a reply
		errs = append(errs, s.database.monitor.terminate(ctx, pid))
	}
	clear(s.sessions)
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("end what a trial has left: %w", err)
	}
	return nil
}

// Close ends the store. Its seat outlives it.
func (s *Store) Close() error {
	if !s.attached {
		return nil
	}
	return errors.Join(s.abandon(), s.database.Close())
}

// Changed returns a channel that is closed by the next commit.
func (s *Store) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *Store) announce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

// levels are the isolation levels in SQL. READ COMMITTED is what PostgreSQL ships.
var levels = map[store.Isolation]string{
	"":                   "READ COMMITTED",
	store.ReadCommitted:  "READ COMMITTED",
	store.RepeatableRead: "REPEATABLE READ",
	store.Serializable:   "SERIALIZABLE",
}

// Begin starts a transaction on a connection of its own, waiting for one of the pool.
func (s *Store) Begin(ctx context.Context, id string, o store.TxOptions) (store.Tx, error) {
	level, ok := levels[o.Isolation]
	if !ok {
		return nil, fmt.Errorf("begin with isolation %q: %w", o.Isolation, store.ErrUnsupported)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	select {
	case s.slots <- struct{}{}:
	default:
		select {
		case s.slots <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if s.yield != nil {
			if err := s.yield(ctx, id); err != nil {
				<-s.slots
				return nil, err
			}
		}
	}
	session, err := s.take()
	if err != nil {
		<-s.slots
		return nil, err
	}
	session.of = id
	t := &tx{store: s, session: session, id: id, options: o, pin: o.Isolation == store.RepeatableRead || o.Isolation == store.Serializable}
	if err := t.exec(ctx, "BEGIN ISOLATION LEVEL "+level); err != nil {
		t.leave()
		return nil, fmt.Errorf("begin: %w", err)
	}
	return t, nil
}

// ask performs a statement outside any transaction.
func (s *Store) ask(what string, f func(ctx context.Context, c *pgx.Conn) error) error {
	s.asking <- struct{}{}
	defer func() { <-s.asking }()
	mine, err := s.take()
	if err != nil {
		return err
	}
	defer s.give(mine)
	err = s.perform(context.Background(), &call{id: what, session: mine, f: func(ctx context.Context, s *session) error {
		return f(ctx, s.conn)
	}})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Read looks key up in a statement of its own.
func (s *Store) Read(_ context.Context, key string) (r store.Record, found bool, err error) {
	err = s.ask("read key", func(ctx context.Context, c *pgx.Conn) error {
		r, found, err = s.tables.readRecord(ctx, c, key)
		return err
	})
	return r, found, err
}

func (t tables) readRecord(ctx context.Context, c *pgx.Conn, key string) (r store.Record, found bool, err error) {
	err = c.QueryRow(ctx, t.read, key).Scan(&r.Status, &r.Hash, &r.Owner, &r.Fence, &r.Code, &r.Body)
	if errors.Is(err, pgx.ErrNoRows) {
		return store.Record{}, false, nil
	}
	return r, err == nil, err
}

// Row reads a shared row in a statement of its own.
func (s *Store) Row(_ context.Context, name string) (r store.Row, found bool, err error) {
	err = s.ask("read "+name, func(ctx context.Context, c *pgx.Conn) error {
		r, found, err = s.tables.row(ctx, c, name)
		return err
	})
	return r, found, err
}

func (t tables) row(ctx context.Context, c *pgx.Conn, name string) (r store.Row, found bool, err error) {
	err = c.QueryRow(ctx, t.readShared, name).Scan(&r.Value, &r.Version)
	if errors.Is(err, pgx.ErrNoRows) {
		return store.Row{}, false, nil
	}
	return r, err == nil, err
}

// Count counts an operation's orders.
func (s *Store) Count(_ context.Context, operation string) (n int, err error) {
	err = s.ask("count orders", func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, s.tables.count, operation).Scan(&n)
	})
	return n, err
}

// Effects reads all orders.
func (s *Store) Effects(context.Context) (out []lab.Effect, err error) {
	err = s.ask("read orders", func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx, s.tables.effects)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e lab.Effect, err error) {
			var us int64
			err = row.Scan(&e.Order, &e.Operation, &e.Send, &e.Node, &e.Key, &e.Amount, &us)
			e.Created = time.Duration(us) * time.Microsecond
			e.CreatedMs = lab.Millis(e.Created)
			return e, err
		})
		return err
	})
	s.seat.rows = int64(len(out))
	return out, err
}

// Enter makes an entry in a ledger of another system: on a connection of its own.
func (s *Store) Enter(_ context.Context, e store.Entry) (entered bool, err error) {
	err = s.ask("enter in "+e.Ledger, func(ctx context.Context, c *pgx.Conn) error {
		entered, err = s.tables.enterIn(ctx, c, e)
		return err
	})
	return entered, err
}

func (t tables) enterIn(ctx context.Context, c *pgx.Conn, e store.Entry) (bool, error) {
	tag, err := c.Exec(ctx, t.enter, e.Ledger, e.Operation, e.Send, e.Node, e.Reference, e.Amount, e.Created.Microseconds())
	return tag.RowsAffected() > 0, err
}

// Entries reads all ledgers.
func (s *Store) Entries(context.Context) ([]lab.Entry, error) { return s.entries(s.tables.entries) }

// EntriesOf reads what a send has entered in a ledger.
func (s *Store) EntriesOf(_ context.Context, ledger, send string) ([]lab.Entry, error) {
	return s.entries(s.tables.entriesOf, ledger, send)
}

func (s *Store) entries(query string, args ...any) (out []lab.Entry, err error) {
	err = s.ask("read ledgers", func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e lab.Entry, err error) {
			var us int64
			err = row.Scan(&e.Ledger, &e.Operation, &e.Send, &e.Node, &e.Reference, &e.Amount, &us)
			e.Created = time.Duration(us) * time.Microsecond
			e.CreatedMs = lab.Millis(e.Created)
			return e, err
		})
		return err
	})
	return out, err
}

// Lost says how the database has failed the trial, in a way that nobody injected; nil if it has not.
func (s *Store) Lost() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// ID returns the number that the server gives a transaction which writes.
func (s *Store) ID(ctx context.Context, of store.Tx) (id string, err error) {
	t, ok := of.(*tx)
	if !ok {
		return "", fmt.Errorf("ask for the number of a %T: %w", of, store.ErrUnsupported)
	}
	err = t.query(ctx, "ask for the transaction's number", "", nil, func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, "SELECT pg_current_xact_id()::text").Scan(&id)
	})
	return id, err
}

// Committed asks the server what became of a transaction, on a connection of its own.
func (s *Store) Committed(_ context.Context, id string) (bool, error) {
	var status *string
	err := s.ask("ask what became of a transaction", func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, "SELECT pg_xact_status($1::text::xid8)", id).Scan(&status)
	})
	switch {
	case err != nil:
		return false, err
	case status == nil:
		return false, fmt.Errorf("ask what became of transaction %s: the server does not know any more", id)
	case *status == "in progress":
		return false, fmt.Errorf("ask what became of transaction %s: it is in progress", id)
	}
	return *status == "committed", nil
}
