package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"retrylab/internal/lab"
	"retrylab/scenarios"
	"retrylab/slowserver/fault"
)

// recast gives the operations of a run in real time the names whose parts in the plan they played. Which of
// thirty calls that begin in one instant gets the last connection of a pool is free: that one of them gets it
// is what was planned. Only operations that are alike in all they ask for change their names.
func recast(t scenarios.Trial, plan, obs lab.Observation) lab.Observation {
	names := map[string]string{} // in obs, to those of the plan
	planned, played := parts(plan), parts(obs)
	for _, crowd := range crowds(t, plan) {
		by := func(part map[string]string) func(a, b string) int {
			return func(a, b string) int { return cmp.Compare(part[a], part[b]) }
		}
		theirs, ours := slices.Clone(crowd), slices.Clone(crowd)
		slices.SortStableFunc(theirs, by(planned))
		slices.SortStableFunc(ours, by(played))
		for i, name := range ours {
			names[name] = theirs[i]
		}
	}
	maps.DeleteFunc(names, func(was, is string) bool { return was == is })
	if len(names) == 0 {
		return obs
	}
	return renamed(obs, names, otherKeys(plan, obs, names))
}

// crowds are the operations that begin in one instant and are alike, more than one of each.
func crowds(t scenarios.Trial, plan lab.Observation) [][]string {
	if slices.ContainsFunc(t.Setup.Server.Faults, func(f fault.Settings) bool { return len(f.Operations) > 0 || f.Share != nil }) ||
		len(t.Setup.Caller.Leak) > 0 {
		return nil // some are called by their names
	}
	begins := t.Setup.Begins(t.Seed)
	var order []string
	members := map[string][]string{}
	for i, outcome := range plan.Outcomes {
		asked := planned(t.Setup, i, "")
		if len(asked.Further) > 0 {
			continue
		}
		alike := fmt.Sprint(asked, begins[i]/tie)
		if members[alike] == nil {
			order = append(order, alike)
		}
		members[alike] = append(members[alike], outcome.Operation)
	}
	var out [][]string
	for _, alike := range order {
		if len(members[alike]) > 1 {
			out = append(out, members[alike])
		}
	}
	return out
}

// parts say what part each operation played: how it ended, and how each of its sends did.
func parts(o lab.Observation) map[string]string {
	out := map[string]string{}
	for _, outcome := range o.Outcomes {
		out[outcome.Operation] = fmt.Sprintln(outcome.Belief, outcome.Reason)
	}
	for _, s := range sends(o) {
		operation, path, _ := strings.Cut(s.id.path, "/")
		out[operation] += fmt.Sprintln(s.id.node, path, s.kind, s.detail)
	}
	return out
}

// otherKeys are the keys that only one operation has, with those of the operation whose name it gets.
func otherKeys(plan, obs lab.Observation, names map[string]string) map[string]string {
	planned, seen := keysOf(plan), keysOf(obs)
	out := map[string]string{}
	for was, is := range names {
		if len(seen[was]) != len(planned[is]) {
			continue
		}
		for i, key := range seen[was] {
			out[key] = planned[is][i]
		}
	}
	return out
}

// keysOf returns the keys of each operation in order of their first use, without those that several have.
func keysOf(o lab.Observation) map[string][]string {
	owner, shared := map[string]string{}, map[string]bool{}
	out := map[string][]string{}
	for _, e := range o.Events {
		if e.Key == "" || e.Operation == "" {
			continue
		}
		switch was, known := owner[e.Key]; {
		case !known:
			owner[e.Key] = e.Operation
			out[e.Operation] = append(out[e.Operation], e.Key)
		case was != e.Operation:
			shared[e.Key] = true
		}
	}
	for name, keys := range out {
		out[name] = slices.DeleteFunc(keys, func(key string) bool { return shared[key] })
	}
	return out
}

// renamed is o with other names of its operations and other keys. It shares nothing that it changes.
func renamed(o lab.Observation, names, keys map[string]string) lab.Observation {
	operation := func(name string) string { return cmp.Or(names[name], name) }
	path := func(send string) string {
		name, rest, more := strings.Cut(send, "/")
		if !more {
			return operation(send)
		}
		return operation(name) + "/" + rest
	}
	o.Events, o.Effects, o.Entries, o.Outcomes = slices.Clone(o.Events), slices.Clone(o.Effects), slices.Clone(o.Entries), slices.Clone(o.Outcomes)
	for i := range o.Events {
		e := &o.Events[i]
		e.Operation, e.Send, e.Key = operation(e.Operation), path(e.Send), cmp.Or(keys[e.Key], e.Key)
	}
	for i := range o.Effects {
		e := &o.Effects[i]
		e.Operation, e.Send, e.Key = operation(e.Operation), path(e.Send), cmp.Or(keys[e.Key], e.Key)
	}
	for i := range o.Entries {
		e := &o.Entries[i]
		e.Operation, e.Send = operation(e.Operation), path(e.Send)
	}
	at := map[string]int{}
	for i, outcome := range o.Outcomes {
		at[outcome.Operation] = i
	}
	outcomes := slices.Clone(o.Outcomes)
	for was, is := range names {
		outcomes[at[is]] = o.Outcomes[at[was]]
		outcomes[at[is]].Operation = is
	}
	o.Outcomes = outcomes
	return o
}
