package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"retrylab/internal/lab"
)

// JUnit is the form that CI systems read, in the common dialect that
// https://github.com/testmoapp/junitxml writes down: a suite per scenario, a case per check. There is
// neither time nor timestamp: a reader takes them for those of the machine, and the document knows
// only scenario time.
var JUnit = Format{
	Name:  "junit",
	Doc:   "JUnit XML with a test case per check, for CI systems",
	Write: writeJUnit,
}

type junitSuites struct {
	XMLName xml.Name `xml:"testsuites"`
	Name    string   `xml:"name,attr"`
	junitTotals
	Suites []junitSuite `xml:"testsuite"`
}

type junitTotals struct {
	Tests    int `xml:"tests,attr"`
	Failures int `xml:"failures,attr"`
	Errors   int `xml:"errors,attr"`
	Skipped  int `xml:"skipped,attr"`
}

func (t *junitTotals) add(o outcome) {
	t.Tests++
	switch o {
	case failed:
		t.Failures++
	case errored:
		t.Errors++
	case skipped:
		t.Skipped++
	}
}

type junitSuite struct {
	Name string `xml:"name,attr"`
	junitTotals
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	File    string        `xml:"file,attr,omitempty"`
	Line    int           `xml:"line,attr,omitempty"`
	Failure *junitOutcome `xml:"failure"`
	Error   *junitOutcome `xml:"error"`
	Skipped *junitOutcome `xml:"skipped"`
}

type junitOutcome struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Body    string `xml:",cdata"`
}

func writeJUnit(w io.Writer, d *lab.Document, _ Options) error {
	out := junitSuites{Name: "retrylab"}
	names, assertions := assertionsOf(d)
	for _, name := range names {
		suite := junitSuite{Name: escape(name), Properties: junitProperties(d, name)}
		for _, a := range assertions[name] {
			c := junitCase{Name: a.name, Class: a.class, File: a.file, Line: a.line}
			var err error
			switch a.outcome {
			case failed:
				c.Failure, err = a.junit(d)
			case errored:
				c.Error, err = a.junit(d)
			case skipped:
				c.Skipped = &junitOutcome{Message: a.message}
			}
			if err != nil {
				return fmt.Errorf("scenario %q: %w", name, err)
			}
			suite.Cases = append(suite.Cases, c)
			suite.add(a.outcome)
			out.add(a.outcome)
		}
		out.Suites = append(out.Suites, suite)
	}
	text, err := xml.MarshalIndent(out, "", "  ")
	if err != nil {
		return fmt.Errorf("encode JUnit: %w", err)
	}
	if _, err := fmt.Fprintf(w, "%s%s\n", xml.Header, text); err != nil {
		return fmt.Errorf("write JUnit: %w", err)
	}
	return nil
}

// junit says what is wrong: the numbers of the trial, what the check rests on, and how to see it again.
func (a *assertion) junit(d *lab.Document) (*junitOutcome, error) {
	var body string
	if a.result != nil {
		var err error
		if body, err = a.row(d); err != nil {
			return nil, err
		}
	}
	for _, e := range a.evidence {
		body += "  " + e + "\n"
	}
	if a.result != nil && a.result.Defect {
		body += "This is a defect of the lab itself; please report it.\n"
	}
	if a.command != "" {
		body += "again: " + a.command + "\n"
	}
	return &junitOutcome{Message: a.message, Type: a.kind, Body: "\n" + body}, nil
}

// row is the table of the one trial, in full.
func (a *assertion) row(d *lab.Document) (string, error) {
	b := &block{info: lab.ScenarioInfo{Name: a.result.Scenario}, results: []*lab.Result{a.result}, seeds: map[*lab.Result]int{a.result: 1}}
	if i := slices.IndexFunc(d.Scenarios, func(s lab.ScenarioInfo) bool { return s.Name == a.result.Scenario }); i >= 0 {
		b.info = d.Scenarios[i]
	}
	p := &page{setting: newSetting(Options{Unicode: true, Wide: true})}
	if err := p.table(b); err != nil {
		return "", err
	}
	return p.buf.String(), nil
}

// junitProperties are what a run was asked for, and what a scenario was run on.
func junitProperties(d *lab.Document, scenario string) (out []junitProperty) {
	add := func(name, value string) {
		if value != "" {
			out = append(out, junitProperty{name, escape(value)})
		}
	}
	if c := d.Comparison; c.OfSaved() { // the runs are those of the two
		for i, name := range c.Sources {
			add([]string{"before", "after"}[min(i, 1)], name)
		}
		for _, s := range (&page{setting: newSetting(Options{Unicode: true})}).contrasts(c) {
			add("asked for otherwise", s.path+": "+strings.Join(s.parts, ", "))
		}
		return out
	}
	add("version", strings.TrimSpace(d.Tool.Name+" "+d.Tool.Version))
	add("run", d.Run.ID)
	add("seed", strconv.FormatInt(d.Run.Seed, 10))
	if d.Run.Repeat > 1 {
		add("repeat", strconv.Itoa(d.Run.Repeat))
	}
	add("clock", d.Run.Clock)
	if d.Run.Speed > 0 {
		add("speed", strconv.FormatFloat(d.Run.Speed, 'f', -1, 64))
	}
	store := d.Run.Store
	for i := range d.Results {
		if r := &d.Results[i]; r.Scenario == scenario && r.Store != nil {
			store = *r.Store
		}
	}
	add("store", strings.TrimSpace(store.Engine+" "+store.Version))
	for _, set := range d.Run.Set {
		add("set", set)
	}
	for _, assert := range d.Run.Assert {
		add("assert", assert)
	}
	if d.Run.Interrupted {
		add("interrupted", "true")
	}
	return out
}
