package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Layer is one retry loop with every setting resolved. It has no state: the loop that uses it keeps
// the outcomes of its tries and asks [Layer.Next] after each.
type Layer struct {
	Name   string // in paths and reports
	Preset string // the name of the preset that it was made from

	// Attempts is how many tries the layer makes at most, the first one counted. 0 is no limit of its
	// own: the rules end the loop (Go's transport, until a connection is fresh; a proxy, see Peers).
	Attempts int

	// Limit is how the original names Attempts, for reasons: "maxAttempts 3".
	Limit string

	// PerInstance is how many tries in a row go to the same instance before the next one is chosen.
	// 0 means that the layer knows nothing of instances.
	PerInstance int

	// Peers makes the tries count as nginx counts them: each server of Outcome.Instances is tried once,
	// and at most Attempts when that is not 0. An error on a cached (reused) connection costs no try, so
	// a single server is tried again; of several, none is tried twice.
	Peers bool

	Rules        []Rule        // the decision list; the first that matches decides, none means no retry
	Waits        Waits         // the wait before each retry, unless a rule has its own
	Timeout      time.Duration // limit of each try, inner tries included; 0 is none. Kept by the loop, not by Next
	Total        time.Duration // limit over all tries and waits; 0 is none. Kept by the loop, not by Next
	Window       time.Duration // after so long a failed try is not followed by another; 0 is none
	ResendsEmpty bool          // a streamed body is sent again without its content. Kept by the loop
	Idle         int           // idle connections in the pool at the start. Kept by the transport, not by Next

	Budget *Budget // bounds the retries of all calls together; nil for none. Kept by the loop

	// FreeWhenPaced does not count a try that was answered 429 or 503 with a Retry-After which a rule
	// honours: it was the server that asked for the next one.
	FreeWhenPaced bool

	// PastDeadline goes on when a limit around the layer is over, as one does that looks at its own
	// limits alone. To it each further try is one that failed at once. Kept by the loop.
	PastDeadline bool

	// Hedge starts a further try so long after the one before, whatever has become of that, while none
	// has succeeded. 0 is a loop in which one try follows the other. Kept by the loop.
	Hedge  time.Duration
	Losers string // what becomes of the other tries of a hedge: FinishLosers or CancelLosers

	MaxFails    int           // failures that take a server out, 0 for never. Kept by the hop, not by Next
	FailTimeout time.Duration // the time in which they are counted, and for which it is out. Kept by the hop
}

// Next decides what to do after a try. The outcomes are those of all tries of this layer in the
// current call, in order; the last is the newest. u in [0, 1) chooses within the jitter. The same
// arguments give the same decision, and nothing is changed.
//
// The caller of Next must have retried after every outcome but the last: the rules count by it.
func (l Layer) Next(tries []Outcome, u float64) Decision {
	if len(tries) == 0 {
		return Decision{Reason: "nothing was tried yet"}
	}
	last := tries[len(tries)-1]
	switch {
	case last.Succeeded():
		return Decision{Reason: last.trigger() + " is a success"}
	case last.CallerGone:
		return Decision{Reason: "whoever asked has gone"}
	case last.Failure == TotalTimeout:
		return Decision{Reason: "the total limit is spent"}
	case len(l.Rules) == 0:
		return Decision{Reason: l.never()}
	}

	chosen, objection := l.choose(last)
	if chosen < 0 {
		return Decision{Reason: objection}
	}
	rule := &l.Rules[chosen]
	if used := l.usedUp(rule, chosen, tries); used != "" {
		return Decision{Reason: used}
	}
	if l.Window > 0 && last.Elapsed >= l.Window {
		return Decision{Reason: fmt.Sprintf("no try begins later than %v after the first", l.Window)}
	}
	if spent := l.spent(tries); spent != "" {
		return Decision{Reason: spent}
	}
	wait, note := l.wait(rule, last, len(tries), u)
	switch {
	case rule.WaitWithinTimeout && last.Timeout > 0 && wait > last.Timeout:
		return Decision{Reason: fmt.Sprintf("the wait of %v is longer than the response timeout of %v", wait, last.Timeout)}
	case rule.WaitWithinTotal && last.Remaining > 0 && wait >= last.Remaining:
		return Decision{Reason: fmt.Sprintf("the wait of %v does not fit into the %v that are left", wait, last.Remaining.Round(time.Millisecond))}
	}
	move := l.PerInstance > 0 && len(tries)%l.PerInstance == 0
	return Decision{Retry: true, Wait: wait, Move: move, Reason: l.retryReason(last, len(tries), move, note)}
}

// never is the reason of a layer without rules.
func (l Layer) never() string {
	if l.Limit != "" {
		return l.Limit
	}
	return "nothing is retried"
}

