// Package cell plays a trigger through a preset on the lab's own sockets: one call of a client
// with that preset, a server that fails in that way, and the number of requests that reached it.
// It is how a preset is held against what was counted of the real layer.
package cell

import (
	"context"
	"fmt"
	"time"

	"retrylab/caller/policy"
	"retrylab/caller/preset"
	"retrylab/internal/engine"
	"retrylab/internal/lab"
	"retrylab/internal/storage"
	"retrylab/scenarios"
	"retrylab/slowserver/fault"
)

// slow is how many read time-outs a server takes that is to be given up.
const slow = 20

// Trial turns a play into a trial.
func Trial(name string, p preset.Play) (scenarios.Trial, error) {
	s := scenarios.Setup{
		Operations: 1, Concurrency: 1, Amount: 5000,
		Caller: scenarios.Caller{
			Method: p.Method, Body: p.Body, Layers: p.Layers,
			Timeouts: scenarios.Timeouts{Connect: preset.DefaultReadTimeout, Read: p.ReadTimeout},
		},
		Server: scenarios.Server{Replicas: max(1, p.Servers, p.Addresses)},
	}
	if p.Key {
		s.Caller.Key = "operation"
	}
	switch {
	case p.Trigger == policy.ReadTimeout:
		s.Server.Processing = slow * max(p.ReadTimeout, preset.DefaultReadTimeout)
	case p.Trigger == policy.NoFailure && p.Status == 200:
	case p.Trigger == policy.NoFailure:
		s.Server.Faults = []fault.Settings{{At: fault.BeforeGuard, Do: "status", Status: p.Status, RetryAfter: p.RetryAfter}}
	default:
		f, ok := faults[p.Trigger]
		if !ok {
			return scenarios.Trial{}, fmt.Errorf("no server can bring about %s", p.Trigger)
		}
		s.Server.Faults = []fault.Settings{f}
	}
	if p.FirstRefuses {
		s.Server.Faults = append(s.Server.Faults, fault.Settings{At: fault.AtConnect, Do: "refuse", Replicas: []int{1}})
	}
	if p.Hop == nil {
		if p.Reused {
			s.Caller.Connection, s.Caller.Idle = "reused", p.Idle
		}
		return scenarios.Make(name, s)
	}
	layer := p.Hop.Layer
	if p.Reused {
		layer.Idle = &p.Idle
	}
	s.Hops = []scenarios.Hop{{
		Name: layer.Preset, Kind: "proxy", Layers: []policy.Settings{layer},
		Timeouts: scenarios.Timeouts{Connect: preset.DefaultReadTimeout, Read: p.ReadTimeout},
	}}
	// The client in front is patient, unless it is to be the first who gives up.
	s.Caller.Timeouts.Read = 2 * slow * max(p.ReadTimeout, preset.DefaultReadTimeout)
	if p.CallerGivesUpFirst {
		s.Caller.Timeouts.Read = p.ReadTimeout / 2
	}
	return scenarios.Make(name, s)
}

// faults are the ways of a server to make a client's try fail.
var faults = map[policy.Failure]fault.Settings{
	policy.EOF:            {At: fault.BeforeGuard, Do: "close"},
	policy.Reset:          {At: fault.BeforeGuard, Do: "reset"},
	policy.UnknownHost:    {At: fault.AtConnect, Do: "unknown-host"},
	policy.Refused:        {At: fault.AtConnect, Do: "refuse"},
	policy.ConnectTimeout: {At: fault.AtConnect, Do: "blackhole"},
}

// Play runs a trial on the virtual clock and returns what was seen.
func Play(ctx context.Context, t scenarios.Trial) (lab.Observation, error) {
	database, err := storage.Open(ctx, storage.SQLite, storage.Options{Jobs: 1})
	if err != nil {
		return lab.Observation{}, err
	}
	defer database.Close()
	obs := engine.New(database, engine.Virtual, 1).Run(ctx, t)
	if obs.Broken != "" {
		return obs, fmt.Errorf("play %s: %s", t.ID, obs.Broken)
	}
	for _, f := range obs.Faults {
		if f.Fired == 0 {
			return obs, fmt.Errorf("play %s: the fault %s never fired after %s", t.ID, f.Name, obs.Settled.Round(time.Millisecond))
		}
	}
	return obs, nil
}

// Requests is the number of requests that reached the server.
func Requests(obs lab.Observation) int {
	n := 0
	for _, node := range obs.Nodes {
		if node.Role == "server" {
			n += node.Arrivals
		}
	}
	return n
}
