package fault

// Lose loses the answer: the connection stays open, and nothing comes.
var Lose = Kind{
	Name:    "lose",
	Doc:     "never answers and keeps the connection open until the client leaves",
	Answers: true,
	AtHop:   true,
	Places:  []Place{AfterCommit, InReply},
	Strike: func(r Request, _ Settings) error {
		r.Hold()
		return ErrEnded
	},
}
