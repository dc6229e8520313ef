package fault

// Malformed answers as it would have, with a body that breaks off in the middle of its JSON and is
// complete all the same: a whole answer that cannot be understood.
var Malformed = Kind{
	Name:    "malformed",
	Doc:     "gives the answer's status with a body that cannot be parsed",
	Answers: true,
	Places:  []Place{InReply},
	Strike: func(r Request, _ Settings) error {
		r.Spoil(func(body []byte) []byte { return body[:len(body)/2] })
		return ErrEnded
	},
}
