// Package simulation plays a trial without machines: events in the order of time, and nothing between
// them. It has no sockets, no database and no goroutines, so a million clients fit. What the clients
// decide comes from the same policies as in package caller, and all that is drawn is drawn as there and
// as on the virtual clock's network: one simulated client does the same at the same times as a real one.
package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"retrylab/caller/policy"
	"retrylab/internal/lab"
	"retrylab/internal/vtime"
	"retrylab/scenarios"
	"retrylab/slowserver/capacity"
	"retrylab/slowserver/fault"
)

// maxSends bounds what one trial may send. A scenario file is untrusted: layers multiply.
const maxSends = 20_000_000

var (
	errTooMuch = fmt.Errorf("more than %d sends: the layers multiply beyond what a simulation may do", maxSends)
	errHorizon = errors.New("the trial came to no end: something waits for ever")
)

// Run plays a trial that package scenarios has found fit to be simulated, and returns the counts that it
// came to. The error is that of ctx, or says that the trial was given up.
func Run(ctx context.Context, t scenarios.Trial) (lab.Observation, error) {
	return run(ctx, t, nil)
}

// run is Run, and has each event recorded as the machines would, unless record is nil.
func run(ctx context.Context, t scenarios.Trial, record func(lab.Event)) (lab.Observation, error) {
	w := newWorld(t, record)
	for n := 0; w.step(); n++ {
		switch {
		case n%4096 == 0 && ctx.Err() != nil:
			return lab.Observation{}, ctx.Err()
		case w.sends > maxSends:
			return lab.Observation{}, errTooMuch
		case w.now > lab.Horizon:
			return lab.Observation{}, errHorizon
		}
	}
	return w.observation(), nil
}

// world is all of a trial that is simulated.
type world struct {
	trial  scenarios.Trial
	record func(lab.Event) // nil for nobody
	now    time.Duration   // scenario time
	agenda agenda
	begins []time.Duration // of each operation
	order  []int32         // the operations as they begin
	begun  int             // how many have

	// Of every operation, or of every layer of every operation, in their order. They are one slice
	// each, so that a million clients are not many millions of things on the heap.
	names   []string
	clients []client
	levels  []level
	limits  []time.Duration

	accounts []*policy.Account // of the layers' budgets; nil for none
	tries    []policy.Outcome  // scratch
	path     []byte            // scratch

	server server

	sends   int
	settled time.Duration
	totals  lab.Totals
	ends    map[ending]int
	series  *lab.Series // nil where nobody asked for one
}

// client is the caller of one operation.
type client struct {
	send     uint32 // the number of its last send: what is about an earlier one comes too late
	open     bool   // it waits for what becomes of that
	left     bool   // something of it has left the host
	done     bool
	belief   belief
	orders   uint16
	whenDone uint16 // orders when it was done
}

// belief is a [lab.Belief], small.
type belief uint8

var beliefs = []lab.Belief{"", lab.OK, lab.Failed, lab.Unknown}

// ending is how an operation ended.
type ending struct {
	belief  belief
	failure uint8
	status  uint16
}

// level is one layer of a client during a call.
type level struct {
	past   []outcome // of its tries but the last
	began  time.Duration
	waited time.Duration
	paid   float64
}

// outcome is how a send or a call of a layer ended, as small as can be: it is kept for the layers above.
type outcome struct {
	failure       uint8 // one of policy.Failures, from 1; 0 for none
	hasRetryAfter bool
	status        uint16
	retryAfter    time.Duration
}

func failed(f policy.Failure) outcome {
	return outcome{failure: uint8(slices.Index(policy.Failures, f) + 1)}
}

func (o outcome) failed() policy.Failure { return failureOf(o.failure) }

func failureOf(n uint8) policy.Failure {
	if n == 0 {
		return policy.NoFailure
	}
	return policy.Failures[n-1]
}

// fill writes the outcome into one as a policy is given it.
func (o outcome) fill(out *policy.Outcome) {
	out.Failure, out.Status, out.RetryAfter, out.HasRetryAfter = o.failed(), int(o.status), o.retryAfter, o.hasRetryAfter
}

