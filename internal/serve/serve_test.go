package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"retrylab/internal/lab"
	"retrylab/internal/serve"
	"retrylab/internal/storage"
	"retrylab/slowserver"
	"retrylab/slowserver/fault"
	"retrylab/slowserver/guard"
	"retrylab/slowserver/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// served is a service under test.
type served struct {
	*testing.T
	base   string
	client http.Client
	stop   func()
	ended  chan error

	mu  sync.Mutex
	log bytes.Buffer
}

func (s *served) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

func (s *served) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// start serves c until the end of the test, which demands that it ends well.
func start(t *testing.T, c slowserver.Config) *served {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	s := &served{T: t, stop: stop, ended: make(chan error, 1)}
	s.client.Transport = &http.Transport{DisableKeepAlives: true}
	ready := make(chan net.Addr, 1)
	go func() {
		s.ended <- serve.Run(ctx, serve.Options{
			Listen: "127.0.0.1:0", Name: "order-7", Service: c, Open: open, Log: s,
			Ready: func(address net.Addr, info lab.Store) { ready <- address },
		})
	}()
	select {
	case address := <-ready:
		s.base = "http://" + address.String()
	case err := <-s.ended:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if err := <-s.ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

func open(ctx context.Context) (store.Database, error) {
	return storage.Open(ctx, storage.SQLite, storage.Options{Jobs: 1})
}

// ask sends a request, with headers as name: value, and returns status and body.
func (s *served) ask(method, path, body string, headers ...string) (int, string) {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), method, s.base+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Error(err)
	}
	if resp.StatusCode >= 400 {
		var p lab.Problem
		if kind := resp.Header.Get("Content-Type"); kind != "application/problem+json" || json.Unmarshal(answer, &p) != nil || p.Status != resp.StatusCode || p.Title == "" {
			s.Errorf("%s %s: %d is no problem: %s %s", method, path, resp.StatusCode, kind, answer)
		}
	}
	return resp.StatusCode, string(answer)
}

const book = `{"item":"book","amount_minor":4999}`

func (s *served) order(key string) (int, string) {
	s.Helper()
	if key == "" {
		return s.ask("POST", "/orders", book)
	}
	return s.ask("POST", "/orders", book, "Idempotency-Key: "+key)
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	s := start(t, slowserver.Config{Guard: guard.Settings{Kind: "unique-index"}})
	for _, c := range []struct {
		method, path, body string
		headers            []string
		status             int
		says               string
	}{
		{"GET", "/healthz", "", nil, 200, "ok"},
		{"GET", "/results/k1", "", nil, 404, "unknown-key"},
		{"POST", "/orders", book, []string{"Idempotency-Key: k1"}, 201, `"order":1`},
		{"POST", "/orders", book, []string{"Idempotency-Key: k1"}, 201, `"order":1`},
		{"POST", "/orders", `{"item":"book","amount_minor":5}`, []string{"Idempotency-Key: k1"}, 409, "key-conflict"},
		{"GET", "/results/k1", "", nil, 200, `{"key":"k1","status":"done","code":201,"answer":{"order":1,"status":"created"}}`},
		{"POST", "/orders", book, []string{"Idempotency-Key: a/b?c"}, 201, `"order":2`},
		{"GET", "/results/a%2Fb%3Fc", "", nil, 200, `"key":"a/b?c"`},
		{"POST", "/orders", book, nil, 201, `"order":3`},
		{"GET", "/stats", "", nil, 200, `{"replica":"order-7","arrivals":5,"processing":0,"orders":3,"duplicates":[],"store":{"engine":"sqlite"`},
		{"GET", "/references/cart-7", "", nil, 404, "unknown-key"},
		{"POST", "/orders", book, []string{"Retrylab-Operation: cart-7"}, 201, `"order":4`},
		{"GET", "/references/cart-7", "", nil, 200, `{"reference":"cart-7","status":"done","orders":1}`},
		{"POST", "/release", "", nil, 200, `{"released":0}`},

		{"POST", "/orders", "book", nil, 400, "not an order"},
		{"POST", "/orders", book + strings.Repeat(" ", 64<<10), nil, 413, "too large"},
		{"POST", "/orders", book, []string{"Idempotency-Key: " + strings.Repeat("k", 256)}, 400, "at most 255 bytes"},
		{"GET", "/results/" + strings.Repeat("k", 256), "", nil, 400, "at most 255 bytes"},
		{"POST", "/healthz", "", nil, 405, "/healthz is asked with GET, not POST"},
		{"POST", "/results/k1", "", nil, 405, "is asked with GET"},
		{"DELETE", "/stats", "", nil, 405, "is asked with GET"},
		{"GET", "/release", "", nil, 405, "is asked with POST"},
		{"GET", "/", "", nil, 404, "there is nothing at /"},
		{"GET", "/results", "", nil, 404, "there is nothing at /results"},
	} {
		status, answer := s.ask(c.method, c.path, c.body, c.headers...)
		if status != c.status || !strings.Contains(answer, c.says) {
			t.Errorf("%s %.40s: %d %s, want %d with %s", c.method, c.path, status, answer, c.status, c.says)
		}
	}
	for _, line := range []string{
		" order-7 GET /healthz 200 in ", " order-7 POST /orders 409 in ", ", key k1\n", ", key a/b?c\n", " order-7 GET / 404 in ",
	} {
		if !strings.Contains(s.logged(), line) {
			t.Errorf("the log has no %q:\n%s", line, s.logged())
		}
	}
}

