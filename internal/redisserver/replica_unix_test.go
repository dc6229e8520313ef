//go:build unix

package redisserver

import (
	"syscall"
	"testing"
	"time"
)

// TestPausedReplica shows why a link is cut: what a replica misses while it is paused waits for it.
func TestPausedReplica(t *testing.T) {
	t.Parallel()
	s := started(t)
	r, err := s.Replica(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := syscall.Kill(r.process.os.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ask(t, s, "SET", "k", "v")
	acknowledged(t, r, 50*time.Millisecond, 0)
	if err := syscall.Kill(r.process.os.Pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	acknowledged(t, r, patience, 1)
	if got, want := ask(t, r.Server, "EXISTS", "k"), "1"; got != want {
		t.Errorf("EXISTS is %s on the replica, want %s", got, want)
	}
}