func newWorld(t scenarios.Trial, record func(lab.Event)) *world {
	setup, n := t.Setup, t.Setup.Operations
	w := &world{
		trial: t, record: record,
		names: make([]string, n), clients: make([]client, n), order: make([]int32, n),
		levels: make([]level, n*len(t.Layers)), limits: make([]time.Duration, n*(2*len(t.Layers)+2)),
		accounts: make([]*policy.Account, len(t.Layers)),
		server:   newServer(setup.Server),
		ends:     map[ending]int{},
		totals:   lab.Totals{Answers: map[int]int{}},
	}
	for i := range w.names {
		w.names[i] = "op-" + strconv.Itoa(i+1)
		w.order[i] = int32(i)
	}
	w.begins = setup.Begins(t.Seed)
	for i, d := range lab.Offsets(t.Seed, w.names) {
		w.begins[i] += d
	}
	slices.SortFunc(w.order, func(a, b int32) int { return cmp.Compare(w.begins[a], w.begins[b]) })
	for i, l := range t.Layers {
		if l.Budget != nil {
			w.accounts[i] = l.Budget.Open()
		}
	}
	if setup.Series.Window > 0 {
		w.series = &lab.Series{WindowMs: lab.Millis(setup.Series.Window)}
	}
	return w
}

// step has the next event happen. It reports false when there is none.
func (w *world) step() bool {
	waiting := len(w.agenda.events) > 0
	if w.begun < len(w.order) {
		if i := w.order[w.begun]; !waiting || w.begins[i] <= w.agenda.events[0].at {
			w.begun++
			w.now = w.begins[i]
			w.begin(i)
			return true
		}
	}
	if !waiting {
		return false
	}
	e := w.agenda.take()
	w.now = e.at
	switch e.kind {
	case arrives:
		w.arrive(e.who)
	case worked:
		w.commit(e.who)
	case replied:
		w.reply(e.who)
	case refused:
		if w.awaits(e) {
			w.fail(e.who, policy.Refused, lab.Failure, string(policy.Refused))
		}
	case limited:
		if w.awaits(e) {
			w.exceed(e.who)
		}
	case woken:
		w.try(e.who, int(e.level))
	case cut:
		w.interrupt(e.who, int(e.level))
	}
	return true
}

// plan has something happen after d.
func (w *world) plan(d time.Duration, e event) {
	e.at = w.now + d
	w.agenda.add(e)
}

// awaits reports whether the client still waits for what the event is about.
func (w *world) awaits(e event) bool {
	c := &w.clients[e.who]
	return c.open && c.send == e.send
}

// begin starts an operation.
func (w *world) begin(i int32) {
	w.note(i, lab.Event{Kind: lab.Start})
	w.count(func(s *lab.Series) *[]int { return &s.Operations })
	w.limit(i, 0, w.trial.Setup.Caller.Timeouts.Total)
	w.enter(i, 0)
}

// Limits stand in the order of their nesting: the caller's total, of each layer its total and that of a
// try, and the limit of the send.

// limit sets a limit that ends after d; 0 is none.
func (w *world) limit(i int32, which int, d time.Duration) {
	end := time.Duration(0)
	if d > 0 {
		end = w.now + d
	}
	w.limits[int(i)*w.depth()+which] = end
}

func (w *world) depth() int { return 2*len(w.trial.Layers) + 2 }

// within is the number of limits around the tries of a layer, and around a send for the layer below the
// last.
func within(k int) int { return 2*k + 2 }

// expired returns the outermost of the first n limits whose time has come, -1 for none.
func (w *world) expired(i int32, n int) int {
	return slices.IndexFunc(w.around(i, n), func(end time.Duration) bool { return end > 0 && end <= w.now })
}

// earliest returns when the first of the first n limits ends, 0 for never.
func (w *world) earliest(i int32, n int) (first time.Duration) {
	for _, end := range w.around(i, n) {
		if end > 0 && (first == 0 || end < first) {
			first = end
		}
	}
	return first
}

