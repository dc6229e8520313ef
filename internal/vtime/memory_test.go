package vtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// onMemory runs f in a bubble, with a network and its clock.
func onMemory(t *testing.T, f func(*bench)) {
	t.Helper()
	inBubble(t, func() {
		clock := NewVirtual(calendar)
		b := &bench{t, NewMemory(clock, 1), clock}
		f(b)
		check(b.Close())
	})
}

// latencies returns those of a connection with the id that pair gives it.
func (b *bench) latencies() (there, back time.Duration) {
	m := b.Network.(*Memory)
	return m.latency("op-1", "there"), m.latency("op-1", "back")
}

// wantNow reports that a moment on the clock is not the one that it should be.
func (b *bench) wantNow(what string, want time.Duration) {
	b.Helper()
	if got := b.clock.Now(); got != want {
		b.Errorf("%s at %v, want %v", what, got, want)
	}
}

func (b *bench) sleep(d time.Duration) { check(b.clock.Sleep(context.Background(), d)) }

func TestMemoryLatency(t *testing.T) {
	t.Parallel()
	inBubble(t, func() {
		clock := NewVirtual(calendar)
		seen := make(map[time.Duration]string)
		var sum time.Duration
		const n = 100
		for seed := range int64(2) {
			m := NewMemory(clock, seed)
			for i := range n {
				for _, direction := range []string{"there", "back"} {
					id := fmt.Sprintf("op-%d", i)
					d := m.latency(id, direction)
					if d < minLatency || d > maxLatency {
						t.Errorf("latency of %s is %v", id, d)
					}
					if again := NewMemory(clock, seed).latency(id, direction); again != d {
						t.Errorf("latency of %s is %v and then %v", id, d, again)
					}
					seen[d] = id
					sum += d
				}
			}
		}
		if len(seen) < 4*n*98/100 {
			t.Errorf("%d connections have only %d different latencies", 2*n, len(seen))
		}
		if mean := sum / (4 * n); mean < 25*time.Microsecond || mean > 30*time.Microsecond {
			t.Errorf("the mean latency is %v", mean)
		}
	})
}

// closing is how long a close takes where data takes d.
func closing(d time.Duration) time.Duration { return d + d/7 + 3 }

func TestMemoryTakesItsTime(t *testing.T) {
	t.Parallel()
	onMemory(t, func(b *bench) {
		there, back := b.latencies()
		l := must(b.Listen("orders"))
		near := must(b.Dial(context.Background(), "orders", "op-1")).(*conn)
		b.wantNow("dialled", there+back)
		far := must(l.Accept()).(*conn)
		b.wantNow("accepted", 2*there+back)

		start := b.clock.Now()
		write(near, "request")
		b.wantNow("written", start)
		b.wantRead(far, "request")
		b.wantNow("read", start+there)
		write(far, "reply")
		b.wantRead(near, "reply")
		b.wantNow("read", start+there+back)

		start = b.clock.Now()
		check(near.CloseWrite())
		b.wantReadErr(far, io.EOF)
		b.wantNow("end read", start+closing(there))

		start = b.clock.Now()
		check(far.SetLinger(0))
		check(far.Close())
		b.wantReadErr(near, syscall.ECONNRESET)
		b.wantNow("reset read", start+closing(back))

		start = b.clock.Now()
		_, err := b.Dial(context.Background(), "nobody", "op-1")
		b.wantErr("dial", err, syscall.ECONNREFUSED)
		b.wantNow("refused", start+there+back)

		check(l.Close())
		start = b.clock.Now()
		_, err = b.Dial(context.Background(), "orders", "op-1")
		b.wantErr("dial", err, syscall.ECONNREFUSED)
		b.wantNow("refused", start+there+back)
	})
}

