package caller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"retrylab/caller/policy"
	"retrylab/internal/lab"
	"retrylab/internal/vtime"
)

// ended is how a send ended.
type ended struct {
	Failure policy.Failure
	Stage   string // of the time-out that was recorded
	InBody  bool
	Reused  bool
}

// end performs an operation without layers and says how its one send ended. With held, every
// connection of the pool is in use.
func (b *bench) end(c Config, held bool) ended {
	caller := b.caller(c, Habits{})
	defer caller.Close()
	if held {
		caller.transport.pool <- struct{}{}
	}
	trip := Trip{Operation: "op-1", Path: "op-1", Body: policy.Buffered}
	resp, err := caller.Forward(context.Background(), trip, http.MethodPost, []byte("order"), nil)
	if err == nil {
		_, err = readAll(resp.Body)
	}
	if inUse := len(caller.transport.pool); held && inUse != 1 {
		panic(fmt.Sprintf("%d connections of the pool are in use, want 1", inUse))
	}
	if err == nil {
		return ended{}
	}
	e := asError(err)
	out := ended{Failure: e.Failure, InBody: e.InBody, Reused: e.Reused}
	for _, event := range b.events {
		if event.Kind == lab.Timeout {
			out.Stage = event.Detail
		}
	}
	return out
}

// TestStages has every limit of a send fire where the server, or the network, keeps silent.
func TestStages(t *testing.T) {
	t.Parallel()
	silent := func(x *exchange) { x.hang() }
	headersOnly := func(x *exchange) {
		x.raw("HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\nsome")
		x.hang()
	}
	tests := []struct {
		name     string
		timeouts Timeouts
		script   func(*exchange)
		dark     bool // the host answers no connection
		held     bool // the one connection of the pool is in use
		want     ended
		at       time.Duration
		journal  []string
	}{
		{
			name: "acquire", timeouts: Timeouts{Acquire: 3 * time.Second, Connect: 2 * time.Second, Read: 5 * time.Second}, held: true,
			want: ended{Failure: policy.AcquireTimeout, Stage: "acquire"}, at: 3 * time.Second,
			journal: []string{"send to i1", "timeout: acquire"},
		},
		{
			name: "attempt while acquiring", timeouts: Timeouts{Acquire: 3 * time.Second, Attempt: 2 * time.Second}, held: true,
			want: ended{Failure: policy.AttemptTimeout, Stage: "attempt"}, at: 2 * time.Second,
			journal: []string{"send to i1", "timeout: attempt"},
		},
		{
			name: "total while acquiring", timeouts: Timeouts{Acquire: 3 * time.Second, Total: time.Second}, held: true,
			want: ended{Failure: policy.TotalTimeout, Stage: "total"}, at: time.Second,
			journal: []string{"send to i1", "timeout: total"},
		},
		{
			name: "connect", timeouts: Timeouts{Connect: 2 * time.Second, Read: 5 * time.Second}, dark: true,
			want: ended{Failure: policy.ConnectTimeout, Stage: "connect"}, at: 2 * time.Second,
			journal: []string{"send to i1", "timeout: connect"},
		},
		{
			name: "attempt while connecting", timeouts: Timeouts{Connect: 2 * time.Second, Attempt: time.Second}, dark: true,
			want: ended{Failure: policy.AttemptTimeout, Stage: "attempt"}, at: time.Second,
			journal: []string{"send to i1", "timeout: attempt"},
		},
		{
			name: "total while connecting", timeouts: Timeouts{Connect: 2 * time.Second, Total: time.Second}, dark: true,
			want: ended{Failure: policy.TotalTimeout, Stage: "total"}, at: time.Second,
			journal: []string{"send to i1", "timeout: total"},
		},
		{
			name: "read", timeouts: Timeouts{Read: 5 * time.Second}, script: silent,
			want: ended{Failure: policy.ReadTimeout, Stage: "read"}, at: 5 * time.Second,
			journal: []string{"send to i1", "timeout: read"},
		},
		{
			name: "read in the body", timeouts: Timeouts{Read: 5 * time.Second}, script: headersOnly,
			want: ended{Failure: policy.ReadTimeout, Stage: "read", InBody: true}, at: 5 * time.Second,
			journal: []string{"send to i1", "reply 201", "timeout: read"},
		},
		{
			name: "attempt", timeouts: Timeouts{Read: 5 * time.Second, Attempt: 4 * time.Second}, script: silent,
			want: ended{Failure: policy.AttemptTimeout, Stage: "attempt"}, at: 4 * time.Second,
			journal: []string{"send to i1", "timeout: attempt"},
		},
		{
			name: "attempt in the body", timeouts: Timeouts{Read: 5 * time.Second, Attempt: 4 * time.Second}, script: headersOnly,
			want: ended{Failure: policy.AttemptTimeout, Stage: "attempt", InBody: true}, at: 4 * time.Second,
			journal: []string{"send to i1", "reply 201", "timeout: attempt"},
		},
		{
			name: "total", timeouts: Timeouts{Read: 5 * time.Second, Attempt: 4 * time.Second, Total: 3 * time.Second}, script: silent,
			want: ended{Failure: policy.TotalTimeout, Stage: "total"}, at: 3 * time.Second,
			journal: []string{"send to i1", "timeout: total"},
		},
		{
			name: "total in the body", timeouts: Timeouts{Read: 5 * time.Second, Total: 3 * time.Second}, script: headersOnly,
			want: ended{Failure: policy.TotalTimeout, Stage: "total", InBody: true}, at: 3 * time.Second,
			journal: []string{"send to i1", "reply 201", "timeout: total"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			on := onBoth
			if tt.want.InBody {
				// In real time the limit could be over before the headers come.
				on = inMemory
			}
			on(t, func(t *testing.T, b *bench) {
				b.script = tt.script
				c := Config{Timeouts: tt.timeouts}
				if tt.dark {
					b.network.Blackhole("i1")
				}
				if tt.held {
					c.Pool = 1
				}
				got := b.end(c, tt.held)
				at := b.clock.Now()
				diff(t, "end", tt.want, got)
				diff(t, "journal", tt.journal, b.journal())
				if b.clock.Virtual() {
					diff(t, "at", tt.at, at.Round(time.Millisecond))
				} else if at < tt.at {
					t.Errorf("ended after %s, want %s at least", at, tt.at)
				}
			})
		})
	}
}

