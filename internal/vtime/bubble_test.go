package vtime

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// Not parallel: it changes the environment of the process.
func TestBubbleRefused(t *testing.T) {
	t.Setenv("GODEBUG", "asynctimerchan=1")
	err := Bubble(func() { t.Error("the function was called") })
	if !errors.Is(err, ErrNoBubble) {
		t.Fatalf("got %v, want %v", err, ErrNoBubble)
	}
	for _, want := range []string{"--clock wall", "asynctimerchan"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not mention %q", err, want)
		}
	}
}

func TestBubbleTimeIsFake(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	inBubble(t, func() {
		if got, want := time.Now().UTC(), time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC); !got.Equal(want) {
			t.Errorf("time starts at %v, want %v", got, want)
		}
		start := time.Now()
		time.Sleep(1000 * time.Hour)
		if got, want := time.Since(start), 1000*time.Hour; got != want {
			t.Errorf("slept for %v, want %v", got, want)
		}
	})
	if d := time.Since(begin); d > time.Hour {
		t.Errorf("the bubble took %v", d)
	}
}

func TestBubbleWaitsForGoroutines(t *testing.T) {
	t.Parallel()
	ended := 0
	inBubble(t, func() {
		var mu sync.Mutex
		for range 100 {
			go func() {
				mu.Lock()
				defer mu.Unlock()
				ended++
			}()
		}
	})
	if got, want := ended, 100; got != want {
		t.Errorf("%d goroutines have ended, want %d", got, want)
	}
}

func TestBubblePanic(t *testing.T) {
	t.Parallel()
	cause := errors.New("boom")
	err := Bubble(func() { explode(cause) })
	got, ok := errors.AsType[*PanicError](err)
	if !ok {
		t.Fatalf("got %v, want a *PanicError", err)
	}
	if !errors.Is(err, cause) {
		t.Errorf("%v does not wrap %v", err, cause)
	}
	if !strings.Contains(string(got.Stack), "explode") {
		t.Errorf("the stack does not show who panicked:\n%s", got.Stack)
	}
	if got, want := err.Error(), "panic: boom"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, ok := errors.AsType[*StallError](err); ok {
		t.Errorf("a bubble without blocked goroutines has stalled: %v", err)
	}
}

func explode(v any) { panic(v) }

func TestBubblePanicNil(t *testing.T) {
	t.Parallel()
	if err := Bubble(func() { explode(nil) }); err == nil {
		t.Error("a panic with nil passed as success")
	}
}

func TestBubbleGoexit(t *testing.T) {
	t.Parallel()
	// What t.FailNow does, in the wrong goroutine.
	err := Bubble(runtime.Goexit)
	if !errors.Is(err, errGoexit) {
		t.Errorf("got %v, want %v", err, errGoexit)
	}
}

func TestBubbleStall(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		f        func()
		panicked bool
		blocked  string // a function that must be in the stacks
	}{
		{name: "all are blocked", f: forever, blocked: "forever"},
		{name: "one is left behind", f: func() { go forever() }, blocked: "forever"},
		{name: "one sleeps when time stops", f: func() { go time.Sleep(time.Hour) }, blocked: "time.Sleep"},
		{name: "a panic leaves one behind", f: func() {
			go forever()
			explode("boom")
		}, panicked: true, blocked: "forever"},
	} {
		err := Bubble(test.f)
		got, ok := errors.AsType[*StallError](err)
		if !ok {
			t.Errorf("%s: got %v, want a *StallError", test.name, err)
			continue
		}
		if !strings.Contains(err.Error(), "blocked") {
			t.Errorf("%s: %q does not say that goroutines are blocked", test.name, err)
		}
		if !strings.Contains(string(got.Stacks), test.blocked) {
			t.Errorf("%s: the stacks do not show %s:\n%s", test.name, test.blocked, got.Stacks)
		}
		if _, ok := errors.AsType[*PanicError](err); ok != test.panicked {
			t.Errorf("%s: got %v, panic is %v, want %v", test.name, err, ok, test.panicked)
		}
	}
}

func forever() { <-make(chan int) }

func TestBubbleNested(t *testing.T) {
	t.Parallel()
	inBubble(t, func() {
		err := Bubble(func() { t.Error("the function was called") })
		if !errors.Is(err, ErrNested) {
			t.Errorf("got %v, want %v", err, ErrNested)
		}
		time.Sleep(time.Second) // the outer bubble goes on
	})
}

func TestBubblesSideBySide(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	errs := make([]error, 16)
	for i := range errs {
		wg.Go(func() {
			errs[i] = Bubble(func() {
				start, d := time.Now(), time.Duration(i+1)*time.Hour
				time.Sleep(d)
				if got := time.Since(start); got != d {
					panic(fmt.Sprintf("slept for %v, want %v", got, d))
				}
			})
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}
