package report

import (
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"

	"retrylab/internal/lab"
)

// A pen writes drawings as SVG. In a page places along the time are percentages, so that it can be
// stretched without its text; on a slide they are pixels.
type pen struct {
	strings.Builder
	*axis
	left, wide float64 // pixels before the axis, and of it; a page has none
	lively     bool    // every event can be focused and says what it is
}

// x writes the place of an instant.
func (p *pen) x(ms int64) string { return p.place(p.at(ms)) }

func (p *pen) place(at float64) string {
	if p.wide > 0 {
		return number(p.left + at*p.wide)
	}
	return number(at*100) + "%"
}

// length writes a distance along the time. What takes none is seen all the same.
func (p *pen) length(from, to int64) string {
	if from == to {
		return "3"
	}
	d := p.at(to) - p.at(from)
	if p.wide > 0 {
		return number(d * p.wide)
	}
	return number(d*100) + "%"
}

// number writes a coordinate with no more decimals than can be seen.
func number(v float64) string {
	text := strconv.FormatFloat(v, 'f', 3, 64)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}

func (p *pen) put(format string, args ...any) { fmt.Fprintf(p, format, args...) }

// lead opens the group of an event.
func (p *pen) lead(class string, event int, at int64, title string, first *bool) {
	p.WriteString(`<g class="` + class + `"`)
	if p.lively {
		tab := "-1"
		if *first {
			tab, *first = "0", false
		}
		p.WriteString(` tabindex="` + tab + `" role="img" data-t="` + strconv.FormatInt(at, 10) + `"`)
		if event >= 0 {
			p.WriteString(` data-e="` + strconv.Itoa(event) + `"`)
		}
	}
	p.WriteString(`>`)
	if title != "" {
		p.WriteString(`<title>` + html.EscapeString(title) + `</title>`)
	}
}

// grid draws the lines of the ticks and the cuts behind a drawing of some height.
func (p *pen) grid(top, height int) {
	for _, t := range p.ticks() {
		x := p.place(t.x)
		p.put(`<line class="tick" x1="%s" x2="%s" y1="%d" y2="%d"/>`, x, x, top, top+height)
	}
	for _, c := range p.cuts {
		p.put(`<rect class="cut" x="%s" width="%s" y="%d" height="%d"/>`, p.x(c.from), p.length(c.from, c.to), top, height)
	}
}

// scale writes the instants of the ticks, and over each cut how much time is left out.
func (p *pen) scale(y int, begin string) {
	ticks := p.ticks()
	for i, t := range ticks {
		text := p.name(t.ms)
		anchor := "middle"
		if i == 0 {
			anchor = "start"
		}
		p.put(`<text class="time" x="%s" y="%d" text-anchor="%s">%s</text>`, p.place(t.x), y, anchor, text)
		if day := timeOfDay(begin, t.ms, "15:04:05"); begin != "" && day != "" {
			p.put(`<text class="time" x="%s" y="%d" text-anchor="%s">%s</text>`, p.place(t.x), y-13, anchor, day)
		}
	}
	over := y - 13
	if begin != "" {
		over -= 13
	}
	for _, c := range p.cuts {
		x := p.place((p.at(c.from) + p.at(c.to)) / 2)
		p.put(`<text class="skip" x="%s" y="%d" text-anchor="middle">//</text><text class="time" x="%s" y="%d" text-anchor="middle">%s left out</text>`,
			x, y, x, over, clock(c.to-c.from))
	}
}

// draw writes a drawing.
func (p *pen) draw(d *drawing, top int) {
	first := true
	for _, b := range d.bands {
		if p.wide > 0 {
			p.put(`<rect class="band %s" x="0" width="%s" y="%d" height="%d"/>`, b.role, number(p.left+p.wide+150), top+b.top, b.height)
		} else {
			p.put(`<rect class="band %s" x="-12" width="120%%" y="%d" height="%d"/>`, b.role, top+b.top, b.height)
		}
	}
	p.grid(top, d.height)
	for _, a := range d.arrows {
		p.arrow(a, top)
	}
	for i := range d.bars {
		b := &d.bars[i]
		p.lead("e", b.event, b.from, b.title, &first)
		y, thick := top+b.y-b.thick/2, b.thick
		switch b.kind {
		case barPause:
			p.put(`<line class="pause" x1="%s" x2="%s" y1="%d" y2="%d"/>`, p.x(b.from), p.x(b.to), top+b.y, top+b.y)
			p.put(`<rect class="hit" x="%s" width="%s" y="%d" height="%d"/>`, p.x(b.from), p.length(b.from, b.to), y, thick)
		case barLayer:
			p.put(`<rect class="layer" x="%s" width="%s" y="%d" height="%d" rx="3"/>`, p.x(b.from), p.length(b.from, b.to), y, thick)
		case barWork, barDown:
			p.put(`<rect class="%s" x="%s" width="%s" y="%d" height="%d" rx="2"/>`, b.kind, p.x(b.from), p.length(b.from, b.to), y+2, thick-4+map[bool]int{true: 4}[b.kind == barDown])
		default:
			p.put(`<rect class="%s" x="%s" width="%s" y="%d" height="%d" rx="3"/>`, b.kind, p.x(b.from), p.length(b.from, b.to), y, thick)
		}
		p.WriteString(`</g>`)
	}
	// Words lie over every bar.
	for i := range d.bars {
		if b := &d.bars[i]; b.text != "" {
			p.put(`<text class="on" x="%s" dx="5" y="%d">%s</text>`, p.x(b.from), top+b.y+4, html.EscapeString(b.text))
		}
	}
	for i := range d.marks {
		p.mark(&d.marks[i], top, &first)
	}
}

