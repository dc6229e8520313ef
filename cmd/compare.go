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
	"retrylab/report"
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
	a.gitHubFlag(c)
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
	case saved == 2:
		return a.compareSaved(cmd, args, f)
	case seeds && f.options.Repeat < 2:
		return usagef("for example --repeat 50", "--seeds needs several of them")
	case len(args) == 0:
		return usagef("for example: retrylab compare read-timeout:one-attempt read-timeout:feign-retryer-3", "nothing to compare")
	}
	list, err := a.contenders(args, f)
	if err != nil {
		return err
	}
	a.prepare(cmd, f)
	a.interrupts.running.Store(true)
	outs, err := a.openOutputs(cmd, f.outputs)
	if err != nil {
		return err
	}
	defer outs.discard() // of no effect once they are kept
	a.interrupts.onLeave(outs.discard)
	doc, rows, err := a.runEach(cmd, list)
	if doc == nil {
		return err
	}
	if len(rows) > 0 {
		doc.Comparison = judge.Compare(rows, seeds)
	}
	written := outs.write(cmd.Context(), doc)
	a.tellGitHub(doc, f.outputs)
	if written != nil {
		return written
	}
	a.code = doc.ExitCode
	return err
}

// A contender is what one argument of a comparison names, with the settings of each of its configurations.
type contender struct {
	scenario *scenarios.Scenario
	options  suite.Options
	settings map[string][]lab.Setting
}

// contenders reads what the arguments name, before anything is run: what is named twice, or alone, is refused.
func (a *app) contenders(args []string, f runFlags) ([]contender, error) {
	var out []contender
	type key struct{ scenario, id string }
	files := map[key]string{}
	for _, arg := range args {
		own := f
		list, err := a.choose([]string{arg}, &own)
		if err != nil {
			return nil, err
		}
		c := contender{scenario: list[0], options: own.options}
		if c.settings, err = settingsOf(c.scenario, c.options); err != nil {
			return nil, err
		}
		for _, id := range slices.Sorted(maps.Keys(c.settings)) {
			k := key{c.scenario.Name, id}
			if file, again := files[k]; again {
				return nil, twice(k.scenario+":"+id, file, c.scenario.File)
			}
			files[k] = c.scenario.File
		}
		out = append(out, c)
	}
	if seeds := max(f.options.Repeat, len(out[0].scenario.Seeds)); len(files) == 1 && seeds < 2 {
		return nil, usagef("name another, or a scenario with several; --repeat compares its seeds", "there is one configuration, and nothing to hold it against")
	}
	return out, nil
}

// runEach runs the contenders and puts their results together in order.
func (a *app) runEach(cmd *cobra.Command, list []contender) (*lab.Document, []judge.Compared, error) {
	var whole *lab.Document
	var rows []judge.Compared
	for _, c := range list {
		c.options.Opened = a.interrupts.onLeave
		c.options.Version, c.options.Replica = version(), replicaProcess()
		c.options.Trace = a.trace
		doc, err := a.runSuite(cmd.Context(), []*scenarios.Scenario{c.scenario}, c.options)
		if doc == nil {
			return nil, nil, err
		}
		if doc.ExitCode == suite.ExitInterrupted {
			doc.ExitCode = a.interrupts.code()
		}
		rows = append(rows, comparedRows(doc.Results, c.settings)...)
		whole = suite.Join(whole, doc)
		if err != nil || cmd.Context().Err() != nil {
			return whole, rows, err
		}
	}
	return whole, rows, nil
}

// comparedRows are the results of one scenario by configuration, whose seeds stand together.
func comparedRows(results []lab.Result, settings map[string][]lab.Setting) []judge.Compared {
	var rows []judge.Compared
	for _, r := range results {
		if n := len(rows); n > 0 && rows[n-1].Results[0].ID == r.ID {
			rows[n-1].Results = append(rows[n-1].Results, r)
			continue
		}
		rows = append(rows, judge.Compared{Results: []lab.Result{r}, Settings: settings[r.ID]})
	}
	return rows
}

// settingsOf are the settings of each configuration that is to be run of a scenario, by its id; in a sweep, those
// that vary.
func settingsOf(s *scenarios.Scenario, o suite.Options) (map[string][]lab.Setting, error) {
	plan := o.Plan
	plan.Only = o.Only[s.Name]
	out := map[string][]lab.Setting{}
	if len(o.Vary) > 0 {
		trials, _, err := s.Sweep(plan, o.Vary)
		for _, t := range trials {
			for _, c := range t.Varied {
				out[t.ID] = append(out[t.ID], lab.Setting{Path: c.Path, Value: c.Value})
			}
		}
		return out, err
	}
	trials, err := s.Plan(plan)
	for _, t := range trials {
		out[t.ID] = wholeLists(t.Settings())
	}
	return out, err
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
	rows := comparedRows(doc.Results, settings)
	if len(rows) > 0 && rows[0].Results[0].ID == id { // else it was not run after all
		doc.Comparison = judge.Compare(rows, false)
	}
}

