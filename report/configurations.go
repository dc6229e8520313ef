package report

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"retrylab/internal/lab"
)

// tallest is the number of lines that a verdict may take in the table. The whole of it is told at the
// end of the report.
const tallest = 3

// table writes one row per configuration.
func (p *page) table(b *block) error {
	columns := p.fit(p.cells(b), p.width-2)
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
		painter := p.painterOf(r)
		for range tall(columns, i) {
			front, verdict := split(p.clip(lines[0], 2), start)
			lines = lines[1:]
			p.line("  " + front + painter.paint(verdict))
		}
	}
	for _, c := range columns {
		if note := p.footnote(c.head, b.results); note != "" {
			p.line("  " + p.paint(dim, note))
		}
	}
	return nil
}

const (
	headAtEnd = "AT END*"
	headPeak  = "PEAK"
)

// footnote explains the column with a head, "" where it needs no more than that.
func (p *setting) footnote(head string, results []*lab.Result) string {
	if head == headAtEnd {
		return "* orders when the caller was done"
	}
	for _, r := range results {
		if head != headPeak || r.Series == nil || r.Uncounted {
			continue
		}
		note := headPeak + ": the most sends within " + clock(r.Series.WindowMs)
		if r.Series.PeakAfterMs > 0 {
			note += ", the first " + clock(r.Series.PeakAfterMs) + " left out"
		}
		return note
	}
	return ""
}

// A verdictPainter paints the verdict of a row, line by line: what it means for the user of the service is a warning,
// though it was expected, and what others say is neither.
type verdictPainter struct {
	*setting
	styles [3]style // of the word, of the facts behind it, and of what is said
	part   int
}

func (s *setting) painterOf(r *lab.Result) *verdictPainter {
	v := &verdictPainter{setting: s, styles: [3]style{verdictStyle(r), verdictStyle(r), verdictStyle(r)}}
	if r.Verdict == lab.AsExpected || r.Verdict == lab.Measured {
		v.styles = [3]style{verdictStyle(r), warn, plain}
	}
	return v
}

// paint paints the next line.
func (v *verdictPainter) paint(line string) (out string) {
	for v.part < len(v.styles)-1 {
		i := strings.IndexAny(line, [...]string{",;", ";"}[v.part])
		if i < 0 {
			break
		}
		out += v.setting.paint(v.styles[v.part], line[:i])
		if v.part++; line[i] == ';' {
			v.part = len(v.styles) - 1
		}
		line = line[i:]
	}
	return out + v.setting.paint(v.styles[v.part], line)
}

// cells sets every column in full.
func (p *page) cells(b *block) []field {
	name := field{column: column{head: "CONFIGURATION"}, soft: 16}
	sent := field{column: column{head: "SENT", right: true}, drop: 3}
	arrived := field{column: column{head: "ARRIVED", right: true}}
	asked := field{column: column{head: "ASKED", right: true}}
	orders := field{column: column{head: "ORDERS", right: true}}
	atEnd := field{column: column{head: headAtEnd, right: true}, drop: 2}
	ampl := field{column: column{head: "AMPL.", right: true}, drop: 1}
	amount := field{column: column{head: "AMOUNT", right: true}}
	answers := field{column: column{head: "ANSWERS"}, soft: 12}
	belief := field{column: column{head: "BELIEF"}, soft: 9}
	verdict := field{column: column{head: "VERDICT"}, soft: 16, tall: tallest}
	for _, r := range b.results {
		name.add(b.name(p.setting, r))
		if r.Uncounted {
			for _, f := range []*field{&sent, &arrived, &asked, &orders, &atEnd, &ampl, &amount, &answers, &belief} {
				f.add("-")
			}
			verdict.add(p.verdict(r))
			continue
		}
		s, a := p.chain(r)
		sent.add(s)
		arrived.add(a)
		asked.add(strconv.Itoa(r.Counts.Lookups))
		orders.add(strconv.Itoa(r.Counts.Effects))
		atEnd.add(strconv.Itoa(r.Counts.EffectsWhenCallerDone))
		ampl.add(strconv.FormatFloat(r.Amplification, 'f', 1, 64) + p.cross)
		amount.add(p.money(b.info.Currency, r.Counts.Amount))
		answers.add(p.answers(r))
		belief.add(p.belief(r))
		verdict.add(p.verdict(r))
	}
	fields := []field{name, sent, arrived}
	if slices.ContainsFunc(b.results, func(r *lab.Result) bool { return r.Counts.Lookups > 0 }) {
		fields = append(fields, asked)
	}
	if p.beside != nil {
		fields = append(fields, p.besides(b.results))
	}
	fields = append(fields, orders)
	fields = append(fields, p.ledgers(b.results)...)
	fields = append(fields, p.state(b.results)...)
	fields = append(fields, atEnd, ampl)
	fields = append(fields, p.overTime(b.results)...)
	if b.info.Currency != "" {
		fields = append(fields, amount)
	}
	if alike(b.results) {
		fields = append(fields, answers)
	}
	return append(fields, belief, verdict)
}