// A dial finds who listens when its first packet gets there, and a connection
// needs a listener until it is accepted.
func TestMemoryDialMeetsListener(t *testing.T) {
	t.Parallel()
	const early = time.Nanosecond
	for _, test := range []struct {
		name   string
		listen func(there, back time.Duration) time.Duration // when it begins
		close  func(there, back time.Duration) time.Duration // when it ends
		dial   error
		read   error
	}{
		{
			name:   "just in time",
			listen: func(there, _ time.Duration) time.Duration { return there - early },
		},
		{
			name:   "too late",
			listen: func(there, _ time.Duration) time.Duration { return there + early },
			dial:   syscall.ECONNREFUSED,
		},
		{
			name:  "closed before the first packet",
			close: func(there, _ time.Duration) time.Duration { return there - early },
			dial:  syscall.ECONNREFUSED,
		},
		{
			name:  "closed before the answer",
			close: func(there, back time.Duration) time.Duration { return there + back - early },
			read:  syscall.ECONNRESET,
		},
		{
			name:  "closed before the connection arrives",
			close: func(there, back time.Duration) time.Duration { return there + back + early },
			read:  syscall.ECONNRESET,
		},
		{
			name:  "closed with the connection in the queue",
			close: func(there, back time.Duration) time.Duration { return 2*there + back + early },
			read:  syscall.ECONNRESET,
		},
	} {
		onMemory(t, func(b *bench) {
			there, back := b.latencies()
			var g Group
			g.Go(func() {
				if test.listen != nil {
					b.sleep(test.listen(there, back))
				}
				l := must(b.Listen("orders"))
				if test.close != nil {
					b.sleep(test.close(there, back) - b.clock.Now())
					check(l.Close())
				}
			})
			near, err := b.Dial(context.Background(), "orders", "op-1")
			if !errors.Is(err, test.dial) {
				t.Errorf("%s: dial: got %v, want %v", test.name, err, test.dial)
			}
			b.wantNow(test.name, there+back)
			if test.read != nil {
				b.wantReadErr(near, test.read)
				b.wantNow(test.name+": reset", max(2*there+back, test.close(there, back))+closing(back))
				if b.Busy() {
					t.Errorf("%s: busy", test.name)
				}
			}
			check(g.Wait())
		})
	}
}

func TestMemoryAcceptsByArrival(t *testing.T) {
	t.Parallel()
	onMemory(t, func(b *bench) {
		m := b.Network.(*Memory)
		l := must(b.Listen("orders"))
		const n = 50
		type arrival struct {
			ID string
			At time.Duration
		}
		var want, got []arrival
		var g Group
		for i := range n {
			id := fmt.Sprintf("op-%d", i)
			there, back := m.latency(id, "there"), m.latency(id, "back")
			want = append(want, arrival{net.JoinHostPort(id, "1"), 2*there + back})
			g.Go(func() { must(b.Dial(context.Background(), "orders", id)) })
		}
		slices.SortFunc(want, func(a, b arrival) int { return int(a.At - b.At) })
		for range n {
			c := must(l.Accept())
			got = append(got, arrival{c.RemoteAddr().String(), b.clock.Now()})
		}
		check(g.Wait())
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("arrivals (-want +got):\n%s", diff)
		}
	})
}

// What decides when data and a deadline fall on one instant is a rule, not the
// scheduler.
func TestMemoryDeadlineTie(t *testing.T) {
	t.Parallel()
	const tick = time.Nanosecond
	for _, test := range []struct {
		name     string
		deadline time.Duration // after the data arrives
		want     string
		err      error
	}{
		{name: "before", deadline: -tick, err: os.ErrDeadlineExceeded},
		{name: "same instant", deadline: 0, want: "x"},
		{name: "after", deadline: tick, want: "x"},
	} {
		for range 20 {
			onMemory(t, func(b *bench) {
				there, _ := b.latencies()
				near, far := b.pair("orders")
				check(far.SetReadDeadline(b.clock.Deadline(there + test.deadline)))
				write(near, "x")
				buf := make([]byte, 10)
				n, err := far.Read(buf)
				if got := string(buf[:n]); got != test.want || !errors.Is(err, test.err) {
					t.Errorf("%s: read %q, %v; want %q, %v", test.name, got, err, test.want, test.err)
				}
			})
		}
	}
}

