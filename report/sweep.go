package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"retrylab/internal/lab"
)

// A sweep is the results of two settings that vary, as cells: the setting with more values goes down.
type sweep struct {
	down, across lab.Varying
	cells        map[[2]string][]*lab.Result // by the values down and across; one result for each seed
}

// sweepOf returns the sweep that a block is, nil where it is none of exactly two settings.
func sweepOf(d *lab.Document, b *block) *sweep {
	if len(d.Run.Vary) != 2 {
		return nil
	}
	s := &sweep{down: d.Run.Vary[0], across: d.Run.Vary[1], cells: map[[2]string][]*lab.Result{}}
	turned := len(s.across.Values) > len(s.down.Values)
	if turned {
		s.down, s.across = s.across, s.down
	}
	for _, r := range b.results {
		if len(r.Varied) != 2 {
			return nil
		}
		at := [2]string{r.Varied[0].Value, r.Varied[1].Value}
		if turned {
			at[0], at[1] = at[1], at[0]
		}
		s.cells[at] = append(s.cells[at], r)
	}
	return s
}

// The marks behind a number of orders, with their meaning, in the order in which they stand.
const (
	markMore = "!"
	markLost = "<"
	markTie  = "~"
	markFail = "x"
	markOpen = "?"
	markNone = "-"
)

var markMeanings = []struct{ mark, meaning string }{
	{markMore, "more than wanted"},
	{markLost, "believed ok and not there"},
	{markTie, "the seed decides"},
	{markFail, "not held"},
	{markOpen, "inconclusive"},
	{markNone, "not run"},
}

// A sweepCell is what a combination came to.
type sweepCell struct {
	orders  string // their number; of several seeds, or of a tie, a range
	marks   string
	more    bool // more than wanted, at least where the seed decides so
	results []*lab.Result
}

// cell is what a combination came to.
func (s *sweep) cell(down, across string) sweepCell {
	results := s.cells[[2]string{down, across}]
	if len(results) == 0 {
		return sweepCell{orders: markNone}
	}
	least, most := results[0].Counts.Effects, results[0].Counts.Effects
	var more, lost, tied, failed, open bool
	for _, r := range results {
		if r.Verdict == lab.Inconclusive {
			open = true
			continue
		}
		least, most = min(least, r.Counts.Effects), max(most, r.Counts.Effects)
		if r.Tie != nil {
			least, most, tied = min(least, r.Tie.Least), max(most, r.Tie.Most), true
			more = more || r.Tie.Most > r.Counts.Wanted
		}
		more, lost = more || r.Counts.Duplicates > 0, lost || r.Counts.Lost > 0
		failed = failed || r.Verdict == lab.NotAsExpected
	}
	c := sweepCell{orders: strconv.Itoa(least), more: more, results: results}
	if most > least {
		c.orders += "-" + strconv.Itoa(most)
	}
	for _, m := range []struct {
		set  bool
		mark string
	}{{more, markMore}, {lost, markLost}, {tied, markTie}, {failed, markFail}, {open, markOpen}} {
		if m.set {
			c.marks += m.mark
		}
	}
	return c
}

// sweepTitle says what the numbers of a sweep are.
func (p *page) sweepTitle(s *sweep) string {
	return fmt.Sprintf("orders by %s (down) and %s (across)", p.text(s.down.Path), p.text(s.across.Path))
}

// legend explains the marks that stand in a sweep.
func (s *sweep) legend() string {
	marks := ""
	for _, down := range s.down.Values {
		for _, across := range s.across.Values {
			cell := s.cell(down, across)
			if marks += cell.marks; cell.results == nil {
				marks += markNone
			}
		}
	}
	var out []string
	for _, m := range markMeanings {
		if strings.Contains(marks, m.mark) {
			out = append(out, m.mark+" "+m.meaning)
		}
	}
	return strings.Join(out, ", ")
}

