package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"retrylab/internal/redisserver"
	"retrylab/internal/vtime"
	"retrylab/slowserver/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// options finds the redis-server of this machine.
func options(t *testing.T) redisserver.Options {
	t.Helper()
	binary, err := redisserver.Find("")
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatal(err)
	default:
		t.Skip(err)
	}
	return redisserver.Options{Binary: binary}
}

// kinds are the sources, each as a function that makes one for a test.
var kinds = []struct {
	name   string
	source func(t *testing.T) *Source
}{
	{"embedded", func(*testing.T) *Source { return NewEmbedded() }},
	{"server", func(t *testing.T) *Source {
		s, err := NewServer(options(t))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}},
	{"url", func(t *testing.T) *Source {
		s, err := NewURL(t.Context(), foreign(t))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}},
}

// foreign starts a server that is not the source's own, and returns its URL.
func foreign(t *testing.T) string {
	t.Helper()
	// The context of a test ends before its clean-up, which still needs the server.
	s, err := redisserver.Start(context.WithoutCancel(t.Context()), options(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	_, path := s.Addr()
	return (&url.URL{Scheme: "unix", User: url.UserPassword("", s.Password()), Path: path, RawQuery: "db=3"}).String()
}

// bench is a test with keys and a time of its own.
type bench struct {
	*testing.T
	*Keys
	pass func(time.Duration) // lets scenario time pass
}

// exercise runs f for every kind of server, in real time and in a bubble.
func exercise(t *testing.T, o Options, f func(b *bench)) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			exerciseKind(t, kind.source(t), o, f)
		})
	}
}

func exerciseKind(t *testing.T, source *Source, o Options, f func(b *bench)) {
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		var now time.Duration
		o := o
		o.Now = func() time.Duration { return now }
		f(&bench{t, open(t, source, o), func(d time.Duration) { now += d }})
	})
	t.Run("bubble", func(t *testing.T) {
		t.Parallel()
		outside := vtime.NewOutside()
		t.Cleanup(func() {
			if err := outside.Close(); err != nil {
				t.Error(err)
			}
		})
		var start time.Time
		o := o
		o.Outside, o.Now = outside.Do, func() time.Duration { return time.Since(start) }
		keys := open(t, source, o)
		synctest.Test(t, func(t *testing.T) {
			start = time.Now()
			f(&bench{t, keys, time.Sleep})
		})
	})
}

func open(t testing.TB, source *Source, o Options) *Keys {
	t.Helper()
	keys, err := source.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := keys.Close(); err != nil {
			t.Error(err)
		}
	})
	return keys
}

// still is a scenario time that stands.
func still() time.Duration { return 0 }

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) claims(key, value string, ttl time.Duration, want bool) {
	b.Helper()
	got, err := b.Claim(b.Context(), key, value, ttl)
	b.must(err)
	if got != want {
		b.Errorf("claim of %q with %q: %v, want %v", key, value, got, want)
	}
}

// holds says what is stored under a key: want, or nothing.
func (b *bench) holds(key string, want ...string) {
	b.Helper()
	value, found, err := b.Get(b.Context(), key)
	b.must(err)
	var got []string
	if found {
		got = []string{value}
	}
	if !slices.Equal(got, want) {
		b.Errorf("%q holds %q, want %q", key, got, want)
	}
}

func TestKeys(t *testing.T) {
	exercise(t, Options{}, func(b *bench) {
		b.holds("k")
		b.claims("k", "first", 0, true)
		b.claims("k", "second", 0, false)
		b.holds("k", "first")
		b.must(b.Set(b.Context(), "k", "third", 0))
		b.holds("k", "third")
		b.must(b.Delete(b.Context(), "k"))
		b.must(b.Delete(b.Context(), "k")) // what is not there can be deleted
		b.holds("k")
		b.claims("k", "", 0, true)
		b.holds("k", "")
		b.claims("k", "fourth", 0, false)
		// Keys and values are bytes, of any length, such as those of Redis' own protocol.
		odd := "*1\r\n$4\r\nquit\r\n\x00 \xff" + strings.Repeat("x", 10_000)
		b.claims(odd, odd, 0, true)
		b.holds(odd, odd)
		b.pass(1000 * time.Hour)
		b.holds("k", "")
		want := Traffic{Sent: map[string]int{"SET NX": 5, "SET": 1, "GET": 7, "DEL": 2}}
		if diff := cmp.Diff(want, b.Traffic()); diff != "" {
			b.Errorf("traffic (-want +got):\n%s", diff)
		}
	})
}

