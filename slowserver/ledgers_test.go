package slowserver_test

import (
	"testing"
	"time"

	"retrylab/slowserver"
	"retrylab/slowserver/fault"
	"retrylab/slowserver/guard"
	"retrylab/slowserver/ledger"
)

// TestLedgers sends one order twice under one key, three seconds apart, and reads what stands in a
// ledger beside it.
func TestLedgers(t *testing.T) {
	t.Parallel()
	at := func(l ledger.Settings, faults ...fault.Settings) slowserver.Config {
		l.Name = "charges"
		l.Default()
		return slowserver.Config{
			Processing: time.Second, Guard: guard.Settings{Kind: "unique-index", Claim: "at-insert"},
			Ledgers: []ledger.Settings{l}, Faults: faults,
		}
	}
	unguarded := func(c slowserver.Config) slowserver.Config { c.Guard = guard.Settings{}; return c }
	natural := func(c slowserver.Config) slowserver.Config {
		c.Guard = guard.Settings{Kind: "natural-key"}
		return c
	}
	crash := func(place fault.Place, into time.Duration) fault.Settings {
		return fault.Settings{At: place, Into: into, Do: "crash", Restart: time.Millisecond, Arrivals: []int{1}}
	}
	const reference, ms = "op-1", time.Millisecond
	tests := []struct {
		name   string
		config slowserver.Config
		orders int
		want   []string // node, reference and time of each entry
	}{
		{"after the commit", at(ledger.Settings{}), 1, []string{"order-1  1s"}},
		{"after each commit", unguarded(at(ledger.Settings{})), 2, []string{"order-1  1s", "order-1  4s"}},
		{"for a duplicate too", at(ledger.Settings{Duplicates: true}), 1, []string{"order-1  1s", "order-1  4s"}},
		{"for a duplicate too that the order itself shows", natural(at(ledger.Settings{Duplicates: true})), 1, []string{"order-1  1s", "order-1  4s"}},
		{"known by the order", at(ledger.Settings{Duplicates: true, Reference: "order"}), 1, []string{"order-1 1 1s"}},
		{"known by the key", at(ledger.Settings{Duplicates: true, Reference: "key"}), 1, []string{"order-1 k 1s"}},
		{"known by the attempt", at(ledger.Settings{Duplicates: true, Reference: "attempt"}), 1, []string{"order-1 op-1/a.1 1s", "order-1 op-1/a.2 4s"}},
		{"killed after the commit", at(ledger.Settings{}, crash(fault.AfterCommit, 0)), 1, nil},

		{"in the work", at(ledger.Settings{When: "in-work", At: 400 * ms}), 1, []string{"order-1  400ms", "order-1  3.4s"}},
		{"in the work, known", at(ledger.Settings{When: "in-work", At: 400 * ms, Reference: "operation"}), 1, []string{"order-1 op-1 400ms"}},
		{"in the work, killed after it", at(ledger.Settings{When: "in-work", At: 400 * ms}, crash(fault.InWork, 700*ms)), 1, []string{"order-1  400ms", "order-1  3.4s"}},
		{"in the work, killed at it", at(ledger.Settings{When: "in-work", At: 400 * ms}, crash(fault.InWork, 400*ms)), 1, []string{"order-1  400ms", "order-1  3.4s"}},
		{"in the work, killed before it", at(ledger.Settings{When: "in-work", At: 400 * ms}, crash(fault.InWork, 300*ms)), 1, []string{"order-1  3.4s"}},

		{"with the order", at(ledger.Settings{When: "with-order"}), 1, []string{"order-1  1s"}},
		{"with the order, killed before it", at(ledger.Settings{When: "with-order"}, crash(fault.BeforeCommit, 0)), 1, []string{"order-1  4s"}},
		{"with the order, killed after it", at(ledger.Settings{When: "with-order"}, crash(fault.AfterCommit, 0)), 1, []string{"order-1  1s"}},
		{"with the order, for a duplicate too", at(ledger.Settings{When: "with-order", Duplicates: true}), 1, []string{"order-1  1s", "order-1  4s"}},

		{"before the work", at(ledger.Settings{When: "before-work", Reference: "operation"}), 1, []string{"order-1 op-1 0s"}},
		{"before the work, killed", at(ledger.Settings{When: "before-work"}, crash(fault.InWork, ms)), 1, []string{"order-1  0s", "order-1  3s"}},

		{"an outbox", at(ledger.Settings{When: "outbox", Relay: ledger.Relay{After: 500 * ms}}), 1, []string{"relay  1.5s"}},
		{"an outbox, killed after the commit", at(ledger.Settings{When: "outbox", Relay: ledger.Relay{After: 500 * ms}}, crash(fault.AfterCommit, 0)), 1, []string{"relay  1.5s"}},
		{"an outbox, killed before the commit", at(ledger.Settings{When: "outbox", Relay: ledger.Relay{After: 500 * ms}}, crash(fault.BeforeCommit, 0)), 1, []string{"relay  4.5s"}},
		{"an outbox, sent twice", at(ledger.Settings{When: "outbox", Relay: ledger.Relay{After: 500 * ms, Sends: 2}}), 1, []string{"relay  1.5s", "relay  2s"}},
		{"an outbox, sent twice and known", at(ledger.Settings{When: "outbox", Reference: "order", Relay: ledger.Relay{After: 500 * ms, Sends: 2}}), 1, []string{"relay 1 1.5s"}},
		{"an outbox, for a duplicate too", at(ledger.Settings{When: "outbox", Duplicates: true, Relay: ledger.Relay{After: 500 * ms}}), 1, []string{"relay  1.5s", "relay  4.5s"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := play(t, tt.config, func(b *bench) {
				b.send(order(reference+"/a.1", "k"))
				second := order(reference+"/a.2", "k")
				second.at = 3 * time.Second
				b.send(second)
			})
			diff(t, "orders", tt.orders, len(b.effects))
			var got []string
			for _, e := range b.entries {
				if e.Ledger == "charges" {
					got = append(got, e.Node+" "+e.Reference+" "+e.Created.Truncate(time.Millisecond).String())
				}
			}
			diff(t, "entries", tt.want, got)
		})
	}
}

// TestImpossibleLedgers are configurations that would wait for themselves, or for nobody.
func TestImpossibleLedgers(t *testing.T) {
	t.Parallel()
	l := ledger.Settings{Name: "initiated", When: "before-work"}
	for name, c := range map[string]slowserver.Config{
		"a row before the work, in a transaction that is open": {Guard: guard.Settings{Kind: "same-transaction"}, Ledgers: []ledger.Settings{l}},
		"an outbox that nobody empties":                        {Ledgers: []ledger.Settings{{Name: "messages", When: "outbox"}}},
	} {
		if _, err := slowserver.New(t.Context(), c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
