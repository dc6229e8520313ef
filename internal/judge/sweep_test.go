package judge

import (
	"strings"
	"testing"

	"retrylab/internal/lab"
)

// swept is the results of a sweep: for each combination its orders, separated by blanks, in the order of the run.
// "?" is inconclusive, "-" is not run, "1~2" is a tie, and n/m are n orders for m intents.
func swept(t *testing.T, vary []lab.Varying, orders string) (out []lab.Result) {
	t.Helper()
	cells := strings.Fields(orders)
	i := 0
	for values := range others(vary, -1) {
		r := lab.Result{Verdict: lab.Measured, Counts: lab.Counts{Wanted: 1}}
		for k, v := range vary {
			r.Varied = append(r.Varied, lab.Setting{Path: v.Path, Value: values[k]})
		}
		n, more, tied := strings.Cut(cells[i], "~")
		n, intents, several := strings.Cut(n, "/")
		number := func(text string) int { return int(size(text)) }
		switch {
		case cells[i] == "-":
			i++
			continue
		case cells[i] == "?":
			r.Verdict = lab.Inconclusive
		case tied:
			r.Tie = &lab.Tie{Least: number(n), Most: number(more)}
			r.Counts.Effects = number(n)
		default:
			r.Counts.Effects = number(n)
		}
		if several {
			r.Counts.Wanted = number(intents)
		}
		out = append(out, r)
		i++
	}
	if i != len(cells) {
		t.Fatalf("%d combinations, %d cells", i, len(cells))
	}
	return out
}

