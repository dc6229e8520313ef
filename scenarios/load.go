package scenarios

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"retrylab/internal/expression"
)

// Phase is a stretch of time in which operations begin at one rate.
type Phase struct {
	Rate float64       `yaml:"rate" doc:"operations that begin in a second, evenly apart"`
	For  time.Duration `yaml:"for" doc:"how long"`
}

// operations is how many begin in the phase.
func (p Phase) operations() float64 { return math.Round(p.Rate * p.For.Seconds()) }

// Series asks for counts over time.
type Series struct {
	Window    time.Duration `yaml:"window" doc:"length of a window, in whole milliseconds: what begins, is sent, arrives, waits and ends well is counted in each"`
	After     time.Duration `yaml:"after" doc:"peaks are those of the windows that begin then or later"`
	CauseEnds time.Duration `yaml:"cause-ends" doc:"when what disturbs has gone: from then on it is looked at whether the goodput recovers"`
}

// Begins is when an operation begins, counted from 0.
func (s Setup) Begins(operation int) time.Duration {
	for i := min(operation, len(s.Schedule)-1); i >= 0; i-- {
		if at := s.Schedule[i].At; at != nil {
			return *at + time.Duration(operation-i)*s.Interval
		}
	}
	if len(s.Load) == 0 {
		return time.Duration(operation) * s.Interval
	}
	begin, n := time.Duration(0), operation
	for i, p := range s.Load {
		if here := int(p.operations()); n >= here && i < len(s.Load)-1 {
			begin, n = begin+p.For, n-here
			continue
		}
		begin += time.Duration(float64(n) / p.Rate * float64(time.Second))
		break
	}
	return begin
}

// load checks the phases and makes the number of operations of them.
func (c *checker) load(p *Setup) {
	if len(p.Load) == 0 {
		return
	}
	for _, key := range []string{"operations", "interval", "schedule"} {
		if c.root.get(key) != nil {
			c.failKey(key, key+" stands beside load", "load says how many operations there are and when they begin")
		}
	}
	total := 0.0
	for i, phase := range p.Load {
		path := fmt.Sprintf("load[%d]", i)
		switch {
		case phase.Rate <= 0:
			c.fail(path, path+" has no rate", "for example {rate: 50, for: 10s}")
		case phase.For <= 0:
			c.fail(path, path+" does not say for how long", "for example {rate: 50, for: 10s}")
		}
		total += phase.operations()
	}
	switch {
	case total < 1:
		c.fail("load", "load makes no operation", "for example [{rate: 50, for: 10s}]")
	case total > maxOperations:
		c.fail("load", fmt.Sprintf("load makes %.0f operations, more than %d", total, maxOperations), "")
	}
	p.Operations = int(min(total, maxOperations))
}

// series checks what is asked about counts over time, and that it is asked where there are some.
func (c *checker) series(p *Setup) {
	s := p.Series
	switch {
	case s.Window == 0 && s != Series{}:
		c.fail("series", "series has no window", "for example window: 200ms")
	case s.Window%time.Millisecond != 0:
		c.fail("series.window", "series.window is not a whole number of milliseconds", "for example 200ms")
	case s.CauseEnds > 0 && p.Begins(p.Operations-1) < s.CauseEnds+2*s.Window:
		c.fail("series.cause-ends", "hardly an operation begins after that: nobody can say whether the goodput recovers", "begin operations for some windows more")
	}
	if e := c.trial.Expect; e != nil {
		path := c.prefix + "expect."
		if what, hint := s.lacks("peak-starts"); e.PeakStarts != nil && what != "" {
			c.failKey(path+"peak-starts", what, hint)
		}
		if what, hint := s.lacks("recovered-after"); e.RecoveredAfter != nil && what != "" {
			c.failKey(path+"recovered-after", what, hint)
		}
	}
	for _, d := range slices.Concat(p.Premises, c.trial.Invariants) {
		condition, err := expression.Compile(d.Expression)
		if err != nil {
			continue // it is refused as an expression
		}
		for _, name := range condition.Names() {
			if what, hint := s.lacks(name); what != "" {
				c.failAt(position{file: d.At.File, line: d.At.Line, column: d.At.Column}, what, hint)
			}
		}
	}
}

// lacks says what is missing of a series of which a check or an expression asks for a name.
func (s Series) lacks(name string) (what, hint string) {
	overTime := strings.HasPrefix(name, "recovered") || strings.HasPrefix(name, "goodput_after")
	switch {
	case s.Window == 0 && (overTime || strings.HasPrefix(name, "peak")):
		return name + " needs windows to count in", "add series: {window: 200ms}"
	case s.CauseEnds == 0 && overTime:
		return name + " needs the end of the disturbance", "add cause-ends to series"
	}
	return "", ""
}
