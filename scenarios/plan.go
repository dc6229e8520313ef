package scenarios

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Bounds on what a scenario may ask for.
const (
	maxOperations  = 10_000
	maxSimulated   = 1_000_000 // operations that are simulated
	maxConcurrency = 1000
	maxSides       = 10_000 // operations × concurrency
	maxHops        = 8
	maxLayers      = 8
	maxReplicas    = 32
	maxRows        = 8
	maxVariants    = 200
	maxJumps       = 100
	maxHeader      = 255      // characters of a header's value
	maxItem        = 255      // bytes of an item's name
	maxDribble     = 64 << 20 // bytes of all answers of a trial that dribble
)

// MaxSeeds is how many seeds a file can name.
const MaxSeeds = 20

// Families lists the families of scenarios in the order of a course.
var Families = []string{"timeouts", "layers", "guards", "unknown-outcomes", "load", Incidents}

// Options change what a scenario's trials are made of.
type Options struct {
	Set  []string // path=value, in the order given: what undoes an earlier one is refused
	Seed int64
	Only string // the id of the one configuration to plan; all of them when empty
	// Assert are expressions that must be true of every configuration, on top of what the file demands.
	Assert []string
}

// asserts are what Assert demands.
func (o Options) asserts() []Demand {
	var out []Demand
	for _, text := range o.Assert {
		out = append(out, Demand{Expression: text})
	}
	return out
}

// Parse reads a scenario and checks all of its configurations. name is what errors call the file.
// An error is an [*Error] with a position in it.
func Parse(name string, data []byte) (*Scenario, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // some editors begin a file with a mark
	// The parser counts some lines twice that end as Windows ends them.
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	root, err := parseTree(name, data)
	if err != nil {
		return nil, err
	}
	d := decoder{source: data}
	var f file
	d.decode("", root, reflect.ValueOf(&f).Elem())
	if d.err != nil {
		return nil, d.err
	}
	s := &Scenario{
		Name: f.Name, Title: f.Title, Family: f.Family, Lesson: f.Lesson,
		Tags: f.Tags, Needs: f.Needs, Clocks: f.Clocks, Seeds: f.Seeds,
		Next: f.Next, Focus: f.Focus, Remedy: f.Remedy, Currency: f.Currency, Begin: f.Begin, Sources: f.Sources,
		File: name, Source: data, tree: root,
	}
	if err := s.check(f); err != nil {
		return nil, err
	}
	// What the variants differ from must be right as well, also where each of them replaces what
	// is wrong with it.
	if _, err := s.Base(); err != nil {
		return nil, err
	}
	if _, err := s.Plan(Options{Seed: 1}); err != nil {
		return nil, err
	}
	return s, nil
}

