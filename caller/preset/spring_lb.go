package preset

import (
	"fmt"

	"retrylab/caller/policy"
)

// SpringLB is Spring Cloud LoadBalancer's blocking retry, which stands between Feign (or a
// RestTemplate) and the HTTP client.
var SpringLB = &Preset{
	Name:     "spring-lb",
	Entry:    "spring-cloud-loadbalancer-blocking",
	Group:    spring,
	Title:    "Spring Cloud LoadBalancer, blocking retry",
	Version:  "spring-cloud-commons 5.0.2 with spring-retry 2.0.12; the same formula since 2.2.9",
	Verified: "both",
	Source: []string{
		"spring-cloud/spring-cloud-commons BlockingLoadBalancedRetryPolicy.java@v5.0.2 registerThrowable, canRetrySameServer, canRetryNextServer",
		"spring-cloud/spring-cloud-commons InterceptorRetryPolicy.java@v5.0.2",
		"spring-cloud/spring-cloud-commons LoadBalancerProperties.java@v5.0.2 Retry",
		"spring-cloud/spring-cloud-commons LoadBalancedRecoveryCallback.java@v5.0.2",
		"spring-projects/spring-retry RetryTemplate.java@v2.0.12 doExecute",
		"spring-cloud/spring-cloud-openfeign RetryableFeignBlockingLoadBalancerClient.java@v5.0.2",
	},
	Counts: "same (S) and next (N) are retries: (1+S)·(1+N) requests in total",
	Doc:    "Each of 1+N instances gets 1+S requests, at once, for GET alone unless all operations are allowed.",
	Triggers: []string{
		"an I/O error or a time-out of the client below, for GET, or for any method with all-operations",
		"a listed status, for the same methods; none is listed by default",
	},
	NotRetried: []string{
		"any method but GET by default: HEAD, PUT and DELETE are refused too",
		"a status that is not listed, 503 included",
		"anything, when spring-retry is not on the classpath",
	},
	Waits:       "none, unless the application supplies a back-off bean; the backoff properties are read by the reactive variant only",
	Timeouts:    "those of the client below, for each request",
	OnByDefault: "yes as soon as spring-retry is on the classpath, which is an optional dependency; without it, silently not",
	Originals: []Original{
		{"spring.cloud.loadbalancer.retry.max-retries-on-same-service-instance", "same", "0"},
		{"spring.cloud.loadbalancer.retry.max-retries-on-next-service-instance", "next", "1"},
		{"spring.cloud.loadbalancer.retry.retry-on-all-operations", "all-operations", "false"},
		{"spring.cloud.loadbalancer.retry.retryable-status-codes", "statuses", "none"},
		{"the dependency org.springframework.retry:spring-retry", "on-classpath", "optional"},
		{"LoadBalancedRetryFactory.createBackOffPolicy", "wait", "no wait"},
	},
	Traps: []string{
		"One call with S=1 and N=1 is 4 requests, not 3; under three Feign tries it is 12, not 9.",
		"With one instance only, the next instance is the same one.",
		"The same jar coming in with another dependency switches it on.",
		"It gives up with the last I/O error, so a retryer above multiplies.",
	},
	Takes: []string{"same", "next", "all-operations", "on-classpath", "statuses", "wait", "backoff"},
	Defaults: policy.Settings{
		Same:          new(0),
		Next:          new(1),
		AllOperations: new(false),
		OnClasspath:   new(true),
	},
	Layer: springLBLayer,
	Body:  policy.Buffered,
	words: append(springLBWords("spring-lb"), onClasspath),
}

func springLBLayer(s policy.Settings) (policy.Layer, error) {
	if !*s.OnClasspath {
		// It still balances: each call goes to the next instance.
		return policy.Layer{Attempts: 1, PerInstance: 1, Limit: "spring-retry is not on the classpath"}, nil
	}
	return loadBalancer(s), nil
}

// loadBalancer gives 1+next instances 1+same requests each.
func loadBalancer(s policy.Settings) policy.Layer {
	var methods []string
	if !*s.AllOperations {
		methods = policy.GetOnly
	}
	perInstance, instances := 1+*s.Same, 1+*s.Next
	return policy.Layer{
		Attempts:    perInstance * instances,
		Limit:       fmt.Sprintf("(1+%d)·(1+%d) requests", *s.Same, *s.Next),
		PerInstance: perInstance,
		Rules: []policy.Rule{
			{Failures: ioErrors, Methods: methods},
			{Statuses: policy.StatusSet(s.Statuses), Methods: methods},
		},
		Waits: s.Pauses(),
	}
}

