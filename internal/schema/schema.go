// Package schema makes the JSON Schemas of what people and programs exchange with the lab: the
// scenario file and the result. It is the door of the schema library; the schemas come from the Go
// types, so that they cannot say something else.
package schema

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/invopop/jsonschema"

	"retrylab/caller/policy"
	"retrylab/caller/preset"
	"retrylab/internal/expression"
	"retrylab/internal/lab"
	"retrylab/scenarios"
	"retrylab/slowserver/fault"
	"retrylab/slowserver/guard"
)

// Kinds lists the schemas that there are.
var Kinds = []string{"scenario", "result"}

// Of returns a schema as indented JSON. kind is one of Kinds.
func Of(kind string) ([]byte, error) {
	s := result()
	if kind == "scenario" {
		s = scenario()
	}
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(out, '\n'), nil
}

// durationPattern is what a duration looks like in a file: a number and its unit, more than once.
const durationPattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`

// scenario is the schema of a scenario file, for editors. The decoder checks more than a schema
// can say.
func scenario() *jsonschema.Schema {
	r := &jsonschema.Reflector{
		FieldNameTag: "yaml", ExpandedStruct: true, DoNotReference: true, Anonymous: true,
		RequiredFromJSONSchemaTags: true,
		Mapper:                     fileType,
	}
	s := r.ReflectFromType(scenarios.FileType())
	describe(s, scenarios.FileType())
	s.Title = "retrylab scenario"
	s.Required = []string{"name"}
	return s
}

// fileType gives the types that a file writes in a way of their own.
func fileType(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return &jsonschema.Schema{Type: "string", Pattern: durationPattern, Examples: []any{"5s"}}
	case reflect.TypeFor[scenarios.Money]():
		return &jsonschema.Schema{Type: "number", Minimum: "0", Examples: []any{json.Number("49.99")}}
	case reflect.TypeFor[scenarios.Demand]():
		return &jsonschema.Schema{Type: "string", Description: "an expression over: " + strings.Join(expression.Names(), ", ")}
	case reflect.TypeFor[fault.Place]():
		return words(fault.Places)
	case reflect.TypeFor[policy.Body]():
		return words(policy.Bodies)
	case scenarios.SetsType():
		return &jsonschema.Schema{Type: "object", Description: "paths and their values, such as caller.timeouts.read: 15s"}
	case reflect.TypeFor[[]scenarios.Demand]():
		one := fileType(reflect.TypeFor[scenarios.Demand]())
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{one, {Type: "array", Items: one}}}
	}
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String {
		// One item may stand without its list, and a status is a number.
		one := &jsonschema.Schema{Type: "string"}
		item := &jsonschema.Schema{OneOf: []*jsonschema.Schema{one, {Type: "integer"}}}
		return &jsonschema.Schema{OneOf: []*jsonschema.Schema{one, {Type: "integer"}, {Type: "array", Items: item}}}
	}
	return nil
}

func words[T ~string](list []T) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for _, w := range list {
		s.Enum = append(s.Enum, string(w))
	}
	return s
}

// describe takes the descriptions from the types' doc tags, and completes what types cannot say:
// the words that are allowed, and the single value that may stand for a mapping.
func describe(s *jsonschema.Schema, t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		if t.Kind() == reflect.Slice && s.Items != nil {
			s = s.Items
		}
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || s.Properties == nil {
		return
	}
	for _, f := range reflect.VisibleFields(t) {
		name := f.Tag.Get("yaml")
		property, ok := s.Properties.Get(name)
		if !ok || f.Anonymous {
			continue
		}
		property.Description = strings.Join(slices.DeleteFunc([]string{f.Tag.Get("doc"), property.Description}, func(s string) bool { return s == "" }), "; ")
		describe(property, f.Type)
		switch f.Type {
		case reflect.TypeFor[guard.Settings]():
			s.Properties.Set(name, &jsonschema.Schema{
				Description: property.Description,
				OneOf:       []*jsonschema.Schema{words(guardNames()), property},
			})
		case reflect.TypeFor[[]policy.Settings]():
			property.Items = &jsonschema.Schema{OneOf: []*jsonschema.Schema{words(preset.Names()), property.Items}}
		}
	}
}

func guardNames() []string {
	var names []string
	for _, g := range guard.All {
		names = append(names, g.Name)
	}
	return names
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
