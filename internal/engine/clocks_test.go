package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"retrylab/internal/engine"
	"retrylab/internal/judge"
	"retrylab/internal/lab"
	"retrylab/internal/storage"
	"retrylab/scenarios"
	"retrylab/slowserver/store"
)

// TestMain is also the process of a replica, which the tests start as the tool does.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == replica {
		file := func(fd uintptr) *os.File { return os.NewFile(fd, "") }
		if engine.RunReplica(context.Background(), file(engine.SocketFile), file(engine.NotesFile), file(engine.OrdersFile), storage.Attach) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 2 && os.Args[1] == orphanage {
		runOrphanage()
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// replica is what the test binary is called with to be the process of a replica.
const replica = "replica"

// newWall returns a lab on the wall clock.
func newWall(t testing.TB, database store.Database, speed float64) *engine.Lab {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := engine.New(database, engine.Wall, speed)
	l.Replica = []string{path, replica}
	return l
}

// TestClocksAgree runs a sample of the configurations on the wall clock, over loopback TCP, and expects the
// counts and beliefs of the virtual clock. A machine that stumbles makes a trial inconclusive, which is no
// disagreement; it is tried again at a lower speed. All of them are run once for a release, by hand:
// retrylab run --all --clock wall --speed 20.
func TestClocksAgree(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes half a minute of real time")
	}
	database := openSQLite(t)
	virtual := engine.New(database, engine.Virtual, 1)
	trials := everyFifth(slices.DeleteFunc(light(catalogue(t)), func(trial scenarios.Trial) bool { return !onAny(trial) }))
	// Whatever the machine is busy with: nobody is made to wait for much longer.
	late, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	// Together: each mostly sleeps.
	var workers sync.WaitGroup
	var compared atomic.Int64
	slots := make(chan struct{}, 12)
	for _, trial := range trials {
		workers.Add(1)
		slots <- struct{}{}
		go func() {
			defer func() { <-slots; workers.Done() }()
			want := virtual.Run(t.Context(), trial)
			if want.Settled > 2*time.Minute {
				return // six seconds at the highest speed
			}
			for _, speed := range []float64{40, 20, 8} {
				wall := newWall(t, database, speed)
				if late.Err() != nil || wall.Check(t.Context(), trial) != nil {
					continue
				}
				got := wall.Run(t.Context(), trial)
				if got.Defect {
					t.Errorf("%s at speed %g: %s", name(trial), speed, got.Broken)
					return
				}
				if got.Broken != "" {
					t.Logf("%s at speed %g: %s", name(trial), speed, got.Broken)
					continue
				}
				compareCounts(t, trial, want, got)
				compared.Add(1)
				return
			}
			t.Logf("%s: not decided at any speed", name(trial))
		}()
	}
	workers.Wait()
	// A busy machine may decide few of them; that it decided none means that nobody looked.
	if compared.Load() == 0 {
		t.Error("no trial was conclusive on the wall clock")
	}
}

func compareCounts(t *testing.T, trial scenarios.Trial, want, got lab.Observation) {
	w, g := judge.Decide(trial, want), judge.Decide(trial, got)
	if engine.EndsWithCommit(want) {
		g.Counts.EffectsWhenCallerDone, g.Counts.Late = w.Counts.EffectsWhenCallerDone, w.Counts.Late
	}
	if w.Counts != g.Counts || w.Beliefs != g.Beliefs || !slices.Equal(w.Nodes, g.Nodes) {
		t.Errorf("%s: virtual %+v %+v, wall %+v %+v", name(trial), w.Counts, w.Beliefs, g.Counts, g.Beliefs)
	}
	if g.Verdict == lab.NotAsExpected {
		t.Errorf("%s: on the wall clock %v", name(trial), failed(g))
	}
}

// TestTooFast demands that a speed is refused at which real time could decide.
func TestTooFast(t *testing.T) {
	t.Parallel()
	trial := one(t, "read-timeout", "feign-retryer-3")
	l := newLab(t, engine.Wall, 1000)
	var fast *engine.TooFastError
	if err := l.Check(t.Context(), trial); !errors.As(err, &fast) {
		t.Fatalf("speed 1000: %v, want a TooFastError", err)
	}
	var loser *engine.TooFastError
	if err := l.Check(t.Context(), one(t, "hedged-write", "hedged-write")); !errors.As(err, &loser) || loser.Pair != "commit 2 of op-1 and the end of its caller" {
		t.Errorf("the loser of a hedge at speed 1000: %v, want its commit against the end of the caller", err)
	}
	if most := fast.Most(); most < 100 || most >= 1000 {
		t.Errorf("at most %g; the commits and the caller's end are a second apart", most)
	}
	if err := newLab(t, engine.Wall, fast.Most()).Check(t.Context(), trial); err != nil {
		t.Errorf("the speed that the error names is refused as well: %v", err)
	}
}

