package preset

import (
	"fmt"
	"slices"
	"time"

	"retrylab/caller/policy"
)

// AWSGo is the standard retryer of the AWS SDK for Go v2 before its change of 2026.
var AWSGo = &Preset{
	Name:     "aws-sdk-go",
	Entry:    "aws-sdk-go-v2-classic",
	Group:    sdks,
	Title:    "AWS SDK for Go v2, standard mode, before 1.48.0",
	Version:  "1.36.3 read",
	Verified: "source",
	Source:   []string{"aws/aws-sdk-go-v2 aws/retry/standard.go, jitter_backoff.go@v1.36.3"},
	Counts:   "MaxAttempts = tries in total: three",
	Doc:      "Three tries on connection errors, time-outs, 500, 502, 503 and 504, whatever the operation, within a quota.",
	Triggers: []string{
		"a connection error, a time-out, a temporary error, for any operation",
		"500, 502, 503, 504",
		"RequestTimeout and the throttling codes in the answer",
	},
	NotRetried: []string{
		"a name that does not exist, a cancelled context",
		"a bare 429: throttling is known by the code in the answer",
		"when the quota is used up",
	},
	Waits:       "before retry n anything between 0 and 2^n s; from the fifth on exactly 20 s",
	Timeouts:    "none beyond the HTTP client's",
	OnByDefault: "yes",
	Originals: []Original{
		{"AWS_MAX_ATTEMPTS, retry.StandardOptions.MaxAttempts", "attempts", "3"},
		{"retry.StandardOptions.MaxBackoff: backoff.max", "backoff", "20 s"},
		{"further statuses of a retry.Retryable", "statuses", "none"},
		{"ratelimit.NewTokenRateLimit, retry.StandardOptions.RetryCost, RetryTimeoutCost, NoRetryIncrement", "budget", "500, 5, 10, 1"},
	},
	Traps: []string{
		"It does not look at the operation: what makes a repetition safe is the service's own idempotency token.",
		"The quota of 500, of which a retry takes 5 and one after a time-out 10, is shared by all calls of a client.",
	},
	Takes: []string{"attempts", "backoff", "statuses", "budget"},
	Defaults: policy.Settings{
		Attempts: new(3),
		Backoff:  &policy.Backoff{Initial: time.Second, Factor: 2, Max: 20 * time.Second, Jitter: policy.FullJitter},
		Budget:   &policy.Budget{Tokens: new(500.0), Cost: 5, TimeoutCost: 10, Refill: 1},
	},
	Layer: func(s policy.Settings) (policy.Layer, error) {
		l := awsLayer(s)
		l.Waits.GrowFirst, l.Waits.ExactAtMax = true, true
		return l, nil
	},
	Body:  policy.Buffered,
	words: awsWords("aws-sdk-go"),
}

// AWSGo2026 is the standard retryer of the AWS SDK for Go v2 since 1.48.0.
var AWSGo2026 = &Preset{
	Name:     "aws-sdk-go-2026",
	Entry:    "aws-sdk-go-v2-2026",
	Group:    sdks,
	Title:    "AWS SDK for Go v2, standard mode, 1.48.0 (2026-11-10)",
	Version:  "1.48.0 read",
	Verified: "source",
	Source:   []string{"aws/aws-sdk-go-v2 aws/retry/standard.go, jitter_backoff.go, CHANGELOG.md@v1.48.0"},
	Counts:   "MaxAttempts = tries in total: three (DynamoDB four)",
	Doc:      "As before 1.48.0, with shorter waits, a dearer retry, and a bare 429 taken for throttling.",
	Triggers: []string{
		"a connection error, a time-out, a temporary error, for any operation",
		"500, 502, 503, 504, and 429 as throttling",
		"RequestTimeout and the throttling codes in the answer",
	},
	NotRetried: []string{
		"a name that does not exist, a cancelled context",
		"when the quota is used up",
	},
	Waits:       "before retry n anything between 0 and 50·2^(n-1) ms, after throttling 2^(n-1) s, at most 20 s; x-amz-retry-after adds up to 5 s, Retry-After is ignored",
	Timeouts:    "none beyond the HTTP client's",
	OnByDefault: "yes",
	Originals: []Original{
		{"AWS_MAX_ATTEMPTS, retry.StandardOptions.MaxAttempts", "attempts", "3"},
		{"retry.StandardOptions back-off: backoff.initial, backoff.max", "backoff", "50 ms, 20 s"},
		{"further statuses of a retry.Retryable", "statuses", "none"},
	},
	Traps: []string{
		"The often quoted quota of 500, 5 and 10 is that of older releases: since this one a retry takes 14, and 5 after throttling. It is not played here.",
	},
	Takes:    []string{"attempts", "backoff", "statuses"},
	Defaults: policy.Settings{Attempts: new(3), Backoff: &policy.Backoff{Initial: 50 * time.Millisecond, Factor: 2, Max: 20 * time.Second, Jitter: policy.FullJitter}},
	Layer: func(s policy.Settings) (policy.Layer, error) {
		l := awsLayer(s)
		throttled := l.Waits
		throttled.Initial = time.Second
		l.Rules = slices.Insert(l.Rules, 0, policy.Rule{Statuses: []policy.StatusRange{policy.Status(429)}, Wait: &throttled})
		return l, nil
	},
	Body:  policy.Buffered,
	words: awsWords("aws-sdk-go-2026"),
}

