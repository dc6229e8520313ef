package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"retrylab/slowserver/store"
)

// On the virtual clock a statement takes no time, unless it waits for another transaction, which
// waits for time to go on. So every statement is performed outside the bubble while the bubble
// waits; when it has not returned after a moment, the server is asked whether it waits for others,
// and if so the caller waits in the bubble until one of those has ended, and looks again.
//
// One statement of a trial is under way at a time ([Store.turn]), so that between the server's
// answer "it waits" and the beginning of the wait no transaction can end unnoticed.
//
// Who of several waiters gets a lock is the server's choice. So that it has none, one statement
// waits in the server for a resource, and those that came later wait for their turn in the
// bubble, in the order in which they came.
//
// A deadlock's victim is who closes the circle of waits, if the server sees all of it: that one's
// session looks for circles soon, and every other after an hour. A circle that goes through
// somebody who waits for its turn is found here. That one enters the server, to see whether it has
// to wait there at all, and is then the victim: its statement is cancelled.

// look is after how long the server is asked about a statement that has not returned. It is real
// time, and decides nothing: who is asked too early answers that it waits for nobody.
const look = time.Millisecond

// call is a statement on its way.
type call struct {
	id       string // names the request, for the moment that a hand-over takes
	session  *session
	resource string // what it may have to wait for; empty when nothing
	pin      bool   // its transaction takes its snapshot when it comes, and not when it is let go
	f        func(ctx context.Context, s *session) error
	locks    func() bool // whether it has locked the resource, once it has succeeded; nil for never

	wake     chan struct{} // made in the bubble: it may look again
	blockers []uint32      // whom it waits for in the server
	soon     bool          // the server looks for a circle soon after it begins to wait
	first    bool          // it has not waited for its turn, since it closes a circle
	gaveUp   error         // why its caller does not wait any more

	done chan struct{} // made outside: it has returned
	err  error
}

var (
	errLockTimeout = errors.New("lock time-out")
	errCircle      = errors.New("a circle of waits")
	errNoReturn    = errors.New("the statement did not return")
)