// TestFailures has the connection break in every way.
func TestFailures(t *testing.T) {
	t.Parallel()
	half := "HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\nhalf"
	tests := []struct {
		name    string
		host    string
		script  func(*exchange)
		want    ended
		journal string // the last event
	}{
		{"refused", "nobody", nil, ended{Failure: policy.Refused}, "failure: refused"},
		{"eof", "", func(x *exchange) { x.close() }, ended{Failure: policy.EOF}, "failure: eof"},
		{"reset", "", func(x *exchange) { x.reset() }, ended{Failure: policy.Reset}, "failure: reset"},
		{"eof in the status line", "", func(x *exchange) { x.raw("HTTP/1.1 20"); x.close() }, ended{Failure: policy.EOF}, "failure: eof"},
		{"eof in the headers", "", func(x *exchange) { x.raw("HTTP/1.1 201 Created\r\nContent-Le"); x.close() }, ended{Failure: policy.EOF}, "failure: eof"},
		{"eof in the body", "", func(x *exchange) { x.raw(half); x.close() }, ended{Failure: policy.EOF, InBody: true}, "failure: eof"},
		{"eof in chunks", "", func(x *exchange) {
			x.raw("HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")
			x.close()
		}, ended{Failure: policy.EOF, InBody: true}, "failure: eof"},
		{"malformed", "", func(x *exchange) { x.raw("good day to you\r\n\r\n"); x.hang() }, ended{Failure: policy.Malformed}, "failure: malformed"},
		{"malformed headers", "", func(x *exchange) { x.raw("HTTP/1.1 200 OK\r\nno header\r\n\r\n"); x.hang() }, ended{Failure: policy.Malformed}, "failure: malformed"},
		{"malformed chunks", "", func(x *exchange) {
			x.raw("HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\nmany\r\n")
			x.hang()
		}, ended{Failure: policy.Malformed, InBody: true}, "failure: malformed"},
		{"a whole answer", "", ok, ended{}, "reply 201"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, b *bench) {
				b.script = tt.script
				c := Config{}
				if tt.host != "" {
					c.Targets = []string{tt.host}
				}
				diff(t, "end", tt.want, b.end(c, false))
				journal := b.journal()
				diff(t, "first event", "send to "+b.config(c).Targets[0], journal[0])
				diff(t, "last event", tt.journal, journal[len(journal)-1])
				arrived := 1
				if tt.host != "" {
					arrived = 0
				}
				diff(t, "arrivals", arrived, len(b.arrived()))
			})
		})
	}
}

