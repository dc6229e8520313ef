//go:build unix && !aix && !solaris

package pgcluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"retrylab/internal/vtime"
)

// disown makes a directory look as if its process had been killed: nobody holds its owner file.
func disown(t *testing.T, dir directory) {
	t.Helper()
	owner := filepath.Join(string(dir), "owner")
	if err := os.Rename(owner, owner+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(owner, nil, 0o600); err != nil {
		t.Fatal(err)
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
	disown(t, c.dir)
	removed, err := Sweep(t.Context(), temp)
	if err != nil || !slices.Equal(removed, []string{string(c.dir)}) || !gone(string(c.dir)) {
		t.Errorf("removed %v, %v; want %s", removed, err, c.dir)
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
