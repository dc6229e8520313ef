package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"

	command "retrylab/cmd"
)

// Nothing here starts a container, which no test can count on. What can be said without one is
// said: the files are read as those who use them read them, and hold to what docs/containers.md
// promises.

// compose reads docker-compose.yml as docker compose does, which refuses an unknown key, with an
// environment of our own.
func compose(t *testing.T, env map[string]string) *types.Project {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  dir,
		ConfigFiles: types.ToConfigFiles([]string{"docker-compose.yml"}),
		Environment: env,
	})
	if err != nil {
		t.Fatal(err)
	}
	return project
}

// replicas are the services that are ours.
var replicas = []string{"order-1", "order-2"}

func TestCompose(t *testing.T) {
	t.Parallel()
	project := compose(t, nil)
	services := project.ServiceNames()
	slices.Sort(services)
	if diff := cmp.Diff([]string{"nginx", "order-1", "order-2", "postgres", "redis"}, services); diff != "" {
		t.Errorf("the services are others (-want +got):\n%s", diff)
	}
	published := map[string]string{}
	for _, s := range project.Services {
		name, tag, _ := strings.Cut(s.Image, ":")
		if tag == "" || tag == "latest" {
			t.Errorf("%s: the image %s has no tag that stays what it is", s.Name, s.Image)
		}
		if want := s.Build != nil; (name == "retrylab") != want {
			t.Errorf("%s: the image %s is built: %v", s.Name, s.Image, want)
		}
		if s.Privileged || s.NetworkMode != "" || s.Pid != "" || s.Ipc != "" || len(s.CapAdd) > 0 || len(s.Devices) > 0 {
			t.Errorf("%s asks for more than a container has", s.Name)
		}
		if s.Restart != "" && s.Restart != "no" {
			t.Errorf("%s is restarted (%s): what it died of would be gone", s.Name, s.Restart)
		}
		for _, p := range s.Ports {
			if ip := net.ParseIP(p.HostIP); ip == nil || !ip.IsLoopback() {
				t.Errorf("%s: port %d is published on %q, not on this machine alone", s.Name, p.Target, p.HostIP)
			}
			published[p.Published] = fmt.Sprintf("%s:%d", s.Name, p.Target)
		}
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeBind && !v.ReadOnly {
				t.Errorf("%s may write to %s", s.Name, v.Source)
			}
			if _, err := os.Stat(v.Source); v.Type == types.VolumeTypeBind && err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
		}
		for on, d := range s.DependsOn {
			if checked := project.Services[on].HealthCheck != nil; checked != (d.Condition == types.ServiceConditionHealthy) {
				t.Errorf("%s waits until %s is %s, and that has a health check: %v", s.Name, on, d.Condition, checked)
			}
		}
	}
	if diff := cmp.Diff(map[string]string{"8080": "nginx:80", "8081": "order-1:8080", "8082": "order-2:8080"}, published); diff != "" {
		t.Errorf("other ports are published (-want +got):\n%s", diff)
	}
	for _, name := range replicas {
		s := project.Services[name]
		if uid, _, _ := strings.Cut(s.User, ":"); !numericUser(uid) {
			t.Errorf("%s runs as the user %q, not as one that is a number and not root", name, s.User)
		}
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s may do more than it needs", name)
		}
		if !project.Services["nginx"].DependsOn[name].Restart {
			t.Errorf("nginx goes on with the address of a %s that is gone", name)
		}
		for _, on := range []string{"postgres", "redis"} {
			if s.DependsOn[on].Condition != types.ServiceConditionHealthy {
				t.Errorf("%s does not wait for %s", name, on)
			}
		}
		if store := s.Environment["RETRYLAB_STORE"]; store == nil || !strings.Contains(*store, ":throw-away@postgres:5432/") {
			t.Errorf("%s has no database, or another password than it", name)
		}
	}
	if got := project.Services["postgres"].Environment["POSTGRES_PASSWORD"]; got == nil || *got != "throw-away" {
		t.Error("the database has another password than its clients")
	}
}

// numericUser reports whether a user is a number, which needs no /etc/passwd, and not root's.
func numericUser(uid string) bool {
	n, err := strconv.Atoi(uid)
	return err == nil && n > 0
}

// TestComposeCommands reads the replicas' command lines, with what the environment may change in
// them, and hands them to the command itself.
func TestComposeCommands(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		env               map[string]string
		processing, guard string
	}{
		{nil, "12s", "none"},
		{map[string]string{"RETRYLAB_PROCESSING": "3s", "RETRYLAB_GUARD": "unique-index"}, "3s", "unique-index"},
		{map[string]string{"RETRYLAB_PROCESSING": "", "RETRYLAB_GUARD": ""}, "12s", "none"},
	} {
		project := compose(t, test.env)
		for _, name := range replicas {
			args := []string(project.Services[name].Command)
			want := []string{
				"serve", "--listen", "0.0.0.0:8080", "--name", name,
				"--set", "server.processing=" + test.processing, "--set", "server.guard=" + test.guard,
			}
			if diff := cmp.Diff(want, args); diff != "" {
				t.Errorf("%s with %v has another command (-want +got):\n%s", name, test.env, diff)
			}
			// With --help a command line is read and nothing is started; an unknown flag is an error
			// all the same.
			var stderr strings.Builder
			if code := command.Main(append(args, "--help"), strings.NewReader(""), io.Discard, &stderr); code != 0 {
				t.Errorf("retrylab does not take %q: exit code %d, %s", args, code, &stderr)
			}
		}
	}
}

