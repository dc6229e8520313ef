package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"retrylab/internal/lab"
)

// A drawing is the picture of one result in lanes: what stands on which row, from when to when. It
// knows milliseconds and rows; where a millisecond lies is the axis's business, so that several
// drawings can share one.
type drawing struct {
	bands  []band
	bars   []bar
	arrows []flight
	marks  []mark
	height int
	end    int64
	left   []string // what is not drawn, in words
}

// A band is the lane of one party: the caller, a hop, a replica, the store. Distances are in pixels.
type band struct {
	name, role  string
	top, height int
	labels      []label // of its rows
	row         int     // the first
	headed      bool    // the name stands above the rows
}

type label struct {
	text string
	y    int
}

// barKind says what a bar stands for.
type barKind string

const (
	barSend  barKind = "send"  // a send is under way: its sender waits
	barPause barKind = "pause" // a layer waits before its next try
	barLayer barKind = "layer" // a try of an outer layer
	barWait  barKind = "wait"  // a request is at a machine that is not working on it
	barWork  barKind = "work"  // a request is being processed
	barDown  barKind = "down"  // a machine is dead
)

// A bar lasts.
type bar struct {
	kind     barKind
	from, to int64
	y, thick int
	text     string // on it
	number   string // which request it is
	title    string // what it is, in full
	event    int    // the event it begins with, −1 for none
}

// flightKind says what an arrow carries.
type flightKind string

const (
	flightRequest flightKind = "request"
	flightAnswer  flightKind = "answer"
	flightLost    flightKind = "lost" // a request or an answer that never gets there
	flightEffect  flightKind = "effect"
)

// A flight is an arrow: it goes from a row to another.
type flight struct {
	kind       flightKind
	from, to   int64
	fromY, toY int
}

// A mark is an instant.
type mark struct {
	kind  string // of glyphs
	at    int64
	y     int
	text  string // beside it
	short string // the same without the number of its request, "" where it has none
	loud  bool   // the text is said in bold
	room  int64  // where the next thing on its row begins; −1 for never
	plate bool   // the text lies on a bar that is dark
	title string
	count int // effects that it stands for, in the store
	event int
}

// glyph is the shape of a mark, with what it means.
type glyph struct {
	kind, word string
	path       string // SVG around 0,0
	filled     bool
}

// pictured are the marks in the order of the legend. No two differ by their colour alone.
var pictured = []glyph{
	{"commit", "order committed", "M0-5.5A5.5 5.5 0 1 1 0 5.5A5.5 5.5 0 1 1 0-5.5Z", true},
	{"extra", "order beyond the wanted one", "M0-9.5L9.5 0L0 9.5L-9.5 0ZM-.8-4V-.8H-4V.8H-.8V4H.8V.8H4V-.8H.8V-4Z", true},
	{"gone", "commit that is not there at the end", "M0-5A5 5 0 1 1 0 5A5 5 0 1 1 0-5ZM-5 5L5-5", false},
	{"entry", "entry in a ledger", "M-4.5-4.5H4.5V4.5H-4.5Z", true},
	{"ok", "answer 2xx", "M-5 0.5L-1.5 4L5-4", false},
	{"other", "other answer", "M0-4.5A4.5 4.5 0 1 1 0 4.5A4.5 4.5 0 1 1 0-4.5Z", false},
	{"timeout", "time-out", "M-4.5-4.5L4.5 4.5M-4.5 4.5L4.5-4.5", false},
	{"failure", "connection failed", "M-5-5H5V5H-5ZM-2.5-2.5L2.5 2.5M-2.5 2.5L2.5-2.5", false},
	{"fault", "injected fault", "M1.5-8L-4.5 1H-0.5L-1.5 8L4.5-1H0.5Z", true},
	{"won", "key claimed", "M0-5.5L5.5 4.5H-5.5Z", true},
	{"held", "key or lock not won", "M0-5.5L5.5 4.5H-5.5Z", false},
	{"look", "looked up", "M0-3A3 3 0 1 1 0 3A3 3 0 1 1 0-3ZM2.2 2.2L6 6", false},
	{"queue", "queue", "M-4.5-3.5H4.5M-4.5 0H4.5M-4.5 3.5H4.5", false},
	{"undo", "transaction given up", "M0-5A5 5 0 1 1 0 5A5 5 0 1 1 0-5ZM-2.5 0H2.5", false},
	{"deaf", "nobody waits for the answer", "M0-5A5 5 0 1 1 0 5A5 5 0 1 1 0-5ZM-3.5-3.5L3.5 3.5", false},
	{"crash", "machine died", "M0-8L2-2.5L7.5-4L4 0.5L7 5.5L1.5 3.5L-1.5 8L-2.5 3L-7.5 3.5L-4 0L-7-4.5L-2-2.5Z", true},
	{"restart", "machine is back", "M-4-5.5L5.5 0L-4 5.5Z", true},
	{"changed", "shared row changed", "M0-6L6 0L0 6L-6 0Z", false},
	{"asked", "asked what became of it", "M0-5.5A5.5 5.5 0 1 1 0 5.5A5.5 5.5 0 1 1 0-5.5ZM0-2.5V0.5M0 2.4V3", false},
	{"clock", "clock was set", "M0-5.5A5.5 5.5 0 1 1 0 5.5A5.5 5.5 0 1 1 0-5.5ZM0-3.5V0L2.5 1.5", false},
	{"try", "try of an outer layer, in an instant", "M-3-5.5H3V5.5H-3Z", false},
	{"done", "caller is done", "M-3.5 7V-6.5M-3.5-6.5L5-3.5L-3.5-0.5", false},
}

