package report

import (
	"slices"
	"strconv"
	"strings"

	"retrylab/internal/lab"
)

// tallest is the number of lines that a verdict may take in the table. The whole of it is told at the
// end of the report.
const tallest = 3

// table writes one row per configuration.
func (p *page) table(d *lab.Document, b *block) error {
	cells := p.cells(b)
	columns := p.fit(cells, p.width-2)
	lines, err := grid(columns)
	if err != nil {
		return err
	}
	p.gap()
	p.line("  " + p.paint(dim, p.clip(lines[0], 2)))
	lines = lines[1:]

	// The verdict is the last column and is painted from where it begins.
	start := 0
	for _, c := range columns[:len(columns)-1] {
		start += widthOf(c) + len(gap)
	}
	for i, r := range b.results {
		for range tall(columns, i) {
			front, verdict := split(p.clip(lines[0], 2), start)
			lines = lines[1:]
			p.line("  " + front + p.paint(verdictStyle(r), verdict))
		}
	}
	for _, c := range columns {
		if c.head == headAtEnd {
			p.line("  " + p.paint(dim, "* orders when the caller was done"))
		}
	}
	return nil
}

const headAtEnd = "AT END*"

// field is a column of the table before it is cut to the page.
type field struct {
	column
	drop int // order in which columns leave a narrow page, 1 first; 0 stays
	soft int // a soft column may be wrapped down to this width; 0 may not
	tall int // most lines of a cell, the rest is cut; 0 for any number
}

// cells sets every column in full.
func (p *page) cells(b *block) []field {
	name := field{column: column{head: "CONFIGURATION"}, soft: 16}
	sent := field{column: column{head: "SENT", right: true}, drop: 3}
	arrived := field{column: column{head: "ARRIVED", right: true}}
	orders := field{column: column{head: "ORDERS", right: true}}
	atEnd := field{column: column{head: headAtEnd, right: true}, drop: 2}
	ampl := field{column: column{head: "AMPL.", right: true}, drop: 1}
	amount := field{column: column{head: "AMOUNT", right: true}}
	belief := field{column: column{head: "BELIEF"}, soft: 9}
	verdict := field{column: column{head: "VERDICT"}, soft: 16, tall: tallest}
	for _, r := range b.results {
		name.add(b.name(p.setting, r))
		s, a := p.chain(r)
		sent.add(s)
		arrived.add(a)
		orders.add(strconv.Itoa(r.Counts.Effects))
		atEnd.add(strconv.Itoa(r.Counts.EffectsWhenCallerDone))
		ampl.add(strconv.FormatFloat(r.Amplification, 'f', 1, 64) + p.cross)
		amount.add(p.money(b.info.Currency, r.Counts.Amount))
		belief.add(beliefText(r))
		verdict.add(p.verdict(r))
	}
	fields := []field{name, sent, arrived, orders, atEnd, ampl}
	if b.info.Currency != "" {
		fields = append(fields, amount)
	}
	return append(fields, belief, verdict)
}

// least is the width that a soft column can be wrapped to without breaking words of a usual length.
func (f *field) least() int {
	n := width(f.head)
	for _, cell := range f.cells {
		for word := range strings.SplitSeq(cell, " ") {
			n = max(n, min(width(word), 12))
		}
	}
	return n
}

func (f *field) add(cell string) { f.cells = append(f.cells, cell) }

// chain writes the sends and the arrivals; with hops, those of every link in the order of the way:
// 4→16→64.
func (p *page) chain(r *lab.Result) (sent, arrived string) {
	for _, n := range r.Nodes {
		if n.Role == "hop" {
			sent += p.arrow + strconv.Itoa(n.Sends)
			arrived += strconv.Itoa(n.Arrivals) + p.arrow
		}
	}
	return strconv.Itoa(r.Counts.Sends) + sent, arrived + strconv.Itoa(r.Counts.Arrivals)
}

// beliefText writes what the callers ended with.
func beliefText(r *lab.Result) string {
	var parts []string
	for _, b := range []struct {
		n      int
		belief lab.Belief
	}{{r.Beliefs.OK, lab.OK}, {r.Beliefs.Failed, lab.Failed}, {r.Beliefs.Unknown, lab.Unknown}} {
		switch {
		case b.n == 0:
		case b.n == 1 && r.Counts.Operations <= 1:
			return string(b.belief)
		default:
			parts = append(parts, strconv.Itoa(b.n)+" "+string(b.belief))
		}
	}
	if len(parts) == 0 {
		return "none yet"
	}
	return strings.Join(parts, ", ")
}

