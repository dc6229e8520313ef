package caller

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"retrylab/caller/policy"
	"retrylab/internal/lab"
	"retrylab/internal/vtime"
)

// Config says how a machine sends.
type Config struct {
	Node     string
	Seed     int64
	Clock    *vtime.Clock
	Network  vtime.Network
	Record   func(lab.Event)
	Targets  []string // the hosts behind it, in order
	Timeouts Timeouts
	Clocked  TotalClock     // what Timeouts.Total is measured with
	Group    *vtime.Group   // of the goroutines of sends side by side
	Layers   []policy.Layer // outermost first
	Pool     int            // connections that may be open at once; 0 for no limit
	Idle     int            // connections that have served a request when the first send starts
	Follow   bool           // follows redirects
	Asked    []string       // the hosts that are asked what became of an order
	// PassDeadline sends what is left of the limits on a send along with it.
	PassDeadline bool
}

// Chain is the layers of a machine over its transport.
type Chain struct {
	config    Config
	transport *transport
	outermost http.RoundTripper
}

// NewChain builds the layers. Close ends what it opens.
func NewChain(c Config) *Chain {
	t := newTransport(c)
	sender := http.RoundTripper(t)
	if c.Follow {
		sender = follower{t}
	}
	return &Chain{config: c, transport: t, outermost: wrap(sender, c)}
}

// Warm opens the idle connections that the configuration asks for.
func (c *Chain) Warm(ctx context.Context) error {
	return c.transport.warm(ctx, c.config.Targets, c.config.Idle)
}

// Close closes the connections that are idle.
func (c *Chain) Close() { c.transport.close() }

// Forward sends a request that came from elsewhere: its method, its content as it came, and the keys
// that each send has by its path, nil for none. The error is an [*Error].
func (c *Chain) Forward(ctx context.Context, trip Trip, method string, content []byte, keys func(path string) []string) (*http.Response, error) {
	trip.payload = forwarded{body: content, keysOf: keys}
	return c.roundTrip(ctx, trip, method)
}

func (c *Chain) roundTrip(ctx context.Context, trip Trip, method string) (*http.Response, error) {
	trip.Targets = c.config.Targets
	trip.life = ctx
	if trip.left == nil {
		trip.left = &atomic.Bool{}
	}
	ctx, cancelGiven := within(ctx, c.config.Clock, trip.Within, lab.StageDeadline)
	ctx, cancelTotal := within(ctx, c.config.Clock, c.config.Clocked.after(c.config.Clock.Now(), c.config.Timeouts.Total), "total")
	cancel := func() { cancelTotal(); cancelGiven() }
	req, err := http.NewRequestWithContext(trip.with(ctx), method, "http://"+c.config.Targets[0]+cmp.Or(trip.To, lab.OrderPath), nil)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("make a request: %w", err)
	}
	resp, err := c.outermost.RoundTrip(req)
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &limited{ReadCloser: resp.Body, cancel: cancel}
	return resp, nil
}

// forwarded is the payload of a hop: what it was given.
type forwarded struct {
	body   []byte
	keysOf func(path string) []string
}

func (f forwarded) number() int                { return 1 }
func (f forwarded) content(string, int) []byte { return f.body }
func (f forwarded) keyed() bool                { return len(f.keys("", 0)) > 0 }

func (f forwarded) keys(path string, _ int) []string {
	if f.keysOf == nil {
		return nil
	}
	return f.keysOf(path)
}

// Habits are how a caller makes its requests.
type Habits struct {
	Method      string
	Body        policy.Body
	Key         string // none, operation, attempt, content, appended, server or the name of a layer
	Content     string // same, changing, spaced, signed or the name of a layer: what carries something else
	Accept      []int  // statuses from 300 on that are success to it
	Leaks       []int  // the operations, from 1, whose answer is never closed
	Amount      int64  // minor units
	Concurrency int    // sends of one operation side by side; 0 is 1
	Stagger     time.Duration
	Ask         *Ask          // nil for a caller that does not ask
	CancelAfter time.Duration // an operation is given up so long after it began; 0 is never
	Threads     int           // operations that are under way at once; 0 for no limit
	Queue       *int          // operations that may wait for a thread; nil for any number
}

