package report

import (
	"slices"
	"time"

	"retrylab/internal/lab"
)

// An axis puts instants on a line from 0 to 1, all of it on one scale. Where hours lie between
// bursts of a few seconds the idle time is cut out, and the cut is drawn.
type axis struct {
	end  int64
	cuts []idle
	kept int64 // what is left of the whole time
}

// An idle is a time in which nothing happens, and which is not drawn.
type idle struct{ from, to int64 }

const (
	cutFrom = 600_000 // a shorter time is drawn whole: its waits are what it tells
	cutWide = 0.05    // room of a cut
	mostCut = 8
)

// newAxis is the axis that all results share.
func newAxis(results []*lab.Result) *axis {
	a := &axis{}
	instants := []int64{0}
	for _, r := range results {
		for _, e := range r.Events {
			if e.Kind == lab.Settled {
				continue
			}
			at := lab.Millis(e.At)
			a.end = max(a.end, at)
			instants = append(instants, at)
		}
	}
	a.kept = a.end
	if a.end < cutFrom {
		return a
	}
	slices.Sort(instants)
	instants = slices.Compact(instants)
	gaps := make([]idle, 0, len(instants))
	for i := 1; i < len(instants); i++ {
		gaps = append(gaps, idle{instants[i-1], instants[i]})
	}
	slices.SortStableFunc(gaps, func(x, y idle) int { return int(min(max((y.to-y.from)-(x.to-x.from), -1), 1)) })
	left := a.end
	for i, g := range gaps[:min(len(gaps), mostCut)] {
		left -= g.to - g.from
		if left > 0 && left <= a.end/10 {
			a.cuts = slices.Clone(gaps[:i+1])
			a.kept = left
			break
		}
	}
	slices.SortFunc(a.cuts, func(x, y idle) int { return int(min(max(x.from-y.from, -1), 1)) })
	return a
}

// at is the place of an instant.
func (a *axis) at(ms int64) float64 {
	if a.kept <= 0 {
		return 0
	}
	ms = max(0, min(ms, a.end))
	scale := (1 - cutWide*float64(len(a.cuts))) / float64(a.kept)
	out, x := int64(0), 0.0
	for _, c := range a.cuts {
		if ms <= c.from {
			break
		}
		inside := min(ms, c.to) - c.from
		out += inside
		x += cutWide * float64(inside) / float64(c.to-c.from)
	}
	return x + float64(ms-out)*scale
}

// tick is a labelled instant.
type tick struct {
	ms int64
	x  float64
}

// steps are the distances between ticks, in milliseconds.
var steps = []int64{
	1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000,
	1_800_000, 3_600_000, 7_200_000, 21_600_000, 43_200_000, 86_400_000, 604_800_000, 2_592_000_000, 31_536_000_000, 315_360_000_000,
}

// ticks are the instants that the axis names: round ones, and the ends of what is cut out.
func (a *axis) ticks() []tick {
	if a.end <= 0 {
		return []tick{{0, 0}}
	}
	scale := (1 - cutWide*float64(len(a.cuts))) / float64(a.kept)
	step := steps[len(steps)-1]
	for _, s := range steps {
		if float64(s)*scale*nominal >= 64 {
			step = s
			break
		}
	}
	var out []tick
	from := int64(0)
	for i := 0; i <= len(a.cuts); i++ {
		to := a.end
		if i < len(a.cuts) {
			to = a.cuts[i].from
		}
		if from > 0 {
			out = append(out, tick{from, a.at(from)})
		}
		for ms := (from + step - 1) / step * step; ms <= to; ms += step {
			t := tick{ms, a.at(ms)}
			if n := len(out); n == 0 || (t.x-out[n-1].x)*nominal >= 56 {
				out = append(out, t)
			}
		}
		if i < len(a.cuts) {
			from = a.cuts[i].to
		}
	}
	if last := out[len(out)-1]; (1-last.x)*nominal >= 40 {
		out = append(out, tick{a.end, 1})
	}
	return out
}

// name writes an instant of a tick. On a long axis all are written in the units of the last.
func (a *axis) name(ms int64) string {
	ms = round(ms, grainOf(a.end))
	if a.end >= 600_000 && ms >= 60_000 {
		return lab.Units(lab.FromMillis(ms).Truncate(time.Second))
	}
	return clock(ms)
}
