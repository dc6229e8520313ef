package scenarios

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxCells is how many combinations a sweep may have.
const maxCells = 10_000

// Vary is a setting that takes several values in turn: one --vary.
type Vary struct {
	Path   string
	Name   string // the end of the path that tells it from the other settings: "read"
	Values []string
	at     position
}

// ParseVary reads path=a,b,c for each setting of a sweep. A value may be a range with its step, 1s..15s/1s or
// 1..10/1; a comma inside brackets or quotes does not end one. An error is an [*Error].
func ParseVary(texts []string) ([]Vary, error) {
	var out []Vary
	cells := 1
	for _, text := range texts {
		v := Vary{at: position{file: "--vary " + short(text)}}
		fail := func(what, hint string) ([]Vary, error) { return nil, &Error{At: v.at, What: what, Hint: hint} }
		path, values, ok := strings.Cut(text, "=")
		v.Path = strings.TrimSpace(path)
		if !ok || v.Path == "" {
			return fail("it is not a path and its values", "for example --vary caller.timeouts.read=5s,15s or =1s..15s/1s")
		}
		for _, before := range out {
			same, undone := setting{path: v.Path}.undoes(before.first())
			switch {
			case same:
				return fail(fmt.Sprintf("%s varies twice", quote(v.Path)), "give all of its values in one")
			case undone:
				return fail("it undoes "+before.at.file, "give them in the other order, or leave one out")
			}
		}
		for _, item := range splitValues(values) {
			spread, err := spreadRange(item)
			switch {
			case err != nil:
				return fail(err.Error(), "a range is from..to/step: 1s..15s/1s or 1..10/1")
			case item == "":
				return fail("a value is empty", "values are separated by commas")
			}
			for _, value := range spread {
				if slices.Contains(v.Values, value) {
					return fail(fmt.Sprintf("the value %s stands twice", quote(value)), "")
				}
				v.Values = append(v.Values, value)
			}
			if cells*len(v.Values) > maxCells {
				return fail(fmt.Sprintf("more than %d combinations", maxCells), "take larger steps")
			}
		}
		cells *= len(v.Values)
		out = append(out, v)
	}
	var paths []string
	for _, v := range out {
		paths = append(paths, v.Path)
	}
	for i, name := range Telling(paths) {
		out[i].Name = name
	}
	return out, nil
}

// first is v as a setting with the first of its values.
func (v Vary) first() setting {
	s := setting{path: v.Path, value: &node{}, at: v.at}
	if n, err := parseTree(v.at.file, []byte(v.Values[0])); err == nil {
		s.value = n
	}
	return s
}

// Telling returns for each path the shortest end of it that no other has.
func Telling(paths []string) []string {
	var out []string
	for _, path := range paths {
		name := path
		parts := strings.Split(path, ".")
		for n := len(parts) - 1; n > 0; n-- {
			end := strings.Join(parts[len(parts)-n:], ".")
			if slices.ContainsFunc(paths, func(o string) bool { return o != path && (o == end || strings.HasSuffix(o, "."+end)) }) {
				break
			}
			name = end
		}
		out = append(out, name)
	}
	return out
}

// splitValues splits at the commas that stand outside brackets and quotes.
func splitValues(text string) []string {
	var out []string
	depth, quoted, begin := 0, rune(0), 0
	for i, r := range text {
		switch {
		case quoted != 0:
			if r == quoted {
				quoted = 0
			}
		case r == '\'', r == '"':
			quoted = r
		case r == '[', r == '{':
			depth++
		case r == ']', r == '}':
			depth--
		case r == ',' && depth == 0:
			out = append(out, strings.TrimSpace(text[begin:i]))
			begin = i + 1
		}
	}
	return append(out, strings.TrimSpace(text[begin:]))
}

// spreadRange returns the values of from..to/step, or the item itself where it is no range.
func spreadRange(item string) ([]string, error) {
	ends, step, stepped := strings.Cut(item, "/")
	from, to, ok := strings.Cut(ends, "..")
	if !ok || strings.ContainsAny(item, `[{"'`) {
		return []string{item}, nil
	}
	if !stepped {
		return nil, fmt.Errorf("the range %s has no step", quote(item))
	}
	if a, err := time.ParseDuration(from); err == nil && !number(from) {
		b, errTo := time.ParseDuration(to)
		by, errStep := time.ParseDuration(step)
		if err := errors.Join(errTo, errStep); err != nil {
			return nil, fmt.Errorf("the range %s mixes times and other things", quote(item))
		}
		return spread(item, float64(a), float64(b), float64(by), func(x float64) string {
			return duration(time.Duration(math.Round(x)))
		})
	}
	a, errFrom := strconv.ParseFloat(from, 64)
	b, errTo := strconv.ParseFloat(to, 64)
	by, errStep := strconv.ParseFloat(step, 64)
	if errors.Join(errFrom, errTo, errStep) != nil {
		return nil, fmt.Errorf("the range %s is neither of times nor of numbers", quote(item))
	}
	return spread(item, a, b, by, func(x float64) string {
		return strconv.FormatFloat(math.Round(x*1e9)/1e9, 'f', -1, 64)
	})
}

