package vtime

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
)

// Loopback is a [Network] of TCP connections on the loopback interface, for
// the wall clock. In a bubble it would stop the time: a goroutine that waits
// for a socket counts as one that can run.
//
// Each listener has a port that the system chose. Dial to a host where nothing
// listens touches no socket, since no port is certain to stay free: its error
// is made here, to look like that of the system.
type Loopback struct {
	done chan struct{} // closed by Close

	mu        sync.Mutex
	closed    bool
	listeners map[string]*tcpListener
	lent      map[string]*loan
	dark      map[string]bool
	open      map[*tcpConn]bool // both ends; true for those of the listening side
	serving   int               // how many of them are of the listening side
}

// A loan is a host whose listener another process has.
type loan struct {
	address string
	dialled int
}

// NewLoopback returns a network without hosts.
func NewLoopback() *Loopback {
	return &Loopback{
		done:      make(chan struct{}),
		listeners: make(map[string]*tcpListener),
		lent:      make(map[string]*loan),
		dark:      make(map[string]bool),
		open:      make(map[*tcpConn]bool),
	}
}

// Listen implements [Network].
func (n *Loopback) Listen(host string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closed:
		return nil, hostError("listen", host, net.ErrClosed)
	case n.listeners[host] != nil, n.lent[host] != nil:
		return nil, hostError("listen", host, errInUse)
	}
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	n.listeners[host] = &tcpListener{TCPListener: l, network: n, host: host}
	return n.listeners[host], nil
}

// Lend returns the listening socket of a host, for another process to accept
// on. Dial connects to it like to any, until Crash forgets it. The caller
// closes the file once the other process has it; after the end of that nobody
// listens.
//
// Whether the host is busy only the other process knows: see [Loopback.Dialled].
func (n *Loopback) Lend(host string) (*os.File, error) {
	l, err := n.Listen(host)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	file, err := l.(*tcpListener).File()
	if err != nil {
		return nil, hostError("listen", host, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lent[host] = &loan{address: l.Addr().String()}
	return file, nil
}

// Dialled returns how many connections to a host that is lent there have been
// since Lend. Those that the other process has not yet accepted are among them.
func (n *Loopback) Dialled(host string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l := n.lent[host]; l != nil {
		return l.dialled
	}
	return 0
}

// Adopt makes a socket that another process has lent the listener of a host. It
// closes the file.
func (n *Loopback) Adopt(host string, socket *os.File) (net.Listener, error) {
	defer socket.Close()
	l, err := net.FileListener(socket)
	if err != nil {
		return nil, hostError("listen", host, err)
	}
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		l.Close()
		return nil, hostError("listen", host, errors.New("not the socket of a TCP listener"))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || n.listeners[host] != nil {
		tcp.Close()
		return nil, hostError("listen", host, errInUse)
	}
	n.listeners[host] = &tcpListener{TCPListener: tcp, network: n, host: host}
	return n.listeners[host], nil
}

// Dial implements [Network]. It does not use the id.
func (n *Loopback) Dial(ctx context.Context, host, _ string) (net.Conn, error) {
	address, dialled, err := n.find(ctx, host)
	if err != nil {
		return nil, hostError("dial", host, err)
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp4", address)
	if err != nil {
		n.mu.Lock()
		*dialled--
		n.mu.Unlock()
		if opErr, ok := errors.AsType[*net.OpError](err); ok && ctx.Err() != nil {
			opErr.Err = ended(ctx)
		}
		return nil, err
	}
	tracked, err := n.track(c.(*net.TCPConn), nil)
	if err != nil {
		return nil, hostError("dial", host, err)
	}
	return tracked, nil
}

// find returns the address of a host, and counts it as dialled. At a dark host
// it does not return before ctx ends.
func (n *Loopback) find(ctx context.Context, host string) (address string, dialled *int, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if loan := n.lent[host]; loan != nil {
		address, dialled = loan.address, &loan.dialled
	} else if l := n.listeners[host]; l != nil {
		address, dialled = l.Addr().String(), &l.dialled
	}
	switch {
	case n.closed:
		return "", nil, net.ErrClosed
	case ctx.Err() != nil:
		return "", nil, ended(ctx)
	case n.dark[host]:
		n.mu.Unlock()
		defer n.mu.Lock()
		select {
		case <-ctx.Done():
			return "", nil, ended(ctx)
		case <-n.done:
			return "", nil, net.ErrClosed
		}
	case dialled == nil:
		return "", nil, errRefused
	}
	*dialled++
	return address, dialled, nil
}

// Blackhole implements [Network].
func (n *Loopback) Blackhole(host string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dark[host] = true
}

// Crash implements [Network].
func (n *Loopback) Crash(host string) {
	n.mu.Lock()
	l := n.listeners[host]
	delete(n.listeners, host)
	delete(n.lent, host)
	var conns []*tcpConn
	for c, serving := range n.open {
		if serving && c.host == host {
			conns = append(conns, c)
		}
	}
	n.mu.Unlock()
	if l != nil {
		l.TCPListener.Close()
	}
	for _, c := range conns {
		c.Close()
	}
}

// Busy implements [Network]. A Dial under way counts as a connection, since it
// may be accepted before it has returned.
func (n *Loopback) Busy() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.serving > 0 {
		return true
	}
	for _, l := range n.listeners {
		if l.dialled > l.accepted {
			return true
		}
	}
	return false
}

// Close implements [Network].
func (n *Loopback) Close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	n.closed = true
	close(n.done)
	var closers []interface{ Close() error }
	for _, l := range n.listeners {
		closers = append(closers, l)
	}
	for c := range n.open {
		closers = append(closers, c)
	}
	n.mu.Unlock()
	var errs []error
	for _, c := range closers {
		// An owner may have been faster.
		if err := c.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// track counts an end of a connection and returns it, or closes it if the
// network has closed meanwhile. The listener is that which accepted the
// connection, or nil for the end that dialled.
func (n *Loopback) track(tcp *net.TCPConn, l *tcpListener) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		tcp.Close()
		return nil, net.ErrClosed
	}
	c := &tcpConn{TCPConn: tcp, network: n}
	if l != nil {
		if n.listeners[l.host] != l {
			tcp.SetLinger(0)
			tcp.Close() // accepted at the very moment of a crash
			return nil, net.ErrClosed
		}
		c.host = l.host
		l.accepted++
		n.serving++
	}
	n.open[c] = l != nil
	return c, nil
}

// Accepted returns how many connections a host has accepted.
func (n *Loopback) Accepted(host string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if l := n.listeners[host]; l != nil {
		return l.accepted
	}
	return 0
}

// hostError returns the error of an operation on a host that has no port.
func hostError(op, host string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: hostAddr(host), Err: err}
}

