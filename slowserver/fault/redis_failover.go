package fault

// RedisFailover promotes a replica of Redis to which the last writes have not come.
var RedisFailover = Kind{
	Name:   "redis-failover",
	Doc:    "promotes a replica of Redis that has not got the last writes, then goes on",
	Places: []Place{BeforeGuard, BeforeCommit, AfterCommit},
	Keys:   true,
	Strike: func(r Request, _ Settings) error { return r.FailOverKeys() },
}
