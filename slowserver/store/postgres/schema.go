package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// madeBy is the comment by which a schema of a run is known: one that bears it, and that nobody
// holds the lock of, is what a run has left that was killed.
const madeBy = "made by retrylab for one run, and dropped at its end"

// lockClass is the first half of the advisory locks on schemas; any number would do.
const lockClass = 0x7265_7472 // "retr"

// makeSchema makes the schema of the run, or joins one that is shared, after it has dropped those
// of runs that are dead.
func (d *Database) makeSchema(ctx context.Context) error {
	var err error
	if d.sweeper, err = d.newMonitor(ctx); err != nil {
		return err
	}
	if d.options.Schema != "" {
		d.schema = d.options.Schema
		return d.shareSchema(ctx)
	}
	if err := d.sweep(ctx); err != nil {
		return err
	}
	err = d.sweeper.row(ctx, `SELECT 'retrylab_' || left(md5(random()::text || clock_timestamp()::text || pg_backend_pid()::text), 12)`).Scan(&d.schema)
	if err != nil {
		return d.environment("name a schema", err)
	}
	name := pgx.Identifier{d.schema}.Sanitize()
	if err := d.sweeper.exec(ctx, "SELECT pg_advisory_lock($1::int, hashtext($2))", lockClass, d.schema); err != nil {
		return d.environment("lock a schema", err)
	}
	for _, query := range []string{
		"CREATE SCHEMA " + name,
		fmt.Sprintf("COMMENT ON SCHEMA %s IS '%s'", name, madeBy),
	} {
		if err := d.sweeper.exec(ctx, query); err != nil {
			d.schema = ""
			return d.environment("create a schema", err)
		}
	}
	return nil
}

// sweep drops the schemas of dead runs.
func (d *Database) sweep(ctx context.Context) error {
	if d.options.Private {
		return nil
	}
	d.sweeper.mu.Lock()
	defer d.sweeper.mu.Unlock()
	conn := d.sweeper.conn
	rows, err := conn.Query(ctx, `SELECT nspname FROM pg_namespace
		WHERE nspname ~ '^retrylab_[0-9a-f]{12}$' AND obj_description(oid, 'pg_namespace') = $1
		AND pg_has_role(nspowner, 'USAGE')`, madeBy)
	if err != nil {
		return d.environment("look for schemas of dead runs", err)
	}
	dead, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return d.environment("look for schemas of dead runs", err)
	}
	for _, schema := range dead {
		var free bool
		if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1::int, hashtext($2))", lockClass, schema).Scan(&free); err != nil {
			return d.environment("look for schemas of dead runs", err)
		}
		if !free {
			continue // its run is alive
		}
		_, err := conn.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{schema}.Sanitize()+" CASCADE")
		_, e := conn.Exec(ctx, "SELECT pg_advisory_unlock($1::int, hashtext($2))", lockClass, schema)
		if err := errors.Join(err, e); err != nil {
			return d.environment("drop the schema of a dead run", err)
		}
	}
	return nil
}

// shareSchema makes a schema that several processes share, with its tables, unless one of them has.
func (d *Database) shareSchema(ctx context.Context) error {
	d.sweeper.mu.Lock()
	defer d.sweeper.mu.Unlock()
	err := pgx.BeginFunc(ctx, d.sweeper.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1::int, hashtext($2))", lockClass, d.schema); err != nil {
			return err
		}
		var there bool
		if err := tx.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", pgx.Identifier{d.schema, "orders"}.Sanitize()).Scan(&there); err != nil || there {
			return err
		}
		_, err := tx.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{d.schema}.Sanitize()+"; "+tablesIn(d.schema, "").create)
		return err
	})
	if err != nil {
		return d.environment("create the schema "+d.schema, err)
	}
	return nil
}

// dropSchema drops the run's schema, and no other.
func (d *Database) dropSchema() error {
	if d.schema == "" || d.kept() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := d.sweeper.exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{d.schema}.Sanitize()+" CASCADE")
	if err != nil {
		return d.environment("drop the schema "+d.schema, err)
	}
	return nil
}

// kept reports whether the schema is not dropped at the end: because it is not the run's own, or
// because its server ends with it.
func (d *Database) kept() bool { return d.options.Schema != "" || d.options.Private }

// tables are the statements over the tables of one seat.
type tables struct {
	create, clear, shrink         string
	claim, takeOver, insert, read string
	finish, release, expire       string
	order, placed                 string
	readShared, addTo, set        string
	put, remove                   string
	count, effects                string
	enter, entries, entriesOf     string
	idempotencyName, sharedName   string
}

// plain are the statements as a report shows them: without the names of a run's own.
var plain = tablesIn("", "")

// readEntries is the statement that reads ledgers, whichever entries of them.
const readEntries = "SELECT ledger, operation, send, node, coalesce(reference, ''), amount_minor, created_us FROM {ledger}"

