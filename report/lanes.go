package report

import (
	"strconv"
	"strings"
)

// A scale puts instants into cells.
type scale struct {
	cells int   // of the whole time
	end   int64 // its last instant
	words bool  // outcomes are said in words; without, by symbols that the legend explains
}

// at is the cell of an instant.
func (sc scale) at(ms int64) int {
	if sc.end <= 0 {
		return 0
	}
	return int((max(0, min(ms, sc.end))*int64(sc.cells-1)*2 + sc.end) / (2 * sc.end))
}

// chooseScale chooses how many cells the whole time takes, so that what is written behind the lanes
// still fits. Beliefs and long words are welcome only while they leave the picture most of its room.
func (p *picture) chooseScale() scale {
	sc := scale{cells: p.room, end: p.end}
	if p.end <= 0 {
		sc.words = true
		return sc
	}
	// fit keeps n columns free behind the cell of an instant.
	fit := func(cells int, ms int64, n int) int {
		if ms <= 0 {
			return cells
		}
		return min(cells, int(int64(p.room-1-n)*p.end/ms)+1)
	}
	outcomes := func(cells int, words bool) int {
		for _, l := range p.lanes {
			if l.kind == servedLane {
				s := l.spans[0]
				cells = fit(cells, s.to, 1+width(join(p.number(s), p.outcome(s, words))))
			}
		}
		return cells
	}

	sc.cells = outcomes(sc.cells, false)
	for _, l := range p.lanes {
		if n := len(l.spans); n > 0 && n <= 6 && (l.kind == tryLane || l.kind == packedLane) {
			sc.cells = fit(sc.cells, l.spans[n-1].to, behind(p.post(l.kind, l.spans[n-1])))
		}
	}
	sc.cells = max(sc.cells, p.room/2)
	most := sc.cells * 3 / 4
	for _, l := range p.lanes {
		if l.tail == "" || l.spare || len(l.spans) == 0 {
			continue
		}
		last := l.spans[len(l.spans)-1]
		if cells := fit(sc.cells, last.to, behind(p.post(l.kind, last))+2+width(l.tail)); cells >= most {
			sc.cells = cells
		}
	}
	if cells := outcomes(sc.cells, true); cells >= most {
		sc.cells, sc.words = cells, true
	}
	return sc
}

// behind is the room that text takes behind a mark.
func behind(text string) int {
	if text == "" {
		return 0
	}
	return 1 + width(text)
}

// number writes which send a span is: #3, or #2–#12 where it stands for several.
func (p *picture) number(s *span) string {
	switch {
	case s.count > 1 && s.last > s.num:
		return "#" + strconv.Itoa(s.num) + p.to + "#" + strconv.Itoa(s.last)
	case s.count == 1 && s.num > 0:
		return "#" + strconv.Itoa(s.num)
	}
	return ""
}

// label is the number that stands on a span: of the send, or of the layer's try.
func (p *picture) label(kind laneKind, s *span) string {
	if kind == layerLane {
		return s.detail
	}
	return p.number(s)
}

// times writes how many a span stands for.
func (p *picture) times(n int) string {
	if n < 2 {
		return ""
	}
	return p.cross + strconv.Itoa(n)
}

// mark is the symbol at the end of a span.
func (p *picture) mark(kind laneKind, s *span) (string, style) {
	served := kind == servedLane || kind == packedLane
	switch {
	case s.going:
		return p.goesOn, dim
	case kind == layerLane:
		return p.close, dim
	case s.end == committed && s.extra:
		return p.extra, warn
	case s.end == committed:
		return p.commit, good
	case s.end == answered && served:
		return p.noEffect, plain
	case s.end == answered && s.status/100 == 2:
		return p.ok, good
	case s.end == answered:
		return p.other, warn
	case s.end == broken && served:
		return p.noEffect, bad
	case s.end == timedOut || s.end == broken:
		return p.gaveUp, bad
	}
	return p.goesOn, dim
}

// post is what is said behind the mark of a try.
func (p *picture) post(kind laneKind, s *span) string {
	text := ""
	switch {
	case kind == layerLane:
		return ""
	case s.end == answered && s.status > 0 && (s.status/100 != 2 || kind == packedLane):
		text = strconv.Itoa(s.status)
	case s.end == broken:
		text = p.text(s.detail)
	}
	return join(text, p.times(s.count))
}

