package engine

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"retrylab/caller/policy"
	"retrylab/internal/lab"
	"retrylab/scenarios"
	"retrylab/slowserver/fault"
)

// tie is how close two events of a plan may be before they count as simultaneous: the latencies
// and offsets that keep flows apart add up to less.
const tie = time.Millisecond

// pair is two events of a plan whose order decides what a trial comes to.
type pair struct {
	name  string
	gap   time.Duration                                                  // scenario time from the one to the other, positive
	find  func(o lab.Observation) (first, second time.Duration, ok bool) // in another observation
	ended bool                                                           // only for the speed: slip looks at how the send ended
}

// pairs are everything that decides a trial: the deciding pairs and how each send ended.
type pairs struct {
	list []pair
	ties []string // pairs of which both fall into one instant
	plan lab.Observation
}

// deciding finds in a plan what decides it:
//
//   - the limit of a send against the end of the server's handling of it;
//   - the limit of a read against the silence before each byte of an answer that dribbles;
//   - each try of a hedge against the first success, which it would come too late for;
//   - the look at a key, or its claim, against the first commit under that key;
//   - whoever asks for a lock against whatever else is done to it by another, and against the ends of
//     its leases;
//   - the look at a row that requests share against each change of it by another;
//   - a commit against the end of its operation, which E' depends on, where that end did not wait
//     for the answer;
//   - a question of the caller, or the look of a reconciliation, against the first commit of the
//     operation;
//   - how often a server found its client gone, and how many requests were at work at once where a
//     premise or an invariant asks for it;
//   - one arrival against the next, of all or of each operation, where a fault names arrivals or an
//     operation has further sends, which may differ;
//   - whatever the order service does against the moment from which, or until which, a fault strikes;
//   - an answer to the caller against the moment at which its calendar clock is set, where an answer
//     has a date;
//   - a crash and a restart against what else is sent to that replica and committed there.
//
// Everything else is free: twelve sends side by side come in a new order in nearly every real run,
// so a pair names "the third look at the key", not a send.
func deciding(t scenarios.Trial, plan lab.Observation) pairs {
	p := pairs{plan: plan}
	p.limits(t)
	p.silences(t)
	p.hedges(t.Setup.Caller.Name, t.Layers)
	for i, h := range t.Setup.Hops {
		p.hedges(h.Name, t.HopLayers[i])
		if slices.ContainsFunc(h.Faults, func(f scenarios.HopFault) bool { return len(f.Arrivals) > 0 }) {
			p.arrivalsAt(func(lab.Event) string { return "" }, h.Name)
		}
	}
	p.keys()
	p.locks(t.Setup.Server.Guard.Lease)
	p.reads()
	p.ends()
	p.questions()
	if slices.ContainsFunc(t.Setup.Server.Faults, func(f fault.Settings) bool { return len(f.Arrivals) > 0 }) ||
		slices.ContainsFunc(t.Setup.Schedule, func(i scenarios.Intent) bool { return i.Of > 0 }) {
		p.arrivals(t, func(lab.Event) string { return "" })
	}
	if slices.ContainsFunc(t.Setup.Server.Faults, func(f fault.Settings) bool { return len(f.OfEach) > 0 }) {
		p.arrivals(t, func(e lab.Event) string { return e.Operation })
	}
	p.windows(t)
	p.dates(t)
	p.crashes()
	return p
}

// ties are the pairs whose order decides how many effects there are and that fall into one instant of a trial
// on the virtual clock.
func ties(t scenarios.Trial, obs lab.Observation) []string {
	p := pairs{plan: obs}
	p.keys()
	p.locks(t.Setup.Server.Guard.Lease)
	p.reads()
	p.windows(t)
	p.crashes()
	return p.ties
}

// closest returns the pair with the smallest gap.
func (p pairs) closest() (pair, bool) {
	if len(p.list) == 0 {
		return pair{}, false
	}
	return slices.MinFunc(p.list, func(a, b pair) int { return cmp.Compare(a.gap, b.gap) }), true
}

// add adds a pair whose events lie at first and second in the plan. Ties are left out: what
// happens in one instant of the plan has its order from elsewhere, or none.
func (p *pairs) add(name string, find func(lab.Observation) (time.Duration, time.Duration, bool)) {
	p.addTold(name, name+" are in one instant, at %s", find)
}