// TestResetInTheBody is in memory only: TCP may drop what was sent before a reset.
func TestResetInTheBody(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		b.script = func(x *exchange) {
			x.raw("HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\nhalf")
			x.pause(time.Second)
			x.reset()
		}
		diff(t, "end", ended{Failure: policy.Reset, InBody: true}, b.end(Config{}, false))
		diff(t, "events", []string{"0s send to i1", "0s reply 201", "1s failure: reset"}, b.timed())
	})
}

// TestFailureOnAReusedConnection says so.
func TestFailureOnAReusedConnection(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		script func(*exchange)
		read   time.Duration
		want   ended
	}{
		{"eof", func(x *exchange) { x.close() }, 0, ended{Failure: policy.EOF, Reused: true}},
		{"reset", func(x *exchange) { x.reset() }, 0, ended{Failure: policy.Reset, Reused: true}},
		{"read time-out", func(x *exchange) { x.hang() }, 5 * time.Second, ended{Failure: policy.ReadTimeout, Stage: "read", Reused: true}},
		{"eof in the body", func(x *exchange) { x.raw("HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\nhalf"); x.close() }, 0, ended{Failure: policy.EOF, InBody: true, Reused: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, b *bench) {
				b.script = tt.script
				diff(t, "end", tt.want, b.end(Config{Idle: 1, Timeouts: Timeouts{Read: tt.read}}, false))
			})
		})
	}
}

// TestReadTimeoutIsPerRead has an answer come in pieces, each in time: the read time-out never
// fires, the attempt's does.
func TestReadTimeoutIsPerRead(t *testing.T) {
	t.Parallel()
	dribble := func(x *exchange) {
		text := "HTTP/1.1 201 Created\r\nContent-Length: 30\r\n\r\n" + created(1)
		for _, piece := range []string{text[:20], text[20:50], text[50:60], text[60:]} {
			x.pause(4 * time.Second)
			x.raw(piece)
		}
	}
	for _, tt := range []struct {
		name     string
		timeouts Timeouts
		want     ended
		at       time.Duration
	}{
		{"read", Timeouts{Read: 5 * time.Second}, ended{}, 16 * time.Second},
		{"read, too short for a piece", Timeouts{Read: 3 * time.Second}, ended{Failure: policy.ReadTimeout, Stage: "read"}, 3 * time.Second},
		{"attempt, in the headers", Timeouts{Read: 5 * time.Second, Attempt: 6 * time.Second}, ended{Failure: policy.AttemptTimeout, Stage: "attempt"}, 6 * time.Second},
		{"attempt, in the body", Timeouts{Read: 5 * time.Second, Attempt: 10 * time.Second}, ended{Failure: policy.AttemptTimeout, Stage: "attempt", InBody: true}, 10 * time.Second},
		{"total, in the body", Timeouts{Read: 5 * time.Second, Total: 13 * time.Second}, ended{Failure: policy.TotalTimeout, Stage: "total", InBody: true}, 13 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bench) {
				b.script = dribble
				got := b.end(Config{Timeouts: tt.timeouts}, false)
				diff(t, "end", tt.want, got)
				diff(t, "at", tt.at, b.clock.Now().Round(time.Millisecond))
			})
		})
	}
}

// TestLimitsOfOneInstant has several limits end at the same time. Their timers fire in an order
// that nobody chose; what is recorded must not depend on it: the outermost counts.
func TestLimitsOfOneInstant(t *testing.T) {
	t.Parallel()
	all := Timeouts{Acquire: 5 * time.Second, Connect: 5 * time.Second, Read: 5 * time.Second, Attempt: 5 * time.Second, Total: 5 * time.Second}
	withoutTotal := all
	withoutTotal.Total = 0
	for _, tt := range []struct {
		name     string
		timeouts Timeouts
		held     bool
		dark     bool
		idle     int
		want     ended
	}{
		{"acquire, attempt and total", all, true, false, 0, ended{Failure: policy.TotalTimeout, Stage: "total"}},
		{"acquire and attempt", withoutTotal, true, false, 0, ended{Failure: policy.AttemptTimeout, Stage: "attempt"}},
		{"connect, attempt and total", all, false, true, 0, ended{Failure: policy.TotalTimeout, Stage: "total"}},
		{"connect and attempt", withoutTotal, false, true, 0, ended{Failure: policy.AttemptTimeout, Stage: "attempt"}},
		{"read, attempt and total", all, false, false, 1, ended{Failure: policy.TotalTimeout, Stage: "total", Reused: true}},
		{"read and attempt", withoutTotal, false, false, 1, ended{Failure: policy.AttemptTimeout, Stage: "attempt", Reused: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for range 20 {
				inBubble(t, func(b *bench) {
					b.script = func(x *exchange) { x.hang() }
					if tt.dark {
						b.network.Blackhole("i1")
					}
					c := Config{Timeouts: tt.timeouts, Idle: tt.idle}
					if tt.held {
						c.Pool = 1
					}
					diff(t, "end", tt.want, b.end(c, tt.held))
				})
			}
		})
	}
}