// Intent is one operation: what its user means to do once. What is zero is the caller's habit.
type Intent struct {
	Operation string
	Amount    int64  // minor units
	Item      string // a book when empty
	Key       string // the idempotency key, word for word
	Tenant    string // whose order it is
	Further   []Further
}

// Further is one more send of an operation by whoever wants it: from a second device, or by another
// path. Its intent has no further sends.
type Further struct {
	After time.Duration // since the operation began
	Intent
}

// Caller performs operations.
type Caller struct {
	*Chain
	habits  Habits
	threads threads
	asking  *transport
}

// New returns a caller that performs operations through a chain of layers.
func New(c Config, h Habits) *Caller {
	questions := c
	questions.Record, questions.Pool = asQuestions(c.Record), 0
	return &Caller{
		Chain: NewChain(c), habits: h, asking: newTransport(questions),
		threads: threads{all: h.Threads, queue: h.Queue, seed: c.Seed, clock: c.Clock},
	}
}

// cancelled is the reason of an operation that was given up by whoever wanted it.
const cancelled = "cancelled"

// Place performs one operation, and returns how it ended: the best of its further sends and itself.
// Each has a thread of the caller, and sends nothing without one.
func (c *Caller) Place(ctx context.Context, intent Intent) lab.Outcome {
	sends := &atomic.Int64{}
	if len(intent.Further) == 0 {
		return c.place(ctx, intent, intent.Operation, sends)
	}
	paths, starts := []string{intent.Operation}, []time.Duration{0}
	intents := []Intent{intent}
	for i, f := range intent.Further {
		paths = append(paths, intent.Operation+"/"+lab.Again+"."+strconv.Itoa(i+2))
		starts, intents = append(starts, f.After), append(intents, f.Intent)
	}
	return c.beside(ctx, intent.Operation, paths, starts, func(i int) lab.Outcome {
		return c.place(ctx, intents[i], paths[i], sends)
	})
}

// beside is the best outcome of what an operation does side by side, each by a path of its own and from
// its own start on.
func (c *Caller) beside(ctx context.Context, operation string, paths []string, starts []time.Duration, do func(i int) lab.Outcome) lab.Outcome {
	outcomes := make([]lab.Outcome, len(paths))
	offsets := lab.Offsets(c.config.Seed, paths)
	var sides sync.WaitGroup
	for i := range paths {
		sides.Add(1)
		c.config.Group.Go(func() {
			defer sides.Done()
			if c.config.Clock.Sleep(ctx, starts[i]+offsets[i]) != nil {
				outcomes[i] = lab.Outcome{Operation: operation}
				return
			}
			outcomes[i] = do(i)
		})
	}
	sides.Wait()
	return best(outcomes)
}

// place performs one send of an operation as its user sees it, with all tries, by a path.
func (c *Caller) place(ctx context.Context, intent Intent, path string, sends *atomic.Int64) lab.Outcome {
	if c.habits.CancelAfter > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer c.config.Clock.AfterFunc(c.config.Clock.Apart(c.habits.CancelAfter), cancel)()
	}
	if reason := c.threads.take(ctx, path); reason != "" {
		c.config.Record(lab.Event{Kind: lab.Stop, Operation: intent.Operation, Node: c.config.Node, Detail: reason})
		return lab.Outcome{Operation: intent.Operation, Belief: lab.Failed, Reason: reason, DoneAt: c.config.Clock.Now()}
	}
	defer c.threads.give()
	return c.perform(ctx, intent, path, sends)
}

// perform is place with a thread: the best of the sends side by side.
func (c *Caller) perform(ctx context.Context, intent Intent, path string, sends *atomic.Int64) lab.Outcome {
	if c.habits.Concurrency <= 1 {
		return c.side(ctx, intent, path, sends)
	}
	paths, starts := make([]string, c.habits.Concurrency), make([]time.Duration, c.habits.Concurrency)
	for i := range paths {
		paths[i], starts[i] = path+"/side."+strconv.Itoa(i+1), time.Duration(i)*c.habits.Stagger
	}
	return c.beside(ctx, intent.Operation, paths, starts, func(i int) lab.Outcome {
		return c.side(ctx, intent, paths[i], sends)
	})
}

