package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"retrylab/internal/lab"
)

// pictureGoldens are the documents whose page and slide are kept.
var pictureGoldens = []string{"held", "one-failed", "inconclusive", "empty", "hostile", "only-skipped", "interrupted", "recovery", "expired-key", "deadline"}

// bodyOnly leaves out the style and the script, which are files of their own.
func bodyOnly(page string) string {
	for _, own := range []string{pageStyle, pageScript, slideStyle, shapes()} {
		page = strings.ReplaceAll(page, own, "…")
	}
	page = regexp.MustCompile(`sha256-[^']*`).ReplaceAllString(page, "sha256-…")
	return strings.NewReplacer("<rect", "\n<rect", "<g ", "\n<g ", "<line", "\n<line", "<text", "\n<text").Replace(page)
}

func TestPictureGoldens(t *testing.T) {
	t.Parallel()
	for _, name := range pictureGoldens {
		golden(t, name+".html", []byte(bodyOnly(printed(t, HTML, documents()[name], Options{}))))
		golden(t, name+".svg.txt", []byte(bodyOnly(printed(t, SVG, documents()[name], Options{}))))
	}
}

// TestSVGIsXML reads every slide as XML, in which a character that is not allowed ends the document.
func TestSVGIsXML(t *testing.T) {
	t.Parallel()
	for name, d := range documents() {
		dec := xml.NewDecoder(strings.NewReader(printed(t, SVG, d, Options{})))
		for {
			token, err := dec.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
			if e, ok := token.(xml.StartElement); ok && (e.Name.Local == "script" || e.Name.Local == "image") {
				t.Errorf("%s: there is a %s", name, e.Name.Local)
			}
		}
	}
}

// TestPageStandsAlone finds whatever would be fetched from elsewhere, and text that became markup.
func TestPageStandsAlone(t *testing.T) {
	t.Parallel()
	foreign := regexp.MustCompile(`(?i)(src|href|action)="?(https?:|//|file:)|url\((?:[^#)])|@import|<link rel="?stylesheet|<img|<iframe`)
	for name, d := range documents() {
		page := printed(t, HTML, d, Options{})
		if found := foreign.FindString(page); found != "" {
			t.Errorf("%s: %s", name, found)
		}
		if n := strings.Count(page, "<script"); n != 1 {
			t.Errorf("%s: %d scripts, want the page's own alone", name, n)
		}
		for _, bad := range []string{"\x1b", "\x07", "\u202e"} {
			if strings.Contains(page, bad) {
				t.Errorf("%s: the page holds %q", name, bad)
			}
		}
	}
}

// large is one result of about n events.
func large(n int) *lab.Document {
	b := newBench("retry-storm", "many callers", "many")
	for i := 0; len(b.r.Events) < n; i++ {
		op, t := fmt.Sprintf("op-%d", i+1), float64(i)*0.013
		b.start(op, t)
		for j := range 3 {
			path := fmt.Sprintf("%s/retry.%d", op, j+1)
			b.try("caller", path, t, t+1+float64(i%7)/10, "read")
			b.serve("order-1", path, t, t+2+float64(i%5)/10)
			t += 3
		}
		b.end(op, t, lab.Unknown, "read timeout")
		b.r.Counts.Operations, b.r.Counts.Wanted = i+1, i+1
	}
	return document([]lab.ScenarioInfo{{Name: "retry-storm", Title: "Many"}}, b.result())
}

