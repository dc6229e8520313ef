package report

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"retrylab/internal/lab"
)

// outcome is what an assertion comes to where a reader knows tests.
type outcome int

const (
	passed  outcome = iota
	failed          // it did not hold
	errored         // nothing is known: the trial is inconclusive, or the lab broke
	skipped         // it was not run, or is inconclusive where that passes
)

// An assertion is one check of one trial, a trial that came to none, or something that was not run:
// what JUnit calls a test case, and TAP a test point. All its texts are fit for one line.
type assertion struct {
	outcome  outcome
	name     string // the check, or the configuration that was not run or, of two saved results, what is claimed of the second
	id       string // of the configuration; empty where every one was not run
	class    string // scenario.configuration
	kind     string // expect.effects, premise, invariant; or inconclusive, environment, defect, skipped
	message  string // why it did not pass
	expected string
	actual   string
	file     string
	line     int
	evidence []string
	command  string // runs the trial again
	// result is the trial, nil where there is none.
	result *lab.Result
}

// assertionsOf lists the assertions of each scenario, in the order of the document. A scenario without any is left
// out.
func assertionsOf(d *lab.Document) (names []string, byScenario map[string][]assertion) {
	byScenario = map[string][]assertion{}
	add := func(scenario string, list ...assertion) {
		if len(list) == 0 {
			return
		}
		if byScenario[scenario] == nil {
			names = append(names, scenario)
		}
		byScenario[scenario] = append(byScenario[scenario], list...)
	}
	trials := map[[2]string]int{}
	for i := range d.Results {
		trials[[2]string{d.Results[i].Scenario, d.Results[i].ID}]++
	}
	for i := range d.Results {
		r := &d.Results[i]
		add(r.Scenario, ofResult(d, r, trials[[2]string{r.Scenario, r.ID}] > 1)...)
	}
	seeds := map[[2]string]int{}
	if d.Comparison.OfSaved() {
		seeds = seedsOf(d.Comparison)
	}
	for _, x := range ofChanges(d.Comparison) {
		add(x.Scenario, ofChange(x, seeds[[2]string{x.Scenario, x.ID}] > 1))
	}
	for _, s := range d.Skipped {
		class, name := escape(s.Scenario), "every configuration"
		if s.ID != "" {
			class, name = class+"."+escape(s.ID), escape(s.ID)
		}
		add(s.Scenario, assertion{outcome: skipped, name: name, class: class, kind: "skipped", message: escape(s.Reason)})
	}
	return names, byScenario
}

// changeSame is the kind of what came out in the second of two saved results as it did in the first.
const changeSame = "same"

// ofChanges lists every trial of two saved results that were compared, with what has become of it: what changed first.
// It is empty where no saved results were.
func ofChanges(c *lab.Comparison) []lab.Change {
	if !c.OfSaved() {
		return nil
	}
	out := slices.Concat(c.Changes, c.Open)
	for _, t := range c.Same {
		out = append(out, lab.Change{Trial: t, Kind: changeSame})
	}
	return out
}

// toldInMessage is how much of what changed stands in the one line of a message.
const toldInMessage = 3

// ofChange is the assertion that a trial came out in the second of two saved results as it did in the first. several
// says that its configuration was run with more than one seed.
func ofChange(x lab.Change, several bool) assertion {
	a := assertion{name: "comes out as before", id: escape(x.ID), class: escape(x.Scenario) + "." + escape(x.ID), kind: x.Kind}
	if several {
		a.name += ", seed " + strconv.FormatInt(x.Seed, 10)
	}
	switch {
	case x.Kind == changeSame:
		return a
	case x.Kind == lab.ChangeOpen:
		a.outcome = errored
	default:
		a.outcome = failed
	}
	var what []string
	for _, w := range x.What {
		what = append(what, escape(w))
	}
	a.message = strings.Join(what[:min(len(what), toldInMessage)], "; ")
	if more := len(what) - toldInMessage; more > 0 {
		a.message += fmt.Sprintf("; and %d more", more)
	}
	if len(what) > 1 {
		a.evidence = what
	}
	return a
}

