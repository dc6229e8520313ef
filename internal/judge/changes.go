package judge

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"retrylab/internal/lab"
)

// Changes says what is different between two results of a suite, trial by trial, and what was asked for otherwise.
// Trials are told apart by scenario, configuration and seed; where the two were run once each with another seed, by
// the first two. Names are what the two are called.
func Changes(before, after *lab.Document, names [2]string) *lab.Comparison {
	c := &lab.Comparison{Sources: names[:], Settings: askedFor(before, after), Rows: []lab.ComparedRow{}}
	key := func(r *lab.Result) lab.Trial { return lab.Trial{Scenario: r.Scenario, ID: r.ID, Seed: r.Seed} }
	if seedsApart(before, after) {
		key = func(r *lab.Result) lab.Trial { return lab.Trial{Scenario: r.Scenario, ID: r.ID} }
	}
	was := map[lab.Trial]*lab.Result{}
	for i := range before.Results {
		was[key(&before.Results[i])] = &before.Results[i]
	}
	note := func(r *lab.Result, kind string, what ...string) {
		change := lab.Change{Trial: lab.Trial{Scenario: r.Scenario, ID: r.ID, Seed: r.Seed}, Kind: kind, What: what}
		if kind == lab.ChangeOpen && len(what) == 0 {
			change.What = []string{"inconclusive in both"}
			if r.Why != "" {
				change.What[0] += ": " + r.Why
			}
			c.Open = append(c.Open, change)
			return
		}
		c.Changes = append(c.Changes, change)
	}
	is := map[lab.Trial]bool{}
	for i := range after.Results {
		r := &after.Results[i]
		is[key(r)] = true
		old, known := was[key(r)]
		if !known {
			what := "it is new"
			if reason, skipped := skippedIn(before, r); skipped {
				what = "it was skipped before: " + reason
			}
			note(r, lab.ChangeNew, what)
			continue
		}
		c.Compared++
		switch open := r.Verdict == lab.Inconclusive; {
		case open && old.Verdict == lab.Inconclusive:
			note(r, lab.ChangeOpen)
		case open:
			note(r, lab.ChangeOpen, strings.TrimSuffix("inconclusive, was "+told(old.Verdict)+": "+r.Why, ": "))
		case old.Verdict == lab.Inconclusive:
			note(r, lab.ChangeOpen, strings.TrimSuffix(told(r.Verdict)+", was inconclusive: "+old.Why, ": "))
		default:
			if what := append(measured(old, r, true), demanded(old, r)...); len(what) > 0 {
				note(r, lab.ChangeMeasured, what...)
				continue
			}
			c.Same = append(c.Same, lab.Trial{Scenario: r.Scenario, ID: r.ID, Seed: r.Seed})
		}
	}
	for i := range before.Results {
		r := &before.Results[i]
		if is[key(r)] {
			continue
		}
		what := "it is not there any more"
		if reason, skipped := skippedIn(after, r); skipped {
			what = "it is skipped now: " + reason
		}
		note(r, lab.ChangeGone, what)
	}
	return c
}

// skippedIn says why a document has not run what it was to run as r.
func skippedIn(d *lab.Document, r *lab.Result) (reason string, skipped bool) {
	i := slices.IndexFunc(d.Skipped, func(s lab.Skip) bool { return s.Scenario == r.Scenario && (s.ID == "" || s.ID == r.ID) })
	if i < 0 {
		return "", false
	}
	return d.Skipped[i].Reason, true
}

// seedsApart reports whether each configuration was run once in both documents, and with other seeds.
func seedsApart(a, b *lab.Document) bool {
	seeds := func(d *lab.Document) (all map[int64]bool, once bool) {
		all, once = map[int64]bool{}, true
		rows := map[[2]string]bool{}
		for _, r := range d.Results {
			all[r.Seed] = true
			once = once && !rows[[2]string{r.Scenario, r.ID}]
			rows[[2]string{r.Scenario, r.ID}] = true
		}
		return all, once
	}
	ofA, onceA := seeds(a)
	ofB, onceB := seeds(b)
	for seed := range ofB {
		if ofA[seed] {
			return false
		}
	}
	return onceA && onceB
}

