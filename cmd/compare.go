package cmd

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
			"NAME:ID, or a file. Two saved results, or one and what is run now, are compared trial by\n" +
			"trial, over everything that is measured; the exit code is 1 if anything changed.",
		Example: "  retrylab compare read-timeout:one-attempt read-timeout:feign-retryer-3\n" +
			"  retrylab compare read-timeout order-incident --set caller.timeouts.read=15s\n" +
			"  retrylab compare backoff --repeat 50 --seeds\n" +
			"  retrylab compare before.json after.json\n" +
			"  retrylab compare before.json read-timeout:feign-retryer-3",
		ValidArgsFunction: a.completeConfigurations,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if f.origins, err = a.defaults(cmd, !f.alone); err != nil {
				return err
			}
			return a.compare(cmd, args, f, seeds)
		},
	}
	c.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) {
			switch unknown.GetSpecifiedName() {
			case "baseline":
				return usagef("name it first: retrylab compare BASELINE OTHER…", "compare has no --baseline: what is named first is the baseline")
			case "vary":
				return usagef("retrylab run NAME:ID --vary PATH=VALUES --baseline ID holds the values against one of them", "compare has no --vary")
			}
		}
		return flagError(cmd, err)
	})
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
	switch {
	case saved > 0 && len(args) == 1:
		return usagef("for example: retrylab compare "+args[0]+" read-timeout", "%s is one saved result, and nothing to hold it against", args[0])
	case saved > 0 && len(args) > 2:
		return usagef("name the saved result and one other", "saved results are compared with one other, not with %d", len(args)-1)
	case saved > 0 && seeds:
		return usagef("it compares configurations that run", "--seeds means nothing of a saved result")
	case saved > 0:
		return a.compareSaved(cmd, args, f, saved == 2)
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
	bar := a.newProgress(moment, f.outputs.quiet, f.outputs.verbose)
	defer bar.end()
	doc, rows, err := a.runEach(cmd, list, bar)
	bar.end()
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
	file     bool // it is none of the built-in ones
	options  suite.Options
	settings map[string][]lab.Setting
}

// contenders reads what the arguments name, before anything is run: what is named twice, or alone, is refused.
func (a *app) contenders(args []string, f runFlags) ([]contender, error) {
	var out []contender
	for _, arg := range args {
		own := f
		list, err := a.choose([]string{arg}, &own)
		if err != nil {
			return nil, err
		}
		out = append(out, contender{scenario: list[0], options: own.options, file: isFile(arg)})
	}
	tellApart(out)
	type key struct{ scenario, id string }
	files := map[key]string{}
	var settings []map[string][]lab.Setting
	for i := range out {
		c := &out[i]
		var err error
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
		settings = append(settings, c.settings)
	}
	sayNone(settings)
	if seeds := max(f.options.Repeat, len(out[0].scenario.Seeds)); len(files) == 1 && seeds < 2 {
		return nil, usagef("name another, or a scenario with several; --repeat compares its seeds", "there is one configuration, and nothing to hold it against")
	}
	return out, nil
}

// tellApart gives scenarios of different files that have one name another one each in this run: that of the file. A
// built-in one keeps its own.
func tellApart(list []contender) {
	taken := map[string]string{} // the file of each name
	named := map[string]bool{}
	for _, c := range list {
		if file, ok := taken[c.scenario.Name]; ok && file != c.scenario.File {
			named[c.scenario.Name] = true
		}
		taken[c.scenario.Name] = c.scenario.File
	}
	for i := range list {
		c := &list[i]
		was := c.scenario.Name
		if !named[was] || !c.file {
			continue
		}
		base := scenarios.Slug(strings.TrimSuffix(filepath.Base(c.scenario.File), filepath.Ext(c.scenario.File)))
		if base == "" {
			base = was
		}
		name := base
		for n := 2; taken[name] != "" && taken[name] != c.scenario.File; n++ {
			name = fmt.Sprintf("%s-%d", base, n)
		}
		taken[name] = c.scenario.File
		renamed := *c.scenario
		renamed.Name = name
		c.scenario = &renamed
		c.options.Only = map[string]string{name: c.options.Only[was]}
		c.options.Named = map[string]bool{name: true}
	}
}

