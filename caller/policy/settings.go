package policy

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxAttempts is the largest number of tries that a scenario file can ask of one layer. A file is
// untrusted input, and what it makes the lab do is bounded.
const MaxAttempts = 1000

// Settings is one retry layer as a scenario file writes it. A field that is not written keeps its
// zero value and the preset's default holds; so numbers whose zero means something are pointers, and
// an empty list is not the same as a list that is not there. Durations are scenario time.
//
// No preset takes all fields: each lists those that mean something to it.
type Settings struct {
	Preset string `yaml:"preset" doc:"the real layer to imitate; \"retry\" is the generic one"`
	Name   string `yaml:"name" doc:"name of the layer in paths and reports (default: the preset's)"`

	Attempts *int           `yaml:"attempts" doc:"tries of this layer in total, the first one counted; 1 to 1000"`
	Timeout  *time.Duration `yaml:"timeout" doc:"limit of each try of this layer, all inner tries included; 0 is none"`
	Total    *time.Duration `yaml:"total" doc:"limit over all tries and waits of this layer; 0 is none"`
	Window   *time.Duration `yaml:"window" doc:"after so long no failed try is followed by another, while one that runs goes on; 0 is none"`

	Wait    *time.Duration  `yaml:"wait" doc:"fixed wait before every retry; not together with waits or backoff"`
	Waits   []time.Duration `yaml:"waits" doc:"the wait before each retry, in their order, the last one for all further ones; not together with wait or backoff"`
	Backoff *Backoff        `yaml:"backoff" doc:"growing wait before every retry; not together with wait or waits"`

	Limits *Limits `yaml:"limits" doc:"how many retries there are of each kind of failure, besides attempts"`
	Budget *Budget `yaml:"budget" doc:"bounds the retries of all calls together"`

	After  *time.Duration `yaml:"after" doc:"hedge: a further try starts so long after the one before, unless one has succeeded"`
	Losers string         `yaml:"losers" doc:"hedge: what becomes of the other tries when one has succeeded: finish (the default) or cancel"`

	Period    *time.Duration `yaml:"period" doc:"Feign's period in whole milliseconds: the first wait is 1.5 times this, each further one 1.5 times the last"`
	MaxPeriod *time.Duration `yaml:"max-period" doc:"Feign's longest wait in whole milliseconds; a Retry-After is cut to it too"`

	Same          *int  `yaml:"same" doc:"load balancer: retries on the same instance (retries, not tries)"`
	Next          *int  `yaml:"next" doc:"load balancer: further instances to try (retries, not tries)"`
	AllOperations *bool `yaml:"all-operations" doc:"load balancer: retry every method, not GET alone"`
	Enabled       *bool `yaml:"enabled" doc:"reactive load balancer: spring.cloud.loadbalancer.retry.enabled; it is off unless switched on"`
	OnClasspath   *bool `yaml:"on-classpath" doc:"load balancer: spring-retry is on the classpath; without it nothing is retried, silently"`

	On       []string `yaml:"on" doc:"what is retried: failures, connect, timeout, any-error, a status, 4xx, 5xx, non-2xx, non-2xx-with-retry-after; an empty list is nothing"`
	Statuses []string `yaml:"statuses" doc:"statuses that are retried: the whole list for a load balancer and HttpClient 5, additions to the rest for the others"`

	Methods         []string `yaml:"methods" doc:"methods that are retried on errors and on statuses; any for all"`
	MethodsOnError  []string `yaml:"methods-on-error" doc:"methods that are retried on errors; any for all"`
	MethodsOnStatus []string `yaml:"methods-on-status" doc:"methods that are retried on statuses; any for all"`
	OneShot         string   `yaml:"one-shot" doc:"a streamed body: refuse to send it again, resend it, as a layer does that has what it was made from, or resend-empty, as one does that reads the stream again and finds nothing"`

	RetryAfter    string         `yaml:"retry-after" doc:"the server's Retry-After: ignore or honour"`
	RetryAfterCap *time.Duration `yaml:"retry-after-cap" doc:"longest Retry-After that is waited for, longer ones are cut to it; 0 is none"`

	RetryAfterMax *time.Duration `yaml:"retry-after-max" doc:"a longer Retry-After ends the tries; 0 is none"`

	FreeWhenPaced *bool `yaml:"free-when-paced" doc:"a 429 or 503 whose Retry-After was waited for does not count as a try"`
	PastDeadline  *bool `yaml:"past-deadline" doc:"goes on when a limit around it is over, for which each try then fails at once and sends nothing"`

	RetryPost                *bool `yaml:"retry-post" doc:"HttpURLConnection: sun.net.http.retryPost"`
	AllMethods               *bool `yaml:"all-methods" doc:"java.net.http: jdk.httpclient.enableAllMethodRetry"`
	RetryOnConnectionFailure *bool `yaml:"retry-on-connection-failure" doc:"OkHttp: retryOnConnectionFailure"`

	NonIdempotent *bool          `yaml:"non-idempotent" doc:"nginx, Kong, Traefik: pass POST, LOCK and PATCH on even after they were sent"`
	Tries         *int           `yaml:"tries" doc:"nginx: proxy_next_upstream_tries, tries in total; 0 is as many as there are servers"`
	MaxFails      *int           `yaml:"max-fails" doc:"nginx: failures within fail-timeout that take a server out; 0 is never"`
	FailTimeout   *time.Duration `yaml:"fail-timeout" doc:"nginx: the time in which max-fails are counted, and for which the server is then out"`

	Redispatch *int `yaml:"redispatch" doc:"HAProxy: the retry that goes to another server: 1 is every one (round robin without persistence), as many as there are retries is the last alone (a cookie or a hash), 0 none"`

	Mode string `yaml:"mode" doc:"botocore: retry mode legacy or standard"`

	Idle *int `yaml:"idle" doc:"idle connections in the pool at the start; so many sends go out on a connection that served a request before"`
}

