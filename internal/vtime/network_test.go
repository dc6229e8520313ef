package vtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A bench is a network in a test, and the clock that goes with it.
type bench struct {
	*testing.T
	Network
	clock *Clock
}

// conn has what the connections of both networks have.
type testConn interface {
	net.Conn
	SetLinger(sec int) error
	CloseWrite() error
}

// pair returns the two ends of a new connection to a new host.
func (b *bench) pair(host string) (near, far testConn) {
	l := must(b.Listen(host))
	near, far = b.connect(l, host)
	check(l.Close())
	return near, far
}

// connect returns the two ends of a new connection to a host.
func (b *bench) connect(l net.Listener, host string) (near, far testConn) {
	near = must(b.Dial(context.Background(), host, "op-1")).(testConn)
	return near, must(l.Accept()).(testConn)
}

// wantErr reports that an operation did not fail as it should, and that its
// error does not have the form of package net.
func (b *bench) wantErr(op string, got, want error) {
	b.Helper()
	if !errors.Is(got, want) {
		b.Errorf("%s: got %v, want %v", op, got, want)
		return
	}
	if _, ok := got.(*net.OpError); !ok && want != io.EOF {
		b.Errorf("%s: got a %T, want a *net.OpError", op, got)
	}
	if want == os.ErrDeadlineExceeded {
		if err, ok := got.(net.Error); !ok || !err.Timeout() {
			b.Errorf("%s: %v is not a timeout", op, got)
		}
	}
}

// wantRead reads from c until want has come, and nothing else.
func (b *bench) wantRead(c net.Conn, want string) {
	b.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c, got); err != nil || string(got) != want {
		b.Errorf("read %q, %v; want %q", got[:n], err, want)
	}
}

// wantReadErr reads from c and wants an error and no data.
func (b *bench) wantReadErr(c net.Conn, want error) {
	b.Helper()
	n, err := c.Read(make([]byte, 1))
	if n != 0 {
		b.Errorf("read %d bytes, want the error %v", n, want)
	}
	b.wantErr("read", err, want)
}

// wantWriteErr writes until that fails.
func (b *bench) wantWriteErr(c net.Conn, want error) {
	b.Helper()
	for {
		if _, err := c.Write([]byte("x")); err != nil {
			b.wantErr("write", err, want)
			return
		}
		check(b.clock.Sleep(context.Background(), time.Millisecond))
	}
}

func write(c net.Conn, s string) {
	must(io.WriteString(c, s))
}

