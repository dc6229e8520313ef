package fault

// UnknownHost takes the host's name out of the directory: it has no address to connect to.
var UnknownHost = Kind{
	Name:    "unknown-host",
	Doc:     "has no address: the name cannot be resolved",
	Places:  []Place{AtConnect},
	Connect: NoAddress,
}
