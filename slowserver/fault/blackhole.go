package fault

// Blackhole lets nobody connect and tells nobody so, as a firewall does that drops packets.
var Blackhole = Kind{
	Name:    "blackhole",
	Doc:     "never answers a connection attempt",
	Places:  []Place{AtConnect},
	Connect: Silent,
}
