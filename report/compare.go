package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"retrylab/internal/lab"
)

// rowLetter is what the i-th row of a comparison is called for short: A to Z, AA, …
func rowLetter(i int) string {
	text := string(rune('A' + i%26))
	if i >= 26 {
		return rowLetter(i/26-1) + text
	}
	return text
}

// A contrast is a setting in which rows differ, in the words of a report.
type contrast struct {
	path   string
	values []string // of each row
	parts  []string // which rows have which
}

// contrasts are the settings in which the rows of a comparison differ, or what was asked for otherwise in two saved
// results.
func (p *page) contrasts(c *lab.Comparison) (out []contrast) {
	for _, s := range c.Settings {
		say := func(v string) string {
			if v == "" {
				return "not set"
			}
			return p.text(v)
		}
		var values []string
		who := map[string][]string{}
		for i, v := range s.Values {
			values = append(values, say(v))
			if c.OfSaved() && i < len(c.Sources) {
				who[v] = append(who[v], p.text(c.Sources[i]))
			} else {
				who[v] = append(who[v], rowLetter(i))
			}
		}
		out = append(out, contrast{p.text(s.Path), values, shared(distinct(s.Values), who, say)})
	}
	return out
}

// manyRows is how many rows are named one by one where one value is that of most of them.
const manyRows = 4

// shared says which rows have which value, those that most have last.
func shared(values []string, who map[string][]string, say func(string) string) (out []string) {
	all, most := 0, ""
	for _, v := range values {
		all += len(who[v])
		if len(who[v]) > len(who[most]) {
			most = v
		}
	}
	others := len(values) > 1 && len(who[most]) > manyRows && 2*len(who[most]) > all
	for _, v := range values {
		if v != most || !others {
			out = append(out, say(v)+" in "+strings.Join(who[v], " "))
		}
	}
	if others {
		out = append(out, say(most)+" in all others")
	}
	return out
}

// writeContrasts writes them, one value on a line where they are long.
func (p *page) writeContrasts(head string, list []contrast) {
	if len(list) == 0 {
		return
	}
	p.gap()
	p.line("  " + p.paint(dim, head))
	for _, s := range list {
		if line := s.path + ": " + strings.Join(s.parts, ", "); width(line)+2 <= p.width {
			p.line("  " + line)
			continue
		}
		p.wrapped(plain, "  ", s.path, 4)
		for _, part := range s.parts {
			p.wrapped(plain, "    ", part, 6)
		}
	}
}

// A lettered is what is said of rows of a comparison.
type lettered struct {
	letters []string
	text    string
}

// gathered puts the rows of which the same is said behind the first of them.
func gathered(list []lettered) (out []lettered) {
	at := map[string]int{}
	for _, l := range list {
		if i, again := at[l.text]; again {
			out[i].letters = append(out[i].letters, l.letters...)
			continue
		}
		at[l.text] = len(out)
		out = append(out, l)
	}
	return out
}

// against are the rows of a comparison but the first, with what came out otherwise than in that. Rows that came out
// alike stand together.
func (p *page) against(c *lab.Comparison) (out []lettered) {
	for i, row := range c.Rows {
		if i == 0 {
			continue
		}
		text := "the same"
		if len(row.Differences) > 0 {
			text = p.prose(strings.Join(row.Differences, ", "))
		}
		out = append(out, lettered{[]string{rowLetter(i)}, text})
	}
	return gathered(out)
}

// hanging are the rows of a comparison with the numbers that hang on the seed; none where nobody asked.
func (p *page) hanging(c *lab.Comparison) (out []lettered) {
	if len(c.Rows) == 0 || c.Rows[0].Varies == nil {
		return nil
	}
	for i, row := range c.Rows {
		text := "nothing"
		if len(row.Varies) > 0 {
			text = p.prose(strings.Join(row.Varies, "; "))
		}
		out = append(out, lettered{[]string{rowLetter(i)}, text})
	}
	return gathered(out)
}

// overlapping is what ≈ means in a comparison.
const overlapping = "≈ the ranges over the seeds overlap: no difference"

// overlaps reports whether a comparison says so of any number.
func overlaps(c *lab.Comparison) bool {
	for _, row := range c.Rows {
		if slices.ContainsFunc(row.Differences, func(d string) bool { return strings.Contains(d, "≈") }) {
			return true
		}
	}
	return false
}

// comparison writes in which settings the rows of a block differ, and what came out otherwise than in the first.
func (p *page) comparison(d *lab.Document, b *block) {
	c := d.Comparison
	if c == nil {
		return
	}
	name, first := func(letters []string) string { return strings.Join(letters, " ") }, "A"
	if s := sweepOf(d, b); s != nil { // a grid shows what differs, and no letters
		name = func(letters []string) string { return p.cellNames(s, b, letters) }
		first = name([]string{"A"})
	} else {
		p.writeContrasts("what differs", p.contrasts(c))
	}
	rows := func(head string, list []lettered) {
		if len(list) == 0 {
			return
		}
		p.gap()
		p.wrapped(dim, "  ", head, 4)
		for _, l := range list {
			lead := "  " + name(l.letters) + "  "
			if width(lead) <= 16 {
				p.wrapped(plain, lead, l.text, 5)
				continue
			}
			p.wrapped(plain, "  ", name(l.letters), 4)
			p.wrapped(plain, "     ", l.text, 7)
		}
	}
	rows("against "+first, p.against(c))
	if overlaps(c) {
		p.wrapped(dim, "  ", p.prose(overlapping), 4)
	}
	rows(fmt.Sprintf("what hangs on the seed, of %d", len(b.ran)), p.hanging(c))
}

