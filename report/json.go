package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"retrylab/internal/lab"
)

// JSON is the document itself: keys in the order of the types, two spaces of indentation, no null.
var JSON = Format{
	Name:  "json",
	Doc:   "the whole result as JSON, for programs and for `retrylab report`",
	Write: writeJSON,
}

func writeJSON(w io.Writer, d *lab.Document, _ Options) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(withoutNull(d)); err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	if _, err := w.Write(unescape(buf.Bytes())); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// withoutNull returns a copy of d in which every list that is always written is a list, so that a
// reader never meets null where nothing was seen. It leaves d alone.
func withoutNull(d *lab.Document) *lab.Document {
	out := *d
	out.Scenarios = list(d.Scenarios)
	out.Skipped = list(d.Skipped)
	out.Results = make([]lab.Result, len(d.Results))
	for i, r := range d.Results {
		r.Reasons = list(r.Reasons)
		r.Nodes = list(r.Nodes)
		r.Checks = list(r.Checks)
		r.Orders = list(r.Orders)
		r.Events = list(r.Events)
		out.Results[i] = r
	}
	return &out
}

func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// unescape writes <, >, &, and the replacement character themselves instead of their escapes, in
// place. SetEscapeHTML does not reach the text that a type's own MarshalJSON has escaped already, as
// events do; and bytes that are no UTF-8 are escaped when first written but not when read and written
// again, though a saved result should keep its bytes.
func unescape(data []byte) []byte {
	out := data[:0]
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' || i+1 == len(data) {
			out = append(out, data[i])
			continue
		}
		plain := ""
		if i+6 <= len(data) {
			switch string(data[i : i+6]) {
			case `\u003c`:
				plain = "<"
			case `\u003e`:
				plain = ">"
			case `\u0026`:
				plain = "&"
			case `\ufffd`:
				plain = "\ufffd"
			}
		}
		if plain != "" {
			out, i = append(out, plain...), i+5
			continue
		}
		// The next byte belongs to this backslash, whatever it is: in \\u003c the backslash is data.
		out = append(out, data[i], data[i+1])
		i++
	}
	return out
}