// outcome is what is said behind the mark of an arrival: when it took effect, or what was answered
// instead, and what went wrong on the way.
func (p *picture) outcome(s *span, words bool) string {
	text := ""
	switch {
	case s.end == committed:
		text = join(clock(s.commit), p.times(s.commits))
	case s.end == answered && s.status > 0:
		text = strconv.Itoa(s.status)
		if s.replay && s.status/100 == 2 {
			text += " replay"
		}
	}
	return join(join(text, p.times(s.count)), p.trouble(s, words))
}

// trouble says which faults hit an arrival and whether anybody still waited for its answer.
func (p *picture) trouble(s *span, words bool) string {
	text := ""
	if len(s.faults) > 0 {
		text = p.fault
		if words {
			for i, f := range s.faults {
				if i > 0 {
					text += ","
				}
				text += " " + p.text(f)
			}
			if s.back > 0 {
				text += ", back at " + clock(s.back)
			}
		}
	}
	switch {
	case s.deaf && words:
		text = join(text, "nobody waits")
	case s.deaf:
		text = join(text, p.deaf)
	}
	return text
}

func join(a, b string) string { return strings.Trim(a+" "+b, " ") }

// draw draws one lane and returns the first cell after it.
func (p *picture) draw(c *canvas, l lane) int {
	end := 0
	for _, b := range l.busy {
		from := p.scale.at(b.from)
		c.put(from, p.open, dim)
		for i := from + 1; i <= p.scale.at(b.to); i++ {
			end = max(end, c.put(i, p.wait, dim))
		}
	}
	switch {
	case len(l.spans) == 0:
	case l.kind == servedLane:
		return p.drawServed(c, l.spans[0])
	case l.kind != noteLane:
		return max(end, p.drawTries(c, l))
	}
	return end
}

// lingers reports whether the answer of a committed request took so long that it is drawn: that is
// where answers are lost. effect is what stands before it.
func (p *picture) lingers(s *span, number string) (effect string, long bool) {
	effect = join(number, join(clock(s.commit), p.times(s.commits*s.count)))
	return effect, s.end == committed && p.scale.at(s.to)-p.scale.at(s.commit) >= width(effect)+4
}

// drawServed draws one arrival from its first instant to its effect and on to its answer.
func (p *picture) drawServed(c *canvas, s *span) int {
	from, to := p.scale.at(s.from), p.scale.at(s.to)
	mark := to
	if s.end == committed {
		mark = p.scale.at(s.commit)
	}
	number := p.number(s)
	before := line{first: from, stop: mark}
	if p.stretch(c, before, number, before.fitting(width(number)), !p.moving) {
		number = ""
	}
	symbol, st := p.mark(servedLane, s)
	c.put(mark, symbol, st)

	effect, lingers := p.lingers(s, number)
	if !lingers {
		return c.put(mark+2, join(number, p.outcome(s, p.scale.words)), plain)
	}
	for i := c.put(mark+2, effect, plain) + 1; i < to; i++ {
		c.put(i, p.wait, dim)
	}
	c.put(to, p.close, dim)
	status := ""
	if s.status > 0 {
		status = strconv.Itoa(s.status)
	}
	return max(to+1, c.put(to+2, join(status, p.trouble(s, p.scale.words)), plain))
}

// labelling is how a number goes with a line.
type labelling int

const (
	inside labelling = iota // ├─ #1 ──✗
	tight                   // ├#1─✗
	head                    // #1─✗
	none                    // ├─✗
	bare                    // ✗
)

// A line is a span in its cells.
type line struct {
	first, stop int
	joined      bool // the first cell already shows the end of the line before
}

// fitting is the best labelling for a line with a number of so many columns.
func (l line) fitting(text int) labelling {
	switch room := l.stop - l.first - 1; {
	case room >= text+4:
		return inside
	case room >= text:
		return tight
	case room+1 >= text && !l.joined:
		return head
	}
	return none
}

