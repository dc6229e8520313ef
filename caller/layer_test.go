package caller

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"retrylab/caller/policy"
	"retrylab/internal/lab"
)

// TestLayers plays stacks of layers against a server that does the same to every request.
func TestLayers(t *testing.T) {
	t.Parallel()
	const read = 5 * time.Second
	limits := func(timeout, total time.Duration) func(*policy.Settings) {
		return func(s *policy.Settings) { s.Timeout, s.Total = &timeout, &total }
	}
	named := func(name string) func(*policy.Settings) { return func(s *policy.Settings) { s.Name = name } }
	hang := func(x *exchange) { x.hang() }
	tests := []struct {
		name     string
		timeouts Timeouts
		layers   []policy.Layer
		script   func(*exchange)
		reason   string
		events   []string
	}{
		{
			name:   "none",
			script: func(x *exchange) { x.reply(503, "") }, reason: "503",
			events: []string{"0s send to i1", "0s reply 503"},
		},
		{
			name: "attempts and waits", layers: []policy.Layer{retry(3, waiting(time.Second))},
			script: func(x *exchange) { x.reply(503, "") }, reason: "503",
			events: []string{
				"0s send retry.1 to i1", "0s reply retry.1 503", "0s retry retry.1 in 1s",
				"1s send retry.2 to i1", "1s reply retry.2 503", "1s retry retry.2 in 1s",
				"2s send retry.3 to i1", "2s reply retry.3 503", "2s stop retry.3: attempts 3 reached",
			},
		},
		{
			name: "a success in the middle", layers: []policy.Layer{retry(3)},
			script: func(x *exchange) { x.reply(503+(x.number-1)*-302, created(1)) }, reason: "201",
			events: []string{
				"0s send retry.1 to i1", "0s reply retry.1 503", "0s retry retry.1 in 0s",
				"0s send retry.2 to i1", "0s reply retry.2 201", "0s told retry.2 201",
			},
		},
		{
			name: "read time-outs", timeouts: Timeouts{Read: read}, layers: []policy.Layer{retry(2, waiting(time.Second))},
			script: hang, reason: "read timeout",
			events: []string{
				"0s send retry.1 to i1", "5s timeout retry.1: read", "5s retry retry.1 in 1s",
				"6s send retry.2 to i1", "11s timeout retry.2: read", "11s stop retry.2: attempts 2 reached",
			},
		},
		{
			name: "total in a send", timeouts: Timeouts{Read: read, Total: 8 * time.Second}, layers: []policy.Layer{plain(3, time.Second)},
			script: hang, reason: "total timeout",
			events: []string{
				"0s send plain.1 to i1", "5s timeout plain.1: read", "5s retry plain.1 in 1s",
				"6s send plain.2 to i1", "8s timeout plain.2: total", "8s stop plain.2: the total limit is spent",
			},
		},
		{
			name: "total in a wait", timeouts: Timeouts{Read: read, Total: 8 * time.Second}, layers: []policy.Layer{plain(3, time.Minute)},
			script: hang, reason: "total timeout",
			events: []string{
				"0s send plain.1 to i1", "5s timeout plain.1: read", "5s retry plain.1 in 1m0s", "8s timeout plain.1: total",
			},
		},
		{
			name: "a wait that does not fit into the total", timeouts: Timeouts{Read: read, Total: 8 * time.Second}, layers: []policy.Layer{retry(3, waiting(4*time.Second))},
			script: hang, reason: "read timeout",
			events: []string{
				"0s send retry.1 to i1", "5s timeout retry.1: read", "5s stop retry.1: the wait of 4s does not fit into the …",
			},
		},
		{
			name: "the limit of a try", layers: []policy.Layer{retry(2, limits(2*time.Second, 0))},
			script: hang, reason: "attempt timeout",
			events: []string{
				"0s send retry.1 to i1", "2s timeout retry.1: retry", "2s retry retry.1 in 0s",
				"2s send retry.2 to i1", "4s timeout retry.2: retry", "4s stop retry.2: attempts 2 reached",
			},
		},
		{
			name: "the total of a layer", layers: []policy.Layer{retry(2, limits(2*time.Second, 3*time.Second))},
			script: hang, reason: "total timeout",
			events: []string{
				"0s send retry.1 to i1", "2s timeout retry.1: retry", "2s retry retry.1 in 0s",
				"2s send retry.2 to i1", "3s timeout retry.2: retry total", "3s stop retry.2: the total limit is spent",
			},
		},
		{
			name:   "the total of a layer is a slow try to the one outside",
			layers: []policy.Layer{retry(2, named("outer"), waiting(time.Second)), retry(9, named("inner"), limits(0, 2*time.Second))},
			script: hang, reason: "attempt timeout",
			events: []string{
				"0s send outer.1/inner.1 to i1", "2s timeout outer.1/inner.1: inner total",
				"2s stop outer.1/inner.1: the total limit is spent", "2s retry outer.1 in 1s",
				"3s send outer.2/inner.1 to i1", "5s timeout outer.2/inner.1: inner total",
				"5s stop outer.2/inner.1: the total limit is spent", "5s stop outer.2: attempts 2 reached",
			},
		},
		{
			name:   "the limit of a try holds for all inner tries, the waits between them too",
			layers: []policy.Layer{retry(2, named("outer"), limits(3*time.Second, 0)), plain(9, 2*time.Second)},
			script: func(x *exchange) { x.reply(503, "") }, reason: "attempt timeout",
			events: []string{
				"0s send outer.1/plain.1 to i1", "0s reply outer.1/plain.1 503", "0s retry outer.1/plain.1 in 2s",
				"2s send outer.1/plain.2 to i1", "2s reply outer.1/plain.2 503", "2s retry outer.1/plain.2 in 2s",
				"3s timeout outer.1/plain.2: outer", "3s retry outer.1 in 0s",
				"3s send outer.2/plain.1 to i1", "3s reply outer.2/plain.1 503", "3s retry outer.2/plain.1 in 2s",
				"5s send outer.2/plain.2 to i1", "5s reply outer.2/plain.2 503", "5s retry outer.2/plain.2 in 2s",
				"6s timeout outer.2/plain.2: outer", "6s stop outer.2: attempts 2 reached",
			},
		},
		{
			name: "refused", layers: []policy.Layer{layerOf(policy.Settings{Preset: "feign-retryer", Attempts: new(2)})},
			script: nil, reason: "refused",
			events: []string{
				"0s send feign-retryer.1 to nobody", "0s failure feign-retryer.1: refused", "0s retry feign-retryer.1 in 150ms",
				"150ms send feign-retryer.2 to nobody", "150ms failure feign-retryer.2: refused", "150ms stop feign-retryer.2: maxAttempts 2 reached",
			},
		},
		{
			name: "Retry-After in seconds", layers: []policy.Layer{layerOf(policy.Settings{Preset: "urllib3", Methods: []string{"any"}, Attempts: new(2)})},
			script: func(x *exchange) { x.reply(503, "", "Retry-After: 7") }, reason: "503",
			events: []string{
				"0s send urllib3.1 to i1", "0s reply urllib3.1 503", "0s retry urllib3.1 in 7s",
				"7s send urllib3.2 to i1", "7s reply urllib3.2 503", "7s stop urllib3.2: Retry(1) reached",
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bench) {
				b.script = tt.script
				c := Config{Timeouts: tt.timeouts, Layers: tt.layers}
				if tt.script == nil {
					c.Targets = []string{"nobody"}
				}
				out := b.place(c, Habits{})
				diff(t, "reason", tt.reason, out.Reason)
				got := b.timed()
				for i, want := range tt.events {
					if prefix, ok := strings.CutSuffix(want, "…"); ok && i < len(got) && strings.HasPrefix(got[i], prefix) {
						got[i] = want
					}
				}
				diff(t, "events", tt.events, got)
			})
		})
	}
}

