// Package capacity says what a request costs an order service: how long it is worked on, and how many
// can be worked on at once. It is what may be written down; the service plays it.
package capacity

import (
	"math"
	"time"
)

// Spread is a time that is another one for each request: log-normal, as the times of real services
// are, with a long tail and nothing below zero. Two of its quantiles say which.
type Spread struct {
	P50  time.Duration `yaml:"p50" doc:"the median: half of the requests take no longer"`
	P99  time.Duration `yaml:"p99" doc:"99 of 100 take no longer; this or p999"`
	P999 time.Duration `yaml:"p999" doc:"999 of 1,000 take no longer (p99.9); this or p99"`
}

// Problem is what is wrong with settings: which, why, and what would be right.
type Problem struct{ Field, What, Hint string }

// Check returns the first thing that is wrong with s, nil when times can be drawn from it.
func (s Spread) Check() *Problem {
	const hint = "for example {p50: 80ms, p999: 300ms}"
	switch tail, name, _ := s.tail(); {
	case s == Spread{}:
		return nil
	case s.P50 == 0:
		return &Problem{"", "a spread needs its median, p50", hint}
	case tail == 0:
		return &Problem{"", "a spread needs a quantile of its tail, p99 or p999", hint}
	case s.P99 > 0 && s.P999 > 0:
		return &Problem{"p99", "p99 and p999 say the same of a log-normal spread", "leave one of them out"}
	case tail <= s.P50:
		return &Problem{name, name + " is not above p50", hint}
	}
	return nil
}

// tail is the quantile above the median: its time, its name, and how many standard deviations of a
// normal distribution it lies above the middle.
func (s Spread) tail() (at time.Duration, name string, z float64) {
	if s.P99 > 0 {
		return s.P99, "p99", normal(0.99)
	}
	return s.P999, "p999", normal(0.999)
}

// Longest bounds what is drawn.
const Longest = 10_000 * time.Hour

// At returns the time that a share u of the requests does not exceed, for u in [0, 1). Without
// values a spread adds nothing: it is always 0.
func (s Spread) At(u float64) time.Duration {
	if s.P50 == 0 {
		return 0
	}
	tail, _, z := s.tail()
	sigma := math.Log(float64(tail)/float64(s.P50)) / z
	return time.Duration(min(float64(s.P50)*math.Exp(sigma*normal(u)), float64(Longest)))
}

// normal is the quantile function of the standard normal distribution.
func normal(u float64) float64 { return math.Sqrt2 * math.Erfinv(2*u-1) }

// Pool is how many requests each replica works on at once, and what becomes of those that come on
// top.
type Pool struct {
	Workers int    // 0 for no limit, and then nobody waits
	Queue   *int   // how many may wait; nil for any number
	Shed    string // what of those that wait is dropped when its turn comes: one of Sheds; empty for none
}

// What a server drops of those that wait.
const (
	ShedNone    = "none"
	ShedExpired = "expired" // whose deadline is over
	ShedLate    = "late"    // which cannot be done before its deadline either, with a little to spare
)

// Sheds lists them.
var Sheds = []string{ShedNone, ShedExpired, ShedLate}

// Full is why a request is turned away that finds no place in the queue.
const Full = "full"

// spare is what a server wants to have left of a deadline when its work is done: the answer takes
// its time on the way.
const spare = 10 * time.Millisecond

// Drops returns as what a request is dropped whose turn has come, "" for none of it: now is the
// scenario time, until that at which its deadline is over, 0 for none, and typical how long the
// server expects to work on it.
func (p Pool) Drops(now, until, typical time.Duration) string {
	switch {
	case until == 0 || p.Shed == ShedNone || p.Shed == "":
		return ""
	case now >= until:
		return ShedExpired
	case p.Shed == ShedLate && now+typical+spare > until:
		return ShedLate
	}
	return ""
}
