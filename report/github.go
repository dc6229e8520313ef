package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"retrylab/internal/lab"
)

// GitHubSummaryMost is how many bytes of a step's summary the lab fills at most. GitHub shows none of a
// summary that is longer than 1 MiB: the rest is for what else the step has to say.
// https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands#step-isolation-and-limits
const GitHubSummaryMost = 900_000

// What GitHub makes of workflow commands: annotations of the first ten errors and the first ten warnings
// of a step, each cut after 4,096 characters (maxIssueMessageLength in actions/runner). The tenth says
// how many more there are.
const (
	annotationsMost = 9
	annotationText  = 4000 // bytes
)

// mermaidMost is how many characters of a diagram Mermaid draws: maxTextSize, which GitHub leaves as it is.
const mermaidMost = 50_000

// summaryCut is what a summary says where it leaves something out.
const summaryCut = "\nMore would make the summary longer than the 900 kB that GitHub has room for. " +
	"The log and the other reports have all of it.\n"

// GitHubSummary returns a document as Markdown for the summary of a job, of at most room bytes: the tables,
// what did not hold with a diagram of the first failure, and the rest folded. What does not fit is left out
// from the end, and a line says so. It is empty where there is no room for that line either.
func GitHubSummary(d *lab.Document, o Options, room int) string {
	page, n := markdownPage(d, o)
	seen, rest := string(page[:n]), string(page[n:])
	picture := firstFailure(d)
	if len(seen)+len(picture)+len(rest) <= room {
		return seen + picture + rest
	}
	room -= len(summaryCut)
	if left := room - len(seen) - len(picture); left >= 0 {
		// What is folded is left out as a whole, or it would stay open.
		rest = rest[:min(left, len(rest))]
		return seen + picture + rest[:max(0, strings.LastIndex(rest, "\n<details>"))] + summaryCut
	}
	if room < 0 {
		return ""
	}
	if len(picture) > room {
		picture = ""
	}
	seen = seen[:min(room-len(picture), len(seen))]
	return wholeBlocks(seen[:strings.LastIndexByte(seen, '\n')+1]) + summaryCut + picture
}

// wholeBlocks leaves out a block of code that was cut and would take in what follows.
func wholeBlocks(text string) string {
	begun := -1
	at := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			if begun >= 0 {
				begun = -1
			} else {
				begun = at
			}
		}
		at += len(line)
	}
	if begun >= 0 {
		return text[:begun]
	}
	return text
}

// firstFailure is a diagram of the first result that did not hold and of which there are events, in
// Markdown; empty without one, or where it would be too long to be drawn.
func firstFailure(d *lab.Document) string {
	i := slices.IndexFunc(d.Results, func(r lab.Result) bool { return r.Verdict == lab.NotAsExpected && len(r.Events) > 0 })
	if i < 0 {
		return ""
	}
	var b bytes.Buffer
	mermaid.write(&b, sequenceOf(d.Results[i].Scenario, &d.Results[i]))
	if b.Len() > mermaidMost {
		return ""
	}
	return "\n```mermaid\n" + b.String() + "```\n"
}

// The characters that end a part of a workflow command, as GitHub's own toolkit escapes them.
var (
	commandData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	commandProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// GitHubCommand returns the workflow command that annotates a line of a file, or with no file the run. The
// level is error or warning; texts may be of any kind.
func GitHubCommand(level, file string, line int, title, text string) string {
	place := ""
	if file != "" {
		place = fmt.Sprintf("file=%s,line=%d,", commandProperty.Replace(file), max(line, 1))
	}
	if len(text) > annotationText {
		text = strings.ToValidUTF8(text[:annotationText], "") + "…"
	}
	return fmt.Sprintf("::%s %stitle=%s::%s\n", level, place, commandProperty.Replace(title), commandData.Replace(text))
}

// GitHubAnnotations returns a workflow command for each scenario in which something did not hold, at the
// line of the first such check: an error, or a warning where all of it is inconclusive. Of more than nine
// of a kind the last says how many there are. at says what a file is called in the repository, or "" for
// one that is not in it.
func GitHubAnnotations(d *lab.Document, at func(file string) string) string {
	said := map[string][]string{}
	names, all := assertionsOf(d)
	for _, name := range names {
		level, text := "", []string(nil)
		var place, any assertion
		for _, a := range all[name] {
			if any.file == "" {
				any.file = a.file
			}
			if a.outcome == passed || a.outcome == skipped && a.result == nil { // it held, or was not run
				continue
			}
			severe := a.outcome == failed || a.kind == "defect" || a.kind == "environment"
			line := a.id + ": " + a.message
			if a.outcome == failed && a.result != nil {
				line = a.id + ": " + a.name + ": " + a.message
			}
			if severe && level != "error" {
				level, place = "error", assertion{} // its own line, not that of what is inconclusive
			}
			if level == "" {
				level = "warning"
			}
			if place.file == "" && (severe || level == "warning") {
				place.file, place.line = a.file, a.line
			}
			if !slices.Contains(text, line) { // a trial may be inconclusive for several premises
				text = append(text, line)
			}
		}
		if level == "" {
			continue
		}
		if place.file == "" {
			place = any
		}
		file := ""
		if place.file != "" {
			file = at(place.file)
		}
		said[level] = append(said[level], GitHubCommand(level, file, place.line, "retrylab: "+escape(name), strings.Join(text, "\n")))
	}
	var b strings.Builder
	for _, level := range []string{"error", "warning"} {
		list := said[level]
		n := min(len(list), annotationsMost)
		b.WriteString(strings.Join(list[:n], ""))
		if more := len(list) - n; more > 0 {
			b.WriteString(GitHubCommand(level, "", 0, "retrylab", fmt.Sprintf("%d more in the summary", more)))
		}
	}
	return b.String()
}
