package scenarios_test

import (
	"testing"
	"time"

	"retrylab/scenarios"
)

// TestLoad: phases follow one another, and make the number of operations.
func TestLoad(t *testing.T) {
	t.Parallel()
	s, err := scenarios.Parse("load.yaml", []byte("name: load\nload: [{rate: 2, for: 2s}, {rate: 10, for: 500ms}, {rate: 0.5, for: 4s}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	setup := plan(t, s)[0].Setup
	if setup.Operations != 11 {
		t.Fatalf("%d operations, want 4, 5 and 2", setup.Operations)
	}
	for n, want := range map[int]time.Duration{
		0: 0, 1: 500 * time.Millisecond, 3: 1500 * time.Millisecond, 4: 2 * time.Second, 8: 2400 * time.Millisecond,
		9: 2500 * time.Millisecond, 10: 4500 * time.Millisecond, 11: 6500 * time.Millisecond,
	} {
		if got := setup.Begins(n); got != want {
			t.Errorf("operation %d begins at %s, want %s", n, got, want)
		}
	}
	even := scenarios.Setup{Interval: 3 * time.Second}
	if got := even.Begins(4); got != 12*time.Second {
		t.Errorf("the fifth of operations 3 s apart begins at %s", got)
	}
}
