package report

import (
	"fmt"
	"html"
	"io"
	"regexp"
	"strconv"
	"strings"

	"retrylab/internal/lab"
)

// Markdown is GitHub's dialect of it, for summaries of a job and comments: what must be seen first, the
// rest folded away.
var Markdown = Format{
	Name:  "markdown",
	Doc:   "GitHub-flavoured Markdown: the table, the failures, the rest folded, for job summaries",
	Write: writeMarkdown,
}

// markdownWidth is how many columns a picture takes: what a page shows without a scroll bar.
const markdownWidth = 100

func writeMarkdown(w io.Writer, d *lab.Document, o Options) error {
	page, _ := markdownPage(d, o)
	if _, err := w.Write(page); err != nil {
		return fmt.Errorf("write Markdown: %w", err)
	}
	return nil
}

// markdownPage returns the page, and the length of what must be seen of it: the tables and the failures.
func markdownPage(d *lab.Document, o Options) (text []byte, seen int) {
	m := &markdown{page: &page{setting: newSetting(Options{Width: markdownWidth, Unicode: true})}}
	blocks := blocksOf(d)
	for _, b := range blocks {
		m.heading(d, b)
		sweeps := sweepsOf(d, b)
		for _, s := range sweeps {
			m.sweep(s)
		}
		for _, text := range m.tied(b) {
			m.printf("\n%s\n", paragraph(text))
		}
		if sweeps == nil {
			m.effects(b)
		}
		m.compared(d, b)
	}
	m.saved(d)
	m.failures(d)
	seen = m.buf.Len()
	for _, b := range blocks {
		m.folded(b, o.Timeline != "never", sweepsOf(d, b) != nil)
	}
	m.skipped(d)
	m.summary(d, blocks)
	return m.buf.Bytes(), seen
}

// markdown is a page of Markdown. What comes from a file goes through code, inline or paragraph, or into a fence.
type markdown struct{ *page }

func (m *markdown) printf(format string, args ...any) { fmt.Fprintf(&m.buf, format, args...) }

func (m *markdown) heading(d *lab.Document, b *block) {
	m.gap()
	m.printf("### %s", code(b.info.Name))
	if b.info.Title != "" {
		m.printf(": %s", inline(b.info.Title))
	}
	m.printf("\n\n%s\n", paragraph(m.run(d, b)))
	for _, set := range d.Run.Set {
		m.printf("\nchanged: %s\n", code(set))
	}
}

// effects is the table with a row per configuration. Its columns are those of the table for people.
func (m *markdown) effects(b *block) {
	fields := m.cells(b)
	m.gap()
	row := func(cell func(f *field) string) {
		for i := range fields {
			m.printf("| %s ", cell(&fields[i]))
		}
		m.printf("|\n")
	}
	row(func(f *field) string { return inline(f.head) })
	row(func(f *field) string {
		if f.right {
			return "---:"
		}
		return "---"
	})
	for i, r := range b.results {
		row(func(f *field) string {
			cell := inline(f.cells[i])
			if f.head == "VERDICT" && (r.Verdict == lab.NotAsExpected || r.Verdict == lab.Inconclusive) {
				return "**" + cell + "**"
			}
			return cell
		})
	}
	for _, f := range fields {
		if note := m.footnote(f.head, b.results); note != "" {
			m.printf("\n%s\n", paragraph(note))
		}
	}
}

// sweep is the grid of a sweep, with what its marks mean.
func (m *markdown) sweep(s *sweep) {
	m.gap()
	title := m.sweepTitle(s)
	if s.name != "" {
		title = s.name + ": " + title
	}
	m.printf("%s\n\n| %s ", paragraph(title), inline(lastStep(s.down.Path)))
	for _, across := range s.across.Values {
		m.printf("| %s ", inline(across))
	}
	m.printf("|\n%s|\n", strings.Repeat("| ---: ", 1+len(s.across.Values)))
	for _, down := range s.down.Values {
		m.printf("| %s ", inline(down))
		for _, across := range s.across.Values {
			c := s.cell(down, across)
			text := inline(c.orders + c.marks)
			if c.more {
				text = "**" + text + "**"
			}
			m.printf("| %s ", text)
		}
		m.printf("|\n")
	}
	if legend := s.legend(); legend != "" {
		m.printf("\n%s\n", paragraph(legend))
	}
}

// compared writes what a comparison says of the rows of a block as the table for people has it.
func (m *markdown) compared(d *lab.Document, b *block) {
	p := &page{setting: m.setting}
	p.comparison(d, b)
	if text := strings.Trim(p.buf.String(), "\n"); text != "" {
		m.gap()
		m.printf("%s\n", fenced(strings.Split(text, "\n")))
	}
}

// saved lists what changed between two saved results.
func (m *markdown) saved(d *lab.Document) {
	list, end := m.changed(d)
	if end == "" {
		return
	}
	m.gap()
	m.printf("### Two saved results\n")
	if settings := m.contrasts(d.Comparison); len(settings) > 0 {
		m.printf("\nasked for otherwise:\n\n")
		for _, s := range settings {
			m.printf("- %s: %s\n", code(s.path), inline(strings.Join(s.parts, ", ")))
		}
	}
	for _, x := range list {
		m.printf("\n**%s** %s\n\n", x.word, code(x.trial))
		for _, what := range x.what {
			m.printf("- %s\n", paragraph(what))
		}
	}
	m.printf("\n%s\n", end) // nothing of it is from a file
}

