//go:build !nodocker

package containers

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The library looks for an engine once per process and remembers what it found, an error too. So
// each test runs in a process of its own, which is this test binary again. What it writes to stdout
// and stderr is seen whole there: the library writes to them past every writer that is handed in.

// outcomeFile names the file that such a process writes its outcome to.
const outcomeFile = "RETRYLAB_TEST_CONTAINERS_OUTCOME"

// outcome is what one call of Postgres came to.
type outcome struct {
	Error    string        // of Postgres
	NoDocker bool          // it is a NoDockerError
	Ended    bool          // it is that of the context
	Took     time.Duration // until it returned
	DSN      string
	Image    string
	Stop     string // error of Stop
	Again    string // error of the second Stop
	Leaks    string // goroutines that are left
}

func TestMain(m *testing.M) {
	if file := os.Getenv(outcomeFile); file != "" {
		if err := child(file); err != nil {
			panic(err)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// child starts a database and stops it, as the environment says, and writes what came of it.
func child(file string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if os.Getenv(outcomeFile+"_CANCEL") != "" {
		// As soon as the engine has been asked something that it does not answer.
		ctx, cancel = context.WithCancel(ctx)
		go func() {
			_, _ = http.Get(os.Getenv(outcomeFile + "_CANCEL"))
			http.DefaultClient.CloseIdleConnections()
			cancel()
		}()
	}
	began := time.Now()
	db, err := Postgres(ctx, "")
	out := outcome{Took: time.Since(began)}
	if err != nil {
		var typed *NoDockerError
		out.Error, out.NoDocker, out.Ended = err.Error(), errors.As(err, &typed), errors.Is(err, context.Canceled)
	}
	if db != nil {
		out.DSN, out.Image = db.DSN(), db.Image()
		if err := db.Stop(ctx); err != nil {
			out.Stop = err.Error()
		}
		if err := db.Stop(ctx); err != nil {
			out.Again = err.Error()
		}
	}
	if os.Getenv(outcomeFile+"_CANCEL") == "" {
		if err := goleak.Find(); err != nil {
			out.Leaks = err.Error()
		}
	}
	data, err := json.Marshal(out)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}

// start calls Postgres in a process of its own, whose environment knows of no engine but those in
// env, and demands that nothing is written past it and no goroutine is left.
func start(t *testing.T, env ...string) outcome {
	t.Helper()
	home := t.TempDir()
	file := filepath.Join(home, "outcome.json")
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !strings.HasPrefix(name, "DOCKER_") && !strings.HasPrefix(name, "TESTCONTAINERS_") && !strings.HasPrefix(name, "RYUK_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "HOME="+home, "USERPROFILE="+home, "XDG_RUNTIME_DIR="+home, outcomeFile+"="+file)
	cmd.Env = append(cmd.Env, env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("the process failed: %v\n%s%s", err, &stdout, &stderr)
	}
	if stdout.Len() > 0 || stderr.Len() > 0 {
		t.Errorf("something is written to stdout:\n%sto stderr:\n%s", &stdout, &stderr)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out outcome
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	if out.Leaks != "" {
		t.Errorf("goroutines are left: %s", out.Leaks)
	}
	if strings.ContainsAny(out.Error, "\r\n") || len(out.Error) > 1000 {
		t.Errorf("the error is not one line of bounded length: %q", out.Error)
	}
	return out
}

// closedPort returns an address of this machine at which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// needNoSocket skips a test where the library would find an engine by the sockets that it looks
// for whatever the environment says.
func needNoSocket(t *testing.T) {
	t.Helper()
	for _, socket := range []string{"/var/run/docker.sock", fmt.Sprintf("/run/user/%d/docker.sock", os.Getuid())} {
		if _, err := os.Stat(socket); err == nil {
			t.Skipf("there is a Docker engine on this machine: %s", socket)
		}
	}
}

func TestNoEngine(t *testing.T) {
	t.Parallel()
	closed := closedPort(t)
	for _, test := range []struct {
		name   string
		env    []string
		reason string
	}{
		{"nothing at all", nil, "DOCKER_HOST is not set, and there is no socket in the usual places"},
		{"nobody listens", []string{"DOCKER_HOST=tcp://" + closed}, "tcp://" + closed},
		{"no such socket", []string{"DOCKER_HOST=unix:///no/such/docker.sock"}, "/no/such/docker.sock"},
		{"no such scheme", []string{"DOCKER_HOST=nonsense"}, "nonsense"},
		{"no such provider", []string{"TESTCONTAINERS_PROVIDER=nonsense"}, "nonsense"},
		{"a setting that the library panics over", []string{"TESTCONTAINERS_SESSION_ID=no good"}, "TESTCONTAINERS_SESSION_ID"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			needNoSocket(t)
			out := start(t, test.env...)
			if !out.NoDocker {
				t.Fatalf("got %q, want a NoDockerError", out.Error)
			}
			if !strings.HasPrefix(out.Error, "no Docker engine can be reached: ") || !strings.Contains(out.Error, test.reason) {
				t.Errorf("the error does not say why: %q", out.Error)
			}
			if out.Took > 20*time.Second { // it takes a millisecond
				t.Errorf("it took %v to see that there is no engine", out.Took)
			}
		})
	}
}

// TestEngine starts a database at an imitated engine, which answers as the interface of a Docker
// engine is described. That a real one does so too is not shown by it; what this package asks for
// is.
func TestEngine(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	out := start(t, "DOCKER_HOST="+e.host())
	if out.Error != "" || out.Stop != "" || out.Again != "" {
		t.Fatalf("error %q, of Stop %q, of the second Stop %q; the engine was asked for\n%s", out.Error, out.Stop, out.Again, e.log())
	}
	if got, want := out.Image, DefaultImage; got != want {
		t.Errorf("the image is %q, not %q", got, want)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	db := e.container(DefaultImage)
	reaper := e.container("testcontainers/ryuk")
	if db == nil || reaper == nil {
		t.Fatalf("a database and its reaper were wanted, the containers are %v", slices.Collect(maps.Keys(e.containers)))
	}
	if got, want := strings.Join(db.Cmd, " "), "postgres -c fsync=off -c synchronous_commit=on"; got != want {
		t.Errorf("the command is %q, not %q", got, want)
	}
	bindings := db.HostConfig.PortBindings["5432/tcp"]
	if len(bindings) != 1 || bindings[0].HostIP != "127.0.0.1" || bindings[0].HostPort != "0" {
		t.Errorf("the port is published as %+v, not on 127.0.0.1 alone", bindings)
	}
	if len(db.HostConfig.PortBindings) != 1 || db.HostConfig.Privileged || len(db.HostConfig.Binds) > 0 {
		t.Errorf("the container can do more than it should: %+v", db.HostConfig)
	}
	env := map[string]string{}
	for _, v := range db.Env {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	dsn, err := url.Parse(out.DSN)
	if err != nil {
		t.Fatal("the DSN is no URL")
	}
	password, _ := dsn.User.Password()
	if len(password) < 20 || password != env["POSTGRES_PASSWORD"] {
		t.Errorf("the password has %d characters, and is the container's: %v", len(password), password == env["POSTGRES_PASSWORD"])
	}
	dsn.User = url.User(dsn.User.Username())
	if got, want := dsn.String(), "postgres://retrylab@"+e.postgres.Addr().String()+"/retrylab?sslmode=disable"; got != want {
		t.Errorf("the DSN is %s, not %s", got, want)
	}
	if env["POSTGRES_USER"] != "retrylab" || env["POSTGRES_DB"] != "retrylab" {
		t.Errorf("user and database are %q and %q", env["POSTGRES_USER"], env["POSTGRES_DB"])
	}
	if db.logsRead < 3 {
		t.Errorf("it was ready after %d looks at the log, though the line was there twice only at the third", db.logsRead)
	}
	if !db.removed || !db.volumesRemoved {
		t.Errorf("Stop leaves the container (%v) or its volumes (%v)", !db.removed, !db.volumesRemoved)
	}
	if len(e.filters) == 0 || !strings.Contains(e.filters[0], "label=") || db.Labels["org.testcontainers.sessionId"] == "" ||
		!strings.Contains(e.filters[0], "org.testcontainers.sessionId="+db.Labels["org.testcontainers.sessionId"]) {
		t.Errorf("the reaper was not told of the container: %q, which has %v", e.filters, db.Labels)
	}
}

// TestPasswordsDiffer starts two databases: none has a password of the other, nor one that is in
// the source.
func TestPasswordsDiffer(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	first, second := start(t, "DOCKER_HOST="+e.host()), start(t, "DOCKER_HOST="+e.host())
	if first.DSN == "" || first.DSN == second.DSN {
		t.Errorf("two databases have one DSN, or the first did not start: %s%s", first.Error, second.Error)
	}
}

// TestStartFails shows what is left of a container that could not be started, and that the error
// is one line without the password.
func TestStartFails(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		spoil   func(*engine)
		reason  string
		created bool
	}{
		{"the image cannot be fetched", func(e *engine) { e.absent, e.pull = true, http.StatusInternalServerError }, "no such thing; or none today", false},
		{"there is no such image", func(e *engine) { e.absent, e.pull = true, http.StatusNotFound }, "no such thing", false},
		{"it does not start", func(e *engine) { e.start = http.StatusInternalServerError }, "no such thing", true},
		{"it ends at once", func(e *engine) { e.exits = true }, "exited", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := newEngine(t)
			e.mu.Lock()
			test.spoil(e)
			e.mu.Unlock()
			out := start(t, "DOCKER_HOST="+e.host())
			if out.NoDocker || !strings.HasPrefix(out.Error, "start PostgreSQL in a container of "+DefaultImage+": ") || !strings.Contains(out.Error, test.reason) {
				t.Errorf("got the error %q", out.Error)
			}
			e.mu.Lock()
			defer e.mu.Unlock()
			db := e.container(DefaultImage)
			if (db != nil) != test.created {
				t.Fatalf("a container was created: %v", db != nil)
			}
			if db == nil {
				return
			}
			if !db.removed {
				t.Error("the container is left")
			}
			for _, v := range db.Env {
				if _, password, ok := strings.Cut(v, "POSTGRES_PASSWORD="); ok && strings.Contains(out.Error, password) {
					t.Errorf("the error shows the password: %q", out.Error)
				}
			}
		})
	}
}

// TestSilentEngine shows that the end of a context is enough where an engine takes a question and
// never answers.
func TestSilentEngine(t *testing.T) {
	t.Parallel()
	asked, over := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/asked" {
			<-asked
			return
		}
		once.Do(func() { close(asked) })
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(over); s.Close() })
	out := start(t, "DOCKER_HOST=tcp://"+s.Listener.Addr().String(), outcomeFile+"_CANCEL="+s.URL+"/asked")
	if !out.Ended || out.NoDocker {
		t.Errorf("got %q, want the error of the context", out.Error)
	}
}

// engine is an imitation of a Docker engine, as far as one database and its reaper need it.
type engine struct {
	t                *testing.T
	server           *httptest.Server
	postgres, reaper net.Listener

	mu sync.Mutex

	absent bool // no image is there
	pull   int  // status for fetching one; 0 for success
	start  int  // status for starting a database; 0 for success
	exits  bool // a database ends at once

	requests   []string
	containers map[string]*fake
	filters    []string // what the reaper was told
}

// fake is a container of an engine.
type fake struct {
	Image      string
	Cmd, Env   []string
	Labels     map[string]string
	HostConfig struct {
		PortBindings map[string][]struct{ HostIP, HostPort string }
		Privileged   bool
		Binds        []string
	}

	running, removed, volumesRemoved bool
	logsRead                         int
}

func (f *fake) reaper() bool { return strings.HasPrefix(f.Image, "testcontainers/ryuk") }

func newEngine(t *testing.T) *engine {
	e := &engine{t: t, containers: map[string]*fake{}}
	listen := func(serve func(net.Conn)) net.Listener {
		var wg sync.WaitGroup
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				wg.Go(func() { serve(c); c.Close() })
			}
		})
		t.Cleanup(func() { l.Close(); wg.Wait() })
		return l
	}
	e.postgres = listen(func(net.Conn) {})
	e.reaper = listen(func(c net.Conn) {
		r := bufio.NewReader(c)
		line, err := r.ReadString('\n')
		if err != nil {
			return // it only looked whether somebody is there
		}
		e.mu.Lock()
		e.filters = append(e.filters, strings.TrimSpace(line))
		e.mu.Unlock()
		_, _ = io.WriteString(c, "ACK\n")
		_, _ = r.ReadByte() // until the process lets go
	})
	e.server = httptest.NewServer(e)
	t.Cleanup(e.server.Close)
	return e
}

