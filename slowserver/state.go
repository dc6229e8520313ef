package slowserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"retrylab/internal/lab"
	"retrylab/slowserver/change"
	"retrylab/slowserver/store"
)

// maxReads bounds how often a row is read again that changes all the time. A transaction that sees the same
// snapshot at every look would else look for ever.
const maxReads = 10

// Prepare writes what is in the store before the first request. A store that others have written to stays as it is.
func (s *Service) Prepare(ctx context.Context) (err error) {
	c := s.config.Change
	if c.Start == "" {
		return nil
	}
	tx, err := s.config.Store.Begin(ctx, "start", store.TxOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }() // after a commit this does nothing
	if _, found, err := tx.Row(ctx, c.Row); err != nil || found {
		return err
	}
	if _, err := tx.Write(ctx, store.Write{Row: c.Row, Do: store.Put, To: c.Start}); err != nil {
		return err
	}
	return tx.Commit()
}

// readRow reads the shared row before the work, where a request does so: in the order's transaction if that is
// open, and else in a statement of its own.
func (h *handling) readRow() (err error) {
	c := h.service.config.Change
	if c.Do != change.ReadThenWrite {
		return nil
	}
	reader := interface {
		Row(ctx context.Context, name string) (store.Row, bool, error)
	}(h.store)
	if h.pass.Tx != nil {
		reader = h.pass.Tx
	}
	if h.row, _, err = reader.Row(h.work, c.Row); err == nil {
		h.record(lab.Event{Kind: lab.Read, Detail: c.Row + " " + h.row.Value})
	}
	return err
}

// refusedError is why a request cannot be done, with the status that it is answered.
type refusedError struct {
	status int
	why    string
}

func (e *refusedError) Error() string { return e.why }

// change changes the shared row in the order's transaction. changed tells whether it did, or that there is none.
// The error is a [*refusedError] when the row is not as the change needs it.
func (h *handling) change(ctx context.Context, tx store.Tx) (changed bool, err error) {
	c := h.service.config.Change
	if c.Do == "" {
		return true, nil
	}
	if changed, err = h.writeRow(ctx, tx, c); err != nil {
		return false, err
	}
	row, found, err := tx.Row(ctx, c.Row)
	switch {
	case err != nil:
		return false, err
	case changed && !found:
		h.state = c.Row + " deleted"
		return true, nil
	case changed:
		h.state = c.Row + " " + row.Value
		return true, nil
	case !found:
		return false, &refusedError{http.StatusNotFound, "there is no " + c.Row}
	case c.Do == change.ReadThenWrite && c.Version != change.Ignore:
		return false, &refusedError{http.StatusConflict, c.Row + " has changed since it was read"}
	case c.Otherwise == change.Conflict:
		return false, &refusedError{http.StatusConflict, fmt.Sprintf("%s is %s, not %s", c.Row, row.Value, c.From)}
	}
	h.state = c.Row + " stays " + row.Value
	// Somebody has come in between and written the same: this one has written all the same.
	return c.Do == change.ReadThenWrite, nil
}

// writeRow is the statement that changes the row, or the loop of them.
func (h *handling) writeRow(ctx context.Context, tx store.Tx, c change.Settings) (changed bool, err error) {
	w := store.Write{Row: c.Row, By: int64(c.By), To: c.To, From: c.From}
	switch c.Do {
	case change.Add:
		w.Do = store.Add
	case change.Set:
		w.Do = store.Set
	case change.Put:
		w.Do = store.Put
	case change.Delete:
		w.Do = store.Delete
	case change.ReadThenWrite:
		return h.writeWhatWasRead(ctx, tx, c)
	}
	return tx.Write(ctx, w)
}

// writeWhatWasRead writes what has been made of the value that was read. It reports false where the row has changed
// since, and that was looked at.
func (h *handling) writeWhatWasRead(ctx context.Context, tx store.Tx, c change.Settings) (bool, error) {
	for reads := 1; ; reads++ {
		value, err := strconv.ParseInt(h.row.Value, 10, 64)
		if err != nil {
			return false, fmt.Errorf("%s is no number: %w", c.Row, err)
		}
		w := store.Write{Row: c.Row, Do: store.Set, To: strconv.FormatInt(value+int64(c.By), 10)}
		if c.Version != change.Ignore {
			w.Version = h.row.Version
		}
		changed, err := tx.Write(ctx, w)
		if err != nil || changed || c.Version != change.ReadAgain || reads == maxReads {
			return changed, err
		}
		if h.row, _, err = tx.Row(ctx, c.Row); err != nil {
			return false, err
		}
		h.record(lab.Event{Kind: lab.Read, Detail: c.Row + " " + h.row.Value + ", again"})
	}
}
