package pgcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"retrylab/internal/vtime"
)

const (
	readyLimit = 30 * time.Second // until a server accepts connections, or has ended by force
	patience   = 3 * time.Second  // with a server that was told to stop, before a harder word
)

// arguments are those of the server. A later setting wins over an earlier one.
func (c *Cluster) arguments() []string {
	connections := 100
	if c.options.MaxConnections != 0 {
		connections = c.options.MaxConnections
	}
	args := []string{
		"-D", c.dir.data(),
		"-c", "fsync=off", // nothing has to outlive a power failure
		"-c", "full_page_writes=off",
		"-c", "synchronous_commit=on", // off, commits vanish that were acknowledged: the lab would lie
		"-c", "shared_buffers=16MB",
		"-c", "max_connections=" + strconv.Itoa(connections),
		"-c", "autovacuum=off", // does what it does at moments of its own
		"-c", "jit=off",
		"-c", "wal_level=minimal",
		"-c", "max_wal_senders=0",
		"-c", "timezone=UTC",
	}
	for _, name := range slices.Sorted(maps.Keys(c.options.Extra)) {
		args = append(args, "-c", name+"="+c.options.Extra[name])
	}
	return append(args,
		"-k", c.dir.socket(), "-p", strconv.Itoa(port),
		"-c", "listen_addresses=", // every user of the machine could connect to a port
		"-c", "unix_socket_permissions=0700",
		"-c", "log_destination=stderr",
		"-c", "logging_collector=off",
		"-c", "log_min_messages=log", // not the errors that statements meet: they are the experiment
		"-c", "log_checkpoints=off",
		"-c", "log_line_prefix=",
		"-c", "lc_messages=C", // ready is a word of it
	)
}

// server is a running postgres.
type server struct {
	cmd   *exec.Cmd
	log   logTail
	group vtime.Group
	gone  chan struct{} // closed when the process and its children have ended
	ended error         // how; to be read after gone
}

// launch starts a server and waits until it accepts connections.
func launch(ctx context.Context, clock *vtime.Clock, b Binaries, a account, args []string) (*server, error) {
	s := &server{gone: make(chan struct{}), log: logTail{ready: make(chan struct{})}}
	// The server lives on when ctx, which is about its start, has ended.
	s.cmd = b.command(context.WithoutCancel(ctx), a, "postgres", args...)
	s.cmd.Stderr = &s.log
	started := make(chan error, 1)
	s.group.Go(func() {
		defer close(s.gone)
		defer close(started)
		// On Linux the server gets a signal when its parent dies, and its parent is the thread
		// that started it, not the process. The runtime may end a thread when it likes, but not one
		// that a goroutine is locked to: this one stays until the server has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			s.ended = s.cmd.Wait()
		}
	})
	if err := <-started; err != nil {
		return nil, failure("run postgres", a, err, "")
	}
	limited, cancel := clock.WithTimeout(ctx, readyLimit, fmt.Errorf("not ready after %v", readyLimit))
	defer cancel()
	select {
	case <-s.log.ready:
		return s, nil
	case <-s.gone:
		return nil, failure("run postgres", a, fmt.Errorf("ended before it was ready: %w", s.how()), s.log.String())
	case <-limited.Done():
		err := failure("wait for the server", a, context.Cause(limited), s.log.String())
		return nil, errors.Join(err, s.stop(clock))
	}
}

// how says how the server ended.
func (s *server) how() error {
	if s.ended == nil {
		return errors.New("exit status 0")
	}
	return s.ended
}

// stop ends the server: in order, else at once, else by force. Each session is ended in any case.
func (s *server) stop(clock *vtime.Clock) error {
	byItself := func() error {
		return fmt.Errorf("the server had ended by itself: %w:\n%s", s.how(), lastLines(s.log.String(), 5))
	}
	if s.hasEnded() {
		return byItself()
	}
	for _, word := range []struct {
		signal   syscall.Signal
		patience time.Duration
	}{{syscall.SIGINT, patience}, {syscall.SIGQUIT, patience}, {syscall.SIGKILL, readyLimit}} {
		if err := s.cmd.Process.Signal(word.signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("send %v to process %d: %w", word.signal, s.cmd.Process.Pid, err)
		}
		if !s.within(clock, word.patience) {
			continue
		}
		if word.signal == syscall.SIGINT && s.ended != nil {
			return byItself() // it obeys with success; its end had only not been noticed yet
		}
		return s.group.Wait()
	}
	return fmt.Errorf("process %d does not end", s.cmd.Process.Pid)
}

func (s *server) hasEnded() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// within waits for the end of the server for so long, and reports whether it came.
func (s *server) within(clock *vtime.Clock, limit time.Duration) bool {
	late := make(chan struct{})
	stop := clock.AfterFunc(limit, func() { close(late) })
	defer stop()
	select {
	case <-s.gone:
	case <-late:
	}
	return s.hasEnded()
}

// logTail is the end of a server's log. It notices when the server is ready.
type logTail struct {
	ready chan struct{}

	mu   sync.Mutex
	text []byte
	seen bool
}

// tailSize is what is kept of a log. It is more than a line of it.
const tailSize = 8 << 10

func (l *logTail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if !l.seen && bytes.Contains(l.text, []byte("database system is ready to accept connections")) {
		l.seen = true
		close(l.ready)
	}
	l.text = l.text[max(0, len(l.text)-tailSize):]
	return len(p), nil
}

func (l *logTail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}
