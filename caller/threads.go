package caller

import (
	"context"
	"slices"
	"sync"
	"time"

	"retrylab/internal/lab"
	"retrylab/internal/vtime"
)

// threads hands out the threads that a caller has for its operations, first come first served.
type threads struct {
	all   int  // 0 for no limit
	queue *int // operations that may wait for one; nil for any number
	seed  int64
	clock *vtime.Clock

	mu      sync.Mutex
	busy    int
	most    int             // that were busy at one instant
	waiting []chan struct{} // closed when a thread is there
}

// take waits for a thread. It returns [lab.NoThread], or why the operation waits no longer.
func (t *threads) take(ctx context.Context, operation string) string {
	t.mu.Lock()
	if t.all == 0 || t.busy < t.all {
		t.busy++
		t.most = max(t.most, t.busy)
		t.mu.Unlock()
		return ""
	}
	if t.queue != nil && len(t.waiting) >= *t.queue {
		t.mu.Unlock()
		return lab.NoThread
	}
	turn := make(chan struct{})
	t.waiting = append(t.waiting, turn)
	t.mu.Unlock()
	select {
	case <-turn:
	case <-ctx.Done():
		t.mu.Lock()
		i := slices.Index(t.waiting, turn)
		if i >= 0 {
			t.waiting = slices.Delete(t.waiting, i, i+1)
		}
		t.mu.Unlock()
		if i < 0 {
			t.give() // its turn had come
		}
		return cancelled
	}
	// Who gave the thread back acts in this instant.
	t.clock.Sleep(ctx, t.clock.Apart(1+time.Duration(lab.Draw(t.seed, operation, "thread")*float64(50*time.Microsecond))))
	return ""
}

// give gives a thread back: to the first that waits.
func (t *threads) give() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		t.busy--
		return
	}
	close(t.waiting[0])
	t.waiting = t.waiting[1:]
}

// MostThreads returns how many of the caller's threads were in use at one instant, at most.
func (c *Caller) MostThreads() int {
	c.threads.mu.Lock()
	defer c.threads.mu.Unlock()
	return c.threads.most
}
