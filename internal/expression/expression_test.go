package expression

import (
	"errors"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"retrylab/internal/lab"
)

var seen = Values{
	Operations: 2, Wanted: 2, Sends: 6, Arrivals: 5, Effects: 3, EffectsWhenCallerDone: 1,
	Duplicates: 1, Lost: 0, FalseFailures: 1, Late: 2, Amplification: 2.5,
	OK: 1, Failed: 0, Unknown: 1, CallerDoneMs: 17000, SettledMs: 24000, Overlap: 2, FaultsFired: 4,
}

func TestHolds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		source string
		held   bool
		actual string
	}{
		{"effects <= wanted", false, "effects = 3, wanted = 2"},
		{"effects == 3", true, "effects = 3"},
		{"effects != 3", false, "effects = 3"},
		{"effects < 4 and lost == 0", true, "effects = 3, lost = 0"},
		{"effects < 3 or late > 1", true, "effects = 3, late = 2"},
		{"effects < 3 || late > 1", true, "effects = 3, late = 2"},
		{"effects < 4 && !(lost > 0)", true, "effects = 3, lost = 0"},
		{"not (duplicates == 1)", false, "duplicates = 1"},
		{"effects >= wanted", true, "effects = 3, wanted = 2"},
		{"effects - duplicates == wanted", true, "effects = 3, duplicates = 1, wanted = 2"},
		{"effects * 2 == sends", true, "effects = 3, sends = 6"},
		{"sends / 4 == 1.5", true, "sends = 6"},
		{"sends % 4 == 2", true, "sends = 6"},
		{"-effects < 0", true, "effects = 3"},
		{"amplification <= 2.5", true, "amplification = 2.5"},
		{"amplification == arrivals / operations", true, "amplification = 2.5, arrivals = 5, operations = 2"},
		{"caller_done_ms < settled_ms", true, "caller_done_ms = 17000, settled_ms = 24000"},
		{"ok + failed + unknown == operations", true, "ok = 1, failed = 0, unknown = 1, operations = 2"},
		{"lost == 0 ? effects == 3 : effects == 2", true, "lost = 0, effects = 3"},
		{"effects == 3 and effects == 3", true, "effects = 3"},
		{"lost == 0 or effects / lost > 1000", true, "lost = 0, effects = 3"}, // which is not looked at
		{"effects / late * 2 == 3", true, "effects = 3, late = 2"},
		{"sends % 4 / 2 == 1 and 7 / 2 > late", true, "sends = 6, late = 2"},
		{"effects * 9000000000000000000 * 9000000000000000000 > 0", true, "effects = 3"}, // it does not wrap
		{"1 < effects < 4", true, "effects = 3"},
		{"1 < effects < 3", false, "effects = 3"},
		{" effects\n == 3 ", true, "effects = 3"},
	} {
		condition, err := Compile(c.source)
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		held, actual, err := condition.Holds(seen)
		if err != nil || held != c.held || actual != c.actual {
			t.Errorf("%s: got %v, %q, %v, want %v, %q", c.source, held, actual, err, c.held, c.actual)
		}
	}
}

// TestHoldsFails: what has no value neither holds nor does not, and says why.
func TestHoldsFails(t *testing.T) {
	t.Parallel()
	never := seen
	never.RecoveredAfterMs = math.Inf(1)
	for _, c := range []struct{ source, want string }{
		{"effects % lost == 0", "lost is 0, and nothing is divided by it"},
		{"effects / lost > 1", "lost is 0, and nothing is divided by it"},
		{"not (effects / lost > 1)", "lost is 0, and nothing is divided by it"},
		{"lost / lost != 1", "lost is 0, and nothing is divided by it"},
		{"effects / (wanted - operations) > 0", "wanted - operations is 0, and nothing is divided by it"},
		{"1 / (effects / (lost * 2)) == 0", "lost * 2 is 0, and nothing is divided by it"},
		{"recovered_after_ms - recovered_after_ms != 0", "recovered_after_ms - recovered_after_ms is no number here"},
		{"lost * recovered_after_ms < 1", "lost * recovered_after_ms is no number here"},
		{"effects * 1e308 * 10 > 0", "effects * 1e+308 is no number here"},
	} {
		condition, err := Compile(c.source)
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		if held, _, err := condition.Holds(never); held || err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, %v, want %s", c.source, held, err, c.want)
		}
	}
	condition, err := Compile("recovered_after_ms + 1000 > 5000 and recovered_after_ms * 2 > 1")
	if err != nil {
		t.Fatal(err)
	}
	if held, _, err := condition.Holds(never); !held || err != nil {
		t.Errorf("what never comes is not later than 5 s: %v, %v", held, err)
	}
}

func TestCompileRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		source, what string
		at           int
	}{
		{"effect <= wanted", `there is no "effect"`, 0},
		{"effects <= want", `there is no "want"`, 11},
		{"Effects == 1", `there is no "Effects"`, 0},
		{"effects-when-caller-done == 0", `there is no "when"`, 8},
		{"", "it is not complete", 0},
		{"   ", "it is not complete", 3},
		{"effects <=", "it is not complete", 10},
		{"(effects <= wanted", "it is not complete", 18},
		{"effects <= wanted)", `")" does not belong here`, 17},
		{"effects = wanted", "= does not compare", 8},
		{"effects == 3 wanted", `"wanted" does not belong here`, 13},
		{"effects", "it is a number, neither true nor false", 0},
		{"effects + 1", "it is a number, neither true nor false", 0},
		{"effects ? 1 : 2", "what stands before ? is a number, neither true nor false", 0},
		{"effects and lost", "and does not go with a number and a number", 8},
		{"(1 < effects) < 3", "< does not go with a condition and a number", 14},
		{"not effects", "not does not go with a number", 0},
		{"effects / 0 > 1", "it divides by zero", 8},
		{"effects % 0 == 1", "it divides by zero", 8},
		{"effects / (2 - 1 - 1) > 1", "it divides by zero", 8},
		{"effects > 1 / 0", "it divides by zero", 12},
		{"caller_done_ms < 10s", `"10s" is no number`, 17},
		{"caller_done_ms < 1.5m and lost == 0", `"1.5m" is no number`, 17},
		{"counts.effects == 1", `there is no "counts.effects"`, 0},
		{"beliefs.okk == 1", `there is no "beliefs.okk"`, 0},
		{"true", "it looks at nothing", 0},
		{"1 <= 2", "it looks at nothing", 0},
		// What is more than arithmetic: it could be of any size, or reach outside.
		{"effects == 'one'", "text is not allowed", 11},
		{`effects == "one"`, "text is not allowed", 11},
		{"'a' matches 'a+'", "the operator matches is not allowed", 4},
		{"'a' contains 'a'", "the operator contains is not allowed", 4},
		{"effects in 1..1000000000", "the operator in is not allowed", 8},
		{"effects in [1, 2]", "the operator in is not allowed", 8},
		{"(1..1000000000)[0] == effects", "this is not allowed", 15},
		{"effects ** 9 > 1", "the operator ** is not allowed", 8},
		{"effects ^ 9 > 1", "the operator ^ is not allowed", 8},
		{"effects ?? 1 == 1", "this cannot be read", 13},
		{"(effects ?? 1) == 1", "the operator ?? is not allowed", 9},
		{"effects > 1 @", "this cannot be read", 12},
		{"effects > 1x", "this cannot be read", 11},
		{"effects > 99999999999999999999", "this cannot be read", 29},
		{"effects > 'one", "this cannot be read", 14},
		{"len([effects]) == 1", "a call is not allowed", 0},
		{"sum([effects, lost]) == 1", "a call is not allowed", 0},
		{"all([effects], # > 0)", "a call is not allowed", 0},
		{"map(1..100000, effects)[0] == 1", "this is not allowed", 23},
		{"abs(effects) == 1", "a call is not allowed", 0},
		{"repeat('x', 100000000) == ''", "a call is not allowed", 0},
		{"now() > effects", "a call is not allowed", 0},
		{"env('HOME') == ''", "a call is not allowed", 0},
		{"effects.String() == 1", "a call is not allowed", 8},
		{"effects.count <= 1", "this is not allowed", 8},
		{"effects[0] <= 1", "this is not allowed", 7},
		{"$env.effects == 1", "this is not allowed", 5},
		{"$env == nil", "this is not allowed", 8},
		{"nil == effects", "this is not allowed", 0},
		{"{a: effects} == 1", "this is not allowed", 0},
		{"[effects] == 1", "this is not allowed", 0},
		{"let x = effects; x == 1", "this is not allowed", 4},
		{"effects == 1; effects == 2", "this is not allowed", 8},
		{"effects | abs() == 1", "a call is not allowed", 10},
		{"# > effects", "\"#\" does not belong here", 0},
		{"effects == 1 // " + strings.Repeat("x", maxLength), "longer than 500 bytes", 0},
	} {
		condition, err := Compile(c.source)
		var wrong *Error
		if !errors.As(err, &wrong) {
			t.Errorf("%.40s: got %v, %v, want an *Error", c.source, condition, err)
			continue
		}
		if wrong.What != c.what || wrong.At != c.at {
			t.Errorf("%.40s: got %q at %d, want %q at %d", c.source, wrong.What, wrong.At, c.what, c.at)
		}
		if wrong.Hint == "" && wrong.Unknown == "" && len(c.source) <= maxLength {
			t.Errorf("%.40s: no hint", c.source)
		}
	}
}

