package slowserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"retrylab/internal/lab"
	"retrylab/internal/vtime"
	"retrylab/slowserver"
	"retrylab/slowserver/fault"
	"retrylab/slowserver/guard"
)

func TestRequests(t *testing.T) {
	t.Parallel()
	padded := func(size int) string { return book + strings.Repeat(" ", size-len(book)) }
	tests := []struct {
		name string
		r    request
		want string
		says string // part of the body
	}{
		{"an order", order("", ""), "201, order 1", `"status":"created"`},
		{"an order by query", order("", "").get("item=book&amount_minor=5000"), "201, order 1", ""},
		{"an order by query in a POST", request{path: "/orders?item=book&amount_minor=5000"}, "201, order 1", ""},
		{"by PUT", request{method: "PUT", body: book}, "201, order 1", ""},
		{"by DELETE", request{method: "DELETE", path: "/orders?item=book&amount_minor=5000"}, "201, order 1", ""},
		{"by HEAD", request{method: "HEAD", path: "/orders?item=book&amount_minor=5000"}, "201", ""},
		{"fields that nobody knows", order("", "").with(`{"item":"book","amount_minor":5000,"colour":"red"}`), "201, order 1", ""},
		{"as large as may be", order("", "").with(padded(64 << 10)), "201, order 1", ""},

		{"too large", order("", "").with(padded(64<<10 + 1)), "413, invalid", "too large"},
		{"no body", order("", "").with(""), "400, invalid", "an order needs an item"},
		{"no JSON", order("", "").with("book"), "400, invalid", "not an order"},
		{"half JSON", order("", "").with(book[:len(book)-1]), "400, invalid", "not an order"},
		{"twice JSON", order("", "").with(book + book), "400, invalid", "not an order"},
		{"a list", order("", "").with("[" + book + "]"), "400, invalid", "not an order"},
		{"null", order("", "").with("null"), "400, invalid", "an order needs an item"},
		{"no item", order("", "").with(`{"amount_minor":5000}`), "400, invalid", "an order needs an item"},
		{"no amount", order("", "").with(`{"item":"book"}`), "400, invalid", "an order needs an item"},
		{"amount 0", order("", "").with(`{"item":"book","amount_minor":0}`), "400, invalid", "an order needs an item"},
		{"a negative amount", order("", "").with(`{"item":"book","amount_minor":-1}`), "400, invalid", "an order needs an item"},
		{"an amount with a fraction", order("", "").with(`{"item":"book","amount_minor":1.5}`), "400, invalid", "not an order"},
		{"an amount beyond numbers", order("", "").with(`{"item":"book","amount_minor":9223372036854775808}`), "400, invalid", "not an order"},
		{"a query without an item", order("", "").get("amount_minor=5000"), "400, invalid", "an order needs an item"},
		{"a query without an amount", order("", "").get("item=book&amount_minor=many"), "400, invalid", "an order needs an item"},
		{"a key as long as may be", order("", strings.Repeat("k", 255)), "201, order 1", ""},
		{"a key that is too long", order("", strings.Repeat("k", 256)), "400, invalid", "at most 255 bytes"},
		{"an empty key is none", request{body: book, keys: []string{""}}, "201, order 1", ""},

		{"health", request{method: "GET", path: "/healthz"}, "200", "ok"},
		{"health by POST", request{path: "/healthz"}, "405", ""},
		{"elsewhere", request{method: "GET", path: "/"}, "404", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got answer
			b := play(t, slowserver.Config{Guard: guard.Settings{Kind: "unique-index"}}, func(b *bench) { got = b.send(tt.r) })
			diff(t, "answer", tt.want, got.String())
			if !strings.Contains(got.body, tt.says) {
				t.Errorf("%s\ndoes not say %q", got.body, tt.says)
			}
			orders := 0
			if got.status == 201 {
				orders = 1
			}
			diff(t, "orders", orders, len(b.effects))
			if kind := got.header.Get("Content-Type"); strings.Contains(tt.want, "invalid") && kind != "application/problem+json" {
				t.Errorf("a problem of type %s", kind)
			}
		})
	}
}

// TestReadOnly answers reads: the work takes its time, faults strike, and nothing is written.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	config := slowserver.Config{
		ReadOnly: true, Processing: 3 * time.Second,
		Faults: []fault.Settings{
			{At: fault.BeforeGuard, Do: "status", Status: 503, Arrivals: []int{1}},
			{At: fault.InReply, Do: "status", Status: 500, Arrivals: []int{2}},
		},
	}
	var got []string
	b := play(t, config, func(b *bench) {
		for range 3 {
			got = append(got, b.send(order("", "key")).String())
		}
	})
	diff(t, "answers", []string{"503, injected", "500, injected", "200, order 0"}, got)
	diff(t, "orders", 0, len(b.effects))
}

// TestForeignClient knows nothing of the lab's own headers.
func TestForeignClient(t *testing.T) {
	t.Parallel()
	b := play(t, slowserver.Config{}, func(b *bench) {
		b.send(order("", ""))
		b.send(order("", ""))
	})
	diff(t, "orders of", []string{"arrival-1", "arrival-2"}, b.owners())
	diff(t, "journal", "arrival, work, commit, answer 201", b.journal("arrival-2"))
}

