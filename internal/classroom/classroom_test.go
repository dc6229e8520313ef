package classroom

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retrylab/internal/lab"
	"retrylab/report"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (write it with -update)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: -want +got:\n%s", path, diff)
	}
}

// threeTries is a caller that gives up three times, and an order for each try.
func threeTries() *lab.Result {
	r := &lab.Result{
		Scenario: "read-timeout", Configuration: "three tries", ID: "three-tries", Seed: 1, Verdict: lab.AsExpected, Amplification: 3,
		Counts:  lab.Counts{Operations: 1, Wanted: 1, Sends: 3, Arrivals: 3, Effects: 3, EffectsWhenCallerDone: 1, Duplicates: 2, Late: 2},
		Beliefs: lab.Beliefs{Unknown: 1}, Reasons: []string{"read timeout"}, CallerDoneMs: 17_000, SettledMs: 24_000,
		Nodes: []lab.Node{{Name: "caller", Role: "caller", Sends: 3}, {Name: "order-1", Role: "server", Arrivals: 3}},
	}
	at := func(s int, kind lab.Kind, n int, node, detail string) {
		e := lab.Event{At: time.Duration(s) * time.Second, Kind: kind, Operation: "op-1", Node: node, Detail: detail}
		if n > 0 {
			e.Send = fmt.Sprintf("op-1/retry.%d", n)
		}
		r.Events = append(r.Events, e)
	}
	at(0, lab.Start, 0, "", "")
	for n := 1; n <= 3; n++ {
		begin := 6 * (n - 1)
		at(begin, lab.Send, n, "caller", "")
		at(begin, lab.Arrival, n, "order-1", "")
		at(begin+5, lab.Timeout, n, "caller", "read")
		at(begin+12, lab.Commit, n, "order-1", "")
	}
	at(17, lab.Done, 0, "", "unknown")
	at(24, lab.Settled, 0, "", "")
	slices.SortStableFunc(r.Events, func(a, b lab.Event) int { return int(a.At - b.At) })
	return r
}

// oneTry is a caller that waits.
func oneTry() *lab.Result {
	r := threeTries()
	r.Configuration, r.ID, r.Amplification = "wait longer", "wait-longer", 1
	r.Counts = lab.Counts{Operations: 1, Wanted: 1, Sends: 1, Arrivals: 1, Effects: 1, EffectsWhenCallerDone: 1}
	r.Beliefs, r.Reasons, r.CallerDoneMs = lab.Beliefs{OK: 1}, []string{"201"}, 12_000
	r.Events = []lab.Event{
		{Kind: lab.Start, Operation: "op-1"},
		{Kind: lab.Send, Operation: "op-1", Node: "caller"},
		{Kind: lab.Arrival, Operation: "op-1", Node: "order-1"},
		{At: 12 * time.Second, Kind: lab.Commit, Operation: "op-1", Node: "order-1"},
		{At: 12 * time.Second, Kind: lab.Answer, Operation: "op-1", Node: "order-1", Status: 201},
		{At: 12 * time.Second, Kind: lab.Reply, Operation: "op-1", Node: "caller", Status: 201},
		{At: 12 * time.Second, Kind: lab.Done, Operation: "op-1", Detail: "ok"},
	}
	return r
}

