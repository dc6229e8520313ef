package scenarios

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// byDefault is where a value comes from that nobody has written down.
const byDefault = "default"

// Setting is one value of a trial that is in effect.
type Setting struct {
	Path   string // as --set takes it: caller.layers[0].attempts
	Value  string // as it was written, else as a person would write it
	Source string // file:line, with the configuration that says so; --set …; --vary …; or default
}

// Settings lists every value that is in effect, in the order of the file, what is there by default last
// in its mapping. What is empty or zero and stands nowhere is left out. The values of a preset are not
// among them: they are those of the layer that it imitates.
func (t Trial) Settings() []Setting {
	var out []Setting
	var walk func(path string, n *node)
	walk = func(path string, n *node) {
		switch n.kind {
		case mapping:
			for _, e := range n.keys {
				walk(join(path, e.name), e.node)
			}
		case sequence:
			for i, item := range n.items {
				walk(fmt.Sprintf("%s[%d]", path, i), item)
			}
		case scalar:
			out = append(out, Setting{Path: path, Value: n.flow(), Source: t.source(n.at)})
		}
	}
	walk("", t.effective(true))
	return out
}

// source says where a value comes from that stands at a position.
func (t Trial) source(at position) string {
	if at.line == 0 {
		return printable(at.file)
	}
	out := fmt.Sprintf("%s:%d", at.file, at.line)
	if t.own[at] {
		out += ", " + t.ID
	}
	return printable(out)
}

// effective is the trial's setup as a tree with a position for each value. With defaults, what nobody has
// written down stands in it too.
func (t Trial) effective(defaults bool) *node {
	b := treeBuilder{defaults: defaults}
	root := b.build(t.written, reflect.ValueOf(t.Setup))
	if len(t.Setup.Load) > 0 {
		root.without("operations") // load says how many
	}
	return root
}

// treeBuilder turns a decoded value back into a tree.
type treeBuilder struct{ defaults bool }

// build returns the tree of v, of which n is what was written of it; nil where there is nothing to say.
func (b treeBuilder) build(n *node, v reflect.Value) *node {
	if n != nil && n.kind == null {
		// Nothing stands behind the key: an empty mapping or list.
		n = &node{kind: mapping, at: n.at}
		if v.Kind() == reflect.Slice {
			n.kind = sequence
		}
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	} else if n == nil && v.IsZero() {
		return nil
	}
	_, whole := v.Interface().(Demand)
	switch {
	case n == nil && !b.defaults:
		return nil
	case whole && n == nil:
		return &node{kind: scalar, text: v.Interface().(Demand).Expression, at: position{file: byDefault}}
	case whole:
		return n.clone()
	}
	switch v.Kind() {
	case reflect.Struct:
		return b.structure(n, v)
	case reflect.Slice:
		return b.list(n, v)
	case reflect.Map:
		return b.mapping(n, v)
	}
	if n != nil {
		return n.clone()
	}
	return &node{kind: scalar, text: written(v), at: position{file: byDefault}}
}

func (b treeBuilder) structure(n *node, v reflect.Value) *node {
	switch {
	case n == nil:
		n = &node{kind: mapping, at: position{file: byDefault}}
	case n.kind == scalar:
		n = &node{kind: mapping, at: n.at, keys: []entry{{name: shorthand(v.Type()), at: n.at, node: n}}}
	}
	out := &node{kind: mapping, at: n.at}
	fields := fieldsOf(v.Type())
	for _, e := range n.keys {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == e.name })
		if i < 0 {
			continue
		}
		if value := b.build(e.node, v.FieldByIndex(fields[i].index)); value != nil {
			out.keys = append(out.keys, entry{name: e.name, at: e.at, node: value})
		}
	}
	for _, f := range fields {
		if out.get(f.name) != nil {
			continue
		}
		if value := b.build(nil, v.FieldByIndex(f.index)); value != nil {
			out.put(f.name, value)
		}
	}
	return out
}

func (b treeBuilder) list(n *node, v reflect.Value) *node {
	out := &node{kind: sequence, at: position{file: byDefault}}
	var items []*node
	if n != nil {
		if out.at, items = n.at, n.items; n.kind != sequence {
			items = []*node{n} // one item may stand without its list
		}
	}
	for i := range v.Len() {
		var item *node
		if i < len(items) {
			item = items[i]
		}
		value := b.build(item, v.Index(i))
		if value == nil {
			value = &node{kind: scalar, text: written(v.Index(i)), at: out.at}
		}
		out.items = append(out.items, value)
	}
	return out
}

func (b treeBuilder) mapping(n *node, v reflect.Value) *node {
	if n != nil {
		return n.clone()
	}
	out := &node{kind: mapping, at: position{file: byDefault}}
	for _, key := range v.MapKeys() {
		out.put(key.String(), &node{kind: scalar, text: written(v.MapIndex(key)), at: out.at})
	}
	slices.SortFunc(out.keys, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	return out
}

// written is a single value as a person would write it.
func written(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Duration:
		return duration(x)
	case Money:
		return x.String()
	}
	return fmt.Sprint(v.Interface())
}

