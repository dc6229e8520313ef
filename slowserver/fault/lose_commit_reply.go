package fault

// LoseCommitReply loses the reply to the COMMIT: the order is there, and the service is told the
// same as when it is not.
var LoseCommitReply = Kind{
	Name:   "lose-commit-reply",
	Doc:    "breaks the connection to the database after it has committed, before its reply has come",
	Places: []Place{InCommit},
	Cuts:   true,
	Strike: func(r Request, _ Settings) error { return r.Cut(CutAfter) },
}