// Botocore is the retry of botocore, on which boto3 and the AWS command line stand.
var Botocore = &Preset{
	Name:     "botocore",
	Entry:    "botocore",
	Group:    sdks,
	Title:    "botocore (boto3), modes legacy and standard",
	Version:  "1.43.67 read",
	Verified: "source",
	Source: []string{
		"boto/botocore botocore/retries/standard.py, retries/quota.py, retryhandler.py, data/_retry.json, configprovider.py@1.43.67",
	},
	Counts: "max_attempts = tries in total: five in legacy mode, which is the default (DynamoDB ten), three in standard mode",
	Doc:    "Five tries in legacy mode on connection errors, time-outs, 429, 500, 502, 503 and 504, whatever the operation.",
	Triggers: []string{
		"a connection error or a time-out, for any operation",
		"500, 502, 503, 504; in legacy mode 429 as well",
		"the throttling codes in the answer",
	},
	NotRetried: []string{
		"a bare 429 in standard mode",
		"in standard mode when the quota is used up",
	},
	Waits:       "before retry n anything between 0 and 2^(n-1) s, in standard mode at most 20 s",
	Timeouts:    "connect 60 s, read 60 s per socket read",
	OnByDefault: "yes",
	Originals: []Original{
		{"AWS_RETRY_MODE, Config(retries={'mode': …})", "mode", "legacy"},
		{"AWS_MAX_ATTEMPTS, Config(retries={'total_max_attempts': …})", "attempts", "5; standard 3"},
		{"further statuses", "statuses", "none"},
	},
	Traps: []string{
		"The default is legacy, five tries, and not the standard mode that is written about.",
		"Standard mode has a quota of 500: 5 for a retry, 10 for one after a time-out; AWS_NEW_RETRIES_2026=true makes it 14. It is not played here.",
		"urllib3's own retries are switched off underneath.",
	},
	Takes:    []string{"mode", "attempts", "statuses"},
	Defaults: policy.Settings{Mode: policy.LegacyMode},
	Layer:    botocoreLayer,
	Body:     policy.Buffered,
	words: append(awsWords("botocore"),
		word{"legacy", "legacy mode, the default", setMode(policy.LegacyMode)},
		word{"standard", "standard mode", setMode(policy.StandardMode)},
	),
}

func botocoreLayer(s policy.Settings) (policy.Layer, error) {
	s.Backoff = &policy.Backoff{Initial: time.Second, Jitter: policy.FullJitter}
	legacy := s.Mode == policy.LegacyMode
	if s.Attempts == nil {
		s.Attempts = new(5)
		if !legacy {
			s.Attempts = new(3)
		}
	}
	if legacy {
		s.Statuses = append(slices.Clip(s.Statuses), "429")
	} else {
		s.Backoff.Max = 20 * time.Second
	}
	l := awsLayer(s)
	// An unknown host is one of its connection errors.
	l.Rules[0].Failures = ioErrors
	l.Limit = fmt.Sprintf("max_attempts %d", *s.Attempts)
	return l, nil
}

func setMode(mode string) func(*builder, []string) error {
	return func(b *builder, _ []string) error {
		return b.set("botocore", "mode", func(s *policy.Settings) { s.Mode = mode })
	}
}

// awsLayer is what AWS's SDKs have in common.
func awsLayer(s policy.Settings) policy.Layer {
	return policy.Layer{
		Attempts: *s.Attempts,
		Limit:    fmt.Sprintf("MaxAttempts %d", *s.Attempts),
		Rules: []policy.Rule{
			{
				Failures: slices.DeleteFunc(slices.Clone(ioErrors), func(f policy.Failure) bool { return f == policy.UnknownHost }),
				Bodies:   policy.Repeatable,
			},
			{
				Statuses: append(policy.StatusSet(s.Statuses), policy.Status(500), policy.StatusRange{From: 502, To: 504}),
				Bodies:   policy.Repeatable,
			},
		},
		Waits: s.Pauses(),
	}
}

func awsWords(preset string) []word {
	var words []word
	for _, form := range []string{"MaxAttempts_#", "max_attempts_#", "maxAttempts_#"} {
		words = append(words, word{form, "so many tries in total", func(b *builder, a []string) error { return b.setAttempts(preset, a[0], tries) }})
	}
	return words
}
