package privatedir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// prefix is that of the tests' directories.
const prefix = "dir-"

// asHelper makes the test binary a process that makes a directory there, says where it is, and waits
// to be killed.
const asHelper = "PRIVATEDIR_TEST_HELPER"

func TestMain(m *testing.M) {
	if parent := os.Getenv(asHelper); parent != "" {
		os.Exit(helper(parent))
	}
	goleak.VerifyTestMain(m)
}

// gone reports whether a file does not exist.
func gone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func TestDir(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	d, err := New(parent, prefix)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(d.Path()) != parent || !strings.HasPrefix(filepath.Base(d.Path()), prefix) {
		t.Errorf("it is at %s", d.Path())
	}
	if err := os.MkdirAll(filepath.Join(d.Path(), "some", "thing"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(); err != nil || !gone(d.Path()) {
		t.Errorf("it is removed: %v", err)
	}
	// What comes to the same name afterwards is another's.
	if err := os.Mkdir(d.Path(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(); err != nil || gone(d.Path()) {
		t.Errorf("it is removed again: %v", err)
	}
}

// TestGoneAlready removes a directory that a person has removed.
func TestGoneAlready(t *testing.T) {
	t.Parallel()
	d, err := New(t.TempDir(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(d.Path()); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(); err != nil {
		t.Error(err)
	}
}

func TestNowhere(t *testing.T) {
	t.Parallel()
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	if d, err := New(nowhere, prefix); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("made %v, %v", d, err)
	}
	if removed, err := Sweep(nowhere, prefix, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("swept %v, %v", removed, err)
	}
}
