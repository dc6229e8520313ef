package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	joshdk "github.com/joshdk/go-junit"
	jstemmer "github.com/jstemmer/go-junit-report/v2/junit"
	"github.com/mpontillo/tap13"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
	"go.yaml.in/yaml/v3"

	"retrylab/internal/lab"
)

// tally is what a reader finds in a report.
type tally struct{ Tests, Failed, Errored, Skipped int }

// tallyOf counts the checks of a document as a reader of its report must find them.
func tallyOf(d *lab.Document) (n tally) {
	n.Skipped = len(d.Skipped)
	n.Tests = n.Skipped
	if c := d.Comparison; c.OfSaved() {
		n.Tests += len(c.Changes) + len(c.Open) + len(c.Same)
		for _, x := range slices.Concat(c.Changes, c.Open) {
			if x.Kind == lab.ChangeOpen {
				n.Errored++
			} else {
				n.Failed++
			}
		}
	}
	for _, r := range d.Results {
		open := false
		for _, c := range r.Checks {
			n.Tests++
			if !c.Held && r.Verdict != lab.Inconclusive {
				n.Failed++
			}
			if !c.Held && r.Verdict == lab.Inconclusive {
				open = true
				n.inconclusive(d, r)
			}
		}
		if r.Verdict == lab.Inconclusive && !open {
			n.Tests++
			n.inconclusive(d, r)
		}
	}
	return n
}

func (n *tally) inconclusive(d *lab.Document, r lab.Result) {
	if d.Run.InconclusivePasses && !r.Defect && !r.Environment {
		n.Skipped++
	} else {
		n.Errored++
	}
}

