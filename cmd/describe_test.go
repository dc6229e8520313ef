package cmd

import (
	"regexp"
	"strings"
	"testing"

	"retrylab/scenarios"
)

// TestChain: what a class is told of a machine is written as a file would write it, and not as Go does, and names what
// decides.
func TestChain(t *testing.T) {
	t.Parallel()
	golike := regexp.MustCompile(`[{}\[\]]|0xc0|map\[|<nil>|%!|\d(m0s|h0m)`)
	chains := map[string]string{}
	list, err := scenarios.Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		trials, err := s.Plan(scenarios.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, trial := range trials {
			text := chain(trial)
			chains[s.Name+":"+trial.ID] = text
			if found := golike.FindString(text); found != "" {
				t.Errorf("%s:%s has %q: %s", s.Name, trial.ID, found, text)
			}
		}
	}
	for row, facts := range map[string][]string{
		"deadline-propagation:too-little-left-to-call": {"deadline header", "work-before 2.96s", "deadline pass"},
		"pool-exhausted:an-answer-left-open-pool-of-2": {"pool 2", "leak 1"},
		"expired-key:after-25-h":                       {"clean-up (at 24h30m)"},
		"tenant-scope:no-scope":                        {"1. (key 1, tenant north)", "2. (at 10s, key 1, tenant south)"},
	} {
		text, ok := chains[row]
		if !ok {
			t.Errorf("there is no %s", row)
		}
		for _, fact := range facts {
			if !strings.Contains(text, fact) {
				t.Errorf("%s lacks %q: %s", row, fact, text)
			}
		}
	}
}
