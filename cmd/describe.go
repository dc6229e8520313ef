package cmd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"retrylab/caller/policy"
	"retrylab/scenarios"
)

func (a *app) describeCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "describe NAME|FILE",
		Short:             "Say what a scenario teaches, before it is run",
		Example:           "  retrylab describe read-timeout",
		Args:              oneArg("a scenario", "retrylab describe read-timeout"),
		ValidArgsFunction: completeScenarios,
		RunE: func(_ *cobra.Command, args []string) error {
			s, _, err := a.readScenario(args[0])
			if err != nil {
				return err
			}
			base, err := s.Base()
			if err != nil {
				return err
			}
			return a.describe(s, base)
		},
	}
}

// describe prints what Plan knows: nothing is run, and the numbers are left to be predicted.
func (a *app) describe(s *scenarios.Scenario, base scenarios.Trial) error {
	wide := min(width(a.stdout), 100)
	say(a.stdout, "%s", s.Name)
	if s.Title != "" {
		say(a.stdout, "%s", fold(s.Title, wide, ""))
	}
	say(a.stdout, "")
	say(a.stdout, "The chain\n%s\n", fold(chain(base), wide, "  "))

	say(a.stdout, "The configurations: how many orders will there be?")
	column := 0
	for _, v := range s.Variants {
		column = max(column, len("  "+v.ID+"  "))
	}
	column = min(column, 32) // an id can be of any length
	indent := strings.Repeat(" ", column)
	for _, v := range s.Variants {
		var changes []string
		for _, c := range v.Changes {
			changes = append(changes, fold(c.Path+": "+c.Value, wide, indent))
		}
		if len(changes) == 0 {
			changes = []string{indent + "as the chain says"}
		}
		if scenarios.Slug(v.Name) != v.ID { // else the id says it
			changes = slices.Insert(changes, 0, fold(v.Name, wide, indent))
		}
		id := "  " + v.ID
		if len(id)+2 > column {
			say(a.stdout, "%s", id)
			id = ""
		}
		text := strings.Join(changes, "\n")
		say(a.stdout, "%s", id+text[len(id):])
	}
	if lesson := strings.TrimSpace(s.Lesson); lesson != "" {
		say(a.stdout, "\nThe lesson, which tells what comes out")
		for i, paragraph := range strings.Split(lesson, "\n\n") {
			if i > 0 {
				say(a.stdout, "")
			}
			say(a.stdout, "%s", fold(paragraph, wide, "  "))
		}
	}
	if len(s.Sources) > 0 {
		say(a.stdout, "\nWhere the facts come from")
		for _, source := range s.Sources {
			say(a.stdout, "%s", fold(source, wide, "  "))
		}
	}
	if len(s.Tags) > 0 {
		say(a.stdout, "\nTags\n%s", fold(strings.Join(s.Tags, ", "), wide, "  "))
	}
	name := s.Name
	if !slices.Contains(scenarios.Names(), s.Name) || !strings.HasPrefix(s.File, "scenarios/") {
		name = s.File
	}
	say(a.stdout, "\nNext: retrylab run %s", name)
	return nil
}

// chain is the configuration that the file begins with, machine by machine.
func chain(t scenarios.Trial) string {
	p := t.Setup
	parts := []string{machine(p.Caller.Name, p.Caller.Method, layers(t.Layers), limits(p.Caller.Timeouts), keyed(p.Caller.Key))}
	for i, h := range p.Hops {
		strip := ""
		if h.StripKey {
			strip = "drops the key"
		}
		parts = append(parts, machine(h.Name, layers(t.HopLayers[i]), limits(h.Timeouts), strip))
	}
	name := p.Server.Name
	if p.Server.Replicas > 1 {
		name = fmt.Sprintf("%s ×%d", name, p.Server.Replicas)
	}
	guard := ""
	if p.Server.Guard.Kind != "" {
		guard = "guard " + p.Server.Guard.Kind
	}
	var faults []string
	for _, f := range p.Server.Faults {
		faults = append(faults, f.Name())
	}
	parts = append(parts, machine(name, "works "+p.Server.Processing.String(), guard, strings.Join(faults, ", ")))
	return strings.Join(parts, " → ")
}

func machine(name string, facts ...string) string {
	facts = slices.DeleteFunc(facts, func(s string) bool { return s == "" })
	if len(facts) == 0 {
		return name
	}
	return fmt.Sprintf("%s (%s)", name, strings.Join(facts, ", "))
}

func layers(list []policy.Layer) string {
	var names []string
	for _, l := range list {
		name := l.Name
		if l.Attempts > 1 {
			name += fmt.Sprintf(" ×%d", l.Attempts)
		}
		names = append(names, name)
	}
	return strings.Join(names, " over ")
}

func limits(t scenarios.Timeouts) string {
	var out []string
	for _, l := range []struct {
		name string
		d    time.Duration
	}{{"acquire", t.Acquire}, {"connect", t.Connect}, {"read", t.Read}, {"attempt", t.Attempt}, {"total", t.Total}} {
		if l.d > 0 {
			out = append(out, l.name+" "+l.d.String())
		}
	}
	return strings.Join(out, ", ")
}

func keyed(key string) string {
	if key == "none" {
		return ""
	}
	return "key: " + key
}

// fold breaks a text into lines of at most width columns, each after an indent.
func fold(text string, width int, indent string) string {
	text = plain(strings.Join(strings.Fields(text), " "))
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		n := len([]rune(word))
		switch {
		case column == 0:
			b.WriteString(indent)
			column = len(indent)
		case column+1+n > width:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}