// markOf is the shape of an event, "" for one that is told by a bar, an arrow or another mark.
func markOf(e lab.Event) string {
	switch e.Kind {
	case lab.Commit:
		return "commit"
	case lab.Entered:
		return "entry"
	case lab.Reply:
		if e.Status/100 == 2 {
			return "ok"
		}
		return "other"
	case lab.Timeout:
		return "timeout"
	case lab.Failure:
		return "failure"
	case lab.Fault:
		return "fault"
	case lab.LookUp, lab.Read:
		return "look"
	case lab.Claim, lab.Lock:
		if e.Detail == "won" || e.Detail == "taken over" {
			return "won"
		}
		return "held"
	case lab.Queue:
		return "queue"
	case lab.Rollback:
		return "undo"
	case lab.ClientGone:
		return "deaf"
	case lab.Crash:
		return "crash"
	case lab.Restart:
		return "restart"
	case lab.Changed:
		return "changed"
	case lab.Question, lab.Learnt:
		return "asked"
	case lab.ClockJump:
		return "clock"
	case lab.Done, lab.Reconciled:
		return "done"
	}
	return ""
}

const (
	rowsDrawn  = 64  // rows of a drawing; what is more is merged where it is alike, else counted
	spansDrawn = 700 // spans of a drawing
	toldAtOnce = 4   // events of one mark that are told in full
	storeDrawn = 300 // marks of the store; what is more is merged where it is close together

	rowHigh   = 26
	denseHigh = 17 // of the rows of a band that has many
	denseFrom = 7
	barThick  = 14
	beside    = 13 // between marks of one row that share an instant
	headHigh  = 20 // of the name of a band that has names for its rows, too
	bandPad   = 7
	bandGap   = 20
	apart     = 16 // between what is too short to be seen as a bar
	shortest  = 6  // of a bar in which a layer's try can be seen

	// nominal is the width at which a drawing decides what there is room for. A page is this wide or
	// wider.
	nominal = 720
	letter  = 6.3 // width of a character of the small text
)

// A drafter makes a drawing.
type drafter struct {
	*setting
	*story
	r       *lab.Result
	d       drawing
	axis    *axis
	rowOf   map[route]int    // what is drawn for itself: the row of a request at the node that sent it or had it
	many    map[route]int    // requests that are drawn as one
	opRow   map[string]int   // the row at which an operation ends
	nodeAt  map[string]int   // a row of the machine
	dense   map[int]bool     // rows that are close to their neighbours
	free    map[[2]int64]int // marks at an instant of a row
	edges   map[int][]*span  // by row: what begins there
	extra   map[int]bool     // events with an effect beyond the wanted one
	absent  map[int]bool     // commits that nobody can read back
	decided map[route]string // what a layer made of the end of a try
	rows    []placedRow
}

type placedRow struct {
	lane
	served bool
	role   string
	node   string
	y      int
}

// draft draws a result on an axis. It is a pure function of the two.
func draft(s *setting, r *lab.Result, a *axis) *drawing {
	f := &drafter{
		setting: s, story: tellBy(r, func(int64) int64 { return 1 }), r: r, axis: a,
		rowOf: map[route]int{}, many: map[route]int{}, opRow: map[string]int{}, nodeAt: map[string]int{}, dense: map[int]bool{},
		free: map[[2]int64]int{}, edges: map[int][]*span{},
	}
	f.effects()
	f.decided = map[route]string{}
	for _, e := range r.Events {
		if e.Kind == lab.Retry || e.Kind == lab.Stop {
			f.decided[route{e.Node, e.Path()}] = string(e.Kind) + ": " + f.text(e.Detail)
		}
	}
	f.d.end = f.end
	f.sample()
	f.layOut()
	for _, row := range f.rows {
		for _, s := range row.spans {
			f.bars(row, s)
		}
		for _, s := range row.busy {
			f.bars(placedRow{lane: row.lane, served: true, role: "hop", node: row.node, y: row.y}, s)
		}
	}
	f.instants()
	f.arrows()
	f.room()
	return &f.d
}

// effects finds the events that made an effect too many: the second and further of an operation that
// the database gave back, and the same in each ledger that has some.
func (f *drafter) effects() {
	f.extra, f.absent = map[int]bool{}, map[int]bool{}
	there := map[int64]bool{}
	for _, o := range f.r.Orders {
		there[o.Order] = true
	}
	over := map[string]bool{}
	for _, l := range f.r.Ledgers {
		over[l.Name] = l.Duplicates > 0 && !l.Note
	}
	had := map[[2]string]int{}
	for i, e := range f.r.Events {
		switch {
		case e.Kind == lab.Commit && !there[e.Order]:
			f.absent[i] = true
		case e.Kind == lab.Commit:
			had[[2]string{e.Operation, ""}]++
			f.extra[i] = had[[2]string{e.Operation, ""}] > 1
		case e.Kind == lab.Entered && over[e.Detail]:
			had[[2]string{e.Operation, e.Detail}]++
			f.extra[i] = had[[2]string{e.Operation, e.Detail}] > 1
		}
	}
}

