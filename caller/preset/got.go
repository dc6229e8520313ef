package preset

import (
	"fmt"
	"time"

	"retrylab/caller/policy"
)

// Got is the retry of got, an HTTP client for Node.
var Got = &Preset{
	Name:     "got",
	Entry:    "got",
	Group:    javascript,
	Title:    "got",
	Version:  "15.0.5 read, 14.6.6 run",
	Verified: "both",
	Source:   []string{"sindresorhus/got source/core/options.ts, source/core/calculate-retry-delay.ts@v15.0.5"},
	Counts:   "limit = retries: two, so three tries in total",
	Doc:      "Two retries, after its own time-outs too, for GET, PUT, HEAD, DELETE, OPTIONS and TRACE.",
	Triggers: []string{
		"its own time-outs, refused, unknown host, eof, reset, for the methods above",
		"408, 413, 429, 500, 502, 503, 504, 521, 522, 524, for the same methods",
	},
	NotRetried: []string{
		"POST and PATCH",
		"413 without Retry-After",
		"an answer whose Retry-After is longer than maxRetryAfter",
	},
	Waits:       "1000·2^(n-1) ms and up to 100 ms more; a Retry-After takes its place",
	Timeouts:    "none by default; timeout.request bounds each try, timeout.response the wait for the headers",
	OnByDefault: "yes",
	Originals: []Original{
		{"retry.limit (retries; attempts is one more)", "attempts", "2"},
		{"retry.methods", "methods", "GET PUT HEAD DELETE OPTIONS TRACE"},
		{"retry.statusCodes, besides those it has", "statuses", "none"},
		{"retry.maxRetryAfter", "retry-after-max", "timeout.request"},
		{"timeout.request", "timeout", "none"},
		{"retry.calculateDelay: backoff.initial, backoff.max is backoffLimit", "backoff", "1 s, no limit"},
	},
	Drips: []Drip{{"timeout.response", fires, never}, {"timeout.request", fires, fires}},
	Traps: []string{
		"A PUT or a DELETE that timed out is sent again, without a word in the code that calls it.",
		"timeout.request is per try: three tries of 10 s and two waits are 33 s.",
	},
	Takes: []string{"attempts", "methods", "statuses", "retry-after-max", "timeout", "backoff"},
	Defaults: policy.Settings{
		Attempts: new(3),
		Methods:  policy.Idempotent,
		Backoff:  &policy.Backoff{Initial: time.Second, Factor: 2},
	},
	Layer: gotLayer,
	Body:  policy.Buffered,
	words: []word{
		{"limit_#", "retry.limit", func(b *builder, a []string) error { return b.setAttempts("got", a[0], retries) }},
		{"maxRetryAfter_@", "retry.maxRetryAfter", func(b *builder, a []string) error {
			return b.setDuration("got", "maxRetryAfter", a[0], func(s *policy.Settings, d time.Duration) { s.RetryAfterMax = &d })
		}},
	},
}

func gotLayer(s policy.Settings) (policy.Layer, error) {
	longest := value(s.RetryAfterMax)
	if s.RetryAfterMax == nil {
		longest = value(s.Timeout)
	}
	waits := s.Pauses()
	waits.Noise = 100 * time.Millisecond
	answered := policy.Rule{
		Methods:          policy.MethodSet(s.Methods),
		Bodies:           policy.Repeatable,
		HonourRetryAfter: true,
		RetryAfterMax:    longest,
	}
	large := answered
	large.Statuses, large.RetryAfter = []policy.StatusRange{policy.Status(413)}, policy.Present
	answered.Statuses = append(policy.StatusSet(s.Statuses),
		policy.Status(408), policy.Status(429), policy.Status(500), policy.StatusRange{From: 502, To: 504},
		policy.StatusRange{From: 521, To: 522}, policy.Status(524))
	return policy.Layer{
		Attempts: *s.Attempts,
		Limit:    fmt.Sprintf("limit %d", *s.Attempts-1),
		Rules: []policy.Rule{
			{Failures: ioErrors, Methods: policy.MethodSet(s.Methods), Bodies: policy.Repeatable},
			answered,
			large,
		},
		Waits: waits,
	}, nil
}
