package cmd

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"retrylab/caller/policy"
	"retrylab/internal/lab"
	"retrylab/scenarios"
	"retrylab/slowserver/fault"
	"retrylab/slowserver/ledger"
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
		if v.Said != nil {
			changes = append(changes, fold("often said: "+strings.Join(written(*v.Said, scenarios.Said{}), ", "), wide, indent))
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
	a.checklists(s.Tags, wide)
	name := s.Name
	if !slices.Contains(scenarios.Names(), s.Name) || !strings.HasPrefix(s.File, "scenarios/") {
		name = s.File
	}
	say(a.stdout, "\nNext: retrylab run %s", name)
	return nil
}

// checklists says what of the checklists a scenario shows, and lists its other tags.
func (a *app) checklists(tags []string, wide int) {
	var other []string
	for _, list := range scenarios.Checklists {
		var items []string
		for _, c := range list.Items {
			if slices.Contains(tags, c.Tag) {
				items = append(items, fold(c.Text, wide, "  ")+"\n    retrylab list --tag "+c.Tag)
			}
		}
		if len(items) > 0 {
			say(a.stdout, "\n%s\n%s", list.Title, strings.Join(items, "\n"))
		}
	}
	for _, tag := range tags {
		if _, ok := scenarios.CheckOf(tag); !ok {
			other = append(other, tag)
		}
	}
	if len(other) > 0 {
		say(a.stdout, "\nTags\n%s", fold(strings.Join(other, ", "), wide, "  "))
	}
}

// hopKeys says what a hop does with the key, unless it passes it on.
var hopKeys = map[string]string{
	scenarios.KeyNone: "drops the key", scenarios.KeyRequest: "a key per request", scenarios.KeyAttempt: "a key per try",
}

// chain is a configuration, machine by machine.
func chain(t scenarios.Trial) string {
	var parts []string
	for _, m := range machines(t) {
		parts = append(parts, machine(m.name, m.facts...))
	}
	text := strings.Join(parts, " → ")
	if t.Setup.Simulate {
		text = "simulated: " + text
	}
	if after := t.Setup.Reconcile.After; after > 0 {
		text += fmt.Sprintf("; what is left open is reconciled after %s", span(after))
	}
	return text
}

// part is one machine of a configuration, with what is set there.
type part struct {
	name  string
	facts []string
}

// machines are those of a configuration, from the caller to the order service.
func machines(t scenarios.Trial) []part {
	p := t.Setup
	nothing := unsaid(p.Hops)
	parts := []part{{p.Caller.Name, slices.Concat(
		[]string{traffic(p), p.Caller.Method, layers(t.Layers, p.Caller.Layers), limits(p.Caller.Timeouts), keyed(p.Caller.Key), asking(p.Caller.Ask), jumps(p.Caller.ClockJumps)},
		written(p.Caller, nothing.Caller, "name", "method", "timeouts", "layers", "key", "ask", "clock-jumps"))}}
	for i, h := range p.Hops {
		var faults []string
		for _, f := range h.Faults {
			faults = append(faults, machine(f.Settings().Name(), written(f, scenarios.HopFault{}, "at", "do")...))
		}
		parts = append(parts, part{h.Name, slices.Concat(
			[]string{layers(t.HopLayers[i], h.Layers), limits(h.Timeouts), hopKeys[h.Key], strings.Join(faults, ", ")},
			written(h, nothing.Hops[i], "name", "timeouts", "layers", "key", "faults"))})
	}
	name := p.Server.Name
	if p.Server.Replicas > 1 {
		name = fmt.Sprintf("%s ×%d", name, p.Server.Replicas)
	}
	guard := ""
	if p.Server.Guard.Kind != "" {
		guard = machine("guard "+p.Server.Guard.Kind, written(p.Server.Guard, nothing.Server.Guard, "kind")...)
	}
	var faults []string
	for _, f := range p.Server.Faults {
		faults = append(faults, machine(f.Name(), written(f, fault.Settings{}, "at", "do")...))
	}
	var ledgers []string
	for _, l := range p.Server.Ledgers {
		facts := written(l, ledger.Settings{Reference: ledger.ByNothing}, "name", "when", "relay")
		for _, fact := range written(l.Relay, ledger.Relay{}) {
			facts = append(facts, "relay "+fact)
		}
		ledgers = append(ledgers, machine("ledger "+l.Name+" "+l.When, facts...))
	}
	return append(parts, part{name, slices.Concat([]string{"works " + span(p.Server.Processing), guard, strings.Join(faults, ", "), strings.Join(ledgers, ", ")},
		written(p.Server, nothing.Server, "name", "processing", "replicas", "guard", "faults", "ledgers"))})
}

func machine(name string, facts ...string) string {
	facts = slices.DeleteFunc(facts, func(s string) bool { return s == "" })
	if len(facts) == 0 {
		return name
	}
	return fmt.Sprintf("%s (%s)", name, strings.Join(facts, ", "))
}

