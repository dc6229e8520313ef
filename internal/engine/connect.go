package engine

import (
	"context"
	"net"

	"retrylab/caller"
	"retrylab/internal/vtime"
	"retrylab/scenarios"
	"retrylab/slowserver"
	"retrylab/slowserver/fault"
)

// faultyNetwork plays the faults at connect, which come before there is a request, and has the
// service record when they fire.
type faultyNetwork struct {
	vtime.Network
	service *slowserver.Service
	faults  map[string]int // by host: the fault's place in the service's list
	silent  map[string]bool
}

func newFaultyNetwork(network vtime.Network, service *slowserver.Service, s scenarios.Server) *faultyNetwork {
	n := &faultyNetwork{Network: network, service: service, faults: map[string]int{}, silent: map[string]bool{}}
	for i, f := range s.Faults {
		if f.At != fault.AtConnect {
			continue
		}
		kind, _ := fault.Find(f.Do)
		for replica, name := range s.ReplicaNames() {
			if f.Strikes(0, replica+1) {
				n.faults[name], n.silent[name] = i, kind.Silent
			}
		}
	}
	return n
}

// unreachable reports whether nobody can connect to a host.
func (n *faultyNetwork) unreachable(host string) bool {
	_, faulty := n.faults[host]
	return faulty
}

// Dial connects to a host, unless a fault says otherwise.
func (n *faultyNetwork) Dial(ctx context.Context, host, id string) (net.Conn, error) {
	if i, faulty := n.faults[host]; faulty {
		trip := caller.TripOf(ctx)
		n.service.Fire(i, host, trip.Operation, trip.Path)
		if n.silent[host] {
			n.Network.Blackhole(host)
		}
	}
	return n.Network.Dial(ctx, host, id)
}
