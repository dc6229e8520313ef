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

	wake     chan struct{} // made in the bubble: it may look again
	blockers []uint32      // whom it waits for in the server
	gaveUp   error         // why its caller does not wait any more

	done chan struct{} // made outside: it has returned
	err  error
}

var errLockTimeout = errors.New("lock time-out")

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
		s.queue(ctx, c)
		defer s.unqueue(c)
	}
	if c.done == nil {
		s.begin(c)
	}
	for {
		s.look(c)
		switch {
		case c.over():
			if c.err != nil {
				s.ended(c.session.pid) // a transaction that has failed holds nothing
			} else if c.resource != "" {
				s.holders[c.resource] = c.session.pid
			}
			return s.result(c)
		case c.gaveUp != nil:
			s.cancel(c)
		case s.foreign(c.blockers):
			s.waitOutside(c) // for somebody who does not wait for our time
		case s.breakCircle(c):
		default:
			s.waiting[c.session.pid] = c
			s.await(ctx, c)
			delete(s.waiting, c.session.pid)
		}
	}
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
			_, c.err = c.session.conn.Exec(ctx, "SELECT 1")
		})
	}
	s.await(ctx, c)
	delete(s.waiting, c.session.pid) // somebody may have had it enter before its turn
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
	s.turn.Unlock()
	defer s.turn.Lock()
	select {
	case <-c.wake:
		if s.yield != nil {
			c.gaveUp = s.yield(ctx, c.id)
		}
	case <-ctx.Done():
		c.gaveUp = context.Cause(ctx)
	}
}

// begin starts the statement outside.
func (s *Store) begin(c *call) {
	s.outside.Do(func() { c.done = make(chan struct{}) })
	s.outside.Go(func() {
		defer close(c.done)
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
			if c.blockers = s.blockers(c.session.pid); len(c.blockers) > 0 {
				return
			}
			if time.Now().After(deadline) {
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

// blockers asks the server who holds a process up. That it cannot be asked is found out by whoever
// waits for the statement.
func (s *Store) blockers(pid uint32) []uint32 {
	ctx, cancel := outsideContext()
	defer cancel()
	pids, err := s.database.monitor.blocking(ctx, pid)
	if err != nil {
		return nil
	}
	return pids
}

// waitOutside waits for the statement in real time, and gives up when the server does not come to
// an end with it.
func (s *Store) waitOutside(c *call) {
	s.outside.Do(func() {
		timer := time.NewTimer(s.database.patience)
		defer timer.Stop()
		select {
		case <-c.done:
		case <-timer.C:
			s.stall(c)
		}
	})
}

// breakCircle has the server break the circle that c has closed, if it has. It reports whether it
// was c that failed for it; else c waits on, for what it waited for.
//
// Who waits for its turn in the bubble is not seen by the server, so those on the way enter it now,
// the last of them as the one that closes the circle.
func (s *Store) breakCircle(c *call) bool {
	var turns []*call
	if !s.circle(c.session.pid, c.blockers, &turns) {
		return false
	}
	for i, t := range turns {
		if i == len(turns)-1 && s.database.detects {
			s.outside.Do(func() {
				ctx, cancel := outsideContext()
				defer cancel()
				t.session.conn.Exec(ctx, closeCircle) // if that fails, so does what follows
			})
		}
		s.begin(t)
		s.waiting[t.session.pid] = t
		if i < len(turns)-1 {
			s.look(t)
		}
	}
	return s.victim(c) == c
}

// victim waits until the server has broken a circle, and returns the call whose statement failed
// for that. It is the one that closed the circle, where the server was told so (see [tx.foresee]);
// where that is not allowed it may be another, which then has to go on first.
func (s *Store) victim(c *call) (victim *call) {
	s.outside.Do(func() {
		deadline := time.Now().Add(s.database.patience)
		timer := time.NewTimer(look)
		defer timer.Stop()
		for victim == nil {
			<-timer.C
			if c.over() && c.err != nil {
				victim = c
			}
			for _, other := range s.waiting {
				if other.over() && other.err != nil { // who returns without an error has got what the victim held
					victim = other
				}
			}
			if victim == nil && time.Now().After(deadline) {
				s.stall(c)
				victim = c
			}
			timer.Reset(look)
		}
	})
	if victim != c {
		victim.let()
	}
	return victim
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

// circle reports whether those that pid waits for wait for pid, in the end. Those on the way that
// wait for their turn in the bubble are in no circle that the server can see: they are added to
// turns, when that is not nil.
func (s *Store) circle(pid uint32, blockers []uint32, turns *[]*call) bool {
	return s.walk(pid, blockers, nil, turns)
}

func (s *Store) walk(pid uint32, blockers, seen []uint32, turns *[]*call) bool {
	for _, b := range blockers {
		if b == pid {
			return true
		}
		if slices.Contains(seen, b) {
			continue
		}
		next, turn := []uint32(nil), s.inTurn(b)
		switch other := s.waiting[b]; {
		case other != nil:
			next, turn = other.blockers, nil
		case turn != nil:
			next = []uint32{s.holders[turn.resource]}
		}
		if s.walk(pid, next, append(seen, b), turns) {
			if turn != nil && turns != nil {
				*turns = append(*turns, turn)
			}
			return true
		}
	}
	return false
}

// inTurn returns the call of the process with pid that waits for its turn in the bubble, nil when
// it has none.
func (s *Store) inTurn(pid uint32) *call {
	for _, q := range s.queues {
		for _, c := range q {
			if c.session.pid == pid && c.done == nil {
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

// closes reports whether the process with pid closes a circle that the server sees if it waits for
// a resource. On the wall clock it reports whether that can be: whether somebody waits for it.
func (s *Store) closes(pid uint32, resource string) (circle bool) {
	if s.virtual {
		s.turn.Lock()
		defer s.turn.Unlock()
		holder, held := s.holders[resource]
		var turns []*call
		return held && s.circle(pid, []uint32{holder}, &turns) && len(turns) == 0
	}
	s.outside.Do(func() {
		ctx, cancel := outsideContext()
		defer cancel()
		circle, _ = s.database.monitor.holdsUp(ctx, pid)
	})
	return circle
}

// outsideContext bounds in real time what is asked of the server beside the trials' statements.
func outsideContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 5*time.Second)
}
