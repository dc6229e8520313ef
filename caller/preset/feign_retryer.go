package preset

import (
	"fmt"
	"time"

	"retrylab/caller/policy"
)

// FeignRetryer is OpenFeign's own retryer, which a bare Feign client has without asking.
var FeignRetryer = &Preset{
	Name:     "feign-retryer",
	Entry:    "feign-retryer-default",
	Group:    spring,
	Title:    "OpenFeign core, Retryer.Default",
	Version:  "13.14 run; the same arithmetic read in 9.0.0 to 13.6 (called DefaultRetryer since 13.9.1)",
	Verified: "both",
	Source: []string{
		"OpenFeign/feign core/src/main/java/feign/DefaultRetryer.java@13.14 continueOrPropagate, nextMaxInterval",
		"OpenFeign/feign core/src/main/java/feign/Retryer.java@13.5 Retryer.Default",
		"OpenFeign/feign core/src/main/java/feign/SynchronousMethodHandler.java@13.14 runWithRetry, executeAndDecode",
		"OpenFeign/feign core/src/main/java/feign/FeignException.java@13.14 errorExecuting",
		"OpenFeign/feign core/src/main/java/feign/codec/DefaultErrorDecoder.java@13.14 decode",
		"OpenFeign/feign core/src/main/java/feign/Request.java@13.14 Options()",
		"OpenFeign/feign core/src/main/java/feign/DefaultClient.java@13.14 convertAndSend",
	},
	Counts: "maxAttempts = tries in total",
	Doc:    "Five tries on any I/O error and on any answer with a Retry-After; it never looks at the method.",
	Triggers: []string{
		"any I/O error up to the headers of the answer: refused, connect and read time-outs, eof, reset",
		"any status but 2xx that carries a readable Retry-After: 400 and 409 as well as 429 and 503",
	},
	NotRetried: []string{
		"a 4xx or 5xx without Retry-After",
		"an error while the body of the answer is read or decoded",
	},
	Waits:       "period·1.5^k after failure k, in whole milliseconds, at most maxPeriod: 150, 225, 337, 506 ms; no jitter. A Retry-After takes its place, cut to maxPeriod; one in the past is no wait",
	Timeouts:    "connect 10 s, read 60 s between two reads; every try has both anew and nothing bounds them all",
	OnByDefault: "yes with Feign.builder(); no in Spring Cloud OpenFeign",
	Originals: []Original{
		{"Retryer.Default maxAttempts", "attempts", "5"},
		{"Retryer.Default period", "period", "100 ms"},
		{"Retryer.Default maxPeriod", "max-period", "1000 ms"},
	},
	Traps: []string{
		"The first wait is 1.5 times the period, not the period.",
		"GET looks special only because of the client below: the JDK resends a request without a streamed body, so a GET on a server that closes arrives ten times and a POST with a body five times.",
		"A Retry-After of 7 s waits 1 s: maxPeriod cuts it.",
		"An interceptor that adds a key with header() runs on every try against the same template: the third try carries three values.",
		"A retryer written as an anonymous subclass does nothing: the client calls clone(), which returns a plain one.",
		"A GET with a body goes out as POST on the default client.",
	},
	Takes: []string{"attempts", "period", "max-period"},
	Defaults: policy.Settings{
		Attempts:  new(5),
		Period:    new(100 * time.Millisecond),
		MaxPeriod: new(time.Second),
	},
	Layer: feignRetryerLayer,
	Body:  policy.Fixed,
	Over:  []string{"httpurlconnection"},
	words: append(feignWords(), feignRetryerWords()...),
}

func feignRetryerLayer(s policy.Settings) (policy.Layer, error) {
	// The original takes the smaller of a wait and maxPeriod, so a maxPeriod of 0 is no wait at all,
	// while a cap of 0 would be none.
	waits := *s.MaxPeriod > 0
	return policy.Layer{
		Attempts: *s.Attempts,
		Limit:    fmt.Sprintf("maxAttempts %d", *s.Attempts),
		Rules: []policy.Rule{
			{Failures: ioErrors},
			{
				Statuses:         policy.Non2xx,
				RetryAfter:       policy.Present,
				HonourRetryAfter: waits,
				RetryAfterCap:    *s.MaxPeriod,
			},
		},
		Waits: policy.Waits{
			Initial:           min(*s.Period, *s.MaxPeriod),
			Factor:            1.5,
			Max:               *s.MaxPeriod,
			GrowFirst:         true,
			WholeMilliseconds: true,
		},
	}, nil
}

// ioErrors are the failures that a Java client reports as an IOException: all that end a try before
// there is an answer. The total limit is not among them; an answer that cannot be decoded is not one.
var ioErrors = []policy.Failure{
	policy.AcquireTimeout, policy.UnknownHost, policy.Refused, policy.ConnectTimeout,
	policy.EOF, policy.Reset, policy.ReadTimeout, policy.AttemptTimeout,
}

// feignRetryerWords are the settings of the retryer in the names of cells.
func feignRetryerWords() []word {
	return []word{
		{"F#", "maxAttempts of the Feign retryer", func(b *builder, a []string) error { return b.setAttempts("feign-retryer", a[0], tries) }},
		{"never", "Retryer.NEVER_RETRY in place of the retryer", func(b *builder, _ []string) error { return b.replace("feign-retryer", "openfeign") }},
	}
}

// feignWords choose the HTTP client under Feign.
func feignWords() []word {
	return []word{
		{"default_client", "over the JDK's HttpURLConnection, the default", func(b *builder, _ []string) error {
			return b.once("client", func() {})
		}},
		{"with_hc5", "over Apache HttpClient 5", func(b *builder, _ []string) error {
			// Feign hands HttpClient the bytes, not a stream.
			if err := b.once("client", func() { b.sends = policy.Buffered }); err != nil {
				return err
			}
			return b.replace("httpurlconnection", "httpclient5")
		}},
	}
}
