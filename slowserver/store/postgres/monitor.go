package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// monitor is a connection beside those of the trials, to ask the server about them and to have it
// end what they do.
type monitor struct {
	database *Database
	mu       sync.Mutex
	conn     *pgx.Conn
}

func (d *Database) newMonitor(ctx context.Context) (*monitor, error) {
	m := &monitor{database: d}
	return m, m.connect(ctx)
}

func (m *monitor) connect(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, m.database.config)
	if err != nil {
		return m.database.environment("connect", err)
	}
	if err := endless(ctx, conn); err != nil {
		conn.Close(ctx)
		return m.database.environment("set up a connection", err)
	}
	m.conn = conn
	return nil
}

// again connects anew after a connection was lost. What was held by it is lost.
func (m *monitor) again(ctx context.Context) error {
	if !m.conn.IsClosed() {
		return nil
	}
	return m.connect(ctx)
}

func (m *monitor) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conn != nil {
		m.conn.Close(ctx)
	}
}

// result is a row that has been read whole, so that the connection is free again.
type result struct {
	m     *monitor
	ctx   context.Context
	query string
	args  []any
}

func (m *monitor) row(ctx context.Context, query string, args ...any) result {
	return result{m, ctx, query, args}
}

// Scan performs the query and reads its only row.
func (r result) Scan(dest ...any) error {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if err := r.m.again(r.ctx); err != nil {
		return err
	}
	return r.m.conn.QueryRow(r.ctx, r.query, r.args...).Scan(dest...)
}

func (m *monitor) exec(ctx context.Context, query string, args ...any) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.again(ctx); err != nil {
		return err
	}
	_, err := m.conn.Exec(ctx, query, args...)
	return err
}

// blocking lists the server processes that hold up the one with pid.
func (m *monitor) blocking(ctx context.Context, pid uint32) ([]uint32, error) {
	var pids []int32
	if err := m.row(ctx, "SELECT pg_blocking_pids($1)", int32(pid)).Scan(&pids); err != nil {
		return nil, fmt.Errorf("ask who waits for whom: %w", err)
	}
	out := make([]uint32, len(pids))
	for i, p := range pids {
		out[i] = uint32(p)
	}
	return out, nil
}

// holdsUp reports whether anybody waits for the process with pid.
func (m *monitor) holdsUp(ctx context.Context, pid uint32) (held bool, err error) {
	err = m.row(ctx, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND $1 = ANY (pg_blocking_pids(pid)))", int32(pid)).Scan(&held)
	return held, err
}

// cancel has the server give up what the process with pid does.
func (m *monitor) cancel(ctx context.Context, pid uint32) error {
	return m.exec(ctx, "SELECT pg_cancel_backend($1)", int32(pid))
}

// terminate has the server end the process with pid, and waits until it is gone: what it held is
// free then.
func (m *monitor) terminate(ctx context.Context, pid uint32) error {
	if err := m.exec(ctx, "SELECT pg_terminate_backend($1)", int32(pid)); err != nil {
		return err
	}
	return m.gone(ctx, pid)
}

// gone waits until the process with pid is gone.
func (m *monitor) gone(ctx context.Context, pid uint32) error {
	for {
		var there bool
		if err := m.row(ctx, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1)", int32(pid)).Scan(&there); err != nil || !there {
			return err
		}
		// It ends by itself; to ask as fast as possible would only keep it from the processor.
		timer := time.NewTimer(200 * time.Microsecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// waits lists who waits for whom, for a report of a stall.
func (m *monitor) waits(ctx context.Context) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	rows, err := m.conn.Query(ctx, `SELECT format('%s (%s) waits for %s', pid, left(query, 60), array_to_string(pg_blocking_pids(pid), ', '))
		FROM pg_stat_activity WHERE application_name = '`+application+`' AND cardinality(pg_blocking_pids(pid)) > 0 ORDER BY pid`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
