package postgres

import (
	"testing"

	"retrylab/slowserver/store"
	"retrylab/slowserver/store/storetest"
)

func TestStore(t *testing.T) {
	d := open(t, Options{Jobs: 3})
	t.Run("suite", func(t *testing.T) { storetest.Exercise(t, func(t *testing.T) store.Seat { return sit(t, d) }) })
}

func TestStoreVirtual(t *testing.T) {
	d := open(t, Options{Jobs: 3})
	t.Run("suite", func(t *testing.T) { storetest.ExerciseVirtual(t, func(t *testing.T) store.Seat { return sit(t, d) }) })
}
