package caller

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"

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
	record func(lab.Event)
	peers  chooser // nil for a layer that knows nothing of instances
	routes bool    // tries the other addresses of a host
	read   Timeouts
	next   http.RoundTripper
}

// wrap returns next inside the layers, the first of them outermost.
func wrap(next http.RoundTripper, c Config) http.RoundTripper {
	for i := len(c.Layers) - 1; i >= 0; i-- {
		l := &layer{
			Layer: c.Layers[i], node: c.Node, seed: c.Seed, clock: c.Clock, record: c.Record,
			read: c.Timeouts, next: next,
			routes: slices.ContainsFunc(c.Layers[i].Rules, func(r policy.Rule) bool { return r.AddressLeft }),
		}
		switch {
		case l.Peers:
			l.peers = newUpstreams(c.Targets, l.MaxFails, l.FailTimeout)
		case l.PerInstance > 0:
			l.peers = &roundRobin{targets: c.Targets}
		}
		next = l
	}
	return next
}

// RoundTrip tries until the policy says stop. Every error is an [*Error].
func (l *layer) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := req.Context(), func() {}
	if l.Total > 0 {
		ctx, cancel = l.clock.WithTimeout(ctx, l.Total, &limit{l.Name + " total"})
	}
	trip := TripOf(ctx)
	targets := trip.Targets
	var tries []policy.Outcome
	var seen []string // the instances tried in this call
	move := true
	waited := policy.Decision{}
	for n := 1; ; n++ {
		try := trip.step(l.Name, n)
		try.Targets = targets
		if l.peers != nil {
			if move {
				target, ok := l.peers.pick(l.clock.Now(), seen)
				if !ok {
					cancel()
					l.record(lab.Event{Kind: lab.Failure, Operation: trip.Operation, Send: try.Path, Node: l.node, Detail: string(NoUpstream)})
					return nil, &Error{Failure: NoUpstream, Target: l.node}
				}
				seen = append(seen, target)
			}
			try.Targets = []string{seen[len(seen)-1]}
		}
		tryCtx, cancelTry := ctx, func() {}
		if l.Timeout > 0 {
			tryCtx, cancelTry = l.clock.WithTimeout(ctx, l.Timeout, &limit{l.Name})
		}
		resp, err := l.next.RoundTrip(req.Clone(try.with(tryCtx)))
		out := l.outcome(ctx, tryCtx, try, req, resp, err, len(targets))
		out.Waited = waited.Wait
		tries = append(tries, out)
		if l.peers != nil {
			l.peers.report(l.clock.Now(), try.Targets[0], out.Failure != policy.NoFailure && !out.CallerGone)
		}
		d := l.Next(tries, lab.Draw(l.seed, l.node, trip.Path, l.Name, strconv.Itoa(n)))
		if !d.Retry {
			if out.Failure != policy.NoFailure || out.Status >= 300 {
				l.record(lab.Event{Kind: lab.Stop, Operation: trip.Operation, Send: try.Path, Node: l.node, Detail: d.Reason})
			}
			if err != nil {
				cancelTry()
				cancel()
				return nil, l.outward(ctx, out, err)
			}
			resp.Body = &closer{ReadCloser: resp.Body, cancels: []func(){cancelTry, cancel}}
			return resp, nil
		}
		if resp != nil {
			resp.Body.Close()
		}
		cancelTry()
		l.record(lab.Event{Kind: lab.Retry, Operation: trip.Operation, Send: try.Path, Node: l.node, Wait: d.Wait, Detail: d.Reason})
		if l.clock.Sleep(ctx, d.Wait) != nil {
			defer cancel()
			return nil, l.interrupted(ctx, try)
		}
		waited, move = d, d.Move || l.Peers
		if out.AddressLeft {
			targets = targets[1:]
		}
	}
}

// interrupted is the error of a layer whose wait was ended by a limit above it.
func (l *layer) interrupted(ctx context.Context, try Trip) *Error {
	e := &Error{Failure: policy.TotalTimeout, Target: l.node, Err: context.Cause(ctx)}
	var expired *limit
	if errors.As(context.Cause(ctx), &expired) {
		l.record(lab.Event{Kind: lab.Timeout, Operation: try.Operation, Send: try.Path, Node: l.node, Detail: expired.stage})
	} else {
		e.Gone = true
	}
	return e
}

// outward is a try's error as the layer above sees it: a limit of this layer is, from outside, a
// try that took too long.
func (l *layer) outward(ctx context.Context, out policy.Outcome, err error) error {
	e := *asError(err)
	e.Failure = out.Failure
	return &e
}

// outcome is what the policy may know of a try.
func (l *layer) outcome(ctx, tryCtx context.Context, try Trip, req *http.Request, resp *http.Response, err error, addresses int) policy.Outcome {
	out := policy.Outcome{
		Method:    req.Method,
		Key:       len(try.payload.keys(try.Path, 1)) > 0,
		Body:      try.Body,
		Timeout:   l.read.Read,
		Remaining: remaining(ctx, l.clock),
	}
	if l.peers != nil {
		out.Instances = l.peers.size()
	}
	out.AddressLeft = l.routes && addresses > 1
	if try.Gone != nil {
		out.CallerGone = try.Gone()
	}
	if err == nil {
		out.Status = resp.StatusCode
		out.RetryAfter, out.HasRetryAfter = policy.ParseRetryAfter(resp.Header.Get("Retry-After"), l.clock.Date())
		return out
	}
	e := asError(err)
	out.Failure, out.InBody, out.Reused = e.Failure, e.InBody, e.Reused
	out.CallerGone = out.CallerGone || e.Gone
	switch {
	case ctx.Err() != nil:
		out.Failure = policy.TotalTimeout
	case e.Failure == policy.TotalTimeout:
		out.Failure = policy.AttemptTimeout
	}
	return out
}

// closer ends the limits of an answer when its body is closed.
type closer struct {
	io.ReadCloser
	cancels []func()
}

// Close closes the body and ends its limits.
func (c *closer) Close() error {
	err := c.ReadCloser.Close()
	for _, cancel := range c.cancels {
		cancel()
	}
	return err
}
