//go:build !unix || aix || solaris

package pgcluster

import (
	"context"
	"io/fs"
	"os"
	"syscall"
)

// There is no private cluster here: it would need other ways to keep it private, to tell
// whether it is in use and to have it end with this process. What follows is never called.
const (
	supported     = false
	maxSocketPath = 0
)

func serverAccount() (account, error)          { return account{}, ErrUnsupported }
func attributes(account) *syscall.SysProcAttr  { return nil }
func killGroup(*os.Process) error              { return ErrUnsupported }
func owners(fs.FileInfo) (uid, gid int)        { return -1, -1 }
func ours(fs.FileInfo) bool                    { return false }
func serves(context.Context, int, string) bool { return false }
