package vtime

import (
	"bytes"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// window is how many bytes may be sent in one direction before the other end
// has read them and this is known to the sender.
const window = 256 << 10

// A conn is one end of a connection in a [Memory].
//
// All that an end learns of the other comes as packets, each with the time of
// its arrival. Packets arrive in the order in which they were sent, since the
// latency of a direction does not change and a close, which takes a little
// longer, is the last. Nobody delivers them: each operation of an end first
// takes in what has arrived by then, and one that blocks wakes up when the next
// packet arrives. So a connection needs no goroutine.
type conn struct {
	network       *Memory
	local, remote addr
	latency       time.Duration // of what this end sends
	peer          *conn
	mu            *sync.Mutex // shared by both ends

	// Guarded by mu.
	inbox   []packet     // not yet arrived, or not yet taken in
	unread  bytes.Buffer // arrived
	room    int          // how many bytes the window has left
	changed signal       // the first packet of inbox, a deadline, closed, writing

	fin    bool // the peer sends no more
	reset  bool // the peer is gone, and went before it had finished
	broken bool // the peer is gone: what is sent to it is lost

	writing  bool // a Write is under way
	finished bool // this end sends no more
	closed   bool // by its owner
	abort    bool // Close shall be a reset

	readDeadline, writeDeadline time.Time
}

// A packet is what one end sends to the other.
type packet struct {
	at   time.Time // when it arrives
	kind packetKind
	data []byte // of a segment
	read int    // of an ack: how many bytes have been read
}

type packetKind int

const (
	segment packetKind = iota
	ack
	fin
	rst
)

// newConns returns the two ends of a new connection.
func newConns(m *Memory, client, server addr, there, back time.Duration) (near, far *conn) {
	mu := new(sync.Mutex)
	near = &conn{network: m, local: client, remote: server, latency: there, mu: mu, room: window}
	far = &conn{network: m, local: server, remote: client, latency: back, mu: mu, room: window}
	near.peer, far.peer = far, near
	return near, far
}

// send sends a packet at a certain time, which is not before the time of any
// packet sent earlier. Data is copied.
func (c *conn) send(now time.Time, p packet) {
	if c.peer.closed {
		if p.kind == segment {
			c.peer.reject(now.Add(c.latency))
		}
		return
	}
	p.at = now.Add(c.latency)
	if p.kind == fin || p.kind == rst {
		p.at = now.Add(CloseLatency(c.latency))
	}
	if c.network.clock.virtual {
		p.at = c.network.clock.instants.apart(p.at, c)
	}
	c.peer.deliver(p)
}

// reject answers data that reaches a closed end at a certain time.
func (c *conn) reject(at time.Time) {
	c.peer.deliver(packet{at: at.Add(c.latency), kind: rst})
}

// deliver puts a packet into the inbox.
func (c *conn) deliver(p packet) {
	if last := len(c.inbox) - 1; last >= 0 {
		if p.at.Before(c.inbox[last].at) {
			p.at = c.inbox[last].at // it was kept apart from something else; nothing overtakes it
		}
		// What arrives at one instant arrives together.
		if q := &c.inbox[last]; q.kind == p.kind && q.at.Equal(p.at) {
			q.data = append(q.data, p.data...)
			q.read += p.read
			return
		}
	}
	p.data = bytes.Clone(p.data)
	c.inbox = append(c.inbox, p)
	if len(c.inbox) == 1 {
		c.changed.broadcast()
	}
}

// settle takes in what has arrived by now.
func (c *conn) settle(now time.Time) {
	for len(c.inbox) > 0 && !c.inbox[0].at.After(now) {
		switch p := c.inbox[0]; p.kind {
		case segment:
			c.unread.Write(p.data)
		case ack:
			c.room += p.read
		case fin:
			c.fin = true
		case rst:
			c.broken = true
			c.reset = !c.fin
		}
		c.inbox[0] = packet{}
		c.inbox = c.inbox[1:]
	}
}

// wait blocks until a deadline, the arrival of the next packet or a change.
func (c *conn) wait(deadline time.Time) {
	if len(c.inbox) > 0 && (deadline.IsZero() || c.inbox[0].at.Before(deadline)) {
		deadline = c.inbox[0].at
	}
	c.changed.wait(c.mu, deadline)
}

// Read implements [net.Conn].
func (c *conn) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		now := time.Now()
		c.settle(now)
		switch {
		case c.closed:
			return 0, c.opError("read", net.ErrClosed)
		case len(b) == 0:
			return 0, nil
		case passed(c.readDeadline, now):
			return 0, c.opError("read", os.ErrDeadlineExceeded)
		case c.unread.Len() > 0:
			n, _ := c.unread.Read(b)
			c.send(now, packet{kind: ack, read: n})
			return n, nil
		case c.reset:
			return 0, c.opError("read", os.NewSyscallError("read", syscall.ECONNRESET))
		case c.fin:
			return 0, io.EOF
		case reached(c.readDeadline, now):
			return 0, c.opError("read", os.ErrDeadlineExceeded)
		}
		c.wait(c.readDeadline)
	}
}

