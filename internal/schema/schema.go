// Package schema holds the JSON Schemas of what people and programs exchange with the lab: the
// scenario file, the result, and an event of it. They are made of the Go types by this package's tests, so
// that they cannot say something else.
package schema

import "embed"

// Kinds lists the schemas that there are.
var Kinds = []string{"scenario", "result", "event"}

//go:embed *.schema.json
var files embed.FS

// Of returns a schema as indented JSON. kind is one of Kinds.
func Of(kind string) ([]byte, error) { return files.ReadFile(kind + ".schema.json") }
