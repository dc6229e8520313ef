package preset

import (
	"fmt"
	"time"

	"retrylab/caller/policy"
)

// What the retry libraries have in common: they stand around a call and know nothing of HTTP. What
// the call returns is a result, what it throws an exception.
var (
	libraryTakes = []string{"attempts", "wait", "waits", "backoff", "on", "statuses", "methods"}

	libraryTriggers   = []string{"any exception of the call around which it stands, whatever the method: every failed connection, time-out and broken answer"}
	libraryNotRetried = []string{"an answer with a status, unless the client makes an exception of it (on: any-error, 4xx, 5xx) or the library is told to look (statuses)"}
)

// library is the layer of a retry library, whose limit has the name given; first is 1 where it counts
// retries and the first try comes on top.
func library(limit string, first int) func(policy.Settings) (policy.Layer, error) {
	return func(s policy.Settings) (policy.Layer, error) {
		s.OneShot = policy.ResendOneShot // it calls again, and the call makes the body anew
		l, err := retryLayer(s)
		if l.Attempts > 0 {
			l.Limit = fmt.Sprintf("%s %d", limit, l.Attempts-first)
		}
		return l, err
	}
}

// libraryWords are the words of a retry library: the original's name for its number, and that the
// client throws on a status.
func libraryWords(preset, limit string, first int) []word {
	return []word{
		{limit + "_#", "the original's " + limit, func(b *builder, a []string) error { return b.setAttempts(preset, a[0], first) }},
		onWord(preset, "throws", "the client throws on 4xx and 5xx", "4xx", "5xx"),
	}
}

// Resilience4j is resilience4j's Retry.
var Resilience4j = &Preset{
	Name:        "resilience4j",
	Entry:       "resilience4j-retry",
	Group:       libraries,
	Title:       "resilience4j Retry",
	Version:     "2.4.0 read",
	Verified:    "source",
	Source:      []string{"resilience4j/resilience4j resilience4j-retry RetryConfig.java, internal/RetryImpl.java@v2.4.0"},
	Counts:      "maxAttempts = tries in total: three",
	Doc:         "Three tries, half a second apart, on any exception.",
	Triggers:    libraryTriggers,
	NotRetried:  libraryNotRetried,
	Waits:       "500 ms each time; an interval function makes it grow",
	Timeouts:    "none of its own; TimeLimiter is another decorator",
	OnByDefault: "yes, when applied",
	Originals: []Original{
		{"RetryConfig.maxAttempts", "attempts", "3"},
		{"RetryConfig.waitDuration", "wait", "500 ms"},
		{"IntervalFunction.ofExponentialRandomBackoff (jitter: 50%)", "backoff", "none"},
		{"RetryConfig.retryOnException", "on", "any exception"},
		{"RetryConfig.retryOnResult", "statuses", "none"},
	},
	Traps: []string{
		"In Spring the retry is outermost and the circuit breaker inside it, so every try counts for the breaker.",
		"The default predicate is true: a business error is retried like a broken connection.",
	},
	Takes:    libraryTakes,
	Defaults: policy.Settings{Attempts: new(3), Wait: new(500 * time.Millisecond), On: []string{"any-error"}},
	Layer:    library("maxAttempts", tries),
	Body:     policy.Buffered,
	words:    libraryWords("resilience4j", "maxAttempts", tries),
}

// SpringRetry is the project spring-retry, with its annotation.
var SpringRetry = &Preset{
	Name:     "spring-retry",
	Entry:    "spring-retry",
	Group:    libraries,
	Title:    "spring-retry, @Retryable and SimpleRetryPolicy",
	Version:  "2.0.12 read",
	Verified: "source",
	Source: []string{
		"spring-projects/spring-retry annotation/Retryable.java, Backoff.java, policy/SimpleRetryPolicy.java, backoff/*.java@v2.0.12",
	},
	Counts:      "maxAttempts = tries in total: three",
	Doc:         "Three tries, a second apart, on any exception.",
	Triggers:    libraryTriggers,
	NotRetried:  libraryNotRetried,
	Waits:       "1 s each time with the annotation; none with a bare RetryTemplate; ExponentialBackOffPolicy is 100 ms, doubling, at most 30 s",
	Timeouts:    "none of its own",
	OnByDefault: "yes, when applied",
	Originals: []Original{
		{"@Retryable maxAttempts", "attempts", "3"},
		{"@Backoff delay (a bare RetryTemplate has none: wait 0s)", "wait", "1 s"},
		{"@Backoff delay, multiplier, maxDelay: backoff.initial, factor, max", "backoff", "none"},
		{"@Retryable retryFor", "on", "any exception"},
	},
	Traps: []string{"The annotation of the same name in Spring Framework 7 counts retries: its 3 is one try more."},
	Takes: libraryTakes,
	Defaults: policy.Settings{
		Attempts: new(3), Wait: new(time.Second), On: []string{"any-error"},
	},
	Layer: library("maxAttempts", tries),
	Body:  policy.Buffered,
	words: libraryWords("spring-retry", "maxAttempts", tries),
}

