//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package redisserver

import (
	"errors"
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
