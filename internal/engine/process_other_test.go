//go:build !linux

package engine_test

import "testing"

// orphanage is nothing that is tested here.
const orphanage = "orphanage"

func runOrphanage() {}

func children(t *testing.T, _ int) []int {
	t.Helper()
	t.Skip("the children of a process are listed on Linux only")
	return nil
}