// addTold is add of a pair whose tie is told in words of its own, with %s for the instant.
func (p *pairs) addTold(name, tied string, find func(lab.Observation) (time.Duration, time.Duration, bool)) {
	first, second, ok := find(p.plan)
	if !ok {
		return
	}
	if gap := max(second-first, first-second); gap >= tie {
		p.list = append(p.list, pair{name: name, gap: gap, find: find})
	} else {
		told := strings.Replace(tied, "%s", first.Round(time.Millisecond).String(), 1)
		if !slices.Contains(p.ties, told) {
			p.ties = append(p.ties, told)
		}
	}
}

// sendID names a send: paths are unique for the machine that sends.
type sendID struct{ node, path string }

// ending is how a send ended for its sender.
type ending struct {
	id        sendID
	begun, at time.Duration
	kind      lab.Kind // Timeout, Failure or Reply
	detail    string
}

// sends returns every send with its ending, in the order in which they began.
func sends(o lab.Observation) []*ending {
	var out []*ending
	open := map[sendID]*ending{}
	for _, e := range o.Events {
		id := sendID{e.Node, e.Send}
		switch e.Kind {
		case lab.Send:
			s := &ending{id: id, begun: e.At}
			open[id] = s
			out = append(out, s)
		case lab.Timeout, lab.Failure, lab.Reply:
			// A limit that ends a layer's wait is an ending of the try before it.
			if s := open[id]; s != nil {
				s.at, s.kind, s.detail = e.At, e.Kind, e.Detail
			}
		}
	}
	return out
}

// limits pairs the limit of each send with the end of its handling at the other side, for the
// choice of a speed. Whether the one came before the other is seen from how the send ended.
func (p *pairs) limits(t scenarios.Trial) {
	handled := map[sendID]time.Duration{} // by target and path: the last thing that happened there
	targets := map[sendID]string{}
	limit := map[string]time.Duration{t.Setup.Caller.Name: shortest(t.Setup.Caller.Timeouts)}
	for _, h := range t.Setup.Hops {
		limit[h.Name] = shortest(h.Timeouts)
	}
	for _, e := range p.plan.Events {
		switch e.Kind {
		case lab.Send:
			targets[sendID{e.Node, e.Send}] = e.Target
		case lab.Arrival, lab.Commit, lab.Answer, lab.ClientGone, lab.Fault:
			handled[sendID{e.Node, e.Send}] = e.At
		}
	}
	for _, s := range sends(p.plan) {
		id := s.id
		end, arrived := handled[sendID{targets[id], id.path}]
		gap := time.Duration(0)
		switch {
		case s.kind == lab.Timeout && arrived:
			gap = max(end-s.at, s.at-end)
		case s.kind != lab.Timeout && limit[id.node] > 0:
			gap = s.begun + limit[id.node] - s.at
		}
		if gap >= tie {
			p.list = append(p.list, pair{name: fmt.Sprintf("the time-out of %s and its answer", id.path), gap: gap, ended: true})
		}
	}
}

// silences pairs the limit of each read with the pauses of an answer that dribbles, for the choice of a speed.
func (p *pairs) silences(t scenarios.Trial) {
	limits := map[string]time.Duration{t.Setup.Caller.Name: t.Setup.Caller.Timeouts.Read}
	for _, h := range t.Setup.Hops {
		limits[h.Name] = h.Timeouts.Read
	}
	for i, f := range t.Setup.Server.Faults {
		if f.Pause == 0 || p.plan.Faults[i].Fired == 0 {
			continue
		}
		for _, node := range slices.Sorted(maps.Keys(limits)) {
			if gap := max(limits[node]-f.Pause, f.Pause-limits[node]); limits[node] > 0 && gap >= tie {
				p.list = append(p.list, pair{name: fmt.Sprintf("the read time-out of %s and the next byte of the answer", node), gap: gap, ended: true})
			}
		}
	}
}

