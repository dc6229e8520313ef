package caller

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"retrylab/caller/policy"
	"retrylab/caller/preset"
	"retrylab/internal/lab"
	"retrylab/internal/vtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a network with servers that do as they are told, and what a caller recorded.
type bench struct {
	clock   *vtime.Clock
	network vtime.Network
	group   vtime.Group
	script  func(*exchange) // what the servers do to a request

	mu       sync.Mutex
	events   []lab.Event
	requests []*exchange // that arrived, in order
}

// hosts is where the servers of a bench are. Nobody listens at the host "nobody".
var hosts = []string{"i1", "i2", "i3"}

var day = time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC)

// inBubble runs f on the virtual clock. Nothing in f may call a method of a T but Error and Log.
func inBubble(t *testing.T, f func(b *bench)) {
	t.Helper()
	err := vtime.Bubble(func() {
		b := &bench{clock: vtime.NewVirtual(day)}
		b.network = vtime.NewMemory(b.clock, 1)
		b.run(f)
	})
	if err != nil {
		t.Error(err)
	}
}

// onLoopback runs f in real time over TCP: five seconds of a scenario are 50 ms.
func onLoopback(t *testing.T, f func(b *bench)) {
	t.Helper()
	b := &bench{clock: vtime.NewWall(day, 100), network: vtime.NewLoopback()}
	b.run(f)
}

// onBoth runs a test on both networks, as two subtests.
//
// In real time a machine that stumbles makes limits fire that are not meant: a test sets only those
// that fire in any case.
func onBoth(t *testing.T, f func(t *testing.T, b *bench)) {
	inMemory(t, f)
	t.Run("loopback", func(t *testing.T) {
		t.Parallel()
		onLoopback(t, func(b *bench) { f(t, b) })
	})
}

// inMemory runs a test on the virtual clock, as a subtest.
func inMemory(t *testing.T, f func(t *testing.T, b *bench)) {
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		inBubble(t, func(b *bench) { f(t, b) })
	})
}

func (b *bench) run(f func(b *bench)) {
	for _, host := range hosts {
		l := must(b.network.Listen(host))
		b.group.Go(func() { b.serve(host, l) })
	}
	f(b)
	check(b.network.Close())
	check(b.group.Wait())
}

// serve answers questions of health, and leaves everything else to the script.
func (b *bench) serve(host string, l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		b.group.Go(func() {
			defer conn.Close()
			in := bufio.NewReader(conn)
			for served := 0; ; served++ {
				r, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				x := &exchange{Conn: conn, clock: b.clock, in: in, host: host, request: r, served: served}
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return
				}
				x.body = string(body)
				if r.URL.Path == lab.HealthPath {
					x.reply(200, "ok")
					continue
				}
				b.mu.Lock()
				b.requests = append(b.requests, x)
				x.number, x.at = len(b.requests), b.clock.Now().Round(time.Millisecond)
				script := b.script
				b.mu.Unlock()
				script(x)
				if x.ended {
					return
				}
			}
		})
	}
}

// exchange is a request at the far end, and what can be done to it.
type exchange struct {
	net.Conn
	clock   *vtime.Clock
	in      *bufio.Reader
	host    string
	request *http.Request
	body    string
	number  int // of the requests at all hosts, from 1
	served  int // requests that its connection served before
	at      time.Duration
	ended   bool
}

// reply answers and leaves the connection open. The client may have gone.
func (x *exchange) reply(status int, body string, header ...string) {
	x.raw(fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Length: %d\r\n%s\r\n%s",
		status, http.StatusText(status), len(body), lines(header), body))
}

func lines(header []string) string {
	var b strings.Builder
	for _, line := range header {
		b.WriteString(line + "\r\n")
	}
	return b.String()
}

func (x *exchange) raw(text string) { io.WriteString(x.Conn, text) }

func (x *exchange) close() {
	x.ended = true
	x.Conn.Close()
}

func (x *exchange) reset() {
	x.Conn.(interface{ SetLinger(int) error }).SetLinger(0)
	x.close()
}

// hang keeps silent until the client leaves.
func (x *exchange) hang() {
	io.Copy(io.Discard, x.in)
	x.close()
}

// pause lets time go by.
func (x *exchange) pause(d time.Duration) { x.clock.Sleep(context.Background(), d) }

func created(order int) string { return fmt.Sprintf(`{"order":%d,"status":"created"}`, order) }

// ok places an order for every request.
func ok(x *exchange) { x.reply(201, created(x.number)) }

// config fills in what a test leaves out.
func (b *bench) config(c Config) Config {
	c.Node, c.Seed, c.Clock, c.Network, c.Record, c.Group = "caller", 1, b.clock, b.network, b.record, &b.group
	if c.Targets == nil {
		c.Targets = hosts[:1]
	}
	return c
}

// caller returns a caller whose idle connections are open. The test closes it.
func (b *bench) caller(c Config, h Habits) *Caller {
	if h.Method == "" {
		h.Method = http.MethodPost
	}
	if h.Body == "" {
		h.Body = policy.Buffered
		if h.Method == http.MethodGet {
			h.Body = policy.NoBody
		}
	}
	if h.Amount == 0 {
		h.Amount = 5000
	}
	caller := New(b.config(c), h)
	check(caller.Warm(context.Background()))
	return caller
}

// place performs one operation, op-1, with a caller of its own.
func (b *bench) place(c Config, h Habits) lab.Outcome {
	caller := b.caller(c, h)
	defer caller.Close()
	out := caller.Place(context.Background(), Intent{Operation: "op-1"})
	out.DoneAt = out.DoneAt.Round(time.Millisecond)
	return out
}

func (b *bench) record(e lab.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e.At = b.clock.Now()
	b.events = append(b.events, e)
}

// arrived is a copy of the requests so far.
func (b *bench) arrived() []*exchange {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.requests)
}

// journal tells what was recorded: kind, try, and whatever else the event carries.
func (b *bench) journal() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, e := range b.events {
		out = append(out, tell(e))
	}
	return out
}

func tell(e lab.Event) string {
	text := string(e.Kind)
	if _, try, ok := strings.Cut(e.Send, "/"); ok {
		text += " " + try
	}
	if e.Target != "" && e.Kind == lab.Send {
		text += " to " + e.Target
	}
	if e.Status != 0 {
		text += fmt.Sprintf(" %d", e.Status)
	}
	if e.Kind == lab.Retry {
		return text + fmt.Sprintf(" in %s", e.Wait)
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// timed is the journal with the time of each event, in whole milliseconds.
func (b *bench) timed() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, e := range b.events {
		out = append(out, fmt.Sprintf("%s %s", e.At.Round(time.Millisecond), tell(e)))
	}
	return out
}

// layer makes one of a preset.
func layerOf(s policy.Settings) policy.Layer { return must(preset.Resolve(s)) }

// retry makes the generic layer: so many tries on any error and any 5xx.
func retry(attempts int, change ...func(*policy.Settings)) policy.Layer {
	s := policy.Settings{Preset: "retry", Attempts: &attempts}
	for _, f := range change {
		f(&s)
	}
	return layerOf(s)
}

func waiting(d time.Duration) func(*policy.Settings) {
	return func(s *policy.Settings) { s.Wait = &d }
}

// plain is a layer that tries again after a wait, on any failure and any status that is no success,
// without asking how much time is left.
func plain(attempts int, wait time.Duration) policy.Layer {
	return policy.Layer{
		Name: "plain", Attempts: attempts, Waits: policy.FixedWait(wait),
		Rules: []policy.Rule{{Failures: policy.Failures, Statuses: policy.Non2xx}},
	}
}

func diff(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
