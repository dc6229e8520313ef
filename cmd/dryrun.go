package cmd

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"github.com/spf13/pflag"

	"retrylab/internal/suite"
	"retrylab/scenarios"
)

// checkDryRun refuses what is about a result, of which there is none.
func checkDryRun(flags *pflag.FlagSet) error {
	for _, name := range []string{"format", "json", "plain", "report", "out-dir", "otlp", "accept", "step"} {
		if flags.Changed(name) {
			return usagef("leave one of the two away", "--dry-run prints a scenario file, and --%s is about a result", name)
		}
	}
	return nil
}

// dryRun prints what a run would take, as scenario files of which each gives the same numbers: the values of
// the run and where they come from as comments, then each scenario.
func (a *app) dryRun(list []*scenarios.Scenario, f runFlags) error {
	var b bytes.Buffer
	note := func(format string, args ...any) { say(&b, "# "+format, args...) }
	note("Nothing ran. A run takes:")
	for _, v := range []struct{ flag, value string }{
		{"clock", f.options.Clock},
		{"speed", strconv.FormatFloat(f.options.Speed, 'g', -1, 64)},
		{"store", redacted(f.options.Store)},
		{"redis", redacted(f.options.Redis)},
		{"seed", strconv.FormatInt(f.seed, 10)},
	} {
		if v.value == "" {
			v.value = "what the scenario needs"
		}
		note("  %-6s %s (%s)", v.flag, v.value, f.origins.name(v.flag))
	}
	if f.origins.file != "" {
		note("Project file: %s", f.origins.file)
	}
	files, err := f.resolved(list)
	if err != nil {
		return err
	}
	b.Write(bytes.Join(files, []byte("---\n")))
	out, err := a.openOutput(f.outputs.output)
	if err != nil {
		return err
	}
	defer out.discard() // of no effect once it is kept
	if _, err := b.WriteTo(out); err != nil {
		return &suite.EnvironmentError{Err: fmt.Errorf("write the scenario: %w", err)}
	}
	if err := out.keep(); err != nil {
		return &suite.EnvironmentError{Err: err}
	}
	return nil
}

// resolved are the scenarios with every value that is in effect, each as a file that gives the same numbers.
func (f *runFlags) resolved(list []*scenarios.Scenario) (files [][]byte, err error) {
	for _, s := range list {
		var b bytes.Buffer
		seeds, left := f.seedsOf(s)
		if left > 0 {
			say(&b, "# %d seeds more, which a file has no room for", left)
		}
		o := f.options.Plan
		o.Only = f.options.Only[s.Name]
		out, err := s.Resolved(o, f.options.Vary, seeds)
		if err != nil {
			return nil, err
		}
		b.Write(out)
		files = append(files, b.Bytes())
	}
	return files, nil
}

// seedsOf lists the seeds that a file must name to be run as it would be now; nil where it says so itself.
// left is how many it has no room for.
func (f *runFlags) seedsOf(s *scenarios.Scenario) (seeds []int, left int) {
	if f.options.Repeat == 0 && (len(s.Seeds) > 0 || f.seed == 1) {
		return nil, 0
	}
	n := max(1, f.options.Repeat)
	for i := range n {
		seed := f.seed + int64(i)
		if len(seeds) == scenarios.MaxSeeds || seed < 0 || seed > math.MaxInt32 {
			return seeds, n - len(seeds)
		}
		seeds = append(seeds, int(seed))
	}
	return seeds, 0
}

// traceFlags writes to the log which flags have a value of their own, and where it comes from.
func (a *app) traceFlags(flags *pflag.FlagSet, o origins) {
	if o.file != "" {
		a.trace("project file", "path", o.file)
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if from := o.of[f.Name]; from != "" && (f.Changed || f.Value.String() != f.DefValue) {
			a.trace("flag", "name", f.Name, "value", redacted(f.Value.String()), "from", from)
		}
	})
}