// hedges pairs the first success of each hedged call with the start of each further try of it, and
// with that of the one which then was not needed, for the choice of a speed.
func (p *pairs) hedges(node string, layers []policy.Layer) {
	for _, l := range layers {
		if l.Hedge == 0 {
			continue
		}
		type call struct {
			starts  []time.Duration
			success time.Duration
		}
		calls := map[string]*call{}
		var order []string
		for _, e := range p.plan.Events {
			path, try, ok := strings.Cut(e.Send, "/"+l.Name+".")
			if !ok || e.Node != node {
				continue
			}
			c := calls[path]
			if c == nil {
				c = &call{}
				calls[path], order = c, append(order, path)
			}
			number, _, _ := strings.Cut(try, "/")
			n, _ := strconv.Atoi(number)
			switch {
			case e.Kind == lab.Send && n > len(c.starts):
				c.starts = append(c.starts, e.At)
			case e.Kind == lab.Reply && e.Status < 300 && c.success == 0:
				c.success = e.At
			}
		}
		for _, path := range order {
			c := calls[path]
			if n := len(c.starts); n > 0 && n < l.Attempts {
				c.starts = append(c.starts, c.starts[n-1]+l.Hedge)
			}
			for i := 1; i < len(c.starts) && c.success > 0; i++ {
				if gap := max(c.success-c.starts[i], c.starts[i]-c.success); gap >= tie {
					p.list = append(p.list, pair{name: fmt.Sprintf("try %d of %s/%s and its first success", i+1, path, l.Name), gap: gap, ended: true})
				}
			}
		}
	}
}

// shortest is the shorter of the limits on the answer of one send, 0 for none.
func shortest(t scenarios.Timeouts) time.Duration {
	if t.Read == 0 || t.Attempt > 0 && t.Attempt < t.Read {
		return t.Attempt
	}
	return t.Read
}

// keyTimes are the times of the looks at a key that come before any work, and of its first commit.
// A claim that stands in the order's own transaction decides nothing by its time: whoever is first
// is first.
func keyTimes(o lab.Observation, key string) (looks []time.Duration, commit time.Duration, committed bool) {
	var winner string
	for _, e := range o.Events {
		if e.Kind == lab.Commit && e.Key == key && !committed {
			commit, committed, winner = e.At, true, e.Send
		}
	}
	worked := map[string]bool{}
	for _, e := range o.Events {
		switch e.Kind {
		case lab.Work:
			worked[e.Send] = true
		case lab.LookUp, lab.Claim:
			if e.Key == key && e.Send != winner && !worked[e.Send] {
				looks = append(looks, e.At)
			}
		}
	}
	return looks, commit, committed
}

// keys pairs each look at a key with the first commit under it.
func (p *pairs) keys() {
	var keys []string
	for _, e := range p.plan.Events {
		if e.Kind == lab.Commit && e.Key != "" && !slices.Contains(keys, e.Key) {
			keys = append(keys, e.Key)
		}
	}
	for _, key := range keys {
		looks, _, _ := keyTimes(p.plan, key)
		for i := range looks {
			name := fmt.Sprintf("look %d at key %s and its commit", i+1, key)
			p.addTold(name, "another request looks for the key at %s, in the instant in which the first one commits", func(o lab.Observation) (time.Duration, time.Duration, bool) {
				looks, commit, ok := keyTimes(o, key)
				if !ok || i >= len(looks) {
					return 0, 0, false
				}
				return looks[i], commit, true
			})
		}
	}
}

// locks pairs each request that asks for a lock with what others do to it, and with the end of each of
// their leases.
func (p *pairs) locks(lease time.Duration) {
	type step struct {
		at         time.Duration
		send, what string
	}
	steps := func(o lab.Observation) (asked, done []step) {
		number := map[string]int{}
		for _, e := range o.Events {
			if e.Kind != lab.Lock {
				continue
			}
			number[e.Send]++
			s := step{e.At, e.Send, fmt.Sprintf("step %d of %s at the lock", number[e.Send], e.Send)}
			switch e.Detail {
			case "won", "held", "taken over":
				asked = append(asked, s)
			}
			done = append(done, s)
			if lease > 0 && slices.Contains([]string{"won", "taken over", "renewed"}, e.Detail) {
				done = append(done, step{e.At + lease, e.Send, "the end of the lease of " + s.what})
			}
		}
		return asked, done
	}
	find := func(list []step, what string) (time.Duration, bool) {
		i := slices.IndexFunc(list, func(s step) bool { return s.what == what })
		if i < 0 {
			return 0, false
		}
		return list[i].at, true
	}
	asked, done := steps(p.plan)
	for _, a := range asked {
		for _, d := range done {
			if a.send == d.send {
				continue
			}
			p.add(a.what+" and "+d.what, func(o lab.Observation) (time.Duration, time.Duration, bool) {
				asked, done := steps(o)
				first, okA := find(asked, a.what)
				second, okD := find(done, d.what)
				return first, second, okA && okD
			})
		}
	}
}

