package classroom

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"retrylab/internal/lab"
	"retrylab/report"
)

// Question is one question of a quiz, with its answer.
type Question struct {
	Scenario string   // its title
	Setup    []string // what is set, one thing each
	Text     string
	Choices  []string
	Right    int    // the choice that was measured
	Reason   string // in a sentence
	Command  string // which shows it
}

// Letter is what a choice is called.
func Letter(i int) string { return string(rune('a' + i)) }

// Ask makes one question of a scenario that was run, drawn by the seed. taken says which were asked already;
// ok is false where nothing is left to ask.
func Ask(seed int64, name, title string, list []Configuration, taken map[string]bool) (q Question, ok bool) {
	draw := func(what string) float64 { return lab.Draw(seed, "quiz", name, what) }
	var fit []Configuration
	for _, c := range list {
		if len(c.Results) == 1 && askable(c.Results[0]) {
			fit = append(fit, c)
		}
	}
	slices.SortStableFunc(fit, func(a, b Configuration) int { return cmp.Compare(draw(a.ID), draw(b.ID)) })
	type kind struct {
		name string
		make func() (Question, string, bool)
	}
	one := func(what string, make func(c Configuration) (Question, bool)) func() (Question, string, bool) {
		return func() (Question, string, bool) {
			for _, c := range fit {
				if q, ok := make(c); ok && !taken[name+":"+c.ID+what] {
					q.Setup = c.Chain
					q.Command = "retrylab run " + name + ":" + c.ID
					if q.Reason == "" {
						q.Reason = reason(c.Results[0])
					}
					return q, name + ":" + c.ID + what, true
				}
			}
			return Question{}, "", false
		}
	}
	kinds := []kind{
		{"orders", one("orders", func(c Configuration) (Question, bool) { return howMany(draw, c), true })},
		{"which", func() (Question, string, bool) {
			q, id, ok := which(name, fit, taken, draw("unlike") < 0.75)
			if !ok {
				q, id, ok = which(name, fit, taken, false)
			}
			return q, id, ok
		}},
		{"belief", one("belief", belief)},
	}
	// Half of them are about the number of orders: that is what it is all about.
	weight := map[string]float64{"orders": draw("orders") * 0.5, "which": draw("which"), "belief": draw("belief") * 1.4}
	slices.SortStableFunc(kinds, func(a, b kind) int { return cmp.Compare(weight[a.name], weight[b.name]) })
	for _, k := range kinds {
		if q, id, ok := k.make(); ok {
			taken[id] = true
			q.Scenario = title
			return q, true
		}
	}
	return Question{}, false
}

// askable reports whether a result can be asked for: what is wanted can be counted on fingers, and the trial counts.
func askable(r *lab.Result) bool {
	return !r.Simulated && !r.Uncounted && r.Verdict != lab.Inconclusive && 1 <= r.Counts.Wanted && r.Counts.Wanted <= 12
}

// howMany asks for the number of orders. What people guess is always among the choices: as many as were wanted,
// and one for each request. The others are numbers that one comes by. More than there were requests is among them
// in half of the questions: never, and the largest would be right too often; always, and it would be known as wrong.
func howMany(draw func(string) float64, c Configuration) Question {
	n := c.Results[0].Counts
	right, requests := n.Effects, max(n.Sends, n.Arrivals, n.Wanted)
	most := max(requests, right, 2)
	if draw(c.ID+"more") < 0.5 {
		most++
	}
	chosen := []int{right}
	add := func(numbers ...int) {
		for _, number := range numbers {
			if 0 <= number && number <= most && !slices.Contains(chosen, number) && len(chosen) < 4 {
				chosen = append(chosen, number)
			}
		}
	}
	add(n.Wanted, requests)
	others := []int{0, n.EffectsWhenCallerDone, n.Sends, right - 1, right + 1, 2 * right, right + 2, right + 3}
	if most > requests {
		add(most)
	}
	slices.SortStableFunc(others, func(a, b int) int {
		return cmp.Compare(draw(c.ID+strconv.Itoa(a)), draw(c.ID+strconv.Itoa(b)))
	})
	add(others...)
	slices.Sort(chosen)
	q := Question{Text: "How many orders are there in the end?"}
	if n.Operations > 1 {
		q.Text = fmt.Sprintf("How many orders are there in the end, of %d operations?", n.Operations)
	}
	for i, number := range chosen {
		q.Choices = append(q.Choices, strconv.Itoa(number))
		if number == right {
			q.Right = i
		}
	}
	return q
}

// which asks which of two configurations makes more orders than the user meant: of two that are unlike in that,
// or of any two.
func which(name string, fit []Configuration, taken map[string]bool, unlike bool) (Question, string, bool) {
	for i, a := range fit {
		for _, b := range fit[i+1:] {
			id := name + ":" + a.ID + "|" + b.ID
			x, y := a.Results[0].Counts, b.Results[0].Counts
			if taken[id] || unlike && (x.Duplicates > 0) == (y.Duplicates > 0) {
				continue
			}
			q := Question{
				Text:    "Which of the two makes more orders than the user meant?",
				Choices: []string{"only A", "only B", "both", "neither"},
				Command: "retrylab run " + name,
			}
			for _, c := range []struct {
				letter string
				Configuration
			}{{"A: ", a}, {"B: ", b}} {
				for j, machine := range c.Chain {
					lead := "   "
					if j == 0 {
						lead = c.letter
					}
					q.Setup = append(q.Setup, lead+machine)
				}
			}
			switch {
			case x.Duplicates > 0 && y.Duplicates > 0:
				q.Right = 2
			case x.Duplicates > 0:
				q.Right = 0
			case y.Duplicates > 0:
				q.Right = 1
			default:
				q.Right = 3
			}
			q.Reason = "A: " + reason(a.Results[0]) + " B: " + reason(b.Results[0])
			return q, id, true
		}
	}
	return Question{}, "", false
}