func lesson() *Lesson {
	many, one := threeTries(), oneTry()
	return &Lesson{
		Name: "read-timeout", Title: "The caller gives up before the server is done",
		Configurations: []Configuration{
			{ID: many.ID, Name: many.Configuration, Chain: []string{"caller (POST, retry ×3, read 5s) → ", "order (works 12s)"}, Results: []*lab.Result{many}},
			{ID: one.ID, Name: one.Configuration, Chain: []string{"caller (POST, retry ×3, read 15s) → ", "order (works 12s)"}, Differs: []string{"caller: read 15s instead of 5s"}, Results: []*lab.Result{one}},
			{ID: "absent", Name: "not here", Chain: []string{"caller"}, Skipped: "it needs PostgreSQL"},
		},
		Document: &lab.Document{
			Run:       lab.RunInfo{Seed: 1, Clock: "virtual", Store: lab.Store{Engine: "sqlite"}},
			Scenarios: []lab.ScenarioInfo{{Name: "read-timeout", Title: "The caller gives up before the server is done", Shown: "3 orders for 1 intent."}},
			Results:   []lab.Result{*many, *one}, Summary: lab.Summary{AsExpected: 2},
		},
		Text: "The order service needs 12 seconds.\n\nThe caller waits 5.", After: []string{"Next: retrylab run order-incident --step"},
		Last: "Enter: the end", Look: report.Options{Unicode: true},
	}
}

// desk is a class that types what it is given, on a clock that a picture's frames move. What it is shown is kept.
type desk struct {
	columns, rows int
	keys          []rune
	now           time.Duration
	patient       bool // no key while a picture moves
	screens       []string
	t             *testing.T
}

func (d *desk) Size() (int, int)   { return d.columns, d.rows }
func (d *desk) Now() time.Duration { return d.now }

func (d *desk) Show(lines []string) error {
	if len(lines) > d.rows {
		d.t.Errorf("%d lines on a screen of %d:\n%s", len(lines), d.rows, strings.Join(lines, "\n"))
	}
	for _, l := range lines {
		if n := len([]rune(l)); n > d.columns {
			d.t.Errorf("%d columns on a screen of %d: %s", n, d.columns, l)
		}
	}
	d.screens = append(d.screens, strings.Join(lines, "\n"))
	return nil
}

func (d *desk) Key() (rune, error) {
	if len(d.keys) == 0 {
		return 0, io.EOF
	}
	key := d.keys[0]
	d.keys = d.keys[1:]
	return key, nil
}

func (d *desk) Within(limit time.Duration) (rune, error) {
	d.now += limit
	if d.patient {
		return 0, nil
	}
	return d.Key()
}

func class(t *testing.T, keys string) *desk {
	return &desk{columns: 80, rows: 24, patient: true, t: t, keys: []rune(strings.ReplaceAll(keys, "\n", "\r"))}
}

// TestLesson shows every screen of a lesson, at a pace of which each frame is seen.
func TestLesson(t *testing.T) {
	t.Parallel()
	d := class(t, "??1\x7f2\n\nx1\n\n\n\n\n")
	l := lesson()
	l.Pace = Pace{Speed: 80} // four seconds a frame
	if err := l.Give(d); err != nil || !l.Told || len(d.keys) > 0 {
		t.Errorf("it ends with %v, told %v, %d keys are left", err, l.Told, len(d.keys))
	}
	golden(t, "lesson.golden", strings.Join(d.screens, "\n"+strings.Repeat("~", 80)+"\n")+"\n")
}

// TestLeaving leaves a lesson in every place, by each way.
func TestLeaving(t *testing.T) {
	t.Parallel()
	const whole = "3\n\n1\n\n\n\n\n"
	for n := range len(whole) {
		d := class(t, whole[:n]+"q")
		d.patient = false
		if err := lesson().Give(d); !errors.Is(err, ErrQuit) && !errors.Is(err, io.EOF) {
			t.Errorf("after %q a q ends with %v", whole[:n], err)
		}
		if err := lesson().Give(class(t, whole[:n])); !errors.Is(err, io.EOF) {
			t.Errorf("after %q the end of the input ends with %v", whole[:n], err)
		}
	}
}

// TestSkippedPicture: a key brings a picture to its end at once.
func TestSkippedPicture(t *testing.T) {
	t.Parallel()
	d := class(t, "3\nxq")
	d.patient = false
	l := lesson()
	l.Pace = Pace{Speed: 1}
	if err := l.Give(d); !errors.Is(err, ErrQuit) {
		t.Error(err)
	}
	if last := d.screens[len(d.screens)-1]; d.now > time.Second || !strings.Contains(last, "Right: 3 orders") {
		t.Errorf("after %s it shows\n%s", d.now, last)
	}
}