// tablesIn returns the statements for the tables of a schema, which have a suffix for each seat.
func tablesIn(schema, suffix string) tables {
	name := func(table string) string {
		if schema == "" {
			return table
		}
		return pgx.Identifier{schema, table + suffix}.Sanitize()
	}
	orders, keys, shared := name("orders"), name("idempotency"), name("shared")
	in := strings.NewReplacer("{orders}", orders, "{keys}", keys, "{shared}", shared, "{ledger}", name("ledger")).Replace
	return tables{
		idempotencyName: keys, sharedName: shared,
		create: in(`CREATE TABLE {orders} (
			id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
			operation text NOT NULL,
			send text NOT NULL,
			node text NOT NULL,
			idem_key text,
			reference text UNIQUE,
			amount_minor bigint NOT NULL,
			created_us bigint NOT NULL
		);
		CREATE INDEX ` + "orders" + suffix + `_by_operation ON {orders} (operation);
		CREATE INDEX ` + "orders" + suffix + `_by_key ON {orders} (idem_key);
		CREATE TABLE {keys} (
			idem_key text PRIMARY KEY,
			status smallint NOT NULL CHECK (status IN (0, 1, 2)),
			request_hash text NOT NULL,
			owner text NOT NULL,
			fence bigint NOT NULL DEFAULT 1,
			claimed_us bigint NOT NULL,
			lease_until_us bigint,
			response_code integer NOT NULL DEFAULT 0,
			response_body bytea,
			CHECK (status = 0 OR response_code <> 0)
		);
		CREATE TABLE {shared} (name text PRIMARY KEY, value text NOT NULL, version bigint NOT NULL DEFAULT 1);
		CREATE TABLE {ledger} (
			id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
			ledger text NOT NULL,
			operation text NOT NULL,
			send text NOT NULL,
			node text NOT NULL,
			reference text,
			amount_minor bigint NOT NULL,
			created_us bigint NOT NULL,
			UNIQUE (ledger, reference)
		);
		CREATE INDEX ON {ledger} (ledger, send)`),
		// Rows of one trial are fewer than it pays to make new files for.
		clear: in("DELETE FROM {orders}; DELETE FROM {keys}; DELETE FROM {shared}; DELETE FROM {ledger};" +
			" SELECT setval(pg_get_serial_sequence('{orders}', 'id'), 1, false)"),
		shrink: in("TRUNCATE {orders}, {keys}, {shared}, {ledger} RESTART IDENTITY"),
		claim: in("INSERT INTO {keys} (idem_key, status, request_hash, owner, claimed_us, lease_until_us) VALUES ($1, 0, $2, $3, $4, $5)" +
			" ON CONFLICT DO NOTHING RETURNING fence"),
		takeOver: in("INSERT INTO {keys} AS held (idem_key, status, request_hash, owner, claimed_us, lease_until_us) VALUES ($1, 0, $2, $3, $4, $5)" +
			" ON CONFLICT (idem_key) DO UPDATE" +
			" SET owner = excluded.owner, fence = held.fence + 1, claimed_us = excluded.claimed_us, lease_until_us = excluded.lease_until_us" +
			" WHERE held.status = 0 AND held.lease_until_us <= excluded.claimed_us AND held.request_hash = excluded.request_hash" +
			" RETURNING fence"),
		insert: in("INSERT INTO {keys} (idem_key, status, request_hash, owner, claimed_us, lease_until_us) VALUES ($1, 0, $2, $3, $4, $5)"),
		read:   in("SELECT status, request_hash, owner, fence, response_code, response_body FROM {keys} WHERE idem_key = $1"),
		finish: in("UPDATE {keys} SET status = $4, response_code = $5, response_body = $6, lease_until_us = NULL" +
			" WHERE idem_key = $1 AND ($2 = '' OR status = 0 AND owner = $2) AND ($3 = 0 OR status = 0 AND fence = $3)"),
		release: in("DELETE FROM {keys} WHERE idem_key = $1 AND ($2 = '' OR owner = $2) AND ($3 = 0 OR fence = $3)"),
		expire: in("DELETE FROM {keys} WHERE ($1 = '' OR idem_key = $1)" +
			" AND claimed_us <= CASE status WHEN 0 THEN $2::bigint ELSE $3::bigint END"),
		order: in("INSERT INTO {orders} (operation, send, node, idem_key, reference, amount_minor, created_us)" +
			" VALUES ($1, $2, $3, nullif($4, ''), nullif($5, ''), $6, $7) RETURNING id"),
		placed:     in("SELECT id FROM {orders} WHERE idem_key = $1 ORDER BY id LIMIT 1"),
		readShared: in("SELECT value, version FROM {shared} WHERE name = $1"),
		addTo: in("INSERT INTO {shared} AS row (name, value) VALUES ($1, $2::bigint::text)" +
			" ON CONFLICT (name) DO UPDATE SET value = (row.value::bigint + $2::bigint)::text, version = row.version + 1"),
		set: in("UPDATE {shared} SET value = $2, version = version + 1" +
			" WHERE name = $1 AND value <> $2 AND ($3 = '' OR value = $3) AND ($4 = 0 OR version = $4)"),
		put: in("INSERT INTO {shared} AS row (name, value) VALUES ($1, $2)" +
			" ON CONFLICT (name) DO UPDATE SET value = excluded.value, version = row.version + 1 WHERE row.value <> excluded.value"),
		remove: in("DELETE FROM {shared} WHERE name = $1 AND ($2 = '' OR value = $2)"),
		enter: in("INSERT INTO {ledger} (ledger, operation, send, node, reference, amount_minor, created_us)" +
			" VALUES ($1, $2, $3, $4, nullif($5, ''), $6, $7) ON CONFLICT DO NOTHING"),
		entries:   in(readEntries + ` ORDER BY ledger COLLATE "C", id`),
		entriesOf: in(readEntries + " WHERE ledger = $1 AND send = $2 ORDER BY id"),
		count:     in("SELECT count(*) FROM {orders} WHERE operation = $1"),
		effects:   in("SELECT id, operation, send, node, coalesce(idem_key, ''), amount_minor, created_us FROM {orders} ORDER BY id"),
	}
}
