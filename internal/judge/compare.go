package judge

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"retrylab/internal/lab"
)

// Compared is a configuration as it takes part in a comparison: its results, one for each seed, and its settings
// as they are written.
type Compared struct {
	Results  []lab.Result
	Settings []lab.Setting
}

// Compare holds configurations against the first of them: the settings in which they differ, each once, and
// in words what came out otherwise. With seeds it also says which numbers hang on the seed.
func Compare(rows []Compared, seeds bool) *lab.Comparison {
	c := &lab.Comparison{Settings: contrasts(rows), Rows: []lab.ComparedRow{}}
	for i, row := range rows {
		first := row.Results[0]
		out := lab.ComparedRow{Scenario: first.Scenario, ID: first.ID, Differences: []string{}}
		if i > 0 {
			out.Differences = differences(rows[0].Results, row.Results)
		}
		if seeds {
			out.Varies = varies(row.Results)
		}
		c.Rows = append(c.Rows, out)
	}
	return c
}

// contrasts are the settings that are not the same in all rows, in the order in which they first stand.
func contrasts(rows []Compared) []lab.Contrast {
	out := []lab.Contrast{}
	at := map[string]int{}
	for i, row := range rows {
		for _, s := range row.Settings {
			k, known := at[s.Path]
			if !known {
				k = len(out)
				at[s.Path] = k
				out = append(out, lab.Contrast{Path: s.Path, Values: make([]string, len(rows))})
			}
			out[k].Values[i] = s.Value
		}
	}
	return slices.DeleteFunc(out, func(c lab.Contrast) bool {
		return !slices.ContainsFunc(c.Values, func(v string) bool { return v != c.Values[0] })
	})
}

// A metric is a number of a result that comparisons speak of.
type metric struct {
	name string
	of   func(r *lab.Result) int
	// told says what b is against a, which it differs from; nil where another difference says it already.
	told func(a, b int) string
	// ratio says that a factor tells more than a difference.
	ratio bool
	// belief says that it counts operations by belief, of which one has one.
	belief bool
	// implied reports that what else differs between the two says it already.
	implied func(a, b *lab.Result) bool
}

// callerDone is the metric whose number is a time.
const callerDone = "caller done"

// metrics are what a comparison speaks of, in its order.
var metrics = []metric{
	{name: "operations", of: func(r *lab.Result) int { return r.Counts.Operations }, told: instead("operations")},
	{name: "wanted", of: func(r *lab.Result) int { return r.Counts.Wanted }, told: instead("orders wanted"), implied: differs(operations)},
	{name: "sends", of: func(r *lab.Result) int { return r.Counts.Sends }, told: ratio("sends"), ratio: true},
	{name: "arrivals", of: func(r *lab.Result) int { return r.Counts.Arrivals }, told: ratio("arrivals"), ratio: true},
	{name: "lookups", of: func(r *lab.Result) int { return r.Counts.Lookups }, told: instead("lookups")},
	{name: "orders", of: effects, told: more("order")},
	{name: "orders too many", of: func(r *lab.Result) int { return r.Counts.Duplicates }, told: instead("orders too many"), implied: differs(effects)},
	{name: "orders when the caller was done", of: atEnd},
	{name: "late", of: func(r *lab.Result) int { return r.Counts.Late }, told: instead("late orders"), implied: differs(effects)},
	{name: "lost", of: func(r *lab.Result) int { return r.Counts.Lost }, told: instead("lost orders")},
	{name: "false failures", of: func(r *lab.Result) int { return r.Counts.FalseFailures }, told: instead("false failures")},
	{name: "entries too many", of: func(r *lab.Result) int { return r.Counts.LedgerDuplicates }, told: instead("entries too many")},
	{name: "lost updates", of: func(r *lab.Result) int { return r.Counts.LostUpdates }, told: instead("lost updates")},
	{name: "turned away", of: func(r *lab.Result) int { return r.Counts.TurnedAway }, told: instead("turned away")},
	{name: "amount", of: func(r *lab.Result) int { return int(r.Counts.Amount) }, told: func(a, b int) string {
		return fmt.Sprintf("amount: %s instead of %s", money(int64(b)), money(int64(a)))
	}, implied: sameForEach},
	{name: "ok", of: func(r *lab.Result) int { return r.Beliefs.OK }, belief: true},
	{name: "failed", of: func(r *lab.Result) int { return r.Beliefs.Failed }, belief: true},
	{name: "unknown", of: func(r *lab.Result) int { return r.Beliefs.Unknown }, belief: true},
	{name: callerDone, of: doneMs, told: func(a, b int) string {
		return fmt.Sprintf("the caller is done after %s instead of %s", lab.Clock(lab.FromMillis(int64(b))), lab.Clock(lab.FromMillis(int64(a))))
	}},
}