// failures lists what somebody has to look at.
func (m *markdown) failures(d *lab.Document) {
	headed := false
	for _, f := range failuresOf(d) {
		r := f.result
		if !headed {
			m.gap()
			m.printf("### What did not hold\n")
			headed = true
		}
		word := "NOT HELD"
		if r.Verdict == lab.Inconclusive {
			word = "INCONCLUSIVE"
		}
		m.gap()
		m.printf("**%s** %s\n\n", word, code(m.failed(d, f)))
		if r.Why != "" {
			m.printf("- %s\n", paragraph(r.Why))
		}
		if r.Defect {
			m.printf("- This is a defect of the lab itself; please report it.\n")
		}
		for _, c := range f.checks {
			if c.Undefined {
				m.printf("- %s %s: %s", paragraph(c.Kind), code(c.Name), inline(c.Actual))
			} else {
				m.printf("- %s %s: expected %s, actual %s", paragraph(c.Kind), code(c.Name), code(m.value(c.Expected)), code(m.value(c.Actual)))
			}
			if c.File != "" {
				where := c.File
				if c.Line > 0 {
					where += ":" + strconv.Itoa(c.Line)
				}
				m.printf(" (%s)", code(where))
			}
			m.printf("\n")
			for _, e := range c.Evidence {
				m.printf("  - %s\n", code(e))
			}
		}
		if again := repeat(d, r); again != "" {
			m.printf("- again: %s\n", code(again))
		}
	}
}

// folded is the rest of a scenario: what it came to, the rows where a grid stands above, the picture, and every
// check that held.
func (m *markdown) folded(b *block, picture, rows bool) {
	m.gap()
	// This line is HTML, which takes no escapes of Markdown.
	m.printf("<details><summary>More of scenario %s</summary>\n", html.EscapeString(escape(b.info.Name)))
	for _, text := range append([]string{b.info.Shown}, b.info.Notes...) {
		if text != "" {
			m.printf("\n%s\n", paragraph(text))
		}
	}
	if rows {
		m.effects(b)
	}
	if r := b.focus(); r != nil && picture {
		m.printf("\n%s\n", fenced(m.picture(b, r)))
	}
	headed := false
	for _, r := range b.results {
		var held []string
		for _, c := range r.Checks {
			if c.Held {
				text := code(c.Name) + " (" + inline(m.value(c.Actual)) + ")"
				if c.Kind == "expect" {
					text = code(c.Name) + " " + code(m.value(c.Actual))
				}
				held = append(held, text)
			}
		}
		if len(held) == 0 {
			continue
		}
		if !headed {
			m.printf("\nWhat held:\n\n")
			headed = true
		}
		m.printf("- %s: %s\n", code(m.value(r.ID)), strings.Join(held, ", "))
	}
	m.printf("\n</details>\n")
}

func (m *markdown) skipped(d *lab.Document) {
	if len(d.Skipped) == 0 {
		return
	}
	m.gap()
	m.printf("<details><summary>%s</summary>\n\n", lab.Count(len(d.Skipped), "skip"))
	for _, s := range d.Skipped {
		name := s.Scenario
		if s.ID != "" {
			name += ":" + s.ID
		}
		m.printf("- %s: %s\n", code(name), inline(m.value(s.Reason)))
	}
	m.printf("\n</details>\n")
}

// summary ends with what the table for people ends with.
func (m *markdown) summary(d *lab.Document, blocks []*block) {
	end := &page{setting: m.setting}
	end.summary(d, len(blocks) > 1 || len(d.Scenarios) > 1)
	text := strings.Join(strings.Fields(end.buf.String()), " ")
	if text == "" {
		return
	}
	m.gap()
	m.printf("%s\n", text) // nothing of it is from a file
}

// marks are the characters that may mean something to Markdown, HTML or GitHub within a line, as they are
// written where they shall mean nothing. GitHub makes links of names and numbers afterwards, whatever
// stands before them: a comment behind the mark prevents that.
var marks = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "{", `\{`, "}", `\}`, "[", `\[`, "]", `\]`, "~", `\~`, "|", `\|`, "$", `\$`,
	"!", `\!`, "^", `\^`, ":", `\:`, "www.", `www\.`, "WWW.", `WWW\.`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "@", "@<!-- -->", "#", `\#<!-- -->`,
)

// leading finds what may mean something at the beginning of a line alone: a list, a rule, a heading.
var leading = regexp.MustCompile(`^(\d*)([-+=.)])`)

// inline is text from a file inside a line, in which nothing is markup.
func inline(raw string) string { return marks.Replace(strings.Join(strings.Fields(escape(raw)), " ")) }

// paragraph is inline at the beginning of a line.
func paragraph(raw string) string { return leading.ReplaceAllString(inline(raw), `$1\$2`) }

// code is text from a file as code, in which nothing is markup but the end of it: as many backticks as
// it begins with. It stands in no table, where a bar would end the cell all the same.
func code(raw string) string {
	text := strings.Join(strings.Fields(escape(raw)), " ")
	fence := strings.Repeat("`", longest(text, '`')+1)
	if text == "" || strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " " // is taken away by whoever reads it
	}
	return fence + text + fence
}

// fenced is a block of lines as code.
func fenced(lines []string) string {
	fence := strings.Repeat("`", max(2, longest(strings.Join(lines, "\n"), '`'))+1)
	return fence + "text\n" + strings.Join(lines, "\n") + "\n" + fence
}

// longest is the length of the longest run of a character.
func longest(text string, of rune) (most int) {
	run := 0
	for _, r := range text {
		if run++; r != of {
			run = 0
		}
		most = max(most, run)
	}
	return most
}
