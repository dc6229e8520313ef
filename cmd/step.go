package cmd

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"retrylab/internal/classroom"
	"retrylab/internal/engine"
	"retrylab/internal/lab"
	"retrylab/internal/suite"
	"retrylab/scenarios"
)

// stepping are the flags of run that mean something beside --step.
var stepping = []string{"step", "pace", "only", "set", "assert", "seed", "store", "redis", "pg-bindir", "color", "no-color", "no-project", "debug"}

func paceFlag(c *cobra.Command, pace *string) {
	c.Flags().StringVar(pace, "pace", "auto", "with --step: scenario seconds in a real one, as `N`x, instant, or auto (six seconds for each picture)")
	c.RegisterFlagCompletionFunc("pace", cobra.FixedCompletions([]string{"auto", "1x", "10x", "100x", "instant"}, cobra.ShellCompDirectiveNoFileComp))
}

func findPace(text string) (classroom.Pace, error) {
	pace, ok := classroom.ParsePace(text)
	if !ok {
		return pace, usagef("for example 10x: ten scenario seconds in a real one; or instant, or auto", "--pace cannot be %q", text)
	}
	return pace, nil
}

// step runs one scenario, as run does, and then tells it configuration by configuration.
func (a *app) step(cmd *cobra.Command, args []string, f runFlags) error {
	if !f.step {
		return usagef("add --step", "--pace is for --step")
	}
	pace, err := findPace(f.pace)
	if err != nil {
		return err
	}
	var foreign error
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if foreign == nil && !slices.Contains(stepping, flag.Name) {
			foreign = usagef("beside it: --"+strings.Join(stepping[1:9], ", --"), "--step and --%s do not go together", flag.Name)
		}
	})
	if foreign != nil {
		return foreign
	}
	f.options.Clock = engine.Virtual // whatever the environment prefers: nobody waits for it
	if err := f.check(cmd); err != nil {
		return err
	}
	if slices.Contains(args, "-") {
		return usagef("save it in a file first", "--step reads answers from standard input, and cannot read a scenario from it too")
	}
	list, err := a.choose(args, &f)
	if err != nil {
		return err
	}
	if len(list) > 1 {
		return usagef("retrylab course goes through all", "--step is for one scenario, not %d", len(list))
	}
	in, out, err := a.terminal("--step", "retrylab run "+strings.Join(args, " ")+" shows the same at once")
	if err != nil {
		return err
	}
	a.warnOfSecrets(cmd.Flags())
	s := list[0]
	doc, err := a.runLesson(cmd.Context(), s, f.options)
	if err != nil || doc.ExitCode == suite.ExitInterrupted {
		return err
	}
	l, err := a.lesson(s, doc, f.options)
	if err != nil {
		return err
	}
	l.Pace, l.Last = pace, "Enter: the end"
	l.After = []string{"What CI runs:  retrylab run " + strings.Join(args, " ")}
	if s.Next != "" {
		l.After = append(l.After, "Next:          retrylab run "+s.Next+" --step")
	}
	d, err := a.openDesk(in, out)
	if err != nil {
		return err
	}
	defer d.close()
	left := l.Give(d)
	err = errors.Join(d.close(), a.left(left, doc.ExitCode))
	if errors.Is(left, classroom.ErrQuit) {
		if tally := l.Tally(); tally != "" {
			say(a.stdout, "%s", tally)
		}
		say(a.stdout, "Again: retrylab run %s --step", strings.Join(args, " "))
	}
	return err
}

// runLesson runs a scenario whole, before the class sees anything of it: what it lacks is said at once, and
// what is told is one document, the same as that of run.
func (a *app) runLesson(ctx context.Context, s *scenarios.Scenario, o suite.Options) (*lab.Document, error) {
	a.interrupts.running.Store(true)
	defer a.interrupts.running.Store(false)
	bar := a.newProgress(patience, false, false)
	defer bar.end()
	o.Progress, o.Opened = bar.step, a.interrupts.onLeave
	o.Version, o.Replica = version(), replicaProcess()
	doc, err := a.runSuite(ctx, []*scenarios.Scenario{s}, o)
	if doc != nil && doc.ExitCode == suite.ExitInterrupted {
		a.code = a.interrupts.code()
	}
	return doc, err
}

