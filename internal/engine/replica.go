package engine

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"

	"retrylab/internal/lab"
	"retrylab/internal/vtime"
	"retrylab/scenarios"
	"retrylab/slowserver"
	"retrylab/slowserver/store"
)

// Attach opens a store that another process has opened, by its address.
type Attach func(address string, o store.Options) (store.Attached, error)

// RunReplica is the life of a replica in a process of its own: it serves on the socket that it is
// lent, tells the trial what happens, and returns when the trial is over. The trial kills it, at the
// point of a crash or at the end; so it closes nothing.
func RunReplica(life context.Context, socket, notes, orders *os.File, attach Attach) error {
	t := &teller{notes: json.NewEncoder(notes), numbers: make(chan numbers)}
	if err := t.run(life, socket, json.NewDecoder(orders), attach); err != nil {
		t.tell(note{Impossible: err.Error()})
		return err
	}
	return nil
}

// teller is the side of a replica's process that tells the trial what happens. It keeps the
// service's counts by asking the trial, which keeps them for all replicas.
type teller struct {
	clock *vtime.Clock

	mu    sync.Mutex
	notes *json.Encoder

	asking  sync.Mutex
	numbers chan numbers
}

// tell writes a note. Where the trial is gone there is nobody to tell, and the process ends.
func (t *teller) tell(n note) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.notes.Encode(n)
}

func (t *teller) record(e lab.Event) { t.tell(note{Event: &e, At: t.clock.Now()}) }

// Arrive asks for the numbers of an arrival.
func (t *teller) Arrive(operation string) (number, ofEach int) {
	t.asking.Lock()
	defer t.asking.Unlock()
	t.tell(note{Arrive: &operation})
	n := <-t.numbers
	return n.Number, n.OfEach
}

// Fire tells that a fault has fired.
func (t *teller) Fire(fault int) { t.tell(note{Fire: &fault}) }

// Enter tells that a request has come into processing.
func (t *teller) Enter() { t.tell(note{Inside: 1}) }

// Leave tells that a request has left processing.
func (t *teller) Leave() { t.tell(note{Inside: -1}) }

// crash tells that the process is where it is to be killed, and waits for that. Nothing else is told
// any more: what other requests do until the end comes has not happened for anybody.
func (t *teller) crash(c slowserver.Crash) {
	t.mu.Lock()
	t.notes.Encode(note{Crash: &death{Events: c.Events, Restart: c.Restart}})
	select {}
}

func (t *teller) run(life context.Context, socket *os.File, orders *json.Decoder, attach Attach) error {
	var first order
	if err := orders.Decode(&first); err != nil {
		return err
	}
	b := first.Brief
	if b == nil {
		return errors.New("the first order is no brief")
	}
	t.clock = vtime.NewWallAt(b.Start, b.Calendar, b.Speed)
	network := vtime.NewLoopback()
	l, err := network.Adopt(b.Node, socket)
	if err != nil {
		return err
	}
	shared, err := attach(b.Store, store.Options{Clock: t.clock})
	if err != nil {
		return err
	}
	setup := scenarios.Setup{Server: b.Server}
	if b.OwnKeys {
		setup.Caller.Key = "server"
	}
	config := ServiceConfig(setup)
	config.Seed = b.Seed
	config.Clock, config.Store, config.Record, config.Crash, config.Counts = t.clock, shared, t.record, t.crash, t
	config.Committed = func() { t.tell(note{Changed: true}) }
	config.Pause = func(context.Context, string) error { return nil }
	var inside atomic.Int64
	group := &vtime.Group{OnPanic: func(err error) { t.tell(note{Impossible: err.Error()}) }}
	config.Afterwards = func(f func()) {
		inside.Add(1)
		group.Go(func() {
			defer inside.Add(-1)
			f()
		})
	}
	service, err := slowserver.New(life, config)
	if err != nil {
		return err
	}
	server := newServer(life, group, &inside, service.Replica(b.Node, b.Replica))
	group.Go(func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			panic(err)
		}
	})
	t.tell(note{Ready: true})
	for {
		var o order
		if orders.Decode(&o) != nil {
			return nil // the trial is over
		}
		switch {
		case o.Numbers != nil:
			t.numbers <- *o.Numbers
		case o.Ask:
			// Asked in this order: a connection counts as busy until it is closed, and a request
			// until it has left its handler.
			working := inside.Load()
			t.tell(note{State: &state{Busy: network.Busy() || working > 0, Accepted: network.Accepted(b.Node), Working: working}})
		case o.Changed:
			shared.Announce()
		}
	}
}
