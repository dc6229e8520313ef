package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"retrylab/internal/lab"
)

// Focus returns the id of the configuration whose picture says most: the one with the most harm,
// else the one with the most effects that came late, else the first.
func Focus(results []lab.Result) string {
	best, score := "", -1
	for _, r := range results {
		if s := 10*harm(r.Counts) + min(r.Counts.Late, 9); s > score {
			best, score = r.ID, s
		}
	}
	return best
}

// Conclude says in a sentence or two what the configuration called focus came to, and the one
// called remedy, where there is one. It speaks of what was measured, held or not.
func Conclude(results []lab.Result, focus, remedy, currency string) string {
	r := conclusive(results, focus)
	if r == nil {
		return "Nothing was shown: no configuration came to a conclusion."
	}
	text := incident(r, currency)
	if cure := conclusive(results, remedy); cure != nil {
		if harm(r.Counts) > 0 {
			text += fmt.Sprintf(" %s in %q.", right(cure, r, currency), cure.Configuration)
		} else {
			text += fmt.Sprintf(" %d in %q.", cure.Counts.Arrivals, cure.Configuration)
		}
	}
	return text
}

// conclusive returns the first conclusive result of a configuration, nil without one.
func conclusive(results []lab.Result, id string) *lab.Result {
	for i := range results {
		if results[i].ID == id && results[i].Verdict != lab.Inconclusive {
			return &results[i]
		}
	}
	return nil
}

func incident(r *lab.Result, currency string) string {
	if harm(r.Counts) > 0 {
		text := fmt.Sprintf("%s in %q", damage(r, currency), r.Configuration)
		if r.Verdict == lab.AsExpected {
			text += ": the incident is reproduced"
		}
		return text + "."
	}
	if r.Counts.Arrivals > r.Counts.Wanted {
		return fmt.Sprintf("%s arrived for %s in %q.", plural(r.Counts.Arrivals, "request"), plural(r.Counts.Wanted, "intent"), r.Configuration)
	}
	return fmt.Sprintf("%s for %s in %q.", plural(r.Counts.Effects, "order"), plural(r.Counts.Wanted, "intent"), r.Configuration)
}

// harm orders counts by how bad they are for the one whose intents they are: what was done twice
// before what was lost, and that before what was believed wrongly.
func harm(c lab.Counts) int {
	return 10_000*(c.Duplicates+c.LedgerDuplicates) + 100*c.Lost + c.FalseFailures
}

func damage(r *lab.Result, currency string) string {
	c := r.Counts
	switch {
	case c.Duplicates > 0 && currency != "":
		return fmt.Sprintf("%s instead of %s", amount(currency, c.Amount), amount(currency, c.Amount/int64(c.Effects)*int64(c.Wanted)))
	case c.Duplicates > 0:
		return fmt.Sprintf("%s for %s", plural(c.Effects, "order"), plural(c.Wanted, "intent"))
	case c.LedgerDuplicates > 0:
		l := worst(r)
		return fmt.Sprintf("%d %s for %s", l.Entries, l.Name, plural(c.Wanted, "intent"))
	case c.Lost > 0:
		return fmt.Sprintf("%s believed done without an order", plural(c.Lost, "intent"))
	}
	return fmt.Sprintf("%s believed failed though its order exists", plural(c.FalseFailures, "intent"))
}

// worst is the ledger with the most entries that nobody wanted.
func worst(r *lab.Result) lab.Ledger {
	return slices.MaxFunc(r.Ledgers, func(a, b lab.Ledger) int { return cmp.Compare(a.Duplicates, b.Duplicates) })
}

// right is what a configuration comes to that is held against an incident.
func right(cure, incident *lab.Result, currency string) string {
	c := cure.Counts
	if incident.Counts.Duplicates == 0 && incident.Counts.LedgerDuplicates > 0 {
		name := worst(incident).Name
		if i := slices.IndexFunc(cure.Ledgers, func(l lab.Ledger) bool { return l.Name == name }); i >= 0 {
			return strconv.Itoa(cure.Ledgers[i].Entries)
		}
	}
	if currency != "" {
		return amount(currency, c.Amount)
	}
	return plural(c.Effects, "order")
}

func amount(currency string, minor int64) string {
	if minor%100 == 0 {
		return fmt.Sprintf("%s%d", currency, minor/100)
	}
	return fmt.Sprintf("%s%d.%02d", currency, minor/100, minor%100)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