// lesson makes a lesson of a scenario and what came out of it.
func (a *app) lesson(s *scenarios.Scenario, doc *lab.Document, o suite.Options) (*classroom.Lesson, error) {
	o.Plan.Only = o.Only[s.Name]
	trials, err := s.Plan(o.Plan)
	if err != nil {
		return nil, err
	}
	l := &classroom.Lesson{
		Name: s.Name, Title: s.Title, Text: s.Lesson, Set: o.Plan.Set, Document: doc, Look: a.look.options(a.stdout),
	}
	for i, t := range trials {
		c := configuration(t)
		if i > 0 {
			c.Differs = differs(s, trials[i-1], t)
		}
		for r := range doc.Results {
			if doc.Results[r].ID == t.ID {
				c.Results = append(c.Results, &doc.Results[r])
			}
		}
		for _, skip := range doc.Skipped {
			if skip.ID == "" || skip.ID == t.ID {
				c.Skipped = skip.Reason
			}
		}
		l.Configurations = append(l.Configurations, c)
	}
	return l, nil
}

func configuration(t scenarios.Trial) classroom.Configuration {
	return classroom.Configuration{ID: t.ID, Name: t.Configuration, Chain: strings.SplitAfter(chain(t), " → ")}
}

// differs says, machine by machine, what a configuration has that the one before it has not, and the other
// way round.
func differs(s *scenarios.Scenario, before, now scenarios.Trial) []string {
	then := map[string]part{}
	for _, m := range machines(before) {
		then[bare(m.name)] = m
	}
	var out []string
	for _, m := range machines(now) {
		old, was := then[bare(m.name)]
		delete(then, bare(m.name))
		if !was {
			out = append(out, bare(m.name)+" is there too")
			continue
		}
		if old.name != m.name {
			out = append(out, old.name+" is now "+m.name)
		}
		if changes := changed(without(old.facts, m.facts), without(m.facts, old.facts)); changes != "" {
			out = append(out, m.name+": "+changes)
		}
	}
	for _, m := range machines(before) {
		if _, left := then[bare(m.name)]; left {
			out = append(out, m.name+" is not there")
		}
	}
	if len(out) > 0 {
		return out
	}
	// What no machine shows is told as its file does.
	changes := func(id string) []scenarios.Change {
		for _, v := range s.Variants {
			if v.ID == id {
				return v.Changes
			}
		}
		return nil
	}
	for _, c := range changes(now.ID) {
		if !slices.Contains(changes(before.ID), c) {
			out = append(out, c.Path+": "+c.Value)
		}
	}
	for _, old := range changes(before.ID) {
		if !slices.ContainsFunc(changes(now.ID), func(c scenarios.Change) bool { return c.Path == old.Path }) {
			out = append(out, old.Path+": as the file begins")
		}
	}
	return out
}

// changed says what has come and what is gone. Of one thing it is said together: read 15s instead of 5s.
func changed(gone, come []string) string {
	var out []string
	for _, fact := range come {
		thing, _, _ := strings.Cut(fact, " ")
		i := slices.IndexFunc(gone, func(old string) bool { return strings.HasPrefix(old, thing+" ") })
		if i < 0 {
			out = append(out, fact)
			continue
		}
		if old := strings.TrimPrefix(gone[i], thing+" "); strings.Contains(old, "(") || strings.Contains(fact, "(") {
			out = append(out, fact+" instead of "+gone[i])
		} else {
			out = append(out, fact+" instead of "+old)
		}
		gone = slices.Delete(gone, i, i+1)
	}
	for _, fact := range gone {
		out = append(out, "no longer "+fact)
	}
	return strings.Join(out, ", ")
}

// bare is the name of a machine without the number of its replicas.
func bare(name string) string {
	name, _, _ = strings.Cut(name, " ×")
	return name
}

// without are the facts of a list, none of them empty, that another has not. What is about one thing, such as
// the limits of time, is compared part by part.
func without(list, other []string) []string {
	parts := func(list []string) (out []string) {
		for _, fact := range list {
			if strings.Contains(fact, "(") {
				out = append(out, fact)
			} else {
				out = append(out, strings.Split(fact, ", ")...)
			}
		}
		return out
	}
	known := parts(other)
	return slices.DeleteFunc(parts(list), func(fact string) bool { return fact == "" || slices.Contains(known, fact) })
}