// TestSmallScreen: what is asked is on the screen however small that is, and on none is a line too many.
func TestSmallScreen(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{40, 16}, {60, 20}, {80, 24}, {132, 43}} {
		d := class(t, "??3\n\n1\n"+strings.Repeat("\n", 20))
		d.columns, d.rows = size[0], size[1]
		l := lesson()
		for i := range 20 {
			l.Configurations[0].Differs = append(l.Configurations[0].Differs, fmt.Sprintf("machine-%d: something long enough to take a whole line", i))
		}
		l.Text = strings.Repeat(strings.Repeat("word ", 40)+"\n\n", 6)
		if err := l.Give(d); err != nil {
			t.Errorf("%v: %v", size, err)
		}
		if !strings.Contains(d.screens[0], "How many orders will there be?") {
			t.Errorf("%v: the question is not to be seen:\n%s", size, d.screens[0])
		}
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Pace{"auto": {}, "instant": {Instant: true}, "1x": {Speed: 1}, "10x": {Speed: 10}, "0.5x": {Speed: 0.5}} {
		if got, ok := ParsePace(text); !ok || got != want {
			t.Errorf("%s is %+v (%v)", text, got, ok)
		}
	}
	for _, text := range []string{"", "x", "10", "-1x", "0x", "NaNx", "Infx", "1e9x", "fast"} {
		if got, ok := ParsePace(text); ok {
			t.Errorf("%q is taken for %+v", text, got)
		}
	}
}

func TestRight(t *testing.T) {
	t.Parallel()
	of := func(wanted, effects int) *lab.Result {
		return &lab.Result{Counts: lab.Counts{Operations: wanted, Wanted: wanted, Effects: effects}}
	}
	for _, c := range []struct {
		said int
		r    *lab.Result
		want bool
	}{
		{3, of(1, 3), true},
		{2, of(1, 3), false},
		{1000, of(900, 1080), true},
		{900, of(900, 1080), false},
		{2, &lab.Result{Counts: lab.Counts{Operations: 1, Arrivals: 2}}, true}, // it only reads
	} {
		if got := Right(c.said, c.r); got != c.want {
			t.Errorf("%d for %+v: %v", c.said, c.r.Counts, got)
		}
	}
}

