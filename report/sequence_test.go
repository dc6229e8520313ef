package report

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"retrylab/internal/lab"
)

// TestSequenceGolden prints every document in both languages.
func TestSequenceGolden(t *testing.T) {
	t.Parallel()
	docs := documents()
	for _, f := range []struct {
		Format
		file, comment string
	}{{Mermaid, "sequences.mmd", "%%"}, {PlantUML, "sequences.puml", "'"}} {
		var all bytes.Buffer
		for _, name := range slices.Sorted(maps.Keys(docs)) {
			fmt.Fprintf(&all, "%s %s\n%s", f.comment, name, printed(t, f.Format, docs[name], Options{}))
		}
		golden(t, f.file, all.Bytes())
	}
}

// What a line of each language may look like. A text holds no character with which it could begin
// another statement, a comment, a directive, markup or an entity that was not written here.
var (
	mermaidText = `(?:[^\x00-\x7f]|[A-Za-z0-9 .,:()/+-]|#\d+;|<br/>)+`
	mermaidLine = regexp.MustCompile("^(?:|```|```mermaid|sequenceDiagram|    title: T|    participant p\\d+ as T" +
		`|    p\d+(?:->>|-->>|-x|--x)p\d+: T|    Note over p\d+(?:,p\d+)?: T)$`)
	plantText = `(?:[^\x00-\x7f]|[A-Za-z0-9 .,:()/+-]|<U\+[0-9A-F]{4}>|\\n)+`
	plantLine = regexp.MustCompile(`^(?:|@startuml|@enduml|title T|participant "T" as p\d+` +
		`|p\d+ (?:->|-->|->x|-->x) p\d+ : T|note over p\d+(?:, p\d+)? : T)$`)
)

// shaped reports the first line of a diagram that is not of the shape that its language wants.
func shaped(text string, line *regexp.Regexp, word string) error {
	shape := regexp.MustCompile(strings.ReplaceAll(line.String(), "T", word))
	for i, l := range strings.Split(text, "\n") {
		if !shape.MatchString(l) {
			return fmt.Errorf("line %d: %q", i+1, l)
		}
	}
	return nil
}

func TestSequenceShape(t *testing.T) {
	t.Parallel()
	for name, d := range documents() {
		if err := shaped(printed(t, Mermaid, d, Options{}), mermaidLine, mermaidText); err != nil {
			t.Errorf("%s: mermaid: %v", name, err)
		}
		if err := shaped(printed(t, PlantUML, d, Options{}), plantLine, plantText); err != nil {
			t.Errorf("%s: plantuml: %v", name, err)
		}
	}
}

func FuzzSequenceText(f *testing.F) {
	for _, s := range []string{
		"", "end", "a;b", "#quot;", "%%{init: {}}%%", "%getenv(\"HOME\")", "<script>alert(1)</script>", "ﬂ°°60¶ß",
		"--x", "\nparticipant x", "[[https://example.com]]", "<img:/etc/passwd>", "~~wave~~", "$$x$$", "\x1b[31m", "wrap: x", "名前 🛒",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d := &lab.Document{Results: []lab.Result{{
			Scenario: s, Configuration: s, Nodes: []lab.Node{{Name: s}, {Name: "order-1"}},
			Events: []lab.Event{
				{Kind: lab.Send, Operation: "op-1", Send: "op-1/" + s + ".1", Node: s, Target: "order-1"},
				{Kind: lab.Fault, Operation: "op-1", Node: "order-1", Detail: s},
			},
		}}}
		if err := shaped(printed(t, Mermaid, d, Options{}), mermaidLine, mermaidText); err != nil {
			t.Errorf("mermaid: %v", err)
		}
		if err := shaped(printed(t, PlantUML, d, Options{}), plantLine, plantText); err != nil {
			t.Errorf("plantuml: %v", err)
		}
	})
}

// TestSequenceAgain draws a saved result as it drew the live one.
func TestSequenceAgain(t *testing.T) {
	t.Parallel()
	for name, d := range documents() {
		again := decode(t, printed(t, JSON, d, Options{}))
		if diff := cmp.Diff(printed(t, PlantUML, d, Options{}), printed(t, PlantUML, again, Options{})); diff != "" {
			t.Errorf("%s: -first +again:\n%s", name, diff)
		}
	}
}

// TestSequenceBounded draws a crowd, of which it says how much is left out.
func TestSequenceBounded(t *testing.T) {
	t.Parallel()
	crowd := newBench("crowd", "crowd", "crowd")
	for i := range 1000 {
		op := fmt.Sprintf("op-%d", i+1)
		crowd.start(op, 0)
		crowd.try("caller", op+"/retry.1", 0, 1, 201)
		crowd.serve("order-1", op+"/retry.1", 0, 1)
		if i == 700 {
			crowd.serve("order-1", op+"/retry.2", 0, 2)
		}
	}
	long := newBench("long", "long", "long")
	long.start("op-1", 0)
	for i := range 1000 {
		long.try("caller", fmt.Sprintf("op-1/retry.%d", i+1), float64(i), float64(i)+0.5, "read")
	}
	for _, c := range []struct {
		r     *lab.Result
		wants []string
	}{
		{&crowd.r, []string{"of 1000 operations drawn", "op-701/retry.1"}},
		{&long.r, []string{"more events left out"}},
	} {
		text := printed(t, Mermaid, &lab.Document{Results: []lab.Result{*c.r}}, Options{})
		for _, want := range c.wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", c.r.Scenario, want, text)
			}
		}
		if n := strings.Count(text, "\n"); n > sequenceSteps+sequenceParties+4 {
			t.Errorf("%s: %d lines", c.r.Scenario, n)
		}
	}
}