// springLBWords are the settings of the load balancer in the names of cells.
func springLBWords(preset string) []word {
	return []word{
		{"S#", "retries on the same instance", func(b *builder, a []string) error {
			return b.setNumber(preset, "same", a[0], func(s *policy.Settings, n int) { s.Same = &n })
		}},
		{"N#", "further instances", func(b *builder, a []string) error {
			return b.setNumber(preset, "next", a[0], func(s *policy.Settings, n int) { s.Next = &n })
		}},
		{"all_operations", "retry every method", func(b *builder, _ []string) error {
			return b.set(preset, "operations", func(s *policy.Settings) { s.AllOperations = new(true) })
		}},
		statusWord(preset, "http_#"),
	}
}

// onClasspath says in the name of a cell that spring-retry is missing.
var onClasspath = word{"without_spring_retry", "spring-retry is not on the classpath", func(b *builder, _ []string) error {
	return b.set("spring-lb", "classpath", func(s *policy.Settings) { s.OnClasspath = new(false) })
}}

// SpringLBReactive is the same load balancer's retry for WebClient.
var SpringLBReactive = &Preset{
	Name:     "spring-lb-reactive",
	Entry:    "spring-cloud-loadbalancer-reactive",
	Group:    spring,
	Title:    "Spring Cloud LoadBalancer, reactive retry (WebClient)",
	Version:  "spring-cloud-commons 5.0.2 read",
	Verified: "source",
	Source: []string{
		"spring-cloud/spring-cloud-commons reactive/RetryableLoadBalancerExchangeFilterFunction.java@v5.0.2 filter, buildRetrySpec, isRetryException",
		"spring-cloud/spring-cloud-commons reactive/ReactorLoadBalancerClientAutoConfiguration.java@v5.0.2",
	},
	Counts: "same (S) and next (N) are retries: (1+S)·(1+N) requests in total, once it is enabled",
	Doc:    "Off by default; enabled, it retries an I/O error for any method, POST included, and a listed status for GET.",
	Triggers: []string{
		"an I/O error or a time-out of the client below, for any method",
		"a listed status, for GET, or for any method with all-operations; none is listed by default",
	},
	NotRetried: []string{
		"everything, unless spring.cloud.loadbalancer.retry.enabled=true",
		"a listed status for another method",
	},
	Waits:       "none; optionally Reactor's back-off, at least 5 ms with jitter of half",
	Timeouts:    "those of the client below, for each request",
	OnByDefault: "no",
	Originals: []Original{
		{"spring.cloud.loadbalancer.retry.enabled", "enabled", "false"},
		{"spring.cloud.loadbalancer.retry.max-retries-on-same-service-instance", "same", "0"},
		{"spring.cloud.loadbalancer.retry.max-retries-on-next-service-instance", "next", "1"},
		{"spring.cloud.loadbalancer.retry.retry-on-all-operations (statuses alone)", "all-operations", "false"},
		{"spring.cloud.loadbalancer.retry.retryable-status-codes", "statuses", "none"},
		{"spring.cloud.loadbalancer.retry.backoff", "backoff", "none"},
	},
	Traps: []string{
		"The blocking variant spares POST; this one does not look at the method when there is an exception.",
		"It needs no spring-retry, and is off where the blocking variant is on.",
	},
	Takes: []string{"enabled", "same", "next", "all-operations", "statuses", "backoff"},
	Defaults: policy.Settings{
		Enabled:       new(false),
		Same:          new(0),
		Next:          new(1),
		AllOperations: new(false),
	},
	Layer: func(s policy.Settings) (policy.Layer, error) {
		if !*s.Enabled {
			return policy.Layer{Attempts: 1, PerInstance: 1, Limit: "spring.cloud.loadbalancer.retry.enabled is not set"}, nil
		}
		l := loadBalancer(s)
		l.Rules[0].Methods = nil
		return l, nil
	},
	Body: policy.Buffered,
	words: append(enabling(springLBWords("spring-lb-reactive")),
		word{"enabled", "spring.cloud.loadbalancer.retry.enabled=true", enableReactive},
		word{"disabled", "it is not enabled, the default", func(b *builder, _ []string) error { return b.once("enabled", func() {}) }},
	),
}

// enableReactive may be said more than once, by several words.
func enableReactive(b *builder, _ []string) error {
	for _, s := range b.layers() {
		if s.Preset == "spring-lb-reactive" {
			s.Enabled = new(true)
		}
	}
	return nil
}

// enabling makes words that say how often something is retried say also that it is.
func enabling(words []word) []word {
	for i, w := range words {
		words[i].doc += "; enabled"
		words[i].set = func(b *builder, a []string) error {
			enableReactive(b, nil)
			return w.set(b, a)
		}
	}
	return words
}