// askedFor is what was asked for otherwise in two runs, and what made them.
func askedFor(before, after *lab.Document) []lab.Contrast {
	out := []lab.Contrast{}
	at := map[string]int{}
	for i, d := range []*lab.Document{before, after} {
		add := func(path, value string) {
			k, known := at[path]
			if !known {
				k = len(out)
				at[path] = k
				out = append(out, lab.Contrast{Path: path, Values: make([]string, 2)})
			}
			if old := out[k].Values[i]; old != "" {
				value = old + ", " + value
			}
			out[k].Values[i] = value
		}
		for _, set := range d.Run.Set {
			path, value, _ := strings.Cut(set, "=")
			add(path, value)
		}
		for _, v := range d.Run.Vary {
			add("--vary "+v.Path, strings.Join(v.Values, ","))
		}
		for _, assert := range d.Run.Assert {
			add("--assert", assert)
		}
		for _, only := range d.Run.Only {
			add("--only", only)
		}
		add("--seed", strconv.FormatInt(d.Run.Seed, 10))
		if d.Run.Repeat > 1 {
			add("--repeat", strconv.Itoa(d.Run.Repeat))
		}
		if d.Run.Shard != nil {
			add("--shard", fmt.Sprintf("%d/%d", d.Run.Shard.Index, d.Run.Shard.Count))
		}
		if d.Run.Clock != "" {
			add("--clock", d.Run.Clock)
		}
		if d.Run.Speed > 0 {
			add("--speed", decimal(d.Run.Speed))
		}
		if d.Run.InconclusivePasses {
			add("--inconclusive", "pass")
		}
		if store := storeName(&d.Run.Store, ""); store != "" {
			add("store", store)
		}
		if d.Run.Interrupted {
			add("interrupted", "before its end")
		}
		add("version", d.Tool.Version)
	}
	return slices.DeleteFunc(out, func(c lab.Contrast) bool { return c.Values[0] == c.Values[1] })
}

