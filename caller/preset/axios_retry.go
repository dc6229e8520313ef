package preset

import (
	"fmt"
	"slices"
	"time"

	"retrylab/caller/policy"
)

// AxiosRetry is the plug-in axios-retry on axios.
var AxiosRetry = &Preset{
	Name:     "axios-retry",
	Entry:    "axios-retry",
	Group:    javascript,
	Title:    "axios-retry on axios",
	Version:  "4.5.0 on axios 1.21.1, read and run",
	Verified: "both",
	Source:   []string{"softonic/axios-retry src/index.ts@v4.5.0 isNetworkError, isNetworkOrIdempotentRequestError, handleRetry"},
	Counts:   "retries = retries: three, so four tries in total",
	Doc:      "Three retries at once: of a network error for any method, of 429 and 5xx for the idempotent ones.",
	Triggers: []string{
		"a network error with a code: refused, eof, reset, for any method, POST included",
		"429 and any 5xx, for GET, HEAD, OPTIONS, PUT and DELETE",
	},
	NotRetried: []string{
		"axios's time-out (ECONNABORTED)",
		"POST and PATCH answered 429 or 5xx",
		"an unknown host, for POST and PATCH; a cancelled request; certificate errors",
	},
	Waits:       "none; a Retry-After of any answer that is retried. With exponentialDelay 100·2^n ms and up to 20 % more, or the Retry-After if that is longer",
	Timeouts:    "axios timeout 0, which is none; with axios-retry it is one budget for all tries and waits, unless shouldResetTimeout",
	OnByDefault: "yes, when attached",
	Originals: []Original{
		{"retries (retries; attempts is one more)", "attempts", "3"},
		{"retryCondition", "on", "isNetworkOrIdempotentRequestError"},
		{"retryDelay (exponentialDelay: initial 200ms, factor 2, jitter +20%)", "backoff", "none"},
		{"axios timeout", "total", "0 (none)"},
		{"axios timeout with shouldResetTimeout", "timeout", "0 (none)"},
	},
	Drips: []Drip{{"axios timeout", fires, never}},
	Traps: []string{
		"The condition is an OR: a POST whose connection is reset after the server committed is sent four times.",
		"transitional.clarifyTimeoutError changes the time-out's code to ETIMEDOUT, and then a POST that timed out is sent again too.",
		"The time-out is not per try: the second try has what the first left over.",
	},
	Takes: []string{"attempts", "on", "wait", "backoff", "total", "timeout"},
	Defaults: policy.Settings{
		Attempts: new(4),
		On:       []string{"refused", "eof", "reset", "malformed"},
	},
	Layer: axiosLayer,
	Body:  policy.Buffered,
	words: []word{
		{"exponential_delay", "retryDelay: exponentialDelay", exponentialDelay},
		{"exponentialDelay", "retryDelay: exponentialDelay", exponentialDelay},
		onWord("axios-retry", "clarify_timeout_error", "transitional.clarifyTimeoutError", "timeout"),
		onWord("axios-retry", "clarifyTimeoutError", "transitional.clarifyTimeoutError", "timeout"),
	},
}

func exponentialDelay(b *builder, _ []string) error {
	return b.set("axios-retry", "delay", func(s *policy.Settings) {
		s.Backoff = &policy.Backoff{Initial: 200 * time.Millisecond, Factor: 2, Jitter: "+20%"}
	})
}

func axiosLayer(s policy.Settings) (policy.Layer, error) {
	triggers, err := policy.ParseTriggers(s.On)
	if err != nil {
		return policy.Layer{}, &policy.FieldError{Field: "on", Problem: err.Error()}
	}
	// Without an answer the second half of the condition is true as well, whatever the error but a
	// time-out, so an unknown host is retried for these methods.
	idempotent := []string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE"}
	rule := policy.Rule{Bodies: policy.Repeatable, WaitWithinTotal: true}
	network, host, status := rule, rule, rule
	network.Failures = triggers.Failures
	host.Failures, host.Methods = []policy.Failure{policy.UnknownHost}, idempotent
	status.Statuses = slices.Concat([]policy.StatusRange{policy.Status(429), {From: 500, To: 599}}, triggers.Statuses)
	status.Methods, status.HonourRetryAfter, status.RetryAfterAtLeast = idempotent, true, true
	return policy.Layer{
		Attempts: *s.Attempts,
		Limit:    fmt.Sprintf("retries %d", *s.Attempts-1),
		Rules:    []policy.Rule{network, host, status},
		Waits:    s.Pauses(),
	}, nil
}
