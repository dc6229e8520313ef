package report

import (
	"cmp"
	"slices"
	"strings"

	"retrylab/internal/lab"
)

// ending is how a span ended.
type ending int

const (
	unfinished ending = iota // still open when the trial was over
	answered                 // a status came (of a try) or was given (of an arrival); the rest of the answer may fail
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
	going    bool   // a picture of an earlier instant does not know its end

	// Arrivals only.
	commit   int64 // instant of the first effect
	commits  int   // effects
	extra    bool  // one of them is beyond the wanted one
	answerAt int64
	replay   bool // the guard found the key done
	faults   []string
	back     int64 // instant at which the server was there again that died of it
	deaf     bool  // nobody waits for the answer
	working  bool  // it is answered, and worked on
}

// An operation is one intent with its end, if it has one.
type operation struct {
	id       string
	done     int64
	belief   string
	finished bool
}

// A hop is a gateway or a service on the way: what reached it and what it sent on.
type hop struct {
	name            string
	arrivals, sends []*span
}

// A story is what the events of one result tell, party by party.
type story struct {
	caller  string // its name
	ops     []*operation
	sends   []*span // by the caller
	hops    []*hop
	served  []*span  // arrivals at the last servers
	servers int      // nodes among them
	stray   []string // faults that hit no arrival
	end     int64
}

// A teller makes a story of events as they come. What belongs to nothing seen before is left out
// rather than guessed at.
type teller struct {
	story
	operations map[string]*operation
	hopNamed   map[string]*hop
	tries      map[route]*span
	arrivals   map[route]*span
	numbers    map[string]int // of sends, by path, as the last sender on the way counts them
	counts     map[string]int // sends by node
	serving    map[string]bool
	deaths     map[string]*span // by node: the arrival at which it died
	there      map[int64]bool   // orders that the database gave back
	had        map[string]int   // of them, by operation
}

// route is where a request is known by its path: a path is unique for the node that sends it, and for
// the node that it reaches.
type route struct{ node, path string }

// tell reads the events of a result, at instants that a picture of cells can show.
func tell(r *lab.Result) *story { return tellBy(r, grainOf) }

// tellBy reads the events of a result, at instants rounded to the grain that it is given for the last.
func tellBy(r *lab.Result, grainOf func(end int64) int64) *story {
	t := teller{
		story:      story{caller: "caller"},
		operations: make(map[string]*operation),
		hopNamed:   make(map[string]*hop),
		tries:      make(map[route]*span),
		arrivals:   make(map[route]*span),
		numbers:    make(map[string]int),
		counts:     make(map[string]int),
		serving:    make(map[string]bool),
		deaths:     make(map[string]*span),
		there:      make(map[int64]bool),
		had:        make(map[string]int),
	}
	for _, o := range r.Orders {
		t.there[o.Order] = true
	}
	for _, n := range slices.Backward(r.Nodes) {
		if n.Role == "caller" && n.Name != "" {
			t.caller = n.Name
		}
	}
	for _, n := range r.Nodes {
		if n.Role == "hop" && t.hopNamed[n.Name] == nil {
			h := &hop{name: n.Name}
			t.hopNamed[n.Name] = h
			t.hops = append(t.hops, h)
		}
	}
	for _, e := range r.Events {
		if e.Kind != lab.Settled {
			t.end = max(t.end, lab.Millis(e.At))
		}
	}
	grain := grainOf(t.end)
	t.end = round(t.end, grain)
	at := int64(0)
	for _, e := range r.Events {
		at = max(at, round(lab.Millis(e.At), grain))
		switch e.Kind {
		case lab.Start, lab.Done, lab.Reconciled:
			t.operation(e, at)
		case lab.Send, lab.Reply, lab.Told, lab.Timeout, lab.Failure:
			t.sender(e, at)
		case lab.Crash, lab.Restart:
			t.life(e, at)
		default:
			t.server(e, at)
		}
	}
	t.finish()
	return &t.story
}

func (t *teller) operation(e lab.Event, at int64) {
	o := t.operations[e.Operation]
	switch {
	case e.Kind == lab.Start && o == nil:
		o = &operation{id: e.Operation}
		t.operations[e.Operation] = o
		t.ops = append(t.ops, o)
	case e.Kind == lab.Done && o != nil:
		o.done, o.belief, o.finished = at, e.Detail, true
	case e.Kind == lab.Reconciled && o != nil:
		o.belief += ", reconciled: " + e.Detail
	}
}

// sender takes an event of the caller or of the sending side of a hop.
func (t *teller) sender(e lab.Event, at int64) {
	if e.Kind == lab.Send {
		t.counts[e.Node]++
		t.numbers[e.Path()] = t.counts[e.Node]
		s := t.span(e, at)
		t.tries[route{e.Node, e.Path()}] = s
		if h := t.hopNamed[e.Node]; h != nil {
			h.sends = append(h.sends, s)
		} else {
			t.sends = append(t.sends, s)
		}
		return
	}
	s := t.tries[route{e.Node, e.Path()}]
	switch {
	case s == nil:
	case e.Kind == lab.Reply && s.end == unfinished:
		s.end, s.to, s.status = answered, at, e.Status
	case e.Kind == lab.Told && s.end == answered:
		s.to = at // the rest of the answer took its time
	case e.Kind == lab.Timeout && s.end <= answered:
		s.end, s.to, s.detail = timedOut, at, e.Detail
	case e.Kind == lab.Failure && s.end <= answered:
		s.end, s.to, s.detail = broken, at, e.Detail
	}
}

