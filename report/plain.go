package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"retrylab/internal/lab"
)

// Plain is for awk, cut and read: a line of names, then one line per result and per thing that was
// not run, with tabs between the values.
var Plain = Format{
	Name:  "plain",
	Doc:   "one line per configuration with tabs between the values, for awk and cut",
	Write: writePlain,
}

// plainColumns are the columns of the plain format, with the names of the JSON. New ones are added at the end.
var plainColumns = []struct {
	name  string
	value func(*lab.Result) string
}{
	{"scenario", func(r *lab.Result) string { return r.Scenario }},
	{"id", func(r *lab.Result) string { return r.ID }},
	{"seed", func(r *lab.Result) string { return strconv.FormatInt(r.Seed, 10) }},
	{"verdict", func(r *lab.Result) string { return r.Verdict.String() }},
	{"operations", counted(func(r *lab.Result) int { return r.Counts.Operations })},
	{"wanted", counted(func(r *lab.Result) int { return r.Counts.Wanted })},
	{"sends", counted(func(r *lab.Result) int { return r.Counts.Sends })},
	{"arrivals", counted(func(r *lab.Result) int { return r.Counts.Arrivals })},
	{"effects", counted(func(r *lab.Result) int { return r.Counts.Effects })},
	{"effects_when_caller_done", counted(func(r *lab.Result) int { return r.Counts.EffectsWhenCallerDone })},
	{"duplicates", counted(func(r *lab.Result) int { return r.Counts.Duplicates })},
	{"lost", counted(func(r *lab.Result) int { return r.Counts.Lost })},
	{"false_failures", counted(func(r *lab.Result) int { return r.Counts.FalseFailures })},
	{"late", counted(func(r *lab.Result) int { return r.Counts.Late })},
	{"amplification", func(r *lab.Result) string {
		if r.Uncounted {
			return ""
		}
		return strconv.FormatFloat(r.Amplification, 'f', -1, 64)
	}},
	{"ok", counted(func(r *lab.Result) int { return r.Beliefs.OK })},
	{"failed", counted(func(r *lab.Result) int { return r.Beliefs.Failed })},
	{"unknown", counted(func(r *lab.Result) int { return r.Beliefs.Unknown })},
	{"caller_done_ms", counted(func(r *lab.Result) int64 { return r.CallerDoneMs })},
	{"settled_ms", counted(func(r *lab.Result) int64 { return r.SettledMs })},
	{"configuration", func(r *lab.Result) string { return r.Configuration }},
	{"why", why},
}

func counted[N int | int64](get func(*lab.Result) N) func(*lab.Result) string {
	return func(r *lab.Result) string {
		if r.Uncounted {
			return ""
		}
		return strconv.FormatInt(int64(get(r)), 10)
	}
}

// why says why a result is inconclusive, or which checks did not hold.
func why(r *lab.Result) string {
	if r.Verdict == lab.Inconclusive && r.Why != "" {
		return r.Why
	}
	var parts []string
	for _, c := range r.Checks {
		if !c.Held {
			parts = append(parts, fmt.Sprintf("%s %s: expected %s, actual %s", c.Kind, c.Name, c.Expected, c.Actual))
		}
	}
	return strings.Join(parts, "; ")
}

func writePlain(w io.Writer, d *lab.Document, _ Options) error {
	var b bytes.Buffer
	line := func(value func(i int) string) {
		for i := range plainColumns {
			if i > 0 {
				b.WriteByte('\t')
			}
			// An empty value would be lost where a reader takes several tabs for one.
			b.WriteString(cmp.Or(oneLine(value(i)), "-"))
		}
		b.WriteByte('\n')
	}
	line(func(i int) string { return plainColumns[i].name })
	for k := range d.Results {
		line(func(i int) string { return plainColumns[i].value(&d.Results[k]) })
	}
	for _, x := range ofChanges(d.Comparison) {
		known := map[string]string{
			"scenario": x.Scenario, "id": x.ID, "seed": strconv.FormatInt(x.Seed, 10), "verdict": x.Kind, "why": strings.Join(x.What, "; "),
		}
		line(func(i int) string { return known[plainColumns[i].name] })
	}
	for _, s := range d.Skipped {
		known := map[string]string{"scenario": s.Scenario, "id": s.ID, "verdict": "skipped", "why": s.Reason}
		line(func(i int) string { return known[plainColumns[i].name] })
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write lines: %w", err)
	}
	return nil
}

// oneLine writes text so that it stays one value on one line and can be told from any other: with
// Go's escapes, of which \t, \n and \\ are those of printf too.
func oneLine(text string) string {
	// Bytes that are no UTF-8 become what they become in JSON.
	out := strconv.Quote(string([]rune(text)))
	return strings.ReplaceAll(out[1:len(out)-1], `\"`, `"`)
}
