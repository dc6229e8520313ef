package schema_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"retrylab/internal/schema"
	"retrylab/internal/suite"
	"retrylab/scenarios"
)

// compile reads a schema with a library that knows nothing of how it was made.
func compile(t *testing.T, kind string) *jsonschema.Schema {
	t.Helper()
	text, err := schema.Of(kind)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(kind+".json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(kind + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// decode reads YAML as an editor's plug-in does: into what JSON would be.
func decode(t *testing.T, data []byte) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestScenariosValidate(t *testing.T) {
	t.Parallel()
	s := compile(t, "scenario")
	files := map[string][]byte{"skeleton": scenarios.Skeleton}
	for _, name := range scenarios.Names() {
		built, err := scenarios.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = built.Source
	}
	for name, data := range files {
		if err := s.Validate(decode(t, data)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAgrees holds the schema against the decoder: what the decoder takes the schema takes, but for a
// key with nothing below it, and what a schema can refuse it refuses.
func TestAgrees(t *testing.T) {
	t.Parallel()
	s := compile(t, "scenario")
	for _, c := range []struct {
		text string
		good bool
	}{
		{"name: mine", true},
		{"name: mine\nserver: {processing: 0}", true},
		{"name: mine\nserver: {processing: 0s, guard: unique-index}", true},
		{"name: mine\nserver: {processing: 1m30s, guard: {kind: unique-index, in-progress: 409}}", true},
		{"name: mine\nserver: {processing: 1.5s}\ncaller: {timeouts: {read: 250ms}}", true},
		{"name: mine\ncaller: {layers: [retry, {preset: feign-retryer, attempts: 3, period: 1s}]}", true},
		{"name: mine\ncaller: {layers: retry}", true},
		{"name: mine\ncaller: {layers: []}\nhops: [{name: gateway, kind: nginx, layers: [nginx]}]", true},
		{"name: mine\ncaller: {layers: [{preset: retry, on: 503, statuses: [404, '500'], methods: any}]}", true},
		{"name: mine\ncaller: {layers: [{preset: retry, on: [], backoff: {initial: 1s, factor: 2, jitter: full}}]}", true},
		{"name: mine\ncaller: {layers: [apache-httpclient5]}", true},
		{"name: mine\namount: 49.99\noperations: 3\ntags: one\nneeds: [postgres]", true},
		{"name: mine\nserver: {faults: [{at: before-guard, do: status, status: 503, retry-after: '7', arrivals: 1}]}", true},
		{"name: mine\nserver: {faults: [{at: before-guard, do: status, status: 503, retry-after: 7, arrivals: [1, 2]}]}", true},
		{"name: mine\ninvariant: effects <= wanted\nexpect: {effects: 1, starts: [0s, 6s], answers: {503: 1}, belief: ok}", true},
		{"name: mine\nexpect: {starts: 0s, reason: 503, amount: 50}", true},
		{"name: mine\ninvariant: [effects <= wanted, lost == 0]\npremises: overlap >= 2", true},
		{"name: mine\nvariants: [{name: one, id: x, set: {caller.layers: [], server.guard: none}, invariant: lost == 0}]", true},
		{"name: mine\nnext: read-timeout\nbegin: '14:08:33.512'\ncurrency: ₹\nclocks: [virtual, wall]\nsources: [here]", true},

		{"title: no name", false},
		{"name: My Scenario", false},
		{"name: [mine]", false},
		{"- name: mine", false},
		{"mine", false},
		{"name: mine\nserver: {procesing: 1s}", false},
		{"name: mine\nserver: {processing: 12}", false},
		{"name: mine\nserver: {processing: soon}", false},
		{"name: mine\nserver: {processing: -1s}", false},
		{"name: mine\nserver: {processing: 12 s}", false},
		{"name: mine\nserver: {guard: unique}", false},
		{"name: mine\nserver: {guard: {kind: unique}}", false},
		{"name: mine\nserver: {replicas: 0}", false},
		{"name: mine\nserver: {replicas: 33}", false},
		{"name: mine\nserver: {on-client-gone: stop}", false},
		{"name: mine\nserver: {faults: [{at: nowhere, do: reset}]}", false},
		{"name: mine\nserver: {faults: [{at: after-commit, do: explode}]}", false},
		{"name: mine\nserver: {faults: reset}", false},
		{"name: mine\nserver: [none]", false},
		{"name: mine\noperations: 0", false},
		{"name: mine\noperations: -1", false},
		{"name: mine\noperations: 1.5", false},
		{"name: mine\noperations: many", false},
		{"name: mine\noperations: 1000001", false},
		{"name: mine\namount: -1", false},
		{"name: mine\nfamily: none", false},
		{"name: mine\nclocks: [real]", false},
		{"name: mine\nneeds: [mysql]", false},
		{"name: mine\ncaller: {method: BREW}", false},
		{"name: mine\ncaller: {key: None At All}", false},
		{"name: mine\ncaller: {body: json}", false},
		{"name: mine\ncaller: {content: an other}", false},
		{"name: mine\ncaller: {connection: keep-alive}", false},
		{"name: mine\ncaller: {layers: [wget]}", false},
		{"name: mine\ncaller: {layers: [{preset: wget}]}", false},
		{"name: mine\ncaller: {layers: {preset: retry}}", false},
		{"name: mine\ncaller: {layers: [{preset: retry, attempts: many}]}", false},
		{"name: mine\ncaller: {layers: [{preset: retry, backoff: {jitter: random}}]}", false},
		{"name: mine\ncaller: {layers: [{preset: retry, backoff: {jitter: -25%}}]}", true},
		{"name: mine\ncaller: {layers: []}\nhops: [{kind: proxy, layers: [{preset: haproxy, redispatch: -1}]}]", true},
		{"name: mine\ncaller: {layers: []}\nhops: [{kind: proxy, layers: [{preset: haproxy, redispatch: -2}]}]", false},
		{"name: mine\ncaller: {layers: [{preset: retry, backoff: {jitter: 20}}]}", false},
		{"name: mine\nhops: [{kind: apache}]", false},
		{"name: mine\nhops: [{name: gateway, key: perhaps}]", false},
		{"name: mine\nexpect: {effect: 1}", false},
		{"name: mine\nexpect: {effects: one}", false},
		{"name: mine\nexpect: {effects: -1}", false},
		{"name: mine\nexpect: {belief: maybe}", false},
		{"name: mine\nexpect: {beliefs: {okay: 1}}", false},
		{"name: mine\nexpect: {sends-by: {caller: many}}", false},
		{"name: mine\nvariants: [one]", false},
		{"name: mine\nvariants: [{set: {}}]", false},
		{"name: mine\nvariants: {name: one}", false},
		{"name: mine\nvariants: [{name: one, set: [a]}]", false},
		{"name: mine\ninvariant: {effects: 1}", false},
	} {
		_, decoder := scenarios.Parse("mine.yaml", []byte(c.text))
		if (decoder == nil) != c.good {
			t.Errorf("%q: the decoder says %v", c.text, decoder)
		}
		if err := s.Validate(decode(t, []byte(c.text))); (err == nil) != c.good {
			t.Errorf("%q: the schema says %v", c.text, err)
		}
	}
}

// TestResultValidates runs scenarios with all verdicts and holds what comes out against the schema.
func TestResultValidates(t *testing.T) {
	t.Parallel()
	s := compile(t, "result")
	var list []*scenarios.Scenario
	for _, text := range []string{
		"name: held\nserver: {processing: 1s}\nexpect: {effects: 1}\n",
		"name: not-held\nserver: {processing: 1s}\nexpect: {effects: 2}\ninvariant: [late > 0, effects <= wanted]\n",
		"name: measured\noperations: 3\ninterval: 1s\ncaller: {timeouts: {read: 1s, total: 9s}, layers: [{preset: retry, wait: 1s}], key: operation}\nserver: {processing: 2s, guard: unique-index, replicas: 2}\nhops: [{name: gateway, kind: nginx}]\ncurrency: €\nbegin: '12:00:00.000'\n",
		"name: inconclusive\nserver: {faults: [{at: before-guard, do: reset, arrivals: [9]}]}\nexpect: {effects: 1}\n",
		"name: skipped\nneeds: [postgres]\n",
	} {
		sc, err := scenarios.Parse("mine.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, sc)
	}
	doc, err := suite.Run(t.Context(), list, suite.Options{Clock: "virtual", Version: "test", Repeat: 2, Plan: scenarios.Options{Seed: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if got := doc.Summary; got.AsExpected != 2 || got.NotAsExpected != 2 || got.Measured != 2 || got.Inconclusive != 2 || got.Skipped != 1 {
		t.Errorf("the summary is %+v", got)
	}
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(v); err != nil {
		t.Error(err)
	}
	// Whatever a reader relies on must be there.
	for _, broken := range []func(map[string]any){
		func(d map[string]any) { delete(d, "schema_version") },
		func(d map[string]any) { delete(d, "results") },
		func(d map[string]any) { d["exit_code"] = "0" },
		func(d map[string]any) { d["results"].([]any)[0].(map[string]any)["verdict"] = "passed" },
		func(d map[string]any) { delete(d["results"].([]any)[0].(map[string]any), "counts") },
		func(d map[string]any) {
			d["results"].([]any)[0].(map[string]any)["events"].([]any)[0].(map[string]any)["kind"] = "sneeze"
		},
	} {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		broken(v.(map[string]any))
		if err := s.Validate(v); err == nil {
			t.Error("the schema takes a document that is broken")
		}
	}
	// A reader of this version must take what a later one adds.
	more := v.(map[string]any)
	more["new_in_1_1"] = true
	if err := s.Validate(more); err != nil {
		t.Errorf("something more is refused: %v", err)
	}
}

// TestReportsValidate holds what the reports are expected to print against the schemas: every result, and
// every event of those that come line by line.
func TestReportsValidate(t *testing.T) {
	t.Parallel()
	validate := func(file, kind string, text []byte, s *jsonschema.Schema) {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err == nil {
			err = s.Validate(v)
		}
		if err != nil {
			t.Errorf("%s: the %s %.100s: %v", file, kind, text, err)
		}
	}
	result, event := compile(t, "result"), compile(t, "event")
	folder := filepath.Join("..", "..", "report", "testdata")
	results, events := 0, 0
	for _, pattern := range []string{"*.json", "formats/*.json", "formats/*.ndjson"} {
		files, err := filepath.Glob(filepath.Join(folder, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case strings.HasPrefix(filepath.Base(file), "thousand."): // it is cut
			case filepath.Ext(file) == ".json":
				validate(file, "result", text, result)
				results++
			default:
				for line := range bytes.Lines(text) {
					if bytes.HasPrefix(line, []byte(`{"type":"event"`)) {
						validate(file, "event", line, event)
						events++
					}
				}
			}
		}
	}
	if results < 10 || events < 100 {
		t.Errorf("there were %d results and %d events", results, events)
	}
	for _, broken := range []string{
		`{"type":"result","scenario":"a","id":"b","seed":1,"t_ms":0,"kind":"send"}`,
		`{"type":"event","id":"b","seed":1,"t_ms":0,"kind":"send"}`,
		`{"type":"event","scenario":"a","id":"b","seed":1,"t_ms":0,"kind":"sneeze"}`,
		`{"type":"event","scenario":"a","id":"b","seed":1,"t_ms":0.5,"kind":"send"}`,
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(broken))
		if err != nil {
			t.Fatal(err)
		}
		if event.Validate(v) == nil {
			t.Errorf("the schema takes %s", broken)
		}
	}
}

// TestDescriptions: an editor shows a description for every key.
func TestDescriptions(t *testing.T) {
	t.Parallel()
	text, err := schema.Of("scenario")
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	n := 0
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if properties, ok := v["properties"].(map[string]any); ok {
				for name, p := range properties {
					n++
					if d, _ := p.(map[string]any)["description"].(string); strings.TrimSpace(d) == "" {
						t.Errorf("%s.%s has no description", path, name)
					}
					walk(path+"."+name, p)
				}
			}
			for _, key := range []string{"items", "anyOf", "oneOf", "additionalProperties"} {
				walk(path, v[key])
			}
		case []any:
			for _, item := range v {
				walk(path, item)
			}
		}
	}
	walk("", root)
	if n < 80 {
		t.Errorf("only %d keys", n)
	}
}
