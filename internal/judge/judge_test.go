package judge

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retrylab/internal/lab"
	"retrylab/scenarios"
	"retrylab/slowserver/change"
	"retrylab/slowserver/fault"
	"retrylab/slowserver/ledger"
)

// seen is an observation of one operation with a duplicate that came late.
func seen() lab.Observation {
	return lab.Observation{
		Exact: true,
		Events: []lab.Event{
			{At: 0, Kind: lab.Send, Operation: "op-1", Send: "op-1/a.1", Node: "caller"},
			{At: 0, Kind: lab.Arrival, Operation: "op-1", Send: "op-1/a.1", Node: "order-1"},
			{At: 0, Kind: lab.Work, Operation: "op-1", Send: "op-1/a.1", Node: "order-1"},
			{At: 5 * time.Second, Kind: lab.Timeout, Operation: "op-1", Send: "op-1/a.1", Node: "caller", Detail: "read"},
			{At: 6 * time.Second, Kind: lab.Send, Operation: "op-1", Send: "op-1/a.2", Node: "caller"},
			{At: 6 * time.Second, Kind: lab.Arrival, Operation: "op-1", Send: "op-1/a.2", Node: "order-2"},
			{At: 6 * time.Second, Kind: lab.Work, Operation: "op-1", Send: "op-1/a.2", Node: "order-2"},
			{At: 7 * time.Second, Kind: lab.Commit, Operation: "op-1", Send: "op-1/a.2", Node: "order-2", Order: 1},
			{At: 7 * time.Second, Kind: lab.Changed, Operation: "op-1", Send: "op-1/a.2", Node: "order-2", Detail: "stock 9"},
			{At: 7 * time.Second, Kind: lab.Entered, Operation: "op-1", Send: "op-1/a.2", Node: "order-2", Detail: "messages"},
			{At: 7 * time.Second, Kind: lab.Answer, Operation: "op-1", Send: "op-1/a.2", Node: "order-2", Status: 201},
			{At: 7 * time.Second, Kind: lab.Reply, Operation: "op-1", Send: "op-1/a.2", Node: "caller", Status: 201},
			{At: 7 * time.Second, Kind: lab.Told, Operation: "op-1", Send: "op-1", Node: "caller", Status: 201, Order: 1},
			{At: 7 * time.Second, Kind: lab.Question, Operation: "op-1", Send: "op-1/ask.1", Node: "caller"},
			{At: 7 * time.Second, Kind: lab.Done, Operation: "op-1", Node: "caller", Detail: "ok"},
			{At: 12 * time.Second, Kind: lab.Commit, Operation: "op-1", Send: "op-1/a.1", Node: "order-1", Order: 2},
			{At: 12 * time.Second, Kind: lab.ClientGone, Operation: "op-1", Send: "op-1/a.1", Node: "order-1", Status: 201},
			{At: 12 * time.Second, Kind: lab.Settled},
		},
		Effects: []lab.Effect{{Order: 1, Operation: "op-1", Amount: 5000}, {Order: 2, Operation: "op-1", Amount: 5000}},
		Entries: []lab.Entry{
			{Ledger: "messages", Operation: "op-1"}, {Ledger: "messages", Operation: "op-1"},
			{Ledger: "messages-outbox", Operation: "op-1"}, {Ledger: "messages-outbox", Operation: "op-1"}, {Ledger: "messages-outbox", Operation: "op-1"},
		},
		Outcomes: []lab.Outcome{{Operation: "op-1", Belief: lab.OK, Status: 201, Reason: "201", Order: 1, DoneAt: 7 * time.Second, Effects: 1}},
		Nodes: []lab.Node{
			{Name: "caller", Role: "caller", Sends: 2},
			{Name: "order-1", Role: "server", Arrivals: 1}, {Name: "order-2", Role: "server", Arrivals: 1},
		},
		Series: &lab.Series{
			WindowMs: 1000, PeakStarts: 2,
			Recovery: &lab.Recovery{CauseEndsMs: 3000, Recovered: true, AfterMs: 4000, GoodputPerS: 0.5},
		},
		State:   &lab.State{Row: "stock", Value: "9", Version: 2},
		Settled: 12 * time.Second, Overlap: 2, Threads: 1,
	}
}

