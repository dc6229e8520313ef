package scenarios_test

import (
	"strings"
	"testing"
	"time"

	"retrylab/scenarios"
	"retrylab/slowserver/fault"
	"retrylab/slowserver/guard"
)

func TestNeedsReplica(t *testing.T) {
	t.Parallel()
	setup := scenarios.Setup{Server: scenarios.Server{Faults: []fault.Settings{{At: fault.BeforeGuard, Do: "redis-failover"}}}}
	if !setup.NeedsReplica() || !setup.NeedsKeys() {
		t.Error("a failover needs a store of keys, and a replica of it")
	}
}

// TestNeeds: what the embedded database cannot do says so, and what it can does not.
func TestNeeds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		server scenarios.Server
		why    string // part of it; "" for any engine
		keys   bool
	}{
		{server: scenarios.Server{}},
		{server: scenarios.Server{Guard: guard.Settings{Kind: "same-transaction"}}},
		{server: scenarios.Server{Guard: guard.Settings{Kind: "unique-index", Lease: time.Second, Fencing: "fence"}}},
		{server: scenarios.Server{Guard: guard.Settings{Kind: "per-process"}, TransactionRetries: 3, OnUnknownCommit: "retry"}},
		{server: scenarios.Server{Rows: []string{"stock", "ledger"}, RowsOrder: "fixed", RowTime: time.Second}},
		{server: scenarios.Server{Faults: []fault.Settings{{At: fault.AfterCommit, Do: "reset"}}}},

		{server: scenarios.Server{Guard: guard.Settings{Kind: "check-then-insert", Isolation: "read-committed"}}, why: "isolation"},
		{server: scenarios.Server{Guard: guard.Settings{Kind: "same-transaction", LockTimeout: time.Second}}, why: "lock-timeout"},
		{server: scenarios.Server{Guard: guard.Settings{Kind: "same-transaction", IdleTimeout: time.Second}}, why: "idle-timeout"},
		{server: scenarios.Server{Guard: guard.Settings{Kind: "same-transaction", Lock: "advisory"}}, why: "advisory"},
		{server: scenarios.Server{Guard: guard.Settings{Kind: "same-transaction", Insert: "plain"}}, why: "plain insert"},
		{server: scenarios.Server{Rows: []string{"stock", "ledger"}, RowsOrder: "alternate"}, why: "deadlock"},
		{server: scenarios.Server{OnUnknownCommit: "ask"}, why: "what became of a commit"},
		{server: scenarios.Server{Faults: []fault.Settings{{At: fault.AfterCommit, Do: "reset"}, {At: fault.InCommit, Do: "partition"}}}, why: "connection"},

		{server: scenarios.Server{Guard: guard.Settings{Kind: "redis-precheck"}}, keys: true},
		{server: scenarios.Server{Faults: []fault.Settings{{At: fault.BeforeGuard, Do: "redis-restart"}}}, keys: true},
	} {
		setup := scenarios.Setup{Server: c.server}
		engine, why := setup.NeedsEngine()
		if (engine == "") != (c.why == "") || (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("%+v needs %q, %q; want a reason with %q", c.server, engine, why, c.why)
		}
		if engine != "" && engine != "postgres" {
			t.Errorf("%+v needs %q", c.server, engine)
		}
		if setup.NeedsReplica() {
			t.Errorf("%+v needs a replica", c.server)
		}
		if got := setup.NeedsKeys(); got != c.keys {
			t.Errorf("%+v needs keys: %v", c.server, got)
		}
	}
}