// state sets the column of the row that requests share. It has the row's name where that is the same in all.
func (p *page) state(results []*lab.Result) []field {
	var rows []string
	for _, r := range results {
		if r.State != nil && !slices.Contains(rows, r.State.Row) {
			rows = append(rows, r.State.Row)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	head := "STATE"
	if len(rows) == 1 {
		head = strings.ToUpper(p.text(rows[0]))
	}
	f := field{column: column{head: head, right: true}}
	for _, r := range results {
		if r.State == nil || r.Uncounted {
			f.add("-")
		} else {
			f.add(p.text(r.State.String()))
		}
	}
	return []field{f}
}

// overTime sets the columns of what the counts over time come to: the busiest window, or the
// goodput from the end of a disturbance on and whether it comes back.
func (p *page) overTime(results []*lab.Result) []field {
	peak := field{column: column{head: headPeak, right: true}}
	goodput := field{column: column{head: "GOODPUT", right: true}, drop: 3}
	back := field{column: column{head: "BACK AFTER", right: true}}
	counted, recovery := false, false
	for _, r := range results {
		switch {
		case r.Series == nil || r.Uncounted:
			peak.add("-")
		default:
			counted = true
			peak.add(strconv.Itoa(r.Series.PeakStarts))
		}
		switch {
		case r.Series == nil || r.Series.Recovery == nil || r.Uncounted:
			goodput.add("-")
			back.add("-")
			continue
		case r.Series.Recovery.Recovered:
			back.add(clock(r.Series.Recovery.AfterMs))
		default:
			back.add("never")
		}
		recovery = true
		goodput.add(strconv.FormatFloat(r.Series.Recovery.GoodputPerS, 'f', 1, 64) + "/s")
	}
	switch {
	case recovery:
		return []field{goodput, back}
	case counted:
		return []field{peak}
	}
	return nil
}

// ledgers sets a column for each ledger beside the orders.
func (p *page) ledgers(results []*lab.Result) (out []field) {
	var ledgers []lab.Ledger
	for _, r := range results {
		for _, l := range r.Ledgers {
			if !slices.ContainsFunc(ledgers, func(other lab.Ledger) bool { return other.Name == l.Name }) {
				ledgers = append(ledgers, l)
			}
		}
	}
	for _, of := range ledgers {
		f := field{column: column{head: strings.ToUpper(p.text(of.Name)), right: true}}
		if of.Note {
			f.drop = 1
		}
		for _, r := range results {
			i := slices.IndexFunc(r.Ledgers, func(l lab.Ledger) bool { return l.Name == of.Name })
			if i < 0 || r.Uncounted {
				f.add("-")
			} else {
				f.add(strconv.Itoa(r.Ledgers[i].Entries))
			}
		}
		out = append(out, f)
	}
	return out
}

// alike reports whether two configurations that differ in what the server answered would be told in
// the same words but for that.
func alike(results []*lab.Result) bool {
	for i, a := range results {
		for _, b := range results[:i] {
			if a.Counts == b.Counts && a.Beliefs == b.Beliefs && a.Verdict == b.Verdict && !maps.Equal(a.Answers, b.Answers) {
				return true
			}
		}
	}
	return false
}

// answers writes how often each status was answered: 201×1 409×11.
func (p *page) answers(r *lab.Result) string {
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(r.Answers)) {
		parts = append(parts, p.text(status)+p.cross+strconv.Itoa(r.Answers[status]))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, " ")
}

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

// belief writes what the callers ended with, and before it what they were done with where a job has
// settled some of it since.
func (p *page) belief(r *lab.Result) string {
	final := beliefText(r.Counts, r.Beliefs)
	if r.BeliefsWhenCallerDone == nil {
		return final
	}
	return beliefText(r.Counts, *r.BeliefsWhenCallerDone) + " " + p.arrow + " " + final
}

func beliefText(c lab.Counts, beliefs lab.Beliefs) string {
	var parts []string
	for _, b := range []struct {
		n      int
		belief lab.Belief
	}{{beliefs.OK, lab.OK}, {beliefs.Failed, lab.Failed}, {beliefs.Unknown, lab.Unknown}} {
		switch {
		case b.n == 0:
		case b.n == 1 && c.Operations <= 1:
			return string(b.belief)
		default:
			parts = append(parts, strconv.Itoa(b.n)+" "+string(b.belief))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// verdict writes the verdict in words, with what the numbers mean for the user of the service.
func (p *page) verdict(r *lab.Result) string {
	switch r.Verdict {
	case lab.AsExpected:
		return "held" + facts(r.Counts) + p.said(r)
	case lab.Measured:
		return "measured" + facts(r.Counts)
	case lab.NotAsExpected:
		return "NOT HELD" + p.failure(r)
	}
	if r.Why == "" {
		return "inconclusive"
	}
	return "inconclusive: " + p.prose(r.Why)
}

// said is what is widely, and wrongly, said of a configuration: "; often said: 9 arrived".
func (p *page) said(r *lab.Result) string {
	words := map[string]string{"sends": " sent", "arrivals": " arrived", "effects": " orders"}
	var parts []string
	for _, s := range r.Said {
		word := words[s.Name]
		if word == "" {
			word = p.cross + strings.TrimPrefix(s.Name, "answers ")
		}
		parts = append(parts, strconv.Itoa(s.Said)+word)
	}
	if len(parts) == 0 {
		return ""
	}
	return "; often said: " + strings.Join(parts, ", ")
}

func facts(c lab.Counts) string {
	var b strings.Builder
	if c.Duplicates > 0 {
		b.WriteString(", " + strconv.Itoa(c.Duplicates) + " too many")
	}
	if c.LostUpdates > 0 {
		b.WriteString(", " + strconv.Itoa(c.LostUpdates) + " written over")
	}
	switch {
	case c.Duplicates > 0: // the columns say it
	case c.LedgerDuplicates == 1:
		b.WriteString(", 1 entry too many")
	case c.LedgerDuplicates > 1:
		b.WriteString(", " + strconv.Itoa(c.LedgerDuplicates) + " entries too many")
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

// failure names the check that did not hold, or counts them: the report ends with all of them.
func (p *page) failure(r *lab.Result) string {
	text, n := "", 0
	for _, c := range r.Checks {
		switch {
		case c.Held:
			continue
		case c.Kind == "invariant", c.Kind == "assert":
			text = ": " + p.prose(c.Name)
		default:
			text = ": " + p.prose(c.Name) + " " + p.value(c.Actual) + ", expected " + p.value(c.Expected)
		}
		n++
	}
	if n > 1 {
		return " (" + strconv.Itoa(n) + ")"
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
