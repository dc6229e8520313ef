package vtime

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
)

// A PanicError is a panic that was caught.
type PanicError struct {
	Value any    // the argument of panic
	Stack []byte // the stack of the goroutine that panicked, as debug.Stack formats it
}

// Error returns the value of the panic, without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value of the panic if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// A Group starts goroutines and catches their panics. Every goroutine of a
// trial starts through one, since a panic that is not recovered in its own
// goroutine ends the process, with all trials in it.
//
// The zero value is ready for use. A Group used in a [Bubble] belongs to it.
type Group struct {
	// OnPanic, if set, is called with each [*PanicError] in the goroutine that
	// panicked, before [Group.Wait] can return. It must be set before the
	// Group is used, must not panic, and is there to end the trial early.
	OnPanic func(error)

	wg    sync.WaitGroup
	mu    sync.Mutex
	first *PanicError
}

// Go calls f in a new goroutine.
func (g *Group) Go(f func()) {
	g.wg.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				g.record(v)
			}
		}()
		f()
	})
}

// Wait waits for the goroutines that [Group.Go] started and returns what
// [Group.Err] then returns.
func (g *Group) Wait() error {
	g.wg.Wait()
	return g.Err()
}

// Catch is for a deferred call, as in
//
//	defer g.Catch()
//
// in a function that someone else starts: an HTTP handler, whose panics
// net/http would print and forget, or the function of a timer. It recovers a
// panic and records it as [Group.Go] does. [http.ErrAbortHandler] is no
// failure but a handler's way to drop its connection, and goes on as it came.
//
// The function returns as if nothing had happened; net/http then sends what
// the handler had written, or an empty reply with status 200.
func (g *Group) Catch() {
	switch v := recover(); v {
	case nil:
	case http.ErrAbortHandler:
		panic(v)
	default:
		g.record(v)
	}
}

// Err returns the first [*PanicError] that was caught so far, or nil.
func (g *Group) Err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.first == nil {
		return nil
	}
	return g.first
}

// record keeps the value of a panic. It must be called while the stack of the
// panic still stands.
func (g *Group) record(v any) {
	err := &PanicError{Value: v, Stack: debug.Stack()}
	g.mu.Lock()
	if g.first == nil {
		g.first = err
	}
	g.mu.Unlock()
	if g.OnPanic != nil {
		g.OnPanic(err)
	}
}