// best is the outcome of an operation that is sent several times side by side: that of the send that
// knows most. Its end is the end of the last.
func best(outcomes []lab.Outcome) lab.Outcome {
	rank := map[lab.Belief]int{lab.OK: 3, lab.Unknown: 2, lab.Failed: 1}
	out := outcomes[0]
	for _, o := range outcomes[1:] {
		done := max(out.DoneAt, o.DoneAt)
		// Of two that know as much it does not matter which is taken, only that it is not chance.
		if r := rank[o.Belief] - rank[out.Belief]; r > 0 || r == 0 && o.Reason < out.Reason {
			out = o
		}
		out.DoneAt = done
	}
	return out
}

// side sends the order once through all layers and makes up the caller's mind. sends counts over
// all sides of the operation.
func (c *Caller) side(ctx context.Context, intent Intent, path string, sends *atomic.Int64) lab.Outcome {
	o := &order{habits: c.habits, intent: intent, seed: c.config.Seed, clock: c.config.Clock, path: path, sends: sends}
	out := c.send(ctx, o)
	if out.Belief == lab.Unknown && c.habits.Ask != nil {
		return c.pursue(ctx, o, out)
	}
	return out
}

// send sends an order once through all layers.
func (c *Caller) send(ctx context.Context, o *order) lab.Outcome {
	o.left = &atomic.Bool{}
	trip := Trip{Operation: o.intent.Operation, Tenant: o.intent.Tenant, Path: o.path, Body: c.habits.Body, payload: o, left: o.left}
	out := lab.Outcome{Operation: o.intent.Operation}
	resp, err := c.roundTrip(ctx, trip, c.habits.Method)
	var content []byte
	switch {
	case err != nil:
	case c.leaks(o.intent.Operation):
		c.transport.leak(resp.Body)
	default:
		content, err = readAll(resp.Body)
	}
	out.DoneAt = c.config.Clock.Now()
	if err != nil {
		e := asError(err)
		out.Belief, out.Reason = lab.Unknown, words(e.Failure)
		if e.Gone {
			out.Reason = cancelled
		}
		if e.Status != 0 {
			out.Status, out.Reason = e.Status, fmt.Sprintf("%d %s", e.Status, words(e.Failure))
		}
		if !o.left.Load() {
			out.Belief = lab.Failed
		}
		return out
	}
	out.Status = resp.StatusCode
	out.Belief, out.Reason = believe(resp, content)
	if isAccepted(out) && c.habits.Ask != nil {
		out.Belief = lab.Unknown // who can ask does not take a promise for the thing
	}
	if slices.Contains(c.habits.Accept, out.Status) {
		out.Belief, out.Reason = lab.OK, strconv.Itoa(out.Status)+" accepted"
	}
	if out.Belief == lab.OK {
		var reply lab.OrderReply
		if json.Unmarshal(content, &reply) == nil {
			out.Order = reply.Order
		}
		c.config.Record(lab.Event{
			Kind: lab.Told, Operation: o.intent.Operation, Send: resp.Request.Header.Get(lab.HeaderSend), Node: c.config.Node,
			Status: out.Status, Order: out.Order,
		})
	}
	return out
}

// isAccepted reports whether an operation was answered that it will be done.
func isAccepted(out lab.Outcome) bool { return out.Status == http.StatusAccepted }

// leaks reports whether the answer to an operation is never closed.
func (c *Caller) leaks(operation string) bool {
	return slices.ContainsFunc(c.habits.Leaks, func(n int) bool { return operation == "op-"+strconv.Itoa(n) })
}

