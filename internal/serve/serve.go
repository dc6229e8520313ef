// Package serve runs one replica of the order service for people with curl and for containers: in
// real time, at an address of their choice, until they stop it. It has no caller, judges nothing
// and prints nothing but its access log.
package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"retrylab/internal/lab"
	"retrylab/internal/vtime"
	"retrylab/slowserver"
	"retrylab/slowserver/store"
)

// Bounds on what a client may make the service wait for and keep. A request that is at work may
// take as long as it likes: that is what the service is for.
const (
	headerLimit = 5 * time.Second  // until a request's header is whole
	bodyLimit   = 30 * time.Second // from there until its body is
	idleLimit   = 2 * time.Minute  // between two requests on a connection
	maxHeader   = 16 << 10         // bytes
	maxShown    = 255              // bytes of a text in the log
	patience    = 5 * time.Second  // with requests that are at work when the end comes
)

// Options say what is served, and where.
type Options struct {
	Listen  string            // address: host:port
	Name    string            // of the replica
	Service slowserver.Config // processing, guard and faults; the rest is made here
	// Open opens the database. It is closed when the service has ended.
	Open func(context.Context) (store.Database, error)
	// Keys opens the store of keys beside it; nil where nothing asks for one.
	Keys func(context.Context, *vtime.Clock) (store.Keys, error)
	// Opened is given what must be called by whoever leaves the process before Run has come to its
	// end.
	Opened func(abandon func() error)
	// Ready is called once, when the service listens.
	Ready func(address net.Addr, info lab.Store)
	// Log gets a line for each request; nil for none.
	Log io.Writer
}

// Clock is the clock of a served replica. Its scenario time is the real time since 1970, so that
// replicas which share a database mean the same by an instant.
func Clock() *vtime.Clock {
	epoch := time.Unix(0, 0).UTC()
	return vtime.NewWallAt(epoch, epoch, 1)
}

// Run serves until ctx ends, and then for as long as requests at work take, up to a few seconds.
func Run(ctx context.Context, o Options) (err error) {
	clock := Clock()
	// Taken first: to wait for a database only to find the port in use would be in vain.
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", o.Listen, reason(err))
	}
	defer listener.Close() // of no effect when the server has closed it
	database, err := o.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	if o.Opened != nil {
		o.Opened(database.Abandon)
	}
	seat, err := database.Seat(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, seat.Leave()) }()
	orders, err := seat.Open(store.Options{Clock: clock})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, orders.Close()) }()

	// The service goes on when it is told to stop, until its requests are answered.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	r := &replica{options: o, clock: clock, life: life, info: database.Info(), address: listener.Addr()}
	c := o.Service
	c.Clock, c.Store, c.Prefix = clock, orders, fmt.Sprintf("%s.%d.", o.Name, clock.Now()/time.Millisecond)
	c.Record = func(lab.Event) {}
	c.Pause = func(context.Context, string) error { return nil }
	c.Job, c.Afterwards = r.group.Go, r.group.Go
	c.Crash, c.Releasable, c.Conflict = r.crash, true, http.StatusConflict
	if o.Keys != nil {
		if c.Keys, err = o.Keys(ctx, clock); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.Keys.Close()) }()
	}
	if r.service, err = slowserver.New(life, c); err != nil {
		return err
	}
	if err := r.service.Prepare(ctx); err != nil {
		return err
	}
	r.group.Go(r.service.CleanUp)
	r.failed = make(chan error, 1)
	r.start(listener)
	if o.Ready != nil {
		o.Ready(listener.Addr(), r.info)
	}
	select {
	case <-ctx.Done():
	case err = <-r.failed:
	}
	return errors.Join(err, r.stop(end))
}

// reason is why an address cannot be listened on, without what its message repeats.
func reason(err error) error {
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e.Err
	}
	return err
}

// replica is the process that is served, as far as it can be killed and started again.
type replica struct {
	options Options
	clock   *vtime.Clock
	life    context.Context
	info    lab.Store
	address net.Addr
	service *slowserver.Service
	group   vtime.Group
	failed  chan error // what ended it before it was told to stop

	mu      sync.Mutex
	server  *http.Server
	stopped bool

	logging sync.Mutex
}

