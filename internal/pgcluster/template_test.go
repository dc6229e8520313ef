//go:build unix && !aix && !solaris

package pgcluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDamagedTemplate starts a cluster when there is a template that cannot serve: it must work,
// and leave one that does.
func TestDamagedTemplate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		damage func(made template) error
		root   bool // as root alone
	}{
		{name: "a file is gone", damage: func(made template) error {
			return os.Remove(filepath.Join(made.data(), "global", "pg_control"))
		}},
		{name: "a file is garbage", damage: func(made template) error {
			return garble(filepath.Join(made.data(), "global", "pg_control"))
		}},
		{name: "it is a file", damage: func(made template) error {
			return errors.Join(os.RemoveAll(made.dir), os.WriteFile(made.dir, nil, 0o600))
		}},
		{name: "it belongs to somebody else", damage: func(made template) error {
			return os.Chown(made.dir, 4711, 4711)
		}, root: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.root && os.Geteuid() != 0 {
				t.Skip("only root can give files away")
			}
			o := Options{Temp: room(t), Cache: filepath.Join(room(t), "cache")}
			made := lend(t, o)
			if err := test.damage(made); err != nil {
				t.Fatal(err)
			}
			c := start(t, o)
			if c.Timing().Cached {
				t.Error("the damaged template was used")
			}
			if got := ask(t, connect(t, c), "SELECT 'x'"); got != "x" {
				t.Errorf("got %q", got)
			}
			if c := start(t, o); !c.Timing().Cached {
				t.Error("the new template was not used")
			}
			if names := left(t, o.Cache); len(names) > 0 {
				t.Errorf("the cache still has %v", names)
			}
		})
	}
}

// lend puts a copy of the shared template into a cache, which takes less than making one.
func lend(t *testing.T, o Options) template {
	t.Helper()
	c := start(t, Options{Temp: o.Temp, Cache: shared})
	made := newTemplate(o.Cache, c.bin, c.version)
	if err := made.keep(t.Context(), newTemplate(shared, c.bin, c.version).data()); err != nil {
		t.Fatal(err)
	}
	return made
}

// garble overwrites a file with as many other bytes.
func garble(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strings.Repeat("x", len(content))), 0o600)
}

// TestUnusableTemplate looks at what is noticed without a server.
func TestUnusableTemplate(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(made template) error{
		"":                           func(template) error { return nil },
		"there is none":              func(made template) error { return os.RemoveAll(made.dir) },
		"a file is gone":             func(made template) error { return os.Remove(filepath.Join(made.data(), "PG_VERSION")) },
		"a file is cut short":        func(made template) error { return os.Truncate(filepath.Join(made.data(), "PG_VERSION"), 1) },
		"an empty directory is gone": func(made template) error { return os.Remove(filepath.Join(made.data(), "pg_twophase")) },
		"all files are gone":         func(made template) error { return os.RemoveAll(made.data()) },
		"its size is not known":      func(made template) error { return os.Remove(made.size()) },
		"a link is in it": func(made template) error {
			version := filepath.Join(made.data(), "PG_VERSION")
			return errors.Join(os.Rename(version, version+"~"), os.Symlink(version+"~", version))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := room(t)
			from := filepath.Join(base, "from")
			if err := os.MkdirAll(filepath.Join(from, "pg_twophase"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(from, "PG_VERSION"), []byte("15\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			made := newTemplate(filepath.Join(base, "cache"), Binaries{}, "15")
			if err := made.keep(t.Context(), from); err != nil {
				t.Fatal(err)
			}
			if err := damage(made); err != nil {
				t.Fatal(err)
			}
			err := made.copyTo(t.Context(), filepath.Join(base, "to"), account{})
			if (err == nil) != (name == "") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestTemplateName holds the name against what a cluster depends on.
func TestTemplateName(t *testing.T) {
	t.Parallel()
	b, version := Binaries{Dir: "/a"}, "15.18 (Debian)"
	base := newTemplate("/cache", b, version)
	if got := filepath.Base(base.dir); filepath.Dir(base.dir) != "/cache" || !strings.HasPrefix(got, "postgres-15.18-") || strings.ContainsAny(got, " ()/") {
		t.Errorf("got the name %s", base.dir)
	}
	if same := newTemplate("/cache", Binaries{Dir: "/a", Found: "PATH"}, version); same != base {
		t.Errorf("got %s and %s for one installation", base.dir, same.dir)
	}
	for _, other := range []template{
		newTemplate("/cache", Binaries{Dir: "/b"}, version),
		newTemplate("/cache", b, "15.18 (Ubuntu)"),
	} {
		if other.dir == base.dir {
			t.Errorf("two installations have one template, %s", base.dir)
		}
	}
}

func TestCopyTree(t *testing.T) {
	t.Parallel()
	base := room(t)
	from, to := filepath.Join(base, "from"), filepath.Join(base, "to")
	files := map[string]string{"a": "1", "empty": "", "d/e/f": strings.Repeat("x", 1<<20)}
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(from, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(from, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(from, "nothing"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(to, 0o755); err != nil { // what is there already is replaced
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(to, "old"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := copyTree(t.Context(), from, to, account{})
	if err != nil {
		t.Fatal(err)
	}
	if want := (tally{entries: 6, bytes: 1<<20 + 1}); got != want {
		t.Errorf("copied %v, want %v", got, want)
	}
	modes := map[string]os.FileMode{
		"": 0o700, "a": 0o600, "empty": 0o600, "d": 0o700, "d/e": 0o700, "d/e/f": 0o600, "nothing": 0o700,
	}
	found := map[string]os.FileMode{}
	err = filepath.WalkDir(to, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			found[strings.TrimPrefix(strings.TrimPrefix(path, to), "/")] = info.Mode().Perm()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(modes, found); diff != "" {
		t.Errorf("modes (-want +got):\n%s", diff)
	}
	for name, want := range files {
		if content, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(content) != want {
			t.Errorf("%s has %d bytes, want %d; %v", name, len(content), len(want), err)
		}
	}
}

func TestCopyTreeFails(t *testing.T) {
	t.Parallel()
	base := room(t)
	from, to := filepath.Join(base, "from"), filepath.Join(base, "to")
	if _, err := copyTree(t.Context(), from, to, account{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v of nothing", err)
	}
	if err := os.Mkdir(from, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(from, "a"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	reason := errors.New("no time left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	if _, err := copyTree(ctx, from, to, account{}); !errors.Is(err, reason) {
		t.Errorf("got %v in a context that has ended", err)
	}
	if err := os.Symlink("a", filepath.Join(from, "b")); err != nil {
		t.Fatal(err)
	}
	if _, err := copyTree(t.Context(), from, to, account{}); err == nil || !strings.Contains(err.Error(), "neither a file nor a directory") {
		t.Errorf("got %v of a link", err)
	}
}
