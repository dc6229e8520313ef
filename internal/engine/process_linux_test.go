package engine_test

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"retrylab/internal/engine"
	"retrylab/internal/storage"
	"retrylab/scenarios"
)

// children lists the processes whose parent is pid, zombies aside.
func children(t *testing.T, pid int) []int {
	t.Helper()
	lists, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "children"))
	if err != nil {
		t.Fatal(err)
	}
	var out []int
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err != nil {
			continue // a thread that has ended
		}
		for _, word := range strings.Fields(string(data)) {
			child, err := strconv.Atoi(word)
			if err == nil && alive(child) {
				out = append(out, child)
			}
		}
	}
	return out
}

func alive(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// orphanage is what the test binary is called with to run a trial that is killed.
const orphanage = "orphanage"

// runOrphanage runs a trial of an hour with processes.
func runOrphanage() {
	s, err := scenarios.Parse("long.yaml", []byte(`{name: long, server: {processing: 1h, processes: true, replicas: 2}}`))
	if err != nil {
		panic(err)
	}
	trials, err := s.Plan(scenarios.Options{Seed: 1})
	if err != nil {
		panic(err)
	}
	database, err := storage.Open(context.Background(), storage.SQLite, storage.Options{Jobs: 1})
	if err != nil {
		panic(err)
	}
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	l := engine.New(database, engine.Wall, 1)
	l.Replica = []string{path, replica}
	l.Run(context.Background(), trials[0])
}

// TestNoOrphans kills a program in the middle of a trial with kill -9: its processes go with it.
func TestNoOrphans(t *testing.T) {
	t.Parallel()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), path, orphanage)
	command.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	stderr, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			t.Log(lines.Text())
		}
	}()
	var orphans []int
	for len(orphans) < 2 {
		if !alive(command.Process.Pid) {
			t.Fatal("it ended")
		}
		<-time.After(time.Millisecond)
		orphans = children(t, command.Process.Pid)
	}
	if err := command.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	command.Wait()
	for _, pid := range orphans {
		for alive(pid) { // the test's time-out is the limit
			<-time.After(time.Millisecond)
		}
	}
}