func (p *pen) mark(m *mark, top int, first *bool) {
	if m.kind == "" {
		p.put(`<text class="say" x="%s" dx="4" y="%d">%s</text>`, p.x(m.at), top+m.y+4, html.EscapeString(m.text))
		return
	}
	p.lead("e m "+m.kind, m.event, m.at, m.title, first)
	p.put(`<use href="#g-%s" x="%s" y="%d"/>`, m.kind, p.x(m.at), top+m.y)
	if m.text != "" {
		class, dx, anchor := "say", 10, ""
		if m.loud {
			class += " loud"
		}
		if m.room < 0 {
			dx, anchor = -10, ` text-anchor="end"`
		}
		if m.plate {
			wide := int(letter*float64(width(m.text))) + 6
			left := dx - 3
			if m.room < 0 {
				left = dx - wide + 3
			}
			p.put(`<rect class="plate" x="%s" width="%d" y="%d" height="12" rx="2" transform="translate(%d)"/>`, p.x(m.at), wide, top+m.y-6, left)
		}
		p.put(`<text class="%s" x="%s" dx="%d" y="%d"%s>%s</text>`, class, p.x(m.at), dx, top+m.y+4, anchor, html.EscapeString(m.text))
	}
	p.WriteString(`</g>`)
}

// arrow writes an arrow with its head; a broken one ends in a cross.
func (p *pen) arrow(a flight, top int) {
	x1, x2, y1, y2 := p.x(a.from), p.x(a.to), top+a.fromY, top+a.toY
	head := "down"
	switch {
	case a.kind == flightLost:
		head = "lost"
	case y2 < y1:
		head = "up"
	}
	p.put(`<line class="arrow %s" x1="%s" x2="%s" y1="%d" y2="%d"/><use class="head %s" href="#h-%s" x="%s" y="%d"/>`,
		a.kind, x1, x2, y1, y2, a.kind, head, x2, y2)
}

// shapes writes the definitions that drawings refer to.
func shapes() string {
	var b strings.Builder
	b.WriteString(`<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="hatch-ground" width="6" height="6"/><line class="hatch-line" x1="0" x2="0" y1="0" y2="6"/></pattern>`)
	for _, g := range pictured {
		class := "line"
		if g.filled {
			class = "full"
		}
		fmt.Fprintf(&b, `<path id="g-%s" class="%s" fill-rule="evenodd" d="%s"/>`, g.kind, class, g.path)
	}
	b.WriteString(`<path id="h-down" d="M0 0L-3.5-6H3.5Z"/><path id="h-up" d="M0 0L-3.5 6H3.5Z"/><path id="h-lost" d="M-4-4L4 4M-4 4L4-4"/></defs>`)
	return b.String()
}

// A sign is an entry of a legend.
type sign struct {
	svg  string // what it looks like, around 0,0 and 30 wide
	word string
}

// legend explains what drawings hold, and only that.
func legend(drawings []*drawing) []sign {
	bars, arrows, marks := map[barKind]bool{}, map[flightKind]bool{}, map[string]bool{}
	for _, d := range drawings {
		for i := range d.bars {
			bars[d.bars[i].kind] = true
		}
		for _, a := range d.arrows {
			arrows[a.kind] = true
		}
		for i := range d.marks {
			marks[d.marks[i].kind] = true
		}
	}
	var out []sign
	add := func(used bool, svg, word string) {
		if used {
			out = append(out, sign{svg, word})
		}
	}
	box := func(kind barKind) string {
		return `<rect class="` + string(kind) + `" x="-13" y="-6" width="26" height="12" rx="3"/>`
	}
	add(bars[barSend] || bars[barWait], box(barSend), "waiting")
	add(bars[barWork], box(barWork), "working")
	add(bars[barPause], `<line class="pause" x1="-13" x2="13" y1="0" y2="0"/>`, "pause before the next try")
	add(bars[barLayer], box(barLayer), "try of an outer layer")
	add(bars[barDown], `<rect class="down" x="-13" y="-2" width="26" height="4"/>`, "machine dead")
	add(arrows[flightRequest] || arrows[flightAnswer], `<line class="arrow request" x1="0" x2="0" y1="-7" y2="7"/><use class="head request" href="#h-down" y="7"/>`, "request, answer")
	add(arrows[flightLost], `<line class="arrow lost" x1="0" x2="0" y1="8" y2="-5"/><use class="head lost" href="#h-lost" y="-5"/>`, "lost on its way")
	for _, g := range pictured {
		add(marks[g.kind], `<g class="m `+g.kind+`"><use href="#g-`+g.kind+`"/></g>`, g.word)
	}
	return out
}

// tellers are the sentences of a result's events, at most n.
func tellers(s *setting, r *lab.Result, n int) (lines []string) {
	f := &drafter{setting: s, r: r}
	f.effects()
	for i := range r.Events[:min(n, len(r.Events))] {
		lines = append(lines, strings.ReplaceAll(f.sentence(i), "\n", "  ·  "))
	}
	return slices.Clip(lines)
}
