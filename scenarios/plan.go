package scenarios

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"retrylab/caller/policy"
	"retrylab/caller/preset"
	"retrylab/internal/expression"
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
		Tags: f.Tags, Needs: f.Needs, Clocks: f.Clocks,
		Next: f.Next, Currency: f.Currency, Begin: f.Begin, Sources: f.Sources,
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
		return fail("name", fmt.Sprintf("%q is no name for a scenario", s.Name), "lower-case letters, digits and hyphens, at most 64")
	case s.Family != "" && !slices.Contains(Families, s.Family):
		return fail("family", fmt.Sprintf("unknown family %q", s.Family), suggest(s.Family, Families))
	case len(f.Variants) > maxVariants:
		return fail("variants", fmt.Sprintf("more than %d variants", maxVariants), "")
	case len(f.Variants) > 0 && f.Expect != nil:
		return fail("expect", "expect stands beside variants", "each variant has an expect of its own")
	case len(f.Variants) > 0 && f.Invariant != nil:
		return fail("invariant", "invariant stands beside variants", "each variant has an invariant of its own")
	}
	for i, word := range s.Clocks {
		if word != "virtual" && word != "wall" {
			return fail(fmt.Sprintf("clocks[%d]", i), fmt.Sprintf("unknown clock %q", word), "one of: virtual, wall")
		}
	}
	for i, word := range s.Needs {
		if word != "postgres" && word != "redis" {
			return fail(fmt.Sprintf("needs[%d]", i), fmt.Sprintf("unknown need %q", word), "one of: postgres, redis")
		}
	}
	if s.Begin != "" {
		if _, err := time.Parse(BeginLayout, s.Begin); err != nil {
			return fail("begin", fmt.Sprintf("%q is no time of day", s.Begin), "hours, minutes, seconds, milliseconds: 14:08:33.512")
		}
	}
	if len(f.Variants) == 0 {
		s.Variants = []Variant{{Name: "as written", ID: "as-written", at: s.tree.at}}
		return nil
	}
	seen := map[string]bool{}
	for i, v := range f.Variants {
		path := fmt.Sprintf("variants[%d]", i)
		if v.Name == "" {
			return fail(path, "a variant has no name", "")
		}
		id := v.ID
		if id == "" {
			id = Slug(v.Name)
		}
		switch {
		case !slugPattern.MatchString(id):
			return fail(path+".name", fmt.Sprintf("no id can be made of the name %q", v.Name), "give the variant an id: lower-case letters, digits and hyphens")
		case seen[id]:
			return fail(path+".name", fmt.Sprintf("two variants have the id %q", id), "give one of them an id of its own")
		}
		seen[id] = true
		variant := Variant{Name: v.Name, ID: id, at: find(s.tree, path)}
		for _, c := range v.Set {
			variant.Changes = append(variant.Changes, Change{Path: c.name, Value: c.node.flow()})
		}
		s.Variants = append(s.Variants, variant)
	}
	return nil
}

