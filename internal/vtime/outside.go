package vtime

import "sync"

// An Outside runs functions in real time for goroutines of a [Bubble], in
// goroutines that do not belong to it. It is for what cannot be had inside: a
// timer of real time, a socket whose other end is another process, a goroutine
// that waits for one without stopping the bubble's time.
//
// What such a function touches must not belong to a bubble either: no context,
// channel, timer or WaitGroup of it. Plain memory and mutexes are common.
type Outside struct {
	calls chan *call
	fresh chan *call
	end   chan struct{}
	once  sync.Once
	group Group
}

// A call is one function on its way out and back. Its channel is made outside,
// since one that is made in a bubble belongs to it.
type call struct {
	f    func()
	done chan *PanicError
}

// NewOutside must be called outside any bubble.
func NewOutside() *Outside {
	o := &Outside{calls: make(chan *call), fresh: make(chan *call), end: make(chan struct{})}
	o.group.Go(o.dispatch)
	return o
}

func (o *Outside) dispatch() {
	next := &call{done: make(chan *PanicError, 1)}
	for {
		select {
		case o.fresh <- next:
			next = &call{done: make(chan *PanicError, 1)}
		case c := <-o.calls:
			o.group.Go(c.run)
		case <-o.end:
			return
		}
	}
}

func (c *call) run() {
	var g Group
	func() {
		defer g.Catch()
		c.f()
	}()
	err, _ := g.Err().(*PanicError)
	c.done <- err
}

// Do calls f outside and returns when f has returned. The time of the caller's
// bubble stands still meanwhile. A panic of f goes on in the caller, as a
// [*PanicError].
//
// It can be called from anywhere, and by several goroutines. After Close it
// panics.
func (o *Outside) Do(f func()) {
	var c *call
	select {
	case c = <-o.fresh:
	case <-o.end:
		panic("vtime: an Outside is used after its end")
	}
	c.f = f
	select {
	case o.calls <- c:
	case <-o.end:
		panic("vtime: an Outside is used after its end")
	}
	if err := <-c.done; err != nil {
		panic(err)
	}
}

// Go calls f outside, in a goroutine of its own, and returns at once. A panic
// of f is returned by Close.
func (o *Outside) Go(f func()) { o.Do(func() { o.group.Go(f) }) }

// Close waits for the functions that are being run and ends o.
func (o *Outside) Close() error {
	o.once.Do(func() { close(o.end) })
	return o.group.Wait()
}
