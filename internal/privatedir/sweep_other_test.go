//go:build !unix || aix || solaris

package privatedir

import (
	"os"
	"path/filepath"
	"testing"
)

func helper(string) int { return 1 }

// TestNothingIsSwept leaves alone what looks like ours, since its owner may live.
func TestNothingIsSwept(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	path := filepath.Join(parent, prefix+"1")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, ownerFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if removed, err := Sweep(parent, prefix, nil); len(removed) > 0 || err != nil || gone(path) {
		t.Errorf("removed %v, %v", removed, err)
	}
}
