// Package sqlite keeps a trial's orders and keys in SQLite: a WAL file in a directory that the
// caller owns. It is the door of modernc.org/sqlite, and holds all of its SQL.
package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"retrylab/internal/lab"
	"retrylab/slowserver/store"
)

const schema = `
CREATE TABLE orders (
	id INTEGER PRIMARY KEY,
	operation TEXT NOT NULL,
	send TEXT NOT NULL,
	node TEXT NOT NULL,
	idem_key TEXT,
	reference TEXT UNIQUE,
	amount_minor INTEGER NOT NULL,
	created_us INTEGER NOT NULL
) STRICT;
CREATE INDEX orders_by_operation ON orders (operation);
CREATE INDEX orders_by_key ON orders (idem_key);
CREATE TABLE idempotency (
	idem_key TEXT PRIMARY KEY,
	status INTEGER NOT NULL CHECK (status IN (0, 1, 2)),
	request_hash TEXT NOT NULL,
	owner TEXT NOT NULL,
	fence INTEGER NOT NULL DEFAULT 1,
	claimed_us INTEGER NOT NULL,
	lease_until_us INTEGER,
	response_code INTEGER NOT NULL DEFAULT 0,
	response_body BLOB,
	CHECK (status = 0 OR response_code <> 0)
) STRICT, WITHOUT ROWID;
CREATE TABLE shared (
	name TEXT PRIMARY KEY,
	value TEXT NOT NULL,
	version INTEGER NOT NULL DEFAULT 1
) STRICT, WITHOUT ROWID;` + ledgers

// ledgers are in both files of a trial: entries of the order service's own, and those of other
// systems.
const ledgers = `
CREATE TABLE IF NOT EXISTS ledger (
	id INTEGER PRIMARY KEY,
	ledger TEXT NOT NULL,
	operation TEXT NOT NULL,
	send TEXT NOT NULL,
	node TEXT NOT NULL,
	reference TEXT,
	amount_minor INTEGER NOT NULL,
	created_us INTEGER NOT NULL,
	UNIQUE (ledger, reference)
) STRICT;
CREATE INDEX IF NOT EXISTS ledger_by_send ON ledger (ledger, send);`

// Database makes a file for each trial in a directory that it is given. The files are copies of
// one that was made with its schema: that costs a fraction of what making it does.
type Database struct {
	dir      string
	template []byte
	info     lab.Store
	files    atomic.Int64
}

// New makes a database in a private directory, which is removed at its end.
func New(dir string) (*Database, error) {
	path := filepath.Join(dir, "template.db")
	// Nothing is lost that cannot be made again, so nothing has to reach the disk.
	db, err := sql.Open("sqlite", uri(path)+"?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)")
	if err != nil {
		return nil, fmt.Errorf("open store sqlite: %w", err)
	}
	_, err = db.Exec(schema)
	if err := errors.Join(err, db.Close()); err != nil {
		return nil, fmt.Errorf("open store sqlite in %s: %w", dir, err)
	}
	d := &Database{dir: dir}
	if d.template, err = os.ReadFile(path); err != nil {
		return nil, fmt.Errorf("open store sqlite: %w", err)
	}
	if d.info, err = d.ask(path); err != nil {
		return nil, err
	}
	return d, os.Remove(path)
}

// uri names a file for SQLite, whatever characters are in its path.
func uri(path string) string { return "file:" + (&url.URL{Path: path}).EscapedPath() }

// connect opens a file. busy is how long SQLite itself waits, in real time, for the lock of another
// process.
func connect(path string, busy time.Duration) (*sql.DB, error) {
	db, err := sql.Open("sqlite", fmt.Sprintf("%s?_pragma=busy_timeout(%d)&_pragma=synchronous(NORMAL)&_txlock=immediate", uri(path), busy.Milliseconds()))
	if err != nil {
		return nil, fmt.Errorf("open store sqlite: %w", err)
	}
	// One connection reads while another writes; more would only cost their opening.
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	return db, nil
}

