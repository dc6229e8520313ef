//go:build unix

package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"retrylab/internal/lab"
	"retrylab/internal/pgcluster"
	"retrylab/internal/redisserver"
)

// needed skips a test where a program is not installed; where everything is to be tested it fails.
func needed(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		switch there, err := condition(name); {
		case err != nil:
			t.Fatal(err)
		case !there:
			t.Skip("there is no ", name, " on this machine")
		}
	}
}

// eventually waits until a condition holds that nobody reports.
func eventually(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for !holds() {
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain for %v: %s", limit, what)
		}
	}
}

// minutesOnServers is like minutes, with a transaction that is open while the order is worked on, and
// a key in Redis.
const minutesOnServers = `
name: minutes
caller: {key: operation}
server: {guard: same-transaction}
variants:
  - {name: quick, set: {server.processing: 10ms}, expect: {effects: 1}}
  - {name: slow, set: {server.processing: 9m}, expect: {effects: 1}}
`

const minutesWithKeys = `
name: minutes
caller: {key: operation}
server: {guard: redis-precheck}
variants:
  - {name: quick, set: {server.processing: 10ms}, expect: {effects: 1}}
  - {name: slow, set: {server.processing: 9m}, expect: {effects: 1}}
`

// server is a PostgreSQL of a test's own, which stands for one that is there already.
type server struct {
	t    *testing.T
	conn *pgx.Conn // of its superuser
	host string
	port int
}

// known is a password that no output may show. It is that of the user who must name one.
const known = "hunter2-geheim"

// newServer starts a server with a user locked, who must name the password known, and a user
// reader, who may not write.
func newServer(t *testing.T) *server {
	t.Helper()
	needed(t, "postgres")
	// What PostgreSQL's variables say is for others.
	c, err := pgcluster.Start(t.Context(), pgcluster.Options{Temp: room(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	s := &server{t: t}
	s.host, s.port = c.Socket()
	if s.conn, err = pgx.Connect(t.Context(), c.DSN()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.conn.Close(context.Background()) })
	var hba string
	if err := s.conn.QueryRow(t.Context(), "SHOW hba_file").Scan(&hba); err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile(hba)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hba, append([]byte("local all locked scram-sha-256\n"), rules...), 0o600); err != nil {
		t.Fatal(err)
	}
	s.do("CREATE ROLE locked LOGIN PASSWORD '"+known+"'", "GRANT CREATE ON DATABASE postgres TO locked",
		"CREATE ROLE reader LOGIN", "ALTER ROLE reader SET default_transaction_read_only = on",
		// What is there beside: of the user, of somebody else, and one that is called as a run's are.
		"CREATE SCHEMA theirs AUTHORIZATION locked", "CREATE TABLE theirs.orders AS SELECT 4711 AS id",
		"CREATE SCHEMA other", "CREATE SCHEMA retrylab_0123456789ab AUTHORIZATION locked")
	s.do("SELECT pg_reload_conf()")
	eventually(t, time.Minute, "the rule that demands a password", func() bool {
		conn, err := pgx.Connect(t.Context(), s.dsn("locked", "wrong", "postgres"))
		if err == nil {
			conn.Close(t.Context())
		}
		return err != nil
	})
	return s
}

func (s *server) do(statements ...string) {
	s.t.Helper()
	for _, text := range statements {
		if _, err := s.conn.Exec(s.t.Context(), text); err != nil {
			s.t.Fatalf("%s: %v", text, err)
		}
	}
}

// dsn is how a user reaches the server.
func (s *server) dsn(user, password, database string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(user, password), Path: "/" + database}
	u.RawQuery = url.Values{"host": {s.host}, "port": {fmt.Sprint(s.port)}, "sslmode": {"disable"}}.Encode()
	return u.String()
}

