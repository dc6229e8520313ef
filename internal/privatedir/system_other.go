//go:build !unix || aix || solaris

package privatedir

import (
	"errors"
	"io/fs"
	"os"
)

// There is no lock here that ends with its process whatever happens, so nothing is known to be
// anybody's.

func tryLock(*os.File) error { return errors.ErrUnsupported }

func ours(fs.FileInfo) bool { return false }
