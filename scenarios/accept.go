package scenarios

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Accepted is what a configuration is to expect from now on: values of keys of its expect, as YAML on one line.
type Accepted struct {
	ID     string
	Values []Change // Path is the key
}

// Accept returns the source of the scenario with other expectations. A key that is there gets another value and
// keeps its comment, a key with an empty value is removed, and a configuration that expects nothing gets an
// expect of its own. Everything else stays as it is, byte for byte. An error says which place it cannot change.
func (s *Scenario) Accept(list []Accepted) ([]byte, error) {
	var edits []edit
	for _, a := range list {
		i := slices.IndexFunc(s.Variants, func(v Variant) bool { return v.ID == a.ID })
		if i < 0 {
			return nil, &Error{What: fmt.Sprintf("%s has no configuration %q", s.Name, a.ID)}
		}
		row := s.tree
		if variants := s.tree.get("variants"); variants != nil && len(variants.items) > 0 {
			row = variants.items[i]
		}
		expect := row.get("expect")
		if expect == nil || expect.kind != mapping {
			e, err := s.addExpect(row, a.Values)
			if err != nil {
				return nil, err
			}
			edits = append(edits, e)
			continue
		}
		for _, c := range a.Values {
			e, err := s.changeValue(expect, c)
			if err != nil {
				return nil, err
			}
			edits = append(edits, e)
		}
	}
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(b.from, a.from) })
	out := bytes.Clone(s.Source)
	for _, e := range edits {
		out = slices.Concat(out[:e.from], []byte(e.text), out[e.to:])
	}
	return out, nil
}

// edit replaces some bytes of a source.
type edit struct {
	from, to int
	text     string
}

// offset is where a position is in the source, in bytes. Columns count characters.
func (s *Scenario) offset(at position) int {
	from := 0
	for range at.line - 1 {
		n := bytes.IndexByte(s.Source[from:], '\n')
		if n < 0 {
			return len(s.Source)
		}
		from += n + 1
	}
	for range at.column - 1 {
		if from >= len(s.Source) {
			break
		}
		n := 1
		for from+n < len(s.Source) && s.Source[from+n]&0xc0 == 0x80 {
			n++
		}
		from += n
	}
	return from
}

// changeValue gives a key of expect another value.
func (s *Scenario) changeValue(expect *node, c Change) (edit, error) {
	k := slices.IndexFunc(expect.keys, func(e entry) bool { return e.name == c.Path })
	if k < 0 {
		return s.addKey(expect, c)
	}
	key := s.offset(expect.keys[k].at)
	colon := bytes.IndexByte(s.Source[key:], ':')
	if colon < 0 {
		return edit{}, s.refuse(expect.keys[k].at)
	}
	from := key + colon + 1
	flow := s.inFlow(expect)
	to := s.valueEnd(from, key, flow)
	if c.Value != "" {
		return edit{from: from, to: to, text: " " + c.Value}, nil
	}
	if flow { // with the comma that belongs to it
		if n := len(s.Source[to:]) - len(bytes.TrimLeft(s.Source[to:], " ")); to+n < len(s.Source) && s.Source[to+n] == ',' {
			return edit{from: key, to: to + n + 1 + spaces(s.Source[to+n+1:])}, nil
		}
		before := bytes.TrimRight(s.Source[:key], " ")
		return edit{from: len(bytes.TrimSuffix(before, []byte(","))), to: to}, nil
	}
	line := bytes.LastIndexByte(s.Source[:key], '\n') + 1
	if n := bytes.IndexByte(s.Source[to:], '\n'); n >= 0 {
		return edit{from: line, to: to + n + 1}, nil
	}
	return edit{from: line, to: len(s.Source)}, nil
}

func spaces(text []byte) int { return len(text) - len(bytes.TrimLeft(text, " ")) }

// inFlow reports whether a mapping is written between braces.
func (s *Scenario) inFlow(n *node) bool {
	if len(n.keys) == 0 {
		return true
	}
	first := bytes.TrimRight(s.Source[:s.offset(n.keys[0].at)], " \n")
	return bytes.HasSuffix(first, []byte("{"))
}