// TestNothingIsSentWithoutTime has a wait end at the instant of the total: there is no time left
// for another try, although a send on an idle connection takes none to begin.
func TestNothingIsSentWithoutTime(t *testing.T) {
	t.Parallel()
	for range 20 {
		inBubble(t, func(b *bench) {
			b.script = func(x *exchange) { x.hang() }
			out := b.place(Config{
				Idle:     2,
				Timeouts: Timeouts{Attempt: time.Second, Total: 3 * time.Second},
				Layers:   []policy.Layer{plain(2, 2*time.Second)},
			}, Habits{})
			diff(t, "outcome", lab.Outcome{Operation: "op-1", Belief: lab.Unknown, Reason: "total timeout", DoneAt: 3 * time.Second}, out)
			diff(t, "arrivals", 1, len(b.arrived()))
			diff(t, "events", []string{
				"0s send plain.1 to i1", "1s timeout plain.1: attempt", "1s retry plain.1 in 2s", "3s timeout plain.1: total",
			}, b.timed())
		})
	}
}

// TestNothingIsSentTwice counts at the server what net/http makes of one send.
func TestNothingIsSentTwice(t *testing.T) {
	t.Parallel()
	for _, script := range []struct {
		name string
		do   func(*exchange)
	}{
		{"close", func(x *exchange) { x.close() }},
		{"reset", func(x *exchange) { x.reset() }},
		{"answer", ok},
		{"503", func(x *exchange) { x.reply(503, "", "Retry-After: 0") }},
		{"408 and close", func(x *exchange) { x.reply(408, "", "Connection: close"); x.close() }},
	} {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
			for _, key := range []string{"none", "operation"} {
				for _, idle := range []int{0, 1, 3} {
					t.Run(fmt.Sprintf("%s/%s/key %s/%d idle", script.name, method, key, idle), func(t *testing.T) {
						onBoth(t, func(t *testing.T, b *bench) {
							b.script = script.do
							b.place(Config{Idle: idle}, Habits{Method: method, Key: key})
							arrived := b.arrived()
							if len(arrived) != 1 {
								t.Fatalf("%d requests arrived, want 1", len(arrived))
							}
							diff(t, "reused", idle > 0, arrived[0].served > 0)
							_, keyed := arrived[0].request.Header[lab.HeaderKey]
							diff(t, "key", key != "none", keyed)
						})
					})
				}
			}
		}
	}
}

// TestIdleConnections are used first, those to the host that is asked for, and the last one first.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		b.script = ok
		caller := b.caller(Config{Targets: hosts, Idle: 4}, Habits{}) // two to i1, one to each of the others
		var idle []string
		for _, c := range caller.transport.idle["i1"] {
			idle = append(idle, c.LocalAddr().String())
		}
		for i, host := range []string{"i1", "i2", "i2", "i1", "i1", "i3"} {
			trip := Trip{Operation: "op-1", Path: fmt.Sprint("send-", i), Targets: []string{host}, payload: forwarded{}, left: &atomic.Bool{}}
			req := must(http.NewRequestWithContext(trip.with(context.Background()), http.MethodGet, "http://"+host+lab.OrderPath, nil))
			must(readAll(must(caller.transport.RoundTrip(req)).Body))
		}
		var got []string
		for _, x := range b.arrived() {
			connection := "new"
			if i := slices.Index(idle, x.RemoteAddr().String()); i >= 0 {
				connection = fmt.Sprint("idle ", i+1)
			} else if x.served > 0 {
				connection = "idle"
			}
			got = append(got, x.host+" "+connection)
		}
		diff(t, "connections", []string{"i1 idle 2", "i2 idle", "i2 new", "i1 idle 1", "i1 new", "i3 idle"}, got)
		caller.Close()
	})
}

