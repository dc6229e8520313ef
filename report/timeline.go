package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"retrylab/internal/lab"
)

// The timeline is a picture of one result, drawn from its events alone: time runs to the right on
// a linear scale, with a lane for what the caller did, a lane for every hop, and a lane for each
// request that reached the last servers. What lies too close to tell apart shares a cell; nothing
// is ever shown before what it came after.

const (
	// lanesDrawn bounds the height of a picture. What is more is merged where it is alike, else
	// counted.
	lanesDrawn = 14

	// nameWidth bounds the names before the lanes.
	nameWidth = 14
)

// laneKind says how the spans of a lane are drawn.
type laneKind int

const (
	layerLane  laneKind = iota // tries of an outer layer, as brackets
	tryLane                    // sends
	servedLane                 // one arrival, with its outcome beside it
	packedLane                 // many arrivals, one after the other
	noteLane                   // words
)

// A lane is one line of the picture.
type lane struct {
	name  string
	kind  laneKind
	spans []*span
	busy  []*span      // requests that a hop is busy with while it sends
	tail  string       // said at the end of the lane
	style style        // of the tail
	since int64        // the instant from which on the tail is true
	spare bool         // the tail is left out where there is no room
	below bool         // the tail has a line of its own
	alike []*operation // that begin on this lane
}

// A picture is the timeline of one result on its way to the page.
type picture struct {
	*setting
	*story
	most   int // lanes that are drawn
	names  int // columns of the names before the lanes
	room   int // columns of a lane
	lanes  []lane
	scale  scale
	shared bool // several tries share a cell that counts them
	moving bool // it is drawn as time passes: nothing may jump when a span grows
}

// timeline draws the picture of a result, which the page calls name, within the width of the page.
// With begin its instants are given as times of day, too.
func (s *setting) timeline(name, begin string, r *lab.Result) []string {
	p := s.layOutPicture(r, lanesDrawn)
	if p == nil {
		return nil
	}
	lines := []string{"  " + s.paint(bold, s.shorten(name, s.width-3)) + ":"}
	if day := p.axis(begin); begin != "" && day != "" {
		lines = append(lines, p.lead("")+day)
	}
	lines = append(lines, p.drawLanes()...)
	return append(lines, p.drawLegend()...)
}

// layOutPicture chooses what of a result is drawn, on at most so many lanes, and where. It returns nil where
// there is nothing to draw.
func (s *setting) layOutPicture(r *lab.Result, most int) *picture {
	p := &picture{setting: s, story: tell(r), most: most}
	if len(p.sends)+len(p.served) == 0 {
		return nil
	}
	p.lanes = p.chooseLanes()
	p.names = width("time")
	for i := range p.lanes {
		p.lanes[i].name = s.shorten(p.lanes[i].name, nameWidth)
		p.names = max(p.names, width(p.lanes[i].name))
	}
	p.room = s.width - width(p.lead(""))
	p.scale = p.chooseScale()
	return p
}

// lead is what stands before a lane.
func (p *picture) lead(name string) string { return "  " + pad(name, p.names+3) }

// drawLanes draws the axis and the lanes below it.
func (p *picture) drawLanes() []string {
	lines := []string{p.paint(dim, p.lead("time")) + p.axis("")}
	above := ""
	for i := range p.lanes {
		l := p.lanes[i]
		if l.name == above {
			l.name = ""
		} else {
			above = l.name
		}
		c := newCanvas(p.room)
		end := p.draw(c, l)
		if end > 0 {
			end += 2
		}
		below := ""
		switch tail := width(l.tail); {
		case end+tail <= p.room:
			c.put(end, l.tail, l.style)
		case tail > 0 && !l.spare:
			c := newCanvas(p.room)
			c.put(max(0, p.room-tail), p.shorten(l.tail, p.room), l.style)
			below = c.render(p.setting)
			p.lanes[i].below = true
		}
		lines = append(lines, p.lead(l.name)+c.render(p.setting))
		if p.lanes[i].below {
			lines = append(lines, p.lead("")+below)
		}
	}
	return lines
}

func (p *picture) drawLegend() []string {
	var lines []string
	for _, l := range flow(p.legend(), "   ", p.room) {
		lines = append(lines, p.lead("")+p.paint(dim, l))
	}
	return lines
}

