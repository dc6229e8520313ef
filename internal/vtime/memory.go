package vtime

import (
	"cmp"
	"context"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// The latencies of connections lie between these two: long enough for nothing
// to happen at one instant on two machines, short enough not to matter.
const (
	minLatency = 5 * time.Microsecond
	maxLatency = 50 * time.Microsecond
)

// Memory is a [Network] within the process, made for the virtual clock.
//
// Each connection has two latencies, one for each direction, which follow from
// the seed and its id. Nothing that one end does can be noticed at the other
// before the latency has passed: not data, nor that data has been read, nor
// that the end was closed. Since these latencies differ in the nanoseconds, the
// order of events on different machines is decided by time, not by the
// scheduler. Dial takes one round trip and finds who listens when half of that
// is over; the listener can accept the connection one latency after it.
//
// Up to 256 KiB can be on their way in each direction, or unread; then Write
// blocks. Data that has arrived is delivered even at the very instant of the
// read deadline, but not after it.
type Memory struct {
	clock *Clock
	seed  int64
	done  chan struct{} // closed by Close

	mu        sync.Mutex
	closed    bool
	listeners map[string]*listener
	dark      map[string]bool
	open      map[*conn]bool // ends not closed; true for those of the listening side
	serving   int            // how many of them are of the listening side
}

// NewMemory returns a network without hosts. On the virtual clock it must be
// made in the bubble in which it is used.
func NewMemory(clock *Clock, seed int64) *Memory {
	return &Memory{
		clock:     clock,
		seed:      seed,
		done:      make(chan struct{}),
		listeners: make(map[string]*listener),
		dark:      make(map[string]bool),
		open:      make(map[*conn]bool),
	}
}

// Listen implements [Network].
func (m *Memory) Listen(host string) (net.Listener, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := &listener{network: m, host: host}
	switch {
	case m.closed:
		return nil, l.opError("listen", net.ErrClosed)
	case m.listeners[host] != nil:
		return nil, l.opError("listen", errInUse)
	}
	m.listeners[host] = l
	return l, nil
}

// Dial implements [Network]. Connections with the same id have the same
// latencies.
func (m *Memory) Dial(ctx context.Context, host, id string) (net.Conn, error) {
	client, server := clientAddr(id), serverAddr(host)
	c, err := m.dial(ctx, client, server, host, id)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: client.Network(), Source: client, Addr: server, Err: err}
	}
	return c, nil
}

func (m *Memory) dial(ctx context.Context, client, server addr, host, id string) (*conn, error) {
	there, back := m.latency(id, "there"), m.latency(id, "back")
	l, err := m.knock(ctx, host, there)
	if err != nil {
		return nil, err
	}
	if err := m.sleep(ctx, back); err != nil {
		return nil, err
	}
	if l == nil {
		return nil, errRefused
	}
	near, far := newConns(m, client, server, there, back)
	if err := l.enqueue(arrival{at: time.Now().Add(m.clock.Apart(there)), id: id, conn: far}); err != nil {
		return nil, err
	}
	return near, nil
}

// knock takes the time of the first packet's way to host and returns who
// listens there, or nil. At a dark host it does not return before ctx ends.
func (m *Memory) knock(ctx context.Context, host string, there time.Duration) (*listener, error) {
	if err := m.sleep(ctx, there); err != nil {
		return nil, err
	}
	m.mu.Lock()
	l, dark := m.listeners[host], m.dark[host]
	m.mu.Unlock()
	if !dark {
		return l, nil
	}
	select {
	case <-ctx.Done():
		return nil, ended(ctx)
	case <-m.done:
		return nil, net.ErrClosed
	}
}

// sleep waits for d, or until ctx ends or the network closes.
func (m *Memory) sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-m.done:
		return net.ErrClosed
	default:
	}
	if sleep(ctx, m.clock.Apart(d)) != nil {
		return ended(ctx)
	}
	return nil
}

// latency returns how long data takes in one direction of a connection.
func (m *Memory) latency(id, direction string) time.Duration {
	return m.clock.Real(Latency(m.seed, id, direction))
}

