package judge

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"retrylab/caller/policy"
	"retrylab/internal/lab"
	"retrylab/scenarios"
)

// What a time may be off by. Outputs round to the millisecond. Expected times are those of ideal
// arithmetic, in which a request takes no time on its way; here it takes some microseconds each way, so
// that flows keep apart, and in a chain of sends they add up. Of a crowd that does not wait for each
// other they do not: a hundredth of the time itself is the most.
const (
	rounding = time.Millisecond
	perSend  = 150 * time.Microsecond
	share    = 100
)

// tolerance is what a time may be off by before which n sends had begun.
func tolerance(at time.Duration, n int) time.Duration {
	return rounding + min(time.Duration(n)*perSend, at/share)
}

// near returns what compares an expected time with one that was seen.
func (v view) near() func(want, got time.Duration) bool {
	sends := v.times(func(e lab.Event) bool { return e.Kind == lab.Send })
	return func(want, got time.Duration) bool {
		n, _ := slices.BinarySearch(sends, got)
		if v.obs.Totals != nil {
			n = v.result.Counts.Sends // nobody knows when
		}
		return (want - got).Abs() <= tolerance(got, n)
	}
}

// expectation is one key of a scenario's expect: what it asks for and what was seen.
type expectation struct {
	name string
	// compare returns what was expected and what was seen; asked is false where the file does
	// not ask for it.
	compare  func(e *scenarios.Expect, v view) (expected, actual string, held, asked bool)
	evidence []lab.Kind
}

