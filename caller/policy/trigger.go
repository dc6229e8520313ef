package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// StatusRange is the statuses from From to To, both included.
type StatusRange struct{ From, To int }

// Non2xx is every final status that is not a success.
var Non2xx = []StatusRange{{300, 599}}

// Status returns the range of one status.
func Status(code int) StatusRange { return StatusRange{code, code} }

// contains reports whether any of the ranges holds code.
func contains(ranges []StatusRange, code int) bool {
	return slices.ContainsFunc(ranges, func(r StatusRange) bool { return r.From <= code && code <= r.To })
}

// Triggers is what makes a layer try again, as the list `on` of a scenario file says it.
type Triggers struct {
	Failures       []Failure
	Statuses       []StatusRange // whatever headers they carry
	WithRetryAfter bool          // any non-2xx that carries a Retry-After
}

// The words of `on` that stand for several failures.
var triggerGroups = []struct {
	word     string
	failures []Failure
}{
	{"connect", []Failure{AcquireTimeout, UnknownHost, Refused, ConnectTimeout}},
	{"timeout", []Failure{ReadTimeout, AttemptTimeout}},
	{"any-error", slices.DeleteFunc(slices.Clone(Failures), func(f Failure) bool { return f == TotalTimeout || f == Empty })},
}

// TriggerWords lists the words that `on` understands besides a status such as 503.
func TriggerWords() []string {
	var words []string
	for _, g := range triggerGroups {
		words = append(words, g.word)
	}
	for _, f := range Failures {
		if f != TotalTimeout {
			words = append(words, string(f))
		}
	}
	return append(words, "4xx", "5xx", "non-2xx", "non-2xx-with-retry-after")
}

// ParseTriggers reads a list of triggers: a failure ("eof"), a group of failures ("connect",
// "timeout", "any-error"), a status ("503"), a class of statuses ("4xx", "5xx", "non-2xx"), or
// "non-2xx-with-retry-after". Saying the same thing twice is no error.
func ParseTriggers(words []string) (Triggers, error) {
	var t Triggers
	for _, word := range words {
		if err := t.add(word); err != nil {
			return Triggers{}, err
		}
	}
	return t, nil
}

func (t *Triggers) add(word string) error {
	for _, g := range triggerGroups {
		if word == g.word {
			t.addFailures(g.failures)
			return nil
		}
	}
	switch f := Failure(word); {
	case f == TotalTimeout:
		return fmt.Errorf("%q is never retried: no time is left", word)
	case f != NoFailure && slices.Contains(Failures, f):
		t.addFailures([]Failure{f})
		return nil
	}
	switch word {
	case "4xx":
		t.Statuses = append(t.Statuses, StatusRange{400, 499})
		return nil
	case "5xx":
		t.Statuses = append(t.Statuses, StatusRange{500, 599})
		return nil
	case "non-2xx":
		t.Statuses = append(t.Statuses, Non2xx...)
		return nil
	case "non-2xx-with-retry-after":
		t.WithRetryAfter = true
		return nil
	}
	code, err := ParseStatus(word)
	if err != nil {
		return fmt.Errorf("%q is no trigger: use a status from 300 to 599 or one of %s", word, strings.Join(TriggerWords(), ", "))
	}
	t.Statuses = append(t.Statuses, Status(code))
	return nil
}

func (t *Triggers) addFailures(failures []Failure) {
	for _, f := range failures {
		if !slices.Contains(t.Failures, f) {
			t.Failures = append(t.Failures, f)
		}
	}
}

// ParseStatus reads a status that a layer can be told to retry: 300 to 599.
func ParseStatus(word string) (int, error) {
	code, err := strconv.Atoi(word)
	if err != nil || len(word) != 3 || code < 300 || code > 599 {
		return 0, fmt.Errorf("%q is not a status from 300 to 599", word)
	}
	return code, nil
}