// TestRetryAfterDate is counted on the caller's own calendar, whose seconds began at nine o'clock with
// the lab's, and which may have been set since.
func TestRetryAfterDate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		jumps []Jump
		again time.Duration
	}{
		{"never set", nil, 3 * time.Second},
		{"set back", []Jump{{0, -2 * time.Minute}}, 123 * time.Second},
		{"set forward before the answer", []Jump{{200 * time.Millisecond, time.Second}}, 2 * time.Second},
		{"set forward beyond", []Jump{{0, time.Minute}}, 300 * time.Millisecond},
		{"set after the answer", []Jump{{time.Second, time.Hour}}, 3 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bench) {
				b.script = func(x *exchange) {
					x.pause(300 * time.Millisecond)
					x.reply(503, "", "Retry-After: "+b.clock.Date().Add(2*time.Second).Truncate(time.Second).Add(time.Second).Format(http.TimeFormat))
				}
				layer := layerOf(policy.Settings{Preset: "urllib3", Methods: []string{"any"}, Attempts: new(2)})
				b.place(Config{Layers: []policy.Layer{layer}, Clocked: TotalClock{Jumps: tt.jumps}}, Habits{})
				var starts []time.Duration
				for _, x := range b.arrived() {
					starts = append(starts, x.at)
				}
				diff(t, "arrivals", []time.Duration{0, tt.again}, starts)
			})
		})
	}
}

