// Package postgres keeps trials' orders and keys in PostgreSQL: each trial in tables of its own,
// all of them in a schema of the run's own. It is the door of pgx, and holds all of its SQL.
//
// A database server lives in real time. Every statement is therefore performed outside the bubble
// of its trial, while the bubble's time stands still; and a statement that waits for another
// transaction's lock is waited for in the bubble, while time goes on. What the two have to say to
// each other is in call.go.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"retrylab/internal/lab"
	"retrylab/internal/vtime"
	"retrylab/slowserver/store"
)

// oldest is the first version that has all that is asked of a server: pg_current_xact_id and
// pg_xact_status by it.
const oldest = 13

// Bounds of what a run asks of a server.
const (
	connectTimeout = 10 * time.Second // for one connection
	perTrial       = 30               // connections of a trial's service, beyond which its requests wait for one
	beside         = 6                // connections that a run has beside those: to look, to count, to keep its schema
	asks           = 4                // of these, to count and to look outside transactions, for each trial
)

// application is what the run's sessions are called on the server.
const application = "retrylab"

// Options say where the database is.
type Options struct {
	DSN string // a connection string; what it leaves out is taken from the environment, as libpq does
	// Private says that the server is the run's alone. What the environment says of PostgreSQL
	// then does not count, and nothing has to be removed at the end.
	Private bool
	Mode    string // what Info calls it
	Jobs    int    // trials that have a place in it at once
	Schema  string // a schema that is shared and kept; empty for one of the run's own
}

// Database is a run's schema on a server.
type Database struct {
	config  *pgx.ConnConfig
	options Options
	schema  string
	sweeper *monitor // holds the lock by which others know that the schema is in use
	monitor *monitor
	outside *vtime.Outside
	info    lab.Store
	detects bool // deadlock_timeout may be set
	// patience is how long, in real time, a statement may take that waits for nobody of the trial.
	patience time.Duration
	seats    chan struct{} // one for each seat that is taken

	closing sync.Once
	closed  error

	mu   sync.Mutex
	idle []*session
	pids []int32 // of every session there ever was
	free []*tableSet
	made int // seats
}

// Open connects to the server, looks whether it can serve, and makes the run's schema.
func Open(ctx context.Context, o Options) (*Database, error) {
	config, err := parse(o)
	if err != nil {
		return nil, err
	}
	d := &Database{config: config, options: o, patience: 20 * time.Second}
	if err := d.open(ctx); err != nil {
		return nil, errors.Join(err, d.disconnect())
	}
	return d, nil
}

func parse(o Options) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(o.DSN)
	if err != nil {
		return nil, parseError(err)
	}
	if o.Private {
		config.RuntimeParams = map[string]string{}
		config.Password = ""
	}
	config.RuntimeParams["application_name"] = application
	if config.ConnectTimeout == 0 || config.ConnectTimeout > connectTimeout {
		config.ConnectTimeout = connectTimeout
	}
	return config, nil
}

func (d *Database) open(ctx context.Context) (err error) {
	if d.monitor, err = d.newMonitor(ctx); err != nil {
		return err
	}
	if err := d.examine(ctx); err != nil {
		return err
	}
	if err := d.makeSchema(ctx); err != nil {
		return err
	}
	d.outside = vtime.NewOutside()
	return nil
}

