package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
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
	"retrylab/slowserver/fault"
	"retrylab/slowserver/store/sqlite"
)

// world is what a trial runs in.
type world struct {
	clock   *vtime.Clock
	network vtime.Network
	horizon time.Duration // scenario time at which the trial is given up
}

var (
	errTooMuch = fmt.Errorf("more than %d events: the layers multiply beyond what a trial may do", maxEvents)
	errHorizon = errors.New("the trial came to no end: something waits for ever")
)

// trial runs t once in w: clock, store, service, hops, caller, in the order in which requests come
// to depend on them, and down again.
func (l *Lab) trial(outer context.Context, t scenarios.Trial, w world) (obs lab.Observation) {
	life, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	j := &journal{clock: w.clock, outer: outer, stop: stop}
	group := &vtime.Group{OnPanic: func(err error) { stop(err) }}
	cancelHorizon := w.clock.AfterFunc(w.horizon, func() { stop(errHorizon) })
	defer cancelHorizon()
	if !w.clock.Virtual() {
		// In real time nothing may be recorded for a long while; on the virtual clock nothing
		// inside may wait for what is outside, and there is no long while.
		defer context.AfterFunc(outer, func() { stop(ErrInterrupted) })()
	}
	obs.Exact = w.clock.Virtual()

	m := &machines{world: w, group: group, life: life}
	var db *sqlite.Store
	defer func() {
		stop(nil)
		m.close()
		if err := group.Wait(); err != nil {
			obs.Broken, obs.Defect = err.Error(), true
		}
		// Last: until then a handler may be in a transaction.
		if db != nil {
			if err := db.Close(); err != nil && obs.Broken == "" {
				obs.Broken = err.Error()
			}
		}
	}()
	fail := func(err error) lab.Observation {
		obs.Events, obs.Broken = j.sorted(), err.Error()
		return obs
	}
	// lost is fail for what the lab stands on: the database, the ports.
	lost := func(err error) lab.Observation {
		obs.Environment = life.Err() == nil // else it is a consequence of the end
		return fail(err)
	}

	pause := func(ctx context.Context, id string) error {
		if !w.clock.Virtual() {
			return nil
		}
		d := 5*time.Microsecond + time.Duration(lab.Draw(t.Seed, id, "pause")*float64(45*time.Microsecond))
		return w.clock.Sleep(ctx, d)
	}
	var err error
	if db, err = l.template.Open(l.storeName(), pause); err != nil {
		return lost(err)
	}
	obs.Store = db.Info()

	service, err := slowserver.New(life, slowserver.Config{
		Processing: t.Setup.Server.Processing, Guard: t.Setup.Server.Guard, Faults: t.Setup.Server.Faults,
		CancelWhenGone: t.Setup.Server.OnClientGone == "cancel",
		OwnKeys:        t.Setup.Caller.Key == "server",
		Clock:          w.clock, Store: db, Record: j.record, Pause: pause,
	})
	if err != nil {
		return fail(err)
	}
	m.network = &faultyNetwork{Network: w.network, service: service, faults: connectFaults(t.Setup.Server)}
	targets := t.Setup.Server.ReplicaNames()
	for i, name := range targets {
		if err := m.serve(name, service.Replica(name, i+1), m.network.faults[name] != nil); err != nil {
			return lost(err)
		}
	}
	for i := len(t.Setup.Hops) - 1; i >= 0; i-- {
		spec := t.Setup.Hops[i]
		chain := caller.NewChain(caller.Config{
			Node: spec.Name, Seed: t.Seed, Clock: w.clock, Network: m.network, Record: j.record,
			Targets: targets, Timeouts: caller.Timeouts(spec.Timeouts), Layers: t.HopLayers[i],
			Idle: idle(t.HopLayers[i]),
		})
		m.chains = append(m.chains, chain)
		if err := chain.Warm(life); err != nil {
			return fail(err)
		}
		if err := m.serve(spec.Name, &hop{spec: spec, chain: chain, life: life, record: j.record}, false); err != nil {
			return lost(err)
		}
		targets = []string{spec.Name}
	}
	from := t.Setup.Caller
	client := caller.New(caller.Config{
		Node: from.Name, Seed: t.Seed, Clock: w.clock, Network: m.network, Record: j.record,
		Targets: targets, Timeouts: caller.Timeouts(from.Timeouts), Layers: t.Layers,
		Pool: from.Pool, Idle: max(from.Idle, idle(t.Layers)),
	}, caller.Habits{
		Method: from.Method, Body: from.Body, Key: from.Key, Changing: from.Content == "changing",
		Amount: int64(t.Setup.Amount), Concurrency: t.Setup.Concurrency, Stagger: t.Setup.Stagger,
	}, group)
	m.chains = append(m.chains, client.Chain)
	if err := client.Warm(life); err != nil {
		return fail(err)
	}

	obs.Outcomes = make([]lab.Outcome, t.Setup.Operations)
	counts := make([]error, t.Setup.Operations)
	var operations sync.WaitGroup
	for i := range obs.Outcomes {
		name := "op-" + strconv.Itoa(i+1)
		obs.Outcomes[i].Operation = name
		operations.Add(1)
		group.Go(func() {
			defer operations.Done()
			start := time.Duration(i)*t.Setup.Interval + caller.Offset(t.Seed, name)
			if w.clock.Sleep(life, start) != nil {
				return
			}
			j.record(lab.Event{Kind: lab.Start, Operation: name, Node: from.Name})
			out := client.Place(life, name)
			if life.Err() != nil {
				return // ended by the lab, not by the operation: it has no outcome
			}
			out.Effects, counts[i] = db.Count(life, name)
			j.record(lab.Event{Kind: lab.Done, Operation: name, Node: from.Name, Status: out.Status, Detail: string(out.Belief)})
			obs.Outcomes[i] = out
		})
	}
	operations.Wait()
	if err := m.settle(); err != nil {
		return fail(err)
	}
	if err := errors.Join(counts...); err != nil {
		return lost(err)
	}
	if obs.Effects, err = db.Effects(life); err != nil {
		return lost(err)
	}
	obs.Events = j.sorted()
	obs.Settled = obs.Events[len(obs.Events)-1].At
	obs.Events = append(obs.Events, lab.Event{At: obs.Settled, Kind: lab.Settled})
	obs.Overlap = service.Overlap()
	for i, n := range service.Fired() {
		obs.Faults = append(obs.Faults, lab.FaultCount{Name: t.Setup.Server.Faults[i].Name(), Node: t.Setup.Server.Name, Fired: n})
	}
	obs.Nodes = countNodes(t, obs.Events)
	return obs
}