// sample leaves out operations where there are more than a drawing has rows for: of those that stay, evenly spread
// over all, every request is drawn.
func (f *drafter) sample() {
	if len(f.ops) < 2 || rowsOf(f.parties(true)) <= rowsDrawn {
		return
	}
	whole := *f.story
	groups := slices.DeleteFunc((&picture{setting: f.setting, story: f.story}).operationLanes(true), func(l lane) bool { return len(l.alike) == 0 })
	for keep := min(len(groups)-1, rowsDrawn/2); keep >= 4; keep = keep * 2 / 3 {
		stays := map[string]bool{}
		part := whole
		part.ops = nil
		for i := range keep {
			for _, o := range groups[i*len(groups)/keep].alike {
				stays[o.id] = true
			}
		}
		for _, o := range whole.ops {
			if stays[o.id] {
				part.ops = append(part.ops, o)
			}
		}
		of := func(spans []*span) (out []*span) {
			for _, s := range spans {
				if stays[s.op] {
					out = append(out, s)
				}
			}
			return out
		}
		part.sends, part.served, part.hops = of(whole.sends), of(whole.served), nil
		for _, h := range whole.hops {
			part.hops = append(part.hops, &hop{name: h.name, arrivals: of(h.arrivals), sends: of(h.sends)})
		}
		f.story = &part
		if rowsOf(f.parties(true)) <= rowsDrawn {
			break
		}
	}
	f.d.left = append(f.d.left, strconv.Itoa(len(f.story.ops))+" of "+strconv.Itoa(len(whole.ops))+" operations are drawn, evenly spread, with all their requests; the store has every order")
}

// layOut gives every party a band and every request a row.
func (f *drafter) layOut() {
	bands := f.parties(false)
	if rowsOf(bands) > rowsDrawn {
		bands = f.parties(true)
	}
	sections := make([][]lane, len(bands))
	for i, b := range bands {
		sections[i] = b.lanes
	}
	limits := share(sections, rowsDrawn)
	spans, y := 0, 0
	for i, b := range bands {
		// The first row of a hop has the hop's name alone.
		names := b.lanes[0].name != ""
		lb := band{name: b.name, role: b.role, top: y, headed: names}
		y += bandPad
		if names {
			y += headHigh
		}
		if b.role == "caller" && len(f.ops) == 1 {
			// What the operation comes to stands above its sends.
			f.opRow[f.ops[0].id] = y + rowHigh/2 - 2
			if names {
				f.opRow[f.ops[0].id] -= headHigh
			} else {
				y += headHigh
			}
		}
		high := rowHigh
		if min(len(b.lanes), limits[i]) >= denseFrom {
			high = denseHigh
		}
		left := 0
		ops := 0
		for j, l := range b.lanes {
			n := len(l.spans) + len(l.busy)
			if j >= limits[i] || spans+n > spansDrawn && j > 0 {
				ops += len(l.alike)
				for _, s := range l.spans {
					left += s.count
				}
				continue
			}
			if spans+n > spansDrawn {
				keep := max(1, spansDrawn-spans)
				if len(l.spans) > keep {
					left += len(l.spans) - keep
					l.spans = l.spans[:keep]
				}
				if len(l.busy) > keep {
					l.busy = l.busy[:keep]
				}
			}
			spans += n
			row := placedRow{lane: l, served: l.kind == servedLane || l.kind == packedLane, role: b.role, node: b.node, y: y + high/2}
			if l.name != "" {
				lb.labels = append(lb.labels, label{l.name, row.y})
			}
			if lb.row == 0 {
				lb.row = row.y
			}
			f.place(row)
			f.dense[row.y] = high == denseHigh
			y += high
		}
		switch noun := map[bool]string{true: "send", false: "arrival"}[b.role == "caller"]; {
		case ops > 0:
			f.d.left = append(f.d.left, count(ops, "more operation")+" of "+b.name+", not drawn")
		case left > 0:
			f.d.left = append(f.d.left, count(left, "more "+noun)+" of "+b.name+", not drawn")
		}
		y += bandPad
		lb.height = y - lb.top
		f.d.bands = append(f.d.bands, lb)
		y += bandGap
	}
	f.store(y)
}

// place notes who is found on a row.
func (f *drafter) place(row placedRow) {
	f.rows = append(f.rows, row)
	if _, ok := f.nodeAt[row.node]; !ok {
		f.nodeAt[row.node] = row.y
	}
	note := func(s *span, node string) {
		f.rowOf[route{node, s.path}] = row.y
		f.edges[row.y] = append(f.edges[row.y], s)
		if row.role == "caller" && len(f.ops) > 1 {
			f.opRow[s.op] = row.y
		}
		f.many[route{node, s.path}] = s.count
	}
	for _, s := range row.spans {
		note(s, s.node)
	}
	for _, s := range row.busy {
		note(s, row.node+" has")
	}
}

// A party is a band on its way.
type party struct {
	name, role, node string
	lanes            []lane
}

func rowsOf(bands []party) int {
	n := 0
	for _, b := range bands {
		n += len(b.lanes)
	}
	return n
}

