package judge

import (
	"math"
	"strconv"

	"retrylab/internal/lab"
	"retrylab/scenarios"
)

// The expectations about the counts over time.
var (
	peakStarts = expectation{
		name: "peak-starts", evidence: []lab.Kind{lab.Send},
		compare: func(e *scenarios.Expect, v view) (string, string, bool, bool) {
			if e.PeakStarts == nil || !v.obs.Exact {
				return "", "", false, false
			}
			got := v.series().PeakStarts
			return strconv.Itoa(*e.PeakStarts), strconv.Itoa(got), *e.PeakStarts == got, true
		},
	}
	recoveredAfter = expectation{
		name: "recovered-after", evidence: []lab.Kind{lab.Done},
		compare: func(e *scenarios.Expect, v view) (string, string, bool, bool) {
			if e.RecoveredAfter == nil || !v.obs.Exact {
				return "", "", false, false
			}
			r := v.recovery()
			if !r.Recovered {
				return lab.Clock(*e.RecoveredAfter), "never", false, true
			}
			after := lab.FromMillis(r.AfterMs)
			return lab.Clock(*e.RecoveredAfter), lab.Clock(after), (*e.RecoveredAfter - after).Abs() <= rounding, true // it is a number of windows
		},
	}
)

// series are the counts over time, empty where there are none.
func (v view) series() lab.Series {
	if v.obs.Series == nil {
		return lab.Series{}
	}
	return *v.obs.Series
}

// recovery is what became of the goodput: nothing where nobody asked.
func (v view) recovery() lab.Recovery {
	if r := v.series().Recovery; r != nil {
		return *r
	}
	return lab.Recovery{}
}

// recoveredAfterMs is the time until the goodput is back, infinite where it does not come back.
func (v view) recoveredAfterMs() float64 {
	if r := v.recovery(); r.Recovered {
		return float64(r.AfterMs)
	}
	return math.Inf(1)
}