func trial() scenarios.Trial {
	return scenarios.Trial{
		Scenario: "s", Configuration: "A", ID: "a", Seed: 1, Places: map[string]scenarios.Place{"effects": {File: "s.yaml", Line: 7, Column: 3}},
		Setup: scenarios.Setup{Operations: 1, Caller: scenarios.Caller{Name: "caller"}, Server: scenarios.Server{
			Name: "order", Replicas: 2, Ledgers: []ledger.Settings{{Name: "messages", When: ledger.Outbox}, {Name: "mails"}},
			Change: change.Settings{Do: change.ReadThenWrite, Row: "stock", Start: "10", By: -1},
		}},
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	r := Decide(trial(), seen())
	want := lab.Counts{Operations: 1, Wanted: 1, Sends: 2, Arrivals: 2, Lookups: 1, Effects: 2, EffectsWhenCallerDone: 1, Duplicates: 1, Late: 1, Amount: 10000, LedgerDuplicates: 1, LostUpdates: 1}
	if diff := cmp.Diff(want, r.Counts); diff != "" {
		t.Error(diff)
	}
	ledgers := []lab.Ledger{{Name: "messages", Entries: 2, Duplicates: 1}, {Name: "messages-outbox", Entries: 3, Note: true}, {Name: "mails"}}
	if diff := cmp.Diff(ledgers, r.Ledgers); diff != "" {
		t.Error(diff)
	}
	if r.Amplification != 2 || r.Beliefs != (lab.Beliefs{OK: 1}) || r.CallerDoneMs != 7000 || r.SettledMs != 12000 {
		t.Errorf("amplification %g, beliefs %+v, done %d, settled %d", r.Amplification, r.Beliefs, r.CallerDoneMs, r.SettledMs)
	}
}

// TestCountsByOperation has one operation with two orders and one without: a duplicate and a loss
// do not make up for each other.
// TestSaid holds what is widely said against what was counted.
func TestSaid(t *testing.T) {
	t.Parallel()
	x := trial()
	x.Said = &scenarios.Said{Sends: new(3), Arrivals: new(9), Effects: new(1), Answers: map[string]int{"409": 6, "201": 4}}
	want := []lab.Said{{Name: "sends", Said: 3, Measured: 2}, {Name: "arrivals", Said: 9, Measured: 2}, {Name: "effects", Said: 1, Measured: 2},
		{Name: "answers 201", Said: 4, Measured: 2}, {Name: "answers 409", Said: 6}}
	if diff := cmp.Diff(want, Decide(x, seen()).Said); diff != "" {
		t.Error(diff)
	}
	if got := Decide(trial(), seen()).Said; got != nil {
		t.Errorf("of a trial of which nothing is said: %v", got)
	}
}

func TestCountsByOperation(t *testing.T) {
	t.Parallel()
	tr, obs := trial(), seen()
	tr.Setup.Operations = 3
	obs.Outcomes = append(obs.Outcomes,
		lab.Outcome{Operation: "op-2", Belief: lab.OK}, lab.Outcome{Operation: "op-3", Belief: lab.Failed, Effects: 1})
	obs.Effects = append(obs.Effects, lab.Effect{Order: 3, Operation: "op-3"})
	c := Decide(tr, obs).Counts
	if c.Wanted != 3 || c.Effects != 3 || c.Duplicates != 1 || c.Lost != 1 || c.FalseFailures != 1 {
		t.Errorf("%+v, want one duplicate, one loss and one false failure in three effects", c)
	}
}

// TestHoldAndGoodput has three operations, of which the first begins late and the last is not ok.
func TestHoldAndGoodput(t *testing.T) {
	t.Parallel()
	tr, obs := trial(), lab.Observation{}
	tr.Setup.Operations = 3
	for i, o := range []struct {
		start, done time.Duration
		belief      lab.Belief
	}{{4 * time.Second, 7 * time.Second, lab.OK}, {0, 5 * time.Second, lab.OK}, {4 * time.Second, 8 * time.Second, lab.Unknown}} {
		name := fmt.Sprintf("op-%d", i+1)
		obs.Events = append(obs.Events, lab.Event{At: o.start, Kind: lab.Start, Operation: name})
		obs.Outcomes = append(obs.Outcomes, lab.Outcome{Operation: name, Belief: o.belief, DoneAt: o.done})
	}
	if r := Decide(tr, obs); r.LongestHoldMs != 5000 || r.GoodputPerS != 0.25 {
		t.Errorf("longest hold %d ms, goodput %g, want 5000 and 0.25", r.LongestHoldMs, r.GoodputPerS)
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	two, three := 2, 3
	demand := func(e string) []scenarios.Demand { return []scenarios.Demand{{Expression: e}} }
	for _, test := range []struct {
		name   string
		change func(*scenarios.Trial, *lab.Observation)
		want   lab.Verdict
		why    string
	}{
		{"no check is measured", func(*scenarios.Trial, *lab.Observation) {}, lab.Measured, ""},
		{"an expectation that holds", func(t *scenarios.Trial, _ *lab.Observation) { t.Expect = &scenarios.Expect{Effects: &two} }, lab.AsExpected, ""},
		{"an expectation that does not", func(t *scenarios.Trial, _ *lab.Observation) { t.Expect = &scenarios.Expect{Effects: &three} }, lab.NotAsExpected, ""},
		{"an invariant that holds", func(t *scenarios.Trial, _ *lab.Observation) { t.Invariants = demand("effects >= wanted") }, lab.AsExpected, ""},
		{"an invariant that does not", func(t *scenarios.Trial, _ *lab.Observation) { t.Invariants = demand("effects <= wanted") }, lab.NotAsExpected, ""},
		{"an empty expect is no check", func(t *scenarios.Trial, _ *lab.Observation) { t.Expect = &scenarios.Expect{} }, lab.Measured, ""},
		{"a division by zero", func(t *scenarios.Trial, _ *lab.Observation) { t.Asserts = demand("effects / lost > 1") }, lab.Inconclusive, "effects / lost > 1: lost is 0, and nothing is divided by it"},
		{"a division by zero in an invariant", func(t *scenarios.Trial, _ *lab.Observation) { t.Invariants = demand("effects / lost != 1") }, lab.Inconclusive, "effects / lost != 1: lost is 0, and nothing is divided by it"},
		{"a division by zero in a premise", func(t *scenarios.Trial, _ *lab.Observation) { t.Setup.Premises = demand("effects / lost > 1") }, lab.Inconclusive, "effects / lost > 1: lost is 0, and nothing is divided by it"},
		{"a division by zero beside what does not hold", func(t *scenarios.Trial, _ *lab.Observation) {
			t.Invariants, t.Asserts = demand("effects / lost > 1"), demand("effects <= wanted")
		}, lab.NotAsExpected, ""},
		{"a broken lab", func(t *scenarios.Trial, o *lab.Observation) {
			t.Expect, o.Broken = &scenarios.Expect{Effects: &two}, "it broke"
		}, lab.Inconclusive, "it broke"},
		{"a fault that did not fire", func(t *scenarios.Trial, o *lab.Observation) {
			t.Expect = &scenarios.Expect{Effects: &two}
			t.Setup.Server.Faults = []fault.Settings{{At: fault.AfterCommit, Do: "close"}}
			o.Faults = []lab.FaultCount{{Name: "close@after-commit"}}
		}, lab.Inconclusive, "fault close@after-commit fired: 0 times, not at least once"},
		{"an operation without an outcome", func(t *scenarios.Trial, o *lab.Observation) {
			t.Expect = &scenarios.Expect{Effects: &two}
			o.Outcomes[0].Belief = ""
		}, lab.Inconclusive, "every operation has an outcome: 0, not 1"},
		{"a premise before an expectation", func(t *scenarios.Trial, _ *lab.Observation) {
			t.Expect, t.Setup.Premises = &scenarios.Expect{Effects: &three}, demand("overlap >= 3")
		}, lab.Inconclusive, "overlap >= 3: overlap = 2, not true"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			tr, obs := trial(), seen()
			test.change(&tr, &obs)
			r := Decide(tr, obs)
			if r.Verdict != test.want || r.Why != test.why {
				t.Errorf("%s %q, want %s %q", r.Verdict, r.Why, test.want, test.why)
			}
		})
	}
}

// TestZeroVerdict holds the zero value down: nothing is green because nobody looked.
func TestZeroVerdict(t *testing.T) {
	t.Parallel()
	var r lab.Result
	if r.Verdict != lab.Inconclusive {
		t.Errorf("the zero verdict is %s", r.Verdict)
	}
}

// asked is an expectation for every key, which [seen] meets.
func asked() *scenarios.Expect {
	number := func(n int) *int { return &n }
	at := func(d time.Duration) *time.Duration { return &d }
	money, ratio, goodput := scenarios.Money(10000), 2.0, 0.14
	return &scenarios.Expect{
		Sends: number(2), Arrivals: number(2), Lookups: number(1), Runs: number(2), Effects: number(2), EffectsWhenCallerDone: number(1),
		Tries: number(2), TurnedAway: number(0), ThreadsUsed: number(1), BudgetSpent: number(0),
		Duplicates: number(1), Lost: number(0), FalseFailures: number(0), Late: number(1), Amount: &money,
		Belief: "ok", BeliefWhenCallerDone: "ok", Beliefs: &scenarios.Beliefs{OK: 1}, Reason: "201", Amplification: &ratio,
		CallerDone: at(7 * time.Second), LongestHold: at(7 * time.Second), Goodput: &goodput, Settled: at(12 * time.Second),
		LostUpdates: number(1), State: "9", PeakStarts: number(2), RecoveredAfter: at(4 * time.Second),
		Starts:   []time.Duration{0, 6 * time.Second},
		Outcomes: []string{"read timeout", "201"}, Arrived: []time.Duration{0, 6 * time.Second}, Overlap: number(2),
		Commits: []time.Duration{7 * time.Second, 12 * time.Second},
		SendsBy: map[string]int{"caller": 2}, ArrivalsAt: map[string]int{"order-1": 1, "order-2": 1},
		Answers: map[string]int{"201": 2}, Ledgers: map[string]int{"messages": 2}, OrdersTold: number(1), ClientsGone: number(1),
	}
}

// TestExpectations demands of every key of expect that it holds when it is right, and fails, with
// both values, when it is off by one.
func TestExpectations(t *testing.T) {
	t.Parallel()
	tr := trial()
	tr.Expect = asked()
	r := Decide(tr, seen())
	held := map[string]bool{}
	for _, c := range r.Checks {
		held[c.Name] = c.Held
	}
	fields := reflect.TypeFor[scenarios.Expect]()
	for i := range fields.NumField() {
		key := fields.Field(i).Tag.Get("yaml")
		if !held[key] {
			t.Errorf("%s is not checked, or does not hold", key)
		}
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			tr := trial()
			tr.Expect = &scenarios.Expect{}
			value := reflect.ValueOf(tr.Expect).Elem().Field(i)
			value.Set(reflect.ValueOf(asked()).Elem().Field(i))
			offByOne(value)
			r := Decide(tr, seen())
			if r.Verdict != lab.NotAsExpected {
				t.Fatalf("verdict %s", r.Verdict)
			}
			c := r.Checks[len(r.Checks)-1]
			if c.Name != key || c.Held || c.Expected == c.Actual || len(c.Evidence) == 0 {
				t.Errorf("%+v, want a check of %s that fails with two values and its evidence", c, key)
			}
		})
	}
}

