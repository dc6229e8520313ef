package scenarios

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxDuration bounds every duration in a scenario. A year of scenario time is enough for any
// clean-up job, and far from where a duration overflows.
const maxDuration = 10_000 * time.Hour

// Money is an amount in a currency's minor unit, written in the major one: 50 or 49.99.
type Money int64

// custom is implemented by what is not decoded field by field.
type custom interface {
	decode(d *decoder, path string, n *node)
}

// decoder fills Go values from a tree. It is strict: what it does not know is an error. The first
// error wins; what follows it is often only its consequence.
type decoder struct {
	source []byte
	err    *Error
}

func (d *decoder) fail(at position, what, hint string) {
	if d.err == nil {
		d.err = &Error{At: at, Source: d.source, What: what, Hint: hint}
	}
}

// decode fills v, which stands at path, from n.
func (d *decoder) decode(path string, n *node, v reflect.Value) {
	if d.err != nil {
		return
	}
	if c, ok := v.Addr().Interface().(custom); ok {
		c.decode(d, path, n)
		return
	}
	switch v.Interface().(type) {
	case time.Duration:
		v.SetInt(int64(d.duration(path, n)))
		return
	case Money:
		v.SetInt(d.money(path, n))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.decode(path, n, v.Elem())
	case reflect.Struct:
		d.structure(path, n, v)
	case reflect.Slice:
		d.slice(path, n, v)
	case reflect.Map:
		d.mapping(path, n, v)
	case reflect.String:
		v.SetString(d.text(path, n))
	case reflect.Bool:
		v.SetBool(d.boolean(path, n))
	case reflect.Int, reflect.Int64:
		v.SetInt(d.integer(path, n))
	case reflect.Float64:
		v.SetFloat(d.float(path, n))
	default:
		panic(fmt.Sprintf("scenarios: no rule to decode %s into %s", path, v.Type()))
	}
}

// field is one key of a structure.
type field struct {
	name  string
	doc   string
	index []int
}

// fieldsOf lists the keys that a structure takes, those of embedded structures included.
func fieldsOf(t reflect.Type) []field {
	if known, ok := fieldCache.Load(t); ok {
		return known.([]field)
	}
	var out []field
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if f.Anonymous || !f.IsExported() || name == "" || name == "-" {
			continue
		}
		out = append(out, field{name: name, doc: f.Tag.Get("doc"), index: f.Index})
	}
	fieldCache.Store(t, out)
	return out
}

// fieldCache remembers the keys of each structure: every variant of a scenario asks for them.
var fieldCache sync.Map // reflect.Type to []field

func (d *decoder) structure(path string, n *node, v reflect.Value) {
	// A kind alone may stand for the mapping that names it: `guard: unique-index`.
	if n.kind == scalar {
		if short := shorthand(v.Type()); short != "" {
			n = &node{kind: mapping, at: n.at, keys: []entry{{name: short, at: n.at, node: n}}}
		}
	}
	if n.kind == null {
		return
	}
	if n.kind != mapping {
		d.fail(n.at, fmt.Sprintf("%s must be a mapping, not %s", orFile(path), n.kind), "")
		return
	}
	fields := fieldsOf(v.Type())
	for _, e := range n.keys {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == e.name })
		if i < 0 {
			var known []string
			for _, f := range fields {
				known = append(known, f.name)
			}
			d.fail(e.at, fmt.Sprintf("unknown key %q in %s", e.name, orFile(path)), suggest(e.name, known))
			return
		}
		if e.node.kind == null {
			continue
		}
		d.decode(join(path, e.name), e.node, v.FieldByIndex(fields[i].index))
	}
}

// shorthand returns the key that a single value stands for where a structure is wanted.
func shorthand(t reflect.Type) string {
	for _, f := range fieldsOf(t) {
		if f.name == "kind" || f.name == "preset" {
			return f.name
		}
	}
	return ""
}

func (d *decoder) slice(path string, n *node, v reflect.Value) {
	items := n.items
	if n.kind == scalar || (n.kind == mapping && v.Type().Elem().Kind() != reflect.Struct) {
		items = []*node{n} // one item may stand without its list
	} else if n.kind != sequence {
		d.fail(n.at, fmt.Sprintf("%s must be a list, not %s", path, n.kind), "")
		return
	}
	out := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		if item.kind == null {
			d.fail(item.at, fmt.Sprintf("%s[%d] is empty", path, i), "")
			return
		}
		d.decode(fmt.Sprintf("%s[%d]", path, i), item, out.Index(i))
	}
	v.Set(out)
}