// Resolved writes the trials that are planned as a scenario file of their own, which gives the same numbers,
// with the place that each value comes from behind it. seeds are those of the run; nil is what the file says.
// It is pure. What cannot be planned is the error of [Scenario.Plan] and [Scenario.Sweep].
func (s *Scenario) Resolved(o Options, vary []Vary, seeds []int) ([]byte, error) {
	base, err := s.Base()
	if err != nil {
		return nil, err
	}
	var trials []Trial
	if len(vary) > 0 {
		trials, _, err = s.Sweep(o, vary)
	} else {
		trials, err = s.Plan(o)
	}
	if err != nil {
		return nil, err
	}
	if len(trials) == 1 {
		base = trials[0]
	}
	if len(vary) > 0 {
		base.Setup.Premises = nil // they are about the numbers of the file, as expect is
		base.written = base.written.clone().without("premises")
	}
	for _, defaults := range []bool{true, false} {
		out := s.write(base, trials, vary, seeds, defaults)
		if again, err := Parse("resolved", out); !defaults || err == nil && again.plansLike(trials) {
			return out, nil
		}
		// A check of the file minds that a default is written down: it is left unsaid.
	}
	panic("unreachable")
}

// plansLike reports whether a scenario has the setups of these trials, as many as a file holds.
func (s *Scenario) plansLike(trials []Trial) bool {
	planned, err := s.Plan(Options{Seed: 1})
	if err != nil || len(planned) != min(len(trials), maxVariants) {
		return false
	}
	for i, t := range planned {
		if !reflect.DeepEqual(placeless(t.Setup), placeless(trials[i].Setup)) {
			return false
		}
	}
	return true
}

// placeless is a setup without the places of its premises.
func placeless(p Setup) Setup {
	p.Premises = slices.Clone(p.Premises)
	for i := range p.Premises {
		p.Premises[i].At = Place{}
	}
	return p
}

func (s *Scenario) write(base Trial, trials []Trial, vary []Vary, seeds []int, defaults bool) []byte {
	w := resolvedWriter{trial: base}
	for _, v := range vary {
		w.comment(fmt.Sprintf("--vary %s, %d values: %s", v.Path, len(v.Values), strings.Join(v.Values, ", ")))
	}
	if n := len(trials); len(vary) > 0 {
		text := fmt.Sprintf("%d rows, of which those stand below that a file has room for", n)
		if n <= maxVariants {
			text = fmt.Sprintf("%d rows, one for each combination that is possible", n)
		}
		w.comment(text)
	}
	listed := trials[:min(len(trials), maxVariants)]
	head := s.tree.pick(keysOf(reflect.TypeFor[header]()))
	for _, role := range []string{"focus", "remedy"} {
		if id := head.get(role); id != nil && !slices.ContainsFunc(listed, func(t Trial) bool { return t.ID == id.text }) {
			head.without(role)
		}
	}
	if seeds != nil {
		list := &node{kind: sequence, at: position{file: "--seed, --repeat"}}
		for _, seed := range seeds[:min(len(seeds), MaxSeeds)] {
			list.items = append(list.items, &node{kind: scalar, text: itoa(seed), at: list.at})
		}
		head.put("seeds", list)
	}
	w.mapping(head, "")
	setup := base.effective(defaults)
	w.mapping(setup, "")
	if len(trials) == 1 && trials[0].prefix == "" {
		w.mapping(trials[0].checksTree("expect", "invariant"), "")
		return w.out
	}
	w.line("variants:", "")
	for _, t := range listed {
		w.trial = t
		of := t.checksTree("said", "expect", "invariant")
		item := &node{kind: mapping, keys: []entry{
			{name: "name", node: &node{kind: scalar, text: t.Configuration, quoted: true, at: t.nameAt}},
			{name: "id", node: &node{kind: scalar, text: t.ID, quoted: true, at: t.idAt}},
		}}
		if sets := changesBetween("", setup, t.effective(defaults)); len(sets) > 0 && len(trials) > 1 {
			item.put("set", &node{kind: mapping, keys: sets})
		}
		item.keys = append(item.keys, of.keys...)
		w.item(item, "  ")
	}
	return w.out
}

// checksTree is what is demanded of the trial, with what the command line adds.
func (t Trial) checksTree(keys ...string) *node {
	out := t.checks.pick(keys)
	list := &node{kind: sequence}
	if n := out.get("invariant"); n != nil && n.kind == sequence {
		list = n
	} else if n != nil && n.kind == scalar {
		list.items = append(list.items, n)
	}
	for _, d := range t.Asserts {
		list.items = append(list.items, &node{kind: scalar, text: d.Expression, quoted: true, at: position{file: "--assert"}})
	}
	if out.without("invariant"); len(list.items) > 0 {
		out.put("invariant", list)
	}
	return out
}

