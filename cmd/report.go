package cmd

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"retrylab/internal/lab"
)

func (a *app) reportCommand() *cobra.Command {
	var f outputFlags
	c := &cobra.Command{
		Use:   "report RESULT",
		Short: "Print a saved result again, in any format",
		Long: "Print the result that `retrylab run --format json` wrote, without running anything.\n" +
			"- is standard input. The exit code is that of the run.",
		Example: "  retrylab run --all --format json -o result.json\n" +
			"  retrylab report result.json\n" +
			"  retrylab report result.json --format markdown",
		Args: oneArg("a result", "retrylab report result.json"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := environment(cmd.Flags(), "format", variable("format")); err != nil {
				return err
			}
			doc, err := a.readResult(args[0])
			if err != nil {
				return err
			}
			outs, err := a.openOutputs(cmd, f)
			if err != nil {
				return err
			}
			defer outs.discard() // of no effect once they are kept
			if err := outs.write(doc); err != nil {
				return err
			}
			a.code = doc.ExitCode
			return nil
		},
	}
	f.flags(c)
	return c
}

// readResult reads a saved result.
func (a *app) readResult(path string) (*lab.Document, error) {
	name, read := path, os.ReadFile
	if path == "-" {
		name, read = "stdin", func(string) ([]byte, error) { return io.ReadAll(a.stdin) }
	}
	data, err := read(path)
	if err != nil {
		return nil, usagef("", "%s: %v", name, cause(err))
	}
	doc, err := lab.ReadDocument(name, data)
	if err != nil {
		return nil, usagef("a result is what `retrylab run --format json -o result.json` writes", "%v", err)
	}
	return doc, nil
}
