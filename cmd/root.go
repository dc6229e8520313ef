package cmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"retrylab/scenarios"
)

const welcome = `retrylab shows what retries do: how often a request was sent, how often it arrived,
how many orders exist, and what the caller believes.

  retrylab run read-timeout          the caller gives up before the server is done
  retrylab run unique-index          twelve at once, and the guards that hold

Try first:  retrylab run read-timeout
Then:       retrylab list            every scenario
            retrylab describe NAME   what it teaches, before you run it
            retrylab --help          all commands
`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "retrylab",
		Short:         "A fault-injection lab for retries and idempotency",
		Long:          "retrylab starts a deliberately slow order service and a caller made of retry layers, runs a\nscripted scenario, reads the orders back from a database, and prints what was sent, what\narrived, what exists and what the caller believes.",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
		Example:       "  retrylab run read-timeout\n  retrylab run --all --format json\n  retrylab run ./mine.yaml --set caller.timeouts.read=15s",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			var names []string
			for _, c := range cmd.Commands() {
				names = append(names, c.Name())
			}
			hint := "`retrylab --help` shows all commands"
			if near := scenarios.Nearest(args[0], names); near != "" {
				hint = fmt.Sprintf("did you mean %q? %s", near, hint)
			} else if near := scenarios.Nearest(args[0], scenarios.Names()); near != "" {
				hint = fmt.Sprintf("did you mean `retrylab run %s`?", near)
			}
			return usagef(hint, "there is no command %q", args[0])
		},
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprint(a.stdout, plain(welcome))
			return nil
		},
		PersistentPreRunE: func(*cobra.Command, []string) error { return a.look.check() },
	}
	root.SetVersionTemplate("retrylab {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("see: "+cmd.CommandPath()+" --help", "%v", err)
	})
	a.look.flags(root.PersistentFlags())
	root.RegisterFlagCompletionFunc("color", cobra.FixedCompletions(colors, cobra.ShellCompDirectiveNoFileComp))
	root.AddGroup(
		&cobra.Group{ID: "lab", Title: "The lab:"},
		&cobra.Group{ID: "files", Title: "Scenario files:"},
	)
	for _, c := range []*cobra.Command{a.runCommand(), a.listCommand(), a.describeCommand(), a.layersCommand()} {
		c.GroupID = "lab"
		root.AddCommand(c)
	}
	for _, c := range []*cobra.Command{a.showCommand(), a.newCommand(), a.validateCommand(), a.schemaCommand()} {
		c.GroupID = "files"
		root.AddCommand(c)
	}
	root.AddCommand(a.versionCommand(), a.exitCodesTopic())
	return root
}

// completeScenarios offers the built-in scenarios, and files.
func completeScenarios(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return scenarios.Names(), cobra.ShellCompDirectiveDefault
}
