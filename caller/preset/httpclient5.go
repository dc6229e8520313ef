package preset

import (
	"fmt"
	"time"

	"retrylab/caller/policy"
)

// HTTPClient5 is the retry strategy that Apache HttpClient 5 installs by default.
var HTTPClient5 = &Preset{
	Name:     "httpclient5",
	Entry:    "apache-httpclient5",
	Group:    java,
	Title:    "Apache HttpClient 5 classic, DefaultHttpRequestRetryStrategy",
	Version:  "5.2.1 run, 5.6.4 and 5.7-alpha1 read; the guard on long waits is that of 5.1 to 5.5",
	Verified: "both",
	Source: []string{
		"apache/httpcomponents-client httpclient5 impl/DefaultHttpRequestRetryStrategy.java@rel/v5.6.4, rel/v5.2.1",
		"apache/httpcomponents-client httpclient5 impl/classic/HttpRequestRetryExec.java@rel/v5.6.4, rel/v5.2.1",
		"apache/httpcomponents-client httpclient5 HttpRequestRetryStrategy.java@rel/v5.6.4",
		"apache/httpcomponents-core httpcore5 http/Method.java@rel/v5.4.3",
	},
	Counts: "maxRetries = retries: one, so two tries in total",
	Doc:    "One retry: after a broken connection for idempotent methods, after 429 or 503 for any method, POST included.",
	Triggers: []string{
		"eof or reset, for GET, HEAD, PUT, DELETE, OPTIONS and TRACE, when the body can be repeated",
		"429 and 503, for any method, when the body can be repeated",
	},
	NotRetried: []string{
		"every time-out: read, connect and pool",
		"unknown host, refused, no route, TLS errors",
		"500, 502, 504",
		"429 and 503 when the wait is longer than the response timeout",
	},
	Waits:       "after an I/O error none; after a status the Retry-After if it is above zero, else 1 s; no jitter",
	Timeouts:    "connect and pool 3 min; response timeout unset (then the socket's, 3 min), the silence per read and not a total",
	OnByDefault: "yes; disableAutomaticRetries() switches it off",
	Originals: []Original{
		{"DefaultHttpRequestRetryStrategy maxRetries (retries; attempts is one more)", "attempts", "1"},
		{"DefaultHttpRequestRetryStrategy defaultRetryInterval", "wait", "1 s"},
		{"retriable status codes of a subclass", "statuses", "429, 503"},
		{"handleAsIdempotent of a subclass", "methods-on-error", "the idempotent methods"},
	},
	Drips: []Drip{{"responseTimeout", never, never}},
	Traps: []string{
		"It does not retry a GET on a read time-out, although that is widely said.",
		"A POST that was answered 503 is sent twice, a second apart.",
		"A response timeout below 1 s switches the retry on a status off, which hides it in tests with short time-outs.",
		"The guard differs by version: none in 5.0, the real wait compared in 5.1 to 5.5 and again from 5.7, only the default interval compared in 5.6, which therefore sleeps out a long Retry-After.",
	},
	Takes: []string{"attempts", "wait", "statuses", "methods-on-error"},
	Defaults: policy.Settings{
		Attempts:       new(2),
		Wait:           new(time.Second),
		Statuses:       []string{"429", "503"},
		MethodsOnError: policy.Idempotent,
	},
	Layer: httpClient5Layer,
	Body:  policy.Buffered,
	words: []word{
		{"maxRetries_#", "so many retries", func(b *builder, a []string) error { return b.setAttempts("httpclient5", a[0], retries) }},
	},
}

func httpClient5Layer(s policy.Settings) (policy.Layer, error) {
	return policy.Layer{
		Attempts: *s.Attempts,
		Limit:    fmt.Sprintf("maxRetries %d", *s.Attempts-1),
		Rules: []policy.Rule{
			{
				Failures: []policy.Failure{policy.EOF, policy.Reset},
				Methods:  policy.MethodSet(s.MethodsOnError),
				Bodies:   policy.Repeatable,
				Wait:     &policy.Waits{},
			},
			{
				Statuses:          policy.StatusSet(s.Statuses),
				Bodies:            policy.Repeatable,
				HonourRetryAfter:  true,
				IgnoreZeroAfter:   true,
				WaitWithinTimeout: true,
			},
		},
		Waits: s.Pauses(),
	}, nil
}
