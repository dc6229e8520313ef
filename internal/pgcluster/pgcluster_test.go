//go:build unix && !aix && !solaris

package pgcluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"retrylab/internal/vtime"
)

func TestStart(t *testing.T) {
	t.Parallel()
	c := start(t, Options{
		Temp: room(t), Cache: shared, MaxConnections: 33,
		Extra: map[string]string{"deadlock_timeout": "50ms", "jit": "on", "listen_addresses": "*"},
	})
	conn := connect(t, c)
	for setting, want := range map[string]string{
		"fsync":              "off",
		"synchronous_commit": "on",
		"max_connections":    "33",
		"deadlock_timeout":   "50ms",
		"jit":                "on", // an extra setting wins
		"listen_addresses":   "",   // but not over this
		"data_directory":     c.dir.data(),
		"server_encoding":    "UTF8",
		"TimeZone":           "UTC",
		"wal_segment_size":   "1MB",
		"server_version":     c.Version(),
	} {
		if got := ask(t, conn, "SHOW "+setting); got != want {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
	if got := ask(t, conn, "SELECT current_user || ' in ' || string_agg(datname, ', ') FROM pg_database"); got != "postgres in postgres" {
		t.Errorf("got user and databases %q", got)
	}
	dir, port := c.Socket()
	if _, err := os.Stat(filepath.Join(dir, fmt.Sprintf(".s.PGSQL.%d", port))); err != nil {
		t.Error(err)
	}
	if timing := c.Timing(); timing.Start <= 0 || timing.Copy <= 0 || timing.Cached != (timing.Template == 0) {
		t.Errorf("got the timing %+v", timing)
	}
	if !strings.Contains(c.Log(), "ready to accept connections") {
		t.Errorf("got the log %q", c.Log())
	}
}

// TestPrivate looks at who could reach the server.
func TestPrivate(t *testing.T) {
	t.Parallel()
	c := start(t, Options{Temp: room(t), Cache: shared})
	want := map[string]os.FileMode{string(c.dir): 0o700, c.dir.socket(): 0o700, c.dir.data(): 0o700}
	if c.account.other {
		want[string(c.dir)] = 0o711
	}
	for path, mode := range want {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != mode {
			t.Errorf("%s has mode %v, want %v", path, info.Mode().Perm(), mode)
		}
		if uid, _ := owners(info); path != string(c.dir) && uid != c.account.uid {
			t.Errorf("%s belongs to %d, want %d", path, uid, c.account.uid)
		}
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	temp := room(t)
	c := start(t, Options{Temp: temp, Cache: shared})
	conn := connect(t, c)
	if _, err := conn.Exec(t.Context(), "BEGIN"); err != nil { // a session in a transaction holds nothing up
		t.Fatal(err)
	}
	var group vtime.Group
	for range 5 {
		group.Go(func() {
			if err := c.Stop(); err != nil {
				t.Error(err)
			}
			if names := left(t, temp); len(names) > 0 {
				t.Errorf("a Stop returned, and there is still %s", names)
			}
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	if err := c.Stop(); err != nil {
		t.Errorf("stop again: %v", err)
	}
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("the session goes on")
	}
}

// TestStopByForce stops a server that does not listen.
func TestStopByForce(t *testing.T) {
	t.Parallel()
	c := start(t, Options{Temp: room(t), Cache: shared})
	if err := c.server.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	c.clock = vtime.NewWall(time.Time{}, 10) // is ten times as impatient
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
}

// TestServerDies finds that a server's end is not taken for its stop.
func TestServerDies(t *testing.T) {
	t.Parallel()
	installed(t)
	temp := room(t)
	c, err := Start(t.Context(), Options{Temp: temp, Cache: shared})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.server.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-c.server.gone
	for range 2 {
		if err := c.Stop(); err == nil || !strings.Contains(err.Error(), "had ended by itself") || !strings.Contains(err.Error(), "shut down") {
			t.Errorf("got %v", err)
		}
	}
}

// TestStartsAtOnce starts several clusters that find no template.
func TestStartsAtOnce(t *testing.T) {
	t.Parallel()
	installed(t)
	temp, cache := room(t), filepath.Join(room(t), "not", "there")
	clusters, errs := make([]*Cluster, 3), make([]error, 3)
	var group vtime.Group
	for k := range clusters {
		group.Go(func() { clusters[k], errs[k] = Start(t.Context(), Options{Temp: temp, Cache: cache}) })
	}
	if err := errors.Join(append(errs, group.Wait())...); err != nil {
		t.Fatal(err)
	}
	for _, c := range clusters {
		if got := ask(t, connect(t, c), "SELECT 'x'"); got != "x" {
			t.Errorf("got %q", got)
		}
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	}
	if names, err := os.ReadDir(cache); err != nil || len(names) != 1 {
		t.Errorf("the cache has %v, %v", names, err)
	}
	if c := start(t, Options{Temp: temp, Cache: cache}); !c.Timing().Cached {
		t.Error("the template was not used")
	}
}

func TestWithoutCache(t *testing.T) {
	t.Parallel()
	installed(t)
	temp := room(t)
	file := filepath.Join(temp, "file") // nothing can be made in it, not even by root
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Start(t.Context(), Options{Temp: temp, Cache: file})
	if err == nil || !strings.Contains(err.Error(), "keep the template of a cluster in "+file) {
		t.Errorf("a cache that was asked for and cannot be had: %v, %v", c, err)
	}
	// One that nobody asked for is done without.
	c = &Cluster{options: Options{Temp: temp}, clock: vtime.NewWall(time.Time{}, 1)}
	if err := c.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.dir.open(c.account); err != nil {
		t.Fatal(err)
	}
	for _, none := range []template{{}, {cache: file, dir: filepath.Join(file, "x")}} {
		if err := c.fill(t.Context(), none); err != nil || c.timing.Cached {
			t.Errorf("%+v: %v", c.timing, err)
		}
	}
	if err := c.private.Remove(); err != nil {
		t.Error(err)
	}
}

// TestRefusals are what is seen before anything is started.
func TestRefusals(t *testing.T) {
	t.Parallel()
	installed(t)
	temp := room(t)
	long := filepath.Join(temp, strings.Repeat("x", maxSocketPath))
	closed := filepath.Join(temp, "closed")
	for _, dir := range []string{long, filepath.Join(closed, "inside")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		o    Options
		root bool // as root alone
		want string
	}{
		{"no such directory", Options{Temp: filepath.Join(temp, "nowhere")}, false, "nowhere: no such file or directory"},
		{"no programs", Options{Temp: temp, Bin: temp}, false, "has no program initdb"},
		{"too long for a socket", Options{Temp: long}, false, "is too long for a Unix socket in it"},
		{"closed to the server", Options{Temp: filepath.Join(closed, "inside")}, true, "who cannot enter " + closed + " (mode 0700), where its data would be"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.root && os.Geteuid() != 0 {
				t.Skip("the server runs as the user of the lab, unless that is root")
			}
			c, err := Start(context.WithoutCancel(t.Context()), test.o)
			if err == nil {
				t.Fatal("it started: ", c.Stop())
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, want %q in it", err, test.want)
			}
		})
	}
}

// TestSocketFits looks at the limit itself: one byte decides.
func TestSocketFits(t *testing.T) {
	t.Parallel()
	name := func(n int) string { return "/" + strings.Repeat("x", n-1) }
	longest := 0
	for n := 1; socketFits(name(n)) == nil; n++ {
		longest = n
	}
	d := directory(filepath.Join(name(longest), prefix+"4294967295"))
	if got := len(d.socket() + "/.s.PGSQL.5432"); got != maxSocketPath {
		t.Errorf("a path of %d bytes is the longest, want %d", got, maxSocketPath)
	}
	want := fmt.Sprintf("%d bytes, and %d are allowed", longest+1, longest)
	if err := socketFits(name(longest + 1)); !strings.Contains(err.Error(), want) {
		t.Errorf("got %q, want %q in it", err, want)
	}
}

// TestBrokenPrograms starts programs that fail, each in its way.
func TestBrokenPrograms(t *testing.T) {
	t.Parallel()
	const version = `if [ "$1" = --version ]; then echo "postgres (PostgreSQL) 15.0"; exit; fi` + "\n"
	const single = `if [ "$1" = --single ]; then exit; fi` + "\n"
	for _, test := range []struct {
		name             string
		initdb, postgres string
		want             []string
	}{
		{"no version", "", "exit 3", []string{"postgres: exit status 3"}},
		{"initdb fails", "echo a user is missing >&2; exit 1", version, []string{"initdb: exit status 1:\n  a user is missing"}},
		{"databases cannot be dropped", "", version + "echo no >&2; exit 1", []string{"postgres: exit status 1:\n  no"}},
		{"the server ends", "", version + single + "echo FATAL: something >&2; exit 1", []string{"ended before it was ready: exit status 1:\n  FATAL: something"}},
		{"the server ends in peace", "", version + single, []string{"ended before it was ready: exit status 0"}},
		{"the server is killed", "", version + single + "kill -9 $$", []string{"ended before it was ready: signal: killed"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			temp := room(t)
			bin := filepath.Join(temp, "bin")
			install(t, bin)
			program(t, filepath.Join(bin, "initdb"), test.initdb)
			program(t, filepath.Join(bin, "postgres"), test.postgres)
			c, err := Start(t.Context(), Options{Temp: temp, Cache: filepath.Join(temp, "cache"), Bin: bin})
			if err == nil {
				t.Fatal("it started: ", c.Stop())
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want %q in it", err, want)
				}
			}
		})
	}
}

// TestCanceled ends the context at any time of a start.
func TestCanceled(t *testing.T) {
	t.Parallel()
	installed(t)
	for _, test := range []struct {
		after  time.Duration
		cached bool
	}{
		{0, true}, {1, true}, {5, true}, {10, true}, {20, true}, {40, true}, {80, true}, {160, true},
		{30, false}, {100, false}, {300, false}, {600, false},
	} {
		t.Run(fmt.Sprintf("%d ms, cached %v", test.after, test.cached), func(t *testing.T) {
			t.Parallel()
			temp, cache := room(t), shared
			if !test.cached {
				cache = filepath.Join(room(t), "cache")
			}
			reason := errors.New("no time left")
			ctx, cancel := context.WithTimeoutCause(t.Context(), test.after*time.Millisecond, reason)
			defer cancel()
			c, err := Start(ctx, Options{Temp: temp, Cache: cache})
			if !test.cached {
				if names := left(t, cache); len(names) > 0 {
					t.Errorf("the cache still has %v", names)
				}
			}
			if err != nil {
				if !errors.Is(err, reason) {
					t.Errorf("got %v", err)
				}
				return
			}
			<-ctx.Done() // does not matter any more
			if got := ask(t, connect(t, c), "SELECT 'x'"); got != "x" {
				t.Errorf("got %q", got)
			}
			if err := c.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestKilled kills a lab in a way that lets it do nothing, and looks at what becomes of its cluster.
func TestKilled(t *testing.T) {
	t.Parallel()
	installed(t)
	temp := room(t)
	lab := exec.CommandContext(t.Context(), os.Args[0])
	lab.Env = append(os.Environ(), asHelper+"="+temp)
	lab.Stderr = os.Stderr
	out, err := lab.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := lab.Start(); err != nil {
		t.Fatal(err)
	}
	defer lab.Wait()
	defer lab.Process.Kill()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var dir string
	var pid int
	if _, err := fmt.Sscan(line, &dir, &pid); err != nil {
		t.Fatal(err)
	}
	d := directory(dir)
	ghost := &Cluster{dir: d}
	conn, err := pgx.Connect(t.Context(), ghost.DSN())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())

	if removed, err := Sweep(t.Context(), temp); err != nil || len(removed) > 0 {
		t.Fatalf("swept %v of a lab that is alive, %v", removed, err)
	}
	if !serves(t.Context(), pid, d.data()) {
		t.Fatalf("process %d is not seen to serve %s", pid, d.data())
	}
	if err := lab.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	lab.Wait()
	if runtime.GOOS == "linux" { // where the server ends with its parent
		if _, err := conn.WaitForNotification(t.Context()); err == nil || t.Context().Err() != nil {
			t.Fatalf("the session goes on: %v", err)
		}
		eventually(t, "the end of the server", func() bool { return !serves(t.Context(), pid, d.data()) })
	}
	if gone(dir) {
		t.Fatal("somebody has removed the directory already")
	}
	c := start(t, Options{Temp: temp, Cache: shared})
	if !gone(dir) {
		t.Error("the directory of the dead lab is still there")
	}
	if got := ask(t, connect(t, c), "SELECT 'x'"); got != "x" {
		t.Errorf("got %q", got)
	}
}

// BenchmarkStartStop starts and stops a cluster from a template.
func BenchmarkStartStop(b *testing.B) {
	installed(b)
	temp, cache := room(b), filepath.Join(room(b), "cache")
	var sum Timing
	var stop time.Duration
	run := func() {
		c, err := Start(b.Context(), Options{Temp: temp, Cache: cache})
		if err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		if err := c.Stop(); err != nil {
			b.Fatal(err)
		}
		stop += time.Since(began)
		sum.Copy += c.timing.Copy
		sum.Start += c.timing.Start
	}
	run()
	sum, stop = Timing{}, 0
	for b.Loop() {
		run()
	}
	for name, d := range map[string]time.Duration{"copy": sum.Copy, "start": sum.Start, "stop": stop} {
		b.ReportMetric(float64(d.Microseconds())/1000/float64(b.N), name+"-ms/op")
	}
}
