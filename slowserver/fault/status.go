package fault

// Status answers an error status, whatever has become of the order by then.
var Status = Kind{
	Name:    "status",
	Doc:     "answers a status of its own and gives the request up",
	Answers: true,
	AtHop:   true,
	Places:  handling,
	Takes:   []string{"status", "retry-after"},
	Strike: func(r Request, s Settings) error {
		if err := r.Refuse(s.Status, s.RetryAfter, "injected: "+s.Name()); err != nil {
			return err
		}
		return ErrEnded
	},
}