func TestTimeToLive(t *testing.T) {
	exercise(t, Options{}, func(b *bench) {
		b.claims("short", "1", 5*time.Second, true)
		b.must(b.Set(b.Context(), "set", "1", 6*time.Second))
		b.claims("long", "1", 24*time.Hour, true)
		b.claims("ever", "1", 0, true)
		b.claims("set for ever", "1", time.Second, true)
		b.must(b.Set(b.Context(), "set for ever", "2", 0))
		b.claims("anew", "1", 5*time.Second, true)
		b.must(b.Delete(b.Context(), "anew"))

		b.pass(4 * time.Second)
		b.claims("short", "2", time.Hour, false) // which does not prolong it
		b.claims("anew", "2", 5*time.Second, true)
		b.pass(time.Second)
		b.holds("short", "1") // at its last instant
		b.pass(time.Millisecond)
		b.holds("short")
		b.holds("set", "1")
		b.claims("short", "3", 5*time.Second, true)
		b.pass(time.Second)
		b.holds("set")
		b.holds("short", "3")
		b.holds("anew", "2")
		b.pass(4 * time.Second)
		b.holds("anew")
		b.holds("short", "3")
		b.pass(24*time.Hour - 10001*time.Millisecond)
		b.holds("long", "1")
		b.pass(time.Microsecond)
		b.holds("long")
		b.holds("ever", "1")
		b.holds("set for ever", "2")
	})
}

func TestTwelveClaims(t *testing.T) {
	exercise(t, Options{}, func(b *bench) {
		for round := range 3 {
			// The time of the key before is over: however many notice it, one gets the next.
			key, owners := "k", make([]bool, 12)
			var wg sync.WaitGroup
			for i := range owners {
				wg.Go(func() {
					won, err := b.Claim(b.Context(), key, fmt.Sprint(i), time.Second)
					if err != nil {
						b.Error(err)
					}
					owners[i] = won
				})
			}
			wg.Wait()
			if i := slices.Index(owners, true); i < 0 || slices.Contains(owners[i+1:], true) {
				b.Errorf("round %d: %v have won, want one", round, owners)
			} else {
				b.holds(key, fmt.Sprint(i))
			}
			b.pass(time.Second + time.Millisecond)
		}
		if got, want := b.Traffic().Sent["SET NX"], 36; got != want {
			b.Errorf("%d SET NX were sent, want %d", got, want)
		}
	})
}

func TestEndedContext(t *testing.T) {
	exercise(t, Options{}, func(b *bench) {
		gone := errors.New("the client has gone")
		ctx, cancel := context.WithCancelCause(b.Context())
		cancel(gone)
		for what, err := range map[string]error{
			"claim":   second(b.Claim(ctx, "k", "v", 0)),
			"set":     b.Set(ctx, "k", "v", 0),
			"delete":  b.Delete(ctx, "k"),
			"restart": b.Restart(ctx),
		} {
			if !errors.Is(err, gone) {
				b.Errorf("%s: got %v, want %v", what, err, gone)
			}
		}
		b.holds("k")
	})
}

func second[T any](_ T, err error) error { return err }

func TestCutWithoutRetries(t *testing.T) {
	exercise(t, Options{}, func(b *bench) {
		b.claims("other", "1", 0, true)
		b.CutNextReply()
		won, err := b.Claim(b.Context(), "k", "owner", 5*time.Second)
		if won || !errors.Is(err, io.EOF) {
			b.Errorf("got %v, %v; want %v", won, err, io.EOF)
		}
		want := Traffic{Sent: map[string]int{"SET NX": 2}, Cut: 1}
		if diff := cmp.Diff(want, b.Traffic()); diff != "" {
			b.Errorf("traffic (-want +got):\n%s", diff)
		}
		b.holds("k", "owner") // the server did it
		b.claims("k", "other", 0, false)
		b.pass(6 * time.Second) // and it lives no longer than it was to
		b.claims("k", "other", 0, true)
	})
}

