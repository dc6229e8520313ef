package scenarios

import "slices"

// Checklist is a list of things to look at in a service of one's own. A scenario that shows one of
// them has its tag.
type Checklist struct {
	Title string
	Items []Check
}

// Check is one item of a checklist.
type Check struct{ Tag, Text string }

// Checklists lists them.
var Checklists = []Checklist{
	{"Before production", []Check{
		{"check-pure-get", "GET endpoints change nothing, or are not retried"},
		{"check-write-retries", "writes are retried on transient network errors only, never on business errors or on a 429 without its wait"},
		{"check-no-stacking", "retry layers do not stack"},
		{"check-idempotent", "every endpoint that is retried is idempotent"},
		{"check-jitter", "backoff has jitter"},
		{"check-logging", "requests are logged in full where it matters"},
	}},
	{"Nine pitfalls", []Check{
		{"pitfall-no-timeout", "no time-out, or a huge one"},
		{"pitfall-timeout-as-failure", "a time-out taken for a failure"},
		{"pitfall-no-key", "a retry that is not idempotent, without a key"},
		{"pitfall-stacked-layers", "retries at every layer"},
		{"pitfall-hopeless-retry", "retrying what cannot succeed"},
		{"pitfall-no-jitter", "fixed delays without jitter"},
		{"pitfall-key-apart", "keys stored apart from the data"},
		{"pitfall-wrong-key", "keys made by the server, or of the content"},
		{"pitfall-calendar-clock", "time-outs measured with the calendar clock"},
	}},
	{"Six things to test", []Check{
		{"test-same-key-at-once", "the same key at once"},
		{"test-same-key-other-content", "the same key, other content"},
		{"test-death-before-commit", "death before the commit"},
		{"test-lost-reply", "a commit, then a lost reply"},
		{"test-lease-expiry", "a lease that runs out, and its late owner"},
		{"test-expired-record", "an expired record, and a late message"},
	}},
}

// CheckOf returns the item of a checklist that a tag stands for.
func CheckOf(tag string) (Check, bool) {
	for _, l := range Checklists {
		if i := slices.IndexFunc(l.Items, func(c Check) bool { return c.Tag == tag }); i >= 0 {
			return l.Items[i], true
		}
	}
	return Check{}, false
}
