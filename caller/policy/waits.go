package policy

import "time"

// The kinds of jitter, in the names that are widely used for them.
const (
	NoJitter           = "none"         // the wait as computed
	FullJitter         = "full"         // anywhere between 0 and the wait
	EqualJitter        = "equal"        // half the wait, and anywhere up to the other half
	DecorrelatedJitter = "decorrelated" // anywhere between the initial wait and factor times the wait before
)

// Jitters lists every kind of jitter.
var Jitters = []string{NoJitter, FullJitter, EqualJitter, DecorrelatedJitter}

// Waits says how long a layer pauses before each retry. Its zero value is no pause at all. Values
// outside the ranges given here are cut to them, so that a wait is never negative and never above Max.
type Waits struct {
	Initial time.Duration // the wait before the first retry, unless GrowFirst or FirstAtOnce says otherwise; 0 is no wait
	Factor  float64       // each further wait is this times the one before; below 1 counts as 1
	Max     time.Duration // no wait is longer; 0 is Forever
	Jitter  string        // one of Jitters; "" is NoJitter

	// Series is the wait before each retry, in their order, the last one for all further ones. Nothing
	// else counts beside it. For waits that follow no formula, such as those of a log.
	Series []time.Duration

	// GrowFirst multiplies by Factor before the first wait already. Feign's counter is incremented
	// before its formula is used, so a period of 100 ms waits 150 ms first.
	GrowFirst bool

	// FirstAtOnce makes the first retry at once and grows as if it had waited: urllib3.
	FirstAtOnce bool

	// WholeMilliseconds drops what is below a millisecond, as arithmetic in integer milliseconds does:
	// Feign's third wait is 337 ms, not 337.5.
	WholeMilliseconds bool
}

// FixedWait returns Waits that pause for d every time.
func FixedWait(d time.Duration) Waits { return Waits{Initial: d} }

// Before returns the pause before retry number n; the first retry is number 1. The pause before the
// try that has just failed was waited, and u in [0, 1) chooses within the jitter.
func (w Waits) Before(n int, waited time.Duration, u float64) time.Duration {
	if len(w.Series) > 0 && n >= 1 {
		return w.Series[min(n, len(w.Series))-1]
	}
	limit := w.limit()
	if w.Initial <= 0 || n < 1 || w.FirstAtOnce && n == 1 {
		return 0
	}
	if !(u >= 0) { // also when it is not a number
		u = 0
	}
	u = min(u, 1)
	if w.Jitter == DecorrelatedJitter {
		low := min(w.Initial, limit)
		high := grow(max(waited, w.Initial), max(w.Factor, 1), limit)
		return low + part(high-low, u)
	}
	steps := n - 1
	if w.GrowFirst {
		steps = n
	}
	wait := w.exponential(steps, limit)
	switch w.Jitter {
	case FullJitter:
		return part(wait, u)
	case EqualJitter:
		return wait/2 + part(wait-wait/2, u)
	}
	return wait
}

// limit returns the longest pause.
func (w Waits) limit() time.Duration {
	if w.Max <= 0 {
		return Forever
	}
	return min(w.Max, Forever)
}

// exponential returns Initial·Factor^steps, at most limit.
//
// It multiplies in float64 because the originals do. The power itself comes from repeated
// multiplication, which is exact for 1.5^33 and 2^1023 and the same on every machine; math.Pow
// promises neither.
func (w Waits) exponential(steps int, limit time.Duration) time.Duration {
	unit := time.Nanosecond
	if w.WholeMilliseconds {
		unit = time.Millisecond
	}
	initial := float64(w.Initial / unit)
	power := 1.0
	for range steps {
		if w.Factor <= 1 || initial*power >= float64(limit/unit) {
			break
		}
		power *= w.Factor
	}
	if initial*power >= float64(limit/unit) {
		return limit
	}
	return time.Duration(initial*power) * unit
}

// grow returns d·factor, at most limit.
func grow(d time.Duration, factor float64, limit time.Duration) time.Duration {
	if product := float64(d) * factor; product < float64(limit) {
		return time.Duration(product)
	}
	return limit
}

// part returns the share u of d.
func part(d time.Duration, u float64) time.Duration {
	return min(time.Duration(u*float64(d)), d)
}
