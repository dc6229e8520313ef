package preset

import (
	"fmt"
	"slices"
	"time"

	"retrylab/caller/policy"
)

// Nginx is nginx's proxy_next_upstream, which lives in a hop: it passes a request on from one server
// of an upstream to the next.
var Nginx = &Preset{
	Name:     "nginx",
	Entry:    "nginx-proxy-next-upstream",
	Group:    proxies,
	Title:    "nginx proxy_next_upstream",
	Version:  "1.30.4 read, 1.22.1 run: the same logic in both",
	Verified: "both",
	Source: []string{
		"nginx/nginx src/http/ngx_http_upstream.c@release-1.30.4 ngx_http_upstream_next, ngx_http_upstream_test_next, ngx_http_upstream_send_request_body",
		"nginx/nginx src/http/modules/ngx_http_proxy_module.c@release-1.30.4",
		"nginx/nginx src/http/ngx_http_upstream_round_robin.c@release-1.30.4",
		"nginx/nginx src/http/modules/ngx_http_upstream_keepalive_module.c@release-1.30.4 ngx_http_upstream_keepalive_init_main_conf",
		"nginx/nginx commit 4618c03f4 (non_idempotent, March 2016)",
	},
	Counts: "tries in total: as many as the upstream has servers; proxy_next_upstream_tries lowers that, 0 does not",
	Doc:    "Passes a request on to the next server on an error or a time-out; not POST, LOCK and PATCH once they were sent.",
	Triggers: []string{
		"error: connect failure, eof or reset before the headers of the answer",
		"timeout: connect or read time-out before the headers of the answer",
		"statuses only when they are listed",
		"an error on a cached connection is one try for nothing, even with one server",
	},
	NotRetried: []string{
		"POST, LOCK and PATCH once sending has begun, unless non_idempotent is listed",
		"anything once the headers of an answer were passed on",
		"503 and other statuses by default",
		"a body that is not buffered, once sending has begun",
		"a request whose client has gone",
	},
	Waits:       "none",
	Timeouts:    "connect, send and read 60 s each, read between two reads; no limit over all tries by default",
	OnByDefault: "yes",
	Originals: []Original{
		{"proxy_next_upstream (off is an empty list)", "on", "error timeout"},
		{"proxy_next_upstream http_503 and the like", "statuses", "none"},
		{"proxy_next_upstream non_idempotent", "non-idempotent", "not listed"},
		{"proxy_next_upstream_tries", "tries", "0"},
		{"proxy_next_upstream_timeout", "window", "0 (none)"},
		{"server max_fails", "max-fails", "1"},
		{"server fail_timeout", "fail-timeout", "10 s"},
		{"cached connections to the upstream (keepalive)", "idle", "as many as earlier requests left"},
	},
	Traps: []string{
		"It does not pass a POST on by default since 1.9.13 of March 2016; PUT and DELETE it does.",
		"A server that timed out once is out for 10 s, so a second round finds no server and answers 502.",
		"Connections to the servers of an upstream block are kept since 1.29.7, so the extra try on a cached one needs no directive any more.",
		"When the caller gives up before nginx's own read time-out, the next server is not tried.",
		"A host name with two addresses is two servers.",
	},
	Takes: []string{"on", "statuses", "non-idempotent", "tries", "window", "max-fails", "fail-timeout", "idle"},
	Defaults: policy.Settings{
		On:            []string{"refused", "eof", "reset", "connect-timeout", "read-timeout"},
		NonIdempotent: new(false),
		Tries:         new(0),
		MaxFails:      new(1),
		FailTimeout:   new(10 * time.Second),
	},
	Layer: nginxLayer,
	Body:  policy.Buffered,
	InHop: true,
	words: []word{
		{"off", "proxy_next_upstream off", func(b *builder, _ []string) error {
			return b.set("nginx", "errors", func(s *policy.Settings) { s.On = []string{} })
		}},
		{"tries_#", "proxy_next_upstream_tries", func(b *builder, a []string) error {
			return b.setNumber("nginx", "tries", a[0], func(s *policy.Settings, n int) { s.Tries = &n })
		}},
	},
}

func nginxLayer(s policy.Settings) (policy.Layer, error) {
	l, err := passOnLayer(s, "nginx")
	l.Attempts, l.Limit = *s.Tries, fmt.Sprintf("proxy_next_upstream_tries %d", *s.Tries)
	l.Peers = true
	l.MaxFails, l.FailTimeout = *s.MaxFails, *s.FailTimeout
	return l, err
}

// passOnLayer is nginx's rule of what may be passed on to the next server.
func passOnLayer(s policy.Settings, name string) (policy.Layer, error) {
	triggers, err := proxyTriggers(s.On, name)
	if err != nil {
		return policy.Layer{}, err
	}
	before, after := split(triggers.Failures)
	never := unlessAsked(s)
	return policy.Layer{
		PerInstance: 1,
		Rules: []policy.Rule{
			{Failures: before},
			{Failures: after, NotMethods: never, Bodies: policy.Repeatable},
			{
				Statuses:   slices.Concat(triggers.Statuses, policy.StatusSet(s.Statuses)),
				NotMethods: never,
				Bodies:     policy.Repeatable,
			},
		},
	}, nil
}
