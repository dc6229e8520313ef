package engine_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retrylab/internal/engine"
	"retrylab/internal/judge"
	"retrylab/internal/lab"
	"retrylab/internal/storage"
	"retrylab/scenarios"
	"retrylab/slowserver/store"
)

var update = flag.Bool("update", false, "write the golden journals")

// catalogue returns every trial of every built-in scenario.
func catalogue(t testing.TB) []scenarios.Trial {
	t.Helper()
	all, err := scenarios.Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	var trials []scenarios.Trial
	for _, s := range all {
		planned, err := s.Plan(scenarios.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		trials = append(trials, planned...)
	}
	return trials
}

func name(t scenarios.Trial) string { return t.Scenario + ":" + t.ID }

func newLab(t testing.TB, clock string, speed float64) *engine.Lab {
	t.Helper()
	return engine.New(openSQLite(t), clock, speed)
}

func openSQLite(t testing.TB) store.Database {
	t.Helper()
	return openStore(t, storage.SQLite)
}

// TestCatalogue runs every configuration on the virtual clock: its numbers must hold, and its
// journal must be the one that was read and found right.
func TestCatalogue(t *testing.T) {
	t.Parallel()
	l := newLabs(t)
	for _, trial := range catalogue(t) {
		t.Run(name(trial), func(t *testing.T) {
			t.Parallel()
			own := l.of(trial)
			if own == nil {
				t.Skip("this machine has no redis-server")
			}
			obs := own.Run(t.Context(), trial)
			r := judge.Decide(trial, obs)
			if r.Verdict != lab.AsExpected {
				t.Errorf("verdict %s: %s", r.Verdict, r.Why)
			}
			for _, c := range r.Checks {
				if !c.Held {
					t.Errorf("%s:%d: %s %s: expected %s, actual %s; %s", c.File, c.Line, c.Kind, c.Name, c.Expected, c.Actual, strings.Join(c.Evidence, "; "))
				}
			}
			compareGolden(t, filepath.Join("testdata", "journals", trial.Scenario, trial.ID+".txt"), shortened(journal(obs)))
		})
	}
}

// journal writes an observation down, one event a line.
func journal(obs lab.Observation) []byte {
	var b bytes.Buffer
	for _, e := range obs.Events {
		fmt.Fprintf(&b, "%12.6f  %-11s %s", e.At.Seconds(), e.Kind, e.Node)
		for _, part := range []struct {
			name string
			v    any
			set  bool
		}{
			{"", e.Path(), e.Path() != ""}, {"to ", e.Target, e.Target != ""}, {"status ", e.Status, e.Status != 0},
			{"key ", e.Key, e.Key != ""}, {"order ", e.Order, e.Order != 0}, {"wait ", e.Wait, e.Kind == lab.Retry},
			{"left ", e.Remaining.Round(time.Millisecond), e.Remaining != 0}, {"", e.Detail, e.Detail != ""},
		} {
			if part.set {
				fmt.Fprintf(&b, "  %s%v", part.name, part.v)
			}
		}
		b.WriteByte('\n')
	}
	for _, e := range obs.Effects {
		fmt.Fprintf(&b, "order %d of %s by %s at %s, key %q, amount %d, created %d ms\n", e.Order, e.Operation, e.Send, e.Node, e.Key, e.Amount, e.CreatedMs)
	}
	for _, o := range obs.Outcomes {
		fmt.Fprintf(&b, "%s ended %s (%s) at %d ms with %d orders\n", o.Operation, o.Belief, o.Reason, lab.Millis(o.DoneAt), o.Effects)
	}
	return b.Bytes()
}

// longJournal is how many lines of a journal are kept: of a longer one the first, and a hash of all.
const longJournal = 1000

// shortened is a journal as it is kept.
func shortened(journal []byte) []byte {
	lines := bytes.SplitAfter(journal, []byte("\n"))
	if len(lines) <= longJournal {
		return journal
	}
	sum := sha256.Sum256(journal)
	return fmt.Appendf(bytes.Join(lines[:longJournal/10], nil), "… %d lines in all, sha256 %x\n", len(lines)-1, sum[:8])
}

func compareGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; write it with -update, then read it", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the journal differs from %s (-want +got):\n%s", path, diff)
	}
}

// digest is a hash of everything that was seen and judged.
func digest(t testing.TB, trial scenarios.Trial, obs lab.Observation) string {
	t.Helper()
	data, err := json.Marshal(judge.Decide(trial, obs))
	if err != nil {
		t.Fatal(err)
	}
	// The journal has the times to the nanosecond, the result only to the millisecond.
	sum := sha256.Sum256(append(data, journal(obs)...))
	return fmt.Sprintf("%x", sum[:8])
}

// TestDeterminism runs every configuration again and again, beside others, and expects one hash.
func TestDeterminism(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		sameHash(t, newLabs(t), light(catalogue(t)), 2)
		return
	}
	sameHash(t, newLabs(t), light(catalogue(t)), 10)
	crowds := slices.DeleteFunc(catalogue(t), func(trial scenarios.Trial) bool { return !crowd(trial) })
	sameHash(t, newLabs(t), crowds, 2)
}

