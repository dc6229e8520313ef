// Package preset holds what real retry layers do by default, as data: one file per layer, each with
// the version that was looked at and where. It makes the settings of a scenario file into a layer of
// package policy. It sends nothing and decides nothing itself.
//
// A preset is checked against cells: named requests, such as post_eof_fresh, with the number of them
// that reached a server when the real thing was run. [Preset.Cell] reads such a name.
package preset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"retrylab/caller/policy"
)

// Preset is one real retry layer. The texts are for people, in words that say what a reader needs to
// compare the layer with their own configuration; what is computed comes from Defaults and Layer.
type Preset struct {
	Name        string     // as scenario files write it
	Entry       string     // its id in the collection of facts that its cells come from; "" for the generic layer
	Group       string     // one of Groups
	Title       string     // the product and the part of it
	Version     string     // the versions that were read and run
	Verified    string     // how: source, live, both or unverified
	Source      []string   // where it can be read: repository, file, version, function
	Counts      string     // what the original's number counts: tries in total, or retries
	Doc         string     // one line
	Triggers    []string   // what it retries
	NotRetried  []string   // what it leaves alone
	Waits       string     // how long it pauses
	Timeouts    string     // the time-outs it has, and what they bound
	OnByDefault string     // whether one gets it without asking
	Originals   []Original // the original's settings beside ours
	Drips       []Drip     // what its time-outs do to an answer that drips
	Traps       []string   // what people get wrong about it

	// Takes names the fields of policy.Settings that mean something to it, besides preset and name.
	Takes []string

	// Defaults are the settings that hold where a scenario file says nothing.
	Defaults policy.Settings

	// Layer makes a layer of validated settings in which every default is filled in. Resolve calls it,
	// and adds name, preset, timeout, total and idle by itself.
	Layer func(policy.Settings) (policy.Layer, error)

	// Body is how this client sends a body that is not empty, unless told otherwise.
	Body policy.Body

	// Over names the presets that its cells run over, outermost first: the HTTP client that it ships
	// with, when that resends by itself. Empty when the layer was counted alone.
	Over []string

	// CellRead is the read (response) timeout with which its cells were counted, nil for
	// DefaultReadTimeout; 0 is a layer without one, whose own timeout and total bound a try.
	CellRead *time.Duration

	// InHop is set for a layer that lives in a proxy: its cells put it into a hop.
	InHop bool

	words []word // the words of its cells that are settings
}

// Original is a setting of the original beside the one of a scenario file.
type Original struct {
	Theirs  string // "Retryer.Default(period, maxPeriod, maxAttempts)"
	Ours    string // the field of policy.Settings, "" when there is none
	Default string // the original's default, in its own units
}

// Drip is what a time-out does to an answer that comes in small pieces: the same time-out bounds
// one read in one client and the whole answer in another. Measured with eight pieces 250 ms apart
// and a limit of 400 ms.
type Drip struct {
	Setting string // the original's name
	Headers string // what it does when the headers come in pieces
	Body    string // what it does when the body does
}

// What a time-out does to an answer in pieces.
const (
	never = "does not fire"
	fires = "fires at 0.4 s"
)

// The groups of presets.
const (
	generic    = "Generic"
	spring     = "Feign and Spring"
	java       = "Java HTTP clients"
	libraries  = "Retry libraries"
	golang     = "Go"
	python     = "Python"
	javascript = "JavaScript"
	curls      = "curl"
	proxies    = "Proxies and gateways"
	sdks       = "RPC and SDKs"
)

// Groups lists every group, in the order of reports.
var Groups = []string{generic, spring, java, libraries, golang, python, javascript, curls, proxies, sdks}

// All lists every preset, by group.
var All = []*Preset{
	Retry, Hedge,
	FeignRetryer, OpenFeign, SpringLB, SpringLBReactive,
	HTTPURLConnection, JavaNetHTTP, HTTPClient5, HTTPClient45, OkHTTP, ReactorNetty,
	Resilience4j, SpringRetry, Spring7Retry, Polly, Tenacity,
	GoNetHTTP, GoRetryableHTTP, FailsafeGo,
	URLLib3, Requests,
	AxiosRetry, NodeFetch, UndiciRetry, Got,
	Curl, LibCurl,
	Nginx, HAProxy, Envoy, Istio, Kong, Traefik, Caddy, SpringGateway, ALB,
	GRPC, AWSGo, AWSGo2026, Botocore, StripeGo, StripePython, StripeNode,
}

// Find returns the preset with the given name or entry.
func Find(name string) (*Preset, bool) {
	for _, p := range All {
		if name != "" && (p.Name == name || p.Entry == name) {
			return p, true
		}
	}
	return nil, false
}

