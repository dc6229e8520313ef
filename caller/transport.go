package caller

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"retrylab/caller/policy"
	"retrylab/internal/lab"
	"retrylab/internal/vtime"
)

// transport sends requests with a real [http.Transport], one connection each, and records every
// send where it starts and where it ends.
//
// It dials itself and hands the connection over, so that pool, connect and read time-outs are
// told apart, and so that net/http never reuses a connection of its own: on a broken reused one
// it would send again by itself (shouldRetryRequest in net/http's transport.go), and that resend
// is a layer to be counted, not an accident.
type transport struct {
	node     string
	clock    *vtime.Clock
	network  vtime.Network
	record   func(lab.Event)
	timeouts Timeouts
	tells    bool          // sends the time that is left along
	pool     chan struct{} // a token for each open connection; nil for no limit
	http     *http.Transport

	mu     sync.Mutex
	idle   map[string][]net.Conn // by host: connections that have served a request
	leaked []io.Closer           // the answers that nobody closes
}

func newTransport(c Config) *transport {
	t := &transport{node: c.Node, clock: c.Clock, network: c.Network, record: c.Record, timeouts: c.Timeouts, tells: c.PassDeadline, idle: map[string][]net.Conn{}}
	if c.Pool > 0 {
		t.pool = make(chan struct{}, c.Pool)
	}
	t.http = &http.Transport{
		DisableKeepAlives:  true,
		DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return ctx.Value(connKey{}).(net.Conn), nil
		},
	}
	return t
}

type connKey struct{}

// warm opens n connections, to the hosts in turn, and has each serve one request, so that the
// sends to come find connections that were in use before.
func (t *transport) warm(ctx context.Context, hosts []string, n int) error {
	for i := range n {
		host := hosts[i%len(hosts)]
		conn, err := t.network.Dial(ctx, host, fmt.Sprintf("%s>%s warm-%d", t.node, host, i+1))
		if err != nil {
			return fmt.Errorf("open an idle connection to %s: %w", host, err)
		}
		t.mu.Lock()
		t.idle[host] = append(t.idle[host], conn)
		t.mu.Unlock()
		if err := use(conn, host); err != nil {
			return fmt.Errorf("use an idle connection to %s: %w", host, err)
		}
	}
	return nil
}

// use sends a request for a host's health over conn and reads the answer.
func use(conn net.Conn, host string) error {
	req, err := http.NewRequest(http.MethodGet, "http://"+host+lab.HealthPath, nil)
	if err != nil {
		return err
	}
	if err := req.Write(conn); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return err
	}
	_, err = readAll(resp.Body)
	return err
}

// leak leaves an answer open, and with it the connection that it came over.
func (t *transport) leak(answer io.Closer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leaked = append(t.leaked, answer)
}

// close closes the connections that are idle or leaked.
func (t *transport) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, answer := range t.leaked {
		answer.Close()
	}
	t.leaked = nil
	for _, idle := range t.idle {
		for _, c := range idle {
			c.Close()
		}
	}
	clear(t.idle)
}

// RoundTrip sends req once. Every error is an [*Error].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	trip := TripOf(req.Context())
	s := &send{transport: t, trip: trip, target: trip.Targets[0], outer: req.Context(), number: trip.payload.number()}
	s.ctx, s.cancel = within(s.outer, t.clock, t.timeouts.Attempt, "attempt")
	req, keys := s.prepare(req)
	first := ""
	if len(keys) > 0 {
		first = keys[0]
	}
	t.record(s.event(lab.Event{Kind: lab.Send, Target: s.target, Key: first, Remaining: remaining(s.outer, t.clock)}))
	resp, err := s.do(req)
	if err != nil {
		s.end()
		return nil, err
	}
	resp.Body = &body{ReadCloser: resp.Body, send: s}
	return resp, nil
}

// remaining is what is left of the limits above a send, 0 where nothing bounds it.
func remaining(ctx context.Context, clock *vtime.Clock) time.Duration {
	l, _ := ctx.Value(limitKey{}).(*limit)
	if l == nil {
		return 0
	}
	end := l.end
	for ; l != nil; l = l.outer {
		if l.end.Before(end) {
			end = l.end
		}
	}
	return time.Duration(float64(time.Until(end)) * clock.Speed())
}

