package preset

import (
	"fmt"
	"slices"

	"retrylab/caller/policy"
)

// maxGRPCAttempts is what a gRPC client cuts maxAttempts to.
const maxGRPCAttempts = 5

// GRPC is the retry policy of a gRPC client. The lab speaks HTTP: a broken or refused connection and
// the statuses that gRPC maps to UNAVAILABLE stand for that code.
var GRPC = &Preset{
	Name:     "grpc",
	Entry:    "grpc",
	Group:    sdks,
	Title:    "gRPC client, retryPolicy of a service config",
	Version:  "grpc-go 1.83.1 read, with proposal A6 @1fd061a",
	Verified: "source",
	Source: []string{
		"grpc/grpc-go stream.go@v1.83.1 csAttempt.shouldRetry",
		"grpc/grpc-go service_config.go, dialoptions.go, clientconn.go@v1.83.1 (retryThrottler)",
		"grpc/proposal A6-client-retries.md@1fd061a",
	},
	Counts: "maxAttempts = tries in total: one without a retryPolicy, cut to five with one",
	Doc:    "What retryableStatusCodes lists, with one deadline for the whole call; nothing without a retryPolicy.",
	Triggers: []string{
		"with a retryPolicy the listed codes, here UNAVAILABLE: refused, eof, reset, 429, 502, 503, 504",
		"transparently, always: a call that never left the client, and once one that the server refused unprocessed",
	},
	NotRetried: []string{
		"anything without a retryPolicy",
		"the deadline",
		"a call whose answer has begun: it is committed",
		"while the retry throttle is at or below half",
	},
	Waits:       "initialBackoff·multiplier^(n-1), at most maxBackoff, a fifth more or less; all of them must be given. grpc-retry-pushback-ms takes its place",
	Timeouts:    "one deadline for the whole call with all its tries",
	OnByDefault: "the transparent retries yes, the others only with a retryPolicy",
	Originals: []Original{
		{"retryPolicy.maxAttempts (above five it is five)", "attempts", "no retryPolicy: 1"},
		{"retryPolicy.initialBackoff, backoffMultiplier, maxBackoff: backoff.initial, factor, max", "backoff", "must be given"},
		{"retryPolicy.retryableStatusCodes: failures", "on", "UNAVAILABLE"},
		{"retryPolicy.retryableStatusCodes: HTTP statuses that map to UNAVAILABLE", "statuses", "429, 502, 503, 504"},
		{"the call's deadline", "total", "none"},
		{"retryThrottling.maxTokens, tokenRatio: budget.tokens, refill, with stop: half", "budget", "none"},
	},
	Traps: []string{
		"maxAttempts: 10 is five tries.",
		"The deadline bounds all tries together: a slow first one leaves nothing for a second.",
		"retryThrottling takes one token per failure, gives tokenRatio back per success, and stops all retries while half or less is left.",
	},
	Takes: []string{"attempts", "on", "statuses", "backoff", "total", "budget"},
	Defaults: policy.Settings{
		Attempts: new(1),
		On:       []string{"connect", "eof", "reset"},
		Statuses: []string{"429", "502", "503", "504"},
		Backoff:  &policy.Backoff{Jitter: "20%"},
	},
	Layer: func(s policy.Settings) (policy.Layer, error) {
		attempts := min(*s.Attempts, maxGRPCAttempts)
		triggers, err := policy.ParseTriggers(s.On)
		if err != nil {
			return policy.Layer{}, &policy.FieldError{Field: "on", Problem: err.Error()}
		}
		return policy.Layer{
			Attempts: attempts,
			Limit:    fmt.Sprintf("maxAttempts %d", attempts),
			Rules: []policy.Rule{
				{Failures: triggers.Failures},
				{Statuses: slices.Concat(triggers.Statuses, policy.StatusSet(s.Statuses))},
			},
			Waits: s.Pauses(),
		}, nil
	},
	Body: policy.Buffered,
	words: []word{
		{"maxAttempts_#", "retryPolicy.maxAttempts", func(b *builder, a []string) error { return b.setAttempts("grpc", a[0], tries) }},
	},
}
