// Package vtime holds the two clocks of a trial and the two networks that go
// with them.
//
// On the virtual clock a trial runs in a [Bubble], where time is fake: it
// stands still while any goroutine can run and jumps to the next timer when
// none can. Its machines are connected by [Memory]. On the wall clock the same
// code runs in real time, every duration divided by the speed, over [Loopback].
// [Clock] and [Network] hide the difference.
//
// Whatever runs in a bubble obeys its rules. It blocks only on what was made
// inside: channels, timers, [sync.Cond], [sync.WaitGroup]. A mutex is held only
// briefly, since a goroutine that waits for one stops the clock. Nothing waits
// for a context from outside. Goroutines start through a [Group], because a
// panic that nobody recovers ends the process.
//
// The package knows nothing of orders, retries or scenarios, and it draws no
// random numbers: what differs from one connection to the next is derived from
// the seed and the name of the connection.
package vtime
