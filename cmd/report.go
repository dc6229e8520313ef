package cmd

import (
	"io"
	"os"

	"github.com/spf13/cobra"

	"retrylab/internal/lab"
	"retrylab/internal/suite"
	"retrylab/scenarios"
)

func (a *app) reportCommand() *cobra.Command {
	var f outputFlags
	var merge bool
	c := &cobra.Command{
		Use:   "report RESULT…",
		Short: "Print a saved result again, in any format",
		Long: "Print the result that `retrylab run --format json` wrote, without running anything.\n" +
			"- is standard input, and a directory of --out-dir stands for its newest run. The\n" +
			"exit code is that of the run. --merge puts the results of all parts of a run\n" +
			"(`retrylab run --shard i/n`) together first: to the result that the run has in one.",
		Example: "  retrylab run --all --format json -o result.json\n" +
			"  retrylab report result.json\n" +
			"  retrylab report result.json --format markdown\n" +
			"  retrylab report part-*.json --merge --json -o result.json",
		Args: func(cmd *cobra.Command, args []string) error {
			if merge && len(args) > 0 {
				return nil
			}
			if len(args) > 1 {
				return usagef("--merge puts the parts of a run together", "%s prints one result, not %d", cmd.CommandPath(), len(args))
			}
			return oneArg("a result, or - for standard input", "retrylab report result.json")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := a.defaults(cmd, false); err != nil {
				return err
			}
			doc, err := a.readResults(args, merge)
			if err != nil {
				return err
			}
			if doc.Comparison.OfSaved() {
				if cmd.Flags().Changed("out-dir") || cmd.Flags().Changed("otlp") {
					return usagef("-o FILE keeps it", "--out-dir and --otlp are for what ran, and this is a comparison of two saved results")
				}
				if err := checkOfSaved(f); err != nil {
					return err
				}
			}
			outs, err := a.openOutputs(cmd, f)
			if err != nil {
				return err
			}
			defer outs.discard() // of no effect once they are kept
			err = outs.write(cmd.Context(), doc)
			a.tellGitHub(doc, f)
			if err != nil {
				return err
			}
			a.code = doc.ExitCode
			return nil
		},
	}
	f.flags(c)
	a.gitHubFlag(c)
	c.Flags().BoolVar(&merge, "merge", false, "put the results of all parts of a run together")
	return c
}

// readResults reads a saved result, or the parts of one.
func (a *app) readResults(paths []string, merge bool) (*lab.Document, error) {
	var parts []*lab.Document
	for _, path := range paths {
		doc, err := a.readResult(path)
		if err != nil {
			return nil, err
		}
		if !merge {
			return doc, nil
		}
		parts = append(parts, doc)
	}
	doc, err := suite.Merge(parts, paths)
	if err != nil {
		return nil, usagef("give the result of each --shard of one run, once", "%v", err)
	}
	return doc, nil
}

// readResult reads a saved result.
func (a *app) readResult(path string) (*lab.Document, error) {
	name, read := path, os.ReadFile
	if path == "-" {
		name, read = "stdin", func(string) ([]byte, error) { return io.ReadAll(a.stdin) }
	} else if info, err := os.Stat(path); err == nil && info.IsDir() {
		if name = keptResult(path); name == "" {
			return nil, usagef("--out-dir keeps one there", "%s: it is a directory without a result", path)
		}
	}
	data, err := read(name)
	if err != nil {
		return nil, usagef("", "%s: %v", name, cause(err))
	}
	doc, err := lab.ReadDocument(name, data)
	if err != nil {
		hint := "a result is what `retrylab run --format json -o result.json` writes"
		if _, scenario := scenarios.Parse(name, data); scenario == nil {
			hint = "it is a scenario file: retrylab run " + path
		}
		return nil, usagef(hint, "%v", err)
	}
	return doc, nil
}
