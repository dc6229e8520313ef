package pgcluster

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// maxSocketPath is what fits into a socket's address.
const maxSocketPath = 107

// attributes let a child run as an account, in a process group of its own, and not outlive this
// process, however that ends.
func attributes(a account) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: a.credential(), Setpgid: true, Pdeathsig: syscall.SIGINT}
}

// serves reports whether a process is the server of a data directory, which is its working
// directory then. A zombie has none any more.
func serves(_ context.Context, pid int, data string) bool {
	dir, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
	return err == nil && dir == data
}
