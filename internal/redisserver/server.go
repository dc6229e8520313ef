// Package redisserver starts the redis-server that is installed on this machine as a private server
// of the lab: in a directory of its own that only this user can enter, reached by a Unix socket in
// it, with a password, and without persistence. What it stores is gone with it, and it is gone with
// the lab.
//
// The package speaks just enough of Redis' protocol to see that a server is ready and to tell it
// whom to follow; keys are the business of the store. Nothing here may be called inside a bubble
// (see package vtime): processes and sockets live in real time.
package redisserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"retrylab/internal/privatedir"
	"retrylab/internal/vtime"
)

// patience is how long a server may take to become ready, in real time. One on an idle machine
// needs some 10 ms.
const patience = 30 * time.Second

// errSlow says that a server is not ready after all patience.
var errSlow = fmt.Errorf("not ready after %v", patience)

// errStopped says that a server was to go on that has been stopped.
var errStopped = errors.New("the server has been stopped")

// Options say which server to start, and where.
type Options struct {
	Binary string // redis-server: a path, or a name in the PATH; where it is empty, see [Find]
	Parent string // in which the private directory is made; the system's temporary directory if empty
}

// A Server is a private redis-server. Its methods are safe for use by several goroutines.
type Server struct {
	binary   string
	parent   string
	password string
	private  *privatedir.Dir
	dir      directory // its path
	version  string

	life  context.Context // of the process; it ends with Stop or with the context of Start
	end   context.CancelFunc
	group vtime.Group

	mu      sync.Mutex // held while the process is started or ended
	process *process

	stop    sync.Once
	stopErr error
}

// Start starts a server and returns when it answers. It is stopped by [Server.Stop] or by the end of
// ctx; if the lab is killed, Linux kills it at once, and elsewhere the next Start does.
func Start(ctx context.Context, o Options) (*Server, error) {
	return start(ctx, o, rand.Text())
}

func start(ctx context.Context, o Options, password string) (*Server, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("start redis-server: %w", context.Cause(ctx))
	}
	binary, err := Find(o.Binary)
	if err != nil {
		return nil, err
	}
	private, err := newDirectory(ctx, o.Parent)
	if err != nil {
		return nil, fmt.Errorf("make a directory for redis-server: %w", err)
	}
	s := &Server{binary: binary, parent: o.Parent, password: password, private: private, dir: directory(private.Path())}
	s.life, s.end = context.WithCancel(ctx)
	if err := s.startProcess(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", binary, err), s.Stop())
	}
	context.AfterFunc(s.life, func() { _ = s.Stop() })
	return s, nil
}

// startProcess writes the configuration, starts the process, and waits until it answers.
func (s *Server) startProcess(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.WriteFile(s.dir.file("redis.conf"), s.configuration(), 0o600); err != nil {
		return err
	}
	return s.launch(ctx)
}

// configuration is that of a server that nobody else reaches and that keeps nothing. It goes into a
// file, since the password must not stand on a command line for all to read.
func (s *Server) configuration() []byte {
	var b bytes.Buffer
	for _, line := range [][2]string{
		{"port", "0"}, // no TCP: no port to clash, and a socket that file permissions protect
		{"unixsocket", s.dir.socket()},
		{"unixsocketperm", "700"},
		{"requirepass", s.password},
		{"masterauth", s.password},
		{"dir", string(s.dir)},
		{"save", ""},
		{"appendonly", "no"},
		{"daemonize", "no"},
		{"logfile", ""},
		{"repl-diskless-sync", "yes"},
		{"repl-diskless-sync-delay", "0"}, // there is one replica; it need not wait for others
	} {
		fmt.Fprintf(&b, "%s %s\n", line[0], quote(line[1]))
	}
	return b.Bytes()
}

// quote writes a value as Redis' configuration reads it.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`).Replace(s) + `"`
}

// launch starts the process and waits until it answers. The caller holds mu.
func (s *Server) launch(ctx context.Context) error {
	p, err := run(s.life, &s.group, s.binary, s.dir)
	if err != nil {
		return err
	}
	s.process = p
	clock := vtime.NewWall(time.Time{}, 1)
	ctx, cancel := clock.WithTimeout(ctx, patience, errSlow)
	defer cancel()
	for {
		info, err := s.ask(ctx, "INFO", "server")
		if err == nil {
			if s.version == "" { // a restart does not change it under a reader
				s.version = Field(info, "redis_version")
			}
			return nil
		}
		select {
		case <-p.exited:
			return s.died(p)
		default:
		}
		if cause := clock.Sleep(ctx, time.Millisecond); cause != nil {
			return fmt.Errorf("%w (%w)", cause, err)
		}
	}
}

// died explains why a process ended before it was ready, in its own words where there are some.
func (s *Server) died(p *process) error {
	if s.life.Err() != nil {
		return errStopped
	}
	why := fmt.Errorf("it ended at once: %v", p.err)
	if log, err := os.ReadFile(s.dir.file("log")); err == nil {
		log = bytes.TrimSpace(log)
		if i := bytes.LastIndexByte(log, '\n'); len(log) > 0 {
			return fmt.Errorf("%w: %s", why, bytes.TrimSpace(log[i+1:]))
		}
	}
	return why
}

// Addr returns the network and the address for [net.Dialer.DialContext]. They stay the same over a
// restart.
func (s *Server) Addr() (network, address string) { return "unix", s.dir.socket() }

// Password returns what a client must send with AUTH.
func (s *Server) Password() string { return s.password }

// Version returns the version that the server itself reports.
func (s *Server) Version() string { return s.version }

// Kill ends the process with SIGKILL, as a crash does, and returns when it is gone.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kill()
}

func (s *Server) kill() error {
	if s.process == nil {
		return nil
	}
	return s.process.kill()
}

// Restart kills the process unless that has been done, and starts it again at the same address. All
// keys are lost.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return fmt.Errorf("restart redis-server: %w", errStopped)
	}
	err := s.kill()
	if err == nil {
		err = s.launch(ctx)
	}
	if err != nil {
		return fmt.Errorf("restart redis-server: %w", err)
	}
	return nil
}

// Stop ends the process and removes its directory. It returns when both are gone.
func (s *Server) Stop() error {
	s.stop.Do(func() {
		s.end() // which also ends a start that is under way
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stopErr = errors.Join(s.kill(), s.group.Wait(), s.private.Remove())
	})
	return s.stopErr
}

// Field returns the value of one line of what INFO answers.
func Field(info, name string) string {
	for line := range strings.Lines(info) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && key == name {
			return value
		}
	}
	return ""
}

// Find returns the path of redis-server: the one that was asked for, or else the first that is
// found in the PATH or where the usual packages put it.
func Find(explicit string) (string, error) { return find(explicit, places) }

func find(explicit string, places []string) (string, error) {
	if explicit != "" {
		found, err := lookPath(explicit)
		if err != nil {
			return "", fmt.Errorf("redis-server %q cannot be run: %w", explicit, err)
		}
		return found, nil
	}
	if found, err := lookPath("redis-server"); err == nil {
		return found, nil
	}
	for _, place := range places {
		if found, err := lookPath(filepath.Join(place, "redis-server")); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("there is no redis-server: looked in the PATH, %s", strings.Join(places, ", "))
}

// places are where packages put redis-server: those of Linux distributions, of the source, of
// Homebrew and of MacPorts.
var places = []string{"/usr/bin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin", "/opt/local/bin"}