// TestTie: a commit in the instant at which its caller gives up comes first on the one clock and second on
// the other, and that is no disagreement.
func TestTie(t *testing.T) {
	t.Parallel()
	trial := one(t, "inc-81-timeout-as-bad-connection", "bad-connection-one-row")
	database := openSQLite(t)
	if plan := engine.New(database, engine.Virtual, 1).Run(t.Context(), trial); !engine.EndsWithCommit(plan) {
		t.Fatal("the second commit and the end of the caller are both at 6 s, and no tie is seen")
	}
	if got := newWall(t, database, 40).Run(t.Context(), trial); got.Defect {
		t.Error(got.Broken)
	}
	for _, no := range []struct{ scenario, id, why string }{
		{"read-timeout", "feign-retryer-3", "commits at 12, 18 and 24 s and an end at 17 s"},
		{"hedged-write", "hedged-write", "the commit that the caller waited for, at 3 s, and a later one"},
	} {
		if plan := engine.New(database, engine.Virtual, 1).Run(t.Context(), one(t, no.scenario, no.id)); engine.EndsWithCommit(plan) {
			t.Errorf("%s: %s are taken for a tie", no.scenario, no.why)
		}
	}
}

// TestTooLong demands that nobody is made to wait for a trial of hours.
func TestTooLong(t *testing.T) {
	t.Parallel()
	trial := one(t, "read-timeout", "one-attempt")
	trial.Setup.Server.Processing = 25 * time.Hour
	var long *engine.TooLongError
	if err := newLab(t, engine.Wall, 20).Check(t.Context(), trial); !errors.As(err, &long) {
		t.Fatalf("25 hours at speed 20: %v, want a TooLongError", err)
	}
	if got, want := long.Error(), "25h0m0s of scenario time are 1h15m0s at this speed"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if err := newLab(t, engine.Wall, 1000).Check(t.Context(), trial); err != nil {
		t.Errorf("90 seconds of real time are too long: %v", err)
	}
}

// TestInterrupted stops a trial on each clock: it must say so, and leave nothing.
func TestInterrupted(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	trial := one(t, "read-timeout", "feign-retryer-3")
	for _, clock := range []string{engine.Virtual, engine.Wall} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("enough"))
		database, err := storage.Open(t.Context(), storage.SQLite, storage.Options{Jobs: 1})
		if err != nil {
			t.Fatal(err)
		}
		if obs := engine.New(database, clock, 1).Run(ctx, trial); obs.Broken != engine.ErrInterrupted.Error() {
			t.Errorf("%s: broken %q, want %q", clock, obs.Broken, engine.ErrInterrupted)
		}
		if err := database.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestNothingIsLeft looks for files and goroutines after trials on both clocks.
func TestNothingIsLeft(t *testing.T) {
	// Not parallel: it watches the temporary directory of the process.
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for _, clock := range []string{engine.Virtual, engine.Wall} {
		database, err := storage.Open(t.Context(), storage.SQLite, storage.Options{Jobs: 1})
		if err != nil {
			t.Fatal(err)
		}
		l := engine.New(database, clock, 100)
		for _, id := range []string{"feign-retryer-3", "key-claimed-first-409"} {
			if obs := l.Run(t.Context(), one(t, "read-timeout", id)); obs.Defect {
				t.Error(obs.Broken)
			}
			left, err := filepath.Glob(filepath.Join(dir, "*", "*"))
			// The file says whose directory it is; it goes with that.
			left = slices.DeleteFunc(left, func(path string) bool { return filepath.Base(path) == "owner" })
			if err != nil || len(left) > 0 {
				t.Errorf("%s: after a trial there are %v %v", clock, left, err)
			}
		}
		if err := database.Close(); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("after the labs are closed there are %v %v", left, err)
	}
}

// one returns one trial of a built-in scenario.
func one(t testing.TB, scenario, id string) scenarios.Trial {
	t.Helper()
	s, err := scenarios.Builtin(scenario)
	if err != nil {
		t.Fatal(err)
	}
	trials, err := s.Plan(scenarios.Options{Seed: 1, Only: id})
	if err != nil {
		t.Fatal(err)
	}
	return trials[0]
}