// Spring7Retry is the retry that Spring Framework has itself since version 7.
var Spring7Retry = &Preset{
	Name:     "spring7-retry",
	Entry:    "spring-framework-7-retry",
	Group:    libraries,
	Title:    "Spring Framework 7, core.retry and @Retryable",
	Version:  "7.0.9 read",
	Verified: "source",
	Source: []string{
		"spring-projects/spring-framework spring-core core/retry/RetryPolicy.java, RetryTemplate.java@v7.0.9",
		"spring-projects/spring-framework spring-context resilience/annotation/Retryable.java@v7.0.9",
	},
	Counts:      "maxRetries = retries: three, so four tries in total",
	Doc:         "Three retries, a second apart, on any exception.",
	Triggers:    libraryTriggers,
	NotRetried:  libraryNotRetried,
	Waits:       "1 s each time: multiplier 1, no jitter",
	Timeouts:    "timeout, which is none by default, over all tries",
	OnByDefault: "yes, when applied",
	Originals: []Original{
		{"@Retryable maxRetries (retries; attempts is one more)", "attempts", "3"},
		{"@Retryable delay", "wait", "1 s"},
		{"@Retryable delay, multiplier, maxDelay: backoff.initial, factor, max", "backoff", "none"},
		{"@Retryable includes", "on", "any exception"},
	},
	Traps:    []string{"The same annotation name as spring-retry's and one try more: 3 means four here."},
	Takes:    libraryTakes,
	Defaults: policy.Settings{Attempts: new(4), Wait: new(time.Second), On: []string{"any-error"}},
	Layer:    library("maxRetries", retries),
	Body:     policy.Buffered,
	words:    libraryWords("spring7-retry", "maxRetries", retries),
}

// Polly is the retry strategy of Polly, for .NET.
var Polly = &Preset{
	Name:     "polly",
	Entry:    "polly-v8",
	Group:    libraries,
	Title:    "Polly v8, RetryStrategyOptions",
	Version:  "8.7.0 read",
	Verified: "source",
	Source: []string{
		"App-vNext/Polly src/Polly.Core/Retry/RetryConstants.cs, RetryHelper.cs, RetryStrategyOptions.TResult.cs@8.7.0",
		"App-vNext/Polly src/Polly.Core/Utils/DefaultPredicates.cs@8.7.0",
	},
	Counts:   "MaxRetryAttempts = retries: three, so four tries in total",
	Doc:      "Three retries, two seconds apart, on any exception but a cancellation.",
	Triggers: libraryTriggers,
	NotRetried: []string{
		"OperationCanceledException",
		"a result, a status among them, unless it is handled (statuses)",
	},
	Waits:       "2 s each time; UseJitter is a quarter either way (jitter: 25%), and decorrelated with exponential back-off",
	Timeouts:    "none of its own; the timeout strategy is another",
	OnByDefault: "yes, when applied",
	Originals: []Original{
		{"MaxRetryAttempts (retries; attempts is one more)", "attempts", "3"},
		{"Delay", "wait", "2 s"},
		{"Delay, BackoffType, MaxDelay, UseJitter", "backoff", "constant, no jitter"},
		{"ShouldHandle, exceptions", "on", "any but OperationCanceledException"},
		{"ShouldHandle, results", "statuses", "none"},
	},
	Traps: []string{
		"A time-out that the client reports as a cancellation is not retried by default; on: without timeout plays that.",
		".NET's standard resilience handler is another package, which by its documentation retries all methods.",
	},
	Takes:    libraryTakes,
	Defaults: policy.Settings{Attempts: new(4), Wait: new(2 * time.Second), On: []string{"any-error"}},
	Layer:    library("MaxRetryAttempts", retries),
	Body:     policy.Buffered,
	words:    libraryWords("polly", "MaxRetryAttempts", retries),
}

// Tenacity is Python's tenacity.
var Tenacity = &Preset{
	Name:        "tenacity",
	Entry:       "tenacity",
	Group:       libraries,
	Title:       "Python tenacity, @retry",
	Version:     "9.1.4 read",
	Verified:    "source",
	Source:      []string{"jd/tenacity tenacity/__init__.py@9.1.4 BaseRetrying"},
	Counts:      fmt.Sprintf("stop_never: no end; this lab stops after %d tries. stop_after_attempt(n) = n tries in total", policy.MaxAttempts),
	Doc:         "A bare @retry tries for ever, without a pause, on any exception.",
	Triggers:    libraryTriggers,
	NotRetried:  libraryNotRetried,
	Waits:       "none (wait_none)",
	Timeouts:    "none of its own; stop_after_delay bounds when a further try may begin",
	OnByDefault: "yes, when applied",
	Originals: []Original{
		{"stop=stop_after_attempt(n)", "attempts", "stop_never"},
		{"stop=stop_after_delay(s)", "window", "none"},
		{"wait=wait_fixed(s)", "wait", "0"},
		{"wait=wait_exponential(multiplier, max), wait_random_exponential (jitter: full)", "backoff", "none"},
		{"retry=retry_if_exception_type(…)", "on", "any Exception"},
		{"retry=retry_if_result(…)", "statuses", "none"},
	},
	Traps:    []string{"A bare @retry loops for ever without a pause: it is the busiest default of all."},
	Takes:    append([]string{"window"}, libraryTakes...),
	Defaults: policy.Settings{Attempts: new(policy.MaxAttempts), Wait: new(time.Duration(0)), On: []string{"any-error"}},
	Layer:    library("stop_after_attempt", tries),
	Body:     policy.Buffered,
	words:    libraryWords("tenacity", "stop_after_attempt", tries),
}
