package preset

import (
	"fmt"
	"time"

	"retrylab/caller/policy"
)

// StripeGo is the retry of Stripe's library for Go.
var StripeGo = &Preset{
	Name:     "stripe-go",
	Entry:    "stripe-go",
	Group:    sdks,
	Title:    "stripe-go",
	Version:  "86.2.0 read",
	Verified: "source",
	Source: []string{
		"stripe/stripe-go stripe.go@v86.2.0 shouldRetry, sleepTime, NewRequest, ResponseToError",
		"stripe/stripe-go error.go@v86.2.0 canRetry",
	},
	Counts: "MaxNetworkRetries = retries: two, so three tries in total",
	Doc:    "Two retries of any transport error, with one Idempotency-Key for all tries of a write.",
	Triggers: []string{
		"any transport error, time-outs included, for any method",
		"an error answer whose body is not Stripe's JSON, such as that of a proxy (on: any-error, 4xx, 5xx)",
		"429 with the code lock_timeout",
	},
	NotRetried: []string{
		"an error in Stripe's own JSON: 4xx, 409 and 5xx alike; every status counts as one here unless on says otherwise",
		"the end of the context, too many redirects, bad scheme, unknown authority",
	},
	Waits:       "500 ms + 500 ms·n², n from 0, at most 5 s, less up to a quarter, at least 500 ms",
	Timeouts:    "80 s, for each try",
	OnByDefault: "yes",
	Originals: []Original{
		{"BackendConfig.MaxNetworkRetries (retries; attempts is one more)", "attempts", "2"},
		{"errors that are retried; 4xx and 5xx for answers that are not Stripe's JSON", "on", "any error"},
	},
	Traps: []string{
		"The rules for 409 and 5xx in its code are not reached: an error that could be read as Stripe's is decided on before.",
		"The key that it sets makes Go's own transport resend as well.",
	},
	Takes:    []string{"attempts", "on", "statuses"},
	Defaults: policy.Settings{Attempts: new(3), On: []string{"any-error"}},
	Layer: func(s policy.Settings) (policy.Layer, error) {
		l, err := library("MaxNetworkRetries", retries)(s)
		l.Waits = policy.Waits{
			Initial: 500 * time.Millisecond, Growth: policy.SquareSteps, Max: 5 * time.Second,
			Jitter: "-25%", Min: 500 * time.Millisecond,
		}
		return l, err
	},
	Body: policy.Buffered,
	words: []word{
		{"MaxNetworkRetries_#", "MaxNetworkRetries", func(b *builder, a []string) error { return b.setAttempts("stripe-go", a[0], retries) }},
		{"max_#", "MaxNetworkRetries", func(b *builder, a []string) error { return b.setAttempts("stripe-go", a[0], retries) }},
		onWord("stripe-go", "not_stripe_json", "the body of an error is not Stripe's JSON", "4xx", "5xx"),
		{"default", "nothing is set", func(b *builder, _ []string) error { return b.once("settings", func() {}) }},
	},
}

// StripePython is the retry of Stripe's library for Python.
var StripePython = &Preset{
	Name:     "stripe-python",
	Entry:    "stripe-python",
	Group:    sdks,
	Title:    "stripe-python",
	Version:  "15.3.1 read",
	Verified: "source",
	Source:   []string{"stripe/stripe-python stripe/_http_client.py, stripe/__init__.py, stripe/_api_requestor.py@v15.3.1"},
	Counts:   "max_network_retries = retries: two, so three tries in total",
	Doc:      "Two retries of connection errors, time-outs, 409 and 5xx, with one Idempotency-Key for all tries of a POST.",
	Triggers: []string{
		"a connection error or a time-out, for any method",
		"409, and 500 and above",
		"what Stripe-Should-Retry asks for",
	},
	NotRetried:  []string{"Stripe-Should-Retry: false", "the other 4xx, 429 included"},
	Waits:       "500·2^(n-1) ms, at most 5 s, of which between half and all, at least 500 ms",
	Timeouts:    "80 s, for each try",
	OnByDefault: "yes",
	Originals: []Original{
		{"stripe.max_network_retries (retries; attempts is one more)", "attempts", "2"},
		{"further statuses", "statuses", "none"},
	},
	Traps:    []string{"A 409 is retried: it means that another request with the same key is at work."},
	Takes:    []string{"attempts", "statuses"},
	Defaults: policy.Settings{Attempts: new(3)},
	Layer: func(s policy.Settings) (policy.Layer, error) {
		return stripeLayer(s, "max_network_retries"), nil
	},
	Body:  policy.Buffered,
	words: stripeWords("stripe-python", "max_network_retries_#"),
}

