// Package classroom gives a scenario as a lesson: a class sees a configuration, predicts what comes out of it,
// and sees what did. It makes lines out of results and asks for keys; who shows the one and reads the
// other is handed in. It runs nothing and judges nothing but a prediction.
package classroom

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"retrylab/internal/lab"
	"retrylab/report"
)

// The keys that mean something. Every other is a character.
const (
	Next  rune = '\r'   // Enter, the space bar, page down, the arrow to the right
	Erase rune = '\x7f' // backspace
)

// ErrQuit is returned when the class does not want to go on.
var ErrQuit = errors.New("quit")

// A Desk is what a lesson is given on: what the class looks at, and what is typed.
type Desk interface {
	// Size is how much fits, in columns and rows.
	Size() (columns, rows int)
	// Show replaces what the class sees. What is typed next appears behind the last line.
	Show(lines []string) error
	// Key waits for a key.
	Key() (rune, error)
	// Within waits for a key, but no longer than that in real time. It returns 0 when none came.
	Within(time.Duration) (rune, error)
	// Now is the real time since some moment.
	Now() time.Duration
}

// Configuration is one row of a scenario, as a class is shown it.
type Configuration struct {
	ID, Name string
	Chain    []string      // every machine, with what it is set to
	Differs  []string      // from the configuration before it, one thing each
	Results  []*lab.Result // of the seeds it was run with; none where it was skipped
	Skipped  string        // why it was not run
}

// Lesson is a scenario that has been run and is now told, configuration by configuration.
type Lesson struct {
	Name, Title    string
	Heading        string // before the name, such as where in the course this is
	Set            []string
	Configurations []Configuration
	Document       *lab.Document
	Text           string   // what the scenario teaches
	After          []string // the last lines: what to do next
	Last           string   // what the keys do on the last screen
	Missing        string   // why the scenario cannot be run here: there is nothing more to tell
	Told           bool     // it has come to its last screen
	Look           report.Options
	Pace           Pace

	predicted map[string]int // by the ids of configurations
}

// Pace is how fast scenario time goes by on the screen.
type Pace struct {
	Speed   float64 // scenario seconds in a real one; 0 for as many as make a picture last as long as [Short]
	Instant bool    // the picture is whole at once
}

// Short is how long a picture lasts at a pace that nobody chose.
const Short = 6 * time.Second

// ParsePace reads 10x, instant or auto.
func ParsePace(text string) (Pace, bool) {
	switch text {
	case "auto":
		return Pace{}, true
	case "instant":
		return Pace{Instant: true}, true
	}
	number, ok := strings.CutSuffix(text, "x")
	speed, err := strconv.ParseFloat(number, 64)
	return Pace{Speed: speed}, ok && err == nil && speed >= 0.01 && speed <= 1_000_000
}

// of is the speed for a picture that lasts so long in scenario time.
func (p Pace) of(end time.Duration) float64 {
	if p.Speed > 0 {
		return p.Speed
	}
	return max(end.Seconds()/Short.Seconds(), 0.001)
}

// frame is how often the picture is drawn.
const frame = 50 * time.Millisecond

// notSaid is the prediction of a class that has said nothing.
const notSaid = -1

// mostDigits is how many digits of a prediction are taken.
const mostDigits = 9

// Give gives the lesson. The error is [ErrQuit], or what the desk has met.
func (l *Lesson) Give(d Desk) error {
	if l.Missing != "" {
		l.set(d)
		lines := append(l.title(), "", report.Strong("It cannot be run here.", l.Look), "")
		l.Told = true
		return l.pause(d, append(lines, report.Fold(l.Missing, "  ", l.Look)...), l.Last)
	}
	l.predicted = map[string]int{}
	for i := range l.Configurations {
		c := &l.Configurations[i]
		if len(c.Results) == 0 {
			if err := l.pause(d, append(l.introduction(i), report.Fold("Not run: "+c.Skipped, "  ", l.Look)...), forward(i+1 < len(l.Configurations))); err != nil {
				return err
			}
			continue
		}
		said, err := l.ask(d, i)
		if err != nil {
			return err
		}
		if said != notSaid {
			l.predicted[c.ID] = said
		}
		if err := l.reveal(d, i, said); err != nil {
			return err
		}
	}
	return l.end(d)
}

func forward(more bool) string {
	if more {
		return "Enter: the next configuration   q: quit"
	}
	return "Enter: all of them side by side   q: quit"
}

// set takes the size of the desk as it is now: a window can be made larger while a class looks.
func (l *Lesson) set(d Desk) (rows int) {
	l.Look.Width, rows = d.Size()
	return max(rows, 16)
}

// title names the scenario.
func (l *Lesson) title() []string {
	head := l.Name
	if l.Heading != "" {
		head = l.Heading + ": " + l.Name
	}
	lines := report.Fold(head, "", l.Look)
	if l.Title != "" {
		lines = append(lines, report.Fold(l.Title, "", l.Look)...)
	}
	for _, set := range l.Set {
		lines = append(lines, report.Fold("changed: "+set, "", l.Look)...)
	}
	return lines
}

