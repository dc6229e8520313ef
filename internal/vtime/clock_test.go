package vtime

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var calendar = time.Date(2026, time.March, 1, 9, 0, 0, 0, time.UTC)

// inBubble runs f in a bubble. A panic of f, as from check, fails the test.
func inBubble(t *testing.T, f func()) {
	t.Helper()
	err := Bubble(f)
	if panicked, ok := errors.AsType[*PanicError](err); ok {
		t.Fatalf("%v\n%s", err, panicked.Stack)
	}
	if stalled, ok := errors.AsType[*StallError](err); ok {
		t.Fatalf("%v\n%s", err, stalled.Stacks)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// check panics with an error that a test does not expect.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// must returns v, or panics with an error that a test does not expect.
func must[T any](v T, err error) T {
	check(err)
	return v
}

func TestClockTime(t *testing.T) {
	t.Parallel()
	inBubble(t, func() {
		for _, test := range []struct {
			name  string
			clock *Clock
			speed float64
			slept time.Duration // scenario time in one real second
		}{
			{"virtual", NewVirtual(calendar), 1, time.Second},
			{"wall", NewWall(calendar, 1), 1, time.Second},
			{"wall, fast", NewWall(calendar, 50), 50, 50 * time.Second},
			{"wall, slow", NewWall(calendar, 0.25), 0.25, 250 * time.Millisecond},
		} {
			c := test.clock
			start := c.Now()
			time.Sleep(time.Second)
			if got, want := c.Now()-start, test.slept; got != want {
				t.Errorf("%s: %v of scenario time have passed in a second, want %v", test.name, got, want)
			}
			if got, want := c.Date(), calendar.Add(c.Now()); !got.Equal(want) {
				t.Errorf("%s: date is %v, want %v", test.name, got, want)
			}
			if got, want := c.Real(test.slept), time.Second; got != want {
				t.Errorf("%s: %v take %v, want %v", test.name, test.slept, got, want)
			}
			if got, want := time.Until(c.Deadline(test.slept)), time.Second; got != want {
				t.Errorf("%s: deadline is %v away, want %v", test.name, got, want)
			}
			if got, want := c.Speed(), test.speed; got != want {
				t.Errorf("%s: speed is %v, want %v", test.name, got, want)
			}
			if got, want := c.Virtual(), test.name == "virtual"; got != want {
				t.Errorf("%s: virtual is %v, want %v", test.name, got, want)
			}
		}
	})
}

func TestClockDateIsNoMomentOfTheProcess(t *testing.T) {
	t.Parallel()
	if got := NewWall(time.Now(), 1).Date().String(); strings.Contains(got, "m=") {
		t.Errorf("date %s has a monotonic reading", got)
	}
}

func TestClockReal(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		speed   float64
		d, want time.Duration
	}{
		{speed: 1, d: math.MaxInt64 - 1, want: math.MaxInt64 - 1},
		{speed: 1, d: 0, want: 0},
		{speed: 10, d: 3 * time.Second, want: 300 * time.Millisecond},
		{speed: 3, d: 12 * time.Second, want: 4 * time.Second},
		{speed: 1e6, d: 1, want: 1},
		{speed: 1e6, d: 0, want: 0},
		{speed: 10, d: -10, want: -1},
		{speed: 0.5, d: math.MaxInt64, want: math.MaxInt64},
		{speed: 0.5, d: math.MinInt64, want: math.MinInt64},
	} {
		if got := NewWall(calendar, test.speed).Real(test.d); got != test.want {
			t.Errorf("at speed %v, %v take %v, want %v", test.speed, test.d, got, test.want)
		}
	}
}

func TestClockSpeedMustBePositive(t *testing.T) {
	t.Parallel()
	for _, speed := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a clock of speed %v was made", speed)
				}
			}()
			NewWall(calendar, speed)
		}()
	}
}

