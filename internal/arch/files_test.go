package arch

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// leaks are what no file of the tree may hold: it is true on one machine only. The patterns are
// put together from pieces, so that this file is not found itself.
var leaks = []struct {
	what    string
	pattern *regexp.Regexp
}{
	{"the path of a developer's machine", regexp.MustCompile(`(^|[^\w.$}~-])(/` + `root/|/` + `home/[a-z]|/` + `Users/[A-Za-z]|/` + `work/|/` + `mnt/)`)},
	{"the path of a developer's machine", regexp.MustCompile(`[A-Za-z]:\\` + `Users\\`)},
	{"the host of a package registry", regexp.MustCompile(`(proxy|sum)\.` + `golang\.org|registry\.` + `npmjs|deb\.` + `debian\.org|goproxy\.` + `(io|cn)|index\.` + `crates\.io|pypi\.` + `org`)},
	{"a mark of an unfinished merge", regexp.MustCompile(`(?m)^(<` + `<<<<<<|>` + `>>>>>>) `)},
}

// TestFilesAreForEverybody reads every file of the tree.
func TestFilesAreForEverybody(t *testing.T) {
	t.Parallel()
	base := root(t)
	files := tree(t, base)
	if len(files) < 50 {
		t.Fatalf("only %d files were found: this test looks at the wrong place", len(files))
	}
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join(base, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed and not yet committed
		}
		if err != nil {
			t.Error(err)
			continue
		}
		if bytes.IndexByte(data, 0) >= 0 {
			continue
		}
		for _, leak := range leaks {
			if at := leak.pattern.FindIndex(data); at != nil {
				line := 1 + bytes.Count(data[:at[0]], []byte("\n"))
				t.Errorf("%s:%d: %q is %s", name, line, strings.TrimSpace(string(data[at[0]:at[1]])), leak.what)
			}
		}
	}
}

// tree lists the files that belong to the project: those that git knows or would take, and where
// there is no git, all.
func tree(t *testing.T, base string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "-c", "core.quotePath=off", "ls-files", "--cached", "--others", "--exclude-standard")
	cmd.Dir = base
	if out, err := cmd.Output(); err == nil {
		return lines(string(out))
	}
	var files []string
	err := filepath.WalkDir(base, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if entry.Name() == ".git" {
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(base, file)
		files = append(files, filepath.ToSlash(rel))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