// instruction is one line of a Dockerfile, its continuations joined.
type instruction struct{ name, args string }

func dockerfile(t *testing.T, file string) []instruction {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []instruction
	for line := range strings.SplitSeq(strings.ReplaceAll(string(data), "\\\n", " "), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, args, ok := strings.Cut(line, " ")
		if !ok {
			t.Fatalf("%s: %q has no arguments", file, line)
		}
		out = append(out, instruction{strings.ToUpper(name), strings.TrimSpace(args)})
	}
	return out
}

func TestDockerfile(t *testing.T) {
	t.Parallel()
	instructions := dockerfile(t, "Dockerfile")
	var stages []string
	last := map[string]string{} // the instructions of the last stage
	for _, i := range instructions {
		switch i.name {
		case "FROM":
			stages = append(stages, i.args)
			clear(last)
		case "COPY":
			from := ""
			var paths []string
			for _, word := range strings.Fields(i.args) {
				if stage, ok := strings.CutPrefix(word, "--from="); ok {
					from = stage
					continue
				}
				paths = append(paths, word)
			}
			if from != "" {
				if !slices.ContainsFunc(stages, func(s string) bool { return strings.HasSuffix(s, " AS "+from) }) {
					t.Errorf("COPY from %s, which is no stage", from)
				}
				break
			}
			for _, source := range paths[:len(paths)-1] {
				if _, err := os.Stat(source); err != nil {
					t.Errorf("COPY of what is not there: %v", err)
				}
			}
		case "ADD":
			t.Error("ADD unpacks and downloads; COPY does neither")
		}
		last[i.name] = i.args
	}
	if len(stages) != 2 || stages[1] != "scratch" {
		t.Errorf("the stages are %q; the last holds the binary and nothing else", stages)
	}
	if uid, _, _ := strings.Cut(last["USER"], ":"); !numericUser(uid) {
		t.Errorf("USER is %q, not a number that is not root's", last["USER"])
	}
	var entrypoint []string
	if err := json.Unmarshal([]byte(last["ENTRYPOINT"]), &entrypoint); err != nil || !slices.Equal(entrypoint, []string{"/retrylab"}) {
		t.Errorf("ENTRYPOINT is %s, which without a shell must be a list", last["ENTRYPOINT"])
	}
	if run := last["RUN"]; run != "" {
		t.Errorf("the last stage runs %q, and has nothing to run it with", run)
	}
	if !slices.ContainsFunc(instructions, func(i instruction) bool {
		return i.name == "RUN" && strings.Contains(i.args, "CGO_ENABLED=0 go build -trimpath")
	}) {
		t.Error("the binary is not built static, or with paths in it")
	}

	// The toolchain is that of go.mod, so that nothing else is downloaded for the build.
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^go (1\.\d+)`).FindSubmatch(mod)
	if m == nil || !strings.HasPrefix(stages[0], fmt.Sprintf("golang:%s-alpine ", m[1])) {
		t.Errorf("the build stage is %q, and go.mod asks for Go %s", stages[0], m[1])
	}
	if m := regexp.MustCompile(`(?m)^toolchain go(1\.\d+)`).FindSubmatch(mod); m != nil && !strings.HasPrefix(stages[0], fmt.Sprintf("golang:%s-", m[1])) {
		t.Errorf("the build stage is %q, and go.mod asks for the toolchain %s", stages[0], m[1])
	}
}

// TestNginxConfiguration asks nginx itself about its configuration, where there is one.
func TestNginxConfiguration(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("deploy/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	// The names exist, and the ports are free, in the composed network alone.
	for _, r := range []struct{ old, new string }{
		{"server order-1:8080", "server 127.0.0.1:8081"},
		{"server order-2:8080", "server 127.0.0.1:8082"},
		{"listen 80;", "listen " + free.Addr().String() + ";"},
		{"pid /tmp/nginx.pid;", "pid nginx.pid;"},
		{"/dev/stderr", "stderr"},
		{"access_log /dev/stdout", "access_log access.log"},
	} {
		if strings.Count(text, r.old) != 1 {
			t.Errorf("deploy/nginx.conf has %d times %q", strings.Count(text, r.old), r.old)
		}
		text = strings.Replace(text, r.old, r.new, 1)
	}
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("there is no nginx on this machine")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), nginx, "-t", "-p", dir, "-c", file).CombinedOutput()
	if err != nil {
		t.Errorf("nginx -t: %v\n%s", err, out)
	}
}