// introduction shows a configuration before it is run.
func (l *Lesson) introduction(i int) []string {
	c := &l.Configurations[i]
	fold := func(text, indent string) []string { return report.Fold(text, indent, l.Look) }
	lines := l.title()
	lines = append(lines, "", report.Strong(fold(l.which(i), "")[0], l.Look), "")
	for _, machine := range c.Chain {
		lines = append(lines, report.Hang(machine, "  ", l.Look)...)
	}
	lines = append(lines, "")
	if len(c.Differs) > 0 {
		lines = append(lines, fold("Unlike the one before:", "")...)
		for _, text := range c.Differs {
			lines = append(lines, report.Hang(text, "  ", l.Look)...)
		}
		lines = append(lines, "")
	}
	return lines
}

// foot says what the keys do, on one line.
func (l *Lesson) foot(keys string) string {
	if len(keys) <= l.Look.Width {
		return keys
	}
	return report.Fold(keys, "", l.Look)[0]
}

// which names a configuration and its place.
func (l *Lesson) which(i int) string {
	return fmt.Sprintf("Configuration %d of %d: %s", i+1, len(l.Configurations), l.Configurations[i].Name)
}

// ask asks for a prediction.
func (l *Lesson) ask(d Desk, i int) (int, error) {
	r := l.Configurations[i].Results[0]
	typed, hints, note := "", 0, ""
	for {
		rows := l.set(d)
		lines := l.introduction(i)
		tail := []string{}
		for _, hint := range Hints(r)[:hints] {
			tail = append(tail, report.Fold("Hint: "+hint, "", l.Look)...)
		}
		_, noun := asked(r)
		question := fmt.Sprintf("How many %ss will there be?", noun)
		if r.Counts.Operations > 1 {
			question = fmt.Sprintf("How many %ss will there be, of %d operations?", noun, r.Counts.Operations)
		}
		keys := "a number and Enter   Enter alone: skip   ?: a hint   q: quit"
		if hints == len(Hints(r)) {
			keys = "a number and Enter   Enter alone: skip   q: quit"
		}
		if note != "" {
			tail = append(tail, report.Fold(note, "", l.Look)...)
		}
		tail = append(tail, l.foot(keys))
		tail = append(tail, report.Strong(question, l.Look)+" "+typed)
		if err := d.Show(append(within(lines, rows-len(tail)), tail...)); err != nil {
			return 0, err
		}
		key, err := d.Key()
		note = ""
		switch {
		case err != nil:
			return 0, err
		case key == Next && typed == "":
			return notSaid, nil
		case key == Next:
			n, err := strconv.Atoi(typed)
			return n, err
		case key == Erase && typed != "":
			typed = typed[:len(typed)-1]
		case key == '?' && hints < len(Hints(r)):
			hints++
		case key == 'q' || key == 'Q':
			return 0, ErrQuit
		case '0' <= key && key <= '9' && len(typed) < mostDigits:
			typed += string(key)
		case unicode.IsPrint(key) && len(typed) < mostDigits:
			note = fmt.Sprintf("A number, please: %q is none.", key)
		}
	}
}

// within keeps the first and the last lines where there are too many: a question is never pushed off the screen.
func within(lines []string, rows int) []string {
	if len(lines) <= rows || rows < 4 {
		return lines[:max(min(len(lines), rows), 0)]
	}
	kept := slices.Clone(lines[:rows-2])
	return append(kept, fmt.Sprintf("  (%d more lines: describe shows them)", len(lines)-rows+2), "")
}

// reveal draws what came out as it came about, and then says what it was.
func (l *Lesson) reveal(d Desk, i, said int) error {
	rows := l.set(d)
	c := &l.Configurations[i]
	r := c.Results[0]
	told := l.told(c, said)
	keys := forward(i+1 < len(l.Configurations))
	head := []string{report.Strong(report.Fold(l.which(i), "", l.Look)[0], l.Look), ""}
	// Beside the lanes there are the axis, a legend of up to three lines, and blanks.
	t := report.NewTimeline(r, l.Look, min(rows-len(head)-len(told)-8, 14))
	if end := t.End(); end > 0 && !l.Pace.Instant {
		if err := l.play(d, t, head); err != nil {
			return err
		}
	}
	lines := slices.Concat(head, trimmed(t.At(t.End())), []string{""}, told)
	return l.pause(d, lines, keys)
}

