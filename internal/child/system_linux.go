package child

import "syscall"

// attributes make the kernel kill the process when this one ends, and keep a Ctrl-C at the terminal
// from reaching it: who started it ends it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
