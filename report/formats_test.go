package report

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"retrylab/internal/lab"
)

// views are the documents that every format is looked at with.
func views() map[string]*lab.Document {
	docs := documents()
	out := map[string]*lab.Document{"thousand": thousand()}
	for _, name := range []string{
		"held", "one-failed", "verdicts", "inconclusive", "inconclusive-passes", "seeds", "suite", "only-skipped",
		"empty", "interrupted", "interrupted-nothing", "hostile", "saved", "saved-alike",
	} {
		out[name] = docs[name]
	}
	return out
}

// TestFormatsGolden prints each of the views in every format, but for those that have goldens of their
// own. Of a long one the beginning and a digest are kept.
func TestFormatsGolden(t *testing.T) {
	t.Parallel()
	var files []string
	for name, d := range views() {
		for _, f := range Formats {
			if slices.Contains([]string{"table", "mermaid", "plantuml"}, f.Name) && name != "thousand" {
				continue
			}
			if d.Comparison.OfSaved() && f.Runs {
				continue
			}
			if f.Name == "html" || f.Name == "svg" { // of which those of html_test.go leave out style and script
				continue
			}
			file := filepath.Join("formats", name+"."+f.Name)
			files = append(files, filepath.Join("testdata", file))
			t.Run(file, func(t *testing.T) {
				t.Parallel()
				text := printed(t, f, d, Options{Width: 80, Unicode: true})
				if name == "thousand" {
					lines := strings.SplitAfter(text, "\n")
					text = strings.Join(lines[:min(60, len(lines))], "") + fmt.Sprintf("… %d lines, %x\n", len(lines)-1, sha256.Sum256([]byte(text)))
				}
				golden(t, file, []byte(text))
			})
		}
	}
	found, err := filepath.Glob(filepath.Join("testdata", "formats", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if !slices.Contains(files, f) {
			t.Errorf("%s is not used any more", f)
		}
	}
}

// TestSavedInEveryFormat: what changed between two saved results stands in every format that may carry it, and a reader of
// tests sees as many as there are trials.
func TestSavedInEveryFormat(t *testing.T) {
	t.Parallel()
	d := saved()
	for _, f := range Formats {
		if f.Runs {
			continue
		}
		text := printed(t, f, d, Options{Width: 200, Unicode: true})
		for _, want := range []string{"feign-retryer-3", "0.3×", "it is not there any more", "no fault fired"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s says nothing of %q", f.Name, want)
			}
		}
	}
	for name, want := range map[string]string{"junit": `tests="9" failures="5" errors="2" skipped="0"`, "tap": "1..9\n"} {
		f, _ := Find(name)
		if text := printed(t, f, d, Options{}); !strings.Contains(text, want) {
			t.Errorf("%s: there is no %s in\n%s", name, want, text)
		}
	}
	alike := printed(t, JUnit, savedAlike(), Options{})
	if want := `tests="1" failures="0" errors="0" skipped="0"`; !strings.Contains(alike, want) {
		t.Errorf("nothing changed: there is no %s in\n%s", want, alike)
	}
}

// TestReportAgain prints a document, and the same after it was saved and read, in every format:
// `report` must show what `run` showed.
func TestReportAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long, above all with the race detector")
	}
	t.Parallel()
	docs := documents()
	maps.Copy(docs, views())
	for name, d := range docs {
		again, err := lab.ReadDocument(name, []byte(printed(t, JSON, d, Options{})))
		if err != nil {
			t.Fatal(err)
		}
		o := Options{Width: 80, Unicode: true, Rows: true, Timeline: "always", Verbose: true}
		for _, f := range Formats {
			if first, second := printed(t, f, d, o), printed(t, f, again, o); first != second {
				t.Errorf("%s as %s: -first +again:\n%s", name, f.Name, cmp.Diff(first, second))
			}
		}
	}
}