func operations(r *lab.Result) int { return r.Counts.Operations }
func effects(r *lab.Result) int    { return r.Counts.Effects }
func atEnd(r *lab.Result) int      { return r.Counts.EffectsWhenCallerDone }
func doneMs(r *lab.Result) int     { return int(r.CallerDoneMs) }

// differs is an implication of another number's being different.
func differs(of ...func(*lab.Result) int) func(a, b *lab.Result) bool {
	return func(a, b *lab.Result) bool {
		return slices.ContainsFunc(of, func(of func(*lab.Result) int) bool { return of(a) != of(b) })
	}
}

// sameForEach reports that there are more or fewer orders, of the same amount each.
func sameForEach(a, b *lab.Result) bool {
	return effects(a) != effects(b) && a.Counts.Amount*int64(effects(b)) == b.Counts.Amount*int64(effects(a))
}

// ratio tells one: 3.0× arrivals.
func ratio(what string) func(a, b int) string {
	return func(a, b int) string {
		if a == 0 || b == 0 {
			return fmt.Sprintf("%d %s instead of %d", b, what, a)
		}
		return factor(a, b) + " " + what
	}
}

// factor is what b is of a; neither is 0.
func factor(a, b int) string { return fmt.Sprintf("%.1f×", float64(b)/float64(a)) }

// more tells a difference: 2 orders more.
func more(what string) func(a, b int) string {
	return func(a, b int) string {
		if b > a {
			return lab.Count(b-a, what) + " more"
		}
		return lab.Count(a-b, what) + " fewer"
	}
}

// instead tells both numbers.
func instead(what string) func(a, b int) string {
	return func(a, b int) string { return fmt.Sprintf("%s: %d instead of %d", what, b, a) }
}

// differences says what b is against a. Where seeds make ranges of a number, it is told as a range, with ≈ where
// the two overlap. What is inconclusive has numbers that mean nothing: it is named, and not compared. Where no number
// tells the two apart, whatever else was measured does.
func differences(a, b []lab.Result) []string {
	known, of := certain(a), certain(b)
	switch {
	case len(of) == 0:
		return []string{"inconclusive: nothing is known of it"}
	case len(known) == 0:
		return []string{"there is nothing to hold it against: A is inconclusive"}
	}
	out := numbers(known, of)
	if len(out) == 0 {
		for i := range of {
			if i < len(known) && known[i].Seed == of[i].Seed {
				if out = measured(&known[i], &of[i], false); len(out) > 0 {
					break
				}
			}
		}
	}
	if out == nil {
		out = []string{}
	}
	for _, x := range []struct {
		name         string
		open, trials int
	}{{"A is ", len(a) - len(known), len(a)}, {"", len(b) - len(of), len(b)}} {
		if x.open > 0 {
			out = append(out, fmt.Sprintf("%sinconclusive in %d of %d seeds, which are left out", x.name, x.open, x.trials))
		}
	}
	return out
}

