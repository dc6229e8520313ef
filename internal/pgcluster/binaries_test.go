//go:build unix && !aix && !solaris

package pgcluster

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// machine is a directory that stands for a machine: what is on its PATH and where its pg_config
// says that programs are.
type machine struct {
	root     string
	path     []string
	pgConfig string // "" when there is none
}

func (m machine) places() places {
	return places{
		look: func(name string) (string, error) {
			if name == "pg_config" && m.pgConfig != "" {
				return "pg_config", nil
			}
			for _, dir := range m.path {
				if file, err := exec.LookPath(filepath.Join(m.root, dir, name)); err == nil {
					return file, nil
				}
			}
			return "", exec.ErrNotFound
		},
		ask: func(string) (string, error) {
			if m.pgConfig == "broken" {
				return "", errors.New("exit status 1")
			}
			return filepath.Join(m.root, m.pgConfig), nil
		},
		usual: []string{filepath.Join(m.root, "lib/*/bin"), filepath.Join(m.root, "opt/postgresql@*/bin")},
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		install  []string // directories with both programs, or "dir: program"
		link     [2]string
		path     []string
		pgConfig string
		explicit string
		want     string // the directory, or words of the error
		found    string
	}{
		{
			name: "the named directory before all others", install: []string{"mine", "config", "path"},
			explicit: "mine", path: []string{"path"}, pgConfig: "config", want: "mine", found: "named",
		},
		{
			name: "a named directory and no other", install: []string{"config", "path", "lib/15/bin", "mine: initdb"},
			explicit: "mine", path: []string{"path"}, pgConfig: "config",
			want: "no PostgreSQL in the directory that was named for it: ROOT/mine has no program postgres",
		},
		{
			name: "a named directory that does not exist", explicit: "nowhere",
			want: "no PostgreSQL in the directory that was named for it: lstat ROOT/nowhere: no such file or directory",
		},
		{
			name: "pg_config before PATH", install: []string{"config", "path", "lib/15/bin"},
			path: []string{"path"}, pgConfig: "config", want: "config", found: "pg_config --bindir",
		},
		{
			name: "pg_config without a server", install: []string{"config: initdb", "path", "lib/15/bin"},
			path: []string{"path"}, pgConfig: "config", want: "path", found: "PATH",
		},
		{
			name: "pg_config that fails", install: []string{"path"},
			path: []string{"path"}, pgConfig: "broken", want: "path", found: "PATH",
		},
		{
			name: "links on PATH lead to the programs", install: []string{"cellar/15/bin"},
			link: [2]string{"bin", "cellar/15/bin"}, path: []string{"bin"}, want: "cellar/15/bin", found: "PATH",
		},
		{
			name: "PATH before the usual places", install: []string{"path", "lib/15/bin"},
			path: []string{"empty", "path"}, want: "path", found: "PATH",
		},
		{
			name: "the highest version", install: []string{"lib/9.6/bin", "lib/10/bin", "lib/9/bin", "opt/postgresql@17/bin"},
			want: "lib/10/bin", found: "ROOT/lib/*/bin",
		},
		{
			name: "the highest version that is complete", install: []string{"lib/17/bin: postgres", "lib/15/bin"},
			want: "lib/15/bin", found: "ROOT/lib/*/bin",
		},
		{
			name: "the next usual place", install: []string{"opt/postgresql@14/bin"},
			want: "opt/postgresql@14/bin", found: "ROOT/opt/postgresql@*/bin",
		},
		{
			name: "nothing anywhere", path: []string{"path"},
			want: "no PostgreSQL server (initdb and postgres) found; looked at:\n" +
				"  pg_config --bindir: pg_config is not on the PATH\n" +
				"  PATH: no initdb\n" +
				"  ROOT/lib/*/bin\n" +
				"  ROOT/opt/postgresql@*/bin",
		},
		{
			name: "half of it on PATH", install: []string{"path: initdb"}, path: []string{"path"}, pgConfig: "config",
			want: "no PostgreSQL server (initdb and postgres) found; looked at:\n" +
				"  pg_config --bindir: lstat ROOT/config: no such file or directory\n" +
				"  PATH: no postgres\n" +
				"  ROOT/lib/*/bin\n" +
				"  ROOT/opt/postgresql@*/bin",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			root := room(t)
			for _, where := range test.install {
				dir, names := where, programs
				if d, name, ok := strings.Cut(where, ": "); ok {
					dir, names = d, []string{name}
				}
				install(t, filepath.Join(root, dir), names...)
			}
			if from := test.link[0]; from != "" {
				link(t, root, from, test.link[1])
			}
			explicit := test.explicit
			if explicit != "" {
				explicit = filepath.Join(root, explicit)
			}
			got, err := machine{root: root, path: test.path, pgConfig: test.pgConfig}.places().find(explicit)
			if err != nil {
				if got := strings.ReplaceAll(err.Error(), root, "ROOT"); got != test.want {
					t.Errorf("got the error\n%s\nwant\n%s", got, test.want)
				}
				var none *NotFoundError
				if errors.As(err, &none) != (test.explicit == "") {
					t.Errorf("the error is a %T", err)
				}
				return
			}
			want := Binaries{Dir: filepath.Join(root, test.want), Found: strings.ReplaceAll(test.found, "ROOT", root)}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// install puts programs into a directory.
func install(t *testing.T, dir string, names ...string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		program(t, filepath.Join(dir, name), "exit 1")
	}
}

// link links the programs of one directory into another, one by one.
func link(t *testing.T, root, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(root, from), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range programs {
		if err := os.Symlink(filepath.Join(root, to, name), filepath.Join(root, from, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFindOnThisMachine(t *testing.T) {
	t.Parallel()
	b := installed(t)
	again, err := Find(t.Context(), b.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if again.Dir != b.Dir {
		t.Errorf("named %s, got %s", b.Dir, again.Dir)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)": "15.18 (Debian 15.18-0+deb12u1)",
		"postgres (PostgreSQL) 14.2":                           "14.2",
		"postgres (PostgreSQL) 19devel":                        "19devel",
		"postgres (PostgreSQL) 13.9":                           `error: DIR/postgres is version "13.9"; 14 or newer is needed`,
		"mongod 8":                                             `error: DIR/postgres is version "mongod 8"; 14 or newer is needed`,
		"":                                                     `error: DIR/postgres is version ""; 14 or newer is needed`,
	} {
		t.Run(said, func(t *testing.T) {
			t.Parallel()
			dir := room(t)
			program(t, filepath.Join(dir, "postgres"), "echo '"+said+"'")
			got, err := Binaries{Dir: dir}.version(context.WithoutCancel(t.Context()), account{})
			if err != nil {
				got = "error: " + strings.ReplaceAll(err.Error(), dir, "DIR")
			}
			if got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}