// remaining is what is left of the first n limits, 0 where there is none.
func (w *world) remaining(i int32, n int) time.Duration {
	if end := w.earliest(i, n); end > 0 {
		return end - w.now
	}
	return 0
}

func (w *world) around(i int32, n int) []time.Duration {
	first := int(i) * w.depth()
	return w.limits[first : first+n]
}

// stage names a limit as events do.
func (w *world) stage(which int) string {
	switch layer := (which - 1) / 2; {
	case which == 0:
		return "total"
	case layer == len(w.trial.Layers):
		return "attempt"
	case which%2 == 1:
		return w.trial.Layers[layer].Name + " total"
	default:
		return w.trial.Layers[layer].Name
	}
}

func (w *world) level(i int32, k int) *level { return &w.levels[int(i)*len(w.trial.Layers)+k] }

// enter calls a layer, or sends below the last.
func (w *world) enter(i int32, k int) {
	if k == len(w.trial.Layers) {
		w.send(i)
		return
	}
	l := w.level(i, k)
	l.began, l.waited, l.paid, l.past = w.now, 0, 0, l.past[:0]
	w.limit(i, 2*k+1, w.trial.Layers[k].Total)
	if a := w.accounts[k]; a != nil {
		a.Call()
	}
	w.try(i, k)
}

func (w *world) try(i int32, k int) {
	w.limit(i, 2*k+2, w.trial.Layers[k].Timeout)
	w.enter(i, k+1)
}

// pathOf is the path of tries above a layer.
func (w *world) pathOf(i int32, k int) string {
	w.path = append(w.path[:0], w.names[i]...)
	for j := range k {
		w.path = append(append(append(w.path, '/'), w.trial.Layers[j].Name...), '.')
		w.path = strconv.AppendInt(w.path, int64(len(w.level(i, j).past)+1), 10)
	}
	return string(w.path)
}

// send starts a request.
func (w *world) send(i int32) {
	c, all, caller := &w.clients[i], w.depth(), &w.trial.Setup.Caller
	timeouts := &caller.Timeouts
	path := w.pathOf(i, len(w.trial.Layers))
	c.send++
	c.open = true
	w.sends++
	w.limit(i, all-1, timeouts.Attempt)
	w.noteAt(path, i, lab.Event{Kind: lab.Send})
	w.count(func(s *lab.Series) *[]int { return &s.Starts })
	end := w.earliest(i, all)
	if end > 0 && end <= w.now {
		w.exceed(i) // it failed at once
		return
	}
	id := caller.Name + ">" + w.server.name + " " + path
	there, back := vtime.Latency(w.trial.Seed, id, "there"), vtime.Latency(w.trial.Seed, id, "back")
	connected := w.now + there + back
	lucky := w.server.draw(w.trial.Seed, path)
	struck := w.server.strikes(fault.AtConnect, 0, w.now, lucky)
	switch {
	case struck >= 0:
		w.fire(struck, i, path)
		w.agenda.add(event{at: connected, kind: refused, who: i, send: c.send})
	case end == 0 || end >= connected:
		c.left = true
		r := request{operation: i, send: c.send, back: int32(back), lucky: lucky}
		if left := w.remaining(i, all); left > 0 && caller.Deadline == "header" {
			r.deadline, _ = lab.ParseDeadline(lab.FormatDeadline(left))
		}
		if spread := w.trial.Setup.Server.ProcessingSpread; spread != (capacity.Spread{}) {
			r.spread = spread.At(lab.Draw(w.trial.Seed, path, "processing"))
		}
		n := w.server.take(r)
		if w.record != nil {
			w.server.paths[n] = path
		}
		w.agenda.add(event{at: connected + there, kind: arrives, who: n})
		if silent := connected + timeouts.Read; timeouts.Read > 0 && (end == 0 || silent < end) {
			end = silent
		}
	}
	if end > 0 {
		w.agenda.add(event{at: end, kind: limited, who: i, send: c.send})
	}
}

