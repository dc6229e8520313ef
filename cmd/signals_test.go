//go:build unix

package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"retrylab/internal/lab"
)

// minutes has a trial that is over at once, and one that lasts longer than any test waits.
const minutes = `
name: minutes
variants:
  - {name: quick, set: {server.processing: 10ms}, expect: {effects: 1}}
  - {name: slow, set: {server.processing: 9m}, expect: {effects: 1}}
`

// TestSignals ends the program in the middle of a run: what is complete is reported, and nothing is
// left behind.
func TestSignals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		signal syscall.Signal
		code   int
	}{
		{"interrupt", syscall.SIGINT, 130},
		{"terminate", syscall.SIGTERM, 143},
		{"hang up", syscall.SIGHUP, 129},
	} {
		t.Run(c.name+" on the wall clock", func(t *testing.T) {
			t.Parallel()
			r := start(t, minutes, "--clock", "wall", "--jobs", "1", "--format", "json", "-o", "result.json")
			// Each trial has a database of its own. Two are for the plan of the whole run; then each
			// trial is planned once more and run: the sixth is the slow one, in real time.
			r.await("trial-6*")
			r.end(c.signal, c.code)
			doc := r.document("result.json")
			if len(doc.Results) != 1 || doc.Results[0].ID != "quick" || doc.Results[0].Verdict != lab.AsExpected {
				t.Errorf("the results are %+v", doc.Results)
			}
			if doc.ExitCode != c.code || !doc.Run.Interrupted {
				t.Errorf("the document says %d, interrupted %v", doc.ExitCode, doc.Run.Interrupted)
			}
		})
	}
	t.Run("interrupt on the virtual clock", func(t *testing.T) {
		t.Parallel()
		r := start(t, "name: many\n", "--repeat", "10000", "--jobs", "1", "--format", "json", "-o", "result.json")
		r.await("trial-9*")
		r.end(syscall.SIGINT, 130)
		doc := r.document("result.json")
		if n := len(doc.Results); n == 0 || n == 10_000 || doc.Summary.Measured != n || !doc.Run.Interrupted {
			t.Errorf("%d results, %+v, interrupted %v", n, doc.Summary, doc.Run.Interrupted)
		}
	})
	t.Run("interrupt with a table", func(t *testing.T) {
		t.Parallel()
		r := start(t, minutes, "--clock", "wall", "--jobs", "1")
		r.await("trial-6*")
		r.end(syscall.SIGINT, 130)
		if got := r.stdout.String(); !strings.Contains(got, "quick ") || strings.Contains(got, "slow ") {
			t.Errorf("the report is\n%s", got)
		}
	})
}

// TestNobodyReads takes the reader of standard output away: everything else is written all the same, nothing is left
// over, and nothing is said.
func TestNobodyReads(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read.Close()
	dir := t.TempDir()
	var stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), "retrylab", "run", "read-timeout", "--report", "json=r.json", "--out-dir", "kept")
	command.Dir, command.Stdout, command.Stderr = dir, write, &stderr
	command.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), "GORACE="+noNap)
	err = command.Run()
	write.Close()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitPipe || stderr.Len() > 0 {
		t.Errorf("it ends with %v and says %q, want %d", err, stderr.String(), exitPipe)
	}
	var names []string
	for _, pattern := range []string{"*", ".*", "kept/.*", "kept/latest/*"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, path := range found {
			name, _ := filepath.Rel(dir, path)
			names = append(names, name)
		}
	}
	want := "kept r.json kept/latest/events.ndjson kept/latest/report.html kept/latest/report.txt kept/latest/result.json kept/latest/scenario.resolved.yaml kept/latest/sequence.mmd"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("there are %s, want %s", got, want)
	}
}

// TestInterruptedBefore: while nothing runs there is nothing to report, and the first signal is
// enough, also where the tool waits for its input.
func TestInterruptedBefore(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), "retrylab", "run", "-")
	tmp := t.TempDir()
	command.Env = append(os.Environ(), "TMPDIR="+tmp, "GORACE="+noNap)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	// More than a pipe holds: once it is written, the other side is reading.
	if _, err := input.Write(bytes.Repeat([]byte("#\n"), 50_000)); err != nil {
		t.Fatal(err)
	}
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err = command.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 130 || output.Len() > 0 {
		t.Errorf("it ends with %v and says %q", err, output.String())
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v (%v)", left, err)
	}
}

