package classroom

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"retrylab/internal/lab"
)

// crowd is from how many wanted orders on a prediction is right when it is near: nobody guesses a load to the
// last order.
const crowd = 20

// asked is the number that is to be predicted, and of what: the orders, and where there can be none the
// requests that arrive.
func asked(r *lab.Result) (n int, noun string) {
	if r.Counts.Wanted == 0 && r.Counts.Effects == 0 {
		return r.Counts.Arrivals, "arrival"
	}
	return r.Counts.Effects, "order"
}

// Right reports whether a prediction came true. Of many it need only be near: within a tenth.
func Right(said int, r *lab.Result) bool {
	n, _ := asked(r)
	if max(r.Counts.Wanted, r.Counts.Operations) < crowd {
		return said == n
	}
	return 10*abs(said-n) <= n
}

func abs(n int) int { return max(n, -n) }

// Answer holds a prediction against what came out; a negative one was not made.
func Answer(said int, r *lab.Result) string {
	n, noun := asked(r)
	there := orders(r.Counts)
	if noun == "arrival" {
		there = lab.Count(n, noun) + " at the order service."
	}
	switch {
	case r.Uncounted:
		return "Nothing was counted: the trial broke."
	case said < 0:
		return there
	case said == n:
		return "Right: " + there
	case Right(said, r):
		return fmt.Sprintf("Near enough, with %d: %s", said, there)
	}
	return fmt.Sprintf("Not %d: %s", said, there)
}

// Hints help to predict without telling what comes out: the first says what the service sees, the second when.
func Hints(r *lab.Result) []string {
	c := r.Counts
	if r.Uncounted {
		return nil
	}
	hints := []string{fmt.Sprintf("%s, %s, %s at the order service.", lab.Count(c.Operations, "operation"), lab.Count(c.Sends, "send"), lab.Count(c.Arrivals, "arrival"))}
	if _, noun := asked(r); noun == "arrival" {
		hints[0] = fmt.Sprintf("%s, %s.", lab.Count(c.Operations, "operation"), lab.Count(c.Sends, "send"))
	}
	if len(r.Events) == 0 {
		return hints
	}
	gaveUp, first := gaveUp(r)
	switch {
	case c.Operations == 1 && gaveUp > 0:
		hints = append(hints, fmt.Sprintf("The caller stops waiting %s, first at %s, and is done at %s.", times(gaveUp), lab.Clock(lab.FromMillis(first)), lab.Clock(lab.FromMillis(r.CallerDoneMs))))
	case c.Operations == 1:
		hints = append(hints, fmt.Sprintf("The caller is done at %s, and nothing happens after %s.", lab.Clock(lab.FromMillis(r.CallerDoneMs)), lab.Clock(lab.FromMillis(last(r)))))
	}
	return hints
}

// gaveUp counts the sends of the caller that ended by a time-out.
func gaveUp(r *lab.Result) (n int, firstMs int64) {
	callers := map[string]bool{}
	for _, node := range r.Nodes {
		callers[node.Name] = node.Role == "caller"
	}
	for _, e := range r.Events {
		if e.Kind == lab.Timeout && callers[e.Node] {
			if n++; n == 1 {
				firstMs = lab.Millis(e.At)
			}
		}
	}
	return n, firstMs
}

func last(r *lab.Result) (ms int64) {
	for _, e := range r.Events {
		if e.Kind != lab.Settled {
			ms = max(ms, lab.Millis(e.At))
		}
	}
	return ms
}

// fate is what became of one request at the order service.
type fate struct {
	commits, status int
	replayed        bool
	fault, deaf     bool
}

// fates are those of every request that arrived there, in order.
func fates(r *lab.Result) []*fate {
	servers := map[string]bool{}
	for _, node := range r.Nodes {
		servers[node.Name] = node.Role == "server"
	}
	type route struct{ node, path string }
	byRoute := map[route]*fate{}
	var out []*fate
	for _, e := range r.Events {
		at := route{e.Node, e.Path()}
		f := byRoute[at]
		if e.Kind == lab.Arrival && servers[e.Node] && f == nil {
			f = &fate{}
			byRoute[at] = f
			out = append(out, f)
		}
		if f == nil {
			continue
		}
		switch e.Kind {
		case lab.Commit:
			f.commits++
		case lab.Answer:
			f.status = e.Status
		case lab.LookUp, lab.Claim:
			f.replayed = f.replayed || e.Detail == "done"
		case lab.Fault, lab.Crash:
			f.fault = true
		case lab.ClientGone:
			f.deaf = true
		}
	}
	return out
}

