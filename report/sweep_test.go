package report

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"retrylab/internal/lab"
)

// swept is a result of a sweep with so many orders.
func swept(down, across string, orders int) lab.Result {
	return lab.Result{
		Scenario: "s", Configuration: down + across, ID: down + across, Seed: 1, Verdict: lab.Measured,
		Varied: []lab.Setting{{Path: "a.down", Value: down}, {Path: "b.across", Value: across}},
		Counts: lab.Counts{Operations: 1, Wanted: 1, Effects: orders, Duplicates: max(0, orders-1)},
	}
}

// TestSweepMarks looks at every mark of a cell, with words in the legend for those that are there and no others.
func TestSweepMarks(t *testing.T) {
	t.Parallel()
	tied := swept("1", "x", 1)
	tied.Tie = &lab.Tie{Pairs: []string{"the one and the other"}, Least: 1, Most: 2}
	lost := swept("1", "y", 0)
	lost.Counts.Lost = 1
	failed := swept("2", "x", 3)
	failed.Verdict = lab.NotAsExpected
	open := swept("2", "y", 0)
	open.Verdict = lab.Inconclusive
	d := &lab.Document{
		Scenarios: []lab.ScenarioInfo{{Name: "s"}},
		Run:       lab.RunInfo{Vary: []lab.Varying{{Path: "a.down", Values: []string{"1", "2", "3"}}, {Path: "b.across", Values: []string{"x", "y"}}}},
		Results:   []lab.Result{tied, lost, failed, open, swept("3", "x", 1)},
	}
	text := printed(t, Table, d, Options{Width: 80, Timeline: "never"})
	for _, want := range []string{
		"orders by a.down (down) and b.across (across)",
		"     1  1-2!~  0<\n",
		"     2    3!x  ?\n",
		"     3    1    -\n",
		"  ! more than wanted, < believed ok and not there, ~ the seed decides, x not\n  held, ? inconclusive, - not run\n",
		"the one and the other: which comes first is up to the seed",
		"there are 1 or 2 orders",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	d.Results = []lab.Result{swept("1", "x", 1), swept("1", "y", 1), swept("2", "x", 1), swept("2", "y", 1), swept("3", "x", 1), swept("3", "y", 12)}
	text = printed(t, Table, d, Options{Width: 80, Timeline: "never"})
	for _, never := range []string{"believed ok", "seed decides", "not held", "inconclusive", "not run"} {
		if strings.Contains(text, never) {
			t.Errorf("%q is explained and not there:\n%s", never, text)
		}
	}
	if want := "     1  1   1\n     2  1   1\n     3  1  12!\n"; !strings.Contains(text, want) {
		t.Errorf("the numbers do not stand on their last digit:\n%s", text)
	}
}

// TestSweepUncounted: a combination of which nothing is known has no number, whatever its zeros are.
func TestSweepUncounted(t *testing.T) {
	t.Parallel()
	broken := swept("1", "x", 0)
	broken.Verdict, broken.Uncounted = lab.Inconclusive, true
	other := swept("1", "y", 0)
	other.Verdict = lab.Inconclusive
	counted := swept("1", "y", 2)
	counted.Seed = 2
	d := &lab.Document{
		Scenarios: []lab.ScenarioInfo{{Name: "s"}},
		Run:       lab.RunInfo{Vary: []lab.Varying{{Path: "a.down", Values: []string{"1", "2"}}, {Path: "b.across", Values: []string{"x", "y"}}}},
		Results:   []lab.Result{broken, other, counted, swept("2", "x", 3)},
	}
	text := printed(t, Table, d, Options{Width: 80, Timeline: "never"})
	if want := "     1  ?   2!?\n     2  3!  -\n"; !strings.Contains(text, want) {
		t.Errorf("there is no %q in\n%s", want, text)
	}
}

// TestSweepOfThree: of three settings the two with the most values make the grid, once for each value of the third.
func TestSweepOfThree(t *testing.T) {
	t.Parallel()
	vary := []lab.Varying{{Path: "a.key", Values: []string{"none", "one"}}, {Path: "b.read", Values: []string{"1s", "2s", "3s"}}, {Path: "c.guard", Values: []string{"x", "y"}}}
	d := &lab.Document{Scenarios: []lab.ScenarioInfo{{Name: "s"}}, Run: lab.RunInfo{Vary: vary}}
	n := 0
	for _, key := range vary[0].Values {
		for _, read := range vary[1].Values {
			for _, guard := range vary[2].Values {
				r := swept(read, guard, n)
				r.Configuration = "key " + key + ", read " + read + ", guard " + guard
				r.ID = r.Configuration
				r.Varied = []lab.Setting{{Path: "a.key", Value: key}, {Path: "b.read", Value: read}, {Path: "c.guard", Value: guard}}
				r.Counts.Duplicates = 0
				d.Results = append(d.Results, r)
				n++
			}
		}
	}
	text := printed(t, Table, d, Options{Width: 80, Timeline: "never"})
	want := `
  orders by b.read (down) and a.key (across)

  guard x

  read  none  one
    1s  0      6
    2s  2      8
    3s  4     10

  guard y

  read  none  one
    1s  1      7
    2s  3      9
    3s  5     11
`
	if !strings.Contains(text, want) {
		t.Errorf("there is no\n%s\nin\n%s", want, text)
	}
	if text := printed(t, Markdown, d, Options{}); !strings.Contains(text, "guard x\\: orders by") || !strings.Contains(text, "| 3s | 5 | 11 |") {
		t.Errorf("Markdown has no grid of each guard:\n%s", text)
	}
	d.Run.Vary[2].Values = []string{"x", "y", "3", "4", "5", "6", "7"}
	d.Run.Vary[0].Values = d.Run.Vary[2].Values
	d.Run.Vary[1].Values = d.Run.Vary[2].Values
	if text := printed(t, Table, d, Options{Width: 80, Timeline: "never"}); !strings.Contains(text, "key one, read 3s, guard y") {
		t.Errorf("seven grids are no rows:\n%s", text)
	}
}

// TestTiesAlike: one reason for several values of a setting is told once.
func TestTiesAlike(t *testing.T) {
	t.Parallel()
	var results []lab.Result
	for _, read := range []string{"1s", "5s", "11s"} {
		for _, guard := range []string{"none", "check"} {
			r := swept(read, guard, 2)
			r.Configuration = "down " + read + ", across " + guard
			if read != "1s" && guard == "check" {
				r.Tie = &lab.Tie{Pairs: []string{"another request looks for the key at 12s, in the instant in which the first one commits"}, Least: 1, Most: 2}
			}
			results = append(results, r)
		}
	}
	d := &lab.Document{
		Scenarios: []lab.ScenarioInfo{{Name: "s"}},
		Run:       lab.RunInfo{Vary: []lab.Varying{{Path: "a.down", Values: []string{"1s", "5s", "11s"}}, {Path: "b.across", Values: []string{"none", "check"}}}},
		Results:   results,
	}
	told := func(want string) {
		t.Helper()
		if text := printed(t, Table, d, Options{Width: 300, Timeline: "never"}); !strings.Contains(text, want) || strings.Count(text, "another request") != 1 {
			t.Errorf("there is no %q, once, in\n%s", want, text)
		}
	}
	told("  down 5s and 11s, across check: another request looks for the key at 12s, in the instant in which the first one commits: " +
		"which comes first is up to the seed. With 2 ms more or less of processing there are 1 or 2 orders.\n")
	results[3].Tie.Most = 3
	told("there are 1 to 3 at 5s and 1 or 2 at 11s.\n")
}

// TestAgainOfASweep: a row of a sweep is run again by its values, since no configuration has its id.
func TestAgainOfASweep(t *testing.T) {
	t.Parallel()
	r := swept("1s", "none", 3)
	r.Verdict = lab.NotAsExpected
	r.Checks = []lab.Check{{Kind: "assert", Name: "effects == wanted", Expected: "true", Actual: "effects = 3", File: "mine.yaml", Line: 3}}
	d := &lab.Document{
		Scenarios: []lab.ScenarioInfo{{Name: "s", Next: "other"}},
		Run: lab.RunInfo{
			Only: []string{"s:one"}, Assert: []string{"effects == wanted"},
			Vary: []lab.Varying{{Path: "a.down", Values: []string{"1s", "2s"}}, {Path: "b.across", Values: []string{"none"}}},
		},
		Results: []lab.Result{r, swept("2s", "none", 1)},
		Summary: lab.Summary{NotAsExpected: 1, Measured: 1},
	}
	want := "again: retrylab run ./mine.yaml --only one --vary a.down=1s \\\n  --vary b.across=none --seed 1 --assert 'effects == wanted'\n"
	if text := printed(t, Table, d, Options{Width: 64, Timeline: "never"}); !strings.HasSuffix(text, want) {
		t.Errorf("there is no %q at the end of\n%s", want, text)
	}
	d.Results[0].Verdict, d.Results[0].Checks, d.Summary = lab.Measured, nil, lab.Summary{Measured: 2}
	if text := printed(t, Table, d, Options{Width: 80, Timeline: "never"}); strings.Contains(text, "next:") || strings.Contains(text, "again:") {
		t.Errorf("a sweep sends people on:\n%s", text)
	}
}

// TestVerdictColours: what is bad for the user of the service is no success in colour, though it was expected.
func TestVerdictColours(t *testing.T) {
	t.Parallel()
	r := lab.Result{
		Scenario: "s", Configuration: "one", ID: "one", Verdict: lab.AsExpected,
		Counts: lab.Counts{Operations: 1, Wanted: 1, Effects: 3, Duplicates: 2}, Said: []lab.Said{{Name: "effects", Said: 9}},
	}
	d := &lab.Document{Scenarios: []lab.ScenarioInfo{{Name: "s"}}, Results: []lab.Result{r}}
	for width, want := range map[int]string{
		200: "\x1b[32mheld\x1b[0m\x1b[33m, 2 too many\x1b[0m; often said: 9 orders\n",
		77:  "\x1b[32mheld\x1b[0m\x1b[33m, 2 too many\x1b[0m;\n" + strings.Repeat(" ", 57) + "often said: 9 orders\n",
	} {
		if text := printed(t, Table, d, Options{Width: width, Color: true, Unicode: true}); !strings.Contains(text, want) {
			t.Errorf("%d columns: there is no %q in\n%q", width, want, text)
		}
	}
}

// TestExtraInTimeline: orders beyond the wanted ones have a mark of their own, by operation, and a legend.
func TestExtraInTimeline(t *testing.T) {
	t.Parallel()
	r := lab.Result{Scenario: "s", Configuration: "one", ID: "one", Verdict: lab.Measured, Nodes: []lab.Node{}}
	add := func(kind lab.Kind, op, try, node string, at int64, order int64) {
		r.Events = append(r.Events, lab.Event{At: lab.FromMillis(at), Kind: kind, Operation: op, Send: op + "/retry." + try, Node: node, Order: order})
	}
	for i, op := range []string{"op-1", "op-2"} {
		r.Events = append(r.Events, lab.Event{Kind: lab.Start, Operation: op})
		for n, try := range []string{"1", "2"}[:2-i] {
			at, order := int64(1000*n+500*i), int64(10*i+n+1)
			add(lab.Send, op, try, "caller", at, 0)
			add(lab.Arrival, op, try, "order-1", at, 0)
			add(lab.Commit, op, try, "order-1", at+400, order)
			r.Orders = append(r.Orders, lab.Effect{Order: order, Operation: op})
		}
	}
	slices.SortStableFunc(r.Events, func(a, b lab.Event) int { return cmp.Compare(a.At, b.At) })
	d := &lab.Document{Scenarios: []lab.ScenarioInfo{{Name: "s"}}, Results: []lab.Result{r}}
	for unicode, marks := range map[bool][2]string{true: {"●", "◆"}, false: {"*", "@"}} {
		text := printed(t, Table, d, Options{Width: 100, Unicode: unicode, Timeline: "always"})
		for _, want := range []string{marks[0] + " 0.4s", marks[0] + " 0.9s", marks[1] + " 1.4s", marks[0] + " order committed", marks[1] + " order beyond the wanted one"} {
			if !strings.Contains(text, want) {
				t.Errorf("there is no %q in\n%s", want, text)
			}
		}
	}
}
