package preset

import (
	"fmt"

	"retrylab/caller/policy"
)

// FailsafeGo is the retry policy of failsafe-go's HTTP package.
var FailsafeGo = &Preset{
	Name:     "failsafe-go",
	Entry:    "failsafe-go-http",
	Group:    golang,
	Title:    "failsafe-go, failsafehttp retry policy",
	Version:  "0.9.7 read, 0.9.8 run",
	Verified: "both",
	Source:   []string{"failsafe-go/failsafe-go failsafehttp/policy.go, retrypolicy/retry.go@v0.9.7"},
	Counts:   "maxRetries = retries: two, so three tries in total",
	Doc:      "Two retries at once of any error, of 429 and of any 5xx but 501, for any method.",
	Triggers: []string{
		"any error, time-outs included, for any method",
		"429, and any 5xx except 501, for any method",
	},
	NotRetried: []string{
		"409 and the other 4xx",
		"a cancelled context, bad scheme, untrusted certificate, too many redirects",
	},
	Waits:       "none unless configured; on 429 and 503 a Retry-After in seconds",
	Timeouts:    "none of its own",
	OnByDefault: "yes, when applied",
	Originals: []Original{
		{"WithMaxRetries (retries; attempts is one more)", "attempts", "2"},
		{"WithDelay", "wait", "none"},
		{"WithBackoff: backoff.initial, backoff.max", "backoff", "none"},
		{"further statuses by HandleIf", "statuses", "none"},
	},
	Traps:    []string{"A POST is sent three times on a connection that closes."},
	Takes:    []string{"attempts", "wait", "backoff", "statuses"},
	Defaults: policy.Settings{Attempts: new(3)},
	Layer: func(s policy.Settings) (policy.Layer, error) {
		l, err := goLayer(s)
		l.Limit = fmt.Sprintf("maxRetries %d", *s.Attempts-1)
		return l, err
	},
	Body: policy.Buffered,
	words: []word{
		{"maxRetries_#", "maxRetries", func(b *builder, a []string) error { return b.setAttempts("failsafe-go", a[0], retries) }},
	},
}