// ask asks the engine what it is, over a connection as the stores have them.
func (d *Database) ask(path string) (info lab.Store, err error) {
	db, err := connect(path, 0)
	if err != nil {
		return lab.Store{}, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var version, journal string
	var synchronous int
	if err := db.QueryRow("SELECT sqlite_version()").Scan(&version); err != nil {
		return lab.Store{}, fmt.Errorf("ask SQLite for its version: %w", err)
	}
	if err := db.QueryRow("PRAGMA journal_mode").Scan(&journal); err != nil {
		return lab.Store{}, fmt.Errorf("ask SQLite for its journal mode: %w", err)
	}
	if err := db.QueryRow("PRAGMA synchronous").Scan(&synchronous); err != nil {
		return lab.Store{}, fmt.Errorf("ask SQLite for its synchronous mode: %w", err)
	}
	return lab.Store{
		Engine: "sqlite", Version: version, Mode: "embedded", Counting: countSQL,
		Settings: map[string]string{
			"journal_mode": journal,
			"synchronous":  [...]string{"off", "normal", "full", "extra"}[synchronous],
			"writers":      "one",
		},
	}, nil
}

// Info returns version and settings as SQLite reported them.
func (d *Database) Info() lab.Store { return d.info }

// Close removes the directory with all that is in it.
func (d *Database) Close() error {
	if err := os.RemoveAll(d.dir); err != nil {
		return fmt.Errorf("remove the private directory: %w", err)
	}
	return nil
}

// Abandon does what Close does: a file can be removed that is in use.
func (d *Database) Abandon() error { return d.Close() }

// seat is a file that is yet to be made.
type seat struct{ database *Database }

// Seat makes room for a trial: there is always some.
func (d *Database) Seat(ctx context.Context) (store.Seat, error) {
	return seat{d}, context.Cause(ctx)
}

// Open makes the file and opens it.
func (s seat) Open(o store.Options) (store.Store, error) {
	return s.database.open(fmt.Sprintf("trial-%d", s.database.files.Add(1)), o)
}

// Leave does nothing: the store has removed its file.
func (seat) Leave() error { return nil }

// Store is a trial's database in one file.
type Store struct {
	db    *sql.DB
	path  string
	yield func(ctx context.Context, id string) error

	attached bool // another process's: its files stay
	busy     time.Duration

	elsewhere sync.Mutex
	others    *sql.DB // the ledgers of other systems, in a file of their own; nil until there is an entry

	// writer is SQLite's one writer lock, taken here before SQLite sees the statement. SQLite's
	// own busy handler sleeps in a system call, which on the virtual clock would wait for a
	// holder that waits for fake time: a stall.
	writer chan struct{}

	mu      sync.Mutex
	changed chan struct{}
}

func (d *Database) open(name string, o store.Options) (*Store, error) {
	s := newStore(filepath.Join(d.dir, name+".db"), o)
	if err := os.WriteFile(s.path, d.template, 0o600); err != nil {
		return nil, fmt.Errorf("open store sqlite: %w", err)
	}
	// On the virtual clock nobody else has the file, and nothing must wait in real time.
	if o.Clock != nil && !o.Clock.Virtual() {
		s.busy = patience
	}
	var err error
	if s.db, err = connect(s.path, s.busy); err != nil {
		return nil, err
	}
	// The first statement makes the index of the log, and turns others away meanwhile (SQLITE_BUSY_RECOVERY): it
	// is over before anybody has the store.
	var version int
	if err := s.db.QueryRow("PRAGMA schema_version").Scan(&version); err != nil {
		return nil, errors.Join(fmt.Errorf("open store sqlite: %w", err), s.Close())
	}
	return s, nil
}

func newStore(path string, o store.Options) *Store {
	return &Store{path: path, yield: o.Yield, writer: make(chan struct{}, 1), changed: make(chan struct{})}
}

// patience is how long a process waits for another's transaction: longer than any trial in real time
// takes. The lock of a process that was killed is free at once.
const patience = time.Hour

// Address is the path of the file, behind the name of the engine.
func (s *Store) Address() string { return "sqlite:" + s.path }

// Attach opens the file of a store that another process has made. That process keeps it open for as
// long as this one needs it, and removes it.
func Attach(path string, o store.Options) (*Store, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("attach store sqlite: %w", err)
	}
	s := newStore(path, o)
	s.attached, s.busy = true, patience
	var err error
	if s.db, err = connect(path, patience); err != nil {
		return nil, err
	}
	return s, nil
}

