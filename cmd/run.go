package cmd

import (
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"retrylab/internal/engine"
	"retrylab/internal/storage"
	"retrylab/internal/suite"
	"retrylab/report"
	"retrylab/scenarios"
)

// runFlags are the flags of run.
type runFlags struct {
	all      bool
	tags     []string
	only     string
	format   string
	json     bool
	output   string
	timeline string
	rows     bool
	wide     bool
	verbose  bool
	lenient  string // what an inconclusive trial does to the exit code
	seed     int64
	options  suite.Options
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
			"  retrylab run read-timeout --set caller.timeouts.read=15s\n" +
			"  retrylab run unique-index --rows\n" +
			"  retrylab run --all --format json -o result.json\n" +
			"  retrylab run check-then-insert --clock wall --speed 20",
		ValidArgsFunction: completeScenarios,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, flag := range []string{"clock", "speed", "seed", "format", "store", "pg-bindir", "redis"} {
				if err := environment(cmd.Flags(), flag, variable(flag)); err != nil {
					return err
				}
			}
			return a.run(cmd, args, f)
		},
	}
	fl := c.Flags()
	fl.BoolVar(&f.all, "all", false, "run every built-in scenario")
	tagFlag(c, &f.tags, "run the built-in scenarios with this `tag` (repeatable: any of them)")
	fl.StringVar(&f.only, "only", "", "run only the configuration with this `id`")
	fl.StringArrayVar(&f.options.Plan.Set, "set", nil, "override a value of the scenario: `path=value` (repeatable)")
	fl.Int64Var(&f.seed, "seed", 1, "`seed` of everything that is drawn")
	fl.IntVar(&f.options.Repeat, "repeat", 1, "run each configuration with `N` seeds: seed … seed+N-1")
	fl.StringVar(&f.options.Clock, "clock", engine.Virtual, "`clock`: virtual (exact, in milliseconds) or wall (real time over loopback TCP)")
	fl.Float64Var(&f.options.Speed, "speed", 1, "wall clock: `N` scenario seconds go by in a real one")
	fl.StringVar(&f.options.Store, "store", "", "`store` of the orders: sqlite, postgres, postgres://…, docker or docker:IMAGE (default: what the scenario needs, else sqlite)")
	fl.StringVar(&f.options.Redis, "redis", "", "`place` of keys beside the store: embedded, server or redis://… (default: embedded, or what the scenario needs)")
	fl.StringVar(&f.options.Bin, "pg-bindir", "", "`directory` of the PostgreSQL binaries, for --store postgres")
	fl.BoolVar(&f.options.RequireAll, "require-all", false, "exit with 3 when a scenario is skipped for want of a store")
	fl.IntVar(&f.options.Jobs, "jobs", 0, "`N` trials side by side (default: one per processor; 8 on the wall clock)")
	fl.BoolVar(&f.options.FailFast, "fail-fast", false, "start no further trial after the first that does not hold")
	fl.DurationVar(&f.options.TimeLimit, "time-limit", 0, "give up after this real `time`, with what is complete; exit code 5")
	fl.StringVar(&f.format, "format", "table", "`format` of the report: table or json")
	fl.BoolVar(&f.json, "json", false, "the same as --format json")
	fl.StringVarP(&f.output, "output", "o", "", "write the report to this `file` (- is standard output)")
	fl.StringVar(&f.timeline, "timeline", "auto", "draw the timeline `when`: always, never, or auto (with one scenario)")
	fl.BoolVar(&f.rows, "rows", false, "print the order rows as the database has them")
	fl.BoolVar(&f.wide, "wide", false, "print every column, however wide")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "say of the database what it is, how it is set, and how it counted")
	fl.StringVar(&f.lenient, "inconclusive", "fail", "`effect` of an inconclusive trial on the exit code: fail (4) or pass")
	fl.IntVar(&f.options.NotHeld, "fail-exit-code", suite.ExitNotHeld, "exit with `N` when something does not hold")
	c.RegisterFlagCompletionFunc("inconclusive", cobra.FixedCompletions(inconclusives, cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formatNames(), cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("store", cobra.FixedCompletions([]string{storage.SQLite, storage.Postgres, storage.Docker}, cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("redis", cobra.FixedCompletions([]string{storage.Embedded, storage.Server}, cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("clock", cobra.FixedCompletions([]string{engine.Virtual, engine.Wall}, cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("timeline", cobra.FixedCompletions(timelines, cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("set", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var paths []string
		for _, p := range scenarios.Paths() {
			paths = append(paths, p+"=")
		}
		return paths, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
	c.RegisterFlagCompletionFunc("only", func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return configurationIDs(args), cobra.ShellCompDirectiveNoFileComp
	})
	return c
}

var (
	timelines     = []string{"always", "never", "auto"}
	inconclusives = []string{"fail", "pass"}
)

func formatNames() []string {
	var names []string
	for _, f := range report.Formats {
		names = append(names, f.Name)
	}
	return names
}

func configurationIDs(args []string) []string {
	var ids []string
	for _, arg := range args {
		if s, err := scenarios.Builtin(arg); err == nil {
			for _, v := range s.Variants {
				ids = append(ids, v.ID)
			}
		}
	}
	return ids
}

func (a *app) run(cmd *cobra.Command, args []string, f runFlags) error {
	format, err := f.check(cmd)
	if err != nil {
		return err
	}
	list, err := a.choose(args, &f)
	if err != nil {
		return err
	}
	a.warnOfSecrets(cmd.Flags())
	a.interrupts.running.Store(true)
	out, err := a.openOutput(f.output)
	if err != nil {
		return err
	}
	defer out.discard() // of no effect once it is kept
	bar := a.newProgress()
	defer bar.end()
	f.options.Progress = bar.step
	f.options.Opened = a.interrupts.onLeave
	a.interrupts.onLeave(out.discard)
	f.options.Version, f.options.Replica = version(), replicaProcess()
	doc, failure := a.runSuite(cmd.Context(), list, f.options)
	bar.end()
	if doc == nil {
		return failure
	}
	if doc.ExitCode == suite.ExitInterrupted {
		doc.ExitCode = a.interrupts.code()
	}
	o := a.look.options(out.Writer)
	o.Timeline, o.Rows, o.Wide, o.Verbose = f.timeline, f.rows, f.wide, f.verbose
	if err := format.Write(out, doc, o); err != nil {
		return &suite.EnvironmentError{Err: fmt.Errorf("write the report: %w", err)}
	}
	if err := out.keep(); err != nil {
		return &suite.EnvironmentError{Err: err}
	}
	a.code = doc.ExitCode
	return failure
}

func (f *runFlags) check(cmd *cobra.Command) (report.Format, error) {
	switch {
	case f.json && cmd.Flags().Changed("format") && f.format != "json":
		return report.Format{}, usagef("one of the two will do", "--json and --format %s", f.format)
	case cmd.Flags().Changed("output") && f.output == "":
		return report.Format{}, usagef("- is standard output", "--output names no file")
	case f.json:
		f.format = "json"
	}
	format, ok := report.Find(f.format)
	if !ok {
		return format, usagef("one of: "+strings.Join(formatNames(), ", "), "there is no format %q", f.format)
	}
	o := &f.options
	o.Plan.Seed = f.seed
	if !cmd.Flags().Changed("seed") && !cmd.Flags().Changed("repeat") {
		o.Repeat = 0 // a scenario may name its own seeds
	}
	o.Lenient = f.lenient == "pass"
	if o.ChosenBy = "--store"; !cmd.Flags().Changed("store") {
		o.ChosenBy = variable("store")
	}
	if o.RedisBy = "--redis"; !cmd.Flags().Changed("redis") {
		o.RedisBy = variable("redis")
	}
	switch {
	case !slices.Contains(inconclusives, f.lenient):
		return format, usagef("one of: fail, pass", "--inconclusive cannot be %q", f.lenient)
	case o.NotHeld < 1 || o.NotHeld > 125:
		return format, usagef("", "--fail-exit-code must be between 1 and 125, not %d", o.NotHeld)
	case o.Clock != engine.Virtual && o.Clock != engine.Wall:
		return format, usagef("one of: virtual, wall", "there is no clock %q", o.Clock)
	case cmd.Flags().Changed("store") && o.Store == "":
		return format, usagef("one of: "+strings.Join(storage.Choices, ", "), "--store names nothing")
	case o.Store != "" && !isStore(o.Store):
		_, err := storage.Engine(o.Store)
		return format, usagef("one of: "+strings.Join(storage.Choices, ", "), "%v", err)
	case o.Redis != "" && storage.CheckRedis(o.Redis) != nil:
		return format, usagef("one of: "+strings.Join(storage.RedisChoices, ", "), "%v", storage.CheckRedis(o.Redis))
	case cmd.Flags().Changed("speed") && o.Clock == engine.Virtual:
		return format, usagef("the virtual clock takes no time at all; add --clock wall", "--speed is for the wall clock")
	case !(o.Speed >= 0.001 && o.Speed <= 100_000):
		return format, usagef("for example --speed 20", "--speed must be between 0.001 and 100000, not %g", o.Speed)
	case o.Repeat < 0 || o.Repeat > 10_000 || o.Repeat == 0 && cmd.Flags().Changed("repeat"):
		return format, usagef("", "--repeat must be between 1 and 10000, not %d", o.Repeat)
	case o.Jobs < 0 || o.Jobs > 1024:
		return format, usagef("", "--jobs must be between 1 and 1024, not %d", o.Jobs)
	case o.TimeLimit < 0:
		return format, usagef("", "--time-limit must not be negative: %s", o.TimeLimit)
	case cmd.Flags().Changed("time-limit") && o.TimeLimit < time.Millisecond:
		return format, usagef("for example --time-limit 30s", "--time-limit is too short: %s", o.TimeLimit)
	case !slices.Contains(timelines, f.timeline):
		return format, usagef("one of: always, never, auto", "--timeline cannot be %q", f.timeline)
	}
	return format, nil
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

func isStore(choice string) bool {
	_, err := storage.Engine(choice)
	return err == nil
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

// output is where a report goes. A file is written beside its place and renamed when it is whole.
type output struct {
	io.Writer
	path string // of a file that is to be put in its place

	mu   sync.Mutex // discard comes from a signal too
	file *os.File   // nil for standard output, and once it is kept or discarded
}

func (a *app) openOutput(path string) (*output, error) {
	if path == "" || path == "-" {
		return &output{Writer: a.stdout}, nil
	}
	mode := fs.FileMode(0o666) // less what the user's umask takes
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, usagef("name a file in it", "cannot write %s: it is a directory", path)
	case err == nil && !info.Mode().IsRegular():
		// A device or a pipe is written to, never replaced.
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, usagef("", "cannot write %s: %v", path, cause(err))
		}
		return &output{Writer: f, file: f}, nil
	case err == nil:
		mode = info.Mode().Perm()
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
	}
	temporary := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d.tmp", filepath.Base(path), os.Getpid()))
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, usagef("", "cannot write %s: %v", path, cause(err))
	}
	return &output{Writer: f, path: path, file: f}, nil
}

// keep ends the output: a whole file is put in its place.
func (o *output) keep() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file == nil {
		return nil
	}
	if err := o.file.Close(); err != nil {
		return fmt.Errorf("write %s: %w", o.file.Name(), cause(err))
	}
	if o.path != "" {
		if err := os.Rename(o.file.Name(), o.path); err != nil {
			return fmt.Errorf("write %s: %w", o.path, err)
		}
	}
	o.file = nil
	return nil
}

// discard removes what was not kept.
func (o *output) discard() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file == nil {
		return nil
	}
	err := o.file.Close()
	if o.path != "" {
		err = os.Remove(o.file.Name())
	}
	o.file = nil
	return err
}
