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

// comparison writes in which settings the rows of a block differ, and what came out otherwise than in the first.
func (p *page) comparison(d *lab.Document, b *block) {
	c := d.Comparison
	if c == nil {
		return
	}
	if len(c.Settings) > 0 {
		p.gap()
		p.line("  " + p.paint(dim, "what differs"))
		for _, s := range c.Settings {
			var parts []string
			for _, value := range distinct(s.Values) {
				var who []string
				for i, v := range s.Values {
					if v == value {
						who = append(who, rowLetter(i))
					}
				}
				text := p.text(value)
				if value == "" {
					text = "not set"
				}
				parts = append(parts, text+" in "+strings.Join(who, " "))
			}
			p.wrapped(plain, "  ", p.text(s.Path)+": "+strings.Join(parts, ", "), 4)
		}
	}
	if len(c.Rows) > 1 {
		p.gap()
		p.line("  " + p.paint(dim, "against A"))
	}
	for i, row := range c.Rows {
		if i == 0 {
			continue
		}
		text := "the same"
		if len(row.Differences) > 0 {
			text = p.prose(strings.Join(row.Differences, ", "))
		}
		p.wrapped(plain, "  "+rowLetter(i)+"  ", text, 5)
	}
	p.hangs(b, c)
}

// hangs writes which numbers of a row hang on the seed.
func (p *page) hangs(b *block, c *lab.Comparison) {
	if len(c.Rows) == 0 || c.Rows[0].Varies == nil {
		return
	}
	p.gap()
	p.line("  " + p.paint(dim, fmt.Sprintf("what hangs on the seed, of %d", len(b.ran))))
	for i, row := range c.Rows {
		text := "nothing"
		if len(row.Varies) > 0 {
			text = p.prose(strings.Join(row.Varies, "; "))
		}
		p.wrapped(plain, "  "+rowLetter(i)+"  ", text, 5)
	}
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

// changes writes what is different between two saved results.
func (p *page) changes(d *lab.Document) {
	c := d.Comparison
	if c == nil || len(c.Rows) > 0 {
		return
	}
	for _, x := range c.Changes {
		p.gap()
		name := p.text(x.Scenario) + ":" + p.text(x.ID)
		if x.Seed != d.Run.Seed {
			name += p.mid + "seed " + strconv.FormatInt(x.Seed, 10)
		}
		p.wrapped(plain, p.paint(alarm, "CHANGED")+"  ", name, 9)
		for _, what := range x.What {
			p.wrapped(plain, "  ", p.prose(what), 4)
		}
	}
	p.gap()
	if len(c.Changes) == 0 {
		p.line(fmt.Sprintf("nothing changed: %s in both", count(c.Compared, "trial")))
		return
	}
	p.line(fmt.Sprintf("%s changed, %s in both", count(len(c.Changes), "trial"), count(c.Compared, "trial")))
}