// reads pairs each look at the row that requests share with each change of it by another.
func (p *pairs) reads() {
	find := func(o lab.Observation, kind lab.Kind, send string) (time.Duration, bool) {
		i := slices.IndexFunc(o.Events, func(e lab.Event) bool { return e.Kind == kind && e.Send == send })
		if i < 0 {
			return 0, false
		}
		return o.Events[i].At, true
	}
	var reads, changes []lab.Event
	for _, e := range p.plan.Events {
		switch e.Kind {
		case lab.Read:
			reads = append(reads, e)
		case lab.Changed:
			changes = append(changes, e)
		}
	}
	for _, read := range reads {
		for _, changed := range changes {
			if read.Send == changed.Send {
				continue
			}
			p.add(fmt.Sprintf("what %s read and what %s changed", read.Send, changed.Send), func(o lab.Observation) (time.Duration, time.Duration, bool) {
				a, okA := find(o, lab.Read, read.Send)
				b, okB := find(o, lab.Changed, changed.Send)
				return a, b, okA && okB
			})
		}
	}
}

// ends pairs each commit of an operation with its end, unless the end waited for it.
func (p *pairs) ends() {
	waitedFor := awaited(p.plan)
	for _, outcome := range p.plan.Outcomes {
		op := outcome.Operation
		times := func(o lab.Observation) (commits []lab.Event, done time.Duration) {
			for _, e := range o.Events {
				switch {
				case e.Operation != op:
				case e.Kind == lab.Commit:
					commits = append(commits, e)
				case e.Kind == lab.Done:
					done = e.At
				}
			}
			return commits, done
		}
		commits, _ := times(p.plan)
		for i := range commits {
			if waitedFor(commits[i]) {
				continue
			}
			p.add(fmt.Sprintf("commit %d of %s and the end of its caller", i+1, op), func(o lab.Observation) (time.Duration, time.Duration, bool) {
				commits, done := times(o)
				if i >= len(commits) {
					return 0, 0, false
				}
				return commits[i].At, done, true
			})
		}
	}
}

// awaited returns what tells of a commit whether the end of its operation waited for it: a caller that has
// the answer, along every machine on the way, was not done before it.
func awaited(o lab.Observation) func(commit lab.Event) bool {
	gaveUp := map[string]bool{} // paths of the sends that a limit ended
	for _, s := range sends(o) {
		if s.kind == lab.Timeout {
			gaveUp[s.id.path] = true
		}
	}
	done := map[string]time.Duration{}
	for _, outcome := range o.Outcomes {
		done[outcome.Operation] = outcome.DoneAt
	}
	return func(commit lab.Event) bool {
		for gone := range gaveUp {
			if commit.Send == gone || strings.HasPrefix(commit.Send, gone+"/") {
				return false
			}
		}
		// The loser of a hedge is cut off by no limit.
		return commit.At <= done[commit.Operation]
	}
}

// questions pairs each look at what became of an operation with its first commit.
func (p *pairs) questions() {
	for _, outcome := range p.plan.Outcomes {
		op := outcome.Operation
		times := func(o lab.Observation) (looks []time.Duration, commit time.Duration, committed bool) {
			for _, e := range o.Events {
				switch {
				case e.Operation != op:
				case e.Kind == lab.Learnt, e.Kind == lab.Reconciled:
					looks = append(looks, e.At)
				case e.Kind == lab.Commit && !committed:
					commit, committed = e.At, true
				}
			}
			return looks, commit, committed
		}
		looks, _, _ := times(p.plan)
		for i := range looks {
			p.add(fmt.Sprintf("look %d after %s and its commit", i+1, op), func(o lab.Observation) (time.Duration, time.Duration, bool) {
				looks, commit, ok := times(o)
				if !ok || i >= len(looks) {
					return 0, 0, false
				}
				return looks[i], commit, true
			})
		}
	}
}

