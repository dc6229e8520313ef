package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"retrylab/internal/privatedir"
	"retrylab/internal/vtime"
)

// prefix begins the name of every directory of ours. Paths are short for the socket's sake.
const prefix = "rl-pg-"

// directory is the path of a cluster's private directory.
type directory string

// data is where the server keeps its files, socket where it can be reached.
func (d directory) data() string   { return filepath.Join(string(d), "data") }
func (d directory) socket() string { return filepath.Join(string(d), "s") }

// open lets the account of the server in, and makes the directory of its socket. Only that account
// can enter the latter: a server without passwords is reached by nobody else but root.
func (d directory) open(a account) error {
	if a.other {
		if err := os.Chmod(string(d), 0o711); err != nil {
			return err
		}
	}
	if err := os.Mkdir(d.socket(), 0o700); err != nil {
		return err
	}
	return a.give(d.socket())
}

// Sweep removes from a temporary directory, "" being the system's, what clusters of this user have
// left there whose process died before it could. A server that is still running there is stopped:
// it dies with its process on Linux alone. It returns what it removed. Several sweeps may be under
// way at once, and what belongs to a process that lives is not touched.
func Sweep(ctx context.Context, temp string) (removed []string, err error) {
	temp, err = resolve(temp)
	if err != nil {
		return nil, err
	}
	return privatedir.Sweep(temp, prefix, func(path string) error {
		return stopLeftover(ctx, directory(path).data())
	})
}

// stopLeftover stops the server of a data directory if there is one.
func stopLeftover(ctx context.Context, data string) error {
	content, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return nil // There is none, and never was or has stopped in order.
	}
	first, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 1 {
		return nil
	}
	// The process is taken hold of before it is looked at, so that what is looked at is what will
	// get the signal.
	process, err := os.FindProcess(pid)
	if err != nil {
		return nil
	}
	defer process.Release()
	clock := vtime.NewWall(time.Time{}, 1)
	for _, signal := range []syscall.Signal{syscall.SIGQUIT, syscall.SIGKILL} {
		if !serves(ctx, pid, data) {
			break
		}
		if err := process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("send %v to process %d, which serves %s: %w", signal, pid, data, err)
		}
		// It is not our child: nobody tells us when it ends.
		for began := clock.Now(); serves(ctx, pid, data) && clock.Now()-began < patience; {
			if err := clock.Sleep(ctx, 2*time.Millisecond); err != nil {
				return err
			}
		}
	}
	if serves(ctx, pid, data) {
		return fmt.Errorf("process %d, which serves %s, does not end", pid, data)
	}
	return context.Cause(ctx) // which may be why nothing was seen
}
