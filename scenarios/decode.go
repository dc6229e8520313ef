package scenarios

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"retrylab/internal/lab"
)

// maxDuration bounds every duration in a scenario. More than a year of scenario time is enough for
// any clean-up job, and far from where a duration overflows.
const maxDuration = 10_000 * time.Hour

// mostDuration bounds the duration at a path. What a trial comes to may be later than anything that a
// file asks for: a server says when to come back.
func mostDuration(path string) time.Duration {
	if strings.HasPrefix(path, "expect.") || strings.Contains(path, "].expect.") {
		return lab.Horizon
	}
	return maxDuration
}

// Money is an amount in a currency's minor unit, written in the major one: 50 or 49.99.
type Money int64

// String writes the amount in the major unit, with decimals only where they say something.
func (m Money) String() string {
	if m%100 == 0 {
		return strconv.FormatInt(int64(m/100), 10)
	}
	return fmt.Sprintf("%d.%02d", m/100, m%100)
}

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

// keysOf lists the names of the keys that a structure takes.
func keysOf(t reflect.Type) []string {
	var names []string
	for _, f := range fieldsOf(t) {
		names = append(names, f.name)
	}
	return names
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
	fields, known := fieldsOf(v.Type()), keysOf(v.Type())
	if n.kind != mapping {
		hint := "its keys: " + strings.Join(known, ", ")
		if key, value, colon := strings.Cut(n.text, ":"); colon && slices.Contains(known, key) {
			hint = fmt.Sprintf("a colon needs a space behind it: %s: %s", key, short(value))
		}
		d.fail(n.at, fmt.Sprintf("%s must be a mapping, not %s", orFile(path), n.kind), hint)
		return
	}
	for _, e := range n.keys {
		i := slices.Index(known, e.name)
		if i < 0 {
			d.kind(path, n, v.Type()) // a mistake there may make all other keys unknown
			d.fail(e.at, fmt.Sprintf("unknown key %s in %s", quote(e.name), orFile(path)), keyHint(path, e.name, known))
			return
		}
		to := v.FieldByIndex(fields[i].index)
		if e.node.kind == null {
			if isValue(to.Type()) {
				d.fail(e.at, fmt.Sprintf("%s has no value", join(path, e.name)), "write one, or leave the key out")
			}
			continue
		}
		d.decode(join(path, e.name), e.node, to)
	}
}

// kind refuses the kind of what stands at path where there is none of that name.
func (d *decoder) kind(path string, n *node, t reflect.Type) {
	key := shorthand(t)
	of := n.get(key)
	r, ok := RuleAt(join(path, key))
	if !ok || of == nil || of.kind != scalar || slices.Contains(r.Words, of.text) {
		return
	}
	d.fail(of.at, fmt.Sprintf("unknown %s %s", kindOf(path, key), quote(of.text)), suggest(of.text, r.Words))
}

// kindOf is what there are kinds of at a path: guards, presets, hops.
func kindOf(path, key string) string {
	if key != "kind" {
		return key
	}
	name := indexes.ReplaceAllString(path[strings.LastIndex(path, ".")+1:], "")
	return strings.TrimSuffix(name, "s")
}

// isValue reports whether a type is written as a single value, which cannot be left empty: a
// mapping or a list with nothing below it is an empty one.
func isValue(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() != reflect.Struct && t.Kind() != reflect.Slice && t.Kind() != reflect.Map
}

// keyHint says where a key belongs that is unknown in the structure at path.
func keyHint(path, name string, known []string) string {
	var below, others []string
	for _, parent := range parents(reflect.TypeFor[file](), "", name) {
		switch here := indexes.ReplaceAllString(path, "[]"); {
		case here == "" || strings.HasPrefix(parent, here+".") || strings.HasPrefix(parent, here+"["):
			below = append(below, path+strings.TrimPrefix(parent, here))
		case parent == "" && strings.HasPrefix(path, "variants["):
			return fmt.Sprintf("what a variant changes stands in its set, by its path: set: {%s…: …}", name)
		default:
			others = append(others, parent)
		}
	}
	near := Nearest(name, known)
	switch {
	case near != "" && editDistance(name, near) == 1: // a slip, whatever else has such a name
	case len(below) > 0:
		return belongs(below[:1])
	case near == "" && len(others) > 0:
		return belongs(others)
	}
	return suggest(name, known)
}

var indexes = regexp.MustCompile(`\[\d+\]`)

// belongs says where a key has its place, at the first two of several.
func belongs(parents []string) string {
	for i, p := range parents {
		switch list, item := strings.CutSuffix(p, "[]"); {
		case p == "":
			parents[i] = "the scenario itself"
		case item:
			parents[i] = "an item of " + list
		}
	}
	return "it belongs in " + strings.Join(parents[:min(2, len(parents))], " or ")
}

