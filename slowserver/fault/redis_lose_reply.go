package fault

// RedisLoseReply loses the next reply of Redis, which has done what it was told.
var RedisLoseReply = Kind{
	Name:   "redis-lose-reply",
	Doc:    "loses the next reply of Redis, then goes on",
	Places: []Place{BeforeGuard, BeforeCommit, AfterCommit},
	Keys:   true,
	Strike: func(r Request, _ Settings) error {
		r.LoseKeysReply()
		return nil
	},
}