// A hostAddr is the address of a host that has no port.
type hostAddr string

func (hostAddr) Network() string  { return "tcp" }
func (a hostAddr) String() string { return string(a) }

// A tcpListener is the listener of a host in a Loopback.
type tcpListener struct {
	*net.TCPListener
	network *Loopback
	host    string

	// Guarded by network.mu. What was dialled and not accepted is forgotten
	// with the listener, when the system resets it.
	dialled, accepted int
}

// Accept implements [net.Listener].
func (l *tcpListener) Accept() (net.Conn, error) {
	tcp, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	c, err := l.network.track(tcp, l)
	if err != nil {
		return nil, hostError("accept", l.host, err)
	}
	return c, nil
}

// Close implements [net.Listener].
func (l *tcpListener) Close() error {
	n := l.network
	n.mu.Lock()
	if n.listeners[l.host] == l {
		delete(n.listeners, l.host)
	}
	n.mu.Unlock()
	return l.TCPListener.Close()
}

// A tcpConn is one end of a connection in a Loopback.
type tcpConn struct {
	*net.TCPConn
	network *Loopback
	host    string // that accepted it; empty at the end that dialled
}

// Close implements [net.Conn].
func (c *tcpConn) Close() error {
	defer c.network.disconnected(c)
	return c.TCPConn.Close()
}

// disconnected counts an end that was closed. It may be called again.
func (n *Loopback) disconnected(c *tcpConn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open[c] {
		n.serving--
	}
	delete(n.open, c)
}
