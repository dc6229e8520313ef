package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"retrylab/internal/child"
	"retrylab/internal/lab"
	"retrylab/internal/vtime"
	"retrylab/scenarios"
	"retrylab/slowserver/store"
)

// A replica that is a process of its own has a socket that it is lent, and two pipes: one on which
// it tells the trial what happens in it, one on which the trial tells it what it must know. Both
// carry JSON, a value after the other.

// The files that a replica's process is started with.
const (
	SocketFile = 3 + iota // it listens there
	NotesFile             // it writes there what happens
	OrdersFile            // it reads there what it is told; at its end the trial is over
)

// note is what a replica's process tells the trial: one of its fields is set, At beside Event.
type note struct {
	Ready      bool          `json:"ready,omitempty"` // it serves
	Event      *lab.Event    `json:"event,omitempty"`
	At         time.Duration `json:"at,omitempty"`      // of the event, more exactly than that can say
	Arrive     *string       `json:"arrive,omitempty"`  // a request of that operation has arrived: which numbers does it have?
	Fire       *int          `json:"fire,omitempty"`    // a fault has fired
	Inside     int           `json:"inside,omitempty"`  // 1 or -1: a request has come into processing, or left it
	Changed    bool          `json:"changed,omitempty"` // a transaction was committed
	State      *state        `json:"state,omitempty"`
	Crash      *death        `json:"crash,omitempty"`      // it is at the point where it is to be killed, and waits there
	Impossible string        `json:"impossible,omitempty"` // why it cannot start
}

// death is what is to be recorded when the process has been killed.
type death struct {
	Events  []lab.Event   `json:"events"`
	Restart time.Duration `json:"restart"`
}

// state says whether a process has anything to do.
type state struct {
	Busy     bool  `json:"busy"`     // it has connections
	Accepted int   `json:"accepted"` // so many since it started
	Working  int64 `json:"working"`  // requests in a handler
}

// order is what the trial tells a replica's process: one of its fields is set.
type order struct {
	Brief   *brief   `json:"brief,omitempty"`
	Numbers *numbers `json:"numbers,omitempty"` // of the arrival that was asked about
	Ask     bool     `json:"ask,omitempty"`     // what is your state?
	Changed bool     `json:"changed,omitempty"` // another process has committed
}

// numbers are those of an arrival: among all, and among those of its operation.
type numbers struct {
	Number int `json:"number"`
	OfEach int `json:"of_each"`
}

// brief is all that a replica's process has to know.
type brief struct {
	Node            string           `json:"node"`
	Replica         int              `json:"replica"`
	Server          scenarios.Server `json:"server"`
	OwnKeys         bool             `json:"own_keys"`
	Seed            int64            `json:"seed"`
	Store           string           `json:"store"` // its address
	Start, Calendar time.Time        // of the trial's clock
	Speed           float64          `json:"speed"`
}

// process is a replica's process as its trial sees it.
type process struct {
	rig     *rig
	network *vtime.Loopback
	node    string
	replica int
	child   *child.Process
	log     child.Tail
	notes   *os.File
	ready   chan struct{} // closed when it serves
	states  chan state

	mu     sync.Mutex
	orders *os.File
	inside int  // its requests in processing
	ended  bool // by the trial
}

// spawn starts a process for a replica.
func (r *rig) spawn(node string, replica int) error {
	network, ok := r.world.network.(*vtime.Loopback)
	shared, can := r.store.(store.Shareable)
	switch {
	case len(r.world.replica) == 0 || !ok:
		return ground(errors.New("replicas as processes of their own: nobody has said which command runs them"))
	case !can:
		return ground(errors.New("replicas as processes of their own: this store cannot be shared by processes"))
	}
	p := &process{rig: r, network: network, node: node, replica: replica, ready: make(chan struct{}), states: make(chan state, 1)}
	if err := p.start(r.world.replica); err != nil {
		return ground(fmt.Errorf("start %s as a process: %w", node, err))
	}
	setup := r.trial.Setup
	p.send(order{Brief: &brief{
		Node: node, Replica: replica, Server: setup.Server, OwnKeys: setup.Caller.Key == "server", Seed: r.trial.Seed, Store: shared.Address(),
		Start: r.world.clock.Start(), Calendar: calendar(r.trial.Begin), Speed: r.world.clock.Speed(),
	}})
	r.mu.Lock()
	r.processes[node] = p
	r.mu.Unlock()
	if r.life.Err() != nil {
		p.end() // nobody else may come to it any more
	}
	r.group.Go(p.listen)
	return nil
}

