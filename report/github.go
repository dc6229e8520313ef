package report

import (
	"bytes"
	"cmp"
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

// GitHubAnnotations returns a workflow command for each configuration of which something did not hold, at the line of
// its first such check: an error, or a warning where all of it is inconclusive. Without a line it is at the file of its
// scenario. Of more than nine of a kind each scenario has one before another has two, and the last says how many there
// are. at says what a file is called in the repository, or "" for one that is not in it.
func GitHubAnnotations(d *lab.Document, at func(file string) string) string {
	files := map[string]string{}
	for _, info := range d.Scenarios {
		files[info.Name] = info.File
	}
	said := map[string][]annotation{}
	names, all := assertionsOf(d)
	for _, name := range names {
		var ids []string
		byID := map[string]*annotation{}
		file := files[name]
		for _, a := range all[name] {
			file = cmp.Or(file, a.file) // of a result from before scenarios named their files
		}
		for _, a := range all[name] {
			if a.outcome == skipped && a.result == nil { // it was not run
				continue
			}
			own := byID[a.id]
			if own == nil {
				own = &annotation{scenario: name, file: file}
				ids, byID[a.id] = append(ids, a.id), own
			}
			own.add(a)
		}
		turns := map[string]int{}
		for _, id := range ids {
			if own := byID[id]; own.level != "" {
				own.turn = turns[own.level]
				turns[own.level]++
				said[own.level] = append(said[own.level], *own)
			}
		}
	}
	var b strings.Builder
	for _, level := range []string{"error", "warning"} {
		list := said[level]
		slices.SortStableFunc(list, func(a, b annotation) int { return cmp.Compare(a.turn, b.turn) })
		n := min(len(list), annotationsMost)
		for _, own := range list[:n] {
			file := ""
			if own.file != "" {
				file = at(own.file)
			}
			b.WriteString(GitHubCommand(level, file, own.line, "retrylab: "+escape(own.scenario), strings.Join(own.text, "\n")))
		}
		if more := len(list) - n; more > 0 {
			b.WriteString(GitHubCommand(level, "", 0, "retrylab", fmt.Sprintf("%d more in the summary", more)))
		}
	}
	return b.String()
}

// annotation is what is said of one configuration, whatever its seeds.
type annotation struct {
	scenario string
	level    string // error, warning, or "" where there is nothing to say
	file     string // of the scenario, unless a check names one
	line     int    // of the first check that says so, 0 for none
	text     []string
	turn     int // how many of its scenario are before it
}

// add takes in what one assertion came to.
func (n *annotation) add(a assertion) {
	if a.outcome == passed {
		return
	}
	severe := a.outcome == failed || a.kind == "defect" || a.kind == "environment"
	line := a.id + ": " + a.message
	if a.outcome == failed && a.result != nil {
		line = a.id + ": " + a.name + ": " + a.message
	}
	if severe && n.level != "error" {
		n.level, n.line = "error", 0 // its own line, not that of what is inconclusive
	}
	if n.level == "" {
		n.level = "warning"
	}
	if n.line == 0 && a.line > 0 && (severe || n.level == "warning") {
		n.file, n.line = a.file, a.line
	}
	if !slices.Contains(n.text, line) { // a trial may be inconclusive for several premises
		n.text = append(n.text, line)
	}
}

// GitHubGroup returns the workflow commands around a part of a log that is folded, with a title of any kind.
func GitHubGroup(title string) (begin, end string) {
	const most = 200 // bytes: it is one line of a log
	if len(title) > most {
		title = strings.ToValidUTF8(title[:most], "") + "…"
	}
	title = strings.ReplaceAll(escape(title), "##[", `#\u0023[`) // the old form of a command, anywhere in a line
	return "::group::" + commandData.Replace(title) + "\n", "::endgroup::\n"
}