// perform performs a statement: at once, or when those have ended that it has to wait for. When
// ctx ends first it is cancelled.
func (s *Store) perform(ctx context.Context, c *call) error {
	if !s.virtual {
		return s.inRealTime(ctx, c)
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	c.wake = make(chan struct{}, 1)
	if c.resource != "" && s.holders[c.resource] != c.session.pid {
		// Who closes a circle will not get what it wants, and need not wait for its turn to hear it.
		if c.first = len(s.queues[c.resource]) > 0 && s.closes(c, anywhere); !c.first {
			s.queue(ctx, c)
			defer s.unqueue(c)
		}
		if s.database.detects && s.closes(c, inServer) {
			s.lookForCircles(c, true)
		}
	}
	if c.done == nil {
		s.begin(c)
	}
	for {
		s.look(c)
		switch {
		case c.over():
			s.returned(c)
			return s.result(c)
		case c.gaveUp != nil:
			s.cancel(c)
		case s.foreign(c.blockers):
			s.waitOutside(c, s.database.patience) // for somebody who does not wait for our time
			if !c.over() {
				s.outside.Do(func() { s.stall(c) })
			}
		case s.reaches(c.session.pid, c.blockers, anywhere):
			s.breakCircle(c)
		default:
			s.waiting[c.session.pid] = c
			s.await(ctx, c)
			delete(s.waiting, c.session.pid)
		}
	}
}

// returned notes what a statement that has returned holds, and what its transaction does not hold
// any more.
func (s *Store) returned(c *call) {
	switch {
	case c.err != nil:
		s.ended(c.session.pid) // a transaction that has failed holds nothing
		return
	case c.locks != nil && c.locks():
		s.holders[c.resource] = c.session.pid
	}
	if c.soon {
		s.lookForCircles(c, false)
	}
}

// breakCircle breaks the circle that c has closed.
func (s *Store) breakCircle(c *call) {
	t := s.onTheWay(c)
	switch {
	case c.soon:
		s.waitOutside(c, time.Second) // the server does it
	case t == nil || c.first:
	default:
		s.begin(t)
		if s.look(t); !t.over() {
			// At once: two that wait in the server for one resource would race for it.
			t.gaveUp = errCircle
			s.cancel(t)
		}
		t.let()
		return
	}
	if !c.over() {
		c.gaveUp = errCircle
	}
}

// onTheWay returns a call in the circle that c has closed that waits for its turn, nil if there is
// none.
func (s *Store) onTheWay(c *call) *call {
	for _, resource := range slices.Sorted(maps.Keys(s.queues)) {
		for _, t := range s.queues[resource] {
			if t.waitsForTurn() && s.reaches(t.session.pid, c.blockers, anywhere) && s.reaches(c.session.pid, s.before(t), anywhere) {
				return t
			}
		}
	}
	return nil
}

// waitsForTurn reports whether the statement has not been sent, and will be.
func (c *call) waitsForTurn() bool { return c.done == nil && c.gaveUp == nil }

// lookForCircles has the server look for a circle soon after the session begins to wait. It is a
// session's next wait that closes a circle: every other session looks after an hour, so that it
// finds out, and no other does.
func (s *Store) lookForCircles(c *call, soon bool) {
	c.soon = soon
	s.outside.Do(func() {
		ctx, cancel := outsideContext()
		defer cancel()
		c.session.lookForCircles(ctx, soon) // if that fails, so does what follows
	})
}

// lookForCircles is the statement for it.
func (s *session) lookForCircles(ctx context.Context, soon bool) error {
	after := "1h"
	if soon {
		after = "10ms"
	}
	_, err := s.conn.Exec(ctx, "SET LOCAL deadlock_timeout = '"+after+"'")
	return err
}

// queue waits until the calls that came before for the same resource have returned.
func (s *Store) queue(ctx context.Context, c *call) {
	before := s.queues[c.resource]
	s.queues[c.resource] = append(before, c)
	if len(before) == 0 {
		return
	}
	if c.pin {
		s.outside.Do(func() {
			ctx, cancel := outsideContext()
			defer cancel()
			c.session.conn.Exec(ctx, "SELECT 1") // if that fails, so does what follows
		})
	}
	s.await(ctx, c)
}

func (s *Store) unqueue(c *call) {
	q := s.queues[c.resource]
	first := q[0] == c
	q = slices.DeleteFunc(q, func(other *call) bool { return other == c })
	if len(q) == 0 {
		delete(s.queues, c.resource)
		return
	}
	s.queues[c.resource] = q
	if first {
		q[0].let()
	}
}

// let allows a call that waits to go on.
func (c *call) let() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// await lets others have their turn until c may go on, or its caller gives up.
func (s *Store) await(ctx context.Context, c *call) {
	var err error
	s.turn.Unlock()
	defer func() {
		s.turn.Lock()
		if c.gaveUp == nil { // somebody may have found a circle meanwhile
			c.gaveUp = err
		}
	}()
	select {
	case <-c.wake:
		if s.yield != nil {
			err = s.yield(ctx, c.id)
		}
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
}

// begin starts the statement outside.
func (s *Store) begin(c *call) {
	s.outside.Do(func() { c.done = make(chan struct{}) })
	s.outside.Go(func() {
		defer close(c.done)
		c.err = errNoReturn // unless it does
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		c.err = c.f(ctx, c.session)
	})
}

// look waits until the statement has returned, or is found to wait for others.
func (s *Store) look(c *call) {
	s.outside.Do(func() {
		c.blockers = nil
		deadline := time.Now().Add(s.database.patience)
		timer := time.NewTimer(look)
		defer timer.Stop()
		for {
			select {
			case <-c.done:
				return
			case <-timer.C:
			}
			var err error
			if c.blockers, err = s.blockers(c.session.pid); err != nil {
				s.lose(err)
			}
			switch {
			case len(c.blockers) > 0:
				return
			case err != nil, time.Now().After(deadline):
				s.stall(c)
				return
			}
			timer.Reset(look)
		}
	})
}

// over reports whether the statement has returned. It is called in the bubble, and does not wait.
func (c *call) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// blockers asks the server who holds a process up.
func (s *Store) blockers(pid uint32) ([]uint32, error) {
	ctx, cancel := outsideContext()
	defer cancel()
	return s.database.monitor.blocking(ctx, pid)
}

// waitOutside waits in real time until the statement has returned, or for so long.
func (s *Store) waitOutside(c *call, most time.Duration) {
	s.outside.Do(func() {
		timer := time.NewTimer(most)
		defer timer.Stop()
		select {
		case <-c.done:
		case <-timer.C:
		}
	})
}

// stall ends a statement that nothing will end, and notes who waits for whom.
func (s *Store) stall(c *call) {
	ctx, cancel := outsideContext()
	defer cancel()
	what := fmt.Sprintf("a statement of %s has not returned within %s of real time", c.id, s.database.patience)
	if waits, err := s.database.monitor.waits(ctx); err == nil && len(waits) > 0 {
		what += ": " + strings.Join(waits, "; ")
	}
	s.lose(errors.New(what))
	c.session.hangUp() // its goroutine returns with an error
	<-c.done
	// A process of the server that waits for a lock does not notice, and would get it one day.
	if err := s.database.monitor.terminate(ctx, c.session.pid); err != nil {
		s.lose(err)
	}
}

// cancel has the server give the statement up, and waits until it has. On the virtual clock nobody
// can end a transaction meanwhile, so what is cancelled is what waits. In real time the statement
// may not have reached the server yet, which then has nothing to cancel, and is told again.
func (s *Store) cancel(c *call) {
	s.outside.Do(func() {
		deadline := time.Now().Add(s.database.patience)
		timer := time.NewTimer(0)
		defer timer.Stop()
		for {
			select {
			case <-c.done:
				return
			case <-timer.C:
			}
			ctx, stop := outsideContext()
			err := s.database.monitor.cancel(ctx, c.session.pid)
			stop()
			if err != nil || time.Now().After(deadline) {
				s.stall(c)
				return
			}
			timer.Reset(10 * look)
		}
	})
}

// result is the error of a statement that has returned, in the class that a service knows.
func (s *Store) result(c *call) error {
	err := classified(c.err)
	switch {
	case err == nil:
		return nil
	case c.gaveUp == errCircle:
		return fmt.Errorf("%w (a circle through one that waits for its turn; %s)", store.ErrDeadlock, err)
	case c.gaveUp == errLockTimeout:
		return fmt.Errorf("%w (%s)", store.ErrBusy, err)
	case c.gaveUp != nil:
		return fmt.Errorf("%w (%s)", c.gaveUp, err)
	case errors.Is(err, store.ErrLost) && !c.session.wire.injured():
		s.lose(err)
	}
	return err
}

// ended lets those look again that waited for the process with pid: its transaction has ended.
func (s *Store) ended(pid uint32) {
	maps.DeleteFunc(s.holders, func(_ string, holder uint32) bool { return holder == pid })
	for _, c := range s.waiting {
		if slices.Contains(c.blockers, pid) {
			// The process may have another transaction before c has looked again, and c does not wait for that one.
			c.blockers = slices.DeleteFunc(c.blockers, func(p uint32) bool { return p == pid })
			c.let()
		}
	}
}

// foreign reports whether one of the processes is none of the trial's.
func (s *Store) foreign(pids []uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(pids, func(pid uint32) bool { return s.sessions[pid] == nil })
}

// scope says where waits are looked for: in the server alone, or in the bubble too.
type scope bool

const (
	inServer scope = false
	anywhere scope = true
)

// closes reports whether a call closes a circle if it waits for its resource.
func (s *Store) closes(c *call, where scope) bool {
	return s.reaches(c.session.pid, s.before(c), where)
}

// before lists whom a call waits for while it waits for its turn: who holds the resource, and who
// is the first to get it next.
func (s *Store) before(c *call) []uint32 {
	var pids []uint32
	if holder, held := s.holders[c.resource]; held {
		pids = append(pids, holder)
	}
	if q := s.queues[c.resource]; len(q) > 0 && q[0] != c {
		pids = append(pids, q[0].session.pid)
	}
	return pids
}

// reaches reports whether any of some processes waits for the process with pid, in the end.
func (s *Store) reaches(pid uint32, from []uint32, where scope) bool {
	seen := map[uint32]bool{}
	for len(from) > 0 {
		p := from[0]
		from = from[1:]
		if p == pid {
			return true
		}
		if seen[p] {
			continue
		}
		seen[p] = true
		if c := s.waiting[p]; c != nil {
			from = append(from, c.blockers...)
		} else if c := s.inTurn(p); c != nil && where == anywhere {
			from = append(from, s.before(c)...)
		}
	}
	return false
}

// inTurn returns the call of the process with pid that waits for its turn in the bubble, nil when
// it has none.
func (s *Store) inTurn(pid uint32) *call {
	for _, q := range s.queues {
		for _, c := range q {
			if c.session.pid == pid && c.waitsForTurn() {
				return c
			}
		}
	}
	return nil
}

// inRealTime performs a statement on the wall clock, where the server's time is everybody's.
func (s *Store) inRealTime(ctx context.Context, c *call) error {
	s.begin(c)
	select {
	case <-c.done:
	case <-ctx.Done():
		c.gaveUp = context.Cause(ctx)
		s.cancel(c)
	}
	return s.result(c)
}

// outsideContext bounds in real time what is asked of the server beside the trials' statements.
func outsideContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 5*time.Second)
}