// believe is what a caller makes of an answer.
func believe(resp *http.Response, content []byte) (lab.Belief, string) {
	status := strconv.Itoa(resp.StatusCode)
	switch {
	case resp.StatusCode < 300 && !blank(content) && !json.Valid(content):
		return lab.Unknown, status + " " + words(policy.Malformed)
	case resp.StatusCode < 300 && resp.Header.Get(lab.HeaderReplayed) != "":
		return lab.OK, status + " replay"
	case resp.StatusCode < 300:
		return lab.OK, status
	case resp.StatusCode == http.StatusBadGateway, resp.StatusCode == http.StatusGatewayTimeout:
		// A gateway that got no answer knows no more than the caller.
		return lab.Unknown, status
	}
	var p lab.Problem
	switch json.Unmarshal(content, &p); {
	case resp.StatusCode == http.StatusConflict && p.Type == lab.ProblemInProgress:
		return lab.Unknown, status + " in progress"
	case p.Type == lab.ProblemUpstream:
		// It is the hop's own, and says of the service no more than a 502 does.
		return lab.Unknown, status + " upstream"
	}
	return lab.Failed, status
}

// words names a failure as reports do.
func words(f policy.Failure) string { return strings.ReplaceAll(string(f), "-", " ") }

// order is the payload of one side of an operation: what its sends carry.
type order struct {
	habits Habits
	intent Intent
	seed   int64
	clock  *vtime.Clock
	path   string        // of the side
	sends  *atomic.Int64 // of the operation
	own    atomic.Int64  // of the side
	salt   string        // makes its keys other ones
	left   *atomic.Bool  // something of it may have left the host
	last   atomic.Value  // the key that was sent last, a string
}

// lastKey is the key that was sent last, "" where there was none.
func (o *order) lastKey() string {
	key, _ := o.last.Load().(string)
	return key
}

func (o *order) number() int {
	o.own.Add(1)
	return int(o.sends.Add(1))
}

// content returns the body or query of the n-th send.
func (o *order) content(path string, n int) []byte {
	amount, item := cmp.Or(o.intent.Amount, o.habits.Amount), cmp.Or(o.intent.Item, "book")
	switch o.habits.Content {
	case "", "same", "signed", "spaced":
	case "changing":
		amount += int64(n-1) * 100
	default:
		_, try := triedBy(path, o.habits.Content)
		amount += int64(try-1) * 100
	}
	if o.habits.Body == policy.NoBody {
		return []byte(url.Values{"item": {item}, "amount_minor": {strconv.FormatInt(amount, 10)}}.Encode())
	}
	request := lab.OrderRequest{Item: item, Amount: amount}
	if o.habits.Content == "signed" {
		request.SignedAt = lab.Millis(o.clock.Now())
	}
	body, _ := json.Marshal(request)
	if o.habits.Content == "spaced" && n > 1 {
		var spaced bytes.Buffer
		json.Indent(&spaced, body, "", strings.Repeat(" ", n)) // what was just written can be read
		return spaced.Bytes()
	}
	return body
}

// keys returns the idempotency keys of the n-th send.
func (o *order) keys(path string, n int) []string {
	keys := o.makeKeys(path, n)
	if len(keys) > 0 {
		o.last.Store(keys[0])
	}
	return keys
}

func (o *order) makeKeys(path string, n int) []string {
	if o.intent.Key != "" {
		return []string{o.intent.Key + o.salt}
	}
	switch o.habits.Key {
	case "", "none", "server":
		return nil
	case "operation":
		return []string{o.key(o.intent.Operation)}
	case "attempt":
		return []string{o.key(path)}
	case "content":
		return []string{o.key(string(o.content(path, n)))}
	case "appended":
		// An interceptor that adds a header on every attempt, to a request that keeps them: the
		// third carries three values.
		var keys []string
		for i := range o.own.Load() {
			keys = append(keys, o.key(o.path+"#"+strconv.FormatInt(i+1, 10)))
		}
		return keys
	}
	try, _ := triedBy(path, o.habits.Key)
	return []string{o.key(try)}
}

func (o *order) keyed() bool {
	return o.intent.Key != "" || !slices.Contains([]string{"", "none", "server"}, o.habits.Key)
}

// key derives a key from what it stands for.
func (o *order) key(of string) string { return MakeKey(o.seed, of+o.salt) }

// MakeKey derives an idempotency key from what it stands for.
func MakeKey(seed int64, of string) string {
	return fmt.Sprintf("%012x", uint64(lab.Draw(seed, "key", of)*(1<<48)))
}