// start serves on a listener.
func (r *replica) start(l net.Listener) {
	handler := r.service.Endpoints(r.options.Name, 1, r.info)
	server := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { r.handle(handler, w, req) }),
		ReadHeaderTimeout: headerLimit,
		IdleTimeout:       idleLimit,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return r.life },
		ErrorLog:          log.New(io.Discard, "", 0), // what clients do to their connections is no news
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		l.Close()
		return
	}
	r.server = server
	r.group.Go(func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			r.fail(err)
		}
	})
}

// fail ends the service with an error, the first of them.
func (r *replica) fail(err error) {
	select {
	case r.failed <- err:
	default:
	}
}

// crash takes the process of the replica away as far as anybody outside can tell, and brings it
// back in its time.
func (r *replica) crash(c slowserver.Crash) {
	c.Die(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.server.Close()
	})
	r.group.Go(func() {
		if r.clock.Sleep(r.life, c.Restart) != nil {
			return
		}
		l, err := net.Listen(r.address.Network(), r.address.String())
		if err != nil {
			r.fail(fmt.Errorf("listen on %s again: %w", r.address, reason(err)))
			return
		}
		r.start(l)
	})
}

// stop lets the requests that are at work come to their end, for a while, and then ends the others.
func (r *replica) stop(end func()) error {
	r.mu.Lock()
	server := r.server
	r.stopped = true
	r.mu.Unlock()
	limited, cancel := r.clock.WithTimeout(r.life, patience, errors.New("requests are still at work"))
	defer cancel()
	server.Shutdown(limited) // whoever is still there afterwards is dropped, which is no failure
	end()
	server.Close()
	return r.group.Wait()
}

// handle handles a request, and writes it to the log when it is over.
func (r *replica) handle(handler http.Handler, w http.ResponseWriter, req *http.Request) {
	start := r.clock.Now()
	noted := &noting{ResponseWriter: w}
	finished := false
	defer func() {
		outcome := "no answer"
		if noted.status != 0 {
			outcome = strconv.Itoa(noted.status)
		} else if finished && !noted.hijacked {
			outcome = "200"
		}
		r.log(req, outcome, r.clock.Now()-start)
	}()
	defer r.group.Catch()
	control := http.NewResponseController(w)
	control.SetReadDeadline(r.clock.Deadline(bodyLimit))
	req.Body = &body{req.Body, control}
	handler.ServeHTTP(noted, req)
	finished = true
}

// log writes the line of a request.
func (r *replica) log(req *http.Request, outcome string, took time.Duration) {
	if r.options.Log == nil {
		return
	}
	line := fmt.Sprintf("%s %s %s %s %s in %s", r.clock.Date().Format("2006-01-02T15:04:05.000Z"), r.options.Name,
		printable(req.Method), printable(req.URL.Path), outcome, took.Round(time.Millisecond))
	if key := req.Header.Get(lab.HeaderKey); key != "" {
		line += ", key " + printable(key)
	}
	r.logging.Lock()
	defer r.logging.Unlock()
	io.WriteString(r.options.Log, line+"\n")
}

// printable is a text of a client's as a line of the log can show it: short, and without what would
// move a terminal's cursor or pass for another field.
func printable(s string) string {
	if len(s) > maxShown {
		s = s[:maxShown] + "..."
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == ',' }) {
		return strconv.QuoteToASCII(s)
	}
	return s
}

// body is the body of a request. A client has only so long to send it; what the request then takes
// is the service's own affair, and a deadline that is left standing would look as if the client had
// gone.
type body struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read reads on, and lifts the limit at the end.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// noting is a ResponseWriter that remembers the status.
type noting struct {
	http.ResponseWriter
	status   int
	hijacked bool
}

// WriteHeader notes the status.
func (n *noting) WriteHeader(status int) {
	n.status = status
	n.ResponseWriter.WriteHeader(status)
}

// Hijack takes the connection over: there is no answer.
func (n *noting) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	n.hijacked = true
	return http.NewResponseController(n.ResponseWriter).Hijack()
}

// Unwrap leads to what else the writer can do.
func (n *noting) Unwrap() http.ResponseWriter { return n.ResponseWriter }
