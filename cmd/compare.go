package cmd

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"retrylab/internal/judge"
	"retrylab/internal/lab"
	"retrylab/internal/suite"
	"retrylab/scenarios"
)

func (a *app) compareCommand() *cobra.Command {
	var f runFlags
	var seeds bool
	c := &cobra.Command{
		Use:   "compare A B…",
		Short: "Hold configurations against each other, or two saved results",
		Long: "Hold configurations against the first of them: what is set otherwise, once, and what\n" +
			"came out otherwise, in words. Each of A B … is a scenario (all of its configurations),\n" +
			"NAME:ID, a file, or a saved result. Two saved results are compared trial by trial; the\n" +
			"exit code is 1 if anything changed.",
		Example: "  retrylab compare read-timeout:one-attempt read-timeout:feign-retryer-3\n" +
			"  retrylab compare read-timeout order-incident --set caller.timeouts.read=15s\n" +
			"  retrylab compare check-then-insert --repeat 50 --seeds\n" +
			"  retrylab compare before.json after.json",
		ValidArgsFunction: a.completeConfigurations,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if f.origins, err = a.defaults(cmd, !f.alone); err != nil {
				return err
			}
			return a.compare(cmd, args, f, seeds)
		},
	}
	c.Flags().BoolVar(&seeds, "seeds", false, "say which numbers hang on the seed; with --repeat")
	a.labFlags(&f, c)
	f.outputs.flags(c)
	return c
}

func (a *app) compare(cmd *cobra.Command, args []string, f runFlags, seeds bool) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	saved := 0
	for _, arg := range args {
		if isResult(arg) {
			saved++
		}
	}
	if saved > 0 && (saved < len(args) || saved != 2) {
		return usagef("two of them are compared trial by trial; of a result's scenarios give the names", "saved results are compared two at a time, and with nothing else")
	}
	switch {
	case seeds && f.options.Repeat < 2:
		return usagef("for example --repeat 50", "--seeds needs several of them")
	case len(args) == 0:
		return usagef("for example: retrylab compare read-timeout:one-attempt read-timeout:feign-retryer-3", "nothing to compare")
	case saved == 2:
		return a.compareSaved(cmd, args, f)
	}
	a.prepare(cmd, f)
	a.interrupts.running.Store(true)
	outs, err := a.openOutputs(cmd, f.outputs)
	if err != nil {
		return err
	}
	defer outs.discard() // of no effect once they are kept
	a.interrupts.onLeave(outs.discard)
	doc, rows, err := a.runEach(cmd, args, f)
	if doc == nil {
		return err
	}
	if len(rows) > 0 {
		doc.Comparison = judge.Compare(rows, seeds)
	}
	if err := outs.write(cmd.Context(), doc); err != nil {
		return err
	}
	a.code = doc.ExitCode
	return err
}

// runEach runs what each argument names and puts the results together in the order of the arguments.
func (a *app) runEach(cmd *cobra.Command, args []string, f runFlags) (*lab.Document, []judge.Compared, error) {
	var whole *lab.Document
	var rows []judge.Compared
	type key struct{ scenario, id string }
	at := map[key]int{}
	for _, arg := range args {
		own := f
		list, err := a.choose([]string{arg}, &own)
		if err != nil {
			return nil, nil, err
		}
		settings, err := settingsOf(list[0], own.options)
		if err != nil {
			return nil, nil, err
		}
		own.options.Opened = a.interrupts.onLeave
		own.options.Version, own.options.Replica = version(), replicaProcess()
		own.options.Trace = a.trace
		doc, err := a.runSuite(cmd.Context(), list, own.options)
		if doc == nil {
			return nil, nil, err
		}
		for _, r := range doc.Results {
			k := key{r.Scenario, r.ID}
			i, known := at[k]
			if !known {
				i = len(rows)
				at[k] = i
				rows = append(rows, judge.Compared{Settings: settings[r.ID]})
			}
			rows[i].Results = append(rows[i].Results, r)
		}
		if doc.ExitCode == suite.ExitInterrupted {
			doc.ExitCode = a.interrupts.code()
		}
		whole = suite.Join(whole, doc)
		if err != nil || cmd.Context().Err() != nil {
			return whole, rows, err
		}
	}
	if whole != nil && len(rows) == 1 && len(rows[0].Results) == 1 {
		return nil, nil, usagef("name another, or a scenario with several; --repeat compares its seeds", "there is one configuration, and nothing to hold it against")
	}
	return whole, rows, nil
}

