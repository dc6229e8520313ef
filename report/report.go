// Package report prints the outcome of a run. Every format is a view of one recorded
// [lab.Document]: it prints values and computes nothing that judges. No verdict is decided here,
// nothing is run, and the only thing opened is the writer that was handed in.
package report

import (
	"io"

	"retrylab/internal/lab"
)

// Options say how a document is to be set. A format uses those that mean something to it.
type Options struct {
	Width    int    // columns of the terminal; 80 when unknown
	Color    bool   // SGR colours, always beside a word or a symbol that says the same
	Unicode  bool   // box drawing and symbols; without it the output is plain ASCII
	Timeline string // always, never, or auto: a picture when the document has one scenario
	Rows     bool   // print the order rows as the database has them
	Wide     bool   // every column in full, however wide the lines become
	Verbose  bool   // say of the database what it is, how it is set, and how it counted
	// Section is called in the table of several scenarios where one of them begins, with its name and title, and
	// with "" where it ends; nil calls nothing.
	Section func(title string) error
}

// Format is one way to print a document. It writes the whole of it or returns an error.
type Format struct {
	Name string
	Doc  string
	// Runs says that the format shows what ran, and nothing else: it cannot carry a comparison of saved results.
	Runs  bool
	Write func(w io.Writer, d *lab.Document, o Options) error
}

// Formats lists every format, the default first.
var Formats = []Format{Table, Plain, JSON, NDJSON, Markdown, JUnit, TAP, Mermaid, PlantUML, HTML, SVG, OTLP}

// OfSaved lists the names of the formats that can carry a comparison of two saved results.
func OfSaved() (names []string) {
	for _, f := range Formats {
		if !f.Runs {
			names = append(names, f.Name)
		}
	}
	return names
}

// Find returns the format with the given name.
func Find(name string) (Format, bool) {
	for _, f := range Formats {
		if f.Name == name {
			return f, true
		}
	}
	return Format{}, false
}