// parties makes the bands of the caller, the hops and the replicas.
func (f *drafter) parties(crowd bool) []party {
	p := &picture{setting: f.setting, story: f.story}
	caller := party{name: f.text(f.caller), role: "caller", node: f.caller}
	switch {
	case len(f.ops) > 1 && (len(f.ops) >= least(crowd) || !slices.ContainsFunc(f.sends, func(s *span) bool { return len(s.layers()) > 1 })):
		caller.lanes = p.operationLanes(crowd)
	case len(f.ops) > 1:
		for _, o := range f.ops {
			var sends []*span
			for _, s := range f.sends {
				if s.op == o.id {
					sends = append(sends, s)
				}
			}
			for _, l := range f.senderLanes(sends, 0, crowd) {
				l.name = join(f.text(o.id), l.name)
				caller.lanes = append(caller.lanes, l)
			}
		}
	default:
		if caller.lanes = f.senderLanes(f.sends, 0, crowd); len(caller.lanes) == 0 {
			caller.lanes = []lane{{kind: noteLane}}
		}
	}
	bands := []party{caller}
	for _, h := range f.hops {
		b := party{name: f.text(h.name), role: "hop", node: h.name}
		received := 0
		for _, s := range h.arrivals {
			received = max(received, len(s.layers()))
		}
		for _, row := range f.pack(f.alike(h.arrivals, crowd)) {
			b.lanes = append(b.lanes, lane{kind: packedLane, spans: asReceived(row, h.name)})
		}
		b.lanes = append(b.lanes, f.senderLanes(h.sends, received, crowd)...)
		bands = append(bands, b)
	}
	var nodes []string
	byNode := map[string][]*span{}
	for _, s := range f.served {
		if byNode[s.node] == nil {
			nodes = append(nodes, s.node)
		}
		byNode[s.node] = append(byNode[s.node], s)
	}
	for _, n := range f.r.Nodes {
		if n.Role == "server" && !slices.Contains(nodes, n.Name) {
			nodes = append(nodes, n.Name)
		}
	}
	slices.Sort(nodes)
	for _, n := range nodes {
		b := party{name: f.text(n), role: "server", node: n}
		spans := f.alike(byNode[n], crowd)
		rows := make([][]*span, len(spans))
		for i, s := range spans {
			rows[i] = []*span{s}
		}
		// What is only an instant, too, needs no row of its own.
		short := func(s *span) bool { return (f.axis.at(s.to)-f.axis.at(s.from))*nominal < apart }
		if crowd || len(spans) > 16 || slices.ContainsFunc(spans, short) {
			rows = f.pack(spans)
		}
		for _, row := range rows {
			b.lanes = append(b.lanes, lane{kind: servedLane, spans: asReceived(row, n)})
		}
		if len(rows) == 0 {
			b.lanes = []lane{{kind: noteLane}}
		}
		bands = append(bands, b)
	}
	for _, b := range bands {
		for j := len(b.lanes) - 1; j > 0; j-- {
			if b.lanes[j].name == b.lanes[j-1].name && b.lanes[j].kind == b.lanes[j-1].kind {
				b.lanes[j].name = ""
			}
		}
	}
	return bands
}

// senderLanes are the lanes of the layers of a sender: of each outer layer its tries, outermost first, and of the
// innermost the sends. The first parts of a path are of whoever the request came from.
func (f *drafter) senderLanes(sends []*span, parts int, crowd bool) (lanes []lane) {
	type rung struct {
		depth int
		layer string
	}
	var rungs []rung
	tries := map[rung][]*span{}
	known := map[string]*span{}
	var inner []string
	for _, s := range sends {
		layers := s.layers()
		name := ""
		if len(layers) > parts {
			name, _ = tryOf(layers[len(layers)-1])
		}
		if !slices.Contains(inner, name) {
			inner = append(inner, name)
		}
		for d := parts; d < len(layers)-1; d++ {
			layer, try := tryOf(layers[d])
			path := s.op + "/" + strings.Join(layers[:d+1], "/")
			g := known[path]
			if g == nil {
				g = &span{count: 1, op: s.op, path: path, node: s.node, from: s.from, to: s.to, detail: try}
				known[path] = g
				at := rung{d, layer}
				if tries[at] == nil {
					rungs = append(rungs, at)
				}
				tries[at] = append(tries[at], g)
			}
			g.from, g.to = min(g.from, s.from), max(g.to, s.to)
		}
	}
	slices.SortStableFunc(rungs, func(a, b rung) int { return cmp.Compare(a.depth, b.depth) })
	for _, at := range rungs {
		for _, row := range f.pack(atOnce(tries[at])) {
			lanes = append(lanes, lane{name: f.text(at.layer), kind: layerLane, spans: row})
		}
	}
	name := "sends"
	if len(inner) == 1 {
		name = f.text(inner[0])
	}
	for _, row := range f.pack(f.alike(sends, crowd)) {
		lanes = append(lanes, lane{name: name, kind: tryLane, spans: row})
	}
	return lanes
}

// atOnce joins tries of a layer that begin and end at one and the same instant.
func atOnce(tries []*span) (out []*span) {
	for _, s := range tries {
		if n := len(out); n > 0 && s.from == s.to && out[n-1].from == s.from && out[n-1].to == s.to {
			first, _, _ := strings.Cut(out[n-1].detail, "–")
			joined := *out[n-1]
			joined.detail = first + "–" + s.detail
			out[n-1] = &joined
			continue
		}
		out = append(out, s)
	}
	return out
}

// asReceived gives spans the name under which a machine that sends on, too, has them.
func asReceived(spans []*span, node string) []*span {
	out := make([]*span, len(spans))
	for i, s := range spans {
		c := *s
		c.node = node + " has"
		out[i] = &c
	}
	return out
}

// alike joins spans that look the same: those that are too short to be seen as bars, and where there
// are too many all. A request that took effect stays by itself, since one of those may be too many.
func (f *drafter) alike(spans []*span, crowd bool) []*span {
	var short, out []*span
	for _, s := range spans {
		if s.commits == 0 && (crowd || (f.axis.at(s.to)-f.axis.at(s.from))*nominal < 1) {
			short = append(short, s)
		} else {
			out = append(out, s)
		}
	}
	out = append(out, mergeAlike(short, crowd)...)
	slices.SortStableFunc(out, func(a, b *span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.num, b.num)) })
	return out
}

// pack puts spans into as few rows as possible so that the marks of no two lie on each other.
func (f *drafter) pack(spans []*span) (rows [][]*span) {
	x := func(ms int64) float64 { return f.axis.at(ms) * nominal }
next:
	for _, s := range spans {
		for i, row := range rows {
			last := row[len(row)-1]
			need := 0.0
			if x(last.to)-x(last.from) < apart || x(s.to)-x(s.from) < apart {
				need = apart
			}
			if last.to <= s.from && x(s.from)-x(last.to) >= need {
				rows[i] = append(row, s)
				continue next
			}
		}
		rows = append(rows, []*span{s})
	}
	return rows
}

