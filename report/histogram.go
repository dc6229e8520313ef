package report

import (
	"slices"
	"strconv"
	"strings"

	"retrylab/internal/lab"
)

// barsHigh is the height of a histogram, in lines.
const barsHigh = 6

// histogram draws, in place of a timeline, what the caller of one result sent over time, and under
// it one line for each configuration on a scale that they share: what was sent, or what ended well
// where the scenario asks for the recovery.
func (p *page) histogram(b *block, r *lab.Result) []string {
	names := 0
	for _, other := range b.results {
		names = max(names, width(b.name(p.setting, other)))
	}
	h := bars{setting: p.setting, series: r.Series, names: min(max(names, 6), nameWidth+4)}
	h.names = max(h.names, width(h.top(slices.Max(append(slices.Clone(r.Series.Starts), 0)))))
	h.room = p.width - h.names - 4
	h.measure(b.results)

	lines := []string{h.caption(b.name(p.setting, r), "sends", "")}
	lines = append(lines, h.columns(r.Series.Starts)...)
	lines = append(lines, h.axis())
	if len(b.results) == 1 {
		return lines
	}
	what, of := "sends", func(s *lab.Series) []int { return s.Starts }
	if r.Series.Recovery != nil {
		what, of = "operations ok", func(s *lab.Series) []int { return s.OK }
	}
	shares, note := h.shares(b.results)
	lines = append(lines, "", h.caption("all", what, note))
	return append(append(lines, h.strips(b, shares, of)...), h.axis())
}

// unlike is from how many times the operations of another configuration on one with few of them
// would show nothing beside it.
const unlike = 10

// shares is what to multiply the counts of each result by so that those with very different numbers of
// operations can be compared, with what to say of that.
func (h *bars) shares(results []*lab.Result) (of func(*lab.Result) int, note string) {
	least, most := results[0].Counts.Operations, 0
	for _, r := range results {
		least, most = min(least, r.Counts.Operations), max(most, r.Counts.Operations)
	}
	if least == 0 || most < unlike*least {
		return func(*lab.Result) int { return 1 }, ""
	}
	return func(r *lab.Result) int { return most / r.Counts.Operations }, ", as shares of the operations"
}

// bars is a histogram on its way to the page.
type bars struct {
	*setting
	series *lab.Series // the one that is drawn in full
	names  int         // columns before the bars
	room   int         // columns of the bars
	merged int         // windows in a column
	wide   int         // columns of a window, where one is not shared
	last   int         // windows that are drawn
	until  int64       // the instant up to which columns are drawn, in milliseconds; 0 for all
}

// measure fits the windows of all results into the room.
func (h *bars) measure(results []*lab.Result) {
	for _, r := range results {
		if r.Series == nil {
			continue
		}
		for i := range r.Series.Starts {
			if r.Series.Starts[i]+r.Series.OK[i]+r.Series.Operations[i] > 0 {
				h.last = max(h.last, i+1)
			}
		}
	}
	h.last = max(h.last, 1)
	h.merged = (h.last + h.room - 1) / h.room
	h.wide = min(max(h.room/h.last, 1), 4)
}

// caption says of whom what is drawn, with a note where there is room for it.
func (h *bars) caption(name, what, note string) string {
	text := ": " + what + " in " + clock(h.series.WindowMs)
	if h.merged > 1 {
		text += ", the most of " + strconv.Itoa(h.merged)
	}
	if 2+width(name)+width(text+note) <= h.width {
		text += note
	}
	return "  " + h.paint(bold, h.shorten(name, h.width-2-width(text))) + text
}

// values are what the columns show: the largest of the windows that share one.
func (h *bars) values(list []int) []int {
	var out []int
	for i := 0; i < h.last; i += h.merged {
		end := min(i+h.merged, len(list))
		if i >= end {
			out = append(out, 0)
			continue
		}
		out = append(out, slices.Max(list[i:end]))
	}
	return out
}

// columns draws bars that stand on the axis.
func (h *bars) columns(list []int) []string {
	values := h.values(list)
	most := max(slices.Max(values), 1)
	var lines []string
	for level := barsHigh - 1; level >= 0; level-- {
		label := ""
		if level == barsHigh-1 {
			label = h.top(most)
		}
		var line strings.Builder
		for i, v := range values {
			if h.until > 0 && int64(i*h.merged+1)*h.series.WindowMs > h.until {
				break
			}
			steps := h.steps(v, most, barsHigh) - level*(len(h.levels)-1)
			line.WriteString(strings.Repeat(h.levels[min(max(steps, 0), len(h.levels)-1)], h.wide))
		}
		lines = append(lines, h.line(label, line.String()))
	}
	return lines
}

// top is what stands beside the highest bar.
func (h *bars) top(most int) string { return lab.Count(most, "send") }

// steps is the height of a bar in parts of a line. What is not nothing is seen.
func (h *bars) steps(v, most, lines int) int {
	steps := v * lines * (len(h.levels) - 1) / most
	if v > 0 {
		steps = max(steps, 1)
	}
	return steps
}

// strips draws one line for each configuration.
func (h *bars) strips(b *block, share func(*lab.Result) int, of func(*lab.Series) []int) []string {
	most := 1
	for _, r := range b.results {
		if r.Series != nil {
			most = max(most, share(r)*slices.Max(append(h.values(of(r.Series)), 0)))
		}
	}
	var lines []string
	for _, r := range b.results {
		var line strings.Builder
		if r.Series != nil {
			for _, v := range h.values(of(r.Series)) {
				line.WriteString(strings.Repeat(h.strip[h.stripStep(share(r)*v, most)], h.wide))
			}
		}
		lines = append(lines, h.line(h.shorten(b.name(h.setting, r), h.names), line.String()))
	}
	return lines
}

func (h *bars) stripStep(v, most int) int {
	step := v * (len(h.strip) - 1) / most
	if v > 0 {
		step = max(step, 1)
	}
	return step
}

// line is one line of a picture behind its name.
func (h *bars) line(name, drawn string) string {
	return strings.TrimRight("  "+pad(name, h.names)+"  "+drawn, " ")
}

// axis is the line of instants.
func (h *bars) axis() string {
	drawn := (h.last + h.merged - 1) / h.merged * h.wide
	c := newCanvas(h.room)
	end := int64(h.last) * h.series.WindowMs
	step := int64(1)
	for _, s := range []int64{100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, 36_000_000} {
		if step = s; int64(drawn)*s/end >= 8 {
			break
		}
	}
	free := 0
	for at := int64(0); at <= end; at += step {
		x := int(at * int64(drawn) / end)
		text := clock(at)
		if x >= free && x+width(text) <= h.room {
			free = c.put(x, text, dim) + 1
		}
	}
	return h.line("", c.render(h.setting))
}
