package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"retrylab/internal/pgcluster"
	"retrylab/internal/redisserver"
	"retrylab/slowserver/store"
	"retrylab/slowserver/store/redis"
)

func TestMain(m *testing.M) {
	// Templates of clusters are nothing for the user's own cache.
	cache, err := os.MkdirTemp("", "storage-cache-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Setenv("XDG_CACHE_HOME", cache)
	os.Setenv("HOME", cache)
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := os.RemoveAll(cache); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
		os.Exit(code)
	}))
}

// secret is a password that no message may show.
const secret = "hunter2-geheim"

// TestEngine reads what --store takes.
func TestEngine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ choice, want, err string }{
		{choice: "sqlite", want: "sqlite"},
		{choice: "postgres", want: "postgres"},
		{choice: "postgres://h/d", want: "postgres"},
		{choice: "postgresql://u@h/d?sslmode=disable", want: "postgres"},
		{choice: "docker", want: "postgres"},
		{choice: "docker:postgres:16", want: "postgres"},
		{choice: "docker:localhost:5000/postgres@sha256:" + strings.Repeat("0a", 32), want: "postgres"},

		{choice: "", err: `there is no store ""`},
		{choice: "mysql", err: `there is no store "mysql"`},
		{choice: "SQLite", err: `there is no store "SQLite"`},
		{choice: "postgres:", err: `there is no store "postgres:"`},
		{choice: "postgres:16", err: `there is no store "postgres:16"`},
		{choice: "dockers", err: `there is no store "dockers"`},
		{choice: "docker:", err: `image "": it is empty`},
		{choice: "docker:UPPER", err: `image "UPPER": a reference is a name in lower case`},
		{choice: "docker:UPPER/..", err: `image "UPPER/..": a reference is a name in lower case`},
		{choice: "mysql://u:" + secret + "@h/d", err: `there is no store "mysql://…"`},
		{choice: "host=h password=" + secret, err: `there is no store "…"`},
		{choice: "u:" + secret + "@h", err: `there is no store "…"`},
	} {
		got, err := Engine(c.choice)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %q, %v; want %q, %q", c.choice, got, err, c.want, c.err)
		}
		if err == nil {
			continue
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the password is in %q", err)
		}
		if strings.HasPrefix(c.choice, Docker) {
			continue // what is no image is not asked for, see the containers' own tests
		}
		if d, e := Open(t.Context(), c.choice, Options{Jobs: 1}); e == nil || d != nil || e.Error() != err.Error() {
			t.Errorf("%q is opened as %v, %v; want %v", c.choice, d, e, err)
		}
	}
}