// Explain says in a few sentences how the number of orders came about. It knows nothing of the scenario but
// what was counted.
func Explain(r *lab.Result) []string {
	if r.Uncounted {
		return []string{r.Why}
	}
	c := r.Counts
	var out []string
	if text := arrived(r); text != "" {
		out = append(out, text)
	}
	if late := c.Effects - c.EffectsWhenCallerDone; late > 0 && c.Operations == 1 {
		out = append(out, capital(fmt.Sprintf("%s committed after the caller was done, at %s.", was(late, c.Effects), lab.Clock(lab.FromMillis(r.CallerDoneMs)))))
	}
	out = append(out, believes(r))
	if c.Lost > 0 {
		out = append(out, fmt.Sprintf("%d of %s believed done without an order: lost.", c.Lost, lab.Count(c.Operations, "operation")+" "+is(c.Lost)))
	}
	if c.FalseFailures > 0 {
		out = append(out, fmt.Sprintf("%d of %s believed failed with an order there: a false failure.", c.FalseFailures, lab.Count(c.Operations, "operation")+" "+is(c.FalseFailures)))
	}
	for _, l := range r.Ledgers {
		if l.Duplicates > 0 {
			out = append(out, fmt.Sprintf("The ledger %s has %d too many of %d.", l.Name, l.Duplicates, l.Entries))
		}
	}
	for _, s := range r.Said {
		if s.Said != s.Measured {
			out = append(out, fmt.Sprintf("Often said: %s %d. Measured: %d.", s.Name, s.Said, s.Measured))
		}
	}
	switch r.Verdict {
	case lab.NotAsExpected:
		out = append(out, "Its file expects something else: see the table at the end.")
	case lab.Inconclusive:
		out = append(out, "The trial is inconclusive: "+r.Why)
	}
	return out
}

// orders holds the orders against what the user meant.
func orders(c lab.Counts) string {
	intents := lab.Count(c.Wanted, "intent")
	switch {
	case c.Wanted == 0 && c.Effects == 0:
		return "No orders: it only reads."
	case c.Effects == c.Wanted && c.Duplicates == 0:
		return fmt.Sprintf("%s for %s, as the user meant.", lab.Count(c.Effects, "order"), intents)
	case c.Duplicates > 0:
		return fmt.Sprintf("%s for %s: %d too many.", lab.Count(c.Effects, "order"), intents, c.Duplicates)
	}
	return fmt.Sprintf("%s for %s: %d missing.", lab.Count(c.Effects, "order"), intents, c.Wanted-c.Effects)
}

// arrived says what became of the requests that reached the order service.
func arrived(r *lab.Result) string {
	c := r.Counts
	all := fates(r)
	way := ""
	if c.Sends > 0 && c.Arrivals > c.Sends {
		way = fmt.Sprintf("%s became %s on the way. ", lab.Count(c.Sends, "send"), lab.Count(c.Arrivals, "arrival"))
	} else if missing := c.Sends - c.Arrivals; missing > 0 && c.Arrivals == 0 {
		return "Nothing arrived at the order service."
	} else if missing > 0 {
		way = fmt.Sprintf("%d of %s never arrived. ", missing, lab.Count(c.Sends, "send"))
	}
	if _, noun := asked(r); noun == "arrival" || len(all) == 0 {
		if c.Operations > 1 && c.Arrivals > 0 {
			way += fmt.Sprintf("%d arrivals for %d operations.", c.Arrivals, c.Operations)
		}
		return strings.TrimSpace(way)
	}
	made, others := 0, map[string]int{}
	for _, f := range all {
		switch {
		case f.commits > 0:
			made++
		case f.replayed && f.status/100 == 2:
			others["answered from the first"]++
		case f.status > 0:
			others["answered "+strconv.Itoa(f.status)]++
		case f.fault:
			others["cut off by the fault"]++
		case f.deaf:
			others["given up when nobody waited any more"]++
		default:
			others["never answered"]++
		}
	}
	switch {
	case made == len(all) && made == 1:
		return strings.TrimSpace(way + "The one request that arrived became the order.")
	case made == len(all):
		return way + fmt.Sprintf("Each of the %d requests that arrived became an order.", made)
	}
	var parts []string
	for _, what := range byCount(others) {
		parts = append(parts, fmt.Sprintf("%d %s %s", others[what], is(others[what]), what))
	}
	return way + fmt.Sprintf("Of %s, %d became an order; %s.", lab.Count(len(all), "arrival"), made, strings.Join(parts, ", "))
}

func byCount(m map[string]int) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(m[b]-m[a], strings.Compare(a, b)) })
	return keys
}

// believes says what the callers end with.
func believes(r *lab.Result) string {
	b := r.Beliefs
	if r.Counts.Operations != 1 {
		var parts []string
		for _, n := range []struct {
			n    int
			word string
		}{{b.OK, "done"}, {b.Failed, "failed"}, {b.Unknown, "unknown"}} {
			if n.n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n.n, n.word))
			}
		}
		if len(parts) == 0 {
			return "No caller has come to an end."
		}
		return "The callers believe: " + strings.Join(parts, ", ") + "."
	}
	why := ""
	if len(r.Reasons) == 1 && r.Reasons[0] != "" {
		why = " (" + r.Reasons[0] + ")"
	}
	switch {
	case b.OK > 0 && r.Counts.Duplicates > 0:
		return "The caller believes that its order is there" + why + "; of the others it never learns."
	case b.OK > 0:
		return "The caller believes that its order is there" + why + "."
	case b.Failed > 0:
		return "The caller believes that it failed" + why + "."
	case b.Unknown > 0 && r.Counts.Wanted > 0 && r.Counts.Effects == r.Counts.Wanted && r.Counts.Arrivals > r.Counts.Wanted:
		return "The caller does not know" + why + "; that it sent again did no harm."
	case b.Unknown > 0:
		return "The caller does not know whether there is an order" + why + "."
	}
	return "The caller has not come to an end."
}

func was(n, of int) string {
	switch {
	case n == of && n == 1:
		return "it was"
	case n == of:
		return "all were"
	case n == 1:
		return "1 of them was"
	}
	return fmt.Sprintf("%d of them were", n)
}

func is(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