// TestJUnitReaders has two readers of others count what is in a report.
func TestJUnitReaders(t *testing.T) {
	t.Parallel()
	for name, d := range readable() {
		data := []byte(printed(t, JUnit, d, Options{}))
		want := tallyOf(d)

		suites, err := joshdk.Ingest(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got tally
		for _, s := range suites {
			got.Tests += s.Totals.Tests
			got.Failed += s.Totals.Failed
			got.Errored += s.Totals.Error
			got.Skipped += s.Totals.Skipped
			if len(s.Tests) == 0 || s.Properties["seed"]+s.Properties["before"] == "" {
				t.Errorf("%s: the suite %q has %d tests and the properties %v", name, s.Name, len(s.Tests), s.Properties)
			}
			for _, c := range s.Tests {
				if c.Name == "" || c.Classname == "" || c.Status != joshdk.StatusPassed && c.Message == "" {
					t.Errorf("%s: a test without a name, a class or a message: %+v", name, c)
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s, joshdk/go-junit: -document +report:\n%s", name, diff)
		}

		var all jstemmer.Testsuites
		if err := xml.Unmarshal(data, &all); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := (tally{all.Tests, all.Failures, all.Errors, all.Skipped}); got != want {
			t.Errorf("%s, go-junit-report: %+v, want %+v", name, got, want)
		}
		got = tally{}
		for _, s := range all.Suites {
			told := tally{s.Tests, s.Failures, s.Errors, s.Skipped}
			var counted jstemmer.Testsuite
			for _, c := range s.Testcases {
				counted.AddTestcase(c)
			}
			if found := (tally{counted.Tests, counted.Failures, counted.Errors, counted.Skipped}); found != told {
				t.Errorf("%s, go-junit-report: the suite %q says %+v and has %+v", name, s.Name, told, found)
			}
			got = tally{got.Tests + told.Tests, got.Failed + told.Failed, got.Errored + told.Errored, got.Skipped + told.Skipped}
		}
		if got != want {
			t.Errorf("%s, go-junit-report: the suites say %+v, want %+v", name, got, want)
		}
	}
}

// readable are the documents for readers: all that there are, and a long one.
func readable() map[string]*lab.Document {
	docs := documents()
	docs["thousand"] = thousand()
	return docs
}

// TestTAPReader has a reader of others count what is in a report, and another library than the one that
// wrote them read the blocks. TAP knows no errors beside failures.
func TestTAPReader(t *testing.T) {
	t.Parallel()
	for name, d := range readable() {
		r := tap13.Parse(strings.Split(printed(t, TAP, d, Options{}), "\n"))
		want := tallyOf(d)
		if got := (tally{Tests: r.TotalTests, Failed: r.FailedTests, Skipped: r.SkippedTests}); got != (tally{Tests: want.Tests, Failed: want.Failed + want.Errored, Skipped: want.Skipped}) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		if want.Tests == 0 {
			want.Tests = -1 // it takes no plan with a reason
		}
		if r.TapVersion != 14 || r.ExpectedTests != want.Tests || r.BailOut != d.Run.Interrupted || r.TodoTests != 0 {
			t.Errorf("%s: version %d, %d planned, bailed out %v, %d to do", name, r.TapVersion, r.ExpectedTests, r.BailOut, r.TodoTests)
		}
		_, assertions := assertionsOf(d)
		var list []assertion
		names, _ := assertionsOf(d)
		for _, scenario := range names {
			list = append(list, assertions[scenario]...)
		}
		for i, test := range r.Tests {
			if test.TestNumber != i+1 {
				t.Errorf("%s: test %d is the %d.", name, test.TestNumber, i+1)
			}
			var block struct {
				Message, Severity, Expected, Actual, Again string
				At                                         struct {
					File string
					Line int
				}
				Evidence []string
			}
			if err := yaml.Unmarshal(test.YamlBytes, &block); err != nil {
				t.Errorf("%s: test %d: %v:\n%s", name, i+1, err, test.YamlBytes)
			}
			a := list[i]
			for j, e := range a.evidence {
				a.evidence[j] = tapItem(e)
			}
			if block.Expected != a.expected || block.Actual != a.actual || block.At.File != a.file || (block.Severity != "") != (test.Failed) {
				t.Errorf("%s: test %d has the block %+v, want that of %+v", name, i+1, block, a)
			}
			if test.Failed && (block.Message != a.message || block.Again != a.command || !cmp.Equal(block.Evidence, a.evidence)) {
				t.Errorf("%s: test %d has the block %+v, want that of %+v", name, i+1, block, a)
			}
		}
	}
}

// tapParser reads reports, with a zero byte between two, with Perl's TAP::Parser, and says in a line of
// JSON for each what it found. One that knows no later version than 13 reads them as that, since what
// they use is the same in both.
const tapParser = `
use strict; use warnings; use TAP::Parser;
sub parse {
	my $p = TAP::Parser->new({ tap => $_[0] }); my $bail = 0;
	while (my $r = $p->next) { $bail = 1 if $r->is_bailout }
	return ($p, $bail);
}
my ($known) = parse("TAP version 14\n1..0\n");
my $old = grep { /versions later than 13/ } $known->parse_errors;
local $/ = "\0";
while (my $tap = <STDIN>) {
	chomp $tap;
	$tap =~ s/^TAP version 14$/TAP version 13/m if $old;
	my ($p, $bail) = parse($tap);
	my $failed = () = $p->failed; my $skipped = () = $p->skipped; my $todo = () = $p->todo;
	printf qq({"Planned": %d, "Tests": %d, "Failed": %d, "Skipped": %d, "Todo": %d, "Bail": %s, "Errors": %d}\n),
		$p->tests_planned // 0, $p->tests_run, $failed, $skipped, $todo, ($bail ? "true" : "false"), scalar(my @e = $p->parse_errors);
	print STDERR "$_\n" for $p->parse_errors;
}
`

func TestTAPPerl(t *testing.T) {
	t.Parallel()
	perl, err := exec.LookPath("perl")
	if err == nil {
		err = exec.CommandContext(t.Context(), perl, "-MTAP::Parser", "-e", "1").Run()
	}
	switch {
	case err != nil && os.Getenv("CI") != "":
		t.Fatalf("there is no Perl with TAP::Parser: %v", err)
	case err != nil:
		t.Skip("there is no Perl with TAP::Parser on this machine")
	}
	type found struct {
		Planned, Tests, Failed, Skipped, Todo int
		Bail                                  bool
		Errors                                int
	}
	docs := views()
	var names, reports []string
	for name, d := range docs {
		names, reports = append(names, name), append(reports, printed(t, TAP, d, Options{}))
	}
	c := exec.CommandContext(t.Context(), perl, "-e", tapParser)
	c.Stdin = strings.NewReader(strings.Join(reports, "\x00"))
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	answers := json.NewDecoder(bytes.NewReader(out))
	for _, name := range names {
		var got found
		if err := answers.Decode(&got); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		want := tallyOf(docs[name])
		if diff := cmp.Diff(found{want.Tests, want.Tests, want.Failed + want.Errored, want.Skipped, 0, docs[name].Run.Interrupted, 0}, got); diff != "" {
			t.Errorf("%s: -document +report:\n%s%s", name, diff, &stderr)
		}
	}
}

// TestMarkdownReader has a reader of others look at every page: what is markup is ours, and each table
// has as many cells in each row as in its head.
func TestMarkdownReader(t *testing.T) {
	t.Parallel()
	reader := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()
	for name, d := range readable() {
		source := []byte(printed(t, Markdown, d, Options{}))
		err := ast.Walk(reader.Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			if !entering {
				return ast.WalkContinue, nil
			}
			shown := func() string {
				if n.Type() == ast.TypeBlock {
					return string(n.Lines().Value(source))
				}
				return string(n.Parent().Lines().Value(source))
			}
			switch n := n.(type) {
			case *ast.HTMLBlock:
				if html := shown(); !strings.HasPrefix(html, "<details><summary>") && html != "</details>\n" || strings.Count(html, "<") > 4 {
					return ast.WalkStop, fmt.Errorf("HTML: %s", html)
				}
			case *ast.RawHTML:
				if html := string(n.Segments.Value(source)); html != "<!-- -->" {
					return ast.WalkStop, fmt.Errorf("HTML: %s", html)
				}
			case *ast.Heading:
				if n.Level != 3 {
					return ast.WalkStop, fmt.Errorf("a heading of level %d: %s", n.Level, shown())
				}
			case *ast.List:
				if n.IsOrdered() {
					return ast.WalkStop, fmt.Errorf("an ordered list: %s", shown())
				}
			case *ast.Emphasis:
				if word := string(n.FirstChild().(*ast.Text).Value(source)); n.Level != 2 || !strings.HasPrefix(word, "NOT HELD") && !slices.Contains([]string{"CHANGED", "NEW", "GONE"}, word) && !strings.HasPrefix(strings.ToLower(word), "inconclusive") {
					return ast.WalkStop, fmt.Errorf("emphasis: %s", word)
				}
			case *ast.Link, *ast.AutoLink, *ast.Image, *ast.ThematicBreak, *ast.Blockquote, *ast.CodeBlock, *east.Strikethrough, *east.TaskCheckBox:
				return ast.WalkStop, fmt.Errorf("%s: %s", n.Kind(), shown())
			case *east.Table:
				for row := n.FirstChild(); row != nil; row = row.NextSibling() {
					if row.ChildCount() != len(n.Alignments) {
						return ast.WalkStop, fmt.Errorf("a row of %d cells in a table of %d columns", row.ChildCount(), len(n.Alignments))
					}
				}
			}
			return ast.WalkContinue, nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestQuoted has a shell read the words of a command.
func TestQuoted(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell on this machine")
	}
	for _, word := range []string{"plain", "a b", "it's", `"$(id)" \ ` + "`x`", "*", "", "注文 ⚡", "~", "#x", "a;b|c&d"} {
		out, err := exec.CommandContext(t.Context(), sh, "-c", "printf %s "+quoted(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("a shell reads %s as %q (%v), want %q", quoted(word), out, err, word)
		}
	}
}
