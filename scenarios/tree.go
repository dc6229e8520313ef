package scenarios

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Bounds on a scenario file. It is untrusted input: anchors, aliases, tags and merge keys are
// refused outright, so a small file cannot grow into a large one.
const (
	MaxFileSize = 256 << 10 // bytes
	maxDepth    = 24        // nested maps and lists
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

// drop removes a key.
func (n *node) drop(name string) {
	for i := range n.keys {
		if n.keys[i].name == name {
			n.keys = append(n.keys[:i:i], n.keys[i+1:]...)
			return
		}
	}
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

// parseTree reads YAML into a tree. Errors are *Error with a position.
func parseTree(file string, data []byte) (*node, error) {
	if len(data) > MaxFileSize {
		return nil, &Error{At: position{file: file}, What: fmt.Sprintf("the file has %d bytes; a scenario may have %d", len(data), MaxFileSize)}
	}
	if err := checkNesting(file, data); err != nil {
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
		if body != nil {
			at := place(file, doc.Body)
			return nil, &Error{At: at, Source: data, What: "a second YAML document", Hint: "one file holds one scenario"}
		}
		body = doc.Body
	}
	if body == nil {
		return nil, &Error{At: position{file: file, line: 1, column: 1}, What: "the file is empty", Hint: "`retrylab new FILE` writes a skeleton to start from"}
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
	return parser.ParseBytes(data, 0)
}

// checkNesting refuses brackets nested deeper than any scenario needs, before the parser recurses
// over them.
func checkNesting(file string, data []byte) error {
	depth, line := 0, 1
	for _, c := range data {
		switch c {
		case '\n':
			line++
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(0, depth-1)
		}
		// Brackets in prose open without closing; only an absurd number of them is refused here.
		if depth > 1000 {
			return &Error{At: position{file: file, line: line, column: 1}, Source: data, What: "nested too deeply"}
		}
	}
	return nil
}

func syntaxError(file string, data []byte, err error) *Error {
	var y yaml.Error
	if !errors.As(err, &y) || y.GetToken() == nil || y.GetToken().Position == nil {
		return &Error{At: position{file: file}, Source: data, What: "not YAML: " + firstLine(err.Error())}
	}
	p := y.GetToken().Position
	return &Error{At: position{file: file, line: p.Line, column: p.Column}, Source: data, What: firstLine(y.GetMessage())}
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

func place(file string, n ast.Node) position {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return position{file: file, line: t.Position.Line, column: t.Position.Column}
	}
	return position{file: file}
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
		return nil, b.fail(n, "nested too deeply", "")
	}
	out := &node{at: place(b.file, n)}
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
		out.kind = mapping
		// The parser places a block mapping at its first colon; a reader looks for its first key.
		if len(n.Values) > 0 && !n.IsFlowStyle {
			out.at = place(b.file, n.Values[0].Key)
		}
		for _, v := range n.Values {
			if err := b.addEntry(out, v, depth); err != nil {
				return nil, err
			}
		}
	case *ast.MappingValueNode:
		out.kind = mapping
		out.at = place(b.file, n.Key)
		if err := b.addEntry(out, n, depth); err != nil {
			return nil, err
		}
	case *ast.SequenceNode:
		out.kind = sequence
		for _, v := range n.Values {
			item, err := b.build(v, depth+1)
			if err != nil {
				return nil, err
			}
			out.items = append(out.items, item)
		}
	case *ast.AnchorNode, *ast.AliasNode:
		return nil, b.fail(n, "anchors and aliases are not allowed", "write the value out where it is needed")
	case *ast.TagNode, *ast.DirectiveNode:
		return nil, b.fail(n, "YAML tags and directives are not allowed", "")
	default:
		return nil, b.fail(n, fmt.Sprintf("%s is not allowed here", strings.ToLower(n.Type().String())), "")
	}
	return out, nil
}

func (b *builder) addEntry(out *node, v *ast.MappingValueNode, depth int) error {
	if v.Key.IsMergeKey() {
		return b.fail(v.Key, "merge keys are not allowed", "write the values out where they are needed")
	}
	key, ok := v.Key.(ast.ScalarNode)
	if !ok {
		return b.fail(v.Key, "a key must be a plain word", "")
	}
	name := fmt.Sprint(key.GetValue())
	if out.get(name) != nil {
		return b.fail(v.Key, fmt.Sprintf("the key %q stands twice in one mapping", name), "")
	}
	value, err := b.build(v.Value, depth+1)
	if err != nil {
		return err
	}
	if value.kind == null {
		value.at = place(b.file, v.Key)
	}
	out.keys = append(out.keys, entry{name: name, at: place(b.file, v.Key), node: value})
	return nil
}