// TestWarm opens connections that nothing uses: closing the chain closes them.
func TestWarm(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		caller := b.caller(Config{Targets: hosts[:2], Idle: 3}, Habits{})
		if !b.network.Busy() {
			t.Error("no connection is open")
		}
		caller.Close()
		caller.Close()
		if b.clock.Virtual() {
			b.clock.Sleep(context.Background(), time.Second)
			if b.network.Busy() {
				t.Error("a connection is still open")
			}
		}
		diff(t, "arrivals", 0, len(b.arrived()))
		diff(t, "events", 0, len(b.journal()))
	})
	onBoth(t, func(t *testing.T, b *bench) {
		caller := New(b.config(Config{Targets: []string{"i1", "nobody"}, Idle: 2}), Habits{})
		err := caller.Warm(context.Background())
		if err == nil || !strings.HasPrefix(err.Error(), "open an idle connection to nobody: ") {
			t.Errorf("warming up to nobody: %v", err)
		}
		caller.Close()
	})
}

func TestPool(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pool   int
		starts []time.Duration // when the requests arrive: each takes 12 s
	}{
		{0, []time.Duration{0, 0, 0, 0}},
		{4, []time.Duration{0, 0, 0, 0}},
		{3, []time.Duration{0, 0, 0, 12 * time.Second}},
		{1, []time.Duration{0, 12 * time.Second, 24 * time.Second, 36 * time.Second}},
	} {
		t.Run(fmt.Sprintf("pool of %d", tt.pool), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bench) {
				b.script = func(x *exchange) { x.pause(12 * time.Second); ok(x) }
				caller := b.caller(Config{Pool: tt.pool}, Habits{})
				outcomes := b.operations(caller, 4)
				var starts []time.Duration
				for _, x := range b.arrived() {
					starts = append(starts, x.at)
				}
				diff(t, "arrivals", tt.starts, starts)
				for _, o := range outcomes {
					diff(t, "belief", lab.OK, o.Belief)
				}
				diff(t, "tokens", 0, len(caller.transport.pool))
			})
		})
	}
}

// operations performs so many operations side by side, a microsecond apart.
func (b *bench) operations(caller *Caller, n int) []lab.Outcome {
	outcomes := make([]lab.Outcome, n)
	var all sync.WaitGroup
	for i := range n {
		all.Add(1)
		b.group.Go(func() {
			defer all.Done()
			b.clock.Sleep(context.Background(), time.Duration(i)*time.Microsecond)
			outcomes[i] = caller.Place(context.Background(), Intent{Operation: fmt.Sprintf("op-%d", i+1)})
		})
	}
	all.Wait()
	return outcomes
}

// TestPoolExhausted is the catalogue's: one connection, three operations.
func TestPoolExhausted(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		b.script = func(x *exchange) { x.pause(12 * time.Second); ok(x) }
		caller := b.caller(Config{Pool: 1, Timeouts: Timeouts{Acquire: 3 * time.Second, Read: 15 * time.Second}}, Habits{})
		var got []string
		for _, o := range b.operations(caller, 3) {
			got = append(got, fmt.Sprintf("%s %s at %s", o.Belief, o.Reason, o.DoneAt.Round(time.Millisecond)))
		}
		diff(t, "outcomes", []string{"ok 201 at 12s", "failed acquire timeout at 3s", "failed acquire timeout at 3s"}, got)
		diff(t, "arrivals", 1, len(b.arrived()))
		diff(t, "sends", 3, strings.Count(strings.Join(b.journal(), "\n"), "send to"))
	})
}

