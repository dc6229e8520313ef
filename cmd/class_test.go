//go:build unix

package cmd

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"retrylab/internal/classroom"
)

// seat is the tool at a terminal of its own, with somebody who types once they have read.
type seat struct {
	t       *testing.T
	master  *os.File
	slave   *os.File // kept open, so that the terminal outlives the process
	before  *term.State
	command *exec.Cmd

	mu   sync.Mutex
	news chan struct{} // something was written since
	over chan struct{} // closed when all was read: nobody holds the terminal any more
	text []byte
	read int // what was awaited so far
}

func sit(t *testing.T, env []string, args ...string) *seat {
	t.Helper()
	return sitAt(t, pty.Winsize{Rows: 24, Cols: 80}, env, args...)
}

func sitAt(t *testing.T, size pty.Winsize, env []string, args ...string) *seat {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Skipf("there is no terminal to be had: %v", err)
	}
	if err := pty.Setsize(slave, &size); err != nil {
		t.Fatal(err)
	}
	before, err := term.GetState(int(slave.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	s := &seat{t: t, master: master, slave: slave, before: before, news: make(chan struct{}, 1), over: make(chan struct{})}
	s.command = exec.CommandContext(t.Context(), "retrylab", args...)
	s.command.Env = append(os.Environ(), append([]string{"TMPDIR=" + t.TempDir(), "LC_ALL=C.UTF-8", "TERM=xterm", "COLUMNS=", "CI=", "GORACE=" + noNap}, env...)...)
	s.command.Stdin, s.command.Stdout, s.command.Stderr = slave, slave, slave
	s.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.over)
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer)
			s.mu.Lock()
			s.text = append(s.text, buffer[:n]...)
			s.mu.Unlock()
			select {
			case s.news <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { slave.Close(); master.Close() })
	return s
}

// sees waits until a text is on the screen that was not awaited before.
func (s *seat) sees(text string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patient)
	defer cancel()
	for {
		s.mu.Lock()
		at := bytes.Index(s.text[s.read:], []byte(text))
		if at >= 0 {
			s.read += at + len(text)
		}
		s.mu.Unlock()
		if at >= 0 {
			return
		}
		select {
		case <-s.news:
		case <-ctx.Done():
			s.t.Fatalf("it never shows %q, but\n%q", text, s.written())
		}
	}
}

func (s *seat) written() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.text)
}

// all is what the tool has written, once it has left.
func (s *seat) all() string {
	s.slave.Close()
	<-s.over
	return s.written()
}