// Latency returns how long data takes on the connection with that id of a [Memory]
// with that seed, in the direction "there" or "back".
func Latency(seed int64, id, direction string) time.Duration {
	var space [128]byte
	text := strconv.AppendInt(space[:0], seed, 10)
	text = append(append(append(append(append(text, '/'), id...), "/latency"...), '/'), direction...)
	h := uint64(14695981039346656037) // FNV-1a
	for _, b := range text {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return minLatency + time.Duration(h%uint64(maxLatency-minLatency+1))
}

// CloseLatency returns how long a close takes where data takes latency: a little
// longer. Else a limit of the client and a timer of the same length that the
// request's arrival started would end in one instant, and the scheduler would
// choose which is first.
func CloseLatency(latency time.Duration) time.Duration { return latency + latency/7 + 3 }

// Blackhole implements [Network].
func (m *Memory) Blackhole(host string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dark[host] = true
}

// Crash implements [Network].
func (m *Memory) Crash(host string) {
	m.mu.Lock()
	l := m.listeners[host]
	conns := m.sorted(func(c *conn) bool { return m.open[c] && c.local == serverAddr(host) })
	m.mu.Unlock()
	if l != nil {
		l.Close() // first: it resets what it has not accepted when that arrives, not now
	}
	for _, c := range conns {
		c.Close()
	}
}

// sorted returns the open ends that are chosen, in an order that does not depend on chance. The
// caller holds m.mu.
func (m *Memory) sorted(chosen func(*conn) bool) []*conn {
	conns := slices.SortedFunc(maps.Keys(m.open), func(a, b *conn) int {
		return cmp.Or(
			cmp.Compare(a.local.String(), b.local.String()),
			cmp.Compare(a.remote.String(), b.remote.String()),
		)
	})
	return slices.DeleteFunc(conns, func(c *conn) bool { return !chosen(c) })
}

// Busy implements [Network].
func (m *Memory) Busy() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.serving > 0
}

// Close implements [Network]. It always returns nil.
func (m *Memory) Close() error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil
	}
	m.closed = true
	close(m.done)
	listeners := slices.SortedFunc(maps.Values(m.listeners), func(a, b *listener) int {
		return cmp.Compare(a.host, b.host)
	})
	conns := m.sorted(func(*conn) bool { return true })
	m.mu.Unlock()
	for _, l := range listeners {
		l.Close()
	}
	for _, c := range conns {
		c.Close()
	}
	return nil
}

// connected counts the two ends of a connection. The caller holds m.mu.
func (m *Memory) connected(near, far *conn) {
	m.open[near], m.open[far] = false, true
	m.serving++
}

// disconnected counts an end that was closed.
func (m *Memory) disconnected(c *conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open[c] {
		m.serving--
	}
	delete(m.open, c)
}

// An addr is an address in a Memory: a name and a port, which has no meaning.
type addr string

func clientAddr(id string) addr   { return addr(net.JoinHostPort(id, "1")) }
func serverAddr(host string) addr { return addr(net.JoinHostPort(host, "80")) }

func (addr) Network() string  { return "mem" }
func (a addr) String() string { return string(a) }

// A listener is the listener of a host in a Memory.
type listener struct {
	network *Memory
	host    string

	// Guarded by network.mu.
	closed  bool
	changed signal
	queue   []arrival // not yet accepted, by time of arrival
}

// An arrival is a connection that can be accepted from a certain time on.
type arrival struct {
	at   time.Time
	id   string
	conn *conn
}

// enqueue lets the listener accept a connection once it has arrived. A listener
// that has closed since the first packet was there resets it, as one does that
// closes later: which of the two it is makes no difference to the caller.
func (l *listener) enqueue(a arrival) error {
	m := l.network
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return net.ErrClosed
	}
	m.connected(a.conn.peer, a.conn)
	if l.closed {
		m.mu.Unlock()
		a.conn.refuse(a.at)
		return nil
	}
	defer m.mu.Unlock()
	// A connection arrives later than it is enqueued, so that the queue is in
	// order whatever the order in which goroutines of one instant get here.
	i, _ := slices.BinarySearchFunc(l.queue, a, func(a, b arrival) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id, b.id))
	})
	l.queue = slices.Insert(l.queue, i, a)
	l.changed.broadcast()
	return nil
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	m := l.network
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		if l.closed {
			return nil, l.opError("accept", net.ErrClosed)
		}
		var next time.Time
		if len(l.queue) > 0 {
			next = l.queue[0].at
			if !next.After(time.Now()) {
				c := l.queue[0].conn
				l.queue = slices.Delete(l.queue, 0, 1)
				return c, nil
			}
		}
		l.changed.wait(&m.mu, next)
	}
}

// Close implements [net.Listener].
func (l *listener) Close() error {
	m := l.network
	m.mu.Lock()
	if l.closed {
		m.mu.Unlock()
		return l.opError("close", net.ErrClosed)
	}
	l.closed = true
	delete(m.listeners, l.host)
	queue := l.queue
	l.queue = nil
	l.changed.broadcast()
	m.mu.Unlock()
	for _, a := range queue {
		a.conn.refuse(a.at)
	}
	return nil
}

// Addr implements [net.Listener].
func (l *listener) Addr() net.Addr { return serverAddr(l.host) }

func (l *listener) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: l.Addr().Network(), Addr: l.Addr(), Err: err}
}