// Close closes the database and removes its files.
func (s *Store) Close() (err error) {
	for _, db := range []*sql.DB{s.db, s.others} {
		switch {
		case db == nil:
		case s.attached:
			err = errors.Join(err, db.Close())
		default:
			err = errors.Join(err, closeQuickly(db))
		}
	}
	if s.attached {
		return err
	}
	for _, path := range []string{s.path, s.othersPath()} {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if e := os.Remove(path + suffix); e != nil && !errors.Is(e, os.ErrNotExist) {
				err = errors.Join(err, e)
			}
		}
	}
	return err
}

// closeQuickly closes a database without waiting for the disk: the last connection to close
// copies the log into the file and syncs both, for nothing, since they are removed next.
func closeQuickly(db *sql.DB) error {
	ctx := context.Background()
	last, err := db.Conn(ctx)
	if err == nil {
		db.SetMaxIdleConns(-1) // closes the others, and this one when it is given back
		_, err = last.ExecContext(ctx, "PRAGMA synchronous = OFF")
		err = errors.Join(err, last.Close())
	}
	return errors.Join(err, db.Close())
}

// othersPath is where the ledgers of other systems are. A file of its own has a writer lock of its
// own: another system does not wait for a transaction of the order service.
func (s *Store) othersPath() string { return s.path + "-others" }

// openOthers opens it, and makes it where there is none.
func (s *Store) openOthers() (*sql.DB, error) {
	s.elsewhere.Lock()
	defer s.elsewhere.Unlock()
	if s.others != nil {
		return s.others, nil
	}
	db, err := connect(s.othersPath(), s.busy)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(ledgers); err != nil {
		return nil, errors.Join(fmt.Errorf("open the ledgers of other systems: %w", err), db.Close())
	}
	s.others = db
	return db, nil
}

// Changed returns a channel that is closed by the next commit.
func (s *Store) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Announce closes the channel of Changed.
func (s *Store) Announce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

