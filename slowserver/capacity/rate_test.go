package capacity

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestBucket asks at times in milliseconds: + is let in, - is not.
func TestBucket(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		limit RateLimit
		at    []int
		want  string
	}{
		{"none", RateLimit{}, []int{0, 0, 0}, "+++"},
		{"one at a time", RateLimit{Rate: 10}, []int{0, 0, 99, 100, 199, 200}, "+--+-+"},
		{"a burst", RateLimit{Rate: 1, Burst: 3}, []int{0, 0, 0, 0, 999, 1000, 1000}, "+++--+-"},
		{"no more than a burst is saved up", RateLimit{Rate: 10, Burst: 2}, []int{0, 60_000, 60_000, 60_000}, "+++-"},
		{"less than one a second", RateLimit{Rate: 0.5}, []int{0, 1000, 1999, 2000, 4000}, "+--++"},
		{"no rounding error", RateLimit{Rate: 10}, []int{0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000}, "+++++++++++"},
	} {
		tt.limit.Default()
		b, got := tt.limit.Open(), ""
		for _, ms := range tt.at {
			if b.Take(time.Duration(ms) * time.Millisecond) {
				got += "+"
			} else {
				got += "-"
			}
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestRateLimitCheck(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		limit RateLimit
		want  *Problem
	}{
		{RateLimit{}, nil},
		{RateLimit{Rate: 10, RetryAfter: time.Second}, nil},
		{RateLimit{Burst: 5}, &Problem{"", "a limit needs a rate", "for example {rate: 10, burst: 20}"}},
		{RateLimit{Rate: 1e9}, &Problem{"rate", "a rate is at most 1000000 a second", ""}},
		{RateLimit{Rate: 1, Burst: -1}, &Problem{"burst", "burst must be between 1 and 1000000, not -1", ""}},
		{RateLimit{Rate: 1, RetryAfter: 1500 * time.Millisecond}, &Problem{"retry-after", "a Retry-After has whole seconds", "for example 1s"}},
	} {
		tt.limit.Default()
		if d := cmp.Diff(tt.want, tt.limit.Check()); d != "" {
			t.Errorf("%+v: %s", tt.limit, d)
		}
	}
}
