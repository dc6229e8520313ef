package scenarios

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"retrylab/caller/policy"
	"retrylab/caller/preset"
	"retrylab/internal/lab"
	"retrylab/slowserver/capacity"
	"retrylab/slowserver/change"
	"retrylab/slowserver/fault"
	"retrylab/slowserver/guard"
	"retrylab/slowserver/ledger"
)

// Rule says what may stand at a path of a scenario file beyond what its type says: one of some
// words, or a number within bounds. The checks and the schema are made of the same rules.
type Rule struct {
	Path      string // items of a list are []: hops[].kind
	Words     []string
	Layers    bool // the name of one of the caller's layers will do too
	Low, High int  // of a number; of no meaning with words
}

var methods = []string{"POST", "GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE"}

// HasBody reports whether a request of that method carries its order in a body: of itself, unless
// caller.body says otherwise.
func HasBody(method string) bool { return slices.Contains([]string{"POST", "PUT", "PATCH"}, method) }

var beliefs = []lab.Belief{lab.OK, lab.Failed, lab.Unknown}

// Rules lists every rule.
var Rules = []Rule{
	{Path: "family", Words: Families},
	{Path: "clocks[]", Words: []string{"virtual", "wall"}},
	{Path: "needs[]", Words: []string{"postgres", "redis"}},
	{Path: "operations", Low: 1, High: maxSimulated},
	{Path: "load[].arrivals", Words: []string{"even", randomArrivals}},
	{Path: "concurrency", Low: 1, High: maxConcurrency},
	{Path: "caller.method", Words: methods},
	{Path: "caller.body", Words: texts(policy.Bodies)},
	{Path: "caller.content", Words: []string{"same", "changing", "spaced", "signed"}, Layers: true},
	{Path: "caller.redirects", Words: []string{"none", "follow"}},
	{Path: "caller.key", Words: []string{"none", "operation", "attempt", "content", "appended", "server"}, Layers: true},
	{Path: "caller.connection", Words: []string{"fresh", "reused"}},
	{Path: "caller.pool", Low: 0, High: 10_000},
	{Path: "caller.idle", Low: 0, High: 100},
	{Path: "caller.threads", Low: 0, High: 10_000},
	{Path: "caller.queue", Low: 0, High: 10_000},
	{Path: "caller.timeouts.total-clock", Words: []string{"monotonic", "calendar"}},
	{Path: "caller.layers[].losers", Words: []string{policy.FinishLosers, policy.CancelLosers}},
	{Path: "caller.layers[].budget.stop", Words: []string{policy.StopEmpty, policy.StopHalf}},
	{Path: "caller.layers[].preset", Words: presetNames()},
	{Path: "caller.layers[].redispatch", Low: -1, High: policy.MaxAttempts},
	{Path: "caller.ask.by", Words: []string{"key", "operation"}},
	{Path: "caller.ask.not-found", Words: []string{"ask-again", "send-again", "failed"}},
	{Path: "caller.ask.failed", Words: []string{"report", "send-again"}},
	{Path: "caller.ask.key", Words: []string{"same", "new"}},
	{Path: "caller.deadline", Words: []string{"local", "header"}},
	{Path: "hops[].kind", Words: hopKindNames()},
	{Path: "hops[].method", Words: methods},
	{Path: "hops[].on-client-gone", Words: []string{"finish", "cancel"}},
	{Path: "hops[].error-status", Low: 400, High: 599},
	{Path: "hops[].timeout-status", Low: 400, High: 599},
	{Path: "hops[].deadline", Words: []string{"ignore", "pass", "forward"}},
	{Path: "hops[].key", Words: []string{KeyPass, KeyNone, KeyRequest, KeyAttempt}},
	{Path: "hops[].faults[].at", Words: texts(fault.HopPlaces)},
	{Path: "hops[].faults[].do", Words: faultNames(fault.HopKinds())},
	{Path: "hops[].timeouts.total-clock", Words: []string{"monotonic"}},
	{Path: "hops[].layers[].losers", Words: []string{policy.FinishLosers, policy.CancelLosers}},
	{Path: "hops[].layers[].budget.stop", Words: []string{policy.StopEmpty, policy.StopHalf}},
	{Path: "hops[].layers[].preset", Words: presetNames()},
	{Path: "hops[].layers[].redispatch", Low: -1, High: policy.MaxAttempts},
	{Path: "server.replicas", Low: 1, High: maxReplicas},
	{Path: "server.answer", Words: []string{"done", "accepted"}},
	{Path: "server.on-client-gone", Words: []string{"finish", "cancel"}},
	{Path: "server.workers", Low: 0, High: 10_000},
	{Path: "server.queue", Low: 0, High: maxOperations},
	{Path: "server.shed", Words: capacity.Sheds},
	{Path: "server.deadline", Words: []string{"ignore", "honour"}},
	{Path: "server.change.do", Words: change.Verbs},
	{Path: "server.change.by", Low: -change.MostBy, High: change.MostBy},
	{Path: "server.change.otherwise", Words: change.Otherwises},
	{Path: "server.change.version", Words: change.Versions},
	{Path: "server.rows-order", Words: []string{"fixed", "alternate"}},
	{Path: "server.transaction-retries", Low: 0, High: 10},
	{Path: "server.on-unknown-commit", Words: []string{"fail", "retry", "ask", "commit-again"}},
	{Path: "server.guard.kind", Words: guardNames()},
	{Path: "server.guard.client-retries", Low: 0, High: 10},
	{Path: "server.ledgers[].when", Words: ledger.Moments},
	{Path: "server.ledgers[].reference", Words: ledger.References},
	{Path: "server.ledgers[].relay.sends", Low: 1, High: 10},
	{Path: "server.faults[].at", Words: texts(fault.Places)},
	{Path: "server.faults[].do", Words: faultNames(fault.Kinds)},
	{Path: "expect.belief", Words: texts(beliefs)},
	{Path: "expect.belief-when-caller-done", Words: texts(beliefs)},
}