// valueEnd is where the value ends that begins behind a colon. key is where its key begins.
func (s *Scenario) valueEnd(from, key int, flow bool) int {
	src := s.Source
	i := from + spaces(src[from:])
	line := bytes.IndexByte(append(src[i:len(src):len(src)], '\n'), '\n') + i
	if i == line || src[i] == '#' {
		return s.blockEnd(line, key)
	}
	depth, quoted := 0, byte(0)
	for ; i < len(src); i++ {
		c := src[i]
		switch {
		case quoted != 0:
			if c == quoted {
				quoted = 0
			}
		case c == '\'' || c == '"':
			quoted = c
		case c == '[' || c == '{':
			depth++
		case depth > 0 && (c == ']' || c == '}'):
			depth--
		case depth > 0:
		case flow && (c == ',' || c == '}'), c == '\n', c == '#' && src[i-1] == ' ':
			return from + len(bytes.TrimRight(src[from:i], " "))
		}
	}
	return i
}

// blockEnd is the end of the list or the mapping that stands below a key: before the next line that is not deeper
// than the key. A list may begin as deep as its key.
func (s *Scenario) blockEnd(line, key int) int {
	src := s.Source
	indent := key - (bytes.LastIndexByte(src[:key], '\n') + 1)
	end := line
	for line < len(src) {
		next := line + 1
		stop := bytes.IndexByte(append(src[next:len(src):len(src)], '\n'), '\n') + next
		text := src[next:stop]
		deep := spaces(text)
		switch trimmed := bytes.TrimSpace(text); {
		case len(trimmed) == 0 || trimmed[0] == '#':
		case deep > indent, deep == indent && bytes.HasPrefix(trimmed, []byte("- ")):
			end = stop
		default:
			return end
		}
		line = stop
	}
	return end
}

// addKey adds a key to an expect that has none of that name, behind its last.
func (s *Scenario) addKey(expect *node, c Change) (edit, error) {
	if len(expect.keys) == 0 {
		return edit{}, s.refuse(expect.at)
	}
	last := expect.keys[len(expect.keys)-1]
	key := s.offset(last.at)
	colon := bytes.IndexByte(s.Source[key:], ':')
	if colon < 0 {
		return edit{}, s.refuse(last.at)
	}
	flow := s.inFlow(expect)
	end := s.valueEnd(key+colon+1, key, flow)
	if flow {
		return edit{from: end, to: end, text: ", " + c.Path + ": " + c.Value}, nil
	}
	if n := bytes.IndexByte(s.Source[end:], '\n'); n >= 0 {
		end += n // behind a comment
	} else {
		end = len(s.Source)
	}
	return edit{from: end, to: end, text: "\n" + strings.Repeat(" ", last.at.column-1) + c.Path + ": " + c.Value}, nil
}

// addExpect gives a row without expectations some, behind its last key.
func (s *Scenario) addExpect(row *node, values []Change) (edit, error) {
	if len(row.keys) == 0 || row.get("expect") != nil || s.inFlow(row) {
		return edit{}, s.refuse(row.at)
	}
	last := row.keys[len(row.keys)-1]
	key := s.offset(last.at)
	colon := bytes.IndexByte(s.Source[key:], ':')
	if colon < 0 {
		return edit{}, s.refuse(last.at)
	}
	end := s.valueEnd(key+colon+1, key, false)
	if n := bytes.IndexByte(s.Source[end:], '\n'); n >= 0 {
		end += n
	} else {
		end = len(s.Source)
	}
	indent := "\n" + strings.Repeat(" ", last.at.column-1)
	text := indent + "expect:"
	for _, c := range values {
		if c.Value != "" {
			text += indent + "  " + c.Path + ": " + c.Value
		}
	}
	return edit{from: end, to: end, text: text}, nil
}

// refuse says that a place of the file is written in a way that is left to its author.
func (s *Scenario) refuse(at position) error {
	return &Error{
		At: at, Source: s.Source, What: "this is written in a way that --accept does not change",
		Hint: "write expect as a mapping of its own: one key on each line",
	}
}
