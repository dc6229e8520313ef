package fault

// Truncate breaks the answer off in the middle, as a server does that is stopped while it answers.
var Truncate = Kind{
	Name:    "truncate",
	Doc:     "gives the headers and half of the body, then closes the connection, or resets it",
	Answers: true,
	Places:  []Place{InReply},
	Takes:   []string{"reset"},
	Strike: func(r Request, s Settings) error {
		r.Truncate(s.Reset)
		return ErrEnded
	},
}
