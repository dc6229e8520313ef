package vtime

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := NewVirtual(time.Time{})
		var got []time.Duration
		for range 3 {
			got = append(got, c.Apart(time.Second))
		}
		got = append(got, c.Apart(time.Second+1), c.Apart(time.Minute))
		time.Sleep(time.Second)
		got = append(got, c.Apart(0), c.Apart(10))
		want := []time.Duration{time.Second, time.Second + 1, time.Second + 2, time.Second + 3, time.Minute, 4, 10}
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		// One may come twice in its own instant.
		owner := new(int)
		at := time.Now().Add(time.Hour)
		for range 2 {
			if got := c.instants.apart(at, owner); !got.Equal(at) {
				t.Errorf("%s, want %s", got, at)
			}
		}
	})
	if got := NewWall(time.Time{}, 1).Apart(5); got != 5 {
		t.Errorf("on the wall clock %s", got)
	}
}

// TestInstantsAreForgotten asks for a great many, most of which are over.
func TestInstantsAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := NewVirtual(time.Time{})
		for range 100_000 {
			c.Apart(time.Microsecond)
			time.Sleep(time.Millisecond)
		}
		if n := len(c.instants.taken); n > 2000 {
			t.Errorf("%d are kept", n)
		}
	})
}
