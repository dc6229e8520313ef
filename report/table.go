package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"retrylab/internal/lab"
)

// Table is the report for people: per scenario a headline, the picture of one configuration, and
// one row per configuration that ends in the verdict in words.
var Table = Format{
	Name:  "table",
	Doc:   "one row per configuration, with a timeline of the one that matters, for people",
	Write: writeTable,
}

func writeTable(w io.Writer, d *lab.Document, o Options) error {
	return (&page{setting: newSetting(o)}).writeTable(w, d, o)
}

func (p *page) writeTable(w io.Writer, d *lab.Document, o Options) error {
	blocks := blocksOf(d)
	suite := d.Comparison == nil && (len(blocks) > 1 || len(d.Scenarios) > 1)
	section := func(title string) error {
		if o.Section == nil || !suite {
			return nil
		}
		if err := p.write(w); err != nil {
			return err
		}
		return o.Section(title)
	}
	for _, b := range blocks {
		p.gap()
		if err := section(strings.TrimSuffix(b.info.Name+": "+b.info.Title, ": ")); err != nil {
			return err
		}
		p.headline(d, b)
		grids := sweepsOf(d, b)
		if o.Timeline == "always" || o.Timeline != "never" && !suite && grids == nil && d.Comparison == nil {
			if r := b.focus(); r != nil {
				p.section(p.picture(b, r))
			}
		}
		var err error
		if grids == nil {
			err = p.table(b)
		} else {
			err = p.sweeps(grids)
		}
		if err != nil {
			return fmt.Errorf("scenario %q: %w", b.info.Name, err)
		}
		p.ties(b)
		p.comparison(d, b)
		if o.Rows {
			if err := p.orders(b); err != nil {
				return fmt.Errorf("scenario %q: %w", b.info.Name, err)
			}
		}
		if err := section(""); err != nil {
			return err
		}
	}
	p.stores(d)
	p.failures(d)
	p.skipped(d)
	if !suite && len(blocks) == 1 && d.Comparison == nil {
		p.lesson(blocks[0].info)
	}
	p.changes(d)
	p.summary(d, suite)
	p.again(d)
	// Whoever has something to mend is not sent on, nor who tries something out.
	sound := d.Summary.NotAsExpected == 0 && d.Summary.Inconclusive == 0 && d.Summary.Skipped == 0
	sound = sound && len(d.Run.Set) == 0 && len(d.Run.Vary) == 0
	if !suite && sound && d.Comparison == nil && len(blocks) == 1 && blocks[0].info.Next != "" {
		p.wrapped(plain, "", "next: retrylab run "+p.text(blocks[0].info.Next), 2)
	}
	return p.write(w)
}