// expectations lists every key of [scenarios.Expect]; a test holds the two lists together.
var expectations = []expectation{
	number("tries", func(e *scenarios.Expect) *int { return e.Tries }, view.tries, lab.Send, lab.Failure),
	number("sends", func(e *scenarios.Expect) *int { return e.Sends }, func(v view) int { return v.result.Counts.Sends }, lab.Send),
	number("arrivals", func(e *scenarios.Expect) *int { return e.Arrivals }, func(v view) int { return v.result.Counts.Arrivals }, lab.Arrival),
	number("lookups", func(e *scenarios.Expect) *int { return e.Lookups }, func(v view) int { return v.result.Counts.Lookups }, lab.Question),
	number("runs", func(e *scenarios.Expect) *int { return e.Runs }, view.runs, lab.Work),
	number("effects", func(e *scenarios.Expect) *int { return e.Effects }, func(v view) int { return v.result.Counts.Effects }, lab.Commit),
	number("effects-when-caller-done", func(e *scenarios.Expect) *int { return e.EffectsWhenCallerDone }, func(v view) int { return v.result.Counts.EffectsWhenCallerDone }, lab.Commit, lab.Done),
	number("duplicates", func(e *scenarios.Expect) *int { return e.Duplicates }, func(v view) int { return v.result.Counts.Duplicates }, lab.Commit),
	number("lost", func(e *scenarios.Expect) *int { return e.Lost }, func(v view) int { return v.result.Counts.Lost }, lab.Commit, lab.Done),
	number("false-failures", func(e *scenarios.Expect) *int { return e.FalseFailures }, func(v view) int { return v.result.Counts.FalseFailures }, lab.Commit, lab.Done),
	number("late", func(e *scenarios.Expect) *int { return e.Late }, func(v view) int { return v.result.Counts.Late }, lab.Commit, lab.Done),
	number("turned-away", func(e *scenarios.Expect) *int { return e.TurnedAway }, func(v view) int { return v.result.Counts.TurnedAway }, lab.Done),
	timed(number("threads-used", func(e *scenarios.Expect) *int { return e.ThreadsUsed }, func(v view) int { return v.obs.Threads }, lab.Send)),
	number("budget-spent", func(e *scenarios.Expect) *int { return e.BudgetSpent }, view.budgetSpent, lab.Stop, lab.Done),
	number("orders-told", func(e *scenarios.Expect) *int { return e.OrdersTold }, view.ordersTold, lab.Told),
	number("clients-gone", func(e *scenarios.Expect) *int { return e.ClientsGone }, view.clientsGone, lab.ClientGone),
	{
		name: "amount",
		compare: func(e *scenarios.Expect, v view) (string, string, bool, bool) {
			if e.Amount == nil {
				return "", "", false, false
			}
			want, got := int64(*e.Amount), v.result.Counts.Amount
			return money(want), money(got), want == got, true
		},
		evidence: []lab.Kind{lab.Commit},
	},
	{
		name: "belief",
		compare: func(e *scenarios.Expect, v view) (string, string, bool, bool) {
			got := v.common(func(o lab.Outcome) string { return string(o.Belief) })
			return e.Belief, got, e.Belief == got, e.Belief != ""
		},
		evidence: []lab.Kind{lab.Done},
	},
	{
		name: "beliefs",
		compare: func(e *scenarios.Expect, v view) (string, string, bool, bool) {
			if e.Beliefs == nil {
				return "", "", false, false
			}
			want, got := lab.Beliefs(*e.Beliefs), v.result.Beliefs
			return beliefs(want), beliefs(got), want == got, true
		},
		evidence: []lab.Kind{lab.Done},
	},
	{
		name: "belief-when-caller-done",
		compare: func(e *scenarios.Expect, v view) (string, string, bool, bool) {
			got := v.common(func(o lab.Outcome) string { return string(o.Done()) })
			return e.BeliefWhenCallerDone, got, e.BeliefWhenCallerDone == got, e.BeliefWhenCallerDone != ""
		},
		evidence: []lab.Kind{lab.Done},
	},
	{
		name: "reason",
		compare: func(e *scenarios.Expect, v view) (string, string, bool, bool) {
			got := v.common(func(o lab.Outcome) string { return o.Reason })
			return e.Reason, got, e.Reason == got, e.Reason != ""
		},
		evidence: []lab.Kind{lab.Timeout, lab.Failure, lab.Reply},
	},
	{
		name: "amplification",
		compare: func(e *scenarios.Expect, v view) (string, string, bool, bool) {
			if e.Amplification == nil {
				return "", "", false, false
			}
			want, got := *e.Amplification, v.result.Amplification
			return decimal(want), decimal(got), want-got < 0.001 && got-want < 0.001, true
		},
		evidence: []lab.Kind{lab.Arrival},
	},
	number("lost-updates", func(e *scenarios.Expect) *int { return e.LostUpdates }, func(v view) int { return v.result.Counts.LostUpdates }, lab.Read, lab.Changed),
	{
		name: "state",
		compare: func(e *scenarios.Expect, v view) (string, string, bool, bool) {
			got := "no row"
			if s := v.obs.State; s != nil {
				got = s.String()
			}
			return e.State, got, e.State == got, e.State != ""
		},
		evidence: []lab.Kind{lab.Read, lab.Changed},
	},
	moment("caller-done", func(e *scenarios.Expect) *time.Duration { return e.CallerDone }, view.callerDone, lab.Done),
	moment("longest-hold", func(e *scenarios.Expect) *time.Duration { return e.LongestHold }, func(v view) time.Duration { return longestHold(v.obs) }, lab.Start, lab.Done),
	{
		name: "goodput",
		compare: func(e *scenarios.Expect, v view) (string, string, bool, bool) {
			if e.Goodput == nil || !v.obs.Exact {
				return "", "", false, false
			}
			want, got := *e.Goodput, v.result.GoodputPerS
			return decimal(want), decimal(got), math.Abs(want-got) < 0.005, true
		},
		evidence: []lab.Kind{lab.Done},
	},
	moment("settled", func(e *scenarios.Expect) *time.Duration { return e.Settled }, func(v view) time.Duration { return v.obs.Settled }, lab.Settled),
	moments("starts", func(e *scenarios.Expect) []time.Duration { return e.Starts }, view.starts, lab.Send),
	outcomes,
	moments("arrived", func(e *scenarios.Expect) []time.Duration { return e.Arrived }, view.arrived, lab.Arrival),
	number("overlap", func(e *scenarios.Expect) *int { return e.Overlap }, func(v view) int { return v.obs.Overlap }, lab.Work, lab.Commit),
	moments("commits", func(e *scenarios.Expect) []time.Duration { return e.Commits }, view.commits, lab.Commit),
	counts("sends-by", func(e *scenarios.Expect) map[string]int { return e.SendsBy }, view.sendsBy, lab.Send),
	counts("arrivals-at", func(e *scenarios.Expect) map[string]int { return e.ArrivalsAt }, view.arrivalsAt, lab.Arrival),
	counts("ledgers", func(e *scenarios.Expect) map[string]int { return e.Ledgers }, view.ledgers, lab.Entered),
	counts("answers", func(e *scenarios.Expect) map[string]int { return e.Answers }, view.answers, lab.Answer),
	peakStarts, recoveredAfter,
}

