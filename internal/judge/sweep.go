package judge

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"retrylab/internal/lab"
	"retrylab/scenarios"
)

// What is told of a sweep in words: so many steps along a setting, lines of so many combinations of the others,
// and values one by one. Of what is more the least and the most are told.
const (
	mostSteps  = 4
	mostLines  = 6
	mostListed = 4
)

// ConcludeSweep says how the number of orders changes along the setting with the most values, times and numbers
// before words, for each combination of the other ones. What did not come to a conclusion, and what was not run,
// is not spoken for.
func ConcludeSweep(results []lab.Result, vary []lab.Varying) string {
	s := &sweep{vary: vary}
	for i, v := range vary {
		s.paths = append(s.paths, v.Path)
		switch best := vary[s.along]; {
		case i == 0:
		case ordered(v.Values) != ordered(best.Values):
			if ordered(v.Values) {
				s.along = i
			}
		case len(v.Values) > len(best.Values):
			s.along = i
		}
	}
	s.names = scenarios.Telling(s.paths)
	s.read(results)
	if s.counted == 0 {
		return "Nothing was shown: no combination came to a conclusion."
	}
	if told := s.told(); len(told) <= mostLines {
		return strings.Join(told, " ")
	}
	return s.overall()
}

// sweep is the results of one, by line: a combination of the settings beside the one along which is told.
type sweep struct {
	vary         []lab.Varying
	paths, names []string
	along        int
	lines        []*sweepLine // in the order of the run
	counted      int          // combinations that came to a conclusion
	perIntent    bool         // the intents differ, and the orders with them
}

type sweepLine struct {
	name   string
	values []*sweepValue // of the setting along, in order of size where they have one
}

// sweepValue is one combination: what its seeds came to.
type sweepValue struct {
	text                 string
	least, most, intents int
	trials               int // that came to a conclusion
	tied                 bool
}

// read sorts the results into lines. A combination without any has its place in them too.
func (s *sweep) read(results []lab.Result) {
	values := slices.Clone(s.vary[s.along].Values)
	if ordered(values) {
		slices.SortFunc(values, func(a, b string) int { return cmp.Compare(size(a), size(b)) })
	}
	lines := map[string]*sweepLine{}
	all := map[[2]string]*sweepValue{}
	for cell := range others(s.vary, s.along) {
		var parts []string
		for i, value := range cell {
			if i != s.along {
				parts = append(parts, s.names[i]+" "+value)
			}
		}
		line := &sweepLine{name: strings.Join(parts, ", ")}
		for _, text := range values {
			v := &sweepValue{text: text}
			line.values = append(line.values, v)
			all[[2]string{line.name, text}] = v
		}
		lines[line.name] = line
		s.lines = append(s.lines, line)
	}
	intents, whole := map[int]bool{}, true
	for _, r := range results {
		if len(r.Varied) != len(s.vary) || r.Verdict == lab.Inconclusive || r.Uncounted {
			continue
		}
		var parts []string
		for i, setting := range r.Varied {
			if i != s.along {
				parts = append(parts, s.names[i]+" "+setting.Value)
			}
		}
		v := all[[2]string{strings.Join(parts, ", "), r.Varied[s.along].Value}]
		if v == nil {
			continue // it is of no combination of this sweep
		}
		v.take(r)
		intents[r.Counts.Wanted] = true
		whole = whole && r.Counts.Wanted > 0 && r.Counts.Effects%r.Counts.Wanted == 0 && r.Tie == nil
		if v.trials == 1 {
			s.counted++
		}
	}
	if s.perIntent = whole && len(intents) > 1; s.perIntent {
		for _, v := range all {
			if v.trials > 0 {
				v.least, v.most, v.intents = v.least/v.intents, v.most/v.intents, 1
			}
		}
	}
}

func (v *sweepValue) take(r lab.Result) {
	least, most := r.Counts.Effects, r.Counts.Effects
	if r.Tie != nil {
		least, most, v.tied = min(least, r.Tie.Least), max(most, r.Tie.Most), true
	}
	if v.trials++; v.trials == 1 {
		v.least, v.most, v.intents = least, most, r.Counts.Wanted
	}
	v.least, v.most = min(v.least, least), max(v.most, most)
	v.tied = v.tied || v.least < v.most
}

