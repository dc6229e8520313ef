package policy

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// HeaderIs is what a rule asks of an answer's Retry-After header.
type HeaderIs int

// What a rule can ask of Retry-After. A header that cannot be parsed counts as absent.
const (
	Anything     HeaderIs = iota // the rule does not look
	Present                      // there is one, whatever its value
	Zero                         // there is one, and it is 0 seconds
	AbsentOrZero                 // there is none, or it is 0 seconds
)

// Rule is one row of a layer's decision list: a trigger, what else must be so, and the wait. The first
// row that matches an outcome decides; when none does, the outcome is not retried. Real layers have
// one predicate for errors and another for statuses, and they differ in the methods that they allow:
// that is two rows.
type Rule struct {
	// The trigger: one of these failures, or one of these statuses.
	Failures []Failure
	Statuses []StatusRange

	// What else must be so. The zero value of each asks for nothing.
	InBody      bool     // unlike the others, a permission: the failure may also come after the headers of the answer
	Methods     []string // the method is one of these; nil is any
	NotMethods  []string // the method is none of these
	Bodies      []Body   // the body is one of these; nil is any
	Key         bool     // the request carries an Idempotency-Key
	Reused      bool     // the connection had served a request before
	AddressLeft bool     // another address of the host is left to try
	RetryAfter  HeaderIs // what the answer's Retry-After says
	Max         int      // this rule has retried fewer times than this in the call; 0 is no limit
	NotInARow   bool     // the try before did not match this rule too

	// The wait before the retry.
	Wait              *Waits        // nil: the layer's own
	HonourRetryAfter  bool          // a Retry-After takes the place of the wait; one in the past is no wait
	RetryAfterCap     time.Duration // a longer Retry-After is cut to this; 0 is Forever
	RetryAfterMax     time.Duration // a longer Retry-After is not retried; 0 is none
	RetryAfterAtLeast bool          // a Retry-After only makes the wait longer
	IgnoreZeroAfter   bool          // a Retry-After of zero or in the past is ignored: the wait holds
	WaitWithinTimeout bool          // do not retry when the wait is longer than the read (response) timeout
	WaitWithinTotal   bool          // do not retry when the wait would use up what is left of the total limit
}

// triggered reports whether o is what the rule is about, whatever else it asks.
func (r *Rule) triggered(o Outcome) bool {
	if o.Failure != NoFailure {
		return slices.Contains(r.Failures, o.Failure)
	}
	return contains(r.Statuses, o.Status)
}

// objection says why a rule whose trigger is o does not retry it, or "" when it does. It looks at the
// one outcome only, not at how often the rule was used.
func (r *Rule) objection(o Outcome) string {
	what := o.trigger()
	switch {
	case o.Failure != NoFailure && o.InBody && !r.InBody:
		return what + " after the headers of the answer is not retried"
	case r.Methods != nil && !slices.Contains(r.Methods, o.Method), slices.Contains(r.NotMethods, o.Method):
		return fmt.Sprintf("%s is not retried on %s", o.Method, what)
	case r.Bodies != nil && !slices.Contains(r.Bodies, o.body()):
		return fmt.Sprintf("a streamed body (%s) cannot be sent again", o.Body)
	case r.Key && !o.Key:
		return "without an Idempotency-Key " + o.Method + " is not retried"
	case r.Reused && !o.Reused:
		return what + " on a fresh connection is not retried"
	case r.AddressLeft && !o.AddressLeft:
		return "no other address is left"
	case r.RetryAfterMax > 0 && o.HasRetryAfter && o.RetryAfter > r.RetryAfterMax:
		return fmt.Sprintf("a Retry-After of %v is longer than %v", o.RetryAfter, r.RetryAfterMax)
	case r.RetryAfter == Present && !o.HasRetryAfter:
		return what + " without Retry-After is not retried"
	case r.RetryAfter == Zero && !(o.HasRetryAfter && o.RetryAfter == 0):
		return what + " is retried only with Retry-After: 0"
	case r.RetryAfter == AbsentOrZero && o.HasRetryAfter && o.RetryAfter != 0:
		return what + " with a Retry-After other than 0 is not retried"
	}
	return ""
}

// body returns how the body is sent; an outcome that does not say has none.
func (o Outcome) body() Body {
	if o.Body == "" {
		return NoBody
	}
	return o.Body
}

// trigger names what happened, as `on` would: "read-timeout", "503".
func (o Outcome) trigger() string {
	if o.Failure != NoFailure {
		return string(o.Failure)
	}
	return strconv.Itoa(o.Status)
}
