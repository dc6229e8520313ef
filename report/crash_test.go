package report

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retrylab/internal/lab"
)

// TestCrash: a replica that dies takes along what it had not answered, and nothing else.
func TestCrash(t *testing.T) {
	t.Parallel()
	events := []lab.Event{{Kind: lab.Start, Operation: "op-1"}}
	add := func(at time.Duration, kind lab.Kind, node, send string, status int, detail string) {
		events = append(events, lab.Event{At: at * time.Second, Kind: kind, Operation: "op-1", Send: send, Node: node, Status: status, Detail: detail})
	}
	for i, node := range []string{"order-1", "order-1", "order-1", "order-1", "order-2", "order-1"} {
		add(0, lab.Arrival, node, fmt.Sprintf("op-1/%d", i+1), 0, "")
	}
	add(1, lab.Answer, "order-1", "op-1/1", 201, "")
	add(1, lab.Fault, "order-1", "op-1/2", 0, "close@before-guard")
	add(1, lab.Fault, "order-1", "op-1/3", 0, "delay@before-guard")
	add(2, lab.Commit, "order-1", "op-1/4", 0, "")
	add(3, lab.Fault, "order-1", "op-1/6", 0, "crash@before-commit")
	add(3, lab.Crash, "order-1", "op-1/6", 0, "")
	add(3, lab.Rollback, "order-1", "op-1/6", 0, "crash")
	events = append(events, lab.Event{At: 5 * time.Second, Kind: lab.Restart, Node: "order-1"})
	add(6, lab.Answer, "order-2", "op-1/5", 201, "")

	var got []string
	for _, s := range tell(&lab.Result{Events: events}).served {
		got = append(got, fmt.Sprintf("%s: until %d, end %d, %v, back %d", s.path, s.to, s.end, s.faults, s.back))
	}
	want := []string{
		fmt.Sprintf("op-1/1: until 1000, end %d, [], back 0", answered),
		fmt.Sprintf("op-1/2: until 1000, end %d, [close@before-guard], back 0", broken),
		fmt.Sprintf("op-1/3: until 3000, end %d, [delay@before-guard crash], back 0", broken),
		fmt.Sprintf("op-1/4: until 3000, end %d, [crash], back 0", committed),
		fmt.Sprintf("op-1/5: until 6000, end %d, [], back 0", answered),
		fmt.Sprintf("op-1/6: until 3000, end %d, [crash@before-commit], back 5000", broken),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("arrivals (-want +got):\n%s", diff)
	}
}