// arrivals pairs each arrival at the order service with the next one among those that are counted
// together.
func (p *pairs) arrivals(t scenarios.Trial, together func(lab.Event) string) {
	p.arrivalsAt(together, t.Setup.Server.ReplicaNames()...)
}

// arrivalsAt pairs each arrival at some machines with the next one: at a hop, as at the service.
func (p *pairs) arrivalsAt(together func(lab.Event) string, nodes ...string) {
	at := func(o lab.Observation, path string) (time.Duration, bool) {
		for _, e := range o.Events {
			if e.Kind == lab.Arrival && e.Send == path && slices.Contains(nodes, e.Node) {
				return e.At, true
			}
		}
		return 0, false
	}
	before := map[string]string{}
	for _, e := range p.plan.Events {
		if e.Kind != lab.Arrival || !slices.Contains(nodes, e.Node) {
			continue
		}
		if first, second := before[together(e)], e.Send; first != "" {
			p.add(fmt.Sprintf("the arrivals of %s and %s", first, second), func(o lab.Observation) (time.Duration, time.Duration, bool) {
				a, okA := at(o, first)
				b, okB := at(o, second)
				return a, b, okA && okB
			})
		}
		before[together(e)] = e.Send
	}
}

// windows pairs each moment at which a fault begins or ends to strike with what a request meets
// before it could be struck: its send, for a fault at connect, and every step in the service. A hop's
// own steps are what it sends and what comes back, or the fault that struck in place of them.
func (p *pairs) windows(t scenarios.Trial) {
	for i, f := range t.Setup.AllFaults() {
		steps := func(e lab.Event) bool {
			return slices.Contains([]lab.Kind{lab.Send, lab.Arrival, lab.Work, lab.Commit, lab.Answer}, e.Kind)
		}
		if i >= len(t.Setup.Server.Faults) {
			steps = func(e lab.Event) bool {
				return e.Node == f.Node && slices.Contains([]lab.Kind{lab.Arrival, lab.Send, lab.Reply, lab.Answer, lab.Fault}, e.Kind)
			}
		}
		for _, edge := range []time.Duration{f.From, f.Until} {
			if edge == 0 {
				continue
			}
			for _, e := range p.plan.Events {
				if !steps(e) {
					continue
				}
				p.add(fmt.Sprintf("the %s of %s and the edge of %s", e.Kind, e.Send, f.Name()), func(o lab.Observation) (time.Duration, time.Duration, bool) {
					i := slices.IndexFunc(o.Events, func(x lab.Event) bool { return x.Kind == e.Kind && x.Send == e.Send && x.Node == e.Node })
					if i < 0 {
						return 0, 0, false
					}
					return o.Events[i].At, edge, true
				})
			}
		}
	}
}

// dates pairs each moment at which the caller's calendar clock is set with each answer to it, where a
// Retry-After is a date: how long until then is up to what the clock says.
func (p *pairs) dates(t scenarios.Trial) {
	if !slices.ContainsFunc(t.Setup.Server.Faults, func(f fault.Settings) bool { return strings.ContainsAny(f.RetryAfter, "+:") }) {
		return
	}
	for _, jump := range t.Setup.Caller.ClockJumps {
		for _, e := range p.plan.Events {
			if e.Kind != lab.Reply || e.Node != t.Setup.Caller.Name {
				continue
			}
			p.add(fmt.Sprintf("the answer to %s and the setting of the clock", e.Send), func(o lab.Observation) (time.Duration, time.Duration, bool) {
				i := slices.IndexFunc(o.Events, func(x lab.Event) bool { return x.Kind == lab.Reply && x.Send == e.Send && x.Node == e.Node })
				if i < 0 {
					return 0, 0, false
				}
				return o.Events[i].At, jump.At, true
			})
		}
	}
}

