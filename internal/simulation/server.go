package simulation

import (
	"net/http"
	"time"

	"retrylab/caller/policy"
	"retrylab/internal/lab"
	"retrylab/internal/vtime"
	"retrylab/scenarios"
	"retrylab/slowserver/capacity"
	"retrylab/slowserver/fault"
)

// server is the order service: workers, and those who wait for one.
type server struct {
	scenarios.Server
	name     string // of its one replica
	pool     capacity.Pool
	requests []request
	paths    map[int32]string // of the requests, where somebody records
	free     []int32          // places in requests
	idle     int              // workers
	waiting  []int32          // requests
	arrivals int
	fired    []int // of each fault, how often
}

// request is a request on its way to the service, in it, or on its way back. There can be millions.
type request struct {
	operation int32
	send      uint32
	arrival   int32         // which it is, from 1
	back      int32         // how long the answer takes, in nanoseconds
	deadline  time.Duration // what is left of it when the request is sent, then when it is over; 0 for none
	spread    time.Duration // the part of the work that differs from one request to the next
	lucky     uint64        // the faults that strike a share of the requests, and this one: a bit for each
	outcome   outcome       // of its send
}

func newServer(s scenarios.Server) server {
	return server{
		Server: s, name: s.ReplicaNames()[0], idle: s.Workers, fired: make([]int, len(s.Faults)),
		pool: capacity.Pool{Workers: s.Workers, Queue: s.Queue, Shed: s.Shed}, paths: map[int32]string{},
	}
}

// take keeps a request and returns its place, give forgets what is there.
func (s *server) take(r request) int32 {
	if last := len(s.free) - 1; last >= 0 {
		n := s.free[last]
		s.free = s.free[:last]
		s.requests[n] = r
		return n
	}
	s.requests = append(s.requests, r)
	return int32(len(s.requests) - 1)
}

func (s *server) give(n int32) request {
	s.free = append(s.free, n)
	return s.requests[n]
}

// strikes returns the first fault at a place that strikes a request now, -1 for none. lucky is what
// was drawn for it.
func (s *server) strikes(at fault.Place, arrival int, now time.Duration, lucky uint64) int {
	for i := range s.Faults {
		if s.Faults[i].At == at && s.Faults[i].Strikes(fault.Arrival{Number: arrival, Replica: 1, At: now, Luck: luck(lucky, i)}) {
			return i
		}
	}
	return -1
}

// draw draws for every fault that strikes a share of the requests whether it strikes the one with a
// path: a bit for each.
func (s *server) draw(seed int64, path string) (lucky uint64) {
	for i := range s.Faults {
		if share := s.Faults[i].Share; share != nil && fault.Luck(seed, i, path) < *share {
			lucky |= 1 << i
		}
	}
	return lucky
}

// luck is a draw for fault i that comes to what was drawn.
func luck(lucky uint64, i int) func() float64 {
	return func() float64 { return 1 - float64(lucky>>i&1) }
}

func (w *world) fire(fault int, i int32, path string) {
	w.server.fired[fault]++
	detail := ""
	if w.record != nil {
		detail = w.server.Faults[fault].Name()
	}
	w.noteAt(path, i, lab.Event{Kind: lab.Fault, Node: w.server.name, Detail: detail})
}

// noteServer records something of a request at the service.
func (w *world) noteServer(n int32, e lab.Event) {
	e.Node = w.server.name
	w.noteAt(w.server.paths[n], w.server.requests[n].operation, e)
}