// Names returns the names of all presets, in the order of [All].
func Names() []string {
	names := make([]string, len(All))
	for i, p := range All {
		names[i] = p.Name
	}
	return names
}

// Resolve makes the layer that settings s ask for, whose preset must be p's or empty. An error about
// a field is a [*policy.FieldError].
func (p *Preset) Resolve(s policy.Settings) (policy.Layer, error) {
	if s.Preset != "" && s.Preset != p.Name && s.Preset != p.Entry {
		return policy.Layer{}, &policy.FieldError{Field: "preset", Problem: fmt.Sprintf("%q is not %q", s.Preset, p.Name)}
	}
	for _, field := range s.Given() {
		if field != "preset" && field != "name" && !slices.Contains(p.Takes, field) {
			return policy.Layer{}, &policy.FieldError{Field: field, Problem: p.refusal()}
		}
	}
	if err := s.Validate(); err != nil {
		return policy.Layer{}, err
	}
	s = s.Over(p.Defaults)
	l, err := p.Layer(s)
	if err != nil {
		return policy.Layer{}, err
	}
	l.Preset = p.Name
	l.Name = s.Name
	if l.Name == "" {
		l.Name = p.Name
	}
	l.Timeout = value(s.Timeout)
	l.Total = value(s.Total)
	l.Idle = value(s.Idle)
	l.Window = value(s.Window)
	l.Budget = s.Budget
	return l, nil
}

// Resolve makes the layer that settings s ask for, by the preset that they name.
func Resolve(s policy.Settings) (policy.Layer, error) {
	p, ok := Find(s.Preset)
	if !ok {
		return policy.Layer{}, &policy.FieldError{
			Field:   "preset",
			Problem: fmt.Sprintf("there is no %q; there are %s", s.Preset, strings.Join(Names(), ", ")),
		}
	}
	return p.Resolve(s)
}

// refusal says that a field means nothing to p, and which do.
func (p *Preset) refusal() string {
	if len(p.Takes) == 0 {
		return fmt.Sprintf("means nothing to %s, which has no settings besides name", p.Name)
	}
	return fmt.Sprintf("means nothing to %s, which takes name, %s", p.Name, strings.Join(p.Takes, ", "))
}

// Validate reports what is missing in p, so that a careless new preset fails a test and not a run.
func (p *Preset) Validate() error {
	var errs []error
	require := func(ok bool, what string) {
		if !ok {
			errs = append(errs, errors.New(what))
		}
	}
	require(p.Name != "" && strings.Trim(p.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") == "", "name: not a word in small letters")
	require(slices.Contains(Groups, p.Group), "group: not one of Groups")
	require(p.Title != "", "no title")
	require(p.Version != "", "no version")
	require(slices.Contains([]string{"source", "live", "both", "unverified"}, p.Verified), "verified: not source, live, both or unverified")
	require(len(p.Source) > 0, "no source")
	require(p.Counts != "", "counts: not said what the number counts")
	require(p.Doc != "" && !strings.Contains(p.Doc, "\n"), "doc: not one line")
	require(p.Waits != "", "waits: not said")
	require(p.Timeouts != "", "timeouts: not said")
	require(p.OnByDefault != "", "on by default: not said")
	require(slices.Contains(policy.Bodies, p.Body), "body: not a kind of body")
	require(p.Layer != nil, "no layer")
	for _, field := range p.Takes {
		require(slices.Contains(fields(), field), fmt.Sprintf("takes %q: no such field", field))
	}
	for _, o := range p.Originals {
		require(o.Theirs != "", "an original without a name")
		require(o.Ours == "" || slices.Contains(p.Takes, o.Ours), fmt.Sprintf("original %q: takes no %q", o.Theirs, o.Ours))
	}
	for _, d := range p.Drips {
		require(d.Setting != "" && d.Headers != "" && d.Body != "", "drips: half a row")
	}
	for _, field := range p.Defaults.Given() {
		require(slices.Contains(p.Takes, field), fmt.Sprintf("default of %q, which it does not take", field))
	}
	for _, name := range p.Over {
		_, ok := Find(name)
		require(ok, fmt.Sprintf("over %q: no such preset", name))
	}
	if p.Layer != nil {
		_, err := p.Resolve(policy.Settings{})
		require(err == nil, fmt.Sprintf("its defaults do not resolve: %v", err))
	}
	if len(errs) > 0 {
		return fmt.Errorf("preset %q: %w", p.Name, errors.Join(errs...))
	}
	return nil
}

// value returns what p points to, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
