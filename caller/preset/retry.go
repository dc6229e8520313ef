package preset

import (
	"slices"
	"time"

	"retrylab/caller/policy"
)

// Retry is the generic layer: what most retry libraries boil down to once their defaults are
// written out. Its own defaults are those of a loop around a call that somebody wrote in a hurry:
// three tries, at once, on any exception and any 5xx, whatever the method.
var Retry = &Preset{
	Name:     "retry",
	Group:    generic,
	Title:    "the generic retry layer",
	Version:  "this lab's own",
	Verified: "source",
	Source:   []string{"retrylab caller/policy Layer.Next"},
	Counts:   "attempts = tries in total, the first one counted",
	Doc:      "A retry loop with everything said in the file: how often, on what, for which methods, after which wait.",
	Triggers: []string{"by default any error and any 5xx, for any method; `on` and `statuses` say otherwise"},
	NotRetried: []string{
		"a success, the end of the total limit, a wait that would outlast the total limit",
		"a streamed body, which can be read only once, unless `one-shot` says otherwise",
	},
	Waits:       "none; a fixed wait, a list of waits, or a backoff with jitter; Retry-After when it is to be honoured, cut to its cap",
	Timeouts:    "none of its own; `timeout` bounds each try with all that happens inside it, `total` all tries and waits",
	OnByDefault: "no, a scenario puts it there",
	Originals: []Original{
		{"resilience4j RetryConfig.maxAttempts (total; waits 500 ms, any exception)", "attempts", "3"},
		{"spring-retry @Retryable maxAttempts (total; waits 1 s, any exception)", "attempts", "3"},
		{"Spring Framework 7 @Retryable maxRetries (retries, so one try more; waits 1 s)", "attempts", "3"},
		{"Polly MaxRetryAttempts (retries, so one try more; waits 2 s)", "attempts", "3"},
	},
	Traps: []string{
		"The same 3 is three sends where a library counts tries and four where it counts retries.",
		"A retry on any exception and any status repeats what cannot succeed, and what has succeeded but could not be read.",
	},
	Takes: []string{
		"attempts", "timeout", "total", "wait", "waits", "backoff", "on", "statuses",
		"methods", "methods-on-error", "methods-on-status", "one-shot", "retry-after", "retry-after-cap",
		"limits", "budget", "free-when-paced", "past-deadline",
	},
	Defaults: policy.Settings{
		Attempts:   new(3),
		Wait:       new(time.Duration(0)),
		On:         []string{"any-error", "5xx"},
		OneShot:    policy.RefuseOneShot,
		RetryAfter: policy.IgnoreRetryAfter,
	},
	Layer: retryLayer,
	Body:  policy.Buffered,
	words: []word{
		{"attempts_#", "so many tries in total", func(b *builder, a []string) error { return b.setAttempts("retry", a[0], tries) }},
	},
}

func retryLayer(s policy.Settings) (policy.Layer, error) {
	triggers, err := policy.ParseTriggers(s.On)
	if err != nil {
		return policy.Layer{}, &policy.FieldError{Field: "on", Problem: err.Error()}
	}
	common := policy.Rule{
		HonourRetryAfter: s.RetryAfter == policy.HonourRetryAfter,
		RetryAfterCap:    value(s.RetryAfterCap),
		WaitWithinTotal:  true,
	}
	if s.OneShot == policy.RefuseOneShot {
		common.Bodies = policy.Repeatable
	}

	onError := common
	onError.Failures = triggers.Failures
	onError.InBody = true
	onError.Methods = methodSet(s.MethodsOnError, s.Methods)

	onStatus := common
	onStatus.Statuses = slices.Concat(triggers.Statuses, policy.StatusSet(s.Statuses))
	onStatus.Methods = methodSet(s.MethodsOnStatus, s.Methods)

	statuses := []policy.Rule{onStatus}
	if triggers.WithRetryAfter {
		withHeader := onStatus
		withHeader.Statuses = policy.Non2xx
		withHeader.RetryAfter = policy.Present
		statuses = append(statuses, withHeader)
	}
	if value(s.FreeWhenPaced) && !common.HonourRetryAfter {
		return policy.Layer{}, &policy.FieldError{Field: "free-when-paced", Problem: "a Retry-After that is ignored is not waited for; write retry-after: honour"}
	}
	return policy.Layer{
		Attempts: *s.Attempts, Rules: limited(onError, statuses, value(s.Limits)), Waits: s.Pauses(), ResendsEmpty: s.OneShot == policy.EmptyOneShot,
		FreeWhenPaced: value(s.FreeWhenPaced), PastDeadline: value(s.PastDeadline),
	}, nil
}

// limited returns the rules for errors and for statuses with the limits that a call has. An error
// before anything left is of another kind than one after.
func limited(onError policy.Rule, onStatus []policy.Rule, limits policy.Limits) []policy.Rule {
	onConnect, onRead := onError, onError
	onConnect.Failures, onRead.Failures = nil, nil
	for _, f := range onError.Failures {
		if f.Left() {
			onRead.Failures = append(onRead.Failures, f)
		} else {
			onConnect.Failures = append(onConnect.Failures, f)
		}
	}
	var rules []policy.Rule
	for _, kind := range []struct {
		most  *int
		rules []policy.Rule
	}{{limits.Connect, []policy.Rule{onConnect}}, {limits.Read, []policy.Rule{onRead}}, {limits.Status, onStatus}} {
		for _, r := range kind.rules {
			if r.Max = value(kind.most); kind.most == nil || r.Max > 0 {
				rules = append(rules, r)
			}
		}
	}
	return rules
}

// methodSet returns the special list when it is given, else the general one.
func methodSet(special, general []string) []string {
	if special != nil {
		return policy.MethodSet(special)
	}
	return policy.MethodSet(general)
}
