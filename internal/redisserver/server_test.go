package redisserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"retrylab/internal/vtime"
)

// helper is the variable that makes the test binary a lab which is to be killed.
const helper = "REDISSERVER_TEST_HELPER"

func TestMain(m *testing.M) {
	if parent := os.Getenv(helper); parent != "" {
		os.Exit(beKilled(parent))
	}
	goleak.VerifyTestMain(m)
}

// binary returns the redis-server of this machine.
func binary(t testing.TB) string {
	t.Helper()
	found, err := Find("")
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatal(err)
	default:
		t.Skip(err)
	}
	return found
}

// started starts a server for a test, in a directory of the test's own.
func started(t *testing.T) *Server {
	t.Helper()
	s, err := Start(t.Context(), Options{Binary: binary(t), Parent: parent(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// parent returns an empty directory with a short path, which that of t.TempDir is not everywhere.
func parent(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "t")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		left, err := os.ReadDir(dir)
		if err != nil || len(left) > 0 {
			t.Errorf("%v is left in the parent directory (%v)", left, err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func ask(t *testing.T, s *Server, command ...string) string {
	t.Helper()
	answer, err := s.ask(t.Context(), command...)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// gone waits until nobody listens at a socket.
func gone(t *testing.T, socket string) {
	t.Helper()
	eventually(t, "nobody listens at "+socket, func() bool {
		c, err := net.Dial("unix", socket)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	clock := vtime.NewWall(time.Time{}, 1)
	ctx, cancel := clock.WithTimeout(context.Background(), time.Minute, errSlow)
	defer cancel()
	for !so() {
		if clock.Sleep(ctx, time.Millisecond) != nil {
			t.Fatalf("it is not so after a minute: %s", what)
		}
	}
}

func TestServer(t *testing.T) {
	t.Parallel()
	s := started(t)
	if got, want := ask(t, s, "PING"), "PONG"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	out, err := exec.CommandContext(t.Context(), s.binary, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Version(); got == "" || !strings.Contains(string(out), "v="+got+" ") {
		t.Errorf("version is %q; redis-server says %q", got, out)
	}
}

func TestPrivate(t *testing.T) {
	t.Parallel()
	s := started(t)
	if got := Field(ask(t, s, "INFO", "server"), "tcp_port"); got != "0" {
		t.Errorf("it listens on TCP port %s", got)
	}
	for name, want := range map[string]os.FileMode{"": 0o700, "redis.conf": 0o600, "s": 0o700, "log": 0o600} {
		info, err := os.Stat(s.dir.file(name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%q has mode %o, want %o", name, got, want)
		}
	}
	stranger := &Server{dir: s.dir, password: "guessed"}
	if answer, err := stranger.ask(t.Context(), "PING"); err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("a stranger got %q, %v; want WRONGPASS", answer, err)
	}
	if line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.process.os.Pid)); err == nil && strings.Contains(string(line), s.password) {
		t.Errorf("the password stands on the command line: %q", line)
	}
}

// TestNothingIsKept ends a server in the way that writes to the disk what there is to write.
func TestNothingIsKept(t *testing.T) {
	t.Parallel()
	s := started(t)
	ask(t, s, "SET", "k", "v")
	if _, err := s.ask(t.Context(), "SHUTDOWN"); !errors.Is(err, io.EOF) {
		t.Fatalf("got %v, want %v", err, io.EOF)
	}
	<-s.process.exited
	entries, err := os.ReadDir(string(s.dir))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if want := []string{"log", "owner", "redis.conf"}; !slices.Equal(got, want) {
		t.Errorf("there is %q in its directory, want %q", got, want)
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	s := started(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(string(s.dir)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("Stop has returned, and the directory is there: %v", err)
			}
		})
	}
	wg.Wait()
	gone(t, s.dir.socket())
	if err := s.Restart(t.Context()); !errors.Is(err, errStopped) {
		t.Errorf("Restart after Stop: got %v, want %v", err, errStopped)
	}
}

func TestContextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s, err := Start(ctx, Options{Binary: binary(t), Parent: parent(t)})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	gone(t, s.dir.socket())
	eventually(t, "the directory is removed", func() bool {
		_, err := os.Stat(string(s.dir))
		return errors.Is(err, os.ErrNotExist)
	})
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := Start(ctx, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Start after the end: got %v, want %v", err, context.Canceled)
	}
}

func TestRestart(t *testing.T) {
	t.Parallel()
	s := started(t)
	before := ask(t, s, "INFO", "server")
	ask(t, s, "SET", "k", "v")
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ask(t.Context(), "PING"); err == nil {
		t.Error("a killed server answers")
	}
	for range 2 { // after a kill, and without one
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := ask(t, s, "EXISTS", "k"), "0"; got != want {
			t.Errorf("EXISTS is %s after a restart, want %s", got, want)
		}
	}
	if id := Field(before, "run_id"); id == "" || id == Field(ask(t, s, "INFO", "server"), "run_id") {
		t.Errorf("run_id %q is the same after a restart", id)
	}
}

// TestStopDuringRestart lets the two meet at whatever moment.
func TestStopDuringRestart(t *testing.T) {
	t.Parallel()
	s := started(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		for s.Restart(t.Context()) == nil {
		}
	})
	wg.Go(func() {
		for range 3 {
			_ = s.Kill()
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
	gone(t, s.dir.socket())
}

// Not parallel: it changes the environment of the process.
func TestMissing(t *testing.T) {
	empty := t.TempDir()
	t.Setenv("PATH", empty)
	_, err := find("", []string{"/nowhere/bin", empty})
	if err == nil || !strings.Contains(err.Error(), "PATH, /nowhere/bin, "+empty) {
		t.Errorf("error %v does not list where it looked", err)
	}
	_, err = Start(t.Context(), Options{Binary: "/nowhere/redis-server"})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "/nowhere/redis-server") {
		t.Errorf("got %v, want that there is no /nowhere/redis-server", err)
	}
	wanted := filepath.Join(empty, "redis-server")
	if err := os.WriteFile(wanted, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := find("", []string{empty}); got != wanted || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, wanted)
	}
}

func TestDoesNotStart(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "redis-server")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho first\necho '*** FATAL CONFIG FILE ERROR'\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{Binary: script, Parent: parent(t)})
	if err == nil || !strings.Contains(err.Error(), "exit status 1: *** FATAL CONFIG FILE ERROR") {
		t.Errorf("error %v does not repeat what redis-server said last", err)
	}
}

func TestLongPath(t *testing.T) {
	t.Parallel()
	long := filepath.Join(t.TempDir(), strings.Repeat("x", longest))
	if _, err := Start(t.Context(), Options{Binary: binary(t), Parent: long}); err == nil || !strings.Contains(err.Error(), "103 bytes") {
		t.Errorf("got %v, want that the path is too long", err)
	}
}

// TestSweepEndsServers is about systems that do not end a server with its lab.
func TestSweepEndsServers(t *testing.T) {
	t.Parallel()
	dir := parent(t)
	s, err := Start(t.Context(), Options{Binary: binary(t), Parent: dir})
	if err != nil {
		t.Fatal(err)
	}
	// As if the lab were dead, nobody holds its owner file.
	owner := s.dir.file("owner")
	if err := os.Rename(owner, owner+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(owner, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := newDirectory(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	gone(t, s.dir.socket())
	<-s.process.exited
	if _, err := os.Stat(string(s.dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
	if err := d.Remove(); err != nil {
		t.Error(err)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

// TestKilledLab kills a lab with SIGKILL, which it cannot notice.
func TestKilledLab(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the system cannot tie a server to the life of a lab; the next start ends it")
	}
	dir := parent(t)
	lab := exec.CommandContext(t.Context(), os.Args[0])
	lab.Env = append(os.Environ(), helper+"="+dir, helper+"_BINARY="+binary(t))
	out, err := lab.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	lab.Stderr = os.Stderr
	if err := lab.Start(); err != nil {
		t.Fatal(err)
	}
	var sockets []string
	for lines := bufio.NewScanner(out); len(sockets) < 2 && lines.Scan(); {
		sockets = append(sockets, lines.Text())
	}
	for _, socket := range sockets {
		c, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	if err := lab.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, socket := range sockets {
		gone(t, socket)
	}
	if err := lab.Wait(); err == nil || len(sockets) != 2 {
		t.Errorf("the lab ended with %v after %d sockets", err, len(sockets))
	}
	// Its directories are still there, for the next start.
	s, err := Start(t.Context(), Options{Binary: binary(t), Parent: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

// beKilled starts a server with a replica, says where they are, and waits for its end. Meanwhile it
// keeps the scheduler busy with threads that come and go, none of which may take a server with it.
func beKilled(parent string) int {
	s, err := Start(context.Background(), Options{Binary: os.Getenv(helper + "_BINARY"), Parent: parent})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	r, err := s.Replica(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for range 50 {
		ended := make(chan struct{})
		go func() {
			runtime.LockOSThread() // without unlocking: the thread ends with the goroutine
			close(ended)
		}()
		<-ended
	}
	for _, s := range []*Server{s, r.Server} {
		if _, err := s.ask(context.Background(), "PING"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		fmt.Println(s.dir.socket())
	}
	select {}
}

func TestReplica(t *testing.T) {
	t.Parallel()
	s := started(t)
	ask(t, s, "SET", "before it", "1")
	r, err := s.Replica(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Stop(); err != nil {
			t.Error(err)
		}
	})
	ask(t, s, "SET", "while it follows", "1")
	acknowledged(t, r, patience, 1)
	r.Hold()
	ask(t, s, "SET", "while it is held", "1")
	acknowledged(t, r, 50*time.Millisecond, 0)
	if got, want := ask(t, r.Server, "EXISTS", "while it is held"), "0"; got != want {
		t.Errorf("EXISTS is %s on a replica that is held, want %s", got, want)
	}
	for range 3 {
		if err := r.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ask(t, s, "SET", "while it is held again", "1")
	acknowledged(t, r, 200*time.Millisecond, 0)
	if err := r.Cut(); err != nil {
		t.Fatal(err)
	}
	ask(t, s, "SET", "while it is cut off", "1")
	acknowledged(t, r, 10*time.Millisecond, 0)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := r.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"before it": "1", "while it follows": "1", "while it is held": "1",
		"while it is held again": "0", "while it is cut off": "0", "retrylab:probe": "0",
	} {
		if got := ask(t, r.Server, "EXISTS", key); got != want {
			t.Errorf("EXISTS %q is %s on the replica, want %s", key, got, want)
		}
	}
	ask(t, r.Server, "SET", "after it all", "1")
}

func acknowledged(t *testing.T, r *Replica, wait time.Duration, want int) {
	t.Helper()
	got, err := r.Acknowledged(t.Context(), wait)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("%d replicas have got everything, want %d", got, want)
	}
}

func TestReply(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ in, want, err string }{
		{in: "+OK\r\n", want: "OK"},
		{in: ":12\r\n", want: "12"},
		{in: "$5\r\na\r\nbc\r\n", want: "a\r\nbc"},
		{in: "$0\r\n\r\n", want: ""},
		{in: "-ERR no\r\n", err: "ERR no"},
		{in: "$-1\r\n", err: `length "-1"`},
		{in: "$x\r\n", err: `length "x"`},
		{in: "*0\r\n", err: "unknown kind"},
		{in: "\r\n", err: "empty"},
		{in: "$5\r\nab", err: "EOF"},
		{in: "", err: "EOF"},
	} {
		got, err := reply(bufio.NewReader(strings.NewReader(test.in)))
		if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%q: got %q, %v; want %q, error %q", test.in, got, err, test.want, test.err)
		}
	}
}

func BenchmarkStart(b *testing.B) {
	path := binary(b)
	for b.Loop() {
		s, err := Start(b.Context(), Options{Binary: path})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Stop(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReplica(b *testing.B) {
	path := binary(b)
	s, err := Start(b.Context(), Options{Binary: path})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Stop()
	for b.Loop() {
		r, err := s.Replica(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if err := r.Stop(); err != nil {
			b.Fatal(err)
		}
	}
}