// BeginLayout is how a scenario writes the time of day of its beginning.
const BeginLayout = "15:04:05.000"

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
		at := position{file: "--set " + text}
		path, value, ok := strings.Cut(text, "=")
		if !ok || path == "" {
			return nil, &Error{At: at, What: "no value", Hint: "write --set path=value, for example --set caller.timeouts.read=15s"}
		}
		n := &node{kind: scalar, at: at}
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
	root := s.tree.clone()
	checks := root // where expect and invariant stand
	prefix := ""
	if list := root.get("variants"); list != nil && i >= 0 {
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
	root.drop("variants") // decoded one by one
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
	setup := fieldsOf(reflect.TypeFor[Setup]())
	var known []string
	for _, f := range setup {
		if f.name == steps[0].name {
			return nil
		}
		known = append(known, f.name)
	}
	e := &Error{At: at, What: fmt.Sprintf("%q cannot be set", path), Hint: "a path begins with one of: " + strings.Join(known, ", ")}
	if near := Nearest(steps[0].name, known); near != "" {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
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

func (c *checker) fail(path, what, hint string) {
	if c.err != nil {
		return
	}
	e := &Error{At: find(c.root, path), What: what, Hint: hint}
	if e.At.line > 0 {
		e.Source = c.scenario.Source
	}
	c.err = e
}

func (c *checker) oneOf(path, value string, words ...string) {
	if !slices.Contains(words, value) {
		c.fail(path, fmt.Sprintf("%s cannot be %q", path, value), suggest(value, words))
	}
}

func (c *checker) between(path string, n, low, high int) {
	if n < low || n > high {
		c.fail(path, fmt.Sprintf("%s must be between %d and %d, not %d", path, low, high, n), "")
	}
}

func (c *checker) check() error {
	p := &c.trial.Setup
	c.defaults(p)
	c.between("operations", p.Operations, 1, maxOperations)
	c.between("concurrency", p.Concurrency, 1, maxConcurrency)
	if p.Operations*p.Concurrency > maxSides {
		c.fail("concurrency", fmt.Sprintf("%d operations × %d sends side by side are more than %d", p.Operations, p.Concurrency, maxSides), "")
	}
	if p.Amount <= 0 {
		c.fail("amount", "an order's amount must be above 0", "")
	}
	c.caller(&p.Caller)
	names := map[string]bool{p.Caller.Name: true}
	if len(p.Hops) > maxHops {
		c.fail("hops", fmt.Sprintf("more than %d hops", maxHops), "")
	}
	for i := range p.Hops {
		path := fmt.Sprintf("hops[%d]", i)
		h := &p.Hops[i]
		c.hop(path, h)
		if names[h.Name] {
			c.fail(path+".name", fmt.Sprintf("two machines are called %q", h.Name), "a chain has no cycle: every machine in it has a name of its own")
		}
		names[h.Name] = true
	}
	c.server(&p.Server)
	for _, name := range p.Server.ReplicaNames() {
		if names[name] {
			c.fail("server.name", fmt.Sprintf("two machines are called %q", name), "")
		}
		names[name] = true
	}
	c.layers("caller.layers", p.Caller.Layers, &c.trial.Layers)
	for i := range p.Hops {
		var resolved []policy.Layer
		c.layers(fmt.Sprintf("hops[%d].layers", i), p.Hops[i].Layers, &resolved)
		c.trial.HopLayers = append(c.trial.HopLayers, resolved)
	}
	c.demands("premises", p.Premises)
	c.demands(c.prefix+"invariant", c.trial.Invariants)
	c.expect(names)
	return c.err
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
	if p.Server.Replicas == 0 {
		p.Server.Replicas = 1
	}
}

// Methods lists the HTTP methods that an order can be sent with.
var Methods = []string{"POST", "GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"}

// Keys lists the ways to make an idempotency key.
var Keys = []string{"none", "operation", "attempt", "content", "appended", "server"}

func (c *checker) caller(x *Caller) {
	c.oneOf("caller.method", x.Method, Methods...)
	c.oneOf("caller.key", x.Key, Keys...)
	c.oneOf("caller.content", x.Content, "same", "changing")
	c.oneOf("caller.connection", x.Connection, "fresh", "reused")
	if !slices.Contains(policy.Bodies, x.Body) {
		c.fail("caller.body", fmt.Sprintf("caller.body cannot be %q", x.Body), "one of: none, buffered, fixed, chunked")
	}
	if x.Body != policy.NoBody && !slices.Contains([]string{"POST", "PUT", "PATCH", "DELETE"}, x.Method) {
		c.fail("caller.body", fmt.Sprintf("a %s is sent without a body here", x.Method), "real clients turn a GET with a body into a POST; write method: POST")
	}
	c.between("caller.pool", x.Pool, 0, 10_000)
	c.between("caller.idle", x.Idle, 0, 100)
	if x.Idle > 0 && x.Connection != "reused" {
		c.fail("caller.idle", "idle connections are there only with connection: reused", "")
	}
	if x.Timeouts.Acquire > 0 && x.Pool == 0 {
		c.fail("caller.timeouts.acquire", "an acquire timeout needs a pool", "set caller.pool to the number of connections")
	}
	c.name("caller.name", x.Name)
}

func (c *checker) hop(path string, h *Hop) {
	c.oneOf(path+".kind", h.Kind, "service", "nginx")
	c.name(path+".name", h.Name)
	if h.Timeouts.Acquire > 0 {
		c.fail(path+".timeouts.acquire", "a hop has no pool to wait for", "")
	}
}

func (c *checker) name(path, name string) {
	if !slugPattern.MatchString(name) || len(name) > 40 {
		c.fail(path, fmt.Sprintf("%q is no name for a machine", name), "lower-case letters, digits and hyphens, at most 40")
	}
}

func (c *checker) server(x *Server) {
	c.name("server.name", x.Name)
	c.oneOf("server.on-client-gone", x.OnClientGone, "finish", "cancel")
	c.between("server.replicas", x.Replicas, 1, maxReplicas)
	if p := x.Guard.Check(); p != nil {
		c.fail("server.guard."+p.Field, p.What, p.Hint)
	}
	for i, f := range x.Faults {
		path := fmt.Sprintf("server.faults[%d]", i)
		if p := f.Check(); p != nil {
			c.fail(path+"."+p.Field, p.What, p.Hint)
		}
		for _, n := range f.Replicas {
			if n > x.Replicas {
				c.fail(path+".replicas", fmt.Sprintf("there is no replica %d", n), fmt.Sprintf("server.replicas is %d", x.Replicas))
			}
		}
	}
}

func (c *checker) layers(path string, in []policy.Settings, out *[]policy.Layer) {
	if len(in) > maxLayers {
		c.fail(path, fmt.Sprintf("more than %d layers", maxLayers), "")
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
			var known []string
			for _, p := range preset.All {
				known = append(known, p.Name)
			}
			c.fail(at+".preset", fmt.Sprintf("unknown preset %q", s.Preset), suggest(s.Preset, known))
			return
		}
		layer, err := p.Resolve(s)
		if err != nil {
			var field *policy.FieldError
			if errors.As(err, &field) {
				c.fail(at+"."+field.Field, fmt.Sprintf("%s.%s: %s", at, field.Field, field.Problem), "`retrylab layers "+p.Name+"` shows what it takes")
			} else {
				c.fail(at, fmt.Sprintf("%s: %v", at, err), "`retrylab layers "+p.Name+"` shows what it takes")
			}
			return
		}
		c.name(at+".name", layer.Name)
		if names[layer.Name] {
			c.fail(at, fmt.Sprintf("two layers are called %q", layer.Name), "give one of them a name of its own")
		}
		names[layer.Name] = true
		*out = append(*out, layer)
	}
}

func (c *checker) demands(path string, list []Demand) {
	for _, d := range list {
		if _, err := expression.Compile(d.Expression); err != nil {
			var unknown *expression.UnknownNameError
			hint := ""
			if errors.As(err, &unknown) {
				hint = suggest(unknown.Name, expression.Names())
			}
			e := &Error{
				At: position{file: d.At.File, line: d.At.Line, column: d.At.Column}, Source: c.scenario.Source,
				What: fmt.Sprintf("%s %q: %v", path[strings.LastIndex(path, ".")+1:], d.Expression, err), Hint: hint,
			}
			if c.err == nil {
				c.err = e
			}
		}
	}
}

// expect checks the words in an expectation; its numbers are the judge's.
func (c *checker) expect(machines map[string]bool) {
	e := c.trial.Expect
	if e == nil {
		return
	}
	path := c.prefix + "expect."
	one := c.trial.Setup.Operations == 1
	if e.Belief != "" {
		c.oneOf(path+"belief", e.Belief, "ok", "failed", "unknown")
		if !one {
			c.fail(path+"belief", "belief is for one operation", "with several, write beliefs: {ok: …, unknown: …}")
		}
	}
	if e.Reason != "" && !one {
		c.fail(path+"reason", "reason is for one operation", "")
	}
	for name, counts := range map[string]map[string]int{"sends-by": e.SendsBy, "arrivals-at": e.ArrivalsAt} {
		for machine := range counts {
			if !machines[machine] {
				var known []string
				for m := range machines {
					known = append(known, m)
				}
				slices.Sort(known)
				c.fail(path+name+"."+machine, fmt.Sprintf("there is no machine %q", machine), suggest(machine, known))
			}
		}
	}
	for status := range e.Answers {
		if code, err := strconv.Atoi(status); err != nil || code < 100 || code > 599 {
			c.fail(path+"answers."+status, fmt.Sprintf("%q is no HTTP status", status), "")
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
	x.Expression = d.text(path, n)
	x.At = Place{File: n.at.file, Line: n.at.line, Column: n.at.column}
}

func itoa(n int) string { return strconv.Itoa(n) }

// IsFile reports whether a command-line argument names a file and not a built-in scenario.
func IsFile(arg string) bool {
	return arg == "-" || strings.ContainsAny(arg, `/\`) || slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(arg))
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