// TestInBody has an answer break off after its headers. Layers that read answers to their end try
// again when their rules say so; to the others it has come.
func TestInBody(t *testing.T) {
	t.Parallel()
	cut := func(x *exchange) {
		x.raw("HTTP/1.1 201 Created\r\nContent-Length: 30\r\n\r\n" + created(1)[:10])
		if x.number%2 == 0 {
			x.hang()
		}
		x.close()
	}
	urllib3 := layerOf(policy.Settings{Preset: "urllib3", Methods: []string{"any"}})
	feign := layerOf(policy.Settings{Preset: "feign-retryer", Attempts: new(2), Period: new(time.Duration(0))})
	nginx := layerOf(policy.Settings{Preset: "nginx"})
	for _, tt := range []struct {
		name     string
		layers   []policy.Layer
		method   string
		arrivals int
		reason   string
		stop     string // of the last layer that said why
	}{
		{"none", nil, "POST", 1, "eof", ""},
		{"retry", []policy.Layer{retry(3)}, "POST", 3, "eof", "attempts 3 reached"},
		{"retry that is not to", []policy.Layer{retry(3, func(s *policy.Settings) { s.On = []string{"503"} })}, "POST", 1, "eof", "eof is not retried"},
		{"urllib3", []policy.Layer{urllib3}, "POST", 4, "read timeout", "Retry(3) reached"},
		{"urllib3 as shipped", []policy.Layer{layerOf(policy.Settings{Preset: "urllib3"})}, "POST", 1, "eof", "POST is not retried on eof"},
		{"feign", []policy.Layer{feign}, "POST", 1, "eof", ""},
		{"httpclient5", []policy.Layer{layerOf(policy.Settings{Preset: "httpclient5"})}, "GET", 1, "eof", ""},
		{"nginx", []policy.Layer{nginx}, "GET", 1, "eof", ""},
		// What the client below reads itself is for Feign a call that failed.
		{"feign over retry", []policy.Layer{feign, retry(2)}, "POST", 4, "read timeout", "maxAttempts 2 reached"},
		{"retry over feign", []policy.Layer{retry(2), feign}, "POST", 2, "read timeout", "attempts 2 reached"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bench) {
				b.script = cut
				out := b.place(Config{Targets: hosts[:2], Timeouts: Timeouts{Read: 5 * time.Second}, Layers: tt.layers}, Habits{Method: tt.method})
				diff(t, "arrivals", tt.arrivals, len(b.arrived()))
				diff(t, "belief", lab.Unknown, out.Belief)
				diff(t, "reason", tt.reason, out.Reason)
				stop := ""
				for _, e := range b.events {
					if e.Kind == lab.Stop {
						stop = e.Detail
					}
				}
				diff(t, "stop", tt.stop, stop)
			})
		})
	}
}