// TestCutWithRetries is the incident: the owner of a key is told that another has it.
func TestCutWithRetries(t *testing.T) {
	exercise(t, Options{Retries: 3}, func(b *bench) {
		b.CutNextReply()
		b.claims("k", "owner", 5*time.Second, false)
		want := Traffic{Sent: map[string]int{"SET NX": 2}, Cut: 1}
		if diff := cmp.Diff(want, b.Traffic()); diff != "" {
			b.Errorf("traffic (-want +got):\n%s", diff)
		}
		b.holds("k", "owner")
		b.pass(6 * time.Second)
		b.claims("k", "other", 0, true)
	})
}

// TestCutSpares cuts a reply to each command, with a new connection before it: what the client says
// to connect is not it.
func TestCutSpares(t *testing.T) {
	exercise(t, Options{}, func(b *bench) {
		for _, f := range []func() error{
			func() error { return second(b.Claim(b.Context(), "k", "1", 0)) },
			func() error { return b.Set(b.Context(), "k", "2", time.Second) },
			func() error { _, _, err := b.Get(b.Context(), "k"); return err },
			func() error { return b.Delete(b.Context(), "k") },
		} {
			b.CutNextReply()
			if err := f(); !errors.Is(err, io.EOF) {
				b.Errorf("got %v, want %v", err, io.EOF)
			}
		}
		want := Traffic{Sent: map[string]int{"SET NX": 1, "SET": 1, "GET": 1, "DEL": 1}, Cut: 4}
		if diff := cmp.Diff(want, b.Traffic()); diff != "" {
			b.Errorf("traffic (-want +got):\n%s", diff)
		}
		b.holds("k")
	})
}

func TestRestart(t *testing.T) {
	exercise(t, Options{}, func(b *bench) {
		version := b.Info().Version
		b.claims("k", "1", 5*time.Second, true)
		b.claims("ever", "1", 0, true)
		err := b.Restart(b.Context())
		if b.Info().Mode == remoteMode {
			unsupported(b, err)
			b.holds("ever", "1")
			return
		}
		b.must(err)
		b.holds("ever")
		b.pass(4 * time.Second)
		b.CutNextReply()
		if _, err := b.Claim(b.Context(), "k", "2", 5*time.Second); !errors.Is(err, io.EOF) {
			b.Errorf("got %v, want %v", err, io.EOF)
		}
		b.pass(2 * time.Second)
		b.holds("k", "2") // the time of the first does not end the second
		if got := b.Info().Version; got != version {
			b.Errorf("version is %q after a restart, %q before", got, version)
		}
	})
}

// TestRestartAmongClaims lets a server end while others use it: no command is caught in the middle.
func TestRestartAmongClaims(t *testing.T) {
	exercise(t, Options{}, func(b *bench) {
		if b.Info().Mode == remoteMode {
			return
		}
		var wg sync.WaitGroup
		for range 12 {
			wg.Go(func() {
				for range 5 {
					if _, err := b.Claim(b.Context(), "k", "v", 0); err != nil {
						b.Error(err)
					}
				}
			})
		}
		b.must(b.Restart(b.Context()))
		wg.Wait()
	})
}

func unsupported(b *bench, err error) {
	b.Helper()
	typed, ok := errors.AsType[*UnsupportedError](err)
	if !ok || !errors.Is(err, store.ErrUnsupported) || typed.Want == "" {
		b.Errorf("got %v, want an *UnsupportedError", err)
	}
}

func TestNoReplica(t *testing.T) {
	exercise(t, Options{}, func(b *bench) {
		b.claims("k", "1", 0, true)
		unsupported(b, b.Failover(b.Context()))
		b.holds("k", "1")
	})
}

func TestNoReplicaToOpen(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		if kind.name != "server" {
			_, err := kind.source(t).Open(t.Context(), Options{Now: still, Replica: true})
			unsupported(&bench{T: t}, err)
		}
	}
}

// exerciseReplica is exercise for the one kind that can have a replica.
func exerciseReplica(t *testing.T, f func(b *bench)) {
	t.Parallel()
	exerciseKind(t, kinds[1].source(t), Options{Replica: true}, f)
}

