package scenarios

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
)

// wordings puts what the parser says into the words of somebody who writes a scenario and not a
// parser. The first whose part is in the message holds.
var wordings = []struct{ part, what, hint string }{
	{"tab character", "a tab stands where only spaces may", "indent with spaces"},
	{"cannot start any token", "a tab stands where only spaces may", "indent with spaces"},
	{"corresponding to ']'", "this ] closes nothing", ""},
	{"corresponding to '}'", "this } closes nothing", ""},
	{"end token '}'", "this { has no closing }", ""},
	{"end token ']'", "this [ has no closing ]", ""},
	{"',' or '}' must be specified", "a comma or a closing } is missing before this", ""},
	{"',' or ']' must be specified", "a comma or a closing ] is missing before this", ""},
	{"expected sequence element, but found ','", "there is nothing before this comma", ""},
	{"double-quoted text", "this text has no closing double quote", ""},
	{"single-quoted text", "this text has no closing single quote", "a single quote inside is written twice: 'it''s slow'"},
	{"key-value is pre-defined", "something stands behind the end of a value", "put the whole text in double quotes; a single quote inside single quotes is written twice: 'it''s slow'"},
	{"unknown escape character", "there is no such escape", `in double quotes a backslash is written \\`},
	{"escaped UTF-", "the escape is not complete", `in double quotes a backslash is written \\`},
	{"surrogate", "the escape is not complete", `in double quotes a backslash is written \\`},
	{"directive", "a value cannot begin with %", "put it in quotes"},
	{"block sequence entries", "a list cannot begin here", "begin it on the next line, each item with a dash"},
	{"sequence delimiter", "a list cannot begin here", "begin it on the next line, each item with a dash"},
	{"document separator", "--- and ... stand on lines of their own, between documents", ""},
	{"unexpected key name", "a key without a colon", "write key: value, with a space behind the colon"},
	{"non-map value", "a key without a colon", "write key: value, with a space behind the colon"},
	{"expected map key-value delimiter", "a key without a colon", "write key: value, with a space behind the colon"},
	{"implicit line break", "a key without a colon", "write key: value, with a space behind the colon"},
	{"invalid key for this map", "a key must be a plain word", ""},
	{"unexpected map key", "a key must be a plain word", ""},
	{"undefined map key", "there is no key before this colon", ""},
	{"anchor", "anchors and aliases are not allowed", anchorHint},
	{"alias", "anchors and aliases are not allowed", anchorHint},
	{"merge key", "merge keys are not allowed", mergeHint},
	{"tag", "YAML tags are not allowed", tagHint},
	{"multi-line content", "the text that belongs here is missing", "indent it below its key"},
}

const (
	anchorHint = "write the value out where it is needed; text that begins with & or * needs quotes"
	mergeHint  = "write the values out where they are needed"
	tagHint    = "leave it out; text that begins with ! needs quotes"
)

// syntaxError says why a file is no YAML.
func syntaxError(file string, data []byte, err error) *Error {
	var y yaml.Error
	if !errors.As(err, &y) || y.GetToken() == nil || y.GetToken().Position == nil {
		return &Error{At: position{file: file}, What: "the file cannot be read as YAML"}
	}
	message := y.GetMessage()
	p := y.GetToken().Position
	e := &Error{At: position{file: file, line: p.Line, column: p.Column}, Source: data}
	if strings.HasSuffix(message, "value is not allowed in this context") {
		misplaced(e, strings.Split(string(data), "\n"))
	}
	for _, w := range wordings {
		if e.What == "" && strings.Contains(message, w.part) {
			e.What, e.Hint = w.what, w.hint
		}
	}
	if _, rest, ok := strings.Cut(message, " is a reserved character"); ok && rest == "" {
		e.What, e.Hint = fmt.Sprintf("a value cannot begin with %s", strings.Trim(message[:3], "'")), "put it in quotes"
	}
	if lines := strings.Split(string(data), "\n"); e.At.line <= len(lines) {
		// Behind a broken escape the parser loses count.
		e.At.column = min(e.At.column, len([]rune(lines[e.At.line-1]))+1)
	}
	if e.What == "" {
		e.What = "YAML does not allow this here"
	}
	return e
}

// misplaced tells apart what the parser has one message for: text with a colon in it, a bracket too
// many, and lines that are not indented alike.
func misplaced(e *Error, lines []string) {
	if e.At.line < 1 || e.At.line > len(lines) {
		return
	}
	line := lines[e.At.line-1]
	rest := string(skip([]rune(line), e.At.column-1))
	begins := strings.TrimSpace(line) == rest // the place is the begin of the line
	switch {
	case strings.HasPrefix(rest, "]"), strings.HasPrefix(rest, "}"):
		e.What = fmt.Sprintf("this %s closes nothing", rest[:1])
		return
	case strings.HasPrefix(rest, "!"):
		e.What, e.Hint = "YAML tags are not allowed", tagHint
		return
	case strings.HasPrefix(rest, "&"), strings.HasPrefix(rest, "*"):
		e.What, e.Hint = "anchors and aliases are not allowed", anchorHint
		return
	case strings.Contains(rest, ": ") && !begins:
		e.At.column += len([]rune(rest[:strings.Index(rest, ": ")]))
		e.What, e.Hint = "a colon with a space behind it, inside of a value", "put the value in quotes"
		return
	}
	if begins {
		e.What, e.Hint = "this line is not indented like its neighbours", "what belongs together begins in the same column"
		return
	}
	// The parser points at the value before the line that is indented too far.
	next := e.At.line + 1
	for next <= len(lines) && ignored(lines[next-1]) {
		next++
	}
	if next <= len(lines) && indent(lines[next-1]) > indent(line) {
		e.At.line, e.At.column = next, indent(lines[next-1])+1
		e.What, e.Hint = "this line is indented below a value", "what belongs together begins in the same column; a key has a value or lines below it, not both"
	}
}

// ignored reports whether a line is blank or a comment.
func ignored(line string) bool {
	text := strings.TrimSpace(line)
	return text == "" || strings.HasPrefix(text, "#")
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

func skip(runes []rune, n int) []rune { return runes[max(0, min(n, len(runes))):] }