var slugPattern = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// check looks at what a file says of itself and at the names of its variants.
func (s *Scenario) check(f file) error {
	fail := func(path, what, hint string) error {
		return &Error{At: find(s.tree, path), Source: s.Source, What: what, Hint: hint}
	}
	switch {
	case s.Name == "":
		return fail("", "the scenario has no name", "write name: my-scenario")
	case !slugPattern.MatchString(s.Name) || len(s.Name) > 64:
		return fail("name", fmt.Sprintf("%s is no name for a scenario", quote(s.Name)), "lower-case letters, digits and hyphens, at most 64")
	case !oneLine(s.Title):
		return fail("title", "a title is one line of at most 120 characters", "tell the rest in the lesson")
	case s.Family != "" && !slices.Contains(Families, s.Family):
		return fail("family", fmt.Sprintf("unknown family %s", quote(s.Family)), suggest(s.Family, Families))
	case len(f.Variants) > maxVariants:
		return fail(fmt.Sprintf("variants[%d]", maxVariants), fmt.Sprintf("more than %d variants", maxVariants), "")
	case len(f.Variants) > 0 && f.Expect != nil:
		return &Error{At: findKey(s.tree, "expect"), Source: s.Source, What: "expect stands beside variants", Hint: "each variant has an expect of its own"}
	case len(f.Variants) > 0 && f.Invariant != nil:
		return &Error{At: findKey(s.tree, "invariant"), Source: s.Source, What: "invariant stands beside variants", Hint: "each variant has an invariant of its own"}
	}
	for _, list := range []struct {
		path, what string
		words      []string
	}{{"clocks", "clock", s.Clocks}, {"needs", "need", s.Needs}} {
		for i, word := range list.words {
			path := fmt.Sprintf("%s[%d]", list.path, i)
			if r, _ := RuleAt(path); !slices.Contains(r.Words, word) {
				return fail(path, fmt.Sprintf("unknown %s %s", list.what, quote(word)), suggest(word, r.Words))
			}
		}
	}
	switch {
	case s.Next != "" && !slugPattern.MatchString(s.Next):
		return fail("next", fmt.Sprintf("%s is no name of a scenario", quote(s.Next)), "lower-case letters, digits and hyphens")
	case len([]rune(s.Currency)) > 8 || strings.ContainsFunc(s.Currency, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fail("currency", "a currency is at most 8 printable characters", "a symbol such as € or USD")
	}
	if len(s.Seeds) > MaxSeeds {
		return fail(fmt.Sprintf("seeds[%d]", MaxSeeds), fmt.Sprintf("more than %d seeds", MaxSeeds), "`retrylab run --repeat` runs more")
	}
	for i, seed := range s.Seeds {
		if slices.Contains(s.Seeds[:i], seed) {
			return fail(fmt.Sprintf("seeds[%d]", i), fmt.Sprintf("the seed %d stands twice", seed), "")
		}
	}
	if s.Begin != "" {
		if _, err := time.Parse(BeginLayout, s.Begin); err != nil {
			return fail("begin", fmt.Sprintf("%s is no time of day", quote(s.Begin)), "hours, minutes, seconds, milliseconds: 14:08:33.512")
		}
	}
	if len(f.Variants) == 0 {
		s.Variants = []Variant{{Name: "as written", ID: "as-written", at: s.tree.at}}
		return s.checkRoles()
	}
	seen := map[string]bool{}
	for i, v := range f.Variants {
		path := fmt.Sprintf("variants[%d]", i)
		switch {
		case v.Name == "":
			return fail(path, "a variant has no name", "write name: what this row shows")
		case !oneLine(v.Name):
			return fail(path+".name", "a name is one line of at most 120 characters", "")
		}
		id, source := v.ID, path+".id"
		if id == "" {
			id, source = Slug(v.Name), path+".name"
		}
		switch {
		case v.ID != "" && (!slugPattern.MatchString(id) || len(id) > 120):
			return fail(source, fmt.Sprintf("%s is no id for a variant", quote(id)), "lower-case letters, digits and hyphens")
		case !slugPattern.MatchString(id):
			return fail(source, fmt.Sprintf("no id can be made of the name %s", quote(v.Name)), "give the variant an id: lower-case letters, digits and hyphens")
		case seen[id]:
			return fail(source, fmt.Sprintf("two variants have the id %q", id), "give one of them an id of its own")
		}
		seen[id] = true
		variant := Variant{Name: v.Name, ID: id, Said: v.Said, at: find(s.tree, path)}
		for _, c := range v.Set {
			variant.Changes = append(variant.Changes, Change{Path: c.name, Value: c.node.flow()})
		}
		s.Variants = append(s.Variants, variant)
	}
	return s.checkRoles()
}

// checkRoles looks whether the configurations that the file speaks of are there.
func (s *Scenario) checkRoles() error {
	var ids []string
	for _, v := range s.Variants {
		ids = append(ids, v.ID)
	}
	for _, role := range []struct{ key, id string }{{"focus", s.Focus}, {"remedy", s.Remedy}} {
		if role.id != "" && !slices.Contains(ids, role.id) {
			return &Error{
				At: find(s.tree, role.key), Source: s.Source,
				What: fmt.Sprintf("there is no configuration %s", quote(role.id)), Hint: suggest(role.id, ids),
			}
		}
	}
	return nil
}

// oneLine reports whether a text fits on a line of a list.
func oneLine(s string) bool {
	return len([]rune(s)) <= 120 && !strings.ContainsAny(s, "\r\n")
}

// BeginLayout is how a scenario writes the time of day of its beginning, with or without a fraction
// of a second.
const BeginLayout = "15:04:05"

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

// Slug makes an id for shells and file names of a row's name.
func Slug(name string) string {
	return strings.Trim(notSlug.ReplaceAllString(strings.ToLower(name), "-"), "-")
}

// Plan resolves the scenario's configurations into trials. It is pure.
func (s *Scenario) Plan(o Options) ([]Trial, error) {
	changes, err := parseSets(o.Set)
	if err != nil {
		return nil, err
	}
	var trials []Trial
	for i, v := range s.Variants {
		if o.Only != "" && o.Only != v.ID {
			continue
		}
		t, err := s.resolve(i, v, changes, o.asserts(), o.Seed)
		if err != nil {
			return nil, err
		}
		t.Row = i
		trials = append(trials, t)
	}
	if len(trials) == 0 {
		var ids []string
		for _, v := range s.Variants {
			ids = append(ids, v.ID)
		}
		return nil, &Error{What: fmt.Sprintf("%s has no configuration %q", s.Name, o.Only), Hint: suggest(o.Only, ids)}
	}
	return trials, nil
}

// Overridden says, of each path that is set from the command line, how many configurations set it themselves, or a part
// of it, or the whole that it is a part of. only is the id of the one that is run, "" for all.
func (s *Scenario) Overridden(sets []string, only string) (notes []string) {
	for _, text := range sets {
		path, _, _ := strings.Cut(text, "=")
		own, ok := parsePath(strings.TrimSpace(path))
		n := 0
		for _, v := range s.Variants {
			if ok && (only == "" || only == v.ID) && slices.ContainsFunc(v.Changes, func(c Change) bool {
				other, _ := parsePath(c.Path)
				least := min(len(own), len(other))
				return least > 0 && slices.Equal(own[:least], other[:least])
			}) {
				n++
			}
		}
		switch {
		case n == 1:
			notes = append(notes, fmt.Sprintf("1 configuration sets %s itself, and --set wins", short(strings.TrimSpace(path))))
		case n > 1:
			notes = append(notes, fmt.Sprintf("%d configurations set %s themselves, and --set wins", n, short(strings.TrimSpace(path))))
		}
	}
	return notes
}

// Base resolves the scenario as its file begins, before any variant: what the variants differ
// from. It is pure.
func (s *Scenario) Base() (Trial, error) {
	return s.resolve(-1, Variant{Name: "base", ID: "base"}, nil, nil, 1)
}

// setting is one --set: a path, its value and where it was asked for.
type setting struct {
	path  string
	value *node
	at    position
}

func parseSets(sets []string) ([]setting, error) {
	var out []setting
	for _, text := range sets {
		at := position{file: "--set " + short(text)}
		path, value, ok := strings.Cut(text, "=")
		if !ok || path == "" {
			return nil, &Error{At: at, What: "it is not a path and a value", Hint: "for example --set caller.timeouts.read=15s"}
		}
		n := &node{at: at}
		if strings.TrimSpace(value) != "" {
			parsed, err := parseTree(at.file, []byte(value))
			if err != nil {
				var e *Error
				if errors.As(err, &e) {
					e.At, e.Source = at, nil
				}
				return nil, err
			}
			n = parsed.relocate(at)
		}
		s := setting{path: strings.TrimSpace(path), value: n, at: at}
		for _, before := range out {
			if same, undone := s.undoes(before); same {
				return nil, &Error{At: at, What: quote(s.path) + " is set twice", Hint: "one of the two will do"}
			} else if undone {
				return nil, &Error{At: at, What: "it undoes " + before.at.file, Hint: "give them in the other order, or leave one out"}
			}
		}
		out = append(out, s)
	}
	return out, nil
}

// undoes reports whether nothing is left of a setting before s once s is set: it is of the same place, or of
// something below it. A guard by its name alone is the kind of it.
func (s setting) undoes(before setting) (same, undone bool) {
	own, ok := parsePath(s.path)
	other, known := parsePath(before.path)
	if !ok || !known {
		return false, false // set says what is wrong with it
	}
	if slices.Equal(own, other) {
		return true, true
	}
	if last := other[len(other)-1]; last.name == "guard" && before.value.kind == scalar {
		other = append(other, segment{name: "kind", index: -1})
	}
	return false, len(own) <= len(other) && slices.Equal(own, other[:len(own)])
}

// relocate gives every value below n one place.
func (n *node) relocate(at position) *node {
	n.at = at
	for i := range n.keys {
		n.keys[i].at = at
		n.keys[i].node.relocate(at)
	}
	for _, item := range n.items {
		item.relocate(at)
	}
	return n
}

// flow writes a node on one line, as a person would.
func (n *node) flow() string {
	switch n.kind {
	case scalar:
		if n.text == "" {
			return `""`
		}
		return n.text
	case sequence:
		var items []string
		for _, item := range n.items {
			items = append(items, item.flow())
		}
		return "[" + strings.Join(items, ", ") + "]"
	case mapping:
		var items []string
		for _, e := range n.keys {
			items = append(items, e.name+": "+e.node.flow())
		}
		return "{" + strings.Join(items, ", ") + "}"
	}
	return "null"
}

// resolve makes the trial of one variant: the file's values, the variant's on top of them, those
// of the command line on top of both, decoded strictly and checked.
func (s *Scenario) resolve(i int, v Variant, changes []setting, asserts []Demand, seed int64) (Trial, error) {
	return s.resolveRow(i, v, changes, asserts, seed, false)
}

// resolveRow is resolve, of a row that expects what the file says or, where it is only measured, nothing.
func (s *Scenario) resolveRow(i int, v Variant, changes []setting, asserts []Demand, seed int64, measured bool) (Trial, error) {
	root := s.tree.pick(slices.Concat(keysOf(reflect.TypeFor[Setup]()), []string{"expect", "invariant"}))
	checks := s.tree // where expect and invariant stand
	prefix := ""
	own := map[position]bool{}
	if list := s.tree.get("variants"); list != nil && len(list.items) > 0 && i >= 0 {
		checks = list.items[i]
		prefix = fmt.Sprintf("variants[%d].", i)
		if sets := checks.get("set"); sets != nil {
			for _, e := range sets.keys {
				if err := s.allowed(e.name, e.at); err != nil {
					return Trial{}, err
				}
				if err := set(root, e.name, e.node.clone(), e.at, s.Source); err != nil {
					return Trial{}, err
				}
				e.node.places(own)
			}
		}
	}
	for _, c := range changes {
		if err := s.allowed(c.path, c.at); err != nil {
			return Trial{}, err
		}
		if err := set(root, c.path, c.value.clone(), c.at, nil); err != nil {
			return Trial{}, err
		}
	}
	if measured {
		checks = &node{kind: mapping}
		root = root.without("expect", "invariant", "premises")
	}
	written := root.clone() // the checks add to root what is none of the setup
	d := decoder{source: s.Source}
	var f file
	var row variant
	d.decode("", root, reflect.ValueOf(&f).Elem())
	if prefix == "" {
		row = variant{Expect: f.Expect, Invariant: f.Invariant}
	} else {
		d.decode(strings.TrimSuffix(prefix, "."), checks, reflect.ValueOf(&row).Elem())
	}
	if d.err != nil {
		if d.err.At.line == 0 {
			d.err.Source = nil
		}
		return Trial{}, d.err
	}
	t := Trial{
		Scenario: s.Name, Configuration: v.Name, ID: v.ID, Setup: f.Setup,
		Expect: row.Expect, Said: row.Said, Invariants: row.Invariant, Asserts: asserts, Seed: seed, Begin: s.Begin,
		Places:  map[string]Place{},
		written: written, checks: checks, prefix: prefix, own: own,
		nameAt: find(checks, "name"), idAt: position{file: byDefault},
	}
	if id := checks.get("id"); id != nil {
		t.idAt = id.at
	}
	t.Needs, t.Why = t.Setup.NeedsEngine()
	if slices.Contains(s.Needs, postgres) && t.Needs == "" && !t.Setup.Simulate {
		t.Needs = postgres
	}
	if e := checks.get("expect"); e != nil {
		for _, k := range e.keys {
			t.Places[k.name] = Place{File: k.at.file, Line: k.at.line, Column: k.at.column}
		}
	}
	c := checker{scenario: s, root: root, trial: &t, prefix: prefix}
	if prefix != "" {
		// For the positions of what is wrong with the variant's own checks.
		root.put("variants", s.tree.get("variants"))
	}
	if err := c.check(); err != nil {
		return Trial{}, err
	}
	return t, nil
}

// allowed refuses to set what names the scenario or its rows: that would be another scenario.
func (s *Scenario) allowed(path string, at position) error {
	steps, ok := parsePath(path)
	if !ok {
		return nil // set says what is wrong with it
	}
	known := keysOf(reflect.TypeFor[Setup]())
	if slices.Contains(known, steps[0].name) {
		return nil
	}
	e := &Error{At: at, What: fmt.Sprintf("%s cannot be set", quote(path)), Hint: "a path begins with one of: " + strings.Join(known, ", ")}
	if near := Nearest(steps[0].name, known); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	itself := slices.Contains(keysOf(FileType()), steps[0].name) // name, variants, …
	for _, parent := range parents(reflect.TypeFor[Setup](), "", steps[0].name) {
		if !itself && !strings.Contains(parent, "[]") {
			e.Hint = fmt.Sprintf("did you mean %s?", quote(join(parent, path)))
			break
		}
	}
	if at.line > 0 {
		e.Source = s.Source
	}
	return e
}

// sets is what a variant changes: paths with their values, in the file's order.
type sets []entry

func (s *sets) decode(d *decoder, path string, n *node) {
	if n.kind == null {
		return
	}
	if n.kind != mapping {
		d.fail(n.at, fmt.Sprintf("%s must be a mapping of paths to values, not %s", path, n.kind), "for example set: {caller.timeouts.read: 15s}")
		return
	}
	*s = n.keys
}

func (x *Demand) decode(d *decoder, path string, n *node) {
	x.Expression, _ = d.scalar(path, n, "an expression such as effects <= wanted")
	x.At = Place{File: n.at.file, Line: n.at.line, Column: n.at.column}
}

func itoa(n int) string { return strconv.Itoa(n) }

// IsFile reports whether a command-line argument names a file and not a built-in scenario.
func IsFile(arg string) bool {
	name, _, _ := strings.Cut(arg, ":") // mine.yaml:ID
	return arg == "-" || strings.ContainsAny(arg, `/\`) || slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(name))
}

// Make returns a trial of a setup that stands in no file, with the defaults and the checks of one
// that does.
func Make(name string, setup Setup) (Trial, error) {
	root := &node{kind: mapping}
	t := Trial{Scenario: name, Configuration: name, ID: name, Setup: setup, Seed: 1, Places: map[string]Place{}, written: root, checks: root}
	c := checker{scenario: &Scenario{Name: name}, root: root, trial: &t}
	if err := c.check(); err != nil {
		return Trial{}, err
	}
	return t, nil
}
