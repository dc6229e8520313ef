package vtime

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
)

// This is the only file outside tests that imports package testing. The virtual
// clock is that of testing/synctest, which works in an ordinary binary as long
// as no method of the testing.T is called; nothing else of the lab depends on
// how it is made. The package adds no flags to the binary. In a binary with the
// race detector it ends the process after the report of a race in a bubble.

// ErrNoBubble says that [Bubble] could not run because the toolchain, or a
// setting of it, refuses to fake the time of an ordinary program.
var ErrNoBubble = errors.New("the virtual clock does not work with this toolchain (--clock wall does)")

// ErrNested says that [Bubble] was called inside a bubble.
var ErrNested = errors.New("a bubble cannot be started inside a bubble")

// errGoexit is how a function fails that neither returns nor panics.
var errGoexit = errors.New("the function in the bubble ended by runtime.Goexit")

// A StallError says that nothing in a bubble could ever go on: each of its
// goroutines was blocked, and no timer was left to wake one.
//
// The blocked goroutines stay behind. Nothing can wake or end them, and what
// they refer to is not freed before the process ends. Files and sockets that
// they would have closed stay open.
type StallError struct {
	Reason string // in the words of the runtime
	Stacks []byte // of the goroutines that stay behind, as runtime.Stack formats them
}

// Error returns the reason, without the stacks.
func (e *StallError) Error() string { return "stalled: " + e.Reason }

// Bubble calls f in a bubble, in which time is fake and starts at midnight UTC
// of 1 January 2000. It returns nil after f has returned and every goroutine
// started in the bubble has ended.
//
// Time stops when f returns, so f waits for the goroutines it has started: one
// that then still sleeps will never wake up.
//
// The error is, or wraps, a [*PanicError] if f panicked, a [*StallError] if
// goroutines were left that are blocked for ever, [ErrNoBubble] or [ErrNested].
// Two failures are out of reach: a panic in another goroutine that is not
// caught there (see [Group]) ends the process, and a goroutine that blocks on
// anything outside the bubble, even a mutex, stops its time, so that Bubble
// does not return.
//
// Several bubbles may run at once; they do not notice each other.
func Bubble(f func()) (err error) {
	var b bubble
	defer func() { err = b.outcome(recover()) }()
	b.run(f)
	return nil
}

// A bubble is what is known of one run of a function in a bubble.
type bubble struct {
	id     string // as the headers of stack traces show it; may be empty
	failed error  // how f failed
}

// run leaves a panic of synctest.Test to its caller.
func (b *bubble) run(f func()) {
	synctest.Test(new(testing.T), func(*testing.T) {
		b.id = bubbleID()
		// Package testing would panic if f ended by runtime.Goexit, so f gets
		// a goroutine of its own.
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			returned := false
			defer func() {
				if v := recover(); v != nil {
					b.failed = &PanicError{Value: v, Stack: debug.Stack()}
				} else if !returned {
					b.failed = errGoexit
				}
			}()
			f()
			returned = true
		}()
		<-ended
	})
}

// outcome returns the error of a run that panicked with v, which is nil if it
// did not.
func (b *bubble) outcome(v any) error {
	if v == nil {
		return b.failed
	}
	var err error
	switch reason := fmt.Sprint(v); {
	case strings.HasPrefix(reason, "deadlock: "):
		err = &StallError{Reason: strings.TrimPrefix(reason, "deadlock: "), Stacks: stacks(b.id)}
	case strings.Contains(reason, "from within a synctest bubble"):
		err = ErrNested
	default:
		err = fmt.Errorf("%w: %s", ErrNoBubble, reason)
	}
	if b.failed != nil {
		return errors.Join(b.failed, err) // the first explains the second
	}
	return err
}

// bubbleMark precedes the id of its bubble in the header of a goroutine's
// stack trace:
//
//	goroutine 7 [chan receive (durable), synctest bubble 1]:
const bubbleMark = ", synctest bubble "

// bubbleID returns the id of the bubble of its caller, or "" if that cannot be
// told.
func bubbleID() string {
	buf := make([]byte, 128)
	header, _, _ := strings.Cut(string(buf[:runtime.Stack(buf, false)]), "]:")
	_, id, _ := strings.Cut(header, bubbleMark)
	return id
}

// stacks returns the stack traces of the goroutines in the bubble with an id.
func stacks(id string) []byte {
	if id == "" {
		return nil
	}
	buf := make([]byte, 64<<10)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	var in [][]byte
	for trace := range bytes.SplitSeq(buf, []byte("\n\n")) {
		header, _, _ := bytes.Cut(trace, []byte("\n"))
		if bytes.HasSuffix(header, []byte(bubbleMark+id+"]:")) {
			in = append(in, trace)
		}
	}
	return bytes.Join(in, []byte("\n\n"))
}
