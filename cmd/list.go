package cmd

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"retrylab/scenarios"
)

// listed is a scenario in the JSON form of list.
type listed struct {
	Name           string   `json:"name"`
	Title          string   `json:"title"`
	Family         string   `json:"family"`
	Tags           []string `json:"tags"`
	Needs          []string `json:"needs"`
	Configurations []string `json:"configurations"`
	Next           string   `json:"next,omitempty"`
}

func (a *app) listCommand() *cobra.Command {
	var format string
	var tags []string
	families := "one of: " + strings.Join(scenarios.Families, ", ")
	c := &cobra.Command{
		Use:       "list [FAMILY]",
		Short:     "List the built-in scenarios",
		Example:   "  retrylab list\n  retrylab list incidents\n  retrylab list --tag check-jitter\n  retrylab list --format json",
		ValidArgs: scenarios.Families,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef(families, "%s takes one family", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := scenarios.Catalogue()
			if err != nil {
				return err
			}
			if len(args) > 0 {
				if all = slices.DeleteFunc(all, func(s *scenarios.Scenario) bool { return s.Family != args[0] }); len(all) == 0 {
					return usagef(families, "there is no family %q", args[0])
				}
			}
			if len(tags) > 0 {
				if all, err = tagged(all, tags); err != nil {
					return err
				}
			}
			switch format {
			case "table":
				return a.list(all, len(args) > 0 || len(tags) > 0)
			case "json":
				var out []listed
				for _, s := range all {
					l := listed{Name: s.Name, Title: s.Title, Family: s.Family, Tags: nonNil(s.Tags), Needs: nonNil(s.Needs), Next: s.Next}
					for _, v := range s.Variants {
						l.Configurations = append(l.Configurations, v.ID)
					}
					out = append(out, l)
				}
				e := json.NewEncoder(a.stdout)
				e.SetEscapeHTML(false)
				e.SetIndent("", "  ")
				return e.Encode(out)
			}
			return usagef("one of: table, json", "there is no format %q", format)
		},
	}
	tagFlag(c, &tags, "list the scenarios with this `tag` (repeatable: any of them)")
	c.Flags().StringVar(&format, "format", "table", "`format`: table or json")
	c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// tagFlag adds the flag --tag, which completes the tags that there are.
func tagFlag(c *cobra.Command, tags *[]string, doc string) {
	c.Flags().StringSliceVar(tags, "tag", nil, doc)
	c.RegisterFlagCompletionFunc("tag", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return tagNames(), cobra.ShellCompDirectiveNoFileComp
	})
}

// tagged returns the scenarios that have one of the tags.
func tagged(all []*scenarios.Scenario, tags []string) ([]*scenarios.Scenario, error) {
	var out []*scenarios.Scenario
	for _, s := range all {
		if slices.ContainsFunc(tags, func(t string) bool { return slices.Contains(s.Tags, t) }) {
			out = append(out, s)
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	hint := "tags are: " + strings.Join(tagNames(), ", ")
	if near := scenarios.Nearest(tags[0], tagNames()); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return nil, usagef(hint, "no scenario has the tag %q", strings.Join(tags, ","))
}

// tagNames lists the tags of the built-in scenarios.
func tagNames() []string {
	all, err := scenarios.Catalogue()
	if err != nil {
		return nil
	}
	var tags []string
	for _, s := range all {
		tags = append(tags, s.Tags...)
	}
	slices.Sort(tags)
	return slices.Compact(tags)
}

func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// list prints the scenarios family by family. The incidents are a list of their own: of all they are a line.
func (a *app) list(all []*scenarios.Scenario, whole bool) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	needy := false
	for i, s := range all {
		if i == 0 || s.Family != all[i-1].Family {
			if i > 0 {
				fmt.Fprintln(w)
			}
			fmt.Fprintln(w, plain(s.Family))
			if s.Family == scenarios.Incidents && !whole {
				fmt.Fprintf(w, "  %d public reports, played again: retrylab list %s\n", len(all)-i, s.Family)
			}
		}
		if s.Family == scenarios.Incidents && !whole {
			continue
		}
		name, title := s.Name, plain(s.Title)
		if s.Family == scenarios.Incidents {
			name = scenarios.IncidentID(name) // which is enough to name it, and leaves room for the title
		}
		if len(s.Needs) > 0 {
			title += " *"
			needy = true
		}
		fmt.Fprintf(w, "  %s\t%s\n", name, title)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if needy {
		say(a.stdout, "\n* on PostgreSQL alone: asked for by name it starts one of its own")
	}
	scenarios := "scenarios"
	if len(all) == 1 {
		scenarios = "scenario"
	}
	say(a.stdout, "\n%d %s. Next: retrylab describe %s", len(all), scenarios, all[0].Name)
	return nil
}