// TestCheckRedis reads what --redis takes.
func TestCheckRedis(t *testing.T) {
	t.Parallel()
	for choice, want := range map[string]string{
		"embedded": "", "server": "", "redis://h": "", "rediss://u:p@h:1/2": "", "unix:///tmp/s": "",
		"": `there is no Redis ""`, "memcached": `there is no Redis "memcached"`, "Server": `there is no Redis "Server"`,
		"http://u:" + secret + "@h": `there is no Redis "http://…"`, ":" + secret + "@h": `there is no Redis "…"`,
	} {
		err := CheckRedis(choice)
		if got := message(err); got != want {
			t.Errorf("%q: %q, want %q", choice, got, want)
		}
		if err == nil {
			continue
		}
		if k, e := OpenKeys(t.Context(), choice); e == nil || k != nil || e.Error() != "open keys in redis: "+want {
			t.Errorf("%q is opened as %v, %v", choice, k, e)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// temporary makes the directory for temporary files one of the test's own, which the account of a
// server can enter. At the end nothing may be left there.
func temporary(t *testing.T) string {
	t.Helper()
	// Not T.TempDir: others may not enter it.
	dir, err := os.MkdirTemp("", "storage")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("TMPDIR", dir)
	return dir
}

func nothingLeft(t *testing.T, dir, when string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%s there is %v (%v)", when, left, err)
	}
}

// needsPostgres skips a test where there is no PostgreSQL; where everything is to be tested it
// fails.
func needsPostgres(t *testing.T) {
	t.Helper()
	var none *pgcluster.NotFoundError
	switch _, err := pgcluster.Find(t.Context(), ""); {
	case err == nil:
	case errors.As(err, &none) && os.Getenv("CI") == "":
		t.Skip("PostgreSQL is not installed")
	default:
		t.Fatal(err)
	}
}

// count opens a store of a database and counts its orders.
func count(t *testing.T, d store.Database) {
	t.Helper()
	seat, err := d.Seat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := seat.Open(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.Count(t.Context(), "op-1"); err != nil || n != 0 {
		t.Errorf("%d orders, %v", n, err)
	}
	if err := errors.Join(s.Close(), seat.Leave()); err != nil {
		t.Error(err)
	}
}

// TestOpenSQLite opens the embedded database: what it makes is gone with it.
func TestOpenSQLite(t *testing.T) {
	for name, end := range map[string]func(store.Database) error{"close": store.Database.Close, "abandon": store.Database.Abandon} {
		t.Run(name, func(t *testing.T) {
			dir := temporary(t)
			d, err := Open(t.Context(), SQLite, Options{Jobs: 1})
			if err != nil {
				t.Fatal(err)
			}
			count(t, d)
			if info := d.Info(); info.Engine != SQLite || info.Mode != "embedded" || info.Version == "" || info.Counting == "" || len(info.Settings) == 0 {
				t.Errorf("it says of itself %+v", info)
			}
			if err := errors.Join(end(d), d.Close()); err != nil {
				t.Error(err)
			}
			nothingLeft(t, dir, "afterwards")
		})
	}
	t.Run("no place", func(t *testing.T) {
		t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
		if d, err := Open(t.Context(), SQLite, Options{Jobs: 1}); d != nil || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v, %v", d, err)
		}
	})
}

// TestOpenPostgres opens a private cluster, and a database that is there already: the test's own.
func TestOpenPostgres(t *testing.T) {
	needsPostgres(t)
	for name, end := range map[string]func(store.Database) error{"close": store.Database.Close, "abandon": store.Database.Abandon} {
		t.Run("private, "+name, func(t *testing.T) {
			dir := temporary(t)
			d, err := Open(t.Context(), Postgres, Options{Jobs: 2})
			if err != nil {
				t.Fatal(err)
			}
			count(t, d)
			if info := d.Info(); info.Engine != Postgres || info.Mode != "private cluster" || info.Version == "" || info.Counting == "" || info.Settings["synchronous_commit"] != "on" {
				t.Errorf("it says of itself %+v", info)
			}
			if err := end(d); err != nil {
				t.Error(err)
			}
			nothingLeft(t, dir, "afterwards")
			if name == "close" {
				if err := errors.Join(d.Close(), d.Abandon()); err != nil {
					t.Error(err)
				}
			} else {
				d.Close() // the server was taken away from under it
			}
		})
	}
	t.Run("a server", func(t *testing.T) {
		temporary(t)
		c, err := pgcluster.Start(t.Context(), pgcluster.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Stop()
		for range 2 {
			d, err := Open(t.Context(), c.DSN(), Options{Jobs: 1})
			if err != nil {
				t.Fatal(err)
			}
			count(t, d)
			if info := d.Info(); info.Engine != Postgres || info.Mode != "server" {
				t.Errorf("it says of itself %+v", info)
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("no programs", func(t *testing.T) {
		empty, dir := t.TempDir(), temporary(t)
		d, err := Open(t.Context(), Postgres, Options{Jobs: 1, Bin: empty})
		if d != nil || err == nil || !strings.Contains(err.Error(), empty+" has no program initdb") {
			t.Errorf("%v, %v", d, err)
		}
		nothingLeft(t, dir, "without a server")
	})
	t.Run("interrupted", func(t *testing.T) {
		dir := temporary(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if d, err := Open(ctx, Postgres, Options{Jobs: 1}); d != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("%v, %v", d, err)
		}
		nothingLeft(t, dir, "after an interrupt")
	})
}

// TestUnreachable names the server, and never its password.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	closed.Close()
	d, err := Open(t.Context(), "postgres://u:"+secret+"@"+nobody+"/d", Options{Jobs: 1})
	if d != nil || err == nil || !strings.HasPrefix(err.Error(), `open store postgres: database "d" at `+nobody) || strings.Contains(err.Error(), secret) {
		t.Errorf("%v, %v", d, err)
	}
	k, err := OpenKeys(t.Context(), "redis://u:"+secret+"@"+nobody)
	if k != nil || err == nil || !strings.HasPrefix(err.Error(), "open keys in redis: redis at "+nobody) || strings.Contains(err.Error(), secret) {
		t.Errorf("%v, %v", k, err)
	}
	for _, address := range []string{"oracle:" + secret + "@h", "oracle://u:" + secret + "@h", ""} {
		if a, err := Attach(address, store.Options{}); a != nil || err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("attached to %q: %v, %v", address, a, err)
		}
	}
}

// TestOpenKeys opens keys in every place; those of a server of the trial's own are gone with it.
func TestOpenKeys(t *testing.T) {
	for _, choice := range []string{Embedded, Server} {
		t.Run(choice, func(t *testing.T) {
			if choice == Server {
				if _, err := redisserver.Find(""); err != nil {
					if os.Getenv("CI") != "" {
						t.Fatal(err)
					}
					t.Skip(err)
				}
			}
			dir := temporary(t)
			source, err := OpenKeys(t.Context(), choice)
			if err != nil {
				t.Fatal(err)
			}
			nothingLeft(t, dir, "before a trial")
			keys, err := source.Open(t.Context(), redis.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if info := keys.Info(); info.Engine != "redis" || info.Version == "" || info.Mode != source.Mode() {
				t.Errorf("they say of themselves %+v", info)
			}
			if err := keys.Close(); err != nil {
				t.Error(err)
			}
			nothingLeft(t, dir, "after a trial")
		})
	}
	t.Run("no server to start", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		if _, err := redisserver.Find(""); err == nil {
			return // it is found without the PATH too
		}
		if k, err := OpenKeys(t.Context(), Server); k != nil || err == nil || !strings.HasPrefix(err.Error(), "open keys in redis: there is no redis-server: looked in ") {
			t.Errorf("%v, %v", k, err)
		}
	})
}