func number(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// spread counts from a to b, which belongs to it where a step falls on it.
func spread(item string, a, b, by float64, format func(float64) string) ([]string, error) {
	const slack = 1e-9 // of a step: sums of fractions are not exact
	switch n := (b-a)/by + slack; {
	case !(by > 0):
		return nil, fmt.Errorf("the step of the range %s is not above zero", quote(item))
	case !(b >= a):
		return nil, fmt.Errorf("the range %s ends before it begins", quote(item))
	case n >= maxCells:
		return nil, fmt.Errorf("the range %s has more than %d values", quote(item), maxCells)
	default:
		var out []string
		for i := range int(n) + 1 {
			out = append(out, format(a+float64(i)*by))
		}
		return out, nil
	}
}

// duration writes a time as a person would: 1m30s, and 2m for 2m0s.
func duration(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"0s", "0m"} {
		if cut, ok := strings.CutSuffix(text, zero); ok && cut != "" && strings.ContainsAny(cut[len(cut)-1:], "mh") {
			text = cut
		}
	}
	return text
}

// Impossible is a combination of a sweep that no trial can be made of.
type Impossible struct {
	ID  string
	Why error
}

// Sweep resolves one configuration with every combination of the values of vary: the last setting changes
// fastest. The configuration is the one that o names, else the scenario's focus, else its only one. What the
// file expects is about other settings and is left out. A value that is wrong wherever it stands is an error;
// one that cannot be together with another is returned among the impossible. It is pure.
func (s *Scenario) Sweep(o Options, vary []Vary) (trials []Trial, impossible []Impossible, err error) {
	changes, err := parseSets(o.Set)
	if err != nil {
		return nil, nil, err
	}
	for _, v := range vary {
		for _, before := range changes {
			same, undone := setting{path: v.Path}.undoes(before)
			switch {
			case same:
				return nil, nil, &Error{At: before.at, What: fmt.Sprintf("%s is set and varied", quote(v.Path)), Hint: "one of the two will do"}
			case undone:
				return nil, nil, &Error{At: v.at, What: "it undoes " + before.at.file, Hint: "write it into the values that vary, or leave one out"}
			}
		}
	}
	at, err := s.subject(o.Only, "--vary")
	if err != nil {
		return nil, nil, err
	}
	// possible and wrong say of each value whether a trial came of it, and the first reason why not.
	possible, wrong := map[string]bool{}, map[string]error{}
	ids := map[string]bool{}
	row := -1
	for cell := range cells(vary) {
		row++
		variant := s.Variants[at]
		all := slices.Clone(changes)
		var names, words []string
		var varied []Change
		for i, v := range vary {
			value := v.Values[cell[i]]
			parsed, err := parseSets([]string{v.Path + "=" + value})
			if err != nil {
				return nil, nil, relocated(err, v.at)
			}
			parsed[0].at = v.at
			parsed[0].value.relocate(v.at)
			all = append(all, parsed...)
			names, words = append(names, v.Name+" "+value), append(words, Slug(v.Name), Slug(value))
			varied = append(varied, Change{Path: v.Path, Value: value})
		}
		variant.Name = strings.Join(names, ", ")
		variant.ID = unique(ids, strings.Join(words, "-"))
		t, err := s.resolveRow(at, variant, all, o.asserts(), o.Seed, true)
		if err != nil {
			impossible = append(impossible, Impossible{ID: variant.ID, Why: err})
		} else {
			t.Varied, t.Row = varied, row
			trials = append(trials, t)
		}
		for _, c := range varied {
			if key := c.Path + "=" + c.Value; err == nil {
				possible[key] = true
			} else if wrong[key] == nil {
				wrong[key] = err
			}
		}
	}
	for _, v := range vary {
		for _, value := range v.Values {
			if key := v.Path + "=" + value; !possible[key] {
				return nil, nil, relocated(wrong[key], v.at)
			}
		}
	}
	return trials, impossible, nil
}

// Reason says why on one line.
func (x Impossible) Reason() string {
	var e *Error
	if errors.As(x.Why, &e) {
		return printable(cut(e.What, mostText))
	}
	return x.Why.Error()
}

// relocated gives an error that came of one value the place of its demand.
func relocated(err error, at position) error {
	var e *Error
	if errors.As(err, &e) && e.At.line == 0 {
		e.At, e.Source = at, nil
	}
	return err
}

// subject is the position of the configuration that a command is about where it takes one: that of the id, the
// focus, or the only one. who asks, in an error.
func (s *Scenario) subject(id, who string) (int, error) {
	id = cmp.Or(id, s.Focus)
	var ids []string
	for i, v := range s.Variants {
		if v.ID == id || id == "" && len(s.Variants) == 1 {
			return i, nil
		}
		ids = append(ids, v.ID)
	}
	if id == "" {
		return 0, &Error{
			What: fmt.Sprintf("%s has %d configurations, and %s is about one", s.Name, len(ids), who),
			Hint: fmt.Sprintf("name it: %s:%s", s.Name, ids[0]),
		}
	}
	return 0, &Error{What: fmt.Sprintf("%s has no configuration %q", s.Name, id), Hint: suggest(id, ids)}
}

// cells yields every combination as the positions of the values, the last changing fastest.
func cells(vary []Vary) func(func([]int) bool) {
	return func(yield func([]int) bool) {
		cell := make([]int, len(vary))
		for {
			if !yield(cell) {
				return
			}
			i := len(vary) - 1
			for ; i >= 0; i-- {
				if cell[i]++; cell[i] < len(vary[i].Values) {
					break
				}
				cell[i] = 0
			}
			if i < 0 {
				return
			}
		}
	}
}

// unique returns an id that was not given before.
func unique(given map[string]bool, id string) string {
	out := id
	for n := 2; given[out]; n++ {
		out = fmt.Sprintf("%s-%d", id, n)
	}
	given[out] = true
	return out
}
