package preset

import (
	"fmt"
	"time"

	"retrylab/caller/policy"
)

// Caddy is the retries of Caddy's reverse_proxy.
var Caddy = &Preset{
	Name:     "caddy",
	Entry:    "caddy-reverse-proxy",
	Group:    proxies,
	Title:    "Caddy reverse_proxy, lb_retries and lb_try_duration",
	Version:  "2.11.4 read, 2.6.2 run",
	Verified: "both",
	Source: []string{
		"caddyserver/caddy modules/caddyhttp/reverseproxy/reverseproxy.go@v2.11.4 LoadBalancing, tryAgain, proxyLoopIteration",
	},
	Counts: "lb_retries = retries: none; lb_try_duration is a time in which tries may begin, without a number",
	Doc:    "No retry by default; with lb_retries or lb_try_duration any method while no connection was made, then GET alone.",
	Triggers: []string{
		"a connection that could not be made, for any method",
		"eof, reset and the response header time-out, for GET",
	},
	NotRetried: []string{
		"POST, HEAD, PUT and all others once there was a connection, unless lb_retry_match has them",
		"any status, unless lb_retry_match looks at the answer",
	},
	Waits:       "lb_try_interval: 250 ms once lb_try_duration is set, else none",
	Timeouts:    "dial 3 s; no response header time-out by default; a try that began within lb_try_duration runs to its end",
	OnByDefault: "no, both are 0",
	Originals: []Original{
		{"lb_retries (retries; attempts is one more; lb_try_duration alone has no such limit)", "attempts", "0"},
		{"lb_try_duration", "window", "0"},
		{"lb_try_interval", "wait", "250 ms with lb_try_duration"},
		{"lb_retry_match method", "methods-on-error", "GET"},
		{"lb_retry_match with expressions on the answer (newer versions)", "statuses", "none"},
	},
	Traps: []string{
		"A write that is mapped to GET, lb_try_duration 3s and a header time-out of 400 ms: seven arrivals.",
		"A PUT or a DELETE is not retried, although it is idempotent; a GET is, whatever it does.",
	},
	Takes:    []string{"attempts", "window", "wait", "methods-on-error", "statuses"},
	Defaults: policy.Settings{MethodsOnError: policy.GetOnly},
	Layer:    caddyLayer,
	Body:     policy.Buffered,
	CellRead: new(400 * time.Millisecond),
	InHop:    true,
	words: []word{
		{"default", "nothing is set", func(b *builder, _ []string) error { return b.once("settings", func() {}) }},
		{"lb_retries_#", "lb_retries", func(b *builder, a []string) error { return b.setAttempts("caddy", a[0], retries) }},
		{"try_duration", "lb_try_duration 3s", func(b *builder, _ []string) error { return setTryDuration(b, "3s") }},
		{"try_duration_@", "lb_try_duration", func(b *builder, a []string) error { return setTryDuration(b, a[0]) }},
		{"lb_try_duration_@", "lb_try_duration", func(b *builder, a []string) error { return setTryDuration(b, a[0]) }},
		{"interval_@", "lb_try_interval", func(b *builder, a []string) error { return setTryInterval(b, a[0]) }},
		{"lb_try_interval_@", "lb_try_interval", func(b *builder, a []string) error { return setTryInterval(b, a[0]) }},
		{"retry_match_any", "lb_retry_match with every method", func(b *builder, _ []string) error {
			return b.set("caddy", "methods", func(s *policy.Settings) { s.MethodsOnError = []string{policy.AnyMethod} })
		}},
	},
}

func setTryDuration(b *builder, d string) error {
	return b.setDuration("caddy", "lb_try_duration", d, func(s *policy.Settings, d time.Duration) { s.Window = &d })
}

func setTryInterval(b *builder, d string) error {
	return b.setDuration("caddy", "lb_try_interval", d, func(s *policy.Settings, d time.Duration) { s.Wait = &d })
}

func caddyLayer(s policy.Settings) (policy.Layer, error) {
	attempts := value(s.Attempts)
	limit := fmt.Sprintf("lb_retries %d", attempts-1)
	switch {
	case attempts == 0 && value(s.Window) == 0:
		attempts, limit = 1, "neither lb_retries nor lb_try_duration is set"
	case attempts == 1 && value(s.Window) > 0:
		attempts = 0 // lb_retries 0 is no limit
	}
	waits := s.Pauses()
	if s.Wait == nil && value(s.Window) > 0 {
		waits = policy.FixedWait(250 * time.Millisecond)
	}
	return policy.Layer{
		Attempts:    attempts,
		Limit:       limit,
		PerInstance: 1,
		Rules: []policy.Rule{
			{Failures: notConnected},
			{
				Failures: []policy.Failure{policy.EOF, policy.Reset, policy.ReadTimeout, policy.AttemptTimeout, policy.Malformed},
				Methods:  policy.MethodSet(s.MethodsOnError),
				Bodies:   policy.Repeatable,
			},
			{Statuses: policy.StatusSet(s.Statuses), Methods: policy.MethodSet(s.MethodsOnError), Bodies: policy.Repeatable},
		},
		Waits: waits,
	}, nil
}
