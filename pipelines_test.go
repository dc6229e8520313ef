package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"go.yaml.in/yaml/v3"

	command "retrylab/cmd"
	"retrylab/internal/lab"
)

// TestMain puts the command on the path of what the tests here start.
func TestMain(m *testing.M) {
	testscript.Main(apart{m}, map[string]func(){"retrylab": main})
}

// apart are tests that may themselves run in GitHub Actions: the runs within are none of its business.
type apart struct{ m *testing.M }

func (a apart) Run() int {
	os.Unsetenv("GITHUB_ACTIONS")
	os.Unsetenv("GITHUB_STEP_SUMMARY")
	os.Setenv("GORACE", "atexit_sleep_ms=0")
	return a.m.Run()
}

// An action is action.yml as GitHub reads it.
type action struct {
	Name, Description string
	Inputs            map[string]struct{ Description, Default string }
	Outputs           map[string]struct{ Description, Value string }
	Runs              struct {
		Using string
		Steps []step
	}
}

// A step is one of an action, or of a job of a workflow.
type step struct {
	ID, Name, If, Uses, Shell, Run string
	Env, With                      map[string]string
}

// A workflow is what the documentation has of GitHub's.
type workflow struct {
	Name, On    any
	Permissions map[string]string
	Jobs        map[string]struct {
		RunsOn   string `yaml:"runs-on"`
		Needs    string
		If       string
		Strategy struct {
			FailFast bool `yaml:"fail-fast"`
			Matrix   map[string][]string
		}
		Steps []step
	}
}

// A gitLabJob is what the documentation has of GitLab's jobs, or the default of all.
type gitLabJob struct {
	Image, Stage, When string
	BeforeScript       []string `yaml:"before_script"`
	Script             []string
	Needs              []string
	Parallel           int
	Artifacts          struct {
		When     string
		Paths    []string
		ExposeAs string `yaml:"expose_as"`
		Reports  struct{ JUnit string }
	}
}

