package slowserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"retrylab/internal/lab"
	"retrylab/slowserver/fault"
	"retrylab/slowserver/guard"
	"retrylab/slowserver/ledger"
	"retrylab/slowserver/store"
)

// classes are the errors of a database that a reader should know by name, with what the event of
// the rollback says of them.
var classes = []struct {
	err           error
	detail, title string
}{
	{store.ErrSerialization, "serialization", "serialization failure"},
	{store.ErrDeadlock, "deadlock", "deadlock"},
	{store.ErrBusy, "busy", "lock not available"},
	{store.ErrDuplicate, "duplicate", "unique violation"},
	{store.ErrAborted, "aborted", "transaction aborted"},
	{store.ErrLost, "connection lost", "connection lost"},
}

// maxUnknown bounds how often a transaction is done again because nobody knows its outcome.
const maxUnknown = 10

// process takes the request from the guard to the commit and returns its answer. One that is answered
// before the work it takes to where it is accepted, and from there to the commit when it is called again.
func (h *handling) process() (_ guard.Answer, err error) {
	before := h.accepted
	defer func() {
		if e := h.giveUp("given up"); e != nil {
			err = errors.Join(err, e)
		}
		if h.accepted && !before && err == nil {
			return // it comes back for the work
		}
		if h.pass.Left != nil && !h.life.isDead() && h.life.ctx.Err() == nil {
			if e := h.pass.Left(); e != nil {
				err = errors.Join(err, e)
			}
		}
	}()
	if !h.accepted {
		if a, err := h.strike(fault.BeforeGuard, guard.Answer{}); err != nil {
			return a, err
		}
	}
	if h.service.config.ReadOnly {
		return h.look()
	}
	for refused, unknown := 0, 0; ; {
		answer, committed, err := h.transact()
		switch config := h.service.config; {
		case err == nil && h.accepted && !before:
			return answer, nil
		case err == nil && committed:
			return h.confirm(answer)
		case err == nil:
			return answer, h.enterAgain(answer)
		case errors.Is(err, store.ErrSerialization), errors.Is(err, store.ErrDeadlock):
			if refused++; refused > config.TransactionRetries {
				return answer, err
			}
		case errors.Is(err, store.ErrUnknownOutcome) && config.OnUnknownCommit == "retry":
			if unknown++; unknown > maxUnknown {
				return answer, err
			}
		case errors.Is(err, store.ErrUnknownOutcome) && config.OnUnknownCommit == "commit-again":
			if err := h.commitAgain(); err != nil {
				return answer, err
			}
			return h.confirm(answer)
		case errors.Is(err, store.ErrUnknownOutcome) && config.OnUnknownCommit == "ask":
			committed, e := h.store.(store.Asker).Committed(h.work, h.ticket)
			if e != nil {
				return answer, errors.Join(err, e)
			}
			if committed {
				h.durable = true
				return h.confirm(answer)
			}
			if unknown++; unknown > maxUnknown {
				return answer, err
			}
		case errors.Is(err, store.ErrDuplicate) && h.pass.Duplicate != nil:
			if answer, err = h.pass.Duplicate(h.work); err != nil {
				return answer, err
			}
			return answer, h.enterAgain(answer)
		default:
			return answer, err
		}
		if err := h.service.config.Pause(h.work, h.path()); err != nil {
			return answer, err
		}
	}
}

// look answers a read. Nothing is claimed, and nothing committed.
func (h *handling) look() (guard.Answer, error) {
	if err := h.doWork(); err != nil {
		return guard.Answer{}, err
	}
	return guard.Answer{Status: http.StatusOK, Body: []byte(`{"status":"read"}` + "\n")}, nil
}

// transact goes through a transaction from its beginning to its commit. It is done again as a
// whole, with everything that was decided in it. Where the guard holds no transaction during the
// work, that is the writing of the order alone.
func (h *handling) transact() (answer guard.Answer, committed bool, err error) {
	defer func() {
		for _, c := range classes {
			if errors.Is(err, c.err) && !errors.Is(err, store.ErrUnknownOutcome) {
				err = errors.Join(err, h.rollBack(c.detail))
				return
			}
		}
	}()
	if !h.worked {
		answer, admitted, err := h.prepare()
		if err != nil || !admitted {
			return answer, false, err
		}
		h.worked = h.pass.Tx == nil
	}
	return h.commit()
}

// prepare does what comes before the order is written. It reports false, with the answer to give,
// when the guard does not let the request through.
func (h *handling) prepare() (answer guard.Answer, admitted bool, err error) {
	s := h.service
	if !h.accepted {
		answer, admitted, err = h.admit()
		if err != nil || !admitted {
			return answer, false, err
		}
		if s.config.AnswerAccepted {
			h.accepted = true
			return guard.Accepted(), false, nil
		}
	}
	if err := h.readRow(); err != nil {
		return guard.Answer{}, false, err
	}
	if err := h.doWork(); err != nil {
		return guard.Answer{}, false, err
	}
	if s.config.OrderOutside {
		if err := h.orderOutside(); err != nil {
			return guard.Answer{}, false, err
		}
	}
	a, err := h.strike(fault.BeforeCommit, guard.Answer{})
	return a, err == nil, err
}