// chooseLanes chooses what is drawn, from the caller at the top to the servers at the bottom, within
// the height of a picture.
func (p *picture) chooseLanes() []lane {
	sections := p.sections(false)
	if height(sections) > p.most {
		sections = p.sections(true)
	}
	limits := share(sections, p.most)
	var lanes []lane
	for i, sec := range sections {
		if n := limits[i]; len(sec) > n {
			sec = append(sec[:n-1:n-1], p.more(sec[n-1:]))
		}
		lanes = append(lanes, sec...)
	}
	return lanes
}

// more counts the lanes that are not drawn, by what they would have shown.
func (p *picture) more(left []lane) lane {
	spans, ops, noun := 0, 0, "send"
	for _, l := range left {
		ops += len(l.alike)
		for _, s := range l.spans {
			spans += s.count
		}
		if l.kind == servedLane || l.kind == packedLane {
			noun = "arrival"
		}
	}
	name := left[0].name
	if ops > 0 {
		name, spans, noun = "", ops, "operation"
	}
	return lane{name: name, kind: noteLane, tail: p.cut + " " + lab.Count(spans, "more "+noun), style: dim, since: p.end}
}

// sections makes the lanes of every party: the caller, the hops, the servers. In a crowd they save
// height where they can.
func (p *picture) sections(crowd bool) [][]lane {
	var sections [][]lane
	if len(p.ops) > 1 {
		sections = append(sections, p.operationLanes(crowd))
	} else {
		sections = append(sections, p.callerLanes(crowd))
	}
	for _, h := range p.hops {
		if sec := p.hopLanes(h, crowd); len(sec) > 0 {
			sections = append(sections, sec)
		}
	}
	if sec := p.servedLanes(crowd); len(sec) > 0 {
		sections = append(sections, sec)
	}
	return sections
}

func height(sections [][]lane) int {
	n := 0
	for _, sec := range sections {
		n += len(sec)
	}
	return n
}

// share gives every section its part of total lines: as many as it needs if all fit, else in turn,
// and never none.
func share(sections [][]lane, total int) []int {
	limits := make([]int, len(sections))
	for given := true; given; {
		given = false
		for i, sec := range sections {
			if limits[i] < len(sec) && (total > 0 || limits[i] == 0) {
				limits[i]++
				total--
				given = true
			}
		}
	}
	return limits
}

// callerLanes draws the caller of one operation: its outer layers, each on a lane of its own, above
// the sends.
func (p *picture) callerLanes(crowd bool) []lane {
	lanes, name := p.layerLanes()
	sec := p.tryLanes(name, mergeAlike(p.sends, crowd))
	if len(p.ops) == 1 && p.ops[0].belief != "" {
		last := latest(sec)
		last.tail = p.shorten(p.text(p.caller), nameWidth) + " believes: " + p.text(p.ops[0].belief)
		last.style, last.since = beliefStyle(p.ops[0].belief), p.ops[0].done
	}
	return append(lanes, sec...)
}

// operationLanes draws the sends of each of several operations. Operations that went alike are drawn
// as one.
func (p *picture) operationLanes(crowd bool) []lane {
	sends := make(map[string][]*span)
	for _, s := range p.sends {
		sends[s.op] = append(sends[s.op], s)
	}
	alike := make(map[string][]*operation)
	looks := make([]string, len(p.ops))
	for i, o := range p.ops {
		var b strings.Builder
		for _, s := range sends[o.id] {
			fmt.Fprintf(&b, "%v ", s.look())
		}
		fmt.Fprint(&b, o.done, o.finished, o.belief)
		looks[i] = b.String()
		alike[looks[i]] = append(alike[looks[i]], o)
	}
	var lanes []lane
	for i, o := range p.ops {
		group := alike[looks[i]]
		name, spans, verb, members := p.text(o.id), sends[o.id], "believes ", []*operation{o}
		if len(group) >= least(crowd) {
			if group[0] != o {
				continue
			}
			members = group
			name, verb = lab.Count(len(group), "operation"), "each believes "
			spans = nil
			for j := range sends[o.id] {
				same := make([]*span, len(group))
				for k, other := range group {
					same[k] = sends[other.id][j]
				}
				spans = append(spans, merge(same))
			}
		}
		sec := p.tryLanes(name, spans)
		sec[0].alike = members
		if o.belief != "" {
			last := latest(sec)
			last.tail, last.style, last.since = verb+p.text(o.belief), beliefStyle(o.belief), o.done
		}
		lanes = append(lanes, sec...)
	}
	return lanes
}

