package caller

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"retrylab/caller/policy"
	"retrylab/internal/lab"
	"retrylab/internal/vtime"
)

// layer is one retry loop as middleware: it plays what its policy decides.
type layer struct {
	policy.Layer
	node   string
	seed   int64
	clock  *vtime.Clock
	own    TotalClock // the machine's own calendar: what it takes a date for
	record func(lab.Event)
	read   time.Duration // the read time-out in force
	group  *vtime.Group  // of the tries side by side
	peers  chooser       // nil for a layer that knows nothing of instances
	routes bool          // tries the other addresses of a host
	whole  bool          // reads an answer to its end before it decides: a rule asks what became of the body
	next   http.RoundTripper

	account *account // of its retry budget; nil for none
}

// wrap returns next inside the layers, the first of them outermost.
func wrap(next http.RoundTripper, c Config) http.RoundTripper {
	for _, p := range slices.Backward(c.Layers) {
		l := &layer{
			Layer: p, node: c.Node, seed: c.Seed, clock: c.Clock, own: c.Clocked, record: c.Record,
			read: c.Timeouts.Read, group: c.Group, account: newAccount(p.Budget),
			routes: slices.ContainsFunc(p.Rules, func(r policy.Rule) bool { return r.AddressLeft }),
			whole:  p.Hedge > 0 || slices.ContainsFunc(p.Rules, func(r policy.Rule) bool { return r.InBody }),
			next:   next,
		}
		switch {
		case p.Peers:
			l.peers = newUpstreams(c.Targets, p.MaxFails, p.FailTimeout)
		case p.PerInstance > 0:
			l.peers = &roundRobin{targets: c.Targets}
		}
		next = l
	}
	return next
}

// RoundTrip tries until the policy says stop. Every error is an [*Error].
func (l *layer) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := within(req.Context(), l.clock, l.Total, l.Name+" total")
	run := l.loop
	if l.Hedge > 0 {
		run = l.hedge
	}
	resp, err := run(ctx, req)
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &limited{ReadCloser: resp.Body, cancel: cancel}
	return resp, nil
}

func (l *layer) loop(ctx context.Context, req *http.Request) (*http.Response, error) {
	trip := TripOf(ctx)
	targets := trip.Targets
	var tries []policy.Outcome
	var seen []string // the instances tried in this call
	var waited time.Duration
	var paid float64 // for the last retry
	l.account.call()
	start := l.clock.Now()
	move := true
	for n := 1; ; n++ {
		try := trip.step(l.Name, n)
		try.Targets = targets
		// A stream is read once: whoever sends it again without noticing sends nothing.
		try.spent = trip.spent || n > 1 && l.ResendsEmpty && !slices.Contains(policy.Repeatable, trip.Body)
		if l.peers != nil {
			if move {
				target, ok := l.peers.pick(l.clock.Now(), seen)
				if !ok {
					l.record(lab.Event{Kind: lab.Failure, Operation: trip.Operation, Send: try.Path, Node: l.node, Detail: string(NoUpstream)})
					return nil, &Error{Failure: NoUpstream, Target: l.node}
				}
				seen = append(seen, target)
			}
			try.Targets = seen[len(seen)-1:]
		}
		resp, err := l.try(ctx, try, req)
		out := l.outcome(ctx, try, req, resp, err)
		out.Waited, out.Elapsed = waited, l.clock.Now()-start
		tries = append(tries, out)
		d := l.Next(tries, lab.Draw(l.seed, l.node, trip.Path, l.Name, strconv.Itoa(n)))
		paid, d = l.settle(out, d, paid)
		if l.peers != nil {
			l.peers.report(l.clock.Now(), try.Targets[0], out, d.Retry)
		}
		if !d.Retry {
			if out.Failure != policy.NoFailure || out.Status >= 300 {
				l.record(lab.Event{Kind: lab.Stop, Operation: trip.Operation, Send: try.Path, Node: l.node, Detail: d.Reason})
			}
			if err != nil {
				return nil, l.outward(out, err)
			}
			return resp, nil
		}
		if resp != nil {
			resp.Body.Close()
		}
		l.record(lab.Event{Kind: lab.Retry, Operation: trip.Operation, Send: try.Path, Node: l.node, Wait: d.Wait, Detail: d.Reason})
		if !l.wait(ctx, d.Wait) {
			return nil, l.interrupted(ctx, try)
		}
		waited, move = d.Wait, d.Move || l.Peers
		if out.AddressLeft && out.Failure != policy.NoFailure && !out.Reused {
			// A new connection to this address did not do. One that had served before says nothing
			// of the address: it is tried again, and so it is after a status.
			targets = targets[1:]
		}
	}
}

// settle settles a try with the retry budget: what its decision comes to, and what was paid for the
// next try, after paid for this one.
func (l *layer) settle(out policy.Outcome, d policy.Decision, paid float64) (float64, policy.Decision) {
	if !l.account.with(func(of *policy.Account) { paid, d = l.Settle(of, out, d, paid) }) {
		return 0, d
	}
	return paid, d
}

