package preset

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"retrylab/caller/policy"
)

// Envoy is the retry policy of an Envoy route.
var Envoy = &Preset{
	Name:     "envoy",
	Entry:    "envoy-router",
	Group:    proxies,
	Title:    "Envoy router, retry policy of a route",
	Version:  "data-plane-api @84e84367 (January 2026) for the defaults, older snapshots for the logic",
	Verified: "source",
	Source: []string{
		"envoyproxy/data-plane-api envoy/config/route/v3/route_components.proto@84e84367 RetryPolicy",
		"envoyproxy/envoy source/common/router/retry_state_impl.cc@e78906c5cbf5",
		"envoyproxy/envoy docs/root/configuration/http/http_filters/router_filter.rst@f475937edc64",
	},
	Counts: "num_retries = retries: one, so two tries in total once there is a policy",
	Doc:    "What retry_on lists, for any method; nothing without a policy. One route time-out bounds all tries and waits.",
	Triggers: []string{
		"connect-failure: the connection could not be made",
		"reset, gateway-error and 5xx: no answer at all, by eof, reset, a failed connection or the per-try time-out",
		"gateway-error also 502, 503, 504; 5xx also any 5xx; retriable-4xx 409 alone; retriable-status-codes what is listed",
	},
	NotRetried: []string{
		"anything without a retry policy",
		"the end of the route time-out",
		"when the retry circuit breaker is open or a buffer is full",
	},
	Waits:       "before retry n anything between 0 and (2^n - 1)·25 ms, at most 250 ms; Retry-After only with rate_limited_retry_back_off",
	Timeouts:    "route time-out 15 s over all tries and waits; per_try_timeout unset, so the first slow try uses up all of it",
	OnByDefault: "no",
	Originals: []Original{
		{"retry_policy.num_retries (retries; attempts is one more)", "attempts", "1"},
		{"retry_policy.retry_on: connect-failure is connect; reset is connect, eof, reset, attempt-timeout", "on", "nothing"},
		{"retry_policy.retriable_status_codes", "statuses", "none"},
		{"retriable_request_headers that match :method", "methods", "any"},
		{"retry_policy.per_try_timeout", "timeout", "unset"},
		{"route.timeout", "total", "15 s"},
		{"retry_policy.retry_back_off: backoff.initial is base_interval, backoff.max max_interval", "backoff", "25 ms, 250 ms"},
	},
	Traps: []string{
		"retry_on: 5xx or reset sends a POST again that the server may have executed.",
		"Without a per-try time-out a slow server is never retried: the route time-out ends with the first try.",
		"hedge_on_per_try_timeout leaves the first try running beside the second.",
	},
	Takes: []string{"attempts", "on", "statuses", "methods", "timeout", "total", "backoff"},
	Defaults: policy.Settings{
		Attempts: new(2),
		On:       []string{},
		Methods:  []string{policy.AnyMethod},
		Total:    new(15 * time.Second),
		Backoff:  envoyBackoff,
	},
	Layer:    func(s policy.Settings) (policy.Layer, error) { return envoyLayer(s, "num_retries") },
	Body:     policy.Buffered,
	CellRead: new(time.Duration(0)),
	InHop:    true,
	words: slices.Concat(envoyConditions("envoy"), []word{
		{"num_retries_#", "num_retries", func(b *builder, a []string) error { return b.setAttempts("envoy", a[0], retries) }},
		perTryTimeout("envoy", "per_try_timeout_@"),
		{"route_timeout_@", "the route's time-out", func(b *builder, a []string) error {
			return b.setDuration("envoy", "route time-out", a[0], func(s *policy.Settings, d time.Duration) { s.Total = &d })
		}},
	}),
}

