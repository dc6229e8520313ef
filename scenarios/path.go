package scenarios

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// segment is one step of a path such as caller.layers[0].attempts: a key, or an item of a list by
// index or name.
type segment struct {
	name  string
	index int // -1 for a name
}

// parsePath splits a.b[0].c. A list item may also be addressed by its name: layers[lb] or
// layers.lb.
func parsePath(path string) ([]segment, bool) {
	var out []segment
	for part := range strings.SplitSeq(path, ".") {
		name, rest, bracket := strings.Cut(part, "[")
		if name == "" {
			return nil, false
		}
		out = append(out, segment{name: name, index: -1})
		for bracket {
			item, after, closed := strings.Cut(rest, "]")
			if !closed || item == "" {
				return nil, false
			}
			if i, err := strconv.Atoi(item); err == nil {
				out = append(out, segment{name: item, index: i})
			} else {
				out = append(out, segment{name: item, index: -1})
			}
			if after == "" {
				break
			}
			if after[0] != '[' {
				return nil, false
			}
			rest = after[1:]
		}
	}
	return out, true
}

// set replaces the value at path below root, making the mappings that are missing: a key that no
// structure knows is found by the strict decoder afterwards. at is where the demand stands.
func set(root *node, path string, value *node, at position, source []byte) error {
	fail := func(what, hint string) error {
		return &Error{At: at, Source: source, What: what, Hint: hint}
	}
	steps, ok := parsePath(path)
	if !ok {
		return fail(fmt.Sprintf("%s is not a path", quote(path)), "for example caller.timeouts.read or caller.layers[0].attempts")
	}
	n, walked := root, ""
	for i, step := range steps {
		last := i == len(steps)-1
		switch n.kind {
		case null, mapping:
			if step.index >= 0 {
				if len(n.keys) == 0 {
					return fail(fmt.Sprintf("%s has no item %d: the list is empty", walked, step.index), "set the whole list instead")
				}
				return fail(fmt.Sprintf("%s is not a list", walked), "")
			}
			n.kind = mapping
			child := n.get(step.name)
			if last {
				n.put(step.name, value)
				// The key stands where the demand stands, for whatever is wrong with it.
				for k := range n.keys {
					if n.keys[k].name == step.name {
						n.keys[k].at = at
					}
				}
				return nil
			}
			if child == nil {
				child = &node{kind: mapping, at: at}
				n.keys = append(n.keys, entry{name: step.name, at: at, node: child})
			}
			// `guard: unique-index` and `- feign-retryer` stand for the mapping they name.
			if child.kind == scalar && step.name == "guard" {
				*child = node{kind: mapping, at: child.at, keys: []entry{{name: "kind", at: child.at, node: child.clone()}}}
			}
			n, walked = child, join(walked, step.name)
		case sequence:
			k, hint := findItem(n, step)
			if k < 0 {
				return fail(fmt.Sprintf("%s has no item %s", walked, short(step.name)), hint)
			}
			if last {
				n.items[k] = value
				return nil
			}
			item := n.items[k]
			if item.kind == scalar {
				*item = node{kind: mapping, at: item.at, keys: []entry{{name: "preset", at: item.at, node: item.clone()}}}
			}
			n, walked = item, fmt.Sprintf("%s[%s]", walked, step.name)
		default:
			return fail(fmt.Sprintf("%s is a single value: nothing stands below it", walked), "")
		}
	}
	return nil
}

// findItem returns the index of a list's item by index or by its name, its preset or its kind. It
// returns -1 and what there is instead when no item is meant.
func findItem(list *node, step segment) (int, string) {
	if step.index >= 0 && step.index < len(list.items) {
		return step.index, ""
	}
	var names []string
	for i, item := range list.items {
		name := item.text
		for _, key := range []string{"kind", "preset", "name"} {
			if v := item.get(key); v != nil && v.text != "" {
				name = v.text
			}
		}
		if name == step.name {
			return i, ""
		}
		if name != "" {
			names = append(names, name)
		}
	}
	if _, number := strconv.Atoi(step.name); number == nil || len(names) == 0 {
		switch len(list.items) {
		case 0:
			return -1, "the list is empty: set the whole of it instead"
		case 1:
			return -1, "it has one item, [0]"
		}
		return -1, fmt.Sprintf("its items are [0] to [%d]", len(list.items)-1)
	}
	return -1, suggest(step.name, names)
}

// Paths lists what can be set by a path of keys alone.
func Paths() []string { return paths(reflect.TypeFor[Setup](), "") }

func paths(t reflect.Type, path string) []string {
	var out []string
	for _, f := range fieldsOf(t) {
		at := join(path, f.name)
		if below := t.FieldByIndex(f.index).Type; below.Kind() == reflect.Struct {
			out = append(out, paths(below, at)...)
			continue
		}
		out = append(out, at)
	}
	return out
}

// find returns the position of the value at a decoder's path, or of the nearest thing above it
// that is written down.
func find(root *node, path string) position {
	value, _ := locate(root, path)
	return value
}

// findKey returns the position of the key at a decoder's path, as find does that of its value.
func findKey(root *node, path string) position {
	_, key := locate(root, path)
	return key
}

func locate(root *node, path string) (value, key position) {
	value, key = root.at, root.at
	steps, ok := parsePath(path)
	if !ok {
		return value, key
	}
	n := root
	for _, step := range steps {
		var child *node
		switch {
		case n.kind == mapping && step.index < 0:
			for _, e := range n.keys {
				if e.name == step.name {
					child, key = e.node, e.at
				}
			}
		case n.kind == sequence && step.index >= 0 && step.index < len(n.items):
			child = n.items[step.index]
			key = child.at
		}
		if child == nil {
			return value, value
		}
		n, value = child, child.at
	}
	return value, key
}
