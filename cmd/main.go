// Package cmd is the command line: flags in, one call, a report out, an exit code. One file per
// command. It decides nothing about a trial.
package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"retrylab/internal/engine"
	"retrylab/internal/lab"
	"retrylab/internal/suite"
	"retrylab/report"
	"retrylab/scenarios"
)

// app is what the commands share: the streams, and the exit code of the one that ran.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	interrupts     *interrupts
	runSuite       func(context.Context, []*scenarios.Scenario, suite.Options) (*lab.Document, error)
	look           look
	commands       io.Writer                       // takes the commands of GitHub's runner
	gitHub         string                          // auto or off
	written        map[string]scenarios.Default    // the flags that have their value of the project file
	debug          bool                            // --debug
	trace          func(what string, about ...any) // writes a line of the log; of no effect without --debug
	code           int
}

// Main runs the command line and returns the exit code.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return newApp(stdin, stdout, stderr).main(args)
}

func newApp(stdin io.Reader, stdout, stderr io.Writer) *app {
	a := &app{
		stdin: stdin, stdout: stdout, stderr: stderr, commands: stderr, runSuite: suite.Run,
		trace: func(string, ...any) {}, written: map[string]scenarios.Default{},
	}
	if onGitHub() {
		a.stdout, a.stderr = &inert{Writer: stdout}, &inert{Writer: stderr}
	}
	return a
}

func (a *app) main(args []string) (code int) {
	defer func() {
		if r := recover(); r != nil {
			a.complain(fmt.Errorf("internal error: %v", r))
			if a.debug {
				a.stderr.Write(debug.Stack())
			} else {
				say(a.stderr, "  this is a defect of retrylab; --debug shows where")
			}
			code = suite.ExitInternal
		}
	}()
	ctx, in := catchInterrupts(context.Background(), a.stderr)
	defer in.stop()
	a.interrupts = in
	root := a.root()
	root.SetArgs(args)
	if err := root.ExecuteContext(ctx); err != nil {
		if in.signalled() != 0 {
			return in.code()
		}
		if errors.Is(err, errNobodyReads) {
			return exitPipe // as if it had ended the program; there is nothing to say, and nobody to say it to
		}
		// What went wrong in several places is several mistakes.
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			for _, err := range several.Unwrap() {
				a.complain(err)
			}
		} else {
			a.complain(err)
		}
		return exitCode(err)
	}
	return a.code
}

// exitPipe is what a shell makes of a program that SIGPIPE has ended.
const exitPipe = 128 + int(syscall.SIGPIPE)

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
		file        *fs.PathError
	)
	switch {
	case errors.As(err, &usage), errors.As(err, &input), errors.As(err, &fast):
		return suite.ExitUsage
	case errors.As(err, &environment), errors.As(err, &file):
		return suite.ExitEnvironment
	case isCobraUsage(err):
		return suite.ExitUsage
	}
	return suite.ExitInternal
}

// isCobraUsage recognises the error that cobra itself makes, which has no type: arguments for its
// commands that write completions.
func isCobraUsage(err error) bool { return strings.HasPrefix(err.Error(), "unknown command") }

// flagError says what is wrong with a flag in the tool's own words.
func flagError(cmd *cobra.Command, err error) error {
	help := "see: " + cmd.CommandPath() + " --help"
	var (
		unknown *pflag.NotExistError
		empty   *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
	)
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := scenarios.Nearest(unknown.GetSpecifiedName(), names); near != "" {
			help = fmt.Sprintf("did you mean --%s? %s", near, help)
		}
		return usagef(help, "there is no flag --%s", unknown.GetSpecifiedName())
	case errors.As(err, &unknown):
		return usagef(help, "there is no flag -%s", unknown.GetSpecifiedName())
	case errors.As(err, &empty):
		return usagef(help, "--%s needs a value", empty.GetFlag().Name)
	case errors.As(err, &invalid):
		if hint := wanted(invalid.GetFlag()); hint != "" {
			help = hint
		}
		return usagef(help, "--%s cannot be %q", invalid.GetFlag().Name, invalid.GetValue())
	}
	return usagef(help, "%v", err)
}

// unknownCommand says that there is no such command, and what is near.
func unknownCommand(root *cobra.Command, name string) error {
	var names []string
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	hint := "`retrylab --help` shows all commands"
	if near := scenarios.Nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %q? %s", near, hint)
	} else if near := scenarios.Nearest(name, scenarios.Names()); near != "" {
		hint = fmt.Sprintf("did you mean `retrylab run %s`?", near)
	}
	return usagef(hint, "there is no command %q", name)
}

// complain tells a person what went wrong.
func (a *app) complain(err error) {
	lines := strings.Split("retrylab: "+message(err), "\n")
	for i, line := range lines {
		switch {
		case !excerpt.MatchString(line):
			if lines[i] = plain(line); isTerminal(a.stderr) {
				lines[i] = report.FoldLine(lines[i], width(a.stderr))
			}
		case !unicodeLocale():
			lines[i] = inColumns(line)
		}
	}
	fmt.Fprintln(a.stderr, strings.Join(lines, "\n"))
	a.annotateMistake(err)
}

// excerpt is a line of a file that a message shows, or the line below it with the caret.
var excerpt = regexp.MustCompile(`^ {2} *\d* \| `)

// inColumns keeps each character of an excerpt in its column, so that the caret points at it.
func inColumns(line string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\u3000':
			return ' '
		case r >= utf8.RuneSelf:
			return '?'
		}
		return r
	}, line)
}

// message is what a person reads of an error: what, where, why, and what to do.
func message(err error) string {
	var usage *usageError
	if errors.As(err, &usage) && usage.hint != "" {
		return err.Error() + "\n  " + usage.hint
	}
	var environment *suite.EnvironmentError
	if errors.As(err, &environment) && environment.Hint != "" {
		return err.Error() + "\n  " + environment.Hint
	}
	var fast *engine.TooFastError
	if errors.As(err, &fast) {
		return err.Error() + "\n  " + fast.Hint()
	}
	return err.Error()
}

// readScenario returns the scenario that an argument names: a file, standard input, or a built-in
// one. An argument NAME:ID also names one configuration of it.
func (a *app) readScenario(arg string) (s *scenarios.Scenario, id string, err error) {
	if !isFile(arg) {
		name, id, _ := strings.Cut(arg, ":")
		s, err = scenarios.Builtin(name)
		var unknown *scenarios.Error
		if _, e := os.Stat(arg); e == nil && errors.As(err, &unknown) {
			unknown.Hint = fmt.Sprintf("there is a file of that name: write ./%s", arg)
		}
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

// isFile reports whether an argument names a file. An incident has the slash of one in its name: it is
// meant where there is no such file.
func isFile(arg string) bool {
	if !scenarios.IsFile(arg) || !strings.HasPrefix(arg, scenarios.Incidents+"/") {
		return scenarios.IsFile(arg)
	}
	path, _, _ := strings.Cut(arg, ":")
	_, err := os.Stat(path)
	return err == nil || strings.HasSuffix(path, ".yaml") || strings.HasSuffix(path, ".yml")
}

// readFile reads at most as much of a file as a scenario may have.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		hint := ""
		name := strings.TrimSuffix(path, filepath.Ext(path))
		if _, none := scenarios.Builtin(name); errors.Is(err, fs.ErrNotExist) && none == nil {
			hint = fmt.Sprintf("the built-in scenario has no ending: retrylab run %s", name)
		}
		return nil, usagef(hint, "%s: %v", path, cause(err))
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
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
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
