package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"retrylab/internal/lab"
	"retrylab/internal/suite"
	"retrylab/scenarios"
)

// ran is what the command line came to, in this process.
type ran struct {
	code           int
	stdout, stderr string
}

func runMain(args ...string) ran {
	var stdout, stderr bytes.Buffer
	code := Main(args, strings.NewReader(""), &stdout, &stderr)
	return ran{code, stdout.String(), stderr.String()}
}

// TestEdited follows somebody who takes a scenario, changes a number and runs it: every expectation
// that no longer holds is named with what was expected, what came, and the line where it stands.
func TestEdited(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mine.yaml")
	shown := runMain("show", "read-timeout")
	text := strings.Replace(shown.stdout, "read: 5s}", "read: 15s}", 1)
	if text == shown.stdout {
		t.Fatal("there is no read timeout of 5 s to edit")
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(text, "\n")

	got := runMain("run", path, "--format", "json")
	if got.code != suite.ExitNotHeld || got.stderr != "" {
		t.Fatalf("it exits with %d: %s", got.code, got.stderr)
	}
	var doc lab.Document
	if err := json.Unmarshal([]byte(got.stdout), &doc); err != nil {
		t.Fatal(err)
	}
	table := runMain("run", path, "--wide")
	if table.code != suite.ExitNotHeld {
		t.Fatalf("it exits with %d", table.code)
	}
	report := strings.Join(strings.Fields(table.stdout), " ")
	unheld := 0
	for _, r := range doc.Results {
		for _, c := range r.Checks {
			if c.Kind == "premise" {
				continue
			}
			if c.File != path || c.Line < 1 || c.Line > len(lines) || !strings.Contains(lines[c.Line-1], c.Name) {
				t.Errorf("%s of %s stands at %s:%d: %q", c.Name, r.ID, c.File, c.Line, lines[c.Line-1])
			}
			if c.Held {
				continue
			}
			unheld++
			if want := c.Name + ": expected " + c.Expected + ", actual " + c.Actual; !strings.Contains(report, want) {
				t.Errorf("the report does not say %q", want)
			}
		}
	}
	if unheld == 0 {
		t.Error("everything held")
	}
	if place := regexp.MustCompile(`effects: expected 3, actual 1 \(\S*mine\.yaml:\d+\)`); !place.MatchString(report) {
		t.Errorf("the report does not say %s:\n%s", place, table.stdout)
	}
}

// TestDefect: what a trial's defect leaves is reported, and the code says that it is one.
func TestDefect(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	a := newApp(strings.NewReader(""), &stdout, &stderr)
	a.runSuite = func(ctx context.Context, list []*scenarios.Scenario, o suite.Options) (*lab.Document, error) {
		doc, err := suite.Run(ctx, list, o)
		if err != nil {
			return nil, err
		}
		doc.Results[1] = lab.Result{Scenario: doc.Results[1].Scenario, ID: doc.Results[1].ID, Configuration: doc.Results[1].Configuration, Why: "panic: out of cheese", Defect: true}
		doc.ExitCode = suite.ExitInternal
		return doc, nil
	}
	if code := a.main([]string{"run", "read-timeout"}); code != suite.ExitInternal {
		t.Errorf("it exits with %d", code)
	}
	for _, want := range []string{"one attempt", "out of cheese", "key + unique index"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("the report has no %q:\n%s", want, stdout.String())
		}
	}
}

// TestPanic: a defect outside of a trial ends the program with the code for it and without a stack
// trace, and leaves nothing behind.
func TestPanic(t *testing.T) {
	dir := t.TempDir()
	run := func() ran {
		var stdout, stderr bytes.Buffer
		a := newApp(strings.NewReader(""), &stdout, &stderr)
		a.runSuite = func(context.Context, []*scenarios.Scenario, suite.Options) (*lab.Document, error) {
			panic("out of cheese")
		}
		code := a.main([]string{"run", "read-timeout", "-o", filepath.Join(dir, "out.txt")})
		return ran{code, stdout.String(), stderr.String()}
	}
	got := run()
	if want := "retrylab: internal error: out of cheese\n  this is a defect of retrylab; --debug shows where\n"; got.code != suite.ExitInternal || got.stdout != "" || got.stderr != want {
		t.Errorf("got %+v", got)
	}
	t.Setenv("RETRYLAB_DEBUG", "1")
	if got := run(); !strings.Contains(got.stderr, "main_test.go") {
		t.Errorf("no stack trace where one was asked for: %s", got.stderr)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v (%v)", left, err)
	}
}

// TestExitCode maps every kind of error to its code.
func TestExitCode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want int
	}{
		{usagef("", "a mistake"), suite.ExitUsage},
		{&scenarios.Error{What: "wrong"}, suite.ExitUsage},
		{&suite.EnvironmentError{Err: errors.New("no disk")}, suite.ExitEnvironment},
		{&os.PathError{Op: "write", Path: "x", Err: io.ErrShortWrite}, suite.ExitEnvironment},
		{errors.New("what nobody thought of"), suite.ExitInternal},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

// TestReportNotWritten: a report that cannot be written is no success.
func TestReportNotWritten(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"table", "json"} {
		var stderr bytes.Buffer
		code := Main([]string{"run", "read-timeout:one-attempt", "--format", format}, strings.NewReader(""), brokenWriter{}, &stderr)
		if code != suite.ExitEnvironment || !strings.HasPrefix(stderr.String(), "retrylab: cannot write the "+format+" report to standard output: ") {
			t.Errorf("%s: it exits with %d: %s", format, code, stderr.String())
		}
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("the pipe is broken") }

// TestLeaveAtOnce: the second signal removes what must not stay and leaves.
func TestLeaveAtOnce(t *testing.T) {
	t.Parallel()
	ctx, in := catchInterrupts(t.Context(), io.Discard)
	defer in.stop()
	left := make(chan int)
	in.exit = func(code int) { left <- code }
	in.running.Store(true)
	removed := 0
	for range 2 {
		in.onLeave(func() error { removed++; return nil })
	}
	in.signals <- os.Interrupt
	<-ctx.Done()
	if in.signalled() == 0 {
		t.Error("the first signal is forgotten")
	}
	in.signals <- os.Interrupt
	if code := <-left; code != suite.ExitInterrupted {
		t.Errorf("it leaves with %d", code)
	}
	if removed != 2 {
		t.Errorf("%d of 2 things are removed", removed)
	}
}

// TestFold breaks texts between words, and counts what is printed.
func TestFold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text   string
		width  int
		indent string
		want   string
	}{
		{"", 10, "  ", ""},
		{"one", 10, "  ", "  one"},
		{"one two three", 9, "", "one two\nthree"},
		{"one two three", 9, "  ", "  one two\n  three"},
		{"one\n\ntwo\tthree", 80, "", "one two three"},
		{"a-word-that-does-not-fit one", 5, "", "a-word-that-does-not-fit\none"},
		{"× × ×", 3, "", "× ×\n×"},
	} {
		if got := fold(c.text, c.width, c.indent); got != c.want {
			t.Errorf("fold(%q, %d) = %q, want %q", c.text, c.width, got, c.want)
		}
	}
}
