package report

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"retrylab/internal/lab"
)

// here finds every file in the repository.
func here(file string) string { return strings.TrimPrefix(file, "./") }

// nowhere finds none.
func nowhere(string) string { return "" }

// TestGitHubGolden has the summary and the annotations of every verdict, and of names that try to be
// something else.
func TestGitHubGolden(t *testing.T) {
	t.Parallel()
	var files []string
	docs := documents()
	docs["many"] = many()
	for _, name := range []string{"held", "one-failed", "verdicts", "inconclusive", "inconclusive-passes", "interrupted", "only-skipped", "hostile", "many"} {
		d := docs[name]
		file := filepath.Join("github", name+".txt")
		files = append(files, filepath.Join("testdata", file))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, file, []byte(GitHubSummary(d, Options{}, GitHubSummaryMost)+"==== annotations\n"+GitHubAnnotations(d, here)))
		})
	}
	found, err := filepath.Glob(filepath.Join("testdata", "github", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if !slices.Contains(files, f) {
			t.Errorf("%s is not used any more", f)
		}
	}
}

// many has more scenarios that fail, and more that are inconclusive, than GitHub takes annotations.
func many() *lab.Document {
	var infos []lab.ScenarioInfo
	var results []lab.Result
	for i := range 31 {
		r := checked(readTimeout()[0])[0]
		r.Scenario = fmt.Sprintf("scenario-%d", i+1)
		switch i % 3 {
		case 0:
			r.Verdict, r.Checks[1].Held, r.Checks[1].Expected = lab.NotAsExpected, false, "2"
		case 1:
			r.Verdict, r.Why = lab.Inconclusive, "the fault never fired"
		}
		infos = append(infos, lab.ScenarioInfo{Name: r.Scenario})
		results = append(results, r)
	}
	d := document(infos, results...)
	d.ExitCode = 1
	return d
}

// A workflowCommand is what GitHub's runner reads in a line.
type workflowCommand struct {
	name       string
	properties map[string]string
	data       string
}

// readCommand reads a line as the runner does: https://github.com/actions/runner, ActionCommand.TryParseV2.
func readCommand(line string) (c workflowCommand, ok bool) {
	line = strings.TrimSpace(line)
	info, data, ok := strings.Cut(strings.TrimPrefix(line, "::"), "::")
	if !ok || !strings.HasPrefix(line, "::") {
		return c, false
	}
	name, list, _ := strings.Cut(info, " ")
	c = workflowCommand{name, map[string]string{}, strings.NewReplacer("%0D", "\r", "%0A", "\n", "%25", "%").Replace(data)}
	for p := range strings.SplitSeq(list, ",") {
		key, value, _ := strings.Cut(p, "=")
		c.properties[key] = strings.NewReplacer("%0D", "\r", "%0A", "\n", "%3A", ":", "%2C", ",", "%25", "%").Replace(value)
	}
	return c, true
}