// send is one request on its way.
type send struct {
	transport *transport
	trip      Trip
	target    string
	number    int             // of the operation's sends, from 1
	outer     context.Context // the limits of the layers above
	ctx       context.Context // those and the attempt's own
	cancel    func()
	conn      *conn
	pooled    bool // holds a token of the pool
	once      sync.Once
}

// prepare gives the request its target, its content and its names.
func (s *send) prepare(req *http.Request) (*http.Request, []string) {
	req = req.Clone(s.ctx)
	req.URL.Scheme, req.URL.Host, req.Host = "http", s.target, s.target
	req.Header.Set(lab.HeaderOperation, s.trip.Operation)
	req.Header.Set(lab.HeaderSend, s.trip.Path)
	if s.trip.Tenant != "" {
		req.Header.Set(lab.HeaderTenant, s.trip.Tenant)
	}
	deadline := s.trip.Deadline
	if left := remaining(s.ctx, s.transport.clock); s.transport.tells && left != 0 {
		deadline = lab.FormatDeadline(left)
	}
	if deadline != "" {
		req.Header.Set(lab.HeaderDeadline, deadline)
	}
	content := s.trip.payload.content(s.trip.Path, s.number)
	if s.trip.spent && s.trip.Body != policy.NoBody {
		content = nil
	}
	if s.trip.Body == policy.NoBody {
		req.URL.RawQuery = string(content)
		req.Body, req.ContentLength = http.NoBody, 0
	} else {
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(content)), int64(len(content))
		if s.trip.Body == policy.Chunked {
			req.ContentLength = -1
		}
	}
	keys := s.trip.payload.keys(s.trip.Path, s.number)
	req.Header[lab.HeaderKey] = keys
	if len(keys) == 0 {
		req.Header.Del(lab.HeaderKey)
	}
	// net/http could send a request again that has a GetBody; this one is sent once.
	req.GetBody = nil
	return req, keys
}

func (s *send) do(req *http.Request) (*http.Response, error) {
	if over(s.ctx) {
		return nil, s.fail(context.Cause(s.ctx), false)
	}
	if err := s.acquire(); err != nil {
		return nil, err
	}
	if err := s.connect(); err != nil {
		return nil, err
	}
	s.trip.left.Store(true)
	resp, err := s.transport.http.RoundTrip(req.WithContext(context.WithValue(s.ctx, connKey{}, net.Conn(s.conn))))
	if err != nil {
		return nil, s.fail(err, false)
	}
	s.transport.record(s.event(lab.Event{Kind: lab.Reply, Status: resp.StatusCode, Target: s.target}))
	return resp, nil
}

// acquire waits for a connection of the pool.
func (s *send) acquire() error {
	t := s.transport
	if t.pool == nil {
		return nil
	}
	ctx, cancel := within(s.ctx, t.clock, t.timeouts.Acquire, "acquire")
	defer cancel()
	select {
	case t.pool <- struct{}{}:
		s.pooled = true
		return nil
	case <-ctx.Done():
		return s.late(ctx, policy.AcquireTimeout)
	}
}

// connect takes an idle connection or opens a new one.
func (s *send) connect() error {
	t := s.transport
	if c := t.takeIdle(s.target); c != nil {
		s.conn = &conn{Conn: c, clock: t.clock, read: t.timeouts.Read, reused: true}
		return nil
	}
	ctx, cancel := within(s.ctx, t.clock, t.timeouts.Connect, "connect")
	defer cancel()
	c, err := t.network.Dial(context.WithValue(ctx, tripKey{}, s.trip), s.target, t.node+">"+s.target+" "+s.trip.Path)
	switch {
	case err == nil:
		s.conn = &conn{Conn: c, clock: t.clock, read: t.timeouts.Read}
		return nil
	case over(ctx):
		return s.late(ctx, policy.ConnectTimeout)
	case errors.Is(err, syscall.ECONNREFUSED):
		return s.unreached(policy.Refused, err)
	}
	if _, unknown := errors.AsType[*net.DNSError](err); unknown {
		return s.unreached(policy.UnknownHost, err)
	}
	// No server can bring this about: the machine is out of sockets, or the lab is at fault.
	panic(fmt.Errorf("caller: connect to %s: %w", s.target, err))
}

