package vtime

import (
	"bytes"
	order "cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// An entry is a line of a journal: at some time a thing happened to something.
type entry struct {
	At   time.Duration
	ID   string
	What string
}

// A journal keeps entries in the order of their time, whatever the order in
// which the goroutines of one instant have written them.
type journal struct {
	mu      sync.Mutex
	entries []entry
}

func (j *journal) add(e entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, e)
}

func (j *journal) sorted() []entry {
	slices.SortStableFunc(j.entries, byTime)
	return j.entries
}

func byTime(a, b entry) int {
	return order.Or(order.Compare(a.At, b.At), order.Compare(a.ID, b.ID))
}

// A shop is an order endpoint that takes its time, its network and its caller.
type shop struct {
	clock   *Clock
	network Network
	journal journal
	server  *http.Server
	client  *http.Client
	serving Group
	trouble Group
}

type connID struct{}

// openShop starts a shop whose handler is between "arrival" and "commit".
func openShop(clock *Clock, n Network, handle http.HandlerFunc) *shop {
	s := &shop{clock: clock, network: n}
	s.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer s.trouble.Catch()
		id := r.Header.Get("Send")
		s.note(id, "arrival")
		handle(w, r)
		s.note(id, "commit")
	})}
	s.client = &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			host, _, _ := net.SplitHostPort(addr)
			id, _ := ctx.Value(connID{}).(string)
			return n.Dial(ctx, host, id)
		},
	}}
	l := must(n.Listen("orders"))
	s.serving.Go(func() { s.server.Serve(l) })
	return s
}

func (s *shop) note(id, what string) { s.journal.add(entry{s.clock.Now(), id, what}) }

// post sends an order and returns the reply's body.
func (s *shop) post(ctx context.Context, id string, body io.Reader) ([]byte, error) {
	ctx = context.WithValue(ctx, connID{}, id)
	r := must(http.NewRequestWithContext(ctx, "POST", "http://orders/orders", body))
	r.Header.Set("Send", id)
	resp, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(resp.Status)
	}
	return io.ReadAll(resp.Body)
}

// close waits until no connection is served any more and ends everything.
func (s *shop) close() {
	for s.network.Busy() {
		check(s.clock.Sleep(context.Background(), 10*time.Millisecond))
	}
	s.client.CloseIdleConnections()
	check(s.server.Close())
	check(s.serving.Wait())
	check(s.trouble.Err())
	check(s.network.Close())
}

// incident lets callers send an order three times, with a read timeout of 5 s
// and a second between, to an endpoint that works for 12 s. It returns what
// happened.
func incident(seed int64, callers int) (entries []entry, err error) {
	err = Bubble(func() {
		clock := NewVirtual(calendar)
		s := openShop(clock, NewMemory(clock, seed), func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			check(clock.Sleep(context.Background(), 12*time.Second))
		})
		timeout := errors.New("read timeout")
		var g Group
		for i := range callers {
			g.Go(func() {
				check(clock.Sleep(context.Background(), time.Duration(i)*97*time.Nanosecond))
				for send := range 3 {
					if send > 0 {
						check(clock.Sleep(context.Background(), time.Second))
					}
					id := fmt.Sprintf("op-%d.%d", i+1, send+1)
					ctx, cancel := clock.WithTimeout(context.Background(), 5*time.Second, timeout)
					_, err := s.post(ctx, id, strings.NewReader("amount=10"))
					cancel()
					if !errors.Is(err, timeout) && !errors.Is(err, context.DeadlineExceeded) {
						panic(fmt.Sprint("post: ", err))
					}
					s.note(id, "timeout")
				}
			})
		}
		check(g.Wait())
		s.close()
		entries = s.journal.sorted()
	})
	return entries, err
}

func TestHTTPIncident(t *testing.T) {
	t.Parallel()
	got, err := incident(1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range got {
		rounded := e.At.Round(time.Millisecond)
		if off := (e.At - rounded).Abs(); off > 500*time.Microsecond {
			t.Errorf("%s of %s is off by %v", e.What, e.ID, off)
		}
		got[i].At = rounded
	}
	want := []entry{
		{0, "op-1.1", "arrival"},
		{5 * time.Second, "op-1.1", "timeout"},
		{6 * time.Second, "op-1.2", "arrival"},
		{11 * time.Second, "op-1.2", "timeout"},
		{12 * time.Second, "op-1.1", "commit"},
		{12 * time.Second, "op-1.3", "arrival"},
		{17 * time.Second, "op-1.3", "timeout"},
		{18 * time.Second, "op-1.2", "commit"},
		{24 * time.Second, "op-1.3", "commit"},
	}
	// Which of two things at 12 s comes first depends on the seed alone.
	slices.SortStableFunc(got, byTime)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
}

func TestHTTPIncidentIsTheSameEveryTime(t *testing.T) {
	t.Parallel()
	const callers, bubbles = 20, 8
	want, err := incident(7, callers)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(want), callers*3*3; got != want {
		t.Errorf("the journal has %d entries, want %d", got, want)
	}
	var wg sync.WaitGroup
	for range bubbles {
		wg.Go(func() {
			got, err := incident(7, callers)
			if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("journal of another run (-first +this):\n%s", diff)
			}
		})
	}
	wg.Wait()
	other, err := incident(8, callers)
	if err != nil {
		t.Fatal(err)
	}
	if cmp.Equal(want, other) {
		t.Error("the seed makes no difference")
	}
}