// offByOne changes an expectation by the least that matters.
func offByOne(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		offByOne(v.Elem())
	case reflect.Int:
		v.SetInt(v.Int() + 1)
	case reflect.Int64: // durations and money
		v.SetInt(v.Int() + int64(2*time.Millisecond))
	case reflect.Float64:
		v.SetFloat(v.Float() + 0.01)
	case reflect.String:
		v.SetString("failed")
	case reflect.Slice:
		offByOne(v.Index(v.Len() - 1))
	case reflect.Map:
		key := v.MapKeys()[0]
		v.SetMapIndex(key, reflect.ValueOf(int(v.MapIndex(key).Int())+1))
	case reflect.Struct:
		offByOne(v.Field(0))
	}
}

// TestTimesOnTheWallClock leaves times out where the machine has a part in them.
func TestTimesOnTheWallClock(t *testing.T) {
	t.Parallel()
	tr, obs := trial(), seen()
	obs.Exact = false
	late := 99 * time.Second
	tr.Expect = &scenarios.Expect{CallerDone: &late, Starts: []time.Duration{late}, Belief: "ok"}
	r := Decide(tr, obs)
	if r.Verdict != lab.AsExpected {
		t.Errorf("verdict %s: times decided", r.Verdict)
	}
}

// TestOverTime: expressions name what the counts over time come to, and a goodput that never comes
// back is later than any time.
func TestOverTime(t *testing.T) {
	t.Parallel()
	tr, obs := trial(), seen()
	tr.Invariants = []scenarios.Demand{{Expression: "peak_starts == 2 and recovered_after_ms == 4000 and goodput_after_per_s == 0.5"}}
	if r := Decide(tr, obs); r.Verdict != lab.AsExpected || r.Series != obs.Series {
		t.Errorf("%s %+v", r.Verdict, r.Checks)
	}
	obs.Series.Recovery = &lab.Recovery{CauseEndsMs: 3000}
	after := 4 * time.Second
	tr.Expect = &scenarios.Expect{RecoveredAfter: &after}
	tr.Invariants = []scenarios.Demand{{Expression: "recovered_after_ms < 1000000000"}}
	r := Decide(tr, obs)
	if n := len(r.Checks); n < 2 || r.Checks[n-2].Held || r.Checks[n-2].Actual != "never" || r.Checks[n-1].Held || r.Checks[n-1].Actual != "recovered_after_ms = never" {
		t.Errorf("of a goodput that does not come back: %+v", r.Checks)
	}
	obs.Series.Beyond = 1
	if r := Decide(tr, obs); r.Verdict != lab.Inconclusive {
		t.Errorf("verdict %s, though not all has been counted", r.Verdict)
	}
}