// exceed ends a send whose time is over.
func (w *world) exceed(i int32) {
	switch which := w.expired(i, w.depth()); {
	case which < 0:
		w.fail(i, policy.ReadTimeout, lab.Timeout, "read")
	case which == w.depth()-1:
		w.fail(i, policy.AttemptTimeout, lab.Timeout, w.stage(which))
	default:
		w.fail(i, policy.TotalTimeout, lab.Timeout, w.stage(which))
	}
}

// fail ends a send without an answer.
func (w *world) fail(i int32, f policy.Failure, kind lab.Kind, detail string) {
	w.noteSend(i, lab.Event{Kind: kind, Detail: detail})
	w.end(i, failed(f))
}

// end ends a send.
func (w *world) end(i int32, r outcome) {
	w.clients[i].open = false
	w.up(i, len(w.trial.Layers)-1, r)
}

// reply brings a client what has become of its request.
func (w *world) reply(n int32) {
	r := w.server.give(n)
	if c := &w.clients[r.operation]; !c.open || c.send != r.send {
		return
	}
	if f := r.outcome.failed(); f != policy.NoFailure {
		w.fail(r.operation, f, lab.Failure, string(f))
		return
	}
	w.noteSend(r.operation, lab.Event{Kind: lab.Reply, Status: int(r.outcome.status)})
	w.end(r.operation, r.outcome)
}

// up gives a layer the result of its try, which decides what comes next.
func (w *world) up(i int32, k int, r outcome) {
	if k < 0 {
		w.finish(i, r)
		return
	}
	layer, l, caller := &w.trial.Layers[k], w.level(i, k), &w.trial.Setup.Caller
	switch {
	case r.failure == 0:
	case w.expired(i, within(k)) >= 0:
		r.failure = failed(policy.TotalTimeout).failure
	case r.failed() == policy.TotalTimeout:
		r.failure = failed(policy.AttemptTimeout).failure
	}
	// Of its earlier tries a layer looks at what happened, of the last at more.
	w.tries = append(w.tries[:0], make([]policy.Outcome, len(l.past)+1)...)
	for j := range w.tries {
		out := &w.tries[j]
		out.Method, out.Body = caller.Method, caller.Body
		if j < len(l.past) {
			l.past[j].fill(out)
		}
	}
	n := len(w.tries)
	out := &w.tries[n-1]
	r.fill(out)
	out.Timeout, out.Remaining = caller.Timeouts.Read, w.remaining(i, within(k))
	out.Waited, out.Elapsed = l.waited, w.now-l.began
	d := layer.Next(w.tries, lab.Draw(w.trial.Seed, caller.Name, w.pathOf(i, k), layer.Name, strconv.Itoa(n)))
	if a := w.accounts[k]; a != nil {
		l.paid, d = layer.Settle(a, *out, d, l.paid)
	}
	if !d.Retry {
		if !out.Succeeded() {
			w.noteTry(i, k, lab.Event{Kind: lab.Stop, Detail: d.Reason})
		}
		if d.Reason == policy.BudgetSpent {
			w.totals.BudgetSpent++
		}
		w.up(i, k-1, r)
		return
	}
	w.noteTry(i, k, lab.Event{Kind: lab.Retry, Wait: d.Wait, Detail: d.Reason})
	if end := w.earliest(i, within(k)); end > 0 && end <= w.now+d.Wait {
		w.agenda.add(event{at: end, kind: cut, who: i, level: uint8(k)})
		return
	}
	if l.past == nil {
		l.past = make([]outcome, 0, min(max(layer.Attempts-1, 1), 8))
	}
	l.past = append(l.past, r)
	l.waited = d.Wait
	w.plan(d.Wait, event{kind: woken, who: i, level: uint8(k)})
}

// interrupt ends a layer's wait, and with it the layer, by a limit around it.
func (w *world) interrupt(i int32, k int) {
	w.noteTry(i, k, lab.Event{Kind: lab.Timeout, Detail: w.stage(w.expired(i, within(k)))})
	w.up(i, k-1, failed(policy.TotalTimeout))
}

