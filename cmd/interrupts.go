package cmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"

	"retrylab/internal/suite"
)

// interrupts turns the first Ctrl-C, or a request to terminate, into the end of a context, so that
// partial results are still printed, and the second into leaving at once. While there is nothing to
// report yet, the first leaves too.
type interrupts struct {
	signals chan os.Signal
	pipes   chan os.Signal // SIGPIPE, which nobody waits for
	first   atomic.Int64   // the signal's number, 0 for none
	done    chan struct{}
	once    sync.Once

	exit    func(code int)
	running atomic.Bool            // a trial runs: there is something to end and to report
	news    atomic.Pointer[string] // what the first signal is answered with

	mu     sync.Mutex
	remove []func() error // what must not be left behind
}

func catchInterrupts(ctx context.Context, stderr io.Writer) (context.Context, *interrupts) {
	ctx, cancel := context.WithCancel(ctx)
	in := &interrupts{signals: make(chan os.Signal, 2), pipes: make(chan os.Signal, 1), done: make(chan struct{}), exit: os.Exit}
	in.announce("interrupted; what is complete is reported. Once more leaves at once.")
	signal.Notify(in.signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		signal.Notify(in.signals, syscall.SIGHUP)
	}
	go func() {
		defer cancel()
		for {
			select {
			case s := <-in.signals:
				number, _ := s.(syscall.Signal)
				if in.signalled() != 0 || !in.running.Load() {
					in.first.CompareAndSwap(0, int64(number))
					in.leave()
				}
				in.first.Store(int64(number))
				fmt.Fprintln(stderr, "retrylab: "+*in.news.Load())
				cancel()
			case <-in.done:
				return
			}
		}
	}()
	return ctx, in
}

// announce says what the first signal is answered with.
func (in *interrupts) announce(news string) { in.news.Store(&news) }

// outlivePipes makes the end of whoever reads standard output an error of writing to it, and no longer that of the
// program, which has more to write. It is not ignored: a server that is started would inherit that.
func (in *interrupts) outlivePipes() { signal.Notify(in.pipes, syscall.SIGPIPE) }

// onLeave says what else to remove before leaving at once.
func (in *interrupts) onLeave(remove func() error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.remove = append(in.remove, remove)
}

func (in *interrupts) leave() {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, remove := range in.remove {
		remove()
	}
	in.exit(in.code())
}

// signalled returns the number of the signal that came, 0 for none.
func (in *interrupts) signalled() int { return int(in.first.Load()) }

// code is the exit code that a shell expects of a process that a signal ended.
func (in *interrupts) code() int {
	if n := in.signalled(); n != 0 {
		return 128 + n
	}
	return suite.ExitInterrupted
}

func (in *interrupts) stop() {
	in.once.Do(func() {
		signal.Stop(in.signals)
		signal.Stop(in.pipes)
		close(in.done)
	})
}
