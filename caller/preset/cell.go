package preset

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"retrylab/caller/policy"
)

// Play is one cell as something that can be played: a request, what happens to it at the far end
// every time, and the layers that send it. It says nothing about how often it arrives; that is what
// playing it finds out.
type Play struct {
	Method string      // in capitals
	Key    bool        // the request carries an Idempotency-Key
	Body   policy.Body // how the body is sent

	// What every server does with every request. Without a Trigger it answers with Status.
	Trigger    policy.Failure
	Status     int    // 200 when the cell names neither a failure nor a status
	RetryAfter string // the answer's Retry-After, "" for none

	Reused bool // the first Idle sends go out on idle connections; the others on fresh ones
	Idle   int  // idle connections in the pool at the start, over all servers

	Servers            int           // instances behind a load balancer or a proxy; 1 otherwise
	Addresses          int           // addresses of the one host
	FirstRefuses       bool          // the first server, or the first address, refuses every connection
	CallerGivesUpFirst bool          // whoever asked has gone before the failure takes place, and the hop has noticed
	ReadTimeout        time.Duration // read (response) timeout of the innermost client, 0 for none

	Layers []policy.Settings // outermost first; none when the layer is in the hop
	Hop    *Hop              // the proxy between the caller and the Servers, nil for none
}

// Hop is a proxy that has a layer of its own and stands before the servers of a Play.
type Hop struct {
	Layer policy.Settings
}

// DefaultReadTimeout is the read timeout of a cell that times out and does not say after what.
const DefaultReadTimeout = 5 * time.Second

// settingWords are the words of the fields that p takes: what they mean is the same for every preset.
func settingWords(p *Preset) []word {
	set := func(form, doc, what string, change func(*policy.Settings)) word {
		return word{form, doc, func(b *builder, _ []string) error { return b.set(p.Name, what, change) }}
	}
	duration := func(form, doc string, change func(*policy.Settings, time.Duration)) word {
		return word{form, doc, func(b *builder, a []string) error { return b.setDuration(p.Name, form, a[0], change) }}
	}
	of := map[string][]word{
		"attempts": {
			{"attempts_#", "so many tries in total", func(b *builder, a []string) error { return b.setAttempts(p.Name, a[0], tries) }},
			{"retries_#", "so many retries", func(b *builder, a []string) error { return b.setAttempts(p.Name, a[0], retries) }},
		},
		"statuses": {statusWord(p.Name, "http_#"), statusWord(p.Name, "retry_on_#")},
		"methods":  {set("any_method", "whatever the method", "methods", func(s *policy.Settings) { s.Methods = []string{policy.AnyMethod} })},
		"retry-after": {
			set("ignore_retry_after", "Retry-After is ignored", "Retry-After", func(s *policy.Settings) { s.RetryAfter = policy.IgnoreRetryAfter }),
			set("honour_retry_after", "Retry-After is honoured", "Retry-After", func(s *policy.Settings) { s.RetryAfter = policy.HonourRetryAfter }),
		},
		"wait":           {duration("wait_@", "a fixed wait", func(s *policy.Settings, d time.Duration) { s.Wait = &d })},
		"timeout":        {duration("timeout_@", "limit of each try", func(s *policy.Settings, d time.Duration) { s.Timeout = &d })},
		"total":          {duration("total_@", "limit over all tries", func(s *policy.Settings, d time.Duration) { s.Total = &d })},
		"window":         {duration("window_@", "no try begins later than this", func(s *policy.Settings, d time.Duration) { s.Window = &d })},
		"non-idempotent": {set("non_idempotent", "also POST, LOCK and PATCH", "non-idempotent", func(s *policy.Settings) { s.NonIdempotent = new(true) })},
	}
	// Who has conditions by the original's names has no need of ours for the same.
	theirs := slices.ContainsFunc(p.words, func(own word) bool { return strings.HasPrefix(own.form, "retry_on_") })
	for _, trigger := range policy.TriggerWords() {
		if theirs {
			break
		}
		form := strings.ReplaceAll(trigger, "-", "_")
		of["on"] = append(of["on"], onWord(p.Name, "retry_on_"+form, trigger+" is retried too", trigger))
	}
	var words []word
	for _, field := range p.Takes {
		words = append(words, of[field]...)
	}
	return words
}