func TestFailover(t *testing.T) {
	exerciseReplica(t, func(b *bench) {
		b.claims("ever", "1", 0, true)
		b.claims("kept", "1", 10*time.Second, true)
		b.claims("ended", "1", time.Second, true)
		b.must(b.Set(b.Context(), "deleted", "1", 0))
		b.must(b.Delete(b.Context(), "deleted"))
		b.claims("lost", "1", 10*time.Second, true)
		b.claims("lost", "2", 10*time.Second, false)
		b.must(b.Set(b.Context(), "lost", "3", 10*time.Second))
		b.pass(2 * time.Second)
		b.holds("ended") // which the replica is not told of
		b.must(b.Failover(b.Context()))
		b.holds("ended")
		b.holds("deleted")
		b.holds("ever", "1")
		b.holds("kept", "1")
		b.holds("lost")
		b.pass(7 * time.Second)
		b.CutNextReply()
		if _, err := b.Claim(b.Context(), "lost", "4", 10*time.Second); !errors.Is(err, io.EOF) {
			b.Errorf("got %v, want %v", err, io.EOF)
		}
		b.pass(2 * time.Second)
		b.holds("lost", "4") // the time of what was lost is no longer that of the key
		b.holds("kept")      // and that of what was kept is still its own
		if got, want := b.Info().Settings["failover"], "replica promoted; WAIT 1 had said 0"; got != want {
			b.Errorf("failover is %q, want %q", got, want)
		}
		unsupported(b, b.Failover(b.Context())) // no replica is left
		b.must(b.Restart(b.Context()))          // of what is now the master
		b.claims("ever", "2", 0, true)
	})
}

// TestFailoverAgain claims again what has ended before the failover.
func TestFailoverAgain(t *testing.T) {
	exerciseReplica(t, func(b *bench) {
		b.claims("k", "1", time.Second, true)
		b.claims("other", "1", 0, true)
		b.pass(2 * time.Second)
		b.claims("k", "2", time.Hour, true)
		b.claims("newest", "1", 0, true)
		b.must(b.Failover(b.Context()))
		b.holds("k", "2")
		b.holds("other", "1")
		b.holds("newest")
	})
}

// TestFailoverAfterRestart has a master forget everything, and its replica with it.
func TestFailoverAfterRestart(t *testing.T) {
	exerciseReplica(t, func(b *bench) {
		b.claims("before", "1", 0, true)
		b.claims("other", "1", 0, true)
		b.must(b.Restart(b.Context()))
		b.must(b.Failover(b.Context()))
		b.holds("before")
		b.holds("other")
	})
}

func TestFailoverOfTheFirst(t *testing.T) {
	exerciseReplica(t, func(b *bench) {
		b.claims("", "1", 0, true) // of all keys the one that looks most like none
		b.must(b.Failover(b.Context()))
		b.claims("", "2", 0, true)
	})
}

func TestInfo(t *testing.T) {
	versions := map[string]*regexp.Regexp{
		embeddedMode: regexp.MustCompile(`^miniredis 2\.\d+\.\d+$`),
		serverMode:   regexp.MustCompile(`^\d+\.\d+\.\d+$`),
		remoteMode:   regexp.MustCompile(`^\d+\.\d+\.\d+$`),
	}
	exercise(t, Options{Retries: 3}, func(b *bench) {
		info := b.Info()
		if info.Engine != "redis" || !versions[info.Mode].MatchString(info.Version) {
			b.Errorf("engine %q, version %q, mode %q", info.Engine, info.Version, info.Mode)
		}
		for _, setting := range []string{"ttl", "persistence", "client_retries", "restart", "failover"} {
			if info.Settings[setting] == "" {
				b.Errorf("it does not say %s: %v", setting, info.Settings)
			}
		}
		info.Settings["ttl"] = "changed"
		if got, want := b.Info().Settings["ttl"], "by the lab's clock"; got != want {
			b.Errorf("ttl is %q, want %q", got, want)
		}
		if got, want := b.Info().Settings["client_retries"], "3"; got != want {
			b.Errorf("client_retries is %q, want %q", got, want)
		}
	})
}

