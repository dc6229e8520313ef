//go:build unix && !aix && !solaris

package privatedir

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// helper is a process that is to be killed.
func helper(parent string) int {
	d, err := New(parent, prefix)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(d.Path())
	io.Copy(io.Discard, os.Stdin) // which ends with the test, should that forget to kill
	return 1
}

// private makes a directory that is removed at the end of the test.
func private(t *testing.T, parent string) *Dir {
	t.Helper()
	d, err := New(parent, prefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Remove(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// abandon makes a directory as a process leaves it that was killed, and returns its path.
func abandon(t *testing.T, parent string) string {
	t.Helper()
	d, err := New(parent, prefix)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(d.path, "some", "thing"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := d.release(); err != nil {
		t.Fatal(err)
	}
	return d.path
}

// sweep sweeps until so many directories have been removed. A lock that this process has given up
// may live on for a moment, in a child that another test has forked and that is not yet a program.
func sweep(t *testing.T, parent string, want int) (removed []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		paths, err := Sweep(parent, prefix, nil)
		if err != nil {
			t.Fatal(err)
		}
		if removed = append(removed, paths...); len(removed) >= want {
			return removed
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%d directories were swept, want %d", len(removed), want)
		}
	}
}

func TestPrivate(t *testing.T) {
	t.Parallel()
	d := private(t, t.TempDir())
	for name, want := range map[string]os.FileMode{"": 0o700, ownerFile: 0o600} {
		info, err := os.Stat(filepath.Join(d.Path(), name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%q has mode %v, want %v", name, got, want)
		}
	}
	text, err := os.ReadFile(filepath.Join(d.Path(), ownerFile))
	if want := fmt.Sprintf("process %d\n", os.Getpid()); string(text) != want || err != nil {
		t.Errorf("the owner is %q, %v; want %q", text, err, want)
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	elsewhere := abandon(t, t.TempDir())
	alive := private(t, parent)
	kept := []string{alive.Path(), elsewhere}
	add := func(name string, owner bool) string {
		path := filepath.Join(parent, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if owner {
			if err := os.WriteFile(filepath.Join(path, ownerFile), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		kept = append(kept, path)
		return path
	}
	add(prefix+"1", false)            // may be anybody's
	add("1", true)                    // another program's
	add(prefix, true)                 // no name of ours
	add(prefix+"other-1", true)       // that of a longer prefix
	claimed := add(prefix+"2", false) // is about to be claimed
	if err := os.WriteFile(filepath.Join(claimed, ownerFile+".new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if foreign := add(prefix+"3", os.Geteuid() == 0); os.Geteuid() == 0 {
		if err := os.Chown(foreign, 4711, 4711); err != nil {
			t.Fatal(err)
		}
	}
	link, file := filepath.Join(parent, prefix+"4"), filepath.Join(parent, prefix+"5")
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	kept = append(kept, link, file)
	dead := abandon(t, parent)

	if removed := sweep(t, parent, 1); !slices.Equal(removed, []string{dead}) || !gone(dead) {
		t.Errorf("removed %v, want %s", removed, dead)
	}
	for _, path := range kept {
		if gone(path) {
			t.Errorf("%s was removed", path)
		}
	}
}

// TestSweepKilled kills a process in a way that lets it do nothing, and looks at its directory
// before and after.
func TestSweepKilled(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	owner := exec.CommandContext(t.Context(), os.Args[0])
	owner.Env = append(os.Environ(), asHelper+"="+parent)
	owner.Stderr = os.Stderr
	if _, err := owner.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	defer owner.Wait()
	defer owner.Process.Kill()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimSpace(line)
	if removed, err := Sweep(parent, prefix, nil); err != nil || len(removed) > 0 || gone(path) {
		t.Fatalf("swept %v of a process that is alive, %v", removed, err)
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	owner.Wait()
	if gone(path) {
		t.Fatal("somebody has removed the directory already")
	}
	// The lock has gone with it, at once.
	if removed, err := Sweep(parent, prefix, nil); err != nil || !slices.Equal(removed, []string{path}) || !gone(path) {
		t.Errorf("removed %v, %v; want %s", removed, err, path)
	}
}

// TestSweepsAtOnce counts what many sweepers end and remove: each directory once, and none of those
// that are made and removed meanwhile.
func TestSweepsAtOnce(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	const directories = 50
	for range directories {
		abandon(t, parent)
	}
	var mu sync.Mutex
	ended := map[string]int{}
	var removed []string
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			paths, err := Sweep(parent, prefix, func(path string) error {
				mu.Lock()
				defer mu.Unlock()
				ended[path]++
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			removed = append(removed, paths...)
		})
		group.Go(func() {
			d, err := New(parent, prefix)
			if err != nil {
				t.Error(err)
				return
			}
			if gone(filepath.Join(d.Path(), ownerFile)) {
				t.Errorf("%s was swept", d.Path())
			}
			if err := d.Remove(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for path, times := range ended {
		if times != 1 {
			t.Errorf("%s was ended %d times", path, times)
		}
	}
	if len(removed) < directories {
		removed = append(removed, sweep(t, parent, directories-len(removed))...)
	}
	if len(removed) != directories || len(slices.Compact(slices.Sorted(slices.Values(removed)))) != directories {
		t.Errorf("%d directories were removed %d times", directories, len(removed))
	}
}

// TestSweepEndFails leaves a directory alone in which something still runs, for the next sweep.
func TestSweepEndFails(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	dead := []string{abandon(t, parent), abandon(t, parent)}
	runs := errors.New("it still runs")
	var removed []string
	for refused := false; !refused || len(removed) == 0; { // see sweep
		paths, err := Sweep(parent, prefix, func(path string) error {
			if path == dead[0] {
				return runs
			}
			return nil
		})
		if err != nil && !errors.Is(err, runs) {
			t.Fatal(err)
		}
		refused = refused || err != nil
		removed = append(removed, paths...)
	}
	if !slices.Equal(removed, dead[1:]) || gone(filepath.Join(dead[0], "some", "thing")) {
		t.Errorf("removed %v, want %v and nothing of %s", removed, dead[1:], dead[0])
	}
	if removed := sweep(t, parent, 1); !slices.Equal(removed, dead[:1]) {
		t.Errorf("removed %v, want %v", removed, dead[:1])
	}
}

// TestRemoveLater keeps what cannot be removed until it can, known as its owner's.
func TestRemoveLater(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root can remove anything")
	}
	parent := t.TempDir()
	d := private(t, parent)
	stuck := filepath.Join(d.Path(), "stuck")
	if err := os.MkdirAll(filepath.Join(stuck, "below"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(stuck, 0o500); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(); err == nil {
		t.Error("it was removed")
	}
	if removed, err := Sweep(parent, prefix, nil); len(removed) > 0 || err != nil {
		t.Errorf("swept %v, %v", removed, err)
	}
	if err := os.Chmod(stuck, 0o700); err != nil {
		t.Fatal(err)
	}
	if gone(filepath.Join(d.Path(), ownerFile)) {
		t.Error("the owner is not known any more")
	}
	if err := d.Remove(); err != nil || !gone(d.Path()) {
		t.Errorf("it is removed: %v", err)
	}
}

func BenchmarkSweep(b *testing.B) {
	for _, others := range []int{0, 1000} {
		b.Run(fmt.Sprintf("beside %d others", others), func(b *testing.B) {
			parent := b.TempDir()
			for k := range others {
				if err := os.WriteFile(filepath.Join(parent, fmt.Sprint("file-", k)), nil, 0o600); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if _, err := Sweep(parent, prefix, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDir(b *testing.B) {
	parent := b.TempDir()
	for b.Loop() {
		d, err := New(parent, prefix)
		if err == nil {
			err = d.Remove()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