// runEach runs the contenders and puts their results together in order.
func (a *app) runEach(cmd *cobra.Command, list []contender, bar *progress) (*lab.Document, []judge.Compared, error) {
	var whole *lab.Document
	var rows []judge.Compared
	for _, c := range list {
		c.options.Progress = bar.step
		c.options.Opened = a.interrupts.onLeave
		c.options.Version, c.options.Replica = version(), replicaProcess()
		c.options.Trace = a.trace
		doc, err := a.runSuite(cmd.Context(), []*scenarios.Scenario{c.scenario}, c.options)
		if doc == nil {
			return whole, rows, err // what was measured by then is not given up
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

// settingsOf are, before [sayNone], the settings of each configuration that is to be run of a scenario, by its id; in a sweep, those
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
		out[t.ID] = settingsOfTrial(t)
	}
	return out, err
}

// settingsOfTrial are the settings of the system that is tried. All that stands in a list is one setting, so that lists are
// read beside each other; layers are written as `describe` writes them.
func settingsOfTrial(t scenarios.Trial) []lab.Setting {
	var out []lab.Setting
	for _, s := range t.Settings() {
		path, below, inList := strings.Cut(s.Path, "[")
		if path == "premises" { // which are demands of the file
			continue
		}
		value := s.Value
		if inList {
			if _, key, ok := strings.Cut(below, "]."); ok {
				value = key + " " + value
			}
		}
		n := len(out)
		switch again := inList && n > 0 && out[n-1].Path == path+listMark; {
		case again && path == "caller.layers":
		case again:
			out[n-1].Value += ", " + value
		case inList && path == "caller.layers":
			out = append(out, lab.Setting{Path: path + listMark, Value: layers(t.Layers, t.Setup.Caller.Layers)})
		case inList:
			out = append(out, lab.Setting{Path: path + listMark, Value: value})
		default:
			out = append(out, lab.Setting{Path: path, Value: value})
		}
	}
	return out
}

// listMark marks a setting that is a list until [sayNone] has seen all of them.
const listMark = "[]"

// sayNone says of each list that some configurations have that it is empty in the others.
func sayNone(all []map[string][]lab.Setting) {
	var lists []string
	for _, settings := range all {
		for _, id := range slices.Sorted(maps.Keys(settings)) {
			for i, s := range settings[id] {
				path, isList := strings.CutSuffix(s.Path, listMark)
				if isList && !slices.Contains(lists, path) {
					lists = append(lists, path)
				}
				settings[id][i].Path = path
			}
		}
	}
	for _, settings := range all {
		for id, list := range settings {
			for _, path := range lists {
				if !slices.ContainsFunc(list, func(s lab.Setting) bool { return s.Path == path }) {
					list = append(list, lab.Setting{Path: path, Value: "none"})
				}
			}
			settings[id] = list
		}
	}
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

// isResult reports whether an argument names a saved result, or one configuration of it.
func isResult(arg string) bool {
	path, _ := resultArg(arg)
	return filepath.Ext(path) == ".json"
}

// resultArg takes a saved result's path and the id of a configuration of it apart.
func resultArg(arg string) (path, id string) {
	if before, after, ok := strings.Cut(arg, ".json:"); ok {
		return before + ".json", after
	}
	return arg, ""
}

// aboutRuns are the flags that mean nothing where nothing is run, and aboutEvents those that mean nothing of a saved
// result: it is told what changed, and not what took place.
var (
	aboutRuns   = []string{"set", "seed", "repeat", "seeds", "clock", "speed", "store", "redis", "pg-bindir", "jobs"}
	aboutEvents = []string{"rows", "timeline", "out-dir", "otlp", "allow-host"}
)

// compareSaved holds one saved result against another, or against what it runs now.
func (a *app) compareSaved(cmd *cobra.Command, args []string, f runFlags, both bool) error {
	for i, name := range slices.Concat(aboutEvents, aboutRuns) {
		shows := i < len(aboutEvents)
		if f.origins.of[name] != "--"+name || !both && !shows {
			continue
		}
		hint := "run the other side with it: retrylab compare " + args[0] + " NAME --" + name + " …"
		if shows {
			hint = "`retrylab report FILE` shows one of them"
		}
		return usagef(hint, "--%s is about what runs, and these are saved results", name)
	}
	if err := checkOfSaved(f.outputs); err != nil {
		return err
	}
	var docs [2]*lab.Document
	running := -1
	var one contender
	for i, arg := range args {
		if !isResult(arg) {
			list, err := a.besideSaved(arg, f)
			if err != nil {
				return err
			}
			running, one = i, list
			continue
		}
		var err error
		if docs[i], err = a.readRun(arg); err != nil {
			return err
		}
	}
	outs, err := a.openOutputs(cmd, f.outputs)
	if err != nil {
		return err
	}
	defer outs.discard() // of no effect once they are kept
	if running >= 0 {
		a.prepare(cmd, f)
		a.interrupts.running.Store(true)
		a.interrupts.onLeave(outs.discard)
		bar := a.newProgress(moment, f.outputs.quiet, f.outputs.verbose)
		defer bar.end()
		doc, _, err := a.runEach(cmd, []contender{one}, bar)
		bar.end()
		if err != nil || doc == nil {
			return err
		}
		if cmd.Context().Err() != nil {
			a.code = doc.ExitCode // half of it is nothing to compare with
			return nil
		}
		docs[running] = doc
		docs[1-running] = onlyWhatRan(docs[1-running], doc)
	}
	before, after := docs[0], docs[1]
	named := func(d *lab.Document) string { return d.Results[0].Scenario + ":" + d.Results[0].ID }
	beside := otherConfigurations(before, after)
	if beside {
		before, after = unnamed(before, after), unnamed(after, after)
	}
	c := judge.Changes(before, after, [2]string{args[0], args[1]})
	if running >= 0 || beside { // what was named is no difference
		c.Settings = slices.DeleteFunc(c.Settings, func(s lab.Contrast) bool { return s.Path == "--only" })
	}
	if beside {
		c.Settings = append([]lab.Contrast{{Path: "configuration", Values: []string{named(docs[0]), named(docs[1])}}}, c.Settings...)
	}
	if c.Compared == 0 {
		return nothingInBoth(before, after, args)
	}
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

// besideSaved reads what one argument names, beside a saved result.
func (a *app) besideSaved(arg string, f runFlags) (contender, error) {
	own := f
	list, err := a.choose([]string{arg}, &own)
	if err != nil {
		return contender{}, err
	}
	c := contender{scenario: list[0], options: own.options}
	c.settings, err = settingsOf(c.scenario, c.options)
	return c, err
}

// onlyWhatRan leaves of a saved result the scenarios and configurations that were run to be held against it.
func onlyWhatRan(saved, ran *lab.Document) *lab.Document {
	out := *saved
	out.Results = slices.DeleteFunc(slices.Clone(saved.Results), func(r lab.Result) bool {
		return !slices.ContainsFunc(ran.Results, func(o lab.Result) bool { return o.Scenario == r.Scenario && o.ID == r.ID })
	})
	if len(out.Results) == 0 {
		return saved // which may stand beside it all the same
	}
	out.Skipped = nil
	return &out
}

// otherConfigurations reports whether each document has one configuration and they differ.
func otherConfigurations(before, after *lab.Document) bool {
	one := func(d *lab.Document) bool {
		return len(d.Results) > 0 && !slices.ContainsFunc(d.Results, func(r lab.Result) bool { return r.Scenario != d.Results[0].Scenario || r.ID != d.Results[0].ID })
	}
	return one(before) && one(after) && (before.Results[0].Scenario != after.Results[0].Scenario || before.Results[0].ID != after.Results[0].ID)
}

// unnamed gives the results of a document the names of another's configuration, and takes what their own file demands
// of them: that is no difference in what was measured.
func unnamed(d, as *lab.Document) *lab.Document {
	out, r := *d, as.Results[0]
	out.Results = slices.Clone(d.Results)
	for i := range out.Results {
		x := &out.Results[i]
		x.Scenario, x.ID, x.Configuration, x.Checks, x.Said = r.Scenario, r.ID, r.Configuration, nil, nil
		if x.Verdict != lab.Inconclusive {
			x.Verdict = lab.Measured
		}
	}
	return &out
}

// readRun reads a saved result of a run, which a comparison is none; of it, the configuration that the argument names.
func (a *app) readRun(arg string) (*lab.Document, error) {
	path, id := resultArg(arg)
	doc, err := a.readResult(path)
	if err != nil {
		return nil, err
	}
	if doc.Comparison.OfSaved() {
		return nil, usagef("`retrylab report "+path+"` shows it; compare the results that it is about", "%s is a comparison, and not the result of a run", path)
	}
	if id == "" {
		return doc, nil
	}
	var ids []string
	for _, r := range doc.Results {
		ids = append(ids, r.ID)
	}
	doc.Results = slices.DeleteFunc(doc.Results, func(r lab.Result) bool { return r.ID != id && r.Scenario+":"+r.ID != id })
	if len(doc.Results) == 0 {
		hint := "`retrylab report " + path + " --plain` lists them"
		if near := scenarios.Nearest(id, ids); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return nil, usagef(hint, "%s has no configuration %q", path, id)
	}
	doc.Skipped = nil
	return doc, nil
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
