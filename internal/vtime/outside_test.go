package vtime

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestOutsideStopsTime runs what takes real time for a goroutine of a bubble.
func TestOutsideStopsTime(t *testing.T) {
	t.Parallel()
	o := NewOutside()
	defer o.Close()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		go time.Sleep(time.Hour) // would be over at once if time went on
		ticks := 0
		for range 100 {
			o.Do(func() {
				ticker := time.NewTicker(10 * time.Microsecond)
				defer ticker.Stop()
				<-ticker.C
				ticks++
			})
		}
		if d := time.Since(start); d != 0 || ticks != 100 {
			t.Errorf("%s of fake time went by, and %d real ticks; want none and 100", d, ticks)
		}
		time.Sleep(time.Hour) // a bubble does not end before its goroutines do
	})
}

// TestOutsideWaitsBesideTheBubble starts what waits outside while the bubble's time goes on.
func TestOutsideWaitsBesideTheBubble(t *testing.T) {
	t.Parallel()
	o := NewOutside()
	defer o.Close()
	synctest.Test(t, func(t *testing.T) {
		var let, done chan struct{}
		o.Do(func() { let, done = make(chan struct{}), make(chan struct{}) })
		o.Go(func() {
			<-let
			close(done)
		})
		start := time.Now()
		time.Sleep(12 * time.Second)
		if d := time.Since(start); d != 12*time.Second {
			t.Errorf("slept %s, want 12s", d)
		}
		close(let)
		<-done
	})
}

func TestOutsideMany(t *testing.T) {
	t.Parallel()
	o := NewOutside()
	defer o.Close()
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		var mu sync.Mutex
		n := 0
		for range 50 {
			all.Go(func() {
				for range 20 {
					o.Do(func() {
						mu.Lock()
						defer mu.Unlock()
						n++
					})
				}
			})
		}
		all.Wait()
		if n != 1000 {
			t.Errorf("%d calls, want 1000", n)
		}
	})
}

func TestOutsidePanic(t *testing.T) {
	t.Parallel()
	o := NewOutside()
	defer o.Close()
	cause := errors.New("cause")
	defer func() {
		err, _ := recover().(error)
		var p *PanicError
		if !errors.As(err, &p) || !errors.Is(err, cause) {
			t.Errorf("recovered %v, want a PanicError of %v", err, cause)
		}
		o.Do(func() {}) // it can still be used
	}()
	o.Do(func() { panic(cause) })
}

func TestOutsideClosed(t *testing.T) {
	t.Parallel()
	o := NewOutside()
	for range 2 {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("used after its end")
		}
	}()
	o.Do(func() {})
}