// finish ends an operation: the caller makes up its mind.
func (w *world) finish(i int32, r outcome) {
	c := &w.clients[i]
	c.done, c.whenDone, c.belief = true, c.orders, believe(r, c.left)
	w.ends[ending{c.belief, r.failure, r.status}]++
	w.totals.CallerDone = max(w.totals.CallerDone, w.now)
	w.totals.LongestHold = max(w.totals.LongestHold, w.now-w.begins[i])
	if beliefs[c.belief] == lab.OK {
		w.count(func(s *lab.Series) *[]int { return &s.OK })
	}
	w.note(i, lab.Event{Kind: lab.Done, Status: int(r.status), Detail: string(beliefs[c.belief])})
	for k := range w.trial.Layers {
		w.level(i, k).past = nil
	}
}

// believe is what a caller makes of an end, as package caller does. left says that something of the
// operation has left the host.
func believe(r outcome, left bool) belief {
	of := lab.Failed
	switch {
	case r.failure != 0 && left, r.status == http.StatusBadGateway, r.status == http.StatusGatewayTimeout:
		of = lab.Unknown
	case r.failure == 0 && r.status < 300:
		of = lab.OK
	}
	return belief(slices.Index(beliefs, of))
}

// reason is what a belief rests on.
func (e ending) reason() string {
	if e.failure != 0 {
		return strings.ReplaceAll(string(failureOf(e.failure)), "-", " ")
	}
	return strconv.Itoa(int(e.status))
}

// count counts what happens now in one of the lists of the series.
func (w *world) count(list func(*lab.Series) *[]int) {
	if w.series != nil {
		w.series.Count(list(w.series), w.now)
	}
}

// note records something of an operation.
func (w *world) note(i int32, e lab.Event) {
	w.settled = w.now
	if w.record != nil {
		e.At, e.Operation, e.Node = w.now, w.names[i], cmp.Or(e.Node, w.trial.Setup.Caller.Name)
		w.record(e)
	}
}

// noteAt records something of a request.
func (w *world) noteAt(path string, i int32, e lab.Event) {
	e.Send = path
	w.note(i, e)
}

// noteTry records something of a try of a layer, noteSend of a send.
func (w *world) noteTry(i int32, k int, e lab.Event) {
	if w.record != nil {
		e.Send = w.pathOf(i, k+1)
	}
	w.note(i, e)
}

func (w *world) noteSend(i int32, e lab.Event) { w.noteTry(i, len(w.trial.Layers)-1, e) }

// observation is what was seen.
func (w *world) observation() lab.Observation {
	server := w.trial.Setup.Server
	obs := lab.Observation{
		Exact: true, Settled: w.settled, Series: w.series, Totals: &w.totals,
		Nodes: []lab.Node{
			{Name: w.trial.Setup.Caller.Name, Role: "caller", Sends: w.sends},
			{Name: w.server.name, Role: "server", Arrivals: w.server.arrivals},
		},
	}
	for i, f := range server.Faults {
		obs.Faults = append(obs.Faults, lab.FaultCount{Name: f.Name(), Node: server.Name, Fired: w.server.fired[i]})
	}
	if s := w.series; s != nil {
		s.Wait(len(w.server.waiting), w.settled)
		s.Fill()
		s.Summary(w.trial.Setup.Series.After, w.trial.Setup.Series.CauseEnds)
	}
	for _, c := range w.clients {
		n, belief := int(c.orders), beliefs[c.belief]
		w.totals.Effects += n
		w.totals.EffectsWhenCallerDone += int(c.whenDone)
		w.totals.Duplicates += max(0, n-1)
		switch {
		case belief == lab.OK && n < 1:
			w.totals.Lost++
		case belief == lab.Failed && n > 0:
			w.totals.FalseFailures++
		}
	}
	for e, n := range w.ends {
		w.totals.Ends = append(w.totals.Ends, lab.End{Belief: beliefs[e.belief], Reason: e.reason(), Operations: n})
	}
	slices.SortFunc(w.totals.Ends, func(a, b lab.End) int {
		return cmp.Or(cmp.Compare(a.Belief, b.Belief), cmp.Compare(a.Reason, b.Reason))
	})
	return obs
}
