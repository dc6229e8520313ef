package slowserver_test

import (
	"testing"
	"time"

	"retrylab/slowserver"
	"retrylab/slowserver/change"
	"retrylab/slowserver/fault"
	"retrylab/slowserver/guard"
	"retrylab/slowserver/ledger"
)

// TestState sends two requests under one key or two, and reads what has become of the row that they share.
func TestState(t *testing.T) {
	t.Parallel()
	stock := change.Settings{Do: change.ReadThenWrite, Row: "stock", Start: "10", By: -1}
	version := func(v string) change.Settings { s := stock; s.Version = v; return s }
	paid := change.Settings{Do: change.Set, Row: "payment", Start: "pending", From: "pending", To: "paid"}
	refusing := func(s change.Settings) change.Settings { s.Otherwise = change.Conflict; return s }
	first := guard.Settings{Kind: "unique-index", Claim: "first"}
	messages := ledger.Settings{Name: "messages", When: ledger.AfterCommit}
	tests := []struct {
		name    string
		config  slowserver.Config
		apart   time.Duration // between the two
		keys    [2]string
		answers []string
		state   string // value, version
		orders  int
		entries int
		second  string // journal of the second request
	}{
		{
			"written over", slowserver.Config{Change: stock}, 500 * time.Millisecond, [2]string{},
			[]string{"200, order 1", "200, order 2"}, "9, 2", 2, 0,
			"arrival, read stock 10, work, changed stock stays 9, commit, answer 200",
		},
		{
			"one after the other", slowserver.Config{Change: stock}, 2 * time.Second, [2]string{},
			[]string{"200, order 1", "200, order 2"}, "8, 3", 2, 0,
			"arrival, read stock 9, work, changed stock 8, commit, answer 200",
		},
		{
			"read again", slowserver.Config{Change: version(change.ReadAgain)}, 500 * time.Millisecond, [2]string{},
			[]string{"200, order 1", "200, order 2"}, "8, 3", 2, 0,
			"arrival, read stock 10, work, read stock 9, again, changed stock 8, commit, answer 200",
		},
		{
			"refused", slowserver.Config{Change: version(change.Refuse)}, 500 * time.Millisecond, [2]string{},
			[]string{"200, order 1", "409, state"}, "9, 2", 1, 0,
			"arrival, read stock 10, work, rollback stock has changed since it was read, answer 409",
		},
		{
			"paid once, told once", slowserver.Config{Change: paid, Ledgers: []ledger.Settings{messages}}, 2 * time.Second, [2]string{},
			[]string{"200, order 1", "200, order 0"}, "paid, 2", 1, 1,
			"arrival, work, changed payment stays paid, answer 200",
		},
		{
			"paid once, refused", slowserver.Config{Change: refusing(paid)}, 2 * time.Second, [2]string{},
			[]string{"200, order 1", "409, state"}, "paid, 2", 1, 0,
			"arrival, work, rollback payment is paid, not pending, answer 409",
		},
		{
			"nothing changed, and kept under the key", slowserver.Config{Change: change.Settings{Do: change.Put, Row: "document", Start: "v1", To: "v1"}, Guard: first}, 2 * time.Second, [2]string{"k", "k"},
			[]string{"200, order 0", "200, order 0 again"}, "v1, 1", 0, 0,
			"arrival, claim done, answer 200",
		},
		{
			"deleted", slowserver.Config{Change: change.Settings{Do: change.Delete, Row: "document", Start: "v1"}}, 2 * time.Second, [2]string{},
			[]string{"200, order 1", "404, state"}, "", 1, 0,
			"arrival, work, rollback there is no document, answer 404",
		},
		{
			"killed before the commit", slowserver.Config{Change: stock, Faults: []fault.Settings{{At: fault.BeforeCommit, Do: "crash", Restart: time.Millisecond, Arrivals: []int{1}}}}, 2 * time.Second, [2]string{},
			[]string{"EOF", "200, order 1"}, "9, 2", 1, 0,
			"arrival, read stock 10, work, changed stock 9, commit, answer 200",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.config.Processing = time.Second
			tt.config.Change.Default()
			for i := range tt.config.Ledgers {
				tt.config.Ledgers[i].Default()
			}
			var got []answer
			b := play(t, tt.config, func(b *bench) {
				got = b.sendAll(order("op-1", tt.keys[0]), order("op-2", tt.keys[1]).after(tt.apart))
			})
			diff(t, "answers", tt.answers, texts(got))
			diff(t, "the row", tt.state, b.state)
			diff(t, "orders", tt.orders, len(b.effects))
			diff(t, "entries", tt.entries, len(b.entries))
			diff(t, "journal of the second", tt.second, b.journal("op-2"))
		})
	}
}

// TestRefusedChange tries a change again, under the same key, that was refused: nothing was done, and the key must
// be free.
func TestRefusedChange(t *testing.T) {
	t.Parallel()
	c := slowserver.Config{
		Processing: time.Second, Guard: guard.Settings{Kind: "unique-index", Claim: "first", OnFailure: "delete"},
		Change: change.Settings{Do: change.ReadThenWrite, Row: "stock", Start: "10", By: -1, Version: change.Refuse},
	}
	var got []answer
	b := play(t, c, func(b *bench) {
		got = b.sendAll(order("op-1", "a"), order("op-2/a.1", "b").after(500*time.Millisecond), order("op-2/a.2", "b").after(3*time.Second))
	})
	diff(t, "answers", []string{"200, order 1", "409, state", "200, order 2"}, texts(got))
	diff(t, "the row", "8, 3", b.state)
}