// statusWord adds a status to those that a layer retries.
func statusWord(preset, form string) word {
	return word{form, "retry this status", func(b *builder, a []string) error {
		return b.set(preset, "status "+a[0], func(s *policy.Settings) { s.Statuses = append(s.Statuses, a[0]) })
	}}
}

// onWord adds triggers to those that a layer retries.
func onWord(preset, form, doc string, triggers ...string) word {
	return word{form, doc, func(b *builder, _ []string) error {
		return b.set(preset, form, func(s *policy.Settings) {
			if s.On == nil {
				p, _ := b.find(preset)
				s.On = slices.Clone(p.Defaults.On)
			}
			s.On = append(s.On, triggers...)
		})
	}}
}

// Cell reads the name of a cell of p, such as post_eof_fresh. A name is made of words in any order:
// a method, what happens, and whatever else differs from the default. See [Preset.CellWords].
func (p *Preset) Cell(name string) (Play, error) {
	b := &builder{find: Find, owner: p.Name, sends: p.Body, read: DefaultReadTimeout}
	if p.CellRead != nil {
		b.read = *p.CellRead
	}
	if p.InHop {
		b.play.Hop = &Hop{Layer: policy.Settings{Preset: p.Name}}
		b.balanced = true
	} else {
		b.stack(append([]string{p.Name}, p.Over...))
	}
	return b.parse(name, p.vocabulary())
}

// CellWords lists the words that the name of a cell of p may be made of.
func (p *Preset) CellWords() []string { return forms(p.vocabulary()) }

// vocabulary returns the words that are settings of p: its own, and those of the fields that it takes
// for which it has none of the same form.
func (p *Preset) vocabulary() []word {
	words := slices.Clone(p.words)
	for _, w := range settingWords(p) {
		if !slices.ContainsFunc(p.words, func(own word) bool { return own.form == w.form }) {
			words = append(words, w)
		}
	}
	return words
}

// Cell reads the name of a cell of s, as [Preset.Cell] does.
func (s *Stack) Cell(name string) (Play, error) {
	b := &builder{find: Find, owner: s.Name, sends: s.Body, read: DefaultReadTimeout}
	b.stack(s.Presets)
	return b.parse(name, s.words)
}

// CellWords lists the words that the name of a cell of s may be made of.
func (s *Stack) CellWords() []string { return forms(s.words) }

// Cell reads the name of a cell of the preset or the stack that owner names.
func Cell(owner, name string) (Play, error) {
	if p, ok := Find(owner); ok {
		return p.Cell(name)
	}
	if s, ok := FindStack(owner); ok {
		return s.Cell(name)
	}
	return Play{}, fmt.Errorf("cell %s: there is no preset or stack %q", name, owner)
}

// word is one word of the grammar. Its form is one or more parts with an underscore between them, as
// they stand in a name. In a form, # stands for digits and @ for a duration; what they stand for in a
// name is handed to set.
type word struct {
	form string
	doc  string
	set  func(b *builder, args []string) error
}

// common are the words that mean the same for every preset.
var common = slices.Concat(methodWords(), bodyWords(), triggerWords(), connectionWords(), serverWords(), timeWords())

func methodWords() []word {
	var words []word
	for _, m := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} {
		words = append(words, word{strings.ToLower(m), "the method " + m, func(b *builder, _ []string) error {
			return b.once("method", func() { b.play.Method = m })
		}})
	}
	return append(words, word{"key", "the request carries an Idempotency-Key", func(b *builder, _ []string) error {
		return b.once("key", func() { b.play.Key = true })
	}})
}

func bodyWords() []word {
	body := func(form, doc string, body policy.Body) word {
		return word{form, doc, func(b *builder, _ []string) error {
			return b.once("body", func() { b.play.Body = body })
		}}
	}
	return []word{
		body("empty", "no body", policy.NoBody),
		body("empty_body", "no body", policy.NoBody),
		body("buffered", "a body that is held in memory", policy.Buffered),
		body("fixed_streaming", "a body that is streamed with a known length", policy.Fixed),
		body("chunked_streaming", "a body that is streamed in chunks", policy.Chunked),
	}
}