// unsaid is the setup of a file that says nothing but that there are these hops, and of which kind.
func unsaid(hops []scenarios.Hop) scenarios.Setup {
	nothing := scenarios.Setup{Hops: make([]scenarios.Hop, len(hops))}
	text := "name: unsaid\n"
	if len(hops) > 0 {
		text += "hops:\n"
	}
	for i, h := range hops {
		text += fmt.Sprintf("  - {name: hop-%d, kind: %s}\n", i, h.Kind)
	}
	s, err := scenarios.Parse("unsaid.yaml", []byte(text))
	if err != nil {
		return nothing
	}
	trials, err := s.Plan(scenarios.Options{Seed: 1})
	if err != nil {
		return nothing
	}
	return trials[0].Setup
}

// mostIntents is how many operations of a schedule are told one by one.
const mostIntents = 8

// traffic says how many requests the user makes, where it is more than one.
func traffic(p scenarios.Setup) string {
	var out []string
	for _, phase := range p.Load {
		random := ""
		if phase.Arrivals == "random" {
			random = " at random"
		}
		out = append(out, fmt.Sprintf("%g operations/s%s for %s", phase.Rate, random, span(phase.For)))
	}
	if out != nil {
		return strings.Join(out, ", then ")
	}
	timed := slices.ContainsFunc(p.Schedule, func(i scenarios.Intent) bool { return i.At != nil })
	for _, many := range []struct {
		n     int
		what  string
		apart time.Duration
	}{{p.Operations, "operations", p.Interval}, {p.Concurrency, "sends of one operation", p.Stagger}} {
		switch {
		case many.n <= 1:
		case timed:
			out = append(out, fmt.Sprintf("%d %s", many.n, many.what))
		case many.apart > 0:
			out = append(out, fmt.Sprintf("%d %s, %s apart", many.n, many.what, span(many.apart)))
		default:
			out = append(out, fmt.Sprintf("%d %s at once", many.n, many.what))
		}
	}
	if n := p.FurtherSends(); n > 0 {
		out = append(out, fmt.Sprintf("further sends: %d", n))
	}
	for i, intent := range p.Schedule {
		if i == mostIntents {
			out = append(out, fmt.Sprintf("and %d more in the file", len(p.Schedule)-i))
			break
		}
		if facts := written(intent, scenarios.Intent{}); len(facts) > 0 {
			out = append(out, machine(fmt.Sprintf("%d.", i+1), facts...))
		}
	}
	return strings.Join(out, ", ")
}

// written lists what a mapping of a file has that another has not, but for some of its keys.
func written[T any](mapping, nothing T, but ...string) []string {
	var out []string
	v, w := reflect.ValueOf(mapping), reflect.ValueOf(nothing)
	for i := range v.NumField() {
		key := v.Type().Field(i).Tag.Get("yaml")
		if reflect.DeepEqual(v.Field(i).Interface(), w.Field(i).Interface()) || v.Field(i).IsZero() || slices.Contains(but, key) {
			continue
		}
		out = append(out, strings.TrimSuffix(said(key, v.Field(i)), " true"))
	}
	return out
}

// span writes a length of time that is set as a file would, and from a second on as the pictures do.
func span(d time.Duration) string {
	if d < time.Second {
		return d.String()
	}
	return lab.Clock(d)
}

// said is one setting as a person would write it down.
func said(key string, v reflect.Value) string {
	v = reflect.Indirect(v)
	switch x := v.Interface().(type) {
	case time.Duration:
		return key + " " + span(x)
	case fmt.Stringer:
		return key + " " + x.String()
	}
	switch v.Kind() {
	case reflect.Struct:
		var facts []string
		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() {
				facts = append(facts, strings.TrimSuffix(said(v.Type().Field(i).Tag.Get("yaml"), f), " true"))
			}
		}
		return machine(key, facts...)
	case reflect.Slice:
		var items []string
		for i := range v.Len() {
			items = append(items, strings.TrimPrefix(said("", v.Index(i)), " "))
		}
		return key + " " + strings.Join(items, " ")
	}
	return fmt.Sprintf("%s %v", key, v.Interface())
}

// layers names the layers, with what their file says of each.
func layers(list []policy.Layer, settings []policy.Settings) string {
	var names []string
	for i, l := range list {
		name := l.Name
		if l.Attempts > 1 {
			name += fmt.Sprintf(" ×%d", l.Attempts)
		}
		if len(settings) == len(list) {
			name = machine(name, written(settings[i], policy.Settings{}, "preset", "name", "attempts")...)
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
	}{{"acquire", t.Acquire}, {"connect", t.Connect}, {"read", t.Read}, {"attempt", t.Attempt}, {"total", t.Total}, {"looks at the total every", t.Poll}} {
		if l.d > 0 {
			out = append(out, l.name+" "+span(l.d))
		}
	}
	if t.TotalClock == "calendar" {
		out = append(out, "total by the calendar clock")
	}
	return strings.Join(out, ", ")
}

// jumps says when a machine's calendar clock is set.
func jumps(list []scenarios.ClockJump) string {
	var out []string
	for _, j := range list {
		out = append(out, fmt.Sprintf("calendar clock %s at %s", j, span(j.At)))
	}
	return strings.Join(out, ", ")
}

// asking says how the caller asks after an order whose outcome it does not know.
func asking(a *scenarios.Ask) string {
	if a == nil {
		return ""
	}
	return "asks " + strings.Join(written(*a, scenarios.Ask{NotFound: "ask-again", Failed: "report", Key: "same"}), ", ")
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