// examine asks the server what it is and what it can do.
func (d *Database) examine(ctx context.Context) error {
	var number, free int
	var version, readOnly string
	var recovering bool
	err := d.monitor.row(ctx, `SELECT current_setting('server_version_num')::int, current_setting('server_version'),
		current_setting('transaction_read_only'), pg_is_in_recovery()`).
		Scan(&number, &version, &readOnly, &recovering)
	if err != nil {
		return d.environment("ask the server what it is", err)
	}
	if err := unfit(d.where(), number, version, readOnly == "on", recovering); err != nil {
		return err
	}
	var pid int32
	if err := d.monitor.row(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil || uint32(pid) != d.monitor.conn.PgConn().PID() {
		return fmt.Errorf("%s is behind a pooler, which gives a statement to whatever connection is free: name the server itself", d.where())
	}
	if _, err := d.monitor.blocking(ctx, 0); err != nil {
		return fmt.Errorf("%s has no pg_blocking_pids, without which nobody knows who waits for a lock: %w", d.where(), err)
	}
	d.detects = d.monitor.exec(ctx, "SET deadlock_timeout = '1h'") == nil
	if err := d.monitor.row(ctx, freeSQL).Scan(&free); err != nil {
		return d.environment("ask the server how many connections it has left", err)
	}
	need := perTrial + asks
	if free < need+beside {
		return fmt.Errorf("%s has %d connections left, and a run needs %d: raise the limit of the server, the database or the role, or close others",
			d.where(), free, need+beside)
	}
	d.seats = make(chan struct{}, min(max(1, d.options.Jobs), (free-beside)/need))
	return d.readInfo(ctx)
}

// freeSQL counts the connections that this role can still open to this database. What others do is
// hidden from an ordinary role but for its number.
const freeSQL = `SELECT least(
	current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
		- (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type IS NULL OR backend_type = 'client backend'),
	(SELECT nullif(datconnlimit, -1) - (SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database())
		FROM pg_database WHERE datname = current_database()),
	(SELECT nullif(rolconnlimit, -1) - (SELECT count(*)::int FROM pg_stat_activity WHERE usename = current_user)
		FROM pg_roles WHERE rolname = current_user))`

// unfit says why a server cannot hold orders, or nil.
func unfit(where string, number int, version string, readOnly, recovering bool) error {
	switch {
	case number/10000 < oldest:
		return fmt.Errorf("%s runs PostgreSQL %s: too old; %d or newer is needed", where, version, oldest)
	case recovering:
		return fmt.Errorf("%s is a standby, which takes no writes: name the primary", where)
	case readOnly:
		return fmt.Errorf("%s is read-only: orders cannot be written there (default_transaction_read_only is on for this database or role)", where)
	}
	return nil
}

// where names the server for a message: host and database, never a password.
func (d *Database) where() string {
	if strings.HasPrefix(d.config.Host, "/") {
		return fmt.Sprintf("database %q at the socket in %s", d.config.Database, d.config.Host)
	}
	return fmt.Sprintf("database %q at %s", d.config.Database, net.JoinHostPort(d.config.Host, strconv.Itoa(int(d.config.Port))))
}

// readInfo reads back what a report says of the server.
func (d *Database) readInfo(ctx context.Context) error {
	info := lab.Store{
		Engine: "postgres", Mode: d.options.Mode, Counting: plain.count,
		Settings: map[string]string{"driver": driver(), "lock time-outs": "by the lab's clock, with pg_cancel_backend"},
	}
	names := []string{"server_version", "synchronous_commit", "fsync", "default_transaction_isolation"}
	for _, name := range names {
		var value string
		if err := d.monitor.row(ctx, "SELECT current_setting($1)", name).Scan(&value); err != nil {
			return d.environment("ask the server for "+name, err)
		}
		info.Settings[name] = value
	}
	info.Version, _, _ = strings.Cut(info.Settings["server_version"], " ")
	delete(info.Settings, "server_version")
	info.Settings["deadlocks"] = "found by the server"
	if !d.detects {
		info.Settings["deadlocks"] = "found by the lab on the virtual clock: this role may not set deadlock_timeout"
	}
	d.info = info
	return nil
}

// driver names pgx with the version that this binary was built with.
func driver() string {
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, m := range b.Deps {
			if m.Path == "github.com/jackc/pgx/v5" {
				return "pgx " + m.Version
			}
		}
	}
	return "pgx"
}

// Info returns version and settings as the server reported them.
func (d *Database) Info() lab.Store { return d.info }

// Close drops the run's schema and every connection. It is also called after an interrupt, so it
// has a time of its own.
func (d *Database) Close() error {
	d.closing.Do(func() {
		var err error
		if d.outside != nil {
			err = d.outside.Close()
		}
		d.closed = errors.Join(err, d.dropSchema(), d.disconnect())
	})
	return d.closed
}

