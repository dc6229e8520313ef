package fault

// Crash kills the replica, as kill -9 does: nothing in it goes on, and nobody is told.
var Crash = Kind{
	Name:   "crash",
	Doc:    "kills the replica: its connections end, open transactions roll back, its memory is gone, and nobody listens until it has restarted",
	Places: []Place{BeforeGuard, AfterClaim, InWork, BeforeCommit, AfterCommit},
	Takes:  []string{"restart"},
	Strike: func(r Request, s Settings) error {
		r.Crash(s.Restart)
		return ErrEnded
	},
}