// again writes the command that runs what did not hold once more, of several the first. It can be copied as it
// stands, on however many lines.
func (p *page) again(d *lab.Document) {
	var what *lab.Result
	for i := range d.Results {
		switch r := &d.Results[i]; {
		case r.Verdict == lab.NotAsExpected && (what == nil || what.Verdict == lab.Inconclusive),
			r.Verdict == lab.Inconclusive && what == nil:
			what = r
		}
	}
	if what == nil {
		return
	}
	words := repeatWords(d, what)
	if len(words) == 0 {
		return
	}
	if longest := slices.MaxFunc(words, func(a, b string) int { return width(a) - width(b) }); 2*width(p.text(longest)) > p.width {
		p.wrapped(plain, "", "again: "+p.text(strings.Join(words, " ")), 2)
		return
	}
	line := "again:"
	for i, w := range words {
		switch {
		case i > 0 && strings.HasPrefix(words[i-1], "--"):
			continue // it stands behind its flag
		case strings.HasPrefix(w, "--") && i+1 < len(words):
			w += " " + words[i+1]
		}
		w = p.text(w)
		if width(line)+1+width(w)+len(` \`) > p.width {
			p.line(line + ` \`)
			line = " " // of a command, no word of it is broken
		}
		line += " " + w
	}
	p.line(line)
}

// Summary is the end of [Table]: what somebody has to look at, and the line that counts.
func Summary(w io.Writer, d *lab.Document, o Options) error {
	p := &page{setting: newSetting(o)}
	p.failures(d)
	p.summary(d, true)
	if _, end := p.changed(d); end != "" {
		p.wrapped(plain, "", end, 2)
	}
	return p.write(w)
}

// write writes what has come since the last time.
func (p *page) write(w io.Writer) error {
	if _, err := w.Write(p.buf.Bytes()[p.written:]); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	p.written = p.buf.Len()
	return nil
}

// picture draws a result: what took place over time where the scenario counts it, else every send.
func (p *page) picture(b *block, r *lab.Result) []string {
	if r.Series != nil {
		return p.histogram(b, r)
	}
	return p.timeline(b.name(p.setting, r), b.info.Begin, r)
}

// block is one scenario with its results.
type block struct {
	info    lab.ScenarioInfo
	results []*lab.Result
	ran     []int64              // the seeds, in order, each once
	seeds   map[*lab.Result]int  // how many of them came to what the row says
	mixed   bool                 // its results are of several scenarios
	letters map[[2]string]string // in a comparison, what each row is called for short, by scenario and id
}

// blocksOf gathers the results of a document by scenario, in the order of the document. A scenario
// of which nothing ran has no block: its reason stands among the skipped.
func blocksOf(d *lab.Document) []*block {
	if d.Comparison != nil && len(d.Results) > 0 {
		return []*block{together(d)}
	}
	var blocks []*block
	byName := make(map[string]*block)
	add := func(info lab.ScenarioInfo) *block {
		b := &block{info: info}
		blocks = append(blocks, b)
		byName[info.Name] = b
		return b
	}
	for _, info := range d.Scenarios {
		if byName[info.Name] == nil {
			add(info)
		}
	}
	for i := range d.Results {
		r := &d.Results[i]
		b := byName[r.Scenario]
		if b == nil {
			b = add(lab.ScenarioInfo{Name: r.Scenario})
		}
		b.results = append(b.results, r)
	}
	ran := blocks[:0]
	for _, b := range blocks {
		if len(b.results) > 0 {
			b.baselineFirst()
			b.merge()
			ran = append(ran, b)
		}
	}
	return ran
}

// together makes one block of all results, in their order: rows that are held against each other stand in one table.
func together(d *lab.Document) *block {
	b := &block{info: lab.ScenarioInfo{Name: "comparison"}, mixed: len(d.Scenarios) > 1, letters: map[[2]string]string{}}
	for i, row := range d.Comparison.Rows {
		b.letters[[2]string{row.Scenario, row.ID}] = rowLetter(i)
	}
	for i := range d.Results {
		b.results = append(b.results, &d.Results[i])
	}
	if len(d.Scenarios) > 0 {
		b.info.Currency, b.info.Begin = d.Scenarios[0].Currency, d.Scenarios[0].Begin
		if !b.mixed {
			b.info.Name, b.info.Title = d.Scenarios[0].Name, d.Scenarios[0].Title
		}
	}
	b.merge()
	return b
}

// baselineFirst moves the results of the baseline to the front and keeps the rest in order.
func (b *block) baselineFirst() {
	if b.info.Baseline == "" {
		return
	}
	var base, rest []*lab.Result
	for _, r := range b.results {
		if r.ID == b.info.Baseline {
			base = append(base, r)
		} else {
			rest = append(rest, r)
		}
	}
	b.results = append(base, rest...)
}

// merge makes one row of the seeds of a configuration that came to the same.
func (b *block) merge() {
	b.seeds = make(map[*lab.Result]int)
	var rows []*lab.Result
	for _, r := range b.results {
		b.ran = append(b.ran, r.Seed)
		i := slices.IndexFunc(rows, func(row *lab.Result) bool { return sameRow(row, r) })
		if i < 0 {
			rows = append(rows, r)
			i = len(rows) - 1
		}
		b.seeds[rows[i]]++
	}
	b.results = rows
	slices.Sort(b.ran)
	b.ran = slices.Compact(b.ran)
}

// sameRow reports whether two results would be told in the same words: times are in no column.
func sameRow(a, b *lab.Result) bool {
	return a.Scenario == b.Scenario && a.ID == b.ID && shown(a) == shown(b) && a.Beliefs == b.Beliefs && a.Verdict == b.Verdict && a.Why == b.Why &&
		slices.Equal(a.Nodes, b.Nodes) && slices.Equal(a.Ledgers, b.Ledgers) &&
		slices.EqualFunc(a.Checks, b.Checks, func(x, y lab.Check) bool {
			return x.Name == y.Name && x.Held == y.Held && (x.Held || x.Actual == y.Actual && x.Expected == y.Expected)
		})
}

// shown are the counts that a row shows.
func shown(r *lab.Result) lab.Counts {
	c := r.Counts
	c.Late, c.Amount = 0, 0
	return c
}

// focus is the result whose timeline is drawn: the scenario's choice if it ran, else the first that
// recorded anything.
func (b *block) focus() *lab.Result {
	for _, r := range b.results {
		if r.ID == b.info.Focus && drawn(r) {
			return r
		}
	}
	for _, r := range b.results {
		if drawn(r) {
			return r
		}
	}
	return nil
}

// drawn reports whether there is something of a result to draw.
func drawn(r *lab.Result) bool { return len(r.Events) > 0 || r.Series != nil }

// name is what a row of the block is called: the configuration, with whatever else tells it from
// its neighbours.
func (b *block) name(s *setting, r *lab.Result) string {
	name := b.title(s, r)
	alone := !slices.ContainsFunc(b.results, func(other *lab.Result) bool { return other != r && other.ID == r.ID && other.Scenario == r.Scenario })
	switch n := b.seeds[r]; {
	case alone: // the headline names the seeds
	case n > 1:
		name += s.mid + strconv.Itoa(n) + " seeds"
	default:
		name += s.mid + "seed " + strconv.FormatInt(r.Seed, 10)
	}
	switch {
	case r.Simulated && !b.simulated():
		name += s.mid + "simulated"
	case r.Store != nil && b.store() == nil:
		name += s.mid + s.text(r.Store.Engine)
	}
	return name
}

// title is what a configuration is called in a block, whatever its seed.
func (b *block) title(s *setting, r *lab.Result) string {
	name := s.text(r.Configuration)
	if name == "" {
		name = s.text(r.ID)
	}
	if b.mixed {
		name = s.text(r.Scenario) + ": " + name
	}
	if short := b.letters[[2]string{r.Scenario, r.ID}]; short != "" {
		name = short + " " + name
	}
	return name
}

// simulated reports whether every result of the block was simulated.
func (b *block) simulated() bool {
	return !slices.ContainsFunc(b.results, func(r *lab.Result) bool { return !r.Simulated })
}

// store is the store that every result of the block was served by, where it is not the run's.
func (b *block) store() *lab.Store {
	first := b.results[0].Store
	for _, r := range b.results {
		if r.Store == nil || r.Store.Engine != first.Engine {
			return nil
		}
	}
	return first
}

// page collects the lines of a report.
type page struct {
	*setting
	beside  *Column // one more column, before the orders
	buf     bytes.Buffer
	written int // how much of buf is
}

func (p *page) line(text string) {
	p.buf.WriteString(strings.TrimRight(text, " "))
	p.buf.WriteByte('\n')
}

// gap leaves one empty line unless the page is empty or ends with one.
func (p *page) gap() {
	if b := p.buf.Bytes(); len(b) > 0 && !bytes.HasSuffix(b, []byte("\n\n")) {
		p.buf.WriteByte('\n')
	}
}

// section writes lines with an empty line before them.
func (p *page) section(lines []string) {
	if len(lines) == 0 {
		return
	}
	p.gap()
	for _, l := range lines {
		p.line(l)
	}
}

// wrapped writes text behind a lead over as many lines as it needs, the further ones indented.
func (p *page) wrapped(st style, lead, text string, indent int) {
	for i, l := range wrap(text, p.width-width(lead), p.width-indent) {
		if i > 0 {
			lead = strings.Repeat(" ", indent)
		}
		p.line(lead + p.paint(st, l))
	}
}

// headline writes the scenario's name and title and how it was run, on one line where they fit.
func (p *page) headline(d *lab.Document, b *block) {
	name, title := p.text(b.info.Name), p.prose(b.info.Title)
	run := p.run(d, b)
	room := p.width - width(name) - width(run) - 3
	switch {
	case title == "" && room >= 0:
		p.line(p.paint(bold, name) + strings.Repeat(" ", room+3) + p.paint(dim, run))
	case room >= 3+width(title):
		p.line(p.paint(bold, name) + "   " + pad(title, room) + p.paint(dim, run))
	case room >= 0:
		p.line(p.paint(bold, name) + strings.Repeat(" ", room+3) + p.paint(dim, run))
		p.wrapped(plain, "", title, 0)
	default:
		p.wrapped(bold, "", name, 0)
		p.wrapped(dim, "", run, 0)
		if title != "" {
			p.wrapped(plain, "", title, 0)
		}
	}
	for _, set := range d.Run.Set {
		p.wrapped(warn, "", "changed: "+p.prose(set), 2)
	}
}

// run says how a block was run: clock, store and seed. What is simulated has neither of the first two.
func (p *page) run(d *lab.Document, b *block) string {
	var parts []string
	switch {
	case b.simulated():
		parts = append(parts, "simulated")
	case d.Run.Clock != "":
		c := p.text(d.Run.Clock) + " clock"
		if d.Run.Speed > 0 {
			c += " " + strconv.FormatFloat(d.Run.Speed, 'f', -1, 64) + p.cross
		}
		parts = append(parts, c)
	}
	store := &d.Run.Store
	if other := b.store(); other != nil {
		store = other
	}
	if store.Engine != "" && !b.simulated() {
		parts = append(parts, p.text(store.Engine))
	}
	low, high := b.ran[0], b.ran[len(b.ran)-1]
	switch {
	case len(b.ran) == 1:
		parts = append(parts, "seed "+strconv.FormatInt(low, 10))
	case high-low == int64(len(b.ran)-1):
		parts = append(parts, fmt.Sprintf("seeds %d to %d", low, high))
	default:
		parts = append(parts, lab.Count(len(b.ran), "seed"))
	}
	return strings.Join(parts, p.mid)
}

// lesson writes what the numbers came to.
func (p *page) lesson(info lab.ScenarioInfo) {
	if info.Shown == "" && len(info.Notes) == 0 {
		return
	}
	p.gap()
	if info.Shown != "" {
		p.wrapped(plain, "", p.prose(info.Shown), 0)
	}
	for _, note := range info.Notes {
		p.wrapped(dim, "note: ", p.prose(note), 6)
	}
}

// failures repeats at the end what somebody has to look at: every check that did not hold, and why
// a trial is inconclusive.
// Seeds of which the same is to be said are named together.
func (p *page) failures(d *lab.Document) {
	for _, f := range failuresOf(d) {
		r := f.result
		switch r.Verdict {
		case lab.NotAsExpected:
			p.gap()
			p.wrapped(plain, p.paint(alarm, "NOT HELD")+"  ", p.failed(d, f), 10)
		default:
			p.gap()
			p.wrapped(plain, p.paint(warn, "INCONCLUSIVE")+"  ", p.failed(d, f), 14)
			if r.Why != "" {
				p.wrapped(plain, "  ", p.prose(r.Why), 4)
			}
			if r.Defect {
				p.wrapped(plain, "  ", "This is a defect of the lab itself; please report it.", 4)
			}
		}
		for _, c := range f.checks {
			p.check(c)
		}
	}
}

// An unsound is what somebody has to look at: a result that did not hold or is inconclusive, for all seeds of its
// configuration of which the same is to be said.
type unsound struct {
	result *lab.Result // that of the first seed
	seeds  []int64
	of     int         // seeds that the configuration was run with
	checks []lab.Check // that did not hold
}

// failuresOf gathers them in the order of the document.
func failuresOf(d *lab.Document) (out []*unsound) {
	ran := map[[2]string]int{}
	for _, r := range d.Results {
		ran[[2]string{r.Scenario, r.ID}]++
	}
	byText := map[string]*unsound{}
	for i := range d.Results {
		r := &d.Results[i]
		if r.Verdict != lab.NotAsExpected && r.Verdict != lab.Inconclusive {
			continue
		}
		f := &unsound{result: r, of: ran[[2]string{r.Scenario, r.ID}]}
		text := []string{r.Scenario, r.ID, r.Verdict.String(), r.Why}
		for _, c := range r.Checks {
			if !c.Held && !inReason(r, c) {
				f.checks = append(f.checks, c)
				text = append(text, c.Kind, c.Name, c.Expected, c.Actual)
			}
		}
		key := fmt.Sprintf("%q", text)
		if byText[key] == nil {
			byText[key] = f
			out = append(out, f)
		}
		byText[key].seeds = append(byText[key].seeds, r.Seed)
	}
	return out
}

// failed is how a failure is named: on the command line where it is of one seed.
func (p *page) failed(d *lab.Document, f *unsound) string {
	if len(f.seeds) == 1 {
		return p.address(d, f.result)
	}
	name := p.text(f.result.Scenario) + ":" + p.text(f.result.ID)
	return fmt.Sprintf("%s, %d of %d seeds (%s)", name, len(f.seeds), f.of, strings.TrimPrefix(seedNames(f.seeds), "seeds "))
}

// inReason reports whether why a trial is inconclusive says all of a check that did not hold. What stands in a file
// has its place to say.
func inReason(r *lab.Result, c lab.Check) bool {
	return r.Why != "" && c.File == "" && (c.Kind == "premise" || c.Undefined)
}

// address is how a result is named on the command line.
func (p *page) address(d *lab.Document, r *lab.Result) string {
	address := p.text(r.Scenario) + ":" + p.text(r.ID)
	for i := range d.Results {
		if other := &d.Results[i]; other != r && other.Scenario == r.Scenario && other.ID == r.ID {
			return address + " --seed " + strconv.FormatInt(r.Seed, 10)
		}
	}
	return address
}

// check writes a check that did not hold.
func (p *page) check(c lab.Check) {
	name := p.prose(c.Name)
	if c.Kind != "expect" && c.Kind != "" {
		name = p.text(c.Kind) + " " + name
	}
	text := name + ": expected " + p.value(c.Expected) + ", actual " + p.value(c.Actual)
	if c.Undefined {
		text = name + ": " + p.value(c.Actual)
	}
	if c.File != "" {
		where := p.text(c.File)
		if c.Line > 0 {
			where += ":" + strconv.Itoa(c.Line)
		}
		text += "  (" + where + ")"
	}
	p.wrapped(plain, "  ", text, 4)
	for _, e := range c.Evidence {
		p.wrapped(dim, "    ", p.text(e), 6)
	}
}

// value shows an empty value as what it is.
func (p *page) value(raw string) string {
	if raw = p.prose(raw); raw == "" {
		return "nothing"
	}
	return raw
}

// fewSkips is how many skips of one reason are named one by one.
const fewSkips = 5

// skipped lists what was not run. Many of one reason are counted: a run that was cut short leaves
// all the rest.
func (p *page) skipped(d *lab.Document) {
	if len(d.Skipped) == 0 {
		return
	}
	p.gap()
	byReason := map[string]int{}
	for _, s := range d.Skipped {
		byReason[s.Reason]++
	}
	for _, s := range d.Skipped {
		n := byReason[s.Reason]
		if n > fewSkips {
			byReason[s.Reason] = 0 // told once
			p.wrapped(plain, "skipped  ", lab.Count(n, "configuration")+": "+p.value(s.Reason), 9)
		}
		if n == 0 || n > fewSkips {
			continue
		}
		name := p.text(s.Scenario)
		if s.ID != "" {
			name += ":" + p.text(s.ID)
		}
		p.wrapped(plain, "skipped  ", name+": "+p.value(s.Reason), 9)
	}
}

// whyNothing is the reason for which nothing ran that could have been.
func (p *page) whyNothing(d *lab.Document) string {
	for _, s := range d.Skipped {
		if why, cut := strings.CutPrefix(s.Reason, "not run: "); cut {
			return ": " + p.prose(why)
		}
	}
	return ""
}

// summary counts the verdicts. One scenario whose rows all held needs none: they are on the screen.
func (p *page) summary(d *lab.Document, suite bool) {
	scenarios := make(map[string]bool)
	trials := make(map[[2]string]int)
	for i := range d.Results {
		scenarios[d.Results[i].Scenario] = true
		trials[[2]string{d.Results[i].Scenario, d.Results[i].ID}]++
	}
	if len(d.Results) == 0 {
		if d.Comparison != nil {
			return // it holds what others ran against each other
		}
		p.gap()
		if d.Run.Interrupted {
			p.line(p.paint(warn, "interrupted before any result was complete"))
		} else {
			p.wrapped(warn, "", "nothing ran"+p.whyNothing(d), 2)
		}
		return
	}
	allHeld := d.Summary.AsExpected == len(d.Results) && d.Summary.Skipped == 0
	if suite || !allHeld || d.Run.Interrupted {
		p.gap()
		var text string
		if suite {
			text = lab.Count(len(scenarios), "scenario") + ", "
		}
		if len(trials) == len(d.Results) {
			text += lab.Count(len(trials), "configuration")
		} else {
			text += lab.Count(len(trials), "configuration") + ", " + lab.Count(len(d.Results), "trial")
		}
		sep := ": "
		for _, n := range []struct {
			n    int
			word string
		}{
			{d.Summary.AsExpected, "held"},
			{d.Summary.NotAsExpected, "not held"},
			{d.Summary.Inconclusive, "inconclusive"},
			{d.Summary.Measured, "measured"},
			{d.Summary.Skipped, "skipped"},
		} {
			if n.n > 0 {
				text += sep + strconv.Itoa(n.n) + " " + n.word
				sep = ", "
			}
		}
		st := plain
		switch {
		case d.Summary.NotAsExpected > 0:
			st = alarm
		case d.Summary.Inconclusive > 0:
			st = warn
		case allHeld:
			st = good
		}
		p.wrapped(st, "", text, 2)
	}
	if d.Run.Interrupted {
		p.wrapped(warn, "", "interrupted: these are the results that were complete by then", 2)
	}
}
