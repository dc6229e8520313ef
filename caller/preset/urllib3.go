package preset

import (
	"fmt"
	"time"

	"retrylab/caller/policy"
)

// URLLib3 is the retry that every urllib3 pool has unless told otherwise.
var URLLib3 = &Preset{
	Name:     "urllib3",
	Entry:    "urllib3",
	Group:    python,
	Title:    "Python urllib3, the default Retry of a PoolManager",
	Version:  "2.7.0 read and run",
	Verified: "both",
	Source: []string{
		"urllib3/urllib3 src/urllib3/util/retry.py@2.7.0 Retry, DEFAULT",
		"urllib3/urllib3 src/urllib3/connectionpool.py@2.7.0 urlopen",
	},
	Counts: "Retry(3) = retries: three, so four tries in total; a bare Retry() is ten retries",
	Doc:    "Three retries at once, on a read time-out too, for all idempotent methods.",
	Triggers: []string{
		"a read time-out, eof or reset, for HEAD, GET, PUT, DELETE, OPTIONS and TRACE",
		"a connection that could not be made, unknown host included, for any method",
		"413, 429 and 503 that carry Retry-After, for the methods above",
	},
	NotRetried: []string{
		"POST and PATCH once a connection was made",
		"500, and 503 without Retry-After",
	},
	Waits:       "none with the default backoff factor of 0; else none before the first retry, then factor·2^(n-1) seconds before retry n, at most 120 s. A Retry-After above zero takes its place, at most 6 h",
	Timeouts:    "none by default; read is per socket read",
	OnByDefault: "yes; python-requests switches it off",
	Originals: []Original{
		{"Retry total (retries; attempts is one more)", "attempts", "3"},
		{"Retry backoff_factor, in seconds: backoff.initial", "backoff", "0"},
		{"Retry allowed_methods (None is any)", "methods", "the idempotent methods"},
		{"Retry status_forcelist", "statuses", "none"},
		{"Retry respect_retry_after_header", "retry-after", "true"},
		{"Retry.DEFAULT_RETRY_AFTER_MAX", "retry-after-cap", "6 h"},
	},
	Drips: []Drip{{"timeout", never, never}},
	Traps: []string{
		"Here a GET is retried on a read time-out, at once, four sends: what is said of HttpClient 5 is true of this one.",
		"A backoff factor does not delay the first retry.",
	},
	Takes: []string{"attempts", "backoff", "methods", "statuses", "retry-after", "retry-after-cap"},
	Defaults: policy.Settings{
		Attempts:      new(4),
		Backoff:       &policy.Backoff{Factor: 2, Max: 120 * time.Second},
		Methods:       policy.Idempotent,
		RetryAfter:    policy.HonourRetryAfter,
		RetryAfterCap: new(6 * time.Hour),
	},
	Layer: urllib3Layer,
	Body:  policy.Buffered,
	words: urllib3Words("urllib3"),
}

func urllib3Layer(s policy.Settings) (policy.Layer, error) {
	if s.Backoff.Factor != 2 {
		return policy.Layer{}, &policy.FieldError{Field: "backoff.factor", Problem: "urllib3 always doubles; its backoff_factor is backoff.initial"}
	}
	if s.Backoff.Jitter != "" && s.Backoff.Jitter != policy.NoJitter {
		return policy.Layer{}, &policy.FieldError{Field: "backoff.jitter", Problem: "urllib3's own jitter is not modelled; use preset retry"}
	}
	waits := s.Pauses()
	waits.FirstAtOnce = true
	methods := policy.MethodSet(s.Methods)
	honour := s.RetryAfter == policy.HonourRetryAfter
	forced := policy.Rule{
		Statuses:         policy.StatusSet(s.Statuses),
		Methods:          methods,
		HonourRetryAfter: honour,
		RetryAfterCap:    value(s.RetryAfterCap),
		IgnoreZeroAfter:  true,
	}
	rules := []policy.Rule{
		{Failures: []policy.Failure{policy.Refused, policy.ConnectTimeout, policy.UnknownHost}},
		{Failures: []policy.Failure{policy.ReadTimeout, policy.EOF, policy.Reset}, Methods: methods, InBody: true},
		forced,
	}
	if honour {
		withHeader := forced
		withHeader.Statuses = []policy.StatusRange{policy.Status(413), policy.Status(429), policy.Status(503)}
		withHeader.RetryAfter = policy.Present
		rules = append(rules, withHeader)
	}
	return policy.Layer{
		Attempts: *s.Attempts,
		Limit:    fmt.Sprintf("Retry(%d)", *s.Attempts-1),
		Rules:    rules,
		Waits:    waits,
	}, nil
}

// urllib3Words are the settings of a Retry object in the names of cells.
func urllib3Words(preset string) []word {
	return []word{
		{"Retry_total_#", "Retry(total=#)", func(b *builder, a []string) error { return b.setAttempts(preset, a[0], retries) }},
		{"Retry_#", "Retry(#)", func(b *builder, a []string) error { return b.setAttempts(preset, a[0], retries) }},
		{"bf_#", "backoff_factor in seconds", func(b *builder, a []string) error { return setBackoffFactor(b, preset, a[0]) }},
		{"bf_#_#", "backoff_factor in seconds, a decimal: bf_0_2 is 0.2", func(b *builder, a []string) error {
			return setBackoffFactor(b, preset, a[0]+"."+a[1])
		}},
		statusWord(preset, "status_forcelist_#"),
	}
}

func setBackoffFactor(b *builder, preset, seconds string) error {
	factor, err := time.ParseDuration(seconds + "s")
	if err != nil {
		return fmt.Errorf("bf: %q is not a number of seconds", seconds)
	}
	return b.set(preset, "backoff", func(s *policy.Settings) { s.Backoff = &policy.Backoff{Initial: factor} })
}
