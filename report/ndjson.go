package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"retrylab/internal/lab"
)

// NDJSON is the document as one JSON object per line, for readers that take them one by one. Every
// line says in "type" what it is, and the lines come in the order of the types here; the events of a
// result follow it.
var NDJSON = Format{
	Name:  "ndjson",
	Doc:   "one JSON object per line: the run, each scenario, result and event, a comparison, the summary, for jq",
	Write: writeNDJSON,
}

type (
	runLine struct {
		Type          string   `json:"type"`
		Schema        string   `json:"schema"`
		SchemaVersion string   `json:"schema_version"`
		Tool          lab.Tool `json:"tool"`
		lab.RunInfo
	}
	scenarioLine struct {
		Type string `json:"type"`
		lab.ScenarioInfo
	}
	resultLine struct {
		Type string `json:"type"`
		lab.Result
		Events []lab.Event `json:"events,omitempty"` // takes the place of the result's: they have lines of their own
	}
	skipLine struct {
		Type string `json:"type"`
		lab.Skip
	}
	comparisonLine struct {
		Type string `json:"type"`
		lab.Comparison
	}
	summaryLine struct {
		Type string `json:"type"`
		lab.Summary
		ExitCode int `json:"exit_code"`
	}
)

func writeNDJSON(w io.Writer, d *lab.Document, _ Options) error {
	d = withoutNull(d)
	lines := []any{runLine{"run", d.Schema, d.SchemaVersion, d.Tool, d.Run}}
	for _, s := range d.Scenarios {
		lines = append(lines, scenarioLine{"scenario", s})
	}
	for i := range d.Results {
		r := &d.Results[i]
		lines = append(lines, resultLine{Type: "result", Result: *r})
		for _, e := range r.Events {
			lines = append(lines, r.Record(e))
		}
	}
	for _, s := range d.Skipped {
		lines = append(lines, skipLine{"skipped", s})
	}
	if d.Comparison != nil {
		lines = append(lines, comparisonLine{"comparison", *d.Comparison})
	}
	lines = append(lines, summaryLine{"summary", d.Summary, d.ExitCode})

	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return fmt.Errorf("encode result: %w", err)
		}
	}
	if _, err := w.Write(unescape(b.Bytes())); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}