func TestConcludeSweep(t *testing.T) {
	t.Parallel()
	read := func(values string) lab.Varying {
		return lab.Varying{Path: "caller.timeouts.read", Values: strings.Fields(values)}
	}
	guard := lab.Varying{Path: "server.guard", Values: []string{"none", "check", "unique"}}
	key := lab.Varying{Path: "caller.key", Values: []string{"none", "operation"}}
	tries := lab.Varying{Path: "attempts", Values: strings.Fields("1 2 3 4 5 6")}
	for _, c := range []struct {
		name   string
		vary   []lab.Varying
		orders string
		want   string
	}{
		{"a range", []lab.Varying{read("1s 2s 3s")}, "3 3 1", "3 orders up to 2s, 1 from 3s on."},
		{"a list", []lab.Varying{read("5s 15s")}, "3 1", "3 orders at 5s, 1 at 15s."},
		{"a list with gaps", []lab.Varying{read("1s 2s 15s")}, "3 3 1", "3 orders at 1s and 2s, 1 at 15s."},
		{"a list in no order", []lab.Varying{read("15s 1s 2s")}, "1 3 3", "3 orders at 1s and 2s, 1 at 15s."},
		{"a range in no order", []lab.Varying{read("3s 1s 2s")}, "1 3 3", "3 orders up to 2s, 1 from 3s on."},
		{"a list without a change", []lab.Varying{read("1s 2s")}, "3 3", "3 orders at each."},
		{"a range without a change", []lab.Varying{read("1s 2s 3s")}, "3 3 3", "3 orders everywhere."},
		{"words", []lab.Varying{guard}, "3 1 3", "3 orders with none and unique, 1 with check."},
		{"words without a change", []lab.Varying{guard}, "3 3 3", "3 orders with each."},
		{"words with a tie", []lab.Varying{guard}, "3 1~2 1", "3 orders with none, 1 with unique; with check the seed decides."},
		{"a tie", []lab.Varying{read("1s 2s 3s 4s")}, "3 3 1~3 1", "3 orders up to 2s, 1 from 4s on; at 3s the seed decides."},
		{"a tie beside one step", []lab.Varying{read("1s 2s 3s")}, "3 1~3 3", "3 orders; at 2s the seed decides."},
		{"a tie in a list", []lab.Varying{read("1s 2s")}, "3 1~3", "3 orders at 1s; at 2s the seed decides."},
		{"ties alone", []lab.Varying{read("1s 2s 3s")}, "1~3 1~3 1~3", "at 1s, 2s and 3s the seed decides."},
		{"numbers", []lab.Varying{tries}, "1 1 2 2 2 2", "1 order up to attempts 2, 2 from 3 on."},
		{"rising", []lab.Varying{tries}, "1 2 3 4 5 6", "1 order at attempts 1, rising to 6 at 6."},
		{"falling", []lab.Varying{tries}, "9 8 3 2 1 0", "9 orders at attempts 1, falling to 0 at 6."},
		{"up and down", []lab.Varying{tries}, "1 2 1 2 1 2", "1 to 2 orders, up and down from attempts 1 to 6."},
		{"with the intents", []lab.Varying{tries}, "3/1 6/2 9/3 12/4 5/5 6/6", "3 orders for each intent up to attempts 4, 1 from 5 on."},
		{"in proportion", []lab.Varying{tries}, "3/1 6/2 9/3 12/4 15/5 18/6", "3 orders for each intent everywhere."},
		{"not in proportion", []lab.Varying{tries}, "3/1 3/2 3/3 3/4 3/5 3/6", "3 orders everywhere."},
		{"inconclusive", []lab.Varying{read("1s 2s 3s")}, "3 ? ?", "3 orders at 1s (of the 1 of 3 that were counted)."},
		{"some inconclusive", []lab.Varying{read("1s 2s 3s 4s")}, "3 ? 3 3", "3 orders everywhere (of the 3 of 4 that were counted)."},
		{"some not run", []lab.Varying{read("1s 2s 3s 4s")}, "3 - - 1", "3 orders up to 1s, 1 from 4s on (of the 2 of 4 that were counted)."},
		{"a line without any", []lab.Varying{read("1s 2s 3s"), key}, "3 ? 3 - 3 ?", "key none: 3 orders everywhere. key operation: nothing was counted."},
		{"nothing", []lab.Varying{read("1s 2s 3s")}, "? ? -", "Nothing was shown: no combination came to a conclusion."},
		{"two settings", []lab.Varying{read("1s 2s 3s"), guard}, "3 3 1 3 1 1 3 1 1", "guard none: 3 orders everywhere. guard check: 3 orders up to 1s, 1 from 2s on. guard unique: 1 order everywhere."},
		{"lines alike", []lab.Varying{read("1s 2s 3s"), guard}, "3 3 1 3 3 1 3 3 1", "guard none and check: 3 orders everywhere. guard unique: 1 order everywhere."},
		{"all lines alike", []lab.Varying{read("1s 2s"), key}, "3 3 1 1", "with every key: 3 orders at 1s, 1 at 2s."},
		{
			"three settings", []lab.Varying{key, read("1s 2s 3s"), guard}, "3 1 1 3 1 1 3 1 1 3 3 1 3 3 1 3 3 1",
			"key none, guard none; key operation, guard none; key operation, guard check: 3 orders everywhere. " +
				"key none, guard check; key none, guard unique; key operation, guard unique: 1 order everywhere.",
		},
		{
			"too many lines", []lab.Varying{{Path: "attempts", Values: strings.Fields("0 1 2 3 4 5 6")}, {Path: "operations", Values: strings.Fields("1 2 3 4 5 6 7")}},
			"0 0 0 0 0 0 0  1 1 1 1 1 1 1  1 2 2 2 2 2 2  1 2 3 3 3 3 3  1 2 3 4 4 4 4  1 2 3 4 5 5 5  1 2 3 4 5 6~7 ?",
			"0 to 7 orders; more than wanted in 29 of 48 combinations, and in 1 the seed decides; 1 more were not counted.",
		},
	} {
		if got := ConcludeSweep(swept(t, c.vary, c.orders), c.vary); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestConcludeSweepSeeds: a combination whose seeds came to different numbers belongs to no step.
func TestConcludeSweepSeeds(t *testing.T) {
	t.Parallel()
	vary := []lab.Varying{{Path: "read", Values: []string{"1s", "2s", "3s", "4s"}}}
	results := append(swept(t, vary, "3 3 1 1"), swept(t, vary, "3 2 1 ?")...)
	if got, want := ConcludeSweep(results, vary), "3 orders up to 1s, 1 from 3s on; at 2s the seed decides."; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
