//go:build unix && !aix && !solaris

package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

// asHelper makes the test binary a lab that starts a cluster with this directory for temporary
// files, says so, and waits to be killed.
const asHelper = "PGCLUSTER_TEST_HELPER"

// shared is the cache of the tests that need no cache of their own.
var shared string

func TestMain(m *testing.M) {
	if temp := os.Getenv(asHelper); temp != "" {
		os.Exit(helper(temp))
	}
	var err error
	if shared, err = os.MkdirTemp("", "pgcluster-cache-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := os.RemoveAll(shared); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
		os.Exit(code)
	}))
}

func helper(temp string) int {
	c, err := Start(context.Background(), Options{Temp: temp, Cache: filepath.Join(temp, "cache")})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(c.dir, c.server.cmd.Process.Pid)
	select {}
}

// installed returns the PostgreSQL of this machine.
func installed(t testing.TB) Binaries {
	t.Helper()
	b, err := Find(t.Context(), "")
	var none *NotFoundError
	switch {
	case err == nil:
	case errors.As(err, &none) && os.Getenv("CI") == "":
		t.Skip("PostgreSQL is not installed, and this test needs it: ", err)
	default:
		t.Fatal("PostgreSQL is not installed, and this test needs it: ", err)
	}
	return b
}

// room returns a directory for temporary files which the server's account can enter, and in which
// nothing may be left at the end of the test.
func room(t testing.TB) string {
	t.Helper()
	// Not T.TempDir: its path is long with the name of the test, and a socket's must be short.
	dir, err := os.MkdirTemp("", "pgc")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, name := range left(t, dir) {
			t.Errorf("%s was left behind", name)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// left lists the private directories in a directory.
func left(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// start starts a cluster in a room and stops it at the end of the test.
func start(t testing.TB, o Options) *Cluster {
	t.Helper()
	installed(t)
	c, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// connect opens a session and closes it at the end of the test.
func connect(t testing.TB, c *Cluster) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.DSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// ask returns the one value of a query.
func ask(t testing.TB, conn *pgx.Conn, query string) (answer string) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), query).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return answer
}

// program writes a script that stands for a program of PostgreSQL.
func program(t testing.TB, path, script string) {
	t.Helper()
	// A child that is forked meanwhile would hold the file open for writing, and nobody may run
	// such a file.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until a condition holds that nobody reports.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// gone reports whether a file does not exist.
func gone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}
