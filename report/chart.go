package report

import (
	"slices"
	"strconv"

	"retrylab/internal/lab"
)

const (
	chartHigh   = 110
	chartColumn = 360 // columns of a chart at most: what is more shares one, which shows the largest
)

// A chart is what one result counted over time: sends as columns, and operations that ended well as a
// line where the scenario asks for the recovery.
type chart struct {
	columns, line []int
	most          int
	merged        int   // windows in a column
	end           int64 // of the last column
	cause         int64 // where the disturbance ends, 0 for none
}

// chartsOf makes the charts of results that share one axis and, where their numbers can be compared at
// all, one scale. A result without counts has none.
func chartsOf(results []*lab.Result) (charts []*chart, note string) {
	last, window := 1, int64(0)
	few, many := 0, 0
	for _, r := range results {
		if r.Series == nil {
			continue
		}
		window = max(window, r.Series.WindowMs)
		few, many = min(max(few, 1), max(r.Counts.Operations, 1)), max(many, r.Counts.Operations)
		for i := range r.Series.Starts {
			if r.Series.Starts[i]+r.Series.OK[i]+r.Series.Operations[i] > 0 {
				last = max(last, i+1)
			}
		}
	}
	for _, r := range results {
		if r.Series != nil {
			few = min(few, max(r.Counts.Operations, 1))
		}
	}
	merged := (last + chartColumn - 1) / chartColumn
	columns := (last + merged - 1) / merged
	values := func(list []int) []int {
		out := make([]int, columns)
		for i := range out {
			if a, b := i*merged, min((i+1)*merged, len(list)); a < b {
				out[i] = slices.Max(list[a:b])
			}
		}
		return out
	}
	most := 1
	for _, r := range results {
		if r.Series == nil {
			charts = append(charts, nil)
			continue
		}
		c := &chart{columns: values(r.Series.Starts), merged: merged, end: int64(columns*merged) * window}
		if rec := r.Series.Recovery; rec != nil {
			c.line, c.cause = values(r.Series.OK), rec.CauseEndsMs
		}
		c.most = max(1, slices.Max(c.columns), slices.Max(append(c.line, 0)))
		most = max(most, c.most)
		charts = append(charts, c)
	}
	note = "Sends in " + clock(window)
	if merged > 1 {
		note += ", the most of " + strconv.Itoa(merged)
	}
	if slices.ContainsFunc(charts, func(c *chart) bool { return c != nil && c.line != nil }) {
		note += "; the line is the operations that end well"
	}
	if few > 0 && many >= unlike*few {
		return charts, note + ". Each picture has a scale of its own: the crowds differ in size"
	}
	for _, c := range charts {
		if c != nil {
			c.most = most
		}
	}
	return charts, note
}

// chart writes a chart, its foot at top+chartHigh.
func (p *pen) chart(c *chart, top int) {
	p.grid(top, chartHigh)
	width := "100%"
	if p.wide > 0 {
		width = number(p.wide)
	}
	p.put(`<line class="level" x1="%s" x2="%s" y1="%d" y2="%d"/>`, p.place(0), p.place(1), top+chartHigh, top+chartHigh)
	// Stretched along the time, which text and lines of one width must not be.
	p.put(`<svg x="%s" y="%d" width="%s" height="%d" viewBox="0 0 %d %d" preserveAspectRatio="none"><path class="columns" d="`,
		p.place(0), top, width, chartHigh, len(c.columns), chartHigh)
	for i, v := range c.columns {
		if v > 0 {
			p.put("M%d %dV%sH%sV%dZ", i, chartHigh, number(chartHigh-c.high(v)), number(float64(i)+0.86), chartHigh)
		}
	}
	p.WriteString(`"/>`)
	if c.line != nil {
		p.WriteString(`<path class="well" vector-effect="non-scaling-stroke" d="M0 ` + strconv.Itoa(chartHigh))
		for i, v := range c.line {
			p.put("L%s %s", number(float64(i)+0.5), number(chartHigh-c.high(v)))
		}
		p.WriteString(`"/>`)
	}
	p.WriteString(`</svg>`)
	p.put(`<text class="time" x="%s" dx="4" y="%d">%d</text>`, p.place(0), top+10, c.most)
	if c.cause > 0 {
		p.put(`<line class="cause" x1="%s" x2="%s" y1="%d" y2="%d"/><text class="say" x="%s" dx="5" y="%d">the disturbance ends</text>`,
			p.x(c.cause), p.x(c.cause), top, top+chartHigh, p.x(c.cause), top+10)
	}
}

// words say what a chart shows to whoever does not see it.
func (c *chart) words(name string) string {
	most := slices.Max(c.columns)
	window := c.end / int64(len(c.columns))
	text := "Sends of " + name + " over time: the most are " + strconv.Itoa(most) + " within " + clock(window) + ", from " + clock(int64(slices.Index(c.columns, most))*window) + " on"
	last := 0
	for i, v := range c.columns {
		if v > 0 {
			last = i + 1
		}
	}
	text += "; there is none after " + clock(int64(last)*window)
	if c.cause > 0 {
		text += ". The disturbance ends at " + clock(c.cause)
	}
	return text + "."
}

// high is the height of a value. What is not nothing is seen.
func (c *chart) high(v int) float64 {
	h := float64(v) * (chartHigh - 16) / float64(c.most)
	if v > 0 {
		h = max(h, 1.5)
	}
	return h
}
