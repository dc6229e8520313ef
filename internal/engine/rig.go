package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"retrylab/caller"
	"retrylab/caller/policy"
	"retrylab/internal/lab"
	"retrylab/internal/vtime"
	"retrylab/scenarios"
	"retrylab/slowserver"
	"retrylab/slowserver/capacity"
	"retrylab/slowserver/store"
)

// rig is the machines of one trial: store, service, hops and caller, each built before what
// depends on it.
type rig struct {
	trial   scenarios.Trial
	world   world
	life    context.Context // the trial's: ends when it is over, or has to be
	journal *journal
	group   *vtime.Group

	store   store.Store
	service *slowserver.Service
	network *faultyNetwork
	chains  []*caller.Chain
	hops    []*hop
	caller  *caller.Caller
	inside  atomic.Int64 // requests in a handler
	jobs    atomic.Int64 // jobs beside the replicas

	mu      sync.Mutex
	servers map[string]*http.Server    // by machine: those that listen
	pausing map[time.Duration][]string // by scenario time: who paused then
	// processes are the replicas that are processes of their own.
	processes map[string]*process
}

// ServiceConfig is what a setup says of its order service; the rest is of the world that it is in.
func ServiceConfig(setup scenarios.Setup) slowserver.Config {
	server := setup.Server
	return slowserver.Config{
		Processing: server.Processing, Spread: server.ProcessingSpread,
		Limit: server.RateLimit,
		Pool:  capacity.Pool{Workers: server.Workers, Queue: server.Queue, Shed: server.Shed},
		Guard: server.Guard, Faults: server.Faults,
		ReadOnly: server.ReadOnly, CancelWhenGone: server.OnClientGone == "cancel", HonourDeadline: server.Deadline == "honour",
		AnswerAccepted: server.Answer == "accepted",
		OwnKeys:        setup.Caller.Key == "server",
		Rows:           server.Rows, RowTime: server.RowTime, AlternateRows: server.RowsOrder == "alternate",
		Ledgers: server.Ledgers, Change: server.Change,
		OrderOutside:       server.OrderOutsideTransaction,
		TransactionRetries: server.TransactionRetries, OnUnknownCommit: server.OnUnknownCommit,
	}
}

// build starts the machines, from the server outwards.
func (r *rig) build(*lab.Observation) (err error) {
	setup := r.trial.Setup
	opened, err := r.world.place.seat.Open(store.Options{Clock: r.world.clock, Yield: r.pause})
	if err != nil {
		return ground(err)
	}
	r.mu.Lock()
	r.store = opened // whoever finds that the trial does not end asks it
	r.mu.Unlock()
	config := ServiceConfig(setup)
	config.Seed = r.trial.Seed
	config.Clock, config.Store, config.Record = r.world.clock, r.store, r.journal.record
	config.Pause, config.Crash, config.Keys = r.pause, r.crash, r.world.place.keys
	config.Job, config.Afterwards = r.job, r.job
	if r.service, err = slowserver.New(r.life, config); err != nil {
		return err
	}
	if err := r.service.Prepare(r.life); err != nil {
		return ground(err)
	}
	targets := setup.Server.ReplicaNames()
	if r.network, err = newFaultyNetwork(r.world.network, r.world.clock, r.trial.Seed, r.service, setup.Server.Faults, targets, r.group.Go); err != nil {
		return err
	}
	for i, name := range targets {
		if err := r.startReplica(name, i+1); err != nil {
			return err
		}
	}
	if err := r.awaitProcesses(); err != nil {
		return err
	}
	r.group.Go(r.service.CleanUp)
	r.hops = make([]*hop, len(setup.Hops))
	for i := len(setup.Hops) - 1; i >= 0; i-- {
		spec := setup.Hops[i]
		kind, _ := scenarios.FindHopKind(spec.Kind)
		sender := r.sender(spec.Name, targets, spec.Timeouts, r.trial.HopLayers[i])
		sender.PassDeadline = spec.Deadline == "pass"
		chain := caller.NewChain(sender)
		if err := r.warm(chain); err != nil {
			return err
		}
		r.hops[i] = &hop{
			spec: spec, kind: kind, chain: chain, clock: r.world.clock, life: r.life, record: r.journal.record,
			seed: r.trial.Seed, fired: make([]atomic.Int64, len(spec.Faults)),
		}
		if err := r.serve(spec.Name, r.hops[i]); err != nil {
			return err
		}
		targets = []string{spec.Name}
	}
	from := setup.Caller
	sender := r.sender(from.Name, targets, from.Timeouts, r.trial.Layers)
	sender.PassDeadline = from.Deadline == "header"
	sender.Clocked.Jumps = r.setClocks()
	sender.Asked = setup.Server.ReplicaNames()
	sender.Pool, sender.Idle = from.Pool, max(from.Idle, sender.Idle)
	sender.Follow = from.Redirects == "follow"
	r.caller = caller.New(sender, caller.Habits{
		Method: from.Method, Body: from.Body, Key: from.Key, Content: from.Content,
		Leaks: from.Leak, Accept: from.Accept,
		Amount: int64(setup.Amount), Concurrency: setup.Concurrency, Stagger: setup.Stagger, Ask: (*caller.Ask)(from.Ask),
		CancelAfter: from.CancelAfter, Threads: from.Threads, Queue: from.Queue,
	})
	return r.warm(r.caller.Chain)
}

