package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"retrylab/slowserver/store"
)

// secret is a password that no message may show.
const secret = "hunter2-geheim"

// admin performs statements as the superuser of the tests' server.
func admin(t *testing.T, statements ...string) {
	t.Helper()
	if cluster == nil {
		t.Skip("there is no PostgreSQL on this machine")
	}
	conn, err := pgx.Connect(t.Context(), cluster.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, s := range statements {
		if _, err := conn.Exec(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// dsn is the tests' server as a user sees it who is not its superuser.
func dsn(user, password, database string) string {
	dir, port := cluster.Socket()
	u := url.URL{Scheme: "postgres", User: url.UserPassword(user, password), Path: "/" + database}
	u.RawQuery = url.Values{"host": {dir}, "port": {fmt.Sprint(port)}, "sslmode": {"disable"}}.Encode()
	return u.String()
}

// role makes a role that may log in, and drops it at the end of the test with all that it owns.
func role(t *testing.T, name, options string) {
	t.Helper()
	admin(t, fmt.Sprintf("CREATE ROLE %s LOGIN %s", name, options))
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), cluster.DSN())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		if _, err := conn.Exec(context.Background(), "DROP OWNED BY "+name+"; DROP ROLE "+name); err != nil {
			t.Error(err)
		}
	})
}

// TestEnvironment has a message of its own for each thing that can be wrong with a server.
func TestEnvironment(t *testing.T) {
	if cluster == nil {
		t.Skip("there is no PostgreSQL on this machine")
	}
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "PG") {
			t.Setenv(name, "")
		}
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	closed.Close()

	conn, err := pgx.Connect(t.Context(), cluster.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var hba string
	if err := conn.QueryRow(t.Context(), "SHOW hba_file").Scan(&hba); err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile(hba)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hba, append([]byte("local all locked scram-sha-256\n"), rules...), 0o600); err != nil {
		t.Fatal(err)
	}
	role(t, "locked", "PASSWORD 'right'")
	role(t, "poor", "")
	role(t, "reader", "")
	role(t, "few", "CONNECTION LIMIT 0")
	admin(t, "SELECT pg_reload_conf()", "ALTER ROLE reader SET default_transaction_read_only = on")

	cases := []struct {
		name, dsn, want string
	}{
		{"nobody listens", "postgres://u:" + secret + "@" + nobody + "/d", `database "d" at ` + nobody + ` cannot be reached: nobody listens there (connection refused)`},
		{"no such socket", "postgres://u:" + secret + "@/d?host=/nonexistent/dir", `database "d" at the socket in /nonexistent/dir cannot be reached: there is no such socket`},
		{"a wrong password", dsn("locked", secret, "postgres"), `refuses user "locked": password authentication failed for user "locked"`},
		{"no such role", dsn("nosuch", secret, "postgres"), `refuses user "nosuch": role "nosuch" does not exist`},
		{"no such database", dsn("postgres", secret, "nosuch"), `database "nosuch" does not exist`},
		{"may not create", dsn("poor", secret, "postgres"), `does not let user "poor" create a schema: permission denied for database`},
		{"read-only", dsn("reader", secret, "postgres"), `is read-only: orders cannot be written there`},
		{"no connection left", dsn("few", secret, "postgres"), `takes no more connections: too many connections for role "few"`},
		{"a port that is none", "postgres://u:" + secret + "@h:99999999/d", "the connection string cannot be read: invalid port"},
		{"a scheme and no more", "postgres://u:" + secret + "@[", "the connection string cannot be read: it is no URL"},
		{"a space in it", "postgres://u:" + secret + " x@h:port/d", "the connection string cannot be read: it is no URL"},
		{"an unknown mode of TLS", "postgres://u:" + secret + "@h/d?sslmode=perhaps", "the connection string cannot be read: sslmode is invalid"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d, err := Open(t.Context(), Options{DSN: c.dsn, Jobs: 1})
			if err == nil {
				d.Close()
				t.Fatal("it was opened")
			}
			for e := err; e != nil; e = errors.Unwrap(e) {
				if strings.Contains(fmt.Sprintf("%v %+v %q", e, e, e), secret) {
					t.Errorf("the password is in %T: %v", e, e)
				}
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q, want one line with %q", err, c.want)
			}
		})
	}
}

func TestUnfit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		number               int
		readOnly, recovering bool
		want                 string
	}{
		{120019, false, false, "here runs PostgreSQL v: too old; 13 or newer is needed"},
		{90624, true, true, "here runs PostgreSQL v: too old; 13 or newer is needed"},
		{170002, true, true, "here is a standby, which takes no writes: name the primary"},
		{170002, true, false, "here is read-only: orders cannot be written there (default_transaction_read_only is on for this database or role)"},
		{130000, false, false, ""},
	} {
		got := ""
		if err := unfit("here", c.number, "v", c.readOnly, c.recovering); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c, got, c.want)
		}
	}
}