// others yields each combination of the settings but one, the last changing fastest.
func others(vary []lab.Varying, but int) func(func([]string) bool) {
	return func(yield func([]string) bool) {
		combos := [][]string{nil}
		for i, v := range vary {
			values := v.Values
			if i == but {
				values = []string{""}
			}
			var longer [][]string
			for _, c := range combos {
				for _, value := range values {
					longer = append(longer, append(slices.Clone(c), value))
				}
			}
			combos = longer
		}
		for _, c := range combos {
			if !yield(c) {
				return
			}
		}
	}
}

// told is one sentence for each line; lines of which the same is to be said share it.
func (s *sweep) told() (out []string) {
	var texts []string
	names := map[string][]string{}
	for _, l := range s.lines {
		text := s.line(l)
		if names[text] == nil {
			texts = append(texts, text)
		}
		names[text] = append(names[text], l.name)
	}
	for _, text := range texts {
		list := names[text]
		name := several(list)
		switch {
		case len(s.vary) > 2 && len(list) > 1 && len(list) <= mostListed && len(texts) > 1:
			name = strings.Join(list, "; ")
		case len(s.vary) == 1:
		case len(texts) == 1 && len(s.lines) > 1:
			name = "with every " + several(slices.Delete(slices.Clone(s.names), s.along, s.along+1))
		case len(list) > 1 && len(s.vary) == 2: // one setting, named once
			setting := s.names[1-s.along] + " "
			var values []string
			for _, n := range list {
				values = append(values, strings.TrimPrefix(n, setting))
			}
			name = setting + several(values)
		}
		if name != "" {
			text = name + ": " + text
		}
		out = append(out, text+".")
	}
	return out
}

// overall is what a sweep comes to that is too large to be told line by line.
func (s *sweep) overall() string {
	least, most, more, tied := math.MaxInt, 0, 0, 0
	cells := 0
	for _, l := range s.lines {
		for _, v := range l.values {
			cells++
			if v.trials == 0 {
				continue
			}
			least, most = min(least, v.least), max(most, v.most)
			if v.most > v.intents {
				more++
			}
			if v.tied {
				tied++
			}
		}
	}
	text := s.orders(least)
	if most > least {
		text = fmt.Sprintf("%d to %s", least, s.orders(most))
	}
	text += fmt.Sprintf("; more than wanted in %d of %d combinations", more, s.counted)
	if tied > 0 {
		text += fmt.Sprintf(", and in %d the seed decides", tied)
	}
	if s.counted < cells {
		text += fmt.Sprintf("; %d more were not counted", cells-s.counted)
	}
	return text + "."
}

// orders writes a number of orders with what it is of.
func (s *sweep) orders(n int) string {
	if s.perIntent {
		return lab.Count(n, "order") + " for each intent"
	}
	return lab.Count(n, "order")
}

// step is a run of values next to each other that came to the same number of orders.
type step struct {
	effects int
	values  []string
}

// line says how many orders there are along a line, from one change to the next. Values at which the seed decides
// belong to no step.
func (s *sweep) line(l *sweepLine) string {
	var steps []step
	var tied []string
	counted := 0
	for _, v := range l.values {
		switch n := len(steps); {
		case v.trials == 0:
			continue
		case v.tied:
			tied = append(tied, v.text)
		case n > 0 && steps[n-1].effects == v.least:
			steps[n-1].values = append(steps[n-1].values, v.text)
		default:
			steps = append(steps, step{v.least, []string{v.text}})
		}
		counted++
	}
	if counted == 0 {
		return "nothing was counted"
	}
	var text string
	switch values := s.vary[s.along].Values; {
	case len(steps) == 0:
	case len(steps) == 1:
		text = s.orders(steps[0].effects)
		switch {
		case len(tied) > 0 && evenly(values):
		case len(tied) > 0 && !ordered(values):
			text += " with " + several(steps[0].values)
		case counted == 1, len(tied) > 0:
			text += s.at(steps[0].values)
		case evenly(values):
			text += " everywhere"
		case !ordered(values):
			text += " with each"
		default:
			text += " at each"
		}
	case !ordered(values):
		text = s.words(steps)
	case len(steps) > mostSteps:
		text = s.change(steps)
	case evenly(values):
		text = s.spread(steps)
	default:
		text = s.list(steps)
	}
	if len(tied) > 0 {
		at := s.at(tied)
		if !ordered(s.vary[s.along].Values) {
			at = " with " + several(tied)
		}
		text = strings.TrimPrefix(text+";"+at+" the seed decides", "; ")
	}
	if counted < len(l.values) {
		text += fmt.Sprintf(" (of the %d of %d that were counted)", counted, len(l.values))
	}
	return text
}

