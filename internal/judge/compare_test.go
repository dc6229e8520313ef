package judge

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"retrylab/internal/lab"
)

// came is a result with some numbers.
func came(id string, arrivals, effects int, b lab.Beliefs, doneMs int64) lab.Result {
	return lab.Result{
		Scenario: "s", ID: id, Beliefs: b, CallerDoneMs: doneMs, Verdict: lab.AsExpected,
		Counts: lab.Counts{Operations: 1, Wanted: 1, Sends: arrivals, Arrivals: arrivals, Effects: effects},
	}
}

var (
	ok      = lab.Beliefs{OK: 1}
	unknown = lab.Beliefs{Unknown: 1}
)

func TestCompare(t *testing.T) {
	t.Parallel()
	got := Compare([]Compared{
		{Results: []lab.Result{came("a", 1, 1, ok, 5000)}, Settings: []lab.Setting{{Path: "x", Value: "1"}, {Path: "y", Value: "1"}}},
		{Results: []lab.Result{came("b", 3, 3, unknown, 5000)}, Settings: []lab.Setting{{Path: "z", Value: "1"}, {Path: "y", Value: "1"}}},
		{Results: []lab.Result{came("c", 1, 1, ok, 5000)}, Settings: []lab.Setting{{Path: "y", Value: "1"}, {Path: "x", Value: "2"}}},
	}, false)
	want := &lab.Comparison{
		Settings: []lab.Contrast{{Path: "x", Values: []string{"1", "", "2"}}, {Path: "z", Values: []string{"", "1", ""}}},
		Rows: []lab.ComparedRow{
			{Scenario: "s", ID: "a", Differences: []string{}},
			{Scenario: "s", ID: "b", Differences: []string{"believes unknown instead of ok", "3.0× sends", "3.0× arrivals", "2 orders more"}},
			{Scenario: "s", ID: "c", Differences: []string{}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestCompareSeeds: ranges that overlap are no difference, ranges that do not are one, and what hangs on the seed
// is told with how often it came.
func TestCompareSeeds(t *testing.T) {
	t.Parallel()
	got := Compare([]Compared{
		{Results: []lab.Result{came("a", 1, 1, ok, 100), came("a", 2, 1, ok, 100), came("a", 2, 1, ok, 100)}},
		{Results: []lab.Result{came("b", 2, 1, ok, 100), came("b", 3, 2, ok, 100), came("b", 3, 3, ok, 100)}},
		{Results: []lab.Result{came("c", 5, 1, ok, 100), came("c", 6, 1, ok, 200), came("c", 7, 1, ok, 300), came("c", 8, 1, ok, 400)}},
	}, true)
	want := []lab.ComparedRow{
		{Scenario: "s", ID: "a", Differences: []string{}, Varies: []string{"sends: 2 in 2, 1 in 1", "arrivals: 2 in 2, 1 in 1"}},
		{
			Scenario: "s", ID: "b", Differences: []string{"sends: ≈ (2-3 and 1-2)", "arrivals: ≈ (2-3 and 1-2)", "orders: ≈ (1-3 and 1)"},
			Varies: []string{"sends: 3 in 2, 2 in 1", "arrivals: 3 in 2, 2 in 1", "orders: 1 in 1, 2 in 1, 3 in 1"},
		},
		{
			Scenario: "s", ID: "c",
			Differences: []string{"sends: 5-8 instead of 1-2", "arrivals: 5-8 instead of 1-2", "caller done: ≈ (0.1s-0.4s and 0.1s)"},
			Varies:      []string{"sends: from 5 to 8", "arrivals: from 5 to 8", "caller done: from 0.1s to 0.4s"},
		},
	}
	if diff := cmp.Diff(want, got.Rows); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	failed := came("b", 1, 2, unknown, 100)
	failed.Verdict = lab.NotAsExpected
	held := []lab.Check{{Kind: "expect", Name: "effects", Held: true}, {Kind: "expect", Name: "arrivals", Held: true}}
	before, after := came("b", 1, 1, ok, 100), failed
	before.Checks = held
	after.Checks = []lab.Check{{Kind: "expect", Name: "effects"}, {Kind: "expect", Name: "arrivals", Held: true}}
	got := Changes(
		&lab.Document{Results: []lab.Result{came("a", 1, 1, ok, 100), before, came("gone", 1, 1, ok, 100)}},
		&lab.Document{Results: []lab.Result{came("new", 1, 1, ok, 100), after, came("a", 1, 1, ok, 100)}},
	)
	want := []lab.Change{
		{Scenario: "s", ID: "new", What: []string{"it is new"}},
		{Scenario: "s", ID: "b", What: []string{
			"orders: 2, was 1", "ok: 0, was 1", "unknown: 1, was 0", "verdict: not as expected, was as expected", "expect effects: not held, was held",
		}},
		{Scenario: "s", ID: "gone", What: []string{"it is not there any more"}},
	}
	if diff := cmp.Diff(want, got.Changes); diff != "" || got.Compared != 2 {
		t.Errorf("%d compared; -want +got:\n%s", got.Compared, diff)
	}
}