// strictly decodes YAML that may have no key but those of v.
func strictly(t *testing.T, name string, data []byte, v any) {
	t.Helper()
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func readAction(t *testing.T) action {
	t.Helper()
	data, err := os.ReadFile("action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var a action
	strictly(t, "action.yml", data, &a)
	return a
}

var expression = regexp.MustCompile(`\$\{\{ *(.*?) *\}\}`)

// expand puts values in the place of expressions.
func expand(t *testing.T, text string, values map[string]string) string {
	t.Helper()
	return expression.ReplaceAllStringFunc(text, func(s string) string {
		name := expression.FindStringSubmatch(s)[1]
		value, ok := values[name]
		if !ok {
			t.Errorf("this test does not know the value of %s", s)
		}
		return value
	})
}

// TestAction reads action.yml: every input is explained and used, and no expression stands in a script,
// where what it comes to would be code.
func TestAction(t *testing.T) {
	t.Parallel()
	a := readAction(t)
	if a.Runs.Using != "composite" || a.Name == "" || a.Description == "" {
		t.Errorf("it is %+v", a)
	}
	used := map[string]bool{}
	ids := map[string]bool{}
	for _, s := range a.Runs.Steps {
		if strings.Contains(s.Run, "${{") {
			t.Errorf("step %q has an expression in its script", s.Name)
		}
		if (s.Run == "") == (s.Uses == "") || s.Run != "" && s.Shell != "bash" {
			t.Errorf("step %q is neither a script of bash nor an action", s.Name)
		}
		ids[s.ID] = true
		texts := append([]string{s.If}, slices.Concat(slices.Collect(maps.Values(s.Env)), slices.Collect(maps.Values(s.With)))...)
		for _, m := range regexp.MustCompile(`inputs\.([\w-]+)`).FindAllStringSubmatch(strings.Join(texts, " "), -1) {
			used[m[1]] = true
		}
	}
	for name, input := range a.Inputs {
		if input.Description == "" || !used[name] {
			t.Errorf("the input %s has the description %q and is used: %v", name, input.Description, used[name])
		}
	}
	if len(used) != len(a.Inputs) {
		t.Errorf("%v are used, of %v", used, a.Inputs)
	}
	for name, output := range a.Outputs {
		m := regexp.MustCompile(`^\$\{\{ steps\.(\w+)\.outputs\.([\w-]+) \}\}$`).FindStringSubmatch(output.Value)
		if output.Description == "" || m == nil || !ids[m[1]] || m[2] != name {
			t.Errorf("the output %s is %+v", name, output)
		}
	}
}

// A job is what a runner of GitHub's has while it does one: a checked out repository and its own files.
type job struct {
	t                   *testing.T
	bash                string
	dir                 string // the repository
	temp                string // RUNNER_TEMP and the files of commands
	path                string
	stdout, stderr      string // of the last script
	summary, annotated  string // of all so far
	version, buildFlags string // what the action found out, and built with
}

// newJob has a repository with some files. What builds the action is a stand-in: the command is built.
func newJob(t *testing.T, files map[string]string) *job {
	t.Helper()
	bash, err := exec.LookPath("bash")
	switch {
	case testing.Short():
		t.Skip("it runs the command some eighty times, and its parts are raced by their own tests")
	case runtime.GOOS == "windows":
		t.Skip("the paths of a Windows machine mean nothing to the scripts of this test")
	case err != nil && os.Getenv("CI") != "":
		t.Fatal(err)
	case err != nil:
		t.Skip("there is no bash on this machine")
	}
	j := &job{t: t, bash: bash, dir: t.TempDir(), temp: t.TempDir()}
	for name, text := range files {
		j.write(filepath.Join(j.dir, name), text, 0o644)
	}
	j.write(filepath.Join(j.temp, "bin", "go"), `#!/bin/sh
test "$1" = build || exit 0
printf '%s ' "$@" > "$RUNNER_TEMP/build"
while test "$1" != -o; do shift; done
ln -sf "$(command -v retrylab)" "$2"
`, 0o755)
	j.path = filepath.Join(j.temp, "bin") + string(filepath.ListSeparator) + os.Getenv("PATH")
	return j
}

func (j *job) write(path, text string, mode os.FileMode) {
	j.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		j.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		j.t.Fatal(err)
	}
}

// take returns what a script has written to a file of commands, and removes it.
func (j *job) take(name string) string {
	j.t.Helper()
	data, err := os.ReadFile(filepath.Join(j.temp, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		j.t.Fatal(err)
	}
	os.Remove(filepath.Join(j.temp, name))
	return string(data)
}

// script runs a script as GitHub does with shell: bash, and returns its exit code and outputs.
func (j *job) script(text string, env map[string]string) (code int, outputs map[string]string) {
	j.t.Helper()
	file := filepath.Join(j.temp, "script.sh")
	j.write(file, text, 0o644)
	root, err := os.Getwd()
	if err != nil {
		j.t.Fatal(err)
	}
	c := exec.CommandContext(j.t.Context(), j.bash, "--noprofile", "--norc", "-eo", "pipefail", file)
	c.Dir = j.dir
	c.Env = []string{
		"PATH=" + j.path, "HOME=" + j.temp, "TMPDIR=" + j.temp, "LC_ALL=C.UTF-8", "GORACE=" + os.Getenv("GORACE"),
		"GITHUB_ACTIONS=true", "GITHUB_ACTION_PATH=" + root, "GITHUB_WORKSPACE=" + j.dir, "RUNNER_TEMP=" + j.temp,
		"GITHUB_OUTPUT=" + filepath.Join(j.temp, "output"), "GITHUB_PATH=" + filepath.Join(j.temp, "path"),
		"GITHUB_STEP_SUMMARY=" + filepath.Join(j.temp, "summary"),
	}
	for name, value := range env {
		c.Env = append(c.Env, name+"="+value)
	}
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := c.Run(); err != nil && !errors.As(err, &exit) {
		j.t.Fatal(err)
	}
	j.stdout, j.stderr = stdout.String(), stderr.String()
	j.annotated += j.stderr
	j.summary += j.take("summary")
	for line := range strings.Lines(j.take("path")) {
		j.path = strings.TrimSuffix(line, "\n") + string(filepath.ListSeparator) + j.path
	}
	outputs = map[string]string{}
	for line := range strings.Lines(j.take("output")) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		outputs[name] = value
	}
	return c.ProcessState.ExitCode(), outputs
}

// action runs the action with some inputs, and returns the exit code of the first step that fails and the
// outputs.
func (j *job) action(inputs map[string]string) (code int, outputs map[string]string) {
	j.t.Helper()
	a := readAction(j.t)
	values := map[string]string{}
	for name, input := range a.Inputs {
		values["inputs."+name] = input.Default
	}
	for name, value := range inputs {
		if _, ok := a.Inputs[name]; !ok {
			j.t.Errorf("the action has no input %s", name)
		}
		values["inputs."+name] = value
	}
	for _, s := range a.Runs.Steps {
		if s.Run == "" || s.If == "${{ inputs.install-only != 'true' }}" && values["inputs.install-only"] == "true" {
			continue
		}
		env := map[string]string{}
		for name, value := range s.Env {
			env[name] = expand(j.t, value, values)
		}
		var got map[string]string
		code, got = j.script(s.Run, env)
		for name, value := range got {
			values["steps."+s.ID+".outputs."+name] = value
		}
		if code != 0 {
			break
		}
	}
	j.version, j.buildFlags = values["steps.go.outputs.version"], j.take("build")
	outputs = map[string]string{}
	for name, output := range a.Outputs {
		if value, ok := values[expression.FindStringSubmatch(output.Value)[1]]; ok {
			outputs[name] = value
		}
	}
	return code, outputs
}

// result reads the result that the action left.
func (j *job) result(name string) *lab.Document {
	j.t.Helper()
	data, err := os.ReadFile(filepath.Join(j.dir, name))
	if err != nil {
		j.t.Fatal(err)
	}
	d, err := lab.ReadDocument(name, data)
	if err != nil {
		j.t.Fatal(err)
	}
	return d
}

var someFiles = map[string]string{
	"retry/a.yaml":      "name: a\nexpect: {effects: 1}\n",
	"retry/b c.yaml":    "name: b\nexpect: {effects: 1}\n",
	"retry/d/fail.yaml": "name: fail\nexpect: {effects: 2}\n",
}

// TestActionRuns runs the steps of the action as GitHub does, with what a workflow may give it.
func TestActionRuns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		inputs    map[string]string
		code      int
		scenarios []string
		seed      int64
	}{
		{"a name", map[string]string{"scenarios": "read-timeout:one-attempt"}, 0, []string{"read-timeout"}, 1},
		{"a pattern, a name with a blank, and line ends of any kind", map[string]string{"scenarios": "\r\n  retry/*.yaml\r\nread-timeout:one-attempt  ", "args": "\n--seed=7\r\n"}, 0, []string{"a", "b", "read-timeout"}, 7},
		{"a file with a blank", map[string]string{"scenarios": "retry/b c.yaml\n", "args": "--assert=effects <= wanted", "store": "sqlite"}, 0, []string{"b"}, 1},
		{"what does not hold", map[string]string{"scenarios": "retry/d/fail.yaml", "result": "out of it.json"}, 1, []string{"fail"}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, someFiles)
			code, outputs := j.action(tt.inputs)
			file := tt.inputs["result"]
			if file == "" {
				file = "retrylab.json"
			}
			want := map[string]string{"exit-code": fmt.Sprint(tt.code), "result": file}
			if diff := cmp.Diff(want, outputs); diff != "" || code != tt.code {
				t.Fatalf("exit code %d, want %d; outputs, -want +got:\n%s\n%s", code, tt.code, diff, j.stderr)
			}
			d := j.result(file)
			var names []string
			for _, s := range d.Scenarios {
				names = append(names, s.Name)
			}
			if !slices.Equal(names, tt.scenarios) || d.Run.Seed != tt.seed || d.ExitCode != tt.code {
				t.Errorf("it ran %v with the seed %d to %d", names, d.Run.Seed, d.ExitCode)
			}
			if tt.inputs["store"] != "" && d.Run.Store.ChosenBy != "RETRYLAB_STORE" {
				t.Errorf("the store is chosen by %s", d.Run.Store.ChosenBy)
			}
			if !strings.Contains(j.summary, "### `"+tt.scenarios[0]+"`") || !strings.Contains(j.stdout, "CONFIGURATION") {
				t.Errorf("the summary is %q, the log %q", j.summary, j.stdout)
			}
			if failed := strings.Contains(j.annotated, "::error file=retry/d/fail.yaml,line=2,"); failed != (tt.code == 1) {
				t.Errorf("the annotations are %q", j.annotated)
			}
			if !strings.HasPrefix(j.version, "1.") || !strings.HasPrefix(j.buildFlags, "build -C ") || !strings.HasSuffix(j.buildFlags, "retrylab . ") {
				t.Errorf("it is built by Go %q with %q", j.version, j.buildFlags)
			}
		})
	}
}