// pause is a moment derived from id. It keeps requests that one event wakes from acting in one
// instant, which the machine does of itself where time is real.
//
// Time does not go on before everybody who can run has run: after the first sleep all are known
// that paused in this instant, and each can see which moments are the others'.
func (r *rig) pause(ctx context.Context, id string) error {
	clock := r.world.clock
	if !clock.Virtual() {
		return nil
	}
	const least, span = 5 * time.Microsecond, 45 * time.Microsecond
	now := clock.Now()
	r.pauses(now, id)
	if err := clock.Sleep(ctx, least); err != nil {
		return err
	}
	taken := map[time.Duration]bool{}
	for _, other := range slices.Sorted(slices.Values(r.pauses(now))) {
		d := time.Duration(lab.Draw(r.trial.Seed, other, "pause") * float64(span))
		for taken[d] {
			d++
		}
		if taken[d] = true; other == id {
			return clock.Sleep(ctx, clock.Apart(d))
		}
	}
	return context.Cause(ctx)
}

// pauses notes who pauses at a moment, and returns all who have.
func (r *rig) pauses(at time.Duration, who ...string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pausing[at] = append(r.pausing[at], who...)
	return slices.Clone(r.pausing[at])
}

// sender is the configuration of a machine that sends to targets.
func (r *rig) sender(name string, targets []string, t scenarios.Timeouts, layers []policy.Layer) caller.Config {
	idle := 0
	for _, l := range layers {
		idle = max(idle, l.Idle)
	}
	return caller.Config{
		Node: name, Seed: r.trial.Seed, Clock: r.world.clock, Network: r.network, Record: r.journal.record,
		Targets: targets, Layers: layers, Idle: idle, Group: r.group,
		Timeouts: caller.Timeouts{Acquire: t.Acquire, Connect: t.Connect, Read: t.Read, Attempt: t.Attempt, Total: t.Total},
		Clocked:  caller.TotalClock{Calendar: t.TotalClock == "calendar", Poll: t.Poll},
	}
}

// setClocks sets the caller's calendar clock in its time.
func (r *rig) setClocks() (jumps []caller.Jump) {
	from := r.trial.Setup.Caller
	for _, j := range from.ClockJumps {
		jumps = append(jumps, caller.Jump{At: j.At, By: j.Forward - j.Back})
		r.group.Go(func() {
			if r.world.clock.Sleep(r.life, r.world.clock.Apart(j.At)) == nil {
				r.journal.record(lab.Event{Kind: lab.ClockJump, Node: from.Name, Detail: j.String()})
			}
		})
	}
	return jumps
}

func (r *rig) warm(chain *caller.Chain) error {
	r.chains = append(r.chains, chain)
	return chain.Warm(r.life)
}

// startReplica starts a replica, from 1, as a process or in this one. It is called again after a
// crash.
func (r *rig) startReplica(name string, n int) error {
	if r.trial.Setup.Server.Processes && !r.world.clock.Virtual() {
		return r.spawn(name, n)
	}
	return r.serve(name, r.service.Replica(name, n))
}

// restart brings a replica back in its time. Nobody waits for that: a restart that comes to no
// request is nothing that happens.
func (r *rig) restart(name string, n int, after time.Duration) {
	r.group.Go(func() {
		if r.world.clock.Sleep(r.life, after) != nil {
			return
		}
		r.journal.record(lab.Event{Kind: lab.Restart, Node: name})
		if err := r.startReplica(name, n); err != nil {
			r.journal.stop(err)
		}
	})
}

