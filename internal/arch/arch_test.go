// Package arch holds the house rules as tests, each with its reason: who may import whom, what may
// be called where, what must be documented and listed, and which licences the binary carries. It
// has no code of its own, and it tests no behaviour.
package arch

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// module is the path of this module; every import path of ours begins with it.
const module = "retrylab"

// source is one parsed Go file.
type source struct {
	name string // relative to the root, with slashes
	pkg  string // import path of its directory
	test bool   // it is for tests only: its name ends in _test.go, or it is a conformance suite
	ast  *ast.File
	fset *token.FileSet
}

// at says where a node stands, for messages.
func (s *source) at(n ast.Node) string {
	p := s.fset.Position(n.Pos())
	return s.name + ":" + itoa(p.Line)
}

// root returns the directory of go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatalf("the module is not where this test looks for it: %v", err)
	}
	return dir
}

// sources returns every Go file of the module, whatever system it is for.
func sources(t *testing.T) []*source {
	t.Helper()
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var parsed = sync.OnceValues(func() ([]*source, error) {
	base := filepath.Join("..", "..")
	var all []*source
	fset := token.NewFileSet()
	err := filepath.WalkDir(base, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			// Somebody's temporary file may go while the tree is walked.
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if file != base && (name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
			return nil
		}
		tree, err := parser.ParseFile(fset, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(base, file)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		all = append(all, &source{
			name: rel, pkg: path.Join(module, path.Dir(rel)), test: strings.HasSuffix(rel, "_test.go") || suite(path.Dir(rel)),
			ast: tree, fset: fset,
		})
		return nil
	})
	if err == nil && len(all) < 20 {
		err = errors.New("hardly any Go file was found: these tests look at the wrong directory")
	}
	return all, err
})

// suite reports whether a package is for tests, such as storetest and browsertest: ordinary files that
// tests alone import.
func suite(pkg string) bool { return strings.HasSuffix(pkg, "test") }

// packages lists the packages that have code, in order.
func packages(all []*source) []string {
	var out []string
	for _, s := range all {
		if !s.test && !slices.Contains(out, s.pkg) {
			out = append(out, s.pkg)
		}
	}
	slices.Sort(out)
	return out
}

// short is an import path as people say it: without the module, "." for the root.
func short(pkg string) string {
	if pkg == module {
		return "."
	}
	return strings.TrimPrefix(pkg, module+"/")
}

// within reports whether a path is the one that the pattern names, or with /... one below it too.
func within(pattern, p string) bool {
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return p == base || strings.HasPrefix(p, base+"/")
	}
	return p == pattern
}

// goList runs `go list` in the root.
func goList(t *testing.T, env []string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	cmd.Dir = root(t)
	cmd.Env = append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = errors.Join(err, errors.New(stderr.String()))
	}
	return string(out), err
}

// lines splits a text into its lines, without empty ones.
func lines(text string) []string {
	return slices.DeleteFunc(strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), func(l string) bool { return strings.TrimSpace(l) == "" })
}