func TestLargePage(t *testing.T) {
	t.Parallel()
	page := printed(t, HTML, large(10_000), Options{})
	if n := len(page); n > 3<<20 {
		t.Errorf("a result of 10,000 events makes a page of %d bytes", n)
	}
	for _, want := range []string{"operations are drawn, evenly spread", "further event"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func BenchmarkHTML(b *testing.B) {
	for name, d := range map[string]*lab.Document{"read-timeout": documents()["read-timeout"], "10000-events": large(10_000)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var buf bytes.Buffer
				if err := HTML.Write(&buf, d, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// compared is a comparison of n rows, the second and further of which differ from the first.
func compared(n int) *lab.Document {
	d := document([]lab.ScenarioInfo{{Name: "s"}})
	d.Comparison = &lab.Comparison{Settings: []lab.Contrast{{Path: "caller.key"}}, Rows: []lab.ComparedRow{}}
	for i := range n {
		id := fmt.Sprintf("row-%d", i)
		r := newBench("s", fmt.Sprintf("row <%d>", i), id).result()
		r.Seed = 1
		d.Results = append(d.Results, r)
		row := lab.ComparedRow{Scenario: "s", ID: id, Differences: []string{}, Varies: []string{}}
		value := ""
		if i > 0 {
			row.Differences, value = []string{"3.0× sends", "2 orders <b>more</b>"}, "<operation>"
			row.Varies = []string{"orders: 1 in 2 seeds, 3 in 1"}
		}
		d.Comparison.Rows = append(d.Comparison.Rows, row)
		d.Comparison.Settings[0].Values = append(d.Comparison.Settings[0].Values, value)
	}
	return d
}

// TestPageCompares looks for all that the table for people says of a comparison.
func TestPageCompares(t *testing.T) {
	t.Parallel()
	for n, wanted := range map[int][]string{
		2: {
			`<th scope="col" role="columnheader">setting</th><th scope="col" role="columnheader">A row &lt;0&gt;</th><th scope="col" role="columnheader">B row &lt;1&gt;</th>`,
			`<th scope="row" role="rowheader">caller.key</th><td role="cell" data-head="A row &lt;0&gt;">not set</td><td role="cell" data-head="B row &lt;1&gt;">&lt;operation&gt;</td>`,
		},
		5: {
			`<th scope="row" role="rowheader">caller.key</th><td role="cell" data-head="value, and in which rows">not set in A<br>&lt;operation&gt; in B C D E</td>`,
		},
	} {
		page := printed(t, HTML, compared(n), Options{})
		other := "B row &lt;1&gt;"
		for i := 2; i < n; i++ { // of which the same is said
			other += fmt.Sprintf("; %s row &lt;%d&gt;", rowLetter(i), i)
		}
		other = `<th scope="row" role="rowheader">` + other + `</th><td role="cell" data-head=`
		for _, want := range append(wanted,
			`<caption>What differs</caption>`, `<caption>Against A row &lt;0&gt;</caption>`, `<caption>What hangs on the seed, of 1 seeds</caption>`,
			other+`"what came out otherwise">3.0× sends, 2 orders &lt;b&gt;more&lt;/b&gt;</td>`,
			other+`"number, and in how many seeds it came">orders: 1 in 2 seeds, 3 in 1</td>`,
			`<th scope="row" role="rowheader">A row &lt;0&gt;</th><td role="cell" data-head="number, and in how many seeds it came">nothing</td>`,
		) {
			if !strings.Contains(page, want) {
				t.Errorf("of %d rows there is no %s", n, want)
			}
		}
	}
	if page := printed(t, HTML, documents()["held"], Options{}); strings.Contains(page, `class="sheet`) {
		t.Error("a run that compares nothing has a table of what differs")
	}
}

// TestPageOfTwoResults shows what changed between two saved results, or that nothing did.
func TestPageOfTwoResults(t *testing.T) {
	t.Parallel()
	d := &lab.Document{Run: lab.RunInfo{Seed: 1}, Comparison: &lab.Comparison{Compared: 5, Sources: []string{"x.json", "<y>.json"}, Changes: []lab.Change{
		{Trial: lab.Trial{Scenario: "s", ID: "a", Seed: 1}, Kind: lab.ChangeMeasured, What: []string{"sends: 1, was 3", "orders: <1>, was 3"}},
		{Trial: lab.Trial{Scenario: "s", ID: "b", Seed: 2}, Kind: lab.ChangeMeasured, What: []string{"verdict: held, was not held"}},
	}, Settings: []lab.Contrast{{Path: "caller.key", Values: []string{"", "none"}}}}}
	page := printed(t, HTML, d, Options{})
	for _, want := range []string{
		`<p class="tally bad">2 trials changed, 5 trials in both</p>`,
		`<th scope="row" role="rowheader">s:a</th><td role="cell" data-head="what changed">sends: 1, was 3<br>orders: &lt;1&gt;, was 3</td>`,
		`<th scope="row" role="rowheader">caller.key</th><td role="cell" data-head="value, and in which result">not set in x.json<br>none in &lt;y&gt;.json</td>`,
		`<th scope="row" role="rowheader">s:b · seed 2</th><td role="cell" data-head="what changed">verdict: held, was not held</td>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("there is no %s", want)
		}
	}
	d.Comparison.Changes = nil
	page = printed(t, HTML, d, Options{})
	if want := `<p class="tally good">nothing changed: 5 trials in both</p>`; !strings.Contains(page, want) || strings.Contains(page, "Nothing ran") {
		t.Errorf("there is no %s", want)
	}
}

// TestPageSweep looks at the cells of a grid, their words, and the line where duplicates begin.
func TestPageSweep(t *testing.T) {
	t.Parallel()
	tied := swept("1", "<y>", 1)
	tied.Tie = &lab.Tie{Pairs: []string{"the one and the other"}, Least: 1, Most: 2}
	d := &lab.Document{
		Scenarios: []lab.ScenarioInfo{{Name: "s"}},
		Run:       lab.RunInfo{Vary: []lab.Varying{{Path: "a.down", Values: []string{"1", "2", "3"}}, {Path: "b.across", Values: []string{"x", "<y>"}}}},
		Results:   []lab.Result{swept("1", "x", 3), tied, swept("2", "x", 3), swept("2", "<y>", 1), swept("3", "x", 1)},
	}
	d.Results[0].Events = []lab.Event{{Kind: lab.Start, Operation: "op-1", Node: "caller"}}
	page := printed(t, HTML, d, Options{})
	for _, want := range []string{
		`<caption>orders by a.down (down) and b.across (across)</caption>`,
		`<th scope="col">down</th><th scope="col">x</th><th scope="col">&lt;y&gt;</th>`,
		`<th scope="row">1</th><td class="more"><a href="#s1-1">3</a><span class="marks" aria-hidden="true">!</span><span class="unseen">, more than wanted</span></td>` +
			`<td class="more tie">1-2<span class="marks" aria-hidden="true">!~</span><span class="unseen">, more than wanted, the seed decides</span></td>`,
		`<th scope="row">2</th><td class="more">3<span class="marks" aria-hidden="true">!</span><span class="unseen">, more than wanted</span></td><td class="edge-top edge-left">1<`,
		`<th scope="row">3</th><td class="edge-top">1<span class="marks" aria-hidden="true"></span></td><td>-<`,
		`! more than wanted, ~ the seed decides, - not run. Hatched:`,
		`there are 1 or 2 orders.`,
		`<summary>The same in 5 rows</summary>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("there is no %s in\n%s", want, page[strings.Index(page, "<table"):strings.Index(page, "</table>")])
		}
	}
	markdown := printed(t, Markdown, d, Options{})
	for _, want := range []string{
		"| down | x | &lt;y&gt; |\n| ---: | ---: | ---: |\n| 1 | **3\\!** | **1-2\\!\\~** |\n| 2 | **3\\!** | 1 |\n| 3 | 1 | - |\n",
		"there are 1 or 2 orders.",
	} {
		if !strings.Contains(markdown, want) {
			t.Errorf("there is no %s in\n%s", want, markdown)
		}
	}
}

// TestContrast computes how well the colours of a theme stand out from each other, as WCAG 2.2 defines it: text by
// 4.5 to 1, and whatever else has a meaning by 3 to 1.
func TestContrast(t *testing.T) {
	t.Parallel()
	luminance := func(colour string) float64 {
		if len(colour) == 4 {
			colour = "#" + strings.Repeat(colour[1:2], 2) + strings.Repeat(colour[2:3], 2) + strings.Repeat(colour[3:4], 2)
		}
		sum := 0.0
		for i, share := range []float64{0.2126, 0.7152, 0.0722} {
			v, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
			if err != nil {
				t.Fatalf("colour %q: %v", colour, err)
			}
			c := float64(v) / 255
			if c <= 0.04045 {
				sum += share * c / 12.92
			} else {
				sum += share * math.Pow((c+0.055)/1.055, 2.4)
			}
		}
		return sum
	}
	themes := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(pageStyle, -1)
	if len(themes) != 3 {
		t.Fatalf("%d themes, want light, dark and paper", len(themes))
	}
	for i, theme := range []string{"light", "dark", "paper"} {
		colours := map[string]string{}
		for _, c := range regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]+);`).FindAllStringSubmatch(themes[i][1], -1) {
			colours[c[1]] = c[2]
		}
		for least, pairs := range map[float64]string{
			4.5: "ink/ground ink/raised ink/band ink/wait ink/alarm soft/ground soft/raised soft/band soft/cut good/ground good/raised good/band bad/ground bad/raised bad/band warn/ground warn/raised warn/band",
			3:   "work/band wait-line/band wait-line/raised send/band request/band request/raised ink/band",
		} {
			for pair := range strings.FieldsSeq(pairs) {
				a, b, _ := strings.Cut(pair, "/")
				x, y := luminance(colours[a]), luminance(colours[b])
				if ratio := (max(x, y) + 0.05) / (min(x, y) + 0.05); ratio < least {
					t.Errorf("%s: %s stands out by %.2f to 1, want %.1f", theme, pair, ratio, least)
				}
			}
		}
	}
}