// store lays out the band of what is durable: the wanted orders, the orders beyond them, and each
// ledger.
func (f *drafter) store(y int) {
	if f.servers == 0 && len(f.r.Orders) == 0 {
		f.d.height = y - bandGap
		return
	}
	b := band{name: "store", role: "store", top: y}
	kinds := []string{"orders"}
	for i, e := range f.r.Events {
		name := ""
		switch {
		case f.extra[i] && e.Kind == lab.Commit:
			name = "too many"
		case e.Kind == lab.Entered:
			name, _, _ = strings.Cut(e.Detail, ",")
		}
		if name != "" && !slices.Contains(kinds, name) {
			kinds = append(kinds, name)
		}
	}
	if i := slices.Index(kinds, "too many"); i > 1 {
		kinds = slices.Insert(slices.Delete(kinds, i, i+1), 1, "too many")
	}
	y += bandPad
	if b.headed = len(kinds) > 1; b.headed {
		y += headHigh
	}
	b.row = y + rowHigh/2
	for _, k := range kinds {
		row := y + rowHigh/2
		f.nodeAt["store "+k] = row
		if len(kinds) > 1 {
			b.labels = append(b.labels, label{f.text(k), row})
		}
		y += rowHigh
	}
	b.height = y + bandPad - b.top
	f.d.bands = append(f.d.bands, b)
	f.d.height = b.top + b.height
	f.kept(kinds)
}

// kept puts the marks of what became durable into the store's band. Those of one instant share one.
func (f *drafter) kept(kinds []string) {
	at := map[[2]int64]int{}
	since := map[[2]int64]int64{}
	durable := 0
	for _, e := range f.r.Events {
		if e.Kind == lab.Commit || e.Kind == lab.Entered {
			durable++
		}
	}
	grain := int64(1)
	if durable > storeDrawn {
		grain = max(1, f.end*2/storeDrawn)
	}
	count := map[string]int{}
	last := map[string]int{}
	for i, e := range f.r.Events {
		kind, row := "", ""
		switch {
		case e.Kind == lab.Commit && f.absent[i]:
			kind, row = "gone", "orders"
		case e.Kind == lab.Commit && f.extra[i]:
			kind, row = "extra", "too many"
		case e.Kind == lab.Commit:
			kind, row = "commit", "orders"
		case e.Kind == lab.Entered:
			row, _, _ = strings.Cut(e.Detail, ",")
			if kind = "entry"; f.extra[i] {
				kind = "extra"
			}
		default:
			continue
		}
		y, ms := f.nodeAt["store "+row], lab.Millis(e.At)
		count[row]++
		// Marks of a crowd that would hide each other are one, which stands at the first of them.
		if key := [2]int64{ms / grain, int64(y)}; grain > 1 {
			if first, ok := since[key]; ok {
				ms = first
			} else {
				since[key] = ms
			}
		}
		key := [2]int64{ms, int64(y)*100 + int64(slices.IndexFunc(pictured, func(g glyph) bool { return g.kind == kind }))}
		if j, ok := at[key]; ok {
			m := &f.d.marks[j]
			n, _ := strconv.Atoi(strings.TrimPrefix(m.text, "×"))
			m.text = "×" + strconv.Itoa(max(n, 1)+1)
			if m.count++; m.count <= toldAtOnce {
				m.title += "\n\n" + f.sentence(i)
			}
			last[row] = j
			continue
		}
		at[key] = len(f.d.marks)
		last[row] = len(f.d.marks)
		f.d.marks = append(f.d.marks, mark{kind: kind, at: ms, y: y, title: f.sentence(i), event: i, count: 1})
	}
	for _, j := range at {
		if m := &f.d.marks[j]; m.count > toldAtOnce {
			m.title += "\n\nand " + strconv.Itoa(m.count-toldAtOnce) + " more"
		}
	}
	if grain > 1 {
		f.d.left = append(f.d.left, "orders within "+clock(grain)+" of each other are one mark")
	}
	for row, j := range last {
		m := &f.d.marks[j]
		if row == "too many" {
			m.text, m.loud = strconv.Itoa(count[row])+" too many", true
		}
	}
	if count["orders"] == 0 {
		f.d.marks = append(f.d.marks, mark{kind: "", at: 0, y: f.nodeAt["store orders"], text: "no order", event: -1})
	}
}

// bars draws what lasts of a span.
func (f *drafter) bars(row placedRow, s *span) {
	which := (&picture{setting: f.setting}).number(s)
	add := func(kind barKind, a, b int64, text, title string, event int) {
		f.d.bars = append(f.d.bars, bar{kind: kind, from: a, to: b, y: row.y, thick: barThick, text: text, number: which, title: title, event: event})
	}
	number := join(which, times(s.count))
	switch {
	case row.kind == layerLane:
		title := f.between(s.from, s.to) + "\n" + f.text(s.path)
		if why := f.decided[route{s.node, s.path}]; why != "" {
			title += "\n" + why
		}
		if (f.axis.at(s.to)-f.axis.at(s.from))*nominal < shortest {
			f.d.marks = append(f.d.marks, f.stack(mark{kind: "try", at: s.from, y: row.y, text: s.detail, title: title, event: -1}))
			return
		}
		add(barLayer, s.from, s.to, s.detail, title, -1)
		return
	case !row.served:
		add(barSend, s.from, s.to, number, f.between(s.from, s.to)+"\n"+join("send", number)+" is under way, and its sender waits\n"+f.text(s.path), -1)
		return
	}
	add(barWait, s.from, s.to, number, f.between(s.from, s.to)+"\n"+join("request", number)+" is at "+f.text(row.node)+"\n"+f.text(s.path), -1)
}

