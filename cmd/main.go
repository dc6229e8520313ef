// Package cmd is the command line: flags in, one call, a report out, an exit code. One file per
// command. It decides nothing about a trial.
package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"retrylab/internal/engine"
	"retrylab/internal/suite"
	"retrylab/scenarios"
)

// app is what the commands share: the streams, and the exit code of the one that ran.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	interrupts     *interrupts
	look           look
	code           int
}

// Main runs the command line and returns the exit code.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr}
	ctx, in := catchInterrupts(context.Background(), stderr)
	defer in.stop()
	a.interrupts = in
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		code := exitCode(err)
		if in.signalled() != 0 {
			return in.code()
		}
		fmt.Fprintln(stderr, "retrylab: "+message(err))
		return code
	}
	if a.code == suite.ExitInterrupted {
		return in.code()
	}
	return a.code
}

// usageError is a mistake on the command line: nothing was run.
type usageError struct {
	err  error
	hint string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(hint, format string, args ...any) error {
	return &usageError{err: fmt.Errorf(format, args...), hint: hint}
}

// exitCode maps what went wrong to an exit code. Whatever is not about what was asked for or the
// environment is a defect.
func exitCode(err error) int {
	var (
		usage       *usageError
		input       *scenarios.Error
		fast        *engine.TooFastError
		environment *suite.EnvironmentError
	)
	switch {
	case errors.As(err, &usage), errors.As(err, &input), errors.As(err, &fast):
		return suite.ExitUsage
	case errors.As(err, &environment):
		return suite.ExitEnvironment
	case isCobraUsage(err):
		return suite.ExitUsage
	}
	return suite.ExitInternal
}

// isCobraUsage recognises the errors that cobra itself makes, which have no type: an unknown
// command or a wrong number of arguments.
func isCobraUsage(err error) bool {
	for _, prefix := range []string{"unknown command", "accepts ", "requires ", "required flag", "invalid argument", "if any flags in the group", "at least one of the flags"} {
		if strings.HasPrefix(err.Error(), prefix) {
			return true
		}
	}
	return false
}

// message is what a person reads of an error: what, where, why, and what to do.
func message(err error) string {
	var usage *usageError
	if errors.As(err, &usage) && usage.hint != "" {
		return err.Error() + "\n  " + usage.hint
	}
	var fast *engine.TooFastError
	if errors.As(err, &fast) {
		return fmt.Sprintf("%v\n  at most --speed %.0f", err, max(1, floor(fast.Most())))
	}
	return err.Error()
}

func floor(f float64) float64 { return float64(int64(f)) }

// readScenario returns the scenario that an argument names: a file, standard input, or a built-in
// one. An argument NAME:ID also names one configuration of it.
func (a *app) readScenario(arg string) (s *scenarios.Scenario, id string, err error) {
	if !scenarios.IsFile(arg) {
		name, id, _ := strings.Cut(arg, ":")
		s, err = scenarios.Builtin(name)
		return s, id, err
	}
	name := arg
	var data []byte
	if arg == "-" {
		name = "stdin"
		data, err = io.ReadAll(io.LimitReader(a.stdin, scenarios.MaxFileSize+1))
	} else {
		path := arg
		if _, e := os.Stat(path); e != nil {
			// NAME:ID works for files too; a colon in a file's own name comes first.
			if i := strings.LastIndexByte(path, ':'); i > 1 {
				path, id = path[:i], path[i+1:]
			}
		}
		name = path
		data, err = readFile(path)
	}
	if err != nil {
		return nil, "", err
	}
	s, err = scenarios.Parse(name, data)
	return s, id, err
}

// readFile reads at most as much of a file as a scenario may have.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, usagef("", "%s: %v", path, cause(err))
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, usagef("", "%s: %v", path, cause(err))
	case info.IsDir():
		return nil, usagef("name the scenario files in it", "%s: it is a directory, not a scenario file", path)
	case info.Size() > scenarios.MaxFileSize:
		return nil, usagef("", "%s: the file has %d bytes; a scenario may have %d", path, info.Size(), scenarios.MaxFileSize)
	}
	data, err := io.ReadAll(io.LimitReader(f, scenarios.MaxFileSize+1))
	if err != nil {
		return nil, usagef("", "%s: %v", path, cause(err))
	}
	return data, nil
}

// cause is an error of the operating system without the operation and the path that its message
// repeats.
func cause(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// noArgs refuses arguments in the tool's own words.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("see: "+cmd.CommandPath()+" --help", "%s takes no arguments, not %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// oneArg demands one argument, in the tool's own words.
func oneArg(what, example string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usagef("for example: "+example, "%s needs one argument: %s", cmd.CommandPath(), what)
		}
		return nil
	}
}
