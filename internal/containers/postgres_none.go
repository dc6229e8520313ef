//go:build nodocker

package containers

import "context"

// Postgres always returns a [*NoDockerError], since this binary was built without containers.
func Postgres(_ context.Context, image string) (*Database, error) {
	if image != "" {
		if err := CheckImage(image); err != nil {
			return nil, err
		}
	}
	return nil, &NoDockerError{Reason: "this retrylab was built without containers (build tag nodocker)"}
}
