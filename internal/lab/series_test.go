package lab_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retrylab/internal/lab"
)

// TestSeries counts at the edges of windows, and makes the lists equally long.
func TestSeries(t *testing.T) {
	t.Parallel()
	s := &lab.Series{WindowMs: 200}
	for _, at := range []time.Duration{0, 199999999, 200 * time.Millisecond, 900 * time.Millisecond} {
		s.Count(&s.Starts, at)
	}
	s.Wait(0, 100*time.Millisecond)
	s.Wait(2, 399*time.Millisecond) // over the end of the first window two waited
	s.Wait(1, 650*time.Millisecond)
	s.Fill()
	want := &lab.Series{
		WindowMs: 200, Starts: []int{2, 1, 0, 0, 1}, Queue: []int{2, 1, 1, 0, 0},
		Operations: make([]int, 5), Arrivals: make([]int, 5), OK: make([]int, 5),
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Error(diff)
	}
	s.Count(&s.Starts, lab.MaxWindows*200*time.Millisecond)
	if s.Beyond != 1 || len(s.Starts) != 5 {
		t.Errorf("%d beyond the last window and %d windows, want 1 and 5", s.Beyond, len(s.Starts))
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		operations, ok []int
		ended          time.Duration
		want           *lab.Recovery
	}{
		{"no disturbance", []int{10, 10, 10}, []int{10, 10, 10}, 0, nil},
		{"it never was away", []int{10, 10, 10, 10, 1}, []int{0, 10, 10, 10, 1}, time.Second, &lab.Recovery{CauseEndsMs: 1000, Recovered: true, GoodputPerS: 10}},
		{"back after two windows", []int{10, 10, 10, 10, 10, 1}, []int{10, 0, 8, 9, 30, 0}, time.Second, &lab.Recovery{CauseEndsMs: 1000, Recovered: true, AfterMs: 2000, GoodputPerS: 11.75}},
		{"a dip is no recovery", []int{10, 10, 10, 10, 10, 1}, []int{10, 10, 10, 8, 10, 0}, time.Second, &lab.Recovery{CauseEndsMs: 1000, Recovered: true, AfterMs: 3000, GoodputPerS: 9.5}},
		{"never", []int{10, 10, 10, 10, 1}, []int{10, 10, 1, 1, 50}, time.Second, &lab.Recovery{CauseEndsMs: 1000, GoodputPerS: 4}},
		{"the end lies within a window", []int{10, 10, 10, 1}, []int{10, 10, 10, 0}, 500 * time.Millisecond, &lab.Recovery{CauseEndsMs: 500, Recovered: true, AfterMs: 500, GoodputPerS: 10}},
		{"nothing begins any more", []int{10, 10}, []int{10, 10}, 5 * time.Second, &lab.Recovery{CauseEndsMs: 5000}},
	} {
		s := &lab.Series{WindowMs: 1000, Operations: c.operations, OK: c.ok, Starts: []int{9, 5, 7}}
		s.Summary(time.Second, c.ended)
		if diff := cmp.Diff(c.want, s.Recovery); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if s.PeakStarts != 7 {
			t.Errorf("%s: the peak from the second window on is %d, want 7", c.name, s.PeakStarts)
		}
	}
}
