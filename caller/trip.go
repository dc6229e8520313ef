// Package caller is the sending side: retry layers as net/http middleware around pure policies, a
// transport whose every send is counted, and a caller that performs operations through them and
// ends each with a belief. A hop uses the same layers and transport for what it sends on. The
// package knows nothing of scenarios, and meets a server only over HTTP.
package caller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"retrylab/caller/policy"
	"retrylab/internal/vtime"
)

// Trip is what travels with a request down the layers: who sends it, by which path of tries, and
// where it may go.
type Trip struct {
	Operation string
	Tenant    string   // whose request it is; empty where nobody asks
	Path      string   // the path of tries so far: op-1/feign-retryer.2
	Targets   []string // the hosts it may go to, in order; a layer that balances leaves one
	Body      policy.Body
	To        string // the path of what it asks for; the orders when empty

	// Gone reports that whoever asked for the request has left, where the sender notices; nil
	// where nobody can.
	Gone func() bool

	// Within is what is left of the time that whoever asked for the request has given, in scenario
	// time; 0 for no limit. Deadline is that limit as it came over the wire, to go on with the request
	// untouched; empty for none.
	Within   time.Duration
	Deadline string

	life       context.Context // of the sender: ends with it, and with no limit
	payload    payload
	left       *atomic.Bool // something of it may have left the host
	spent      bool         // its body is a stream that has been read
	redirected string       // the path of the send that was redirected; empty for none
}

// payload makes what a send carries: the body or query, and the idempotency keys.
type payload interface {
	number() int // of a new send, from 1
	content(path string, n int) []byte
	keys(path string, n int) []string
	keyed() bool // whether a send carries a key at all
}

type tripKey struct{}

// with returns ctx with t in it.
func (t Trip) with(ctx context.Context) context.Context { return context.WithValue(ctx, tripKey{}, t) }

// TripOf returns the trip that a request, or its dialling of a connection, belongs to.
func TripOf(ctx context.Context) Trip {
	t, _ := ctx.Value(tripKey{}).(Trip)
	return t
}

// step is the trip as the n-th try of a layer goes on with it.
func (t Trip) step(layer string, n int) Trip {
	t.Path = fmt.Sprintf("%s/%s.%d", t.Path, layer, n)
	return t
}

// triedBy returns a path up to the try of a layer in it, and the number of that try.
func triedBy(path, layer string) (string, int) {
	steps := strings.Split(path, "/")
	for i, step := range slices.Backward(steps) {
		if number, ok := strings.CutPrefix(step, layer+"."); ok {
			n, _ := strconv.Atoi(number)
			return strings.Join(steps[:i+1], "/"), n
		}
	}
	return path, 1
}

// Error is a try that ended without a whole answer.
type Error struct {
	Failure policy.Failure
	Status  int    // of an answer that cannot be used, 0 where there was none
	InBody  bool   // the status and the headers had arrived, and been handed up
	Reused  bool   // the connection had served a request before
	Target  string // the host it was sent to
	Gone    bool   // it was given up because whoever asked for it had left
	Err     error
}

// Error says what failed, in the words of reports.
func (e *Error) Error() string {
	return fmt.Sprintf("%s from %s", e.Failure, e.Target)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// NoUpstream is the failure of a hop that has no server left to send to.
const NoUpstream policy.Failure = "no-live-upstream"

// limit is a bound in time that a part of the sender has set. It is the cause of the context that
// it ends.
type limit struct {
	stage string // as events name it: acquire, connect, attempt, total, or the layer that set it
	end   time.Time
	outer *limit // the one set before it, nil for none
}

func (l *limit) Error() string { return l.stage + " time-out" }

type limitKey struct{}

// within returns ctx with a limit of d in scenario time on it; zero is none.
func within(ctx context.Context, clock *vtime.Clock, d time.Duration, stage string) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return ctx, func() {}
	}
	outer, _ := ctx.Value(limitKey{}).(*limit)
	l := &limit{stage: stage, end: clock.Deadline(d), outer: outer}
	ctx, cancel := context.WithDeadlineCause(ctx, l.end, l)
	return context.WithValue(ctx, limitKey{}, l), cancel
}

// expired returns the outermost limit on ctx whose time has come, nil for none. It asks the time
// and not the context: limits that end at one instant do so in an order that nobody chose.
func expired(ctx context.Context) *limit {
	now := time.Now()
	var found *limit
	l, _ := ctx.Value(limitKey{}).(*limit)
	for ; l != nil; l = l.outer {
		if !now.Before(l.end) {
			found = l
		}
	}
	return found
}

// over reports whether ctx has ended, or ends at this instant.
func over(ctx context.Context) bool { return ctx.Err() != nil || expired(ctx) != nil }

// Timeouts are the separate limits of a sender, in scenario time; zero is none.
type Timeouts struct {
	Acquire time.Duration // for a free connection of the pool
	Connect time.Duration // for a connection
	Read    time.Duration // longest silence between two reads
	Attempt time.Duration // one send, from its start to its whole answer
	Total   time.Duration // all layers and tries
}

// asError returns the [*Error] in err. Every error of a trip is one; another is a defect of the
// lab's own.
func asError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	panic(fmt.Sprintf("caller: an error without a failure: %v", err))
}
