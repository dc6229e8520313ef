package report

import (
	"io"
	"strings"
	"time"

	"retrylab/internal/lab"
)

// A Timeline is the picture of one result as time passes: of what it draws at an instant, nothing is from
// later. It is as high and as wide at every instant, so that nothing on the screen jumps.
type Timeline struct {
	page   *page
	result *lab.Result
	whole  *picture // nil where counts over time are drawn, or nothing
	bars   *bars    // nil where every send is drawn, or nothing
	lines  int
	end    int64
}

// NewTimeline lays out the picture of a result on at most so many lanes. Nothing in it is dim: it is made to
// be read from the back of a room.
func NewTimeline(r *lab.Result, o Options, lanes int) *Timeline {
	t := &Timeline{page: &page{setting: newSetting(o)}, result: r}
	t.page.contrast = true
	if r.Series != nil {
		t.bars = &bars{setting: t.page.setting, series: r.Series, names: 6}
		t.bars.room = t.page.width - t.bars.names - 4
		t.bars.measure([]*lab.Result{r})
		t.end = int64(t.bars.last) * r.Series.WindowMs
		t.lines = len(t.At(t.End()))
		return t
	}
	if t.whole = t.page.layOutPicture(r, max(lanes, 2)); t.whole == nil {
		return t
	}
	t.whole.moving = true
	t.end = t.whole.end
	// One line more: while something goes on the legend says so.
	t.lines = len(t.whole.drawLanes()) + len(t.whole.drawLegend()) + 1
	return t
}

// End is the instant, in scenario time, at which the picture is whole.
func (t *Timeline) End() time.Duration { return lab.FromMillis(t.end) }

// At draws the picture as far as it has come at an instant. There are no lines where there is nothing to draw.
func (t *Timeline) At(at time.Duration) []string {
	ms := min(max(lab.Millis(at), 0), t.end)
	if ms < t.end {
		ms -= ms % steadily(t.end)
	}
	var lines []string
	switch {
	case t.bars != nil:
		h := *t.bars
		if h.until = ms; ms == 0 {
			h.until = 1
		}
		lines = append([]string{h.caption("the caller", "sends", "")}, h.columns(h.series.Starts)...)
		return append(lines, h.axis())
	case t.whole != nil:
		p := t.whole.until(ms)
		lines = append(p.drawLanes(), p.drawLegend()...)
	}
	for len(lines) < t.lines {
		lines = append(lines, "")
	}
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return lines[:t.lines]
}

// steadily is how far the picture of a time moves from one frame to the next: so that a moment is a short
// number, and no cell is passed over.
func steadily(end int64) int64 {
	step := int64(1)
	for _, s := range []int64{1, 2, 5} {
		for n := s; n <= end/150; n *= 10 {
			step = max(step, n)
		}
	}
	return step
}

// until is the picture as it was at an instant, on the lanes and the scale of the whole.
func (p *picture) until(ms int64) *picture {
	frame := *p
	frame.lanes = make([]lane, len(p.lanes))
	for i, l := range p.lanes {
		l.spans, l.busy = until(l.spans, ms), until(l.busy, ms)
		if l.since > ms {
			l.tail = ""
		}
		frame.lanes[i] = l
	}
	if ms >= p.end {
		return &frame
	}
	frame.stray = nil
	// The axis names no instant that has not come.
	story := *p.story
	story.ops, story.end = nil, ms
	for _, o := range p.ops {
		if o.done > ms {
			o = &operation{id: o.id}
		}
		story.ops = append(story.ops, o)
	}
	frame.story = &story
	return &frame
}

// until returns the spans that have begun at an instant, as far as they have come.
func until(spans []*span, ms int64) []*span {
	var begun []*span
	for _, s := range spans {
		switch {
		case s.from > ms:
			continue
		case s.to > ms && s.end == committed && s.commit <= ms:
			so := *s // it took effect, and its answer is not out yet
			so.to, so.status, so.commits, so.faults, so.deaf, so.back = ms, 0, 1, nil, false, 0
			s = &so
		case s.to > ms:
			so := span{num: s.num, last: s.last, count: s.count, op: s.op, path: s.path, node: s.node, from: s.from, to: ms, going: true}
			if s.end == unfinished && s.num == 0 && s.status == 0 {
				so.detail = s.detail // the number of a layer's try
			}
			s = &so
		case s.back > ms:
			so := *s
			so.back = 0
			s = &so
		}
		begun = append(begun, s)
	}
	return begun
}

// A Column is one more column of a table, such as what a class has predicted.
type Column struct {
	Head  string
	Cells map[string]string // by the id of the configuration; one that is absent is shown as -
}

// WriteTableBeside prints a document as [Table] does, with one more column before the orders.
func WriteTableBeside(w io.Writer, d *lab.Document, o Options, c Column) error {
	p := &page{setting: newSetting(o), beside: &c}
	p.contrast = true
	return p.writeTable(w, d, o)
}

// besides sets the one more column.
func (p *page) besides(results []*lab.Result) field {
	f := field{column: column{head: p.text(p.beside.Head), right: true}}
	for _, r := range results {
		if cell := p.beside.Cells[r.ID]; cell != "" {
			f.add(p.text(cell))
		} else {
			f.add("-")
		}
	}
	return f
}

// Fold sets a text in lines that fit the page, each behind an indentation. What is not printable is
// escaped, since it may come from anybody's file; line breaks mean nothing.
func Fold(text, indent string, o Options) []string { return folded(text, indent, indent, o) }

// Hang is [Fold] with what follows the first line two columns further in: one line's worth of something, in
// a list of them.
func Hang(text, indent string, o Options) []string { return folded(text, indent, indent+"  ", o) }

func folded(text, first, rest string, o Options) []string {
	s := newSetting(o)
	var lines []string
	for i, l := range wrap(s.prose(text), s.width-width(first), s.width-width(rest)) {
		indent := rest
		if i == 0 {
			indent = first
		}
		lines = append(lines, strings.TrimRight(indent+l, " "))
	}
	return lines
}

// Strong makes a line of a screen stand out, where there are colours.
func Strong(text string, o Options) string { return newSetting(o).paint(bold, text) }
