package preset

import (
	"fmt"
	"slices"
	"time"

	"retrylab/caller/policy"
)

// GoRetryableHTTP is the retry of HashiCorp's go-retryablehttp.
var GoRetryableHTTP = &Preset{
	Name:     "go-retryablehttp",
	Entry:    "go-retryablehttp",
	Group:    golang,
	Title:    "hashicorp/go-retryablehttp",
	Version:  "0.7.8 read and run",
	Verified: "both",
	Source:   []string{"hashicorp/go-retryablehttp client.go@v0.7.8 DefaultRetryPolicy, baseRetryPolicy, DefaultBackoff, Do"},
	Counts:   "RetryMax = retries: four, so five tries in total",
	Doc:      "Four retries of any error, time-outs included, of 429 and of any 5xx but 501, for any method.",
	Triggers: []string{
		"any transport error, Client.Timeout included, for any method",
		"429, and 500 and above except 501, for any method",
	},
	NotRetried: []string{
		"501, 409 and the other 4xx",
		"too many redirects, bad scheme, bad header, untrusted certificate",
		"the end of the request's own context",
	},
	Waits:       "RetryWaitMin·2^(n-1), at most RetryWaitMax: 1, 2, 4, 8 s; no jitter. On 429 and 503 a Retry-After takes its place, not cut",
	Timeouts:    "HTTPClient.Timeout, for each try with its body",
	OnByDefault: "yes, when used",
	Originals: []Original{
		{"RetryMax (retries; attempts is one more)", "attempts", "4"},
		{"RetryWaitMin, RetryWaitMax: backoff.initial, backoff.max", "backoff", "1 s, 30 s"},
		{"HTTPClient.Timeout", "timeout", "0 (none)"},
		{"further statuses of a CheckRetry", "statuses", "none"},
	},
	Traps: []string{
		"A POST is sent again by default, after a time-out too.",
		"A Retry-After is waited for however long it is.",
	},
	Takes: []string{"attempts", "backoff", "timeout", "statuses"},
	Defaults: policy.Settings{
		Attempts: new(5),
		Backoff:  &policy.Backoff{Initial: time.Second, Factor: 2, Max: 30 * time.Second},
	},
	Layer: func(s policy.Settings) (policy.Layer, error) {
		l, err := goLayer(s)
		l.Limit = fmt.Sprintf("RetryMax %d", *s.Attempts-1)
		return l, err
	},
	Body: policy.Buffered,
	words: []word{
		{"RetryMax_#", "RetryMax", func(b *builder, a []string) error { return b.setAttempts("go-retryablehttp", a[0], retries) }},
		{"RetryWaitMin_@", "RetryWaitMin", func(b *builder, a []string) error {
			return b.setDuration("go-retryablehttp", "RetryWaitMin", a[0], func(s *policy.Settings, d time.Duration) { s.Backoff = &policy.Backoff{Initial: d} })
		}},
	},
}

// goLayer is what two Go libraries have in common: any error, 429 and every 5xx but 501, for any
// method, and the Retry-After of a 429 or 503. 501 says that it will never work.
func goLayer(s policy.Settings) (policy.Layer, error) {
	return policy.Layer{
		Attempts: *s.Attempts,
		Rules: []policy.Rule{
			{Failures: anyError},
			{Statuses: []policy.StatusRange{policy.Status(429), policy.Status(503)}, HonourRetryAfter: true},
			{Statuses: append(policy.StatusSet(s.Statuses), policy.Status(500), policy.StatusRange{From: 502, To: 599})},
		},
		Waits: s.Pauses(),
	}, nil
}

// anyError is every failure that a layer can retry.
var anyError = slices.DeleteFunc(slices.Clone(policy.Failures), func(f policy.Failure) bool { return f == policy.TotalTimeout })