// TestFormatsSound looks for what no format may print, whatever the names in a document are.
func TestFormatsSound(t *testing.T) {
	t.Parallel()
	for name, d := range documents() {
		for _, f := range Formats {
			text := printed(t, f, d, Options{Width: 80, Unicode: true})
			if !utf8.ValidString(text) || !strings.HasSuffix(text, "\n") {
				t.Errorf("%s as %s: no UTF-8, or no line break at the end", name, f.Name)
			}
			for _, r := range text {
				if unicode.IsControl(r) && r != '\n' && (r != '\t' || f.Name != "plain") {
					t.Errorf("%s as %s holds %U", name, f.Name, r)
				}
			}
		}
	}
}

// TestPlainColumns: every line has every column, and none is empty.
func TestPlainColumns(t *testing.T) {
	t.Parallel()
	for name, d := range views() {
		lines := strings.Split(strings.TrimSuffix(printed(t, Plain, d, Options{}), "\n"), "\n")
		if got, want := len(lines), 1+len(d.Results)+len(ofChanges(d.Comparison))+len(d.Skipped); got != want {
			t.Errorf("%s has %d lines, want %d", name, got, want)
		}
		for _, l := range lines {
			if values := strings.Split(l, "\t"); len(values) != len(plainColumns) || slices.Contains(values, "") {
				t.Errorf("%s: %q has not %d values", name, l, len(plainColumns))
			}
		}
	}
}

// TestOneLine: no two texts are written alike.
func TestOneLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"feign retryer, 3", "feign retryer, 3"},
		{"注文 ⚡ ₹", "注文 ⚡ ₹"},
		{"a\tb\nc\r", `a\tb\nc\r`},
		{`a\tb`, `a\\tb`},
		{`"say" \"x\"`, `"say" \\"x\\"`},
		{"\x1b[31m", `\x1b[31m`},
		{"\xff", "\ufffd"},
	} {
		if got := oneLine(tt.in); got != tt.want {
			t.Errorf("oneLine(%q) = %s, want %s", tt.in, got, tt.want)
		}
	}
}

// TestNDJSONComplete puts a document together again from its lines: nothing is lost, and every line says
// what it is.
func TestNDJSONComplete(t *testing.T) {
	t.Parallel()
	for name, d := range documents() {
		var got lab.Document
		for line := range strings.Lines(printed(t, NDJSON, d, Options{})) {
			var is struct{ Type string }
			read := func(v any) {
				if err := json.Unmarshal([]byte(line), v); err != nil {
					t.Fatalf("%s: %v: %s", name, err, line)
				}
			}
			read(&is)
			switch is.Type {
			case "run":
				read(&got)
				read(&got.Run)
			case "scenario":
				got.Scenarios = append(got.Scenarios, lab.ScenarioInfo{})
				read(&got.Scenarios[len(got.Scenarios)-1])
			case "result":
				got.Results = append(got.Results, lab.Result{})
				read(&got.Results[len(got.Results)-1])
			case "event":
				r := &got.Results[len(got.Results)-1]
				var of struct {
					Scenario, ID string
					Seed         int64
				}
				if read(&of); of.Scenario != printable(r.Scenario) || of.ID != printable(r.ID) || of.Seed != r.Seed {
					t.Errorf("%s: an event of %+v follows the result of %s %s", name, of, r.Scenario, r.ID)
				}
				r.Events = append(r.Events, lab.Event{})
				read(&r.Events[len(r.Events)-1])
			case "skipped":
				got.Skipped = append(got.Skipped, lab.Skip{})
				read(&got.Skipped[len(got.Skipped)-1])
			case "comparison":
				got.Comparison = new(lab.Comparison)
				read(got.Comparison)
			case "summary":
				read(&got.Summary)
				var code struct {
					ExitCode int `json:"exit_code"`
				}
				read(&code)
				got.ExitCode = code.ExitCode
			default:
				t.Errorf("%s: a line is a %q", name, is.Type)
			}
		}
		if diff := cmp.Diff(printed(t, JSON, d, Options{}), printed(t, JSON, &got, Options{})); diff != "" {
			t.Errorf("%s: -document +lines:\n%s", name, diff)
		}
	}
}

// printable is text as JSON gives it back.
func printable(s string) string { return string([]rune(s)) }
