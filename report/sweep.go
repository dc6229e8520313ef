package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"retrylab/internal/lab"
)

// A sweep is the results of two settings that vary, as cells: the setting with more values goes down.
type sweep struct {
	name         string // the values of further settings, which are the same in all cells
	down, across lab.Varying
	cells        map[[2]string][]*lab.Result // by the values down and across; one result for each seed
}

// mostGrids is how many grids there are beside each other of settings beyond two.
const mostGrids = 6

// sweepOf returns the sweep that a block is, nil where it is none of exactly two settings.
func sweepOf(d *lab.Document, b *block) *sweep {
	if list := sweepsOf(d, b); len(d.Run.Vary) == 2 && len(list) == 1 {
		return list[0]
	}
	return nil
}

// sweepsOf returns the grids that a block is: one of two settings; of more those with the most values, once for
// each combination of the others. There are none where these are many.
func sweepsOf(d *lab.Document, b *block) (out []*sweep) {
	vary := d.Run.Vary
	if len(vary) < 2 || slices.ContainsFunc(b.results, func(r *lab.Result) bool { return len(r.Varied) != len(vary) }) {
		return nil
	}
	order := make([]int, len(vary))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return len(vary[b].Values) - len(vary[a].Values) })
	down, across, rest := order[0], order[1], order[2:]
	slices.Sort(rest)
	grids := 1
	for _, i := range rest {
		if grids *= len(vary[i].Values); grids > mostGrids {
			return nil
		}
	}
	byName := map[string]*sweep{}
	for _, r := range b.results {
		var parts []string
		for _, i := range rest {
			parts = append(parts, settingName(r, i)+" "+r.Varied[i].Value)
		}
		name := strings.Join(parts, ", ")
		s := byName[name]
		if s == nil {
			s = &sweep{name: name, down: vary[down], across: vary[across], cells: map[[2]string][]*lab.Result{}}
			byName[name] = s
			out = append(out, s)
		}
		at := [2]string{r.Varied[down].Value, r.Varied[across].Value}
		s.cells[at] = append(s.cells[at], r)
	}
	return out
}