// serve starts a machine that listens.
func (r *rig) serve(name string, handler http.Handler) error {
	l, err := r.world.network.Listen(name)
	if err != nil {
		return ground(fmt.Errorf("start %s: %w", name, err))
	}
	s := newServer(r.life, r.group, &r.inside, handler)
	r.mu.Lock()
	r.servers[name] = s
	r.mu.Unlock()
	r.group.Go(func() {
		// The listener of a machine that crashes is closed before its server is.
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			panic(fmt.Errorf("%s stopped: %w", name, err))
		}
	})
	return nil
}

// newServer is the HTTP side of a machine. inside counts the requests in its handler.
func newServer(life context.Context, group *vtime.Group, inside *atomic.Int64, handler http.Handler) *http.Server {
	return &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			inside.Add(1)
			defer inside.Add(-1)
			defer group.Catch()
			handler.ServeHTTP(w, req)
		}),
		BaseContext: func(net.Listener) context.Context { return life },
		ErrorLog:    log.New(io.Discard, "", 0), // what goes wrong on a connection is an event
	}
}

// job runs f beside the machines; the trial has not settled before it is over.
func (r *rig) job(f func()) {
	r.jobs.Add(1)
	r.group.Go(func() {
		defer r.jobs.Add(-1)
		f()
	})
}

// crash takes a replica in this process away, and brings it back in its time.
func (r *rig) crash(c slowserver.Crash) {
	c.Die(func() {
		r.world.network.Crash(c.Node)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.servers[c.Node].Close()
	})
	r.restart(c.Node, c.Replica, c.Restart)
}

// operate performs the operations, and counts the effects of each by SQL when its caller is done.
func (r *rig) operate(obs *lab.Observation) error {
	clock, setup := r.world.clock, r.trial.Setup
	obs.Outcomes = make([]lab.Outcome, setup.Operations)
	counts := make([]error, setup.Operations)
	names := make([]string, setup.Operations)
	for i := range names {
		names[i] = "op-" + strconv.Itoa(i+1)
	}
	offsets, begins := lab.Offsets(r.trial.Seed, names), setup.Begins(r.trial.Seed)
	var operations sync.WaitGroup
	for i, name := range names {
		obs.Outcomes[i].Operation = name
		operations.Add(1)
		r.group.Go(func() {
			defer operations.Done()
			if clock.Sleep(r.life, begins[i]+offsets[i]) != nil {
				return
			}
			r.journal.record(lab.Event{Kind: lab.Start, Operation: name, Node: setup.Caller.Name})
			out := r.caller.Place(r.life, planned(setup, i, name))
			if r.life.Err() != nil {
				return // ended by the lab, not by the operation: it has no outcome
			}
			out.Effects, counts[i] = r.store.Count(r.life, name)
			r.journal.record(lab.Event{Kind: lab.Done, Operation: name, Node: setup.Caller.Name, Status: out.Status, Detail: string(out.Belief)})
			obs.Outcomes[i] = out
			if wait := setup.Reconcile.After; wait > 0 && out.Belief == lab.Unknown && clock.Sleep(r.life, wait) == nil {
				counts[i] = errors.Join(counts[i], r.reconcile(&obs.Outcomes[i]))
			}
		})
	}
	operations.Wait()
	return ground(errors.Join(counts...))
}

// planned is what the operation at position i, from 0, asks for.
func planned(setup scenarios.Setup, i int, name string) caller.Intent {
	o, further, after := setup.Planned(i)
	asked := func(o scenarios.Intent) caller.Intent {
		return caller.Intent{Operation: name, Amount: int64(o.Amount), Item: o.Item, Key: o.Key, Tenant: o.Tenant}
	}
	intent := asked(o)
	for n, f := range further {
		intent.Further = append(intent.Further, caller.Further{After: after[n], Intent: asked(f)})
	}
	return intent
}

// settle waits until no connection can bring anything more. The pauses double: on the virtual
// clock they cost nothing, and what they overshoot by is not counted.
func (r *rig) settle(*lab.Observation) error {
	clock, pause, quiet := r.world.clock, time.Millisecond, 0
	for {
		busy, working := r.busy()
		if !busy {
			break
		}
		if quiet++; working > 0 {
			quiet = 0
		}
		if quiet > 1 {
			// Nothing is on its way: what keeps the network busy are connections that were idle
			// at the start and that nobody came to use.
			for _, c := range r.chains {
				c.Close()
			}
		}
		if err := clock.Sleep(r.life, pause); err != nil {
			return err
		}
		if clock.Virtual() || clock.Real(pause) < 5*time.Millisecond {
			pause *= 2
		}
	}
	return context.Cause(r.life)
}