// Abandon ends every session of the run, whatever it does, and drops the schema.
func (d *Database) Abandon() error {
	if d.schema == "" || d.kept() {
		return nil
	}
	d.mu.Lock()
	mine := slices.Clone(d.pids)
	d.mu.Unlock()
	ctx, cancel := outsideContext()
	defer cancel()
	// A number may have been given to somebody else since.
	err := d.sweeper.exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"+
		" WHERE pid = ANY ($1) AND usename = current_user AND application_name = '"+application+"'", mine)
	return errors.Join(err, d.dropSchema())
}

func (d *Database) disconnect() error {
	d.mu.Lock()
	idle := d.idle
	d.idle = nil
	d.mu.Unlock()
	for _, s := range idle {
		s.close()
	}
	for _, m := range []*monitor{d.monitor, d.sweeper} {
		if m != nil {
			m.close()
		}
	}
	return nil
}

// session is a connection for statements.
type session struct {
	conn *pgx.Conn
	pid  uint32
	wire *wire
	of   string // the request whose transaction it serves

	since time.Time // when it was last given back
}

// connect makes a session, with settings as PostgreSQL ships them, whatever the server, the database
// or the role has instead.
func (d *Database) connect(ctx context.Context) (*session, error) {
	s := &session{}
	config := d.config.Copy()
	config.AfterNetConnect = func(_ context.Context, _ *pgconn.Config, conn net.Conn) (net.Conn, error) {
		s.wire = &wire{Conn: conn}
		return s.wire, nil
	}
	var err error
	if s.conn, err = pgx.ConnectConfig(ctx, config); err != nil {
		return nil, d.environment("connect", err)
	}
	s.pid = s.conn.PgConn().PID()
	settings := "SET synchronous_commit = on; SET default_transaction_isolation = 'read committed'"
	if d.detects {
		settings += "; SET deadlock_timeout = '1h'"
	}
	_, err = s.conn.Exec(ctx, settings)
	if err = errors.Join(err, endless(ctx, s.conn)); err != nil {
		s.close()
		return nil, d.environment("set up a connection", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pids = append(d.pids, int32(s.pid))
	return s, nil
}

// endless takes away the time limits that the server, the database or the role may have set for a
// connection: they would strike in real time. Which there are depends on the version.
func endless(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('statement_timeout',
		'lock_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout')`)
	return err
}

// hangUp breaks the connection: a goroutine that waits for a reply gets an error.
func (s *session) hangUp() {
	if s.wire != nil {
		s.wire.Conn.Close()
	}
}

// close ends a session that nobody uses.
func (s *session) close() {
	s.hangUp()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.conn.Close(ctx)
}

// acquire returns a session that nobody uses. It is called outside.
func (d *Database) acquire() (*session, error) {
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	for {
		d.mu.Lock()
		n := len(d.idle)
		if n == 0 {
			d.mu.Unlock()
			return d.connect(ctx)
		}
		s := d.idle[n-1]
		d.idle = d.idle[:n-1]
		d.mu.Unlock()
		// A server that was started anew while nobody asked it anything has ended it.
		if time.Since(s.since) < time.Second || s.conn.Ping(ctx) == nil {
			return s, nil
		}
		s.close()
	}
}

// release gives a session back that is in no transaction.
func (d *Database) release(s *session) {
	if s.conn.IsClosed() || s.conn.PgConn().TxStatus() != 'I' {
		s.close()
		return
	}
	s.since = time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idle = append(d.idle, s)
}

var (
	_ store.Database  = (*Database)(nil)
	_ store.Asker     = (*Store)(nil)
	_ store.Shareable = (*Store)(nil)
	_ store.Attached  = (*Store)(nil)
	_ store.Tx        = (*tx)(nil)
	_ store.Locker    = (*tx)(nil)
	_ store.Cutter    = (*tx)(nil)
)
