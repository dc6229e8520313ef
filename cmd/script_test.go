package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"retrylab/internal/pgcluster"
	"retrylab/internal/redisserver"
)

var update = flag.Bool("update", false, "write the golden parts of the scripts anew")

// noNap keeps the race detector from sleeping for a second at the end of each process.
const noNap = "atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	testscript.Main(housed{m}, map[string]func(){
		"retrylab": func() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// housed are tests with a home of their own: the template of a cluster is made once for all of them,
// and is nothing for the user's own cache.
type housed struct{ m *testing.M }

func (h housed) Run() int {
	// Where these tests run in GitHub Actions, the runs within are none of its business.
	os.Unsetenv("GITHUB_ACTIONS")
	os.Unsetenv("GITHUB_STEP_SUMMARY")
	home, err := os.MkdirTemp("", "retrylab-home-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	os.Setenv("HOME", home)
	os.Setenv("XDG_CACHE_HOME", filepath.Join(home, "cache"))
	code := h.m.Run()
	if err := os.RemoveAll(home); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}

// TestScripts runs the tool as a shell would. See testdata/script.
func TestScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs the command some two hundred times, for minutes with the race detector, and its parts are raced by their own tests")
	}
	t.Parallel()
	scenarios, err := filepath.Abs("../scenarios")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("SCENARIOS", scenarios)
			e.Setenv("LC_ALL", "C.UTF-8")
			e.Setenv("COLUMNS", "80")
			e.Setenv("GORACE", noNap)
			e.Setenv("XDG_CACHE_HOME", os.Getenv("XDG_CACHE_HOME"))
			// Below it are the directories for temporary files, which the account of a server must be
			// able to enter.
			return os.Chmod(filepath.Dir(e.WorkDir), 0o755)
		},
		Condition: condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"replace": replace,
			"files":   files,
		},
	})
}

// condition says what a script may depend on beside its own: exists:PATH, root, postgres, redis-server.
func condition(name string) (bool, error) {
	if path, ok := strings.CutPrefix(name, "exists:"); ok {
		_, err := os.Stat(path)
		return err == nil, nil
	}
	switch name {
	case "root":
		return os.Geteuid() == 0, nil
	case "postgres":
		_, err := pgcluster.Find(context.Background(), "")
		return installed(err)
	case "redis-server":
		_, err := redisserver.Find("")
		return installed(err)
	}
	return false, fmt.Errorf("unknown condition %q", name)
}

// installed turns the error of who looked for a program into whether it is there. Where everything
// is to be tested, nothing may be missing.
func installed(err error) (bool, error) {
	if err != nil && os.Getenv("CI") != "" {
		return false, err
	}
	return err == nil, nil
}

// heartbeats are the lines that say how far a run is: where it takes long, and of each scenario with --verbose.
var heartbeats = regexp.MustCompile(`(?m)^retrylab: (still running|\S+ is over): .*\n`)

// exits CODE retrylab ARGS… runs the tool and checks its exit code, and what holds for every run:
// nothing is left in the directory for temporary files, a success says nothing on standard error,
// a mistake prints nothing on standard output, JSON is one document, and where the terminal shows
// no more than ASCII there is no more, data apart.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || args[1] != "retrylab" {
		ts.Fatalf("usage: exits CODE retrylab ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	args = args[2:]
	err = ts.Exec("retrylab", args...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("it exits with %d, not %d", got, want)
	}
	stdout, stderr := ts.ReadFile("stdout"), ts.ReadFile("stderr")
	stderr = heartbeats.ReplaceAllString(stderr, "")
	if got == 0 && stderr != "" && !slices.Contains(args, "new") && !slices.Contains(args, "--accept") && !slices.Contains(args, "__complete") {
		ts.Fatalf("a success with something on standard error")
	}
	skipped := strings.Contains(stdout, "skipped") // nothing ran, and the report says why
	if got == 2 && !skipped && stdout != "" && !slices.Contains(args, "validate") {
		ts.Fatalf("a mistake with something on standard output")
	}
	if got == 2 && !skipped && !strings.HasPrefix(stderr, "retrylab: ") {
		ts.Fatalf("a mistake that is not explained")
	}
	if left, err := os.ReadDir(ts.Getenv("TMPDIR")); len(left) > 0 {
		ts.Fatalf("it leaves %v (%v)", left, err)
	}
	asked := slices.Contains(args, "--json") || strings.Contains(strings.Join(args, " "), "--format json")
	if asked && got != 2 && !slices.Contains(args, "-o") && !slices.Contains(args, "--help") {
		d := json.NewDecoder(strings.NewReader(stdout))
		var document any
		ts.Check(d.Decode(&document))
		if _, err := d.Token(); err != io.EOF {
			ts.Fatalf("there is something behind the JSON document")
		}
	}
	data := asked || slices.Contains(args, "show")
	if ts.Getenv("LC_ALL") == "C" {
		for name, text := range map[string]string{"standard output": stdout, "standard error": stderr} {
			if i := strings.IndexFunc(text, func(r rune) bool { return r > '~' || r < ' ' && !strings.ContainsRune("\n\t", r) }); i >= 0 && !data {
				ts.Fatalf("%s is not plain ASCII: %q", name, text[max(0, i-40):min(len(text), i+40)])
			}
		}
	}
}

// replace FILE OLD NEW replaces a text that is in the file.
func replace(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: replace FILE OLD NEW")
	}
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	if !bytes.Contains(data, []byte(args[1])) {
		ts.Fatalf("%s has no %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(path, bytes.ReplaceAll(data, []byte(args[1]), []byte(args[2])), 0o644))
}

// files DIR NAMES… checks what is in a directory, hidden files included.
func files(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: files DIR NAMES…")
	}
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if !slices.Equal(names, args[1:]) {
		ts.Fatalf("%s has %q, not %q", args[0], names, args[1:])
	}
}
