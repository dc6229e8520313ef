package preset

import (
	"fmt"
	"math"

	"retrylab/caller/policy"
)

// Traefik is Traefik's Retry middleware.
var Traefik = &Preset{
	Name:     "traefik",
	Entry:    "traefik-retry",
	Group:    proxies,
	Title:    "Traefik Retry middleware",
	Version:  "3.7.9 read, 3.6.0 compared",
	Verified: "source",
	Source: []string{
		"traefik/traefik pkg/middlewares/retry/retry.go@v3.7.9, @v3.6.0",
		"traefik/traefik docs/content/reference/routing-configuration/http/middlewares/retry.md@v3.7.9",
	},
	Counts: "attempts = tries in total in the code, although its reference calls it the number of times that a request is retried",
	Doc:    "Tries again only while nothing of the request was sent; since 3.7 on listed statuses too, not POST, PATCH and LOCK.",
	Triggers: []string{
		"a network error before any byte of the request was written, for any method",
		"since 3.7 a listed status, for all methods but POST, PATCH and LOCK",
	},
	NotRetried: []string{
		"a read time-out, eof or reset once the request was written",
		"a status that is not listed",
		"POST, PATCH and LOCK on a status, unless retryNonIdempotentMethod",
	},
	Waits:       "none unless initialInterval is set; then growing from it to at most twice as long, with jitter of half the wait either way",
	Timeouts:    "none of its own; timeout (3.7) bounds when a further try may begin",
	OnByDefault: "no, and attempts must be given",
	Originals: []Original{
		{"http.middlewares.<name>.retry.attempts", "attempts", "must be given"},
		{"retry.initialInterval: backoff.initial", "backoff", "0"},
		{"retry.timeout (3.7)", "window", "0 (none)"},
		{"retry.status (3.7)", "statuses", "none"},
		{"retry.retryNonIdempotentMethod (3.7)", "non-idempotent", "false"},
	},
	Traps: []string{
		"attempts: 3 is three sends, while the documentation reads like four.",
	},
	Takes: []string{"attempts", "backoff", "window", "statuses", "non-idempotent"},
	Defaults: policy.Settings{
		Attempts:      new(1),
		Backoff:       &policy.Backoff{Jitter: "50%"},
		NonIdempotent: new(false),
	},
	Layer: traefikLayer,
	Body:  policy.Buffered,
	InHop: true,
	words: []word{
		statusWord("traefik", "status_#"),
		{"retryNonIdempotentMethod", "statuses are retried for POST, PATCH and LOCK too", func(b *builder, _ []string) error {
			return b.set("traefik", "non-idempotent", func(s *policy.Settings) { s.NonIdempotent = new(true) })
		}},
	},
}

func traefikLayer(s policy.Settings) (policy.Layer, error) {
	if s.Backoff.Factor != 0 {
		return policy.Layer{}, &policy.FieldError{Field: "backoff.factor", Problem: "Traefik makes it of attempts, so that the last wait is twice the first"}
	}
	waits := s.Pauses()
	if *s.Attempts > 1 {
		waits.Factor = math.Pow(2, 1/float64(*s.Attempts-1))
	}
	return policy.Layer{
		Attempts:    *s.Attempts,
		Limit:       fmt.Sprintf("attempts %d", *s.Attempts),
		PerInstance: 1,
		Rules: []policy.Rule{
			{Failures: notConnected},
			{Statuses: policy.StatusSet(s.Statuses), NotMethods: unlessAsked(s), Bodies: policy.Repeatable},
		},
		Waits: waits,
	}, nil
}