// wait waits before a retry. It reports false where a limit on all tries is over by then.
func (l *layer) wait(ctx context.Context, d time.Duration) bool {
	if !l.PastDeadline {
		return l.clock.Sleep(ctx, d) == nil && !over(ctx)
	}
	// It has a limit of its own in mind, and does not look at the one around it.
	return l.clock.Sleep(TripOf(ctx).life, d) == nil
}

// try sends req on, within the limit of a try.
func (l *layer) try(ctx context.Context, trip Trip, req *http.Request) (*http.Response, error) {
	if l.PastDeadline && over(ctx) {
		l.record(lab.Event{Kind: lab.Failure, Operation: trip.Operation, Send: trip.Path, Node: l.node, Detail: lab.PastDeadline})
		return nil, &Error{Failure: policy.TotalTimeout, Target: trip.Targets[0]}
	}
	ctx, cancel := within(ctx, l.clock, l.Timeout, l.Name)
	resp, err := l.next.RoundTrip(req.Clone(trip.with(ctx)))
	if err == nil && l.whole {
		var content []byte
		if content, err = readAll(resp.Body); err == nil {
			err = l.unusable(trip, resp, content)
			resp.Body = io.NopCloser(bytes.NewReader(content))
		}
	}
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &limited{ReadCloser: resp.Body, cancel: cancel}
	return resp, nil
}

// unusable is the error of a success that a layer cannot use, where it has a rule about that.
func (l *layer) unusable(trip Trip, resp *http.Response, content []byte) error {
	failure := policy.NoFailure
	switch {
	case resp.StatusCode >= 300:
	case blank(content):
		failure = policy.Empty
	case !json.Valid(content):
		failure = policy.Malformed
	}
	if failure == policy.NoFailure || !slices.ContainsFunc(l.Rules, func(r policy.Rule) bool { return slices.Contains(r.Failures, failure) }) {
		return nil
	}
	return &Error{Failure: failure, Status: resp.StatusCode, InBody: true, Target: trip.Targets[0]}
}

// blank reports whether an answer's body says nothing.
func blank(content []byte) bool { return len(bytes.TrimSpace(content)) == 0 }

// outcome is what the policy may know of a try.
func (l *layer) outcome(ctx context.Context, try Trip, req *http.Request, resp *http.Response, err error) policy.Outcome {
	out := policy.Outcome{
		Method:      req.Method,
		Key:         try.payload.keyed(),
		Body:        try.Body,
		AddressLeft: l.routes && len(try.Targets) > 1,
		CallerGone:  try.Gone != nil && try.Gone(),
		Timeout:     l.read,
		Remaining:   remaining(ctx, l.clock),
	}
	if l.peers != nil {
		out.Instances = l.peers.size()
	}
	if err == nil {
		out.Status = resp.StatusCode
		out.RetryAfter, out.HasRetryAfter = policy.ParseRetryAfter(resp.Header.Get("Retry-After"), l.clock.Date().Add(l.own.shift(l.clock.Now())))
		return out
	}
	e := asError(err)
	out.Failure, out.InBody, out.Reused = e.Failure, e.InBody, e.Reused
	out.CallerGone = out.CallerGone || e.Gone
	switch {
	case over(ctx) && !l.PastDeadline:
		out.Failure = policy.TotalTimeout
	case e.Failure == policy.TotalTimeout:
		// A total further down, or the limit that this layer sets to a try.
		out.Failure = policy.AttemptTimeout
	}
	return out
}

// outward is the error of the last try as the layer above sees it. What this layer has read itself
// is for those above a try that failed, not an answer that broke off.
func (l *layer) outward(out policy.Outcome, err error) *Error {
	e := *asError(err)
	e.Failure = out.Failure
	e.InBody = e.InBody && !l.whole
	return &e
}

// interrupted is the error of a layer whose wait was ended by a limit on all of its tries.
func (l *layer) interrupted(ctx context.Context, try Trip) *Error {
	e := &Error{Failure: policy.TotalTimeout, Target: try.Targets[0], Err: context.Cause(ctx)}
	if limit := expired(ctx); limit != nil {
		e.Err = limit
		l.record(lab.Event{Kind: lab.Timeout, Operation: try.Operation, Send: try.Path, Node: l.node, Detail: limit.stage})
	} else {
		e.Gone = true
		l.record(lab.Event{Kind: lab.Stop, Operation: try.Operation, Send: try.Path, Node: l.node, Detail: "whoever asked has gone"})
	}
	return e
}

// limited is an answer's body that ends a limit when it is closed.
type limited struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close closes the body and ends its limit.
func (l *limited) Close() error {
	defer l.cancel()
	return l.ReadCloser.Close()
}

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 64 << 20

// readAll reads an answer's body to its end and closes it.
func readAll(body io.ReadCloser) ([]byte, error) {
	defer body.Close()
	return io.ReadAll(io.LimitReader(body, maxAnswer))
}
