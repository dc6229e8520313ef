package fault

// Empty answers as it would have, without a body.
var Empty = Kind{
	Name:    "empty",
	Doc:     "gives the answer's status without a body",
	Answers: true,
	Places:  []Place{InReply},
	Strike: func(r Request, _ Settings) error {
		r.Spoil(func([]byte) []byte { return nil })
		return ErrEnded
	},
}