func TestVersionOfMiniredis(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if want := "github.com/alicebob/miniredis/v2 v" + miniredisVersion; !regexp.MustCompile(regexp.QuoteMeta(want) + `\s`).Match(data) {
		t.Errorf("go.mod does not say %q", want)
	}
}

func TestClose(t *testing.T) {
	exercise(t, Options{}, func(b *bench) {
		b.claims("k", "1", 0, true)
		b.must(b.Close())
		b.must(b.Close())
		if _, err := b.Claim(b.Context(), "k", "2", 0); err == nil {
			b.Error("a claim after the end is no error")
		}
	})
}

// TestTrialsApart opens two trials on one source.
func TestTrialsApart(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			source := kind.source(t)
			a := &bench{t, open(t, source, Options{Now: still}), nil}
			b := &bench{t, open(t, source, Options{Now: still}), nil}
			a.claims("k", "a", 0, true)
			b.claims("k", "b", 0, true)
			a.must(a.Delete(t.Context(), "k"))
			b.holds("k", "b")
			a.must(a.Close())
			b.holds("k", "b")
		})
	}
}

// TestForeignKeys looks at a server that others use too.
func TestForeignKeys(t *testing.T) {
	t.Parallel()
	address := foreign(t)
	source, err := NewURL(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	r, err := parseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	user := newClient(r, 0, func(c net.Conn) net.Conn { return c }).redis
	defer user.Close()
	if err := user.Set(t.Context(), "k", "theirs", 0).Err(); err != nil {
		t.Fatal(err)
	}
	b := &bench{t, open(t, source, Options{Now: still}), nil}
	b.holds("k")
	b.claims("k", "ours", 0, true)
	b.must(b.Set(t.Context(), "other", "ours", time.Second))
	for i := range 250 {
		b.claims(fmt.Sprint("many ", i), "ours", 0, true)
	}
	all, err := user.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 253 {
		t.Errorf("there are %d keys, want theirs and 252 of ours", len(all))
	}
	for _, key := range all {
		ttl := user.TTL(t.Context(), key).Val()
		switch {
		case key == "k" && ttl >= 0:
			t.Errorf("their key now ends in %v", ttl)
		case key == "k":
		case !strings.HasPrefix(key, "retrylab:") || ttl <= leftover-time.Hour || ttl > leftover:
			t.Errorf("our key %q ends in %v", key, ttl)
		}
	}
	b.must(b.Close())
	if got := user.Keys(t.Context(), "*").Val(); !slices.Equal(got, []string{"k"}) {
		t.Errorf("%q are left, want theirs", got)
	}
	if got, want := user.Get(t.Context(), "k").Val(), "theirs"; got != want {
		t.Errorf("their key holds %q, want %q", got, want)
	}
}

// secret is a password that stands out.
const secret = "hunter2-pass"

func TestURLErrors(t *testing.T) {
	t.Parallel()
	closed := listen(t, nil)
	silent := listen(t, func(c net.Conn) { c.Close() }) // a reset, since there was something to read
	polite := listen(t, func(c net.Conn) {
		c.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, c)
		c.Close()
	})
	web := listen(t, func(c net.Conn) {
		defer c.Close()
		io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
		io.Copy(io.Discard, c) // so that the end is no reset
	})
	echo := listen(t, func(c net.Conn) {
		defer c.Close()
		buf := make([]byte, 1024)
		n, _ := c.Read(buf)
		fmt.Fprintf(c, "-ERR unknown command, with args beginning with: %q\r\n", buf[:n])
		n, _ = c.Read(buf)
		fmt.Fprintf(c, "-ERR unknown command, with args beginning with: %q\r\n", buf[:n])
		io.Copy(io.Discard, c)
	})
	locked := miniredis.RunT(t)
	locked.RequireAuth("another")
	cluster := imitate(t, map[string]string{"INFO": "$19\r\ncluster_enabled:1\r\n\r\n"})
	few := imitate(t, map[string]string{"SELECT": "-ERR DB index is out of range\r\n"})
	busy := imitate(t, map[string]string{"INFO": "-LOADING Redis is loading the dataset in memory\r\n"})
	for _, test := range []struct{ url, want string }{
		{"redis://:" + secret + "@" + closed, "redis at " + closed + ", database 0 cannot be reached"},
		{"redis://:" + secret + "@no-such-host.invalid", "no-such-host.invalid:6379, database 0 cannot be reached"},
		{"unix://:" + secret + "@/nowhere/redis.sock?db=2", "redis at /nowhere/redis.sock, database 2 cannot be reached"},
		{"redis://:" + secret + "@" + silent, "closes the connection without an answer"},
		{"redis://:" + secret + "@" + polite, "closes the connection without an answer"},
		{"redis://:" + secret + "@" + web, "does not answer as Redis does"},
		{"rediss://:" + secret + "@" + web, "does not answer as Redis does"},
		{"redis://:" + secret + "@" + echo, "[password]"},
		{"redis://:" + secret + "@" + locked.Addr(), "refuses the user or the password"},
		{"redis://user:" + secret + "@" + locked.Addr(), "refuses the user or the password"},
		{"redis://" + locked.Addr(), "wants a password"},
		{"redis://:" + secret + "@" + cluster, "is part of a cluster"},
		{"redis://:" + secret + "@" + few + "/99", "database 99: there is no such database"},
		{"redis://:" + secret + "@" + busy, "LOADING"},
		{"redis://:" + secret + "@" + locked.Addr() + "/x", "cannot be read"},
		{"redis://:" + secret + "@" + locked.Addr() + "/0/1", "cannot be read"},
		{"redis://:" + secret + "@" + locked.Addr() + "?max_retries=3", "an option that the lab does not take"},
		{"http://:" + secret + "@" + locked.Addr(), "cannot be read"},
		{":" + secret + "@" + locked.Addr(), "cannot be read"},
		{"redis:" + secret, "cannot be read"},
		{"redis://:" + secret + "%zz@host", "cannot be read"},
		{"redis://:" + secret + "/0@host", "cannot be read"},
		{"redis://:" + secret + "?@host", "cannot be read"},
		{"redis://:12#" + secret + "@host", "cannot be read"},
		{"redis://:12?" + secret + "@host", "an option that the lab does not take"},
		{"redis://:12/" + secret + "@host", "cannot be read"},
		{"redis://:" + secret + "@host:port", "cannot be read"},
		{"redis://:" + secret + "\n@host", "cannot be read"},
		{"unix://:" + secret + "@", "cannot be read"},
		{"", "cannot be read"},
	} {
		_, err := NewURL(t.Context(), test.url)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: got %v, want %q", test.url, err, test.want)
			continue
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(fmt.Sprintf("%v %+v %#v", e, e, e), secret) {
				t.Errorf("%q: %v has the password in it", test.url, e)
			}
		}
		if lines := strings.Count(err.Error(), "\n") + 1; lines > 2 {
			t.Errorf("%q: the error has %d lines:\n%v", test.url, lines, err)
		}
	}
}

