package scenarios

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"retrylab/caller/policy"
	"retrylab/caller/preset"
	"retrylab/internal/expression"
	"retrylab/slowserver/fault"
	"retrylab/slowserver/guard"
)

// Bounds on what a scenario may ask for.
const (
	maxOperations  = 10_000
	maxConcurrency = 1000
	maxSides       = 10_000 // operations × concurrency
	maxHops        = 8
	maxLayers      = 8
	maxReplicas    = 32
	maxVariants    = 200
	maxSeeds       = 100
)

// Families lists the families of scenarios in the order of a course.
var Families = []string{"timeouts", "layers", "guards", "unknown-outcomes", "load"}

// Options change what a scenario's trials are made of.
type Options struct {
	Set  []string // path=value, in the order given: the later wins
	Seed int64
	Only string // the id of the one configuration to plan; all of them when empty
}

// Parse reads a scenario and checks all of its configurations. name is what errors call the file.
// An error is an [*Error] with a position in it.
func Parse(name string, data []byte) (*Scenario, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // some editors begin a file with a mark
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
	if len(s.Seeds) > maxSeeds {
		return fail(fmt.Sprintf("seeds[%d]", maxSeeds), fmt.Sprintf("more than %d seeds", maxSeeds), "`retrylab run --repeat` runs more")
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
		variant := Variant{Name: v.Name, ID: id, at: find(s.tree, path)}
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
		t, err := s.resolve(i, v, changes, o.Seed)
		if err != nil {
			return nil, err
		}
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

// Base resolves the scenario as its file begins, before any variant: what the variants differ
// from. It is pure.
func (s *Scenario) Base() (Trial, error) {
	return s.resolve(-1, Variant{Name: "base", ID: "base"}, nil, 1)
}

// change is one --set: a path, its value and where it was asked for.
type change struct {
	path  string
	value *node
	at    position
}

func parseSets(sets []string) ([]change, error) {
	var out []change
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
		out = append(out, change{path: strings.TrimSpace(path), value: n, at: at})
	}
	return out, nil
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
func (s *Scenario) resolve(i int, v Variant, changes []change, seed int64) (Trial, error) {
	root := s.tree.pick(slices.Concat(keysOf(reflect.TypeFor[Setup]()), []string{"expect", "invariant"}))
	checks := s.tree // where expect and invariant stand
	prefix := ""
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
		Expect: row.Expect, Invariants: row.Invariant, Seed: seed, Begin: s.Begin,
		Places: map[string]Place{},
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

// checker looks at the meaning of a decoded trial, fills in its defaults and resolves its layers.
type checker struct {
	scenario *Scenario
	root     *node
	trial    *Trial
	prefix   string // of expect and invariant
	err      error
}

// fail is about the value at path.
func (c *checker) fail(path, what, hint string) {
	if c.err == nil {
		c.failAt(find(c.root, path), what, hint)
	}
}

// failKey is about the key at path: it should not be there.
func (c *checker) failKey(path, what, hint string) {
	if c.err == nil {
		c.failAt(findKey(c.root, path), what, hint)
	}
}

func (c *checker) failAt(at position, what, hint string) {
	if c.err != nil {
		return
	}
	e := &Error{At: at, What: what, Hint: hint}
	if e.At.line > 0 {
		e.Source = c.scenario.Source
	}
	c.err = e
}

func (c *checker) check() error {
	p := &c.trial.Setup
	c.defaults(p)
	c.number("operations", p.Operations)
	c.number("concurrency", p.Concurrency)
	if p.Operations*p.Concurrency > maxSides {
		c.fail("concurrency", fmt.Sprintf("%d operations × %d sends side by side are more than %d", p.Operations, p.Concurrency, maxSides), "")
	}
	if p.Amount <= 0 {
		c.fail("amount", "an order's amount must be above 0", "")
	}
	c.caller(&p.Caller)
	if len(p.Hops) > maxHops {
		c.fail(fmt.Sprintf("hops[%d]", maxHops), fmt.Sprintf("more than %d hops", maxHops), "")
	}
	for i := range p.Hops {
		c.hop(fmt.Sprintf("hops[%d]", i), &p.Hops[i])
	}
	c.server(&p.Server)
	if c.err != nil {
		return c.err // what follows relies on the bounds
	}
	machines := c.machines(p)
	c.layers("caller.layers", p.Caller.Layers, &c.trial.Layers)
	for i := range p.Hops {
		var resolved []policy.Layer
		c.layers(fmt.Sprintf("hops[%d].layers", i), p.Hops[i].Layers, &resolved)
		c.trial.HopLayers = append(c.trial.HopLayers, resolved)
	}
	c.demands("premise", p.Premises)
	c.demands("invariant", c.trial.Invariants)
	c.expect(machines)
	return c.err
}

// machines lists the names of all machines, each of which has one of its own.
func (c *checker) machines(p *Setup) []string {
	names := p.Server.ReplicaNames()
	owner := map[string]string{}
	for _, name := range names {
		owner[name] = "a replica of the order service"
	}
	add := func(path, name, what string) {
		if other := owner[name]; other != "" {
			c.fail(path, fmt.Sprintf("two machines are called %q", name), other+" has that name; a chain has no cycle, each machine in it needs a name of its own")
		}
		owner[name] = what
		names = append(names, name)
	}
	add("caller.name", p.Caller.Name, "the caller")
	for i, h := range p.Hops {
		add(fmt.Sprintf("hops[%d].name", i), h.Name, fmt.Sprintf("hops[%d]", i))
	}
	return names
}

func (c *checker) defaults(p *Setup) {
	if p.Operations == 0 && c.root.get("operations") == nil {
		p.Operations = 1
	}
	if p.Concurrency == 0 && c.root.get("concurrency") == nil {
		p.Concurrency = 1
	}
	if p.Amount == 0 && c.root.get("amount") == nil {
		p.Amount = 5000
	}
	def := func(s *string, value string) {
		if *s == "" {
			*s = value
		}
	}
	def(&p.Caller.Name, "caller")
	def(&p.Caller.Method, "POST")
	def(&p.Caller.Key, "none")
	def(&p.Caller.Content, "same")
	def(&p.Caller.Connection, "fresh")
	if p.Caller.Body == "" {
		p.Caller.Body = policy.Buffered
		if !slices.Contains([]string{"POST", "PUT", "PATCH"}, p.Caller.Method) {
			p.Caller.Body = policy.NoBody
		}
	}
	if p.Caller.Connection == "reused" && p.Caller.Idle == 0 {
		p.Caller.Idle = 1
	}
	for i := range p.Hops {
		h := &p.Hops[i]
		def(&h.Kind, "service")
		def(&h.Name, h.Kind)
		if h.Kind == "nginx" && h.Layers == nil {
			h.Layers = []policy.Settings{{Preset: "nginx"}}
		}
	}
	def(&p.Server.Name, "order")
	def(&p.Server.OnClientGone, "finish")
	if s := c.root.get("server"); p.Server.Replicas == 0 && (s == nil || s.get("replicas") == nil) {
		p.Server.Replicas = 1
	}
}

func (c *checker) caller(x *Caller) {
	c.word("caller.method", x.Method)
	c.word("caller.key", x.Key)
	c.word("caller.content", x.Content)
	c.word("caller.connection", x.Connection)
	c.word("caller.body", string(x.Body))
	if x.Body != policy.NoBody && !slices.Contains([]string{"POST", "PUT", "PATCH", "DELETE"}, x.Method) {
		c.fail("caller.body", fmt.Sprintf("a %s is sent without a body here", x.Method), "real clients turn a GET with a body into a POST; write method: POST")
	}
	c.number("caller.pool", x.Pool)
	c.number("caller.idle", x.Idle)
	if x.Idle > 0 && x.Connection != "reused" {
		c.fail("caller.idle", "idle connections are there only with connection: reused", "")
	}
	if x.Timeouts.Acquire > 0 && x.Pool == 0 {
		c.fail("caller.timeouts.acquire", "an acquire timeout needs a pool", "set caller.pool to the number of connections")
	}
	c.name("caller.name", x.Name, "a machine")
}

func (c *checker) hop(path string, h *Hop) {
	c.word(path+".kind", h.Kind)
	c.name(path+".name", h.Name, "a machine")
	if h.Timeouts.Acquire > 0 {
		c.fail(path+".timeouts.acquire", "a hop has no pool to wait for", "")
	}
}

func (c *checker) name(path, name, what string) {
	if !slugPattern.MatchString(name) || len(name) > 40 {
		c.fail(path, fmt.Sprintf("%s is no name for %s", quote(name), what), "lower-case letters, digits and hyphens, at most 40")
	}
}

func (c *checker) server(x *Server) {
	c.name("server.name", x.Name, "a machine")
	c.word("server.on-client-gone", x.OnClientGone)
	c.number("server.replicas", x.Replicas)
	c.guard("server.guard", x.Guard)
	for i, f := range x.Faults {
		c.fault(fmt.Sprintf("server.faults[%d]", i), f, x.Replicas)
	}
}

func (c *checker) guard(path string, s guard.Settings) {
	g, known := guard.Find(s.Kind)
	p := s.Check()
	switch {
	case p == nil:
	case !known:
		c.fail(path+".kind", p.What, suggest(s.Kind, guardNames()))
	case !slices.Contains(g.Takes, p.Field):
		hint := p.Hint
		switch {
		case s.Kind == "":
			hint = "say which guard: kind: unique-index"
		case len(g.Takes) > 0:
			hint = "it takes: " + strings.Join(g.Takes, ", ")
		}
		c.failKey(path+"."+p.Field, p.What, hint)
	default:
		c.fail(path+"."+p.Field, p.What, p.Hint)
	}
}

func (c *checker) fault(path string, s fault.Settings, replicas int) {
	kinds, places := faultNames(), texts(fault.Places)
	kind, known := fault.Find(s.Do)
	switch {
	case s.Do == "":
		c.fail(path, "the fault does not say what it does", "add do: with one of "+strings.Join(kinds, ", "))
		return
	case !known:
		c.fail(path+".do", fmt.Sprintf("unknown fault %s", quote(s.Do)), suggest(s.Do, kinds))
		return
	case s.At == "":
		c.fail(path, "the fault does not say where it strikes", "add at: with one of "+strings.Join(places, ", "))
		return
	case !slices.Contains(fault.Places, s.At):
		c.fail(path+".at", fmt.Sprintf("unknown place %s", quote(string(s.At))), suggest(string(s.At), places))
		return
	}
	for i, n := range s.Replicas {
		if n < 1 || n > replicas {
			c.fail(fmt.Sprintf("%s.replicas[%d]", path, i), fmt.Sprintf("there is no replica %d", n), fmt.Sprintf("they are counted from 1, and server.replicas is %d", replicas))
			return
		}
	}
	if p := s.Check(); p != nil {
		// What the kind does not take should not be there; of the rest it is the value that is wrong.
		common := []string{"at", "do", "arrivals", "replicas"}
		if !slices.Contains(common, p.Field) && !slices.Contains(kind.Takes, p.Field) {
			c.failKey(path+"."+p.Field, p.What, p.Hint)
		} else {
			c.fail(path+"."+p.Field, p.What, p.Hint)
		}
	}
}

func (c *checker) layers(path string, in []policy.Settings, out *[]policy.Layer) {
	if len(in) > maxLayers {
		c.fail(fmt.Sprintf("%s[%d]", path, maxLayers), fmt.Sprintf("more than %d layers", maxLayers), "")
		return
	}
	names := map[string]bool{}
	for i, s := range in {
		at := fmt.Sprintf("%s[%d]", path, i)
		if s.Preset == "" {
			s.Preset = "retry"
		}
		p, ok := preset.Find(s.Preset)
		if !ok {
			hint := suggest(s.Preset, preset.Names())
			if Nearest(s.Preset, preset.Names()) == "" {
				hint += "; `retrylab layers` describes them"
			}
			c.fail(at+".preset", fmt.Sprintf("unknown preset %s", quote(s.Preset)), hint)
			return
		}
		layer, err := p.Resolve(s)
		if err != nil {
			c.setting(at, p, s, err)
			return
		}
		c.name(at+".name", layer.Name, "a layer")
		if names[layer.Name] {
			c.fail(at, fmt.Sprintf("two layers are called %q", layer.Name), "give this one a name of its own")
		}
		names[layer.Name] = true
		*out = append(*out, layer)
	}
}

// setting is about a setting of the layer at path that its preset refuses.
func (c *checker) setting(path string, p *preset.Preset, s policy.Settings, err error) {
	var refused *policy.FieldError
	if !errors.As(err, &refused) {
		c.fail(path, fmt.Sprintf("%s: %v", path, err), "")
		return
	}
	at := path + "." + refused.Field
	hint := "`retrylab layers " + p.Name + "` shows what it takes"
	name, _, _ := strings.Cut(refused.Field, ".")
	switch {
	case !slices.Contains(append([]string{"preset", "name"}, p.Takes...), name):
		if len(p.Takes) > 0 {
			hint = "it takes: " + strings.Join(p.Takes, ", ")
		} else {
			hint = "it has no settings"
		}
		c.failKey(at, fmt.Sprintf("%s means nothing to %s", at, p.Name), hint)
	default:
		what, place := refused.Problem, at
		if i := wrongItem(s, refused.Field); i >= 0 {
			place = fmt.Sprintf("%s[%d]", at, i)
			if refused.Field == "on" {
				what = quote(s.On[i]) + " is nothing that can be retried"
				hint = strings.Replace(suggest(s.On[i], policy.TriggerWords()), "one of:", "a status from 300 to 599, or one of:", 1)
			}
		}
		c.fail(place, fmt.Sprintf("%s: %s", at, what), hint)
	}
}

// wrongItem returns the first item of a list among the settings that is refused by itself, -1 when
// it is not about a list or not about one item.
func wrongItem(s policy.Settings, field string) int {
	index := slices.Index(keysOf(reflect.TypeFor[policy.Settings]()), field)
	if index < 0 {
		return -1
	}
	list, _ := reflect.ValueOf(s).Field(index).Interface().([]string)
	for i, word := range list {
		var alone policy.Settings
		reflect.ValueOf(&alone).Elem().Field(index).Set(reflect.ValueOf([]string{word}))
		if alone.Validate() != nil {
			return i
		}
	}
	return -1
}

func (c *checker) demands(what string, list []Demand) {
	for _, d := range list {
		_, err := expression.Compile(d.Expression)
		var wrong *expression.Error
		if !errors.As(err, &wrong) {
			continue
		}
		hint := wrong.Hint
		if wrong.Unknown != "" {
			hint = suggest(wrong.Unknown, expression.Names())
		}
		at := position{file: d.At.File, line: d.At.Line, column: d.At.Column}
		c.failAt(c.inside(at, d.Expression, wrong.At), fmt.Sprintf("%s %s: %s", what, quote(strings.TrimSpace(d.Expression)), wrong.What), hint)
	}
}

// inside is the place of a text's n-th character, where the text stands on one line of the file.
func (c *checker) inside(at position, text string, n int) position {
	lines := strings.Split(string(c.scenario.Source), "\n")
	if at.line < 1 || at.line > len(lines) {
		return at
	}
	rest := string(skip([]rune(lines[at.line-1]), at.column-1))
	if q := strings.TrimLeft(rest, `"'`); len(rest)-len(q) == 1 {
		rest, n = q, n+1
	}
	if strings.HasPrefix(rest, text) {
		at.column += n
	}
	return at
}

// expect checks the words in an expectation; its numbers are the judge's.
func (c *checker) expect(machines []string) {
	e := c.trial.Expect
	if e == nil {
		return
	}
	path := c.prefix + "expect."
	if e.Belief != "" {
		c.word(path+"belief", e.Belief)
	}
	for _, counts := range []struct {
		key string
		of  map[string]int
	}{{"sends-by", e.SendsBy}, {"arrivals-at", e.ArrivalsAt}} {
		for _, machine := range slices.Sorted(maps.Keys(counts.of)) {
			if !slices.Contains(machines, machine) {
				c.failKey(path+counts.key+"."+machine, fmt.Sprintf("there is no machine %s", quote(machine)), suggest(machine, machines))
			}
		}
	}
	for _, status := range slices.Sorted(maps.Keys(e.Answers)) {
		if code, err := strconv.Atoi(status); err != nil || code < 100 || code > 599 {
			c.failKey(path+"answers."+status, fmt.Sprintf("%s is no HTTP status", quote(status)), "a number such as 201 or 503")
		}
	}
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
	t := Trial{Scenario: name, Configuration: name, ID: name, Setup: setup, Seed: 1, Places: map[string]Place{}}
	c := checker{scenario: &Scenario{Name: name}, root: &node{kind: mapping}, trial: &t}
	if err := c.check(); err != nil {
		return Trial{}, err
	}
	return t, nil
}
