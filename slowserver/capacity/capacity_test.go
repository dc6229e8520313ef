package capacity_test

import (
	"testing"
	"time"

	"retrylab/slowserver/capacity"
)

func TestSpread(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, s := range []capacity.Spread{
		{P50: 80 * ms, P999: 300 * ms}, {P50: 80 * ms, P99: 300 * ms}, {P50: time.Nanosecond, P999: time.Hour}, {P50: time.Hour, P99: time.Hour + 1},
	} {
		if p := s.Check(); p != nil {
			t.Errorf("%+v: %s", s, p.What)
		}
		for _, q := range []struct {
			u    float64
			want time.Duration
		}{{0.5, s.P50}, {0.99, s.P99}, {0.999, s.P999}} {
			if q.want == 0 {
				continue
			}
			if got := s.At(q.u); got < q.want-q.want/1e6-1 || got > q.want+q.want/1e6+1 {
				t.Errorf("%+v at %v: got %v, want %v", s, q.u, got, q.want)
			}
		}
		last := time.Duration(-1)
		for _, u := range []float64{0, 0.001, 0.25, 0.5, 0.9, 0.9999999, 1 - 1.0/(1<<53)} {
			got := s.At(u)
			if got < last || got < 0 || got > capacity.Longest {
				t.Errorf("%+v at %v: %v after %v", s, u, got, last)
			}
			last = got
		}
	}
	if got := (capacity.Spread{}).At(0.9); got != 0 {
		t.Errorf("no spread: %v", got)
	}
}

func TestSpreadCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spread capacity.Spread
		field  string
		what   string
	}{
		{capacity.Spread{P999: 1}, "", "a spread needs its median, p50"},
		{capacity.Spread{P50: 1}, "", "a spread needs a quantile of its tail, p99 or p999"},
		{capacity.Spread{P50: 1, P99: 2, P999: 3}, "p99", "p99 and p999 say the same of a log-normal spread"},
		{capacity.Spread{P50: 2, P99: 2}, "p99", "p99 is not above p50"},
		{capacity.Spread{P50: 2, P999: 1}, "p999", "p999 is not above p50"},
	} {
		if p := c.spread.Check(); p == nil || p.Field != c.field || p.What != c.what {
			t.Errorf("%+v: got %+v, want %s: %s", c.spread, p, c.field, c.what)
		}
	}
}
