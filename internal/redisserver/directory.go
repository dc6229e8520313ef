package redisserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"retrylab/internal/vtime"
)

// The names of private directories. One has the second name only while its lock is not yet taken.
const (
	prefix   = "retrylab-redis-"
	unlocked = "retrylab-new-redis-"
)

// longest is the length of the longest path of a Unix socket that every system takes.
const longest = 103

// A directory is a server's own. Its lock is held as long as the lab lives, and is the truth about
// that: a process id may mean another process by now.
type directory struct {
	path string
	lock *os.File
}

// newDirectory makes a directory in parent, after removing those that dead labs left there.
func newDirectory(ctx context.Context, parent string) (*directory, error) {
	if supported != nil {
		return nil, supported
	}
	parent, err := shortParent(parent)
	if err != nil {
		return nil, err
	}
	sweep(ctx, parent)
	made, err := os.MkdirTemp(parent, unlocked) // with mode 0700
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(made, "lock"), os.O_CREATE|os.O_RDWR|os.O_EXCL, 0o600)
	if err != nil {
		return nil, errors.Join(err, os.Remove(made))
	}
	d := &directory{path: filepath.Join(parent, prefix+strings.TrimPrefix(filepath.Base(made), unlocked)), lock: f}
	// It takes its name when its lock is held, or a lab that starts at this moment would take it
	// for a dead one's.
	if err = lock(f); err == nil {
		err = os.Rename(made, d.path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.RemoveAll(made))
	}
	return d, nil
}

// shortParent returns an absolute path in which the path of a socket is not too long for the
// system.
func shortParent(parent string) (string, error) {
	asked := parent != ""
	if !asked {
		parent = os.TempDir()
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return "", err
	}
	fits := func(p string) bool {
		return len((&directory{path: filepath.Join(p, prefix+"4294967295")}).socket()) <= longest
	}
	switch {
	case fits(parent):
		return parent, nil
	case asked:
		return "", fmt.Errorf("%s is too long for a Unix socket, whose path has at most %d bytes", parent, longest)
	default:
		return "/tmp", nil
	}
}

// file returns the path of a file in the directory.
func (d *directory) file(name string) string { return filepath.Join(d.path, name) }

// socket returns the path of the server's socket.
func (d *directory) socket() string { return d.file("s") }

// remove removes the directory, and gives up its lock last.
func (d *directory) remove() error { return errors.Join(os.RemoveAll(d.path), d.lock.Close()) }

// sweep removes the directories of labs that have died without removing them. What cannot be
// removed is left: it may not be ours, and no reason not to start.
func sweep(ctx context.Context, parent string) {
	found, err := filepath.Glob(filepath.Join(escape(parent), prefix+"*"))
	if err != nil {
		return
	}
	for _, path := range found {
		if d := orphan(path); d != nil {
			endServer(ctx, d)
			_ = d.remove()
		}
	}
}

// escape keeps Glob from reading a pattern into the name of a directory.
func escape(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// orphan returns the directory at path, with its lock, if it is one of ours whose lab is dead.
func orphan(path string) *directory {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() || !mine(info) {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	if lock(f) != nil {
		f.Close()
		return nil
	}
	return &directory{path: path, lock: f}
}

// endServer ends the server of a dead lab, should it still run: it does where the system cannot tie
// it to the life of the lab. Its socket says which one it is, as no process id could.
func endServer(ctx context.Context, d *directory) {
	config, err := os.ReadFile(d.file("redis.conf"))
	if err != nil {
		return
	}
	_, after, _ := strings.Cut(string(config), `requirepass "`)
	password, _, _ := strings.Cut(after, `"`)
	ctx, cancel := vtime.NewWall(time.Time{}, 1).WithTimeout(ctx, time.Second, errSlow)
	defer cancel()
	// The answer to SHUTDOWN is the end of the connection.
	_, _ = (&Server{dir: d, password: password}).ask(ctx, "SHUTDOWN", "NOSAVE")
}
