package cmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"retrylab/internal/classroom"
	"retrylab/internal/engine"
	"retrylab/internal/suite"
	"retrylab/report"
	"retrylab/scenarios"
)

// courseFlags are the flags of course.
type courseFlags struct {
	list, reset, incidents bool
	from, pace             string
}

func (a *app) courseCommand() *cobra.Command {
	var f courseFlags
	c := &cobra.Command{
		Use:   "course",
		Short: "Go through the scenarios in order, each as run --step does",
		Long: "Go through the scenarios in order, family by family, each as run --step does.\n" +
			"Where you are is kept in retrylab/course.json in your configuration directory:\n" +
			"the one thing that retrylab keeps on disk without being asked. --list names the\n" +
			"file, --reset removes it.",
		Example: "  retrylab course\n  retrylab course --list\n  retrylab course --from unique-index",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.course(cmd, f) },
	}
	fl := c.Flags()
	fl.BoolVar(&f.list, "list", false, "show the way, and where you are on it")
	fl.BoolVar(&f.reset, "reset", false, "forget where you are")
	fl.StringVar(&f.from, "from", "", "go on with the scenario of this `name`")
	fl.BoolVar(&f.incidents, "incidents", false, "go through the public incidents, too")
	paceFlag(c, &f.pace)
	c.RegisterFlagCompletionFunc("from", completeScenarios)
	return c
}

// way lists the scenarios of the course.
func (f courseFlags) way() (all []*scenarios.Scenario, names []string, err error) {
	all, err = scenarios.Catalogue()
	all = slices.DeleteFunc(all, func(s *scenarios.Scenario) bool { return s.Family == scenarios.Incidents && !f.incidents })
	for _, s := range all {
		names = append(names, s.Name)
	}
	return all, names, err
}

func (a *app) course(cmd *cobra.Command, f courseFlags) error {
	pace, err := findPace(f.pace)
	if err != nil {
		return err
	}
	switch {
	case f.list && f.reset, f.list && f.from != "", f.reset && f.from != "":
		return usagef("one after the other", "--list, --reset and --from do not go together")
	}
	all, names, err := f.way()
	if err != nil {
		return err
	}
	if f.from != "" && !slices.Contains(names, f.from) {
		hint := "`retrylab course --list` shows the way"
		if near := scenarios.Nearest(f.from, names); near != "" {
			hint = fmt.Sprintf("did you mean %q? %s", near, hint)
		}
		return usagef(hint, "the course has no scenario %q", f.from)
	}
	var in, out *os.File
	if !f.list && !f.reset {
		if in, out, err = a.terminal("a course", "retrylab course --list shows the way; retrylab run NAME shows a scenario at once"); err != nil {
			return err
		}
	}
	path, err := coursePath()
	if err != nil {
		return err
	}
	if f.reset {
		return a.forget(path)
	}
	place, err := readPlace(path)
	if err != nil {
		return err
	}
	if f.list {
		a.listCourse(all, names, place, path)
		return nil
	}
	if f.from != "" {
		place.Now = f.from
	}
	return a.attend(cmd, all, names, place, path, pace, in, out)
}

// coursePath is the file that keeps where somebody is.
func coursePath() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", &suite.EnvironmentError{Err: fmt.Errorf("find where to keep the course: %w", err), Hint: "XDG_CONFIG_HOME or HOME says where"}
	}
	return filepath.Join(dir, "retrylab", "course.json"), nil
}

func (a *app) forget(path string) error {
	switch err := os.Remove(path); {
	case errors.Is(err, fs.ErrNotExist):
		say(a.stdout, "nothing is kept in %s", path)
	case err != nil:
		return &suite.EnvironmentError{Err: err}
	default:
		say(a.stdout, "removed %s: the course begins anew", path)
	}
	return nil
}

func readPlace(path string) (classroom.Place, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return classroom.Place{}, nil
	}
	var place classroom.Place
	if err == nil {
		if place, err = classroom.ReadPlace(data); err != nil {
			return place, usagef("retrylab course --reset begins anew", "%s: %v", path, err)
		}
	}
	if err != nil {
		return place, &suite.EnvironmentError{Err: fmt.Errorf("%s: %w", path, cause(err))}
	}
	return place, nil
}

