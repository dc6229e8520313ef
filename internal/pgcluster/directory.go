package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"retrylab/internal/vtime"
)

// prefix begins the name of every directory of ours. Paths are short for the socket's sake.
const prefix = "rl-pg-"

// ownerFile is the file by whose lock a directory is known to be in use. The lock belongs to the
// open file, so the system takes it away when the process dies, whatever it dies of; a process id
// would be somebody else's in the end. What is written in it is for people.
const ownerFile = "owner"

// directory is a directory that is ours as long as we live.
type directory struct {
	path string
	lock *os.File
}

// newDirectory makes a directory in parent and locks it.
func newDirectory(parent string) (*directory, error) {
	path, err := os.MkdirTemp(parent, prefix+"*")
	if err != nil {
		return nil, fmt.Errorf("make a private directory: %w", err)
	}
	d := &directory{path: path}
	if err := d.claim(); err != nil {
		return nil, errors.Join(fmt.Errorf("claim the private directory: %w", err), d.remove())
	}
	return d, nil
}

// claim puts the owner file into a new directory. It gets its name when it is locked, so that a
// sweeper never meets one that nobody seems to hold.
func (d *directory) claim() (err error) {
	const unlocked = ".new"
	owner := filepath.Join(d.path, ownerFile)
	if d.lock, err = os.OpenFile(owner+unlocked, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return err
	}
	if err := tryLock(d.lock); err != nil {
		return fmt.Errorf("lock %s: %w", d.lock.Name(), err)
	}
	if _, err := fmt.Fprintf(d.lock, "process %d\n", os.Getpid()); err != nil {
		return err
	}
	return os.Rename(owner+unlocked, owner)
}

// data is where the server keeps its files, socket where it can be reached.
func (d *directory) data() string   { return filepath.Join(d.path, "data") }
func (d *directory) socket() string { return filepath.Join(d.path, "s") }

// open lets the account of the server in, and makes the directory of its socket. Only that account
// can enter the latter: a server without passwords is reached by nobody else but root.
func (d *directory) open(a account) error {
	if a.other {
		if err := os.Chmod(d.path, 0o711); err != nil {
			return err
		}
	}
	if err := os.Mkdir(d.socket(), 0o700); err != nil {
		return err
	}
	return a.give(d.socket())
}

// remove removes the directory, the owner file last: what cannot be removed remains ours, and is
// swept another time.
func (d *directory) remove() error {
	entries, failed := os.ReadDir(d.path)
	if errors.Is(failed, fs.ErrNotExist) {
		failed = nil
	}
	for _, e := range entries {
		if e.Name() != ownerFile {
			failed = errors.Join(failed, os.RemoveAll(filepath.Join(d.path, e.Name())))
		}
	}
	if failed == nil {
		failed = os.RemoveAll(d.path)
	}
	if d.lock != nil {
		failed = errors.Join(failed, d.lock.Close())
	}
	if failed != nil {
		return fmt.Errorf("remove the private directory: %w", failed)
	}
	return nil
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
	entries, err := os.ReadDir(temp)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		d := orphan(filepath.Join(temp, e.Name()))
		if d == nil {
			continue
		}
		if stopped := stopLeftover(ctx, d.data()); stopped != nil {
			err = errors.Join(err, stopped, d.lock.Close())
			continue
		}
		if failed := d.remove(); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		removed = append(removed, d.path)
	}
	return removed, err
}

// orphan returns a directory of ours whose process is dead, now locked by this one; otherwise nil.
// What cannot be told is left alone.
func orphan(path string) *directory {
	if info, err := os.Lstat(path); err != nil || !info.IsDir() || !ours(info) {
		return nil
	}
	lock, err := os.OpenFile(filepath.Join(path, ownerFile), os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	if tryLock(lock) != nil || !stands(lock) {
		lock.Close()
		return nil
	}
	return &directory{path: path, lock: lock}
}

// stands reports whether an open file is still the one of its name: another sweeper may have
// removed it just before it was locked.
func stands(f *os.File) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(open, named)
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