// crashes pairs each end and each beginning of a replica's life with the send to it or the commit
// there that comes next before and after.
func (p *pairs) crashes() {
	var nodes []string
	for _, e := range p.plan.Events {
		if e.Kind == lab.Crash && !slices.Contains(nodes, e.Node) {
			nodes = append(nodes, e.Node)
		}
	}
	for _, node := range nodes {
		lives, others := around(p.plan, node)
		for i, life := range lives {
			next, _ := slices.BinarySearch(others, life)
			for _, j := range []int{next - 1, next} {
				if j < 0 || j >= len(others) {
					continue
				}
				p.add(fmt.Sprintf("end or start %d of %s and send or commit %d there", i+1, node, j+1), func(o lab.Observation) (time.Duration, time.Duration, bool) {
					lives, others := around(o, node)
					if i >= len(lives) || j >= len(others) {
						return 0, 0, false
					}
					return lives[i], others[j], true
				})
			}
		}
	}
}

// around are the times at which a replica ended or started, and those at which something was sent
// to it or committed there.
func around(o lab.Observation, node string) (lives, others []time.Duration) {
	for _, e := range o.Events {
		switch {
		case e.Node == node && (e.Kind == lab.Crash || e.Kind == lab.Restart):
			lives = append(lives, e.At)
		case e.Node == node && (e.Kind == lab.Commit || e.Kind == lab.Answer && e.Status == http.StatusAccepted), e.Target == node && e.Kind == lab.Send:
			others = append(others, e.At)
		}
	}
	return lives, others
}

// slip says what did not take place in o as planned, or "": a timer that fired where none was to
// fire, or the other way round, or two deciding events that came nearer to each other than half
// of their gap.
func (p pairs) slip(t scenarios.Trial, o lab.Observation) string {
	if o.Broken != "" {
		return o.Broken
	}
	seen := map[sendID]*ending{}
	for _, s := range sends(o) {
		seen[s.id] = s
	}
	for _, planned := range sends(p.plan) {
		s := seen[planned.id]
		if s != nil && s.timer() != planned.timer() {
			return fmt.Sprintf("%s ended with %s at %s, planned was %s at %s", planned.id.path, ended(s), s.at.Round(time.Millisecond), ended(planned), planned.at.Round(time.Millisecond))
		}
	}
	if planned, got := clientsGone(p.plan), clientsGone(o); planned != got {
		return fmt.Sprintf("servers found their clients gone %d times while they waited and %d times with an answer, planned were %d and %d",
			got.waiting, got.answering, planned.waiting, planned.answering)
	}
	asked := t.Expect != nil && t.Expect.Overlap != nil ||
		slices.ContainsFunc(t.Demands(), func(d scenarios.Demand) bool { return strings.Contains(d.Expression, "overlap") })
	if asked && o.Overlap != p.plan.Overlap {
		return fmt.Sprintf("%d requests were at work at once, planned were %d", o.Overlap, p.plan.Overlap)
	}
	for _, pair := range p.list {
		if pair.ended {
			continue
		}
		first, second, _ := pair.find(p.plan)
		a, b, ok := pair.find(o)
		planned, got := second-first, b-a
		if planned < 0 {
			planned, got = -planned, -got
		}
		if !ok {
			continue // something before it went another way: that pair tells
		}
		if got < planned/2 {
			return fmt.Sprintf("%s came %s apart, planned were %s", pair.name, got.Round(time.Millisecond), planned.Round(time.Millisecond))
		}
	}
	return ""
}

// timer is the stage whose limit ended the send, "" when none did.
func (s *ending) timer() string {
	if s.kind == lab.Timeout {
		return s.detail
	}
	return ""
}

// gone is how often a server found that nobody waits any more: before it had an answer, and after.
type gone struct{ waiting, answering int }

func clientsGone(o lab.Observation) (n gone) {
	for _, e := range o.Events {
		switch {
		case e.Kind != lab.ClientGone:
		case e.Status == 0:
			n.waiting++
		default:
			n.answering++
		}
	}
	return n
}

func ended(s *ending) string {
	if s.kind == lab.Timeout {
		return s.detail + " time-out"
	}
	if s.kind == "" {
		return "nothing"
	}
	return string(s.kind)
}
