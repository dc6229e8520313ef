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
	cure := conclusive(results, remedy)
	switch {
	case r.Series != nil && (r.Series.Recovery != nil || harm(r.Counts) == 0):
		return overTime(r, cure)
	case harm(r.Counts) == 0:
		return harmless(r, cure)
	}
	text := fmt.Sprintf("%s in %q", damage(r, currency), r.Configuration)
	if r.Verdict == lab.AsExpected {
		text += ": the incident is reproduced"
	}
	text += "."
	if cure != nil {
		text += fmt.Sprintf(" %s in %q.", right(cure, r, currency), cure.Configuration)
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

// harmless is about a configuration that did no harm: what of it the other one has not, or how many requests it
// made of an intent. The other may be nil.
func harmless(r, cure *lab.Result) string {
	c := r.Counts
	orders := fmt.Sprintf("%s for %s in %q", lab.Count(c.Effects, "order"), lab.Count(c.Wanted, "intent"), r.Configuration)
	if cure == nil {
		cure = r
	}
	var text, other string
	switch {
	case cure.Counts.Effects > c.Effects:
		text, other = orders, strconv.Itoa(cure.Counts.Effects)+ofOther(cure, r)
	case cure.Counts.Late < c.Late:
		text, other = orders+", after its caller was done", strconv.Itoa(cure.Counts.Late)+ofOther(cure, r)
	case 10*cure.CallerDoneMs <= 9*r.CallerDoneMs && cure != r && (c.Arrivals <= c.Wanted || cure.Counts.Arrivals == c.Arrivals):
		text, other = fmt.Sprintf("%s of waiting in %q", waited(r), r.Configuration), waited(cure)
	case c.Arrivals > c.Wanted:
		text = fmt.Sprintf("%s arrived for %s in %q", lab.Count(c.Arrivals, "request"), intents(c), r.Configuration)
		other = strconv.Itoa(cure.Counts.Arrivals) + ofOther(cure, r)
	default:
		text, other = orders, strconv.Itoa(cure.Counts.Effects)+ofOther(cure, r)
	}
	if cure == r {
		return text + "."
	}
	return fmt.Sprintf("%s. %s in %q.", text, other, cure.Configuration)
}

// overTime is about the counts over time of a configuration: whether the goodput has recovered, else
// the peak. The other may be nil.
func overTime(r, cure *lab.Result) string {
	says := func(r *lab.Result) string {
		s := r.Series
		switch {
		case s.Recovery == nil:
			after := ""
			if s.PeakAfterMs > 0 {
				after = ", the first " + lab.FromMillis(s.PeakAfterMs).String() + " left out,"
			}
			return fmt.Sprintf("%s within %s at the most%s in %q.", lab.Count(s.PeakStarts, "send"), s.Window(), after, r.Configuration)
		case s.Recovery.Recovered:
			return fmt.Sprintf("Back %s after the end of the disturbance in %q.", lab.Clock(lab.FromMillis(s.Recovery.AfterMs)), r.Configuration)
		}
		return fmt.Sprintf("The disturbance is over and the goodput stays at %s operations a second in %q.", decimal(s.Recovery.GoodputPerS), r.Configuration)
	}
	if cure == nil || cure.Series == nil {
		return says(r)
	}
	return says(r) + " " + says(cure)
}

// intents says for how much something was done: a read wants no order.
func intents(c lab.Counts) string {
	if c.Wanted == 0 {
		return lab.Count(c.Operations, "read")
	}
	return lab.Count(c.Wanted, "intent")
}

// harm orders counts by how bad they are for the one whose intents they are: what was done twice
// before what was lost, and that before what was believed wrongly.
func harm(c lab.Counts) int {
	return 10_000*(c.Duplicates+c.LedgerDuplicates+c.LostUpdates) + 100*c.Lost + c.FalseFailures
}

func damage(r *lab.Result, currency string) string {
	c := r.Counts
	switch {
	case c.Duplicates > 0 && currency != "":
		return fmt.Sprintf("%s instead of %s", amount(currency, c.Amount), amount(currency, c.Amount/int64(c.Effects)*int64(c.Wanted)))
	case c.Duplicates > 0:
		return fmt.Sprintf("%s for %s", lab.Count(c.Effects, "order"), lab.Count(c.Wanted, "intent"))
	case c.LedgerDuplicates > 0:
		l := worst(r)
		return fmt.Sprintf("%d %s for %s", l.Entries, l.Name, lab.Count(c.Wanted, "intent"))
	case c.LostUpdates > 0:
		return fmt.Sprintf("%s, and the %s is %s", lab.Count(c.Effects, "order"), r.State.Row, r.State)
	case c.Lost > 0:
		return fmt.Sprintf("%s believed done without an order", lab.Count(c.Lost, "intent"))
	}
	return fmt.Sprintf("%s believed failed though its order exists", lab.Count(c.FalseFailures, "intent"))
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
	if incident.Counts.LostUpdates > 0 && cure.State != nil {
		return fmt.Sprintf("%s and %s", lab.Count(c.Effects, "order"), cure.State)
	}
	if currency != "" {
		return amount(currency, c.Amount)
	}
	return lab.Count(c.Effects, "order") + ofOther(cure, incident)
}

// ofOther says for how many intents something is, where they are not as many as those it is held against.
func ofOther(r, against *lab.Result) string {
	if r.Counts.Wanted == against.Counts.Wanted {
		return ""
	}
	return " for " + intents(r.Counts)
}

func amount(currency string, minor int64) string {
	if minor%100 == 0 {
		return fmt.Sprintf("%s%d", currency, minor/100)
	}
	return fmt.Sprintf("%s%d.%02d", currency, minor/100, minor%100)
}

func waited(r *lab.Result) string {
	return lab.Clock(lab.FromMillis(r.CallerDoneMs))
}
