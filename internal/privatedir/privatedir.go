// Package privatedir makes directories that are one process's own: only its user can enter them, a
// lock says as long as it lives that they are in use, and what a killed process had to leave behind
// is found by the next one and removed.
//
// Where the system has no such lock, Windows among others, nobody can tell what has been left from
// what is in use, so nothing is swept. Nothing here knows what is in a directory.
package privatedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// ownerFile is the file by whose lock a directory is known to be in use. The lock belongs to the
// open file, so the system takes it away when the process dies, whatever it dies of; a process id
// would be somebody else's in the end. What is written in it is for people.
const ownerFile = "owner"

// Dir is a directory that is ours until it is removed or this process dies. Its methods are safe
// for use by several goroutines.
type Dir struct {
	path string

	mu      sync.Mutex
	lock    *os.File // nil where there is none to be had, and when it has been given up
	removed bool
}

// New makes a directory in parent, "" being the system's directory for temporary files. Its name is
// the prefix and a number of at most ten digits.
func New(parent, prefix string) (*Dir, error) {
	path, err := os.MkdirTemp(parent, prefix+"*") // with mode 0700
	if err != nil {
		return nil, err
	}
	d := &Dir{path: path}
	if err := d.claim(); err != nil {
		return nil, errors.Join(err, d.Remove())
	}
	return d, nil
}

// claim puts the owner file into a new directory. It gets its name when it is locked, so that a
// sweeper never meets one that nobody seems to hold.
func (d *Dir) claim() error {
	owner := filepath.Join(d.path, ownerFile)
	unlocked := owner + ".new"
	f, err := os.OpenFile(unlocked, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	switch err := tryLock(f); {
	case errors.Is(err, errors.ErrUnsupported):
		// Without the lock there must be no owner file either: it would say that its owner is dead.
		return errors.Join(f.Close(), os.Remove(unlocked))
	case err != nil:
		return errors.Join(fmt.Errorf("lock %s: %w", unlocked, err), f.Close())
	}
	d.lock = f
	if _, err := fmt.Fprintf(f, "process %d\n", os.Getpid()); err != nil {
		return err
	}
	return os.Rename(unlocked, owner)
}

// Path returns where the directory is.
func (d *Dir) Path() string { return d.path }

// Remove removes the directory with all that is in it, and gives up its lock. It may be called any
// number of times: when it has failed it tries again, and when it has not it does nothing.
func (d *Dir) Remove() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.removed {
		return nil
	}
	if err := d.empty(); err != nil {
		return err
	}
	if err := os.RemoveAll(d.path); err != nil {
		return err
	}
	d.removed = true
	return d.release()
}

// empty removes everything but the owner file, which goes last: what cannot be removed remains
// known as ours, and is swept another time.
func (d *Dir) empty() error {
	entries, err := os.ReadDir(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.Name() != ownerFile {
			err = errors.Join(err, os.RemoveAll(filepath.Join(d.path, e.Name())))
		}
	}
	return err
}

// release gives up the lock.
func (d *Dir) release() error {
	if d.lock == nil {
		return nil
	}
	defer func() { d.lock = nil }()
	return d.lock.Close()
}

// Sweep removes from parent, "" being the system's directory for temporary files, the directories of
// that prefix that processes of this user have left there which died before they could remove them.
// It calls end with the path of each, unless end is nil, to stop what may still run there; where
// that fails, the directory stays. It returns what it removed, and what went wrong with the rest.
//
// Several sweeps may be under way at once; each directory is removed by one of them. What belongs to
// a process that lives is not touched, nor is what cannot be told to be ours.
func Sweep(parent, prefix string, end func(path string) error) (removed []string, err error) {
	if parent == "" {
		parent = os.TempDir()
	}
	entries, err := os.ReadDir(parent)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		// A longer prefix may begin with this one, but what comes after that is not a number.
		number, found := strings.CutPrefix(e.Name(), prefix)
		if !found || number == "" || strings.Trim(number, "0123456789") != "" {
			continue
		}
		d := orphan(filepath.Join(parent, e.Name()))
		if d == nil {
			continue
		}
		if failed := d.sweep(end); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		removed = append(removed, d.path)
	}
	return removed, err
}

// sweep ends what runs in an orphan and removes it, or gives it up to the next who tries.
func (d *Dir) sweep(end func(path string) error) (err error) {
	if end != nil {
		err = end(d.path)
	}
	if err == nil {
		err = d.Remove()
	}
	return errors.Join(err, d.release())
}

// orphan returns a directory of ours whose process is dead, now locked by this one; otherwise nil.
// What cannot be told is left alone.
func orphan(path string) *Dir {
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
	return &Dir{path: path, lock: lock}
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
