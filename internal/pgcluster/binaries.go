package pgcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// oldest is the first major version whose initdb knows all of its flags here.
const oldest = 14

// Binaries are the programs of an installed PostgreSQL.
type Binaries struct {
	Dir   string // of initdb and postgres
	Found string // how they were found, for people
}

// programs are what must be there for a cluster.
var programs = []string{"initdb", "postgres"}

// NotFoundError says that no PostgreSQL was found, and where it was looked for.
type NotFoundError struct{ Looked []string }

func (e *NotFoundError) Error() string {
	return "no PostgreSQL server (initdb and postgres) found; looked at:\n  " + strings.Join(e.Looked, "\n  ")
}

// Find looks for the programs of PostgreSQL: in the explicit directory and nowhere else if there is
// one; otherwise where pg_config says, on the PATH, and where systems usually install them, the
// highest version first. When there are none, the error is a [*NotFoundError], unless a directory
// was named.
func Find(ctx context.Context, explicit string) (Binaries, error) {
	return places{
		look: exec.LookPath,
		ask: func(program string) (string, error) {
			out, err := exec.CommandContext(ctx, program, "--bindir").Output()
			return strings.TrimSpace(string(out)), err
		},
		usual: usual,
	}.find(explicit)
}

// usual are the directories that installers use, with an asterisk for the major version.
var usual = []string{
	"/usr/lib/postgresql/*/bin",          // Debian
	"/usr/pgsql-*/bin",                   // Red Hat and others, from postgresql.org
	"/opt/homebrew/opt/postgresql@*/bin", // Homebrew
	"/usr/local/opt/postgresql@*/bin",    // Homebrew on Intel
	"/Library/PostgreSQL/*/bin",          // the installer for macOS
	`C:\Program Files\PostgreSQL\*\bin`,  // the installer for Windows
}

// places are where a machine may keep its PostgreSQL.
type places struct {
	look  func(program string) (string, error)  // on the PATH
	ask   func(pgConfig string) (string, error) // for the directory of its programs
	usual []string
}

func (p places) find(explicit string) (Binaries, error) {
	if explicit != "" {
		dir, err := complete(explicit)
		if err != nil {
			return Binaries{}, fmt.Errorf("no PostgreSQL in the directory that was named for it: %w", err)
		}
		return Binaries{Dir: dir, Found: "named"}, nil
	}
	var looked []string
	for _, in := range []func() (Binaries, error){p.byConfig, p.onPath} {
		b, err := in()
		if err == nil {
			return b, nil
		}
		looked = append(looked, err.Error())
	}
	for _, pattern := range p.usual {
		for _, dir := range newestFirst(pattern) {
			if dir, err := complete(dir); err == nil {
				return Binaries{Dir: dir, Found: pattern}, nil
			}
		}
		looked = append(looked, pattern)
	}
	return Binaries{}, &NotFoundError{Looked: looked}
}

// byConfig asks pg_config, which development packages install without a server.
func (p places) byConfig() (Binaries, error) {
	const by = "pg_config --bindir"
	program, err := p.look("pg_config")
	if err != nil {
		return Binaries{}, fmt.Errorf("%s: pg_config is not on the PATH", by)
	}
	dir, err := p.ask(program)
	if err == nil {
		dir, err = complete(dir)
	}
	if err != nil {
		return Binaries{}, fmt.Errorf("%s: %w", by, err)
	}
	return Binaries{Dir: dir, Found: by}, nil
}

// onPath follows the programs on the PATH to where they really are, since they look for their other
// files from there.
func (p places) onPath() (Binaries, error) {
	for _, name := range programs {
		program, err := p.look(name)
		if err != nil {
			return Binaries{}, fmt.Errorf("PATH: no %s", name)
		}
		if program, err = filepath.EvalSymlinks(program); err != nil {
			return Binaries{}, fmt.Errorf("PATH: %w", err)
		}
		if dir, err := complete(filepath.Dir(program)); err == nil {
			return Binaries{Dir: dir, Found: "PATH"}, nil
		}
	}
	return Binaries{}, errors.New("PATH: initdb and postgres are not from one directory")
}

// complete returns a directory as a real, absolute path if all programs are in it.
func complete(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	for _, name := range programs {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return "", fmt.Errorf("%s has no program %s", dir, name)
		}
	}
	return dir, nil
}

// newestFirst lists the directories that a pattern stands for, by major version.
func newestFirst(pattern string) []string {
	before, after, _ := strings.Cut(pattern, "*")
	dirs, _ := filepath.Glob(pattern) // fails for a malformed pattern alone
	major := func(dir string) float64 {
		version, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimPrefix(dir, before), after), 64)
		return version // "9.6" comes after "10"; what is no number comes last
	}
	slices.SortFunc(dirs, func(a, b string) int { return cmp.Compare(major(b), major(a)) })
	return dirs
}

// version asks postgres for its version and refuses one that is too old.
func (b Binaries) version(ctx context.Context, a account) (string, error) {
	out, err := b.output(ctx, a, nil, "postgres", "--version")
	if err != nil {
		return "", err
	}
	version := strings.TrimPrefix(strings.TrimSpace(out), "postgres (PostgreSQL) ")
	digits := strings.IndexFunc(version+".", func(r rune) bool { return r < '0' || r > '9' })
	if major, err := strconv.Atoi(version[:digits]); err != nil || major < oldest {
		return "", fmt.Errorf("%s is version %q; %d or newer is needed", filepath.Join(b.Dir, "postgres"), version, oldest)
	}
	return version, nil
}

// command prepares a program: it runs as an account and in a process group of its own, so that an
// interrupt at the terminal is for the lab alone to act on, and it sees nothing of the environment
// or the working directory, which the account might not even be allowed to enter.
func (b Binaries) command(ctx context.Context, a account, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(b.Dir, name), args...)
	cmd.Dir = string(filepath.Separator)
	cmd.Env = []string{"LC_ALL=C", "PATH=" + strings.Join([]string{b.Dir, "/usr/bin", "/bin"}, string(os.PathListSeparator))}
	cmd.SysProcAttr = attributes(a)
	// initdb has children, which write into the directory that is removed next.
	cmd.Cancel = func() error { return killGroup(cmd.Process) }
	cmd.WaitDelay = 5 * time.Second // for whoever else holds its standard error
	return cmd
}

// output runs a program to its end and returns what it printed.
func (b Binaries) output(ctx context.Context, a account, input io.Reader, name string, args ...string) (string, error) {
	cmd := b.command(ctx, a, name, args...)
	var out, complaint strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, &out, &complaint
	// See launch.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("run %s: %w", name, context.Cause(ctx))
	case err != nil:
		return "", failure("run "+name, a, err, complaint.String())
	}
	return out.String(), nil
}
