package judge

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"retrylab/internal/lab"
)

// maxSteps is how many changes along a setting are told in words, and maxTold along how many lines of a sweep.
const (
	maxSteps = 4
	maxTold  = 6
)

// ConcludeSweep says how the number of orders changes along the setting with the most values that have an
// order of their own, times or numbers, for each combination of the other ones.
func ConcludeSweep(results []lab.Result, vary []lab.Varying) string {
	along := -1
	for i, v := range vary {
		if rising(v.Values) && (along < 0 || len(v.Values) > len(vary[along].Values)) {
			along = i
		}
	}
	if along < 0 {
		return ""
	}
	var order []string
	lines := map[string][]lab.Result{}
	for _, r := range results {
		if len(r.Varied) != len(vary) || r.Verdict == lab.Inconclusive {
			continue
		}
		var rest []string
		for i, s := range r.Varied {
			if i != along {
				rest = append(rest, s.Value)
			}
		}
		name := strings.Join(rest, ", ")
		if lines[name] == nil {
			order = append(order, name)
		}
		lines[name] = append(lines[name], r)
	}
	if len(order) == 0 {
		return "Nothing was shown: no combination came to a conclusion."
	}
	if len(order) > maxTold {
		return ""
	}
	var told []string
	for _, name := range order {
		text := steps(lines[name], along)
		if name != "" {
			text = name + ": " + text
		}
		told = append(told, text+".")
	}
	return strings.Join(told, " ")
}

// rising reports whether values are more than one, times or numbers, each above the one before.
func rising(values []string) bool {
	last := math.Inf(-1)
	for _, v := range values {
		n, err := strconv.ParseFloat(v, 64)
		if d, errTime := time.ParseDuration(v); err != nil && errTime == nil {
			n, err = float64(d), nil
		}
		if err != nil || n <= last {
			return false
		}
		last = n
	}
	return len(values) > 1
}

// steps says how many orders there are along a line, from one change to the next. Values at which the seed
// decides belong to no step.
func steps(line []lab.Result, along int) string {
	type step struct {
		effects  int
		from, to string
	}
	var list []step
	var tied []string
	decided := false
	for _, r := range line {
		value := r.Varied[along].Value
		if r.Tie != nil {
			if !slices.Contains(tied, value) {
				tied = append(tied, value)
			}
			continue
		}
		decided = true
		if n := len(list); n > 0 && list[n-1].effects == r.Counts.Effects {
			list[n-1].to = value
			continue
		}
		list = append(list, step{r.Counts.Effects, value, value})
	}
	var parts []string
	switch {
	case !decided:
	case len(list) == 1:
		parts = append(parts, plural(list[0].effects, "order"))
		if len(tied) == 0 {
			parts[0] += " everywhere"
		}
	case len(list) > maxSteps:
		parts = append(parts, fmt.Sprintf("%d changes between %s and %s", len(list)-1, list[0].from, list[len(list)-1].to))
	default:
		for i, s := range list {
			text := fmt.Sprintf("%d up to %s", s.effects, s.to)
			switch {
			case i == 0:
				text = fmt.Sprintf("%s up to %s", plural(s.effects, "order"), s.to)
			case i == len(list)-1:
				text = fmt.Sprintf("%d from %s on", s.effects, s.from)
			}
			parts = append(parts, text)
		}
	}
	text := strings.Join(parts, ", ")
	if len(tied) > 0 {
		text = strings.TrimPrefix(text+"; at "+strings.Join(tied, " and ")+" the seed decides", "; ")
	}
	return text
}
