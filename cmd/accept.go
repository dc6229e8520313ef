package cmd

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"retrylab/internal/judge"
	"retrylab/internal/lab"
	"retrylab/internal/suite"
	"retrylab/scenarios"
)

// checkAccept refuses --accept where what is measured is not what the file says, or there is no file.
func checkAccept(cmd *cobra.Command, list []*scenarios.Scenario, o suite.Options) error {
	for _, flag := range []string{"set", "vary", "assert", "repeat", "seed", "shard", "baseline"} {
		if cmd.Flags().Changed(flag) {
			return usagef("leave it away", "--accept takes what the file says, and --%s changes it", flag)
		}
	}
	switch {
	case len(list) > 1:
		return usagef("one after the other", "--accept is for one file, not %d", len(list))
	case o.Clock != "virtual":
		return usagef("leave --clock away", "--accept is for the virtual clock: times of the other are the machine's")
	case list[0].File == "stdin":
		return usagef("for example: retrylab run mine.yaml --accept", "--accept needs a file to write to, and standard input is none")
	case !isFile(list[0].File) || strings.HasPrefix(list[0].File, "scenarios/") && slices.Contains(scenarios.Names(), list[0].Name):
		return usagef(fmt.Sprintf("retrylab show %s > mine.yaml", list[0].Name), "--accept is for a file of yours, and %s is none", list[0].Name)
	}
	return nil
}

// accept writes what was measured into the file as what is expected, once a run of the new text holds.
func (a *app) accept(cmd *cobra.Command, s *scenarios.Scenario, doc *lab.Document, o suite.Options) error {
	var list []scenarios.Accepted
	seen := map[string]scenarios.Accepted{}
	for _, r := range doc.Results {
		x, any := judge.Accept(r)
		was, again := seen[r.ID]
		if seen[r.ID] = x; again && !reflect.DeepEqual(was, x) {
			return usagef("write what is the same for all of them by hand", "%s:%s comes to something else with each seed: nothing was written", s.Name, r.ID)
		}
		if any && !again {
			list = append(list, x)
		}
	}
	if len(list) == 0 {
		if why := notAccepted(doc); why != "" {
			say(a.stderr, "%s has nothing to accept: %s", s.File, why)
		} else {
			say(a.stderr, "%s expects what was measured already", s.File)
		}
		return nil
	}
	text, err := s.Accept(list)
	if err != nil {
		return err
	}
	changed, err := scenarios.Parse(s.File, text)
	if err != nil {
		return fmt.Errorf("--accept: what would be written is not right, and nothing was: %w", err)
	}
	o.Progress = nil
	again, err := a.runSuite(cmd.Context(), []*scenarios.Scenario{changed}, o)
	if err != nil {
		return err
	}
	for _, r := range again.Results {
		for _, c := range r.Checks {
			if c.Kind == "expect" && !c.Held {
				return usagef("write it by hand", "%s of %s:%s cannot be accepted: nothing was written", c.Name, s.Name, r.ID)
			}
		}
	}
	original, err := readFile(s.File)
	if err != nil {
		return err
	}
	if bytes.Contains(original, []byte("\r\n")) {
		text = bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
	}
	if mark := []byte("\ufeff"); bytes.HasPrefix(original, mark) {
		text = slices.Concat(mark, text)
	}
	out, err := a.openOutput(s.File)
	if err != nil {
		return err
	}
	defer out.discard() // of no effect once it is kept
	if _, err := out.Write(text); err != nil {
		return &suite.EnvironmentError{Err: fmt.Errorf("write %s: %w", s.File, err)}
	}
	if err := out.keep(); err != nil {
		return &suite.EnvironmentError{Err: err}
	}
	for _, x := range list {
		var words []string
		for _, c := range x.Values {
			if c.Value != "" {
				words = append(words, c.Path+": "+c.Value)
			}
		}
		say(a.stderr, "%s: %s now expects %s", s.File, x.ID, strings.Join(words, ", "))
	}
	a.code = again.ExitCode
	return nil
}

// notAccepted says what is wrong with a result that --accept never makes right; "" where nothing is.
func notAccepted(doc *lab.Document) string {
	demands := 0
	for _, r := range doc.Results {
		for _, c := range r.Checks {
			if c.Kind != "expect" && !c.Held && r.Verdict == lab.NotAsExpected {
				demands++
			}
		}
	}
	switch {
	case demands == 1:
		return "1 invariant does not hold, and an invariant is a demand, not a measurement"
	case demands > 1:
		return fmt.Sprintf("%d invariants do not hold, and an invariant is a demand, not a measurement", demands)
	case doc.Summary.Inconclusive > 0:
		return fmt.Sprintf("of %d inconclusive nothing is known", doc.Summary.Inconclusive)
	}
	return ""
}
