package caller

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"retrylab/caller/policy"
	"retrylab/internal/lab"
)

// TestTwinOfNetHTTP plays the preset go-net-http and the real http.Transport, with its own
// connections kept alive, against one server that reads each request and closes. Both must send it
// equally often.
func TestTwinOfNetHTTP(t *testing.T) {
	t.Parallel()
	for _, r := range []struct {
		method, key string
		body        policy.Body
		more        bool // than one, on idle connections
	}{
		{"GET", "none", policy.NoBody, true},
		{"GET", "operation", policy.NoBody, true},
		{"POST", "none", policy.Buffered, false},
		{"POST", "none", policy.NoBody, false},
		{"POST", "operation", policy.Buffered, true},
		{"POST", "operation", policy.Chunked, false},
		{"PUT", "none", policy.Buffered, false},
		{"DELETE", "operation", policy.NoBody, true},
	} {
		for _, idle := range []int{0, 1, 2, 4} {
			for _, breakage := range []struct {
				name string
				do   func(*exchange)
			}{
				{"close", func(x *exchange) { x.close() }},
				{"reset", func(x *exchange) { x.reset() }},
				{"half an answer", func(x *exchange) { x.raw("HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\nhalf"); x.close() }},
				{"answer", ok},
			} {
				t.Run(fmt.Sprintf("%s key %s %s, %d idle, %s", r.method, r.key, r.body, idle, breakage.name), func(t *testing.T) {
					onBoth(t, func(t *testing.T, b *bench) {
						b.script = breakage.do
						b.place(
							Config{Idle: idle, Layers: []policy.Layer{layerOf(policy.Settings{Preset: "go-net-http"})}},
							Habits{Method: r.method, Key: r.key, Body: r.body},
						)
						ours := len(b.arrived())
						b.real(r.method, r.key, r.body, idle)
						theirs := len(b.arrived()) - ours
						if ours != theirs {
							t.Errorf("the preset sends %d requests, net/http %d", ours, theirs)
						}
						want := 1
						if r.more && (breakage.name == "close" || breakage.name == "reset") {
							want = idle + 1
						}
						if theirs != want {
							t.Errorf("net/http sends %d requests, want %d", theirs, want)
						}
					})
				})
			}
		}
	}
}

// real sends one request with the real http.Transport, which has so many idle connections.
func (b *bench) real(method, key string, body policy.Body, idle int) {
	var mu sync.Mutex
	dials := 0
	transport := &http.Transport{
		MaxIdleConnsPerHost: 10,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			host, _, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			mu.Lock()
			dials++
			id := fmt.Sprint("real-", dials)
			mu.Unlock()
			return b.network.Dial(ctx, host, id)
		},
	}
	defer transport.CloseIdleConnections()
	// An answer that has not been read keeps its connection, so each request has to open another.
	var open []*http.Response
	for range idle {
		open = append(open, must(transport.RoundTrip(must(http.NewRequest(http.MethodGet, "http://i1"+lab.HealthPath, nil)))))
	}
	for _, resp := range open {
		must(io.ReadAll(resp.Body))
		check(resp.Body.Close())
	}
	if dials != idle {
		panic(fmt.Sprintf("%d connections were dialled, want %d", dials, idle))
	}
	req := must(http.NewRequest(method, "http://i1"+lab.OrderPath, nil))
	switch body {
	case policy.Buffered:
		req = must(http.NewRequest(method, "http://i1"+lab.OrderPath, strings.NewReader("order")))
	case policy.Chunked:
		req = must(http.NewRequest(method, "http://i1"+lab.OrderPath, io.NopCloser(strings.NewReader("order"))))
	}
	if key != "none" {
		req.Header.Set(lab.HeaderKey, "k")
	}
	if resp, err := transport.RoundTrip(req); err == nil {
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}