// TestHints: who writes a name as a report has it, or a time as a file has it, is told what to write.
func TestHints(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"counts.effects == 1":  "write effects",
		"beliefs.ok == 1":      "write ok",
		"orders == 1":          "write effects",
		"ORDERS == 1":          "write effects",
		"at_end == 1":          "write effects_when_caller_done",
		"ampl < 3":             "write amplification",
		"belief == 1":          "write ok, failed or unknown",
		"caller_done_ms < 10s": "times are numbers of milliseconds: caller_done_ms < 10000",
	} {
		_, err := Compile(source)
		var wrong *Error
		if !errors.As(err, &wrong) || wrong.Hint != want {
			t.Errorf("%s: %+v, want the hint %q", source, wrong, want)
		}
	}
	for heading, name := range headings {
		for word := range strings.SplitSeq(strings.ReplaceAll(name, " or ", ", "), ", ") {
			if !slices.Contains(Names(), word) || slices.Contains(Names(), heading) {
				t.Errorf("%s is to be called %s", heading, word)
			}
		}
	}
}

// TestNames holds the names against those of the JSON result, where they come from, and against
// the events that have no field there.
func TestNames(t *testing.T) {
	t.Parallel()
	inJSON := map[string]bool{"overlap": true, "faults_fired": true} // of the observation alone
	key := func(f reflect.StructField) string {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return name
	}
	for _, v := range []any{lab.Counts{}, lab.Beliefs{}, lab.Result{}, lab.Series{}, lab.Recovery{}} {
		for f := range reflect.TypeOf(v).Fields() {
			inJSON[key(f)] = true
		}
	}
	for _, name := range Names() {
		if !inJSON[name] {
			t.Errorf("the JSON result calls nothing %q", name)
		}
		if _, err := Compile(name + " >= 0"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for f := range reflect.TypeFor[lab.Counts]().Fields() {
		if name := key(f); name != "amount_minor" && !slices.Contains(Names(), name) {
			t.Errorf("the JSON result has %q, and no expression can name it", name)
		}
	}
}

var onOneLine = regexp.MustCompile(`^[^\n]+$`)

// FuzzCompile feeds it whatever comes: it never panics, and what compiles can be evaluated.
func FuzzCompile(f *testing.F) {
	for _, seed := range []string{
		"effects <= wanted", "effects % lost == 0", "not (a)", "len(effects)", "effects ? lost : late", "((((", "'a' + \"b\"",
		"1..9", "effects.x[0]?.y", "let a = 1; a", "all([1], {# > effects})", "9999999999999999999999 > effects", "1e999 > effects", "\x00", "effects //", "/*", "0x", "effects == -9223372036854775808",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		condition, err := Compile(source)
		if err != nil {
			var wrong *Error
			if !errors.As(err, &wrong) || !onOneLine.MatchString(wrong.What) || wrong.At < 0 || wrong.At > len(source) {
				t.Errorf("%T at %+v: %v", err, wrong, err)
			}
			return
		}
		if _, actual, err := condition.Holds(seen); err == nil && !onOneLine.MatchString(actual) {
			t.Errorf("the values are %q", actual)
		}
	})
}
