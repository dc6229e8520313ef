package fault

// LoseFinish loses what a guard writes when the order is committed, such as that its key is done.
var LoseFinish = Kind{
	Name:   "lose-finish",
	Doc:    "loses what the guard writes after the commit: the key stays in progress, and the answer goes out",
	Places: []Place{AfterCommit},
	Finish: true,
	Strike: func(r Request, _ Settings) error {
		r.LoseFinish()
		return nil
	},
}
