package engine_test

import (
	"strings"
	"testing"

	"retrylab/internal/engine"
	"retrylab/internal/lab"
	"retrylab/scenarios"
)

// TestWhoGetsTheLastConnection: of five operations that begin in one instant two have a connection, and
// which of them is up to the machine. That it is two and what becomes of the others is not.
func TestWhoGetsTheLastConnection(t *testing.T) {
	t.Parallel()
	alike := one(t, "inc-75-waiting-for-the-pool", "pool-of-2-sent-again")
	plan := newLab(t, engine.Virtual, 1).Run(t.Context(), alike)
	if plan.Broken != "" {
		t.Fatal(plan.Broken)
	}
	names := map[string]string{"op-1": "op-4", "op-2": "op-5", "op-3": "op-1", "op-4": "op-2", "op-5": "op-3"}
	other := engine.Renamed(plan, names, nil)
	if got := engine.Disagreement(alike, plan, other); got != "" {
		t.Errorf("others get the connections: %s", got)
	}
	if got, want := plan.Outcomes[0].Operation, "op-1"; got != want {
		t.Errorf("the plan's first operation is now called %s", got)
	}
	lost := engine.Renamed(plan, names, nil)
	for i, o := range lost.Outcomes {
		if o.Belief == lab.OK {
			lost.Outcomes[i].Belief, lost.Outcomes[i].Reason = lab.Failed, "acquire timeout"
			break
		}
	}
	if got := engine.Disagreement(alike, plan, lost); !strings.Contains(got, "acquire timeout") {
		t.Errorf("one operation less gets a connection, and the comparison says %q", got)
	}
	for name, differ := range map[string]func(*scenarios.Trial){
		"other amounts": func(t *scenarios.Trial) {
			t.Setup.Schedule = []scenarios.Intent{{Amount: 1}, {Amount: 2}, {Amount: 3}, {Amount: 4}, {Amount: 5}}
		},
		"other moments":   func(t *scenarios.Trial) { t.Setup.Interval = 100e6 },
		"named by number": func(t *scenarios.Trial) { t.Setup.Caller.Leak = []int{1} },
	} {
		trial := alike
		differ(&trial)
		if got := engine.Disagreement(trial, plan, other); got == "" {
			t.Errorf("%s, and another operation may all the same stand for the first", name)
		}
	}
}
