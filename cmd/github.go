package cmd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"retrylab/internal/lab"
	"retrylab/report"
	"retrylab/scenarios"
)

var gitHubs = []string{"auto", "off"}

func (a *app) gitHubFlag(c *cobra.Command) {
	c.Flags().StringVar(&a.gitHub, "github", "auto", "summary and annotations of GitHub `Actions`: auto (where it runs there) or off")
	c.RegisterFlagCompletionFunc("github", cobra.FixedCompletions(gitHubs, cobra.ShellCompDirectiveNoFileComp))
}

// onGitHub reports whether this runs in GitHub Actions, or in what takes the same commands.
func onGitHub() bool { return os.Getenv("GITHUB_ACTIONS") == "true" }

// tellGitHub adds a result to the summary of the job, and annotates what did not hold. What goes wrong with
// that is said, and changes no exit code.
func (a *app) tellGitHub(doc *lab.Document, f outputFlags) {
	if a.gitHub == "off" {
		return
	}
	if path := os.Getenv("GITHUB_STEP_SUMMARY"); path != "" {
		if err := addSummary(path, doc, report.Options{Timeline: f.timeline}); err != nil {
			say(a.stderr, "retrylab: warning: GitHub's summary lacks this run: %v", err)
		}
	}
	if onGitHub() {
		io.WriteString(a.commands, report.GitHubAnnotations(doc, inRepository))
	}
}

// gitHubSection returns what folds a scenario in the log of GitHub, past what makes commands on standard output inert;
// nil where there is no such log.
func (a *app) gitHubSection() func(title string) error {
	stdout, ok := a.stdout.(*inert)
	if !ok || !onGitHub() || a.gitHub == "off" {
		return nil
	}
	return func(title string) error {
		begin, end := report.GitHubGroup(title)
		if title == "" {
			begin = end
		}
		_, err := io.WriteString(stdout.Writer, begin)
		return err
	}
}

// addSummary appends a result to the file that GitHub shows as the summary of a step.
func addSummary(path string, doc *lab.Document, o report.Options) error {
	before := int64(0)
	switch info, err := os.Stat(path); {
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%s: it is not a file", path)
	case err == nil:
		before = info.Size()
	}
	text := report.GitHubSummary(doc, o, report.GitHubSummaryMost-int(min(before, report.GitHubSummaryMost))-1)
	if text == "" {
		return fmt.Errorf("it is full, with %d bytes of this step", before)
	}
	if before > 0 {
		text = "\n" + text // whatever the last line there ends with
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return fmt.Errorf("%s: %w", path, cause(err))
	}
	_, err = io.WriteString(f, text)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("%s: %w", path, cause(err))
	}
	return nil
}

// inRepository is what a file is called in the repository that was checked out, with slashes; "" for
// one that is not in it.
func inRepository(file string) string {
	root := os.Getenv("GITHUB_WORKSPACE")
	path, err := filepath.Abs(file)
	if err != nil || root == "" {
		return ""
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	name, err := filepath.Rel(root, path)
	if err != nil || !filepath.IsLocal(name) {
		return ""
	}
	return filepath.ToSlash(name)
}

// annotateMistake points at the place in a scenario file at which it is wrong.
func (a *app) annotateMistake(err error) {
	var mistake *scenarios.Error
	if !onGitHub() || a.gitHub == "off" || !errors.As(err, &mistake) {
		return
	}
	if file, line := mistake.Place(); line > 0 && inRepository(file) != "" {
		io.WriteString(a.commands, report.GitHubCommand("error", inRepository(file), line, "retrylab", mistake.Error()))
	}
}

// inert passes on what is printed in such a way that GitHub's runner, which reads both streams, takes no line of
// it for a command: a scenario file may have names like ::error:: or ##[group]. The first is a command
// where it begins a line, the second anywhere in one. Written as it is here, the second is the same to a reader
// of JSON.
// https://github.com/actions/runner/blob/main/src/Runner.Common/ActionCommand.cs
type inert struct {
	io.Writer
	within bool // a line has begun
}

var (
	firstCommand = regexp.MustCompile(`^[\s\pZ]*::`)
	laterCommand = regexp.MustCompile(`(\n[\s\pZ]*:):`)
)

func (w *inert) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	text := strings.ReplaceAll(string(p), "##[", `#\u0023[`)
	if !w.within {
		text = firstCommand.ReplaceAllStringFunc(text, func(s string) string { return s[:len(s)-1] + " :" })
	}
	text = laterCommand.ReplaceAllString(text, "$1 :")
	w.within = p[len(p)-1] != '\n'
	if _, err := io.WriteString(w.Writer, text); err != nil {
		return 0, err
	}
	return len(p), nil
}