func (v view) expectations() []lab.Check {
	if v.trial.Expect == nil {
		return nil
	}
	var checks []lab.Check
	for _, x := range expectations {
		expected, actual, held, asked := x.compare(v.trial.Expect, v)
		if !asked {
			continue
		}
		at := v.trial.Places[x.name]
		c := lab.Check{
			Kind: "expect", Name: x.name, Expected: expected, Actual: actual, Held: held,
			File: at.File, Line: at.Line, Column: at.Column,
		}
		if !held {
			c.Evidence = v.evidence(x.evidence...)
		}
		checks = append(checks, c)
	}
	return checks
}

func number(name string, want func(*scenarios.Expect) *int, got func(view) int, evidence ...lab.Kind) expectation {
	return expectation{name: name, evidence: evidence, compare: func(e *scenarios.Expect, v view) (string, string, bool, bool) {
		w := want(e)
		if w == nil {
			return "", "", false, false
		}
		g := got(v)
		return strconv.Itoa(*w), strconv.Itoa(g), *w == g, true
	}}
}

// timed has an expectation demanded on the virtual clock only: what it counts is as much the
// machine's as the scenario's where time is real.
func timed(x expectation) expectation {
	compare := x.compare
	x.compare = func(e *scenarios.Expect, v view) (string, string, bool, bool) {
		expected, actual, held, asked := compare(e, v)
		return expected, actual, held, asked && v.obs.Exact
	}
	return x
}

// moment and moments are about times. They are demanded on the virtual clock only: on the wall
// clock a time is the machine's as much as the scenario's, and must not decide a verdict.

func moment(name string, want func(*scenarios.Expect) *time.Duration, got func(view) time.Duration, evidence ...lab.Kind) expectation {
	return expectation{name: name, evidence: evidence, compare: func(e *scenarios.Expect, v view) (string, string, bool, bool) {
		w := want(e)
		if w == nil || !v.obs.Exact {
			return "", "", false, false
		}
		g := got(v)
		return lab.Clock(*w), lab.Clock(g), v.near()(*w, g), true
	}}
}

func moments(name string, want func(*scenarios.Expect) []time.Duration, got func(view) []time.Duration, evidence ...lab.Kind) expectation {
	return expectation{name: name, evidence: evidence, compare: func(e *scenarios.Expect, v view) (string, string, bool, bool) {
		w := want(e)
		if w == nil || !v.obs.Exact {
			return "", "", false, false
		}
		g := got(v)
		return list(w), list(g), slices.EqualFunc(w, g, v.near()), true
	}}
}

// counts compares only the names that the file gives.
func counts(name string, want func(*scenarios.Expect) map[string]int, got func(view) map[string]int, evidence ...lab.Kind) expectation {
	return expectation{name: name, evidence: evidence, compare: func(e *scenarios.Expect, v view) (string, string, bool, bool) {
		w := want(e)
		if len(w) == 0 {
			return "", "", false, false
		}
		all, g := got(v), map[string]int{}
		for k := range w {
			g[k] = all[k]
		}
		return table(w), table(g), maps.Equal(w, g), true
	}}
}

func list(times []time.Duration) string {
	var out []string
	for _, t := range times {
		out = append(out, lab.Clock(t))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

func table(m map[string]int) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fmt.Sprintf("%s: %d", k, m[k]))
	}
	return strings.Join(out, ", ")
}

