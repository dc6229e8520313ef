package cmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"retrylab/internal/classroom"
	"retrylab/internal/suite"
)

// errInterrupted is Ctrl-C, which is a key like any other while a terminal gives keys as they are typed.
var errInterrupted = errors.New("interrupted")

// desk is the terminal that a class looks at and types on. While it is taken, keys come one by one, unechoed,
// and Ctrl-C is one of them.
type desk struct {
	in, out *os.File
	keys    chan rune // closed at the end of the input
	begin   time.Time
	shown   bool // something of a lesson is on the screen

	mu     sync.Mutex  // it is given back by a signal too
	before *term.State // of the terminal; nil while it is not taken
}

// terminal says whether there is one to give a lesson on. instead is the command that needs none.
func (a *app) terminal(what, instead string) (in, out *os.File, err error) {
	in, typed := a.stdin.(*os.File)
	out, seen := a.stdout.(*os.File)
	switch {
	case !typed || !term.IsTerminal(int(in.Fd())):
		return nil, nil, usagef(instead, "%s asks questions, and there is no terminal to type the answers on", what)
	case !seen || !isTerminal(out):
		return nil, nil, usagef(instead, "%s is for people to watch, and standard output is no terminal", what)
	case os.Getenv("TERM") == "dumb":
		return nil, nil, usagef(instead, "%s draws over what it has drawn, which this terminal cannot (TERM=dumb)", what)
	}
	return in, out, nil
}

// openDesk takes the terminal over. Whoever leaves at once gives it back.
func (a *app) openDesk(in, out *os.File) (*desk, error) {
	d := &desk{in: in, out: out, keys: make(chan rune, 64), begin: time.Now()}
	a.interrupts.onLeave(d.close)
	if err := d.take(); err != nil {
		return nil, err
	}
	go d.read()
	return d, nil
}

// take takes the terminal over. What was typed before is not meant for what comes.
func (d *desk) take() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	state, err := term.MakeRaw(int(d.in.Fd()))
	if err != nil {
		return &suite.EnvironmentError{Err: fmt.Errorf("take over the terminal: %w", err)}
	}
	d.before, d.shown = state, false
	for {
		select {
		case _, open := <-d.keys:
			if !open {
				return nil
			}
		default:
			return nil
		}
	}
}

// close gives the terminal back as it was. It can be called again.
func (d *desk) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.before == nil {
		return nil
	}
	io.WriteString(d.out, "\r\n")
	err := term.Restore(int(d.in.Fd()), d.before)
	d.before = nil
	return err
}

// read turns what is typed into keys. It ends with the input, or with the process.
func (d *desk) read() {
	defer close(d.keys)
	buffer := make([]byte, 256)
	var sequence []byte // of a key that has no character of its own, from ESC on
	for {
		n, err := d.in.Read(buffer)
		for _, b := range buffer[:n] {
			switch {
			case len(sequence) == 1 && b != '[' && b != 'O': // ESC, and then another key
				sequence = nil
			case len(sequence) > 0:
				if sequence = append(sequence, b); len(sequence) > 2 && b >= '@' {
					if key := string(sequence[2:]); key == "C" || key == "6~" { // the arrow to the right, page down
						d.keys <- classroom.Next
					}
					sequence = nil
				}
				continue
			}
			switch b {
			case '\x1b':
				sequence = []byte{b}
			case '\n', ' ':
				d.keys <- classroom.Next
			case '\b':
				d.keys <- classroom.Erase
			default:
				d.keys <- rune(b)
			}
		}
		if err != nil {
			return
		}
	}
}

// Size is what the terminal says.
func (d *desk) Size() (columns, rows int) {
	_, rows, err := term.GetSize(int(d.out.Fd()))
	if err != nil || rows <= 0 {
		rows = 24
	}
	return width(d.out), rows
}

// Show draws over what was there, line by line, so that nothing flickers.
func (d *desk) Show(lines []string) error {
	var b strings.Builder
	if !d.shown {
		b.WriteString("\x1b[2J") // what was there before stays in the terminal's history, where it has one
		d.shown = true
	}
	b.WriteString("\x1b[H")
	for i, l := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(l + "\x1b[K")
	}
	b.WriteString("\x1b[J")
	_, err := io.WriteString(d.out, b.String())
	return err
}

// Key waits for a key.
func (d *desk) Key() (rune, error) {
	key, open := <-d.keys
	return d.meant(key, open)
}

// Within waits for a key, but not for long.
func (d *desk) Within(limit time.Duration) (rune, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case key, open := <-d.keys:
		return d.meant(key, open)
	case <-timer.C:
		return 0, nil
	}
}

// meant tells keys from the ways to leave.
func (d *desk) meant(key rune, open bool) (rune, error) {
	switch {
	case !open, key == '\x04': // Ctrl-D
		return 0, io.EOF
	case key == '\x03': // Ctrl-C
		return 0, errInterrupted
	}
	return key, nil
}

// Now is the time since the desk was opened.
func (d *desk) Now() time.Duration { return time.Since(d.begin) }

// left turns how a lesson was left into the exit code: told to its end, that of the run; quit, 0, since nobody
// asked for a verdict.
func (a *app) left(err error, code int) error {
	switch {
	case err == nil:
		a.code = code
	case errors.Is(err, classroom.ErrQuit), errors.Is(err, io.EOF):
		a.code = suite.ExitHeld
	case errors.Is(err, errInterrupted):
		a.code = suite.ExitInterrupted
	default:
		return &suite.EnvironmentError{Err: err}
	}
	return nil
}
