package fault

// Redirect sends the client elsewhere on the same service, before anything has been done.
var Redirect = Kind{
	Name:      "redirect",
	Doc:       "answers a redirect to the same service, where it does not strike again",
	Answers:   true,
	Places:    []Place{BeforeGuard},
	Takes:     []string{"status"},
	Elsewhere: true,
	Strike: func(r Request, s Settings) error {
		r.Redirect(s.Status)
		return ErrEnded
	},
}
