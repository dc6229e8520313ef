package preset

import "retrylab/caller/policy"

// OkHTTP is OkHttp's recovery from broken connections, and its few retries on statuses.
var OkHTTP = &Preset{
	Name:     "okhttp",
	Entry:    "okhttp",
	Group:    java,
	Title:    "OkHttp, retryOnConnectionFailure",
	Version:  "5.4.0 read, 3.13.1 run: the same table of decisions",
	Verified: "both",
	Source: []string{
		"square/okhttp okhttp internal/http/RetryAndFollowUpInterceptor.kt@parent-5.4.0 recover, isRecoverable, followUpRequest",
		"square/okhttp okhttp internal/connection/RealConnection.kt@parent-5.4.0 trackFailure",
		"square/okhttp okhttp internal/connection/RealRoutePlanner.kt@parent-5.4.0 plan, hasNext, retryRoute",
		"square/okhttp okhttp OkHttpClient.kt@parent-5.4.0",
	},
	Counts: "bounded by connections and addresses, not by a number; 20 follow-ups for statuses",
	Doc:    "Sends again, POST included, when a pooled connection breaks or another address is left; once after 408 and 503 with Retry-After: 0.",
	Triggers: []string{
		"eof or reset on a connection that had served a call before, for any method",
		"refused, connect time-out, eof or reset while another address of the host is left, for any method",
		"408 once, for any method, unless its Retry-After is above zero",
		"503 with Retry-After: 0 once, for any method",
	},
	NotRetried: []string{
		"a read time-out",
		"eof on a fresh connection to the only address",
		"a body that can be read only once, after sending has begun",
		"503 otherwise; 429; 500",
	},
	Waits:       "none",
	Timeouts:    "connect, read and write 10 s each, read per read; callTimeout, over everything, is unset",
	OnByDefault: "yes",
	Originals: []Original{
		{"OkHttpClient.Builder.retryOnConnectionFailure", "retry-on-connection-failure", "true"},
		{"OkHttpClient.Builder.callTimeout", "total", "0 (none)"},
	},
	Drips: []Drip{{"readTimeout", never, never}, {"callTimeout", fires, fires}},
	Traps: []string{
		"A host with two addresses can be given one POST twice.",
		"retryOnConnectionFailure(false) does not stop the retry of a 503 with Retry-After: 0.",
		"For a method other than GET a pooled connection is probed before use, which narrows the window and does not close it.",
	},
	Takes:    []string{"retry-on-connection-failure", "total", "idle"},
	Defaults: policy.Settings{RetryOnConnectionFailure: new(true)},
	Layer:    okHTTPLayer,
	Body:     policy.Buffered,
	words: []word{
		{"off", "retryOnConnectionFailure(false)", func(b *builder, _ []string) error {
			return b.set("okhttp", "retryOnConnectionFailure", func(s *policy.Settings) { s.RetryOnConnectionFailure = new(false) })
		}},
	},
}

func okHTTPLayer(s policy.Settings) (policy.Layer, error) {
	// Neither status is retried twice in a row, so the two can only alternate: ten of each are the
	// twenty follow-ups that the original allows.
	const followUps = 10
	unavailable := policy.Rule{
		Statuses:   []policy.StatusRange{policy.Status(503)},
		Bodies:     policy.Repeatable,
		RetryAfter: policy.Zero,
		Max:        followUps,
		NotInARow:  true,
	}
	if !*s.RetryOnConnectionFailure {
		return policy.Layer{Rules: []policy.Rule{unavailable}}, nil
	}
	broken := []policy.Failure{policy.EOF, policy.Reset}
	return policy.Layer{
		Rules: []policy.Rule{
			{Failures: broken, Bodies: policy.Repeatable, Reused: true},
			{Failures: broken, Bodies: policy.Repeatable, AddressLeft: true},
			{Failures: []policy.Failure{policy.Refused, policy.ConnectTimeout}, AddressLeft: true},
			{
				Statuses:   []policy.StatusRange{policy.Status(408)},
				Bodies:     policy.Repeatable,
				RetryAfter: policy.AbsentOrZero,
				Max:        followUps,
				NotInARow:  true,
			},
			unavailable,
		},
	}, nil
}