// TestLimitsInTheBody has an answer dribble for 90 s. A limit of a layer that reads answers itself
// ends its try; one above it ends everything.
func TestLimitsInTheBody(t *testing.T) {
	t.Parallel()
	dribble := func(x *exchange) {
		x.raw("HTTP/1.1 201 Created\r\nContent-Length: 18\r\n\r\n")
		for range 18 {
			x.pause(5 * time.Second)
			x.raw(" ")
		}
	}
	timeout := func(d time.Duration) func(*policy.Settings) {
		return func(s *policy.Settings) { s.Timeout = &d }
	}
	for _, tt := range []struct {
		name     string
		timeouts Timeouts
		layers   []policy.Layer
		arrivals int
		reason   string
		done     time.Duration
	}{
		{"read", Timeouts{Read: 10 * time.Second}, nil, 1, "201", 90 * time.Second},
		{"total", Timeouts{Read: 10 * time.Second, Total: 10 * time.Second}, nil, 1, "total timeout", 10 * time.Second},
		{"attempt", Timeouts{Read: 10 * time.Second, Attempt: 12 * time.Second}, nil, 1, "attempt timeout", 12 * time.Second},
		{"total above a layer", Timeouts{Total: 10 * time.Second}, []policy.Layer{retry(3)}, 1, "total timeout", 10 * time.Second},
		{"attempt below a layer", Timeouts{Attempt: 10 * time.Second}, []policy.Layer{retry(3)}, 3, "attempt timeout", 30 * time.Second},
		{"limit of a try", Timeouts{}, []policy.Layer{retry(2, timeout(12*time.Second))}, 2, "attempt timeout", 24 * time.Second},
		{"total of a layer that does not read", Timeouts{}, []policy.Layer{layerOf(policy.Settings{Preset: "okhttp", Total: new(12 * time.Second)})}, 1, "total timeout", 12 * time.Second},
		{"a layer that reads, and is patient", Timeouts{Read: 10 * time.Second}, []policy.Layer{retry(2)}, 1, "201", 90 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bench) {
				b.script = dribble
				out := b.place(Config{Timeouts: tt.timeouts, Layers: tt.layers}, Habits{})
				diff(t, "arrivals", tt.arrivals, len(b.arrived()))
				diff(t, "reason", tt.reason, out.Reason)
				diff(t, "done", tt.done, out.DoneAt)
			})
		})
	}
}

// TestInstances is where the tries of two calls go to.
func TestInstances(t *testing.T) {
	t.Parallel()
	lb := func(same, next int) policy.Layer {
		return layerOf(policy.Settings{Preset: "spring-lb", Same: &same, Next: &next, AllOperations: new(true)})
	}
	feign := layerOf(policy.Settings{Preset: "feign-retryer", Attempts: new(2), Period: new(time.Duration(0))})
	for _, tt := range []struct {
		name    string
		targets []string
		layers  []policy.Layer
		want    string
	}{
		{"same 1, next 1", hosts[:2], []policy.Layer{lb(1, 1)}, "i1 i1 i2 i2 | i1 i1 i2 i2"},
		{"same 0, next 1", hosts[:2], []policy.Layer{lb(0, 1)}, "i1 i2 | i1 i2"},
		{"same 2, next 0", hosts[:2], []policy.Layer{lb(2, 0)}, "i1 i1 i1 | i2 i2 i2"},
		{"same 0, next 3", hosts[:2], []policy.Layer{lb(0, 3)}, "i1 i2 i1 i2 | i1 i2 i1 i2"},
		// The second call begins with the instance that failed last.
		{"three instances", hosts, []policy.Layer{lb(1, 1)}, "i1 i1 i3 i3 | i3 i3 i2 i2"},
		{"one instance", hosts[:1], []policy.Layer{lb(1, 1)}, "i1 i1 i1 i1 | i1 i1 i1 i1"},
		{"afresh under each outer try", hosts[:2], []policy.Layer{feign, lb(1, 1)}, "i1 i1 i2 i2 i1 i1 i2 i2 | i1 i1 i2 i2 i1 i1 i2 i2"},
		{"nginx, never out", hosts[:2], []policy.Layer{layerOf(policy.Settings{Preset: "nginx", NonIdempotent: new(true), MaxFails: new(0)})}, "i1 i2 | i2 i1"},
		{"nginx as shipped", hosts[:2], []policy.Layer{layerOf(policy.Settings{Preset: "nginx", NonIdempotent: new(true)})}, "i1 i2 | "},
		{"nginx before a sent POST", hosts[:2], []policy.Layer{layerOf(policy.Settings{Preset: "nginx"})}, "i1 | i2"},
		{"a layer that knows of none", hosts[:2], []policy.Layer{retry(3)}, "i1 i1 i1 | i1 i1 i1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bench) {
				b.script = func(x *exchange) { x.close() }
				caller := b.caller(Config{Targets: tt.targets, Layers: tt.layers}, Habits{})
				var got []string
				for call := range 2 {
					before := len(b.arrived())
					caller.Place(context.Background(), Intent{Operation: fmt.Sprintf("op-%d", call+1)})
					var seen []string
					for _, x := range b.arrived()[before:] {
						seen = append(seen, x.host)
					}
					got = append(got, strings.Join(seen, " "))
				}
				diff(t, "instances", tt.want, strings.Join(got, " | "))
			})
		})
	}
}

