package schema

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"

	"retrylab/caller/policy"
	"retrylab/internal/expression"
	"retrylab/internal/lab"
	"retrylab/scenarios"
)

var update = flag.Bool("update", false, "write the schemas anew")

// generated makes a schema of the Go types, as indented JSON. The tool carries what it wrote, so that it need
// not carry the library.
func generated(kind string) ([]byte, error) {
	s := map[string]func() *jsonschema.Schema{"scenario": scenario, "result": result, "event": record}[kind]()
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, err
	}
	// In plain ASCII: whoever reads it need not know how it is encoded.
	var b bytes.Buffer
	for _, r := range string(out) {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// TestGenerated compares what the tool carries with what the Go types say, and writes it with -update.
func TestGenerated(t *testing.T) {
	t.Parallel()
	for _, kind := range Kinds {
		want, err := generated(kind)
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(kind+".schema.json", want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := Of(kind)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(got), string(want)); diff != "" {
			t.Errorf("%s: -carried +by the types, which -update writes:\n%s", kind, diff)
		}
	}
}

// durationPattern is what a duration looks like in a file: a number and its unit, more than once.
const durationPattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`

// scenario is the schema of a scenario file, for editors. It takes what the decoder takes, short
// forms included; the decoder refuses more than a schema can.
func scenario() *jsonschema.Schema {
	s := structure(scenarios.FileType(), "")
	s.Version = jsonschema.Version
	s.Title = "retrylab scenario"
	s.Required = []string{"name"}
	return s
}

// value is the schema of what a file has at a path, by the type that it is decoded into.
func value(t reflect.Type, path string) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{
			{Type: "string", Pattern: durationPattern, Examples: []any{"5s"}},
			{Const: 0},
		}}
	case reflect.TypeFor[scenarios.Money]():
		return &jsonschema.Schema{Type: "number", Minimum: "0", Examples: []any{json.Number("49.99")}}
	case reflect.TypeFor[scenarios.Demand]():
		return &jsonschema.Schema{Type: "string", Description: "an expression over: " + strings.Join(expression.Names(), ", ")}
	case scenarios.SetsType():
		return &jsonschema.Schema{Type: "object", Description: "paths and their values, such as caller.timeouts.read: 15s"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return value(t.Elem(), path)
	case reflect.Struct:
		return structure(t, path)
	case reflect.Slice:
		item := shorthand(t.Elem(), path+"[]")
		list := &jsonschema.Schema{Type: "array", Items: item}
		if t.Elem().Kind() == reflect.Struct && t.Elem() != reflect.TypeFor[scenarios.Demand]() && item.AnyOf == nil {
			return list
		}
		single := item // one item may stand without its list, unless it is a mapping
		if item.AnyOf != nil && t.Elem().Kind() == reflect.Struct {
			single = item.AnyOf[0]
		}
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{single, list}}
	case reflect.Map:
		return &jsonschema.Schema{Type: "object", AdditionalProperties: value(t.Elem(), path+".*")}
	case reflect.Bool:
		return &jsonschema.Schema{Type: "boolean"}
	case reflect.Float64:
		return &jsonschema.Schema{Type: "number", Minimum: "0"}
	case reflect.Int, reflect.Int64:
		s := &jsonschema.Schema{Type: "integer", Minimum: "0"}
		if r, ok := scenarios.RuleAt(path); ok {
			s.Minimum, s.Maximum = json.Number(strconv.Itoa(r.Low)), json.Number(strconv.Itoa(r.High))
		}
		return s
	}
	return text(path)
}

// text is the schema of a word or a line of text. A word may look like a number: a status.
func text(path string) *jsonschema.Schema {
	if r, ok := scenarios.RuleAt(path); ok {
		if r.Layers {
			return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{words(r.Words), named()}}
		}
		return words(r.Words)
	}
	if strings.HasSuffix(path, ".on[]") {
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{words(policy.TriggerWords()), status()}}
	}
	if strings.HasSuffix(path, ".jitter") {
		share := &jsonschema.Schema{Type: "string", Pattern: `^[+-]?[0-9]+(\.[0-9]+)?%$`}
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{words(policy.Jitters), share}}
	}
	if strings.HasSuffix(path, "expect.outcomes[]") {
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{words(scenarios.Outcomes()), answer()}}
	}
	if strings.HasSuffix(path, ".statuses[]") {
		return status()
	}
	if path == "name" || strings.HasSuffix(path, ".name") && !strings.HasPrefix(path, "variants[]") {
		return named()
	}
	return &jsonschema.Schema{Extras: map[string]any{"type": []string{"string", "number"}}}
}

// named is the name of a scenario, a machine or a layer.
func named() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Pattern: "^[a-z0-9]+(-[a-z0-9]+)*$"}
}

// status is a status that can be retried, as a number or in quotes.
func status() *jsonschema.Schema { return statuses(3) }

// answer is any status, as a number or in quotes.
func answer() *jsonschema.Schema { return statuses(1) }

// statuses are those from a class on.
func statuses(class int) *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
		{Type: "integer", Minimum: json.Number(strconv.Itoa(class * 100)), Maximum: "599"},
		{Type: "string", Pattern: fmt.Sprintf("^[%s][0-9][0-9]$", "12345"[class-1:])},
	}}
}

func words[T ~string](list []T) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for _, w := range list {
		s.Enum = append(s.Enum, string(w))
	}
	return s
}

// structure is the schema of a mapping with known keys.
func structure(t reflect.Type, path string) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: jsonschema.NewProperties(), AdditionalProperties: jsonschema.FalseSchema}
	for _, f := range reflect.VisibleFields(t) {
		name := f.Tag.Get("yaml")
		if name == "" || f.Anonymous {
			continue
		}
		below := strings.TrimPrefix(path+"."+name, ".")
		property := shorthand(f.Type, below)
		property.Description = strings.Join(slices.DeleteFunc([]string{f.Tag.Get("doc"), property.Description}, func(s string) bool { return s == "" }), "; ")
		s.Properties.Set(name, property)
	}
	if path == "variants[]" {
		s.Required = []string{"name"}
	}
	return s
}

// shorthand is value with the single word that may stand for a mapping: `guard: unique-index`.
func shorthand(t reflect.Type, path string) *jsonschema.Schema {
	s := value(t, path)
	for _, key := range []string{"kind", "preset"} {
		if s.Properties == nil {
			break
		}
		if word, ok := s.Properties.Get(key); ok {
			return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{words(enum(word)), s}}
		}
	}
	return s
}

func enum(s *jsonschema.Schema) []string {
	var out []string
	for _, w := range s.Enum {
		out = append(out, w.(string))
	}
	return out
}

// result is the schema of a result document. Within a major version fields are only added, so a
// reader must expect more.
func result() *jsonschema.Schema {
	r := &jsonschema.Reflector{
		ExpandedStruct: true, AllowAdditionalProperties: true,
		Mapper: func(t reflect.Type) *jsonschema.Schema {
			switch t {
			case reflect.TypeFor[lab.Verdict]():
				return words([]string{"as_expected", "not_as_expected", "inconclusive", "measured"})
			case reflect.TypeFor[lab.Event]():
				return event()
			}
			return nil
		},
	}
	s := r.Reflect(&lab.Document{})
	s.Title = "retrylab result"
	for _, e := range []struct {
		definition, key string
		words           []string
	}{
		{"Check", "kind", []string{"premise", "expect", "invariant", "assert"}},
		{"Node", "role", []string{"caller", "hop", "server"}},
		{"RunInfo", "clock", []string{"virtual", "wall"}},
	} {
		s.Definitions[e.definition].Properties.Set(e.key, words(e.words))
	}
	return s
}

// record is the schema of a line of NDJSON that holds an event: the event, and the trial that it
// belongs to.
func record() *jsonschema.Schema {
	s := event()
	s.Version = jsonschema.Version
	s.Title = "retrylab event"
	for _, p := range []struct {
		name   string
		schema *jsonschema.Schema
	}{
		{"seed", &jsonschema.Schema{Type: "integer", Description: "seed of the trial"}},
		{"id", &jsonschema.Schema{Type: "string", Description: "id of the configuration"}},
		{"scenario", &jsonschema.Schema{Type: "string", Description: "name of the scenario"}},
		{"type", &jsonschema.Schema{Type: "string", Const: "event", Description: "what the line is"}},
	} {
		s.Properties.Set(p.name, p.schema)
		s.Properties.MoveToFront(p.name)
		s.Required = append([]string{p.name}, s.Required...)
	}
	return s
}

// event is the schema of one event: its Go type writes its JSON by hand.
func event() *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: jsonschema.NewProperties(), Required: []string{"t_ms", "kind"}}
	whole := func(doc string) *jsonschema.Schema { return &jsonschema.Schema{Type: "integer", Description: doc} }
	text := func(doc string) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Description: doc} }
	kind := words(lab.Kinds)
	for _, p := range []struct {
		name   string
		schema *jsonschema.Schema
	}{
		{"t_ms", whole("scenario time in milliseconds")},
		{"kind", kind},
		{"operation", text("the intent it belongs to")},
		{"send", text("the path of tries")},
		{"node", text("the machine that recorded it")},
		{"target", text("where a send goes")},
		{"status", whole("HTTP status")},
		{"key", text("idempotency key")},
		{"order", whole("number of the order")},
		{"wait_ms", whole("pause before a retry, in milliseconds")},
		{"remaining_ms", whole("what is left of the limits above a send, in milliseconds")},
		{"fired", &jsonschema.Schema{Type: "boolean", Description: "true on a fault"}},
		{"detail", text("more, by kind")},
	} {
		s.Properties.Set(p.name, p.schema)
	}
	return s
}