// TestOutcomes: what a send came to is the status unless its answer breaks off, and what ends the
// wait after it is not its end.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	var obs lab.Observation
	add := func(kind lab.Kind, path, detail string, status int) {
		obs.Events = append(obs.Events, lab.Event{Kind: kind, Send: path, Node: "caller", Detail: detail, Status: status})
	}
	ends := func(path string, kind lab.Kind, detail string, status int) {
		add(lab.Send, path, "", 0)
		add(kind, path, detail, status)
	}
	ends("status", lab.Reply, "", 503)
	add(lab.Retry, "status", "", 0)
	add(lab.Timeout, "status", "total", 0)
	ends("broken", lab.Reply, "", 201)
	add(lab.Failure, "broken", "reset", 0)
	ends("read", lab.Timeout, "read", 0)
	ends("pool", lab.Timeout, "acquire", 0)
	ends("layer", lab.Timeout, "retry", 0)
	ends("layers", lab.Timeout, "retry total", 0)
	ends("nobody", lab.Failure, "unknown-host", 0)
	ends("loser", lab.Failure, "cancelled", 0)
	add(lab.Failure, "none", lab.PastDeadline, 0) // no send
	add(lab.Send, "open", "", 0)
	obs.Events = append(obs.Events, lab.Event{Kind: lab.Send, Send: "status", Node: "gateway"}, lab.Event{Kind: lab.Reply, Send: "broken", Node: "gateway", Status: 502})
	want := []string{"503", "reset", "read timeout", "acquire timeout", "attempt timeout", "total timeout", "unknown host", "cancelled", "nothing"}
	if diff := cmp.Diff(want, view{trial: trial(), obs: obs}.outcomes()); diff != "" {
		t.Error(diff)
	}
	tr := trial()
	tr.Expect = &scenarios.Expect{Outcomes: []string{"201", "read timeout"}}
	for exact, verdict := range map[bool]lab.Verdict{true: lab.NotAsExpected, false: lab.AsExpected} {
		obs := seen()
		obs.Exact = exact
		if r := Decide(tr, obs); r.Verdict != verdict {
			t.Errorf("in another order, exact %t: %s, want %s", exact, r.Verdict, verdict)
		}
	}
}

