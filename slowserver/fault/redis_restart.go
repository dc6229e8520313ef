package fault

// RedisRestart restarts Redis, which has written nothing to disk.
var RedisRestart = Kind{
	Name:   "redis-restart",
	Doc:    "restarts Redis, which forgets its keys, then goes on",
	Places: []Place{BeforeGuard, BeforeCommit, AfterCommit},
	Keys:   true,
	Strike: func(r Request, _ Settings) error { return r.RestartKeys() },
}
