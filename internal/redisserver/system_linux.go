package redisserver

import "syscall"

// attributes make the kernel kill the server when the lab ends, even by kill -9.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
