package report

import (
	_ "embed"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"

	"retrylab/internal/lab"
)

// SVG is a picture for a slide: of each scenario the configuration that its lesson is about, and the
// one that tells what would be right, on one time axis.
var SVG = Format{
	Name:  "svg",
	Doc:   "a picture of the configurations that tell the most, for slides",
	Runs:  true,
	Write: writeSVG,
}

//go:embed svg.css
var slideStyle string

const (
	slideWide = 1280
	slideLeft = 150
	slidePlot = 960
	slideEdge = 28
)

func writeSVG(w io.Writer, d *lab.Document, o Options) error {
	o.Unicode, o.Color, o.Width, o.Wide = true, false, 1<<16, true
	p := &page{setting: newSetting(o)}
	var body strings.Builder
	y := slideEdge
	say := func(class string, x int, text string) {
		fmt.Fprintf(&body, `<text class="%s" x="%d" y="%d">%s</text>`+"\n", class, x, y, html.EscapeString(text))
	}
	var names []string
	for _, b := range blocksOf(d) {
		names = append(names, p.text(b.info.Name))
		y += 22
		say("name", slideEdge, p.text(b.info.Name))
		y += 26
		if title := p.prose(b.info.Title); title != "" {
			say("title", slideEdge, p.shorten(title, 110))
			y += 24
		}
		text := p.run(d, b)
		for _, set := range d.Run.Set {
			text += p.mid + "changed: " + p.prose(set)
		}
		say("soft", slideEdge, p.shorten(text, 170))
		y += 18
		p.slide(&body, &y, b)
	}
	if len(names) == 0 {
		y += 24
		text, _ := p.tally(d)
		say("title", slideEdge, text)
		y += 20
	}
	y += slideEdge / 2
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s"><style>%s</style>%s<rect class="ground" width="%d" height="%d"/>
%s</svg>
`, slideWide, y, slideWide, y, html.EscapeString(strings.Trim("retrylab: "+strings.Join(names, ", "), ": ")), slideStyle, shapes(), slideWide, y, body.String())
	if err != nil {
		return fmt.Errorf("write picture: %w", err)
	}
	return nil
}

// telling are the two results of a block that tell the most: the focus, and of the others the one that
// the conclusion names, else one that came to what was wanted.
func (b *block) telling() []*lab.Result {
	if b.letters != nil {
		pair, _ := b.compared()
		return pair
	}
	focus := b.focus()
	if focus == nil {
		return nil
	}
	var other *lab.Result
	for _, r := range b.results {
		if r != focus && drawn(r) && r.Configuration != "" && strings.Contains(b.info.Shown, `"`+r.Configuration+`"`) {
			return []*lab.Result{focus, r}
		}
	}
	for _, r := range b.results {
		sound := r.Counts.Duplicates+r.Counts.LedgerDuplicates+r.Counts.LostUpdates+r.Counts.Lost+r.Counts.FalseFailures == 0
		if r != focus && drawn(r) && sound && (other == nil || other.Beliefs.OK == 0) {
			other = r
		}
	}
	if other == nil {
		return []*lab.Result{focus}
	}
	return []*lab.Result{focus, other}
}

// compared are the two rows of a comparison that are drawn: the first, and the second or, of more, the one whose
// orders differ most from those of the first. left says which rows are not.
func (b *block) compared() (pair []*lab.Result, left []string) {
	var rows []*lab.Result
	seen := map[string]bool{}
	letter := func(r *lab.Result) string { return b.letters[[2]string{r.Scenario, r.ID}] }
	for _, r := range b.results {
		if !seen[letter(r)] && drawn(r) {
			rows = append(rows, r)
			seen[letter(r)] = true
		}
	}
	if len(rows) == 0 {
		return nil, nil
	}
	far := func(r *lab.Result) int {
		return max(r.Counts.Effects-rows[0].Counts.Effects, rows[0].Counts.Effects-r.Counts.Effects)
	}
	pair = rows[:1:1]
	if len(rows) > 1 {
		other := rows[1]
		for _, r := range rows[2:] {
			if far(r) > far(other) {
				other = r
			}
		}
		pair = append(pair, other)
	}
	said := map[string]bool{}
	for _, r := range b.results {
		if l := letter(r); !slices.ContainsFunc(pair, func(p *lab.Result) bool { return letter(p) == l }) && !said[l] {
			left = append(left, l)
			said[l] = true
		}
	}
	return pair, left
}

// slide draws the telling results of a block below y.
func (p *page) slide(body *strings.Builder, y *int, b *block) {
	results := b.telling()
	if len(results) == 0 {
		return
	}
	a := newAxis(results)
	charts, note := chartsOf(results)
	for _, c := range charts {
		if c != nil {
			a = &axis{end: c.end, kept: c.end}
		}
	}
	pen := &pen{axis: a, left: slideLeft, wide: slidePlot}
	if charts[0] != nil {
		fmt.Fprintf(pen, `<text class="soft" x="%d" y="%d">%s</text>`, slideEdge, *y, note)
		*y += 18
	}
	*y += 30
	pen.scale(*y, b.info.Begin)
	*y += 10
	var drawings []*drawing
	for i, r := range results {
		*y += 22
		fmt.Fprintf(pen, `<text x="%d" y="%d"><tspan class="configuration">%s</tspan><tspan class="verdict %s" dx="12">%s</tspan></text>`+"\n",
			slideEdge, *y, html.EscapeString(p.shorten(b.name(p.setting, r), 80)), grade(r), html.EscapeString(p.shorten(p.verdict(r), 90)))
		*y += 10
		name := func(class string, x, at int, text string) {
			fmt.Fprintf(pen, `<text class="%s" x="%d" y="%d">%s</text>`, class, x, at, html.EscapeString(p.shorten(text, 18)))
		}
		switch {
		case charts[i] != nil:
			name("party", slideEdge, *y+14, "sends")
			pen.chart(charts[i], *y)
			*y += chartHigh + 10
		case len(r.Events) > 0:
			d := draft(p.setting, r, a)
			drawings = append(drawings, d)
			pen.draw(d, *y)
			for _, band := range d.bands {
				name("party", slideEdge, *y+band.named()+4, band.name)
				for _, l := range band.labels {
					name("soft", slideEdge+12, *y+l.y+4, l.text)
				}
			}
			*y += d.height + 10
			for _, left := range d.left {
				*y += 12
				name("soft", slideEdge, *y, "… "+left)
			}
		}
	}
	if b.letters != nil {
		if _, left := b.compared(); len(left) > 0 {
			*y += 20
			fmt.Fprintf(pen, `<text class="soft" x="%d" y="%d">not drawn: %s</text>`, slideEdge, *y, html.EscapeString(p.shorten(strings.Join(left, " "), 170)))
		}
	}
	x := slideEdge + 16
	*y += 20
	for _, s := range legend(drawings) {
		wide := 44 + int(6.4*float64(width(s.word)))
		if x+wide > slideWide-slideEdge {
			x, *y = slideEdge+16, *y+20
		}
		fmt.Fprintf(pen, `<g transform="translate(%d %d)">%s</g><text class="soft" x="%d" y="%d">%s</text>`, x, *y, s.svg, x+18, *y+4, s.word)
		x += wide
	}
	*y += 24
	body.WriteString(pen.String())
	body.WriteString("\n")
}