// busy reports whether a connection can still bring something, and how many requests are in a
// handler.
func (r *rig) busy() (busy bool, working int64) {
	busy, working = r.world.network.Busy() || r.jobs.Load() > 0, r.inside.Load()
	for _, p := range r.running() {
		b, w := p.busy()
		busy, working = busy || b, working+w
	}
	return busy, working
}

// read takes down what was seen: the effects by SQL, the rest from where it happened.
func (r *rig) read(obs *lab.Observation) (err error) {
	if obs.Effects, err = r.store.Effects(r.life); err != nil {
		return ground(err)
	}
	if obs.Entries, err = r.store.Entries(r.life); err != nil {
		return ground(err)
	}
	if obs.State, err = readState(r.life, r.store, r.trial.Setup.Server.Change.Row); err != nil {
		return ground(err)
	}
	if s, ok := r.store.(store.Fallible); ok && s.Lost() != nil {
		return ground(s.Lost())
	}
	obs.Events = r.journal.sorted()
	aside := []lab.Kind{lab.Restart, lab.ClockJump, lab.CleanedUp}
	for len(obs.Events) > 0 && slices.Contains(aside, obs.Events[len(obs.Events)-1].Kind) {
		obs.Events = obs.Events[:len(obs.Events)-1] // it came to nobody
	}
	obs.Settled = obs.Events[len(obs.Events)-1].At
	obs.Events = append(obs.Events, lab.Event{At: obs.Settled, Kind: lab.Settled})
	obs.Series = countSeries(r.trial.Setup, *obs)
	obs.Threads = r.caller.MostThreads()
	obs.Overlap = r.service.Tally().Overlap()
	fired := r.service.Tally().Fired()
	for _, h := range r.hops {
		for i := range h.fired {
			fired = append(fired, int(h.fired[i].Load()))
		}
	}
	for i, f := range r.trial.Setup.AllFaults() {
		obs.Faults = append(obs.Faults, lab.FaultCount{Name: f.Name(), Node: f.Node, Fired: fired[i]})
	}
	obs.Nodes = countNodes(r.trial, obs.Events)
	if keys := r.world.place.keys; keys != nil {
		obs.Keys = keys.Info() // what it knows now: a replica may have taken over
	}
	return nil
}

// readState reads the row that requests share, nil where there is none of that name.
func readState(ctx context.Context, s store.Store, name string) (*lab.State, error) {
	if name == "" {
		return nil, nil
	}
	row, found, err := s.Row(ctx, name)
	if err != nil {
		return nil, err
	}
	return &lab.State{Row: name, Value: row.Value, Version: row.Version, Absent: !found}, nil
}

// close takes the machines down and returns the panic of one of them, if there was one.
func (r *rig) close() error {
	for _, c := range r.chains {
		c.Close()
	}
	r.mu.Lock()
	for _, s := range r.servers {
		s.Close()
	}
	r.mu.Unlock()
	for _, p := range r.running() {
		p.end()
	}
	r.world.network.Close()
	for r.inside.Load() > 0 { // handlers are net/http's goroutines, not the group's
		r.world.clock.Sleep(context.WithoutCancel(r.life), time.Duration(float64(time.Millisecond)*r.world.clock.Speed()))
	}
	err := r.group.Wait()
	// Last: until then a handler may be in a transaction.
	if r.store != nil {
		err = errors.Join(err, r.store.Close())
	}
	return err
}

// countNodes counts what each machine sent and received, where it happened.
func countNodes(t scenarios.Trial, events []lab.Event) []lab.Node {
	nodes := []lab.Node{{Name: t.Setup.Caller.Name, Role: "caller"}}
	for _, h := range t.Setup.Hops {
		nodes = append(nodes, lab.Node{Name: h.Name, Role: "hop"})
	}
	for _, name := range t.Setup.Server.ReplicaNames() {
		nodes = append(nodes, lab.Node{Name: name, Role: "server"})
	}
	index := map[string]*lab.Node{}
	for i := range nodes {
		index[nodes[i].Name] = &nodes[i]
	}
	for _, e := range events {
		switch e.Kind {
		case lab.Send:
			index[e.Node].Sends++
		case lab.Arrival:
			index[e.Node].Arrivals++
		}
	}
	return nodes
}
