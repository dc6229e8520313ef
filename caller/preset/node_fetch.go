package preset

import "retrylab/caller/policy"

// NodeFetch is Node's own fetch and node:http, which send once.
var NodeFetch = &Preset{
	Name:        "node-fetch",
	Entry:       "node-fetch-undici",
	Group:       javascript,
	Title:       "Node's built-in fetch (undici) and node:http",
	Version:     "Node 20.20.2 run",
	Verified:    "live",
	Source:      []string{"counted on a loopback server"},
	Counts:      "tries in total: one",
	Doc:         "One try, on a reused connection too.",
	NotRetried:  []string{"everything, a broken reused connection included"},
	Waits:       "none",
	Timeouts:    "fetch: headers 300 s, body 300 s between two pieces; AbortSignal.timeout bounds everything",
	OnByDefault: "no retry",
	Originals:   []Original{{"AbortSignal.timeout", "total", "none"}},
	Drips: []Drip{
		{"headersTimeout", "fires at 1.0 s: its timer is coarse", "not in force"},
		{"bodyTimeout", "not in force", never},
		{"AbortSignal.timeout", fires, fires},
	},
	Takes: []string{"total"},
	Layer: func(policy.Settings) (policy.Layer, error) {
		return policy.Layer{Attempts: 1, Limit: "fetch sends once"}, nil
	},
	Body: policy.Buffered,
}
