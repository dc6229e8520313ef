package slowserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"retrylab/internal/lab"
	"retrylab/slowserver/guard"
	"retrylab/slowserver/ledger"
	"retrylab/slowserver/store"
)

// checkLedgers finds what cannot be with the ledgers that are asked for.
func (c Config) checkLedgers(g guard.Guard) error {
	for _, l := range c.Ledgers {
		switch {
		case l.When == ledger.BeforeWork && c.Guard.Open():
			return fmt.Errorf("the ledger %s cannot be written before the work while the guard %s holds a transaction", l.Name, g.Name)
		case l.When == ledger.Outbox && c.Job == nil:
			return errors.New("an outbox needs a host that runs its relay")
		}
	}
	return nil
}

// entry is the request's entry in a ledger. number is that of the order, 0 where there is none yet.
func (h *handling) entry(l ledger.Settings, number int64) store.Entry {
	e := store.Entry{
		Ledger: l.Name, Operation: h.operation(), Send: h.path(), Node: h.node,
		Amount: h.order.Amount, Created: h.service.config.Clock.Now(),
	}
	switch l.Reference {
	case ledger.ByAttempt:
		e.Reference = h.path()
	case ledger.ByKey:
		e.Reference = h.key
	case ledger.ByOperation:
		e.Reference = h.operation()
	case ledger.ByOrder:
		e.Reference = strconv.FormatInt(number, 10)
	}
	return e
}

// entered is the event of an entry that is durable, or that the ledger has not taken.
func entered(e store.Entry, taken bool) lab.Event {
	detail := e.Ledger
	if !taken {
		detail += ", known"
	}
	return lab.Event{Kind: lab.Entered, Operation: e.Operation, Send: e.Send, Node: e.Node, Key: e.Reference, Detail: detail}
}

// enterElsewhere makes an entry at another system. There it is durable, whatever becomes of the
// request.
func (h *handling) enterElsewhere(l ledger.Settings, number int64) error {
	e := h.entry(l, number)
	taken, err := h.store.Enter(h.work, e)
	if err != nil {
		return err
	}
	h.record(entered(e, taken))
	return nil
}

// enterBefore writes the rows that the service keeps of what it is about to do, in a transaction of
// their own.
func (h *handling) enterBefore() error {
	return h.enterAlone(func(l ledger.Settings) bool { return l.When == ledger.BeforeWork }, 0)
}

// enterWith makes the entries that stand or fall with the order.
func (h *handling) enterWith(tx store.Tx, number int64) error {
	h.entered = nil // of a transaction that was given up
	for _, l := range h.service.config.Ledgers {
		if l.When == ledger.WithOrder || l.When == ledger.Outbox {
			if err := h.enterIn(tx, l, number); err != nil {
				return err
			}
		}
	}
	return nil
}

// enterIn makes an entry in a transaction.
func (h *handling) enterIn(tx store.Tx, l ledger.Settings, number int64) error {
	e := h.entry(l, number)
	if l.When == ledger.Outbox {
		e.Ledger = l.OutboxName()
	}
	taken, err := tx.Enter(h.work, e)
	if taken {
		h.entered = append(h.entered, e)
	}
	return err
}

// enteredWith is told that the transaction with the entries is durable. The relay of an outbox
// looks what is in it, in its time.
func (h *handling) enteredWith() {
	for _, e := range h.entered {
		h.record(entered(e, true))
	}
	for _, l := range h.service.config.Ledgers {
		if l.When == ledger.Outbox && slices.ContainsFunc(h.entered, func(e store.Entry) bool { return e.Ledger == l.OutboxName() }) {
			h.service.config.Job(func() { h.service.relayOutbox(l, h.path()) })
		}
	}
	h.entered = nil
}

// enterAfter tells other systems of an order that is committed.
func (h *handling) enterAfter(a guard.Answer) error {
	for _, l := range h.service.config.Ledgers {
		if l.When == ledger.AfterCommit {
			if err := h.enterElsewhere(l, orderIn(a)); err != nil {
				return err
			}
		}
	}
	return nil
}

// enterAgain makes the entries that are made for a duplicate too: by code that does not look whether
// its order was inserted.
func (h *handling) enterAgain(a guard.Answer) error {
	if !a.Replayed || a.Status >= 300 {
		return nil
	}
	for _, l := range h.service.config.Ledgers {
		if l.Duplicates && l.When == ledger.AfterCommit {
			if err := h.enterElsewhere(l, orderIn(a)); err != nil {
				return err
			}
		}
	}
	return h.enterAlone(func(l ledger.Settings) bool { return l.Duplicates && l.When != ledger.AfterCommit }, orderIn(a))
}

// enterAlone makes entries in a transaction without an order.
func (h *handling) enterAlone(which func(ledger.Settings) bool, number int64) (err error) {
	if !slices.ContainsFunc(h.service.config.Ledgers, which) {
		return nil
	}
	tx, err := h.store.Begin(h.work, h.path(), store.TxOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }() // after a commit this does nothing
	for _, l := range h.service.config.Ledgers {
		if which(l) {
			if err := h.enterIn(tx, l, number); err != nil {
				return err
			}
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	h.enteredWith()
	return nil
}

// orderIn is the number of the order that an answer tells of.
func orderIn(a guard.Answer) int64 {
	var reply lab.OrderReply
	json.Unmarshal(a.Body, &reply) // it is the service's own
	return reply.Order
}

// relay is what the relay of an outbox knows.
type relay struct {
	mu   sync.Mutex
	sent map[string]bool // by outbox and send
}

// take returns the rows of an outbox that were not taken before: a transaction that is done again may
// be there twice.
func (r *relay) take(outbox string, rows []lab.Entry) (out []lab.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sent == nil {
		r.sent = map[string]bool{}
	}
	for _, row := range rows {
		if id := outbox + " " + row.Send; !r.sent[id] {
			r.sent[id] = true
			out = append(out, row)
		}
	}
	return out
}

// relayOutbox sends on what a send has left in an outbox, some time after its commit, as often as it
// is set to. One commit can wake the relays of several outboxes.
func (s *Service) relayOutbox(l ledger.Settings, send string) {
	if s.config.Clock.Sleep(s.life, l.Relay.After) != nil || s.config.Pause(s.life, send+" relay "+l.Name) != nil {
		return
	}
	rows, err := s.config.Store.EntriesOf(s.life, l.OutboxName(), send)
	if err != nil {
		panic(fmt.Errorf("the relay of %s: %w", l.Name, err))
	}
	rows = s.relay.take(l.OutboxName(), rows)
	for n := range l.Relay.Sends {
		if n > 0 && s.config.Clock.Sleep(s.life, l.Relay.After) != nil {
			return
		}
		for _, row := range rows {
			if err := s.relayRow(s.life, l, row); err != nil {
				panic(fmt.Errorf("the relay of %s: %w", l.Name, err))
			}
		}
	}
}

// relayRow sends one row of an outbox on.
func (s *Service) relayRow(ctx context.Context, l ledger.Settings, row lab.Entry) error {
	e := store.Entry{
		Ledger: l.Name, Operation: row.Operation, Send: row.Send, Node: "relay",
		Reference: row.Reference, Amount: row.Amount, Created: s.config.Clock.Now(),
	}
	taken, err := s.config.Store.Enter(ctx, e)
	if err != nil {
		return err
	}
	s.config.Record(entered(e, taken))
	return nil
}