// admit asks the guard, and notes what the service is about to do.
func (h *handling) admit() (answer guard.Answer, admitted bool, err error) {
	s := h.service
	if key := h.guarded(); key != "" {
		pass, err := s.guard.Admit(h.work, h.desk(), guard.Request{
			Send: h.path(), Key: key, Hash: h.fingerprint(), Gone: h.r.Context(),
		})
		if err != nil {
			return guard.Answer{}, false, err
		}
		if pass.Answer != nil {
			return *pass.Answer, false, nil
		}
		h.pass = pass
	}
	if a, err := h.strike(fault.AfterClaim, guard.Answer{}); err != nil {
		return a, false, err
	}
	if err := h.enterBefore(); err != nil {
		return guard.Answer{}, false, err
	}
	return guard.Answer{}, true, nil
}

// doWork is the slow part of the work.
func (h *handling) doWork() error {
	s := h.service
	h.record(lab.Event{Kind: lab.Work})
	s.counts.Enter()
	defer s.counts.Leave()
	whole := s.config.Processing + s.config.Spread.At(lab.Draw(s.config.Seed, h.path(), "processing"))
	passed := time.Duration(0)
	for _, m := range h.moments() {
		at := min(m.at, whole)
		if err := s.wait(h.work, at-passed); err != nil {
			return err
		}
		passed = at
		if err := m.do(); err != nil {
			return err
		}
	}
	return s.wait(h.work, whole-passed)
}

// moment is something that happens in the middle of the work.
type moment struct {
	at time.Duration // since its beginning
	do func() error
}