// TestNoUpstream is nginx's "no live upstreams": nothing is sent, and nothing is tried again.
func TestNoUpstream(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		b.script = func(x *exchange) { x.hang() }
		caller := b.caller(Config{
			Targets: hosts[:2], Timeouts: Timeouts{Read: 2 * time.Second},
			Layers: []policy.Layer{retry(3), layerOf(policy.Settings{Preset: "nginx"})},
		}, Habits{Method: http.MethodGet})
		out := caller.Place(context.Background(), Intent{Operation: "op-1"})
		diff(t, "reason", "no live upstream", out.Reason)
		diff(t, "belief", lab.Unknown, out.Belief) // the first round has left
		diff(t, "events", []string{
			"0s send retry.1/nginx.1 to i1", "2s timeout retry.1/nginx.1: read", "2s retry retry.1/nginx.1 in 0s",
			"2s send retry.1/nginx.2 to i2", "4s timeout retry.1/nginx.2: read", "4s stop retry.1/nginx.2: no server is left to try",
			"4s retry retry.1 in 0s",
			"4s failure retry.2/nginx.1: no-live-upstream", "4s stop retry.2: no-live-upstream is not retried",
		}, b.timed())
		out = caller.Place(context.Background(), Intent{Operation: "op-2"})
		diff(t, "belief", lab.Failed, out.Belief) // and of this one nothing has
		diff(t, "arrivals", 2, len(b.arrived()))
	})
}

// TestAddresses is OkHttp before a host with several addresses: each is tried once on a new
// connection; a connection that had served before says nothing of its address.
func TestAddresses(t *testing.T) {
	t.Parallel()
	closing := func(x *exchange) { x.close() }
	okhttp := func(change ...func(*policy.Settings)) policy.Layer {
		s := policy.Settings{Preset: "okhttp"}
		for _, f := range change {
			f(&s)
		}
		return layerOf(s)
	}
	off := okhttp(func(s *policy.Settings) { s.RetryOnConnectionFailure = new(false) })
	for _, tt := range []struct {
		name    string
		targets []string
		layer   policy.Layer
		idle    int
		body    policy.Body
		script  func(*exchange)
		dark    string
		want    []string
		reason  string
	}{
		{"one", hosts[:1], okhttp(), 0, policy.Buffered, closing, "", []string{"i1"}, "eof"},
		{"two", hosts[:2], okhttp(), 0, policy.Buffered, closing, "", []string{"i1", "i2"}, "eof"},
		{"three", hosts, okhttp(), 0, policy.Buffered, closing, "", []string{"i1", "i2", "i3"}, "eof"},
		{"one, reused", hosts[:1], okhttp(), 1, policy.Buffered, closing, "", []string{"i1 again", "i1"}, "eof"},
		{"two, reused", hosts[:2], okhttp(), 1, policy.Buffered, closing, "", []string{"i1 again", "i1", "i2"}, "eof"},
		{"two, streamed", hosts[:2], okhttp(), 0, policy.Fixed, closing, "", []string{"i1"}, "eof"},
		{"two, off", hosts[:2], off, 0, policy.Buffered, closing, "", []string{"i1"}, "eof"},
		{"the first refuses", []string{"nobody", "i1"}, okhttp(), 0, policy.Fixed, ok, "", []string{"i1"}, "201"},
		{"the first does not answer", hosts[1:], okhttp(), 0, policy.Fixed, ok, "i2", []string{"i3"}, "201"},
		{"408 is asked again where it came from", hosts[:2], okhttp(), 0, policy.Buffered, func(x *exchange) {
			if x.number == 1 {
				x.reply(408, "")
				return
			}
			ok(x)
		}, "", []string{"i1", "i1"}, "201"},
		{"503 too", hosts[:2], okhttp(), 0, policy.Buffered, func(x *exchange) { x.reply(503, "", "Retry-After: 0") }, "", []string{"i1", "i1"}, "503"},
		{"a read time-out ends it", hosts[:2], okhttp(), 0, policy.Buffered, func(x *exchange) { x.hang() }, "", []string{"i1"}, "read timeout"},
		{"other layers know of one address", hosts[:2], retry(3), 0, policy.Buffered, closing, "", []string{"i1", "i1", "i1"}, "eof"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bench) {
				b.script = tt.script
				if tt.dark != "" {
					b.network.Blackhole(tt.dark)
				}
				out := b.place(Config{
					Targets: tt.targets, Idle: tt.idle, Layers: []policy.Layer{tt.layer},
					Timeouts: Timeouts{Connect: time.Second, Read: 5 * time.Second},
				}, Habits{Body: tt.body})
				var got []string
				for _, x := range b.arrived() {
					host := x.host
					if x.served > 0 {
						host += " again"
					}
					got = append(got, host)
				}
				diff(t, "arrivals", tt.want, got)
				diff(t, "reason", tt.reason, out.Reason)
			})
		})
	}
}