func TestMemoryDeadlineMoves(t *testing.T) {
	t.Parallel()
	read := func(c *conn) error {
		_, err := c.Read(make([]byte, 1))
		return err
	}
	write := func(c *conn) error {
		_, err := c.Write(flood)
		return err
	}
	for _, test := range []struct {
		name    string
		block   func(*conn) error
		set     func(*conn, time.Time) error
		from    time.Duration // 0 is none
		to      time.Duration // after a second; 0 is none
		expired time.Duration // after the start
	}{
		{"read, set", read, (*conn).SetReadDeadline, 0, time.Second, 2 * time.Second},
		{"read, earlier", read, (*conn).SetReadDeadline, time.Hour, time.Second, 2 * time.Second},
		{"read, later", read, (*conn).SetReadDeadline, 2 * time.Second, time.Hour, time.Hour + time.Second},
		{"read, past", read, (*conn).SetReadDeadline, time.Hour, -time.Hour, time.Second},
		{"read, both", read, (*conn).SetDeadline, time.Hour, time.Second, 2 * time.Second},
		{"write, set", write, (*conn).SetWriteDeadline, 0, time.Second, 2 * time.Second},
		{"write, earlier", write, (*conn).SetWriteDeadline, time.Hour, time.Second, 2 * time.Second},
		{"write, later", write, (*conn).SetWriteDeadline, 2 * time.Second, time.Hour, time.Hour + time.Second},
		{"write, past", write, (*conn).SetWriteDeadline, time.Hour, -time.Hour, time.Second},
		{"write, both", write, (*conn).SetDeadline, time.Hour, time.Second, 2 * time.Second},
		{"of the other kind", read, (*conn).SetWriteDeadline, 0, time.Second, 0},
		{"cleared", read, (*conn).SetReadDeadline, 2 * time.Second, 0, 0},
	} {
		onMemory(t, func(b *bench) {
			deadline := func(d time.Duration) time.Time {
				if d == 0 {
					return time.Time{}
				}
				return b.clock.Deadline(d)
			}
			near, _ := b.pair("orders")
			c := near.(*conn)
			start := b.clock.Now()
			check(test.set(c, deadline(test.from)))
			var g Group
			g.Go(func() {
				err := test.block(c)
				if test.expired == 0 {
					b.wantErr(test.name, err, net.ErrClosed)
					return
				}
				b.wantErr(test.name, err, os.ErrDeadlineExceeded)
				b.wantNow(test.name, start+test.expired)
			})
			b.sleep(time.Second)
			check(test.set(c, deadline(test.to)))
			b.sleep(2 * time.Hour)
			check(c.Close())
			check(g.Wait())
		})
	}
}

// A writer that waits for its turn must not depend on what arrives.
func TestMemoryWritersTakeTurns(t *testing.T) {
	t.Parallel()
	for range 20 {
		onMemory(t, func(b *bench) {
			near, far := b.pair("orders")
			var g Group
			g.Go(func() { must(near.Write(flood[:window+1])) })
			b.sleep(time.Second)
			g.Go(func() { must(near.Write(flood[:1])) })
			b.sleep(time.Second)
			if n := must(far.Read(make([]byte, window))); n != window {
				t.Errorf("read %d, want the window of %d", n, window)
			}
			check(g.Wait())
		})
	}
}

func TestMemoryCloseEndsDial(t *testing.T) {
	t.Parallel()
	onMemory(t, func(b *bench) {
		there, _ := b.latencies()
		must(b.Listen("orders"))
		var g Group
		g.Go(func() {
			_, err := b.Dial(context.Background(), "orders", "op-1")
			b.wantErr("dial", err, net.ErrClosed)
		})
		b.sleep(there + 1)
		check(b.Close())
		check(g.Wait())
	})
}

func TestMemoryReadTakesWhatHasArrived(t *testing.T) {
	t.Parallel()
	onMemory(t, func(b *bench) {
		there, _ := b.latencies()
		near, far := b.pair("orders")
		for _, s := range []string{"a", "b", "c"} {
			write(near, s)
		}
		b.sleep(time.Nanosecond)
		write(near, "d")
		buf := make([]byte, 10)
		for _, want := range []string{"abc", "d"} {
			if n := must(far.Read(buf)); string(buf[:n]) != want {
				t.Errorf("read %q, want %q", buf[:n], want)
			}
		}
		write(near, "e")
		b.sleep(time.Nanosecond)
		write(near, "f")
		b.sleep(there)
		if n := must(far.Read(buf)); string(buf[:n]) != "ef" {
			t.Errorf("read %q, want %q", buf[:n], "ef")
		}
	})
}