// TestGitHubAnnotations reads the annotations of every document again: each is one command, there are at
// most ten of a kind, and a configuration is named in the one of its worst verdict.
func TestGitHubAnnotations(t *testing.T) {
	t.Parallel()
	docs := readable()
	docs["many"] = many()
	for name, d := range docs {
		type configuration struct{ scenario, id string }
		want := map[configuration]string{}
		for _, r := range d.Results {
			level, own := "", configuration{escape(r.Scenario), escape(r.ID)}
			switch {
			case r.Verdict == lab.NotAsExpected && slices.ContainsFunc(r.Checks, func(c lab.Check) bool { return !c.Held }), r.Defect, r.Environment:
				level = "error"
			case r.Verdict == lab.Inconclusive:
				level = "warning"
			}
			if level != "" && want[own] != "error" {
				want[own] = level
			}
		}
		for _, x := range ofChanges(d.Comparison) {
			own := configuration{escape(x.Scenario), escape(x.ID)}
			switch was := want[own]; x.Kind {
			case lab.ChangeMeasured, lab.ChangeNew, lab.ChangeGone:
				want[own] = "error"
			case lab.ChangeOpen:
				if was == "" {
					want[own] = "warning"
				}
			}
		}
		got := map[configuration]bool{}
		levels := map[string]int{}
		more := 0
		for line := range strings.Lines(GitHubAnnotations(d, nowhere)) {
			c, ok := readCommand(line)
			if !ok {
				t.Fatalf("%s: no command: %s", name, line)
			}
			levels[c.name]++
			scenario, ok := strings.CutPrefix(c.properties["title"], "retrylab: ")
			if n := 0; !ok {
				if _, err := fmt.Sscanf(c.data, "%d more in the summary", &n); err != nil || c.properties["title"] != "retrylab" {
					t.Errorf("%s: %+v", name, c)
				}
				more += n
				continue
			}
			for own, level := range want {
				if own.scenario == scenario && level == c.name && strings.HasPrefix(c.data, own.id+": ") {
					got[own] = true
				}
			}
			if c.data == "" || len(c.data) > 4096 || c.properties["file"] != "" || c.properties["line"] != "" {
				t.Errorf("%s: %+v", name, c)
			}
		}
		if levels["error"] > 10 || levels["warning"] > 10 || len(got)+more != len(want) {
			t.Errorf("%s: %v and %d more, want %d", name, levels, more, len(want))
		}
	}
}