// TestPoolTokens makes sure that a send gives its connection back, whatever becomes of it.
func TestPoolTokens(t *testing.T) {
	t.Parallel()
	timeouts := Timeouts{Acquire: time.Second, Connect: time.Second, Read: 2 * time.Second, Attempt: 8 * time.Second, Total: 30 * time.Second}
	for _, tt := range []struct {
		name   string
		host   string
		layers []policy.Layer
		script func(*exchange)
	}{
		{"answer", "i1", nil, ok},
		{"status", "i1", nil, func(x *exchange) { x.reply(503, "no") }},
		{"refused", "nobody", nil, nil},
		{"blackhole", "i3", nil, nil},
		{"eof", "i1", nil, func(x *exchange) { x.close() }},
		{"read time-out", "i1", nil, func(x *exchange) { x.hang() }},
		{"read time-out in the body", "i1", nil, func(x *exchange) { x.raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"); x.hang() }},
		{"eof in the body", "i1", nil, func(x *exchange) { x.raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"); x.close() }},
		{"status, tried again", "i1", []policy.Layer{retry(3)}, func(x *exchange) { x.reply(503, "no") }},
		{"status with a body that never ends, tried again", "i1", []policy.Layer{layerOf(policy.Settings{Preset: "httpclient5"})}, func(x *exchange) {
			x.raw("HTTP/1.1 503 no\r\nContent-Length: 9\r\n\r\n")
			x.hang()
		}},
		{"eof, tried again", "i1", []policy.Layer{retry(3)}, func(x *exchange) { x.close() }},
		{"eof in the body, tried again", "i1", []policy.Layer{retry(3)}, func(x *exchange) { x.raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"); x.close() }},
		{"total during a wait", "i1", []policy.Layer{plain(3, time.Minute)}, func(x *exchange) { x.close() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bench) {
				b.network.Blackhole("i3")
				b.script = tt.script
				caller := b.caller(Config{Pool: 1, Targets: []string{tt.host}, Timeouts: timeouts, Layers: tt.layers}, Habits{})
				for range 3 {
					out := caller.Place(context.Background(), Intent{Operation: "op-1"})
					if out.Reason == "acquire timeout" {
						t.Error("no connection is left in the pool")
					}
				}
				diff(t, "connections in use", 0, len(caller.transport.pool))
				b.clock.Sleep(context.Background(), time.Second)
				if b.network.Busy() {
					t.Error("a connection is still open")
				}
			})
		})
	}
}

// TestBodies is what the server sees of each kind of body.
func TestBodies(t *testing.T) {
	t.Parallel()
	const json, query = `{"item":"book","amount_minor":5000}`, "amount_minor=5000&item=book"
	for _, tt := range []struct {
		body   policy.Body
		method string
		length int64
		coding []string
		query  string
		text   string
	}{
		{policy.NoBody, "GET", 0, nil, query, ""},
		{policy.NoBody, "POST", 0, nil, query, ""},
		{policy.Buffered, "POST", int64(len(json)), nil, "", json},
		{policy.Fixed, "POST", int64(len(json)), nil, "", json},
		{policy.Chunked, "POST", -1, []string{"chunked"}, "", json},
		{policy.Chunked, "PUT", -1, []string{"chunked"}, "", json},
	} {
		t.Run(fmt.Sprintf("%s %s", tt.method, tt.body), func(t *testing.T) {
			onBoth(t, func(t *testing.T, b *bench) {
				b.script = ok
				out := b.place(Config{}, Habits{Method: tt.method, Body: tt.body})
				diff(t, "belief", lab.OK, out.Belief)
				r := b.arrived()[0].request
				diff(t, "method", tt.method, r.Method)
				diff(t, "Connection: close", true, r.Close)
				diff(t, "Content-Length", tt.length, r.ContentLength)
				diff(t, "Transfer-Encoding", tt.coding, r.TransferEncoding)
				diff(t, "path", "/orders", r.URL.Path)
				diff(t, "query", tt.query, r.URL.RawQuery)
				diff(t, "body", tt.text, b.arrived()[0].body)
				diff(t, "Host", "i1", r.Host)
				diff(t, "operation", "op-1", r.Header.Get(lab.HeaderOperation))
				diff(t, "send", "op-1", r.Header.Get(lab.HeaderSend))
			})
		})
	}
}

// TestForward is what a hop sends on: what it was given.
func TestForward(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		b.script = func(x *exchange) {
			if x.number == 1 {
				x.close()
				return
			}
			x.reply(207, `["many"]`, "Retry-After: 7")
		}
		chain := NewChain(b.config(Config{Layers: []policy.Layer{retry(2)}}))
		trip := Trip{Operation: "op-7", Path: "op-7/feign-retryer.2", Body: policy.Buffered}
		resp := must(chain.Forward(context.Background(), trip, http.MethodPatch, []byte("as it came"), func(path string) []string { return []string{"k1", path} }))
		diff(t, "answer", `["many"]`, string(must(readAll(resp.Body))))
		diff(t, "Retry-After", "7", resp.Header.Get("Retry-After"))
		for i, x := range b.arrived() {
			diff(t, "method", http.MethodPatch, x.request.Method)
			diff(t, "body", "as it came", x.body)
			diff(t, "keys", []string{"k1", x.request.Header.Get(lab.HeaderSend)}, x.request.Header[lab.HeaderKey])
			diff(t, "operation", "op-7", x.request.Header.Get(lab.HeaderOperation))
			diff(t, "send", fmt.Sprintf("op-7/feign-retryer.2/retry.%d", i+1), x.request.Header.Get(lab.HeaderSend))
		}
		chain.Close()
	})
}

// TestGone is a client of a hop that leaves: what the hop has sent on is given up.
func TestGone(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		b.script = func(x *exchange) { x.hang() }
		chain := NewChain(b.config(Config{Targets: hosts[:2], Layers: []policy.Layer{layerOf(policy.Settings{Preset: "nginx"})}}))
		ctx, leave := context.WithCancel(context.Background())
		b.clock.AfterFunc(time.Second, leave)
		trip := Trip{Operation: "op-1", Path: "op-1", Body: policy.NoBody, Gone: func() bool { return ctx.Err() != nil }}
		_, err := chain.Forward(ctx, trip, http.MethodGet, nil, nil)
		e := asError(err)
		diff(t, "failure", policy.TotalTimeout, e.Failure)
		diff(t, "gone", true, e.Gone)
		diff(t, "cause", true, errors.Is(err, context.Canceled))
		diff(t, "events", []string{"0s send nginx.1 to i1", "1s failure nginx.1: cancelled"}, b.timed()[:2])
		diff(t, "arrivals", 1, len(b.arrived()))
	})
}