// listen answers on a port of the loopback interface; nil is a port where nobody does.
func listen(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if answer == nil {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return l.Addr().String()
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { answer(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

// imitate answers commands by their name with what Redis might say, and others with OK.
func imitate(t *testing.T, answers map[string]string) string {
	return listen(t, func(c net.Conn) {
		defer c.Close()
		r := requests{done: func(words []string) {
			answer := "+OK\r\n"
			name := strings.ToUpper(words[0])
			if name == "HELLO" { // which old servers do not know
				answer = "-ERR unknown command\r\n"
			}
			if other, ok := answers[name]; ok {
				answer = other
			}
			io.WriteString(c, answer)
		}}
		for buf := make([]byte, 1024); ; {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			r.feed(buf[:n])
		}
	})
}

// TestMayNotAsk uses a server that does not say its version to everybody.
func TestMayNotAsk(t *testing.T) {
	t.Parallel()
	source, err := NewURL(t.Context(), "redis://"+imitate(t, map[string]string{"INFO": "-NOPERM this user has no permissions to run the 'info' command\r\n"}))
	if err != nil {
		t.Fatal(err)
	}
	keys := open(t, source, Options{Now: still})
	if got, want := keys.Info().Version, "unknown"; got != want {
		t.Errorf("version is %q, want %q", got, want)
	}
}

// TestURLSecret uses a server with a password, and looks for it wherever something is said.
func TestURLSecret(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	m.RequireUserAuth("user", secret)
	source, err := NewURL(t.Context(), "redis://user:"+secret+"@"+m.Addr())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t, open(t, source, Options{Now: still}), nil}
	b.claims("k", "1", 0, true)
	if got, want := b.Info().Version, "unknown"; got != want { // miniredis does not tell
		t.Errorf("version is %q, want %q", got, want)
	}
	said := fmt.Sprint(b.Info(), b.Traffic(), source.Mode(), b.Restart(t.Context()))
	m.SetError("ERR I was told " + secret)
	_, err = b.Claim(t.Context(), "k", "2", 0)
	said += fmt.Sprint(err)
	if strings.Contains(said, secret) {
		t.Errorf("the password is in %q", said)
	}
	if !strings.Contains(said, "I was told [password]") {
		t.Errorf("the rest of the error is not in %q", said)
	}
	m.SetError("")
}

// TestLostServer looks at the errors of a server that goes away.
func TestLostServer(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	source, err := NewURL(t.Context(), "redis://"+m.Addr()+"/1")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := source.Open(t.Context(), Options{Now: still})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t, keys, nil}
	b.claims("k", "1", 0, true)
	m.Close()
	_, err = b.Claim(t.Context(), "k", "2", 0)
	// Whether the client learns it from the connection that it had or from a new one is up to the system.
	if want := `claim key "k" in redis: `; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s…", err, want)
	}
	if err := b.Close(); err == nil || !strings.Contains(err.Error(), "delete the keys retrylab:") {
		t.Errorf("got %v, want that keys are left", err)
	}
}

// TestSilence runs the test above in a process of its own: the client must not write to stderr, as
// go-redis does where a connection cannot be made.
func TestSilence(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLostServer$", "-test.v")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestLostServer")) {
		t.Fatalf("%v:\n%s", err, out)
	}
	if stderr.Len() > 0 {
		t.Errorf("stderr has\n%s", stderr.Bytes())
	}
}