// TestHalfARequest is a client that leaves before it has sent its order.
func TestHalfARequest(t *testing.T) {
	t.Parallel()
	for _, reset := range []bool{false, true} {
		t.Run(fmt.Sprintf("reset=%v", reset), func(t *testing.T) {
			t.Parallel()
			b := play(t, slowserver.Config{}, func(b *bench) {
				conn := must(b.network.Dial(context.Background(), "order-1", "half"))
				check(b.clock.Sleep(context.Background(), time.Second))
				must(fmt.Fprintf(conn, "POST /orders HTTP/1.1\r\nHost: order\r\n%s: send-1\r\nContent-Length: %d\r\n\r\n%s",
					lab.HeaderSend, len(book), book[:10]))
				check(b.clock.Sleep(context.Background(), time.Second))
				if reset {
					check(conn.(interface{ SetLinger(int) error }).SetLinger(0))
				}
				check(conn.Close())
			})
			diff(t, "journal", "arrival, client-gone", b.journal("send-1"))
			diff(t, "noticed", 2*time.Second, b.when("send-1", lab.ClientGone))
			diff(t, "orders", 0, len(b.effects))
		})
	}
}

func TestArrivalSaysWhichKeyWasSent(t *testing.T) {
	t.Parallel()
	b := play(t, slowserver.Config{OwnKeys: true, Guard: guard.Settings{Kind: "unique-index", KeyValue: "last"}}, func(b *bench) {
		r := order("send-1", "")
		r.keys = []string{"k1", "k2"}
		b.send(r)
	})
	for _, e := range b.events {
		switch e.Kind {
		case lab.Arrival:
			diff(t, "key of the arrival", "k1", e.Key)
		case lab.Claim, lab.Commit:
			diff(t, "key of the "+string(e.Kind), "own-1", e.Key)
		}
	}
}

// TestOverlap is the most requests in work at one instant, not the last.
func TestOverlap(t *testing.T) {
	t.Parallel()
	b := play(t, slowserver.Config{Processing: work}, func(b *bench) {
		if n := b.service.Tally().Overlap(); n != 0 {
			panic(n)
		}
		b.sendAll(order("send-1", ""), order("send-2", "").after(6*time.Second), order("send-3", "").after(30*time.Second))
	})
	diff(t, "overlap", 2, b.service.Tally().Overlap())
}

func TestUnknownGuard(t *testing.T) {
	t.Parallel()
	_, err := slowserver.New(t.Context(), slowserver.Config{Guard: guard.Settings{Kind: "prayer"}})
	if err == nil || !strings.Contains(err.Error(), `unknown guard "prayer"`) {
		t.Errorf("got %v", err)
	}
}

// TestEnd makes sure that a service whose life ends tells nobody that an order was placed or that
// its client has left.
func TestEnd(t *testing.T) {
	eachGuard(t, func(t *testing.T, g guarded, c slowserver.Config) {
		life, stop := context.WithCancel(t.Context())
		defer stop()
		c.Clock = vtime.NewWall(time.Time{}, 1)
		c.Processing = time.Hour
		working := make(chan struct{})
		c.Record = func(e lab.Event) {
			switch e.Kind {
			case lab.Work:
				close(working)
			case lab.Commit, lab.Answer, lab.ClientGone:
				t.Errorf("recorded %s", e.Kind)
			}
		}
		c.Pause = func(context.Context, string) error { return nil }
		c.Store = must(stores[0].open())
		defer c.Store.Close()
		network, done := serve(t, life, c)
		conn := must(network.Dial(t.Context(), "order-1", ""))
		defer conn.Close()
		check(order("send-1", "k").http().Write(conn))
		<-working
		stop()
		if left := must(io.ReadAll(conn)); len(left) > 0 {
			t.Errorf("answered %q", left)
		}
		done()
	})
}

// serve starts a service over loopback TCP. The function that it returns ends it.
func serve(t *testing.T, life context.Context, c slowserver.Config) (*vtime.Loopback, func()) {
	t.Helper()
	c.Keys = &memoryKeys{now: c.Clock.Now}
	network := vtime.NewLoopback()
	service, err := slowserver.New(life, c)
	if err != nil {
		t.Fatal(err)
	}
	group := &vtime.Group{}
	handler := service.Replica("order-1", 1)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer group.Catch()
		handler.ServeHTTP(w, r)
	})}
	l, err := network.Listen("order-1")
	if err != nil {
		t.Fatal(err)
	}
	group.Go(func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			panic(err)
		}
	})
	return network, func() {
		t.Helper()
		if err := errors.Join(server.Close(), network.Close(), group.Wait()); err != nil {
			t.Error(err)
		}
	}
}

// TestLoopback sends twelve requests at once through real sockets, in real time.
func TestLoopback(t *testing.T) {
	eachGuard(t, func(t *testing.T, g guarded, c slowserver.Config) {
		c.Processing = 0
		b := &bench{clock: vtime.NewWall(time.Time{}, 1)}
		c.Clock, c.Record = b.clock, b.record
		c.Pause = func(context.Context, string) error { return nil }
		c.Store = must(stores[0].open())
		network, done := serve(t, t.Context(), c)
		b.network = network
		got := b.sendAll(twelve(order("", "k"))...)
		created := 0
		for _, a := range got {
			switch {
			case strings.HasSuffix(a.String(), "again"), a.status == http.StatusConflict, a.status >= 500 && a.String() == g.after:
			case a.status == http.StatusCreated:
				created++
			default:
				t.Errorf("answered %s", a)
			}
		}
		effects := must(c.Store.Effects(t.Context()))
		// A lock remembers nobody: work that takes no time is over before the next of them has come.
		alone := g.protects() && g.settings.Kind != guard.Lock.Name
		if len(effects) != created || alone && created != 1 {
			t.Errorf("%d created, %d orders", created, len(effects))
		}
		done()
		if err := errors.Join(b.group.Wait(), c.Store.Close()); err != nil {
			t.Error(err)
		}
	})
}