func times(n int) string {
	if n < 2 {
		return ""
	}
	return "×" + strconv.Itoa(n)
}

func (f *drafter) between(from, to int64) string {
	if from == to {
		return clock(from)
	}
	return clock(from) + " – " + clock(to) + " (" + clock(to-from) + ")"
}

// rowFor finds the row of an event.
func (f *drafter) rowFor(e lab.Event) (y int, ok bool) {
	switch e.Kind {
	case lab.Send, lab.Reply, lab.Told, lab.Timeout, lab.Failure, lab.Retry, lab.Stop:
		if y, ok = f.rowOf[route{e.Node, e.Path()}]; ok {
			return y, true
		}
	case lab.Done, lab.Start, lab.Question, lab.Learnt, lab.Reconciled:
		y, ok = f.opRow[e.Operation]
		return y, ok
	case lab.ClockJump, lab.Restart, lab.CleanedUp:
		y, ok = f.nodeAt[e.Node]
		return y, ok
	}
	if y, ok = f.rowOf[route{e.Node + " has", e.Path()}]; ok {
		return y, true
	}
	if e.Kind == lab.Crash && e.Send == "" {
		y, ok = f.nodeAt[e.Node]
	}
	return y, ok
}

// instants puts the marks on the rows, and the bars that events alone tell of: pauses, work, death.
func (f *drafter) instants() {
	working := map[route]int{}
	down := map[string]int{}
	begun := map[route]int64{} // when a try of a layer sent something first
	for _, e := range f.r.Events {
		for path := e.Path(); e.Kind == lab.Send && path != ""; path = path[:max(0, strings.LastIndexByte(path, '/'))] {
			if _, ok := begun[route{e.Node, path}]; !ok {
				begun[route{e.Node, path}] = lab.Millis(e.At)
			}
		}
	}
	stop := func(k route, at int64) {
		i, ok := working[k]
		if !ok {
			return
		}
		delete(working, k)
		y := f.rowOf[k]
		b := lab.Millis(f.r.Events[i].At)
		f.d.bars = append(f.d.bars, bar{
			kind: barWork, from: b, to: at, y: y, thick: barThick,
			title: f.between(b, at) + "\n" + f.text(f.r.Events[i].Node) + " works\n" + f.text(f.r.Events[i].Path()), event: i,
		})
	}
	for i, e := range f.r.Events {
		at := lab.Millis(e.At)
		k := route{e.Node + " has", e.Path()}
		y, ok := f.rowFor(e)
		switch e.Kind {
		case lab.Work:
			if ok {
				stop(k, at)
				working[k] = i
			}
		case lab.Commit, lab.Answer, lab.Rollback, lab.ClientGone, lab.Crash:
			stop(k, at)
		case lab.Retry:
			until := at + lab.Millis(e.Wait)
			if next, ok := begun[route{e.Node, tryAfter(e.Path())}]; ok {
				until = next // a hedge has waited already
			}
			if ok && until > at {
				f.d.bars = append(f.d.bars, bar{
					kind: barPause, from: at, to: min(until, max(f.end, at)), y: y, thick: barThick,
					title: f.between(at, until) + "\nwaits before the next try: " + f.text(e.Detail) + "\n" + f.text(e.Path()), event: i,
				})
			}
		}
		if e.Kind == lab.Crash {
			down[e.Node] = i
			for k := range working {
				if k.node == e.Node+" has" {
					stop(k, at)
				}
			}
		}
		if c, was := down[e.Node]; was && e.Kind == lab.Restart {
			delete(down, e.Node)
			b := lab.Millis(f.r.Events[c].At)
			if row, ok := f.rowFor(f.r.Events[c]); ok {
				f.d.bars = append(f.d.bars, bar{kind: barDown, from: b, to: at, y: row, thick: 4, title: f.between(b, at) + "\n" + f.text(e.Node) + " is dead", event: c})
				y = row
			}
		}
		kind := markOf(e)
		if kind == "" || !ok || len(f.d.marks) > 3*spansDrawn {
			continue
		}
		m := mark{kind: kind, at: at, y: y, title: f.sentence(i), event: i}
		switch {
		case e.Kind == lab.Commit && f.absent[i]:
			m.kind, m.text = "gone", "not there at the end"
		case e.Kind == lab.Commit && f.extra[i]:
			m.kind, m.text, m.loud = "extra", "order "+strconv.FormatInt(e.Order, 10)+", too many", true
		case e.Kind == lab.Commit && e.Order > 0:
			m.text = "order " + strconv.FormatInt(e.Order, 10)
		case e.Kind == lab.Entered && f.extra[i]:
			m.kind, m.text, m.loud = "extra", f.text(e.Detail)+", too many", true
		case e.Kind == lab.Entered:
			m.text = f.text(e.Detail)
		case e.Kind == lab.Reply:
			m.text = strconv.Itoa(e.Status)
		case e.Kind == lab.Timeout:
			m.text = f.text(e.Detail) + " time-out"
		case e.Kind == lab.Failure, e.Kind == lab.Fault, e.Kind == lab.ClockJump, e.Kind == lab.Changed:
			m.text = f.text(e.Detail)
		case e.Kind == lab.Claim && m.kind == "held", e.Kind == lab.Lock && m.kind == "held", e.Kind == lab.Queue, e.Kind == lab.Learnt:
			m.text = f.text(e.Detail)
		case e.Kind == lab.Rollback:
			m.text = f.text(e.Detail)
		case e.Kind == lab.Crash:
			m.text = "died"
		case e.Kind == lab.Done:
			m.text, m.loud = "believes: "+f.text(e.Detail), true
		case e.Kind == lab.Reconciled:
			m.text = "reconciled: " + f.text(e.Detail)
		}
		if n := max(f.many[route{e.Node, e.Path()}], f.many[k]); n > 1 && m.text != "" {
			m.text += " " + times(n)
		}
		if e.Kind == lab.Done && len(f.ops) > 1 && f.append(m) {
			continue
		}
		f.d.marks = append(f.d.marks, f.stack(m))
	}
	for k := range working {
		stop(k, f.end)
	}
	// What was found by walking over a map has no order of its own.
	slices.SortStableFunc(f.d.bars, func(a, b bar) int {
		return cmp.Or(cmp.Compare(layer(a.kind), layer(b.kind)), cmp.Compare(a.from, b.from), cmp.Compare(a.y, b.y), cmp.Compare(a.event, b.event))
	})
}

