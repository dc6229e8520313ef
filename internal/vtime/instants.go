package vtime

import (
	"sync"
	"time"
)

// instants are the moments at which something of a trial is to happen, so that
// no two things that do not depend on each other happen at one: the scheduler
// would choose which comes first, and choose again the next time.
type instants struct {
	mu    sync.Mutex
	taken map[time.Time]any // by whom
	swept int               // how many were left when it was last looked for those that are over
}

// apart returns the first instant from at on that nobody but owner has taken,
// and takes it.
func (i *instants) apart(at time.Time, owner any) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.taken == nil {
		i.taken = map[time.Time]any{}
	}
	for {
		if by, taken := i.taken[at]; !taken || by == owner {
			break
		}
		at = at.Add(1)
	}
	i.taken[at] = owner
	if len(i.taken) > 2*i.swept+1000 {
		now := time.Now()
		for t := range i.taken {
			if t.Before(now) {
				delete(i.taken, t)
			}
		}
		i.swept = len(i.taken)
	}
	return at
}

// Apart returns d, or as few nanoseconds more that nothing else is to happen d
// from now of what was ever asked for in this way or comes over a [Memory].
// It is for the virtual clock; real time keeps things apart by itself.
func (c *Clock) Apart(d time.Duration) time.Duration {
	if !c.virtual {
		return d
	}
	now := time.Now()
	return c.instants.apart(now.Add(d), new(int)).Sub(now)
}
