package preset

import (
	"fmt"

	"retrylab/caller/policy"
)

// SpringGateway is the Retry filter of Spring Cloud Gateway on WebFlux.
var SpringGateway = &Preset{
	Name:     "spring-gateway",
	Entry:    "spring-cloud-gateway-webflux-retry",
	Group:    proxies,
	Title:    "Spring Cloud Gateway (WebFlux), Retry filter",
	Version:  "5.0.3 read",
	Verified: "source",
	Source: []string{
		"spring-cloud/spring-cloud-gateway server-webflux RetryGatewayFilterFactory.java@v5.0.3 RetryConfig, exceedsMaxIterations",
	},
	Counts: "retries = retries: three, so four tries in total",
	Doc:    "Three retries at once of a GET that failed or was answered 5xx.",
	Triggers: []string{
		"an I/O error or a time-out, for GET",
		"any 5xx, for GET",
	},
	NotRetried:  []string{"any other method, unless it is listed", "4xx"},
	Waits:       "none unless backoff is configured: firstBackoff·factor^n",
	Timeouts:    "the HTTP client's response-timeout, for each try",
	OnByDefault: "no, a filter of a route",
	Originals: []Original{
		{"Retry args retries (retries; attempts is one more)", "attempts", "3"},
		{"Retry args series and exceptions", "on", "SERVER_ERROR, IOException, TimeoutException"},
		{"Retry args statuses", "statuses", "none"},
		{"Retry args methods", "methods", "GET"},
		{"Retry args backoff", "backoff", "none"},
	},
	Traps: []string{
		"In the WebMVC gateway the same retries: 3 is three tries with spring-retry on the classpath, and four, a second apart, with Spring Framework's own retry.",
	},
	Takes: []string{"attempts", "on", "statuses", "methods", "wait", "backoff"},
	Defaults: policy.Settings{
		Attempts: new(4),
		On:       []string{"connect", "eof", "reset", "timeout", "5xx"},
		Methods:  policy.GetOnly,
	},
	Layer: func(s policy.Settings) (policy.Layer, error) {
		l, err := retryLayer(s)
		l.Limit = fmt.Sprintf("retries %d", *s.Attempts-1)
		l.PerInstance = 1
		return l, err
	},
	Body:  policy.Buffered,
	InHop: true,
}
