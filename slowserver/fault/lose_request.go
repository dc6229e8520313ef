package fault

// LoseRequest loses what is sent on a connection: the client sees it leave, and it arrives nowhere.
var LoseRequest = Kind{
	Name:    "lose-request",
	Doc:     "accepts the connection, and what is sent on it never arrives",
	Places:  []Place{AtConnect},
	Connect: Swallowed,
}
