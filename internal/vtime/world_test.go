package vtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A world is a number of connections, each with two ends that do as they are
// told. It is drawn at random and then played.
type world struct {
	Seed  int64
	Conns []worldConn
}

type worldConn struct {
	Start     time.Duration // of the dial
	Near, Far []step
}

// A step is something that an end does.
type step struct {
	Do    string
	Bytes int           // to write, or to read at most
	Limit time.Duration // the deadline of a read or write, or how long to sleep
}

func drawWorld(t *rapid.T) world {
	limit := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.OneOf(
			rapid.Int64Range(0, int64(2*maxLatency)),
			rapid.Int64Range(0, int64(time.Second)),
		).Draw(t, "ns"))
	})
	steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{
			Do: rapid.SampledFrom([]string{
				"write", "read", "write and read", "drain", "sleep", "close write", "close", "reset",
			}).Draw(t, "do"),
			Bytes: rapid.OneOf(rapid.IntRange(0, 100), rapid.IntRange(0, 2*window)).Draw(t, "bytes"),
			Limit: limit.Draw(t, "limit"),
		}
	}), 0, 12)
	return world{
		Seed: rapid.Int64().Draw(t, "seed"),
		Conns: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) worldConn {
			return worldConn{
				Start: limit.Draw(t, "start"),
				Near:  steps.Draw(t, "near"),
				Far:   steps.Draw(t, "far"),
			}
		}), 1, 5).Draw(t, "conns"),
	}
}

// A stream is what one end sends to the other, as it was seen at one of them.
type stream struct {
	data  bytes.Buffer
	marks []mark
	err   error // the last
}

// A mark says how long a stream was at some time.
type mark struct {
	at  time.Duration
	len int
}

func (s *stream) add(at time.Duration, b []byte, err error) {
	s.data.Write(b)
	s.marks = append(s.marks, mark{at, s.data.Len()})
	s.err = err
}

// An end is one end of a connection that is played. Its reads and writes may
// go on at once, so each has a name in the journal.
type end struct {
	net.Conn
	name      string
	clock     *Clock
	journal   *journal
	sent, got stream
}

// tide is what every end writes, over and over. Its period is a prime, so that
// no part of it can be taken for another after an error by a round number.
var tide = bytes.Repeat(pattern(tidePeriod, 5), 2*window/tidePeriod+2)

const tidePeriod = 65521

func (e *end) note(who, format string, args ...any) {
	e.journal.add(entry{e.clock.Now(), e.name + who, fmt.Sprintf(format, args...)})
}

func (e *end) write(s step) {
	e.SetWriteDeadline(e.clock.Deadline(s.Limit))
	b := tide[e.sent.data.Len()%tidePeriod:][:s.Bytes]
	start := e.clock.Now()
	n, err := e.Conn.Write(b)
	e.sent.add(start, b[:n], err)
	e.note(" write", "%d of %d: %v", n, len(b), err)
}

func (e *end) read(s step) error {
	e.SetReadDeadline(e.clock.Deadline(s.Limit))
	b := make([]byte, max(1, s.Bytes))
	n, err := e.Conn.Read(b)
	e.got.add(e.clock.Now(), b[:n], err)
	e.note(" read", "%d of %d: %v", n, len(b), err)
	return err
}

func (e *end) play(s step) {
	switch s.Do {
	case "write":
		e.write(s)
	case "read":
		e.read(s)
	case "write and read":
		var g Group
		g.Go(func() { e.write(s) })
		e.read(s)
		check(g.Wait())
	case "drain":
		s.Bytes = max(s.Bytes, 4<<10)
		for e.read(s) == nil {
		}
	case "sleep":
		check(e.clock.Sleep(context.Background(), s.Limit))
	case "close write":
		e.note("", "close write: %v", e.Conn.(*conn).CloseWrite())
	case "close":
		e.note("", "close: %v", e.Conn.Close())
	case "reset":
		e.note("", "reset: %v", errors.Join(e.Conn.(*conn).SetLinger(0), e.Conn.Close()))
	}
}

