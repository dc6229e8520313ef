package preset

import "retrylab/caller/policy"

// Requests is Python's requests, which switches urllib3's retry off.
var Requests = &Preset{
	Name:        "requests",
	Entry:       "python-requests",
	Group:       python,
	Title:       "Python requests",
	Version:     "2.34.2 read and run",
	Verified:    "both",
	Source:      []string{"psf/requests src/requests/adapters.py@v2.34.2 HTTPAdapter.__init__"},
	Counts:      "max_retries = retries: none, so one try; HTTPAdapter(max_retries=3) is four",
	Doc:         "One try; with max_retries it has urllib3's rule, which spares POST once there was a connection.",
	Triggers:    []string{"none by default; with max_retries those of urllib3"},
	NotRetried:  []string{"everything, by default, a broken reused connection included"},
	Waits:       "none; with a Retry object those of urllib3",
	Timeouts:    "none by default; read is per socket read",
	OnByDefault: "no",
	Originals: []Original{
		{"HTTPAdapter max_retries (retries; attempts is one more)", "attempts", "0"},
		{"Retry backoff_factor, in seconds: backoff.initial", "backoff", "0"},
		{"Retry allowed_methods (None is any)", "methods", "the idempotent methods"},
		{"Retry status_forcelist", "statuses", "none"},
		{"Retry respect_retry_after_header", "retry-after", "true"},
		{"Retry.DEFAULT_RETRY_AFTER_MAX", "retry-after-cap", "6 h"},
	},
	Drips: []Drip{{"timeout", never, never}},
	Traps: []string{"There is no time-out unless one is given: a call can wait for ever."},
	Takes: URLLib3.Takes,
	Defaults: func() policy.Settings {
		s := URLLib3.Defaults
		s.Attempts = new(1)
		return s
	}(),
	Layer: urllib3Layer,
	Body:  policy.Buffered,
	words: append(urllib3Words("requests"), word{"max_retries_#", "HTTPAdapter(max_retries=#)", func(b *builder, a []string) error {
		return b.setAttempts("requests", a[0], retries)
	}}),
}
