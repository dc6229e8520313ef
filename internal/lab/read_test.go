package lab_test

import (
	"strings"
	"testing"

	"retrylab/internal/lab"
)

func TestReadDocument(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, wrong string }{
		{"a result", `{"schema": "retrylab.result", "schema_version": "1.0.0", "run": {"id": "4f1c"}, "exit_code": 4}`, ""},
		{"of a later minor version", `{"schema": "retrylab.result", "schema_version": "1.7.0", "run": {"id": "4f1c"}, "exit_code": 4, "weather": "fine"}`, ""},
		{"of a later major version", `{"schema": "retrylab.result", "schema_version": "2.0.0"}`, ` its schema_version is "2.0.0", and this version reads 1.0.0`},
		{"an id that leads elsewhere", `{"schema": "retrylab.result", "schema_version": "1.0.0", "run": {"id": "../../etc"}}`, ` its run has the id "../../etc"`},
		{"an id of another kind", `{"schema": "retrylab.result", "schema_version": "1.0.0", "run": {"id": "4F1C"}}`, ` its run has the id "4F1C"`},
		{"counts of unlike length", `{"schema": "retrylab.result", "schema_version": "1.0.0", "results": [{"series": {"window_ms": 100, "operations": [1, 2], "starts": [1]}}]}`, " results[0].series: starts and operations have a count for each window, and are 1 and 2 long"},
		{"windows of no length", `{"schema": "retrylab.result", "schema_version": "1.0.0", "results": [{"series": {}}]}`, " results[0].series: window_ms is 0"},
		{"something else", `{"schema": "other"}`, ` it is JSON, but no result: its schema is "other" and not "retrylab.result"`},
		{"a list", "[]", " it is JSON, but no result: it is an array"},
		{"a list for a text", `{"schema": []}`, "1:12: schema cannot be an array"},
		{"nothing", "", " there is nothing in it"},
		{"cut off", "{\n  \"schema\": \"retr", "2:17: it ends before the result does: was it cut off?"},
		{"a scenario", "name: mine\n", "1:2: it is no JSON: invalid character 'a'"},
		{"lines", "{\"type\": \"run\"}\n{\"type\": \"summary\"}\n", " it has one JSON object to a line, as the format ndjson has"},
		{"a comma too many", "{\n  \"a\": 1,,\n}", "2:10: invalid character"},
		{"a word for a number", "{\"schema\": \"retrylab.result\", \"schema_version\": \"1.0.0\",\n  \"exit_code\": \"no\"}", "2:19: exit_code cannot be a string"},
	} {
		d, err := lab.ReadDocument("r.json", []byte(c.text))
		switch {
		case c.wrong == "" && (err != nil || d.ExitCode != 4):
			t.Errorf("%s: %v, %v", c.name, d, err)
		case c.wrong != "" && (err == nil || !strings.HasPrefix(err.Error(), "r.json:"+c.wrong)):
			t.Errorf("%s: the error is %v, want %s…", c.name, err, c.wrong)
		}
	}
}
