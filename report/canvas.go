package report

import "strings"

// A canvas is one line of cells.
type canvas struct{ cells []cell }

type cell struct {
	text  string
	style style
	used  bool
}

func newCanvas(n int) *canvas { return &canvas{cells: make([]cell, max(n, 1))} }

// put writes text from a cell on and returns the first cell after it. What does not fit is left out.
func (c *canvas) put(at int, text string, st style) int {
	for _, r := range text {
		w := runeWidth(r)
		switch {
		case at < 0 || at+w > len(c.cells):
			return at
		case w == 0:
			if at > 0 {
				c.cells[at-1].text += string(r)
			}
			continue
		}
		c.cells[at] = cell{text: string(r), style: st, used: true}
		for i := at + 1; i < at+w; i++ {
			c.cells[i] = cell{style: st, used: true}
		}
		at += w
	}
	return at
}

// blank reports whether the cells from a to before b are free, as far as they exist.
func (c *canvas) blank(a, b int) bool {
	for i := max(a, 0); i < min(b, len(c.cells)); i++ {
		if c.cells[i].used {
			return false
		}
	}
	return true
}

// half reports whether cell i is the second of a wide character.
func (c *canvas) half(i int) bool { return c.cells[i].used && c.cells[i].text == "" }

// render returns the line without blanks at its end.
func (c *canvas) render(s *setting) string {
	last := len(c.cells)
	for last > 0 && strings.Trim(c.cells[last-1].text, " ") == "" && !c.half(last-1) {
		last--
	}
	var line, run strings.Builder
	current := plain
	for _, cl := range c.cells[:last] {
		if cl.style != current && cl.used {
			line.WriteString(s.paint(current, run.String()))
			run.Reset()
			current = cl.style
		}
		if !cl.used {
			cl.text = " "
		}
		run.WriteString(cl.text)
	}
	line.WriteString(s.paint(current, run.String()))
	return line.String()
}
