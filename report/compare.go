package report

import (
	"fmt"
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
	text   string   // which row has which
}

// contrasts are the settings in which the rows of a comparison differ.
func (p *page) contrasts(c *lab.Comparison) (out []contrast) {
	for _, s := range c.Settings {
		say := func(v string) string {
			if v == "" {
				return "not set"
			}
			return p.text(v)
		}
		var values, parts []string
		for _, v := range s.Values {
			values = append(values, say(v))
		}
		for _, value := range distinct(s.Values) {
			var who []string
			for i, v := range s.Values {
				if v == value {
					who = append(who, rowLetter(i))
				}
			}
			parts = append(parts, say(value)+" in "+strings.Join(who, " "))
		}
		out = append(out, contrast{p.text(s.Path), values, strings.Join(parts, ", ")})
	}
	return out
}

// A lettered is what is said of one row of a comparison.
type lettered struct{ letter, text string }

// against are the rows of a comparison but the first, with what came out otherwise than in that.
func (p *page) against(c *lab.Comparison) (out []lettered) {
	for i, row := range c.Rows {
		if i == 0 {
			continue
		}
		text := "the same"
		if len(row.Differences) > 0 {
			text = p.prose(strings.Join(row.Differences, ", "))
		}
		out = append(out, lettered{rowLetter(i), text})
	}
	return out
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
		out = append(out, lettered{rowLetter(i), text})
	}
	return out
}

// comparison writes in which settings the rows of a block differ, and what came out otherwise than in the first.
func (p *page) comparison(d *lab.Document, b *block) {
	c := d.Comparison
	if c == nil {
		return
	}
	if settings := p.contrasts(c); len(settings) > 0 {
		p.gap()
		p.line("  " + p.paint(dim, "what differs"))
		for _, s := range settings {
			p.wrapped(plain, "  ", s.path+": "+s.text, 4)
		}
	}
	rows := func(head string, list []lettered) {
		if len(list) == 0 {
			return
		}
		p.gap()
		p.line("  " + p.paint(dim, head))
		for _, l := range list {
			p.wrapped(plain, "  "+l.letter+"  ", l.text, 5)
		}
	}
	rows("against A", p.against(c))
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

// A change is a trial that came out otherwise in the second of two saved results.
type change struct {
	trial string
	what  []string
}

// changed are the trials that came out otherwise, and the sentence that counts them. It has none where results
// were held against each other and not two runs of them.
func (p *page) changed(d *lab.Document) (out []change, end string) {
	c := d.Comparison
	if c == nil || len(c.Rows) > 0 {
		return nil, ""
	}
	for _, x := range c.Changes {
		name := p.text(x.Scenario) + ":" + p.text(x.ID)
		if x.Seed != d.Run.Seed {
			name += p.mid + "seed " + strconv.FormatInt(x.Seed, 10)
		}
		var what []string
		for _, w := range x.What {
			what = append(what, p.prose(w))
		}
		out = append(out, change{name, what})
	}
	if len(out) == 0 {
		return nil, fmt.Sprintf("nothing changed: %s in both", count(c.Compared, "trial"))
	}
	return out, fmt.Sprintf("%s changed, %s in both", count(len(out), "trial"), count(c.Compared, "trial"))
}

// changes writes what is different between two saved results.
func (p *page) changes(d *lab.Document) {
	list, end := p.changed(d)
	for _, x := range list {
		p.gap()
		p.wrapped(plain, p.paint(alarm, "CHANGED")+"  ", x.trial, 9)
		for _, what := range x.what {
			p.wrapped(plain, "  ", what, 4)
		}
	}
	if end != "" {
		p.gap()
		p.line(end)
	}
}