// changesBetween lists what a variant must set to come from base to n, as paths with their values.
func changesBetween(path string, base, n *node) []entry {
	whole := []entry{{name: path, at: n.at, node: n}}
	if base.kind != mapping || n.kind != mapping {
		if base.same(n) {
			return nil
		}
		return whole
	}
	if path != "" && !base.same(n) {
		gone := slices.ContainsFunc(base.keys, func(e entry) bool { return n.get(e.name) == nil })
		// A thing of another kind is another thing.
		if kind := n.get("kind"); gone || kind != nil && !kind.same(base.get("kind")) {
			return whole
		}
	}
	var out []entry
	for _, e := range n.keys {
		if of := base.get(e.name); of != nil {
			out = append(out, changesBetween(join(path, e.name), of, e.node)...)
		} else {
			out = append(out, entry{name: join(path, e.name), at: e.at, node: e.node})
		}
	}
	return out
}

// same reports whether two trees have the same values.
func (n *node) same(o *node) bool {
	if n == nil || o == nil {
		return n == o
	}
	if n.kind != o.kind || n.text != o.text || len(n.keys) != len(o.keys) || len(n.items) != len(o.items) {
		return false
	}
	for _, e := range n.keys {
		if !e.node.same(o.get(e.name)) {
			return false
		}
	}
	for i := range n.items {
		if !n.items[i].same(o.items[i]) {
			return false
		}
	}
	return true
}

// resolvedWriter writes trees as YAML, each value with its source behind it.
type resolvedWriter struct {
	trial Trial // whose values are written
	out   []byte
}

// sourceColumn is where the sources begin, unless a line is longer.
const sourceColumn = 44

func (w *resolvedWriter) comment(text string) {
	w.out = append(w.out, "# "+printable(text)+"\n"...)
}

func (w *resolvedWriter) line(text, source string) {
	if source != "" {
		text += strings.Repeat(" ", max(1, sourceColumn-len([]rune(text)))) + "# " + source
	}
	w.out = append(w.out, text+"\n"...)
}

func (w *resolvedWriter) mapping(n *node, indent string) {
	for _, e := range n.keys {
		w.entry(indent, indent, e)
	}
}

// item writes a mapping as an item of a list: its first key stands behind the dash.
func (w *resolvedWriter) item(n *node, indent string) {
	for i, e := range n.keys {
		lead := indent + "  "
		if i == 0 {
			lead = indent + "- "
		}
		w.entry(lead, indent+"  ", e)
	}
}

// entry writes a key and its value. lead is what stands before the key.
func (w *resolvedWriter) entry(lead, indent string, e entry) {
	n, key := e.node, lead+(&node{text: e.name}).yaml()+":"
	switch {
	case n.kind == mapping && len(n.keys) > 0:
		w.line(key, "")
		w.mapping(n, indent+"  ")
	case n.kind == sequence && slices.ContainsFunc(n.items, func(i *node) bool { return i.kind != scalar || i.at.line != n.at.line || i.at.file != n.at.file }):
		w.line(key, "")
		for _, item := range n.items {
			if item.kind == mapping && len(item.keys) > 0 {
				w.item(item, indent+"  ")
			} else {
				w.line(indent+"  - "+item.yaml(), w.trial.source(item.at))
			}
		}
	case n.kind == scalar && strings.Contains(strings.TrimRight(n.text, "\n"), "\n") && plainLines(n.text):
		style := "|"
		if !strings.HasSuffix(n.text, "\n") {
			style = "|-"
		}
		w.line(key+" "+style, "")
		for line := range strings.Lines(n.text) {
			w.line(strings.TrimRight(indent+"  "+strings.TrimSuffix(line, "\n"), " "), "")
		}
	default:
		w.line(key+" "+n.yaml(), w.trial.source(n.at))
	}
}

// plainLines reports whether a text can stand as a block of lines.
func plainLines(text string) bool {
	if strings.HasSuffix(text, "\n\n") || text[0] == ' ' || text[0] == '\n' {
		return false
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasSuffix(line, " ") || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return false
		}
	}
	return true
}

// plainText is what YAML reads as the text that it is, wherever it stands.
var plainText = regexp.MustCompile(`^[\pL\pN_./+-][\pL\pN_./+%@()<=>$€×-]*( [\pL\pN_./+%@()<=>$€×-]+)*$`)

// words that YAML does not read as text.
var notText = regexp.MustCompile(`^(?i:null|true|false|~|[-+]?[0-9.][0-9._xobeE+-]*|[-+]?\.(inf|nan)|-+|[-.].*)$`)

// yaml writes a value on one line, so that it is read again as what it is.
func (n *node) yaml() string {
	switch n.kind {
	case sequence:
		var items []string
		for _, item := range n.items {
			items = append(items, item.yaml())
		}
		return "[" + strings.Join(items, ", ") + "]"
	case mapping:
		var items []string
		for _, e := range n.keys {
			items = append(items, (&node{kind: scalar, text: e.name}).yaml()+": "+e.node.yaml())
		}
		return "{" + strings.Join(items, ", ") + "}"
	}
	if plainText.MatchString(n.text) && (!n.quoted || !notText.MatchString(n.text)) {
		return n.text
	}
	return strconv.Quote(n.text)
}