// TestGoneBefore is a request of somebody who has left already: nothing leaves the host.
func TestGoneBefore(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		b.script = ok
		ctx, leave := context.WithCancel(context.Background())
		leave()
		caller := b.caller(Config{Idle: 1}, Habits{})
		out := caller.Place(ctx, Intent{Operation: "op-1"})
		diff(t, "belief", lab.Failed, out.Belief)
		diff(t, "events", []string{"send to i1", "failure: cancelled"}, b.journal())
		diff(t, "idle connections left", 1, len(caller.transport.idle["i1"]))
		diff(t, "arrivals", 0, len(b.arrived()))
		caller.Close()
	})
}

// leaving is a network whose caller leaves as soon as it is connected.
type leaving struct {
	vtime.Network
	leave context.CancelFunc
}

func (l leaving) Dial(ctx context.Context, host, id string) (net.Conn, error) {
	defer l.leave()
	return l.Network.Dial(ctx, host, id)
}

// TestGoneWhileConnecting makes sure that a connection is closed that net/http never got.
func TestGoneWhileConnecting(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		b.script = ok
		ctx, leave := context.WithCancel(context.Background())
		c := b.config(Config{})
		c.Network = leaving{c.Network, leave}
		chain := NewChain(c)
		_, err := chain.Forward(ctx, Trip{Operation: "op-1", Path: "op-1"}, http.MethodGet, nil, nil)
		diff(t, "gone", true, asError(err).Gone)
		b.clock.Sleep(context.Background(), time.Second)
		if b.network.Busy() {
			t.Error("the connection is still open")
		}
	})
}

// watching is a network that remembers the contexts of its connections.
type watching struct {
	vtime.Network
	contexts *[]context.Context
}

func (w watching) Dial(ctx context.Context, host, id string) (net.Conn, error) {
	*w.contexts = append(*w.contexts, ctx)
	return w.Network.Dial(ctx, host, id)
}