// sweep writes the grid of a sweep: orders for each combination. Columns that the page has no room for go
// into a further grid below.
func (p *page) sweep(s *sweep) error {
	p.gap()
	p.wrapped(plain, "  ", p.sweepTitle(s), 4)
	head := column{head: lastStep(p.text(s.down.Path)), right: true}
	for _, v := range s.down.Values {
		head.cells = append(head.cells, p.text(v))
	}
	var columns []column
	for _, across := range s.across.Values {
		c := column{head: p.text(across)}
		var cells []sweepCell
		digits := 0
		for _, down := range s.down.Values {
			cell := s.cell(down, across)
			digits = max(digits, len(cell.orders))
			cells = append(cells, cell)
		}
		for _, cell := range cells {
			// The numbers stand on their last digit, the marks behind.
			c.cells = append(c.cells, strings.Repeat(" ", digits-len(cell.orders))+cell.orders+cell.marks)
		}
		columns = append(columns, c)
	}
	for len(columns) > 0 {
		n, room := 0, p.width-2-columnWidth(head)
		for n < len(columns) && (n == 0 || p.wide || room >= len(gap)+columnWidth(columns[n])) {
			room -= len(gap) + columnWidth(columns[n])
			n++
		}
		lines, err := grid(append([]column{head}, columns[:n]...))
		if err != nil {
			return err
		}
		p.gap()
		for i, l := range lines {
			st := plain
			if i == 0 {
				st = dim
			}
			p.line("  " + p.paint(st, p.clip(l, 2)))
		}
		columns = columns[n:]
	}
	if legend := s.legend(); legend != "" {
		p.wrapped(dim, "  ", legend, 2)
		p.gap()
	}
	return nil
}

// ties says what the seed decides, and why it does.
func (p *page) ties(b *block) {
	for _, text := range p.tied(b) {
		p.wrapped(plain, "  ", text, 4)
	}
}

// tied are the sentences about what the seed decides.
func (p *page) tied(b *block) (out []string) {
	const most = 3
	told := 0
	for _, r := range b.results {
		if r.Tie == nil {
			continue
		}
		if told++; told > most {
			continue
		}
		out = append(out, fmt.Sprintf("%s: %s are in one instant, and the seed decides. With 2 ms more or less of processing there are %d or %d orders.",
			b.name(p.setting, r), p.prose(strings.Join(r.Tie.Pairs, ", and ")), r.Tie.Least, r.Tie.Most))
	}
	if told > most {
		out = append(out, fmt.Sprintf("So it is in %d more.", told-most))
	}
	return out
}

// columnWidth is what a column takes of a line.
func columnWidth(c column) int {
	n := width(c.head)
	for _, cell := range c.cells {
		n = max(n, width(cell))
	}
	return n
}

// lastStep is the end of a path.
func lastStep(path string) string {
	return path[strings.LastIndexByte(path, '.')+1:]
}

// cellNames names the cells of a sweep that the rows of a comparison are: by each value across those down, in runs.
func (p *page) cellNames(s *sweep, b *block, letters []string) string {
	in := map[[2]string]bool{}
	for at, results := range s.cells {
		for _, r := range results {
			if slices.Contains(letters, b.letters[[2]string{r.Scenario, r.ID}]) {
				in[at] = true
			}
		}
	}
	down, across := lastStep(p.text(s.down.Path)), lastStep(p.text(s.across.Path))
	var parts []string
	for _, a := range s.across.Values {
		var runs []string
		for i := 0; i < len(s.down.Values); i++ {
			first := i
			for i < len(s.down.Values) && in[[2]string{s.down.Values[i], a}] {
				i++
			}
			switch n := i - first; {
			case n == len(s.down.Values):
				runs = append(runs, "every "+down)
			case n > 2:
				runs = append(runs, p.text(s.down.Values[first])+" to "+p.text(s.down.Values[i-1]))
			default:
				for _, v := range s.down.Values[first:i] {
					runs = append(runs, p.text(v))
				}
			}
		}
		switch {
		case len(runs) == 0:
		case strings.HasPrefix(runs[0], "every "):
			parts = append(parts, fmt.Sprintf("%s, %s %s", runs[0], across, p.text(a)))
		default:
			parts = append(parts, fmt.Sprintf("%s %s, %s %s", down, strings.Join(runs, " and "), across, p.text(a)))
		}
	}
	return strings.Join(parts, "; ")
}
