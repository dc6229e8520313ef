package fault

// Close closes the connection, as a worker does that dies with an exception.
var Close = Kind{
	Name:    "close",
	Doc:     "closes the connection and gives the request up",
	Answers: true,
	AtHop:   true,
	Places:  handling,
	Strike: func(r Request, _ Settings) error {
		r.Drop(false)
		return ErrEnded
	},
}
