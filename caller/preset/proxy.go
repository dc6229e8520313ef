package preset

import (
	"retrylab/caller/policy"
)

// proxyTriggers reads the list `on` of a proxy, none of which looks at Retry-After by itself.
func proxyTriggers(on []string, name string) (policy.Triggers, error) {
	triggers, err := policy.ParseTriggers(on)
	if err != nil {
		return policy.Triggers{}, &policy.FieldError{Field: "on", Problem: err.Error()}
	}
	if triggers.WithRetryAfter {
		return policy.Triggers{}, &policy.FieldError{Field: "on", Problem: name + " does not look at Retry-After"}
	}
	return triggers, nil
}

// split parts failures into those before anything of the request was sent, when neither the method
// nor the body matters, and those after.
func split(failures []policy.Failure) (before, after []policy.Failure) {
	for _, f := range failures {
		if f.Left() {
			after = append(after, f)
		} else {
			before = append(before, f)
		}
	}
	return before, after
}

// unlessAsked returns the methods that nginx and its kin do not pass on once they were sent.
func unlessAsked(s policy.Settings) []string {
	if *s.NonIdempotent {
		return nil
	}
	return policy.NonIdempotent
}

// notConnected are the failures before anything of a request was sent.
var notConnected = []policy.Failure{policy.AcquireTimeout, policy.UnknownHost, policy.Refused, policy.ConnectTimeout}
