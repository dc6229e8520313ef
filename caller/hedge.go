package caller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"retrylab/caller/policy"
	"retrylab/internal/lab"
)

// hedged is a call of a layer whose tries run side by side.
type hedged struct {
	*layer
	ctx     context.Context // of the call; that of a try does not end with it
	trip    Trip
	req     *http.Request
	began   int         // tries so far
	most    int         // tries that there may be
	last    Trip        // the newest
	ended   chan finish // with room for every try, since nobody may be left to listen
	cancels map[int]context.CancelFunc
	paid    float64 // for the last further try
	failed  finish  // the last that has failed
}

// finish is how the n-th try of a hedged call ended.
type finish struct {
	n    int
	try  Trip
	resp *http.Response
	err  error
	out  policy.Outcome
}

// hedge starts a further try whenever none has succeeded for a while, and returns the first success.
func (l *layer) hedge(ctx context.Context, req *http.Request) (*http.Response, error) {
	h := &hedged{
		layer: l, ctx: ctx, trip: TripOf(ctx), req: req, most: l.Attempts,
		ended: make(chan finish, l.Attempts), cancels: map[int]context.CancelFunc{},
	}
	l.account.call()
	h.further()
	due, stop := h.alarm()
	defer func() { stop() }()
	for {
		select {
		case <-due:
			if over(ctx) {
				return nil, h.giveUp()
			}
			if due = nil; h.further() {
				due, stop = h.alarm()
			}
		case f := <-h.ended:
			delete(h.cancels, f.n)
			if over(ctx) {
				return nil, h.giveUp()
			}
			if f.out.Succeeded() {
				l.account.succeed(h.paid)
				h.leave()
				return f.resp, nil
			}
			if h.failed = f; !l.Lasts(f.out) {
				h.stop(l.Next([]policy.Outcome{f.out}, 0).Reason)
				h.leave()
				return h.answer()
			}
			l.account.fail(f.out)
		case <-ctx.Done():
			return nil, h.giveUp()
		}
		if h.began == h.most && len(h.cancels) == 0 {
			h.stop(fmt.Sprintf("attempts %d reached", h.most))
			return h.answer()
		}
	}
}

// alarm returns what tells when the next try is due.
func (h *hedged) alarm() (due chan struct{}, stop func() bool) {
	due = make(chan struct{})
	return due, h.clock.AfterFunc(h.clock.Apart(h.Hedge), func() { close(due) })
}

// further starts the next try, unless there may be none.
func (h *hedged) further() bool {
	if h.began > 0 {
		if h.began == h.most {
			return false
		}
		cost, ok := h.account.pay(policy.Outcome{})
		if !ok {
			h.stop(policy.BudgetSpent)
			h.most = h.began
			return false
		}
		h.paid = cost
		h.note(lab.Event{
			Kind: lab.Retry, Send: h.last.Path, Wait: h.Hedge,
			Detail: fmt.Sprintf("no success after %v: try %d of %d", h.Hedge, h.began+1, h.most),
		})
	}
	h.began++
	n, try := h.began, h.trip.step(h.Name, h.began)
	h.last = try
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.ctx))
	h.cancels[n] = cancel
	h.group.Go(func() {
		defer cancel()
		resp, err := h.try(ctx, try, h.req)
		if err == nil {
			resp.Body.Close() // it is read; what ends here is its limit
		}
		h.ended <- finish{n, try, resp, err, h.outcome(ctx, try, h.req, resp, err)}
	})
	return true
}

// leave leaves the other tries to themselves, or ends them.
func (h *hedged) leave() {
	if h.Losers == policy.CancelLosers {
		h.cancelAll()
	}
}

// cancelAll ends the tries that are under way, one after the other, so that it is no chance which
// comes first.
func (h *hedged) cancelAll() {
	for _, n := range slices.Sorted(maps.Keys(h.cancels)) {
		for h.cancels[n](); h.cancels[n] != nil; {
			f := <-h.ended
			delete(h.cancels, f.n)
		}
	}
}

// giveUp ends a call whose limit is over, or which nobody waits for any more.
func (h *hedged) giveUp() *Error {
	running := len(h.cancels) > 0
	h.cancelAll()
	if !running {
		return h.interrupted(h.ctx, h.last)
	}
	e := &Error{Failure: policy.TotalTimeout, Target: h.last.Targets[0], Err: context.Cause(h.ctx)}
	e.Gone = !errors.As(e.Err, new(*limit))
	return e
}

// answer is what the last try that failed came to.
func (h *hedged) answer() (*http.Response, error) {
	if h.failed.err != nil {
		return nil, h.outward(h.failed.out, h.failed.err)
	}
	return h.failed.resp, nil
}

func (h *hedged) stop(reason string) {
	at := h.last
	if h.failed.n != 0 {
		at = h.failed.try
	}
	h.note(lab.Event{Kind: lab.Stop, Send: at.Path, Detail: reason})
}

func (h *hedged) note(e lab.Event) {
	e.Operation, e.Node = h.trip.Operation, h.node
	h.record(e)
}
