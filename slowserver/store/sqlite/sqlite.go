// Package sqlite keeps a trial's orders and keys in SQLite: a WAL file in a directory that the
// caller owns. It is the door of modernc.org/sqlite, and holds all of its SQL.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver, registered as "sqlite"

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
	amount_minor INTEGER NOT NULL,
	created_us INTEGER NOT NULL
) STRICT;
CREATE INDEX orders_by_operation ON orders (operation);
CREATE TABLE idempotency (
	idem_key TEXT PRIMARY KEY,
	status INTEGER NOT NULL CHECK (status IN (0, 1, 2)),
	request_hash TEXT NOT NULL,
	owner TEXT NOT NULL,
	response_code INTEGER NOT NULL DEFAULT 0,
	response_body BLOB,
	CHECK (status = 0 OR response_code <> 0)
) STRICT, WITHOUT ROWID;`

// Store is a trial's database in one file.
type Store struct {
	db    *sql.DB
	path  string
	info  lab.Store
	yield func(ctx context.Context, id string) error

	// writer is SQLite's one writer lock, taken here before SQLite sees the statement. SQLite's
	// own busy handler sleeps in a system call, which on the virtual clock would wait for a
	// holder that waits for fake time: a stall.
	writer chan struct{}

	mu      sync.Mutex
	changed chan struct{}
}

// Template is an empty database with its schema, made once for any number of trials: a copy of it
// costs a fraction of what making it does.
type Template struct {
	dir  string
	data []byte
}

// NewTemplate makes the database that the stores in dir are copies of.
func NewTemplate(dir string) (*Template, error) {
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
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("open store sqlite: %w", err)
	}
	return &Template{dir: dir, data: data}, os.Remove(path)
}

// uri names a file for SQLite, whatever characters are in its path.
func uri(path string) string { return "file:" + (&url.URL{Path: path}).EscapedPath() }

// Open makes a new database called name. yield is called when a transaction had to wait for the
// one before it: the moment that the hand-over takes, so that what the two do never falls on one
// instant; nil for none.
func (t *Template) Open(name string, yield func(ctx context.Context, id string) error) (*Store, error) {
	s := &Store{
		path:    filepath.Join(t.dir, name+".db"),
		yield:   yield,
		writer:  make(chan struct{}, 1),
		changed: make(chan struct{}),
	}
	if err := os.WriteFile(s.path, t.data, 0o600); err != nil {
		return nil, fmt.Errorf("open store sqlite: %w", err)
	}
	db, err := sql.Open("sqlite", uri(s.path)+"?_pragma=busy_timeout(0)&_pragma=synchronous(NORMAL)&_txlock=immediate")
	if err != nil {
		return nil, fmt.Errorf("open store sqlite: %w", err)
	}
	s.db = db
	// One connection reads while another writes; more would only cost their opening.
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	if err := s.readInfo(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) readInfo() error {
	var version, journal string
	var synchronous int
	if err := s.db.QueryRow("SELECT sqlite_version()").Scan(&version); err != nil {
		return fmt.Errorf("ask SQLite for its version: %w", err)
	}
	if err := s.db.QueryRow("PRAGMA journal_mode").Scan(&journal); err != nil {
		return fmt.Errorf("ask SQLite for its journal mode: %w", err)
	}
	if err := s.db.QueryRow("PRAGMA synchronous").Scan(&synchronous); err != nil {
		return fmt.Errorf("ask SQLite for its synchronous mode: %w", err)
	}
	s.info = lab.Store{
		Engine: "sqlite", Version: version, Mode: "embedded",
		Settings: map[string]string{
			"journal_mode": journal,
			"synchronous":  [...]string{"off", "normal", "full", "extra"}[synchronous],
			"writers":      "one",
		},
	}
	return nil
}

// Info returns version and settings as SQLite reported them.
func (s *Store) Info() lab.Store { return s.info }

// Close closes the database and removes its files.
func (s *Store) Close() error {
	err := s.closeQuickly()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if e := os.Remove(s.path + suffix); e != nil && !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// closeQuickly closes the database without waiting for the disk: the last connection to close
// copies the log into the file and syncs both, for nothing, since they are removed next.
func (s *Store) closeQuickly() error {
	ctx := context.Background()
	last, err := s.db.Conn(ctx)
	if err == nil {
		s.db.SetMaxIdleConns(-1) // closes the others, and this one when it is given back
		_, err = last.ExecContext(ctx, "PRAGMA synchronous = OFF")
		err = errors.Join(err, last.Close())
	}
	return errors.Join(err, s.db.Close())
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

// Begin takes the writer lock and starts a transaction with BEGIN IMMEDIATE.
func (s *Store) Begin(ctx context.Context, id string) (store.Tx, error) {
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

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func read(ctx context.Context, q querier, key string) (r store.Record, found bool, err error) {
	err = q.QueryRowContext(context.WithoutCancel(ctx),
		"SELECT status, request_hash, owner, response_code, response_body FROM idempotency WHERE idem_key = ?", key).
		Scan(&r.Status, &r.Hash, &r.Owner, &r.Code, &r.Body)
	if errors.Is(err, sql.ErrNoRows) {
		return store.Record{}, false, nil
	}
	if err != nil {
		return store.Record{}, false, fmt.Errorf("read key: %w", err)
	}
	return r, true, nil
}

// Count counts an operation's orders.
func (s *Store) Count(ctx context.Context, operation string) (n int, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT count(*) FROM orders WHERE operation = ?", operation).Scan(&n)
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

func (t *tx) Claim(ctx context.Context, key string, r store.Record) (bool, error) {
	res, err := t.tx.ExecContext(context.WithoutCancel(ctx),
		"INSERT INTO idempotency (idem_key, status, request_hash, owner) VALUES (?, 0, ?, ?) ON CONFLICT DO NOTHING", key, r.Hash, r.Owner)
	if err != nil {
		return false, fmt.Errorf("claim key: %w", err)
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

func (t *tx) Read(ctx context.Context, key string) (store.Record, bool, error) {
	return read(ctx, t.tx, key)
}

func (t *tx) Finish(ctx context.Context, key string, r store.Record) error {
	_, err := t.tx.ExecContext(context.WithoutCancel(ctx),
		"UPDATE idempotency SET status = ?, response_code = ?, response_body = ? WHERE idem_key = ?", r.Status, r.Code, r.Body, key)
	if err != nil {
		return fmt.Errorf("finish key: %w", err)
	}
	return nil
}

func (t *tx) Release(ctx context.Context, key string) error {
	if _, err := t.tx.ExecContext(context.WithoutCancel(ctx), "DELETE FROM idempotency WHERE idem_key = ?", key); err != nil {
		return fmt.Errorf("release key: %w", err)
	}
	return nil
}

func (t *tx) Order(ctx context.Context, o store.Order) (int64, error) {
	var key any
	if o.Key != "" {
		key = o.Key
	}
	res, err := t.tx.ExecContext(context.WithoutCancel(ctx),
		"INSERT INTO orders (operation, send, node, idem_key, amount_minor, created_us) VALUES (?, ?, ?, ?, ?, ?)",
		o.Operation, o.Send, o.Node, key, o.Amount, o.Created.Microseconds())
	if err != nil {
		return 0, fmt.Errorf("insert order: %w", err)
	}
	return res.LastInsertId()
}

func (t *tx) Commit() error {
	if err := t.end(t.tx.Commit()); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	t.store.announce()
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
