package postgres

import (
	"strings"
	"testing"
	"time"

	"retrylab/internal/vtime"
	"retrylab/slowserver/store"
)

// TestAttach opens a trial's tables as another process does: the two see each other's commits, wait
// for each other's claims, and the end of the one leaves what is in them to the other.
func TestAttach(t *testing.T) {
	t.Parallel()
	d := open(t, Options{})
	o := store.Options{Clock: vtime.NewWall(time.Time{}, 1)}
	mine, err := sit(t, d).Open(o)
	if err != nil {
		t.Fatal(err)
	}
	where, ok := strings.CutPrefix(mine.(store.Shareable).Address(), "postgres:")
	if !ok {
		t.Fatalf("the address is %q", where)
	}
	theirs, err := Attach(where, o)
	if err != nil {
		t.Fatal(err)
	}
	first, err := theirs.Begin(t.Context(), "theirs", none)
	if err != nil {
		t.Fatal(err)
	}
	if fence, err := first.Claim(t.Context(), "k", by); fence != 1 || err != nil {
		t.Errorf("claimed: %d, %v", fence, err)
	}
	if _, err := first.Order(t.Context(), store.Order{Operation: "op-1", Send: "s", Node: "n", Amount: 1}); err != nil {
		t.Error(err)
	}
	second, err := mine.Begin(t.Context(), "mine", none)
	if err != nil {
		t.Fatal(err)
	}
	claimed := make(chan int64, 1)
	go func() {
		fence, err := second.Claim(t.Context(), "k", by)
		if err != nil {
			t.Error(err)
		}
		claimed <- fence
	}()
	if err := first.Commit(); err != nil {
		t.Error(err)
	}
	if fence := <-claimed; fence != 0 {
		t.Errorf("a key that the other process has committed is claimed with %d", fence)
	}
	if err := second.Rollback(); err != nil {
		t.Error(err)
	}
	changed := mine.Changed()
	mine.(*Store).Announce()
	select {
	case <-changed:
	default:
		t.Error("nothing has changed by what the other process has announced")
	}
	if err := theirs.Close(); err != nil {
		t.Error(err)
	}
	if n, err := mine.Count(t.Context(), "op-1"); n != 1 || err != nil {
		t.Errorf("%d orders, %v; want 1", n, err)
	}
	if _, err := Attach("{", o); err == nil {
		t.Error("attached to nothing")
	}
}
