package preset

import "retrylab/caller/policy"

// LibCurl is the resend inside libcurl, which every program on it has.
var LibCurl = &Preset{
	Name:        "libcurl",
	Entry:       "libcurl-reuse",
	Group:       curls,
	Title:       "libcurl, a reused connection",
	Version:     "8.21.0 read, 7.88.1 run",
	Verified:    "both",
	Source:      []string{"curl/curl lib/transfer.c@curl-8_21_0 Curl_retry_request"},
	Counts:      "one send more, on a fresh connection",
	Doc:         "Sends again, POST included, when a reused connection breaks before the first byte of an answer.",
	Triggers:    []string{"eof or reset on a reused connection before any byte of the answer, for any method", "HTTP/2 REFUSED_STREAM"},
	NotRetried:  []string{"a fresh connection", "every time-out", "any status"},
	Waits:       "none",
	Timeouts:    "CURLOPT_TIMEOUT, which is none by default, bounds everything with the resend",
	OnByDefault: "yes, without an option; CURLOPT_FORBID_REUSE and FRESH_CONNECT avoid it",
	Originals: []Original{
		{"connections kept from earlier requests", "idle", "as many as earlier requests left"},
		{"CURLOPT_TIMEOUT", "total", "0 (none)"},
	},
	Drips: []Drip{{"CURLOPT_TIMEOUT", fires, fires}},
	Traps: []string{"Any program on libcurl has it: PHP, and many SDKs."},
	Takes: []string{"idle", "total"},
	Layer: func(policy.Settings) (policy.Layer, error) {
		return policy.Layer{
			Attempts: 2,
			Limit:    "one resend",
			Rules:    []policy.Rule{{Failures: []policy.Failure{policy.EOF, policy.Reset}, Reused: true, Bodies: policy.Repeatable}},
		}, nil
	},
	Body: policy.Buffered,
}