// Begin takes the writer lock and starts a transaction with BEGIN IMMEDIATE.
//
// SQLite has one level of isolation, the strictest, and knows no time limit but that for the
// writer lock, which is another thing: a transaction that asks for more is refused.
func (s *Store) Begin(ctx context.Context, id string, o store.TxOptions) (store.Tx, error) {
	if o != (store.TxOptions{}) {
		return nil, fmt.Errorf("begin in SQLite with %+v: %w", o, store.ErrUnsupported)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	select {
	case s.writer <- struct{}{}:
	default:
		select {
		case s.writer <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if s.yield != nil {
			if err := s.yield(ctx, id); err != nil {
				<-s.writer
				return nil, err
			}
		}
	}
	// The transaction must outlive a context that ends while it is open: it is given up by its
	// owner, not by a watcher that would do so at a moment of its own.
	t, err := s.db.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		<-s.writer
		return nil, fmt.Errorf("begin: %w", err)
	}
	return &tx{store: s, tx: t}, nil
}

// Read looks key up in a statement of its own.
func (s *Store) Read(ctx context.Context, key string) (store.Record, bool, error) {
	return read(ctx, s.db, key)
}

// Enter makes an entry in a ledger of another system.
func (s *Store) Enter(ctx context.Context, e store.Entry) (bool, error) {
	db, err := s.openOthers()
	if err != nil {
		return false, err
	}
	return change(ctx, db, "enter in "+e.Ledger, enterSQL, entry(e)...)
}

const enterSQL = `INSERT INTO ledger (ledger, operation, send, node, reference, amount_minor, created_us)
	VALUES (?, ?, ?, ?, nullif(?, ''), ?, ?) ON CONFLICT DO NOTHING`

// entry is an entry as [enterSQL] wants it.
func entry(e store.Entry) []any {
	return []any{e.Ledger, e.Operation, e.Send, e.Node, e.Reference, e.Amount, e.Created.Microseconds()}
}

// Entries reads all ledgers: those in the database, and those of other systems where there are some.
func (s *Store) Entries(ctx context.Context) (out []lab.Entry, err error) {
	if out, err = entries(ctx, s.db, ""); err != nil {
		return nil, err
	}
	if _, err := os.Stat(s.othersPath()); err != nil {
		return out, nil // no file, no entry
	}
	db, err := s.openOthers()
	if err != nil {
		return nil, err
	}
	others, err := entries(ctx, db, "")
	out = append(out, others...)
	slices.SortStableFunc(out, func(a, b lab.Entry) int { return cmp.Compare(a.Ledger, b.Ledger) })
	return out, err
}

// EntriesOf reads what a send has entered in a ledger of the database.
func (s *Store) EntriesOf(ctx context.Context, ledger, send string) ([]lab.Entry, error) {
	return entries(ctx, s.db, "WHERE ledger = ? AND send = ? ", ledger, send)
}

// entries reads the entries that where lets through, all of them without it.
func entries(ctx context.Context, db *sql.DB, where string, args ...any) (out []lab.Entry, err error) {
	rows, err := db.QueryContext(ctx,
		"SELECT ledger, operation, send, node, coalesce(reference, ''), amount_minor, created_us FROM ledger "+where+"ORDER BY ledger, id", args...)
	if err != nil {
		return nil, fmt.Errorf("read ledgers: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var e lab.Entry
		var us int64
		if err := rows.Scan(&e.Ledger, &e.Operation, &e.Send, &e.Node, &e.Reference, &e.Amount, &us); err != nil {
			return nil, fmt.Errorf("read ledgers: %w", err)
		}
		e.Created = time.Duration(us) * time.Microsecond
		e.CreatedMs = lab.Millis(e.Created)
		out = append(out, e)
	}
	return out, rows.Err()
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func read(ctx context.Context, q querier, key string) (r store.Record, found bool, err error) {
	err = q.QueryRowContext(context.WithoutCancel(ctx),
		"SELECT status, request_hash, owner, fence, response_code, response_body FROM idempotency WHERE idem_key = ?", key).
		Scan(&r.Status, &r.Hash, &r.Owner, &r.Fence, &r.Code, &r.Body)
	if errors.Is(err, sql.ErrNoRows) {
		return store.Record{}, false, nil
	}
	if err != nil {
		return store.Record{}, false, fmt.Errorf("read key: %w", err)
	}
	return r, true, nil
}

// Row reads a shared row in a statement of its own.
func (s *Store) Row(ctx context.Context, name string) (store.Row, bool, error) {
	return row(ctx, s.db, name)
}

func row(ctx context.Context, q querier, name string) (r store.Row, found bool, err error) {
	err = q.QueryRowContext(context.WithoutCancel(ctx), "SELECT value, version FROM shared WHERE name = ?", name).Scan(&r.Value, &r.Version)
	if errors.Is(err, sql.ErrNoRows) {
		return store.Row{}, false, nil
	}
	if err != nil {
		return store.Row{}, false, fmt.Errorf("read %s: %w", name, err)
	}
	return r, true, nil
}

// countSQL is the statement that counts effects.
const countSQL = "SELECT count(*) FROM orders WHERE operation = ?"

// Count counts an operation's orders.
func (s *Store) Count(ctx context.Context, operation string) (n int, err error) {
	err = s.db.QueryRowContext(ctx, countSQL, operation).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count orders: %w", err)
	}
	return n, nil
}

// Effects reads all orders.
func (s *Store) Effects(ctx context.Context) (out []lab.Effect, err error) {
	rows, err := s.db.QueryContext(ctx,
		"SELECT id, operation, send, node, coalesce(idem_key, ''), amount_minor, created_us FROM orders ORDER BY id")
	if err != nil {
		return nil, fmt.Errorf("read orders: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var e lab.Effect
		var us int64
		if err := rows.Scan(&e.Order, &e.Operation, &e.Send, &e.Node, &e.Key, &e.Amount, &us); err != nil {
			return nil, fmt.Errorf("read orders: %w", err)
		}
		e.Created = time.Duration(us) * time.Microsecond
		e.CreatedMs = lab.Millis(e.Created)
		out = append(out, e)
	}
	return out, rows.Err()
}

type tx struct {
	store *Store
	tx    *sql.Tx
	ended bool
}

func (t *tx) Claim(ctx context.Context, key string, c store.Claim) (fence int64, err error) {
	const insert = "INSERT INTO idempotency (idem_key, status, request_hash, owner, claimed_us, lease_until_us) VALUES (?1, 0, ?2, ?3, ?4, ?5) "
	query, args := insert+"ON CONFLICT DO NOTHING RETURNING fence", []any{key, c.Hash, c.Owner, c.Now.Microseconds(), lease(c)}
	if c.Lease > 0 {
		query = insert + `ON CONFLICT (idem_key) DO UPDATE
			SET owner = excluded.owner, fence = fence + 1, claimed_us = excluded.claimed_us, lease_until_us = excluded.lease_until_us
			WHERE status = 0 AND lease_until_us <= excluded.claimed_us AND request_hash = excluded.request_hash
			RETURNING fence`
	}
	err = t.tx.QueryRowContext(context.WithoutCancel(ctx), query, args...).Scan(&fence)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("claim key: %w", classified(err))
	}
	return fence, nil
}

// lease is the end of a claim, NULL for one without.
func lease(c store.Claim) any {
	if c.Lease == 0 {
		return nil
	}
	return (c.Now + c.Lease).Microseconds()
}

func (t *tx) Insert(ctx context.Context, key string, c store.Claim) error {
	_, err := t.tx.ExecContext(context.WithoutCancel(ctx),
		"INSERT INTO idempotency (idem_key, status, request_hash, owner, claimed_us, lease_until_us) VALUES (?, 0, ?, ?, ?, ?)",
		key, c.Hash, c.Owner, c.Now.Microseconds(), lease(c))
	if err != nil {
		return fmt.Errorf("insert key: %w", classified(err))
	}
	return nil
}

// classified wraps an error of SQLite in the class that a service knows.
func classified(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() {
	case sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE:
		return fmt.Errorf("%w (%w)", store.ErrDuplicate, err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY_SNAPSHOT:
		return fmt.Errorf("%w (%w)", store.ErrBusy, err)
	}
	return err
}

func (t *tx) Read(ctx context.Context, key string) (store.Record, bool, error) {
	return read(ctx, t.tx, key)
}

func (t *tx) Finish(ctx context.Context, key string, by store.Holder, r store.Record) (bool, error) {
	return t.change(ctx, "finish key",
		`UPDATE idempotency SET status = ?4, response_code = ?5, response_body = ?6, lease_until_us = NULL
		WHERE idem_key = ?1 AND (?2 = '' OR status = 0 AND owner = ?2) AND (?3 = 0 OR status = 0 AND fence = ?3)`,
		key, by.Owner, by.Fence, r.Status, r.Code, r.Body)
}

func (t *tx) Release(ctx context.Context, key string, by store.Holder) (bool, error) {
	return t.change(ctx, "release key",
		"DELETE FROM idempotency WHERE idem_key = ?1 AND (?2 = '' OR owner = ?2) AND (?3 = 0 OR fence = ?3)",
		key, by.Owner, by.Fence)
}

func (t *tx) Expire(ctx context.Context, key string, e store.Expiry) (int64, error) {
	res, err := t.tx.ExecContext(context.WithoutCancel(ctx),
		"DELETE FROM idempotency WHERE (?1 = '' OR idem_key = ?1) AND claimed_us <= CASE status WHEN 0 THEN ?2 ELSE ?3 END",
		key, e.Open.Microseconds(), e.Ended.Microseconds())
	if err != nil {
		return 0, fmt.Errorf("expire keys: %w", classified(err))
	}
	return res.RowsAffected()
}

func (t *tx) Row(ctx context.Context, name string) (store.Row, bool, error) {
	return row(ctx, t.tx, name)
}

func (t *tx) Write(ctx context.Context, w store.Write) (bool, error) {
	what := "change " + w.Row
	switch w.Do {
	case store.Add:
		return t.change(ctx, what, `INSERT INTO shared (name, value) VALUES (?1, CAST(?2 AS TEXT))
			ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(value AS INTEGER) + ?2 AS TEXT), version = version + 1`, w.Row, w.By)
	case store.Set:
		return t.change(ctx, what, `UPDATE shared SET value = ?2, version = version + 1
			WHERE name = ?1 AND value <> ?2 AND (?3 = '' OR value = ?3) AND (?4 = 0 OR version = ?4)`, w.Row, w.To, w.From, w.Version)
	case store.Put:
		return t.change(ctx, what, `INSERT INTO shared (name, value) VALUES (?1, ?2)
			ON CONFLICT (name) DO UPDATE SET value = excluded.value, version = version + 1 WHERE value <> excluded.value`, w.Row, w.To)
	default:
		return t.change(ctx, what, "DELETE FROM shared WHERE name = ?1 AND (?2 = '' OR value = ?2)", w.Row, w.From)
	}
}

func (t *tx) Enter(ctx context.Context, e store.Entry) (bool, error) {
	return t.change(ctx, "enter in "+e.Ledger, enterSQL, entry(e)...)
}

func (t *tx) change(ctx context.Context, what, query string, args ...any) (bool, error) {
	return change(ctx, t.tx, what, query, args...)
}

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// change performs a statement and reports whether it changed anything.
func change(ctx context.Context, db execer, what, query string, args ...any) (bool, error) {
	res, err := db.ExecContext(context.WithoutCancel(ctx), query, args...)
	if err != nil {
		return false, fmt.Errorf("%s: %w", what, classified(err))
	}
	n, err := res.RowsAffected()
	return n > 0, err
}

func (t *tx) Placed(ctx context.Context, key string) (number int64, found bool, err error) {
	err = t.tx.QueryRowContext(context.WithoutCancel(ctx),
		"SELECT id FROM orders WHERE idem_key = ? ORDER BY id LIMIT 1", key).Scan(&number)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("look for an order: %w", err)
	}
	return number, true, nil
}

func (t *tx) Order(ctx context.Context, o store.Order) (int64, error) {
	res, err := t.tx.ExecContext(context.WithoutCancel(ctx),
		"INSERT INTO orders (operation, send, node, idem_key, reference, amount_minor, created_us) VALUES (?, ?, ?, nullif(?, ''), nullif(?, ''), ?, ?)",
		o.Operation, o.Send, o.Node, o.Key, o.Reference, o.Amount, o.Created.Microseconds())
	if err != nil {
		return 0, fmt.Errorf("insert order: %w", classified(err))
	}
	return res.LastInsertId()
}

func (t *tx) Commit() error {
	if err := t.end(t.tx.Commit()); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	t.store.Announce()
	return nil
}

func (t *tx) Rollback() error {
	if t.ended {
		return nil
	}
	return t.end(t.tx.Rollback())
}

// end gives the writer lock back, whatever became of the transaction.
func (t *tx) end(err error) error {
	if !t.ended {
		t.ended = true
		<-t.store.writer
	}
	return err
}
