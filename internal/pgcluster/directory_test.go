//go:build unix && !aix && !solaris

package pgcluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"retrylab/internal/vtime"
)

// abandon makes a private directory as a process leaves it that was killed.
func abandon(t *testing.T, parent string) *directory {
	t.Helper()
	d, err := newDirectory(parent)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.open(account{}); err != nil {
		t.Fatal(err)
	}
	if err := d.lock.Close(); err != nil {
		t.Fatal(err)
	}
	return d
}

// sweep sweeps until so many directories have been removed. A lock that this process has given up
// may live on for a moment, in a child that another test has forked and that is not yet a program.
func sweep(t *testing.T, temp string, want int) (removed []string) {
	t.Helper()
	eventually(t, "the sweep of what was abandoned", func() bool {
		paths, err := Sweep(t.Context(), temp)
		if err != nil {
			t.Fatal(err)
		}
		removed = append(removed, paths...)
		return len(removed) >= want
	})
	return removed
}

func TestSweep(t *testing.T) {
	t.Parallel()
	temp := room(t)
	dead := abandon(t, temp)
	alive, err := newDirectory(temp)
	if err != nil {
		t.Fatal(err)
	}
	// None of these is known to be ours.
	elsewhere := room(t)
	target := abandon(t, elsewhere)
	var others []string
	for _, name := range []string{prefix + "not-claimed-yet", "another-program", prefix + "old-foreign"} {
		dir := filepath.Join(temp, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		others = append(others, dir)
	}
	if err := os.WriteFile(filepath.Join(others[1], ownerFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.WriteFile(filepath.Join(others[2], ownerFile), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(others[2], 4711, 4711); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{prefix + "link", prefix + "file"} {
		others = append(others, filepath.Join(temp, name))
	}
	if err := os.Symlink(target.path, others[3]); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(others[4], nil, 0o600); err != nil {
		t.Fatal(err)
	}

	if removed := sweep(t, temp, 1); removed[0] != dead.path || len(removed) != 1 || !gone(dead.path) {
		t.Errorf("removed %v, want %s", removed, dead.path)
	}
	for _, path := range append(others, alive.path, target.path) {
		if gone(path) {
			t.Errorf("%s was removed", path)
		}
	}

	if err := alive.remove(); err != nil {
		t.Error(err)
	}
	sweep(t, elsewhere, 1)
	for _, path := range others {
		if err := os.RemoveAll(path); err != nil {
			t.Error(err)
		}
	}
}

// TestSweepsAtOnce counts what many sweepers remove: each directory once.
func TestSweepsAtOnce(t *testing.T) {
	t.Parallel()
	temp := room(t)
	const directories = 50
	for range directories {
		abandon(t, temp)
	}
	counts := make([]int, 8)
	var group vtime.Group
	for k := range counts {
		group.Go(func() {
			removed, err := Sweep(t.Context(), temp)
			if err != nil {
				t.Error(err)
			}
			counts[k] = len(removed)
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	sum := 0
	for _, n := range counts {
		sum += n
	}
	if sum < directories {
		sum += len(sweep(t, temp, directories-sum))
	}
	if sum != directories {
		t.Errorf("%d directories were removed %d times: %v", directories, sum, counts)
	}
}

// TestSweepStopsServer sweeps a directory whose server has outlived its lab.
func TestSweepStopsServer(t *testing.T) {
	t.Parallel()
	installed(t)
	temp := room(t)
	c, err := Start(t.Context(), Options{Temp: temp, Cache: shared})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.dir.lock.Close(); err != nil { // as if this process had died
		t.Fatal(err)
	}
	if removed := sweep(t, temp, 1); len(removed) != 1 || !gone(c.dir.path) {
		t.Errorf("removed %v, want %s", removed, c.dir.path)
	}
	<-c.server.gone
	if !strings.Contains(c.Log(), "immediate shutdown") {
		t.Errorf("the server was not told to end at once; its log:\n%s", c.Log())
	}
	if err := c.server.stop(c.clock); err == nil || !strings.Contains(err.Error(), "had ended by itself") {
		t.Errorf("got %v", err)
	}
}

// TestStopLeftoverSparesOthers hands a data directory's file the ids of processes that do not serve
// it: the system has given them to others since.
func TestStopLeftoverSparesOthers(t *testing.T) {
	t.Parallel()
	c := start(t, Options{Temp: room(t), Cache: shared})
	conn := connect(t, c)
	content, err := os.ReadFile(filepath.Join(c.dir.data(), "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range []string{string(content), "0", "1", "-1", "no number", "", "2147483646"} {
		data := room(t)
		if err := os.WriteFile(filepath.Join(data, "postmaster.pid"), []byte(pid), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := stopLeftover(t.Context(), data); err != nil {
			t.Errorf("%q: %v", pid, err)
		}
	}
	if got := ask(t, conn, "SELECT 'x'"); got != "x" {
		t.Errorf("got %q", got)
	}
}

// TestRemoveLater keeps what cannot be removed in a state that a sweep finds.
func TestRemoveLater(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root can remove anything")
	}
	temp := room(t)
	d, err := newDirectory(temp)
	if err != nil {
		t.Fatal(err)
	}
	stuck := filepath.Join(d.path, "stuck")
	if err := os.MkdirAll(filepath.Join(stuck, "below"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(stuck, 0o500); err != nil {
		t.Fatal(err)
	}
	if err := d.remove(); err == nil {
		t.Error("it was removed")
	}
	if err := os.Chmod(stuck, 0o700); err != nil {
		t.Fatal(err)
	}
	sweep(t, temp, 1)
}

// TestLogTail feeds a log in pieces.
func TestLogTail(t *testing.T) {
	t.Parallel()
	l := logTail{ready: make(chan struct{})}
	for _, piece := range []string{strings.Repeat("x", tailSize), "\nLOG:  database system is rea", "dy to accept", " connections\n"} {
		select {
		case <-l.ready:
			t.Fatalf("ready before %q", piece)
		default:
		}
		if n, err := l.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Errorf("wrote %d, %v", n, err)
		}
	}
	<-l.ready
	l.Write([]byte("database system is ready to accept connections\n")) // after a crash of its own
	if got := l.String(); len(got) != tailSize || !strings.HasSuffix(got, " connections\n") {
		t.Errorf("kept %d bytes, want the last %d", len(got), tailSize)
	}
}

// TestWithin waits for a server that does not end, and for one that has.
func TestWithin(t *testing.T) {
	t.Parallel()
	clock := vtime.NewWall(time.Time{}, 1)
	s := &server{gone: make(chan struct{})}
	if s.within(clock, time.Millisecond) {
		t.Error("it has not ended")
	}
	close(s.gone)
	if !s.within(clock, time.Hour) {
		t.Error("it has ended")
	}
}
