package fault

// Refuse refuses connections, as a host does on which nothing listens.
var Refuse = Kind{
	Name:    "refuse",
	Doc:     "refuses connections",
	Places:  []Place{AtConnect},
	Connect: Refused,
}
