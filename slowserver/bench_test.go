package slowserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"retrylab/internal/lab"
	"retrylab/internal/vtime"
	"retrylab/slowserver"
	"retrylab/slowserver/store"
	"retrylab/slowserver/store/sqlite"
)

// directory is where the stores of all tests are; each removes its own files.
var directory string

func TestMain(m *testing.M) {
	directory = must(os.MkdirTemp("", "slowserver-"))
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		// Not RemoveAll: a file that is left behind is a failure.
		if err := os.Remove(directory); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		os.Exit(code)
	}))
}

// stores lists every store that a service is tried with.
var stores = []struct {
	name string
	open func() (store.Store, error)
}{
	{"sqlite", func() (store.Store, error) {
		database, err := database()
		if err != nil {
			return nil, err
		}
		seat, err := database.Seat(context.Background())
		if err != nil {
			return nil, err
		}
		return seat.Open(store.Options{})
	}},
}

var database = sync.OnceValues(func() (*sqlite.Database, error) { return sqlite.New(directory) })

// bench is an order service, its network and what it recorded.
type bench struct {
	clock   *vtime.Clock
	network vtime.Network
	service *slowserver.Service
	store   store.Store
	group   vtime.Group

	mu      sync.Mutex
	servers [2]*http.Server
	events  []lab.Event

	jobs     atomic.Int64
	state    string       // of the row that requests share, with its version; empty where there is none
	effects  []lab.Effect // when everything has settled
	entries  []lab.Entry
	panicked error // the first panic that was caught
}

// play has f send requests to a service on the virtual clock, waits until nothing more can happen
// and returns what was seen. The service has two replicas, order-1 and order-2. What c leaves out
// of clock, store and record is made here.
func play(t *testing.T, c slowserver.Config, f func(b *bench)) *bench {
	t.Helper()
	b := playToPanic(t, c, f)
	if b.panicked != nil {
		t.Fatal(b.panicked)
	}
	return b
}

// playToPanic is play for a service that panics.
func playToPanic(t *testing.T, c slowserver.Config, f func(b *bench)) *bench {
	t.Helper()
	b := &bench{}
	err := vtime.Bubble(func() {
		b.clock = vtime.NewVirtual(time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC))
		b.network = vtime.NewMemory(b.clock, 1)
		b.run(c, f)
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// run is what a bubble is for: nothing in it may call a method of a T.
func (b *bench) run(c slowserver.Config, f func(b *bench)) {
	life, stop := context.WithCancel(context.Background())
	defer stop()
	b.store = must(stores[0].open())
	defer func() { check(b.store.Close()) }()
	if c.Store == nil {
		c.Store = b.store
	}
	if c.Keys == nil {
		c.Keys = &memoryKeys{now: b.clock.Now}
	}
	c.Clock, c.Record = b.clock, b.record
	c.Pause = func(ctx context.Context, id string) error {
		return b.clock.Sleep(ctx, time.Duration(1000+len(id))*time.Nanosecond)
	}
	c.Crash = func(death slowserver.Crash) {
		death.Die(func() {
			b.network.Crash(death.Node)
			b.mu.Lock()
			defer b.mu.Unlock()
			b.servers[death.Replica-1].Close()
		})
		b.group.Go(func() {
			if b.clock.Sleep(life, death.Restart) == nil {
				b.record(lab.Event{Kind: lab.Restart, Node: death.Node})
				b.start(life, death.Replica)
			}
		})
	}
	c.Job = func(f func()) {
		b.jobs.Add(1)
		b.group.Go(func() {
			defer b.jobs.Add(-1)
			f()
		})
	}
	c.Afterwards = c.Job
	b.service = must(slowserver.New(life, c))
	check(b.service.Prepare(life))
	for n := range b.servers {
		b.start(life, n+1)
	}
	f(b)
	b.settle()
	b.effects, b.entries = must(b.store.Effects(life)), must(b.store.Entries(life))
	if row, found, err := b.store.Row(life, c.Change.Row); found || err != nil {
		b.state = fmt.Sprintf("%s, %d", must(row, err).Value, row.Version)
	}
	stop()
	b.mu.Lock()
	for _, s := range b.servers {
		s.Close()
	}
	b.mu.Unlock()
	b.network.Close()
	b.panicked = b.group.Wait()
}

// start starts a replica, from 1.
func (b *bench) start(life context.Context, n int) {
	name := fmt.Sprintf("order-%d", n)
	handler := b.service.Replica(name, n)
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer b.group.Catch()
			handler.ServeHTTP(w, r)
		}),
		BaseContext: func(net.Listener) context.Context { return life },
		ErrorLog:    log.New(io.Discard, "", 0),
	}
	l := must(b.network.Listen(name))
	b.group.Go(func() { server.Serve(l) })
	b.mu.Lock()
	defer b.mu.Unlock()
	b.servers[n-1] = server
}

// settle waits until nothing more can happen.
func (b *bench) settle() {
	for pause := time.Millisecond; b.network.Busy() || b.jobs.Load() > 0; pause *= 2 {
		check(b.clock.Sleep(context.Background(), pause))
		if b.clock.Now() > 1000*time.Hour {
			panic("the service came to no end")
		}
	}
}

func (b *bench) record(e lab.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e.At = b.clock.Now()
	b.events = append(b.events, e)
}

// request is one request of a client.
type request struct {
	id       string        // names its connection and the send
	at       time.Duration // when it is sent; at once when that is over
	replica  int           // 1 when absent
	method   string        // POST when absent
	path     string        // /orders when absent
	body     string
	keys     []string
	patience time.Duration // the client leaves after that; 0 is never
	deadline string        // what it says of that, as it goes over the wire
	tenant   string        // whose it is

	operation string // op-1 when absent
}