// TestActionTakesNoCode gives the action inputs that a shell would run, or that would become further outputs.
func TestActionTakesNoCode(t *testing.T) {
	t.Parallel()
	evil := []string{
		"$(touch pwned)", "`touch pwned`", `"; touch pwned; "`, "'; touch pwned; '", "x", "touch pwned", "retry/a.yaml; touch pwned", "EOF", "touch pwned", "$IFS",
	}
	for _, tt := range []struct {
		input, value string
		code         int
	}{
		{"scenarios", strings.Join(evil, "\n"), 2},
		{"args", strings.Join(evil, "\n"), 2},
		{"store", strings.Join(evil, " "), 2},
		{"result", strings.Join(evil, " ") + ".json", 0}, // a name with directories in it
		{"result", "$(touch pwned);`touch pwned`", 0},
		{"result", "x\nexit-code=7", 2},
		{"result", "", 2},
		{"scenarios", "", 2},
		{"scenarios", "--help", 2},
	} {
		t.Run(tt.input, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, nil)
			inputs := map[string]string{"scenarios": "read-timeout:one-attempt"}
			inputs[tt.input] = tt.value
			code, outputs := j.action(inputs)
			if names := j.files(); slices.Contains(names, "pwned") || code != tt.code || len(outputs) > 0 && outputs["exit-code"] != fmt.Sprint(code) {
				t.Errorf("%q: exit code %d, want %d; outputs %v, files %v: %s", tt.value, code, tt.code, outputs, names, j.stderr)
			}
		})
	}
}

