package report

import (
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
		"     2    3!x  0?\n",
		"     3    1    -\n",
		"  ! more than wanted, < believed ok and not there, ~ the seed decides, x not\n  held, ? inconclusive, - not run\n",
		"the one and the other are in one instant, and the seed decides",
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
