//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package redisserver

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// supported is nil where a private server can be had.
var supported error

// killTree kills a process and what it started: a redis-server may be a script around the real one.
// Each is the first of a process group of its own, so that Ctrl-C at a terminal reaches the lab
// alone, which then ends its servers in order.
func killTree(p *os.Process) error {
	err := syscall.Kill(-p.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// lock takes the lock of an open file, or returns an error at once if another process has it. The
// system gives it back when the process ends, however it ends.
func lock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EINTR {
			return err
		}
	}
}

// mine reports whether a file belongs to this user.
func mine(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