// TestGitHubCommand has texts that would end a command, or a part of it.
func TestGitHubCommand(t *testing.T) {
	t.Parallel()
	const nasty = "a, b: c%\r\nd::error::%0A%25 注文 ⚡ e"
	line := GitHubCommand("warning", nasty, 0, nasty, nasty)
	if strings.Count(line, "\n") != 1 || !strings.HasSuffix(line, "\n") || strings.Contains(line, "\r") {
		t.Errorf("it is not one line: %q", line)
	}
	got, _ := readCommand(line)
	want := workflowCommand{"warning", map[string]string{"file": nasty, "line": "1", "title": nasty}, nasty}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(workflowCommand{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	long, _ := readCommand(GitHubCommand("error", "", 0, "", strings.Repeat("注", 5000)))
	if len(long.data) > 4096 || !utf8.ValidString(long.data) || !strings.HasSuffix(long.data, "注…") {
		t.Errorf("a long text has %d bytes", len(long.data))
	}
}

// TestGitHubPlace: an annotation stands at the first check that did not hold, else at the scenario's
// file, and never at a file that is not in the repository.
func TestGitHubPlace(t *testing.T) {
	t.Parallel()
	check := func(kind, file string, line int, held bool) lab.Check {
		return lab.Check{Kind: kind, Name: kind, Expected: "1", Actual: "2", Held: held, File: file, Line: line}
	}
	for _, tt := range []struct {
		name, want string
		at         func(string) string
		results    []lab.Result
	}{
		{"the first that did not hold", "::error file=a.yaml,line=7,", here, []lab.Result{
			{Verdict: lab.NotAsExpected, Checks: []lab.Check{check("expect", "./a.yaml", 5, true), check("expect", "./a.yaml", 7, false), check("expect", "./a.yaml", 9, false)}}}},
		{"an assertion of the command line", "::error file=a.yaml,line=1,", here, []lab.Result{
			{Verdict: lab.NotAsExpected, Checks: []lab.Check{check("expect", "./a.yaml", 5, true), check("assert", "", 0, false)}}}},
		{"what failed, before what is inconclusive", "::error file=a.yaml,line=9,", here, []lab.Result{
			{Verdict: lab.Inconclusive, Checks: []lab.Check{check("premise", "./a.yaml", 3, false)}},
			{Verdict: lab.NotAsExpected, Checks: []lab.Check{check("expect", "./a.yaml", 9, false)}}}},
		{"a premise", "::warning file=a.yaml,line=3,", here, []lab.Result{
			{Verdict: lab.Inconclusive, Checks: []lab.Check{check("premise", "./a.yaml", 3, false)}}}},
		{"nothing to point at", "::error title=", here, []lab.Result{{Verdict: lab.Inconclusive, Defect: true, Why: "it broke"}}},
		{"not in the repository", "::error title=", nowhere, []lab.Result{
			{Verdict: lab.NotAsExpected, Checks: []lab.Check{check("expect", "./a.yaml", 5, false)}}}},
	} {
		for i := range tt.results {
			tt.results[i].Scenario, tt.results[i].ID = "s", "c"
		}
		got := GitHubAnnotations(document(nil, tt.results...), tt.at)
		if !strings.HasPrefix(got, tt.want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: %q, want %q…", tt.name, got, tt.want)
		}
	}
}

// TestGitHubTurns: where there is no room for all, no scenario has two annotations before another has one, and what has
// no line of its own stands at the file of its scenario.
func TestGitHubTurns(t *testing.T) {
	t.Parallel()
	var results []lab.Result
	var infos []lab.ScenarioInfo
	for i := range 4 {
		name := fmt.Sprint("s", i)
		infos = append(infos, lab.ScenarioInfo{Name: name, File: name + ".yaml"})
		for k := range 5 {
			results = append(results, lab.Result{
				Scenario: name, ID: fmt.Sprint("c", k), Verdict: lab.NotAsExpected,
				Checks: []lab.Check{{Kind: "expect", Name: "effects", Expected: "1", Actual: "2", File: name + ".yaml", Line: k}},
			})
		}
	}
	var got []string
	for line := range strings.Lines(GitHubAnnotations(document(infos, results...), here)) {
		c, _ := readCommand(line)
		id, _, _ := strings.Cut(c.data, ":")
		got = append(got, c.properties["file"]+":"+c.properties["line"]+" "+id)
	}
	want := []string{
		"s0.yaml:1 c0", "s1.yaml:1 c0", "s2.yaml:1 c0", "s3.yaml:1 c0", "s0.yaml:1 c1", "s1.yaml:1 c1", "s2.yaml:1 c1", "s3.yaml:1 c1",
		"s0.yaml:2 c2", ": 11 more in the summary",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestGitHubGroup folds under a title of any kind, in one line.
func TestGitHubGroup(t *testing.T) {
	t.Parallel()
	begin, end := GitHubGroup("a\n::error::b%0A\x1b[1m" + strings.Repeat("注", 100))
	if !strings.HasPrefix(begin, "::group::a") || strings.Count(begin, "\n") != 1 || strings.Contains(begin, "%0A") || strings.ContainsRune(begin, 0x1b) || len(begin) > 250 || end != "::endgroup::\n" {
		t.Errorf("%q, %q", begin, end)
	}
}

// TestGitHubSummaryRoom gives a summary less and less room: it keeps to it, says that it is cut, and what is
// left is whole.
func TestGitHubSummaryRoom(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long, above all with the race detector")
	}
	t.Parallel()
	reader := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()
	docs := documents()
	docs["many"], docs["thousand"] = many(), thousand()
	for name, d := range docs {
		whole := GitHubSummary(d, Options{}, GitHubSummaryMost)
		if strings.Contains(whole, "900 kB") {
			t.Fatalf("%s: a summary of %d bytes is cut", name, len(whole))
		}
		if got := GitHubSummary(d, Options{}, len(whole)); got != whole {
			t.Errorf("%s: it is cut though it fits", name)
		}
		for i := range 40 {
			room := (len(whole) - 1) * i / 39
			got := GitHubSummary(d, Options{}, room)
			if len(got) > room {
				t.Fatalf("%s: %d bytes in a room of %d", name, len(got), room)
			}
			if got == "" && room > 200 {
				t.Errorf("%s: nothing in a room of %d", name, room)
			}
			if got == "" || whole == "" {
				continue
			}
			if strings.Count(got, "900 kB") != 1 || !strings.HasSuffix(got, "\n") {
				t.Errorf("%s, room %d: it does not say that it is cut: …%q", name, room, got[max(0, len(got)-80):])
			}
			if strings.Count(got, "<details>") != strings.Count(got, "</details>") {
				t.Errorf("%s, room %d: it ends within what is folded", name, room)
			}
			lines := strings.SplitAfter(whole, "\n")
			for line := range strings.Lines(got) {
				if !slices.Contains(lines, line) && !strings.Contains(line, "900 kB") {
					t.Fatalf("%s, room %d: a part of a line: %q", name, room, line)
				}
			}
			said := false // as a paragraph, not within a block or a table
			for n := reader.Parse(text.NewReader([]byte(got))).FirstChild(); n != nil; n = n.NextSibling() {
				if n.Kind() == ast.KindParagraph && strings.Contains(string(n.Lines().Value([]byte(got))), "900 kB") {
					said = true
				}
			}
			if !said {
				t.Errorf("%s, room %d: the line that says that it is cut is part of something else", name, room)
			}
		}
	}
}

// TestGitHubSummaryHuge: a run of eight thousand configurations is cut at the limit.
func TestGitHubSummaryHuge(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long, above all with the race detector")
	}
	t.Parallel()
	d := thousand()
	for i := range 7 {
		for _, r := range d.Results[:1000] {
			r.ID = fmt.Sprintf("%s-%d", r.ID, i)
			r.Configuration = r.ID
			d.Results = append(d.Results, r)
		}
	}
	got := GitHubSummary(d, Options{Timeline: "never"}, GitHubSummaryMost)
	if len(got) > GitHubSummaryMost || len(got) < GitHubSummaryMost/2 || !strings.Contains(got, "900 kB") || !strings.Contains(got, "```mermaid\n") {
		t.Errorf("it has %d bytes and ends in %q", len(got), got[max(0, len(got)-200):])
	}
}

// TestGitHubDiagram is in the summary where something failed that has events, and not where Mermaid would
// refuse it.
func TestGitHubDiagram(t *testing.T) {
	t.Parallel()
	failed := func(name string) *lab.Document {
		d := documents()[name]
		d.Results[0].Verdict = lab.NotAsExpected
		return d
	}
	without := failed("held")
	without.Results[0].Events = nil
	long := failed("held")
	e := long.Results[0].Events[0]
	long.Results[0].Events = nil
	for i := range 150 {
		e.Kind, e.Detail, e.Node = lab.Fault, strings.Repeat("ﬂ", 100), fmt.Sprint("node ", i%10)
		long.Results[0].Events = append(long.Results[0].Events, e)
	}
	for name, tt := range map[string]struct {
		d    *lab.Document
		want bool
	}{
		"held": {documents()["held"], false}, "inconclusive": {documents()["inconclusive"], false}, "failed": {failed("held"), true},
		"without events": {without, false}, "too long": {long, false},
	} {
		if got := strings.Contains(GitHubSummary(tt.d, Options{}, GitHubSummaryMost), "\n```mermaid\nsequenceDiagram\n"); got != tt.want {
			t.Errorf("%s: a diagram: %v, want %v", name, got, tt.want)
		}
	}
}

// TestGitHubAgain: a saved result says the same as the run.
func TestGitHubAgain(t *testing.T) {
	t.Parallel()
	docs := documents()
	maps.Copy(docs, views())
	for name, d := range docs {
		again, err := lab.ReadDocument(name, []byte(printed(t, JSON, d, Options{})))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(GitHubSummary(d, Options{}, GitHubSummaryMost), GitHubSummary(again, Options{}, GitHubSummaryMost)); diff != "" {
			t.Errorf("%s: -first +again:\n%s", name, diff)
		}
		if diff := cmp.Diff(GitHubAnnotations(d, here), GitHubAnnotations(again, here)); diff != "" {
			t.Errorf("%s: -first +again:\n%s", name, diff)
		}
	}
}