// measured says in what two results of a trial differ of all that is measured. Without same they are of two
// configurations, which have names, keys and paths of their own: those are no difference.
func measured(old, r *lab.Result, same bool) []string {
	var out []string
	add := func(name, a, b string) {
		if a != b {
			out = append(out, fmt.Sprintf("%s: %s, was %s", name, orNone(b), orNone(a)))
		}
	}
	if !same {
		add = func(name, a, b string) {
			if a != b {
				out = append(out, fmt.Sprintf("%s: %s instead of %s", name, orNone(b), orNone(a)))
			}
		}
	}
	one := total(old.Beliefs) == 1 && total(r.Beliefs) == 1
	if one {
		add("belief", belief([]lab.Result{*old}), belief([]lab.Result{*r}))
	}
	for _, m := range metrics {
		a, b := m.of(old), m.of(r)
		if a == b || one && m.belief || m.implied != nil && m.implied(old, r) {
			continue
		}
		text := m.show(a)
		if m.ratio && a > 0 && b > 0 {
			text += " (" + factor(a, b) + ")"
		}
		add(m.name, text, m.show(b))
	}
	if old.Counts.Arrivals == r.Counts.Arrivals && old.Counts.Operations == r.Counts.Operations {
		add("amplification", decimal(old.Amplification), decimal(r.Amplification))
	}
	if old.BeliefsWhenCallerDone != nil || r.BeliefsWhenCallerDone != nil {
		add("beliefs when the caller was done", doneWith(old), doneWith(r))
	}
	if a, b := reasons(old), reasons(r); a != b {
		add("reasons", a, b)
	} else if !slices.Equal(old.Reasons, r.Reasons) {
		out = append(out, "the reasons are those of other operations")
	}
	add("answers", tally(old.Answers), tally(r.Answers))
	add("ledgers", ledgersOf(old), ledgersOf(r))
	add("state", state(old), state(r))
	add("longest hold", lab.Clock(lab.FromMillis(old.LongestHoldMs)), lab.Clock(lab.FromMillis(r.LongestHoldMs)))
	add("goodput", decimal(old.GoodputPerS)+"/s", decimal(r.GoodputPerS)+"/s")
	add("settled", lab.Clock(lab.FromMillis(old.SettledMs)), lab.Clock(lab.FromMillis(r.SettledMs)))
	if same {
		add("machines", machines(old, r), machines(r, old))
		add("configuration", old.Configuration, r.Configuration)
		add("varied", varied(old), varied(r))
		add("simulated", yes(old.Simulated), yes(r.Simulated))
		add("counted", yes(!old.Uncounted), yes(!r.Uncounted))
		add("store", storeName(old.Store, "the run's"), storeName(r.Store, "the run's"))
		add("store of keys", storeName(old.Keys, "none"), storeName(r.Keys, "none"))
		for _, part := range []struct {
			text string
			a, b any
		}{
			{"what the seed alone decides is something else", old.Tie, r.Tie},
			{"what is said to come out differs", old.Said, r.Said},
			{"the settings of the store differ", settingsOf(old.Store), settingsOf(r.Store)},
			{"the settings of the store of keys differ", settingsOf(old.Keys), settingsOf(r.Keys)},
		} {
			if !alike(part.a, part.b) {
				out = append(out, part.text)
			}
		}
	}
	if !alike(old.Series, r.Series) {
		out = append(out, "the counts over time differ")
	}
	events := course(old, r, same)
	rows := func(what string, told bool, first int) {
		if first >= 0 && !told && events == nil { // which tell of them too
			out = append(out, fmt.Sprintf("%s differ, the first is number %d", what, first+1))
		}
	}
	rows("order rows", effects(old) != effects(r), unlike(old.Orders, r.Orders, func(e lab.Effect) lab.Effect {
		if !same {
			e.Send, e.Key, e.Operation = "", "", ""
		}
		e.Created = 0 // of which the saved rows have the milliseconds
		return e
	}))
	rows("entries of ledgers", ledgersOf(old) != ledgersOf(r), unlike(old.Entries, r.Entries, func(e lab.Entry) lab.Entry {
		if !same {
			e = lab.Entry{Ledger: e.Ledger}
		}
		e.Created = 0
		return e
	}))
	return append(out, events...)
}

func total(b lab.Beliefs) int { return b.OK + b.Failed + b.Unknown }

// course says where the events of two results first differ; nothing where they do not.
func course(old, r *lab.Result, same bool) []string {
	i := unlike(old.Events, r.Events, func(e lab.Event) lab.Event {
		if !same {
			e.Send, e.Key, e.Target, e.Remaining = "", "", "", 0
			if e.Kind == lab.Retry || e.Kind == lab.Stop {
				e.Detail = "" // names the layer
			}
		}
		e.At, e.Remaining, e.Wait = lab.FromMillis(lab.Millis(e.At)), lab.FromMillis(lab.Millis(e.Remaining)), lab.FromMillis(lab.Millis(e.Wait))
		return e
	})
	if i < 0 {
		return nil
	}
	say := func(list []lab.Event) string {
		if i >= len(list) {
			return "nothing more"
		}
		e := list[i]
		words := []string{string(e.Kind)}
		if e.Status != 0 {
			words = append(words, strconv.Itoa(e.Status))
		}
		if e.Detail != "" {
			words = append(words, e.Detail)
		}
		return fmt.Sprintf("%s by %s at %s", strings.Join(words, " "), e.Node, lab.Clock(lab.FromMillis(lab.Millis(e.At))))
	}
	is, was, word := say(r.Events), say(old.Events), "was"
	if !same {
		word = "not"
	}
	at := max(old.SettledMs, r.SettledMs)
	for _, list := range [][]lab.Event{old.Events, r.Events} {
		if i < len(list) {
			at = min(at, lab.Millis(list[i].At))
		}
	}
	text := fmt.Sprintf("the course of events differs, first at %s: ", lab.Clock(lab.FromMillis(at)))
	if is != was {
		return []string{text + fmt.Sprintf("%s, %s %s", is, word, was)}
	}
	a, b := old.Events[i], r.Events[i]
	var fields []string
	for _, f := range []struct {
		name string
		same bool
	}{
		{"operation", a.Operation == b.Operation}, {"send", a.Send == b.Send}, {"target", a.Target == b.Target}, {"key", a.Key == b.Key},
		{"order", a.Order == b.Order}, {"wait", lab.Millis(a.Wait) == lab.Millis(b.Wait)}, {"budget", lab.Millis(a.Remaining) == lab.Millis(b.Remaining)},
	} {
		if !f.same {
			fields = append(fields, f.name)
		}
	}
	return []string{text + fmt.Sprintf("%s with another %s", is, strings.Join(fields, " and "))}
}

