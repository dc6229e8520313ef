package cmd

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"retrylab/internal/expression"
	"retrylab/internal/storage"
	"retrylab/scenarios"
)

// What the shells offer. Nothing is said where nothing is known: a shell shows no errors.

// completer offers what can stand at a place that was begun.
type completer = func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// completeScenarios offers the built-in scenarios, and files.
func completeScenarios(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	names := scenarios.Names()
	if folder := scenarios.Incidents + "/"; strings.HasPrefix(begun, folder) {
		names = nil
		for _, name := range scenarios.IncidentNames() {
			names = append(names, folder+name)
		}
	}
	return names, cobra.ShellCompDirectiveDefault
}

// completeConfigurations is completeScenarios, and offers the configurations of one behind its colon.
func (a *app) completeConfigurations(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	name, _, colon := strings.Cut(begun, ":")
	if !colon {
		return completeScenarios(c, args, begun)
	}
	var out []string
	for _, id := range a.configurationIDs([]string{name}) {
		out = append(out, name+":"+id)
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// named returns the scenarios that are on the command line so far, without those that cannot be read.
func (a *app) named(args []string) []*scenarios.Scenario {
	var out []*scenarios.Scenario
	for _, arg := range args {
		if arg == "-" {
			continue // what completes must not wait for it
		}
		if s, _, err := a.readScenario(arg); err == nil {
			out = append(out, s)
		}
	}
	return out
}

func (a *app) configurationIDs(args []string) []string {
	var ids []string
	for _, s := range a.named(args) {
		for _, v := range s.Variants {
			ids = append(ids, v.ID)
		}
	}
	return ids
}

// completeOnly offers the configurations of the scenarios that are named.
func (a *app) completeOnly(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.configurationIDs(args), cobra.ShellCompDirectiveNoFileComp
}

// completeSetting offers the paths that begin with a prefix: those that there are, and those into the lists
// of the scenarios that are named. Behind path= it offers the words that can stand there, with list after
// each comma.
func (a *app) completeSetting(prefix string, list bool) completer {
	return func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		const more = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		path, value, ok := strings.Cut(begun, "=")
		if !ok {
			paths := scenarios.Paths()
			for _, s := range a.named(args) {
				if t, err := s.Base(); err == nil {
					for _, setting := range t.Settings() {
						paths = append(paths, setting.Path)
					}
				}
			}
			slices.Sort(paths)
			var out []string
			for _, p := range slices.Compact(paths) {
				if strings.HasPrefix(p, prefix) {
					out = append(out, p+"=")
				}
			}
			return out, more
		}
		words := scenarios.WordsAt(path)
		if rule, ok := scenarios.RuleAt(path); ok && rule.Layers {
			for _, s := range a.named(args) {
				if t, err := s.Base(); err == nil {
					for _, layer := range t.Layers {
						words = append(words, layer.Name)
					}
				}
			}
		}
		given := ""
		if i := strings.LastIndexByte(value, ','); list && i >= 0 {
			given = value[:i+1]
		}
		var out []string
		for _, word := range words {
			if !slices.Contains(strings.Split(given, ","), word) {
				out = append(out, path+"="+given+word)
			}
		}
		if list {
			return out, more
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeAssert offers the names that an expression can have, for its first.
func completeAssert(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	if strings.ContainsAny(begun, " <>=!+-*/()") {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return expression.Names(), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeStore offers the kinds of databases; a URL is for its owner to write.
func completeStore(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{storage.SQLite, storage.Postgres, storage.Docker}, cobra.ShellCompDirectiveNoFileComp
}

// completeRedis offers the places of keys.
func completeRedis(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{storage.Embedded, storage.Server}, cobra.ShellCompDirectiveNoFileComp
}

// completeFiles offers scenario files.
func completeFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

// completionScripts puts the pages of the scripts for the shells into the words of all other pages, and lets that for
// bash look once for what it stands on: without it, each Tab would break the line that is typed.
func (a *app) completionScripts(parent *cobra.Command) {
	for _, c := range parent.Commands() {
		shell := c.Name()
		c.Short = "Write the completion script for " + shell
		c.Long, c.Example = c.Short+".", map[string]string{
			"bash":       "  source <(retrylab completion bash)\n  retrylab completion bash > ~/.local/share/bash-completion/completions/retrylab",
			"zsh":        "  source <(retrylab completion zsh)\n  retrylab completion zsh > \"${fpath[1]}/_retrylab\"",
			"fish":       "  retrylab completion fish | source\n  retrylab completion fish > ~/.config/fish/completions/retrylab.fish",
			"powershell": "  retrylab completion powershell | Out-String | Invoke-Expression",
		}[shell]
		if f := c.Flags().Lookup("no-descriptions"); f != nil {
			f.Usage = "offer names alone, without what they are"
		}
		switch shell {
		case "bash":
			c.Long += " It needs the package bash-completion, version 2,\nand says so where that is not loaded."
			c.RunE = func(c *cobra.Command, _ []string) error {
				bare, _ := c.Flags().GetBool("no-descriptions")
				var script bytes.Buffer
				if err := c.Root().GenBashCompletionV2(&script, !bare); err != nil {
					return err
				}
				fmt.Fprint(&script, bashNeeds)
				_, err := script.WriteTo(c.OutOrStdout())
				return err
			}
		case "zsh":
			c.Long += " It needs compinit, which\n`autoload -U compinit; compinit` in ~/.zshrc loads."
		}
	}
}

// bashNeeds is the end of the script for bash.
const bashNeeds = `
if ! declare -F _get_comp_words_by_ref >/dev/null; then
    echo "retrylab: completion needs the package bash-completion, which is not loaded" >&2
    complete -r retrylab
fi
`