// verdict writes the verdict in words, with what the numbers mean for the user of the service.
func (p *page) verdict(r *lab.Result) string {
	switch r.Verdict {
	case lab.AsExpected:
		return "held" + facts(r.Counts)
	case lab.Measured:
		return "measured" + facts(r.Counts)
	case lab.NotAsExpected:
		return "NOT HELD" + p.firstFailure(r)
	}
	if r.Why == "" {
		return "inconclusive"
	}
	return "inconclusive: " + p.prose(r.Why)
}

func facts(c lab.Counts) string {
	var b strings.Builder
	if c.Duplicates > 0 {
		b.WriteString(", " + strconv.Itoa(c.Duplicates) + " too many")
	}
	if c.Lost > 0 {
		b.WriteString(", " + strconv.Itoa(c.Lost) + " lost")
	}
	switch {
	case c.FalseFailures == 1:
		b.WriteString(", false failure")
	case c.FalseFailures > 1:
		b.WriteString(", " + strconv.Itoa(c.FalseFailures) + " false failures")
	}
	return b.String()
}

// firstFailure names the first check that did not hold and counts the others.
func (p *page) firstFailure(r *lab.Result) string {
	text, more := "", 0
	for _, c := range r.Checks {
		switch {
		case c.Held:
		case text != "":
			more++
		case c.Kind == "invariant":
			text = ": " + p.prose(c.Name)
		default:
			text = ": " + p.prose(c.Name) + " " + p.value(c.Actual) + ", expected " + p.value(c.Expected)
		}
	}
	if more > 0 {
		text += ", and " + strconv.Itoa(more) + " more"
	}
	return text
}

func verdictStyle(r *lab.Result) style {
	switch r.Verdict {
	case lab.AsExpected:
		return good
	case lab.NotAsExpected:
		return alarm
	case lab.Inconclusive:
		return warn
	}
	return plain
}

// fit cuts the fields to a page of n columns: it lets columns go by priority while even the wrapped
// rest is too wide, and shares what room there is among the columns that may be wrapped.
func (p *page) fit(fields []field, n int) []column {
	columns := p.cut(fields, n)
	// In a long table a column that makes most rows wrap costs more than it tells.
	if rows := len(fields[0].cells); rows >= 10 {
		lines := 0
		for i := range rows {
			lines += tall(columns, i)
		}
		if 2*lines > 3*rows {
			return p.cut(slices.DeleteFunc(fields, func(f field) bool { return f.drop == 1 || f.drop == 2 }), n)
		}
	}
	return columns
}

// cut is fit for better or worse.
func (p *page) cut(all []field, n int) []column {
	fields := slices.Clone(all)
	widths := make([]int, len(fields))
	natural := make([]int, len(fields))
	floor := func(f field, i int) int {
		if f.soft == 0 {
			return natural[i]
		}
		return max(min(natural[i], f.soft), width(f.head))
	}
	need := func() int {
		sum := -len(gap)
		for i := range fields {
			sum += widths[i] + len(gap)
		}
		return sum
	}
	measure := func() {
		widths, natural = widths[:len(fields)], natural[:len(fields)]
		for i, f := range fields {
			natural[i] = widthOf(f.column)
			widths[i] = floor(f, i)
		}
	}
	spare := func() int {
		sum := 0
		for i, f := range fields {
			if f.soft > 0 {
				sum += widths[i] - min(widths[i], f.least())
			}
		}
		return sum
	}
	measure()
	if p.wide {
		n = 1 << 20
	}
	for drop := 1; drop <= 3 && need() > n; drop++ {
		if drop == 3 && need()-spare() <= n {
			break // the last column goes only when nothing else helps
		}
		fields = slices.DeleteFunc(fields, func(f field) bool { return f.drop == drop })
		measure()
	}
	// What is still too wide gives way at its widest soft column, down to its longest word and then
	// beyond.
	for _, give := range []func(field, int) bool{
		func(f field, w int) bool { return w > f.least() },
		func(f field, w int) bool { return w > 4 },
	} {
		for need() > n {
			at := -1
			for i, f := range fields {
				if f.soft > 0 && give(f, widths[i]) && (at < 0 || widths[i] > widths[at]) {
					at = i
				}
			}
			if at < 0 {
				break
			}
			widths[at]--
		}
	}
	// Spare room goes, column by column, to the cell that would be the tallest.
	for need() < n {
		at := -1
		for i := range fields {
			if widths[i] < natural[i] && (at < 0 || natural[i]*widths[at] > natural[at]*widths[i]) {
				at = i
			}
		}
		if at < 0 {
			break
		}
		widths[at]++
	}
	columns := make([]column, len(fields))
	for i, f := range fields {
		c := column{head: p.shorten(f.head, widths[i]), right: f.right}
		for _, cell := range f.cells {
			c.cells = append(c.cells, p.cell(cell, widths[i], f.tall))
		}
		columns[i] = c
	}
	return columns
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