// arrive has a request reach the service: it finds a worker, a place in the queue, or neither.
func (w *world) arrive(n int32) {
	s := &w.server
	r := &s.requests[n]
	s.arrivals++
	r.arrival = int32(s.arrivals)
	w.noteServer(n, lab.Event{Kind: lab.Arrival})
	w.count(func(s *lab.Series) *[]int { return &s.Arrivals })
	if r.deadline > 0 {
		r.deadline += w.now
	}
	switch {
	case s.pool.Workers == 0:
		w.work(n)
	case s.idle > 0:
		s.idle--
		if !w.work(n) {
			w.leave()
		}
	case s.pool.Queue != nil && len(s.waiting) >= *s.pool.Queue:
		w.noteServer(n, lab.Event{Kind: lab.Queue, Detail: capacity.Full})
		w.answer(n, outcome{status: http.StatusServiceUnavailable})
	default:
		w.noteServer(n, lab.Event{Kind: lab.Queue, Detail: lab.QueueWaits})
		w.wait()
		s.waiting = append(s.waiting, n)
	}
}

// wait tells the series how many have waited until now.
func (w *world) wait() {
	if w.series != nil {
		w.series.Wait(len(w.server.waiting), w.now)
	}
}

// work begins to work on a request. It reports false when a fault has ended that at once.
func (w *world) work(n int32) bool {
	s := &w.server
	r := &s.requests[n]
	// As the service has it: one fault after the other, until one of them ends the request.
	for i := range s.Faults {
		f := &s.Faults[i]
		if f.At != fault.BeforeGuard || !f.Strikes(fault.Arrival{Number: int(r.arrival), Replica: 1, At: w.now, Luck: luck(r.lucky, i)}) {
			continue
		}
		w.fire(i, r.operation, s.paths[n])
		switch f.Do {
		case fault.Status.Name:
			end := outcome{status: uint16(f.Status)}
			end.retryAfter, end.hasRetryAfter = policy.ParseRetryAfter(f.RetryAfter, time.Time{})
			w.answer(n, end)
		case fault.Reset.Name:
			w.drop(n, policy.Reset)
		default:
			w.drop(n, policy.EOF)
		}
		return false
	}
	w.totals.Runs++
	w.noteServer(n, lab.Event{Kind: lab.Work})
	w.plan(s.Processing+r.spread, event{kind: worked, who: n})
	return true
}

// commit has the work on a request done: there is an order more.
func (w *world) commit(n int32) {
	r := &w.server.requests[n]
	c := &w.clients[r.operation]
	c.orders++
	w.totals.Amount += int64(w.trial.Setup.Amount)
	if c.done {
		w.totals.Late++
	}
	w.noteServer(n, lab.Event{Kind: lab.Commit})
	if lost := w.server.strikes(fault.AfterCommit, int(r.arrival), w.now, r.lucky); lost >= 0 {
		w.fire(lost, r.operation, w.server.paths[n]) // nobody is told, and nobody waits for a worker here
		return
	}
	w.answer(n, outcome{status: http.StatusCreated})
	w.leave()
}

// answer sends an answer on its way.
func (w *world) answer(n int32, end outcome) {
	r := &w.server.requests[n]
	w.totals.Answers[int(end.status)]++
	w.noteServer(n, lab.Event{Kind: lab.Answer, Status: int(end.status)})
	r.outcome = end
	w.plan(time.Duration(r.back), event{kind: replied, who: n})
}

// drop ends the connection of a request.
func (w *world) drop(n int32, f policy.Failure) {
	r := &w.server.requests[n]
	r.outcome = failed(f)
	w.plan(vtime.CloseLatency(time.Duration(r.back)), event{kind: replied, who: n})
}

// leave gives a worker back: to the first that waits and is not dropped.
func (w *world) leave() {
	s := &w.server
	if s.pool.Workers == 0 {
		return
	}
	w.wait()
	for len(s.waiting) > 0 {
		n := s.waiting[0]
		s.waiting = s.waiting[1:]
		r := &s.requests[n]
		if why := s.pool.Drops(w.now, r.deadline, s.Processing+s.ProcessingSpread.P50); why != "" {
			w.noteServer(n, lab.Event{Kind: lab.Queue, Detail: why})
			w.answer(n, outcome{status: http.StatusServiceUnavailable})
			continue
		}
		if w.work(n) {
			return
		}
	}
	s.idle++
}