// files lists the files at the top of the repository.
func (j *job) files() (names []string) {
	entries, err := os.ReadDir(j.dir)
	if err != nil {
		j.t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestActionInstallOnly builds and runs nothing.
func TestActionInstallOnly(t *testing.T) {
	t.Parallel()
	j := newJob(t, nil)
	code, outputs := j.action(map[string]string{"install-only": "true"})
	if code != 0 || len(outputs) != 0 || j.buildFlags == "" || len(j.files()) != 0 {
		t.Errorf("exit code %d, outputs %v, built %q, files %v", code, outputs, j.buildFlags, j.files())
	}
	if code, _ := j.script("retrylab version", nil); code != 0 || !strings.HasPrefix(j.stdout, "retrylab ") {
		t.Errorf("it is not on the path: %d, %s%s", code, j.stdout, j.stderr)
	}
}

const pipelines = "docs/ci.md"

// examples are the files that the page on pipelines shows, by the names in their first lines.
func examples(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(pipelines)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, m := range regexp.MustCompile("(?ms)^```(\\w*)\n(?:#|//) (\\S+)\n(.*?)^```$").FindAllStringSubmatch(string(data), -1) {
		out[m[2]] = m[3]
	}
	if got, want := len(out), strings.Count(string(data), "\n```\n"); got != want {
		t.Errorf("%d of %d examples say which file they are", got, want)
	}
	return out
}

// scenarioFiles are those of the examples that are no pipelines.
func scenarioFiles(t *testing.T) map[string]string {
	files := examples(t)
	maps.DeleteFunc(files, func(name, _ string) bool { return !strings.HasPrefix(name, "retry/") })
	if len(files) == 0 {
		t.Error("there is no scenario file among the examples")
	}
	return files
}

// whole compares what the parts of a run were put together to with the run in one.
func (j *job) whole(run string) {
	j.t.Helper()
	if code, _ := j.script("retrylab report part-*.json --merge --github off --json -o merged && retrylab run "+run+" --github off --json -o whole && cmp merged whole", nil); code != 0 {
		j.t.Errorf("the parts are not the whole: %s%s", j.stdout, j.stderr)
	}
	for _, name := range []string{"retrylab.xml", "retrylab.html"} {
		if !slices.Contains(j.files(), name) {
			j.t.Errorf("there is no %s, but %v", name, j.files())
		}
	}
}

// TestPipelinesGitHub runs the jobs of the workflows in docs/ci.md, with the action as it is here.
func TestPipelinesGitHub(t *testing.T) {
	t.Parallel()
	n := 0
	for file, text := range examples(t) {
		if !strings.HasPrefix(file, ".github/workflows/") {
			continue
		}
		n++
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			var w workflow
			strictly(t, file, []byte(text), &w)
			j := newJob(t, scenarioFiles(t))
			done := map[string]bool{"": true}
			for len(done) <= len(w.Jobs) {
				before := len(done)
				for name, of := range w.Jobs {
					if done[name] || !done[of.Needs] {
						continue
					}
					done[name] = true
					parts := of.Strategy.Matrix["part"]
					if parts == nil {
						parts = []string{""}
					}
					for _, part := range parts {
						values := map[string]string{"matrix.part": part}
						for _, s := range of.Steps {
							j.step(s, values)
						}
					}
				}
				if len(done) == before {
					t.Fatal("the jobs wait for each other")
				}
			}
			if strings.Count(j.summary, "### `checkout`") != 1 || j.annotated != "" {
				t.Errorf("the summary is %q, standard error %q", j.summary, j.annotated)
			}
			if strings.Contains(text, "--shard") {
				j.whole("retry/*.yaml read-timeout")
			}
		})
	}
	if n < 2 {
		t.Errorf("%s has %d workflows", pipelines, n)
	}
}