// parents lists the paths of the structures that take a key of that name.
func parents(t reflect.Type, path, name string) []string {
	var out []string
	for _, f := range fieldsOf(t) {
		if f.name == name {
			out = append(out, path)
		}
		below, at := t.FieldByIndex(f.index).Type, join(path, f.name)
		for below.Kind() == reflect.Pointer || below.Kind() == reflect.Slice {
			if below.Kind() == reflect.Slice {
				at += "[]"
			}
			below = below.Elem()
		}
		if below.Kind() == reflect.Struct {
			out = append(out, parents(below, at, name)...)
		}
	}
	return out
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
	elem := v.Type().Elem()
	_, whole := reflect.New(elem).Interface().(custom)
	items, at := n.items, func(i int) string { return fmt.Sprintf("%s[%d]", path, i) }
	switch {
	case n.kind == sequence:
	case whole, elem.Kind() != reflect.Struct, n.kind == scalar && shorthand(elem) != "":
		items, at = []*node{n}, func(int) string { return path } // one item may stand without its list
	default:
		d.fail(n.at, fmt.Sprintf("%s must be a list, not %s", path, n.kind), "write a dash before each item, or all of them in [ ] on one line")
		return
	}
	out := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		if item.kind == null {
			d.fail(item.at, fmt.Sprintf("%s is empty", at(i)), "")
			return
		}
		d.decode(at(i), item, out.Index(i))
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
		hint := ""
		switch strings.ToLower(s) {
		case "yes", "on", "1", "true", "y":
			hint = "write true"
		case "no", "off", "0", "false", "n":
			hint = "write false"
		}
		d.fail(n.at, fmt.Sprintf("%s must be true or false, not %s", path, quote(s)), hint)
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
	case err != nil && !errors.Is(err, strconv.ErrRange):
		d.fail(n.at, fmt.Sprintf("%s must be a whole number, not %s", path, quote(s)), "")
	case i < 0 && !mayBeNegative(path):
		d.fail(n.at, fmt.Sprintf("%s must not be negative: %s", path, short(s)), "")
	case i > math.MaxInt32 || i < math.MinInt32:
		d.fail(n.at, fmt.Sprintf("%s is absurdly large: %s", path, short(s)), "")
	}
	return i
}

// mayBeNegative reports whether a rule says so of the number at path.
func mayBeNegative(path string) bool {
	r, ok := RuleAt(path)
	return ok && r.Low < 0
}

func (d *decoder) float(path string, n *node) float64 {
	s, ok := d.scalar(path, n, "a number")
	if !ok {
		return 0
	}
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil || math.IsNaN(f) || math.IsInf(f, 0):
		d.fail(n.at, fmt.Sprintf("%s must be a number, not %s", path, quote(s)), "")
	case f < 0:
		d.fail(n.at, fmt.Sprintf("%s must not be negative: %s", path, short(s)), "")
	case f > math.MaxInt32:
		d.fail(n.at, fmt.Sprintf("%s is absurdly large: %s", path, short(s)), "")
	}
	return f
}

func (d *decoder) duration(path string, n *node) time.Duration {
	s, ok := d.scalar(path, n, "a duration such as 5s")
	if !ok {
		return 0
	}
	v, what, hint := parseDuration(s, mostDuration(path))
	if what != "" {
		d.fail(n.at, fmt.Sprintf("%s %s", path, what), hint)
	}
	return v
}

// parseDuration reads a duration of at most most, with its unit. It returns what is wrong with it, and
// what would be right.
func parseDuration(s string, most time.Duration) (v time.Duration, what, hint string) {
	v, err := time.ParseDuration(s)
	if _, number := strconv.ParseFloat(s, 64); number == nil && s != "0" {
		return 0, fmt.Sprintf("has no unit: %s", quote(s)), fmt.Sprintf("write %ss or %sms", short(s), short(s))
	}
	long := durationPattern.MatchString(s) // and yet an error: it overflows
	switch {
	case err != nil && !long:
		return 0, fmt.Sprintf("is not a duration: %s", quote(s)), durationHint(s)
	case strings.HasPrefix(s, "-") && v <= 0:
		return 0, fmt.Sprintf("must not be negative: %s", short(s)), ""
	case err != nil || v > most:
		return 0, fmt.Sprintf("is absurdly long: %s", short(s)), fmt.Sprintf("at most %dh", most/time.Hour)
	}
	return v, "", ""
}

var (
	durationPattern = regexp.MustCompile(`^[-+]?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`)
	spelledOut      = regexp.MustCompile(`^([0-9]+) ?([a-z]+)$`)
)

// durationHint says how to write what somebody wrote in full, or what a duration looks like.
func durationHint(s string) string {
	if strings.Contains(s, ": ") {
		return "a comma is missing between two keys"
	}
	if m := spelledOut.FindStringSubmatch(strings.ToLower(s)); m != nil && len(m[1]) < 6 {
		for _, u := range []struct{ unit, words string }{
			{"ms", " ms msec msecs millis millisecond milliseconds "},
			{"s", " s sec secs second seconds "},
			{"m", " m min mins minute minutes "},
			{"h", " h hr hrs hour hours "},
		} {
			if strings.Contains(u.words, " "+m[2]+" ") {
				return "write " + m[1] + u.unit
			}
		}
		if days, err := strconv.Atoi(m[1]); err == nil && (m[2] == "d" || m[2] == "day" || m[2] == "days") {
			return fmt.Sprintf("write %dh", 24*days)
		}
	}
	return "a number and its unit: 250ms, 5s, 1m30s, 24h"
}

func (d *decoder) money(path string, n *node) int64 {
	s, ok := d.scalar(path, n, "an amount such as 49.99")
	if !ok {
		return 0
	}
	whole, cents, dot := strings.Cut(s, ".")
	if dot && (len(cents) < 1 || len(cents) > 2) {
		d.fail(n.at, fmt.Sprintf("%s must have one or two decimals: %s", path, quote(s)), "")
		return 0
	}
	minor, err := strconv.ParseInt(whole+(cents + "00")[:2], 10, 64)
	if err != nil || minor < 0 || minor > 1e12 {
		d.fail(n.at, fmt.Sprintf("%s is not an amount: %s", path, quote(s)), "a number from 0 to 10 billion, such as 49.99")
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