func triggerWords() []word {
	trigger := func(form, doc string, f policy.Failure) word {
		return word{form, doc, func(b *builder, _ []string) error {
			return b.once("trigger", func() { b.play.Trigger = f })
		}}
	}
	return []word{
		trigger("acquire_timeout", "no connection becomes free in the pool", policy.AcquireTimeout),
		trigger("unknown_host", "the name has no address", policy.UnknownHost),
		trigger("refused", "the connection is refused", policy.Refused),
		trigger("connect_timeout", "no connection in time", policy.ConnectTimeout),
		trigger("eof", "the server reads the request and closes", policy.EOF),
		trigger("rst", "the server reads the request and resets", policy.Reset),
		trigger("read_timeout", "the server answers later than the client waits", policy.ReadTimeout),
		{"#", "the server answers with this status", func(b *builder, a []string) error {
			status, err := strconv.Atoi(a[0])
			if err != nil || status < 200 || status > 599 {
				return fmt.Errorf("%s is not a status from 200 to 599", a[0])
			}
			return b.once("trigger", func() { b.play.Status = status })
		}},
		{"retry_after", "the answer has a Retry-After of 1 s", func(b *builder, _ []string) error {
			return b.once("Retry-After", func() { b.play.RetryAfter = "1" })
		}},
		{"retry_after_#", "the answer has a Retry-After of so many seconds", func(b *builder, a []string) error {
			return b.once("Retry-After", func() { b.play.RetryAfter = a[0] })
		}},
	}
}

func connectionWords() []word {
	reused := func(b *builder, _ []string) error {
		return b.once("connection", func() { b.play.Reused = true })
	}
	return []word{
		{"fresh", "on a new connection, the default", func(b *builder, _ []string) error {
			return b.once("connection", func() { b.fresh = true })
		}},
		{"reused", "on a connection that served a request before", reused},
		{"reused_keepalive", "on a connection that served a request before", reused},
		{"#_idle", "so many idle connections at the start", func(b *builder, a []string) error {
			n, err := small(a[0])
			if err != nil {
				return err
			}
			return b.once("idle connections", func() { b.play.Idle = n })
		}},
	}
}

func serverWords() []word {
	servers := func(b *builder, a []string) error {
		n, err := small(a[0])
		if err == nil && n == 0 {
			err = fmt.Errorf("0 servers cannot answer")
		}
		if err != nil {
			return err
		}
		return b.once("servers", func() { b.play.Servers = n })
	}
	return []word{
		{"#_server", "so many servers", servers},
		{"#_servers", "so many servers", servers},
		{"two_addresses", "the host has two addresses", func(b *builder, _ []string) error {
			return b.once("addresses", func() { b.play.Addresses = 2 })
		}},
		{"#_addresses", "the host has so many addresses", func(b *builder, a []string) error {
			n, err := small(a[0])
			if err == nil && n == 0 {
				err = fmt.Errorf("a host without addresses cannot be reached")
			}
			if err != nil {
				return err
			}
			return b.once("addresses", func() { b.play.Addresses = n })
		}},
		{"first_server_refuses_connection", "the first of two servers refuses connections", func(b *builder, _ []string) error {
			return b.once("first server", func() { b.play.FirstRefuses = true })
		}},
	}
}

func timeWords() []word {
	set := func(b *builder, d time.Duration) error {
		return b.once("response timeout", func() { b.play.ReadTimeout = d })
	}
	return []word{
		{"response_timeout_@", "the read timeout of the client", func(b *builder, a []string) error {
			d, err := time.ParseDuration(a[0])
			if err != nil || d <= 0 {
				return fmt.Errorf("%s is not a time above zero", a[0])
			}
			return set(b, d)
		}},
		{"response_timeout_below_@", "a read timeout of half as long", func(b *builder, a []string) error {
			d, err := time.ParseDuration(a[0])
			if err != nil || d < 2 {
				return fmt.Errorf("%s is not a time above zero", a[0])
			}
			return set(b, d/2)
		}},
		{"caller_gave_up_first", "whoever asked has gone before the failure", func(b *builder, _ []string) error {
			return b.once("caller", func() { b.play.CallerGivesUpFirst = true })
		}},
	}
}

// small reads a number of servers or connections.
func small(digits string) (int, error) {
	n, err := strconv.Atoi(digits)
	if err != nil || n > policy.MaxAttempts {
		return 0, fmt.Errorf("%s is above %d", digits, policy.MaxAttempts)
	}
	return n, nil
}