// TestTolerance: the microseconds of a long chain of sends add up, those of a crowd do not.
func TestTolerance(t *testing.T) {
	t.Parallel()
	chain, obs := trial(), seen()
	obs.Events = nil
	for i := range 45 {
		obs.Events = append(obs.Events, lab.Event{At: time.Duration(i) * 3 * time.Second, Kind: lab.Send, Node: "caller"})
	}
	for i := range 900 {
		obs.Events = append(obs.Events, lab.Event{At: 200*time.Second + time.Duration(i), Kind: lab.Send, Node: "caller"})
	}
	for _, test := range []struct {
		done, off time.Duration
		held      bool
	}{
		{133 * time.Second, 6 * time.Millisecond, true},
		{133 * time.Second, -6 * time.Millisecond, true},
		{133 * time.Second, 8 * time.Millisecond, false},
		{3 * time.Second, time.Millisecond, true},
		{3 * time.Second, 2 * time.Millisecond, false},
		{10 * time.Millisecond, 1200 * time.Microsecond, false}, // no more than a hundredth of so little
		{201 * time.Second, 140 * time.Millisecond, true},       // a chain might be as long
	} {
		obs.Outcomes[0].DoneAt = test.done
		want := test.done + test.off
		chain.Expect = &scenarios.Expect{CallerDone: &want}
		if r := Decide(chain, obs); (r.Verdict == lab.AsExpected) != test.held {
			t.Errorf("%s, expected %s: %s", test.done, want, r.Verdict)
		}
	}
	if got := tolerance(10*time.Second, 10_000); got != 101*time.Millisecond {
		t.Errorf("after 10000 sends in 10 s: %s, want 101ms", got)
	}
}

