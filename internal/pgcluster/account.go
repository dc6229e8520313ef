package pgcluster

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// account is whom the server runs as: the user of this process or, since PostgreSQL refuses to run
// as root, another.
type account struct {
	name     string
	uid, gid int
	other    bool
}

func (a account) String() string { return fmt.Sprintf("user %s (uid %d)", a.name, a.uid) }

// give makes the account the owner of a file.
func (a account) give(path string) error {
	if !a.other {
		return nil
	}
	return fileFailure(a, os.Lchown(path, a.uid, a.gid))
}

// canEnter returns an error that names the first directory on the way to dir, itself the last, that
// another user may not enter. A process asks the system about itself only, so the modes are read.
func (a account) canEnter(dir, where string) error {
	if !a.other {
		return nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := a.canEnter(parent, where); err != nil {
			return err
		}
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	uid, gid := owners(info)
	if a.passes(info.Mode(), uid, gid) {
		return nil
	}
	return fmt.Errorf("the server must run as %s, who cannot enter %s (mode %04o), %s", a, dir, info.Mode().Perm(), where)
}

// passes decides as the system does: by the bits of the first class that one belongs to.
func (a account) passes(mode fs.FileMode, uid, gid int) bool {
	switch {
	case uid == a.uid:
		return mode&0o100 != 0
	case gid == a.gid:
		return mode&0o010 != 0
	}
	return mode&0o001 != 0
}
