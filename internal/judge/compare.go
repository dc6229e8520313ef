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
	// told says what b is against a, which it differs from.
	told func(a, b int) string
}

// callerDone is the metric whose number is a time.
const callerDone = "caller done"

// metrics are what a comparison speaks of, in its order.
var metrics = []metric{
	{"sends", func(r *lab.Result) int { return r.Counts.Sends }, ratio("sends")},
	{"arrivals", func(r *lab.Result) int { return r.Counts.Arrivals }, ratio("arrivals")},
	{"orders", func(r *lab.Result) int { return r.Counts.Effects }, more("order")},
	{"orders when the caller was done", func(r *lab.Result) int { return r.Counts.EffectsWhenCallerDone }, nil},
	{"lost", func(r *lab.Result) int { return r.Counts.Lost }, instead("lost orders")},
	{"entries too many", func(r *lab.Result) int { return r.Counts.LedgerDuplicates }, instead("entries too many")},
	{"lost updates", func(r *lab.Result) int { return r.Counts.LostUpdates }, instead("lost updates")},
	{"ok", func(r *lab.Result) int { return r.Beliefs.OK }, nil},
	{"failed", func(r *lab.Result) int { return r.Beliefs.Failed }, nil},
	{"unknown", func(r *lab.Result) int { return r.Beliefs.Unknown }, nil},
	{callerDone, func(r *lab.Result) int { return int(r.CallerDoneMs) }, func(a, b int) string {
		return fmt.Sprintf("the caller is done after %s instead of %s", seconds(lab.FromMillis(int64(b))), seconds(lab.FromMillis(int64(a))))
	}},
}

// ratio tells one: 3.0× arrivals.
func ratio(what string) func(a, b int) string {
	return func(a, b int) string {
		if a == 0 || b == 0 {
			return fmt.Sprintf("%d %s instead of %d", b, what, a)
		}
		return fmt.Sprintf("%.1f× %s", float64(b)/float64(a), what)
	}
}

// more tells a difference: 2 orders more.
func more(what string) func(a, b int) string {
	return func(a, b int) string {
		if b > a {
			return plural(b-a, what) + " more"
		}
		return plural(a-b, what) + " fewer"
	}
}

// instead tells both numbers.
func instead(what string) func(a, b int) string {
	return func(a, b int) string { return fmt.Sprintf("%s: %d instead of %d", what, b, a) }
}

// differences says what b is against a. Where seeds make ranges of a number, it is told as a range, with ≈ where
// the two overlap.
func differences(a, b []lab.Result) []string {
	out := []string{}
	if first, second := belief(a), belief(b); first != second {
		out = append(out, fmt.Sprintf("believes %s instead of %s", second, first))
	}
	for _, m := range metrics {
		if m.told == nil {
			continue
		}
		lowA, highA := spread(a, m.of)
		lowB, highB := spread(b, m.of)
		switch {
		case lowA == lowB && highA == highB:
		case lowA == highA && lowB == highB:
			out = append(out, m.told(lowA, lowB))
		case highA < lowB || highB < lowA:
			out = append(out, fmt.Sprintf("%s: %s instead of %s", m.name, m.between(lowB, highB), m.between(lowA, highA)))
		default:
			out = append(out, fmt.Sprintf("%s: ≈ (%s and %s)", m.name, m.between(lowB, highB), m.between(lowA, highA)))
		}
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
	if m.name == callerDone {
		return seconds(lab.FromMillis(int64(n)))
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

// Changes says what is different between two results of a suite, trial by trial. Trials are told apart by scenario,
// configuration and seed.
func Changes(before, after *lab.Document) *lab.Comparison {
	c := &lab.Comparison{Settings: []lab.Contrast{}, Rows: []lab.ComparedRow{}, Changes: []lab.Change{}}
	type key struct {
		scenario, id string
		seed         int64
	}
	keyOf := func(r *lab.Result) key { return key{r.Scenario, r.ID, r.Seed} }
	was := map[key]*lab.Result{}
	for i := range before.Results {
		was[keyOf(&before.Results[i])] = &before.Results[i]
	}
	note := func(k key, what ...string) {
		c.Changes = append(c.Changes, lab.Change{Scenario: k.scenario, ID: k.id, Seed: k.seed, What: what})
	}
	is := map[key]bool{}
	for i := range after.Results {
		r := &after.Results[i]
		k := keyOf(r)
		is[k] = true
		old, known := was[k]
		if !known {
			note(k, "it is new")
			continue
		}
		c.Compared++
		if what := changed(old, r); len(what) > 0 {
			note(k, what...)
		}
	}
	for i := range before.Results {
		if k := keyOf(&before.Results[i]); !is[k] {
			note(k, "it is not there any more")
		}
	}
	return c
}

// changed lists the numbers and words of a trial that are not what they were.
func changed(old, r *lab.Result) []string {
	var out []string
	add := func(name, a, b string) {
		if a != b {
			out = append(out, fmt.Sprintf("%s: %s, was %s", name, b, a))
		}
	}
	for _, m := range metrics {
		add(m.name, m.show(m.of(old)), m.show(m.of(r)))
	}
	add("settled", seconds(lab.FromMillis(old.SettledMs)), seconds(lab.FromMillis(r.SettledMs)))
	add("reasons", strings.Join(old.Reasons, ", "), strings.Join(r.Reasons, ", "))
	add("verdict", told(old.Verdict), told(r.Verdict))
	for _, c := range r.Checks {
		i := slices.IndexFunc(old.Checks, func(o lab.Check) bool { return o.Kind == c.Kind && o.Name == c.Name })
		if i >= 0 && old.Checks[i].Held != c.Held {
			add(c.Kind+" "+c.Name, held(old.Checks[i].Held), held(c.Held))
		}
	}
	return out
}

func held(yes bool) string {
	if yes {
		return "held"
	}
	return "not held"
}

func told(v lab.Verdict) string { return strings.ReplaceAll(v.String(), "_", " ") }