// list returns the one column of a query.
func (s *server) list(query string, args ...any) []string {
	s.t.Helper()
	rows, err := s.conn.Query(s.t.Context(), query, args...)
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// asBefore checks that nothing of a run is left in the database, and that nothing else has gone.
func (s *server) asBefore() {
	s.t.Helper()
	eventually(s.t, time.Minute, "the sessions of the run", func() bool {
		return len(s.list("SELECT pid::text FROM pg_stat_activity WHERE application_name = 'retrylab'")) == 0
	})
	got := s.list("SELECT nspname::text FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema$)' ORDER BY 1")
	if want := []string{"other", "public", "retrylab_0123456789ab", "theirs"}; !slices.Equal(got, want) {
		s.t.Errorf("there are the schemas %q, want %q", got, want)
	}
	tables := s.list("SELECT relnamespace::regnamespace || '.' || relname FROM pg_class" +
		" WHERE relnamespace IN (SELECT oid FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema$)') ORDER BY 1")
	if rows := s.list("SELECT id::text FROM theirs.orders"); !slices.Equal(tables, []string{"theirs.orders"}) || !slices.Equal(rows, []string{"4711"}) {
		s.t.Errorf("there are the tables %q, and in theirs %q", tables, rows)
	}
}

// working waits until a transaction of a run has been open for so long that it is that of the slow
// trial, in real time.
func working(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	eventually(t, time.Minute, "a transaction that stays open", func() bool {
		var open bool
		err := conn.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'retrylab'
			AND state = 'idle in transaction' AND clock_timestamp() - xact_start > '1 s')`).Scan(&open)
		return err == nil && open
	})
}

// startOnServers starts the run of a scenario that takes minutes, on a PostgreSQL and with Redis of
// its own, and waits until it is at the slow trial.
func startOnServers(t *testing.T, args ...string) *running {
	t.Helper()
	needed(t, "postgres")
	r := start(t, minutesOnServers, append([]string{"--store", "postgres", "--clock", "wall", "--jobs", "1"}, args...)...)
	conn := r.connect()
	working(t, conn)
	conn.Close(t.Context())
	return r
}

// connect waits for the PostgreSQL of the run's own, and connects to it.
func (r *running) connect() (conn *pgx.Conn) {
	r.t.Helper()
	eventually(r.t, time.Minute, "the server of the run", func() bool {
		found, err := filepath.Glob(filepath.Join(r.dir, "tmp", "rl-pg-*", "s"))
		if err != nil || len(found) != 1 {
			return false
		}
		conn, err = pgx.Connect(r.t.Context(), "user=postgres dbname=postgres sslmode=disable port=5432 host="+found[0])
		return err == nil
	})
	return conn
}

// startWithKeys is the same with orders in the embedded database and keys in a redis-server.
func startWithKeys(t *testing.T, args ...string) *running {
	t.Helper()
	needed(t, "redis-server")
	r := start(t, minutesWithKeys, append([]string{"--redis", "server", "--clock", "wall", "--jobs", "1"}, args...)...)
	r.await("trial-6*")
	eventually(t, time.Minute, "the redis-server of the trial", func() bool {
		found, err := filepath.Glob(filepath.Join(r.dir, "tmp", "retrylab-redis-*", "s"))
		return err == nil && len(found) == 1
	})
	return r
}

// servers lists the processes of servers that work in the run's directory. A zombie is none: it is
// nowhere any more.
func (r *running) servers() []string {
	r.t.Helper()
	var out []string
	found, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, process := range found {
		// One that ends meanwhile is gone.
		dir, err := os.Readlink(filepath.Join(process, "cwd"))
		if err != nil || !strings.HasPrefix(dir, filepath.Join(r.dir, "tmp")+"/") {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(process, "cmdline"))
		out = append(out, filepath.Base(process)+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
	}
	return out
}

// TestInterruptOnServers ends a run that has servers of its own: once, so that it reports what is
// complete, and twice, so that it leaves at once. Nothing is left of the servers.
func TestInterruptOnServers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		start func(*testing.T, ...string) *running
	}{{"postgres", startOnServers}, {"redis", startWithKeys}} {
		t.Run(c.name+" once", func(t *testing.T) {
			t.Parallel()
			r := c.start(t, "--format", "json", "-o", "result.json")
			if runtime.GOOS == "linux" && len(r.servers()) == 0 {
				t.Error("no server can be seen")
			}
			r.end(syscall.SIGINT, 130)
			doc := r.document("result.json")
			if len(doc.Results) != 1 || doc.Results[0].ID != "quick" || doc.Results[0].Verdict != lab.AsExpected {
				t.Errorf("the results are %+v", doc.Results)
			}
			if doc.ExitCode != 130 || !doc.Run.Interrupted {
				t.Errorf("the document says %d, interrupted %v", doc.ExitCode, doc.Run.Interrupted)
			}
		})
		t.Run(c.name+" twice", func(t *testing.T) {
			t.Parallel()
			r := c.start(t)
			r.twice.Store(true)
			r.end(syscall.SIGINT, 130)
		})
	}
	// Not in the middle, but as soon as there is anything.
	for _, name := range []string{"once", "twice"} {
		t.Run("a start "+name, func(t *testing.T) {
			t.Parallel()
			needed(t, "postgres")
			r := start(t, minutesOnServers, "--store", "postgres", "--clock", "wall")
			if name == "twice" {
				r.twice.Store(true)
			}
			eventually(t, time.Minute, "the directory of the server", func() bool {
				found, err := filepath.Glob(filepath.Join(r.dir, "tmp", "rl-pg-*"))
				return err == nil && len(found) == 1
			})
			r.end(syscall.SIGINT, 130)
		})
	}
}

// TestKilled kills the program in the middle of a run. Its servers end, their directories stay, and
// the next run removes them.
func TestKilled(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere nothing ends a server whose program was killed but the next run")
	}
	for _, c := range []struct {
		name  string
		start func(*testing.T, ...string) *running
		left  string
		next  []string
	}{
		{"postgres", startOnServers, "rl-pg-*", []string{"--store", "postgres"}},
		{"redis", startWithKeys, "retrylab-redis-*", []string{"--redis", "server"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := c.start(t)
			left := func() []string {
				found, err := filepath.Glob(filepath.Join(r.dir, "tmp", c.left))
				if err != nil {
					t.Fatal(err)
				}
				return found
			}
			before := left()
			if len(before) == 0 || len(r.servers()) == 0 {
				t.Fatalf("in the middle there is %q, and the servers are %q", before, r.servers())
			}
			if err := r.command.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			r.command.Wait()
			eventually(t, 2*time.Second, "the end of the servers", func() bool { return len(r.servers()) == 0 })
			if got := left(); !slices.Equal(got, before) {
				t.Errorf("of %q there is %q", before, got)
			}
			next := exec.CommandContext(t.Context(), "retrylab", append([]string{"run", "mine.yaml", "--only", "quick"}, c.next...)...)
			next.Dir, next.Env = r.dir, r.command.Env
			if out, err := next.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if got := left(); len(got) > 0 {
				t.Errorf("after the next run there is %q", got)
			}
		})
	}
}

// TestServerLost kills the server in the middle of a run: that is no verdict on anything, what was
// seen before is reported, and nothing is left.
func TestServerLost(t *testing.T) {
	t.Parallel()
	needed(t, "postgres")
	r := start(t, "name: many\n", "--store", "postgres", "--repeat", "2000", "--jobs", "1", "--format", "json", "-o", "result.json")
	conn := r.connect()
	defer conn.Close(context.Background())
	eventually(t, time.Minute, "the tables of a trial", func() bool {
		var there bool
		return conn.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM pg_class WHERE relname LIKE 'orders%')").Scan(&there) == nil && there
	})
	files, err := filepath.Glob(filepath.Join(r.dir, "tmp", "rl-pg-*", "data", "postmaster.pid"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	content, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.command.Wait()
	if code := r.command.ProcessState.ExitCode(); code != 3 || r.stdout.Len() > 0 {
		t.Errorf("it exits with %d: %s", code, r.stdout.String())
	}
	if said := r.stderr.String(); !strings.HasPrefix(said, "retrylab: stop the private PostgreSQL: the server had ended by itself: signal: killed:\n") || strings.Contains(said, "goroutine") {
		t.Errorf("it says %q", said)
	}
	doc := r.document("result.json")
	if len(doc.Results) != 2000 || doc.Summary.Inconclusive == 0 || doc.Summary.Inconclusive+doc.Summary.Measured != 2000 || doc.ExitCode != 3 {
		t.Errorf("%d results, %+v, exit %d", len(doc.Results), doc.Summary, doc.ExitCode)
	}
	for _, result := range doc.Results {
		if result.Verdict == lab.Inconclusive && (!result.Environment || result.Defect) {
			t.Errorf("seed %d is taken for something else: %s", result.Seed, result.Why)
			break
		}
	}
	if left, err := os.ReadDir(filepath.Join(r.dir, "tmp")); err != nil || len(left) > 0 || len(r.servers()) > 0 {
		t.Errorf("it leaves %v (%v), %v", left, err, r.servers())
	}
}

// TestDatabaseOfOthers runs on a database that is there already: afterwards it is as it was.
func TestDatabaseOfOthers(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	dsn := s.dsn("locked", known, "postgres")
	for _, c := range []struct {
		name string
		code int
		args []string
	}{
		{"held", 0, []string{"read-timeout", "commit-reply-lost"}},
		{"not held", 1, []string{"read-timeout:one-attempt", "--set", "server.processing=1s"}},
		{"too late", 5, []string{"read-timeout", "--repeat", "500", "--time-limit", "200ms"}},
	} {
		got := runMain(append([]string{"run", "--store", dsn}, c.args...)...)
		if got.code != c.code || got.stderr != warned {
			t.Errorf("%s: it exits with %d: %s", c.name, got.code, got.stderr)
		}
		if c.code == 0 && !strings.Contains(got.stdout, ", server; chosen by: --store\n") {
			t.Errorf("%s: the report does not say what it ran on:\n%s", c.name, got.stdout)
		}
		s.asBefore()
	}
	for _, name := range []string{"once", "twice"} {
		r := start(t, minutesOnServers, "--store", dsn, "--clock", "wall", "--jobs", "1")
		r.twice.Store(name == "twice")
		working(t, s.conn)
		if n := len(s.list("SELECT nspname::text FROM pg_namespace WHERE nspname ~ '^retrylab_' AND nspname <> 'retrylab_0123456789ab'")); n != 1 {
			t.Errorf("in the middle there are %d schemas of a run", n)
		}
		r.end(syscall.SIGINT, 130)
		s.asBefore()
	}
	// What a run leaves that was killed is removed by the next.
	r := start(t, minutesOnServers, "--store", dsn, "--clock", "wall", "--jobs", "1")
	working(t, s.conn)
	if err := r.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	r.command.Wait()
	eventually(t, time.Minute, "the end of its sessions", func() bool {
		return len(s.list("SELECT pid::text FROM pg_stat_activity WHERE application_name = 'retrylab'")) == 0
	})
	if got := runMain("run", "read-timeout:one-attempt", "--store", dsn); got.code != 0 {
		t.Errorf("the next run exits with %d: %s", got.code, got.stderr)
	}
	s.asBefore()
}

// warned is what is said of a password in a flag.
const warned = "retrylab: warning: there is a password in --store, which others can read in the list of processes; RETRYLAB_STORE hides it\n"

// TestRefusedByDatabase has one message for each reason of a database, and nothing on standard
// output.
func TestRefusedByDatabase(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, c := range []struct{ name, dsn, want string }{
		{"a wrong password", s.dsn("locked", "wrong", "postgres"), `refuses user "locked": password authentication failed for user "locked"`},
		{"no such role", s.dsn("nobody-there", known, "postgres"), `refuses user "nobody-there": role "nobody-there" does not exist`},
		{"no such database", s.dsn("postgres", known, "nowhere"), `database "nowhere" does not exist`},
		{"may not write", s.dsn("reader", known, "postgres"), "is read-only: orders cannot be written there (default_transaction_read_only is on for this database or role)"},
	} {
		got := runMain("run", "read-timeout", "--store", c.dsn)
		what, hint, _ := strings.Cut(strings.TrimPrefix(got.stderr, warned), "\n")
		if got.code != 3 || got.stdout != "" || !strings.HasPrefix(what, `retrylab: open store postgres: database "`) || !strings.HasSuffix(what, c.want) {
			t.Errorf("%s: got %+v, want exit 3 and %q", c.name, got, c.want)
		}
		if !strings.HasPrefix(hint, "  other ways: --store postgres starts one") || strings.Count(hint, "\n") != 1 || strings.Contains(hint, "postgres://") {
			t.Errorf("%s: the hint is %q", c.name, hint)
		}
	}
	s.asBefore()
}

