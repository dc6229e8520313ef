package preset

import (
	"fmt"
	"time"

	"retrylab/caller/policy"
)

// Curl is curl --retry, the command line tool.
var Curl = &Preset{
	Name:     "curl",
	Entry:    "curl-retry",
	Group:    curls,
	Title:    "curl --retry N, the command line tool",
	Version:  "8.21.0 read, 7.88.1 run",
	Verified: "both",
	Source: []string{
		"curl/curl src/tool_operate.c@curl-8_21_0 retrycheck, retry_sleep",
		"curl/curl docs/cmdline-opts/retry.md, max-time.md@curl-8_21_0",
	},
	Counts: "--retry N = retries: none by default, N+1 tries in total",
	Doc:    "N retries after a time-out and after 408, 429, 500, 502, 503 and 504, whatever the method.",
	Triggers: []string{
		"a time-out (--max-time, --connect-timeout) and an unknown host, for any method",
		"408, 429, 500, 502, 503, 504, for any method (522 and 524 in newer versions)",
		"with --retry-connrefused a refused connection; with --retry-all-errors any error",
	},
	NotRetried: []string{
		"eof (52) and reset (56) without --retry-all-errors",
		"409, 501 and the other statuses",
	},
	Waits:       "1 s, doubling, at most 10 min; --retry-delay fixes it; a Retry-After that is longer takes its place (since 7.66)",
	Timeouts:    "--max-time bounds each try, --retry-max-time when a further one may begin",
	OnByDefault: "no",
	Originals: []Original{
		{"--retry N (retries; attempts is one more)", "attempts", "0"},
		{"--retry-connrefused is refused, --retry-all-errors any-error, besides the default", "on", "time-outs and unknown host"},
		{"--retry-delay", "wait", "1 s, doubling"},
		{"--max-time", "timeout", "0 (none)"},
		{"--retry-max-time", "window", "0 (none)"},
		{"further statuses (522, 524 in newer versions)", "statuses", "none"},
	},
	Drips: []Drip{{"--max-time", fires, fires}},
	Traps: []string{
		"A POST that timed out is sent again: curl does not look at the method.",
		"--max-time starts anew with each retry.",
		"curl 7.88.1 with -o /dev/null stops after the first 5xx with exit code 23: it tries to truncate the output.",
	},
	Takes: []string{"attempts", "on", "statuses", "wait", "backoff", "timeout", "window"},
	Defaults: policy.Settings{
		Attempts: new(1),
		On:       []string{"timeout", "connect-timeout", "unknown-host"},
		Backoff:  &policy.Backoff{Initial: time.Second, Factor: 2, Max: 10 * time.Minute},
	},
	Layer: curlLayer,
	Body:  policy.Buffered,
	Over:  []string{"libcurl"},
	words: []word{
		{"retry_#", "--retry", func(b *builder, a []string) error { return b.setAttempts("curl", a[0], retries) }},
		onWord("curl", "all_errors", "--retry-all-errors", "any-error"),
		onWord("curl", "retry_all_errors", "--retry-all-errors", "any-error"),
		onWord("curl", "connrefused", "--retry-connrefused", "refused"),
		onWord("curl", "retry_connrefused", "--retry-connrefused", "refused"),
		{"retry_delay_#", "--retry-delay in seconds", func(b *builder, a []string) error {
			return b.setDuration("curl", "--retry-delay", a[0]+"s", func(s *policy.Settings, d time.Duration) { s.Wait = &d })
		}},
		{"retry_max_time_#", "--retry-max-time in seconds", func(b *builder, a []string) error {
			return b.setDuration("curl", "--retry-max-time", a[0]+"s", func(s *policy.Settings, d time.Duration) { s.Window = &d })
		}},
		{"max_time_#", "--max-time in seconds", func(b *builder, a []string) error {
			return b.setDuration("curl", "--max-time", a[0]+"s", func(s *policy.Settings, d time.Duration) { s.Timeout = &d })
		}},
	},
}

func curlLayer(s policy.Settings) (policy.Layer, error) {
	triggers, err := policy.ParseTriggers(s.On)
	if err != nil {
		return policy.Layer{}, &policy.FieldError{Field: "on", Problem: err.Error()}
	}
	statuses := append(policy.StatusSet(s.Statuses), triggers.Statuses...)
	return policy.Layer{
		Attempts: *s.Attempts,
		Limit:    fmt.Sprintf("--retry %d", *s.Attempts-1),
		Rules: []policy.Rule{
			{Failures: triggers.Failures, InBody: true},
			{
				Statuses:          append(statuses, policy.Status(408), policy.Status(429), policy.Status(500), policy.StatusRange{From: 502, To: 504}),
				HonourRetryAfter:  true,
				RetryAfterAtLeast: true,
			},
		},
		Waits: s.Pauses(),
	}, nil
}