// unreached records why there is no connection and returns it.
func (s *send) unreached(f policy.Failure, err error) *Error {
	s.transport.record(s.event(lab.Event{Kind: lab.Failure, Detail: string(f)}))
	return &Error{Failure: f, Target: s.target, Err: err}
}

// takeIdle takes the idle connection to host that was used last, nil when there is none.
func (t *transport) takeIdle(host string) net.Conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	idle := t.idle[host]
	if len(idle) == 0 {
		return nil
	}
	last := len(idle) - 1
	t.idle[host] = idle[:last]
	return idle[last]
}

// late returns the error of a send that has come to no connection: ctx, which bounds a stage on the
// way to one, was ended by the limit of that stage, or by one around it.
func (s *send) late(ctx context.Context, stage policy.Failure) *Error {
	if over(s.ctx) {
		return s.fail(context.Cause(s.ctx), false)
	}
	limit := expired(ctx)
	s.transport.record(s.event(lab.Event{Kind: lab.Timeout, Detail: limit.stage}))
	return &Error{Failure: stage, Target: s.target, Err: limit}
}

// fail records why the send ended and returns it. The limits come first: when one of them has
// ended the context, the connection's own error is only a consequence.
func (s *send) fail(err error, inBody bool) *Error {
	e := &Error{InBody: inBody, Target: s.target, Err: err}
	if s.conn != nil {
		e.Reused = s.conn.reused
		if c := s.conn.cause(); c != nil {
			err = c
		}
	}
	kind, detail := lab.Failure, ""
	switch limit := expired(s.ctx); {
	case limit != nil:
		e.Failure, e.Err = policy.AttemptTimeout, limit
		if expired(s.outer) != nil {
			e.Failure = policy.TotalTimeout
		}
		kind, detail = lab.Timeout, limit.stage
	case s.ctx.Err() != nil:
		e.Failure, e.Gone = policy.TotalTimeout, true
		detail = "cancelled"
	case errors.Is(err, os.ErrDeadlineExceeded):
		e.Failure = policy.ReadTimeout
		kind, detail = lab.Timeout, "read"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		e.Failure = policy.Reset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		e.Failure = policy.EOF
	default:
		e.Failure = policy.Malformed
	}
	if detail == "" {
		detail = string(e.Failure)
	}
	s.transport.record(s.event(lab.Event{Kind: kind, Detail: detail}))
	return e
}

// end gives back what the send holds.
func (s *send) end() {
	s.once.Do(func() {
		s.cancel()
		if s.conn != nil {
			s.conn.Close()
		}
		if s.pooled {
			<-s.transport.pool
		}
	})
}

func (s *send) event(e lab.Event) lab.Event {
	e.Operation, e.Send, e.Node = s.trip.Operation, s.trip.Path, s.transport.node
	return e
}

// body is an answer's body; its end is the end of the send.
type body struct {
	io.ReadCloser
	send *send
	err  error // the first of Read
}

// Read reads the body. An error but io.EOF is an [*Error].
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = b.send.fail(err, true)
	}
	b.err = err
	return n, err
}

// Close ends the send.
func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.send.end()
	return err
}

// conn is a connection that waits no longer than the read time-out for each piece of an answer,
// as real clients' read time-outs do, and remembers what ended it: net/http wraps and rewords the
// errors of a connection.
type conn struct {
	net.Conn
	clock  *vtime.Clock
	read   time.Duration
	reused bool

	mu    sync.Mutex
	ended error
}

// Read reads with a deadline of its own.
func (c *conn) Read(p []byte) (int, error) {
	if c.read > 0 {
		if err := c.Conn.SetReadDeadline(c.clock.Deadline(c.read)); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Read(p)
	if err != nil {
		c.mu.Lock()
		if c.ended == nil && !errors.Is(err, net.ErrClosed) {
			c.ended = err
		}
		c.mu.Unlock()
	}
	return n, err
}

// cause returns the first error of a read, nil when none failed.
func (c *conn) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}
