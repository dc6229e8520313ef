package scenarios

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"retrylab/internal/expression"
	"retrylab/internal/lab"
)

// Phase is a stretch of time in which operations begin at one rate.
type Phase struct {
	Rate     float64       `yaml:"rate" doc:"operations that begin in a second"`
	For      time.Duration `yaml:"for" doc:"how long"`
	Arrivals string        `yaml:"arrivals" doc:"even (the default: all as far apart) or random (each at any moment of the phase, from the seed)"`
}

// operations is how many begin in the phase.
func (p Phase) operations() float64 { return math.Round(p.Rate * p.For.Seconds()) }

// Series asks for counts over time.
type Series struct {
	Window    time.Duration `yaml:"window" doc:"length of a window, in whole milliseconds: what begins, is sent, arrives, waits and ends well is counted in each"`
	After     time.Duration `yaml:"after" doc:"peaks are those of the windows that begin then or later"`
	CauseEnds time.Duration `yaml:"cause-ends" doc:"when what disturbs has gone: from then on it is looked at whether the goodput recovers"`
}

// randomArrivals is the value of [Phase.Arrivals] that draws when operations begin.
const randomArrivals = "random"

// Begins is when each operation begins, in the order of time where the load says so.
func (s Setup) Begins(seed int64) []time.Duration {
	out := make([]time.Duration, 0, s.Operations)
	switch {
	case len(s.Load) > 0:
		phase := time.Duration(0)
		for i, p := range s.Load {
			out = append(out, p.begins(seed, i)...)
			for j := len(out) - int(p.operations()); j < len(out); j++ {
				out[j] += phase
			}
			phase += p.For
		}
		for len(out) < s.Operations { // more than the load makes: they come at its end
			out = append(out, phase)
		}
	default:
		for i, begin := range s.items() {
			if i >= len(s.Schedule) || s.Schedule[i].Of == 0 {
				out = append(out, begin)
			}
		}
	}
	return out
}

// items is when each item of the schedule begins, and then each operation that it does not have.
func (s Setup) items() (out []time.Duration) {
	begin := -s.Interval
	for i := range s.Operations + s.FurtherSends() {
		begin += s.Interval
		if i < len(s.Schedule) && s.Schedule[i].At != nil {
			begin = *s.Schedule[i].At
		}
		out = append(out, begin)
	}
	return out
}

// FurtherSends is how many items of the schedule are further sends of an operation.
func (s Setup) FurtherSends() (n int) {
	for _, o := range s.Schedule {
		if o.Of > 0 {
			n++
		}
	}
	return n
}

// Planned is what the operation at position i, from 0, differs in, with the further sends of it, and
// how long after its start each of these begins.
func (s Setup) Planned(i int) (o Intent, further []Intent, after []time.Duration) {
	begins, operation, start := s.items(), 0, time.Duration(0)
	for n, item := range s.Schedule {
		switch {
		case item.Of == i+1:
			further, after = append(further, item.within(o)), append(after, begins[n]-start)
		case item.Of > 0:
		default:
			if operation == i {
				o, start = item, begins[n]
			}
			operation++
		}
	}
	return o, further, after
}

// within is a further send of an operation with what it leaves out.
func (x Intent) within(o Intent) Intent {
	x.Amount, x.Key = cmp.Or(x.Amount, o.Amount), cmp.Or(x.Key, o.Key)
	x.Tenant, x.Item = cmp.Or(x.Tenant, o.Tenant), cmp.Or(x.Item, o.Item)
	return x
}

// begins is when the operations of the phase at position i begin, counted from its start. Random
// ones are those of a Poisson process of which the number is known: each at any moment, whatever the
// others do. They are in whole milliseconds: the offset that each flow has keeps them apart.
func (p Phase) begins(seed int64, i int) []time.Duration {
	out := make([]time.Duration, int(p.operations()))
	for n := range out {
		if p.Arrivals == randomArrivals {
			u := lab.Draw(seed, "load", itoa(i), itoa(n))
			out[n] = time.Duration(u * float64(p.For)).Truncate(time.Millisecond)
		} else {
			out[n] = time.Duration(float64(n) / p.Rate * float64(time.Second))
		}
	}
	slices.Sort(out)
	return out
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
		if phase.Arrivals == "" {
			p.Load[i].Arrivals = "even"
		}
		c.word(path+".arrivals", p.Load[i].Arrivals)
	}
	most := p.mostOperations()
	switch {
	case total < 1:
		c.fail("load", "load makes no operation", "for example [{rate: 50, for: 10s}]")
	case total > float64(most):
		c.fail("load", fmt.Sprintf("load makes %.0f operations, more than %d", total, most), "")
		return
	}
	p.Operations = int(total)
}

// series checks what is asked about counts over time, and that it is asked where there are some.
func (c *checker) series(p *Setup) {
	s := p.Series
	switch {
	case s.Window == 0 && s != Series{}:
		c.fail("series", "series has no window", "for example window: 200ms")
	case s.Window%time.Millisecond != 0:
		c.fail("series.window", "series.window is not a whole number of milliseconds", "for example 200ms")
	case s.CauseEnds > 0 && slices.Max(p.Begins(c.trial.Seed)) < s.CauseEnds+2*s.Window:
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
	for _, d := range c.trial.Demands() {
		condition, err := expression.Compile(d.Expression)
		if err != nil {
			continue // it is refused as an expression
		}
		for _, name := range condition.Names() {
			if what, hint := s.lacks(name); what != "" {
				c.failAt(c.demanded(d), what, hint)
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
