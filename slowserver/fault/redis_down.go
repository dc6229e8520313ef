package fault

// RedisDown cuts a request off from Redis: it reaches it no more, from where it strikes to its end.
var RedisDown = Kind{
	Name:   "redis-down",
	Doc:    "the request reaches Redis no more, then goes on",
	Places: []Place{BeforeGuard, BeforeCommit, AfterCommit},
	Keys:   true,
	Strike: func(r Request, _ Settings) error {
		r.CutOffKeys()
		return nil
	},
}
