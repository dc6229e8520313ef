//go:build unix && !aix && !solaris

package pgcluster

import (
	"errors"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

const supported = true

// serverAccount returns the account that a server of this process runs as.
func serverAccount() (account, error) {
	if uid := os.Geteuid(); uid != 0 {
		return account{name: strconv.Itoa(uid), uid: uid, gid: os.Getegid()}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(u.Uid)
		if err != nil || uid == 0 {
			continue
		}
		gid, err := strconv.Atoi(u.Gid)
		if err != nil {
			continue
		}
		return account{name: name, uid: uid, gid: gid, other: true}, nil
	}
	return account{}, errors.New("PostgreSQL does not run as root, and this machine has neither a user postgres nor a user nobody: run as an ordinary user")
}

// credential is what makes a child run as an account; nil leaves it the user of its parent.
func (a account) credential() *syscall.Credential {
	if !a.other {
		return nil
	}
	return &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid), Groups: []uint32{}}
}

// killGroup kills the leader of a process group with everybody in it.
func killGroup(leader *os.Process) error { return syscall.Kill(-leader.Pid, syscall.SIGKILL) }

// owners returns the user and the group that a file belongs to.
func owners(info fs.FileInfo) (uid, gid int) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1, -1
	}
	return int(stat.Uid), int(stat.Gid)
}

// ours reports whether a file belongs to the user of this process.
func ours(info fs.FileInfo) bool {
	uid, _ := owners(info)
	return uid == os.Geteuid()
}
