package slowserver

import (
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"retrylab/internal/lab"
	"retrylab/slowserver/capacity"
)

// busyError is why a server does not work on a request: it has too many. It is the detail of the
// event.
type busyError string

func (e busyError) Error() string { return "the server is busy: " + string(e) }

// queue hands the workers of one replica out, first come first served.
type queue struct {
	pool    capacity.Pool
	now     func() time.Duration
	typical time.Duration // how long a request is worked on, as the server expects

	mu      sync.Mutex
	idle    int
	waiting []*ticket
}

// ticket is a request that waits for a worker.
type ticket struct {
	until time.Duration // scenario time of its deadline; 0 for none
	turn  chan error    // nil: a worker is there; a busyError: none will be
}

// newQueue returns the queue of a replica, nil where nobody ever waits.
func (s *Service) newQueue() *queue {
	c := s.config
	if c.Pool.Workers == 0 {
		return nil
	}
	return &queue{pool: c.Pool, now: c.Clock.Now, typical: c.Processing + c.Spread.P50, idle: c.Pool.Workers}
}

// join takes an idle worker and returns nil, or takes a place in the queue. The error says that it
// is full.
func (q *queue) join(until time.Duration) (*ticket, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.idle > 0:
		q.idle--
		return nil, nil
	case q.pool.Queue != nil && len(q.waiting) >= *q.pool.Queue:
		return nil, busyError(capacity.Full)
	}
	t := &ticket{until: until, turn: make(chan error, 1)}
	q.waiting = append(q.waiting, t)
	return t, nil
}

// quit gives a place in the queue up. It reports false when the request's turn has come.
func (q *queue) quit(t *ticket) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, t)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	return true
}

// leave gives a worker back: to the first that waits and is not dropped.
func (q *queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) > 0 {
		t := q.waiting[0]
		q.waiting = q.waiting[1:]
		err := q.drops(t)
		t.turn <- err
		if err == nil {
			return
		}
	}
	q.idle++
}

// drops says why a request is dropped whose turn has come, nil when it is not.
func (q *queue) drops(t *ticket) error {
	if why := q.pool.Drops(q.now(), t.until, q.typical); why != "" {
		return busyError(why)
	}
	return nil
}

// letIn reports whether the limit of the rate lets the request in. One that it does not has its answer.
func (h *handling) letIn() bool {
	s := h.service
	if s.bucket.Take(s.config.Clock.Now()) {
		return true
	}
	h.record(lab.Event{Kind: lab.Queue, Detail: lab.QueueLimited})
	a := problem(http.StatusTooManyRequests, lab.ProblemLimited, "too many requests in this time")
	a.RetryAfter = s.config.Limit.RetryAfter
	h.answer(a)
	return false
}

// enter waits for a worker. The function gives it back. The error is a busyError, or what has ended
// the work on the request meanwhile.
func (h *handling) enter() (leave func(), err error) {
	q := h.life.queue
	if q == nil {
		return func() {}, nil
	}
	t, err := q.join(h.until)
	if t != nil {
		h.record(lab.Event{Kind: lab.Queue, Detail: lab.QueueWaits})
		select {
		case err = <-t.turn:
		case <-h.work.Done():
			if q.quit(t) {
				return func() {}, h.work.Err()
			}
			err = <-t.turn
		}
	}
	if busy, ok := errors.AsType[busyError](err); ok {
		h.record(lab.Event{Kind: lab.Queue, Detail: string(busy)})
	}
	if err != nil {
		return func() {}, err
	}
	return q.leave, nil
}