// moments are what happens in the middle of the work, in the order of time: what other systems are
// told, and the faults that strike there.
func (h *handling) moments() (out []moment) {
	for _, l := range h.service.config.Ledgers {
		if l.When == ledger.InWork {
			out = append(out, moment{l.At, func() error { return h.enterElsewhere(l, 0) }})
		}
	}
	seen := map[time.Duration]bool{}
	for _, f := range h.service.config.Faults {
		if f.At != fault.InWork || seen[f.Into] {
			continue
		}
		seen[f.Into] = true
		out = append(out, moment{f.Into, func() error {
			_, err := h.strikeInto(fault.InWork, f.Into, guard.Answer{})
			return err
		}})
	}
	slices.SortStableFunc(out, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	return out
}

// orderOutside writes the order in a transaction of its own: what the order's transaction comes to
// is nothing to it.
func (h *handling) orderOutside() (err error) {
	tx, err := h.store.Begin(h.work, h.path(), store.TxOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }() // after a commit this does nothing
	number, err := h.write(tx)
	if err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	h.number = number
	h.record(lab.Event{Kind: lab.Commit, Key: h.key, Order: number})
	return nil
}

// write writes the order.
func (h *handling) write(tx store.Tx) (int64, error) {
	return tx.Order(h.work, store.Order{
		Operation: h.operation(), Send: h.path(), Node: h.node, Key: h.key, Reference: h.pass.Reference,
		Amount: h.order.Amount, Created: h.service.config.Clock.Now(),
	})
}

// commit writes the order, in the transaction that the guard has left open or in one of its own. It
// reports false, with the answer to give, when the guard says in the transaction that the order is
// not to be. The answer that it would have given stands beside an error of the commit too.
func (h *handling) commit() (answer guard.Answer, committed bool, err error) {
	ctx := h.work
	if h.pass.Tx == nil {
		if h.pass.Tx, err = h.store.Begin(ctx, h.path(), store.TxOptions{}); err != nil {
			h.pass.Tx = nil
			return guard.Answer{}, false, err
		}
	}
	tx := h.pass.Tx
	if h.pass.Claim != nil {
		dup, err := h.pass.Claim(ctx, tx)
		if err != nil {
			return guard.Answer{}, false, err
		}
		if dup != nil {
			return *dup, false, h.rollBack("duplicate")
		}
	}
	if err := h.touch(ctx, tx); err != nil {
		return guard.Answer{}, false, err
	}
	changed, err := h.change(ctx, tx)
	if refused, ok := errors.AsType[*refusedError](err); ok {
		a := problem(refused.status, lab.ProblemState, refused.why)
		return a, false, errors.Join(h.rollBack(refused.why), h.failed(a))
	}
	if err != nil {
		return guard.Answer{}, false, err
	}
	h.same = !changed
	number := h.number
	if number == 0 && changed {
		if number, err = h.write(tx); err != nil {
			return guard.Answer{}, false, err
		}
	}
	if changed {
		if err := h.enterWith(tx, number); err != nil {
			return guard.Answer{}, false, err
		}
	}
	if answer, err = h.told(number); err != nil {
		return guard.Answer{}, false, err
	}
	if h.pass.Finish != nil {
		refusal, err := h.pass.Finish(ctx, tx, answer)
		if err != nil {
			return guard.Answer{}, false, err
		}
		if refusal != nil {
			return *refusal, false, h.rollBack("fenced out")
		}
	}
	if h.service.config.OnUnknownCommit == "ask" {
		if h.ticket, err = h.store.(store.Asker).ID(ctx, tx); err != nil {
			return guard.Answer{}, false, err
		}
	}
	if a, err := h.strike(fault.InCommit, answer); err != nil {
		return a, false, err
	}
	h.pass.Tx = nil // Commit ends it, whatever it returns
	if err := tx.Commit(); err != nil {
		h.lost(err, number)
		return answer, false, err
	}
	h.committed(number, "")
	h.durable = true
	h.work = h.life.ctx // what is done cannot be given up any more
	return answer, true, nil
}

// told is the answer to a request that is done. Without a number it has changed nothing.
func (h *handling) told(number int64) (guard.Answer, error) {
	status, reply := http.StatusCreated, lab.OrderReply{Order: number, Status: "created"}
	if h.service.config.Change.Do != "" {
		status, reply.Status = http.StatusOK, h.state
	}
	body, err := json.Marshal(reply)
	return guard.Answer{Status: status, Body: append(body, '\n')}, err
}

// committed records what the order's transaction has made durable.
func (h *handling) committed(number int64, detail string) {
	if h.state != "" {
		h.record(lab.Event{Kind: lab.Changed, Detail: h.state})
	}
	if h.number == 0 && !h.same {
		h.record(lab.Event{Kind: lab.Commit, Key: h.key, Order: number, Detail: detail})
	}
	h.enteredWith()
}

// commitAgain repeats the COMMIT on a new connection, as code does that takes it for safe to repeat.
// It begins a transaction there, so what is committed is an empty one, and that succeeds.
func (h *handling) commitAgain() error {
	tx, err := h.store.Begin(h.work, h.path(), store.TxOptions{})
	if err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	h.durable = true // as far as the service knows
	return nil
}

// touch changes the rows that orders share.
func (h *handling) touch(ctx context.Context, tx store.Tx) error {
	config := h.service.config
	rows := slices.Clone(config.Rows)
	if config.AlternateRows && h.arrival%2 == 0 {
		slices.Reverse(rows)
	}
	for i, row := range rows {
		if i > 0 {
			if err := config.Clock.Sleep(ctx, config.RowTime); err != nil {
				return err
			}
		}
		if _, err := tx.Write(ctx, store.Write{Row: row, Do: store.Add, By: 1}); err != nil {
			return err
		}
	}
	return nil
}

// lost records what became of a commit whose reply was lost. The service does not know it. The lab
// does, since it has cut the connection itself.
func (h *handling) lost(err error, number int64) {
	cut := h.cut
	h.cut = ""
	switch {
	case !errors.Is(err, store.ErrUnknownOutcome):
	case cut == store.CutAfter:
		h.committed(number, "reply lost")
	case cut == store.CutBefore:
		h.record(lab.Event{Kind: lab.Rollback, Key: h.key, Detail: "connection lost"})
	}
}

// confirm does what comes between the commit and the answer.
func (h *handling) confirm(answer guard.Answer) (guard.Answer, error) {
	answer, err := h.strike(fault.AfterCommit, answer)
	if err != nil {
		return answer, err
	}
	if !h.same {
		if err := h.enterAfter(answer); err != nil {
			return answer, err
		}
	}
	if h.pass.Committed == nil {
		return answer, nil
	}
	return answer, h.pass.Committed(h.work, answer)
}

// giveUp rolls the order's transaction back, if it is open: a fault, an error or the client's
// leaving has ended the request in the middle of it.
func (h *handling) giveUp(why string) error {
	if h.pass.Tx == nil {
		return nil
	}
	return h.rollBack(why)
}

// rollBack rolls the order's transaction back and records why. One that the guard had begun is
// rolled back already when the guard returns an error.
func (h *handling) rollBack(why string) error {
	if tx := h.pass.Tx; tx != nil {
		h.pass.Tx = nil
		if err := tx.Rollback(); err != nil {
			return err
		}
	}
	h.record(lab.Event{Kind: lab.Rollback, Key: h.key, Detail: why})
	return nil
}

// fail answers that the database has failed.
func (h *handling) fail(err error) { h.answer(h.failure(err)) }

// failure is the answer that the database has failed. The guard is told, unless an order may be there:
// to let another request have the key would be to place it twice.
func (h *handling) failure(err error) guard.Answer {
	status := http.StatusInternalServerError
	if errors.Is(err, store.ErrUnreachable) {
		status = http.StatusServiceUnavailable
	}
	a := problem(status, lab.ProblemStore, title(err))
	if !h.durable && !errors.Is(err, store.ErrUnknownOutcome) {
		if e := h.failed(a); e != nil {
			a = problem(http.StatusInternalServerError, lab.ProblemStore, title(errors.Join(err, e)))
		}
	}
	return a
}

// title is what an answer says of an error of the database.
func title(err error) string {
	for _, c := range classes {
		if errors.Is(err, c.err) {
			return c.title + ": " + err.Error()
		}
	}
	return err.Error()
}
