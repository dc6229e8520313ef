package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"retrylab/internal/lab"
)

// ending is how a span ended.
type ending int

const (
	unfinished ending = iota // still open when the trial was over
	answered                 // a status came (of a try) or was given (of an arrival)
	timedOut                 // the sender gave up
	broken                   // the connection failed, or a fault ended the arrival
	committed                // an effect became durable
)

// A span is one try of a sender or one arrival at a server, from its first instant to its last, in
// milliseconds of scenario time.
type span struct {
	num      int // the number of the send, counted at its sender; 0 for none
	last     int // of the last send, where spans alike are drawn as one
	count    int // spans drawn as one
	op       string
	path     string
	node     string
	from, to int64
	end      ending
	status   int
	detail   string // stage of a time-out, kind of a failure

	// Arrivals only.
	commit   int64 // instant of the first effect
	commits  int   // effects
	answerAt int64
	replay   bool // the guard found the key done
	faults   []string
	deaf     bool // nobody waits for the answer
}

// A story is what the events of one result tell, in the order in which they are drawn.
type story struct {
	ops     []*operation
	sends   []*span // by the caller
	hops    []*hop
	served  []*span // arrivals at the last servers
	servers int     // nodes among them
	stray   []string
	end     int64
}

// An operation is one intent with its end, if it has one.
type operation struct {
	id       string
	from     int64
	done     int64
	belief   string
	finished bool
}

// A hop is a gateway or a service on the way: what reached it and what it sent on.
type hop struct {
	name            string
	arrivals, sends []*span
}

// tell reads the events of a result. It takes them as they come: an event that belongs to nothing
// seen before is left out rather than guessed at.
func tell(r *lab.Result) *story {
	st := new(story)
	roles := make(map[string]string)
	hops := make(map[string]*hop)
	addHop := func(name string) *hop {
		h := &hop{name: name}
		hops[name], roles[name] = h, "hop"
		st.hops = append(st.hops, h)
		return h
	}
	for _, n := range r.Nodes {
		roles[n.Name] = n.Role
		if n.Role == "hop" {
			addHop(n.Name)
		}
	}

	type key struct{ node, path string }
	tries := make(map[key]*span)
	arrivals := make(map[key]*span)
	numbers := make(map[string]int) // by path, of the last sender on the way
	counts := make(map[string]int)  // sends by node
	ops := make(map[string]*operation)
	nodes := make(map[string]bool)

	for _, e := range r.Events {
		at, k := lab.Millis(e.At), key{e.Node, e.Path()}
		switch e.Kind {
		case lab.Start:
			if ops[e.Operation] == nil {
				o := &operation{id: e.Operation, from: at}
				ops[e.Operation] = o
				st.ops = append(st.ops, o)
			}
		case lab.Done:
			if o := ops[e.Operation]; o != nil {
				o.done, o.belief, o.finished = at, e.Detail, true
			}
		case lab.Send:
			counts[e.Node]++
			numbers[e.Path()] = counts[e.Node]
			s := &span{num: counts[e.Node], count: 1, op: e.Operation, path: e.Path(), node: e.Node, from: at, to: at}
			tries[k] = s
			if role := roles[e.Node]; role == "hop" {
				hops[e.Node].sends = append(hops[e.Node].sends, s)
			} else {
				st.sends = append(st.sends, s)
			}
		case lab.Reply, lab.Timeout, lab.Failure:
			s := tries[k]
			if s == nil || s.end != unfinished {
				continue // an answer that came after the sender had given up
			}
			s.to, s.status, s.detail = at, e.Status, e.Detail
			s.end = map[lab.Kind]ending{lab.Reply: answered, lab.Timeout: timedOut, lab.Failure: broken}[e.Kind]
		case lab.Arrival:
			s := &span{num: numbers[e.Path()], count: 1, op: e.Operation, path: e.Path(), node: e.Node, from: at, to: at}
			arrivals[k] = s
			if roles[e.Node] == "hop" {
				hops[e.Node].arrivals = append(hops[e.Node].arrivals, s)
			} else {
				st.served = append(st.served, s)
				nodes[e.Node] = true
			}
		case lab.Commit:
			s := arrivals[k]
			if s == nil { // an effect without a request: a job, a message
				s = &span{num: numbers[e.Path()], count: 1, op: e.Operation, path: e.Path(), node: e.Node, from: at}
				arrivals[k] = s
				st.served = append(st.served, s)
				nodes[e.Node] = true
			}
			if s.commits == 0 {
				s.commit = at
			}
			s.commits++
			s.end, s.to = committed, max(s.to, at)
		case lab.LookUp, lab.Claim:
			if s := arrivals[k]; s != nil && e.Detail == "done" {
				s.replay = true
			}
		case lab.Fault:
			s := arrivals[k]
			if s == nil {
				st.stray = append(st.stray, e.Detail)
				continue
			}
			s.faults = append(s.faults, e.Detail)
			if s.end == unfinished {
				s.to = at
			}
		case lab.Answer:
			if s := arrivals[k]; s != nil {
				s.status, s.answerAt = e.Status, at
				s.to = max(s.to, at)
				if s.end == unfinished {
					s.end = answered
				}
			}
		case lab.Rollback:
			if s := arrivals[k]; s != nil && s.end == unfinished {
				s.to = at
			}
		case lab.ClientGone:
			if s := arrivals[k]; s != nil {
				s.deaf = true
				s.to = max(s.to, at)
			}
		}
		if e.Kind != lab.Settled {
			st.end = max(st.end, at)
		}
	}
	st.servers = len(nodes)
	for _, s := range tries {
		if s.end == unfinished {
			s.to = st.end
			if o := ops[s.op]; o != nil && o.finished {
				s.to = max(s.from, o.done)
			}
		}
	}
	for _, s := range arrivals {
		if s.end == unfinished && len(s.faults) > 0 {
			s.end = broken
		} else if s.end == unfinished {
			s.to = st.end
		}
	}
	return st
}

