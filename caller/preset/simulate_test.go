package preset

import (
	"testing"
	"time"

	"retrylab/caller/policy"
)

// run is what a simulated play came to.
type run struct {
	sends     int             // requests that the innermost layer started
	arrivals  int             // those that reached a server
	waits     []time.Duration // of all layers, in order
	instances []int           // the instance of each send
}

// world plays a Play without sockets and without time: nested loops over Next, and a far end that
// does to every request what the play says.
type world struct {
	t        *testing.T
	play     Play
	layers   []policy.Layer
	idle     int // idle connections left
	instance int // the one that the next send goes to
	address  int // of the host, counted up as they fail
	now      time.Duration
	run      run
}

// simulate plays p and returns what came of it.
func simulate(t *testing.T, p Play) run {
	t.Helper()
	w := &world{t: t, play: p, idle: p.Idle}
	settings := p.Layers
	if p.Hop != nil {
		settings = append(settings, p.Hop.Layer)
	}
	for _, s := range settings {
		l, err := Resolve(s)
		if err != nil {
			t.Fatal(err)
		}
		w.layers = append(w.layers, l)
	}
	w.call(0)
	return w.run
}

// call is one try of the layer outside depth: all tries of the layer at depth, or one send.
func (w *world) call(depth int) policy.Outcome {
	if depth == len(w.layers) {
		return w.send()
	}
	var tries []policy.Outcome
	start := w.now
	for {
		o := w.call(depth + 1)
		o.Elapsed = w.now - start
		tries = append(tries, o)
		if len(tries) > 1000 {
			w.t.Fatal("a layer does not stop")
		}
		d := w.layers[depth].Next(tries, 0.5)
		if !d.Retry {
			return tries[len(tries)-1]
		}
		if d.Move {
			w.instance = (w.instance + 1) % w.play.Servers
		}
		w.now += d.Wait
		w.run.waits = append(w.run.waits, d.Wait)
	}
}

// send is one request and what the far end does to it.
func (w *world) send() policy.Outcome {
	o := policy.Outcome{
		Method:     w.play.Method,
		Key:        w.play.Key,
		Body:       w.play.Body,
		Failure:    w.play.Trigger,
		Status:     w.play.Status,
		Instances:  w.play.Servers,
		CallerGone: w.play.CallerGivesUpFirst,
		Timeout:    w.play.ReadTimeout,
	}
	if w.play.Trigger == policy.ReadTimeout {
		w.late(&o)
	}
	o.RetryAfter, o.HasRetryAfter = policy.ParseRetryAfter(w.play.RetryAfter, time.Unix(0, 0))
	refused := w.play.FirstRefuses && w.instance == 0 && w.address == 0
	if refused {
		o.Failure, o.Status, o.HasRetryAfter = policy.Refused, 0, false
	} else if w.idle > 0 {
		w.idle--
		o.Reused = true
	}
	o.AddressLeft = w.address+1 < w.play.Addresses
	if o.Failure != policy.NoFailure && !o.Reused && o.AddressLeft {
		w.address++
	}
	w.run.sends++
	w.run.instances = append(w.run.instances, w.instance)
	if o.Failure.Left() {
		w.run.arrivals++
	}
	return o
}

// late lets a try end at the first limit that bounds it.
func (w *world) late(o *policy.Outcome) {
	inner := w.layers[len(w.layers)-1]
	limit, failure := w.play.ReadTimeout, policy.ReadTimeout
	if inner.Timeout > 0 && (limit == 0 || inner.Timeout < limit) {
		limit, failure = inner.Timeout, policy.AttemptTimeout
	}
	if left := inner.Total - w.now; inner.Total > 0 && (limit == 0 || left <= limit) {
		limit, failure = left, policy.TotalTimeout
	}
	w.now += limit
	o.Failure = failure
	if limit == 0 {
		o.Failure, o.Status = policy.NoFailure, 201
	}
}