func TestMissingServer(t *testing.T) {
	t.Parallel()
	if _, err := NewServer(redisserver.Options{Binary: "/nowhere/redis-server"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that there is none", err)
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	stream := "*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nset\r\n$0\r\n\r\n$6\r\n*1\r\n$4\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"
	want := [][]string{{"PING"}, {"set", "", "*1\r\n$4"}, {"GET", "k"}}
	for size := 1; size <= len(stream); size++ {
		var got [][]string
		r := requests{done: func(words []string) { got = append(got, words) }}
		for piece := range slices.Chunk([]byte(stream), size) {
			r.feed(piece)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("in pieces of %d (-want +got):\n%s", size, diff)
		}
	}
}

func BenchmarkClaimEmbedded(b *testing.B) {
	benchmarkClaim(b, NewEmbedded())
}

func BenchmarkClaimServer(b *testing.B) {
	source, err := NewServer(redisserver.Options{})
	if err != nil {
		b.Skip(err)
	}
	benchmarkClaim(b, source)
}

// BenchmarkFollow is what it costs to let a replica catch up.
func BenchmarkFollow(b *testing.B) {
	source, err := NewServer(redisserver.Options{})
	if err != nil {
		b.Skip(err)
	}
	keys := open(b, source, Options{Now: still, Replica: true})
	for i := 0; b.Loop(); i++ {
		if _, err := keys.Claim(b.Context(), fmt.Sprint(i%2), "v", 0); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkClaim(b *testing.B, source *Source) {
	outside := vtime.NewOutside()
	b.Cleanup(func() {
		if err := outside.Close(); err != nil {
			b.Error(err)
		}
	})
	keys := open(b, source, Options{Now: still, Outside: outside.Do})
	for b.Loop() {
		if _, err := keys.Claim(b.Context(), "k", "v", time.Second); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTrialEmbedded is what a trial with two claims costs.
func BenchmarkTrialEmbedded(b *testing.B) {
	source := NewEmbedded()
	for b.Loop() {
		keys, err := source.Open(b.Context(), Options{Now: still})
		if err != nil {
			b.Fatal(err)
		}
		for range 2 {
			if _, err := keys.Claim(b.Context(), "k", "v", time.Second); err != nil {
				b.Fatal(err)
			}
		}
		if err := keys.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
