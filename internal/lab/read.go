package lab

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// ReadDocument reads a saved result, which is what the JSON of a run is; name is what its file is called in an
// error. A result of a later version with the same major is read without what this version does not know. The
// error says where the text is wrong, as name:line:column, or what it is in place of a result.
func ReadDocument(name string, data []byte) (*Document, error) {
	var head struct {
		Schema        string `json:"schema"`
		SchemaVersion string `json:"schema_version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, placed(name, data, err)
	}
	major, _, _ := strings.Cut(ResultSchemaVersion, ".")
	switch was, _, _ := strings.Cut(head.SchemaVersion, "."); {
	case head.Schema != ResultSchema:
		return nil, fmt.Errorf("%s: it is JSON, but no result: its schema is %q and not %q", name, head.Schema, ResultSchema)
	case was != major:
		return nil, fmt.Errorf("%s: its schema_version is %q, and this version reads %s", name, head.SchemaVersion, ResultSchemaVersion)
	}
	var d Document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, placed(name, data, err)
	}
	if d.Run.ID != "" && !IsRunID(d.Run.ID) {
		return nil, fmt.Errorf("%s: its run has the id %q, and ids are hexadecimal digits", name, d.Run.ID)
	}
	for i := range d.Results {
		if s := d.Results[i].Series; s != nil {
			if err := s.check(); err != nil {
				return nil, fmt.Errorf("%s: results[%d].series: %w", name, i, err)
			}
		}
	}
	return &d, nil
}

// check refuses counts over time that no run can have written, and that nobody could draw.
func (s *Series) check() error {
	if s.WindowMs <= 0 {
		return fmt.Errorf("window_ms is %d, and a window lasts a millisecond or more", s.WindowMs)
	}
	for _, list := range []struct {
		name   string
		counts []int
	}{{"starts", s.Starts}, {"arrivals", s.Arrivals}, {"ok", s.OK}, {"queue", s.Queue}} {
		if len(list.counts) != len(s.Operations) {
			return fmt.Errorf("%s and operations have a count for each window, and are %d and %d long", list.name, len(list.counts), len(s.Operations))
		}
	}
	return nil
}

// IsRunID reports whether a text has the form of a run's id, which makes the name of a directory: at most 64
// hexadecimal digits, in lower case.
func IsRunID(id string) bool {
	return 0 < len(id) && len(id) <= 64 && strings.Trim(id, "0123456789abcdef") == ""
}

// placed says where in data an error of encoding/json is.
func placed(name string, data []byte, err error) error {
	offset := int64(-1)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	what := err.Error()
	begin := bytes.TrimSpace(data)
	switch {
	case len(begin) == 0:
		what = "there is nothing in it"
	case errors.As(err, &syntax) && begin[0] != '{' && begin[0] != '[':
		offset, what = syntax.Offset, "it is no JSON: "+what
	case errors.As(err, &syntax) && syntax.Offset >= int64(len(data)):
		offset, what = syntax.Offset, "it ends before the result does: was it cut off?"
	case errors.As(err, &syntax) && isLines(begin):
		what = "it has one JSON object to a line, as the format ndjson has: a result is read from the format json"
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind) && kind.Field == "":
		what = fmt.Sprintf("it is JSON, but no result: it is %s", withArticle(kind.Value))
	case errors.As(err, &kind):
		offset, what = kind.Offset, fmt.Sprintf("%s cannot be %s", kind.Field, withArticle(kind.Value))
	}
	if offset < 0 || offset > int64(len(data)) {
		return fmt.Errorf("%s: %s", name, what)
	}
	before := data[:offset]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n') - 1
	return fmt.Errorf("%s:%d:%d: %s", name, line, max(column, 1), what)
}

// isLines reports whether data is the events and results of a run, one object to a line.
func isLines(data []byte) bool {
	var first struct {
		Type string `json:"type"`
	}
	line, _, several := bytes.Cut(data, []byte("\n"))
	return several && json.Unmarshal(line, &first) == nil && first.Type != ""
}

// withArticle is a kind of JSON in a sentence.
func withArticle(kind string) string {
	if strings.ContainsRune("aeo", rune(kind[0])) {
		return "an " + kind
	}
	return "a " + kind
}
