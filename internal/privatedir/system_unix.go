//go:build unix && !aix && !solaris

package privatedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// tryLock locks an open file for this process, or fails at once. A file system that has no locks
// fails with [errors.ErrUnsupported], as a system without them does.
func tryLock(f *os.File) error {
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err {
		case syscall.EINTR:
		case syscall.ENOLCK: // a network's file system whose server does not lock
			return fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
		default:
			return err
		}
	}
}

// ours reports whether a file belongs to the user of this process.
func ours(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
