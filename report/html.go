package report

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"

	"retrylab/internal/lab"
)

// HTML is one page that stands on its own: nothing in it comes from elsewhere, and it tells the same
// without its script.
var HTML = Format{
	Name:  "html",
	Doc:   "one page with tables and pictures that opens offline, for people",
	Write: writeHTML,
}

//go:embed html.tmpl
var pageTemplate string

//go:embed html.css
var pageStyle string

//go:embed html.js
var pageScript string

var pageLayout = template.Must(template.New("page").Parse(pageTemplate))

const (
	// picturesDrawn is up to how many results a page has the picture of each. In a larger one a
	// scenario has those of its focus and its baseline.
	picturesDrawn = 60

	// Events that are listed in words below a picture.
	eventsListed     = 400
	eventsListedMany = 40

	// besideEachOther is how many configurations have a column each in a table of what differs.
	besideEachOther = 4
)

// The page as its template sees it.
type htmlPage struct {
	Title, Run, Summary, Grade string
	Style                      template.CSS
	Script                     template.JS
	Hash                       string // of the script
	Shapes                     template.HTML
	Scenes                     []scene
	Skipped                    []string
	Failures                   []failure
	Changes                    []sheet // between two saved results
	Notes                      []string
	Tool                       string
	Suite                      bool
	Stretches                  []int
}

type scene struct {
	Anchor, Name, Title, Run, Shown, Lesson, Count, Grade string
	Open                                                  bool
	Changed                                               []string
	Notes                                                 []string
	Heads                                                 []tableHead
	Rows                                                  []tableRow
	Grids                                                 []*htmlGrid
	Ties                                                  []string // of the grids
	Marks                                                 string   // what those in the grids mean
	GridRows                                              string   // how many rows say the same, "" without a grid
	Sheets                                                []sheet  // what a comparison says
	Axis                                                  template.HTML
	AxisNote                                              string
	AxisHigh                                              int
	Zoom                                                  bool
	Figures                                               []figure
	Legend                                                []htmlSign
	Left                                                  []string // pictures that are left out
	Wide                                                  bool
}

// Last is the place of the last column of the table of results, the verdict.
func (s scene) Last() int { return len(s.Heads) - 1 }

// A sheet is a table of words: its first column names the rows.
type sheet struct {
	Caption string
	First   string // what the first column holds
	Heads   []string
	Rows    []sheetRow
}

type sheetRow struct {
	Name  string
	Cells [][]string // each of one line or of several
}

// An htmlGrid is a sweep.
type htmlGrid struct {
	Caption, Down string
	Across        []string
	Lines         []gridLine
}

type gridLine struct {
	Name  string
	Cells []gridCell
}

type gridCell struct{ Orders, Marks, Words, Class, Anchor string }

type tableHead struct {
	Text  string
	Right bool
}

type tableRow struct {
	// Of a row that is sound the last cell, the verdict, in parts: what the numbers mean for the user of the
	// service is a warning, though it was expected, and what others say is neither.
	Verdict, Facts, Said string
	Cells                []tableHead
	Grade                string
	Anchor               string
}

type figure struct {
	Anchor, Name, Verdict, Grade string
	Alt                          string // what a chart shows, in words
	SVG                          template.HTML
	Height                       int
	Names                        []htmlLabel
	Left                         []string
	Events                       []string
	More                         string
	Open                         bool
}

type htmlLabel struct {
	Text, Class string
	Top         int
}

type htmlSign struct {
	SVG  template.HTML
	Word string
}

type failure struct {
	Address, Word, Why string
	Checks             []string
}