func (e *engine) host() string { return "tcp://" + e.server.Listener.Addr().String() }

func (e *engine) log() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.requests, "\n")
}

// container returns the container whose image begins so.
func (e *engine) container(image string) *fake {
	for _, f := range e.containers {
		if strings.HasPrefix(f.Image, image) {
			return f
		}
	}
	return nil
}

var version = regexp.MustCompile(`^/v1\.\d+`)

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	path := version.ReplaceAllString(r.URL.Path, "")
	e.requests = append(e.requests, r.Method+" "+path)
	w.Header().Set("Api-Version", "1.47")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case path == "/_ping":
		fmt.Fprint(w, "OK")
	case path == "/info":
		answer(w, http.StatusOK, map[string]any{"ServerVersion": "27.0", "OperatingSystem": "an imitation", "MemTotal": 1 << 30})
	case path == "/networks":
		answer(w, http.StatusOK, []any{map[string]any{"Name": "bridge", "Id": "b1", "Driver": "bridge"}})
	case parts[0] == "networks":
		answer(w, http.StatusOK, map[string]any{"Name": "bridge", "Id": "b1", "Driver": "bridge"})
	case path == "/images/create":
		if e.pull != 0 {
			refuse(w, e.pull)
			return
		}
		answer(w, http.StatusOK, map[string]any{"status": "done"})
	case parts[0] == "images":
		if e.absent {
			refuse(w, http.StatusNotFound)
			return
		}
		answer(w, http.StatusOK, map[string]any{"Id": "sha256:1", "Os": "linux", "Architecture": "amd64", "Config": map[string]any{}})
	case path == "/containers/json":
		answer(w, http.StatusOK, []any{})
	case path == "/containers/create":
		f := &fake{}
		if err := json.NewDecoder(r.Body).Decode(f); err != nil {
			e.t.Errorf("the engine cannot read what is to be created: %v", err)
		}
		id := fmt.Sprintf("%064d", len(e.containers)+1)
		e.containers[id] = f
		answer(w, http.StatusCreated, map[string]any{"Id": id, "Warnings": []string{}})
	case parts[0] == "exec" && len(parts) == 3 && parts[2] == "start":
		hijack(w, r)
	case parts[0] == "exec":
		answer(w, http.StatusOK, map[string]any{"ID": "x1", "Running": false, "ExitCode": 0})
	case parts[0] == "containers" && len(parts) >= 2 && e.containers[parts[1]] != nil:
		e.serveContainer(w, r, parts[1], e.containers[parts[1]], strings.Join(parts[2:], "/"))
	default:
		refuse(w, http.StatusNotFound)
	}
}

