package cmd

import (
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"retrylab/internal/engine"
	"retrylab/internal/lab"
	"retrylab/internal/suite"
	"retrylab/scenarios"
)

// runFlags are the flags of run.
type runFlags struct {
	all     bool
	tags    []string
	only    string
	lenient string // what an inconclusive trial does to the exit code
	seed    int64
	shard   string // i/n
	accept  bool
	base    string // id of the configuration that the others are held against
	step    bool
	pace    string // of --step
	vary    []string
	dryRun  bool
	alone   bool    // without the project file
	origins origins // of the flags' values
	outputs outputFlags
	options suite.Options
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run NAME|FILE…",
		Short: "Run scenarios and print their numbers",
		Long: "Run built-in scenarios by name, or your own by file (an argument with a slash in\n" +
			"it, or ending in .yaml or .yml; - is standard input). NAME:ID runs one\n" +
			"configuration of a scenario.",
		Example: "  retrylab run read-timeout\n" +
			"  retrylab run read-timeout --step\n" +
			"  retrylab run read-timeout --vary caller.timeouts.read=1s..15s/1s\n" +
			"  retrylab run read-timeout --set caller.timeouts.read=15s\n" +
			"  retrylab run unique-index --rows\n" +
			"  retrylab run mine.yaml --assert 'effects == wanted'\n" +
			"  retrylab run --all --format json -o result.json\n" +
			"  retrylab run check-then-insert --clock wall --speed 20",
		ValidArgsFunction: a.completeConfigurations,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if f.origins, err = a.defaults(cmd, !f.alone); err != nil {
				return err
			}
			if f.step || cmd.Flags().Changed("pace") {
				return a.step(cmd, args, f)
			}
			return a.run(cmd, args, f)
		},
	}
	fl := c.Flags()
	fl.BoolVar(&f.all, "all", false, "run every built-in scenario")
	tagFlag(c, &f.tags, "run the built-in scenarios with this `tag` (repeatable: any of them)")
	fl.StringVar(&f.only, "only", "", "run only the configuration with this `id`")
	fl.StringArrayVar(&f.options.Plan.Assert, "assert", nil, "demand more of every configuration: `expression`, such as 'effects == wanted' (repeatable)")
	fl.StringArrayVar(&f.vary, "vary", nil, "take several values in turn: `path=a,b,c` or path=1s..15s/1s (repeatable: each combination is a row)")
	fl.BoolVar(&f.options.RequireAll, "require-all", false, "exit with 3 when a scenario is skipped for want of a store")
	fl.StringVar(&f.shard, "shard", "", "run only part `i/n` of it, such as 2/4; retrylab report --merge puts the results together")
	fl.BoolVar(&f.options.FailFast, "fail-fast", false, "start no further trial after the first that does not hold")
	fl.DurationVar(&f.options.TimeLimit, "time-limit", 0, "give up after this real `time`, with what is complete; exit code 5")
	fl.StringVar(&f.base, "baseline", "", "hold the other configurations against the one with this `id`")
	fl.BoolVar(&f.accept, "accept", false, "write what was measured into the file as what it expects")
	fl.BoolVar(&f.step, "step", false, "in a class: predict each configuration, and watch what comes of it")
	paceFlag(c, &f.pace)
	fl.BoolVar(&f.dryRun, "dry-run", false, "run nothing: print the scenario as it would be run, with where each value comes from")
	a.labFlags(&f, c)
	f.outputs.flags(c)
	a.gitHubFlag(c)
	c.RegisterFlagCompletionFunc("shard", cobra.NoFileCompletions)
	c.RegisterFlagCompletionFunc("vary", a.completeSetting("", true))
	c.RegisterFlagCompletionFunc("assert", completeAssert)
	c.RegisterFlagCompletionFunc("baseline", a.completeOnly)
	c.RegisterFlagCompletionFunc("only", a.completeOnly)
	return c
}