func writeHTML(w io.Writer, d *lab.Document, o Options) error {
	o.Unicode, o.Color, o.Width, o.Wide = true, false, 1<<16, true
	p := &page{setting: newSetting(o)}
	var buf bytes.Buffer
	if err := pageLayout.Execute(&buf, p.html(d)); err != nil {
		return fmt.Errorf("lay out the page: %w", err)
	}
	if _, err := w.Write(buf.Bytes()); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

func (p *page) html(d *lab.Document) htmlPage {
	sum := sha256.Sum256([]byte(pageScript))
	blocks := blocksOf(d)
	out := htmlPage{
		Title: "retrylab", Style: template.CSS(pageStyle), Script: template.JS(pageScript),
		Hash: base64.StdEncoding.EncodeToString(sum[:]), Shapes: template.HTML(shapes()),
		Tool: p.text(join(d.Tool.Name, d.Tool.Version)), Suite: len(blocks) > 1, Stretches: []int{1, 2, 4, 8, 16, 32},
	}
	if d.Run.ID != "" {
		out.Tool += p.mid + "run " + p.text(d.Run.ID)
	}
	if len(blocks) == 1 {
		out.Title = "retrylab: " + p.text(blocks[0].info.Name)
	}
	results := 0
	for _, b := range blocks {
		results += len(b.results)
	}
	for i, b := range blocks {
		s := p.scene(d, b, i, results)
		s.Open = len(blocks) == 1
		if len(blocks) == 1 {
			s.Lesson = p.text(strings.ReplaceAll(strings.TrimSpace(b.info.Lesson), "\n", " "))
		}
		out.Scenes = append(out.Scenes, s)
	}
	out.Summary, out.Grade = p.tally(d)
	out.Failures = p.faulty(d)
	out.Skipped = p.omitted(d)
	if list, end := p.changed(d); end != "" {
		out.Title = "retrylab: two results"
		out.Summary, out.Grade = end, "good"
		if settings := p.contrasts(d.Comparison); len(settings) > 0 {
			asked := sheet{Caption: "What was asked for otherwise", First: "setting", Heads: []string{"value, and in which result"}}
			for _, s := range settings {
				asked.Rows = append(asked.Rows, sheetRow{s.path, [][]string{s.parts}})
			}
			out.Changes = append(out.Changes, asked)
		}
		changes := sheet{Caption: "What is different in the second", First: "trial", Heads: []string{"what changed"}}
		for _, c := range list {
			changes.Rows = append(changes.Rows, sheetRow{c.trial, [][]string{c.what}})
			out.Grade = "bad"
		}
		out.Changes = append(out.Changes, changes)
	}
	if d.Run.Interrupted {
		out.Notes = append(out.Notes, "The run was interrupted; these are the results that were complete by then.")
	}
	if results > picturesDrawn {
		out.Notes = append(out.Notes, fmt.Sprintf("With more than %d configurations on one page a scenario has the pictures of two, its focus and its baseline. A page of one scenario has them all: retrylab run NAME --format html -o FILE", picturesDrawn))
	}
	return out
}

// tally counts the verdicts in words.
func (p *page) tally(d *lab.Document) (text, grade string) {
	if len(d.Results) == 0 {
		return "Nothing ran.", "warn"
	}
	s := d.Summary
	sep := ": "
	text = lab.Count(len(d.Results), "result")
	for _, n := range []struct {
		n    int
		word string
	}{{s.AsExpected, "held"}, {s.NotAsExpected, "not held"}, {s.Inconclusive, "inconclusive"}, {s.Measured, "measured"}, {s.Skipped, "skipped"}} {
		if n.n > 0 {
			text += sep + strconv.Itoa(n.n) + " " + n.word
			sep = ", "
		}
	}
	switch {
	case s.NotAsExpected > 0:
		return text, "bad"
	case s.Inconclusive > 0:
		return text, "warn"
	case s.AsExpected == 0:
		return text, "plain" // measured: nothing was asked that could have failed
	}
	return text, "good"
}

// faulty tells what somebody has to look at.
func (p *page) faulty(d *lab.Document) (out []failure) {
	for _, u := range failuresOf(d) {
		r := u.result
		f := failure{Address: p.failed(d, u), Word: "NOT HELD"}
		if r.Verdict == lab.Inconclusive {
			f.Word, f.Why = "INCONCLUSIVE", p.prose(r.Why)
			if r.Defect {
				f.Why += " This is a defect of the lab itself; please report it."
			}
		}
		for _, c := range u.checks {
			one := &page{setting: p.setting}
			one.check(c)
			f.Checks = append(f.Checks, strings.TrimSpace(one.buf.String()))
		}
		out = append(out, f)
	}
	return out
}

// omitted tells what was not run.
func (p *page) omitted(d *lab.Document) []string {
	one := &page{setting: p.setting}
	one.skipped(d)
	var out []string
	for line := range strings.SplitSeq(strings.TrimSpace(one.buf.String()), "\n") {
		if line = strings.TrimSpace(strings.TrimPrefix(line, "skipped")); line != "" {
			out = append(out, line)
		}
	}
	return out
}

func grade(r *lab.Result) string {
	switch r.Verdict {
	case lab.AsExpected:
		return "good"
	case lab.NotAsExpected:
		return "bad"
	case lab.Inconclusive:
		return "warn"
	}
	return "plain"
}

func (p *page) scene(d *lab.Document, b *block, n, results int) scene {
	id := "s" + strconv.Itoa(n+1)
	s := scene{
		Anchor: id, Name: p.text(b.info.Name), Title: p.prose(b.info.Title), Run: p.run(d, b),
		Shown: p.prose(b.info.Shown), Count: lab.Count(len(b.results), "configuration"),
	}
	for _, note := range b.info.Notes {
		s.Notes = append(s.Notes, p.prose(note))
	}
	for _, set := range d.Run.Set {
		s.Changed = append(s.Changed, p.prose(set))
	}
	fields := p.cells(b)
	for _, f := range fields {
		s.Heads = append(s.Heads, tableHead{f.head, f.right})
	}
	pictured := b.pictured(results)
	for i, r := range b.results {
		row := tableRow{Grade: grade(r)}
		for _, f := range fields {
			row.Cells = append(row.Cells, tableHead{f.cells[i], f.right})
		}
		if r.Verdict == lab.AsExpected || r.Verdict == lab.Measured {
			last := &row.Cells[len(row.Cells)-1]
			told, said, also := strings.Cut(last.Text, ";")
			word, facts, _ := strings.Cut(told, ",")
			if row.Verdict = word; facts != "" {
				row.Facts = "," + facts
			}
			if also {
				row.Said = ";" + said
			}
		}
		if slices.Contains(pictured, r) {
			row.Anchor = id + "-" + strconv.Itoa(i+1)
		}
		s.Rows = append(s.Rows, row)
		switch worse := []string{"", "good", "plain", "warn", "bad"}; {
		case slices.Index(worse, row.Grade) > slices.Index(worse, s.Grade):
			s.Grade = row.Grade
		}
	}
	for i := range s.Heads {
		s.Heads[i].Text = strings.ToLower(strings.TrimSuffix(s.Heads[i].Text, "*"))
	}
	s.Sheets = p.sheets(d, b)
	sweeps := sweepsOf(d, b)
	for _, sw := range sweeps {
		s.Grids = append(s.Grids, p.htmlGrid(sw, func(r *lab.Result) string { return s.Rows[slices.Index(b.results, r)].Anchor }))
		s.Marks, s.Ties, s.GridRows = legendOf(sweeps), p.tied(b), lab.Count(len(b.results), "row")
	}
	p.figures(&s, b, pictured, results)
	for _, r := range b.results {
		if drawn(r) && !slices.Contains(pictured, r) {
			s.Left = append(s.Left, b.name(p.setting, r))
		}
	}
	return s
}

// sheets are what a comparison says, as tables.
func (p *page) sheets(d *lab.Document, b *block) (out []sheet) {
	c := d.Comparison
	if c == nil {
		return nil
	}
	// A row of a comparison is told apart by its seeds in the table alone.
	names := make(map[string]string)
	for _, r := range b.results {
		key := [2]string{r.Scenario, r.ID}
		if _, ok := names[b.letters[key]]; !ok {
			names[b.letters[key]] = b.title(p.setting, r)
		}
	}
	name := func(letter string) string { return cmp.Or(names[letter], letter) }
	if settings := p.contrasts(c); len(settings) > 0 {
		differs := sheet{Caption: "What differs", First: "setting"}
		beside := len(c.Rows) <= besideEachOther
		if beside {
			for i := range c.Rows {
				differs.Heads = append(differs.Heads, name(rowLetter(i)))
			}
		} else {
			differs.Heads = append(differs.Heads, "value, and in which rows")
		}
		for _, s := range settings {
			row := sheetRow{Name: s.path}
			if !beside {
				row.Cells = [][]string{s.parts}
			} else {
				for _, v := range s.values {
					row.Cells = append(row.Cells, []string{v})
				}
			}
			differs.Rows = append(differs.Rows, row)
		}
		out = append(out, differs)
	}
	add := func(caption, head string, list []lettered) {
		if len(list) == 0 {
			return
		}
		sh := sheet{Caption: caption, First: "configuration", Heads: []string{head}}
		for _, l := range list {
			var names []string
			for _, letter := range l.letters {
				names = append(names, name(letter))
			}
			sh.Rows = append(sh.Rows, sheetRow{strings.Join(names, "; "), [][]string{{l.text}}})
		}
		out = append(out, sh)
	}
	add("Against "+name("A"), "what came out otherwise", p.against(c))
	add(fmt.Sprintf("What hangs on the seed, of %d seeds", len(b.ran)), "number, and in how many seeds it came", p.hanging(c))
	return out
}

// htmlGrid makes the grid of a sweep. anchor is where the picture of a result is, "" for nowhere.
func (p *page) htmlGrid(s *sweep, anchor func(*lab.Result) string) *htmlGrid {
	g := &htmlGrid{Caption: p.sweepTitle(s), Down: lastStep(p.text(s.down.Path))}
	if s.name != "" {
		g.Caption = p.text(s.name) + ": " + g.Caption
	}
	for _, across := range s.across.Values {
		g.Across = append(g.Across, p.text(across))
	}
	more := func(i, j int) (duplicates, known bool) {
		if i < 0 || j < 0 {
			return false, false
		}
		c := s.cell(s.down.Values[i], s.across.Values[j])
		return c.more, c.results != nil
	}
	for i, down := range s.down.Values {
		line := gridLine{Name: p.text(down)}
		for j, across := range s.across.Values {
			c := s.cell(down, across)
			cell := gridCell{Orders: c.orders, Marks: c.marks}
			for _, m := range markMeanings {
				if strings.Contains(c.marks, m.mark) || c.orders == m.mark {
					cell.Words += ", " + m.meaning
				}
			}
			class := func(set bool, name string) {
				if set {
					cell.Class = join(cell.Class, name)
				}
			}
			class(c.more, "more")
			class(strings.Contains(c.marks, markTie), "tie")
			// A line goes where duplicates begin.
			above, ok := more(i-1, j)
			class(ok && c.results != nil && above != c.more, "edge-top")
			left, ok := more(i, j-1)
			class(ok && c.results != nil && left != c.more, "edge-left")
			if len(c.results) > 0 {
				cell.Anchor = anchor(c.results[0])
			}
			line.Cells = append(line.Cells, cell)
		}
		g.Lines = append(g.Lines, line)
	}
	return g
}

// pictured are the results of a block that have a picture on a page of so many.
func (b *block) pictured(results int) (out []*lab.Result) {
	focus := b.focus()
	for _, r := range b.results {
		if drawn(r) && (results <= picturesDrawn || r == focus || r.ID == b.info.Baseline) {
			out = append(out, r)
		}
	}
	return out
}

// figures draws results below each other, on one axis.
func (p *page) figures(s *scene, b *block, results []*lab.Result, onPage int) {
	if len(results) == 0 {
		return
	}
	series := slices.ContainsFunc(results, func(r *lab.Result) bool { return r.Series != nil })
	a := newAxis(results)
	var charts []*chart
	if series {
		charts, s.AxisNote = chartsOf(results)
		for _, c := range charts {
			if c != nil {
				a = &axis{end: c.end, kept: c.end}
			}
		}
		s.AxisNote += "."
	}
	listed := eventsListed
	if onPage > picturesDrawn {
		listed = eventsListedMany
	}
	var drawings []*drawing
	for i, r := range results {
		f := figure{Name: b.name(p.setting, r), Verdict: p.verdict(r), Grade: grade(r), Open: true}
		f.Anchor = s.Anchor + "-" + strconv.Itoa(slices.Index(b.results, r)+1)
		pen := &pen{axis: a, lively: true}
		switch {
		case series && charts[i] == nil:
			continue
		case series:
			pen.chart(charts[i], 4)
			f.Height = chartHigh + 8
			f.Names = []htmlLabel{{Text: "sends", Class: "party", Top: 4}}
			f.Alt = charts[i].words(f.Name)
		default:
			d := draft(p.setting, r, a)
			drawings = append(drawings, d)
			pen.draw(d, 0)
			f.Height, f.Left = d.height, d.left
			for _, b := range d.bands {
				f.Names = append(f.Names, htmlLabel{b.name, "party " + b.role, b.named() - 8})
				for _, l := range b.labels {
					f.Names = append(f.Names, htmlLabel{l.text, "row", l.y - 8})
				}
			}
		}
		f.SVG = template.HTML(pen.String())
		f.Events = tellers(p.setting, r, listed)
		if n := len(r.Events) - len(f.Events); n > 0 {
			f.More = lab.Count(n, "further event") + " in --format json"
		}
		s.Figures = append(s.Figures, f)
	}
	ax := &pen{axis: a}
	s.AxisHigh = 36
	if b.info.Begin != "" {
		s.AxisHigh += 13
	}
	ax.scale(s.AxisHigh-6, b.info.Begin)
	s.Axis = template.HTML(ax.String())
	s.Zoom = true
	if len(a.cuts) > 0 {
		var cuts []string
		for _, c := range a.cuts {
			cuts = append(cuts, clock(c.to-c.from))
		}
		s.AxisNote = "Left out where // stands, because nothing happens then: " + strings.Join(cuts, ", ") + ". All the rest is on one scale."
	}
	for _, l := range legend(drawings) {
		s.Legend = append(s.Legend, htmlSign{template.HTML(l.svg), l.word})
	}
}
