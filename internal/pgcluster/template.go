package pgcluster

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"retrylab/internal/privatedir"
	"retrylab/internal/vtime"
)

// initFlags are those of initdb, without the directory. Segments of the log are small so that
// copies are.
var initFlags = []string{
	"-U", superuser, "-A", "trust", "--locale=C", "-E", "UTF8",
	"--no-sync", "--no-instructions", "--wal-segsize=1",
}

// trim drops the databases that nobody connects to: they are two thirds of the files of a cluster.
const trim = `UPDATE pg_database SET datistemplate = false, datallowconn = true
DROP DATABASE template0
DROP DATABASE template1
`

// initdb makes a cluster.
func (b Binaries) initdb(ctx context.Context, data string, a account) error {
	if err := newDataDirectory(data, a); err != nil {
		return err
	}
	if _, err := b.output(ctx, a, nil, "initdb", append([]string{"-D", data}, initFlags...)...); err != nil {
		return err
	}
	_, err := b.output(ctx, a, strings.NewReader(trim),
		"postgres", "--single", "-D", data, "-c", "exit_on_error=on", "-c", "fsync=off", database)
	return err
}

// newDataDirectory makes an empty directory for a server's files, instead of what may be there.
func newDataDirectory(data string, a account) error {
	if err := os.RemoveAll(data); err != nil {
		return err
	}
	if err := os.Mkdir(data, 0o700); err != nil {
		return fileFailure(a, err)
	}
	return a.give(data)
}

// template is a cluster that later runs copy, since making one takes ten times as long. The zero
// value is that of a machine where none can be kept.
type template struct {
	cache string // the directory of all
	dir   string // its own
}

// newTemplate names the template for what a cluster depends on. There may be none yet.
func newTemplate(cache string, b Binaries, version string) template {
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return template{}
		}
		cache = filepath.Join(user, "retrylab")
	}
	// Another user cannot read our template, and we would not trust theirs.
	depends := fmt.Sprintf("%q", slices.Concat(
		[]string{b.Dir, version, runtime.GOOS, runtime.GOARCH, strconv.Itoa(os.Geteuid()), trim}, initFlags))
	hash := sha256.Sum256([]byte(depends))
	number, _, _ := strings.Cut(version, " ")
	return template{cache: cache, dir: filepath.Join(cache, fmt.Sprintf("postgres-%s-%x", number, hash[:8]))}
}

// A template's own directory has the cluster in one directory and, beside it, a file that says how
// large that is: cleaners of caches remove single files.
func (t template) data() string { return filepath.Join(t.dir, "data") }
func (t template) size() string { return filepath.Join(t.dir, "size") }

// copyTo copies the template into a data directory.
func (t template) copyTo(ctx context.Context, data string, a account) error {
	if t.dir == "" {
		return fs.ErrNotExist
	}
	info, err := os.Lstat(t.dir)
	if err != nil {
		return err
	}
	if !ours(info) {
		return fmt.Errorf("%s is not ours", t.dir)
	}
	want, err := os.ReadFile(t.size())
	if err != nil {
		return err
	}
	got, err := copyTree(ctx, t.data(), data, a)
	if err != nil {
		return err
	}
	if got.String() != string(want) {
		return fmt.Errorf("%s has %s of %s", t.dir, got, want)
	}
	return nil
}

// keep makes the template of a cluster. If somebody else does it meanwhile, theirs is as good.
func (t template) keep(ctx context.Context, data string) error {
	return t.beside(ctx, func(work string) error {
		made := template{dir: filepath.Join(work, "template")}
		if err := os.Mkdir(made.dir, 0o700); err != nil {
			return err
		}
		copied, err := copyTree(ctx, data, made.data(), account{})
		if err != nil {
			return err
		}
		if err := os.WriteFile(made.size(), []byte(copied.String()), 0o600); err != nil {
			return err
		}
		if err := os.Rename(made.dir, t.dir); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	})
}

// discard removes the template, in one step for everybody else. If it cannot, whoever tries to keep
// a new one gets to know.
func (t template) discard(ctx context.Context) {
	if _, err := os.Lstat(t.dir); err != nil {
		return
	}
	t.beside(ctx, func(work string) error { return os.Rename(t.dir, filepath.Join(work, "damaged")) })
}

// beside calls f with a directory in the cache, from where renaming is one step, and removes it
// afterwards. Should the process die, it is swept as a cluster's is.
func (t template) beside(ctx context.Context, f func(work string) error) error {
	if t.dir == "" {
		return nil
	}
	if err := os.MkdirAll(t.cache, 0o700); err != nil {
		return err
	}
	Sweep(ctx, t.cache) // What cannot be swept is not in the way.
	work, err := privatedir.New(t.cache, prefix)
	if err != nil {
		return err
	}
	return errors.Join(f(work.Path()), work.Remove())
}

// tally is what was copied.
type tally struct {
	entries int
	bytes   int64
}

func (t tally) String() string { return fmt.Sprintf("%d entries, %d bytes", t.entries, t.bytes) }

// copiers are how many files are copied at a time.
const copiers = 4

// copyTree copies a directory with all that is in it, into one that is made anew, and gives the
// copy to an account.
func copyTree(ctx context.Context, from, to string, a account) (tally, error) {
	if err := newDataDirectory(to, a); err != nil {
		return tally{}, err
	}
	var files []string
	var copied tally
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == from {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		copied.entries++
		switch {
		case entry.Type().IsRegular():
			files = append(files, name)
			return nil
		case entry.IsDir():
			if err := os.Mkdir(filepath.Join(to, name), 0o700); err != nil {
				return fileFailure(a, err)
			}
			return a.give(filepath.Join(to, name))
		}
		return fmt.Errorf("%s is neither a file nor a directory", path)
	})
	if err != nil {
		return tally{}, err
	}
	copied.bytes, err = copyFiles(ctx, files, from, to, a)
	return copied, err
}

// copyFiles copies files from one directory to another, several at a time, and returns how many
// bytes they have.
func copyFiles(ctx context.Context, files []string, from, to string, a account) (int64, error) {
	ctx, failed := context.WithCancelCause(ctx)
	defer failed(nil)
	var next, bytes atomic.Int64
	var group vtime.Group
	for range copiers {
		group.Go(func() {
			for k := next.Add(1) - 1; k < int64(len(files)) && ctx.Err() == nil; k = next.Add(1) - 1 {
				n, err := copyFile(filepath.Join(from, files[k]), filepath.Join(to, files[k]), a)
				if err != nil {
					failed(fileFailure(a, err))
				}
				bytes.Add(n)
			}
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	return bytes.Load(), context.Cause(ctx)
}

// copyFile copies a file. It is never linked instead: a server writes into its files.
func copyFile(from, to string, a account) (n int64, err error) {
	in, err := os.Open(from)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if n, err = io.Copy(out, in); err != nil {
		return n, err
	}
	return n, a.give(to)
}
