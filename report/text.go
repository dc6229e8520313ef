package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"retrylab/internal/lab"
)

// style is what a piece of text means. Colour only repeats what a word or a symbol says.
type style string

// The styles, as SGR parameters.
const (
	plain style = ""
	bold  style = "1"
	dim   style = "2"
	good  style = "32"
	bad   style = "31"
	alarm style = "1;31"
	warn  style = "33"
)

// setting is how one document is printed: the options, made definite.
type setting struct {
	width          int
	color, unicode bool
	wide, verbose  bool
	contrast       bool // nothing is dim: it is read from the back of a room
	glyphs
}

// glyphs are the characters that differ between Unicode and plain ASCII. Those of a lane take one
// column each.
type glyphs struct {
	open, close, both          string // a try or a layer begins, a layer ends, one ends as the next begins
	rule, wait                 string // between, idle
	ok, other, gaveUp          string // how a try ended
	commit, noEffect, deaf     string // how an arrival ended; nobody waits for the answer
	extra                      string // an effect beyond the wanted one
	fault, goesOn              string
	mid, cross, arrow, to, cut string
	levels, strip              []string // how full a part of a bar is, from nothing on; the same of a bar of one line
}

var unicodeGlyphs = glyphs{
	open: "├", close: "┤", both: "┼", rule: "─", wait: "╌",
	ok: "●", other: "○", gaveUp: "✗",
	commit: "●", noEffect: "◌", deaf: "⊘", extra: "◆",
	fault: "⚡", goesOn: "…",
	mid: " · ", cross: "×", arrow: "→", to: "–", cut: "…",
	levels: []string{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
	strip:  []string{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
}

var asciiGlyphs = glyphs{
	open: "|", close: "|", both: "|", rule: "-", wait: ".",
	ok: "*", other: "o", gaveUp: "x",
	commit: "*", noEffect: "o", deaf: "~", extra: "@",
	fault: "!", goesOn: ">",
	mid: ", ", cross: "x", arrow: ">", to: "-", cut: "...",
	levels: []string{" ", ".", "#"},
	strip:  []string{" ", ".", ":", "-", "=", "+", "*", "#"},
}

// narrowest is the width below which nothing sensible can be drawn.
const narrowest = 40

func newSetting(o Options) *setting {
	s := &setting{width: o.Width, color: o.Color, unicode: o.Unicode, wide: o.Wide, verbose: o.Verbose, glyphs: asciiGlyphs}
	if s.width <= 0 {
		s.width = 80
	}
	s.width = max(s.width, narrowest)
	if s.unicode {
		s.glyphs = unicodeGlyphs
	}
	return s
}

// paint puts text into a style.
func (s *setting) paint(st style, text string) string {
	if !s.color || st == plain || text == "" || st == dim && s.contrast {
		return text
	}
	return "\x1b[" + string(st) + "m" + text + "\x1b[0m"
}

// text makes a string from a file, a database or a peer fit to print on one line: nothing in it can
// move the cursor, change a colour, turn the writing direction or hide. Every such string passes
// here.
func (s *setting) text(raw string) string {
	raw = escape(raw)
	if s.unicode {
		return raw
	}
	return ASCII(raw)
}

// prose is text whose line breaks mean nothing.
func (s *setting) prose(raw string) string { return s.text(strings.Join(strings.Fields(raw), " ")) }

// escape writes whatever is not printable as Go would. Terminals disagree on how wide joined emoji are,
// so what only chooses a look (joiners, variation selectors, skin tones) is left out, and flags are
// written with their letters. Bytes that are no UTF-8 become the replacement character, as they do in JSON.
func escape(raw string) string {
	clean := true
	for i := 0; i < len(raw) && clean; i++ {
		clean = raw[i] >= ' ' && raw[i] < 0x7f
	}
	if clean {
		return raw
	}
	var b strings.Builder
	for i := 0; i < len(raw); {
		r, size := utf8.DecodeRuneInString(raw[i:])
		switch {
		case r == '\u200c' || r == '\u200d' || r >= 0x1f3fb && r <= 0x1f3ff || unicode.Is(unicode.Variation_Selector, r):
		case r >= 0x1f1e6 && r <= 0x1f1ff:
			b.WriteRune('A' + r - 0x1f1e6)
		case unicode.IsPrint(r) || unicode.Is(unicode.Zs, r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		i += size
	}
	return b.String()
}

// spelled is how ASCII writes what texts of ours are likely to hold.
var spelled = map[rune]string{
	'–': "-", '—': "-", '…': "...", '‘': "'", '’': "'", '“': `"`, '”': `"`, '·': "-", '×': "x",
	'→': "->", '≤': "<=", '≥': ">=", '≠': "!=", '≈': "~", '÷': "/", '−': "-", '±': "+-", '\u00a0': " ",
	'₹': "Rs ", '€': "EUR ", '£': "GBP ", '¥': "JPY ",
}

// ASCII writes text in ASCII alone: what has a common spelling by that, the rest as Go escapes it.
func ASCII(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch word, ok := spelled[r]; {
		case r < utf8.RuneSelf:
			b.WriteRune(r)
		case ok:
			b.WriteString(word)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// pad fills text with blanks up to n columns.
func pad(text string, n int) string { return text + strings.Repeat(" ", max(0, n-width(text))) }

// shorten cuts text to n columns and shows that it did.
func (s *setting) shorten(text string, n int) string {
	if width(text) <= n {
		return text
	}
	if n < width(s.cut) {
		head, _ := split(text, n)
		return head
	}
	head, _ := split(text, n-width(s.cut))
	return strings.TrimRight(head, " ") + s.cut
}

// split divides text after at most n columns.
func split(text string, n int) (head, tail string) {
	used := 0
	for i, r := range text {
		w := runeWidth(r)
		if used+w > n {
			return text[:i], text[i:]
		}
		used += w
	}
	return text, ""
}

// wrap breaks text into lines of at most n columns, the first of at most first: between words where
// that is possible, else behind the punctuation of paths and settings.
func wrap(text string, first, n int) []string {
	var lines []string
	line, used := "", 0
	room := func() int {
		if len(lines) == 0 {
			return max(first, 2) // one character may take two columns
		}
		return max(n, 2)
	}
	for word := range strings.SplitSeq(text, " ") {
		if word == "" {
			continue
		}
		if line != "" && used+1+width(word) > room() {
			lines = append(lines, line)
			line, used = "", 0
		}
		for width(word) > room() {
			head, tail := split(word, room())
			if i := strings.LastIndexAny(head, "/=.,:;@-_") + 1; i > len(head)/2 {
				head, tail = word[:i], word[i:]
			}
			lines = append(lines, head)
			word = tail
		}
		if line != "" {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+width(word)
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}

// FoldLine breaks a line between words so that it fits n columns, where its words do. Further lines are indented by two
// blanks more than the first.
func FoldLine(line string, n int) string {
	blanks := len(line) - len(strings.TrimLeft(line, " "))
	indent := strings.Repeat(" ", blanks)
	var out []string
	for word := range strings.FieldsSeq(line) {
		last := len(out) - 1
		switch {
		case last < 0:
			out = append(out, indent+word)
		case width(out[last])+1+width(word) <= n:
			out[last] += " " + word
		default:
			out = append(out, indent+"  "+word)
		}
	}
	return strings.Join(out, "\n")
}

// flow sets parts side by side over as many lines of n columns as they need. A part is broken only
// where it is longer than a line.
func flow(parts []string, sep string, n int) []string {
	var lines []string
	line := ""
	for _, part := range parts {
		switch {
		case line == "":
			line = part
		case width(line)+width(sep)+width(part) <= n:
			line += sep + part
			continue
		default:
			lines = append(lines, line)
			line = part
		}
		if width(line) > n {
			broken := wrap(line, n, n)
			lines = append(lines, broken[:len(broken)-1]...)
			line = broken[len(broken)-1]
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// widest returns the width of the widest line of a cell.
func widest(cell string) int {
	n := 0
	for line := range strings.SplitSeq(cell, "\n") {
		n = max(n, width(line))
	}
	return n
}

// clock writes an instant of scenario time. In a picture of ten minutes and more fractions of a second are of no
// interest.
func clock(ms int64) string {
	d := lab.FromMillis(ms)
	if d.Abs() >= 10*time.Minute {
		d = d.Truncate(time.Second)
	}
	return lab.Clock(d)
}

// timeOfDay writes the time of day ms after begin (hh:mm:ss.mmm), or "" when begin is none.
func timeOfDay(begin string, ms int64, layout string) string {
	t, err := time.Parse("15:04:05.000", begin)
	if err != nil {
		if t, err = time.Parse("15:04:05", begin); err != nil {
			return ""
		}
	}
	return t.Add(lab.FromMillis(ms)).Format(layout)
}

// money writes an amount given in minor units, with decimals only where they say something.
func (s *setting) money(currency string, minor int64) string {
	sign := ""
	if minor < 0 {
		sign, minor = "-", -minor
	}
	out := sign + s.text(currency) + strconv.FormatInt(minor/100, 10)
	if minor%100 != 0 {
		out += fmt.Sprintf(".%02d", minor%100)
	}
	return out
}
