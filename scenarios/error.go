package scenarios

import (
	"fmt"
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
		fmt.Fprintf(&b, "%s: ", e.At)
	}
	b.WriteString(printable(e.What))
	if line, ok := e.line(); ok {
		fmt.Fprintf(&b, "\n  %4d | %s", e.At.line, line)
		fmt.Fprintf(&b, "\n       | %s^", strings.Repeat(" ", max(0, min(e.At.column-1, len([]rune(line))))))
	}
	if e.Hint != "" {
		b.WriteString("\n  " + printable(e.Hint))
	}
	return b.String()
}

// line returns the source line that e is about, cut to what fits a terminal.
func (e *Error) line() (string, bool) {
	if e.At.line < 1 || len(e.Source) == 0 {
		return "", false
	}
	lines := strings.Split(string(e.Source), "\n")
	if e.At.line > len(lines) {
		return "", false
	}
	runes := []rune(printable(strings.TrimRight(lines[e.At.line-1], "\r")))
	if len(runes) > 110 {
		runes = append(runes[:110], '…')
	}
	return string(runes), true
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

// Nearest returns the known word that a mistyped one most likely stands for, or "".
func Nearest(word string, known []string) string {
	best, distance := "", max(2, len(word)/3)+1
	for _, k := range known {
		if d := editDistance(word, k); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		for _, k := range known {
			if len(word) >= 4 && (strings.HasPrefix(k, word) || strings.Contains(k, word)) {
				return k
			}
		}
	}
	return best
}

// editDistance is the least number of single-letter changes, a swap of neighbours counting as one.
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
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