// tryLanes draws sends, side by side where they overlap.
func (p *picture) tryLanes(name string, sends []*span) []lane {
	if len(sends) == 0 {
		return []lane{{name: name, kind: noteLane, tail: "nothing was sent", style: dim, since: p.end}}
	}
	var lanes []lane
	for _, row := range pack(sends) {
		lanes = append(lanes, lane{name: name, kind: tryLane, spans: row})
	}
	return lanes
}

// latest is the lane that ends last: where the belief belongs.
func latest(lanes []lane) *lane {
	best, at := &lanes[0], int64(-1)
	for i := range lanes {
		for _, s := range lanes[i].spans {
			if s.to > at {
				best, at = &lanes[i], s.to
			}
		}
	}
	return best
}

// layerLanes draws the tries of the outer layers of an operation, where they say more than the sends
// alone: when a try of theirs holds several sends, takes time, and does not run beside the next. It
// also returns the name for the lane of the sends.
func (p *picture) layerLanes() (lanes []lane, name string) {
	name = p.text(p.caller)
	depth := 0
	for _, s := range p.sends {
		depth = max(depth, len(s.layers()))
	}
	shown := 1
	for d := range depth - 1 {
		groups, layer := groupsAt(p.sends, d)
		takesTime := slices.ContainsFunc(groups, func(g *span) bool { return g.to > g.from })
		if len(groups) <= shown || len(groups) == len(p.sends) || len(pack(groups)) > 1 || !takesTime {
			continue
		}
		shown = len(groups)
		lanes = append(lanes, lane{name: p.text(layer), kind: layerLane, spans: groups})
	}
	if len(lanes) > 0 {
		if _, inner := groupsAt(p.sends, depth-1); inner != "" {
			name = p.text(inner)
		}
	}
	return lanes, name
}

// hopLanes draws what a hop sent on, above the requests it was busy with.
func (p *picture) hopLanes(h *hop, crowd bool) []lane {
	if len(h.sends)+len(h.arrivals) == 0 {
		return nil
	}
	name := p.text(h.name)
	var lanes []lane
	if len(h.sends) == 0 {
		for _, row := range pack(mergeAlike(h.arrivals, crowd)) {
			lanes = append(lanes, lane{name: name, kind: packedLane, spans: row})
		}
		return lanes
	}
	lanes = p.tryLanes(name, mergeAlike(h.sends, crowd))
	lanes[0].busy = h.arrivals
	last := latest(lanes)
	switch {
	case len(h.sends) > 4:
		last.tail, last.style, last.since, last.spare = lab.Count(len(h.sends), "send"), dim, p.end, true
	case len(h.arrivals) == 1 && h.arrivals[0].status > 0:
		last.tail, last.style, last.since, last.spare = "answers "+strconv.Itoa(h.arrivals[0].status), dim, h.arrivals[0].to, true
		if h.arrivals[0].deaf {
			last.tail += ", nobody waits"
		}
	}
	return lanes
}

// servedLanes draws every arrival at the last servers on a lane of its own; a crowd of them that
// comes one after the other shares lanes.
func (p *picture) servedLanes(crowd bool) []lane {
	name := func(s *span) string {
		if p.servers > 1 || len(p.hops) > 0 {
			return p.text(s.node)
		}
		return "server"
	}
	spans := mergeAlike(p.served, crowd)
	var lanes []lane
	for _, s := range spans {
		lanes = append(lanes, lane{name: name(s), kind: servedLane, spans: []*span{s}})
	}
	if !crowd || len(spans) <= p.most/2 {
		return lanes
	}

	byNode := make(map[string][]*span)
	for _, s := range spans {
		byNode[s.node] = append(byNode[s.node], s)
	}
	var packed []lane
	for _, s := range spans {
		if byNode[s.node][0] != s {
			continue
		}
		n := 0
		for _, row := range pack(byNode[s.node]) {
			packed = append(packed, lane{name: name(s), kind: packedLane, spans: row})
			for _, s := range row {
				n += s.count
			}
		}
		last := &packed[len(packed)-1]
		last.tail, last.style, last.since, last.spare = lab.Count(n, "arrival"), dim, p.end, true
	}
	// Only a real saving is worth what the lanes of their own would have said.
	if 2*len(packed) <= len(lanes) {
		return packed
	}
	return lanes
}

