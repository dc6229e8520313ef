package preset

import (
	"fmt"

	"retrylab/caller/policy"
)

// Kong is the retries of a Kong Gateway service: nginx's rule, with a target chosen anew each time.
var Kong = &Preset{
	Name:     "kong",
	Entry:    "kong",
	Group:    proxies,
	Title:    "Kong Gateway, retries of a service",
	Version:  "3.9.3 read",
	Verified: "source",
	Source: []string{
		"Kong/kong kong/db/schema/entities/services.lua@3.9.3",
		"Kong/kong kong/init.lua@3.9.3 Kong.balancer",
		"Kong/kong build/openresty/patches/ngx_lua-*-dyn_upstream_keepalive.patch@3.9.3 (max_tries)",
	},
	Counts: "retries = retries: five, so six tries in total",
	Doc:    "Six tries on an error or a time-out, even at a single target; not POST, LOCK and PATCH once they were sent.",
	Triggers: []string{
		"error and timeout, as nginx's proxy_next_upstream has them, for all methods but POST, LOCK and PATCH",
		"a connection that could not be made, for any method",
	},
	NotRetried:  []string{"POST, LOCK and PATCH once sending has begun", "any status"},
	Waits:       "none",
	Timeouts:    "connect, write and read 60 s each, for each try; nothing bounds them all",
	OnByDefault: "yes",
	Originals: []Original{
		{"service.retries (retries; attempts is one more)", "attempts", "5"},
		{"nginx_proxy_proxy_next_upstream", "on", "error timeout"},
		{"nginx_proxy_proxy_next_upstream http_503 and the like", "statuses", "none"},
		{"nginx_proxy_proxy_next_upstream non_idempotent", "non-idempotent", "not listed"},
	},
	Traps: []string{
		"nginx tries each server once; Kong chooses the target anew on every try, so a single target can be given one GET six times, 60 s apart.",
	},
	Takes: []string{"attempts", "on", "statuses", "non-idempotent"},
	Defaults: policy.Settings{
		Attempts:      new(6),
		On:            []string{"refused", "connect-timeout", "eof", "reset", "read-timeout"},
		NonIdempotent: new(false),
	},
	Layer: func(s policy.Settings) (policy.Layer, error) {
		l, err := passOnLayer(s, "Kong")
		l.Attempts, l.Limit = *s.Attempts, fmt.Sprintf("retries %d", *s.Attempts-1)
		return l, err
	},
	Body:  policy.Buffered,
	InHop: true,
}
