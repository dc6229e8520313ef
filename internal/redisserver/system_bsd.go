//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package redisserver

import "syscall"

// attributes cannot tie the server to the life of the lab here: what a killed lab leaves behind is
// ended by the next start.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