// TestPlace goes through a course.
func TestPlace(t *testing.T) {
	t.Parallel()
	course := []string{"a", "b", "c"}
	var p Place
	if got := p.At(course); got != 0 {
		t.Errorf("it begins at %d", got)
	}
	p.Finish(course, "a")
	p.Pass(course, "b")
	p, err := ReadPlace(p.Bytes())
	if err != nil || p.At(course) != 2 || !slices.Equal(p.Done, []string{"a"}) {
		t.Errorf("%+v: %v", p, err)
	}
	p.Finish(course, "c")
	p.Finish(course, "c")
	if p.Now != "" || p.At(course) != 1 || len(p.Done) != 2 {
		t.Errorf("after the last it is at %+v", p)
	}
	p.Now = "gone from the catalogue"
	if p.At(course) != 1 {
		t.Errorf("from one that is not there it goes to %d", p.At(course))
	}
	for _, text := range []string{"", "{}", "[1]", `{"version": 2}`, `{"version": 1`} {
		if _, err := ReadPlace([]byte(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

// TestSheet prints a quiz in both formats, and its parts.
func TestSheet(t *testing.T) {
	t.Parallel()
	l := lesson()
	taken := map[string]bool{}
	var questions []Question
	for {
		q, ok := Ask(7, l.Name, "Names with *stars*, [brackets] and <tags>", l.Configurations, taken)
		if !ok {
			break
		}
		if q.Right < 0 || q.Right >= len(q.Choices) || len(slices.Compact(slices.Sorted(slices.Values(q.Choices)))) != len(q.Choices) {
			t.Errorf("the choices are %q, right is %d", q.Choices, q.Right)
		}
		questions = append(questions, q)
	}
	if len(questions) != 5 { // two on orders, two on beliefs, one on both
		t.Errorf("there are %d questions", len(questions))
	}
	var all bytes.Buffer
	for _, s := range []Sheet{
		{WithQuestions: true, WithAnswers: true},
		{WithQuestions: true, WithAnswers: true, Markdown: true},
		{WithQuestions: true, Note: "(There are no more.)"},
		{WithAnswers: true},
	} {
		s.Title, s.Questions, s.Look, s.Again = "Quiz 7", questions, report.Options{Width: 72, Unicode: true}, "retrylab quiz --seed 7"
		if err := s.Write(&all); err != nil {
			t.Fatal(err)
		}
		all.WriteString(strings.Repeat("~", 72) + "\n")
	}
	golden(t, "sheet.golden", all.String())
}

// TestQuestionsTellNothing: a choice of numbers does not give the right one away by where it stands.
func TestQuestionsTellNothing(t *testing.T) {
	t.Parallel()
	places := map[int]int{}
	for seed := range int64(200) {
		c := lesson().Configurations[0]
		q := howMany(func(what string) float64 { return lab.Draw(seed, what) }, c)
		if len(q.Choices) != 4 || q.Choices[q.Right] != "3" {
			t.Fatalf("%+v", q)
		}
		places[q.Right]++
	}
	for at, n := range places {
		if n > 140 {
			t.Errorf("of 200 times the right one stands %d times at place %d", n, at)
		}
	}
}

// TestQuestionsTempt: what people guess is among the choices, and nothing is far beyond what can be sent.
func TestQuestionsTempt(t *testing.T) {
	t.Parallel()
	for _, counts := range []lab.Counts{
		{Wanted: 1, Sends: 1, Arrivals: 1, Effects: 1},
		{Wanted: 1, Sends: 2, Arrivals: 2, Effects: 1},
		{Wanted: 1, Sends: 2, Arrivals: 2, Effects: 0},
		{Wanted: 1, Sends: 4, Arrivals: 64, Effects: 64},
		{Wanted: 5, Sends: 9, Arrivals: 7, Effects: 6},
	} {
		for seed := range int64(50) {
			c := Configuration{ID: "a", Results: []*lab.Result{{Counts: counts}}}
			q := howMany(func(what string) float64 { return lab.Draw(seed, what) }, c)
			if q.Choices[q.Right] != strconv.Itoa(counts.Effects) {
				t.Errorf("%+v: %v, and %d is said to be right", counts, q.Choices, q.Right)
			}
			requests := max(counts.Sends, counts.Arrivals)
			if !slices.Contains(q.Choices, strconv.Itoa(requests)) || !slices.Contains(q.Choices, strconv.Itoa(counts.Wanted)) {
				t.Errorf("%+v: %v lack the requests or what was wanted", counts, q.Choices)
			}
			if last, _ := strconv.Atoi(q.Choices[len(q.Choices)-1]); last > max(requests, 2)+1 || len(q.Choices) < 3 {
				t.Errorf("%+v: nobody would choose one of %v", counts, q.Choices)
			}
		}
	}
}

// TestLetters: what is no number is said to be none, and changes nothing.
func TestLetters(t *testing.T) {
	t.Parallel()
	d := class(t, "x1\nq")
	l := lesson()
	l.Pace = Pace{Instant: true}
	if err := l.Give(d); !errors.Is(err, ErrQuit) {
		t.Fatal(err)
	}
	if screens := strings.Join(d.screens, "\n"); !strings.Contains(screens, "A number, please: 'x' is none.") {
		t.Errorf("nothing is said of a letter:\n%s", screens)
	}
	if got, want := l.Tally(), "Right: 0 of 1 prediction."; got != want {
		t.Errorf("the tally is %q, want %q", got, want)
	}
}
