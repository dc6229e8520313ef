package preset

import (
	"fmt"
	"time"

	"retrylab/caller/policy"
)

// UndiciRetry is undici's RetryAgent, RetryHandler and interceptors.retry.
var UndiciRetry = &Preset{
	Name:     "undici-retry",
	Entry:    "undici-retry-agent",
	Group:    javascript,
	Title:    "undici RetryAgent, RetryHandler and interceptors.retry",
	Version:  "8.10.0 read, 7.30.2 run",
	Verified: "both",
	Source:   []string{"nodejs/undici lib/handler/retry-handler.js@v8.10.0"},
	Counts:   "maxRetries = retries: five, so six tries in total",
	Doc:      "Five retries of a broken or failed connection and of 429, 500, 502, 503, 504, for the idempotent methods.",
	Triggers: []string{
		"refused, unknown host, eof, reset, for GET, HEAD, OPTIONS, PUT, DELETE and TRACE",
		"429, 500, 502, 503, 504, for the same methods",
	},
	NotRetried:  []string{"POST and PATCH", "every time-out: connect, headers and body"},
	Waits:       "500·2^(n-1) ms, at most 30 s; a Retry-After above zero takes its place, cut to 30 s",
	Timeouts:    "those of the dispatcher: headers 300 s, body 300 s between two pieces",
	OnByDefault: "yes, when used",
	Originals: []Original{
		{"retryOptions.maxRetries (retries; attempts is one more)", "attempts", "5"},
		{"retryOptions.minTimeout, timeoutFactor, maxTimeout: backoff.initial, factor, max", "backoff", "500 ms, 2, 30 s"},
		{"retryOptions.maxTimeout for a Retry-After", "retry-after-cap", "30 s"},
		{"retryOptions.methods", "methods", "GET HEAD OPTIONS PUT DELETE TRACE"},
		{"retryOptions.statusCodes, besides those it has", "statuses", "none"},
	},
	Drips: []Drip{{"headersTimeout", "fires at 1.0 s: its timer is coarse", "not in force"}, {"bodyTimeout", "not in force", never}},
	Traps: []string{"A time-out is not on its list: the slow server, which people retry for, is the one case that it leaves alone."},
	Takes: []string{"attempts", "backoff", "retry-after-cap", "methods", "statuses"},
	Defaults: policy.Settings{
		Attempts:      new(6),
		Backoff:       &policy.Backoff{Initial: 500 * time.Millisecond, Factor: 2, Max: 30 * time.Second},
		RetryAfterCap: new(30 * time.Second),
		Methods:       policy.Idempotent,
	},
	Layer: undiciLayer,
	Body:  policy.Buffered,
	words: []word{
		{"headers_timeout", "the headers come later than the client waits", func(b *builder, _ []string) error {
			return b.once("trigger", func() { b.play.Trigger = policy.ReadTimeout })
		}},
		{"maxRetries_#", "maxRetries", func(b *builder, a []string) error { return b.setAttempts("undici-retry", a[0], retries) }},
		{"minTimeout_@", "minTimeout", func(b *builder, a []string) error {
			return b.setDuration("undici-retry", "minTimeout", a[0], func(s *policy.Settings, d time.Duration) { s.Backoff = &policy.Backoff{Initial: d} })
		}},
	},
}

func undiciLayer(s policy.Settings) (policy.Layer, error) {
	methods := policy.MethodSet(s.Methods)
	return policy.Layer{
		Attempts: *s.Attempts,
		Limit:    fmt.Sprintf("maxRetries %d", *s.Attempts-1),
		Rules: []policy.Rule{
			{
				Failures: []policy.Failure{policy.UnknownHost, policy.Refused, policy.EOF, policy.Reset},
				Methods:  methods,
				Bodies:   policy.Repeatable,
			},
			{
				Statuses:         append(policy.StatusSet(s.Statuses), policy.Status(429), policy.Status(500), policy.StatusRange{From: 502, To: 504}),
				Methods:          methods,
				Bodies:           policy.Repeatable,
				HonourRetryAfter: true,
				RetryAfterCap:    *s.RetryAfterCap,
				IgnoreZeroAfter:  true,
			},
		},
		Waits: s.Pauses(),
	}, nil
}