// Write implements [net.Conn].
func (c *conn) Write(b []byte) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	turn := false // the data of one Write stays together
	for {
		now := time.Now()
		c.settle(now)
		if err := c.writeError(now); err != nil {
			return n, c.opError("write", err)
		}
		if !turn && !c.writing {
			turn, c.writing = true, true
			defer func() {
				c.writing = false
				c.changed.broadcast()
			}()
		}
		if turn {
			if k := min(len(b), c.room); k > 0 {
				c.send(now, packet{kind: segment, data: b[:k]})
				c.room -= k
				b = b[k:]
				n += k
			}
			if len(b) == 0 {
				return n, nil
			}
		}
		if reached(c.writeDeadline, now) {
			return n, c.opError("write", os.ErrDeadlineExceeded)
		}
		c.wait(c.writeDeadline)
	}
}

// writeError returns why nothing can be sent now, or nil.
func (c *conn) writeError(now time.Time) error {
	switch {
	case c.closed:
		return net.ErrClosed
	case passed(c.writeDeadline, now):
		return os.ErrDeadlineExceeded
	case c.reset && !c.finished:
		return os.NewSyscallError("write", syscall.ECONNRESET)
	case c.broken, c.finished:
		return os.NewSyscallError("write", syscall.EPIPE)
	}
	return nil
}

// Close implements [net.Conn].
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.settle(now)
	if c.closed {
		return c.opError("close", net.ErrClosed)
	}
	c.close(now, c.abort || c.unread.Len() > 0)
	return nil
}

// refuse resets a connection that nobody accepts, when it arrives or now.
func (c *conn) refuse(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); at.Before(now) {
		at = now
	}
	c.close(at, true)
}

// close closes this end at a certain time, with a reset or in order.
func (c *conn) close(at time.Time, reset bool) {
	c.closed = true
	if reset {
		c.send(at, packet{kind: rst})
	} else {
		c.finish(at)
		for _, p := range c.inbox {
			if p.kind == segment {
				c.reject(p.at)
			}
		}
	}
	c.inbox = nil
	c.unread = bytes.Buffer{}
	c.changed.broadcast()
	c.network.disconnected(c)
}

// finish tells the peer, once, that this end sends no more.
func (c *conn) finish(now time.Time) {
	if !c.finished {
		c.finished = true
		c.send(now, packet{kind: fin})
	}
}

// CloseWrite ends what this end sends: the peer reads [io.EOF] after the data
// sent so far. This end can still read.
func (c *conn) CloseWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.settle(now)
	switch {
	case c.closed:
		return c.opError("close", net.ErrClosed)
	case c.broken:
		return c.opError("close", os.NewSyscallError("shutdown", syscall.ENOTCONN))
	}
	c.finish(now)
	c.changed.broadcast()
	return nil
}

// SetLinger with 0 makes Close a reset, as [net.TCPConn.SetLinger] does. All
// other values are alike here: what was sent arrives after Close, which does
// not wait for it.
func (c *conn) SetLinger(sec int) error {
	return c.set(func() { c.abort = sec == 0 })
}

// SetDeadline implements [net.Conn].
func (c *conn) SetDeadline(t time.Time) error {
	return c.set(func() { c.readDeadline, c.writeDeadline = t, t })
}

// SetReadDeadline implements [net.Conn].
func (c *conn) SetReadDeadline(t time.Time) error {
	return c.set(func() { c.readDeadline = t })
}

// SetWriteDeadline implements [net.Conn].
func (c *conn) SetWriteDeadline(t time.Time) error {
	return c.set(func() { c.writeDeadline = t })
}

func (c *conn) set(change func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.opError("set", net.ErrClosed)
	}
	change()
	c.changed.broadcast()
	return nil
}

// LocalAddr implements [net.Conn].
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements [net.Conn].
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: c.local.Network(), Source: c.local, Addr: c.remote, Err: err}
}

// reached reports whether a deadline is set and not after now.
func reached(deadline, now time.Time) bool {
	return !deadline.IsZero() && !deadline.After(now)
}

// passed reports whether a deadline is set and before now.
func passed(deadline, now time.Time) bool {
	return !deadline.IsZero() && deadline.Before(now)
}

// A signal is a condition variable whose wait can end by itself at some time.
// Those who wait in a bubble are durably blocked. The zero value is ready.
type signal struct {
	raised chan struct{} // closed by broadcast; nil if nobody waits
}

// wait unlocks mu and blocks until the next broadcast or, unless it is zero,
// until a certain time. It locks mu again before it returns.
func (s *signal) wait(mu *sync.Mutex, until time.Time) {
	if s.raised == nil {
		s.raised = make(chan struct{})
	}
	raised := s.raised
	mu.Unlock()
	defer mu.Lock()
	if until.IsZero() {
		<-raised
		return
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-raised:
	case <-timer.C:
	}
}

// broadcast wakes all who wait. The caller holds their mutex.
func (s *signal) broadcast() {
	if s.raised != nil {
		close(s.raised)
		s.raised = nil
	}
}
