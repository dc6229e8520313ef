package preset

import (
	"testing"
	"time"

	"retrylab/caller/policy"
)

// TestDecisions asks the layers about single outcomes that no cell brings about.
func TestDecisions(t *testing.T) {
	t.Parallel()
	get := func(f policy.Failure) policy.Outcome { return policy.Outcome{Method: "GET", Failure: f} }
	post := func(f policy.Failure) policy.Outcome {
		return policy.Outcome{Method: "POST", Body: policy.Buffered, Failure: f}
	}
	inBody := func(f policy.Failure) policy.Outcome {
		return policy.Outcome{Method: "GET", Failure: f, InBody: true}
	}
	status := func(method string, code int) policy.Outcome { return policy.Outcome{Method: method, Status: code} }
	after := func(code int, seconds int) policy.Outcome {
		return policy.Outcome{Method: "POST", Status: code, HasRetryAfter: true, RetryAfter: time.Duration(seconds) * time.Second}
	}
	generic := func(s policy.Settings) policy.Settings { s.Preset = "retry"; return s }
	honour := generic(policy.Settings{RetryAfter: policy.HonourRetryAfter, RetryAfterCap: new(3 * time.Second)})
	stream := policy.Outcome{Method: "POST", Body: policy.Chunked, Failure: policy.EOF}

	const no = time.Duration(-1) // no retry
	tests := []struct {
		name     string
		settings policy.Settings
		outcome  policy.Outcome
		want     time.Duration // the wait, or no
	}{
		{"feign: pool", policy.Settings{Preset: "feign-retryer"}, post(policy.AcquireTimeout), 150 * time.Millisecond},
		{"feign: inner layer too slow", policy.Settings{Preset: "feign-retryer"}, post(policy.AttemptTimeout), 150 * time.Millisecond},
		{"feign: in the body", policy.Settings{Preset: "feign-retryer"}, inBody(policy.EOF), no},
		{"feign: cannot be decoded", policy.Settings{Preset: "feign-retryer"}, get(policy.Malformed), no},
		{"feign: past date", policy.Settings{Preset: "feign-retryer"}, after(409, -5), 0},
		{"feign: maxPeriod 0", policy.Settings{Preset: "feign-retryer", MaxPeriod: new(time.Duration(0))}, post(policy.EOF), 0},
		{"feign: maxPeriod 0 cuts Retry-After", policy.Settings{Preset: "feign-retryer", MaxPeriod: new(time.Duration(0))}, after(503, 7), 0},
		{"feign: period above maxPeriod", policy.Settings{Preset: "feign-retryer", Period: new(time.Minute)}, post(policy.EOF), time.Second},
		{"load balancer: pool", policy.Settings{Preset: "spring-lb"}, get(policy.AcquireTimeout), 0},
		{"load balancer: a back-off bean", policy.Settings{Preset: "spring-lb", Wait: new(time.Second)}, get(policy.EOF), time.Second},
		{"load balancer: HEAD", policy.Settings{Preset: "spring-lb"}, policy.Outcome{Method: "HEAD", Failure: policy.EOF}, no},
		{"urlconnection: CONNECT", policy.Settings{Preset: "httpurlconnection"}, policy.Outcome{Method: "CONNECT", Failure: policy.EOF}, no},
		{"urlconnection: in the body", policy.Settings{Preset: "httpurlconnection"}, inBody(policy.EOF), no},
		{"httpclient5: pool", policy.Settings{Preset: "httpclient5"}, get(policy.AcquireTimeout), no},
		{"httpclient5: methods of a subclass", policy.Settings{Preset: "httpclient5", MethodsOnError: []string{"any"}}, post(policy.EOF), 0},
		{"urllib3: pool", policy.Settings{Preset: "urllib3"}, get(policy.AcquireTimeout), no},
		{"urllib3: unknown host", policy.Settings{Preset: "urllib3"}, post(policy.UnknownHost), 0},
		{"urllib3: in the body", policy.Settings{Preset: "urllib3"}, inBody(policy.EOF), 0},
		{"urllib3: Retry-After not respected", policy.Settings{Preset: "urllib3", RetryAfter: policy.IgnoreRetryAfter}, policy.Outcome{Method: "GET", Status: 429, HasRetryAfter: true}, no},
		{"nginx: in the body", policy.Settings{Preset: "nginx"}, policy.Outcome{Method: "GET", Failure: policy.EOF, InBody: true, Instances: 2}, no},

		{"retry: error", generic(policy.Settings{}), post(policy.ReadTimeout), 0},
		{"retry: in the body", generic(policy.Settings{}), inBody(policy.ReadTimeout), 0},
		{"retry: cannot be parsed", generic(policy.Settings{}), inBody(policy.Malformed), 0},
		{"retry: 4xx", generic(policy.Settings{}), status("GET", 429), no},
		{"retry: 5xx", generic(policy.Settings{}), status("POST", 501), 0},
		{"retry: allow-list", generic(policy.Settings{On: []string{"timeout", "503", "504"}}), status("POST", 500), no},
		{"retry: nothing", generic(policy.Settings{On: []string{}}), post(policy.EOF), no},
		{"retry: a further status", generic(policy.Settings{Statuses: []string{"429"}}), status("POST", 429), 0},
		{"retry: methods", generic(policy.Settings{Methods: policy.Idempotent}), post(policy.EOF), no},
		{"retry: methods on status", generic(policy.Settings{Methods: policy.Idempotent, MethodsOnStatus: []string{"any"}}), status("POST", 503), 0},
		{"retry: methods on error", generic(policy.Settings{Methods: []string{"any"}, MethodsOnError: policy.GetOnly}), post(policy.EOF), no},
		{"retry: one-shot body", generic(policy.Settings{}), stream, no},
		{"retry: one-shot body, resent", generic(policy.Settings{OneShot: policy.ResendOneShot}), stream, 0},
		{"retry: wait", generic(policy.Settings{Wait: new(time.Second)}), post(policy.EOF), time.Second},
		{"retry: backoff", generic(policy.Settings{Backoff: &policy.Backoff{Initial: time.Second, Jitter: policy.FullJitter}}), post(policy.EOF), 500 * time.Millisecond},
		{"retry: Retry-After ignored", generic(policy.Settings{}), after(503, 2), 0},
		{"retry: Retry-After honoured", honour, after(503, 2), 2 * time.Second},
		{"retry: Retry-After cut", honour, after(503, 9), 3 * time.Second},
		{"retry: any status with Retry-After", generic(policy.Settings{On: []string{"non-2xx-with-retry-after"}, RetryAfter: policy.HonourRetryAfter}), after(409, 2), 2 * time.Second},
		{"retry: a status without it", generic(policy.Settings{On: []string{"non-2xx-with-retry-after"}}), status("GET", 409), no},
		{
			"retry: beyond the total limit",
			generic(policy.Settings{RetryAfter: policy.HonourRetryAfter}),
			policy.Outcome{Method: "GET", Status: 503, HasRetryAfter: true, RetryAfter: 30 * time.Second, Remaining: 5 * time.Second},
			no,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l, err := Resolve(tt.settings)
			if err != nil {
				t.Fatal(err)
			}
			d := l.Next([]policy.Outcome{tt.outcome}, 0.5)
			if d.Retry != (tt.want != no) || d.Retry && d.Wait != tt.want {
				t.Errorf("decision %+v, want a wait of %v (%v is no retry)", d, tt.want, no)
			}
		})
	}
}
