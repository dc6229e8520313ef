//go:build nodocker

package containers

import (
	"errors"
	"testing"
)

func TestBuiltWithoutContainers(t *testing.T) {
	t.Parallel()
	_, err := Postgres(t.Context(), "")
	var typed *NoDockerError
	if !errors.As(err, &typed) {
		t.Fatalf("got %v, want a NoDockerError", err)
	}
	if got, want := err.Error(), "no Docker engine can be reached: this retrylab was built without containers (build tag nodocker)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