func beliefs(b lab.Beliefs) string {
	return fmt.Sprintf("%d ok, %d failed, %d unknown", b.OK, b.Failed, b.Unknown)
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func money(minor int64) string { return fmt.Sprintf("%d.%02d", minor/100, minor%100) }

// common is what all operations have in common, or what they have, with how many of them.
func (v view) common(get func(lab.Outcome) string) string {
	count := map[string]int{}
	for _, o := range v.obs.Outcomes {
		count[get(o)]++
	}
	if totals := v.obs.Totals; totals != nil {
		for _, e := range totals.Ends {
			count[get(lab.Outcome{Belief: e.Belief, Reason: e.Reason})] += e.Operations
		}
	}
	values := slices.Sorted(maps.Keys(count))
	if len(values) == 1 {
		return values[0]
	}
	var out []string
	for _, value := range values {
		out = append(out, fmt.Sprintf("%d %s", count[value], value))
	}
	return strings.Join(out, ", ")
}

func (v view) callerDone() (last time.Duration) {
	if v.obs.Totals != nil {
		return v.obs.Totals.CallerDone
	}
	for _, o := range v.obs.Outcomes {
		last = max(last, o.DoneAt)
	}
	return last
}

func (v view) starts() []time.Duration {
	return v.times(func(e lab.Event) bool { return e.Kind == lab.Send && e.Node == v.trial.Setup.Caller.Name })
}

func (v view) arrived() []time.Duration {
	servers := v.trial.Setup.Server.ReplicaNames()
	return v.times(func(e lab.Event) bool { return e.Kind == lab.Arrival && slices.Contains(servers, e.Node) })
}

func (v view) commits() []time.Duration {
	return v.times(func(e lab.Event) bool { return e.Kind == lab.Commit })
}

func (v view) times(match func(lab.Event) bool) []time.Duration {
	out := []time.Duration{}
	for _, e := range v.obs.Events {
		if match(e) {
			out = append(out, e.At)
		}
	}
	return out
}

func (v view) sendsBy() map[string]int {
	out := map[string]int{}
	for _, n := range v.obs.Nodes {
		out[n.Name] = n.Sends
	}
	return out
}

func (v view) arrivalsAt() map[string]int {
	out := map[string]int{}
	for _, n := range v.obs.Nodes {
		out[n.Name] = n.Arrivals
	}
	return out
}

// answers counts the answers of the order service by status, those that no client waited for
// included: they were given.
func (v view) answers() map[string]int {
	servers := v.trial.Setup.Server.ReplicaNames()
	out := map[string]int{}
	if totals := v.obs.Totals; totals != nil {
		for status, n := range totals.Answers {
			out[strconv.Itoa(status)] = n
		}
		return out
	}
	for _, e := range v.obs.Events {
		if (e.Kind == lab.Answer || e.Kind == lab.ClientGone && e.Status != 0) && slices.Contains(servers, e.Node) {
			out[strconv.Itoa(e.Status)]++
		}
	}
	return out
}

func (v view) ledgers() map[string]int {
	out := map[string]int{}
	for _, l := range v.result.Ledgers {
		out[l.Name] = l.Entries
	}
	return out
}

// tries counts the sends of the caller, and its tries that came to none because a limit was over.
func (v view) tries() int {
	if v.obs.Totals != nil {
		return v.result.Counts.Sends
	}
	return len(v.times(func(e lab.Event) bool {
		return e.Node == v.trial.Setup.Caller.Name && (e.Kind == lab.Send || e.Kind == lab.Failure && e.Detail == lab.PastDeadline)
	}))
}

func (v view) budgetSpent() int {
	if v.obs.Totals != nil {
		return v.obs.Totals.BudgetSpent
	}
	return len(v.times(func(e lab.Event) bool { return e.Kind == lab.Stop && e.Detail == policy.BudgetSpent }))
}

func (v view) ordersTold() int {
	told := map[int64]bool{}
	for _, e := range v.obs.Events {
		if e.Kind == lab.Told && e.Order != 0 {
			told[e.Order] = true
		}
	}
	return len(told)
}

// runs counts how often the order service began to work.
func (v view) runs() int {
	if v.obs.Totals != nil {
		return v.obs.Totals.Runs
	}
	servers := v.trial.Setup.Server.ReplicaNames()
	n := 0
	for _, e := range v.obs.Events {
		if e.Kind == lab.Work && slices.Contains(servers, e.Node) {
			n++
		}
	}
	return n
}

func (v view) clientsGone() int {
	servers := v.trial.Setup.Server.ReplicaNames()
	n := 0
	for _, e := range v.obs.Events {
		if e.Kind == lab.ClientGone && slices.Contains(servers, e.Node) {
			n++
		}
	}
	return n
}