// Backoff is a growing wait as a scenario file writes it. Of a field that is left out, or zero, the
// preset's default holds.
type Backoff struct {
	Initial time.Duration `yaml:"initial" doc:"wait before the first retry"`
	Factor  float64       `yaml:"factor" doc:"each further wait is this times the one before; 1 to 100 (default 2, and 3 with decorrelated jitter)"`
	Max     time.Duration `yaml:"max" doc:"no wait is longer (default: no limit)"`
	Jitter  string        `yaml:"jitter" doc:"none, full (0 to the wait), equal (half to the whole wait), decorrelated (initial to factor times the last wait), or a share: 20% is up to so much more or less, +20% more, -25% less"`
}

// String lists what is set, as a scenario file writes it.
func (b Backoff) String() string { return listed(b) }

// Limits are how many retries of a call may follow each kind of failure. What is absent has no limit
// of its own, which is not the same as 0.
type Limits struct {
	Connect *int `yaml:"connect" doc:"retries after a failure before anything left; no limit of its own when absent, none with 0"`
	Read    *int `yaml:"read" doc:"retries after a failure when something may have left; likewise"`
	Status  *int `yaml:"status" doc:"retries after a status; likewise"`
}

// String lists what is set, as a scenario file writes it.
func (l Limits) String() string { return listed(l) }

// listed lists the fields of a mapping that are set, as a scenario file writes them.
func listed(mapping any) string {
	var parts []string
	v := reflect.ValueOf(mapping)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			parts = append(parts, fmt.Sprintf("%s: %v", v.Type().Field(i).Tag.Get("yaml"), reflect.Indirect(v.Field(i))))
		}
	}
	return strings.Join(parts, ", ")
}

// The values of Settings.RetryAfter.
const (
	IgnoreRetryAfter = "ignore"
	HonourRetryAfter = "honour"
)

// The values of Settings.Losers.
const (
	FinishLosers = "finish"
	CancelLosers = "cancel"
)

// The values of Settings.OneShot.
const (
	RefuseOneShot = "refuse"
	ResendOneShot = "resend"
	EmptyOneShot  = "resend-empty"
)

// The values of Settings.Mode.
const (
	LegacyMode   = "legacy"
	StandardMode = "standard"
)