// step does a step of a workflow. The steps of others put files where they are: here they stay.
func (j *job) step(s step, values map[string]string) {
	j.t.Helper()
	with := map[string]string{}
	for name, value := range s.With {
		with[name] = expand(j.t, value, values)
	}
	name, version, _ := strings.Cut(s.Uses, "@")
	switch name {
	case "OWNER/retrylab":
		if version != "v"+release(j.t) {
			j.t.Errorf("the example uses version %s, not %s", version, release(j.t))
		}
		code, outputs := j.action(with)
		if code != 0 {
			j.t.Errorf("the action with %v exits with %d: %s%s", with, code, j.stdout, j.stderr)
		}
		for name, value := range outputs {
			values["steps."+s.ID+".outputs."+name] = value
		}
	case "actions/upload-artifact":
		for pattern := range strings.Lines(with["path"]) {
			if found, _ := filepath.Glob(filepath.Join(j.dir, strings.TrimSpace(pattern))); len(found) == 0 {
				j.t.Errorf("there is no %s to keep, but %v", pattern, j.files())
			}
		}
	case "actions/checkout", "actions/download-artifact":
	case "":
		if strings.Contains(s.Run, "${{") || !strings.HasPrefix(s.Run, "retrylab ") {
			j.t.Errorf("a step runs %q", s.Run)
		}
		if code, _ := j.script(s.Run, s.Env); code != 0 {
			j.t.Errorf("%s exits with %d: %s%s", s.Run, code, j.stdout, j.stderr)
		}
	default:
		j.t.Errorf("this test does not know what %s does", s.Uses)
	}
}

