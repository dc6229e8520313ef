package report

import (
	"cmp"
	"retrylab/internal/lab"
	"slices"
	"strings"
)

type placedRow struct {
	lane
	served bool
	role   string
	node   string
	y      int
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
			f.d.left = append(f.d.left, lab.Count(ops, "more operation")+" of "+b.name+", not drawn")
		case left > 0:
			f.d.left = append(f.d.left, lab.Count(left, "more "+noun)+" of "+b.name+", not drawn")
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

// named is where the name of a band stands: beside its row, or above the names of its rows.
func (b *band) named() int {
	if b.headed {
		return b.top + bandPad + headHigh/2
	}
	return b.row
}
