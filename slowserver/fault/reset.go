package fault

// Reset resets the connection, as a process does that is killed.
var Reset = Kind{
	Name:    "reset",
	Doc:     "resets the connection and gives the request up",
	Answers: true,
	AtHop:   true,
	Places:  handling,
	Strike: func(r Request, _ Settings) error {
		r.Drop(true)
		return ErrEnded
	},
}
