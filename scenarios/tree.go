package scenarios

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds on a scenario file. It is untrusted input: anchors, aliases, tags and merge keys are
// refused outright, so a small file cannot grow into a large one.
const (
	MaxFileSize = 128 << 10 // bytes
	maxLines    = 5000
	maxDepth    = 24 // nested maps and lists
	maxNodes    = 20_000
)

// position is where a value stands. A value given on the command line has the flag as its file
// and no line.
type position struct {
	file         string
	line, column int
}

func (p position) String() string {
	if p.line == 0 {
		return p.file
	}
	return fmt.Sprintf("%s:%d:%d", p.file, p.line, p.column)
}

type nodeKind int

const (
	null nodeKind = iota
	scalar
	mapping
	sequence
)

func (k nodeKind) String() string {
	return [...]string{"nothing", "a single value", "a mapping", "a list"}[k]
}

// node is a value of a scenario file with the place it came from. Variants and --set replace
// nodes of a copy before anything is decoded, so one strict decoder checks them all.
type node struct {
	kind   nodeKind
	at     position
	text   string // scalar
	quoted bool   // the scalar was written in quotes: it is a string, whatever it looks like
	keys   []entry
	items  []*node
}

type entry struct {
	name string
	at   position
	node *node
}

// get returns the value of a key, nil without one.
func (n *node) get(name string) *node {
	for _, e := range n.keys {
		if e.name == name {
			return e.node
		}
	}
	return nil
}

// put sets the value of a key, in place of the one that stands there.
func (n *node) put(name string, value *node) {
	for i := range n.keys {
		if n.keys[i].name == name {
			n.keys[i].node = value
			return
		}
	}
	n.keys = append(n.keys, entry{name: name, at: value.at, node: value})
}

// pick copies the mapping n with those of its keys that are named.
func (n *node) pick(names []string) *node {
	c := &node{kind: mapping, at: n.at}
	for _, e := range n.keys {
		if slices.Contains(names, e.name) {
			c.keys = append(c.keys, entry{name: e.name, at: e.at, node: e.node.clone()})
		}
	}
	return c
}

// without drops some keys of the mapping n.
func (n *node) without(names ...string) *node {
	n.keys = slices.DeleteFunc(n.keys, func(e entry) bool { return slices.Contains(names, e.name) })
	return n
}

// clone copies n and everything below it.
func (n *node) clone() *node {
	c := *n
	c.keys = make([]entry, len(n.keys))
	for i, e := range n.keys {
		e.node = e.node.clone()
		c.keys[i] = e
	}
	c.items = make([]*node, len(n.items))
	for i, item := range n.items {
		c.items[i] = item.clone()
	}
	return &c
}

// places adds the positions of n and of everything below it.
func (n *node) places(to map[position]bool) {
	to[n.at] = true
	for _, e := range n.keys {
		e.node.places(to)
	}
	for _, item := range n.items {
		item.places(to)
	}
}

// parseTree reads YAML into a tree. Errors are *Error with a position.
func parseTree(file string, data []byte) (*node, error) {
	if len(data) > MaxFileSize {
		return nil, &Error{At: position{file: file}, What: fmt.Sprintf("it has %d bytes; a scenario may have %d", len(data), MaxFileSize)}
	}
	if err := checkText(file, data); err != nil {
		return nil, err
	}
	parsed, err := parseYAML(data)
	if err != nil {
		return nil, syntaxError(file, data, err)
	}
	var body ast.Node
	for _, doc := range parsed.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		if doc.Body.Type() == ast.DirectiveType {
			return nil, &Error{At: place(file, doc.Body), Source: data, What: "YAML directives are not allowed", Hint: "a scenario begins with its name"}
		}
		if body != nil {
			return nil, &Error{At: begin(file, doc.Body), Source: data, What: "a second YAML document", Hint: "one file holds one scenario"}
		}
		body = doc.Body
	}
	if body == nil {
		what := "the file is empty"
		if len(bytes.TrimSpace(data)) > 0 {
			what = "there is no scenario in the file"
		}
		return nil, &Error{At: position{file: file, line: 1, column: 1}, What: what, Hint: "`retrylab new FILE` writes a scenario to start from"}
	}
	b := builder{file: file, source: data}
	return b.build(body, 0)
}

// parseYAML guards the parser, which is fed whatever a user has: a panic in it is a syntax error,
// not a crash of the lab.
func parseYAML(data []byte) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("not YAML: %v", r)
		}
	}()
	return parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey()) // the builder says it better
}

