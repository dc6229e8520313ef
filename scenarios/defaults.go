package scenarios

import (
	"fmt"
	"slices"
	"strings"
)

// Default is a key of a project file with what it is to be. It is here because this package is the door of
// YAML; it knows nothing of what the keys mean.
type Default struct {
	Key    string
	Values []string // one, unless a list stands there
	List   bool
	At     Place

	fail func(at position, what, hint string) error
	at   position   // of all that stands there
	each []position // of the values
}

// Fail is an error about all that stands there, with its place.
func (d Default) Fail(what, hint string) error { return d.fail(d.at, what, hint) }

// FailValue is an error about the i-th value, with its place.
func (d Default) FailValue(i int, what, hint string) error { return d.fail(d.each[i], what, hint) }

// ParseDefaults reads a project file: a mapping of known keys to single values or lists of them. name is
// what errors call the file. An error is an [*Error] with a position in it.
func ParseDefaults(name string, data []byte, known []string) ([]Default, error) {
	data = []byte(strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n"))
	if blankYAML(data) {
		return nil, nil
	}
	root, err := parseTree(name, data)
	if err != nil {
		return nil, err
	}
	fail := func(at position, what, hint string) error {
		return &Error{At: at, Source: data, What: what, Hint: hint}
	}
	if root.kind != mapping {
		return nil, fail(root.at, "a project file is a mapping, not "+root.kind.String(), "for example store: postgres")
	}
	var out []Default
	for _, e := range root.keys {
		if !slices.Contains(known, e.name) {
			return nil, fail(e.at, fmt.Sprintf("unknown key %s in a project file", quote(e.name)), suggest(e.name, known))
		}
		d := Default{
			Key: e.name, List: e.node.kind == sequence,
			At: Place{File: name, Line: e.at.line, Column: e.at.column}, fail: fail, at: e.node.at,
		}
		items := e.node.items
		if !d.List {
			items = []*node{e.node}
		}
		for _, item := range items {
			switch item.kind {
			case scalar:
				d.Values, d.each = append(d.Values, item.text), append(d.each, item.at)
			case null:
				return nil, fail(e.at, e.name+" has no value", "write one, or leave the key out")
			default:
				return nil, fail(item.at, fmt.Sprintf("%s must be a single value, not %s", e.name, item.kind), "")
			}
		}
		out = append(out, d)
	}
	return out, nil
}

// blankYAML reports whether there is nothing but comments: a project file with all of its lines switched off.
func blankYAML(data []byte) bool {
	for line := range strings.Lines(string(data)) {
		if text := strings.TrimSpace(line); text != "" && text[0] != '#' {
			return false
		}
	}
	return true
}