// choose returns the index of the first rule that matches o, or -1 and every objection to it.
func (l Layer) choose(o Outcome) (int, string) {
	var objections []string
	for i := range l.Rules {
		rule := &l.Rules[i]
		if !rule.triggered(o) {
			continue
		}
		objection := rule.objection(o)
		if objection == "" {
			return i, ""
		}
		if !slices.Contains(objections, objection) {
			objections = append(objections, objection)
		}
	}
	if len(objections) == 0 {
		return -1, o.trigger() + " is not retried"
	}
	return -1, strings.Join(objections, "; ")
}

// usedUp says that the rule at index chosen has been used as often as it may be, or "".
func (l Layer) usedUp(rule *Rule, chosen int, tries []Outcome) string {
	earlier := tries[:len(tries)-1]
	if rule.NotInARow && len(earlier) > 0 {
		if before, _ := l.choose(earlier[len(earlier)-1]); before == chosen {
			return tries[len(tries)-1].trigger() + " twice in a row is not retried"
		}
	}
	if rule.Max > 0 {
		used := 0
		for _, o := range earlier {
			if i, _ := l.choose(o); i == chosen {
				used++
			}
		}
		if used >= rule.Max {
			return fmt.Sprintf("%s is retried at most %d times", tries[len(tries)-1].trigger(), rule.Max)
		}
	}
	return ""
}

// spent says that the tries are used up, or "".
func (l Layer) spent(tries []Outcome) string {
	limit := l.Limit
	if limit == "" {
		limit = fmt.Sprintf("attempts %d", l.Attempts)
	}
	if !l.Peers {
		switch {
		case l.Attempts > 0 && len(tries)-l.free(tries) >= l.Attempts:
			return limit + " reached"
		case l.Attempts > 0 && len(tries) >= MaxAttempts: // all of them free: it goes on for ever
			return fmt.Sprintf("%d tries made", MaxAttempts)
		}
		return ""
	}
	servers := max(tries[len(tries)-1].Instances, 1)
	cost := 0
	for _, o := range tries {
		if !(o.Reused && (o.Failure == EOF || o.Failure == Reset)) {
			cost++
		}
	}
	switch {
	case servers > 1 && len(tries) >= servers, cost >= servers:
		return "no server is left to try"
	case l.Attempts > 0 && cost >= l.Attempts:
		return limit + " reached"
	}
	return ""
}

// free counts the tries that do not count.
func (l Layer) free(tries []Outcome) (n int) {
	if !l.FreeWhenPaced {
		return 0
	}
	for _, o := range tries {
		i, _ := l.choose(o)
		if i >= 0 && l.Rules[i].HonourRetryAfter && o.HasRetryAfter && (o.Status == 429 || o.Status == 503) {
			n++
		}
	}
	return n
}

// Lasts reports whether a hedge waits on after a try that ended with o: it neither succeeded nor
// failed in a way that no further try can mend.
func (l Layer) Lasts(o Outcome) bool {
	rule, _ := l.choose(o)
	return rule >= 0 && !o.CallerGone
}

// Settle settles a try that ended with out with the account of the layer's retry budget: it returns
// what the decision about it comes to, and what was paid for the next try, after paid for this one.
func (l Layer) Settle(a *Account, out Outcome, d Decision, paid float64) (float64, Decision) {
	switch {
	case out.Succeeded():
		a.Succeed(paid)
	case l.Lasts(out):
		a.Fail(out)
	}
	if !d.Retry {
		return paid, d
	}
	paid, ok := a.Pay(out)
	if !ok {
		return 0, Decision{Reason: BudgetSpent}
	}
	return paid, d
}

// wait returns the wait before retry number n by rule, and a note on where it comes from.
func (l Layer) wait(rule *Rule, last Outcome, n int, u float64) (time.Duration, string) {
	waits := l.Waits
	if rule.Wait != nil {
		waits = *rule.Wait
	}
	own := waits.Before(n, last.Waited, u)
	if !rule.HonourRetryAfter || !last.HasRetryAfter || rule.IgnoreZeroAfter && last.RetryAfter <= 0 {
		return own, ""
	}
	asked := min(max(last.RetryAfter, 0), Forever)
	switch {
	case rule.RetryAfterAtLeast && asked <= own:
		return own, ""
	case rule.RetryAfterCap > 0 && asked > rule.RetryAfterCap:
		return rule.RetryAfterCap, fmt.Sprintf(" (Retry-After %v, cut)", asked)
	}
	return asked, " (Retry-After)"
}

// retryReason says what is retried, where and as which try.
func (l Layer) retryReason(last Outcome, n int, move bool, note string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is retried: try %d", last.trigger(), n+1)
	if l.Attempts > 0 && !l.Peers && !l.FreeWhenPaced {
		fmt.Fprintf(&b, " of %d", l.Attempts)
	}
	if move {
		b.WriteString(", next instance")
	}
	b.WriteString(note)
	return b.String()
}