// TestDeterminismPostgres is TestDeterminism with everything on PostgreSQL.
func TestDeterminismPostgres(t *testing.T) {
	t.Parallel()
	trials, runs := light(catalogue(t)), 5
	if testing.Short() {
		trials, runs = everyFifth(trials), 2
	}
	sameHash(t, labsOver(t, engine.New(openStore(t, storage.Postgres), engine.Virtual, 1)), trials, runs)
}

// TestNoisyNeighbour is TestDeterminism on a machine that is busy with something else, with one
// processor and with more than there are: the machine must not decide.
func TestNoisyNeighbour(t *testing.T) {
	// Not parallel: it changes the number of processors for the whole process.
	for _, procs := range []int{1, runtime.NumCPU(), 8} {
		t.Run(fmt.Sprintf("GOMAXPROCS=%d", procs), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			defer load(runtime.NumCPU())()
			// A server's processes have to wait for the processors as well: of what is on a server,
			// trials in which one waits for another are enough.
			embedded := everyFifth(slices.DeleteFunc(light(catalogue(t)), func(trial scenarios.Trial) bool { return !onAny(trial) }))
			waiting := slices.DeleteFunc(catalogue(t), func(trial scenarios.Trial) bool {
				return trial.Scenario != "single-transaction" && trial.Scenario != "transaction-retry"
			})
			sameHash(t, newLabs(t), embedded, 2)
			sameHash(t, labsOver(t, engine.New(openStore(t, storage.Postgres), engine.Virtual, 1)), waiting, 2)
		})
	}
}

// light leaves out the trials of many operations: one of them costs as much as a hundred others.
func light(trials []scenarios.Trial) []scenarios.Trial {
	return slices.DeleteFunc(trials, crowd)
}

func crowd(trial scenarios.Trial) bool { return trial.Setup.Operations > 100 }

// everyFifth leaves four of five trials out.
func everyFifth(trials []scenarios.Trial) (out []scenarios.Trial) {
	for i := 0; i < len(trials); i += 5 {
		out = append(out, trials[i])
	}
	return out
}

// load keeps n processors busy until the function that it returns is called.
func load(n int) (stop func()) {
	var stopped atomic.Bool
	var loops sync.WaitGroup
	for range n {
		loops.Go(func() {
			for x := uint64(1); !stopped.Load(); x++ {
				x *= x
			}
		})
	}
	return func() {
		stopped.Store(true)
		loops.Wait()
	}
}

func sameHash(t *testing.T, l *labs, trials []scenarios.Trial, runs int) {
	t.Helper()
	hashes := make([][]string, len(trials))
	var mu sync.Mutex
	var workers sync.WaitGroup
	queue := make(chan int)
	for range 4 {
		workers.Go(func() {
			for i := range queue {
				own := l.of(trials[i])
				if own == nil {
					continue
				}
				h := digest(t, trials[i], own.Run(t.Context(), trials[i]))
				mu.Lock()
				hashes[i] = append(hashes[i], h)
				mu.Unlock()
			}
		})
	}
	for range runs {
		for i := range trials {
			queue <- i
		}
	}
	close(queue)
	workers.Wait()
	for i, seen := range hashes {
		slices.Sort(seen)
		if different := slices.Compact(slices.Clone(seen)); len(different) > 1 {
			t.Errorf("%s: %d different hashes in %d runs", name(trials[i]), len(different), runs)
		}
	}
}

// TestSeeds runs every configuration with other seeds: what a scenario shows must not be the luck
// of one.
func TestSeeds(t *testing.T) {
	t.Parallel()
	l := newLabs(t)
	seeds := []int64{2, 3, 77, 1 << 40}
	if testing.Short() {
		seeds = seeds[:1]
	}
	for i, seed := range seeds {
		trials := catalogue(t)
		if i > 0 || testing.Short() {
			trials = light(trials)
		}
		for _, trial := range trials {
			trial.Seed = seed
			own := l.of(trial)
			if own == nil {
				continue
			}
			if r := judge.Decide(trial, own.Run(t.Context(), trial)); r.Verdict != lab.AsExpected {
				t.Errorf("%s with seed %d: %s %s %+v", name(trial), seed, r.Verdict, r.Why, failed(r))
			}
		}
	}
}

func failed(r lab.Result) (out []string) {
	for _, c := range r.Checks {
		if !c.Held {
			out = append(out, fmt.Sprintf("%s: expected %s, actual %s", c.Name, c.Expected, c.Actual))
		}
	}
	return out
}

// TestStoresAgree runs every configuration that any database can run on both: counts and beliefs
// are the same, and so is the verdict.
func TestStoresAgree(t *testing.T) {
	t.Parallel()
	embedded := engine.New(openStore(t, storage.SQLite), engine.Virtual, 1)
	postgres := engine.New(openStore(t, storage.Postgres), engine.Virtual, 1)
	compared := 0
	trials := catalogue(t)
	if testing.Short() {
		trials = light(trials)
	}
	for _, trial := range trials {
		if !onAny(trial) {
			continue
		}
		compared++
		want, got := embedded.Run(t.Context(), trial), postgres.Run(t.Context(), trial)
		compareCounts(t, trial, want, got)
		if r := judge.Decide(trial, got); r.Verdict != lab.AsExpected || got.Store.Engine != storage.Postgres {
			t.Errorf("%s on %s: %s %s %v", name(trial), got.Store.Engine, r.Verdict, r.Why, failed(r))
		}
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
}