// StripeNode is the retry of Stripe's library for Node.
var StripeNode = &Preset{
	Name:     "stripe-node",
	Entry:    "stripe-node",
	Group:    sdks,
	Title:    "stripe-node",
	Version:  "22.5.0 read and run, 23.1.0 run",
	Verified: "both",
	Source:   []string{"stripe/stripe-node src/RequestSender.ts, src/platform/PlatformFunctions.ts@v22.5.0"},
	Counts:   "maxNetworkRetries = retries: two, so three tries in total; 0 is two where a connection closes",
	Doc:      "Two retries of any connection error, 409 and 5xx; a closed connection is retried once even with none.",
	Triggers: []string{
		"any connection error, time-outs included, for any method",
		"a closed connection (eof, reset) once, even with maxNetworkRetries 0",
		"409, and 500 and above",
	},
	NotRetried:  []string{"Stripe-Should-Retry: false", "the other 4xx, 429 included"},
	Waits:       "500·2^(n-1) ms, at most 5 s, of which between half and all, at least 500 ms",
	Timeouts:    "80 s, for each try",
	OnByDefault: "yes",
	Originals: []Original{
		{"maxNetworkRetries (retries; attempts is one more)", "attempts", "2"},
		{"further statuses", "statuses", "none"},
	},
	Traps: []string{
		"22.5.0 with maxNetworkRetries: 0 sent a POST twice on a closed connection and without any Idempotency-Key; 23.1.0 sends a key.",
	},
	Takes:    []string{"attempts", "statuses"},
	Defaults: policy.Settings{Attempts: new(3)},
	Layer: func(s policy.Settings) (policy.Layer, error) {
		l := stripeLayer(s, "maxNetworkRetries")
		if *s.Attempts == 1 {
			// No retries, but for the one of a closed connection.
			l.Attempts, l.Limit = 2, "one resend on a closed connection"
			l.Rules = []policy.Rule{{Failures: []policy.Failure{policy.EOF, policy.Reset}}}
		}
		return l, nil
	},
	Body:  policy.Buffered,
	words: stripeWords("stripe-node", "maxNetworkRetries_#"),
}

func stripeLayer(s policy.Settings, limit string) policy.Layer {
	return policy.Layer{
		Attempts: *s.Attempts,
		Limit:    fmt.Sprintf("%s %d", limit, *s.Attempts-1),
		Rules: []policy.Rule{
			{Failures: anyError},
			{Statuses: append(policy.StatusSet(s.Statuses), policy.Status(409), policy.StatusRange{From: 500, To: 599})},
		},
		Waits: policy.Waits{
			Initial: 500 * time.Millisecond, Factor: 2, Max: 5 * time.Second,
			Jitter: policy.EqualJitter, Min: 500 * time.Millisecond,
		},
	}
}

func stripeWords(preset, form string) []word {
	set := func(b *builder, a []string) error { return b.setAttempts(preset, a[0], retries) }
	return []word{
		{form, "the original's setting", set},
		{"max_#", "the original's setting", set},
		{"default", "nothing is set", func(b *builder, _ []string) error { return b.once("settings", func() {}) }},
	}
}