// FieldError is a value of a scenario file that cannot be used. Its field lets the reader of the file
// point at the line.
type FieldError struct {
	Field   string // as the file writes it: "attempts", "backoff.factor"
	Problem string // what is wrong, and what would be right
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

// Given returns the names of the fields that are set, as a file writes them and in the order of the
// struct.
func (s Settings) Given() []string {
	var names []string
	v := reflect.ValueOf(s)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			names = append(names, v.Type().Field(i).Tag.Get("yaml"))
		}
	}
	return names
}

// Over returns s with the fields that it leaves out taken from defaults. A wait of s takes the place
// of a default backoff and the other way round, since a layer has one of them.
func (s Settings) Over(defaults Settings) Settings {
	if s.Wait != nil || s.Waits != nil {
		defaults.Wait, defaults.Backoff = nil, nil
	}
	if s.Backoff != nil {
		defaults.Wait = nil
		if defaults.Backoff != nil {
			merged := *s.Backoff
			fill(reflect.ValueOf(&merged).Elem(), reflect.ValueOf(*defaults.Backoff))
			s.Backoff = &merged
		}
	}
	fill(reflect.ValueOf(&s).Elem(), reflect.ValueOf(defaults))
	return s
}

// fill sets the fields of to that are zero from the fields of from.
func fill(to, from reflect.Value) {
	for i := range to.NumField() {
		if to.Field(i).IsZero() {
			to.Field(i).Set(from.Field(i))
		}
	}
}

// Validate reports the first value that is impossible whatever the preset, as a [*FieldError].
func (s Settings) Validate() error {
	switch {
	case s.Wait != nil && s.Backoff != nil:
		return &FieldError{"backoff", "a layer has either a fixed wait or a backoff, not both"}
	case s.Waits != nil && (s.Wait != nil || s.Backoff != nil):
		return &FieldError{"waits", "a layer has a list of waits, or a fixed wait, or a backoff, not two of them"}
	case s.Waits != nil && len(s.Waits) == 0:
		return &FieldError{"waits", "the list is empty; use wait: 0s for no wait"}
	case len(s.Waits) > MaxAttempts:
		return &FieldError{"waits", fmt.Sprintf("the list has %d waits, more than the tries a layer can have (%d)", len(s.Waits), MaxAttempts)}
	}
	if s.Limits == nil {
		s.Limits = &Limits{}
	}
	for _, check := range []error{
		number("limits.connect", s.Limits.Connect, 0, MaxAttempts),
		number("limits.read", s.Limits.Read, 0, MaxAttempts),
		number("limits.status", s.Limits.Status, 0, MaxAttempts),
		duration("after", s.After),
		choice("losers", s.Losers, FinishLosers, CancelLosers),
		s.Budget.validate(),
		number("attempts", s.Attempts, 1, MaxAttempts),
		number("same", s.Same, 0, 30),
		number("next", s.Next, 0, 30),
		number("tries", s.Tries, 0, MaxAttempts),
		number("max-fails", s.MaxFails, 0, MaxAttempts),
		number("idle", s.Idle, 0, MaxAttempts),
		number("redispatch", s.Redispatch, -1, MaxAttempts),
		duration("timeout", s.Timeout),
		duration("total", s.Total),
		duration("window", s.Window),
		duration("retry-after-max", s.RetryAfterMax),
		duration("wait", s.Wait),
		duration("period", s.Period),
		duration("max-period", s.MaxPeriod),
		duration("retry-after-cap", s.RetryAfterCap),
		duration("fail-timeout", s.FailTimeout),
		wholeMilliseconds("period", s.Period),
		wholeMilliseconds("max-period", s.MaxPeriod),
		triggers("on", s.On),
		statuses("statuses", s.Statuses),
		methods("methods", s.Methods),
		methods("methods-on-error", s.MethodsOnError),
		methods("methods-on-status", s.MethodsOnStatus),
		choice("retry-after", s.RetryAfter, IgnoreRetryAfter, HonourRetryAfter),
		choice("one-shot", s.OneShot, RefuseOneShot, ResendOneShot, EmptyOneShot),
		choice("mode", s.Mode, LegacyMode, StandardMode),
		s.Backoff.validate(),
		durations("waits", s.Waits),
	} {
		if check != nil {
			return check
		}
	}
	return nil
}