// value is a value with what it is of, where it does not say so itself.
func (s *sweep) value(text string) string {
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return s.names[s.along] + " " + text
	}
	return text
}

// at names values: all of a few, else the first and the last with how many they are.
func (s *sweep) at(values []string) string {
	list := slices.Clone(values)
	list[0] = s.value(list[0])
	if len(list) > mostListed {
		return fmt.Sprintf(" at the %d values from %s to %s", len(list), list[0], list[len(list)-1])
	}
	return " at " + several(list)
}

// spread is about values with nothing left out between them: a change lies at one of them.
func (s *sweep) spread(steps []step) string {
	parts := []string{fmt.Sprintf("%s up to %s", s.orders(steps[0].effects), s.value(last(steps[0].values)))}
	for _, st := range steps[1 : len(steps)-1] {
		parts = append(parts, fmt.Sprintf("%d up to %s", st.effects, last(st.values)))
	}
	end := steps[len(steps)-1]
	return strings.Join(append(parts, fmt.Sprintf("%d from %s on", end.effects, end.values[0])), ", ")
}

// list is about single values: of what lies between them nobody knows.
func (s *sweep) list(steps []step) string {
	var parts []string
	for i, st := range steps {
		n := strconv.Itoa(st.effects)
		if i == 0 {
			n = s.orders(st.effects)
		}
		parts = append(parts, n+s.at(st.values))
	}
	return strings.Join(parts, ", ")
}

// change is about more steps than can be told.
func (s *sweep) change(steps []step) string {
	first, end := steps[0], steps[len(steps)-1]
	up, down := true, true
	least, most := first.effects, first.effects
	for i, st := range steps[1:] {
		up, down = up && st.effects > steps[i].effects, down && st.effects < steps[i].effects
		least, most = min(least, st.effects), max(most, st.effects)
	}
	from, to := s.value(first.values[0]), last(end.values)
	switch {
	case up:
		return fmt.Sprintf("%s at %s, rising to %d at %s", s.orders(first.effects), from, end.effects, to)
	case down:
		return fmt.Sprintf("%s at %s, falling to %d at %s", s.orders(first.effects), from, end.effects, to)
	}
	return fmt.Sprintf("%d to %s, up and down from %s to %s", least, s.orders(most), from, to)
}

// words is about values without an order: those that came to the same stand together.
func (s *sweep) words(steps []step) string {
	var groups []step
	for _, st := range steps {
		if i := slices.IndexFunc(groups, func(g step) bool { return g.effects == st.effects }); i >= 0 {
			groups[i].values = append(groups[i].values, st.values...)
		} else {
			groups = append(groups, step{st.effects, slices.Clone(st.values)})
		}
	}
	var parts []string
	for i, g := range groups {
		n := strconv.Itoa(g.effects)
		if i == 0 {
			n = s.orders(g.effects)
		}
		parts = append(parts, n+" with "+several(g.values))
	}
	return strings.Join(parts, ", ")
}

// several joins words as a sentence does.
func several(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	if most := 2 * mostListed; len(words) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:most-1], ", "), len(words)-most+1)
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

func last(values []string) string { return values[len(values)-1] }

// size is a time or a number, NaN for a word.
func size(value string) float64 {
	if n, err := strconv.ParseFloat(value, 64); err == nil {
		return n
	}
	if d, err := time.ParseDuration(value); err == nil {
		return float64(d)
	}
	return math.NaN()
}

// ordered reports whether values are more than one and all times or all numbers.
func ordered(values []string) bool {
	for _, v := range values {
		_, err := strconv.ParseFloat(v, 64)
		_, first := strconv.ParseFloat(values[0], 64)
		if math.IsNaN(size(v)) || (err == nil) != (first == nil) {
			return false
		}
	}
	return len(values) > 1
}

// evenly reports whether values are a range with its step: three or more, each as far from the next.
func evenly(values []string) bool {
	if len(values) < 3 || !ordered(values) {
		return false
	}
	var sizes []float64
	for _, v := range values {
		sizes = append(sizes, size(v))
	}
	slices.Sort(sizes)
	by := sizes[1] - sizes[0]
	for i := 2; i < len(sizes); i++ {
		if math.Abs(sizes[i]-sizes[i-1]-by) > by*1e-6 {
			return false
		}
	}
	return true
}