// distinct are the values in the order in which they first stand.
func distinct(values []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, v := range values {
		if !seen[v] {
			out = append(out, v)
		}
		seen[v] = true
	}
	return out
}

// A change is what is said of one trial of two saved results, or of several seeds of it.
type change struct {
	word  string // CHANGED, NEW, GONE, INCONCLUSIVE
	trial string
	what  []string
}

var changeWords = map[string]string{
	lab.ChangeMeasured: "CHANGED", lab.ChangeNew: "NEW", lab.ChangeGone: "GONE", lab.ChangeOpen: "INCONCLUSIVE",
}

// changed are the trials that came out otherwise, and the sentence that counts them. It has none where results
// were held against each other and not two runs of them.
func (p *page) changed(d *lab.Document) (out []change, end string) {
	c := d.Comparison
	if !c.OfSaved() {
		return nil, ""
	}
	type group struct {
		lab.Change
		seeds []int64
	}
	var groups []*group
	byText := map[string]*group{}
	for _, x := range slices.Concat(c.Changes, c.Open) {
		key := fmt.Sprintf("%q", append([]string{x.Scenario, x.ID, x.Kind}, x.What...))
		g := byText[key]
		if g == nil {
			g = &group{Change: x}
			groups, byText[key] = append(groups, g), g
		}
		g.seeds = append(g.seeds, x.Seed)
	}
	several := seedsOf(c)
	for _, g := range groups {
		name := p.text(g.Scenario) + ":" + p.text(g.ID)
		if several[[2]string{g.Scenario, g.ID}] > 1 || g.seeds[0] != d.Run.Seed {
			name += p.mid + seedNames(g.seeds)
		}
		var what []string
		for _, w := range g.What {
			what = append(what, p.prose(w))
		}
		out = append(out, change{changeWords[g.Kind], name, what})
	}
	return out, changeTally(c)
}

// seedsOf counts the seeds of each configuration that is in either of two saved results.
func seedsOf(c *lab.Comparison) map[[2]string]int {
	out := map[[2]string]int{}
	for _, x := range slices.Concat(c.Changes, c.Open) {
		out[[2]string{x.Scenario, x.ID}]++
	}
	for _, x := range c.Same {
		out[[2]string{x.Scenario, x.ID}]++
	}
	return out
}

// seedNames names seeds: a range where they are one, and of many how many there are.
func seedNames(seeds []int64) string {
	seeds = slices.Clone(seeds)
	slices.Sort(seeds)
	low, high := seeds[0], seeds[len(seeds)-1]
	switch {
	case len(seeds) == 1:
		return "seed " + strconv.FormatInt(low, 10)
	case high-low == int64(len(seeds)-1):
		return fmt.Sprintf("seeds %d to %d", low, high)
	case len(seeds) <= 2*manyRows:
		var names []string
		for _, seed := range seeds {
			names = append(names, strconv.FormatInt(seed, 10))
		}
		return "seeds " + strings.Join(names, " ")
	}
	return fmt.Sprintf("%d seeds from %d to %d", len(seeds), low, high)
}

// changeTally counts what has become of the trials of two saved results.
func changeTally(c *lab.Comparison) string {
	of := map[string]int{}
	for _, x := range c.Changes {
		of[x.Kind]++
	}
	text := lab.Count(of[lab.ChangeMeasured]+of[lab.ChangeOpen], "trial") + " changed"
	if len(c.Changes) == of[lab.ChangeNew]+of[lab.ChangeGone] {
		text = "nothing changed"
	}
	if n := of[lab.ChangeNew]; n > 0 {
		text += fmt.Sprintf(", %d new", n)
	}
	if n := of[lab.ChangeGone]; n > 0 {
		text += fmt.Sprintf(", %d gone", n)
	}
	if len(c.Changes) == 0 {
		text += ":"
	} else {
		text += ","
	}
	text += " " + lab.Count(c.Compared, "trial") + " in both"
	if n := len(c.Open); n > 0 {
		text += fmt.Sprintf(", %d of them inconclusive both times", n)
	}
	return text
}

// changes writes what is different between two saved results: first what was asked for otherwise.
func (p *page) changes(d *lab.Document) {
	list, end := p.changed(d)
	if end == "" {
		return
	}
	p.writeContrasts("asked for otherwise", p.contrasts(d.Comparison))
	for _, x := range list {
		p.gap()
		st := alarm
		if x.word != "CHANGED" {
			st = warn
		}
		p.wrapped(plain, p.paint(st, x.word)+"  ", x.trial, 9)
		for _, what := range x.what {
			p.wrapped(plain, "  ", what, 4)
		}
	}
	p.gap()
	p.wrapped(plain, "", end, 2)
	c := d.Comparison
	if after := c.Sources[len(c.Sources)-1]; len(c.Changes) > 0 && strings.HasSuffix(after, ".json") {
		p.wrapped(plain, "", "next: retrylab report "+quoted(p.text(after)), 2)
	}
}
