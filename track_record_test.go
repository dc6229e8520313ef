package main

import (
	"fmt"
	"strings"
	"testing"

	"retrylab/scenarios"
)

// TestTrackRecord holds docs/track-record.md against the files of the incidents.
func TestTrackRecord(t *testing.T) {
	names := scenarios.IncidentNames()
	var page strings.Builder
	fmt.Fprintf(&page, "# Track record\n\n%d public reports of orders that were placed twice, or lost, or not known of, each as a scenario that\nplays it: `retrylab run ID` runs one, `retrylab describe ID` says what of its numbers was reported and what was\nchosen here. S, A and E are sends, arrivals and orders; in a row with more than one intent E is their sum. The\nnumbers are those that the rows must give, and a run is red when it gives others. This page is made from the\nscenario files (`go test . -update`). [Limits](limits.md) lists the reports that are not here.\n\n| report | as it was | mended |\n| --- | --- | --- |\n", len(names))
	for _, name := range names {
		s, err := scenarios.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		trials, err := s.Plan(scenarios.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		id := scenarios.IncidentID(name)
		fmt.Fprintf(&page, "| [%s](%s) %s<br>`retrylab run %s` | %s | %s |\n", strings.ToUpper(id), s.Sources[0], s.Title, id, shownBy(t, trials, s.Focus), shownBy(t, trials, s.Remedy))
	}
	current(t, "docs/track-record.md", page.String())
}

// shownBy is a row with what it must give.
func shownBy(t *testing.T, trials []scenarios.Trial, id string) string {
	t.Helper()
	for _, trial := range trials {
		if trial.ID == id {
			return trial.Configuration + ": " + numbers(trial.Expect)
		}
	}
	t.Errorf("an incident without a row %q", id)
	return ""
}
