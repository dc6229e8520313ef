package report

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"retrylab/internal/lab"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a file under testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (write it with -update)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: -want +got:\n%s", path, diff)
	}
}

func printed(t testing.TB, f Format, d *lab.Document, o Options) string {
	t.Helper()
	var buf bytes.Buffer
	if err := f.Write(&buf, d, o); err != nil {
		t.Fatalf("%s: %v", f.Name, err)
	}
	return buf.String()
}

// TestTableGolden prints every document at two widths and in both character sets. Some have
// something more to show.
func TestTableGolden(t *testing.T) {
	t.Parallel()
	more := map[string][]Options{
		"read-timeout": {
			{Width: 80, Unicode: true, Color: true},
			{Width: 60, Unicode: true},
			{Width: 200, Unicode: true},
			{Width: 80, Unicode: true, Timeline: "never"},
		},
		"herd":              {{Width: 60, Unicode: true, Color: true}},
		"stores":            {{Width: 80, Unicode: true, Verbose: true}, {Width: 60, Verbose: true}, {Width: 80, Color: true, Unicode: true, Verbose: true}},
		"read-timeout-wall": {{Width: 80, Unicode: true, Verbose: true}},
		"verdicts":          {{Width: 80, Unicode: true, Color: true}, {Width: 80, Unicode: true, Wide: true}},
		"suite":             {{Width: 80, Unicode: true, Timeline: "always"}},
		"order-incident":    {{Width: 80, Unicode: true, Rows: true}},
		"cashback":          {{Width: 80, Unicode: true, Rows: true}},
		"stacked-retries":   {{Width: 60, Unicode: true, Rows: true}},
		"three-layers":      {{Width: 60, Unicode: true}, {Width: 200, Unicode: true}},
		"hostile":           {{Width: 60, Rows: true}, {Width: 100, Unicode: true, Rows: true, Color: true}},
	}
	for name, d := range documents() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all bytes.Buffer
			options := []Options{{Width: 80, Unicode: true}, {Width: 120, Unicode: true}, {Width: 80}, {Width: 120}}
			for _, o := range append(options, more[name]...) {
				fmt.Fprintf(&all, "==== %s\n%s", strings.Replace(fmt.Sprintf("%+v", o), " Section:<nil>", "", 1), printed(t, Table, d, o))
			}
			golden(t, name+".golden", all.Bytes())
		})
	}
}

func TestJSONGolden(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"empty", "unfinished", "deadline", "stores"} {
		golden(t, name+".json", []byte(printed(t, JSON, documents()[name], Options{})))
	}
}

// TestGoldenFilesBelong finds golden files whose document is gone.
func TestGoldenFilesBelong(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "*.golden"))
	if err != nil {
		t.Fatal(err)
	}
	docs := documents()
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".golden"); docs[name] == nil {
			t.Errorf("%s: no document of that name", f)
		}
	}
	if got, want := len(files), len(docs); got != want {
		t.Errorf("%d golden files for %d documents", got, want)
	}
}

var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

// sound reports the first thing that is wrong with a printed table, whatever it says.
func sound(d *lab.Document, o Options) error {
	var buf bytes.Buffer
	if err := Table.Write(&buf, d, o); err != nil {
		return err
	}
	text := buf.String()
	if o.Color {
		without := o
		without.Color = false
		var other bytes.Buffer
		if err := Table.Write(&other, d, without); err != nil {
			return err
		}
		text = sgr.ReplaceAllString(text, "")
		if diff := cmp.Diff(other.String(), text); diff != "" {
			return fmt.Errorf("colour changes more than colour: -without +with:\n%s", diff)
		}
	}
	if !strings.HasSuffix(text, "\n") || strings.HasSuffix(text, "\n\n") {
		return fmt.Errorf("does not end with one line break: %q", text[max(0, len(text)-20):])
	}
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if !utf8.ValidString(line) {
			return fmt.Errorf("line %d is not UTF-8: %q", i+1, line)
		}
		for _, r := range line {
			if !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r) {
				return fmt.Errorf("line %d holds %U: %q", i+1, r, line)
			}
			if !o.Unicode && r >= utf8.RuneSelf {
				return fmt.Errorf("line %d is not ASCII: %q", i+1, line)
			}
		}
		if got := width(line); got > o.Width && !o.Wide {
			return fmt.Errorf("line %d has %d columns, want at most %d: %q", i+1, got, o.Width, line)
		}
		if strings.HasSuffix(line, " ") {
			return fmt.Errorf("line %d ends with a blank: %q", i+1, line)
		}
	}
	return nil
}