func (s *seat) types(keys string) {
	s.t.Helper()
	if _, err := s.master.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// leaves checks how the process ends, and that its terminal is as it was.
func (s *seat) leaves(code int) {
	s.t.Helper()
	err := s.command.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || s.command.ProcessState.ExitCode() != code {
		s.t.Errorf("it ends with %v, not exit status %d:\n%q", err, code, s.written())
	}
	after, err := term.GetState(int(s.slave.Fd()))
	if err != nil || !reflect.DeepEqual(s.before, after) {
		s.t.Errorf("the terminal is left as %+v (%v), and was %+v", after, err, s.before)
	}
}

// patient is how long a test waits for what must come.
const patient = time.Minute

const (
	asks     = "How many orders will there be?"
	goesOn   = "Enter: the next configuration   q: quit "
	sideways = "Enter: all of them side by side   q: quit "
)

// TestStep goes through a scenario as a class does.
func TestStep(t *testing.T) {
	t.Parallel()
	s := sit(t, []string{"NO_COLOR=1"}, "run", "read-timeout", "--step", "--pace", "instant")
	for i, said := range []string{"1\r", "?2\x7f3 ", "\r", "1\r"} {
		s.sees(asks)
		s.types(said)
		if i == 1 {
			s.sees("Hint: 1 operation, 3 sends, 3 arrivals at the order service.")
			s.sees("Right: 3 orders for 1 intent: 2 too many.")
		}
		s.sees(goesOn)
		s.types("\x1b[6~") // page down: what a presenter's remote sends
	}
	s.sees(asks)
	s.types("7\r")
	s.sees("Not 7: 1 order for 1 intent, as the user meant.")
	s.sees(sideways)
	s.types("\r")
	s.sees("PREDICTED")
	s.sees("Right: 3 of 4 predictions.")
	s.sees("Enter: the lesson   q: quit ")
	s.types("\r")
	s.sees("Next: retrylab run order-incident --step")
	s.sees("Enter: the end ")
	s.types("\r")
	s.leaves(0)
	if text := s.written(); strings.Contains(text, "\x1b[1m") || strings.Contains(text, "\x1b[2m") {
		t.Errorf("there is colour, though NO_COLOR asks for none:\n%q", text)
	}
}

// TestStepCode: told to its end, a lesson has the verdict's code.
func TestStepCode(t *testing.T) {
	t.Parallel()
	s := sit(t, nil, "run", "read-timeout:one-attempt", "--step", "--pace", "instant", "--set", "caller.timeouts.read=15s")
	s.sees("changed: caller.timeouts.read=15s")
	s.sees(asks)
	s.types("1\r")
	s.sees("Its file expects something else")
	s.sees(sideways)
	s.types("\r")
	s.sees("NOT HELD")
	s.sees("Enter: what follows")
	s.types("\r")
	s.sees("Enter: the lesson")
	s.types("\r")
	s.sees("Enter: the end ")
	s.types("\r")
	s.leaves(1)
}

// TestStepLeft leaves in every way, at a question and in the middle of a picture.
func TestStepLeft(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		by   func(*seat)
		code int
	}{
		{"Ctrl-C", func(s *seat) { s.types("\x03") }, 130},
		{"Ctrl-D", func(s *seat) { s.types("\x04") }, 0},
		{"q", func(s *seat) { s.types("q") }, 0},
		{"terminated", func(s *seat) { s.command.Process.Signal(syscall.SIGTERM) }, 143},
	} {
		t.Run(c.name+" at a question", func(t *testing.T) {
			t.Parallel()
			s := sit(t, nil, "run", "read-timeout", "--step")
			s.sees(asks)
			c.by(s)
			s.leaves(c.code)
		})
		t.Run(c.name+" in a picture", func(t *testing.T) {
			t.Parallel()
			s := sit(t, nil, "run", "read-timeout", "--step", "--pace", "0.01x")
			s.sees(asks)
			s.types("\r")
			s.sees("any key: to the end")
			c.by(s)
			s.leaves(c.code)
		})
	}
	t.Run("a key brings the picture to its end", func(t *testing.T) {
		t.Parallel()
		s := sit(t, []string{"LC_ALL=C"}, "run", "read-timeout", "--step", "--pace", "0.01x")
		s.sees(asks)
		s.types("\r")
		s.sees("any key: to the end")
		s.types("x")
		s.sees("1 order for 1 intent, as the user meant.")
		s.sees(goesOn)
		s.types("q")
		s.leaves(0)
		if text := s.written(); strings.IndexFunc(text, func(r rune) bool { return r > '~' }) >= 0 {
			t.Errorf("in a plain locale there is more than ASCII:\n%q", text)
		}
	})
}

// TestCourse takes the first steps of a course, leaves, and comes back.
func TestCourse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// Where the configuration is looked for depends on the system.
	env := []string{"XDG_CONFIG_HOME=" + dir, "HOME=" + dir}
	place := func() classroom.Place {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(dir, "retrylab", "*"))
		if len(found) == 0 {
			found, err = filepath.Glob(filepath.Join(dir, "Library", "Application Support", "retrylab", "*"))
		}
		if err != nil || len(found) != 1 || filepath.Base(found[0]) != "course.json" {
			t.Fatalf("kept are %q (%v)", found, err)
		}
		data, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		p, err := classroom.ReadPlace(data)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	s := sit(t, env, "course", "--pace", "instant")
	s.sees("timeouts, 1 of ")
	for i := range 5 {
		s.sees(asks)
		s.types("\r")
		if i < 4 {
			s.sees(goesOn)
			s.types(" ")
		}
	}
	s.sees(sideways)
	s.types(" ")
	s.sees("Enter: the lesson")
	s.types(" ")
	s.sees("course.json")
	s.sees("Enter: on to order-incident")
	s.types(" ")
	s.sees("timeouts, 2 of ")
	s.sees(asks)
	s.types("q")
	s.sees("on with it: retrylab course")
	s.leaves(0)
	if p := place(); p.Now != "order-incident" || !reflect.DeepEqual(p.Done, []string{"read-timeout"}) {
		t.Errorf("kept is %+v", p)
	}

	s = sit(t, env, "course")
	s.sees("timeouts, 2 of ")
	s.types("\x03")
	s.leaves(130)

	s = sit(t, env, "course", "--from", "unique-index")
	s.sees("guards, ")
	s.types("q")
	s.leaves(0)
	if p := place(); p.Now != "unique-index" || len(p.Done) != 1 {
		t.Errorf("kept is %+v", p)
	}
}