const book = `{"item":"book","amount_minor":5000}`

// order is a request for a book, with one key unless that is empty.
func order(id, key string) request {
	r := request{id: id, body: book}
	if key != "" {
		r.keys = []string{key}
	}
	return r
}

func (r request) after(at time.Duration) request         { r.at = at; return r }
func (r request) with(body string) request               { r.body = body; return r }
func (r request) leaving(patience time.Duration) request { r.patience = patience; return r }
func (r request) within(deadline string) request         { r.deadline = deadline; return r }
func (r request) of(tenant string) request               { r.tenant = tenant; return r }
func (r request) by(method string) request               { r.method = method; return r }
func (r request) to(replica int) request                 { r.replica = replica; return r }
func (r request) get(query string) request {
	r.method, r.path, r.body = "GET", "/orders?"+query, ""
	return r
}

// answer is what a client got.
type answer struct {
	status int
	header http.Header
	body   string
	broken string        // how it ended instead: EOF, reset, silence
	at     time.Duration // when it was whole, or had ended
}

// String returns what a client makes of the answer.
func (a answer) String() string {
	var parts []string
	if a.status != 0 {
		parts = append(parts, fmt.Sprint(a.status))
	}
	var reply struct {
		Order int64
		Type  string
	}
	if json.Unmarshal([]byte(a.body), &reply) == nil {
		switch {
		case reply.Type != "":
			parts = append(parts, reply.Type[strings.LastIndex(reply.Type, ":")+1:])
			if a.header.Get(lab.HeaderReplayed) != "" {
				parts = append(parts, "again")
			}
		case a.header.Get(lab.HeaderReplayed) != "":
			parts = append(parts, fmt.Sprintf("order %d again", reply.Order))
		default:
			parts = append(parts, fmt.Sprintf("order %d", reply.Order))
		}
	}
	if after := a.header.Get("Retry-After"); after != "" {
		parts = append(parts, "retry after "+after)
	}
	if a.broken != "" {
		parts = append(parts, a.broken)
	}
	return strings.Join(parts, ", ")
}

// send sends a request when its time has come and waits for the answer.
func (b *bench) send(r request) answer {
	check(b.clock.Sleep(context.Background(), r.at-b.clock.Now()))
	conn := must(b.network.Dial(context.Background(), fmt.Sprintf("order-%d", max(1, r.replica)), r.id))
	defer conn.Close()
	if r.patience > 0 {
		conn.SetReadDeadline(b.clock.Deadline(r.patience))
	}
	req := r.http()
	check(req.Write(conn))
	return b.receive(conn, req)
}

func (r request) http() *http.Request {
	method, path := r.method, r.path
	if method == "" {
		method = http.MethodPost
	}
	if path == "" {
		path = lab.OrderPath
	}
	req := must(http.NewRequest(method, "http://order"+path, strings.NewReader(r.body)))
	req.Close = true
	if r.id != "" {
		operation := r.operation
		if operation == "" {
			operation = "op-1"
		}
		req.Header.Set(lab.HeaderOperation, operation)
		req.Header.Set(lab.HeaderSend, r.id)
	}
	if r.tenant != "" {
		req.Header.Set(lab.HeaderTenant, r.tenant)
	}
	if r.deadline != "" {
		req.Header.Set(lab.HeaderDeadline, r.deadline)
	}
	if r.keys != nil {
		req.Header[lab.HeaderKey] = r.keys
	}
	return req
}

func (b *bench) receive(conn net.Conn, req *http.Request) (a answer) {
	defer func() { a.at = b.clock.Now().Round(time.Millisecond) }()
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return answer{broken: breakage(err)}
	}
	body, err := io.ReadAll(resp.Body)
	a = answer{status: resp.StatusCode, header: resp.Header, body: string(body)}
	if err != nil {
		a.broken = breakage(err)
	}
	return a
}

func breakage(err error) string {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "silence"
	case errors.Is(err, syscall.ECONNRESET):
		return "reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "EOF"
	}
	panic(err)
}

// sendAll sends requests side by side and returns their answers in the order of the requests.
func (b *bench) sendAll(requests ...request) []answer {
	answers := make([]answer, len(requests))
	var all sync.WaitGroup
	for i, r := range requests {
		all.Add(1)
		b.group.Go(func() {
			defer all.Done()
			answers[i] = b.send(r)
		})
	}
	all.Wait()
	return answers
}

// journal is what was recorded of a request, in order.
func (b *bench) journal(id string) string {
	var out []string
	for _, e := range b.events {
		if e.Send != id {
			continue
		}
		text := string(e.Kind)
		if e.Detail != "" {
			text += " " + e.Detail
		}
		if e.Status != 0 {
			text += fmt.Sprintf(" %d", e.Status)
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// when is the time of a request's first event of a kind, negative when there is none.
func (b *bench) when(id string, kind lab.Kind) time.Duration {
	for _, e := range b.events {
		if e.Send == id && e.Kind == kind {
			return e.At.Round(time.Millisecond)
		}
	}
	return -1
}

// owners lists the requests that orders were written for.
func (b *bench) owners() []string {
	var out []string
	for _, e := range b.effects {
		out = append(out, e.Send)
	}
	return out
}

func texts(answers []answer) []string {
	var out []string
	for _, a := range answers {
		out = append(out, a.String())
	}
	return out
}

// count says how often each text is there.
func count(texts []string) map[string]int {
	out := map[string]int{}
	for _, text := range texts {
		out[text]++
	}
	return out
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func twelve(r request) []request {
	var out []request
	for i := range 12 {
		r.id = fmt.Sprintf("send-%d", i+1)
		// Twelve at once are never in one instant.
		r.at = time.Duration(i) * 7 * time.Microsecond
		out = append(out, r)
	}
	return out
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
