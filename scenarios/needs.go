package scenarios

import (
	"slices"

	"retrylab/slowserver/fault"
	"retrylab/slowserver/guard"
)

// postgres is the engine that some scenarios need.
const postgres = "postgres"

// postgresOnly lists what the embedded database cannot do or would show as something else.
var postgresOnly = []struct {
	used func(Server) bool
	why  string
}{
	{func(s Server) bool { return s.Guard.Isolation != "" }, "an isolation level: SQLite has only one"},
	{func(s Server) bool { return s.Guard.LockTimeout > 0 }, "a lock-timeout: SQLite has one lock for all rows"},
	{func(s Server) bool { return s.Guard.IdleTimeout > 0 }, "an idle-timeout: SQLite has no sessions"},
	{func(s Server) bool { return s.Guard.Lock == "advisory" }, "advisory locks: SQLite has none"},
	{func(s Server) bool { return s.Guard.Insert == "plain" }, "a plain insert beside another's open transaction: SQLite lets in one writer"},
	{func(s Server) bool { return s.RowsOrder == "alternate" }, "rows in alternate order: SQLite lets in one writer, and two cannot deadlock"},
	{func(s Server) bool { return s.OnUnknownCommit == "ask" }, "to ask what became of a commit: SQLite has no transaction status"},
	{func(s Server) bool { return slices.ContainsFunc(s.Faults, cuts) }, "a connection to the database that can break: SQLite has none"},
}

func cuts(f fault.Settings) bool {
	kind, _ := fault.Find(f.Do)
	return kind.Cuts
}

// NeedsEngine returns the database engine without which the setup shows nothing, with the reason;
// both are empty where any engine will do.
func (s Setup) NeedsEngine() (engine, why string) {
	for _, p := range postgresOnly {
		if p.used(s.Server) {
			return postgres, p.why
		}
	}
	return "", ""
}

// NeedsReplica reports whether the store of keys must have a replica that can take over.
func (s Setup) NeedsReplica() bool {
	return slices.ContainsFunc(s.Server.Faults, func(f fault.Settings) bool { return f.Do == fault.RedisFailover.Name })
}

// NeedsKeys reports whether the setup has a store of keys beside the database.
func (s Setup) NeedsKeys() bool {
	g, _ := guard.Find(s.Server.Guard.Kind)
	return g.Keys || slices.ContainsFunc(s.Server.Faults, func(f fault.Settings) bool {
		kind, _ := fault.Find(f.Do)
		return kind.Keys
	})
}