// Istio is the retry that an Istio sidecar gives every outbound HTTP request.
var Istio = &Preset{
	Name:     "istio",
	Entry:    "istio-default",
	Group:    proxies,
	Title:    "Istio sidecar, default HTTP retry of outbound requests",
	Version:  "1.30.3 read, with 1.22.0 and the main branch of August 2026",
	Verified: "source",
	Source: []string{
		"istio/istio pilot/pkg/networking/core/route/retry/retry.go@1.30.3, @1.22.0, main",
		"istio/istio releasenotes/notes/50506.yaml; commit 65aaaf4f8c (2024-07-29)",
	},
	Counts: "attempts = retries: two, so three tries in total",
	Doc:    "Two retries, for any method, of a connection that could not be made; of a 503 too up to 1.23.",
	Triggers: []string{
		"connect-failure and refused-stream: nothing was executed",
		"gRPC unavailable and cancelled, in the headers of the answer",
		"503, up to 1.23",
	},
	NotRetried: []string{
		"503 since 1.24, and any other status",
		"a read time-out, eof or reset after sending",
	},
	Waits:       "Envoy's: before retry n anything between 0 and (2^n - 1)·25 ms, at most 250 ms",
	Timeouts:    "no route time-out and no per-try time-out by default",
	OnByDefault: "yes",
	Originals: []Original{
		{"VirtualService http.retries.attempts (retries; our attempts is one more; 0 disables)", "attempts", "2"},
		{"VirtualService http.retries.retryOn", "on", "connect-failure,refused-stream,unavailable,cancelled"},
		{"statuses in retryOn (503 up to 1.23)", "statuses", "none"},
		{"VirtualService http.retries.perTryTimeout", "timeout", "unset"},
		{"VirtualService http.timeout", "total", "unset"},
		{"VirtualService http.retries.backoff", "backoff", "25 ms, 250 ms"},
	},
	Traps: []string{
		"Up to 1.23 a POST that was answered 503 was delivered three times by default.",
		"attempts are retries here, although the word says tries.",
		"The main branch of August 2026 retries inbound requests too that were reset before they were sent.",
	},
	Takes: []string{"attempts", "on", "statuses", "timeout", "total", "backoff"},
	Defaults: policy.Settings{
		Attempts: new(3),
		On:       []string{"connect"},
		Backoff:  envoyBackoff,
	},
	Layer:    func(s policy.Settings) (policy.Layer, error) { return envoyLayer(s, "attempts") },
	Body:     policy.Buffered,
	CellRead: new(time.Duration(0)),
	InHop:    true,
	words: slices.Concat(envoyConditions("istio"), []word{
		{"attempts_#", "attempts of the VirtualService, which are retries", func(b *builder, a []string) error { return b.setAttempts("istio", a[0], retries) }},
		{"istio_1_#", "this version: up to 1.23 a 503 is retried", istioVersion},
		{"version_1_#", "this version: up to 1.23 a 503 is retried", istioVersion},
		{"1_#", "this version: up to 1.23 a 503 is retried", istioVersion},
		{"before_1_24", "a version that retries 503", func(b *builder, _ []string) error { return istioVersion(b, []string{"23"}) }},
		perTryTimeout("istio", "per_try_timeout_@"),
		perTryTimeout("istio", "perTryTimeout_@"),
	}),
}

func istioVersion(b *builder, a []string) error {
	return b.setNumber("istio", "version", a[0], func(s *policy.Settings, minor int) {
		if minor < 24 {
			s.Statuses = append(s.Statuses, "503")
		}
	})
}

func perTryTimeout(preset, form string) word {
	return word{form, "limit of each try", func(b *builder, a []string) error {
		return b.setDuration(preset, "per-try time-out", a[0], func(s *policy.Settings, d time.Duration) { s.Timeout = &d })
	}}
}

var envoyBackoff = &policy.Backoff{Initial: 25 * time.Millisecond, Factor: 2, Max: 250 * time.Millisecond, Jitter: policy.FullJitter}

// noAnswer is what Envoy's reset, gateway-error and 5xx have in common: there is no answer at all.
var noAnswer = []string{"connect", "eof", "reset", "attempt-timeout", "malformed"}

// envoyConditions are the words of retry_on, which take the place of the preset's own.
func envoyConditions(preset string) []word {
	var words []word
	for _, c := range []struct {
		theirs string
		ours   []string
	}{
		{"5xx", append(slices.Clip(noAnswer), "5xx")},
		{"gateway_error", append(slices.Clip(noAnswer), "502", "503", "504")},
		{"reset", noAnswer},
		{"connect_failure", []string{"connect"}},
		{"refused_stream", nil},
		{"retriable_4xx", []string{"409"}},
		{"retriable_status_codes", nil},
	} {
		words = append(words, word{"retry_on_" + c.theirs, "retry_on: " + strings.ReplaceAll(c.theirs, "_", "-"), func(b *builder, _ []string) error {
			return b.set(preset, "condition "+c.theirs, func(s *policy.Settings) { s.On = append(slices.Clip(orEmpty(s.On)), c.ours...) })
		}})
	}
	return words
}

func envoyLayer(s policy.Settings, limit string) (policy.Layer, error) {
	triggers, err := proxyTriggers(s.On, "Envoy")
	if err != nil {
		return policy.Layer{}, err
	}
	if s.Backoff != nil && s.Backoff.Factor != 2 {
		return policy.Layer{}, &policy.FieldError{Field: "backoff.factor", Problem: "Envoy always doubles"}
	}
	methods := policy.MethodSet(s.Methods)
	waits := s.Pauses()
	waits.Growth = policy.LessOne
	return policy.Layer{
		Attempts:    *s.Attempts,
		Limit:       fmt.Sprintf("%s %d", limit, *s.Attempts-1),
		PerInstance: 1,
		Rules: []policy.Rule{
			{Failures: triggers.Failures, Methods: methods, Bodies: policy.Repeatable},
			{Statuses: slices.Concat(triggers.Statuses, policy.StatusSet(s.Statuses)), Methods: methods, Bodies: policy.Repeatable},
		},
		Waits: waits,
	}, nil
}