func (e *engine) serveContainer(w http.ResponseWriter, r *http.Request, id string, f *fake, what string) {
	if f.removed {
		refuse(w, http.StatusNotFound)
		return
	}
	switch {
	case r.Method == http.MethodDelete:
		f.removed, f.volumesRemoved = true, r.URL.Query().Get("v") == "1"
		w.WriteHeader(http.StatusNoContent)
	case what == "start":
		if e.start != 0 && !f.reaper() {
			refuse(w, e.start)
			return
		}
		f.running = f.reaper() || !e.exits
		w.WriteHeader(http.StatusNoContent)
	case what == "stop":
		f.running = false
		w.WriteHeader(http.StatusNoContent)
	case what == "exec":
		answer(w, http.StatusCreated, map[string]any{"Id": "x1"})
	case what == "logs":
		f.logsRead++
		text := "Started!\n"
		if !f.reaper() {
			// As the image does: once for its own initialisation, and then in earnest.
			text = strings.Repeat("LOG:  database system is ready to accept connections\n", min(f.logsRead-1, 2))
		}
		w.Header().Set("Content-Type", "application/vnd.docker.multiplexed-stream")
		frame := binary.BigEndian.AppendUint32([]byte{1, 0, 0, 0}, uint32(len(text)))
		_, _ = w.Write(append(frame, text...))
	case what == "json":
		ports := map[string]any{}
		for p := range f.HostConfig.PortBindings {
			l := e.postgres
			if f.reaper() {
				l = e.reaper
			}
			_, number, _ := net.SplitHostPort(l.Addr().String())
			ports[p] = []any{map[string]any{"HostIp": "127.0.0.1", "HostPort": number}}
		}
		status := "running"
		if !f.running {
			status = "exited"
		}
		answer(w, http.StatusOK, map[string]any{
			"Id": id, "Name": "/x", "Image": "sha256:1",
			"State":           map[string]any{"Status": status, "Running": f.running, "ExitCode": 1},
			"Config":          map[string]any{"Image": f.Image, "Env": f.Env, "Tty": false, "Labels": f.Labels},
			"HostConfig":      map[string]any{"NetworkMode": "bridge"},
			"NetworkSettings": map[string]any{"Ports": ports, "Networks": map[string]any{"bridge": map[string]any{"IPAddress": "192.0.2.2"}}},
		})
	default:
		refuse(w, http.StatusNotFound)
	}
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int) {
	answer(w, status, map[string]any{"message": "no such thing\nor none today"})
}

// hijack takes a connection over for the streams of a command that prints nothing.
func hijack(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // or closing resets the connection
	c, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = io.WriteString(c, "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
}
