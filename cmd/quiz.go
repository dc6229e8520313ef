package cmd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"retrylab/internal/classroom"
	"retrylab/internal/engine"
	"retrylab/internal/lab"
	"retrylab/internal/suite"
	"retrylab/scenarios"
)

// quizFlags are the flags of quiz.
type quizFlags struct {
	seed              int64
	questions         int
	family, format    string
	answers, unsolved bool
}

// mostQuestions bounds a sheet.
const mostQuestions = 200

func (a *app) quizCommand() *cobra.Command {
	var f quizFlags
	c := &cobra.Command{
		Use:   "quiz",
		Short: "Print questions about what comes out, and on another page the answers",
		Long: "Print questions about what comes out of the scenarios, to be answered on paper,\n" +
			"and on another page the answers. The right ones are not written anywhere: each\n" +
			"is measured by running the scenario. The same seed gives the same questions.",
		Example: "  retrylab quiz\n  retrylab quiz --seed 7 --questions 5 --family guards\n  retrylab quiz --format markdown > quiz.md",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.quiz(cmd, f) },
	}
	fl := c.Flags()
	fl.Int64Var(&f.seed, "seed", 1, "`seed` that the questions are drawn with")
	fl.IntVar(&f.questions, "questions", 10, "`N` questions")
	fl.StringVar(&f.family, "family", "", "only scenarios of this `family`")
	fl.StringVar(&f.format, "format", "text", "`format`: text or markdown")
	fl.BoolVar(&f.answers, "answers", false, "print the answers alone")
	fl.BoolVar(&f.unsolved, "questions-only", false, "print the questions alone")
	c.RegisterFlagCompletionFunc("family", cobra.FixedCompletions(scenarios.Families, cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "markdown"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (a *app) quiz(cmd *cobra.Command, f quizFlags) error {
	switch {
	case f.answers && f.unsolved:
		return usagef("without either, both are printed", "--answers and --questions-only do not go together")
	case f.questions < 1 || f.questions > mostQuestions:
		return usagef("", "--questions must be between 1 and %d, not %d", mostQuestions, f.questions)
	case f.format != "text" && f.format != "markdown":
		return usagef("one of: text, markdown", "there is no format %q", f.format)
	case f.family != "" && !slices.Contains(scenarios.Families, f.family):
		return usagef("one of: "+strings.Join(scenarios.Families, ", "), "there is no family %q", f.family)
	}
	questions, err := a.draw(cmd, f)
	if err != nil || a.code != 0 {
		return err
	}
	sheet := classroom.Sheet{
		Title:     fmt.Sprintf("What do the retries do? Quiz %d", f.seed),
		Questions: questions, WithQuestions: !f.answers, WithAnswers: !f.unsolved,
		Markdown: f.format == "markdown", Look: a.look.options(a.stdout),
		Again: fmt.Sprintf("retrylab quiz --seed %d --questions %d", f.seed, f.questions),
	}
	sheet.Look.Width = min(sheet.Look.Width, 80) // of a sheet of paper
	if f.family != "" {
		sheet.Title += ": " + f.family
		sheet.Again += " --family " + f.family
	}
	if len(questions) < f.questions {
		sheet.Note = fmt.Sprintf("(There are no more than %d.)", len(questions))
	}
	return sheet.Write(a.stdout)
}

// draw makes the questions: round by round one of each scenario, in an order that the seed draws, until there
// are enough.
func (a *app) draw(cmd *cobra.Command, f quizFlags) ([]classroom.Question, error) {
	all, err := scenarios.Catalogue()
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(s *scenarios.Scenario) bool {
		return f.family != "" && s.Family != f.family || f.family == "" && s.Family == scenarios.Incidents || len(s.Needs) > 0
	})
	slices.SortStableFunc(all, func(s, t *scenarios.Scenario) int {
		return cmp.Compare(lab.Draw(f.seed, "quiz", s.Name), lab.Draw(f.seed, "quiz", t.Name))
	})
	var questions []classroom.Question
	taken, measured := map[string]bool{}, map[string][]classroom.Configuration{}
	for more := true; more; {
		more = false
		for _, s := range all {
			if len(questions) == f.questions {
				return questions, nil
			}
			list, ok := measured[s.Name]
			if !ok {
				if list, err = a.measure(cmd, s); err != nil || a.code != 0 {
					return nil, err
				}
				measured[s.Name] = list
			}
			if q, ok := classroom.Ask(f.seed, s.Name, s.Title, list, taken); ok {
				questions, more = append(questions, q), true
			}
		}
	}
	return questions, nil
}

// measure runs a scenario as run does, and returns what came out of each configuration.
func (a *app) measure(cmd *cobra.Command, s *scenarios.Scenario) ([]classroom.Configuration, error) {
	o := suite.Options{Clock: engine.Virtual}
	o.Plan.Seed = 1
	doc, err := a.runLesson(cmd.Context(), s, o)
	if err != nil || a.code != 0 {
		return nil, err
	}
	l, err := a.lesson(s, doc, o)
	if err != nil {
		return nil, err
	}
	return l.Configurations, nil
}
