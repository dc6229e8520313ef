package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/goccy/go-yaml"

	"retrylab/internal/lab"
)

// TAP is the Test Anything Protocol, version 14 (https://testanything.org/tap-version-14-specification.html):
// a test point per check, with a YAML block that says more.
var TAP = Format{
	Name:  "tap",
	Doc:   "TAP version 14 with a test point per check, for prove and its like",
	Write: writeTAP,
}

// tapBlock is the YAML block of a test point, in its order. The names are those that the protocol
// suggests where it does.
type tapBlock struct {
	Message  string   `yaml:"message,omitempty"`
	Severity string   `yaml:"severity,omitempty"` // fail; or inconclusive, environment or defect
	Expected string   `yaml:"expected,omitempty"`
	Actual   string   `yaml:"actual,omitempty"`
	At       *tapAt   `yaml:"at,omitempty"`
	Evidence []string `yaml:"evidence,omitempty"`
	Again    string   `yaml:"again,omitempty"`
}

type tapAt struct {
	File string `yaml:"file"`
	Line int    `yaml:"line,omitempty"`
}

func writeTAP(w io.Writer, d *lab.Document, _ Options) error {
	var b bytes.Buffer
	names, assertions := assertionsOf(d)
	n := 0
	for _, name := range names {
		n += len(assertions[name])
	}
	b.WriteString("TAP version 14\n")
	fmt.Fprintf(&b, "1..%d", n)
	if n == 0 {
		b.WriteString(" # SKIP nothing was demanded of anything that ran")
	}
	b.WriteByte('\n')
	n = 0
	for _, name := range names {
		for _, a := range assertions[name] {
			n++
			if err := a.tap(&b, n); err != nil {
				return fmt.Errorf("scenario %q: %w", name, err)
			}
		}
	}
	if d.Run.Interrupted {
		b.WriteString("Bail out! interrupted: what was complete by then is above\n")
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write TAP: %w", err)
	}
	return nil
}

func (a *assertion) tap(b *bytes.Buffer, n int) error {
	block := tapBlock{Expected: a.expected, Actual: a.actual}
	if a.file != "" {
		block.At = &tapAt{a.file, a.line}
	}
	state, directive := "ok", ""
	switch a.outcome {
	case failed:
		state, block.Severity = "not ok", "fail"
	case errored:
		state, block.Severity = "not ok", a.kind
	case skipped:
		directive = " # SKIP " + tapText(a.message)
	}
	if a.outcome == failed || a.outcome == errored {
		block.Message, block.Again = a.message, a.command
		for _, e := range a.evidence {
			block.Evidence = append(block.Evidence, tapItem(e))
		}
	}
	fmt.Fprintf(b, "%s %d - %s %s%s\n", state, n, tapText(a.class), tapText(a.name), directive)
	text, err := yaml.MarshalWithOptions(block, yaml.IndentSequence(true)) // the reader of Perl takes no other
	if err != nil {
		return err
	}
	if string(text) == "{}\n" {
		return nil // nothing more is known
	}
	b.WriteString("  ---\n")
	for line := range strings.Lines(string(text)) {
		b.WriteString("  " + line)
	}
	b.WriteString("  ...\n")
	return nil
}

// tapText is text on the line of a test point. A # in it would begin a directive, and readers of
// version 13 know of no way to escape it: a check that failed could be called skipped. So it is
// written as its wide form.
func tapText(text string) string { return strings.NewReplacer(`\`, `\\`, "#", "＃").Replace(text) }

// tapItem is text as an item of a list. The reader of Perl takes one whose first word ends with a colon for a
// mapping, in quotes too.
func tapItem(text string) string {
	if i := strings.Index(text, ": "); i >= 0 && !strings.Contains(text[:i], " ") {
		return text[:i] + " = " + text[i+2:]
	}
	return text
}