// schemas lists the schemas that a run's role owns.
func schemas(t *testing.T, d *Database) []string {
	t.Helper()
	rows, err := d.sweeper.conn.Query(t.Context(), "SELECT nspname::text FROM pg_namespace WHERE pg_get_userbyid(nspowner) = current_user")
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestSchemas opens a database as a user sees it: the run has a schema of its own, drops it at the
// end, and with it those of dead runs; no other is touched.
func TestSchemas(t *testing.T) {
	role(t, "owner", "")
	admin(t, "GRANT CREATE ON DATABASE postgres TO owner")
	theirs := dsn("owner", "", "postgres")
	conn, err := pgx.Connect(t.Context(), theirs)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	// Two that look like a run's and are none, and one that a dead run has left.
	_, err = conn.Exec(t.Context(), "CREATE SCHEMA retrylab_0123456789ab; CREATE SCHEMA retrylab_mine;"+
		" CREATE SCHEMA retrylab_dead00000000; COMMENT ON SCHEMA retrylab_dead00000000 IS '"+madeBy+"';"+
		" COMMENT ON SCHEMA retrylab_mine IS '"+madeBy+"'")
	if err != nil {
		t.Fatal(err)
	}
	first, err := Open(t.Context(), Options{DSN: theirs, Jobs: 1, Mode: "server"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := Open(t.Context(), Options{DSN: theirs, Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := schemas(t, first), []string{"retrylab_0123456789ab", "retrylab_mine", first.schema, second.schema}; !sameNames(got, want) {
		t.Errorf("schemas %q, want %q", got, want)
	}
	if first.detects || !strings.Contains(first.Info().Settings["deadlocks"], "may not set") {
		t.Errorf("a role that is no superuser sets deadlock_timeout: %v, %q", first.detects, first.Info().Settings["deadlocks"])
	}
	journal := play(t, first, plots[0].f)
	if diff := cmp.Diff(plots[0].want, journal); diff != "" {
		t.Errorf("as an ordinary role (-want +got):\n%s", diff)
	}
	for range 2 {
		if err := first.Close(); err != nil {
			t.Error(err)
		}
	}
	if got, want := schemas(t, second), []string{"retrylab_0123456789ab", "retrylab_mine", second.schema}; !sameNames(got, want) {
		t.Errorf("schemas %q, want %q", got, want)
	}

	// The second is left at once, in the middle of a trial.
	seat, err := second.Seat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := seat.Open(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tx, err := s.Begin(t.Context(), "open", store.TxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Claim(t.Context(), "k", by); err != nil {
		t.Fatal(err)
	}
	if err := second.Abandon(); err != nil {
		t.Error(err)
	}
	if got, want := schemas(t, second), []string{"retrylab_0123456789ab", "retrylab_mine"}; !sameNames(got, want) {
		t.Errorf("schemas %q, want %q", got, want)
	}
	if err := tx.Commit(); !errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("committed with %v", err)
	}
	if s.(*Store).Lost() == nil {
		t.Error("that the database is gone was not noticed")
	}
	if err := errors.Join(seat.Leave(), second.Close()); err != nil {
		t.Error(err)
	}
}

var by = store.Claim{Hash: "h", Owner: "o"}

func sameNames(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// TestSharedSchema opens one that several processes share: they see the same orders, and it stays.
func TestSharedSchema(t *testing.T) {
	admin(t)
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), cluster.DSN())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		if _, err := conn.Exec(context.Background(), "DROP SCHEMA shared_by_all CASCADE"); err != nil {
			t.Error(err)
		}
	})
	var stores []store.Store
	for range 2 {
		d := open(t, Options{Schema: "shared_by_all"})
		s, err := sit(t, d).Open(store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, s)
	}
	tx, err := stores[0].Begin(t.Context(), "first", store.TxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Order(t.Context(), store.Order{Operation: "op-1", Send: "s", Node: "n", Amount: 1}); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if n, err := stores[1].Count(t.Context(), "op-1"); err != nil || n != 1 {
		t.Errorf("the other process sees %d orders, %v; want 1", n, err)
	}
}

// TestNothingOfTheEnvironment starts as if PostgreSQL's variables were set for something else.
func TestNothingOfTheEnvironment(t *testing.T) {
	admin(t)
	for name, value := range map[string]string{
		"PGHOST": "example.invalid", "PGPORT": "1", "PGUSER": "nobody", "PGPASSWORD": secret, "PGDATABASE": "nosuch",
		"PGOPTIONS": "-c statement_timeout=1", "PGSSLMODE": "require", "PGPASSFILE": filepath.Join(t.TempDir(), "none"),
	} {
		t.Setenv(name, value)
	}
	d := open(t, Options{Private: true})
	if journal := play(t, d, plots[0].f); len(journal) != len(plots[0].want) {
		t.Errorf("%q", journal)
	}
}