// server takes an event of a server or of the receiving side of a hop.
func (t *teller) server(e lab.Event, at int64) {
	k := route{e.Node, e.Path()}
	s := t.arrivals[k]
	switch {
	case e.Kind == lab.Arrival, e.Kind == lab.Commit && s == nil: // a job commits without a request
		s = t.span(e, at)
		t.arrivals[k] = s
		if h := t.hopNamed[e.Node]; h != nil {
			h.arrivals = append(h.arrivals, s)
		} else {
			t.served = append(t.served, s)
			t.serving[e.Node] = true
		}
	case e.Kind == lab.Fault && s == nil:
		t.stray = append(t.stray, e.Detail)
	}
	if s == nil {
		return
	}
	switch e.Kind {
	case lab.LookUp, lab.Claim:
		s.replay = s.replay || e.Detail == "done"
	case lab.Work:
		if s.status > 0 { // accepted: what was answered goes on
			s.end, s.working = unfinished, true
		}
	case lab.Commit:
		s.working = false
		if s.commits == 0 {
			s.commit = at
		}
		if t.there[e.Order] {
			t.had[e.Operation]++
			s.extra = s.extra || t.had[e.Operation] > 1
		}
		s.commits++
		s.end, s.to = committed, at
	case lab.Answer:
		s.status, s.answerAt, s.to = e.Status, at, at
		if s.end == unfinished {
			s.end = answered
		}
	case lab.Answered:
		s.to = at
	case lab.ClientGone:
		s.deaf, s.to = true, at
	case lab.Fault:
		s.faults = append(s.faults, e.Detail)
		if s.end == unfinished {
			s.to = at
		}
	case lab.Rollback:
		if s.end == unfinished {
			s.to = at
		}
	}
}

// life takes the end and the beginning of a server's process. What it had not answered ends with it.
func (t *teller) life(e lab.Event, at int64) {
	if e.Kind == lab.Restart {
		if s := t.deaths[e.Node]; s != nil {
			s.back = at
			delete(t.deaths, e.Node)
		}
		return
	}
	for _, s := range t.served {
		switch {
		case s.node != e.Node || s.end == broken:
			continue
		case s.path == e.Path():
			t.deaths[e.Node] = s
		case (s.status > 0 || s.deaf || s.cut()) && !s.working:
			continue
		default:
			s.faults = append(s.faults, "crash")
		}
		s.to = at
		if s.end == unfinished {
			s.end = broken
		}
	}
}

// cut reports whether a fault has ended an arrival: all do but one that is only a delay.
func (s *span) cut() bool {
	return len(s.faults) > 0 && !strings.HasPrefix(s.faults[len(s.faults)-1], "delay@")
}

func (t *teller) span(e lab.Event, at int64) *span {
	return &span{num: t.numbers[e.Path()], count: 1, op: e.Operation, path: e.Path(), node: e.Node, from: at, to: at}
}

// finish ends what no event has ended: with its operation, with the fault or the lost client that cut
// it short, or with the picture.
func (t *teller) finish() {
	t.servers = len(t.serving)
	for _, s := range t.tries {
		if s.end != unfinished {
			continue
		}
		s.to = t.end
		if o := t.operations[s.op]; o != nil && o.finished {
			s.to = max(s.from, o.done)
		}
	}
	for _, s := range t.arrivals {
		switch {
		case s.end != unfinished:
		case len(s.faults) > 0 || s.deaf:
			s.end = broken
		default:
			s.to = t.end
		}
	}
}

// grainOf is what instants are rounded to in a picture that ends at end: finer than it can show, and
// coarse enough to leave out the microseconds that keep flows apart, which add up along a chain.
func grainOf(end int64) int64 {
	grain := int64(1)
	if end >= 1000 {
		grain = 10
	}
	for grain*10*6000 <= end {
		grain *= 10
	}
	return grain
}

func round(ms, grain int64) int64 { return (ms + grain/2) / grain * grain }

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
	back             int64
	replay, deaf     bool
	extra            bool
}

func (s *span) look() look {
	return look{
		s.node, s.from, s.to, s.end, s.status, s.detail, strings.Join(s.faults, ","),
		s.commit, s.answerAt, s.commits, s.back, s.replay, s.deaf, s.extra,
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
	m.count = len(group)
	for _, s := range group {
		m.num, m.last = min(m.num, s.num), max(m.last, s.num)
	}
	if m.last-m.num != m.count-1 {
		m.last = 0 // others lie between
	}
	return &m
}