// TestOutcome is what a policy is told of a try.
func TestOutcome(t *testing.T) {
	t.Parallel()
	answer := func(status int, after string) *http.Response {
		return &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {after}}}
	}
	leave := func() bool { return true }
	for _, tt := range []struct {
		name  string
		layer layer
		trip  Trip
		total time.Duration // on all tries
		after time.Duration // that the try took
		resp  *http.Response
		err   error
		want  policy.Outcome
	}{
		{name: "success", trip: Trip{Body: policy.Chunked}, resp: answer(201, ""), want: policy.Outcome{Body: policy.Chunked, Status: 201}},
		{name: "Retry-After", resp: answer(503, "7"), want: policy.Outcome{Status: 503, RetryAfter: 7 * time.Second, HasRetryAfter: true}},
		{
			name: "Retry-After on the calendar", after: time.Second, resp: answer(503, day.Add(3*time.Second).Format(http.TimeFormat)),
			want: policy.Outcome{Status: 503, RetryAfter: 2 * time.Second, HasRetryAfter: true},
		},
		{name: "a Retry-After that nobody can read", resp: answer(503, "soon"), want: policy.Outcome{Status: 503}},
		{
			name: "failure", err: &Error{Failure: policy.EOF, InBody: true, Reused: true},
			want: policy.Outcome{Failure: policy.EOF, InBody: true, Reused: true},
		},
		{name: "a key", trip: Trip{payload: forwarded{keysOf: func(string) []string { return []string{"k"} }}}, resp: answer(201, ""), want: policy.Outcome{Status: 201, Key: true}},
		{
			name: "time-outs", layer: layer{read: 5 * time.Second}, total: 20 * time.Second, after: 5 * time.Second, err: &Error{Failure: policy.ReadTimeout},
			want: policy.Outcome{Failure: policy.ReadTimeout, Timeout: 5 * time.Second, Remaining: 15 * time.Second},
		},
		{
			name: "a total further down", total: 20 * time.Second, after: 5 * time.Second, err: &Error{Failure: policy.TotalTimeout},
			want: policy.Outcome{Failure: policy.AttemptTimeout, Remaining: 15 * time.Second},
		},
		{
			name: "the total", total: 5 * time.Second, after: 5 * time.Second, err: &Error{Failure: policy.EOF},
			want: policy.Outcome{Failure: policy.TotalTimeout},
		},
		{
			name: "instances", layer: layer{peers: &roundRobin{targets: hosts}}, resp: answer(503, ""),
			want: policy.Outcome{Status: 503, Instances: 3},
		},
		{name: "addresses", layer: layer{routes: true}, trip: Trip{Targets: hosts}, resp: answer(503, ""), want: policy.Outcome{Status: 503, AddressLeft: true}},
		{name: "the last address", layer: layer{routes: true}, trip: Trip{Targets: hosts[2:]}, resp: answer(503, ""), want: policy.Outcome{Status: 503}},
		{name: "addresses that nobody tries", trip: Trip{Targets: hosts}, resp: answer(503, ""), want: policy.Outcome{Status: 503}},
		{name: "the client of a hop has left", trip: Trip{Gone: leave}, resp: answer(503, ""), want: policy.Outcome{Status: 503, CallerGone: true}},
		{
			name: "the client of a hop has left, and the request with it", err: &Error{Failure: policy.TotalTimeout, Gone: true},
			want: policy.Outcome{Failure: policy.AttemptTimeout, CallerGone: true},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bench) {
				ctx, cancel := within(context.Background(), b.clock, tt.total, "total")
				defer cancel()
				b.clock.Sleep(context.Background(), tt.after)
				tt.layer.clock = b.clock
				if tt.trip.payload == nil {
					tt.trip.payload = forwarded{}
				}
				tt.want.Method = http.MethodPut
				diff(t, "outcome", tt.want, tt.layer.outcome(ctx, tt.trip, &http.Request{Method: http.MethodPut}, tt.resp, tt.err))
			})
		})
	}
}