// checkText refuses what no scenario needs before the parser sees it, which takes long over some of
// it: what is no text, too many lines, and nesting without end.
func checkText(file string, data []byte) error {
	at := position{file: file, line: 1, column: 1}
	fail := func(what, hint string) error { return &Error{At: at, Source: data, What: what, Hint: hint} }
	brackets, dashes, start := 0, 0, true // start: nothing but dashes and spaces so far in this line
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return fail(fmt.Sprintf("the byte %#x is not UTF-8", data[i]), "save it as UTF-8")
		case r == '\r' && (i+1 == len(data) || data[i+1] != '\n'):
			return fail("a carriage return without a line feed", "end the lines with LF or CRLF")
		case unicode.IsControl(r) && !strings.ContainsRune("\t\r\n", r):
			return fail(fmt.Sprintf("the control character %U", r), "remove it")
		case r == '[' || r == '{':
			brackets++
		case r == ']' || r == '}':
			brackets = max(0, brackets-1)
		case r == '-' && start:
			dashes++
		}
		// Brackets in prose open without closing; only an absurd number of them is refused here.
		if brackets > 1000 || dashes > 100 {
			return fail("nested too deeply", deepHint)
		}
		start = start && (r == '-' || r == ' ')
		i += size
		at.column++
		if r == '\n' {
			at.line, at.column, dashes, start = at.line+1, 1, 0, true
		}
		if at.line > maxLines {
			return fail(fmt.Sprintf("more than %d lines", maxLines), "")
		}
	}
	return nil
}

var deepHint = fmt.Sprintf("a scenario needs a few levels; there may be %d", maxDepth)

func place(file string, n ast.Node) position { return at(file, n.GetToken()) }

func at(file string, t *token.Token) position {
	if t == nil || t.Position == nil {
		return position{file: file}
	}
	return position{file: file, line: t.Position.Line, column: t.Position.Column}
}

// begin is where a reader looks for n: the parser places a mapping in lines of its own at its first
// colon, a reader looks for its first key.
func begin(file string, n ast.Node) position {
	switch n := n.(type) {
	case *ast.MappingNode:
		if len(n.Values) > 0 && !n.IsFlowStyle {
			return place(file, n.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return place(file, n.Key)
	}
	return place(file, n)
}

// builder turns the parser's tree into ours and refuses what a scenario has no use for.
type builder struct {
	file   string
	source []byte
	nodes  int
}

func (b *builder) fail(n ast.Node, what, hint string) *Error {
	return &Error{At: place(b.file, n), Source: b.source, What: what, Hint: hint}
}

func (b *builder) build(n ast.Node, depth int) (*node, error) {
	b.nodes++
	if b.nodes > maxNodes {
		return nil, b.fail(n, fmt.Sprintf("more than %d values", maxNodes), "")
	}
	if depth > maxDepth {
		return nil, b.fail(n, "nested too deeply", deepHint)
	}
	out := &node{at: begin(b.file, n)}
	switch n := n.(type) {
	case *ast.NullNode:
		return out, nil
	case *ast.StringNode:
		out.kind, out.text = scalar, n.Value
		out.quoted = strings.HasPrefix(n.Token.Origin, `"`) || strings.HasPrefix(strings.TrimSpace(n.Token.Origin), `"`) || strings.HasPrefix(strings.TrimSpace(n.Token.Origin), `'`)
	case *ast.LiteralNode:
		out.kind, out.text, out.quoted = scalar, n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		out.kind, out.text = scalar, n.GetToken().Value
	case *ast.MappingNode:
		return out, b.addEntries(out, n.Values, depth)
	case *ast.MappingValueNode:
		return out, b.addEntries(out, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		out.kind = sequence
		for i, v := range n.Values {
			item, err := b.build(v, depth+1)
			if err != nil {
				return nil, err
			}
			if item.kind == null && i < len(n.Entries) {
				item.at = at(b.file, n.Entries[i].Start) // there is nothing but the dash
			}
			out.items = append(out.items, item)
		}
	case *ast.AnchorNode, *ast.AliasNode:
		return nil, b.fail(n, "anchors and aliases are not allowed", anchorHint)
	case *ast.TagNode:
		return nil, b.fail(n, "YAML tags are not allowed", tagHint)
	default:
		return nil, b.fail(n, fmt.Sprintf("%s is not allowed here", strings.ToLower(n.Type().String())), "")
	}
	return out, nil
}

func (b *builder) addEntries(out *node, values []*ast.MappingValueNode, depth int) error {
	out.kind = mapping
	lines := make(map[string]int, len(values)) // where each key stands
	for _, v := range values {
		if v.Key.IsMergeKey() {
			return b.fail(v.Key, "merge keys are not allowed", mergeHint)
		}
		key, ok := v.Key.(ast.ScalarNode)
		if !ok {
			return b.fail(v.Key, "a key must be a plain word", "")
		}
		name, at := fmt.Sprint(key.GetValue()), place(b.file, v.Key)
		if first, twice := lines[name]; twice {
			return b.fail(v.Key, fmt.Sprintf("the key %s stands twice in one mapping", quote(name)), fmt.Sprintf("line %d has it already", first))
		}
		lines[name] = at.line
		value, err := b.build(v.Value, depth+1)
		if err != nil {
			return err
		}
		if value.kind == null {
			value.at = at
		}
		out.keys = append(out.keys, entry{name: name, at: at, node: value})
	}
	return nil
}