// keepPlace writes where somebody is, beside its place first.
func (a *app) keepPlace(path string, place classroom.Place) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	out, err := a.openOutput(path)
	if err != nil {
		return err
	}
	a.interrupts.onLeave(out.discard)
	if _, err := out.Write(place.Bytes()); err != nil {
		return errors.Join(err, out.discard())
	}
	return out.keep()
}

// listCourse shows the way, with what is done in words.
func (a *app) listCourse(all []*scenarios.Scenario, names []string, place classroom.Place, path string) {
	now := place.At(names)
	longest, done := 0, 0
	for _, name := range names {
		longest = max(longest, len(name))
		if slices.Contains(place.Done, name) {
			done++
		}
	}
	look := a.look.options(a.stdout)
	for i, s := range all {
		if i == 0 || s.Family != all[i-1].Family {
			if i > 0 {
				say(a.stdout, "")
			}
			say(a.stdout, "%s", s.Family)
		}
		mark := ""
		switch {
		case i == now && done < len(names):
			mark = "now"
		case slices.Contains(place.Done, s.Name):
			mark = "done"
		}
		lead := fmt.Sprintf("  %-4s  %-*s  ", mark, longest, s.Name)
		for j, line := range report.Fold(s.Title, strings.Repeat(" ", len(lead)), look) {
			if j == 0 {
				line = lead + strings.TrimLeft(line, " ")
			}
			say(a.stdout, "%s", line)
		}
	}
	say(a.stdout, "\n%d of %d done. Next: retrylab course", done, len(names))
	say(a.stdout, "Kept in %s", path)
}

// attend gives one lesson after the other, from where somebody is.
func (a *app) attend(cmd *cobra.Command, all []*scenarios.Scenario, names []string, place classroom.Place, path string, pace classroom.Pace, in, out *os.File) error {
	d, err := a.openDesk(in, out)
	if err != nil {
		return err
	}
	defer d.close()
	for i := place.At(names); i < len(all); i++ {
		s := all[i]
		place.Now = s.Name
		kept := a.keepPlace(path, place)
		if err := errors.Join(d.Show([]string{s.Name + ": running"}), d.close()); err != nil { // Ctrl-C ends a run as ever
			return err
		}
		l, err := a.courseLesson(cmd, s)
		var environment *suite.EnvironmentError
		switch {
		case a.interrupts.signalled() != 0, err != nil && !errors.As(err, &environment):
			return err
		case err != nil:
			l = &classroom.Lesson{Name: s.Name, Title: s.Title, Look: a.look.options(out), Missing: message(err)}
		}
		l.Pace, l.Heading, l.Last = pace, fmt.Sprintf("%s, %d of %d", s.Family, i+1, len(all)), "Enter: the end of the course"
		if i+1 < len(all) {
			l.Last = fmt.Sprintf("Enter: on to %s   q: quit", all[i+1].Name)
		}
		if err := d.take(); err != nil {
			return err
		}
		if l.After = []string{"Where you are is kept in " + path + "; --reset forgets it."}; kept != nil {
			l.After = []string{"Where you are cannot be kept: " + kept.Error()}
		}
		err = l.Give(d)
		if l.Told {
			if l.Missing == "" {
				place.Finish(names, s.Name)
			} else {
				place.Pass(names, s.Name)
			}
			if kept == nil {
				if failed := a.keepPlace(path, place); failed != nil {
					return errors.Join(d.close(), &suite.EnvironmentError{Err: failed})
				}
			}
		}
		if err != nil {
			err = errors.Join(d.close(), a.left(err, suite.ExitHeld))
			say(a.stdout, "on with it: retrylab course")
			return err
		}
	}
	if err := d.close(); err != nil {
		return err
	}
	say(a.stdout, "That was the last. More questions: retrylab quiz")
	return nil
}

// courseLesson runs a scenario of the course, and makes its lesson.
func (a *app) courseLesson(cmd *cobra.Command, s *scenarios.Scenario) (*classroom.Lesson, error) {
	o := suite.Options{Clock: engine.Virtual, Named: map[string]bool{s.Name: true}}
	o.Plan.Seed = 1
	doc, err := a.runLesson(cmd.Context(), s, o)
	if err != nil {
		return nil, err
	}
	return a.lesson(s, doc, o)
}
