package preset

import "retrylab/caller/policy"

// GoNetHTTP is the resend inside Go's own transport.
var GoNetHTTP = &Preset{
	Name:     "go-net-http",
	Entry:    "go-net-http",
	Group:    golang,
	Title:    "Go net/http Transport, HTTP/1",
	Version:  "go1.26 read and run",
	Verified: "both",
	Source: []string{
		"go1.26 src/net/http/request.go isReplayable",
		"go1.26 src/net/http/transport.go shouldRetryRequest, roundTrip, rewindBody, readLoop",
	},
	Counts: "no number: one send per idle connection that turns out dead, and one on a fresh connection",
	Doc:    "Sends again when a reused connection breaks: GET, HEAD, OPTIONS, TRACE, and any method that carries an Idempotency-Key.",
	Triggers: []string{
		"eof or reset on a reused connection, for GET, HEAD, OPTIONS and TRACE",
		"the same for any method with a header Idempotency-Key or X-Idempotency-Key",
	},
	NotRetried: []string{
		"anything on a fresh connection",
		"every time-out, the end of the context",
		"POST, PUT and DELETE without the key",
		"a body that cannot be had again (no GetBody)",
		"any status",
	},
	Waits:       "none",
	Timeouts:    "Client.Timeout 0, which is none, bounds everything with the body; ResponseHeaderTimeout 0; dial 30 s; an idle connection is kept 90 s, two per host",
	OnByDefault: "yes, and without a switch: DisableKeepAlives avoids it",
	Originals: []Original{
		{"http.Client.Timeout", "total", "0 (none)"},
		{"idle connections in the pool (Transport.MaxIdleConnsPerHost: 2)", "idle", "as many as earlier requests left"},
	},
	Drips: []Drip{{"Transport.ResponseHeaderTimeout", fires, never}, {"Client.Timeout", fires, fires}},
	Traps: []string{
		"The Idempotency-Key that makes a POST safe is also what makes Go send it again unasked.",
		"With four idle connections a GET arrives five times.",
	},
	Takes: []string{"idle", "total"},
	Layer: func(policy.Settings) (policy.Layer, error) {
		broken := []policy.Failure{policy.EOF, policy.Reset}
		return policy.Layer{
			Rules: []policy.Rule{
				{Failures: broken, Reused: true, Bodies: policy.Repeatable, Methods: policy.Replayable},
				{Failures: broken, Reused: true, Bodies: policy.Repeatable, Key: true},
			},
		}, nil
	},
	Body: policy.Buffered,
}
