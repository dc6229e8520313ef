package simulation

// Record is [Run] with every event recorded.
var Record = run
