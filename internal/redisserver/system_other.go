//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package redisserver

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// supported says that a private server cannot be had: there is no redis-server for this system.
var supported = fmt.Errorf("a private redis-server does not run on %s: %w", runtime.GOOS, errors.ErrUnsupported)

func attributes() *syscall.SysProcAttr { return nil }

func killTree(p *os.Process) error { return p.Kill() }