// ofResult lists the assertions of a trial. several says that its configuration was run with more
// than one seed.
func ofResult(d *lab.Document, r *lab.Result, several bool) (out []assertion) {
	base := assertion{id: escape(r.ID), class: escape(r.Scenario) + "." + escape(r.ID), command: repeat(d, r), result: r}
	seed := ""
	if several {
		seed = ", seed " + strconv.FormatInt(r.Seed, 10)
	}
	open := false // a check has said that the trial is inconclusive
	for _, c := range r.Checks {
		a := base
		a.name, a.kind = escape(c.Kind+" "+c.Name)+seed, escape(c.Kind)
		if c.Kind == "expect" {
			a.kind += "." + escape(c.Name)
		}
		a.expected, a.actual = escape(c.Expected), escape(c.Actual)
		a.file, a.line = escape(c.File), c.Line
		for _, e := range c.Evidence {
			a.evidence = append(a.evidence, escape(e))
		}
		if !c.Held {
			a.outcome = failed
			a.message = "expected " + a.expected + ", actual " + a.actual
			if c.Undefined {
				a.message = a.actual
			}
			if r.Verdict == lab.Inconclusive || c.Undefined {
				a.inconclusive(d, r)
				open = open || r.Verdict == lab.Inconclusive
			}
		}
		out = append(out, a)
	}
	if r.Verdict == lab.Inconclusive && !open {
		a := base
		a.name = "trial" + seed
		a.inconclusive(d, r)
		out = append(out, a)
	}
	return out
}

// inconclusive makes a the assertion that says why its trial is.
func (a *assertion) inconclusive(d *lab.Document, r *lab.Result) {
	a.outcome, a.kind = errored, "inconclusive"
	switch {
	case r.Defect:
		a.kind = "defect"
	case r.Environment:
		a.kind = "environment"
	case d.Run.InconclusivePasses:
		a.outcome = skipped
	}
	switch {
	case r.Why != "":
		a.message = escape(r.Why)
	case a.message == "":
		a.message = "no reason was recorded"
	}
	a.message = a.kind + ": " + a.message
}

// repeat is the command that runs a trial again, for a shell. A built-in scenario is known by the folder
// that its checks name; any other is run from its file, and where no check names one there is no command.
func repeat(d *lab.Document, r *lab.Result) string { return strings.Join(repeatWords(d, r), " ") }

// repeatWords are the words of the command, each as a shell takes it.
func repeatWords(d *lab.Document, r *lab.Result) []string {
	what := fileOf(r)
	for i := 0; i < len(d.Results) && what == ""; i++ {
		if other := &d.Results[i]; other.Scenario == r.Scenario {
			what = fileOf(other)
		}
	}
	switch {
	case what == "" || what == "-":
		return nil
	case strings.HasPrefix(what, "scenarios/") && path.Base(what) == r.Scenario+".yaml":
		what = r.Scenario
	case !strings.Contains(what, "/"):
		what = "./" + what // or an argument could be taken for a flag
	}
	words := []string{"retrylab", "run", what}
	switch {
	case len(r.Varied) == 0:
		words = append(words, "--only", r.ID)
	case len(d.Run.Only) == 1: // a row of a sweep is no configuration of the file, but of one
		words = append(words, "--only", strings.TrimPrefix(d.Run.Only[0], r.Scenario+":"))
	}
	for _, v := range r.Varied {
		words = append(words, "--vary", v.Path+"="+v.Value)
	}
	words = append(words, "--seed", strconv.FormatInt(r.Seed, 10))
	for _, set := range d.Run.Set {
		words = append(words, "--set", set)
	}
	for _, assert := range d.Run.Assert {
		words = append(words, "--assert", assert)
	}
	if d.Run.Clock == "wall" {
		words = append(words, "--clock", "wall", "--speed", strconv.FormatFloat(d.Run.Speed, 'f', -1, 64))
	}
	for i, w := range words {
		words[i] = quoted(escape(w))
	}
	return words
}

// fileOf is the file that the demands on a trial stand in.
func fileOf(r *lab.Result) string {
	for _, c := range r.Checks {
		if c.File != "" {
			return c.File
		}
	}
	return ""
}

var safeWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoted is a word as a POSIX shell takes it.
func quoted(word string) string {
	if safeWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