func TestClockSleep(t *testing.T) {
	t.Parallel()
	reason := errors.New("the caller hung up")
	over, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	for _, test := range []struct {
		name   string
		sleep  time.Duration
		cancel time.Duration // when the context ends; 0 is never
		after  time.Duration
		want   error
	}{
		{"to the end", time.Second, 0, time.Second, nil},
		{"context ends first", 2 * time.Second, time.Second, time.Second, reason},
		{"context ends later", time.Second, 2 * time.Second, time.Second, nil},
		{"both at once", time.Second, time.Second, time.Second, nil},
		{"no duration", 0, 0, 0, nil},
		{"negative duration", -time.Second, time.Second, 0, nil},
	} {
		inBubble(t, func() {
			c := NewVirtual(calendar)
			ctx := context.Background()
			if test.cancel > 0 {
				var stop context.CancelFunc
				ctx, stop = c.WithTimeout(ctx, test.cancel, reason)
				defer stop()
			}
			if got := c.Sleep(ctx, test.sleep); got != test.want {
				t.Errorf("%s: got %v, want %v", test.name, got, test.want)
			}
			if got, want := c.Now(), test.after; got != want {
				t.Errorf("%s: slept for %v, want %v", test.name, got, want)
			}
		})
	}
	c := NewWall(calendar, 1)
	for _, d := range []time.Duration{0, time.Hour} {
		if got := c.Sleep(over, d); got != reason {
			t.Errorf("sleep of %v in a context that is over: got %v, want %v", d, got, reason)
		}
	}
}

// The runtime picks at random among several channels that are ready.
func TestClockSleepTieIsDecided(t *testing.T) {
	t.Parallel()
	inBubble(t, func() {
		c := NewVirtual(calendar)
		for range 200 {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(time.Second, cancel)
			if err := c.Sleep(ctx, time.Second); err != nil {
				t.Errorf("a sleep that ends with its context: %v", err)
			}
			cancel()
		}
	})
}

func TestClockWithTimeout(t *testing.T) {
	t.Parallel()
	inBubble(t, func() {
		c := NewWall(calendar, 10)
		reason := errors.New("read timeout")
		ctx, cancel := c.WithTimeout(context.Background(), 5*time.Second, reason)
		defer cancel()
		<-ctx.Done()
		if got, want := c.Now(), 5*time.Second; got != want {
			t.Errorf("timed out after %v, want %v", got, want)
		}
		if got := context.Cause(ctx); got != reason {
			t.Errorf("cause is %v, want %v", got, reason)
		}
		if got, want := ctx.Err(), context.DeadlineExceeded; got != want {
			t.Errorf("err is %v, want %v", got, want)
		}
	})
}

func TestClockAfterFunc(t *testing.T) {
	t.Parallel()
	inBubble(t, func() {
		c := NewWall(calendar, 10)
		var got []time.Duration
		called := make(chan struct{}, 1)
		call := func() {
			got = append(got, c.Now())
			called <- struct{}{}
		}
		stop := c.AfterFunc(5*time.Second, call)
		c.AfterFunc(10*time.Second, call)
		if !stop() {
			t.Error("a function was called before its time")
		}
		if stop() {
			t.Error("a stopped function could be stopped again")
		}
		<-called
		if diff := cmp.Diff([]time.Duration{10 * time.Second}, got); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// TestNewWallAt makes the same clock a second time, as another process does.
func TestNewWallAt(t *testing.T) {
	t.Parallel()
	calendar := time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC)
	first := NewWall(calendar, 1000)
	second := NewWallAt(first.Start(), calendar, 1000)
	a, b, c := first.Now(), second.Now(), first.Now()
	// The calendar clock of the system is less exact than the other.
	if slack := time.Second; b < a-slack || b > c+slack {
		t.Errorf("%v, not between %v and %v", b, a, c)
	}
	if epoch := NewWallAt(time.Unix(0, 0), time.Unix(0, 0), 1); time.Since(epoch.Date()).Abs() > time.Minute {
		t.Errorf("a clock that began in 1970 shows %v", epoch.Date())
	}
}
