package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"retrylab/slowserver/store"
	"retrylab/slowserver/store/storetest"
)

func openIn(t *testing.T, dir string) *Store {
	t.Helper()
	database, err := New(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := database.open("test", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sit(t *testing.T) store.Seat {
	t.Helper()
	database, err := New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	seat, err := database.Seat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return seat
}

func TestStore(t *testing.T)        { storetest.Exercise(t, sit) }
func TestStoreVirtual(t *testing.T) { storetest.ExerciseVirtual(t, sit) }

// files lists what is in a directory.
func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestCloseLeavesNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	database, err := New(dir)
	if err != nil {
		t.Fatal(err)
	}
	if left := files(t, dir); len(left) > 0 {
		t.Errorf("the template left %q", left)
	}
	var stores []*Store
	for _, name := range []string{"trial-1", "trial-2"} {
		s, err := database.open(name, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, s)
		tx, err := s.Begin(t.Context(), "test", store.TxOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Order(t.Context(), store.Order{Operation: "op-1", Amount: 1}); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Contains(files(t, dir), "trial-1.db-wal") {
		t.Errorf("no log is written beside the database: %q", files(t, dir))
	}
	if err := stores[0].Close(); err != nil {
		t.Error(err)
	}
	for _, name := range files(t, dir) {
		if !strings.HasPrefix(name, "trial-2.db") {
			t.Errorf("closed, and still there: %s", name)
		}
	}
	if n, err := stores[1].Count(t.Context(), "op-1"); err != nil || n != 1 {
		t.Errorf("the other store has %d orders, %v; want 1", n, err)
	}
	if err := stores[1].Close(); err != nil {
		t.Error(err)
	}
	if left := files(t, dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestCloseUnderATransaction is what happens to a trial that is broken off.
func TestCloseUnderATransaction(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openIn(t, dir)
	tx, err := s.Begin(t.Context(), "open", store.TxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Order(t.Context(), store.Order{Operation: "op-1", Amount: 1}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
	if left := files(t, dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestDirectoriesThatDoNot(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	readOnly := filepath.Join(t.TempDir(), "read-only")
	if err := os.Mkdir(readOnly, 0o500); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(t.TempDir(), "missing"), readOnly} {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			if dir == readOnly && os.Geteuid() == 0 {
				t.Skip("root may write anywhere")
			}
			_, err := New(dir)
			if err == nil || !strings.Contains(err.Error(), "open store sqlite in "+dir) {
				t.Errorf("the template: %v; want an error that names the store and the directory", err)
			}
			_, err = (&Database{dir: dir}).open("test", store.Options{})
			var path *os.PathError
			if !errors.As(err, &path) || !strings.HasPrefix(err.Error(), "open store sqlite: ") || filepath.Dir(path.Path) != dir {
				t.Errorf("a store: %v; want an error that names the store and the file", err)
			}
		})
	}
}

// TestPathOfAnyCharacters opens a store where a URI would end, or turn into another, if its path
// were not escaped.
func TestPathOfAnyCharacters(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a b?c=d#e%41&f")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := openIn(t, dir)
	if !slices.Contains(files(t, dir), "test.db") {
		t.Errorf("the database is not in its directory: %q", files(t, dir))
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left := files(t, dir); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestInfo(t *testing.T) {
	t.Parallel()
	d, err := New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.open("test", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var version string
	if err := s.db.QueryRow("SELECT sqlite_version()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	got := d.Info()
	if got.Engine != "sqlite" || got.Version != version || got.Mode != "embedded" || got.ChosenBy != "" {
		t.Errorf("%+v, want sqlite %s embedded, chosen by nobody", got, version)
	}
	for name, want := range map[string]string{"journal_mode": "wal", "synchronous": "normal", "writers": "one"} {
		if got.Settings[name] != want {
			t.Errorf("%s is %q, want %q", name, got.Settings[name], want)
		}
	}
	var n int
	if err := s.db.QueryRow(got.Counting, "op-1").Scan(&n); err != nil || n != 0 {
		t.Errorf("the statement that counts: %d, %v", n, err)
	}
}

func TestUnsupported(t *testing.T) {
	t.Parallel()
	s := openIn(t, t.TempDir())
	defer s.Close()
	for _, o := range []store.TxOptions{{Isolation: store.ReadCommitted}, {LockTimeout: time.Second}, {IdleTimeout: time.Second}} {
		if _, err := s.Begin(t.Context(), "test", o); !errors.Is(err, store.ErrUnsupported) {
			t.Errorf("%+v: %v, want %v", o, err, store.ErrUnsupported)
		}
	}
}

// TestYield makes sure that the hand-over of the writer lock takes its moment, and that nobody
// pays for it who did not wait.
func TestYield(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		database, err := New(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		refused := errors.New("not now")
		var asked []string
		s, err := database.open("test", store.Options{Yield: func(_ context.Context, id string) error {
			asked = append(asked, id)
			if id == "refused" {
				return refused
			}
			time.Sleep(time.Millisecond)
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		first, err := s.Begin(t.Context(), "first", store.TxOptions{})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		var waiters sync.WaitGroup
		for _, id := range []string{"refused", "second"} {
			waiters.Go(func() {
				tx, err := s.Begin(t.Context(), id, store.TxOptions{})
				if id == "refused" {
					if err != refused {
						t.Errorf("began with %v, want %v", err, refused)
					}
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				if waited := time.Since(start); waited != time.Second+time.Millisecond {
					t.Errorf("%s began after %s, want 1.001s", id, waited)
				}
				if err := tx.Rollback(); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		time.Sleep(time.Second)
		if err := first.Rollback(); err != nil {
			t.Error(err)
		}
		waiters.Wait()
		if want := []string{"refused", "second"}; !slices.Equal(asked, want) {
			t.Errorf("yielded for %q, want %q", asked, want)
		}
	})
}

// TestAttach has two connections to one file, as two processes have, one of which leaves it there.
func TestAttach(t *testing.T) {
	t.Parallel()
	database, err := New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	owner, err := database.open("test", store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	path, ok := strings.CutPrefix(owner.Address(), "sqlite:")
	if !ok {
		t.Fatalf("the address is %q", owner.Address())
	}
	guest, err := Attach(path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	changed := guest.Changed()
	first, err := owner.Begin(t.Context(), "one", store.TxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	began := make(chan error, 1)
	go func() { // waits for the owner's transaction, in SQLite itself
		second, err := guest.Begin(t.Context(), "two", store.TxOptions{})
		if err == nil {
			_, err = second.Order(t.Context(), store.Order{Operation: "op-2", Send: "two", Node: "order-2", Amount: 1})
		}
		if err == nil {
			err = second.Commit()
		}
		began <- err
	}()
	if _, err := first.Order(t.Context(), store.Order{Operation: "op-1", Send: "one", Node: "order-1", Amount: 1}); err != nil {
		t.Fatal(err)
	}
	if err := first.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-began; err != nil {
		t.Errorf("the other process: %v", err)
	}
	select {
	case <-changed:
	default:
		t.Error("its own commit is not announced")
	}
	changed = guest.Changed()
	guest.Announce()
	<-changed
	if err := guest.Close(); err != nil {
		t.Error(err)
	}
	for _, operation := range []string{"op-1", "op-2"} {
		if n, err := owner.Count(t.Context(), operation); n != 1 || err != nil {
			t.Errorf("after the other has closed it, %s has %d orders, %v", operation, n, err)
		}
	}
	if err := owner.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Attach(path, store.Options{}); err == nil {
		t.Error("a file that is gone was attached")
	}
	if err := database.Close(); err != nil {
		t.Error(err)
	}
}

// TestFirstTogether: the first statements on a new file come at once. SQLite makes the index of its log with the
// first, and turns others away meanwhile, who on the virtual clock do not wait.
func TestFirstTogether(t *testing.T) {
	t.Parallel()
	database, err := New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		s, err := database.open(fmt.Sprintf("trial-%d", i), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		gate := make(chan struct{})
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				<-gate
				if _, err := s.Count(t.Context(), "op-1"); err != nil {
					t.Error(err)
				}
			})
		}
		close(gate)
		group.Wait()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