// TestLimitsAreLifted makes sure that no limit outlives what it is set to: its timer would keep all
// of the request in memory until it fires.
func TestLimitsAreLifted(t *testing.T) {
	t.Parallel()
	const long = 1000 * time.Hour
	withTimeout, withTotal := plain(2, time.Second), plain(2, time.Second)
	withTimeout.Timeout, withTotal.Total = long, long
	reading := retry(2, func(s *policy.Settings) { s.Timeout = new(long) })
	for limit, c := range map[string]Config{
		"total":                             {Timeouts: Timeouts{Total: long}},
		"total above a layer":               {Timeouts: Timeouts{Total: long}, Layers: []policy.Layer{plain(2, time.Second)}},
		"attempt":                           {Timeouts: Timeouts{Attempt: long}},
		"attempt below a layer":             {Timeouts: Timeouts{Attempt: long}, Layers: []policy.Layer{plain(2, time.Second)}},
		"connect":                           {Timeouts: Timeouts{Connect: long}},
		"total of a layer":                  {Layers: []policy.Layer{withTotal}},
		"limit of a try":                    {Layers: []policy.Layer{withTimeout}},
		"limit of a try that reads its end": {Layers: []policy.Layer{reading}},
	} {
		for end, script := range map[string]func(*exchange){
			"answer":          ok,
			"status":          func(x *exchange) { x.reply(503, "") },
			"eof":             func(x *exchange) { x.close() },
			"eof in the body": func(x *exchange) { x.raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"); x.close() },
		} {
			t.Run(limit+", "+end, func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(b *bench) {
					b.script = script
					var contexts []context.Context
					c := b.config(c)
					c.Network = watching{c.Network, &contexts}
					caller := New(c, Habits{Method: http.MethodPost, Body: policy.Buffered, Amount: 1})
					caller.Place(context.Background(), Intent{Operation: "op-1"})
					if b.clock.Now() > time.Minute || len(contexts) == 0 {
						t.Errorf("over after %s and %d sends", b.clock.Now(), len(contexts))
					}
					for i, ctx := range contexts {
						if ctx.Err() == nil {
							t.Errorf("a limit of send %d still runs", i+1)
						}
					}
				})
			})
		}
	}
}

// TestErrorOfABody comes once, whoever reads on.
func TestErrorOfABody(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		b.script = func(x *exchange) { x.raw("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"); x.close() }
		chain := NewChain(b.config(Config{}))
		resp := must(chain.Forward(context.Background(), Trip{Operation: "op-1", Path: "op-1"}, http.MethodGet, nil, nil))
		_, first := io.ReadAll(resp.Body)
		_, second := io.ReadAll(resp.Body)
		if first == nil || first != second {
			t.Errorf("read %v, then %v", first, second)
		}
		resp.Body.Close()
		resp.Body.Close()
		diff(t, "events", []string{"send to i1", "reply 200", "failure: eof"}, b.journal())
	})
}

// TestRemaining is the budget that a send starts with: that of the limits above it.
func TestRemaining(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		timeouts Timeouts
		layers   []policy.Layer
		want     []time.Duration
	}{
		{"none", Timeouts{Read: 5 * time.Second, Attempt: 4 * time.Second}, []policy.Layer{retry(2)}, []time.Duration{0, 0}},
		{"total", Timeouts{Total: 10 * time.Second}, []policy.Layer{retry(2, waiting(time.Second))}, []time.Duration{10 * time.Second, 8 * time.Second}},
		{"total of a layer", Timeouts{Total: 10 * time.Second}, []policy.Layer{
			retry(2, func(s *policy.Settings) { s.Total = new(6 * time.Second) }),
		}, []time.Duration{6 * time.Second, 5 * time.Second}},
		{"limit of a try", Timeouts{Total: 10 * time.Second}, []policy.Layer{
			retry(2, func(s *policy.Settings) { s.Timeout = new(3 * time.Second) }),
		}, []time.Duration{3 * time.Second, 3 * time.Second}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bench) {
				b.script = func(x *exchange) { x.pause(time.Second); x.reply(503, "") }
				b.place(Config{Timeouts: tt.timeouts, Layers: tt.layers}, Habits{})
				var got []time.Duration
				for _, e := range b.events {
					if e.Kind == lab.Send {
						got = append(got, e.Remaining.Round(time.Millisecond))
					}
				}
				diff(t, "left", tt.want, got)
			})
		})
	}
}

// TestConnectPanics on what no server can cause: to call it refused would be to make numbers up.
func TestConnectPanics(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		c := b.config(Config{})
		c.Network = broken{c.Network}
		chain := NewChain(c)
		defer func() {
			if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "connect to i1: out of sockets") {
				t.Errorf("panicked with %v", v)
			}
		}()
		chain.Forward(context.Background(), Trip{Operation: "op-1", Path: "op-1"}, http.MethodGet, nil, nil)
	})
}

// broken is a network that connects nobody.
type broken struct{ vtime.Network }

func (broken) Dial(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("out of sockets")
}