// forms returns the forms of the common words and of the given ones, each once.
func forms(words []word) []string {
	var list []string
	for _, w := range slices.Concat(common, words) {
		if !slices.Contains(list, w.form) {
			list = append(list, w.form)
		}
	}
	return list
}

// builder makes a Play from the words of a name.
type builder struct {
	find     func(name string) (*Preset, bool) // Find: a word of a preset cannot name the list of all presets
	owner    string
	play     Play
	sends    policy.Body   // how the client sends a body that is not empty
	read     time.Duration // read timeout where the name does not say one, 0 for none
	fresh    bool          // the name says that the connection is fresh
	balanced bool          // something chooses among servers
	given    []string      // what has been said, to refuse saying it twice
}

// balancers are the presets of a caller that choose among instances.
var balancers = []string{"spring-lb", "spring-lb-reactive"}

// stack makes the layers of the play.
func (b *builder) stack(presets []string) {
	for _, name := range presets {
		b.play.Layers = append(b.play.Layers, policy.Settings{Preset: name})
		b.balanced = b.balanced || slices.Contains(balancers, name)
	}
}

// parse reads the whole name and fills in what it leaves out.
func (b *builder) parse(name string, settings []word) (Play, error) {
	vocabulary := slices.Concat(settings, common)
	parts := strings.Split(name, "_")
	for len(parts) > 0 {
		w, args, length := longest(vocabulary, parts)
		if length == 0 {
			return Play{}, fmt.Errorf("cell %s of %s: %q is not understood; the words are %s",
				name, b.owner, strings.Join(parts, "_"), strings.Join(forms(settings), ", "))
		}
		if err := w.set(b, args); err != nil {
			return Play{}, fmt.Errorf("cell %s of %s: %s: %w", name, b.owner, strings.Join(parts[:length], "_"), err)
		}
		parts = parts[length:]
	}
	if err := b.finish(); err != nil {
		return Play{}, fmt.Errorf("cell %s of %s: %w", name, b.owner, err)
	}
	return b.play, nil
}

// longest returns the word that matches most of the parts that come next. A longer match must win:
// retry_after_9 is one word and retry_after another.
func longest(vocabulary []word, parts []string) (found word, args []string, length int) {
	for _, w := range vocabulary {
		form := strings.Split(w.form, "_")
		if len(form) <= length || len(form) > len(parts) {
			continue
		}
		if a, ok := match(form, parts[:len(form)]); ok {
			found, args, length = w, a, len(form)
		}
	}
	return found, args, length
}

// match reports whether the parts of a name are of the form, and what its # and @ stand for.
func match(form, parts []string) (args []string, ok bool) {
	for i, f := range form {
		fixed, isNumber := strings.CutSuffix(f, "#")
		switch {
		case isNumber:
			digits, hasPrefix := strings.CutPrefix(parts[i], fixed)
			if !hasPrefix || digits == "" || strings.Trim(digits, "0123456789") != "" {
				return nil, false
			}
			args = append(args, digits)
		case f == "@":
			if _, err := time.ParseDuration(parts[i]); err != nil {
				return nil, false
			}
			args = append(args, parts[i])
		case f != parts[i]:
			return nil, false
		}
	}
	return args, true
}

// finish fills in the defaults and refuses what cannot be.
func (b *builder) finish() error {
	p := &b.play
	said := func(what string) bool { return slices.Contains(b.given, what) }
	switch {
	case !said("method"):
		return fmt.Errorf("no method")
	case !said("trigger") && !p.FirstRefuses:
		return fmt.Errorf("nothing happens: no failure and no status")
	case p.RetryAfter != "" && p.Status == 0:
		return fmt.Errorf("Retry-After needs a status")
	case b.fresh && p.Idle > 0:
		return fmt.Errorf("a fresh connection and idle ones contradict each other")
	case p.CallerGivesUpFirst && b.read == 0:
		return fmt.Errorf("%s has no read time-out that a caller could be faster than", b.owner)
	case p.Reused && said("idle connections") && p.Idle == 0:
		return fmt.Errorf("without an idle connection none is reused")
	}
	if p.Trigger == policy.NoFailure && p.Status == 0 {
		p.Status = 200
	}
	if p.Body == "" {
		p.Body = policy.NoBody
		if slices.Contains([]string{"POST", "PUT", "PATCH"}, p.Method) {
			p.Body = b.sends
		}
	}
	if p.Reused && p.Idle == 0 {
		p.Idle = 1
	}
	p.Reused = p.Idle > 0
	if p.Trigger == policy.ReadTimeout && p.ReadTimeout == 0 {
		p.ReadTimeout = b.read
	}
	b.finishServers()
	return b.resolve()
}