func TestMemoryWindow(t *testing.T) {
	t.Parallel()
	onMemory(t, func(b *bench) {
		there, back := b.latencies()
		near, far := b.pair("orders")
		check(near.SetWriteDeadline(b.clock.Deadline(time.Second)))
		if n, err := near.Write(make([]byte, window+1)); n != window || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("wrote %d, %v; want the window of %d", n, err, window)
		}
		b.wantNow("the window was full", 2*there+back+time.Second)
		check(near.SetWriteDeadline(time.Time{}))
		var g Group
		start := b.clock.Now()
		g.Go(func() {
			must(near.Write(make([]byte, 100)))
			b.wantNow("the window was open again", start+time.Second+back)
		})
		b.sleep(time.Second)
		must(io.ReadFull(far, make([]byte, 100)))
		check(g.Wait())
		b.sleep(there)
		for range 4 {
			must(io.ReadFull(far, make([]byte, window/4)))
		}
		b.sleep(back)
		start = b.clock.Now()
		must(near.Write(flood[:window]))
		b.wantNow("the window was wide open", start)
		check(near.Close())
		if got, want := must(io.Copy(io.Discard, far)), int64(window); got != want {
			t.Errorf("read %d, want %d", got, want)
		}
	})
}

// A write that reaches a closed end succeeds; the reset that it draws takes a
// round trip.
func TestMemoryWriteAfterClose(t *testing.T) {
	t.Parallel()
	onMemory(t, func(b *bench) {
		there, back := b.latencies()
		near, far := b.pair("orders")
		check(far.Close())
		b.wantReadErr(near, io.EOF)
		write(near, "first")
		b.sleep(there + back - 1)
		write(near, "before the reset is here")
		b.sleep(1)
		_, err := near.Write([]byte("then"))
		b.wantErr("write", err, syscall.EPIPE)
	})
}

// What was on its way to an end when that closed draws a reset, too.
func TestMemoryCloseWithDataInFlight(t *testing.T) {
	t.Parallel()
	onMemory(t, func(b *bench) {
		there, back := b.latencies()
		near, far := b.pair("orders")
		write(near, "in flight")
		check(far.Close())
		b.wantReadErr(near, io.EOF)
		b.wantNow("end read", 2*there+back+closing(back))
		if there > back {
			b.sleep(there - back)
		}
		b.sleep(back)
		_, err := near.Write([]byte("x"))
		b.wantErr("write", err, syscall.EPIPE)
	})
}

func TestMemorySpeed(t *testing.T) {
	t.Parallel()
	inBubble(t, func() {
		clock := NewWall(calendar, 0.5)
		m := NewMemory(clock, 1)
		if got, want := m.latency("op-1", "there"), 2*NewMemory(NewVirtual(calendar), 1).latency("op-1", "there"); got != want {
			t.Errorf("latency at half the speed is %v, want %v", got, want)
		}
	})
}

// Not parallel: the goroutines of other tests would look like leaks.
func TestNetworksLeaveNothingBehind(t *testing.T) {
	clock := NewWall(calendar, 1)
	for _, n := range []Network{NewMemory(clock, 1), NewLoopback()} {
		func() {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			b := &bench{t, n, clock}
			l := must(b.Listen("orders"))
			near, far := b.connect(l, "orders")
			b.Blackhole("nowhere")
			var g Group
			g.Go(func() { l.Accept() })
			g.Go(func() { near.Read(make([]byte, 1)) })
			g.Go(func() { far.Write(flood) })
			g.Go(func() { b.Dial(context.Background(), "nowhere", "op-2") })
			check(b.Close())
			check(g.Wait())
		}()
	}
}

func TestMemoryCloseTakesNoTime(t *testing.T) {
	t.Parallel()
	onMemory(t, func(b *bench) {
		l := must(b.Listen("orders"))
		var g Group
		for i := range 20 {
			g.Go(func() {
				c := must(b.Dial(context.Background(), "orders", fmt.Sprint(i)))
				_, err := io.Copy(io.Discard, c)
				b.wantErr("read", err, net.ErrClosed)
			})
			g.Go(func() {
				c := must(l.Accept())
				must(c.Write(flood[:window]))
				b.wantReadErr(c, net.ErrClosed)
			})
		}
		b.sleep(time.Second)
		start := b.clock.Now()
		check(b.Close())
		check(g.Wait())
		b.wantNow("all ended", start)
	})
}