// repeated are the expectations whose actual value is among what [measured] tells.
var repeated = []string{
	"sends", "arrivals", "lookups", "effects", "effects-when-caller-done", "duplicates", "lost", "false-failures", "late", "turned-away", "amount",
	"belief", "beliefs", "belief-when-caller-done", "reason", "amplification", "lost-updates", "state", "caller-done", "longest-hold", "goodput",
	"settled", "ledgers", "answers", "sends-by", "arrivals-at",
}

// demanded says what has become of what was demanded of a trial, and of its verdict.
func demanded(old, r *lab.Result) []string {
	var out, fails, holds, added, gone []string
	was := map[string]*lab.Check{}
	name := func(c *lab.Check, n int) string {
		if n > 0 { // one may be demanded twice
			return fmt.Sprintf("%s %s (%d)", c.Kind, c.Name, n+1)
		}
		return c.Kind + " " + c.Name
	}
	each := func(list []lab.Check, do func(name string, c *lab.Check)) {
		seen := map[string]int{}
		for i := range list {
			c := &list[i]
			do(name(c, seen[c.Kind+" "+c.Name]), c)
			seen[c.Kind+" "+c.Name]++
		}
	}
	each(old.Checks, func(name string, c *lab.Check) { was[name] = c })
	each(r.Checks, func(name string, c *lab.Check) {
		o := was[name]
		delete(was, name)
		switch {
		case o == nil:
			added = append(added, name+" ("+held(c.Held)+")")
			return
		case o.Held && !c.Held:
			fails = append(fails, name)
		case !o.Held && c.Held:
			holds = append(holds, name)
		}
		if o.Undefined != c.Undefined {
			out = append(out, fmt.Sprintf("%s: can be told: %s, was %s", name, yes(!c.Undefined), yes(!o.Undefined)))
		}
		if o.Expected != c.Expected {
			out = append(out, fmt.Sprintf("%s: %s is demanded, was %s", name, orNone(c.Expected), orNone(o.Expected)))
		}
		if o.Actual != c.Actual && !(c.Kind == "expect" && slices.Contains(repeated, c.Name)) {
			out = append(out, fmt.Sprintf("%s: %s, was %s", name, orNone(c.Actual), orNone(o.Actual)))
		}
	})
	each(old.Checks, func(name string, _ *lab.Check) {
		if was[name] != nil {
			gone = append(gone, name)
		}
	})
	for _, list := range []struct {
		what  string
		names []string
	}{{"does not hold any more", fails}, {"holds now", holds}, {"demanded now", added}, {"not demanded any more", gone}} {
		if len(list.names) > 0 {
			out = append(out, list.what+": "+strings.Join(list.names, ", "))
		}
	}
	if old.Verdict != r.Verdict {
		out = append(out, fmt.Sprintf("verdict: %s, was %s", told(r.Verdict), told(old.Verdict)))
	}
	return out
}