func beliefStyle(belief string) style {
	switch lab.Belief(belief) {
	case lab.OK:
		return good
	case lab.Failed:
		return bad
	}
	return warn
}

// axis writes the instants that matter over the lanes: what begins with its first column there, what
// ends with its last. The more important are placed first, and nothing is moved to make room, since
// a label beside its instant would lie. With begin they are times of day.
func (p *picture) axis(begin string) string {
	type tick struct {
		ms   int64
		ends bool
	}
	var starts, ends []tick
	for _, l := range p.lanes {
		if l.kind == layerLane || l.kind == tryLane && len(l.busy) == 0 {
			for _, s := range l.spans {
				starts = append(starts, tick{s.from, false})
				ends = append(ends, tick{s.to, true})
			}
		}
	}
	ticks := []tick{{0, false}}
	if len(p.ops) == 1 && p.ops[0].finished {
		ticks = append(ticks, tick{p.ops[0].done, true})
	}
	// The tries of the outermost layer are the first among the starts: their lane is the first.
	ticks = append(ticks, tick{p.end, true})
	ticks = append(append(ticks, starts...), ends...)

	c := newCanvas(p.room)
	seen := make(map[string]bool)
	for _, t := range ticks {
		text := clock(t.ms)
		if begin != "" {
			text = timeOfDay(begin, t.ms, "15:04:05")
		}
		if seen[text] {
			continue
		}
		at := p.scale.at(t.ms)
		if t.ends {
			at = max(0, at-width(text)+1)
		}
		if at+width(text) <= p.room && c.blank(at-1, at+width(text)+1) {
			c.put(at, text, dim)
			seen[text] = true
		}
	}
	return c.render(p.setting)
}

// legend explains the symbols that were used, and only those.
func (p *picture) legend() []string {
	var gaveUp, other, faults []string
	var ok, effect, extra, none, deaf, open, slow bool
	for _, l := range p.lanes {
		spelled := p.scale.words && l.kind == servedLane
		for _, s := range l.spans {
			switch open = open || s.end == unfinished && l.kind != layerLane; {
			case l.kind == layerLane:
			case l.kind == servedLane || l.kind == packedLane:
				effect = effect || s.end == committed && !s.extra
				extra = extra || s.end == committed && s.extra
				none = none || s.end == answered || s.end == broken
				deaf = deaf || s.deaf && !spelled
				if l.kind == servedLane {
					_, lingers := p.lingers(s, p.number(s))
					slow = slow || lingers
				}
				for _, f := range s.faults {
					if !spelled {
						faults = include(faults, p.text(f))
					}
				}
			case s.end == timedOut:
				gaveUp = include(gaveUp, strings.TrimLeft(p.text(s.detail)+" timeout", " "))
			case s.end == broken:
				gaveUp = include(gaveUp, p.text(s.detail))
			case s.end == answered && s.status/100 == 2:
				ok = true
			case s.end == answered:
				other = include(other, "answer "+strconv.Itoa(s.status))
			}
		}
	}
	for _, f := range p.stray {
		faults = include(faults, p.text(f))
	}
	var parts []string
	say := func(used bool, text string) {
		if used {
			parts = append(parts, text)
		}
	}
	say(len(gaveUp) > 0, p.gaveUp+" "+strings.Join(gaveUp, ", "))
	if effect && ok {
		say(true, p.ok+" answer 2xx, order committed")
	} else {
		say(ok, p.ok+" answer 2xx")
		say(effect, p.commit+" order committed")
	}
	say(extra, p.extra+" order beyond the wanted one")
	if none && p.noEffect == p.other {
		other = append(other, "no order")
		none = false
	}
	say(len(other) > 0, p.other+" "+strings.Join(other, ", "))
	say(none, p.noEffect+" no order")
	say(deaf, p.deaf+" nobody waits for the answer")
	say(len(faults) > 0, p.fault+" "+strings.Join(faults, ", "))
	say(slow, p.wait+" the answer is not out yet")
	say(open, p.goesOn+" still open")
	say(len(p.hops) > 0, "#n the n-th send of the machine before")
	say(p.shared, "2"+p.to+"9, + so many in one place")
	return parts
}

func include(list []string, text string) []string {
	if text == "" || slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}
