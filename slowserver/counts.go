package slowserver

import (
	"slices"
	"sync"
)

// Counts are what is counted over all replicas of a service. Replicas that are processes of their
// own share those of another.
type Counts interface {
	// Arrive counts an arrival and returns its number among all, and among those of its operation,
	// from 1.
	Arrive(operation string) (number, ofEach int)
	// Fire counts that a fault has fired, by its place in the configuration.
	Fire(fault int)
	// Enter and Leave count a request into processing and out of it.
	Enter()
	Leave()
}

// Tally keeps the counts of a service in this process.
type Tally struct {
	mu       sync.Mutex
	arrivals int
	ofEach   map[string]int // arrivals by operation
	fired    []int
	inside   int
	overlap  int
}

// Arrive counts an arrival and returns its number among all, and among those of its operation. One
// that names no operation is the first of its own.
func (t *Tally) Arrive(operation string) (number, ofEach int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.arrivals++
	if operation == "" {
		return t.arrivals, 1
	}
	t.ofEach[operation]++
	return t.arrivals, t.ofEach[operation]
}

// Fire counts that a fault has fired.
func (t *Tally) Fire(fault int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fired[fault]++
}

// Enter counts a request into processing.
func (t *Tally) Enter() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inside++
	t.overlap = max(t.overlap, t.inside)
}

// Leave counts a request out of processing.
func (t *Tally) Leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inside--
}

// Fired returns how often each fault of the configuration has fired.
func (t *Tally) Fired() []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.fired)
}

// Overlap returns the largest number of requests that were in processing at one instant.
func (t *Tally) Overlap() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.overlap
}

// now returns the arrivals so far and the requests in processing.
func (t *Tally) now() (arrivals, inside int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.arrivals, t.inside
}