// running is the tool as a process of its own, in a directory of its own.
type running struct {
	t              *testing.T
	dir            string
	command        *exec.Cmd
	stdout, stderr bytes.Buffer
	twice          atomic.Bool // it is interrupted once more when it has said that it was
}

// Write takes what the tool writes to standard error.
func (r *running) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "Once more leaves at once.") && r.twice.Load() {
		r.command.Process.Signal(os.Interrupt) // it may have ended by itself
	}
	return r.stderr.Write(p)
}

// room is a directory with a short path that others can enter, as the account of a server must and
// the path of a socket demands.
func room(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rl")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func start(t *testing.T, scenario string, args ...string) *running {
	t.Helper()
	r := &running{t: t, dir: room(t)}
	for name, text := range map[string]string{"mine.yaml": scenario, "tmp/": ""} {
		path := filepath.Join(r.dir, name)
		if strings.HasSuffix(name, "/") {
			if err := os.Mkdir(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r.command = exec.CommandContext(t.Context(), "retrylab", append([]string{"run", "mine.yaml"}, args...)...)
	r.command.Dir = r.dir
	r.command.Env = append(os.Environ(), "TMPDIR="+filepath.Join(r.dir, "tmp"), "GORACE="+noNap)
	r.command.Stdout, r.command.Stderr = &r.stdout, r
	r.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := r.command.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

// await waits until the run has made a file of that name.
func (r *running) await(pattern string) {
	r.t.Helper()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	for {
		if found, err := filepath.Glob(filepath.Join(r.dir, "tmp", "retrylab-*", pattern)); err != nil || len(found) > 0 {
			return
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			r.t.Fatalf("the run never made %s", pattern)
		}
	}
}

// end sends a signal and checks how the process ends.
func (r *running) end(s syscall.Signal, code int) {
	r.t.Helper()
	if err := r.command.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
	err := r.command.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != code {
		r.t.Errorf("it ends with %v, not exit status %d\n%s", err, code, r.stderr.String())
	}
	if want := "retrylab: interrupted; what is complete is reported. Once more leaves at once.\n"; strings.TrimPrefix(r.stderr.String(), warned) != want {
		r.t.Errorf("it says %q", r.stderr.String())
	}
	if left, err := os.ReadDir(filepath.Join(r.dir, "tmp")); err != nil || len(left) > 0 {
		r.t.Errorf("it leaves %v (%v)", left, err)
	}
	if err := syscall.Kill(-r.command.Process.Pid, 0); !errors.Is(err, syscall.ESRCH) {
		r.t.Errorf("a process of its group is left (%v)", err)
	}
	if left := r.servers(); len(left) > 0 {
		r.t.Errorf("servers of its are left: %v", left)
	}
}

func (r *running) document(name string) lab.Document {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.t.Fatal(err)
	}
	var doc lab.Document
	if err := json.Unmarshal(data, &doc); err != nil {
		r.t.Fatal(err)
	}
	entries, err := os.ReadDir(r.dir)
	if err != nil || len(entries) != 3 {
		r.t.Errorf("beside the result there is %v (%v)", entries, err)
	}
	return doc
}

// TestOutputMode: a report is as readable as the user's other files, and keeps what it replaces as
// readable as it was.
func TestOutputMode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	created, err := os.Create(filepath.Join(dir, "created"))
	if err != nil {
		t.Fatal(err)
	}
	created.Close()
	private := filepath.Join(dir, "private")
	if err := os.WriteFile(private, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, like := range map[string]string{filepath.Join(dir, "new"): created.Name(), private: private} {
		want, err := os.Stat(like)
		if err != nil {
			t.Fatal(err)
		}
		if got := runMain("run", "read-timeout:one-attempt", "-o", path); got.code != 0 {
			t.Fatalf("it exits with %d: %s", got.code, got.stderr)
		}
		got, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got.Mode() != want.Mode() {
			t.Errorf("%s has the mode %v, not %v", filepath.Base(path), got.Mode(), want.Mode())
		}
	}
}