// layers are the tries that a span stands in, outermost first: feign-retryer.2, lb.1.
func (s *span) layers() []string { return strings.Split(s.path, "/")[1:] }

// tryOf divides "feign-retryer.2" into the layer and the number of its try.
func tryOf(part string) (layer, try string) {
	if i := strings.LastIndexByte(part, '.'); i >= 0 {
		return part[:i], part[i+1:]
	}
	return part, ""
}

// groupsAt joins the sends that share a try of the layer at depth d. The layer's name is empty where
// several layers stand at that depth.
func groupsAt(sends []*span, d int) (groups []*span, layer string) {
	byPrefix := make(map[string]*span)
	mixed := false
	for _, s := range sends {
		parts := s.layers()
		if len(parts) <= d {
			mixed = true
			continue
		}
		name, try := tryOf(parts[d])
		if len(groups) == 0 {
			layer = name
		}
		mixed = mixed || layer != name
		prefix := s.op + "/" + strings.Join(parts[:d+1], "/")
		g := byPrefix[prefix]
		if g == nil {
			g = &span{count: 1, op: s.op, path: prefix, from: s.from, to: s.to, detail: try}
			g.num, _ = strconv.Atoi(try)
			byPrefix[prefix] = g
			groups = append(groups, g)
		}
		g.from, g.to = min(g.from, s.from), max(g.to, s.to)
	}
	if mixed {
		layer = ""
	}
	return groups, layer
}

// pack puts spans into as few rows as possible so that no two of a row overlap. Spans that only
// touch may share a row, a try that follows another at once, unless one of them stands for several and
// says so behind its mark.
func pack(spans []*span) [][]*span {
	sorted := slices.Clone(spans)
	slices.SortStableFunc(sorted, func(a, b *span) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.num, b.num))
	})
	var rows [][]*span
next:
	for _, s := range sorted {
		for i, row := range rows {
			last := row[len(row)-1]
			if last.to < s.from || last.to == s.from && last.count == s.count {
				rows[i] = append(row, s)
				continue next
			}
		}
		rows = append(rows, []*span{s})
	}
	return rows
}

// look is everything about a span but its number.
type look struct {
	node             string
	from, to         int64
	end              ending
	status           int
	detail, faults   string
	commit, answerAt int64
	commits          int
	replay, deaf     bool
}

func (s *span) look() look {
	return look{
		s.node, s.from, s.to, s.end, s.status, s.detail, strings.Join(s.faults, ","),
		s.commit, s.answerAt, s.commits, s.replay, s.deaf,
	}
}

// least is how many things that look the same are drawn as one. Three lanes alike are three things
// to see; from four on, or in a crowd, they are one thing and a count.
func least(crowd bool) int {
	if crowd {
		return 2
	}
	return 4
}

// mergeAlike joins spans that differ in nothing but their number.
func mergeAlike(spans []*span, crowd bool) []*span {
	looks := make([]look, len(spans))
	groups := make(map[look][]*span)
	for i, s := range spans {
		looks[i] = s.look()
		groups[looks[i]] = append(groups[looks[i]], s)
	}
	var merged []*span
	for i, s := range spans {
		group := groups[looks[i]]
		switch {
		case len(group) < least(crowd):
			merged = append(merged, s)
		case group[0] == s:
			merged = append(merged, merge(group))
		}
	}
	return merged
}

// merge returns the one span that is drawn for several.
func merge(group []*span) *span {
	m := *group[0]
	m.count, m.last = len(group), group[len(group)-1].num
	if m.last-m.num != m.count-1 {
		m.last = 0 // others lie between
	}
	return &m
}
