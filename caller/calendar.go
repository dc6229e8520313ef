package caller

import "time"

// Jump is a change of a machine's calendar clock: at a moment of scenario time it is set forward, or
// back where By is negative.
type Jump struct{ At, By time.Duration }

// TotalClock is the clock that a sender measures its total limit with. Whichever that is, a date in an
// answer is held against its calendar clock.
type TotalClock struct {
	Calendar bool          // the calendar clock, which can be set; else a clock that nobody sets
	Poll     time.Duration // how often it looks; 0 is always
	Jumps    []Jump        // of the calendar clock, in order
}

// after returns how long it takes until somebody who begins at start finds that total has gone by.
func (c TotalClock) after(start, total time.Duration) time.Duration {
	if total <= 0 {
		return 0
	}
	begin, shift := start, time.Duration(0)
	jumps := c.Jumps
	if !c.Calendar {
		jumps = nil
	}
	for _, j := range jumps {
		if j.At <= start {
			continue
		}
		if at := c.look(start, max(begin, start+total-shift)); at < j.At {
			return at - start
		}
		begin, shift = j.At, shift+j.By
	}
	return c.look(start, max(begin, start+total-shift)) - start
}

// shift returns how far the calendar clock has been set by now.
func (c TotalClock) shift(now time.Duration) (by time.Duration) {
	for _, j := range c.Jumps {
		if j.At <= now {
			by += j.By
		}
	}
	return by
}

// look returns the first look at the clock from at on.
func (c TotalClock) look(start, at time.Duration) time.Duration {
	if c.Poll <= 0 {
		return at
	}
	looks := (at - start + c.Poll - 1) / c.Poll
	return start + looks*c.Poll
}
