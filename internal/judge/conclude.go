package judge

import (
	"fmt"

	"retrylab/internal/lab"
)

// Focus returns the id of the configuration whose picture says most: the one with the most
// effects too many, else the one where an effect was lost or came late, else the first.
func Focus(results []lab.Result) string {
	best, score := "", -1
	for _, r := range results {
		if s := 10*harm(r.Counts) + min(r.Counts.Late, 9); s > score {
			best, score = r.ID, s
		}
	}
	return best
}

// Conclude says in a sentence or two what a scenario's numbers came to. It speaks of what was
// measured, held or not.
func Conclude(results []lab.Result, currency string) string {
	if len(results) == 0 {
		return ""
	}
	var worst, fixed *lab.Result
	for i := range results {
		r := &results[i]
		if r.Verdict == lab.Inconclusive {
			continue
		}
		if worst == nil || harm(r.Counts) > harm(worst.Counts) {
			worst = r
		}
	}
	if worst == nil {
		return "Nothing was shown: no configuration came to a conclusion."
	}
	if harm(worst.Counts) == 0 {
		return arrivals(results)
	}
	for i := range results {
		r := &results[i]
		if r.Verdict != lab.Inconclusive && harm(r.Counts) == 0 && r.Counts.Effects == r.Counts.Wanted && protected(*r) {
			fixed = r
			break
		}
	}
	text := fmt.Sprintf("%s in %q", damage(worst.Counts, currency), worst.Configuration)
	if worst.Verdict == lab.AsExpected {
		text += ": the incident is reproduced"
	}
	text += "."
	if fixed != nil {
		text += fmt.Sprintf(" %s in %q.", right(fixed.Counts, currency), fixed.Configuration)
	}
	return text
}

// arrivals says how much was sent where no effect came of it that should not have.
func arrivals(results []lab.Result) string {
	most, least := &results[0], &results[0]
	for i := range results {
		if results[i].Counts.Arrivals > most.Counts.Arrivals {
			most = &results[i]
		}
		if results[i].Counts.Arrivals < least.Counts.Arrivals {
			least = &results[i]
		}
	}
	if most.Amplification <= 1 {
		return fmt.Sprintf("No intent was done twice, and none was lost, in %s.", all(len(results)))
	}
	text := fmt.Sprintf("%s arrived for %s in %q.", plural(most.Counts.Arrivals, "request"), plural(most.Counts.Wanted, "intent"), most.Configuration)
	if least.Counts.Arrivals < most.Counts.Arrivals {
		text += fmt.Sprintf(" %d in %q.", least.Counts.Arrivals, least.Configuration)
	}
	return text
}

// protected reports whether a configuration claims to be a fix: an invariant stands on it.
func protected(r lab.Result) bool {
	for _, c := range r.Checks {
		if c.Kind == "invariant" {
			return c.Held
		}
	}
	return false
}

// harm orders counts by how bad they are for the one whose intents they are: what was done twice
// before what was lost, and that before what was believed wrongly.
func harm(c lab.Counts) int { return 10_000*c.Duplicates + 100*c.Lost + c.FalseFailures }

func damage(c lab.Counts, currency string) string {
	switch {
	case c.Duplicates > 0 && currency != "":
		return fmt.Sprintf("%s instead of %s", amount(currency, c.Amount), amount(currency, c.Amount/int64(c.Effects)*int64(c.Wanted)))
	case c.Duplicates > 0:
		return fmt.Sprintf("%s for %s", plural(c.Effects, "order"), plural(c.Wanted, "intent"))
	case c.Lost > 0:
		return fmt.Sprintf("%s believed done without an order", plural(c.Lost, "intent"))
	}
	return fmt.Sprintf("%s believed failed though its order exists", plural(c.FalseFailures, "intent"))
}

func right(c lab.Counts, currency string) string {
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

func all(n int) string {
	if n == 1 {
		return "the one configuration"
	}
	return fmt.Sprintf("all %d configurations", n)
}
