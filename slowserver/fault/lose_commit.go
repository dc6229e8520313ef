package fault

// LoseCommit loses the COMMIT: the database never hears of it and rolls the transaction back.
var LoseCommit = Kind{
	Name:   "lose-commit",
	Doc:    "breaks the connection to the database before the COMMIT has reached it",
	Places: []Place{InCommit},
	Cuts:   true,
	Strike: func(r Request, _ Settings) error { return r.Cut(CutBefore) },
}