// trimmed is without blank lines at its end.
func trimmed(lines []string) []string {
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// play moves a picture to its end, or until a key is pressed.
func (l *Lesson) play(d Desk, t *report.Timeline, head []string) error {
	begin, speed := d.Now(), l.Pace.of(t.End())
	foot := fmt.Sprintf("%s scenario seconds a second   any key: to the end   q: quit", strconv.FormatFloat(round(speed), 'f', -1, 64))
	var shown []string
	for {
		at := time.Duration(min(float64(d.Now()-begin)*speed, float64(t.End())))
		lines := slices.Concat(head, t.At(at), []string{"", l.foot(foot)})
		if !slices.Equal(lines, shown) {
			if err := d.Show(lines); err != nil {
				return err
			}
			shown = lines
		}
		if at >= t.End() {
			return nil
		}
		key, err := d.Within(frame)
		switch {
		case err != nil:
			return err
		case key == 'q' || key == 'Q':
			return ErrQuit
		case key != 0:
			return nil
		}
	}
}

// round is a number with at most three digits that say something.
func round(x float64) float64 {
	text := strconv.FormatFloat(x, 'g', 3, 64)
	x, _ = strconv.ParseFloat(text, 64)
	return x
}

// told says whether the prediction was right, and what the numbers come to.
func (l *Lesson) told(c *Configuration, said int) []string {
	r := c.Results[0]
	verdict := Answer(said, r)
	lines := []string{}
	for _, text := range report.Fold(verdict, "", l.Look) {
		lines = append(lines, report.Strong(text, l.Look))
	}
	for _, text := range Explain(r) {
		lines = append(lines, report.Fold(text, "", l.Look)...)
	}
	if low, high := spread(c.Results); low != high {
		lines = append(lines, report.Fold(fmt.Sprintf("That is seed %d. %d seeds came to between %d and %d orders.", r.Seed, len(c.Results), low, high), "", l.Look)...)
	}
	return lines
}

func spread(results []*lab.Result) (low, high int) {
	low = results[0].Counts.Effects
	for _, r := range results {
		low, high = min(low, r.Counts.Effects), max(high, r.Counts.Effects)
	}
	return low, high
}

// pause shows lines, as many at a time as fit, until the class wants to go on.
func (l *Lesson) pause(d Desk, lines []string, keys string) error {
	for {
		rows := l.set(d)
		part, rest := lines, []string(nil)
		foot := keys
		if len(lines) > rows-2 {
			at := rows - 2
			for back := at; back > at/2; back-- { // rather between paragraphs
				if lines[back-1] == "" {
					at = back
					break
				}
			}
			part, rest = lines[:at], lines[at:]
			foot = "Enter: what follows   q: quit"
		}
		if err := d.Show(slices.Concat(trimmed(part), []string{"", l.foot(foot) + " "})); err != nil {
			return err
		}
		for {
			key, err := d.Key()
			if err != nil {
				return err
			}
			if key == 'q' || key == 'Q' {
				return ErrQuit
			}
			if key == Next {
				break
			}
		}
		if lines = rest; len(lines) == 0 {
			return nil
		}
	}
}

// end shows all configurations side by side, and what the scenario teaches.
func (l *Lesson) end(d Desk) error {
	l.set(d)
	table, err := l.table()
	if err != nil {
		return err
	}
	if text := strings.TrimSpace(l.Text); text != "" {
		if err := l.pause(d, table, "Enter: the lesson   q: quit"); err != nil {
			return err
		}
		lines := []string{report.Strong("The lesson", l.Look), ""}
		for paragraph := range strings.SplitSeq(text, "\n\n") {
			lines = append(append(lines, report.Fold(paragraph, "  ", l.Look)...), "")
		}
		table = lines
	} else {
		table = append(table, "")
	}
	for _, text := range l.After {
		table = append(table, report.Fold(text, "", l.Look)...)
	}
	l.Told = true
	return l.pause(d, table, l.Last)
}

// Tally says how many of the predictions so far were right; "" where there were none.
func (l *Lesson) Tally() string {
	right := 0
	for i := range l.Configurations {
		c := &l.Configurations[i]
		if n, ok := l.predicted[c.ID]; ok && Right(n, c.Results[0]) {
			right++
		}
	}
	if len(l.predicted) == 0 {
		return ""
	}
	return fmt.Sprintf("Right: %d of %s.", right, lab.Count(len(l.predicted), "prediction"))
}

// table is the usual one, with the predictions beside it.
func (l *Lesson) table() ([]string, error) {
	cells := map[string]string{}
	for id, n := range l.predicted {
		cells[id] = strconv.Itoa(n)
	}
	look := l.Look
	look.Timeline = "never"
	var b bytes.Buffer
	var err error
	if len(cells) == 0 {
		err = report.Table.Write(&b, l.Document, look)
	} else {
		err = report.WriteTableBeside(&b, l.Document, look, report.Column{Head: "PREDICTED", Cells: cells})
	}
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	// What comes next is said after the lesson.
	if last := lines[len(lines)-1]; strings.HasPrefix(last, "next: ") {
		lines = lines[:len(lines)-1]
	}
	if tally := l.Tally(); tally != "" {
		lines = append(lines, "", report.Fold(tally, "", l.Look)[0])
	}
	return lines, nil
}
