package fault

// Delay holds the request up and lets it go on.
var Delay = Kind{
	Name:   "delay",
	Doc:    "waits, then goes on",
	Places: handling,
	Takes:  []string{"delay"},
	Strike: func(r Request, s Settings) error {
		return r.Sleep(s.Delay)
	},
}
