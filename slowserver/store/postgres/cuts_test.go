package postgres

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"retrylab/slowserver/store"
)

// TestCuts breaks the connection at a commit. The service gets one error for both, and the database
// tells them apart.
func TestCuts(t *testing.T) {
	t.Parallel()
	d := open(t, Options{})
	for _, c := range []struct {
		cut       store.Cut
		committed bool
		crossed   string // what the wire counted
	}{
		{store.CutBefore, false, "0 bytes sent, 0 bytes of the reply lost"},
		{store.CutAfter, true, "12 bytes sent, 18 bytes of the reply lost"},
	} {
		t.Run(string(c.cut), func(t *testing.T) {
			var effects int
			var known bool
			var commit error
			play(t, d, func(p *plot) {
				tx, err := p.store.Begin(t.Context(), "cut", none)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tx.Claim(t.Context(), "k", by); err != nil {
					t.Error(err)
				}
				if _, err := tx.Order(t.Context(), store.Order{Operation: "op-1", Send: "s", Node: "n", Key: "k", Amount: 1}); err != nil {
					t.Error(err)
				}
				asker := p.store.(store.Asker)
				id, err := asker.ID(t.Context(), tx)
				if err != nil {
					t.Error(err)
				}
				tx.(store.Cutter).Cut(c.cut)
				commit = tx.Commit()
				if err := tx.Rollback(); err != nil {
					t.Errorf("rolled back after the commit: %v", err)
				}
				if known, err = asker.Committed(t.Context(), id); err != nil {
					t.Error(err)
				}
				list, err := p.store.Effects(t.Context())
				if err != nil {
					t.Errorf("a cut that was wanted spoils the trial: %v", err)
				}
				effects = len(list)
				// Nothing of it is left: the key is free, or taken for good.
				tx, err = p.store.Begin(t.Context(), "again", none)
				if err != nil {
					t.Fatal(err)
				}
				fence, err := tx.Claim(t.Context(), "k", by)
				if err != nil || (fence == 0) != c.committed {
					t.Errorf("claimed again: %d, %v", fence, err)
				}
				if err := tx.Rollback(); err != nil {
					t.Error(err)
				}
			})
			if !errors.Is(commit, store.ErrUnknownOutcome) || !strings.Contains(commit.Error(), c.crossed) {
				t.Errorf("committed with %v, want an unknown outcome, and %s", commit, c.crossed)
			}
			if known != c.committed || (effects == 1) != c.committed {
				t.Errorf("the database says committed %v, and has %d orders; want %v", known, effects, c.committed)
			}
		})
	}
}

// TestNoResend loses the reply to a statement of its own, in the simple protocol: the driver must
// not send it again. pgx 5.9 to 5.12 did, through database/sql: one Exec, two rows, and no error.
func TestNoResend(t *testing.T) {
	t.Parallel()
	d := open(t, Options{})
	module, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	var major, minor int
	_, line, _ := strings.Cut(string(module), "github.com/jackc/pgx/v5 ")
	if _, err := fmt.Sscanf(line, "v%d.%d", &major, &minor); err != nil || major != 5 || minor < 13 {
		t.Errorf("pgx %d.%d (%v): 5.13.0 is the oldest to be used", major, minor, err)
	}
	if seat, err := d.Seat(t.Context()); err != nil {
		t.Fatal(err)
	} else if err := seat.Leave(); err != nil { // its tables are there now
		t.Fatal(err)
	}
	tables := tablesIn(d.schema, "_1")
	s, err := d.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	s.wire.arm(store.CutAfter)
	if _, err := s.conn.Exec(t.Context(), "INSERT INTO "+tables.sharedName+" VALUES ('once', '1')"); err == nil {
		t.Error("a statement whose reply was lost has succeeded")
	}
	var rows int
	if err := d.monitor.row(t.Context(), "SELECT count(*) FROM "+tables.sharedName).Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d rows, %v; want 1", rows, err)
	}
	if got := s.wire.String(); !strings.HasPrefix(got, fmt.Sprint(len("INSERT INTO "+tables.sharedName+" VALUES ('once', '1')")+6)+" bytes sent") {
		t.Errorf("%s: want the statement once", got)
	}
}

// TestAfterAnError makes sure of what a transaction can do after an error, which is the engine's.
func TestAfterAnError(t *testing.T) {
	t.Parallel()
	d := open(t, Options{})
	play(t, d, func(p *plot) {
		for range 2 {
			tx, err := p.store.Begin(t.Context(), "tx", none)
			if err != nil {
				t.Fatal(err)
			}
			if err = tx.Insert(t.Context(), "k", by); err == nil {
				if err := tx.Commit(); err != nil {
					t.Error(err)
				}
				continue
			}
			if !errors.Is(err, store.ErrDuplicate) {
				t.Errorf("inserted twice: %v", err)
			}
			if _, _, err := tx.Read(t.Context(), "k"); !errors.Is(err, store.ErrAborted) {
				t.Errorf("read after it: %v, want %v", err, store.ErrAborted)
			}
			if err := tx.Commit(); !errors.Is(err, store.ErrAborted) || errors.Is(err, store.ErrUnknownOutcome) {
				t.Errorf("committed after it: %v, want %v", err, store.ErrAborted)
			}
		}
	})
}

// TestAdvisoryLock asks for a lock that another has: the answer comes at once.
func TestAdvisoryLock(t *testing.T) {
	t.Parallel()
	d := open(t, Options{})
	play(t, d, func(p *plot) {
		first, err := p.store.Begin(t.Context(), "first", none)
		if err != nil {
			t.Fatal(err)
		}
		second, err := p.store.Begin(t.Context(), "second", none)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			tx   store.Tx
			key  string
			want bool
		}{{first, "k", true}, {first, "k", true}, {second, "k", false}, {second, "other", true}} {
			if got, err := c.tx.(store.Locker).TryLock(t.Context(), c.key); got != c.want || err != nil {
				t.Errorf("lock of %s: %v, %v; want %v", c.key, got, err, c.want)
			}
		}
		if err := first.Commit(); err != nil {
			t.Error(err)
		}
		if got, err := second.(store.Locker).TryLock(t.Context(), "k"); !got || err != nil {
			t.Errorf("after the commit: %v, %v", got, err)
		}
		if err := second.Rollback(); err != nil {
			t.Error(err)
		}
	})
}
