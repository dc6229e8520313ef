package scenarios

import _ "embed"

// Skeleton is the commented file that `retrylab new` writes.
//
//go:embed skeleton/skeleton.yaml
var Skeleton []byte
