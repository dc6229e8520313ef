package policy

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSettingsTags makes sure that every field can be written in a file and is explained.
func TestSettingsTags(t *testing.T) {
	t.Parallel()
	for _, typ := range []reflect.Type{reflect.TypeFor[Settings](), reflect.TypeFor[Backoff]()} {
		seen := map[string]bool{}
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, doc := f.Tag.Get("yaml"), f.Tag.Get("doc")
			if name == "" || seen[name] || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz-") != "" {
				t.Errorf("%s.%s: yaml name %q", typ.Name(), f.Name, name)
			}
			if doc == "" {
				t.Errorf("%s.%s has no doc", typ.Name(), f.Name)
			}
			seen[name] = true
		}
	}
}

func TestGiven(t *testing.T) {
	t.Parallel()
	s := Settings{Preset: "retry", Attempts: new(0), On: []string{}, Backoff: &Backoff{}}
	if diff := cmp.Diff([]string{"preset", "attempts", "backoff", "on"}, s.Given()); diff != "" {
		t.Errorf("given (-want +got):\n%s", diff)
	}
}

func TestOver(t *testing.T) {
	t.Parallel()
	defaults := Settings{
		Attempts: new(4),
		Wait:     new(time.Second),
		On:       []string{"any-error"},
		Methods:  Idempotent,
	}
	growing := Settings{Backoff: &Backoff{Factor: 2, Max: time.Minute, Jitter: FullJitter}}
	tests := []struct {
		name        string
		s, defaults Settings
		want        Settings
	}{
		{"nothing said", Settings{}, defaults, defaults},
		{
			"zero and empty are said",
			Settings{Attempts: new(0), On: []string{}}, defaults,
			Settings{Attempts: new(0), On: []string{}, Wait: new(time.Second), Methods: Idempotent},
		},
		{
			"a backoff for a wait",
			Settings{Backoff: &Backoff{Initial: 1}}, defaults,
			Settings{Attempts: new(4), Backoff: &Backoff{Initial: 1}, On: []string{"any-error"}, Methods: Idempotent},
		},
		{"a wait for a backoff", Settings{Wait: new(time.Duration(0))}, growing, Settings{Wait: new(time.Duration(0))}},
		{
			"a part of a backoff",
			Settings{Backoff: &Backoff{Initial: 1, Jitter: NoJitter}}, growing,
			Settings{Backoff: &Backoff{Initial: 1, Factor: 2, Max: time.Minute, Jitter: NoJitter}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, tt.s.Over(tt.defaults)); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSettingsValidate(t *testing.T) {
	t.Parallel()
	good := []Settings{
		{},
		{Attempts: new(1), Wait: new(time.Duration(0))},
		{Backoff: &Backoff{Initial: time.Second, Factor: 1, Max: time.Second, Jitter: DecorrelatedJitter}},
		{On: []string{}, Statuses: []string{}},
		{On: []string{"connect", "timeout", "any-error", "eof", "503", "4xx", "5xx", "non-2xx", "non-2xx-with-retry-after"}},
		{Methods: []string{"any"}, MethodsOnError: []string{"GET", "M-SEARCH"}},
		{Backoff: &Backoff{Jitter: "20%"}}, {Backoff: &Backoff{Jitter: "+12.5%"}}, {Backoff: &Backoff{Jitter: "-100%"}},
		{MaxFails: new(0), Tries: new(0), Same: new(0), Next: new(0), Idle: new(0)},
	}
	for _, s := range good {
		if err := s.Validate(); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
	bad := []struct {
		s           Settings
		field, want string
	}{
		{Settings{Attempts: new(0)}, "attempts", "the first try counts"},
		{Settings{Attempts: new(1001)}, "attempts", "between 1 and 1000"},
		{Settings{Same: new(-1)}, "same", "-1 is not between"},
		{Settings{Timeout: new(-time.Second)}, "timeout", "-1s is negative"},
		{Settings{Total: new(time.Duration(math.MaxInt64))}, "total", "a hundred years"},
		{Settings{Period: new(1500 * time.Microsecond)}, "period", "1.5ms is not a whole number"},
		{Settings{Wait: new(time.Second), Backoff: &Backoff{}}, "backoff", "not both"},
		{Settings{Backoff: &Backoff{Initial: -1}}, "backoff.initial", "negative"},
		{Settings{Backoff: &Backoff{Max: -1}}, "backoff.max", "negative"},
		{Settings{Backoff: &Backoff{Factor: 0.5}}, "backoff.factor", "0.5 is not between 1 and 100"},
		{Settings{Backoff: &Backoff{Factor: math.NaN()}}, "backoff.factor", "NaN is not"},
		{Settings{Backoff: &Backoff{Initial: 2, Max: 1}}, "backoff.max", "shorter than the initial"},
		{Settings{Backoff: &Backoff{Jitter: "some"}}, "backoff.jitter", `"some" is not one of none, full, equal, decorrelated, nor a share`},
		{Settings{Backoff: &Backoff{Jitter: "0%"}}, "backoff.jitter", "nor a share"},
		{Settings{Backoff: &Backoff{Jitter: "101%"}}, "backoff.jitter", "nor a share"},
		{Settings{Backoff: &Backoff{Jitter: "%"}}, "backoff.jitter", "nor a share"},
		{Settings{Backoff: &Backoff{Jitter: "20"}}, "backoff.jitter", "nor a share"},
		{Settings{Backoff: &Backoff{Jitter: "NaN%"}}, "backoff.jitter", "nor a share"},
		{Settings{Redispatch: new(-2)}, "redispatch", "between -1 and"},
		{Settings{Mode: "adaptive"}, "mode", "legacy, standard"},
		{Settings{Window: new(-time.Second)}, "window", "negative"},
		{Settings{On: []string{"total-timeout"}}, "on", "never retried"},
		{Settings{On: []string{"timeouts"}}, "on", `"timeouts" is no trigger: use a status from 300 to 599 or one of connect,`},
		{Settings{On: []string{"200"}}, "on", `"200" is no trigger`},
		{Settings{On: []string{""}}, "on", `"" is no trigger`},
		{Settings{Statuses: []string{"5xx"}}, "statuses", `"5xx" is not a status`},
		{Settings{Statuses: []string{"+503"}}, "statuses", "is not a status"},
		{Settings{Methods: []string{}}, "methods", "the list is empty"},
		{Settings{MethodsOnError: []string{"get"}}, "methods-on-error", `"get" is not a method in capitals`},
		{Settings{MethodsOnStatus: []string{""}}, "methods-on-status", `"" is not a method`},
		{Settings{RetryAfter: "honor"}, "retry-after", `"honor" is not one of ignore, honour`},
		{Settings{OneShot: "buffer"}, "one-shot", `"buffer" is not one of refuse, resend`},
	}
	for _, tt := range bad {
		err := tt.s.Validate()
		var fieldErr *FieldError
		if !errors.As(err, &fieldErr) || fieldErr.Field != tt.field || !strings.Contains(fieldErr.Problem, tt.want) {
			t.Errorf("%v, want %s: …%s…", err, tt.field, tt.want)
		}
	}
}

func TestBackoffString(t *testing.T) {
	t.Parallel()
	b := Backoff{Initial: time.Second, Factor: 1.5, Jitter: FullJitter}
	if got, want := b.String(), "initial: 1s, factor: 1.5, jitter: full"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSettingsWaits(t *testing.T) {
	t.Parallel()
	tests := []struct {
		s    Settings
		want Waits
	}{
		{Settings{}, Waits{}},
		{Settings{Wait: new(time.Second)}, Waits{Initial: time.Second}},
		{Settings{Backoff: &Backoff{Initial: 1}}, Waits{Initial: 1, Factor: 2}},
		{Settings{Backoff: &Backoff{Initial: 1, Jitter: DecorrelatedJitter}}, Waits{Initial: 1, Factor: 3, Jitter: DecorrelatedJitter}},
		{Settings{Backoff: &Backoff{Initial: 1, Factor: 4, Max: 9, Jitter: FullJitter}}, Waits{Initial: 1, Factor: 4, Max: 9, Jitter: FullJitter}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, tt.s.Pauses()); diff != "" {
			t.Errorf("waits (-want +got):\n%s", diff)
		}
	}
}

func TestParseTriggers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		words []string
		want  Triggers
	}{
		{nil, Triggers{}},
		{[]string{"eof", "eof"}, Triggers{Failures: []Failure{EOF}}},
		{[]string{"connect"}, Triggers{Failures: []Failure{AcquireTimeout, UnknownHost, Refused, ConnectTimeout}}},
		{[]string{"read-timeout", "timeout"}, Triggers{Failures: []Failure{ReadTimeout, AttemptTimeout}}},
		{[]string{"503", "4xx"}, Triggers{Statuses: []StatusRange{{503, 503}, {400, 499}}}},
		{[]string{"5xx", "non-2xx"}, Triggers{Statuses: []StatusRange{{500, 599}, {300, 599}}}},
		{[]string{"non-2xx-with-retry-after"}, Triggers{WithRetryAfter: true}},
	}
	for _, tt := range tests {
		got, err := ParseTriggers(tt.words)
		if err != nil {
			t.Errorf("%q: %v", tt.words, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.words, diff)
		}
	}
	for _, word := range TriggerWords() {
		if _, err := ParseTriggers([]string{word}); err != nil {
			t.Errorf("%q is listed and not understood: %v", word, err)
		}
	}
	all, err := ParseTriggers([]string{"any-error"})
	if err != nil || slices.Contains(all.Failures, TotalTimeout) || slices.Contains(all.Failures, Empty) || len(all.Failures) != len(Failures)-2 {
		t.Errorf("any-error: %v, %v", all.Failures, err)
	}
}

func TestLeft(t *testing.T) {
	t.Parallel()
	connect, err := ParseTriggers([]string{"connect"})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range connect.Failures {
		if f.Left() {
			t.Errorf("%s is a failure to connect, and yet the request has left", f)
		}
	}
	for _, f := range []Failure{EOF, Reset, ReadTimeout, Malformed, AttemptTimeout, TotalTimeout} {
		if !f.Left() {
			t.Errorf("%s: the request may have left", f)
		}
	}
}