// played is a connection after the end of its world.
type played struct {
	near, far   *end
	there, back time.Duration
}

// play plays a world and returns its journal and its connections.
func (w world) play() (entries []entry, conns []*played, err error) {
	err = Bubble(func() {
		clock := NewVirtual(calendar)
		m := NewMemory(clock, w.Seed)
		l := must(m.Listen("orders"))
		var j journal
		var g Group
		byAddr := make(map[string]*played)
		for i, c := range w.Conns {
			id := fmt.Sprintf("op-%d", i)
			p := &played{
				near:  &end{name: id + " near", clock: clock, journal: &j},
				far:   &end{name: id + " far", clock: clock, journal: &j},
				there: m.latency(id, "there"),
				back:  m.latency(id, "back"),
			}
			conns = append(conns, p)
			byAddr[clientAddr(id).String()] = p
			g.Go(func() {
				check(clock.Sleep(context.Background(), c.Start))
				p.near.Conn = must(m.Dial(context.Background(), "orders", id))
				p.near.note("", "dialled")
				for _, s := range c.Near {
					p.near.play(s)
				}
				p.near.note("", "close at the end: %v", p.near.Conn.Close())
			})
		}
		for range w.Conns {
			c := must(l.Accept())
			p := byAddr[c.RemoteAddr().String()]
			p.far.Conn = c
			p.far.note("", "accepted")
			for i := range conns {
				if conns[i] == p {
					g.Go(func() {
						for _, s := range w.Conns[i].Far {
							p.far.play(s)
						}
						p.far.note("", "close at the end: %v", p.far.Conn.Close())
					})
				}
			}
		}
		check(g.Wait())
		if m.Busy() {
			panic("busy when all connections are closed")
		}
		check(m.Close())
		entries = j.sorted()
	})
	return entries, conns, err
}

// Whatever happens on a connection, and whatever happens beside it.
func TestMemoryWorlds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		entries, conns, err := w.play()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range conns {
			checkStream(t, c.near, c.far, c.there)
			checkStream(t, c.far, c.near, c.back)
		}
		again, _, err := w.play()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(entries, again); diff != "" {
			t.Fatalf("journal of a second run (-first +second):\n%s", diff)
		}
	})
}

// checkStream checks what went from one end to the other.
func checkStream(t *rapid.T, from, to *end, latency time.Duration) {
	sent, got := from.sent.data.Bytes(), to.got.data.Bytes()
	if !bytes.HasPrefix(sent, got) {
		t.Fatalf("%s has read %d bytes that are not the first of the %d written", to.name, len(got), len(sent))
	}
	for _, s := range []*stream{&from.sent, &to.got} {
		for i := 1; i < len(s.marks); i++ {
			if s.marks[i].at < s.marks[i-1].at {
				t.Fatalf("%s: time goes back from %v to %v", from.name, s.marks[i-1].at, s.marks[i].at)
			}
		}
	}
	// No byte is read before it can have arrived.
	for _, r := range to.got.marks {
		for _, s := range from.sent.marks {
			if s.len >= r.len {
				if r.len > 0 && r.at < s.at+latency {
					t.Fatalf("%s has read byte %d at %v, written not before %v", to.name, r.len, r.at, s.at)
				}
				break
			}
		}
	}
	// An end of the stream is where the writer has ended it.
	if errors.Is(to.got.err, io.EOF) && len(got) != len(sent) {
		t.Fatalf("%s has read %d bytes to the end, of %d written", to.name, len(got), len(sent))
	}
	for _, err := range []error{from.sent.err, to.got.err} {
		switch {
		case err == nil, err == io.EOF:
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, net.ErrClosed):
		case errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET):
		default:
			t.Fatalf("%s to %s: unexpected error %v", from.name, to.name, err)
		}
	}
}
