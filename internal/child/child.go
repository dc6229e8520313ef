// Package child starts processes that do not outlive this one, however it ends: by a panic, by
// kill -9, or in order. It knows nothing of what they do.
package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"retrylab/internal/vtime"
)

// Process is a process that was started.
type Process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // to be read after exited
}

// Command is what is to be run, and with what. The rest is fixed: standard input and output are
// nothing, and the environment is the one given here, whatever this process has.
type Command struct {
	Path  string
	Args  []string // after the name of the program
	Env   []string
	Files []*os.File // the process has them from 3 on; they stay open here too
	Log   *Tail      // of what it writes to standard error; nil for nothing
}

// Start starts a process. A goroutine of the group waits for it.
func Start(group *vtime.Group, c Command) (*Process, error) {
	p := &Process{
		cmd:    &exec.Cmd{Path: c.Path, Args: append([]string{c.Path}, c.Args...), Env: c.Env, ExtraFiles: c.Files, SysProcAttr: attributes()},
		exited: make(chan struct{}),
	}
	if p.cmd.Env == nil {
		p.cmd.Env = []string{} // nil would be this process's own
	}
	if c.Log != nil {
		p.cmd.Stderr = c.Log
	}
	started := make(chan error, 1)
	group.Go(func() {
		// On Linux the kernel kills a child when the thread ends that started it, whether the
		// process lives or not. A Go program ends threads as it pleases, but not one that a
		// goroutine is locked to: this one stays until the child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.exited)
		}
	})
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start a child process: %w", err)
	}
	return p, nil
}

// ID is the number of the process.
func (p *Process) ID() int { return p.cmd.Process.Pid }

// Exited is closed when the process is gone, and has been waited for.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Err says how the process ended, after it has.
func (p *Process) Err() error { return p.err }

// Kill ends the process at once, as kill -9 does, and returns when it is gone.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill process %d: %w", p.cmd.Process.Pid, err)
	}
	<-p.exited
	return nil
}
