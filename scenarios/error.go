package scenarios

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Error says what is wrong with a scenario, where, and what would be right.
type Error struct {
	At     position
	Source []byte // the file, to show the line; nil where there is none
	What   string // what is wrong
	Hint   string // what to do
}

// Error returns file:line:column, what is wrong, the line with a caret, and what to do.
func (e *Error) Error() string {
	var b strings.Builder
	if e.At.file != "" {
		fmt.Fprintf(&b, "%s: ", printable(e.At.String()))
	}
	b.WriteString(printable(cut(e.What, mostText)))
	if line, caret, ok := e.excerpt(); ok {
		number := fmt.Sprintf("%4d", e.At.line)
		fmt.Fprintf(&b, "\n  %s | %s", number, line)
		fmt.Fprintf(&b, "\n  %*s | %s^", len(number), "", blank([]rune(line)[:caret]))
	}
	if e.Hint != "" {
		b.WriteString("\n  " + printable(cut(e.Hint, mostText)))
	}
	return b.String()
}

// Place returns the file that e is about, and the line in it; 0 where it is about none.
func (e *Error) Place() (file string, line int) { return e.At.file, e.At.line }

// excerpt returns the source line that e is about, and how far into it the caret stands. Of a long
// line it is the part around the caret that fits a terminal.
func (e *Error) excerpt() (line string, caret int, ok bool) {
	if e.At.line < 1 || len(e.Source) == 0 {
		return "", 0, false
	}
	lines := strings.Split(string(e.Source), "\n")
	if e.At.line > len(lines) {
		return "", 0, false
	}
	const wide, lead = 110, 60
	runes := []rune(printable(strings.TrimRight(lines[e.At.line-1], "\r")))
	caret = max(0, min(e.At.column-1, len(runes)))
	if caret > wide-10 {
		runes = append([]rune{'…'}, runes[caret-lead:]...)
		caret = lead + 1
	}
	if len(runes) > wide {
		runes = append(runes[:wide:wide], '…')
	}
	return string(runes), caret, true
}

// blank is what takes as many columns on a terminal as a text.
func blank(text []rune) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Mn, r):
			return -1
		case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana):
			return '\u3000'
		}
		return ' '
	}, string(text))
}

// printable keeps text from a file from steering the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return '�'
		}
		return r
	}, s)
}

// quote puts a word from a file between quotes, cut to what a message has room for.
func quote(word string) string { return strconv.Quote(short(word)) }

func short(word string) string { return cut(word, 80) }

// mostText bounds what a message says, whatever is in the file.
const mostText = 500

func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return text
}

// suggest returns ` did you mean "x"?` for the nearest of the known words, or the list of them
// when nothing is near.
func suggest(word string, known []string) string {
	if near := Nearest(word, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(known) == 0 {
		return ""
	}
	return "one of: " + strings.Join(known, ", ")
}

// Nearest returns the known word that a mistyped one most likely stands for, or "". Capitals and
// underscores are slips of the pen.
func Nearest(word string, known []string) string {
	slips := strings.NewReplacer("_", "-", " ", "-")
	typed := slips.Replace(strings.ToLower(word))
	// In a short word one slip is as much as can be told from another word.
	distance := max(2, len(typed)/3) + 1
	switch {
	case len(typed) < 4:
		distance = min(2, len(typed))
	case len(typed) > longest:
		return ""
	}
	best := ""
	for _, k := range known {
		if d := editDistance(typed, slips.Replace(strings.ToLower(k))); d < distance {
			best, distance = k, d
		}
	}
	if best == "" && len(typed) >= 4 {
		for _, k := range known {
			if strings.Contains(k, typed) {
				return k
			}
		}
	}
	return best
}

// longest is the length of the longest word that is worth a guess.
const longest = 64

// editDistance is the least number of single-letter changes, a swap of neighbours counting as one.
func editDistance(a, b string) int {
	if len(a) > longest || len(b) > longest {
		return longest
	}
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
