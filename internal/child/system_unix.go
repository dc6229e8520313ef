//go:build unix && !linux

package child

import "syscall"

// attributes keep a Ctrl-C at the terminal from reaching the process: who started it ends it. That
// it ends when this one is killed is up to the process itself, which finds its pipes closed.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