// idle is the number of warm connections that layers ask for.
func idle(layers []policy.Layer) int {
	n := 0
	for _, l := range layers {
		n = max(n, l.Idle)
	}
	return n
}

// settle waits until no connection can bring anything more. The pauses double: on the virtual
// clock they cost nothing, and what they overshoot by is not counted.
func (m *machines) settle() error {
	clock, pause, quiet := m.world.clock, time.Millisecond, 0
	for m.world.network.Busy() {
		if quiet++; m.inside.Load() > 0 {
			quiet = 0
		}
		if quiet > 1 {
			// Nothing is on its way: what keeps the network busy are connections that were idle
			// at the start and that nobody came to use.
			for _, c := range m.chains {
				c.Close()
			}
		}
		if err := clock.Sleep(m.life, pause); err != nil {
			return err
		}
		if clock.Virtual() || clock.Real(pause) < 5*time.Millisecond {
			pause *= 2
		}
	}
	return context.Cause(m.life)
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

// machines are the servers and senders of a trial.
type machines struct {
	world   world
	network *faultyNetwork
	group   *vtime.Group
	life    context.Context
	servers []*http.Server
	chains  []*caller.Chain
	inside  atomic.Int64 // requests in a handler
}

// serve starts a machine. One that cannot be reached has a name and no listener.
func (m *machines) serve(name string, handler http.Handler, unreachable bool) error {
	if unreachable {
		return nil
	}
	l, err := m.world.network.Listen(name)
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	s := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			m.inside.Add(1)
			defer m.inside.Add(-1)
			defer m.group.Catch()
			handler.ServeHTTP(w, r)
		}),
		BaseContext: func(net.Listener) context.Context { return m.life },
		ErrorLog:    log.New(io.Discard, "", 0), // what goes wrong on a connection is an event
	}
	m.servers = append(m.servers, s)
	m.group.Go(func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			panic(fmt.Errorf("%s stopped: %w", name, err))
		}
	})
	return nil
}

func (m *machines) close() {
	for _, c := range m.chains {
		c.Close()
	}
	for _, s := range m.servers {
		s.Close()
	}
	m.world.network.Close()
}

// faultyNetwork plays the faults at connect and records when they fire.
type faultyNetwork struct {
	vtime.Network
	service *slowserver.Service
	faults  map[string]*connectFault // by host
}

type connectFault struct {
	index  int
	silent bool
}

func connectFaults(s scenarios.Server) map[string]*connectFault {
	out := map[string]*connectFault{}
	for i, f := range s.Faults {
		if f.At != fault.AtConnect {
			continue
		}
		for n, name := range s.ReplicaNames() {
			if f.Strikes(0, n+1) {
				kind, _ := fault.Find(f.Do)
				out[name] = &connectFault{index: i, silent: kind.Silent}
			}
		}
	}
	return out
}

// Dial connects to a host, unless a fault says otherwise.
func (n *faultyNetwork) Dial(ctx context.Context, host, id string) (net.Conn, error) {
	if f := n.faults[host]; f != nil {
		trip := caller.TripOf(ctx)
		n.service.Fire(f.index, host, trip.Operation, trip.Path)
		if f.silent {
			n.Network.Blackhole(host)
		}
	}
	return n.Network.Dial(ctx, host, id)
}
