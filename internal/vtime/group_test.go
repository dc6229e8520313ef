package vtime

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestGroup(t *testing.T) {
	t.Parallel()
	inBubble(t, func() {
		var seen []error
		ctx, cancel := context.WithCancelCause(context.Background())
		g := Group{OnPanic: func(err error) {
			seen = append(seen, err)
			cancel(err)
		}}
		if err := g.Err(); err != nil {
			t.Errorf("a new group has caught %v", err)
		}
		first := errors.New("first")
		g.Go(func() {
			time.Sleep(time.Second)
			explode(first)
		})
		g.Go(func() {
			time.Sleep(2 * time.Second)
			explode("second")
		})
		<-ctx.Done()
		if err := g.Err(); !errors.Is(err, first) {
			t.Errorf("after the first panic: got %v, want %v", err, first)
		}
		err := g.Wait()
		if !errors.Is(err, first) || !errors.Is(context.Cause(ctx), first) {
			t.Errorf("got %v and cause %v, want %v", err, context.Cause(ctx), first)
		}
		panicked, ok := errors.AsType[*PanicError](err)
		if !ok {
			panic(err)
		}
		if !strings.Contains(string(panicked.Stack), "explode") {
			t.Errorf("the stack does not show who panicked:\n%s", panicked.Stack)
		}
		if got, want := len(seen), 2; got != want {
			t.Errorf("OnPanic was called %d times, want %d", got, want)
		}
	})
}

func TestGroupWithoutPanic(t *testing.T) {
	t.Parallel()
	inBubble(t, func() {
		var g Group
		start := time.Now()
		for i := range 10 {
			g.Go(func() { time.Sleep(time.Duration(i) * time.Second) })
		}
		if err := g.Wait(); err != nil {
			t.Errorf("got %v", err)
		}
		if got, want := time.Since(start), 9*time.Second; got != want {
			t.Errorf("waited for %v, want %v", got, want)
		}
	})
}

func TestGroupCatch(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		panics any
		reply  string
		want   string
	}{
		{name: "no panic", reply: "200 OK"},
		{name: "a panic", panics: "boom", reply: "200 OK", want: "panic: boom"},
		{name: "abort", panics: http.ErrAbortHandler, reply: "EOF"},
	} {
		inBubble(t, func() {
			var g, servers Group
			n := NewMemory(NewVirtual(calendar), 1)
			l := must(n.Listen("orders"))
			srv := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				defer g.Catch()
				if test.panics != nil {
					panic(test.panics)
				}
			})}
			servers.Go(func() { srv.Serve(l) })
			transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return n.Dial(ctx, "orders", "op-1")
			}}
			resp, err := transport.RoundTrip(must(http.NewRequest("GET", "http://orders/", nil)))
			var reply string
			if err != nil {
				reply = err.Error()
			} else {
				reply = resp.Status
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			if got, want := reply, test.reply; got != want {
				t.Errorf("%s: reply is %q, want %q", test.name, got, want)
			}
			var caught string
			if err := g.Err(); err != nil {
				caught = err.Error()
			}
			if got, want := caught, test.want; got != want {
				t.Errorf("%s: caught %q, want %q", test.name, got, want)
			}
			check(srv.Close())
			check(servers.Wait())
			check(n.Close())
		})
	}
}