// stretch draws a line up to its last cell and puts text on it. It reports whether there was room.
func (p *picture) stretch(c *canvas, l line, text string, how labelling, centred bool) bool {
	if how == bare {
		return false
	}
	if l.first < l.stop && !l.joined {
		c.put(l.first, p.open, dim)
	}
	for i := l.first + 1; i < l.stop; i++ {
		c.put(i, p.rule, dim)
	}
	if text == "" {
		return true
	}
	switch how {
	case inside:
		at := l.first + 2
		if centred {
			at = l.first + 1 + (l.stop-l.first-1-width(text)-2)/2
		}
		c.put(at, " "+text+" ", plain)
	case tight:
		c.put(l.first+1, text, plain)
	case head:
		if l.joined {
			l.first++
		}
		c.put(l.first, text, plain)
	default:
		return false
	}
	return true
}

// A placed try has its cells and its words.
type placed struct {
	*span
	line
	many   int   // tries that share the last cell because it is all they have
	final  *span // of them
	how    labelling
	behind string // what is said behind the mark
}

// drawTries draws the tries of a lane, one after the other.
func (p *picture) drawTries(c *canvas, l lane) int {
	tries := p.place(l)
	free := 0
	for i, t := range tries {
		p.stretch(c, t.line, p.label(l.kind, t.span), t.how, l.kind == layerLane && !p.moving)
		symbol, st := p.mark(l.kind, t.span)
		if l.kind == layerLane && i+1 < len(tries) && tries[i+1].first == t.stop {
			symbol = p.both
		}
		if t.many > t.count && t.behind == "" {
			symbol = digit(t.many)
			p.shared = true
		}
		c.put(t.stop, symbol, st)
		free = t.stop + 1
		if t.behind != "" {
			free = c.put(free+1, t.behind, plain)
		}
	}
	return free
}

// place gives every try of a lane its cells, always those of its instants, and its words. A try whose
// last cell is that of the one before is counted there.
func (p *picture) place(l lane) []placed {
	var tries []placed
	free := 0
	for _, s := range l.spans {
		t := placed{span: s, line: line{first: p.scale.at(s.from), stop: p.scale.at(s.to)}, many: s.count, final: s}
		if t.stop < free {
			before := &tries[len(tries)-1]
			before.many += s.count
			before.final = s
			continue
		}
		t.joined = t.first < free
		t.how = t.fitting(width(p.label(l.kind, s)))
		free = t.stop + 1
		tries = append(tries, t)
	}

	// Tries of about one length are labelled alike: a number left out here and there looks like a
	// try left out.
	shortest, longest, worst := 1<<30, 0, inside
	for _, t := range tries {
		cells := t.stop - t.first
		shortest, longest = min(shortest, cells), max(longest, cells)
		worst = max(worst, t.how)
	}
	growing := len(tries) > 0 && tries[len(tries)-1].going
	alike := len(tries) > 1 && longest <= 2*shortest+2 && !growing
	if alike {
		if worst == none && len(tries) > 6 && shortest < 2 {
			worst = bare
		}
		for i := range tries {
			tries[i].how = worst
		}
	}
	p.say(l.kind, tries, alike)
	return tries
}

// say finds the words behind the marks: as much as there is room for before the next try begins, and
// for tries that are alike as much as there is room for behind each.
func (p *picture) say(kind laneKind, tries []placed, alike bool) {
	forms := make([][3]string, len(tries)) // the more telling first
	fits := func(i, form int) bool {
		next := p.room + 1 // behind the last, the end of the line is as good as a blank
		if i+1 < len(tries) {
			next = tries[i+1].first
		}
		return forms[i][form] == "" || tries[i].stop+1+behind(forms[i][form]) < next
	}
	common := 0
	for i, t := range tries {
		s := *t.span
		number := ""
		if t.many > s.count {
			s.count, s.last = t.many, 0
			if last := max(t.final.num, t.final.last); last-s.num == t.many-1 {
				s.last = last
			}
			number = p.label(kind, &s)
		} else if t.how >= none {
			number = p.label(kind, &s)
		}
		post := p.post(kind, &s)
		forms[i] = [...]string{join(number, post), post, number}
		for common < len(forms[i]) && !fits(i, common) {
			common++
		}
	}
	for i := range tries {
		form := common
		if !alike {
			for form = 0; form < len(forms[i]) && !fits(i, form); form++ {
			}
		}
		if form < len(forms[i]) {
			tries[i].behind = forms[i][form]
		}
	}
}

// digit counts tries in one cell.
func digit(n int) string {
	if n > 9 {
		return "+"
	}
	return strconv.Itoa(n)
}