func TestTableSound(t *testing.T) {
	t.Parallel()
	docs := documents()
	for _, name := range slices.Sorted(maps.Keys(docs)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, w := range []int{60, 61, 73, 80, 120, 200} {
				for _, o := range []Options{
					{Width: w, Unicode: true, Timeline: "always", Rows: true},
					{Width: w, Timeline: "always", Rows: true, Color: true, Verbose: true},
					{Width: w, Unicode: true, Wide: true},
				} {
					if err := sound(docs[name], o); err != nil {
						t.Errorf("%+v: %v", o, err)
					}
				}
			}
		})
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, f := range Formats {
		if f.Name == "" || f.Doc == "" || f.Write == nil {
			t.Errorf("format %q is not complete", f.Name)
		}
		if seen[f.Name] {
			t.Errorf("format %q is listed twice", f.Name)
		}
		seen[f.Name] = true
		got, ok := Find(f.Name)
		if !ok || got.Name != f.Name {
			t.Errorf("Find(%q) = %q, %v", f.Name, got.Name, ok)
		}
	}
	if _, ok := Find("smoke signals"); ok {
		t.Error("Find found a format that is not listed")
	}
}

// TestFormatsLeaveDocumentAlone keeps a format from setting things straight in what others print
// after it.
func TestFormatsLeaveDocumentAlone(t *testing.T) {
	t.Parallel()
	before := documents()
	for name, d := range documents() {
		for _, f := range Formats {
			printed(t, f, d, Options{Width: 80, Unicode: true, Rows: true, Timeline: "always", Verbose: true})
		}
		if diff := cmp.Diff(before[name], d); diff != "" {
			t.Errorf("%s: -before +after:\n%s", name, diff)
		}
	}
}

type fullDisk struct{}

var errFull = errors.New("no space left on device")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestWriteError(t *testing.T) {
	t.Parallel()
	d := documents()["read-timeout"]
	for _, f := range Formats {
		if err := f.Write(fullDisk{}, d, Options{}); !errors.Is(err, errFull) {
			t.Errorf("%s: got %v, want %v", f.Name, err, errFull)
		}
	}
}

// TestOneDoor keeps the table library behind one file.
func TestOneDoor(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range f.Imports {
			if strings.Contains(imp.Path.Value, "tablewriter") && file != "grid.go" {
				t.Errorf("%s imports %s; only grid.go does", file, imp.Path.Value)
			}
		}
	}
}

func BenchmarkTable(b *testing.B) {
	docs := documents()
	for _, name := range []string{"read-timeout", "stacked-retries", "retry-storm", "hundred", "suite"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				printed(b, Table, docs[name], Options{Width: 80, Unicode: true, Color: true, Timeline: "never"})
			}
		})
	}
}

func BenchmarkTimeline(b *testing.B) {
	docs := documents()
	for _, name := range []string{"read-timeout", "stacked-retries", "three-layers", "retry-storm"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			s := newSetting(Options{Width: 80, Unicode: true, Color: true})
			for b.Loop() {
				s.timeline(name, "", &docs[name].Results[0])
			}
		})
	}
}

func BenchmarkJSON(b *testing.B) {
	d := documents()["retry-storm"]
	b.ReportAllocs()
	for b.Loop() {
		printed(b, JSON, d, Options{})
	}
}

// TestSummary prints what somebody has to look at, and the line that counts.
func TestSummary(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		doc  *lab.Document
		want string
	}{
		{"nothing", &lab.Document{}, "nothing ran\n"},
		{"held", &lab.Document{
			Results: []lab.Result{{Scenario: "s", ID: "a", Verdict: lab.AsExpected}}, Summary: lab.Summary{AsExpected: 1},
		}, "1 scenario, 1 configuration: 1 held\n"},
		{"one not", &lab.Document{
			Results: []lab.Result{{Scenario: "s", ID: "a", Verdict: lab.AsExpected}, {Scenario: "s", ID: "b", Verdict: lab.Inconclusive, Why: "it rained"}},
			Summary: lab.Summary{AsExpected: 1, Inconclusive: 1},
		}, "INCONCLUSIVE  s:b\n  it rained\n\n1 scenario, 2 configurations: 1 held, 1 inconclusive\n"},
	} {
		var b bytes.Buffer
		if err := Summary(&b, c.doc, Options{Width: 80, Unicode: true}); err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimLeft(b.String(), "\n"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