// release is the version of this tree.
func release(t *testing.T) string {
	t.Helper()
	var stdout bytes.Buffer
	command.Main([]string{"version", "--format", "json"}, strings.NewReader(""), &stdout, io.Discard)
	var v struct{ Version string }
	if err := json.Unmarshal(stdout.Bytes(), &v); err != nil {
		t.Fatal(err)
	}
	return v.Version
}

// TestPipelinesGitLab runs the scripts of .gitlab-ci.yml in docs/ci.md.
func TestPipelinesGitLab(t *testing.T) {
	t.Parallel()
	var jobs map[string]gitLabJob
	strictly(t, pipelines, []byte(examples(t)[".gitlab-ci.yml"]), &jobs)
	if build := strings.Join(jobs["default"].BeforeScript, "\n"); !strings.Contains(build, "--branch v"+release(t)+" ") || !strings.Contains(build, "go build -C ") {
		t.Errorf("it is built by %q", build)
	}
	j := newJob(t, scenarioFiles(t))
	for _, name := range []string{"retry", "retry together"} {
		of := jobs[name]
		if len(of.Script) == 0 {
			t.Fatalf("there is no job %q, or it does nothing: %+v", name, jobs)
		}
		for part := range max(1, of.Parallel) {
			for _, line := range of.Script {
				j.run(line, map[string]string{"CI_NODE_INDEX": fmt.Sprint(part + 1), "CI_NODE_TOTAL": fmt.Sprint(of.Parallel)})
			}
		}
		for _, pattern := range append(of.Artifacts.Paths, of.Artifacts.Reports.JUnit) {
			if found, _ := filepath.Glob(filepath.Join(j.dir, pattern)); pattern != "" && len(found) == 0 {
				t.Errorf("there is no %s to keep, but %v", pattern, j.files())
			}
		}
	}
	j.whole("retry/*.yaml read-timeout")
}

// run runs a line of a script outside GitHub Actions; it must be one of ours.
func (j *job) run(line string, env map[string]string) {
	j.t.Helper()
	if !strings.HasPrefix(line, "retrylab ") {
		j.t.Errorf("a job runs %q", line)
	}
	env["GITHUB_ACTIONS"], env["GITHUB_STEP_SUMMARY"] = "", ""
	if code, _ := j.script(line, env); code != 0 || j.stderr != "" {
		j.t.Errorf("%s exits with %d: %s%s", line, code, j.stdout, j.stderr)
	}
}

// TestPipelinesJenkins runs the commands of the Jenkinsfile in docs/ci.md; nothing here reads Groovy.
func TestPipelinesJenkins(t *testing.T) {
	t.Parallel()
	text := examples(t)["Jenkinsfile"]
	if strings.Count(text, "{") != strings.Count(text, "}") || strings.Count(text, "'")%2 != 0 {
		t.Error("a bracket or a quote is missing")
	}
	values := regexp.MustCompile(`values (.*)`).FindStringSubmatch(text)
	list := regexp.MustCompile(`for \(part in \[(.*)\]\)`).FindStringSubmatch(text)
	commands := regexp.MustCompile(`'(retrylab [^']*)'`).FindAllStringSubmatch(text, -1)
	if values == nil || list == nil || values[1] != list[1] || len(commands) != 2 || len(regexp.MustCompile(`\bsh `).FindAllString(text, -1)) != len(commands) {
		t.Fatalf("the parts are %q and %q, the commands %q", values, list, commands)
	}
	j := newJob(t, scenarioFiles(t))
	for _, c := range commands {
		parts := []string{""}
		if strings.Contains(c[1], "$PART") {
			parts = strings.Split(strings.ReplaceAll(values[1], "'", ""), ", ")
		}
		for _, part := range parts {
			j.run(c[1], map[string]string{"PART": part})
		}
	}
	j.whole("retry/*.yaml read-timeout")
}
