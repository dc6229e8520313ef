package redisserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"retrylab/internal/vtime"
)

// A Replica is a server that follows another, its master, over a link that can be held and cut. That
// is how writes are lost: a replica that is only paused gets them from its socket when it goes on.
type Replica struct {
	*Server
	master *Server
	link   *link
}

// Replica starts a server that follows s, and returns when it has all that s has.
func (s *Server) Replica(ctx context.Context) (*Replica, error) {
	r, err := s.follow(ctx)
	if err != nil {
		return nil, fmt.Errorf("start a replica of redis-server: %w", err)
	}
	return r, nil
}

func (s *Server) follow(ctx context.Context) (*Replica, error) {
	// The replica shows its password to the master, so both have the same.
	follower, err := start(ctx, Options{Binary: s.binary, Parent: s.parent}, s.password)
	if err != nil {
		return nil, err
	}
	link, err := newLink(s)
	if err != nil {
		return nil, errors.Join(err, follower.Stop())
	}
	r := &Replica{Server: follower, master: s, link: link}
	clock := vtime.NewWall(time.Time{}, 1)
	waiting, cancel := clock.WithTimeout(ctx, patience, errSlow)
	defer cancel()
	_, err = follower.ask(waiting, "REPLICAOF", "127.0.0.1", strconv.Itoa(link.port()))
	if err == nil {
		err = r.caughtUp(waiting, clock)
	}
	if err != nil {
		return nil, errors.Join(err, r.Stop())
	}
	return r, nil
}

// errBehind says that a replica has not got what it should have.
var errBehind = errors.New("the replica does not follow its master")

// caughtUp waits until the replica has taken over what its master has and follows it.
func (r *Replica) caughtUp(ctx context.Context, clock *vtime.Clock) error {
	for {
		info, err := r.ask(ctx, "INFO", "replication")
		if err != nil {
			return err
		}
		if Field(info, "master_link_status") == "up" {
			break
		}
		if err := clock.Sleep(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	return r.complete(ctx)
}

// complete waits until the replica has got all that was written so far.
func (r *Replica) complete(ctx context.Context) error {
	n, err := r.Acknowledged(ctx, patience)
	if err == nil && n == 0 {
		err = errBehind
	}
	return err
}

// Acknowledged returns how many replicas have got all that was written to the master so far, by
// WAIT: at once if one has, else after wait.
func (r *Replica) Acknowledged(ctx context.Context, wait time.Duration) (int, error) {
	// WAIT is about the writes of its own connection, and replicas get writes in their order: one
	// that has got this write and its undoing has got all before it.
	const probe = "retrylab:probe"
	answer, err := r.master.askInOrder(ctx,
		[]string{"SET", probe, ""}, []string{"DEL", probe},
		[]string{"WAIT", "1", strconv.FormatInt(max(1, wait.Milliseconds()), 10)})
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(answer)
}

// Hold stops the link: what the master is told from now on stays on its way to the replica.
func (r *Replica) Hold() { r.link.hold(true) }

// CatchUp lets the link go, and holds it again when the replica has got all that was written so far.
func (r *Replica) CatchUp(ctx context.Context) error {
	r.link.hold(false)
	defer r.link.hold(true)
	if err := r.complete(ctx); err != nil {
		return fmt.Errorf("let a replica catch up: %w", err)
	}
	return nil
}

// Cut cuts the link for good: what is on its way is lost with what comes after it.
func (r *Replica) Cut() error { return r.link.cut() }

// Promote makes the replica a master, with what it has.
func (r *Replica) Promote(ctx context.Context) error {
	if _, err := r.ask(ctx, "REPLICAOF", "NO", "ONE"); err != nil {
		return fmt.Errorf("promote a replica: %w", err)
	}
	return nil
}

// Stop cuts the link and stops the replica. The master is not touched.
func (r *Replica) Stop() error { return errors.Join(r.link.cut(), r.Server.Stop()) }

// A link forwards connections from a port on the loopback interface, which is all that a replica
// can connect to, to the socket of a master. Who else finds the port needs the password.
type link struct {
	master   *Server
	listener *net.TCPListener
	group    vtime.Group
	dialling context.Context
	end      context.CancelFunc

	mu     sync.Mutex
	moved  sync.Cond // when held or isCut changes
	isHeld bool
	isCut  bool
	open   map[net.Conn]bool
}

func newLink(master *Server) (*link, error) {
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	l := &link{master: master, listener: listener, open: map[net.Conn]bool{}}
	l.moved.L = &l.mu
	l.dialling, l.end = context.WithCancel(master.life)
	context.AfterFunc(l.dialling, func() { _ = l.cut() })
	l.group.Go(l.accept)
	return l, nil
}

func (l *link) port() int { return l.listener.Addr().(*net.TCPAddr).Port }

func (l *link) accept() {
	for {
		c, err := l.listener.Accept()
		if err != nil {
			return
		}
		if l.track(c) {
			l.group.Go(func() { l.forward(c) })
		}
	}
}

// forward copies in both directions until either ends. What the replica says is never held: it
// acknowledges what it has.
func (l *link) forward(replica net.Conn) {
	defer l.drop(replica)
	var d net.Dialer
	network, address := l.master.Addr()
	master, err := d.DialContext(l.dialling, network, address)
	if err != nil || !l.track(master) {
		return
	}
	defer l.drop(master)
	l.group.Go(func() {
		defer l.drop(replica)
		_, _ = io.Copy(valve{l, replica}, master)
	})
	_, _ = io.Copy(master, replica)
}

// A valve lets through what is written to it when its link is not held.
type valve struct {
	link *link
	io.Writer
}

func (v valve) Write(p []byte) (int, error) {
	if v.link.pass() {
		return v.Writer.Write(p)
	}
	return 0, net.ErrClosed
}

// pass waits while the link is held, and reports whether it has not been cut.
func (l *link) pass() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.isHeld && !l.isCut {
		l.moved.Wait()
	}
	return !l.isCut
}

func (l *link) hold(held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isHeld = held
	l.moved.Broadcast()
}

// track notes an end of a connection, or closes it if the link has been cut.
func (l *link) track(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isCut {
		c.Close()
		return false
	}
	l.open[c] = true
	return true
}

func (l *link) drop(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
	c.Close()
}

// cut closes everything and returns when nothing crosses any more.
func (l *link) cut() error {
	l.mu.Lock()
	if !l.isCut {
		l.isCut = true
		l.moved.Broadcast()
		l.end()
		l.listener.Close()
		for c := range l.open {
			c.Close()
		}
	}
	l.mu.Unlock()
	return l.group.Wait()
}
