package capacity

import (
	"fmt"
	"math"
	"sync"
	"time"
)

// RateLimit is how many requests a service lets in over time, whatever it could work on. The rest is told 429.
type RateLimit struct {
	Rate       float64       `yaml:"rate" doc:"requests that are let in in a second"`
	Burst      int           `yaml:"burst" doc:"requests that are let in at once after a rest; 1 when absent"`
	RetryAfter time.Duration `yaml:"retry-after" doc:"the Retry-After of the 429, in whole seconds; none when absent"`
}

// MostBurst bounds rate and burst.
const MostBurst = 1_000_000

// Default fills in what is left out of a limit that is one.
func (l *RateLimit) Default() {
	if l.Rate > 0 && l.Burst == 0 {
		l.Burst = 1
	}
}

// Check returns the first thing that is wrong with l, nil when a service can keep to it. The zero value is no limit.
func (l RateLimit) Check() *Problem {
	switch {
	case l == RateLimit{}:
		return nil
	case l.Rate == 0:
		return &Problem{"", "a limit needs a rate", "for example {rate: 10, burst: 20}"}
	case l.Rate > MostBurst:
		return &Problem{"rate", fmt.Sprintf("a rate is at most %d a second", MostBurst), ""}
	case l.Burst < 1 || l.Burst > MostBurst:
		return &Problem{"burst", fmt.Sprintf("burst must be between 1 and %d, not %d", MostBurst, l.Burst), ""}
	case l.RetryAfter%time.Second != 0:
		return &Problem{"retry-after", "a Retry-After has whole seconds", "for example 1s"}
	}
	return nil
}

// Bucket keeps a limit: it holds tokens up to the burst, gets some back all the time, and gives one to each request
// that is let in. Several goroutines may ask it.
type Bucket struct {
	limit RateLimit

	mu     sync.Mutex
	tokens float64
	at     time.Duration // when they were counted
}

// Open returns the full bucket of a limit, nil for none.
func (l RateLimit) Open() *Bucket {
	if l.Rate == 0 {
		return nil
	}
	return &Bucket{limit: l, tokens: float64(l.Burst)}
}

// Take reports whether a request is let in at a moment of scenario time. A nil bucket lets all in.
func (b *Bucket) Take(now time.Duration) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens = math.Min(float64(b.limit.Burst), b.tokens+max(0, (now-b.at).Seconds())*b.limit.Rate)
	b.at = max(b.at, now)
	if b.tokens < 1-1e-9 { // a tenth of a second at 10 a second is one, whatever floating point makes of it
		return false
	}
	b.tokens--
	return true
}