// TestLogIsOneLine: what a client sends cannot make a line of the log say something else.
func TestLogIsOneLine(t *testing.T) {
	t.Parallel()
	s := start(t, slowserver.Config{})
	s.ask("GET", "/%0A2026-01-01T00:00:00.000Z%20order-7%1b[2J", "", "Idempotency-Key: k, status 500 \u202e")
	s.stop()
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	s.ended <- nil
	log := s.logged()
	if n := strings.Count(log, "\n"); n != 1 || strings.ContainsFunc(log, func(r rune) bool { return r != '\n' && (r < ' ' || r > '~') }) {
		t.Errorf("%d lines: %q", n, log)
	}
}

// TestDuplicates: a key has as many orders as requests where nobody guards it.
func TestDuplicates(t *testing.T) {
	t.Parallel()
	s := start(t, slowserver.Config{})
	for _, key := range []string{"k1", "k2", "k1", "k1", "", ""} {
		if status, answer := s.order(key); status != 201 {
			t.Errorf("%d %s", status, answer)
		}
	}
	if _, answer := s.ask("GET", "/stats", ""); !strings.Contains(answer, `"orders":6,"duplicates":[{"key":"k1","orders":3}]`) {
		t.Errorf("stats: %s", answer)
	}
	if status, _ := s.ask("GET", "/results/k1", ""); status != 404 {
		t.Errorf("the result of a key that nobody keeps: %d", status)
	}
}

// TestRelease lets go what would take an hour: work, and what a fault holds up.
func TestRelease(t *testing.T) {
	t.Parallel()
	s := start(t, slowserver.Config{
		Processing: time.Hour, Guard: guard.Settings{Kind: "unique-index"},
		Faults: []fault.Settings{{At: fault.AfterCommit, Do: "delay", Delay: time.Hour}},
	})
	got := make(chan string, 1)
	go func() {
		status, answer := s.order("k1")
		got <- fmt.Sprint(status, " ", answer)
	}()
	s.until(`"status":"processing"`, "GET", "/results/k1")
	if status, answer := s.order("k1"); status != 409 || !strings.Contains(answer, "in-progress") {
		t.Errorf("the second request: %d %s", status, answer)
	}
	s.until(`{"released":1}`, "POST", "/release") // the work
	s.until(`"status":"done"`, "GET", "/results/k1")
	s.until(`{"released":1}`, "POST", "/release") // the delay
	if answer := <-got; !strings.HasPrefix(answer, `201 {"order":1`) {
		t.Error(answer)
	}
}

// until asks until the answer says something.
func (s *served) until(says, method, path string) {
	s.Helper()
	for {
		if _, answer := s.ask(method, path, ""); strings.Contains(answer, says) {
			return
		}
	}
}

// TestEnd: requests at work are answered when the end comes, and there is none to be had afterwards.
func TestEnd(t *testing.T) {
	t.Parallel()
	s := start(t, slowserver.Config{Processing: 200 * time.Millisecond})
	got := make(chan int, 1)
	go func() {
		status, _ := s.order("")
		got <- status
	}()
	s.until(`"processing":1`, "GET", "/stats")
	s.stop()
	if status := <-got; status != 201 {
		t.Errorf("the request at work got %d", status)
	}
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	s.ended <- nil
	if status, err := s.order(""); status != 0 {
		t.Errorf("after the end: %d %s", status, err)
	}
}

// TestCrash: the service dies, and is there again at the same address, with its database.
func TestCrash(t *testing.T) {
	t.Parallel()
	s := start(t, slowserver.Config{
		Guard:  guard.Settings{Kind: "unique-index"},
		Faults: []fault.Settings{{At: fault.AfterCommit, Do: "crash", Restart: 100 * time.Millisecond, Arrivals: []int{1}}},
	})
	if status, err := s.order("k1"); status != 0 || !strings.Contains(err, "EOF") {
		t.Errorf("at the crash: %d %s", status, err)
	}
	s.until("ok", "GET", "/healthz")
	if status, answer := s.order("k1"); status != 201 || !strings.Contains(answer, `"order":1`) {
		t.Errorf("afterwards: %d %s", status, answer)
	}
}

// TestRudeClients: who sends too much of a header, or half of one, is refused, and others are served.
func TestRudeClients(t *testing.T) {
	t.Parallel()
	s := start(t, slowserver.Config{})
	dial := func() net.Conn {
		var d net.Dialer
		c, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	half := dial()
	defer half.Close()
	fmt.Fprint(half, "POST /orders HTTP/1.1\r\nHost: order\r\n")

	large := dial()
	defer large.Close()
	fmt.Fprintf(large, "POST /orders HTTP/1.1\r\nHost: order\r\nX: %s\r\n\r\n", strings.Repeat("x", 30<<10))
	resp, err := http.ReadResponse(bufio.NewReader(large), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a large header: %d", resp.StatusCode)
	}
	if status, answer := s.order(""); status != 201 {
		t.Errorf("another client: %d %s", status, answer)
	}
	if testing.Short() {
		return
	}
	if _, err := half.Read(make([]byte, 1)); err == nil {
		t.Error("half a header was answered")
	}
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	err = serve.Run(t.Context(), serve.Options{
		Listen: l.Addr().String(), Name: "order-1",
		Open: func(context.Context) (store.Database, error) {
			return nil, errors.New("a database was opened for nothing")
		},
	})
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("got %v", err)
	}
}