func (d *decoder) mapping(path string, n *node, v reflect.Value) {
	if n.kind != mapping {
		d.fail(n.at, fmt.Sprintf("%s must be a mapping, not %s", path, n.kind), "")
		return
	}
	out := reflect.MakeMap(v.Type())
	for _, e := range n.keys {
		value := reflect.New(v.Type().Elem()).Elem()
		d.decode(join(path, e.name), e.node, value)
		out.SetMapIndex(reflect.ValueOf(e.name).Convert(v.Type().Key()), value)
	}
	v.Set(out)
}

func (d *decoder) scalar(path string, n *node, want string) (string, bool) {
	if n.kind != scalar {
		d.fail(n.at, fmt.Sprintf("%s must be %s, not %s", path, want, n.kind), "")
		return "", false
	}
	return n.text, true
}

func (d *decoder) text(path string, n *node) string {
	s, _ := d.scalar(path, n, "text")
	return s
}

func (d *decoder) boolean(path string, n *node) bool {
	s, ok := d.scalar(path, n, "true or false")
	if !ok {
		return false
	}
	b, err := strconv.ParseBool(s)
	if err != nil || (s != "true" && s != "false") {
		d.fail(n.at, fmt.Sprintf("%s must be true or false, not %q", path, s), "")
	}
	return b
}

func (d *decoder) integer(path string, n *node) int64 {
	s, ok := d.scalar(path, n, "a whole number")
	if !ok {
		return 0
	}
	i, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
	switch {
	case err != nil:
		d.fail(n.at, fmt.Sprintf("%s must be a whole number, not %q", path, s), "")
	case i < 0:
		d.fail(n.at, fmt.Sprintf("%s must not be negative: %d", path, i), "")
	case i > math.MaxInt32:
		d.fail(n.at, fmt.Sprintf("%s is absurdly large: %d", path, i), "")
	}
	return i
}

func (d *decoder) float(path string, n *node) float64 {
	s, ok := d.scalar(path, n, "a number")
	if !ok {
		return 0
	}
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil || math.IsNaN(f) || math.IsInf(f, 0):
		d.fail(n.at, fmt.Sprintf("%s must be a number, not %q", path, s), "")
	case f < 0:
		d.fail(n.at, fmt.Sprintf("%s must not be negative: %s", path, s), "")
	case f > math.MaxInt32:
		d.fail(n.at, fmt.Sprintf("%s is absurdly large: %s", path, s), "")
	}
	return f
}

func (d *decoder) duration(path string, n *node) time.Duration {
	s, ok := d.scalar(path, n, "a duration such as 5s")
	if !ok {
		return 0
	}
	v, what, hint := parseDuration(s)
	if what != "" {
		d.fail(n.at, fmt.Sprintf("%s %s", path, what), hint)
	}
	return v
}

// parseDuration reads a duration with its unit. It returns what is wrong with it, and what would
// be right.
func parseDuration(s string) (v time.Duration, what, hint string) {
	v, err := time.ParseDuration(s)
	if _, number := strconv.ParseFloat(s, 64); number == nil && s != "0" {
		return 0, fmt.Sprintf("has no unit: %q", s), fmt.Sprintf("write %ss or %sms", s, s)
	}
	switch {
	case err != nil:
		return 0, fmt.Sprintf("is not a duration: %q", s), "a number and its unit: 250ms, 5s, 1m30s, 24h"
	case v < 0:
		return 0, fmt.Sprintf("must not be negative: %s", s), ""
	case v > maxDuration:
		return 0, fmt.Sprintf("is absurdly long: %s", s), fmt.Sprintf("at most %s", "10000h")
	}
	return v, "", ""
}

func (d *decoder) money(path string, n *node) int64 {
	s, ok := d.scalar(path, n, "an amount such as 49.99")
	if !ok {
		return 0
	}
	whole, cents, dot := strings.Cut(s, ".")
	if dot && (len(cents) < 1 || len(cents) > 2) {
		d.fail(n.at, fmt.Sprintf("%s must have at most two decimals: %q", path, s), "")
		return 0
	}
	minor, err := strconv.ParseInt(whole+(cents + "00")[:2], 10, 64)
	if err != nil || minor < 0 || minor > 1e12 {
		d.fail(n.at, fmt.Sprintf("%s is not an amount: %q", path, s), "a number from 0 to 10 billion, such as 49.99")
		return 0
	}
	return minor
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func orFile(path string) string {
	if path == "" {
		return "a scenario"
	}
	return path
}