// TestPlace looks for the place of an expectation in its check.
func TestPlace(t *testing.T) {
	t.Parallel()
	tr := trial()
	three := 3
	tr.Expect = &scenarios.Expect{Effects: &three}
	r := Decide(tr, seen())
	c := r.Checks[len(r.Checks)-1]
	if c.File != "s.yaml" || c.Line != 7 || c.Column != 3 || c.Expected != "3" || c.Actual != "2" {
		t.Errorf("%+v, want s.yaml:7:3, 3 and 2", c)
	}
}

func TestConclude(t *testing.T) {
	t.Parallel()
	row := func(id string, verdict lab.Verdict, c lab.Counts) lab.Result {
		return lab.Result{Configuration: id, ID: id, Verdict: verdict, Counts: c}
	}
	charged := func(id string, n int) lab.Result {
		r := row(id, lab.AsExpected, lab.Counts{Wanted: 1, Arrivals: 2, Effects: 1, LedgerDuplicates: n - 1})
		r.Ledgers = []lab.Ledger{{Name: "mails", Entries: 1}, {Name: "charges", Entries: n, Duplicates: n - 1}}
		return r
	}
	counted := func(id string, peak int, recovery *lab.Recovery) lab.Result {
		r := row(id, lab.AsExpected, lab.Counts{Wanted: 1000})
		r.Series = &lab.Series{WindowMs: 200, PeakStarts: peak, Recovery: recovery}
		return r
	}
	waited := func(id string, ms int64) lab.Result {
		r := row(id, lab.AsExpected, lab.Counts{Wanted: 1, Arrivals: 2, Effects: 1})
		r.CallerDoneMs = ms
		return r
	}
	three := lab.Counts{Wanted: 1, Arrivals: 3, Effects: 3, Duplicates: 2, Amount: 15000}
	one := lab.Counts{Wanted: 1, Arrivals: 3, Effects: 1, Amount: 5000}
	lost := lab.Counts{Wanted: 2, Arrivals: 2, Effects: 1, Lost: 1}
	for _, test := range []struct {
		name          string
		results       []lab.Result
		focus, remedy string
		currency      string
		want          string
	}{
		{"reproduced and mended", []lab.Result{row("retry", lab.AsExpected, three), row("key", lab.AsExpected, one)}, "retry", "key", "",
			`3 orders for 1 intent in "retry": the incident is reproduced. 1 order in "key".`},
		{"of other intents", []lab.Result{row("retry", lab.AsExpected, three), row("key", lab.AsExpected, lab.Counts{Wanted: 300, Effects: 300})}, "retry", "key", "",
			`3 orders for 1 intent in "retry": the incident is reproduced. 300 orders for 300 intents in "key".`},
		{"harmless, of other intents", []lab.Result{row("stuck", lab.AsExpected, lab.Counts{Wanted: 1, Arrivals: 4}), row("lease", lab.AsExpected, lab.Counts{Wanted: 5, Arrivals: 5, Effects: 5})}, "stuck", "lease", "",
			`0 orders for 1 intent in "stuck". 5 for 5 intents in "lease".`},
		{"no remedy is named", []lab.Result{row("retry", lab.AsExpected, three), row("key", lab.AsExpected, one)}, "retry", "", "",
			`3 orders for 1 intent in "retry": the incident is reproduced.`},
		{"amounts", []lab.Result{row("retry", lab.AsExpected, three), row("key", lab.AsExpected, one)}, "retry", "key", "₹",
			`₹150 instead of ₹50 in "retry": the incident is reproduced. ₹50 in "key".`},
		{"not as expected is not reproduced", []lab.Result{row("retry", lab.NotAsExpected, three)}, "retry", "", "", `3 orders for 1 intent in "retry".`},
		{"inconclusive", []lab.Result{row("retry", lab.Inconclusive, three)}, "retry", "", "", `Nothing was shown: no configuration came to a conclusion.`},
		{"the remedy is inconclusive", []lab.Result{row("retry", lab.AsExpected, three), row("key", lab.Inconclusive, one)}, "retry", "key", "",
			`3 orders for 1 intent in "retry": the incident is reproduced.`},
		{"a loss", []lab.Result{row("trust", lab.AsExpected, lost)}, "trust", "", "", `1 intent believed done without an order in "trust": the incident is reproduced.`},
		{"entries", []lab.Result{charged("two", 2), charged("one", 1)}, "two", "one", "₹", `2 charges for 1 intent in "two": the incident is reproduced. 1 in "one".`},
		{"only arrivals", []lab.Result{row("three", lab.AsExpected, lab.Counts{Wanted: 1, Arrivals: 64}), row("one", lab.AsExpected, lab.Counts{Wanted: 1, Arrivals: 4})}, "three", "one", "",
			`64 requests arrived for 1 intent in "three". 4 in "one".`},
		{"nothing was done", []lab.Result{row("stuck", lab.AsExpected, lab.Counts{Wanted: 1, Arrivals: 4}), row("lease", lab.AsExpected, lab.Counts{Wanted: 1, Arrivals: 2, Effects: 1})}, "stuck", "lease", "",
			`0 orders for 1 intent in "stuck". 1 in "lease".`},
		{"late", []lab.Result{row("goes on", lab.AsExpected, lab.Counts{Wanted: 1, Arrivals: 1, Effects: 1, Late: 1}), row("stops", lab.AsExpected, lab.Counts{Wanted: 1, Arrivals: 1})}, "goes on", "stops", "",
			`1 order for 1 intent in "goes on", after its caller was done. 0 in "stops".`},
		{"only time", []lab.Result{waited("long", 555_000), waited("short", 1500)}, "long", "short", "", `555s of waiting in "long". 1.5s in "short".`},
		{"a peak", []lab.Result{counted("together", 1000, nil), counted("apart", 300, nil)}, "together", "apart", "",
			`1000 sends within 200ms at the most in "together". 300 sends within 200ms at the most in "apart".`},
		{"a peak but for the first crowd", []lab.Result{func() lab.Result { r := counted("together", 1000, nil); r.Series.PeakAfterMs = 400; return r }()}, "together", "", "",
			`1000 sends within 200ms at the most, the first 400ms left out, in "together".`},
		{"a recovery", []lab.Result{counted("storm", 9, &lab.Recovery{GoodputPerS: 0.25}), counted("budget", 9, &lab.Recovery{Recovered: true, AfterMs: 1500})}, "storm", "budget", "",
			`The disturbance is over and the goodput stays at 0.25 operations a second in "storm". Back 1.5s after the end of the disturbance in "budget".`},
		{"nothing happened", []lab.Result{row("dark", lab.AsExpected, lab.Counts{Wanted: 1})}, "dark", "", "", `0 orders for 1 intent in "dark".`},
		{"all well", []lab.Result{row("key", lab.AsExpected, lab.Counts{Wanted: 1, Arrivals: 1, Effects: 1})}, "key", "", "", `1 order for 1 intent in "key".`},
	} {
		if got := Conclude(test.results, test.focus, test.remedy, test.currency); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestFocus takes the configuration with the most harm.
func TestFocus(t *testing.T) {
	t.Parallel()
	rows := []lab.Result{{ID: "a"}, {ID: "b", Counts: lab.Counts{Duplicates: 1}}, {ID: "c", Counts: lab.Counts{Duplicates: 2}}}
	if got := Focus(rows); got != "c" {
		t.Errorf("%q, want c", got)
	}
	if got := Focus(rows[:1]); got != "a" || strings.TrimSpace(got) == "" {
		t.Errorf("%q, want a", got)
	}
}

// TestSimulated: of a trial without events, rows and outcomes the totals are judged.
func TestSimulated(t *testing.T) {
	t.Parallel()
	tr, obs := trial(), seen()
	tr.Setup.Simulate, tr.Setup.Operations = true, 5
	obs.Events, obs.Effects, obs.Outcomes, obs.Faults = nil, nil, nil, nil
	obs.Totals = &lab.Totals{
		Runs: 9, Effects: 8, EffectsWhenCallerDone: 6, Duplicates: 4, Lost: 1, FalseFailures: 2, Late: 2, Amount: 800, BudgetSpent: 3,
		Answers: map[int]int{201: 8, 503: 1},
		Ends: []lab.End{
			{Belief: lab.Failed, Reason: "503", Operations: 2}, {Belief: lab.OK, Reason: "201", Operations: 1}, {Belief: lab.Unknown, Reason: "read timeout", Operations: 2},
		},
		CallerDone: 9 * time.Second, LongestHold: 4 * time.Second,
	}
	done, hold, amount := 9*time.Second, 4*time.Second, scenarios.Money(800)
	n := func(n int) *int { return &n }
	tr.Expect = &scenarios.Expect{
		Runs: n(9), Effects: n(8), EffectsWhenCallerDone: n(6), Duplicates: n(4), Lost: n(1), FalseFailures: n(2), Late: n(2), Amount: &amount,
		BudgetSpent: n(3), Answers: map[string]int{"201": 8, "503": 1}, Beliefs: &scenarios.Beliefs{OK: 1, Failed: 2, Unknown: 2},
		CallerDone: &done, LongestHold: &hold,
	}
	r := Decide(tr, obs)
	if r.Verdict != lab.AsExpected || !r.Simulated || r.CallerDoneMs != 9000 || len(r.Reasons) > 0 || r.BeliefsWhenCallerDone != nil {
		t.Errorf("%s %s %+v", r.Verdict, r.Why, r.Checks)
	}
	tr.Expect = &scenarios.Expect{Belief: "ok", Reason: "201"}
	r = Decide(tr, obs)
	if c := r.Checks[len(r.Checks)-1]; c.Held || c.Actual != "1 201, 2 503, 2 read timeout" {
		t.Errorf("of reasons that differ: %+v", c)
	}
	obs.Totals.Ends[0].Operations--
	if r := Decide(tr, obs); r.Verdict != lab.Inconclusive {
		t.Errorf("verdict %s, though an operation has no outcome", r.Verdict)
	}
}
