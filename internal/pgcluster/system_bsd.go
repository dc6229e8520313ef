//go:build unix && !linux && !aix && !solaris

package pgcluster

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// maxSocketPath is what fits into a socket's address.
const maxSocketPath = 103

// attributes let a child run as an account, in a process group of its own. It outlives this process
// if that is killed, until the next sweep.
func attributes(a account) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: a.credential(), Setpgid: true}
}

// serves reports whether a process is the server of a data directory, which is in its command line
// then. A zombie has none any more.
func serves(ctx context.Context, pid int, data string) bool {
	out, err := exec.CommandContext(ctx, "ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(out), "postgres -D "+data+" ")
}
