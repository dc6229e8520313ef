package preset

import (
	"time"

	"retrylab/caller/policy"
)

// Hedge is the generic layer that does not wait for a try to fail: a hedged request, or a queue that
// hands a message out again while somebody is still at work on it.
var Hedge = &Preset{
	Name:     "hedge",
	Group:    generic,
	Title:    "hedged requests, and a queue that delivers again",
	Version:  "this lab's own",
	Verified: "source",
	Source:   []string{"retrylab caller/policy Layer.Lasts"},
	Counts:   "attempts = tries in total, the first one counted",
	Doc:      "Starts a further try when none has succeeded after a while, beside those under way; the first success counts.",
	Triggers: []string{"the time since the last try began; a try that failed is not replaced any sooner"},
	NotRetried: []string{
		"a success: it ends the call, for all tries",
		"a failure that is not in `on` or `statuses` ends the call as well",
	},
	Waits:       "`after`, from the start of one try to the start of the next",
	Timeouts:    "none of its own; `timeout` bounds each try, `total` all of them",
	OnByDefault: "no, a scenario puts it there",
	Originals: []Original{
		{"gRPC hedgingPolicy.hedgingDelay (after a failure it starts the next at once)", "after", "1s"},
		{"gRPC hedgingPolicy.maxAttempts (at most five), failsafe-go WithMaxHedges (hedges, so one try more)", "attempts", "2"},
		{"SQS VisibilityTimeout: a message that is not deleted is delivered again", "after", "1s"},
		{"gRPC and failsafe-go cancel the other tries, a queue cannot", "losers", policy.FinishLosers},
	},
	Traps: []string{
		"A hedge is a duplicate on purpose: for a write it needs all that a retry needs.",
		"To cancel the losers tells the client's side alone; a server that has begun goes on.",
	},
	Takes: []string{"attempts", "after", "losers", "timeout", "total", "on", "statuses", "methods", "budget"},
	Defaults: policy.Settings{
		Attempts: new(2),
		After:    new(time.Second),
		Losers:   policy.FinishLosers,
		On:       []string{"any-error", "5xx"},
	},
	Layer: func(s policy.Settings) (policy.Layer, error) {
		if *s.After == 0 {
			return policy.Layer{}, &policy.FieldError{Field: "after", Problem: "0s would start all tries at once; use concurrency for that"}
		}
		l, err := retryLayer(s)
		l.Hedge, l.Losers = *s.After, s.Losers
		return l, err
	},
	Body: policy.Buffered,
	words: []word{
		{"attempts_#", "so many tries in total", func(b *builder, a []string) error { return b.setAttempts("hedge", a[0], tries) }},
	},
}
