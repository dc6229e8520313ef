package cmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

const welcome = `retrylab shows what retries do: how often a request was sent, how often it
arrived, how many orders exist, and what the caller believes.

  retrylab run read-timeout      the caller gives up before the server is done
  retrylab run unique-index      twelve at once, and the guards that hold

Try first:  retrylab run read-timeout
Then:       retrylab list            every scenario
            retrylab describe NAME   what it is about, before you run it
            retrylab --help          all commands
`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "retrylab",
		Short:         "A fault-injection lab for retries and idempotency",
		Long:          "retrylab starts a deliberately slow order service and a caller made of retry\nlayers, runs a scripted scenario, reads the orders back from a database, and\nprints what was sent, what arrived, what exists and what the caller believes.",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
		Example:       "  retrylab run read-timeout\n  retrylab run --all --format json\n  retrylab run ./mine.yaml --set caller.timeouts.read=15s",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return unknownCommand(cmd, args[0])
		},
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprint(a.stdout, plain(welcome))
			return nil
		},
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			if err := environment(c.Flags(), "debug", variable("debug")); err != nil {
				return err
			}
			if a.debug {
				a.trace = debugLog(a.stderr)
				a.trace("begins", "command", c.CommandPath(), "version", version())
			}
			return a.look.check()
		},
	}
	root.SetIn(a.stdin)
	root.SetOut(asciiWriter{a.stdout})
	root.SetErr(asciiWriter{a.stderr})
	root.SetVersionTemplate("retrylab {{.Version}}\n")
	root.SetUsageTemplate(usage)
	root.SetFlagErrorFunc(flagError)
	a.look.flags(root.PersistentFlags())
	root.PersistentFlags().BoolVar(&a.debug, "debug", false, "write to standard error what is planned, opened and run, and when")
	root.RegisterFlagCompletionFunc("color", cobra.FixedCompletions(colors, cobra.ShellCompDirectiveNoFileComp))
	root.AddGroup(
		&cobra.Group{ID: "lab", Title: "The lab:"},
		&cobra.Group{ID: "class", Title: "In a class (beside run --step):"},
		&cobra.Group{ID: "files", Title: "Scenario files:"},
	)
	for _, c := range []*cobra.Command{a.runCommand(), a.listCommand(), a.describeCommand(), a.layersCommand(), a.serveCommand(), a.reportCommand(), a.compareCommand()} {
		c.GroupID = "lab"
		root.AddCommand(c)
	}
	for _, c := range []*cobra.Command{a.courseCommand(), a.quizCommand()} {
		c.GroupID = "class"
		root.AddCommand(c)
	}
	for _, c := range []*cobra.Command{a.showCommand(), a.newCommand(), a.validateCommand(), a.schemaCommand()} {
		c.GroupID = "files"
		root.AddCommand(c)
	}
	root.AddCommand(a.versionCommand(), a.replicaCommand())
	root.AddCommand(topics()...)
	root.SetHelpCommand(helpCommand(root))
	root.InitDefaultCompletionCmd("completion")
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Short = "Write the completion script for a shell"
			c.Long = "Write the script that makes a shell complete commands, scenarios, configurations, paths\nand formats. Each shell's own page says where it goes."
			a.completionScripts(c)
			c.Example = "  retrylab completion bash > /etc/bash_completion.d/retrylab\n  source <(retrylab completion zsh)"
			c.Args = cobra.ArbitraryArgs
			c.RunE = func(cmd *cobra.Command, args []string) error {
				if len(args) > 0 {
					return usagef("one of: bash, fish, powershell, zsh", "there is no completion for %q", args[0])
				}
				return cmd.Help()
			}
		}
	}
	return root
}

// usage is how every command is explained: examples first.
const usage = `{{with .Example}}Examples:
{{.}}

{{end}}Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND{{end}}{{if .HasAvailableSubCommands}}{{$all := .Commands}}{{range $group := .Groups}}

{{.Title}}{{range $all}}{{if and (eq .GroupID $group.ID) .IsAvailableCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}

{{if .Groups}}More:{{else}}Commands:{{end}}{{range $all}}{{if and (eq .GroupID "") (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasHelpSubCommands}}

Topics ({{.CommandPath}} help TOPIC):{{range .Commands}}{{if .IsAdditionalHelpTopicCommand}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsagesWrapped 80 | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableInheritedFlags}}

Flags of every command:
{{.InheritedFlags.FlagUsagesWrapped 80 | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableSubCommands}}

{{.CommandPath}} COMMAND --help explains a command.{{end}}
`

// helpCommand is `retrylab help`, which knows what it cannot explain.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND|TOPIC]",
		Short:   "Explain a command or a topic",
		Example: "  retrylab help run\n  retrylab help exit-codes",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, c := range root.Commands() {
				if len(args) == 0 && (c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand()) {
					names = append(names, c.Name())
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			about, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(root, strings.Join(args, " "))
			}
			about.InitDefaultHelpFlag()
			about.InitDefaultVersionFlag()
			return about.Help()
		},
	}
}