// networkTests say what is the same on both networks. On a Loopback they show
// what TCP does, on a Memory that it does that too.
var networkTests = []struct {
	name string
	run  func(*bench)
}{
	{"more than the window both ways", func(b *bench) {
		near, far := b.pair("orders")
		there, back := pattern(3*window+17, 1), pattern(5*window+1, 2)
		var g Group
		var got [2][]byte
		for i, c := range []testConn{near, far} {
			g.Go(func() {
				must(c.Write([][]byte{there, back}[i]))
				check(c.CloseWrite())
			})
			g.Go(func() { got[i] = must(io.ReadAll(c)) })
		}
		check(g.Wait())
		for i, want := range [][]byte{back, there} {
			if !bytes.Equal(got[i], want) {
				b.Errorf("end %d has read %d bytes that differ from the %d sent", i, len(got[i]), len(want))
			}
		}
		check(near.Close())
		check(far.Close())
	}},
	{"many small writes", func(b *bench) {
		near, far := b.pair("orders")
		want := pattern(1000, 3)
		for i := range want {
			must(near.Write(want[i : i+1]))
		}
		check(near.Close())
		if got := must(io.ReadAll(far)); !bytes.Equal(got, want) {
			b.Errorf("got %d bytes that differ from the %d sent", len(got), len(want))
		}
	}},
	{"the buffer of a write can be used again", func(b *bench) {
		near, far := b.pair("orders")
		buf := []byte("one")
		must(near.Write(buf))
		copy(buf, "two")
		must(near.Write(buf))
		b.wantRead(far, "onetwo")
	}},
	{"writes stay together", func(b *bench) {
		near, far := b.pair("orders")
		const size, writers = window + 99, 4
		var g Group
		for i := range writers {
			g.Go(func() { must(near.Write(bytes.Repeat([]byte{byte(i)}, size))) })
		}
		buf := make([]byte, size)
		for range writers {
			must(io.ReadFull(far, buf))
			if n := bytes.Count(buf, buf[:1]); n != size {
				b.Errorf("%d bytes of other writes among the %d of one", size-n, size)
			}
		}
		check(g.Wait())
	}},
	{"empty reads and writes", func(b *bench) {
		near, far := b.pair("orders")
		for _, buf := range [][]byte{nil, {}} {
			if n, err := near.Read(buf); n != 0 || err != nil {
				b.Errorf("read %d, %v", n, err)
			}
			if n, err := near.Write(buf); n != 0 || err != nil {
				b.Errorf("wrote %d, %v", n, err)
			}
		}
		check(near.Close())
		b.wantReadErr(far, io.EOF)
	}},
	{"half-close", func(b *bench) {
		near, far := b.pair("orders")
		write(near, "request")
		check(near.CloseWrite())
		check(near.CloseWrite())
		b.wantRead(far, "request")
		b.wantReadErr(far, io.EOF)
		b.wantWriteErr(near, syscall.EPIPE)
		write(far, "reply")
		check(far.Close())
		b.wantRead(near, "reply")
		b.wantReadErr(near, io.EOF)
		check(near.Close())
	}},
	{"close", func(b *bench) {
		near, far := b.pair("orders")
		write(near, "request")
		check(near.Close())
		b.wantRead(far, "request")
		b.wantReadErr(far, io.EOF)
		b.wantWriteErr(far, syscall.EPIPE)
		b.wantWriteErr(far, syscall.EPIPE)
		b.wantReadErr(far, io.EOF)
		check(far.Close())
	}},
	{"close by both", func(b *bench) {
		near, far := b.pair("orders")
		check(near.CloseWrite())
		b.wantReadErr(far, io.EOF)
		check(far.CloseWrite())
		b.wantReadErr(near, io.EOF)
		check(near.Close())
		check(far.Close())
	}},
	{"reset", func(b *bench) {
		near, far := b.pair("orders")
		write(near, "half a reply")
		check(near.SetLinger(0))
		check(near.Close())
		b.wantRead(far, "half a reply")
		b.wantReadErr(far, syscall.ECONNRESET)
		check(far.Close())
	}},
	{"reset wakes a reader", func(b *bench) {
		near, far := b.pair("orders")
		var g Group
		g.Go(func() { b.wantReadErr(far, syscall.ECONNRESET) })
		check(near.SetLinger(0))
		check(near.Close())
		check(g.Wait())
	}},
	{"reset wakes a writer", func(b *bench) {
		near, far := b.pair("orders")
		var g Group
		g.Go(func() {
			_, err := far.Write(flood)
			b.wantErr("write", err, syscall.ECONNRESET)
		})
		b.wantRead(near, "\x00")
		check(near.SetLinger(0))
		check(near.Close())
		check(g.Wait())
	}},
	{"reset after half-close", func(b *bench) {
		near, far := b.pair("orders")
		check(near.CloseWrite())
		b.wantReadErr(far, io.EOF)
		check(near.SetLinger(0))
		check(near.Close())
		b.wantWriteErr(far, syscall.EPIPE)
		b.wantReadErr(far, io.EOF)
	}},
	{"reset of a half-closed peer", func(b *bench) {
		near, far := b.pair("orders")
		check(near.CloseWrite())
		b.wantReadErr(far, io.EOF)
		check(far.SetLinger(0))
		check(far.Close())
		b.wantReadErr(near, syscall.ECONNRESET)
		b.wantWriteErr(near, syscall.EPIPE)
	}},
	{"linger taken back", func(b *bench) {
		near, far := b.pair("orders")
		check(near.SetLinger(0))
		check(near.SetLinger(-1))
		check(near.Close())
		b.wantReadErr(far, io.EOF)
	}},
	{"close with data unread", func(b *bench) {
		near, far := b.pair("orders")
		write(near, "request")
		b.wantRead(far, "req")
		write(far, "reply")
		check(far.Close())
		b.wantRead(near, "reply")
		b.wantReadErr(near, syscall.ECONNRESET)
	}},
	{"close wakes a writer of the peer", func(b *bench) {
		near, far := b.pair("orders")
		var g Group
		g.Go(func() {
			n, err := near.Write(flood)
			if err == nil {
				b.Errorf("wrote %d bytes that nobody read", n)
			}
		})
		b.wantRead(far, "\x00")
		check(far.Close())
		check(g.Wait())
	}},
	{"one's own closed end", func(b *bench) {
		near, _ := b.pair("orders")
		check(near.Close())
		b.wantReadErr(near, net.ErrClosed)
		b.wantWriteErr(near, net.ErrClosed)
		_, err := near.Read(nil)
		b.wantErr("read nothing", err, net.ErrClosed)
		b.wantErr("close", near.Close(), net.ErrClosed)
		b.wantErr("close write", near.CloseWrite(), net.ErrClosed)
		b.wantErr("set linger", near.SetLinger(0), net.ErrClosed)
		b.wantErr("set deadline", near.SetDeadline(time.Time{}), net.ErrClosed)
		b.wantErr("set read deadline", near.SetReadDeadline(time.Time{}), net.ErrClosed)
		b.wantErr("set write deadline", near.SetWriteDeadline(time.Time{}), net.ErrClosed)
	}},
	{"close wakes one's own reader and writer", func(b *bench) {
		near, far := b.pair("orders")
		var g Group
		g.Go(func() {
			_, err := io.Copy(io.Discard, near)
			b.wantErr("read", err, net.ErrClosed)
		})
		g.Go(func() {
			_, err := near.Write(flood)
			b.wantErr("write", err, net.ErrClosed)
		})
		b.wantRead(far, "\x00")
		check(near.Close())
		check(g.Wait())
	}},
	{"deadline", func(b *bench) {
		near, far := b.pair("orders")
		write(near, "unread")
		b.wantRead(far, "un")
		check(far.SetReadDeadline(time.Unix(1, 0)))
		b.wantReadErr(far, os.ErrDeadlineExceeded)
		check(far.SetReadDeadline(time.Time{}))
		b.wantRead(far, "read")
		check(far.SetReadDeadline(b.clock.Deadline(time.Millisecond)))
		b.wantReadErr(far, os.ErrDeadlineExceeded)
		b.wantReadErr(far, os.ErrDeadlineExceeded)
		write(far, "a read deadline is not for writes")
		check(far.SetDeadline(time.Unix(1, 0)))
		b.wantReadErr(far, os.ErrDeadlineExceeded)
		b.wantWriteErr(far, os.ErrDeadlineExceeded)
		check(far.SetDeadline(time.Time{}))
		write(near, "later")
		b.wantRead(far, "later")
		check(near.CloseWrite())
		b.wantReadErr(far, io.EOF)
		check(far.SetWriteDeadline(time.Unix(1, 0)))
		b.wantWriteErr(far, os.ErrDeadlineExceeded)
	}},
	{"deadline changed while a read blocks", func(b *bench) {
		for _, first := range []time.Time{{}, b.clock.Deadline(time.Hour)} {
			near, far := b.pair("orders")
			check(far.SetReadDeadline(first))
			var g Group
			g.Go(func() {
				b.wantRead(far, "x")
				write(far, "about to read")
				b.wantReadErr(far, os.ErrDeadlineExceeded)
			})
			write(near, "x")
			b.wantRead(near, "about to read")
			check(far.SetReadDeadline(b.clock.Deadline(time.Millisecond)))
			check(g.Wait())
			check(near.Close())
			check(far.Close())
		}
	}},
	{"deadline cleared while a read blocks", func(b *bench) {
		near, far := b.pair("orders")
		check(far.SetReadDeadline(b.clock.Deadline(time.Hour)))
		var g Group
		g.Go(func() { b.wantRead(far, "x") })
		check(far.SetReadDeadline(time.Time{}))
		write(near, "x")
		check(g.Wait())
	}},
	{"write deadline", func(b *bench) {
		near, far := b.pair("orders")
		check(near.SetWriteDeadline(b.clock.Deadline(20 * time.Millisecond)))
		n, err := near.Write(flood)
		b.wantErr("write", err, os.ErrDeadlineExceeded)
		check(near.Close())
		if got := must(io.Copy(io.Discard, far)); got != int64(n) || n == len(flood) {
			b.Errorf("%d bytes were read, %d of %d written", got, n, len(flood))
		}
	}},
	{"write deadline changed while a write blocks", func(b *bench) {
		near, far := b.pair("orders")
		var g Group
		g.Go(func() {
			_, err := near.Write(flood)
			b.wantErr("write", err, os.ErrDeadlineExceeded)
		})
		b.wantRead(far, "\x00")
		check(near.SetWriteDeadline(b.clock.Deadline(time.Millisecond)))
		check(g.Wait())
	}},
	{"addresses", func(b *bench) {
		l := must(b.Listen("orders"))
		near, far := b.connect(l, "orders")
		if got, want := near.RemoteAddr().String(), l.Addr().String(); got != want {
			b.Errorf("dialled %s, want %s", got, want)
		}
		if got, want := far.LocalAddr().String(), l.Addr().String(); got != want {
			b.Errorf("accepted at %s, want %s", got, want)
		}
		if got, want := far.RemoteAddr().String(), near.LocalAddr().String(); got != want {
			b.Errorf("accepted from %s, want %s", got, want)
		}
		for _, a := range []net.Addr{near.LocalAddr(), near.RemoteAddr()} {
			if _, _, err := net.SplitHostPort(a.String()); err != nil {
				b.Error(err)
			}
			if got, want := a.Network(), l.Addr().Network(); got != want {
				b.Errorf("%v is of network %s, want %s", a, got, want)
			}
		}
	}},
	{"one listener a host", func(b *bench) {
		l := must(b.Listen("orders"))
		must(b.Listen("payments"))
		_, err := b.Listen("orders")
		b.wantErr("listen again", err, syscall.EADDRINUSE)
		check(l.Close())
		b.wantErr("close again", l.Close(), net.ErrClosed)
		_, err = l.Accept()
		b.wantErr("accept", err, net.ErrClosed)
		l = must(b.Listen("orders")) // the host has started anew
		near, far := b.connect(l, "orders")
		write(near, "x")
		b.wantRead(far, "x")
	}},
	{"refused", func(b *bench) {
		_, err := b.Dial(context.Background(), "nobody", "op-1")
		b.wantErr("dial", err, syscall.ECONNREFUSED)
		if err, ok := err.(net.Error); !ok || err.Timeout() {
			b.Errorf("%v is a timeout", err)
		}
		l := must(b.Listen("orders"))
		near, far := b.connect(l, "orders")
		check(l.Close())
		_, err = b.Dial(context.Background(), "orders", "op-2")
		b.wantErr("dial", err, syscall.ECONNREFUSED)
		write(near, "x") // what is connected stays connected
		b.wantRead(far, "x")
	}},
	{"a listener closes with a connection in its queue", func(b *bench) {
		l := must(b.Listen("orders"))
		near := must(b.Dial(context.Background(), "orders", "op-1"))
		if !b.Busy() {
			b.Error("not busy with a connection in the queue")
		}
		check(l.Close())
		if b.Busy() {
			b.Error("busy with a connection that was reset")
		}
		b.wantReadErr(near, syscall.ECONNRESET)
	}},
	{"a listener closes with an accept under way", func(b *bench) {
		l := must(b.Listen("orders"))
		var g Group
		g.Go(func() {
			_, err := l.Accept()
			b.wantErr("accept", err, net.ErrClosed)
		})
		check(l.Close())
		check(g.Wait())
	}},
	{"crash", func(b *bench) {
		l := must(b.Listen("orders"))
		near, far := b.connect(l, "orders")
		unread, _ := b.connect(l, "orders")
		write(unread, "half a request")
		check(b.clock.Sleep(context.Background(), 10*time.Millisecond))
		other, _ := b.pair("payments")
		waiting := must(b.Dial(context.Background(), "orders", "op-2")).(testConn)
		var g Group
		g.Go(func() { b.wantReadErr(far, net.ErrClosed) })
		b.Crash("orders")
		b.wantReadErr(near, io.EOF)
		b.wantReadErr(unread, syscall.ECONNRESET)
		b.wantReadErr(waiting, syscall.ECONNRESET)
		check(g.Wait())
		_, err := l.Accept()
		b.wantErr("accept", err, net.ErrClosed)
		_, err = b.Dial(context.Background(), "orders", "op-3")
		b.wantErr("dial", err, syscall.ECONNREFUSED)
		b.Crash("orders")
		b.Crash("nobody")

		l = must(b.Listen("orders"))
		again, _ := b.connect(l, "orders")
		for _, c := range []testConn{near, unread, waiting, again, other} {
			if err := c.Close(); err != nil {
				b.Errorf("close: %v", err)
			}
		}
		check(l.Close())
	}},
	{"a crash leaves nothing busy", func(b *bench) {
		l := must(b.Listen("orders"))
		near, _ := b.connect(l, "orders")
		waiting := must(b.Dial(context.Background(), "orders", "op-2"))
		b.Crash("orders")
		if b.Busy() {
			b.Error("busy after the crash of the only host")
		}
		check(near.Close())
		check(waiting.Close())
	}},
	{"black hole", func(b *bench) {
		l := must(b.Listen("orders"))
		near, far := b.connect(l, "orders")
		b.Blackhole("orders")
		b.Blackhole("nobody")
		for _, host := range []string{"orders", "nobody"} {
			reason := errors.New("connect timeout")
			ctx, stop := b.clock.WithTimeout(context.Background(), 2*time.Millisecond, reason)
			_, err := b.Dial(ctx, host, "op-2")
			stop()
			b.wantErr("dial", err, reason)
			if err, ok := err.(net.Error); !ok || !err.Timeout() {
				b.Errorf("dial: %v is not a timeout", err)
			}
			if got := fmt.Sprint(err); !strings.Contains(got, host) || !strings.Contains(got, "connect timeout") {
				b.Errorf("dial: %q does not say what timed out where", got)
			}
			canceled, cancel := context.WithCancelCause(context.Background())
			b.clock.AfterFunc(time.Millisecond, func() { cancel(reason) })
			_, err = b.Dial(canceled, host, "op-3")
			b.wantErr("dial", err, reason)
			if err, ok := err.(net.Error); !ok || err.Timeout() {
				b.Errorf("dial: %v is a timeout", err)
			}
		}
		write(near, "x") // what is connected stays connected
		b.wantRead(far, "x")
		check(far.Close())
		if b.Busy() {
			b.Error("busy with connections that were never established")
		}
	}},
	{"dial in a context that is over", func(b *bench) {
		must(b.Listen("orders"))
		reason := errors.New("too late")
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(reason)
		for _, host := range []string{"orders", "nobody"} {
			_, err := b.Dial(ctx, host, "op-1")
			b.wantErr("dial", err, reason)
		}
		if b.Busy() {
			b.Error("busy with connections that were never established")
		}
	}},
	{"busy", func(b *bench) {
		want := func(when string, want bool) {
			b.Helper()
			if got := b.Busy(); got != want {
				b.Errorf("%s: busy is %v, want %v", when, got, want)
			}
		}
		want("at first", false)
		l := must(b.Listen("orders"))
		want("listening", false)
		near := must(b.Dial(context.Background(), "orders", "op-1"))
		want("dialled", true)
		check(near.Close())
		want("the caller has gone", true)
		far := must(l.Accept())
		want("accepted", true)
		other, last := b.connect(l, "orders")
		check(l.Close())
		want("listening no more", true)
		check(far.Close())
		want("closed one of two", true)
		far.Close()
		want("closed it twice", true)
		check(last.Close())
		want("closed", false)
		check(other.Close())
		want("all gone", false)
	}},
	{"close of the network", func(b *bench) {
		l := must(b.Listen("orders"))
		near, far := b.connect(l, "orders")
		queued := must(b.Dial(context.Background(), "orders", "op-2"))
		b.Blackhole("nowhere")
		started := make(chan struct{}, 2)
		var g Group
		for _, c := range []net.Conn{near, far} {
			g.Go(func() {
				write(c, "x")
				b.wantRead(c, "x")
				started <- struct{}{}
				// In real time the other end may be closed first.
				if n, err := c.Read(make([]byte, 1)); err != io.EOF {
					b.wantErr(fmt.Sprintf("read of %d bytes", n), err, net.ErrClosed)
				}
			})
		}
		g.Go(func() {
			_, err := b.Dial(context.Background(), "nowhere", "op-3")
			b.wantErr("dial under way", err, net.ErrClosed)
		})
		<-started
		<-started
		check(b.Close())
		check(g.Wait())
		for _, c := range []net.Conn{near, far, queued} {
			b.wantReadErr(c, net.ErrClosed)
		}
		_, err := l.Accept()
		b.wantErr("accept", err, net.ErrClosed)
		_, err = b.Listen("orders")
		b.wantErr("listen", err, net.ErrClosed)
		for _, host := range []string{"orders", "nobody", "nowhere"} {
			_, err = b.Dial(context.Background(), host, "op-4")
			b.wantErr("dial", err, net.ErrClosed)
		}
		if b.Busy() {
			b.Error("a closed network is busy")
		}
		check(b.Close())
	}},
	{"errors name the addresses", func(b *bench) {
		near, far := b.pair("orders")
		check(near.SetLinger(0))
		check(near.Close())
		_, err := far.Read(make([]byte, 1))
		for _, want := range []string{far.LocalAddr().String(), far.RemoteAddr().String(), "connection reset by peer"} {
			if !strings.Contains(fmt.Sprint(err), want) {
				b.Errorf("error %q does not mention %q", err, want)
			}
		}
	}},
}

