package preset

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"retrylab/caller/policy"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	unique := func(name string) {
		if name != "" && seen[name] {
			t.Errorf("%q is the name of two", name)
		}
		seen[name] = true
	}
	for _, p := range All {
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
		unique(p.Name)
		if p.Entry != p.Name {
			unique(p.Entry)
		}
		for _, name := range []string{p.Name, p.Entry} {
			if found, ok := Find(name); name != "" && (!ok || found != p) {
				t.Errorf("Find(%q) does not find it", name)
			}
		}
	}
	for _, s := range Stacks {
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
		unique(s.Name)
		unique(s.Entry)
		if found, ok := FindStack(s.Entry); !ok || found != s {
			t.Errorf("FindStack(%q) does not find it", s.Entry)
		}
	}
	if _, ok := Find(""); ok {
		t.Error(`Find("") finds something`)
	}
}

// TestValidateRefuses makes sure that Validate is no formality.
func TestValidateRefuses(t *testing.T) {
	t.Parallel()
	breakages := map[string]func(*Preset){
		"name":             func(p *Preset) { p.Name = "Two Words" },
		"title":            func(p *Preset) { p.Title = "" },
		"version":          func(p *Preset) { p.Version = "" },
		"verified":         func(p *Preset) { p.Verified = "hearsay" },
		"source":           func(p *Preset) { p.Source = nil },
		"counts":           func(p *Preset) { p.Counts = "" },
		"doc":              func(p *Preset) { p.Doc = "" },
		"waits":            func(p *Preset) { p.Waits = "" },
		"timeouts":         func(p *Preset) { p.Timeouts = "" },
		"on by default":    func(p *Preset) { p.OnByDefault = "" },
		"body":             func(p *Preset) { p.Body = "" },
		"layer":            func(p *Preset) { p.Layer = nil },
		"takes":            func(p *Preset) { p.Takes = []string{"attemps"} },
		"original":         func(p *Preset) { p.Originals = []Original{{"theirs", "wait", ""}} },
		"default":          func(p *Preset) { p.Defaults.Wait = new(time.Second) },
		"over":             func(p *Preset) { p.Over = []string{"nobody"} },
		"do not resolve":   func(p *Preset) { p.Defaults.Attempts = new(0); p.Layer = failingLayer },
		"original without": func(p *Preset) { p.Originals = []Original{{"", "attempts", ""}} },
	}
	for what, breakIt := range breakages {
		p := *FeignRetryer
		breakIt(&p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("with a broken %s: %v", what, err)
		}
	}
}

func failingLayer(policy.Settings) (policy.Layer, error) {
	return policy.Layer{}, errors.New("it fails")
}

// TestAllListed reads the package and fails when a preset or a stack is declared and not listed.
func TestAllListed(t *testing.T) {
	t.Parallel()
	declared := map[string][]string{}
	listed := map[string][]string{}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR {
				continue
			}
			for _, spec := range gen.Specs {
				v := spec.(*ast.ValueSpec)
				for i, value := range v.Values {
					if kind := pointerTo(value); kind != "" {
						declared[kind] = append(declared[kind], v.Names[i].Name)
					}
					if list, ok := value.(*ast.CompositeLit); ok && slices.Contains([]string{"All", "Stacks"}, v.Names[i].Name) {
						for _, element := range list.Elts {
							listed[v.Names[i].Name] = append(listed[v.Names[i].Name], element.(*ast.Ident).Name)
						}
					}
				}
			}
		}
	}
	for kind, list := range map[string]string{"Preset": "All", "Stack": "Stacks"} {
		if len(declared[kind]) == 0 {
			t.Errorf("no %s is declared: this test looks in the wrong place", kind)
		}
		for _, name := range declared[kind] {
			if !slices.Contains(listed[list], name) {
				t.Errorf("%s is declared and not in %s", name, list)
			}
		}
	}
}

// pointerTo returns T for an expression &T{…}.
func pointerTo(e ast.Expr) string {
	if unary, ok := e.(*ast.UnaryExpr); ok && unary.Op == token.AND {
		if lit, ok := unary.X.(*ast.CompositeLit); ok {
			if name, ok := lit.Type.(*ast.Ident); ok {
				return name.Name
			}
		}
	}
	return ""
}

