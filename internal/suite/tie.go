package suite

import (
	"time"

	"retrylab/internal/lab"
)

// nudge is by how much the time of processing is changed to break a tie: more than the latencies and offsets
// that keep flows apart.
const nudge = 2 * time.Millisecond

// broken runs a trial with ties again, with a little more and a little less processing, so that the one and then
// the other event comes first. It is nil where that makes no other number of effects.
func broken(r lab.Result, ties []string, with func(by time.Duration) lab.Result) *lab.Tie {
	if len(ties) == 0 {
		return nil
	}
	tie := lab.Tie{Pairs: ties, Least: r.Counts.Effects, Most: r.Counts.Effects}
	for _, by := range []time.Duration{-nudge, nudge} {
		if other := with(by); other.Verdict != lab.Inconclusive {
			tie.Least, tie.Most = min(tie.Least, other.Counts.Effects), max(tie.Most, other.Counts.Effects)
		}
	}
	if tie.Least == tie.Most {
		return nil
	}
	return &tie
}