// flood is more than both networks hold of what nobody reads.
var flood = make([]byte, 32<<20)

// pattern returns n bytes that repeat late.
func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	x := uint32(seed) + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

func TestMemoryAsNetwork(t *testing.T) {
	t.Parallel()
	for _, test := range networkTests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func() {
				clock := NewVirtual(calendar)
				b := &bench{t, NewMemory(clock, 1), clock}
				test.run(b)
				check(b.Close())
			})
		})
	}
}

// A Memory serves the wall clock as well, if not to the nanosecond.
func TestMemoryOnTheWallClock(t *testing.T) {
	t.Parallel()
	for _, test := range networkTests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			clock := NewWall(calendar, 1)
			b := &bench{t, NewMemory(clock, 1), clock}
			test.run(b)
			check(b.Close())
		})
	}
}

func TestLoopbackAsNetwork(t *testing.T) {
	t.Parallel()
	for _, test := range networkTests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			clock := NewWall(calendar, 1)
			b := &bench{t, NewLoopback(), clock}
			test.run(b)
			check(b.Close())
		})
	}
}

// TestLend has one network dial a host whose listener is in another, as that of
// another process is.
func TestLend(t *testing.T) {
	t.Parallel()
	here, there := NewLoopback(), NewLoopback()
	b := &bench{T: t, Network: here}
	file := must(here.Lend("orders"))
	if _, err := here.Listen("orders"); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("listen at a host that is lent: %v", err)
	}
	l := must(there.Adopt("orders", file))
	near := must(here.Dial(t.Context(), "orders", "op-1"))
	if here.Dialled("orders") != 1 || there.Accepted("orders") != 0 || here.Busy() || there.Busy() {
		t.Errorf("dialled %d, accepted %d, busy %v and %v", here.Dialled("orders"), there.Accepted("orders"), here.Busy(), there.Busy())
	}
	far := must(l.Accept())
	if there.Accepted("orders") != 1 || !there.Busy() {
		t.Errorf("accepted %d, busy %v", there.Accepted("orders"), there.Busy())
	}
	write(near, "order")
	b.wantRead(far, "order")
	there.Crash("orders")
	b.wantReadErr(near, io.EOF)
	if _, err := here.Dial(t.Context(), "orders", "op-2"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial after the end of the other process: %v", err)
	}
	here.Crash("orders")
	if _, err := here.Dial(t.Context(), "orders", "op-3"); !errors.Is(err, syscall.ECONNREFUSED) || here.Dialled("orders") != 0 {
		t.Errorf("dial after it is forgotten: %v, %d dialled", err, here.Dialled("orders"))
	}
	must(here.Lend("orders")).Close()
	check(near.Close())
	check(errors.Join(here.Close(), there.Close()))
}