// settingsOf are the settings of each configuration that is to be run of a scenario, by its id; in a sweep, those
// that vary.
func settingsOf(s *scenarios.Scenario, o suite.Options) (map[string][]lab.Setting, error) {
	plan := o.Plan
	plan.Only = o.Only[s.Name]
	trials, err := s.Plan(plan)
	if len(o.Vary) > 0 {
		trials, _, err = s.Sweep(plan, o.Vary)
	}
	if err != nil {
		return nil, err
	}
	out := map[string][]lab.Setting{}
	for _, t := range trials {
		out[t.ID] = wholeLists(t.Settings())
		if len(o.Vary) > 0 {
			out[t.ID] = nil
			for _, c := range t.Varied {
				out[t.ID] = append(out[t.ID], lab.Setting{Path: c.Path, Value: c.Value})
			}
		}
	}
	return out, nil
}

// wholeLists makes one setting of all that stands in a list: layers that differ are read beside each other.
func wholeLists(settings []scenarios.Setting) []lab.Setting {
	var out []lab.Setting
	for _, s := range settings {
		path, below, inList := strings.Cut(s.Path, "[")
		value := s.Value
		if inList {
			if _, key, ok := strings.Cut(below, "]."); ok {
				value = key + " " + value
			}
		}
		if n := len(out); inList && n > 0 && out[n-1].Path == path {
			out[n-1].Value += ", " + value
			continue
		}
		out = append(out, lab.Setting{Path: path, Value: value})
	}
	return out
}

// checkBaseline refuses a baseline that is not among the configurations that are to be run.
func checkBaseline(id string, settings map[string][]lab.Setting) error {
	if _, ok := settings[id]; ok {
		return nil
	}
	ids := slices.Sorted(maps.Keys(settings))
	hint := "one of: " + strings.Join(ids, ", ")
	if near := scenarios.Nearest(id, ids); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return usagef(hint, "--baseline: no configuration %q is to be run", id)
}

// holdAgainst holds the results of one scenario against those of one of its configurations, which it puts first.
func holdAgainst(doc *lab.Document, id string, settings map[string][]lab.Setting) {
	slices.SortStableFunc(doc.Results, func(a, b lab.Result) int {
		switch {
		case a.ID == id && b.ID != id:
			return -1
		case b.ID == id && a.ID != id:
			return 1
		}
		return 0
	})
	var rows []judge.Compared
	for _, r := range doc.Results {
		if n := len(rows); n > 0 && rows[n-1].Results[0].ID == r.ID {
			rows[n-1].Results = append(rows[n-1].Results, r)
			continue
		}
		rows = append(rows, judge.Compared{Results: []lab.Result{r}, Settings: settings[r.ID]})
	}
	if len(rows) > 0 && rows[0].Results[0].ID == id { // else it was not run after all
		doc.Comparison = judge.Compare(rows, false)
	}
}

// isResult reports whether an argument names a saved result.
func isResult(arg string) bool { return filepath.Ext(arg) == ".json" }

// compareSaved holds one saved result against another.
func (a *app) compareSaved(cmd *cobra.Command, args []string, f runFlags) error {
	before, err := a.readResult(args[0])
	if err != nil {
		return err
	}
	after, err := a.readResult(args[1])
	if err != nil {
		return err
	}
	outs, err := a.openOutputs(cmd, f.outputs)
	if err != nil {
		return err
	}
	defer outs.discard() // of no effect once they are kept
	doc := &lab.Document{
		Schema: lab.ResultSchema, SchemaVersion: lab.ResultSchemaVersion,
		Tool: lab.Tool{Name: "retrylab", Version: version()}, Run: after.Run,
		Comparison: judge.Changes(before, after),
	}
	if len(doc.Comparison.Changes) > 0 {
		doc.ExitCode = suite.ExitNotHeld
	}
	if err := outs.write(cmd.Context(), doc); err != nil {
		return err
	}
	a.code = doc.ExitCode
	return nil
}