// samples holds a value for every field of Settings that no preset has as its default.
var samples = policy.Settings{
	Preset: "x", Name: "other",
	Attempts: new(7), Timeout: new(3 * time.Second), Total: new(9 * time.Second),
	Wait: new(7 * time.Millisecond), Waits: []time.Duration{5 * time.Millisecond, 0}, Backoff: &policy.Backoff{Initial: 5 * time.Millisecond},
	Period: new(11 * time.Millisecond), MaxPeriod: new(77 * time.Millisecond),
	Same: new(3), Next: new(4), AllOperations: new(true), OnClasspath: new(false),
	On: []string{"eof", "418"}, Statuses: []string{"409"},
	Methods: []string{"REPORT"}, MethodsOnError: []string{"REPORT"}, MethodsOnStatus: []string{"REPORT"},
	OneShot: policy.ResendOneShot, RetryAfter: policy.HonourRetryAfter, RetryAfterCap: new(13 * time.Second),
	RetryPost: new(false), AllMethods: new(true), RetryOnConnectionFailure: new(false),
	Window: new(2 * time.Second), RetryAfterMax: new(23 * time.Second), Enabled: new(true), Redispatch: new(1), Mode: policy.StandardMode,
	NonIdempotent: new(true), Tries: new(5), MaxFails: new(6), FailTimeout: new(17 * time.Second),
	Idle:   new(3),
	Limits: &policy.Limits{Read: new(2)}, Budget: &policy.Budget{Ratio: new(0.1)}, FreeWhenPaced: new(true), PastDeadline: new(true),
	After: new(19 * time.Second), Losers: policy.CancelLosers,
}

