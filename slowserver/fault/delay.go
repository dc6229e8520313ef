package fault

// Delay holds the request up and lets it go on.
var Delay = Kind{
	Name:   "delay",
	Doc:    "waits, then goes on; in-commit the order is written and cannot be committed until then",
	Places: []Place{BeforeGuard, AfterClaim, InWork, BeforeCommit, InCommit, AfterCommit, InReply},
	AtHop:  true,
	Takes:  []string{"delay"},
	Strike: func(r Request, s Settings) error {
		return r.Sleep(s.Delay)
	},
}
