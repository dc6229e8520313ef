// Retrylab is a fault-injection lab for retries and idempotency: it starts a deliberately slow
// order service and a caller made of retry layers, runs a scripted scenario, reads the orders back
// from a database, and prints what was sent, what arrived, what exists and what the caller
// believes.
package main

import (
	"os"

	"retrylab/cmd"
)

func main() { os.Exit(cmd.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