// unlike is the place of the first of two lists that differs as it is compared; -1 without one.
func unlike[T any](a, b []T, compared func(T) T) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || !reflect.DeepEqual(compared(a[i]), compared(b[i])) {
			return i
		}
	}
	return -1
}

// alike reports whether two things are written alike.
func alike(a, b any) bool {
	first, errFirst := json.Marshal(a)
	second, errSecond := json.Marshal(b)
	return errFirst == nil && errSecond == nil && string(first) == string(second)
}

func sameKeys(a, b map[string]int) bool {
	return slices.Equal(slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b)))
}

// tally writes counts: 201 ×2, 409.
func tally(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, timesOf(name, counts[name]))
	}
	return strings.Join(parts, ", ")
}

func timesOf(what string, n int) string {
	if n == 1 {
		return what
	}
	return fmt.Sprintf("%s ×%d", what, n)
}

// reasons are the reasons of all operations with how often each came, in the order in which they first did.
func reasons(r *lab.Result) string {
	counts := map[string]int{}
	var order []string
	for _, reason := range r.Reasons {
		if counts[reason] == 0 {
			order = append(order, reason)
		}
		counts[reason]++
	}
	slices.Sort(order)
	for i, reason := range order {
		order[i] = timesOf(reason, counts[reason])
	}
	return strings.Join(order, ", ")
}

func doneWith(r *lab.Result) string {
	if r.BeliefsWhenCallerDone == nil {
		return beliefs(r.Beliefs)
	}
	return beliefs(*r.BeliefsWhenCallerDone)
}

func ledgersOf(r *lab.Result) string {
	var parts []string
	for _, l := range r.Ledgers {
		text := fmt.Sprintf("%s %d", l.Name, l.Entries)
		if l.Duplicates > 0 {
			text += fmt.Sprintf(" (%d too many)", l.Duplicates)
		}
		if l.Note {
			text += " (a note)"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

func state(r *lab.Result) string {
	if r.State == nil {
		return ""
	}
	text := r.State.Row + " " + r.State.String()
	if r.State.Version > 0 {
		text += fmt.Sprintf(" (version %d)", r.State.Version)
	}
	return text
}

// machines are those that were at work otherwise than in the other result, where that is not told of all together.
func machines(r, other *lab.Result) string {
	var parts []string
	for _, n := range r.Nodes {
		i := slices.IndexFunc(other.Nodes, func(o lab.Node) bool { return o.Name == n.Name })
		if i >= 0 && other.Nodes[i] == n {
			continue
		}
		if i >= 0 && n.Role == other.Nodes[i].Role && len(r.Nodes) == 2 && len(other.Nodes) == 2 && r.Counts != other.Counts {
			continue // the caller and the one server, whose counts are those of the trial
		}
		parts = append(parts, fmt.Sprintf("%s %s with %d sent and %d arrived", n.Role, n.Name, n.Sends, n.Arrivals))
	}
	return strings.Join(parts, ", ")
}

func varied(r *lab.Result) string {
	var parts []string
	for _, s := range r.Varied {
		parts = append(parts, s.Path+"="+s.Value)
	}
	return strings.Join(parts, ", ")
}

// storeName is a store as a reader knows it, or what stands for none.
func storeName(s *lab.Store, none string) string {
	if s == nil {
		return none
	}
	return strings.Join(strings.Fields(s.Engine+" "+s.Version+" "+s.Mode), " ")
}

func settingsOf(s *lab.Store) map[string]string {
	if s == nil {
		return nil
	}
	return s.Settings
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

func held(yes bool) string {
	if yes {
		return "held"
	}
	return "not held"
}

func told(v lab.Verdict) string { return strings.ReplaceAll(v.String(), "_", " ") }