// echo replies with what it is sent.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	w.Write(body)
}

func testHTTPBody(clock *Clock, n Network) error {
	s := openShop(clock, n, echo)
	want := pattern(3*window+5, 9)
	got, err := s.post(context.Background(), "op-1", bytes.NewReader(want))
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("got %d bytes that differ from the %d sent", len(got), len(want))
	}
	s.close()
	return nil
}

func TestHTTPBody(t *testing.T) {
	t.Parallel()
	inBubble(t, func() {
		clock := NewVirtual(calendar)
		check(testHTTPBody(clock, NewMemory(clock, 1)))
	})
	check(testHTTPBody(NewWall(calendar, 1), NewLoopback()))
}

func testHTTPErrors(clock *Clock, n Network) error {
	s := openShop(clock, n, func(w http.ResponseWriter, _ *http.Request) {
		c, _ := must2(w.(http.Hijacker).Hijack())
		check(c.(interface{ SetLinger(int) error }).SetLinger(0))
		check(c.Close())
	})
	_, err := s.post(context.Background(), "op-1", strings.NewReader("amount=10"))
	if !errors.Is(err, syscall.ECONNRESET) {
		return fmt.Errorf("reset: got %w, want %w", err, syscall.ECONNRESET)
	}
	check(s.server.Close())
	_, err = s.post(context.Background(), "op-2", strings.NewReader("amount=10"))
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("refused: got %w, want %w", err, syscall.ECONNREFUSED)
	}
	// A transport lets a dial go on when its request has ended, for the next
	// request's sake. Only its own timeout or CloseIdleConnections ends it.
	n.Blackhole("orders")
	timeout := errors.New("timeout")
	ctx, cancel := clock.WithTimeout(context.Background(), 2*time.Millisecond, timeout)
	defer cancel()
	_, err = s.post(ctx, "op-3", strings.NewReader("amount=10"))
	if !errors.Is(err, timeout) {
		return fmt.Errorf("black hole: got %w, want %w", err, timeout)
	}
	s.close()
	return nil
}

func must2[A, B any](a A, b B, err error) (A, B) {
	check(err)
	return a, b
}

func TestHTTPErrors(t *testing.T) {
	t.Parallel()
	inBubble(t, func() {
		clock := NewVirtual(calendar)
		check(testHTTPErrors(clock, NewMemory(clock, 1)))
	})
	check(testHTTPErrors(NewWall(calendar, 1), NewLoopback()))
}

// A connection that is kept alive serves many requests, and a server that
// shuts down closes it when it is idle.
func TestHTTPKeepAlive(t *testing.T) {
	t.Parallel()
	inBubble(t, func() {
		clock := NewVirtual(calendar)
		s := openShop(clock, NewMemory(clock, 1), echo)
		s.client.Transport.(*http.Transport).DisableKeepAlives = false
		for range 10 {
			if got := must(s.post(context.Background(), "op-1", strings.NewReader("amount=10"))); string(got) != "amount=10" {
				t.Errorf("got %q", got)
			}
		}
		if !s.network.Busy() {
			t.Error("not busy while a connection is kept alive")
		}
		check(s.server.Shutdown(context.Background()))
		s.close()
	})
}

// A caller that leaves cancels the context of the handler, unless there is
// still something of its request to read.
func TestHTTPClientGone(t *testing.T) {
	t.Parallel()
	inBubble(t, func() {
		clock := NewVirtual(calendar)
		gone := make(chan time.Duration, 1)
		s := openShop(clock, NewMemory(clock, 1), func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			gone <- clock.Now()
		})
		ctx, cancel := clock.WithTimeout(context.Background(), 5*time.Second, nil)
		defer cancel()
		if _, err := s.post(ctx, "op-1", strings.NewReader("amount=10")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if d := <-gone - 5*time.Second; d < minLatency || d > maxLatency {
			t.Errorf("the server knew %v after the caller had left", d)
		}
		s.close()
	})
}

// The benchmarks of what happens in a bubble count to b.N themselves: b.Loop
// would look at the clock of the bubble.

func BenchmarkRoundTrip(b *testing.B) {
	b.ReportAllocs()
	err := Bubble(func() {
		clock := NewVirtual(calendar)
		s := openShop(clock, NewMemory(clock, 1), echo)
		for range b.N {
			must(s.post(context.Background(), "op-1", strings.NewReader("amount=10")))
		}
		s.close()
	})
	if err != nil {
		b.Fatal(err)
	}
}

func BenchmarkThroughput(b *testing.B) {
	block := make([]byte, 32<<10)
	b.SetBytes(int64(len(block)))
	err := Bubble(func() {
		m := NewMemory(NewVirtual(calendar), 1)
		l := must(m.Listen("orders"))
		near := must(m.Dial(context.Background(), "orders", "op-1"))
		far := must(l.Accept())
		var g Group
		g.Go(func() { io.Copy(io.Discard, far) })
		for range b.N {
			must(near.Write(block))
		}
		check(near.Close())
		check(g.Wait())
		check(m.Close())
	})
	if err != nil {
		b.Fatal(err)
	}
}

func BenchmarkBubble(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if err := Bubble(func() {}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkIncident(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := incident(1, 1); err != nil {
			b.Fatal(err)
		}
	}
}
