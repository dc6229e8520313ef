package engine

import (
	"context"
	"errors"
	"io"
	"net"

	"retrylab/caller"
	"retrylab/internal/vtime"
	"retrylab/slowserver"
	"retrylab/slowserver/fault"
)

// faultyNetwork plays the faults at connect, which come before there is a request, and has the
// service record when they fire.
type faultyNetwork struct {
	vtime.Network
	clock   *vtime.Clock
	seed    int64
	service *slowserver.Service
	faults  []fault.Settings
	hosts   map[string]int // the number of each replica, from 1
}

// The hosts that a fault leads to. No machine has a name with a space.
const (
	nobody   = "no host"     // nobody listens
	silent   = "silent host" // nobody answers
	swallows = "lost host"   // what is sent there arrives nowhere
)

// newFaultyNetwork returns the network of a trial. Where requests are to be lost somebody takes their
// connections: spawn starts a function that returns when the network is closed.
func newFaultyNetwork(network vtime.Network, clock *vtime.Clock, seed int64, service *slowserver.Service, faults []fault.Settings, replicas []string, spawn func(func())) (*faultyNetwork, error) {
	n := &faultyNetwork{Network: network, clock: clock, seed: seed, service: service, faults: faults, hosts: map[string]int{}}
	for i, name := range replicas {
		n.hosts[name] = i + 1
	}
	network.Blackhole(silent)
	for _, f := range faults {
		if kind, _ := fault.Find(f.Do); kind.Connect == fault.Swallowed {
			return n, n.swallow(spawn)
		}
	}
	return n, nil
}

// swallow takes connections, and reads what comes on them for nobody.
func (n *faultyNetwork) swallow(spawn func(func())) error {
	l, err := n.Network.Listen(swallows)
	if err != nil {
		return ground(err)
	}
	spawn(func() {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				panic(err)
			}
			spawn(func() {
				io.Copy(io.Discard, c) // until the client leaves
				c.Close()
			})
		}
	})
	return nil
}

// Dial connects to a host, unless a fault says otherwise. A connection that belongs to no request is
// one that is idle at the start: it was opened before any fault.
func (n *faultyNetwork) Dial(ctx context.Context, host, id string) (net.Conn, error) {
	trip := caller.TripOf(ctx)
	i := n.strikes(host, trip)
	if i < 0 {
		return n.Network.Dial(ctx, host, id)
	}
	n.service.Fire(i, host, trip.Operation, trip.Path)
	kind, _ := fault.Find(n.faults[i].Do)
	switch kind.Connect {
	case fault.NoAddress:
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	case fault.Silent:
		host = silent
	case fault.Swallowed:
		host = swallows
	default:
		host = nobody
	}
	return n.Network.Dial(ctx, host, id)
}

// strikes returns the place of the fault that strikes a connection to host now, -1 without one.
func (n *faultyNetwork) strikes(host string, trip caller.Trip) int {
	replica, known := n.hosts[host]
	if !known || trip.Path == "" {
		return -1
	}
	now := n.clock.Now()
	for i, f := range n.faults {
		if f.At == fault.AtConnect && f.Strikes(fault.Arrival{
			Replica: replica, Operation: trip.Operation, At: now,
			Luck: func() float64 { return fault.Luck(n.seed, i, trip.Path) },
		}) {
			return i
		}
	}
	return -1
}