// isResult reports whether an argument names a saved result.
func isResult(arg string) bool { return filepath.Ext(arg) == ".json" }

// aboutRuns are the flags that mean nothing where nothing is run.
var aboutRuns = []string{"set", "seed", "repeat", "seeds", "clock", "speed", "store", "redis", "pg-bindir", "jobs", "rows", "timeline", "out-dir", "otlp", "allow-host"}

// compareSaved holds one saved result against another.
func (a *app) compareSaved(cmd *cobra.Command, args []string, f runFlags) error {
	for _, name := range aboutRuns {
		if f.origins.of[name] == "--"+name {
			hint := "run the other side with it first: retrylab run NAME --" + name + " … --json -o now.json"
			if slices.Contains([]string{"rows", "timeline", "out-dir", "otlp", "allow-host"}, name) {
				hint = "`retrylab report " + args[1] + "` shows one of them"
			}
			return usagef(hint, "--%s is about what runs, and these are saved results", name)
		}
	}
	if err := checkOfSaved(f.outputs); err != nil {
		return err
	}
	before, err := a.readRun(args[0])
	if err != nil {
		return err
	}
	after, err := a.readRun(args[1])
	if err != nil {
		return err
	}
	c := judge.Changes(before, after, [2]string{args[0], args[1]})
	if c.Compared == 0 {
		return nothingInBoth(before, after, args)
	}
	outs, err := a.openOutputs(cmd, f.outputs)
	if err != nil {
		return err
	}
	defer outs.discard() // of no effect once they are kept
	doc := suite.Compared(before, after, c)
	doc.Tool = lab.Tool{Name: "retrylab", Version: version()}
	switch {
	case len(c.Changes) > 0:
		doc.ExitCode = f.options.NotHeld
	case len(c.Open) > 0 && !f.options.Lenient:
		doc.ExitCode = suite.ExitInconclusive
	}
	err = outs.write(cmd.Context(), doc)
	a.tellGitHub(doc, f.outputs)
	if err != nil {
		return err
	}
	a.code = doc.ExitCode
	return nil
}

// readRun reads a saved result of a run, which a comparison is none.
func (a *app) readRun(path string) (*lab.Document, error) {
	doc, err := a.readResult(path)
	if err == nil && doc.Comparison.OfSaved() {
		err = usagef("`retrylab report "+path+"` shows it; compare the results that it is about", "%s is a comparison, and not the result of a run", path)
	}
	return doc, err
}

// checkOfSaved refuses the formats that show what ran, which two saved results are not.
func checkOfSaved(f outputFlags) error {
	names := []string{f.format}
	for _, r := range f.reports {
		name, _, _ := strings.Cut(r, "=")
		names = append(names, name)
	}
	for _, name := range names {
		if format, ok := report.Find(name); ok && format.Runs && !(f.json || f.plain) {
			return usagef("two saved results are compared in "+strings.Join(report.OfSaved(), ", "), "%s shows what ran", name)
		}
	}
	return nil
}

// nothingInBoth says why two saved results have no trial in common.
func nothingInBoth(before, after *lab.Document, args []string) error {
	first, second := before.Run.Shard, after.Run.Shard
	if first != nil && second != nil && before.Run.ID == after.Run.ID && first.Count == second.Count && first.Index != second.Index {
		return usagef(fmt.Sprintf("`retrylab report --merge %s` puts the parts together", strings.Join(args, " ")),
			"there is nothing to compare: %s and %s are parts %d and %d of one run", args[0], args[1], first.Index, second.Index)
	}
	holds := func(d *lab.Document) string {
		var names []string
		for _, r := range d.Results {
			if !slices.Contains(names, r.Scenario) {
				names = append(names, r.Scenario)
			}
		}
		switch {
		case len(names) == 0:
			return "nothing"
		case len(names) > 3:
			return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
		}
		return strings.Join(names, ", ")
	}
	hint := fmt.Sprintf("%s has %s, %s has %s", args[0], holds(before), args[1], holds(after))
	if holds(before) == holds(after) {
		hint = "they hold other configurations or other seeds of " + holds(before)
	}
	return usagef(hint, "there is nothing to compare: no trial is in both results")
}