// TestPasswords looks for a password in everything that the tool writes, whatever becomes of the run.
func TestPasswords(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	closed.Close()
	reachable := s.dsn("locked", known, "postgres")
	type place struct {
		name, store, redis string
		code               int
	}
	places := []place{
		{"reachable", reachable, "", 0},
		{"reachable, the password beside", strings.Replace(reachable, ":"+known+"@", "@", 1) + "&password=" + known, "", 0},
		{"another's password", s.dsn("locked", known+"x", "postgres"), "", 3},
		{"no such database", s.dsn("postgres", known, "nowhere"), "", 3},
		{"unreachable", "postgres://me:" + known + "@" + nobody + "/d", "", 3},
		{"no such host", "postgres://me:" + known + "@no-such-host.invalid/d", "", 3},
		{"unreadable", "postgres://me:" + known + "@h:port/d", "", 3},
		{"unreadable as a URL", "postgres://me:" + known + "%zz@h/d", "", 3},
		{"no known word", "postgres://me:" + known + "@h/d?sslmode=" + known, "", 3},
		{"no URL", "password=" + known, "", 2},
		{"another scheme", "mysql://me:" + known + "@h/d", "", 2},
		{"Redis, unreachable", "sqlite", "redis://me:" + known + "@" + nobody, 3},
		{"Redis, unreadable", "sqlite", "redis://me:" + known + "@h:port", 3},
		{"Redis, another scheme", "sqlite", "http://me:" + known + "@h", 2},
	}
	if there, err := condition("redis-server"); err != nil || there {
		keys, err := redisserver.Start(t.Context(), redisserver.Options{Parent: room(t)})
		if err != nil {
			t.Fatal(err)
		}
		defer keys.Stop()
		_, path := keys.Addr()
		places = append(places,
			place{"Redis", reachable, "unix://:" + keys.Password() + "@" + path, 0},
			place{"Redis, another's password", "sqlite", "unix://:" + known + "@" + path, 3},
		)
	}
	for _, p := range places {
		secrets := []string{known}
		if u, err := url.Parse(p.redis); err == nil && u.User != nil {
			if password, ok := u.User.Password(); ok {
				secrets = append(secrets, password)
			}
		}
		for _, args := range [][]string{
			{"--format", "table", "-v", "--rows", "--timeline", "always"},
			{"--format", "json", "-v"},
			{"--format", "json", "-o", "result.json"},
			{"--wide", "-v", "-o", "result.txt"},
		} {
			r := &running{t: t, dir: room(t)}
			tmp := filepath.Join(r.dir, "tmp")
			if err := errors.Join(os.Mkdir(tmp, 0o755), os.WriteFile(filepath.Join(r.dir, "mine.yaml"), []byte(sentTwice), 0o644)); err != nil {
				t.Fatal(err)
			}
			command := exec.CommandContext(t.Context(), "retrylab", append([]string{"run", "mine.yaml"}, args...)...)
			command.Dir = r.dir
			command.Env = append(os.Environ(), "TMPDIR="+tmp, "GORACE="+noNap, "RETRYLAB_DEBUG=1", "RETRYLAB_STORE="+p.store, "RETRYLAB_REDIS="+p.redis)
			if args[1] == "json" { // the one way or the other
				command.Args = append(command.Args, "--store", p.store)
				if p.redis != "" {
					command.Args = append(command.Args, "--redis", p.redis)
				}
			}
			said, err := command.CombinedOutput()
			code := command.ProcessState.ExitCode()
			if code != p.code || p.code == 0 && err != nil {
				t.Errorf("%s %q: it exits with %d, not %d: %s", p.name, args, code, p.code, said)
			}
			written := map[string][]byte{"what it says": said}
			err = filepath.WalkDir(r.dir, func(path string, entry fs.DirEntry, err error) error {
				if err == nil && entry.Type().IsRegular() {
					written[path], err = os.ReadFile(path)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if wrote := len(written) == 3; wrote != (p.code == 0 && slices.Contains(args, "-o")) {
				t.Errorf("%s %q: %d files", p.name, args, len(written)-1)
			}
			for where, text := range written {
				for _, secret := range secrets {
					if bytes.Contains(text, []byte(secret)) {
						t.Errorf("%s %q: a password is in %s:\n%s", p.name, args, where, text)
					}
				}
			}
		}
	}
	s.asBefore()
}

// sentTwice has a key in Redis, and a duplicate, so that there is something to report.
const sentTwice = `
name: mine
caller: {key: operation, timeouts: {read: 5s}, layers: [{preset: feign-retryer, attempts: 2, period: 1s, max-period: 1s}]}
server: {guard: redis-precheck, processing: 12s}
`

// TestNothingOfEnvironment: neither what is meant for others nor a lack of what most people have
// changes what a run stands on.
func TestNothingOfEnvironment(t *testing.T) {
	t.Parallel()
	needed(t, "postgres")
	for name, change := range map[string]func(env []string) []string{
		"no home at all": func(env []string) []string {
			return slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, "HOME=") || strings.HasPrefix(v, "XDG_") })
		},
		"a home that is none": func(env []string) []string { return append(env, "HOME=/dev/null", "XDG_CACHE_HOME=/dev/null/cache") },
		"PostgreSQL's variables": func(env []string) []string {
			return append(env, "PGHOST=example.invalid", "PGUSER=nobody", "PGPASSWORD="+known, "PGDATABASE=nowhere", "PGSSLMODE=require",
				"DATABASE_URL=postgres://u:"+known+"@example.invalid/d")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := room(t)
			command := exec.CommandContext(t.Context(), "retrylab", "run", "read-timeout:one-attempt", "--store", "postgres", "-v")
			command.Env = change(append(os.Environ(), "TMPDIR="+dir, "GORACE="+noNap))
			out, err := command.CombinedOutput()
			if err != nil || !strings.Contains(string(out), ", private cluster; chosen by: --store\n") || strings.Contains(string(out), known) {
				t.Errorf("%v\n%s", err, out)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("it leaves %v (%v)", left, err)
			}
		})
	}
}