// tryAfter is the path of the next try of the layer that a path ends with.
func tryAfter(path string) string {
	layer, try := tryOf(path)
	n, err := strconv.Atoi(try)
	if err != nil {
		return ""
	}
	return layer + "." + strconv.Itoa(n+1)
}

// layer is what is drawn over what.
func layer(k barKind) int {
	return slices.Index([]barKind{barLayer, barSend, barPause, barWait, barDown, barWork}, k)
}

// append says in the words of the mark that ends an operation what its caller believes: a row among many
// has no room for another mark.
func (f *drafter) append(m mark) bool {
	for i := len(f.d.marks) - 1; i >= 0 && f.d.marks[i].at == m.at; i-- {
		if other := &f.d.marks[i]; other.y == m.y {
			other.text = strings.TrimLeft(other.text+", "+m.text, ", ")
			other.title += "\n" + m.title
			return true
		}
	}
	return false
}

// stack moves a mark off those that stand at its instant already: up and down, never along the time.
func (f *drafter) stack(m mark) mark {
	at := [2]int64{m.at, int64(m.y)}
	if f.dense[m.y] {
		// There is no room above or below: the one that tells most says the rest, too.
		for i := range f.d.marks {
			other := &f.d.marks[i]
			if other.at != m.at || other.y != m.y || other.kind == "" {
				continue
			}
			m.also(other)
			f.d.marks = slices.Delete(f.d.marks, i, i+1)
			return m
		}
	}
	n := f.free[at]
	f.free[at]++
	switch {
	case n == 2:
		m.y += beside
	case n > 0:
		m.y -= beside
	}
	return m
}

// also has a mark tell what another of its instant does.
func (m *mark) also(other *mark) {
	first, second := other, m
	if weight(m.kind) > weight(other.kind) {
		first, second = m, other
	}
	text := first.text
	if second.text != "" {
		text = strings.TrimLeft(text+", "+second.text, ", ")
	}
	*m = mark{kind: first.kind, at: m.at, y: m.y, text: text, loud: first.loud, title: first.title + "\n\n" + second.title, event: first.event}
}

// weight is how much a mark tells, among those of one instant.
func weight(kind string) int {
	return slices.Index([]string{"deaf", "queue", "look", "won", "held", "fault", "commit", "gone", "extra"}, kind)
}

// arrows draws what went from one row to another.
func (f *drafter) arrows() {
	chain := []string{f.caller}
	for _, h := range f.hops {
		chain = append(chain, h.name)
	}
	// next finds the row of a request at whoever it was sent to.
	hop := map[string]int{}
	for i, n := range chain {
		hop[n] = i
	}
	arrived := map[string][]int{}
	answered := map[route]int{}
	replied := map[route]int{}
	ended := map[route]int{} // where an answer ends that nobody gets
	for i, e := range f.r.Events {
		switch e.Kind {
		case lab.Arrival:
			arrived[e.Path()] = append(arrived[e.Path()], i)
		case lab.Answer:
			answered[route{e.Node, e.Path()}] = i
			ended[route{e.Node, e.Path()}] = i
		case lab.ClientGone, lab.Fault:
			if _, ok := ended[route{e.Node, e.Path()}]; !ok && !strings.HasPrefix(e.Detail, "delay@") {
				ended[route{e.Node, e.Path()}] = i
			}
		case lab.Reply:
			replied[route{e.Node, e.Path()}] = i
		}
	}
	below := func(y int) (top, bottom int) {
		for _, b := range f.d.bands {
			if y >= b.top && y < b.top+b.height {
				return b.top, b.top + b.height
			}
		}
		return y, y
	}
	reached := map[int]string{} // the sender of an arrival
	for _, e := range f.r.Events {
		if e.Kind != lab.Send {
			continue
		}
		y, ok := f.rowOf[route{e.Node, e.Path()}]
		if !ok {
			continue
		}
		found := -1
		for _, i := range arrived[e.Path()] {
			at := f.r.Events[i].Node
			depth, isHop := hop[at]
			if at != e.Node && reached[i] == "" && (!isHop || depth > hop[e.Node]) {
				found = i
				break
			}
		}
		from := lab.Millis(e.At)
		if found < 0 {
			_, bottom := below(y)
			f.d.arrows = append(f.d.arrows, flight{flightLost, from, from, y + barThick/2, bottom + bandGap/2})
			continue
		}
		reached[found] = e.Node
		a := f.r.Events[found]
		to, ok := f.rowOf[route{a.Node + " has", a.Path()}]
		if !ok {
			continue
		}
		f.d.arrows = append(f.d.arrows, flight{flightRequest, from, lab.Millis(a.At), y + barThick/2, to - barThick/2})
		if i, ok := replied[route{e.Node, e.Path()}]; ok {
			if j, ok := answered[route{a.Node, a.Path()}]; ok {
				f.d.arrows = append(f.d.arrows, flight{flightAnswer, lab.Millis(f.r.Events[j].At), lab.Millis(f.r.Events[i].At), to - barThick/2, y + barThick/2})
			}
			continue
		}
		if i, ok := ended[route{a.Node, a.Path()}]; ok {
			at := lab.Millis(f.r.Events[i].At)
			top, _ := below(to)
			f.d.arrows = append(f.d.arrows, flight{flightLost, at, at, to - barThick/2, top - bandGap/2})
		}
	}
	for i, e := range f.r.Events {
		if e.Kind != lab.Commit && e.Kind != lab.Entered {
			continue
		}
		y, ok := f.rowFor(e)
		if !ok {
			continue
		}
		row := "orders"
		switch {
		case e.Kind == lab.Entered:
			row, _, _ = strings.Cut(e.Detail, ",")
		case f.extra[i]:
			row = "too many"
		}
		if to, ok := f.nodeAt["store "+row]; ok {
			at := lab.Millis(e.At)
			f.d.arrows = append(f.d.arrows, flight{flightEffect, at, at, y + barThick/2, to - barThick/2})
		}
	}
	slices.SortFunc(f.d.arrows, func(a, b flight) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.fromY, b.fromY), cmp.Compare(a.toY, b.toY), cmp.Compare(a.kind, b.kind), cmp.Compare(a.to, b.to))
	})
	f.d.arrows = slices.Compact(f.d.arrows)
}

