package judge

import (
	"fmt"
	"strconv"
	"strings"

	"retrylab/internal/lab"
	"retrylab/scenarios"
)

// Accept returns what the configuration of a result would have to expect for everything that was measured to be
// right: other values for what did not hold, and, where the file expects nothing of it, the counts that tell most.
// It is false where there is nothing to accept.
func Accept(r lab.Result) (scenarios.Accepted, bool) {
	a := scenarios.Accepted{ID: r.ID}
	if r.Verdict == lab.Inconclusive {
		return a, false
	}
	expects := false
	for _, c := range r.Checks {
		if c.Kind != "expect" {
			continue
		}
		expects = true
		if !c.Held {
			a.Values = append(a.Values, accepted(r, c)...)
		}
	}
	if !expects {
		whole := func(name string, n int) {
			a.Values = append(a.Values, scenarios.Change{Path: name, Value: strconv.Itoa(n)})
		}
		whole("sends", r.Counts.Sends)
		whole("arrivals", r.Counts.Arrivals)
		whole("effects", r.Counts.Effects)
		whole("effects-when-caller-done", r.Counts.EffectsWhenCallerDone)
		a.Values = append(a.Values, beliefOf(r))
	}
	return a, len(a.Values) > 0
}

// accepted is the value that a check which did not hold would have to expect, in the form of its key.
func accepted(r lab.Result, c lab.Check) []scenarios.Change {
	value := c.Actual
	switch c.Name {
	case "belief":
		if now := beliefOf(r); now.Path != "belief" { // they differ by now
			return []scenarios.Change{{Path: "belief"}, now}
		}
	case "beliefs":
		return []scenarios.Change{{Path: "beliefs", Value: allBeliefs(r)}}
	case "answers", "ledgers", "sends-by", "arrivals-at":
		value = "{" + value + "}"
	case "reason", "state", "belief-when-caller-done":
		value = quoted(value)
	}
	return []scenarios.Change{{Path: c.Name, Value: value}}
}

// beliefOf is what all operations believe, or how many believe what.
func beliefOf(r lab.Result) scenarios.Change {
	for belief, n := range map[string]int{"ok": r.Beliefs.OK, "failed": r.Beliefs.Failed, "unknown": r.Beliefs.Unknown} {
		if n == r.Counts.Operations {
			return scenarios.Change{Path: "belief", Value: belief}
		}
	}
	return scenarios.Change{Path: "beliefs", Value: allBeliefs(r)}
}

func allBeliefs(r lab.Result) string {
	return fmt.Sprintf("{ok: %d, failed: %d, unknown: %d}", r.Beliefs.OK, r.Beliefs.Failed, r.Beliefs.Unknown)
}

// quoted writes a line of text so that YAML takes it for one.
func quoted(text string) string {
	plain := strings.IndexFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(" -_.", r))
	}) < 0
	if plain && text != "" && !strings.HasPrefix(text, "-") {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}
