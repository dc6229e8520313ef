package preset

import (
	"fmt"

	"retrylab/caller/policy"
)

// HTTPClient45 is the retry handler that Apache HttpClient 4.5 installs by default.
var HTTPClient45 = &Preset{
	Name:     "httpclient45",
	Entry:    "apache-httpclient45",
	Group:    java,
	Title:    "Apache HttpClient 4.5, DefaultHttpRequestRetryHandler",
	Version:  "4.5.14 read and run",
	Verified: "both",
	Source: []string{
		"apache/httpcomponents-client httpclient impl/client/DefaultHttpRequestRetryHandler.java@rel/v4.5.14",
		"apache/httpcomponents-client httpclient impl/execchain/RetryExec.java@rel/v4.5.14",
		"apache/httpcomponents-client httpclient impl/client/DefaultServiceUnavailableRetryStrategy.java@rel/v4.5.14",
	},
	Counts: "retryCount = retries: three, so four tries in total",
	Doc:    "Three retries at once after a broken connection, for the methods that cannot carry a body.",
	Triggers: []string{
		"eof or reset, for GET, HEAD, DELETE, OPTIONS and TRACE",
	},
	NotRetried: []string{
		"POST, PUT and PATCH once they are fully sent",
		"every time-out, unknown host, refused, no route, TLS errors",
		"any status: the strategy for 503 is not installed by default",
	},
	Waits:       "none",
	Timeouts:    "all -1, the system's default, which is infinite; the socket time-out is per read",
	OnByDefault: "yes; disableAutomaticRetries() switches it off",
	Originals: []Original{
		{"DefaultHttpRequestRetryHandler retryCount (retries; attempts is one more)", "attempts", "3"},
		{"DefaultHttpRequestRetryHandler requestSentRetryEnabled", "", "false"},
	},
	Traps: []string{
		"PUT is idempotent by HTTP and not retried here: it goes by whether the request can carry a body.",
		"A GET on a server that closes arrives four times within milliseconds.",
	},
	Takes:    []string{"attempts"},
	Defaults: policy.Settings{Attempts: new(4)},
	Layer:    httpClient45Layer,
	Body:     policy.Buffered,
	words: []word{
		{"retryCount_#", "so many retries", func(b *builder, a []string) error { return b.setAttempts("httpclient45", a[0], retries) }},
	},
}

func httpClient45Layer(s policy.Settings) (policy.Layer, error) {
	return policy.Layer{
		Attempts: *s.Attempts,
		Limit:    fmt.Sprintf("retryCount %d", *s.Attempts-1),
		Rules: []policy.Rule{
			// A request that was not fully sent would be retried whatever its method. The failures here
			// come after it was; those that come before are on the original's list of what is never retried.
			{Failures: []policy.Failure{policy.EOF, policy.Reset}, Methods: policy.Bodiless, Bodies: policy.Repeatable},
		},
	}, nil
}