// finishServers gives a load balancer the instances that it may ask for, a proxy two servers, and
// whoever finds the first one refusing a second one to go to.
func (b *builder) finishServers() {
	p := &b.play
	if p.Servers == 0 {
		p.Servers = 1
		if p.Hop != nil {
			p.Servers = 2
		}
		for _, s := range p.Layers {
			if slices.Contains(balancers, s.Preset) {
				p.Servers = 1 + value(s.Over(SpringLB.Defaults).Next)
			}
		}
	}
	p.Addresses = max(p.Addresses, 1)
	if p.FirstRefuses && b.balanced {
		p.Servers = max(p.Servers, 2)
	} else if p.FirstRefuses {
		p.Addresses = max(p.Addresses, 2)
	}
}

// resolve makes sure that every layer of the play can be made, and hands the idle connections to the
// layers that have a pool.
func (b *builder) resolve() error {
	layers := b.layers()
	for _, s := range layers {
		preset, ok := Find(s.Preset)
		if !ok {
			return fmt.Errorf("no preset %q", s.Preset)
		}
		if b.play.Reused && slices.Contains(preset.Takes, "idle") {
			s.Idle = new(b.play.Idle)
		}
		if _, err := preset.Resolve(*s); err != nil {
			return fmt.Errorf("layer %s: %w", s.Preset, err)
		}
	}
	return nil
}

// layers returns every layer of the play, wherever it stands.
func (b *builder) layers() []*policy.Settings {
	var list []*policy.Settings
	if b.play.Hop != nil {
		list = append(list, &b.play.Hop.Layer)
	}
	for i := range b.play.Layers {
		list = append(list, &b.play.Layers[i])
	}
	return list
}

// once notes that something is said, and refuses to hear it again.
func (b *builder) once(what string, set func()) error {
	if slices.Contains(b.given, what) {
		return fmt.Errorf("%s: said twice", what)
	}
	b.given = append(b.given, what)
	set()
	return nil
}

// set changes one thing about the layer with the given preset, once.
func (b *builder) set(preset, what string, change func(*policy.Settings)) error {
	for _, s := range b.layers() {
		if s.Preset == preset {
			return b.once(what+" of "+preset, func() { change(s) })
		}
	}
	return fmt.Errorf("there is no layer %s here", preset)
}

// setNumber is set with a number.
func (b *builder) setNumber(preset, what, digits string, change func(*policy.Settings, int)) error {
	n, err := small(digits)
	if err != nil {
		return err
	}
	return b.set(preset, what, func(s *policy.Settings) { change(s, n) })
}

// setDuration is set with a duration.
func (b *builder) setDuration(preset, what, text string, change func(*policy.Settings, time.Duration)) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	return b.set(preset, what, func(s *policy.Settings) { change(s, d) })
}

// The first number of setAttempts.
const (
	tries   = 0 // the number in the name counts tries
	retries = 1 // it counts retries, and the first try comes on top
)

// setAttempts sets the tries of a layer from a number in a name.
func (b *builder) setAttempts(preset, digits string, first int) error {
	return b.setNumber(preset, "attempts", digits, func(s *policy.Settings, n int) { s.Attempts = new(n + first) })
}

// replace puts another preset, with its defaults, in the place of one that has no settings yet.
func (b *builder) replace(preset, by string) error {
	for _, s := range b.layers() {
		if s.Preset != preset {
			continue
		}
		if len(s.Given()) > 1 {
			return fmt.Errorf("%s has settings already and cannot be replaced", preset)
		}
		*s = policy.Settings{Preset: by}
		return nil
	}
	return fmt.Errorf("there is no layer %s here", preset)
}

// fields returns the names of the fields of policy.Settings.
func fields() []string {
	var names []string
	for i := range reflect.TypeFor[policy.Settings]().NumField() {
		names = append(names, reflect.TypeFor[policy.Settings]().Field(i).Tag.Get("yaml"))
	}
	return names
}
