package cmd

import (
	"encoding/json"
	"fmt"
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
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the built-in scenarios",
		Example: "  retrylab list\n  retrylab list --format json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			all, err := scenarios.Catalogue()
			if err != nil {
				return err
			}
			switch format {
			case "table":
				return a.list(all)
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
	c.Flags().StringVar(&format, "format", "table", "`format`: table or json")
	c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// list prints the scenarios family by family.
func (a *app) list(all []*scenarios.Scenario) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	family, needy := "", false
	for _, s := range all {
		if s.Family != family {
			if family != "" {
				fmt.Fprintln(w)
			}
			family = s.Family
			fmt.Fprintln(w, plain(family))
		}
		title := plain(s.Title)
		if len(s.Needs) > 0 {
			title += " *"
			needy = true
		}
		fmt.Fprintf(w, "  %s\t%s\n", s.Name, title)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if needy {
		say(a.stdout, "\n* on PostgreSQL alone: asked for by name it starts one of its own")
	}
	say(a.stdout, "\n%d scenarios. Next: retrylab describe %s", len(all), all[0].Name)
	return nil
}