// certain are the results whose numbers mean something.
func certain(results []lab.Result) []lab.Result {
	return slices.DeleteFunc(slices.Clone(results), func(r lab.Result) bool { return r.Verdict == lab.Inconclusive || r.Uncounted })
}

// numbers says in which numbers b differs from a.
func numbers(a, b []lab.Result) []string {
	out := []string{}
	if first, second := belief(a), belief(b); first != second {
		out = append(out, fmt.Sprintf("believes %s instead of %s", second, first))
	}
	for _, m := range metrics {
		if m.told == nil || m.implied != nil && m.implied(&a[0], &b[0]) {
			continue
		}
		lowA, highA := spread(a, m.of)
		lowB, highB := spread(b, m.of)
		switch {
		case lowA == lowB && highA == highB:
		case lowA == highA && lowB == highB:
			out = append(out, m.told(lowA, lowB))
		case highA < lowB || highB < lowA:
			text := fmt.Sprintf("%s: %s instead of %s", m.name, m.between(lowB, highB), m.between(lowA, highA))
			if m.ratio && lowA > 0 && lowB > 0 {
				text += fmt.Sprintf(" (%.1f-%s)", float64(lowB)/float64(highA), factor(lowA, highB))
			}
			out = append(out, text)
		default:
			out = append(out, fmt.Sprintf("%s: ≈ (%s and %s)", m.name, m.between(lowB, highB), m.between(lowA, highA)))
		}
	}
	if len(a) == 1 && len(b) == 1 && !sameKeys(a[0].Answers, b[0].Answers) {
		out = append(out, fmt.Sprintf("answers: %s instead of %s", orNone(tally(b[0].Answers)), orNone(tally(a[0].Answers))))
	}
	return out
}

// spread is the least and the most of a number over seeds.
func spread(results []lab.Result, of func(*lab.Result) int) (low, high int) {
	for i := range results {
		n := of(&results[i])
		if i == 0 {
			low, high = n, n
		}
		low, high = min(low, n), max(high, n)
	}
	return low, high
}

// between tells a range of the metric.
func (m metric) between(low, high int) string {
	if low == high {
		return m.show(low)
	}
	return m.show(low) + "-" + m.show(high)
}

// show writes a value of the metric.
func (m metric) show(n int) string {
	switch m.name {
	case callerDone:
		return lab.Clock(lab.FromMillis(int64(n)))
	case "amount":
		return money(int64(n))
	}
	return strconv.Itoa(n)
}

// belief is what the callers believe in the end, over all seeds: one word where they agree.
func belief(results []lab.Result) string {
	var b lab.Beliefs
	for _, r := range results {
		b.OK += r.Beliefs.OK
		b.Failed += r.Beliefs.Failed
		b.Unknown += r.Beliefs.Unknown
	}
	var words []string
	for _, w := range []struct {
		n    int
		word string
	}{{b.OK, "ok"}, {b.Failed, "failed"}, {b.Unknown, "unknown"}} {
		if w.n > 0 {
			words = append(words, w.word)
		}
	}
	return strings.Join(words, " and ")
}

// maxValues is how many values of a number are told one by one.
const maxValues = 3

// varies says which numbers of a configuration hang on the seed, and how often each comes.
func varies(results []lab.Result) []string {
	out := []string{}
	for _, m := range metrics {
		seen := map[int]int{}
		for i := range results {
			seen[m.of(&results[i])]++
		}
		if len(seen) == 1 {
			continue
		}
		values := slices.Sorted(maps.Keys(seen))
		if len(values) > maxValues {
			out = append(out, fmt.Sprintf("%s: from %s to %s", m.name, m.show(values[0]), m.show(values[len(values)-1])))
			continue
		}
		slices.SortStableFunc(values, func(a, b int) int { return seen[b] - seen[a] })
		var parts []string
		for _, v := range values {
			parts = append(parts, fmt.Sprintf("%s in %d", m.show(v), seen[v]))
		}
		out = append(out, m.name+": "+strings.Join(parts, ", "))
	}
	return out
}