// Outcomes lists what may take the place of an answer where a send has none: the failures in the
// words of a belief's reason, without those that only a layer finds which reads the answer.
func Outcomes() []string {
	var out []string
	for _, f := range policy.Failures {
		if f != policy.Empty {
			out = append(out, strings.ReplaceAll(string(f), "-", " "))
		}
	}
	return append(out, "cancelled")
}

// RuleAt returns the rule for a path, in which items of lists may have their index.
func RuleAt(path string) (Rule, bool) {
	path = indexes.ReplaceAllString(path, "[]")
	path = strings.TrimPrefix(path, "variants[].")
	i := slices.IndexFunc(Rules, func(r Rule) bool { return r.Path == path })
	if i < 0 {
		return Rule{}, false
	}
	return Rules[i], true
}

func texts[T ~string](list []T) []string {
	var out []string
	for _, w := range list {
		out = append(out, string(w))
	}
	return out
}

func guardNames() []string {
	var names []string
	for _, g := range guard.All {
		names = append(names, g.Name)
	}
	return names
}

func faultNames(kinds []fault.Kind) []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	return names
}

// presetNames lists the presets, and the ids that the facts about them have.
func presetNames() []string {
	names := preset.Names()
	for _, p := range preset.All {
		if p.Entry != "" {
			names = append(names, p.Entry)
		}
	}
	return names
}

// word checks a value that must be one of the words of its rule.
func (c *checker) word(path, value string) {
	r, _ := RuleAt(path)
	known := r.Words
	if r.Layers {
		known = slices.Clone(known)
		for _, l := range c.trial.Layers {
			known = append(known, l.Name)
		}
	}
	if !slices.Contains(known, value) {
		c.fail(path, fmt.Sprintf("%s cannot be %s", path, quote(value)), suggest(value, known))
	}
}

// number checks a value that must be within the bounds of its rule.
func (c *checker) number(path string, n int) {
	if r, _ := RuleAt(path); n < r.Low || n > r.High {
		c.fail(path, fmt.Sprintf("%s must be between %d and %d, not %d", path, r.Low, r.High, n), "")
	}
}

// WordsAt lists the words that can stand at a path as --set takes it: those of its rule, those of the kind that
// the path's value may be written as, or true and false. It is empty where there are none, and where the
// path is none.
func WordsAt(path string) []string {
	for _, key := range []string{"", ".kind", ".preset"} {
		if r, ok := RuleAt(path + key); ok && len(r.Words) > 0 {
			return slices.Clone(r.Words)
		}
	}
	steps, ok := parsePath(path)
	if !ok {
		return nil
	}
	t := reflect.TypeFor[Setup]()
	for _, step := range steps {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch {
		case t.Kind() == reflect.Slice:
			t = t.Elem() // by index or by name
			continue
		case t.Kind() != reflect.Struct:
			return nil
		}
		fields := fieldsOf(t)
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == step.name })
		if i < 0 {
			return nil
		}
		t = t.FieldByIndex(fields[i].index).Type
	}
	if t.Kind() == reflect.Bool || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Bool {
		return []string{"true", "false"}
	}
	return nil
}
