package policy

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The kinds of jitter, in the names that are widely used for them.
const (
	NoJitter           = "none"         // the wait as computed
	FullJitter         = "full"         // anywhere between 0 and the wait
	EqualJitter        = "equal"        // half the wait, and anywhere up to the other half
	DecorrelatedJitter = "decorrelated" // anywhere between the initial wait and factor times the wait before
)

// Jitters lists every kind of jitter that has a name. Besides them there is a share of the wait, such
// as "20%", which is up to so much more or less, "+20%", only more, and "-25%", only less.
var Jitters = []string{NoJitter, FullJitter, EqualJitter, DecorrelatedJitter}

// spread returns the range that jitter multiplies a wait by. Decorrelated jitter has none: it grows
// from the wait before.
func spread(jitter string) (low, high float64, err error) {
	switch jitter {
	case "", NoJitter, DecorrelatedJitter:
		return 1, 1, nil
	case FullJitter:
		return 0, 1, nil
	case EqualJitter:
		return 0.5, 1, nil
	}
	number, isShare := strings.CutSuffix(jitter, "%")
	share, err := strconv.ParseFloat(strings.TrimLeft(number, "+-"), 64)
	if !isShare || err != nil || !(share > 0 && share <= 100) {
		return 1, 1, fmt.Errorf("%q is not one of %s, nor a share such as 20%%, +20%% or -25%%", jitter, strings.Join(Jitters, ", "))
	}
	low, high = 1-share/100, 1+share/100
	switch number[0] {
	case '+':
		low = 1
	case '-':
		high = 1
	}
	return low, high, nil
}

// Growth is how the waits of a layer grow from one retry to the next.
type Growth string

// The kinds of growth, for retry number n, from 1.
const (
	Exponential Growth = ""            // Initial·Factor^(n-1)
	LessOne     Growth = "less-one"    // Initial·(Factor^n - 1): Envoy
	SquareSteps Growth = "square-step" // Initial·(1 + (n-1)²): stripe-go
)

// Waits says how long a layer pauses before each retry. Its zero value is no pause at all. Values
// outside the ranges given here are cut to them, so that a wait is never negative. Only what is added
// to a wait, by a jitter such as "20%" or by Noise, can take it above Max.
type Waits struct {
	Initial time.Duration // the wait before the first retry, unless GrowFirst or FirstAtOnce says otherwise; 0 is no wait
	Factor  float64       // each further wait is this times the one before; below 1 counts as 1
	Max     time.Duration // no wait grows longer; 0 is Forever
	Jitter  string        // one of Jitters or a share such as "20%"; "" is NoJitter
	Growth  Growth        // how they grow; SquareSteps has no use for Factor
	Min     time.Duration // no wait is shorter, the jitter included
	Noise   time.Duration // up to this is added to each wait: got

	// ExactAtMax leaves the jitter out of a wait that has come to Max: the AWS SDK for Go.
	ExactAtMax bool

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
	wait := w.grown(n, limit)
	if !(w.ExactAtMax && wait == limit) {
		wait = w.jittered(wait, u)
	}
	return min(max(wait, w.Min), Forever)
}

// jittered returns wait as u has it within the jitter and the noise.
func (w Waits) jittered(wait time.Duration, u float64) time.Duration {
	low, high, _ := spread(w.Jitter)
	switch {
	case low == 0.5 && high == 1:
		wait = wait/2 + part(wait-wait/2, u) // whole nanoseconds: half a wait of 1 ns is 0
	case low != 1 || high != 1:
		wait = time.Duration(float64(wait) * (low + (high-low)*u))
	}
	return wait + part(w.Noise, u)
}

// grown returns the wait before retry number n, before any jitter.
func (w Waits) grown(n int, limit time.Duration) time.Duration {
	switch w.Growth {
	case SquareSteps:
		steps := float64(n - 1)
		return grow(w.Initial, 1+steps*steps, limit)
	case LessOne:
		// Initial·Factor^n is at most limit + Initial where the result is at most limit.
		return min(w.exponential(n, limit+w.Initial)-w.Initial, limit)
	}
	if w.GrowFirst {
		n++
	}
	return w.exponential(n-1, limit)
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
