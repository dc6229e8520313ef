package preset

import "retrylab/caller/policy"

// ALB is AWS's Application Load Balancer, of which no text by its maker says that it retries.
var ALB = &Preset{
	Name:        "aws-alb",
	Entry:       "aws-alb",
	Group:       proxies,
	Title:       "AWS Application Load Balancer",
	Version:     "a managed service",
	Verified:    "unverified",
	Source:      []string{"an answer of the community on re:Post, which says that it does not retry a request that is being processed"},
	Counts:      "tries in total: one",
	Doc:         "No retry is documented; this preset says no more than that.",
	NotRetried:  []string{"as far as was found, everything"},
	Waits:       "none",
	Timeouts:    "an idle time-out of 60 s",
	OnByDefault: "no retry is documented",
	Traps:       []string{"Its maker states neither that it retries nor that it does not: measure before you rely on it."},
	Layer: func(policy.Settings) (policy.Layer, error) {
		return policy.Layer{Attempts: 1, Limit: "no retry is documented"}, nil
	},
	Body:  policy.Buffered,
	InHop: true,
}