// labFlags are the flags of every command that runs trials.
func (a *app) labFlags(f *runFlags, c *cobra.Command) {
	fl := c.Flags()
	fl.StringArrayVar(&f.options.Plan.Set, "set", nil, "override a value of the scenario: `path=value` (repeatable)")
	fl.Int64Var(&f.seed, "seed", 1, "`seed` of everything that is drawn")
	fl.IntVar(&f.options.Repeat, "repeat", 1, "run each configuration with `N` seeds: seed … seed+N-1")
	fl.StringVar(&f.options.Clock, "clock", engine.Virtual, "`clock`: virtual (exact, in milliseconds) or wall (real time over loopback TCP)")
	fl.Float64Var(&f.options.Speed, "speed", 1, "wall clock: `N` scenario seconds go by in a real one")
	fl.StringVar(&f.options.Store, "store", "", "`store` of the orders: sqlite, postgres, postgres://…, docker or docker:IMAGE (default: what the scenario needs, else sqlite)")
	fl.StringVar(&f.options.Redis, "redis", "", "`place` of keys beside the store: embedded, server or redis://… (default: embedded, or what the scenario needs)")
	fl.StringVar(&f.options.Bin, "pg-bindir", "", "`directory` of the PostgreSQL binaries, for --store postgres")
	fl.IntVar(&f.options.Jobs, "jobs", 0, "`N` trials side by side (default: one per processor; 8 on the wall clock)")
	fl.BoolVar(&f.alone, "no-project", false, "take nothing from a project file ("+projectFile+")")
	fl.StringVar(&f.lenient, "inconclusive", "fail", "`effect` of an inconclusive trial on the exit code: fail (4) or pass")
	fl.IntVar(&f.options.NotHeld, "fail-exit-code", suite.ExitNotHeld, "exit with `N` when something does not hold")
	c.RegisterFlagCompletionFunc("inconclusive", cobra.FixedCompletions(inconclusives, cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("store", completeStore)
	c.RegisterFlagCompletionFunc("redis", completeRedis)
	c.RegisterFlagCompletionFunc("clock", cobra.FixedCompletions([]string{engine.Virtual, engine.Wall}, cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("set", a.completeSetting("", false))
	c.MarkFlagDirname("pg-bindir")
}

var inconclusives = []string{"fail", "pass"}

func (a *app) run(cmd *cobra.Command, args []string, f runFlags) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	if err := unquoted(args, f.options.Plan.Assert); err != nil {
		return err
	}
	if f.dryRun {
		if err := checkDryRun(cmd.Flags()); err != nil {
			return err
		}
	} else {
		a.prepare(cmd, f)
	}
	begin := func() *progress { return a.newProgress(moment, f.outputs.quiet || f.dryRun, f.outputs.verbose) }
	var bar *progress
	if !slices.Contains(args, "-") { // to read all scenarios takes its time; to wait for somebody who writes one is no progress
		bar = begin()
	}
	defer func() { bar.end() }()
	list, err := a.choose(args, &f)
	if err != nil {
		return err
	}
	if bar == nil {
		bar = begin()
	}
	if f.options.Vary, err = scenarios.ParseVary(f.vary); err != nil {
		return err
	}
	if len(f.vary) > 0 && len(list) > 1 {
		return usagef("name one, or one configuration of it: NAME:ID", "--vary is for one scenario, not %d", len(list))
	}
	if f.base != "" && f.options.Shard.Count > 0 {
		return usagef("a part has not all that is compared", "--baseline and --shard do not go together")
	}
	if f.base != "" && len(list) > 1 {
		return usagef("`retrylab compare A B` is for several", "--baseline is for one scenario, not %d", len(list))
	}
	var settings map[string][]lab.Setting
	if f.base != "" {
		if settings, err = settingsOf(list[0], f.options); err != nil {
			return err
		}
		sayNone([]map[string][]lab.Setting{settings})
		if err := checkBaseline(f.base, settings); err != nil {
			return err
		}
	}
	if f.accept {
		if err := checkAccept(cmd, list, f.options); err != nil {
			return err
		}
	}
	if f.dryRun {
		return a.dryRun(list, f)
	}
	a.interrupts.running.Store(true)
	outs, err := a.openOutputs(cmd, f.outputs)
	if err != nil {
		return err
	}
	defer outs.discard() // of no effect once they are kept
	if outs.dir != nil {
		files, err := f.resolved(list)
		if err != nil {
			return err
		}
		outs.dir.keepScenarios(list, files)
	}
	f.options.Progress = bar.step
	f.options.Opened = a.interrupts.onLeave
	a.interrupts.onLeave(outs.discard)
	f.options.Version, f.options.Replica = version(), replicaProcess()
	f.options.Trace = a.trace
	doc, failure := a.runSuite(cmd.Context(), list, f.options)
	bar.end()
	if doc == nil {
		return failure
	}
	if doc.ExitCode == suite.ExitInterrupted {
		doc.ExitCode = a.interrupts.code()
	}
	if f.base != "" {
		holdAgainst(doc, f.base, settings)
	}
	err = outs.write(cmd.Context(), doc)
	a.tellGitHub(doc, f.outputs)
	if err != nil {
		return err
	}
	a.tellPlaces(f.outputs)
	a.code = doc.ExitCode
	a.trace("over", "exit_code", a.code)
	if f.accept && failure == nil && cmd.Context().Err() == nil {
		return a.accept(cmd, list[0], doc, f.options)
	}
	return failure
}

// operators are what a shell passes on of an expression that stands in no quotes.
var operators = []string{"==", "=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "and", "&&", "or", "||", "not"}

// unquoted finds an expression of which --assert got the first word alone.
func unquoted(args, asserts []string) error {
	i := slices.IndexFunc(args, func(arg string) bool { return slices.Contains(operators, arg) })
	if i < 0 || len(asserts) == 0 || args[i] == "-" && i == len(args)-1 { // standard input
		return nil
	}
	whole := asserts[len(asserts)-1] + " " + strings.Join(args[i:], " ")
	return usagef("put the expression into quotes: --assert '"+whole+"'", "%q is no scenario", args[i])
}

// tellPlaces says where the reports are that do not go to standard output, to a person: a pipeline has asked for them.
func (a *app) tellPlaces(f outputFlags) {
	var places []string
	if f.output != "" && f.output != "-" {
		places = append(places, f.output)
	}
	for _, r := range f.reports {
		if _, path, _ := strings.Cut(r, "="); path != "-" {
			places = append(places, path)
		}
	}
	if f.dir != "" {
		places = append(places, filepath.Join(f.dir, latest)+string(filepath.Separator))
	}
	if len(places) > 0 && !f.quiet && isTerminal(a.stderr) {
		say(a.stderr, "retrylab: written: %s", strings.Join(places, ", "))
	}
}

// prepare says before a run what somebody has to know of what it takes.
func (a *app) prepare(cmd *cobra.Command, f runFlags) {
	a.traceFlags(cmd.Flags(), f.origins)
	if f.outputs.quiet {
		return
	}
	a.warnOfSecrets(cmd.Flags())
	if f.outputs.verbose && f.origins.file != "" {
		say(a.stderr, "retrylab: using the project file %s", f.origins.file)
	}
}

func (f *runFlags) check(cmd *cobra.Command) error {
	o := &f.options
	o.Plan.Seed = f.seed
	if !cmd.Flags().Changed("seed") && !cmd.Flags().Changed("repeat") {
		o.Repeat = 0 // a scenario may name its own seeds
	}
	o.Lenient = f.lenient == "pass"
	o.ChosenBy, o.RedisBy = f.origins.chosenBy("store"), f.origins.chosenBy("redis")
	switch {
	case cmd.Flags().Changed("speed") && o.Clock == engine.Virtual:
		return usagef("the virtual clock takes no time at all; add --clock wall", "--speed is for the wall clock")
	case o.Repeat < 0 || o.Repeat > 10_000 || o.Repeat == 0 && cmd.Flags().Changed("repeat"):
		return usagef("", "--repeat must be between 1 and 10000, not %d", o.Repeat)
	case cmd.Flags().Changed("shard") && !f.parseShard():
		return usagef("for example --shard 2/4: the second of four", "--shard is a part and how many there are, at most %d, not %q", suite.MostShards, f.shard)
	case o.Shard.Count > 0 && o.FailFast:
		return usagef("a part knows only its own trials", "--shard and --fail-fast do not go together")
	}
	return nil
}

// parseShard reads i/n.
func (f *runFlags) parseShard() bool {
	i, n, ok := strings.Cut(f.shard, "/")
	index, errIndex := strconv.Atoi(i)
	count, errCount := strconv.Atoi(n)
	f.options.Shard = suite.Shard{Index: index, Count: count}
	return ok && errIndex == nil && errCount == nil && 1 <= index && index <= count && count <= suite.MostShards
}

// warnOfSecrets says once that a password stands where others can read it.
func (a *app) warnOfSecrets(flags *pflag.FlagSet) {
	for _, name := range []string{"store", "redis"} {
		if u, err := url.Parse(flags.Lookup(name).Value.String()); flags.Changed(name) && err == nil {
			if _, secret := u.User.Password(); secret {
				say(a.stderr, "retrylab: warning: there is a password in --%s, which others can read in the list of processes; %s hides it", name, variable(name))
			}
		}
	}
}

// choose returns the scenarios to run, and notes which configuration of each is asked for.
func (a *app) choose(args []string, f *runFlags) ([]*scenarios.Scenario, error) {
	f.options.Only, f.options.Named = map[string]string{}, map[string]bool{}
	var list []*scenarios.Scenario
	if f.all || len(f.tags) > 0 {
		var err error
		if list, err = scenarios.Catalogue(); err != nil {
			return nil, err
		}
		if !f.all {
			if list, err = tagged(list, f.tags); err != nil {
				return nil, err
			}
		}
	}
	for _, arg := range args {
		s, id, err := a.readScenario(arg)
		if err != nil {
			return nil, err
		}
		for _, other := range list {
			if other.Name == s.Name {
				return nil, twice(s.Name, other.File, s.File)
			}
		}
		list = append(list, s)
		f.options.Only[s.Name] = id
		f.options.Named[s.Name] = true
	}
	if len(list) == 0 {
		return nil, usagef("for example: retrylab run read-timeout; `retrylab list` shows all", "nothing to run")
	}
	if f.only != "" {
		if len(list) > 1 {
			return nil, usagef("with several, write NAME:ID", "--only is for one scenario")
		}
		if id := f.options.Only[list[0].Name]; id != "" && id != f.only {
			return nil, usagef("give one of them", "both %s and %s are to be the only one", id, f.only)
		}
		f.options.Only[list[0].Name] = f.only
	}
	return list, nil
}

// twice says that two of the scenarios that were named cannot be told apart.
func twice(name, file, other string) error {
	if file == other {
		return usagef("name it once", "%s is named twice", name)
	}
	return usagef("names must differ within a run, so that results can be told apart", "two scenarios are called %q: %s and %s", name, file, other)
}
