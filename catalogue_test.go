package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"retrylab/scenarios"
)

// shown is one thing that a scenario must show, with the rows that do: scenario and id.
type shown struct {
	what string
	rows [][2]string
}

// catalogue reads testdata/catalogue.txt: what each scenario must show, in the order of the file.
func catalogue(t *testing.T) (names []string, lines map[string][]shown) {
	t.Helper()
	data, err := os.ReadFile("testdata/catalogue.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines = map[string][]shown{}
	for i, line := range strings.Split(string(data), "\n") {
		switch text := strings.TrimSpace(line); {
		case text == "", strings.HasPrefix(text, "#"):
		case text == line:
			names = append(names, text)
		default:
			what, rows, ok := strings.Cut(text, " → ")
			if !ok || len(names) == 0 {
				t.Fatalf("testdata/catalogue.txt:%d: no line of a scenario: %s", i+1, text)
			}
			name := names[len(names)-1]
			s := shown{what: what}
			for row := range strings.FieldsSeq(rows) {
				scenario, id, other := strings.Cut(row, ":")
				if !other {
					scenario, id = name, row
				}
				s.rows = append(s.rows, [2]string{scenario, id})
			}
			lines[name] = append(lines[name], s)
		}
	}
	return names, lines
}

// TestCatalogue holds the list of what the catalogue must show against the built-in scenarios: every
// line of it has a row with numbers that it must give, and docs/catalogue.md shows which.
func TestCatalogue(t *testing.T) {
	names, lines := catalogue(t)
	all, err := scenarios.Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	rows := map[[2]string]scenarios.Trial{}
	for _, s := range all {
		trials, err := s.Plan(scenarios.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, trial := range trials {
			rows[[2]string{s.Name, trial.ID}] = trial
		}
	}
	var page strings.Builder
	page.WriteString("# The catalogue, line by line\n\nWhat each scenario must show, and the rows that show it: `retrylab run NAME:ROW` runs one of them. S, A\nand E are the sends, the arrivals and the orders that the row must give. This page is made from\n`testdata/catalogue.txt` and the scenario files (`go test . -update`), and a test compares them.\n")
	family := ""
	for _, s := range all {
		list := lines[s.Name]
		if len(list) == 0 {
			continue
		}
		if s.Family != family {
			family = s.Family
			fmt.Fprintf(&page, "\n## %s\n", family)
		}
		fmt.Fprintf(&page, "\n### %s\n\n%s.\n\n| line | rows |\n| --- | --- |\n", s.Name, s.Title)
		for _, line := range list {
			var cells []string
			for _, row := range line.rows {
				trial, ok := rows[row]
				switch {
				case !ok:
					t.Errorf("%s, %q: there is no row %s:%s", s.Name, line.what, row[0], row[1])
				case trial.Expect == nil && len(trial.Invariants) > 0:
					var demands []string
					for _, d := range trial.Invariants {
						demands = append(demands, d.Expression)
					}
					cells = append(cells, fmt.Sprintf("`%s:%s` %s", row[0], row[1], strings.Join(demands, ", ")))
				case trial.Expect == nil:
					t.Errorf("%s, %q: nothing is expected of the row %s:%s", s.Name, line.what, row[0], row[1])
				default:
					cells = append(cells, fmt.Sprintf("`%s:%s` %s", row[0], row[1], numbers(trial.Expect)))
				}
			}
			fmt.Fprintf(&page, "| %s | %s |\n", line.what, strings.Join(cells, "<br>"))
		}
	}
	for _, s := range all {
		if s.Family != scenarios.Incidents && !slices.Contains(names, s.Name) {
			t.Errorf("%s is not in testdata/catalogue.txt: say what it must show", s.Name)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(all, func(s *scenarios.Scenario) bool { return s.Name == name }) {
			t.Errorf("the catalogue has %s, and there is no scenario of that name", name)
		}
		if len(lines[name]) == 0 {
			t.Errorf("nothing is said of what %s must show", name)
		}
	}
	current(t, "docs/catalogue.md", page.String())
}

// TestChecklists holds the checklists against the tags of the built-in scenarios: each item is shown
// by some, no tag is misspelt, and docs/checklists.md shows which.
func TestChecklists(t *testing.T) {
	all, err := scenarios.Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	page.WriteString("# Checklists\n\nWhat to look at in a service of your own, and the scenarios that show it: `retrylab list --tag TAG`\nlists them, `retrylab run --tag TAG` runs them. This page is made from the scenario files.\n")
	for _, list := range scenarios.Checklists {
		fmt.Fprintf(&page, "\n## %s\n\n| | tag | scenarios |\n| --- | --- | --- |\n", list.Title)
		for _, item := range list.Items {
			var names []string
			for _, s := range all {
				if slices.Contains(s.Tags, item.Tag) {
					names = append(names, s.Name)
				}
			}
			if len(names) == 0 {
				t.Errorf("no scenario shows %s: %s", item.Tag, item.Text)
			}
			fmt.Fprintf(&page, "| %s | `%s` | %s |\n", item.Text, item.Tag, strings.Join(names, ", "))
		}
	}
	for _, s := range all {
		for _, tag := range s.Tags {
			if _, ok := scenarios.CheckOf(tag); !ok && strings.Contains("check pitfall test", strings.Split(tag, "-")[0]) {
				t.Errorf("%s has the tag %s, which is in no checklist", s.Name, tag)
			}
		}
	}
	current(t, "docs/checklists.md", page.String())
}

// current compares a page that is made from the scenario files with the one in docs.
func current(t *testing.T, file, page string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(page, string(got)); diff != "" {
		t.Errorf("%s is not what the files say (-files +page; go test . -update rewrites it):\n%s", file, diff)
	}
}

// numbers are the counts that a row must give, as the catalogue writes them.
func numbers(e *scenarios.Expect) string {
	var out []string
	for _, n := range []struct {
		letter string
		n      *int
	}{{"S", e.Sends}, {"A", e.Arrivals}, {"E", e.Effects}} {
		if n.n != nil {
			out = append(out, n.letter+strconv.Itoa(*n.n))
		}
	}
	if e.Belief != "" {
		out = append(out, e.Belief)
	}
	return strings.Join(out, " ")
}
