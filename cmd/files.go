package cmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"retrylab/internal/schema"
	"retrylab/scenarios"
)

func (a *app) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "show NAME",
		Short:             "Print a scenario's file, to start your own from",
		Example:           "  retrylab show read-timeout > mine.yaml",
		Args:              oneArg("a scenario", "retrylab show read-timeout > mine.yaml"),
		ValidArgsFunction: completeScenarios,
		RunE: func(_ *cobra.Command, args []string) error {
			s, _, err := a.readScenario(args[0])
			if err != nil {
				return err
			}
			_, err = a.stdout.Write(s.Source)
			return err
		},
	}
}

func (a *app) newCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "new FILE",
		Short:   "Write a commented scenario file to start from",
		Example: "  retrylab new mine.yaml\n  retrylab run ./mine.yaml",
		Args:    oneArg("the file to write", "retrylab new mine.yaml"),
		RunE: func(_ *cobra.Command, args []string) error {
			path := args[0]
			if path == "-" {
				_, err := a.stdout.Write(scenarios.Skeleton)
				return err
			}
			// Created only if there is none: nobody's file is written over.
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
			if errors.Is(err, fs.ErrExist) {
				return usagef("choose another name, or remove it first", "cannot write %s: it exists", path)
			}
			if err != nil {
				return usagef("", "cannot write %s: %v", path, cause(err))
			}
			if _, err := f.Write(scenarios.Skeleton); err != nil {
				return errors.Join(err, f.Close(), os.Remove(path))
			}
			if err := f.Close(); err != nil {
				return err
			}
			run := path
			if !scenarios.IsFile(path) {
				run = "./" + path
			}
			if strings.ContainsAny(run, " \t'\"$&;()") {
				run = "'" + strings.ReplaceAll(run, "'", `'\''`) + "'" // for a shell
			}
			say(a.stderr, "wrote %s. Next: retrylab run %s", path, run)
			return nil
		},
	}
}

func (a *app) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "validate FILE…",
		Short:             "Check scenario files without running them",
		Example:           "  retrylab validate mine.yaml other.yaml",
		ValidArgsFunction: completeFiles,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("for example: retrylab validate mine.yaml", "%s needs at least one file", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			names := map[string]string{}
			for _, arg := range args {
				// A bare name that exists is a file here: this command is about files.
				if !scenarios.IsFile(arg) {
					if _, err := os.Stat(arg); err == nil {
						arg = "./" + arg
					}
				}
				s, _, err := a.readScenario(arg)
				if err == nil && names[s.Name] != "" {
					err = twice(s.Name, names[s.Name], s.File)
				}
				if err != nil {
					a.complain(err)
					a.code = max(a.code, exitCode(err))
					continue
				}
				names[s.Name] = s.File
				n := "1 configuration"
				if len(s.Variants) != 1 {
					n = fmt.Sprintf("%d configurations", len(s.Variants))
				}
				say(a.stdout, "%s: ok, scenario %s with %s", arg, s.Name, n)
			}
			return nil
		},
	}
}

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:       "schema scenario|result|event",
		Short:     "Print the JSON Schema of a scenario file, a result or an event",
		Example:   "  retrylab schema scenario > scenario.schema.json",
		ValidArgs: schema.Kinds,
		Args: func(cmd *cobra.Command, args []string) error {
			switch kinds := "one of: " + strings.Join(schema.Kinds, ", "); {
			case len(args) != 1:
				return usagef(kinds, "%s needs the name of a schema", cmd.CommandPath())
			case !slices.Contains(schema.Kinds, args[0]):
				return usagef(kinds, "there is no schema %q", args[0])
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			out, err := schema.Of(args[0])
			if err != nil {
				return err
			}
			_, err = a.stdout.Write(out)
			return err
		},
	}
}
