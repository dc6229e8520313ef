package report

import (
	"slices"
	"strings"
)

// A field is a column before it is cut to the page.
type field struct {
	column
	drop int // order in which columns leave a narrow page, 1 first; 0 stays
	soft int // a soft column is wrapped down to this width before others have to leave; 0 is never wrapped
	tall int // most lines of a cell, the rest is cut; 0 for any number
}

func (f *field) add(cell string) { f.cells = append(f.cells, cell) }

// lastResort is the drop of a column that leaves only where wrapping would break words without it.
const lastResort = 3

// longWord is the length of a word that may be broken where room is short.
const longWord = 12

// fit cuts fields to a page of n columns: columns leave by priority while even the wrapped rest is too
// wide, and those that may be wrapped share the room there is.
func (s *setting) fit(fields []field, n int) []column {
	if s.wide {
		n = 1 << 20
	}
	columns := s.layOut(fields, n)
	// In a long table a column that makes most rows wrap costs more than it tells.
	if rows := len(fields[0].cells); rows >= 10 {
		lines := 0
		for i := range rows {
			lines += tall(columns, i)
		}
		if 2*lines > 3*rows {
			droppable := func(f field) bool { return f.drop > 0 && f.drop < lastResort }
			return s.layOut(slices.DeleteFunc(slices.Clone(fields), droppable), n)
		}
	}
	return columns
}

func (s *setting) layOut(fields []field, n int) []column {
	l := newLayout(fields)
	for drop := 1; drop < lastResort && l.need() > n; drop++ {
		l = l.without(drop)
	}
	if l.need()-l.slack() > n {
		l = l.without(lastResort)
	}
	l.narrow(n)
	l.widen(n)
	columns := make([]column, len(l.fields))
	for i, f := range l.fields {
		c := column{head: s.shorten(f.head, l.widths[i]), right: f.right}
		for _, cell := range f.cells {
			c.cells = append(c.cells, s.cell(cell, l.widths[i], f.tall))
		}
		columns[i] = c
	}
	return columns
}

// A layout gives every field a width.
type layout struct {
	fields  []field
	natural []int // of the widest cell
	word    []int // of the longest word that should not be broken
	widths  []int
}

// newLayout gives soft fields as little as they ask for and the others all.
func newLayout(fields []field) *layout {
	l := &layout{fields: fields}
	for _, f := range fields {
		natural, word := widthOf(f.column), width(f.head)
		for _, cell := range f.cells {
			for part := range strings.SplitSeq(cell, " ") {
				word = max(word, min(width(part), longWord))
			}
		}
		w := natural
		if f.soft > 0 {
			w = max(min(natural, f.soft), width(f.head))
		}
		l.natural, l.word, l.widths = append(l.natural, natural), append(l.word, word), append(l.widths, w)
	}
	return l
}

func (l *layout) without(drop int) *layout {
	return newLayout(slices.DeleteFunc(slices.Clone(l.fields), func(f field) bool { return f.drop == drop }))
}

// need is the width of the page that l asks for.
func (l *layout) need() int {
	sum := (len(l.widths) - 1) * len(gap)
	for _, w := range l.widths {
		sum += w
	}
	return sum
}

// slack is what soft fields can give without breaking words.
func (l *layout) slack() int {
	sum := 0
	for i, f := range l.fields {
		if f.soft > 0 {
			sum += max(0, l.widths[i]-l.word[i])
		}
	}
	return sum
}

// narrow takes from the widest soft fields until l fits into n columns: first what they have beyond
// their longest words, then what they have at all.
func (l *layout) narrow(n int) {
	const least = 4 // room for a word's beginning
	for _, words := range []bool{true, false} {
		for l.need() > n {
			at := -1
			for i, f := range l.fields {
				floor := least
				if words {
					floor = l.word[i]
				}
				if f.soft > 0 && l.widths[i] > floor && (at < 0 || l.widths[i] > l.widths[at]) {
					at = i
				}
			}
			if at < 0 {
				break
			}
			l.widths[at]--
		}
	}
}

// widen gives the room that is left, column by column, to the field whose cells would be the tallest.
func (l *layout) widen(n int) {
	for l.need() < n {
		at := -1
		for i, w := range l.widths {
			if w < l.natural[i] && (at < 0 || l.natural[i]*l.widths[at] > l.natural[at]*w) {
				at = i
			}
		}
		if at < 0 {
			return
		}
		l.widths[at]++
	}
}

// clip cuts a line that stands behind an indentation to the page: the last resort, for numbers that
// leave no room for words.
func (s *setting) clip(line string, indent int) string {
	if s.wide {
		return line
	}
	line, _ = split(line, s.width-indent)
	return line
}

// cell wraps text to n columns and, unless it is 0, to so many lines.
func (s *setting) cell(text string, n, tall int) string {
	if width(text) <= n {
		return text
	}
	lines := wrap(text, n, n)
	if tall > 0 && len(lines) > tall && !s.wide {
		kept, _ := split(lines[tall-1], n-width(s.cut))
		lines = append(lines[:tall-1], strings.TrimRight(kept, " ")+s.cut)
	}
	return strings.Join(lines, "\n")
}

// widthOf is the width of a column of cells.
func widthOf(c column) int {
	n := width(c.head)
	for _, cell := range c.cells {
		n = max(n, widest(cell))
	}
	return n
}

// tall is the number of lines of row i.
func tall(columns []column, i int) int {
	n := 1
	for _, c := range columns {
		n = max(n, 1+strings.Count(c.cells[i], "\n"))
	}
	return n
}
