package vtime

import (
	"context"
	"math"
	"time"
)

// A Clock tells scenario time: the time in which the durations of a scenario
// are written. It is safe for use by several goroutines.
type Clock struct {
	virtual  bool
	speed    float64
	start    time.Time
	calendar time.Time
	instants instants
}

// NewVirtual returns a clock that follows the fake time of the bubble in which
// it is made and used. Its speed is 1. The calendar is the date at its start.
func NewVirtual(calendar time.Time) *Clock {
	return &Clock{virtual: true, speed: 1, start: time.Now(), calendar: calendar.Round(0)}
}

// NewWall returns a clock on which speed seconds of scenario time pass in one
// real second. It panics unless speed is positive and finite. The calendar is
// the date at its start.
func NewWall(calendar time.Time, speed float64) *Clock {
	if !(speed > 0) || math.IsInf(speed, 1) {
		panic("vtime: the speed of a clock must be positive and finite")
	}
	return &Clock{speed: speed, start: time.Now(), calendar: calendar.Round(0)}
}

// NewWallAt is [NewWall] for a clock that was started at another time, such as
// that of another process. The start is a time on the system's calendar clock,
// which counts only until NewWallAt returns: it may be set, and the clock goes
// on.
func NewWallAt(start, calendar time.Time, speed float64) *Clock {
	c := NewWall(calendar, speed)
	c.start = c.start.Add(-c.start.Sub(start.Round(0)))
	return c
}

// Start returns what another process starts the same clock with.
func (c *Clock) Start() time.Time { return c.start.Round(0) }

// Virtual reports whether c was made by [NewVirtual].
func (c *Clock) Virtual() bool { return c.virtual }

// Speed returns how much faster than real time the scenario goes.
func (c *Clock) Speed() float64 { return c.speed }

// Now returns the scenario time that has passed since the clock was made.
func (c *Clock) Now() time.Duration {
	real := time.Since(c.start)
	if c.speed == 1 {
		return real
	}
	return duration(float64(real) * c.speed)
}

// Date returns the date on the calendar of the lab. It is what a scenario
// shows, stores and sends; it is no argument for a timer or a deadline.
func (c *Clock) Date() time.Time { return c.calendar.Add(c.Now()) }

// Real returns what a timer must be set to for d of scenario time to pass. A
// positive duration never becomes zero.
func (c *Clock) Real(d time.Duration) time.Duration {
	if c.speed == 1 {
		return d
	}
	real := duration(float64(d) / c.speed)
	if real == 0 && d > 0 {
		return 1
	}
	return real
}

// Deadline returns the deadline to give to a [net.Conn] for an operation that
// may take d of scenario time from now.
func (c *Clock) Deadline(d time.Duration) time.Time {
	return time.Now().Add(c.Real(d))
}

// Sleep waits for d of scenario time and returns nil, or returns
// [context.Cause] of ctx as soon as that has ended. When both fall on one
// instant, the sleep is over. A duration that is not positive does not wait.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	return sleep(ctx, c.Real(d))
}

// WithTimeout is [context.WithTimeoutCause] in scenario time.
func (c *Clock) WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.Real(d), cause)
}

// AfterFunc calls f in a goroutine of its own after d of scenario time. The
// goroutine belongs to no [Group]: f must not panic, or must catch what it
// panics with. The function stop is [time.Timer.Stop].
func (c *Clock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(c.Real(d), f).Stop
}

// sleep waits for d, not scaled, or until ctx has ended.
func sleep(ctx context.Context, d time.Duration) error {
	start := time.Now()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		// Select picks at random among what is ready, and a context that ends
		// by a timer of the same instant may be ready first. What decides is
		// the time.
		if time.Since(start) >= d {
			return nil
		}
		return context.Cause(ctx)
	}
}

// duration returns the duration of ns nanoseconds, or the nearest there is.
func duration(ns float64) time.Duration {
	switch {
	case ns >= math.MaxInt64:
		return math.MaxInt64
	case ns <= math.MinInt64:
		return math.MinInt64
	default:
		return time.Duration(ns)
	}
}