// room leaves out words that would run into what comes next on their row.
func (f *drafter) room() {
	slices.SortStableFunc(f.d.marks, func(a, b mark) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.event, b.event)) })
	next := func(y int, after int64, self int) float64 {
		least := 1e9
		for i, m := range f.d.marks {
			if i != self && m.y == y && m.at > after {
				least = min(least, f.axis.at(m.at)*nominal-6)
				break
			}
		}
		for _, s := range f.edges[y] {
			if s.from > after || s.from == after && s.to > s.from {
				least = min(least, f.axis.at(s.from)*nominal)
			}
		}
		return least
	}
	// What has no room on its bar is said by the mark at the end of it.
	for i := range f.d.bars {
		b := &f.d.bars[i]
		if b.text == "" || (f.axis.at(b.to)-f.axis.at(b.from))*nominal >= 10+letter*float64(width(b.text)) {
			continue
		}
		for j := range f.d.marks {
			if m := &f.d.marks[j]; b.number != "" && m.y == b.y && m.at == b.to && m.kind != "" && m.kind != "deaf" {
				m.short, m.text = m.text, join(b.number, m.text)
				break
			}
		}
		b.text = ""
	}
	for i := range f.d.marks {
		m := &f.d.marks[i]
		if m.text == "" || m.kind == "" {
			continue
		}
		x := f.axis.at(m.at) * nominal
		limit := min(next(m.y, m.at, i), nominal+140)
		if m.short != "" && x+11+letter*float64(width(m.text)) > limit {
			m.text = m.short
		}
		need := 11 + letter*float64(width(m.text))
		switch {
		case x+need <= limit:
			m.room = 1
		case f.before(m, x-need):
			m.room = -1
		default:
			m.text = ""
		}
		m.plate = m.text != "" && slices.ContainsFunc(f.d.bars, func(b bar) bool {
			return b.y == m.y && (b.kind == barWork || b.kind == barDown) && (b.from <= m.at && m.at < b.to || m.room < 0 && b.to == m.at)
		})
	}
}

// before reports whether the words of a mark have room before it: in the bar that it ends.
func (f *drafter) before(m *mark, x float64) bool {
	for _, b := range f.d.bars {
		if b.y == m.y && b.kind != barWork && b.to == m.at {
			return f.axis.at(b.from)*nominal+4+letter*float64(width(b.text)+1) <= x
		}
	}
	return false
}

// sentence tells an event in full.
func (f *drafter) sentence(i int) string {
	e := f.r.Events[i]
	var b strings.Builder
	b.WriteString(clock(lab.Millis(e.At)) + "  " + string(e.Kind))
	if e.Detail != "" {
		b.WriteString(": " + f.text(e.Detail))
	}
	if e.Status > 0 {
		b.WriteString(" " + strconv.Itoa(e.Status))
	}
	if e.Order > 0 {
		b.WriteString(", order " + strconv.FormatInt(e.Order, 10))
	}
	switch {
	case f.extra[i]:
		b.WriteString(", beyond the wanted one")
	case f.absent[i]:
		b.WriteString(", which is not there at the end")
	}
	if e.Kind == lab.Retry {
		b.WriteString(", after " + clock(lab.Millis(e.Wait)))
	}
	b.WriteString("\n" + join(f.text(e.Node), f.text(e.Path())))
	if e.Target != "" {
		b.WriteString(" → " + f.text(e.Target))
	}
	if e.Key != "" {
		b.WriteString("\nkey " + f.text(e.Key))
	}
	if e.Remaining > 0 {
		b.WriteString("\n" + clock(lab.Millis(e.Remaining)) + " of the time left")
	}
	return b.String()
}

// named is where the name of a band stands: beside its row, or above the names of its rows.
func (b *band) named() int {
	if b.headed {
		return b.top + bandPad + headHigh/2
	}
	return b.row
}