// TestTakes sets every field of Settings on every preset, one at a time: a field that the preset takes
// must change its layer, any other must be refused.
func TestTakes(t *testing.T) {
	t.Parallel()
	for _, p := range All {
		var base policy.Settings
		if p == SpringLBReactive {
			base.Enabled = new(true) // without it nothing else has a meaning
		}
		plain, err := p.Resolve(base)
		if err != nil {
			t.Fatal(err)
		}
		for i, field := range fields() {
			if field == "preset" || field == "name" {
				continue
			}
			s := base
			s.Preset = p.Name
			sample := reflect.ValueOf(samples).Field(i)
			if sample.IsZero() {
				t.Fatalf("there is no sample of %s", field)
			}
			reflect.ValueOf(&s).Elem().Field(i).Set(sample)
			if p == SpringLBReactive && field == "enabled" {
				s.Enabled = new(false)
			}
			if field == "free-when-paced" && p == Retry {
				s.RetryAfter = policy.HonourRetryAfter
			}
			if (p == URLLib3 || p == Requests) && field == "retry-after" {
				s.RetryAfter = policy.IgnoreRetryAfter
			}

			l, err := p.Resolve(s)
			var fieldErr *policy.FieldError
			switch takes := slices.Contains(p.Takes, field); {
			case takes && err != nil:
				t.Errorf("%s takes %s, and yet: %v", p.Name, field, err)
			case takes && reflect.DeepEqual(l, plain):
				t.Errorf("%s takes %s, which changes nothing", p.Name, field)
			case !takes && (!errors.As(err, &fieldErr) || fieldErr.Field != field):
				t.Errorf("%s does not take %s: error %v", p.Name, field, err)
			}
		}
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	l, err := Resolve(policy.Settings{Preset: "feign-retryer-default", Name: "outer", Attempts: new(3)})
	if err != nil {
		t.Fatal(err)
	}
	if l.Name != "outer" || l.Preset != "feign-retryer" || l.Attempts != 3 || l.Waits.Max != time.Second {
		t.Errorf("resolved to %+v", l)
	}
	l, err = Resolve(policy.Settings{Preset: "retry", Timeout: new(time.Second), Total: new(5 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	if l.Name != "retry" || l.Timeout != time.Second || l.Total != 5*time.Second {
		t.Errorf("resolved to %+v", l)
	}

	errorTests := []struct {
		settings    policy.Settings
		field, want string
	}{
		{policy.Settings{}, "preset", `there is no ""; there are retry, hedge, feign-retryer,`},
		{policy.Settings{Preset: "rtry"}, "preset", `there is no "rtry"`},
		{policy.Settings{Preset: "okhttp", Period: new(time.Second)}, "period", "means nothing to okhttp, which takes name, retry-on-connection-failure, total, idle"},
		{policy.Settings{Preset: "openfeign", Attempts: new(2)}, "attempts", "no settings besides name"},
		{policy.Settings{Preset: "retry", Attempts: new(0)}, "attempts", "the first try counts"},
		{policy.Settings{Preset: "retry", On: []string{"total-timeout"}}, "on", "never retried"},
		{policy.Settings{Preset: "nginx", On: []string{"non-2xx-with-retry-after"}}, "on", "does not look at Retry-After"},
		{policy.Settings{Preset: "urllib3", Backoff: &policy.Backoff{Factor: 3}}, "backoff.factor", "always doubles"},
		{policy.Settings{Preset: "urllib3", Backoff: &policy.Backoff{Jitter: "full"}}, "backoff.jitter", "not modelled"},
	}
	for _, tt := range errorTests {
		_, err := Resolve(tt.settings)
		var fieldErr *policy.FieldError
		if !errors.As(err, &fieldErr) || fieldErr.Field != tt.field || !strings.Contains(fieldErr.Problem, tt.want) {
			t.Errorf("Resolve(%+v): %v, want %s: …%s…", tt.settings, err, tt.field, tt.want)
		}
	}
	if _, err := OkHTTP.Resolve(policy.Settings{Preset: "retry"}); err == nil {
		t.Error("okhttp resolves the settings of another preset")
	}
}

// TestDefaultsStay makes sure that resolving does not write into the list of presets.
func TestDefaultsStay(t *testing.T) {
	t.Parallel()
	for _, p := range All {
		before, _ := p.Resolve(policy.Settings{})
		for i, field := range fields() {
			if slices.Contains(p.Takes, field) {
				var s policy.Settings
				reflect.ValueOf(&s).Elem().Field(i).Set(reflect.ValueOf(samples).Field(i))
				p.Resolve(s)
			}
		}
		if after, _ := p.Resolve(policy.Settings{}); !reflect.DeepEqual(before, after) {
			t.Errorf("%s: the defaults have changed", p.Name)
		}
	}
}

// TestProperties lets every preset meet random outcomes: whatever comes, it keeps its number of tries
// and never waits a negative time.
func TestProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom(All).Draw(t, "preset")
		l, err := p.Resolve(policy.Settings{})
		if err != nil {
			t.Fatal(err)
		}
		servers := rapid.IntRange(1, 4).Draw(t, "servers")
		var tries []policy.Outcome
		for range 30 {
			tries = append(tries, outcome(t, servers))
			u := rapid.Float64Range(0, 0.999).Draw(t, "u")
			d := l.Next(tries, u)
			last := tries[len(tries)-1]
			if d.Reason == "" {
				t.Fatal("no reason")
			}
			if d.Wait < 0 || !d.Retry && (d.Wait != 0 || d.Move) {
				t.Fatalf("decision %+v", d)
			}
			if d.Retry && (last.Failure == policy.TotalTimeout || last.Failure == "" && last.Status < 300) {
				t.Fatalf("%s retries %+v", p.Name, last)
			}
			if d.Retry && l.Attempts > 0 && !l.Peers && len(tries) >= l.Attempts {
				t.Fatalf("%s makes more than %d tries", p.Name, l.Attempts)
			}
			if d.Retry && l.Peers && servers > 1 && len(tries) >= servers {
				t.Fatalf("%s tries one of %d servers twice", p.Name, servers)
			}
			if !d.Retry {
				break
			}
		}
	})
}

// outcome draws the outcome of one try.
func outcome(t *rapid.T, servers int) policy.Outcome {
	o := policy.Outcome{
		Method:      rapid.SampledFrom([]string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"}).Draw(t, "method"),
		Key:         rapid.Bool().Draw(t, "key"),
		Body:        rapid.SampledFrom(policy.Bodies).Draw(t, "body"),
		Reused:      rapid.Bool().Draw(t, "reused"),
		InBody:      rapid.Bool().Draw(t, "in body"),
		AddressLeft: rapid.Bool().Draw(t, "address left"),
		Instances:   servers,
	}
	if rapid.Bool().Draw(t, "fails") {
		o.Failure = rapid.SampledFrom(policy.Failures).Draw(t, "failure")
		return o
	}
	o.Status = rapid.SampledFrom([]int{200, 201, 301, 400, 404, 408, 413, 429, 500, 502, 503, 504}).Draw(t, "status")
	if rapid.Bool().Draw(t, "has Retry-After") {
		o.HasRetryAfter = true
		o.RetryAfter = time.Duration(rapid.Int64Range(-5, 100_000).Draw(t, "Retry-After")) * time.Second
	}
	return o
}
