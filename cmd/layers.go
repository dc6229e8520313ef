package cmd

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"retrylab/caller/preset"
	"retrylab/internal/cell"
	"retrylab/scenarios"
)

func (a *app) layersCommand() *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "layers [ID]",
		Short: "Show how real retry layers behave, and play a trigger through one",
		Long: "Without an argument, list the presets. With one, show its triggers, waits,\n" +
			"defaults and traps. With --cell, play a trigger through it and print how many\n" +
			"requests reached the server.",
		Example: "  retrylab layers\n  retrylab layers apache-httpclient5\n  retrylab layers jdk-httpurlconnection --cell post_eof_fresh",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("for example: retrylab layers "+args[0], "%s takes one layer at a time", cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return layerNames(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 && name != "":
				return usagef("for example: retrylab layers okhttp --cell post_eof_reused", "--cell needs a layer")
			case len(args) == 0:
				return a.layers()
			case name != "":
				return a.cell(cmd.Context(), args[0], name)
			}
			return a.layer(args[0])
		},
	}
	c.Flags().StringVar(&name, "cell", "", "the `trigger` to play, such as post_eof_fresh")
	return c
}

// layerNames lists presets and stacks, by their names and by the ids of their facts.
func layerNames() []string {
	var names []string
	for _, p := range preset.All {
		names = append(names, p.Name)
		if p.Entry != "" {
			names = append(names, p.Entry)
		}
	}
	for _, s := range preset.Stacks {
		names = append(names, s.Name, s.Entry)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func unknownLayer(name string) error {
	hint := "`retrylab layers` shows all"
	if near := scenarios.Nearest(name, layerNames()); near != "" {
		hint = fmt.Sprintf("did you mean %q? %s", near, hint)
	}
	return usagef(hint, "there is no layer %q", name)
}

func (a *app) layers() error {
	wide := min(width(a.stdout), 100)
	indent := strings.Repeat(" ", 19)
	entry := func(name, id, title, counts string) {
		lines := fold(title, wide, indent) + "\n" + fold(counts, wide, indent)
		if id != "" {
			lines += "\n" + fold("id: "+id, wide, indent)
		}
		say(a.stdout, "%-19s%s", name, strings.TrimPrefix(lines, indent))
	}
	for i, group := range preset.Groups {
		say(a.stdout, "%s%s", strings.Repeat("\n", min(i, 1)), group)
		for _, p := range preset.All {
			if p.Group == group {
				entry(p.Name, p.Entry, p.Title, p.Counts)
			}
		}
	}
	say(a.stdout, "\nStacks of them, for --cell alone:")
	for _, s := range preset.Stacks {
		entry(s.Name, s.Entry, s.Title, strings.Join(s.Presets, " over "))
	}
	say(a.stdout, "\nNext: retrylab layers apache-httpclient5")
	return nil
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func (a *app) layer(name string) error {
	wide := min(width(a.stdout), 100)
	if s, ok := preset.FindStack(name); ok {
		say(a.stdout, "%s   %s\n", s.Name, s.Title)
		say(a.stdout, "%s\n", fold(s.Doc, wide, ""))
		say(a.stdout, "Layers, outermost first\n%s\n", fold(strings.Join(s.Presets, ", "), wide, "  "))
		a.cells(s.Entry, s.CellWords(), wide)
		return nil
	}
	p, ok := preset.Find(name)
	if !ok {
		return unknownLayer(name)
	}
	say(a.stdout, "%s   %s\n", p.Name, p.Title)
	say(a.stdout, "%s\n", fold(p.Doc, wide, ""))
	for _, part := range []struct {
		title string
		lines []string
	}{
		{"Facts", slices.DeleteFunc([]string{p.Entry, prefixed("version ", p.Version), prefixed("verified: ", p.Verified), prefixed("on by default: ", p.OnByDefault)}, func(s string) bool { return s == "" })},
		{"Counts", []string{p.Counts}},
		{"Retried", p.Triggers},
		{"Not retried", p.NotRetried},
		{"Waits", []string{p.Waits}},
		{"Time-outs", []string{p.Timeouts}},
		{"Traps", p.Traps},
		{"Source", p.Source},
	} {
		if len(part.lines) == 0 || part.lines[0] == "" {
			continue
		}
		say(a.stdout, "%s", part.title)
		for _, line := range part.lines {
			say(a.stdout, "%s", bullet(fold(line, wide, "    ")))
		}
		say(a.stdout, "")
	}
	if len(p.Drips) > 0 {
		say(a.stdout, "An answer in pieces, 250 ms apart, under a limit of 400 ms")
		w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
		for _, d := range p.Drips {
			fmt.Fprintf(w, "  %s\theaders: %s\tbody: %s\n", plain(d.Setting), d.Headers, d.Body)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		say(a.stdout, "")
	}
	if lines := settings(p); len(lines) > 0 {
		say(a.stdout, "What a scenario can set, with the default")
		for _, line := range lines {
			say(a.stdout, "%s", bullet(fold(line, wide, "    ")))
		}
		say(a.stdout, "")
	}
	if len(p.Originals) > 0 {
		say(a.stdout, "Settings: the original's name, ours, the default")
		w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
		for _, o := range p.Originals {
			fmt.Fprintf(w, "  %s\t%s\t%s\n", plain(o.Theirs), or(o.Ours, "-"), plain(o.Default))
		}
		if err := w.Flush(); err != nil {
			return err
		}
		say(a.stdout, "")
	}
	a.cells(or(p.Entry, p.Name), p.CellWords(), wide)
	return nil
}

// settings lists the keys that a preset takes, each with its default and what it means.
func settings(p *preset.Preset) []string {
	var out []string
	defaults := reflect.ValueOf(p.Defaults)
	for _, f := range reflect.VisibleFields(defaults.Type()) {
		key := f.Tag.Get("yaml")
		if !slices.Contains(p.Takes, key) {
			continue
		}
		line := key
		if v := defaults.FieldByIndex(f.Index); !v.IsZero() {
			line += fmt.Sprintf(" (%v)", reflect.Indirect(v).Interface())
		}
		out = append(out, line+": "+f.Tag.Get("doc"))
	}
	return out
}

func (a *app) cells(id string, words []string, wide int) {
	say(a.stdout, "%s", fold("Cells: play one with `retrylab layers "+id+" --cell post_eof_fresh`. Its words:", wide, ""))
	say(a.stdout, "%s", fold(strings.Join(words, " "), wide, "  "))
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

func bullet(s string) string { return "  - " + strings.TrimPrefix(s, "    ") }

// cell plays a trigger and prints the number of requests that reached the server.
func (a *app) cell(ctx context.Context, layer, name string) error {
	if !slices.Contains(layerNames(), layer) {
		return unknownLayer(layer)
	}
	play, err := preset.Cell(layer, name)
	if err != nil {
		what, _, _ := strings.Cut(err.Error(), "; the words are")
		return usagef("`retrylab layers "+layer+"` lists the words", "%s", what)
	}
	trial, err := cell.Trial(scenarios.Slug(name), play)
	if err != nil {
		return usagef("", "%v", err)
	}
	a.interrupts.running.Store(true)
	obs, err := cell.Play(ctx, trial)
	switch {
	case err != nil && obs.Defect:
		return err
	case err != nil:
		return usagef("`retrylab layers "+layer+"` says what it does", "%v", err)
	}
	say(a.stdout, "%d", cell.Requests(obs))
	return nil
}
