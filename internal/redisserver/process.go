package redisserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"retrylab/internal/vtime"
)

// lookPath finds what can be run. A name without a slash is looked for in the PATH.
func lookPath(name string) (string, error) { return exec.LookPath(name) }

// A process is one run of redis-server.
type process struct {
	os     *os.Process
	exited chan struct{} // closed when it is gone
	err    error         // how it ended; to be read after exited
}

// run starts redis-server in its directory. The end of ctx kills it.
func run(ctx context.Context, group *vtime.Group, binary string, dir directory) (*process, error) {
	log, err := os.OpenFile(dir.file("log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, binary, dir.file("redis.conf"))
	cmd.Dir = string(dir)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = attributes()
	cmd.Cancel = func() error { return killTree(cmd.Process) }

	p := &process{exited: make(chan struct{})}
	started := make(chan error, 1)
	group.Go(func() {
		// On Linux the kernel kills the server when the thread ends that started it, whether the
		// lab lives or not. A Go program ends threads as it pleases, so the goroutine keeps this
		// one until the server is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.exited)
		}
	})
	if err := <-started; err != nil {
		return nil, err
	}
	p.os = cmd.Process
	return p, nil
}

// kill ends the process at once and returns when it is gone.
func (p *process) kill() error {
	if err := killTree(p.os); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill redis-server: %w", err)
	}
	<-p.exited
	return nil
}