// start starts the process with its files.
func (p *process) start(command []string) error {
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	socket, err := p.network.Lend(p.node)
	if err != nil {
		return err
	}
	theirs = append(theirs, socket)
	notes, notesEnd, err := os.Pipe()
	if err != nil {
		return err
	}
	theirs = append(theirs, notesEnd)
	ordersEnd, orders, err := os.Pipe()
	if err != nil {
		return errors.Join(err, notes.Close())
	}
	theirs = append(theirs, ordersEnd)
	p.notes, p.orders = notes, orders
	p.child, err = child.Start(p.rig.group, child.Command{Path: command[0], Args: command[1:], Files: theirs, Log: &p.log})
	if err != nil {
		return errors.Join(err, notes.Close(), orders.Close())
	}
	return nil
}

// running lists the processes.
func (r *rig) running() []*process {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*process
	for _, p := range r.processes {
		out = append(out, p)
	}
	return out
}

// awaitProcesses waits until each process serves: what a process takes to start is not the trial's.
func (r *rig) awaitProcesses() error {
	for _, p := range r.running() {
		select {
		case <-p.ready:
		case <-r.life.Done():
			return context.Cause(r.life)
		}
	}
	return nil
}

// send tells the process something. One that is gone is told nothing.
func (p *process) send(o order) {
	p.mu.Lock()
	defer p.mu.Unlock()
	json.NewEncoder(p.orders).Encode(o)
}

// listen takes in what the process tells, until it ends.
func (p *process) listen() {
	r := p.rig
	defer p.notes.Close()
	notes := json.NewDecoder(p.notes)
	for {
		var n note
		if notes.Decode(&n) != nil {
			break
		}
		switch {
		case n.Ready:
			close(p.ready)
		case n.Event != nil:
			n.Event.At = n.At
			r.journal.add(*n.Event)
		case n.Arrive != nil:
			number, ofEach := r.service.Tally().Arrive(*n.Arrive)
			p.send(order{Numbers: &numbers{number, ofEach}})
		case n.Fire != nil:
			r.service.Tally().Fire(*n.Fire)
		case n.Inside > 0:
			p.inside++
			r.service.Tally().Enter()
		case n.Inside < 0:
			p.inside--
			r.service.Tally().Leave()
		case n.Changed:
			for _, other := range r.running() {
				if other != p {
					other.send(order{Changed: true})
				}
			}
		case n.State != nil:
			p.states <- *n.State
		case n.Crash != nil:
			p.die(*n.Crash)
			return
		case n.Impossible != "":
			r.journal.stop(ground(fmt.Errorf("the process of %s: %s", p.node, n.Impossible)))
		}
	}
	<-p.child.Exited()
	p.mu.Lock()
	ended := p.ended
	p.mu.Unlock()
	if !ended {
		r.journal.stop(ground(fmt.Errorf("the process of %s ended by itself: %v %s", p.node, p.child.Err(), strings.TrimSpace(p.log.String()))))
	}
}

// die kills the process at the point where it waits for that, and has it start again in its time.
func (p *process) die(d death) {
	r := p.rig
	r.journal.record(d.Events[0]) // the crash; what follows is what others do about it
	p.end()
	r.mu.Lock()
	if r.processes[p.node] == p {
		delete(r.processes, p.node)
	}
	r.mu.Unlock()
	p.network.Crash(p.node)
	for _, e := range d.Events[1:] {
		r.journal.record(e)
	}
	for range p.inside {
		r.service.Tally().Leave()
	}
	r.restart(p.node, p.replica, d.Restart)
}

// end kills the process and returns when it is gone.
func (p *process) end() {
	p.mu.Lock()
	ended := p.ended
	p.ended = true
	p.mu.Unlock()
	if ended {
		<-p.child.Exited()
		return
	}
	p.child.Kill() // it may be gone by itself
	p.mu.Lock()
	defer p.mu.Unlock()
	p.orders.Close()
}

// busy asks the process whether a connection can still bring something, and how many requests are in
// a handler. What has happened in it before the answer has then been recorded.
func (p *process) busy() (busy bool, working int64) {
	dialled := p.network.Dialled(p.node)
	p.send(order{Ask: true})
	select {
	case s := <-p.states:
		return s.Busy || s.Accepted < dialled, s.Working
	case <-p.child.Exited():
		return false, 0
	case <-p.rig.life.Done():
		return false, 0
	}
}