// settingName is what a row calls its i-th setting: it is called "read 5s, guard none".
func settingName(r *lab.Result, i int) string {
	rest := r.Configuration
	for k, v := range r.Varied {
		name, after, ok := strings.Cut(rest, " "+v.Value)
		if !ok {
			break
		}
		if k == i {
			return name
		}
		rest = strings.TrimPrefix(after, ", ")
	}
	return lastStep(r.Varied[i].Path)
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
	least, most := math.MaxInt, 0
	var more, lost, tied, failed, open bool
	for _, r := range results {
		if r.Verdict == lab.Inconclusive || r.Uncounted {
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
	if least == math.MaxInt {
		return sweepCell{orders: markOpen, results: results} // nothing is known of it
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
func (s *sweep) legend() string { return legendOf([]*sweep{s}) }

// legendOf explains the marks that stand in several sweeps.
func legendOf(list []*sweep) string {
	marks := ""
	for _, s := range list {
		marks += s.used()
	}
	var out []string
	for _, m := range markMeanings {
		if strings.Contains(marks, m.mark) {
			out = append(out, m.mark+" "+m.meaning)
		}
	}
	return strings.Join(out, ", ")
}

// used are the marks that stand in a sweep.
func (s *sweep) used() (marks string) {
	for _, down := range s.down.Values {
		for _, across := range s.across.Values {
			cell := s.cell(down, across)
			if marks += cell.marks; cell.orders == markOpen || cell.orders == markNone {
				marks += cell.orders
			}
		}
	}
	return marks
}

// sweeps writes the grids of a sweep: orders for each combination.
func (p *page) sweeps(list []*sweep) error {
	p.gap()
	p.wrapped(plain, "  ", p.sweepTitle(list[0]), 4)
	for _, s := range list {
		if s.name != "" {
			p.gap()
			p.wrapped(bold, "  ", p.text(s.name), 4)
		}
		if err := p.sweep(s); err != nil {
			return err
		}
	}
	if legend := legendOf(list); legend != "" {
		p.wrapped(dim, "  ", legend, 2)
		p.gap()
	}
	return nil
}

// sweep writes one grid. Columns that the page has no room for go into a further one below.
func (p *page) sweep(s *sweep) error {
	head := column{head: lastStep(p.text(s.down.Path)), right: measured(s.down.Values)}
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
	return nil
}

// measured reports whether values are all times or numbers, which stand on their last digit.
func measured(values []string) bool {
	return !slices.ContainsFunc(values, func(v string) bool {
		_, err := strconv.ParseFloat(v, 64)
		_, errTime := time.ParseDuration(v)
		return err != nil && errTime != nil
	})
}

// ties says what the seed decides, and why it does.
func (p *page) ties(b *block) {
	for _, text := range p.tied(b) {
		p.wrapped(plain, "  ", text, 4)
	}
}

// tied are the sentences about what the seed decides: one for the values of a setting that have the reason in common.
func (p *page) tied(b *block) (out []string) {
	const most = 3
	along := alongOf(b)
	var groups [][]*lab.Result
	for _, r := range b.results {
		if r.Tie == nil {
			continue
		}
		i := slices.IndexFunc(groups, func(g []*lab.Result) bool { return sameReason(g[0], r, along) })
		if i < 0 {
			groups = append(groups, nil)
			i = len(groups) - 1
		}
		groups[i] = append(groups[i], r)
	}
	more := 0
	for i, g := range groups {
		if i >= most {
			more += len(g)
			continue
		}
		out = append(out, fmt.Sprintf("%s: %s: which comes first is up to the seed. With 2 ms more or less of processing %s.",
			p.called(b, g, along), p.prose(strings.Join(g[0].Tie.Pairs, ", and ")), p.possible(g, along)))
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("So it is in %d more.", more))
	}
	return out
}

// alongOf is the position of the setting of a sweep that has the most values.
func alongOf(b *block) int {
	along, most := 0, 0
	for i := range b.results[0].Varied {
		values := map[string]bool{}
		for _, r := range b.results {
			if i < len(r.Varied) {
				values[r.Varied[i].Value] = true
			}
		}
		if len(values) > most {
			along, most = i, len(values)
		}
	}
	return along
}

// sameReason reports whether two ties are told in the same words and of configurations that differ in one setting alone.
func sameReason(a, b *lab.Result, along int) bool {
	if len(a.Varied) != len(b.Varied) || !slices.Equal(a.Tie.Pairs, b.Tie.Pairs) {
		return false
	}
	for i := range a.Varied {
		if i != along && a.Varied[i].Value != b.Varied[i].Value {
			return false
		}
	}
	return len(a.Varied) > 0
}

// called names configurations that differ in one setting: read 5s and 11s, guard none.
func (p *page) called(b *block, group []*lab.Result, along int) string {
	if len(group) == 1 {
		return b.name(p.setting, group[0])
	}
	var parts []string
	for i, v := range group[0].Varied {
		values := []string{v.Value}
		if i == along {
			values = valuesOf(group, along)
		}
		parts = append(parts, p.text(settingName(group[0], i))+" "+p.text(several(values)))
	}
	return strings.Join(parts, ", ")
}

// possible says how many orders there may be in each of a group.
func (p *page) possible(group []*lab.Result, along int) string {
	tie := *group[0].Tie
	if !slices.ContainsFunc(group, func(r *lab.Result) bool { return r.Tie.Least != tie.Least || r.Tie.Most != tie.Most }) {
		return "there are " + between(tie) + " orders"
	}
	var parts []string
	for _, r := range group {
		part := between(*r.Tie) + " at " + p.text(r.Varied[along].Value)
		if !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return "there are " + several(parts)
}

func between(t lab.Tie) string {
	if t.Most == t.Least+1 {
		return fmt.Sprintf("%d or %d", t.Least, t.Most)
	}
	return fmt.Sprintf("%d to %d", t.Least, t.Most)
}

// valuesOf are the values that a setting has in some results, each once.
func valuesOf(results []*lab.Result, i int) (out []string) {
	for _, r := range results {
		out = include(out, r.Varied[i].Value)
	}
	return out
}

// several joins words as a sentence does.
func several(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
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