func (b *Backoff) validate() error {
	if b == nil {
		return nil
	}
	if err := duration("backoff.initial", &b.Initial); err != nil {
		return err
	}
	if err := duration("backoff.max", &b.Max); err != nil {
		return err
	}
	if b.Factor != 0 && !(b.Factor >= 1 && b.Factor <= 100) {
		return &FieldError{"backoff.factor", fmt.Sprintf("%v is not between 1 and 100", b.Factor)}
	}
	if b.Max != 0 && b.Max < b.Initial {
		return &FieldError{"backoff.max", fmt.Sprintf("%v is shorter than the initial wait of %v", b.Max, b.Initial)}
	}
	if _, _, err := spread(b.Jitter); err != nil {
		return &FieldError{"backoff.jitter", err.Error()}
	}
	return nil
}

// Pauses returns the waits that s asks for: its backoff, its list, its fixed wait, or none.
func (s Settings) Pauses() Waits {
	if b := s.Backoff; b != nil {
		w := Waits{Initial: b.Initial, Factor: b.Factor, Max: b.Max, Jitter: b.Jitter}
		if w.Factor == 0 {
			w.Factor = 2
			if w.Jitter == DecorrelatedJitter {
				w.Factor = 3
			}
		}
		return w
	}
	if s.Wait != nil {
		return FixedWait(*s.Wait)
	}
	return Waits{Series: s.Waits}
}

// MethodSet returns a list of methods as a Rule wants it: nil, which is any method, when the list is
// nil or says [AnyMethod].
func MethodSet(list []string) []string {
	if slices.Contains(list, AnyMethod) {
		return nil
	}
	return list
}

// StatusSet returns a validated list of statuses as a Rule wants it.
func StatusSet(list []string) []StatusRange {
	var ranges []StatusRange
	for _, word := range list {
		if code, err := ParseStatus(word); err == nil {
			ranges = append(ranges, Status(code))
		}
	}
	return ranges
}

func number(field string, n *int, low, high int) error {
	if n == nil || low <= *n && *n <= high {
		return nil
	}
	problem := fmt.Sprintf("%d is not between %d and %d", *n, low, high)
	if field == "attempts" && *n == 0 {
		problem += ": the first try counts, so 1 is no retry"
	}
	return &FieldError{field, problem}
}

func duration(field string, d *time.Duration) error {
	if d == nil || 0 <= *d && *d <= Forever {
		return nil
	}
	if *d < 0 {
		return &FieldError{field, fmt.Sprintf("%v is negative", *d)}
	}
	return &FieldError{field, fmt.Sprintf("%v is longer than a hundred years", *d)}
}

func durations(field string, list []time.Duration) error {
	for i := range list {
		if err := duration(fmt.Sprintf("%s[%d]", field, i), &list[i]); err != nil {
			return err
		}
	}
	return nil
}

func wholeMilliseconds(field string, d *time.Duration) error {
	if d == nil || *d%time.Millisecond == 0 {
		return nil
	}
	return &FieldError{field, fmt.Sprintf("%v is not a whole number of milliseconds", *d)}
}

func triggers(field string, words []string) error {
	if _, err := ParseTriggers(words); err != nil {
		return &FieldError{field, err.Error()}
	}
	return nil
}

func statuses(field string, words []string) error {
	for _, word := range words {
		if _, err := ParseStatus(word); err != nil {
			return &FieldError{field, err.Error()}
		}
	}
	return nil
}

// methods wants at least one method, in capitals: a list that is empty would retry nothing, which
// `attempts: 1` says more clearly.
func methods(field string, list []string) error {
	if list != nil && len(list) == 0 {
		return &FieldError{field, "the list is empty; use any for all methods, or attempts: 1 for no retry"}
	}
	for _, m := range list {
		if m != AnyMethod && (m == "" || strings.Trim(m, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "") {
			return &FieldError{field, strconv.Quote(m) + " is not a method in capitals, such as GET, nor any"}
		}
	}
	return nil
}

func choice(field, value string, choices ...string) error {
	if value == "" || slices.Contains(choices, value) {
		return nil
	}
	return &FieldError{field, fmt.Sprintf("%q is not one of %s", value, strings.Join(choices, ", "))}
}