// belief asks what the caller of one operation ends with.
func belief(c Configuration) (Question, bool) {
	r := c.Results[0]
	if r.Counts.Operations != 1 {
		return Question{}, false
	}
	q := Question{
		Text:    "What does the caller believe in the end?",
		Choices: []string{"that its order is there", "that it failed", "nothing: it does not know"},
	}
	switch {
	case r.Beliefs.Failed > 0:
		q.Right = 1
	case r.Beliefs.Unknown > 0:
		q.Right = 2
	case r.Beliefs.OK == 0:
		return q, false
	}
	q.Reason = believes(r) + " " + orders(r.Counts)
	return q, true
}

// reason is why a result is what it is.
func reason(r *lab.Result) string {
	return strings.Join(append([]string{orders(r.Counts)}, Explain(r)[:min(len(Explain(r)), 3)]...), " ")
}

// Sheet is a quiz on paper.
type Sheet struct {
	Title         string
	Note          string // such as that there are fewer questions than were asked for
	Questions     []Question
	WithQuestions bool
	WithAnswers   bool
	Markdown      bool
	Look          report.Options
	Again         string // the command that prints it again
}

// Write prints the questions, and on another page the answers.
func (s Sheet) Write(w io.Writer) error {
	var b strings.Builder
	if s.WithQuestions {
		s.heading(&b, s.Title)
		if s.Note != "" {
			s.paragraph(&b, s.Note, "")
		}
		for i, q := range s.Questions {
			s.question(&b, i, q)
		}
	}
	if s.WithAnswers {
		switch {
		case s.WithQuestions && s.Markdown:
			b.WriteString("---\n\n")
		case s.WithQuestions:
			b.WriteString("\f\n") // a printer begins another page
		}
		s.heading(&b, s.Title+": answers")
		for i, q := range s.Questions {
			s.answer(&b, i, q)
		}
		if s.Again != "" {
			s.paragraph(&b, "The same questions again:", "")
			s.code(&b, []string{s.Again})
		}
	}
	_, err := io.WriteString(w, strings.TrimRight(b.String(), "\n")+"\n")
	return err
}

func (s Sheet) heading(b *strings.Builder, text string) {
	text = report.Fold(text, "", s.Look)[0]
	if s.Markdown {
		b.WriteString("## " + text + "\n\n")
		return
	}
	b.WriteString(text + "\n" + strings.Repeat("=", len([]rune(text))) + "\n\n")
}

func (s Sheet) paragraph(b *strings.Builder, text, indent string) {
	if s.Markdown {
		text = escaped(text)
		indent = ""
	}
	b.WriteString(strings.Join(report.Fold(text, indent, s.Look), "\n") + "\n\n")
}

// escaped keeps what a text says from being taken for Markdown.
func escaped(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", "&", "&amp;", "[", `\[`, "|", `\|`, "#", `\#`).Replace(text)
}

// code prints lines as they are.
func (s Sheet) code(b *strings.Builder, lines []string) {
	for _, l := range lines {
		lead := len(l) - len(strings.TrimLeft(l, " "))
		indent := "    " + l[:lead]
		for _, part := range report.Hang(l, indent, s.Look) {
			b.WriteString(part + "\n")
		}
	}
	b.WriteString("\n")
}

func (s Sheet) question(b *strings.Builder, i int, q Question) {
	if s.Markdown {
		fmt.Fprintf(b, "### %d. %s\n\n", i+1, escaped(report.Fold(q.Scenario, "", report.Options{Width: 1000, Unicode: s.Look.Unicode})[0]))
	} else {
		s.paragraph(b, fmt.Sprintf("%d. %s", i+1, q.Scenario), "")
	}
	s.code(b, q.Setup)
	s.paragraph(b, q.Text, "   ")
	for j, choice := range q.Choices {
		if s.Markdown {
			fmt.Fprintf(b, "- %s) %s\n", Letter(j), escaped(choice))
		} else {
			fmt.Fprintf(b, "   [ ] %s) %s\n", Letter(j), choice)
		}
	}
	b.WriteString("\n")
}

func (s Sheet) answer(b *strings.Builder, i int, q Question) {
	lead := fmt.Sprintf("%d. %s) %s. ", i+1, Letter(q.Right), q.Choices[q.Right])
	if s.Markdown {
		fmt.Fprintf(b, "%d. **%s) %s.** %s\n", i+1, Letter(q.Right), escaped(q.Choices[q.Right]), escaped(q.Reason))
		fmt.Fprintf(b, "   `%s`\n\n", q.Command)
		return
	}
	s.paragraph(b, lead+q.Reason, "")
	s.code(b, []string{q.Command})
}
