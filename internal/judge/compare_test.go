package judge

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retrylab/internal/lab"
)

// came is a result with some numbers.
func came(id string, arrivals, effects int, b lab.Beliefs, doneMs int64) lab.Result {
	return lab.Result{
		Scenario: "s", ID: id, Beliefs: b, CallerDoneMs: doneMs, Verdict: lab.AsExpected,
		Counts: lab.Counts{Operations: 1, Wanted: 1, Sends: arrivals, Arrivals: arrivals, Effects: effects},
	}
}

var (
	ok      = lab.Beliefs{OK: 1}
	unknown = lab.Beliefs{Unknown: 1}
)

func TestCompare(t *testing.T) {
	t.Parallel()
	got := Compare([]Compared{
		{Results: []lab.Result{came("a", 1, 1, ok, 5000)}, Settings: []lab.Setting{{Path: "x", Value: "1"}, {Path: "y", Value: "1"}}},
		{Results: []lab.Result{came("b", 3, 3, unknown, 5000)}, Settings: []lab.Setting{{Path: "z", Value: "1"}, {Path: "y", Value: "1"}}},
		{Results: []lab.Result{came("c", 1, 1, ok, 5000)}, Settings: []lab.Setting{{Path: "y", Value: "1"}, {Path: "x", Value: "2"}}},
	}, false)
	want := &lab.Comparison{
		Settings: []lab.Contrast{{Path: "x", Values: []string{"1", "", "2"}}, {Path: "z", Values: []string{"", "1", ""}}},
		Rows: []lab.ComparedRow{
			{Scenario: "s", ID: "a", Differences: []string{}},
			{Scenario: "s", ID: "b", Differences: []string{"believes unknown instead of ok", "3.0× sends", "3.0× arrivals", "2 orders more"}},
			{Scenario: "s", ID: "c", Differences: []string{}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestCompareSeeds: ranges that overlap are no difference, ranges that do not are one, and what hangs on the seed
// is told with how often it came.
func TestCompareSeeds(t *testing.T) {
	t.Parallel()
	got := Compare([]Compared{
		{Results: []lab.Result{came("a", 1, 1, ok, 100), came("a", 2, 1, ok, 100), came("a", 2, 1, ok, 100)}},
		{Results: []lab.Result{came("b", 2, 1, ok, 100), came("b", 3, 2, ok, 100), came("b", 3, 3, ok, 100)}},
		{Results: []lab.Result{came("c", 5, 1, ok, 100), came("c", 6, 1, ok, 200), came("c", 7, 1, ok, 300), came("c", 8, 1, ok, 400)}},
	}, true)
	want := []lab.ComparedRow{
		{Scenario: "s", ID: "a", Differences: []string{}, Varies: []string{"sends: 2 in 2, 1 in 1", "arrivals: 2 in 2, 1 in 1"}},
		{
			Scenario: "s", ID: "b", Differences: []string{"sends: ≈ (2-3 and 1-2)", "arrivals: ≈ (2-3 and 1-2)", "orders: ≈ (1-3 and 1)"},
			Varies: []string{"sends: 3 in 2, 2 in 1", "arrivals: 3 in 2, 2 in 1", "orders: 1 in 1, 2 in 1, 3 in 1"},
		},
		{
			Scenario: "s", ID: "c",
			Differences: []string{"sends: 5-8 instead of 1-2 (2.5-8.0×)", "arrivals: 5-8 instead of 1-2 (2.5-8.0×)", "caller done: ≈ (0.1s-0.4s and 0.1s)"},
			Varies:      []string{"sends: from 5 to 8", "arrivals: from 5 to 8", "caller done: from 0.1s to 0.4s"},
		},
	}
	if diff := cmp.Diff(want, got.Rows); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestChanges(t *testing.T) {
	t.Parallel()
	failed := came("b", 1, 2, unknown, 100)
	failed.Verdict = lab.NotAsExpected
	before, after := came("b", 1, 1, ok, 100), failed
	before.Checks = []lab.Check{
		{Kind: "expect", Name: "effects", Expected: "1", Actual: "1", Held: true}, {Kind: "expect", Name: "arrivals", Held: true}, {Kind: "assert", Name: "x"},
	}
	after.Checks = []lab.Check{{Kind: "expect", Name: "effects", Expected: "1", Actual: "2"}, {Kind: "expect", Name: "arrivals", Held: true}, {Kind: "assert", Name: "y"}}
	open := came("open", 1, 1, ok, 100)
	open.Verdict, open.Why = lab.Inconclusive, "no fault fired"
	more := open
	more.Counts.Effects = 7
	got := Changes(
		&lab.Document{
			Run:     lab.RunInfo{Seed: 1, Set: []string{"a=1", "b=2"}},
			Results: []lab.Result{came("a", 1, 1, ok, 100), before, came("gone", 1, 1, ok, 100), open, came("lost", 1, 1, ok, 100)},
		},
		&lab.Document{
			Run:     lab.RunInfo{Seed: 1, Set: []string{"b=3"}},
			Results: []lab.Result{came("new", 1, 1, ok, 100), after, came("a", 1, 1, ok, 100), more, func() lab.Result { o := open; o.ID = "lost"; return o }()},
			Skipped: []lab.Skip{{Scenario: "s", ID: "gone", Reason: "no postgres"}},
		}, [2]string{"x.json", "y.json"},
	)
	trial := func(id string) lab.Trial { return lab.Trial{Scenario: "s", ID: id} }
	want := &lab.Comparison{
		Sources:  []string{"x.json", "y.json"},
		Settings: []lab.Contrast{{Path: "a", Values: []string{"1", ""}}, {Path: "b", Values: []string{"2", "3"}}},
		Rows:     []lab.ComparedRow{},
		Changes: []lab.Change{
			{Trial: trial("new"), Kind: lab.ChangeNew, What: []string{"it is new"}},
			{Trial: trial("b"), Kind: lab.ChangeMeasured, What: []string{
				"belief: unknown, was ok", "orders: 2, was 1", "does not hold any more: expect effects",
				"demanded now: assert y (not held)", "not demanded any more: assert x", "verdict: not as expected, was as expected",
			}},
			{Trial: trial("lost"), Kind: lab.ChangeOpen, What: []string{"inconclusive, was as expected: no fault fired"}},
			{Trial: trial("gone"), Kind: lab.ChangeGone, What: []string{"it is skipped now: no postgres"}},
		},
		Same:     []lab.Trial{trial("a")},
		Open:     []lab.Change{{Trial: trial("open"), Kind: lab.ChangeOpen, What: []string{"inconclusive in both: no fault fired"}}},
		Compared: 4,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestChangesOfSeeds: two runs with one seed each are compared though the seeds differ, which is said.
func TestChangesOfSeeds(t *testing.T) {
	t.Parallel()
	run := func(seed int64) *lab.Document {
		r := came("a", 1, 1, ok, 100)
		r.Seed = seed
		return &lab.Document{Run: lab.RunInfo{Seed: seed}, Results: []lab.Result{r}}
	}
	got := Changes(run(1), run(2), [2]string{"x", "y"})
	want := []lab.Contrast{{Path: "--seed", Values: []string{"1", "2"}}}
	if diff := cmp.Diff(want, got.Settings); diff != "" || got.Compared != 1 || len(got.Changes) != 0 {
		t.Errorf("%d compared, changes %v; settings -want +got:\n%s", got.Compared, got.Changes, diff)
	}
}

// TestMeasuredSeesAll: whatever field of a result differs, two saved results of a trial are not the same.
func TestMeasuredSeesAll(t *testing.T) {
	t.Parallel()
	identity := map[string]bool{"Scenario": true, "ID": true, "Seed": true}
	place := map[string]bool{"File": true, "Line": true, "Column": true, "Evidence": true, "Created": true, "ChosenBy": true, "Counting": true}
	// each changes every part of is, which was holds as it was; a list, a pointer or a map is filled in both before what is
	// in it is changed.
	var each func(path string, was, is reflect.Value, changed func(path string))
	each = func(path string, was, is reflect.Value, changed func(path string)) {
		before := reflect.New(is.Type()).Elem()
		before.Set(was)
		switch is.Kind() {
		case reflect.Struct:
			for i := range is.NumField() {
				if name := is.Type().Field(i).Name; !place[name] && !(path == "" && identity[name]) {
					each(path+"."+name, was.Field(i), is.Field(i), changed)
				}
			}
			return
		case reflect.Pointer:
			is.Set(reflect.New(is.Type().Elem()))
			changed(path)
			was.Set(reflect.New(is.Type().Elem()))
			each(path, was.Elem(), is.Elem(), changed)
		case reflect.Slice:
			is.Set(reflect.MakeSlice(is.Type(), 1, 1))
			changed(path)
			was.Set(reflect.MakeSlice(is.Type(), 1, 1))
			each(path+"[0]", was.Index(0), is.Index(0), changed)
		case reflect.Map:
			is.Set(reflect.MakeMap(is.Type()))
			entry := reflect.New(is.Type().Elem()).Elem()
			switch entry.Kind() {
			case reflect.String:
				entry.SetString("x")
			default:
				entry.SetInt(1)
			}
			is.SetMapIndex(reflect.ValueOf("k"), entry)
			changed(path)
		case reflect.String:
			is.SetString("x")
			changed(path)
		case reflect.Bool:
			is.SetBool(!is.Bool())
			changed(path)
		case reflect.Int, reflect.Int64:
			is.SetInt(int64(3 * time.Second)) // an event's time in a document is in milliseconds
			changed(path)
		case reflect.Float64:
			is.SetFloat(3)
			changed(path)
		default:
			t.Fatalf("%s is a %s, which this test does not know", path, is.Kind())
		}
		was.Set(before)
		is.Set(before)
	}
	r, r2 := came("a", 1, 1, ok, 100), came("a", 1, 1, ok, 100)
	each("", reflect.ValueOf(&r).Elem(), reflect.ValueOf(&r2).Elem(), func(path string) {
		if path == ".Verdict" || path == ".Why" || path == ".Defect" || path == ".Environment" {
			return // of what is inconclusive, which is not compared
		}
		if got := append(measured(&r, &r2, true), demanded(&r, &r2)...); len(got) == 0 {
			t.Errorf("nothing is said to be different where %s is", path)
		}
	})
}

// TestCompareNamesWhatIsUnknown: what is inconclusive is not compared, and rows that differ in what no number
// shows are not the same.
func TestCompareNamesWhatIsUnknown(t *testing.T) {
	t.Parallel()
	open := came("b", 9, 9, unknown, 5)
	open.Verdict = lab.Inconclusive
	other := came("c", 1, 1, ok, 100)
	other.Answers = map[string]int{"409": 142}
	answered := came("a", 1, 1, ok, 100)
	answered.Answers = map[string]int{"500": 142}
	late := came("d", 1, 1, ok, 100)
	late.Answers, late.SettledMs = answered.Answers, 700
	got := Compare([]Compared{{Results: []lab.Result{answered}}, {Results: []lab.Result{open}}, {Results: []lab.Result{other}}, {Results: []lab.Result{late}}}, false)
	var said [][]string
	for _, row := range got.Rows {
		said = append(said, row.Differences)
	}
	want := [][]string{
		{}, {"inconclusive: nothing is known of it"}, {"answers: 409 ×142 instead of 500 ×142"},
		{"settled: 0.7s instead of 0s"},
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if first := Compare([]Compared{{Results: []lab.Result{open}}, {Results: []lab.Result{other}}}, false).Rows[1].Differences; !slices.Equal(first, []string{"there is nothing to hold it against: A is inconclusive"}) {
		t.Errorf("against an inconclusive baseline: %q", first)
	}
}
