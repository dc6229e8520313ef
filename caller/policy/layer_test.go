package policy

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// plain is a layer of three tries that retries errors after 100 ms, and 503 for GET alone.
var plain = Layer{
	Attempts: 3,
	Rules: []Rule{
		{Failures: []Failure{EOF, Reset, ReadTimeout}},
		{Statuses: []StatusRange{Status(503)}, Methods: GetOnly},
	},
	Waits: FixedWait(100 * time.Millisecond),
}

// with returns a layer of ten tries with one rule.
func with(r Rule) Layer { return Layer{Attempts: 10, Rules: []Rule{r}, Waits: FixedWait(time.Second)} }

func TestNext(t *testing.T) {
	t.Parallel()
	eof := Outcome{Method: "POST", Failure: EOF}
	status := func(method string, code int) Outcome { return Outcome{Method: method, Status: code} }
	after := func(code int, d time.Duration) Outcome {
		return Outcome{Method: "POST", Status: code, RetryAfter: d, HasRetryAfter: true}
	}
	broken := []Failure{EOF}
	busy := []StatusRange{Status(503)}

	tests := []struct {
		name  string
		layer Layer
		tries []Outcome
		want  Decision
	}{
		{"no try yet", plain, nil, Decision{Reason: "nothing was tried yet"}},
		{"success", plain, []Outcome{status("GET", 201)}, Decision{Reason: "201 is a success"}},
		{"first retry", plain, []Outcome{eof}, Decision{Retry: true, Wait: 100 * time.Millisecond, Reason: "eof is retried: try 2 of 3"}},
		{"second retry", plain, []Outcome{eof, eof}, Decision{Retry: true, Wait: 100 * time.Millisecond, Reason: "eof is retried: try 3 of 3"}},
		{"spent", plain, []Outcome{eof, eof, eof}, Decision{Reason: "attempts 3 reached"}},
		{"spent by the original's name", Layer{Attempts: 1, Limit: "maxAttempts 1", Rules: plain.Rules}, []Outcome{eof}, Decision{Reason: "maxAttempts 1 reached"}},
		{"not listed", plain, []Outcome{{Method: "GET", Failure: Refused}}, Decision{Reason: "refused is not retried"}},
		{"status not listed", plain, []Outcome{status("GET", 500)}, Decision{Reason: "500 is not retried"}},
		{"method for the status", plain, []Outcome{status("GET", 503)}, Decision{Retry: true, Wait: 100 * time.Millisecond, Reason: "503 is retried: try 2 of 3"}},
		{"other method for the status", plain, []Outcome{status("POST", 503)}, Decision{Reason: "POST is not retried on 503"}},
		{"total limit", plain, []Outcome{{Method: "GET", Failure: TotalTimeout}}, Decision{Reason: "the total limit is spent"}},
		{"caller gone", plain, []Outcome{{Method: "GET", Failure: EOF, CallerGone: true}}, Decision{Reason: "whoever asked has gone"}},
		{"no rules", Layer{Attempts: 5}, []Outcome{eof}, Decision{Reason: "nothing is retried"}},
		{"no rules by name", Layer{Limit: "Retryer.NEVER_RETRY"}, []Outcome{eof}, Decision{Reason: "Retryer.NEVER_RETRY"}},

		{"in the body", with(Rule{Failures: broken}), []Outcome{{Method: "GET", Failure: EOF, InBody: true}}, Decision{Reason: "eof after the headers of the answer is not retried"}},
		{"in the body, allowed", with(Rule{Failures: broken, InBody: true}), []Outcome{{Method: "GET", Failure: EOF, InBody: true}}, Decision{Retry: true, Wait: time.Second, Reason: "eof is retried: try 2 of 10"}},
		{"not this method", with(Rule{Failures: broken, NotMethods: NonIdempotent}), []Outcome{eof}, Decision{Reason: "POST is not retried on eof"}},
		{"streamed", with(Rule{Failures: broken, Bodies: Repeatable}), []Outcome{{Method: "POST", Body: Fixed, Failure: EOF}}, Decision{Reason: "a streamed body (fixed) cannot be sent again"}},
		{"body not said", with(Rule{Failures: broken, Bodies: Repeatable}), []Outcome{eof}, Decision{Retry: true, Wait: time.Second, Reason: "eof is retried: try 2 of 10"}},
		{"no key", with(Rule{Failures: broken, Key: true}), []Outcome{eof}, Decision{Reason: "without an Idempotency-Key POST is not retried"}},
		{"fresh", with(Rule{Failures: broken, Reused: true}), []Outcome{eof}, Decision{Reason: "eof on a fresh connection is not retried"}},
		{"no address", with(Rule{Failures: broken, AddressLeft: true}), []Outcome{eof}, Decision{Reason: "no other address is left"}},
		{"needs Retry-After", with(Rule{Statuses: busy, RetryAfter: Present}), []Outcome{status("GET", 503)}, Decision{Reason: "503 without Retry-After is not retried"}},
		{"needs zero", with(Rule{Statuses: busy, RetryAfter: Zero}), []Outcome{after(503, time.Second)}, Decision{Reason: "503 is retried only with Retry-After: 0"}},
		{"a past date is not zero", with(Rule{Statuses: busy, RetryAfter: Zero}), []Outcome{after(503, -time.Second)}, Decision{Reason: "503 is retried only with Retry-After: 0"}},
		{"needs absent or zero", with(Rule{Statuses: busy, RetryAfter: AbsentOrZero}), []Outcome{after(503, time.Second)}, Decision{Reason: "503 with a Retry-After other than 0 is not retried"}},
		{"absent", with(Rule{Statuses: busy, RetryAfter: AbsentOrZero}), []Outcome{status("GET", 503)}, Decision{Retry: true, Wait: time.Second, Reason: "503 is retried: try 2 of 10"}},
		{
			"both objections",
			Layer{Rules: []Rule{{Failures: broken, Reused: true}, {Failures: broken, AddressLeft: true}}},
			[]Outcome{eof},
			Decision{Reason: "eof on a fresh connection is not retried; no other address is left"},
		},
		{
			"the second rule decides",
			Layer{Rules: []Rule{{Failures: broken, Reused: true}, {Failures: broken, AddressLeft: true, Wait: new(FixedWait(2))}}},
			[]Outcome{{Method: "GET", Failure: EOF, AddressLeft: true}},
			Decision{Retry: true, Wait: 2, Reason: "eof is retried: try 2"},
		},
		{"used up", with(Rule{Failures: broken, Max: 2}), []Outcome{eof, eof, eof}, Decision{Reason: "eof is retried at most 2 times"}},
		{"twice in a row", with(Rule{Statuses: busy, NotInARow: true}), []Outcome{status("GET", 503), status("GET", 503)}, Decision{Reason: "503 twice in a row is not retried"}},

		{"Retry-After ignored", with(Rule{Statuses: busy}), []Outcome{after(503, 7*time.Second)}, Decision{Retry: true, Wait: time.Second, Reason: "503 is retried: try 2 of 10"}},
		{"Retry-After honoured", with(Rule{Statuses: busy, HonourRetryAfter: true}), []Outcome{after(503, 7*time.Second)}, Decision{Retry: true, Wait: 7 * time.Second, Reason: "503 is retried: try 2 of 10 (Retry-After)"}},
		{"Retry-After cut", with(Rule{Statuses: busy, HonourRetryAfter: true, RetryAfterCap: 2 * time.Second}), []Outcome{after(503, 7*time.Second)}, Decision{Retry: true, Wait: 2 * time.Second, Reason: "503 is retried: try 2 of 10 (Retry-After 7s, cut)"}},
		{"Retry-After past", with(Rule{Statuses: busy, HonourRetryAfter: true}), []Outcome{after(503, -7*time.Second)}, Decision{Retry: true, Reason: "503 is retried: try 2 of 10 (Retry-After)"}},
		{"Retry-After past, ignored", with(Rule{Statuses: busy, HonourRetryAfter: true, IgnoreZeroAfter: true}), []Outcome{after(503, -7*time.Second)}, Decision{Retry: true, Wait: time.Second, Reason: "503 is retried: try 2 of 10"}},
		{"Retry-After too long", with(Rule{Statuses: busy, HonourRetryAfter: true, RetryAfterMax: 5 * time.Second}), []Outcome{after(503, 7*time.Second)}, Decision{Reason: "a Retry-After of 7s is longer than 5s"}},
		{"Retry-After just not too long", with(Rule{Statuses: busy, HonourRetryAfter: true, RetryAfterMax: 7 * time.Second}), []Outcome{after(503, 7*time.Second)}, Decision{Retry: true, Wait: 7 * time.Second, Reason: "503 is retried: try 2 of 10 (Retry-After)"}},
		{"Retry-After makes the wait longer", with(Rule{Statuses: busy, HonourRetryAfter: true, RetryAfterAtLeast: true}), []Outcome{after(503, 7*time.Second)}, Decision{Retry: true, Wait: 7 * time.Second, Reason: "503 is retried: try 2 of 10 (Retry-After)"}},
		{"Retry-After makes no wait shorter", with(Rule{Statuses: busy, HonourRetryAfter: true, RetryAfterAtLeast: true}), []Outcome{after(503, 0)}, Decision{Retry: true, Wait: time.Second, Reason: "503 is retried: try 2 of 10"}},
		{"window over", Layer{Attempts: 3, Rules: plain.Rules, Window: time.Second}, []Outcome{{Method: "POST", Failure: EOF, Elapsed: time.Second}}, Decision{Reason: "no try begins later than 1s after the first"}},
		{"window open", Layer{Attempts: 3, Rules: plain.Rules, Window: time.Second}, []Outcome{{Method: "POST", Failure: EOF, Elapsed: 999 * time.Millisecond}}, Decision{Retry: true, Reason: "eof is retried: try 2 of 3"}},
		{
			"beyond the response timeout",
			with(Rule{Statuses: busy, WaitWithinTimeout: true}),
			[]Outcome{{Method: "GET", Status: 503, Timeout: 900 * time.Millisecond}},
			Decision{Reason: "the wait of 1s is longer than the response timeout of 900ms"},
		},
		{
			"as long as the response timeout",
			with(Rule{Statuses: busy, WaitWithinTimeout: true}),
			[]Outcome{{Method: "GET", Status: 503, Timeout: time.Second}},
			Decision{Retry: true, Wait: time.Second, Reason: "503 is retried: try 2 of 10"},
		},
		{
			"beyond what is left",
			with(Rule{Statuses: busy, HonourRetryAfter: true, WaitWithinTotal: true}),
			[]Outcome{{Method: "GET", Status: 503, RetryAfter: 30 * time.Second, HasRetryAfter: true, Remaining: 5 * time.Second}},
			Decision{Reason: "the wait of 30s does not fit into the 5s that are left"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, tt.layer.Next(tt.tries, 0)); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNotInARow alternates two statuses, neither of which is retried twice in a row.
func TestNotInARow(t *testing.T) {
	t.Parallel()
	l := Layer{Rules: []Rule{
		{Statuses: []StatusRange{Status(408)}, NotInARow: true, Max: 2},
		{Statuses: []StatusRange{Status(503)}, NotInARow: true, Max: 2},
	}}
	var tries []Outcome
	for i := 0; ; i++ {
		tries = append(tries, Outcome{Method: "GET", Status: []int{408, 503}[i%2]})
		if !l.Next(tries, 0).Retry {
			break
		}
	}
	if len(tries) != 5 {
		t.Errorf("%d tries, want 5: four retries, two of each", len(tries))
	}
}

func TestMove(t *testing.T) {
	t.Parallel()
	l := Layer{Attempts: 6, PerInstance: 2, Rules: []Rule{{Failures: []Failure{ReadTimeout}}}}
	var tries []Outcome
	var moves []bool
	for {
		tries = append(tries, Outcome{Method: "GET", Failure: ReadTimeout})
		d := l.Next(tries, 0)
		if !d.Retry {
			break
		}
		moves = append(moves, d.Move)
		if strings.Contains(d.Reason, "next instance") != d.Move {
			t.Errorf("move %t, reason %q", d.Move, d.Reason)
		}
	}
	if diff := cmp.Diff([]bool{false, true, false, true, false}, moves); diff != "" {
		t.Errorf("moves (-want +got):\n%s", diff)
	}
}

func TestPeers(t *testing.T) {
	t.Parallel()
	cached := Outcome{Method: "GET", Failure: EOF, Reused: true}
	fresh := Outcome{Method: "GET", Failure: EOF}
	late := Outcome{Method: "GET", Failure: ReadTimeout, Reused: true}
	tests := []struct {
		name     string
		attempts int
		servers  int
		tries    []Outcome
		want     bool
	}{
		{"one server", 0, 1, []Outcome{fresh}, false},
		{"servers not said", 0, 0, []Outcome{fresh}, false},
		{"two servers", 0, 2, []Outcome{fresh}, true},
		{"two servers tried", 0, 2, []Outcome{fresh, fresh}, false},
		{"one server, cached", 0, 1, []Outcome{cached}, true},
		{"one server, cached twice", 0, 1, []Outcome{cached, cached}, true},
		{"one server, cached and fresh", 0, 1, []Outcome{cached, fresh}, false},
		{"one server, late on a cached connection", 0, 1, []Outcome{late}, false},
		{"two servers, both cached", 0, 2, []Outcome{cached, cached}, false},
		{"three servers, two tries", 2, 3, []Outcome{fresh, fresh}, false},
		{"three servers, two tries, one cached", 2, 3, []Outcome{cached, fresh}, true},
		{"one try", 1, 3, []Outcome{fresh}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := Layer{Attempts: tt.attempts, PerInstance: 1, Peers: true, Rules: []Rule{{Failures: []Failure{EOF, ReadTimeout}}}}
			tries := slices.Clone(tt.tries)
			for i := range tries {
				tries[i].Instances = tt.servers
			}
			d := l.Next(tries, 0)
			if d.Retry != tt.want || d.Move != tt.want {
				t.Errorf("decision %+v, want a retry on the next server: %t", d, tt.want)
			}
		})
	}
}

// drawLayer draws any layer, sensible or not.
func drawLayer(t *rapid.T) Layer {
	duration := rapid.Map(rapid.Int64Range(0, int64(time.Hour)), func(n int64) time.Duration { return time.Duration(n) })
	waits := rapid.Custom(func(t *rapid.T) Waits {
		return Waits{
			Initial:           duration.Draw(t, "initial"),
			Factor:            rapid.Float64Range(0, 10).Draw(t, "factor"),
			Max:               duration.Draw(t, "max"),
			Jitter:            rapid.SampledFrom(append([]string{"20%", "+100%", "-100%"}, Jitters...)).Draw(t, "jitter"),
			Growth:            rapid.SampledFrom([]Growth{Exponential, LessOne, SquareSteps}).Draw(t, "growth"),
			Min:               duration.Draw(t, "min"),
			Noise:             duration.Draw(t, "noise"),
			ExactAtMax:        rapid.Bool().Draw(t, "exact at max"),
			GrowFirst:         rapid.Bool().Draw(t, "grow first"),
			FirstAtOnce:       rapid.Bool().Draw(t, "first at once"),
			WholeMilliseconds: rapid.Bool().Draw(t, "whole ms"),
		}
	})
	rule := rapid.Custom(func(t *rapid.T) Rule {
		r := Rule{
			Failures:          rapid.SliceOf(rapid.SampledFrom(Failures)).Draw(t, "failures"),
			Statuses:          []StatusRange{{rapid.IntRange(300, 450).Draw(t, "from"), rapid.IntRange(450, 599).Draw(t, "to")}},
			InBody:            rapid.Bool().Draw(t, "in body"),
			Reused:            rapid.Bool().Draw(t, "reused"),
			RetryAfter:        rapid.SampledFrom([]HeaderIs{Anything, Present, Zero, AbsentOrZero}).Draw(t, "header"),
			Max:               rapid.IntRange(0, 3).Draw(t, "max"),
			NotInARow:         rapid.Bool().Draw(t, "not in a row"),
			HonourRetryAfter:  rapid.Bool().Draw(t, "honour"),
			RetryAfterCap:     duration.Draw(t, "cap"),
			RetryAfterMax:     duration.Draw(t, "longest"),
			RetryAfterAtLeast: rapid.Bool().Draw(t, "at least"),
			IgnoreZeroAfter:   rapid.Bool().Draw(t, "ignore zero"),
			WaitWithinTimeout: rapid.Bool().Draw(t, "within timeout"),
			WaitWithinTotal:   rapid.Bool().Draw(t, "within total"),
		}
		if rapid.Bool().Draw(t, "own wait") {
			r.Wait = new(waits.Draw(t, "wait"))
		}
		if rapid.Bool().Draw(t, "idempotent only") {
			r.Methods = Idempotent
		}
		return r
	})
	return Layer{
		Attempts:    rapid.IntRange(0, 6).Draw(t, "attempts"),
		PerInstance: rapid.IntRange(0, 3).Draw(t, "per instance"),
		Peers:       rapid.Bool().Draw(t, "peers"),
		Rules:       rapid.SliceOfN(rule, 0, 4).Draw(t, "rules"),
		Waits:       waits.Draw(t, "waits"),
		Window:      duration.Draw(t, "window"),
	}
}

// drawOutcome draws the outcome of one try.
func drawOutcome(t *rapid.T) Outcome {
	o := Outcome{
		Method:    rapid.SampledFrom([]string{"GET", "POST", "PUT"}).Draw(t, "method"),
		Body:      rapid.SampledFrom(Bodies).Draw(t, "body"),
		InBody:    rapid.Bool().Draw(t, "in body"),
		Reused:    rapid.Bool().Draw(t, "reused"),
		Instances: rapid.IntRange(0, 3).Draw(t, "instances"),
		Elapsed:   time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "elapsed")),
		Timeout:   time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "timeout")),
		Remaining: time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "remaining")),
		Waited:    time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "waited")),
	}
	if rapid.Bool().Draw(t, "fails") {
		o.Failure = rapid.SampledFrom(Failures).Draw(t, "failure")
		return o
	}
	o.Status = rapid.IntRange(200, 599).Draw(t, "status")
	o.HasRetryAfter = rapid.Bool().Draw(t, "has Retry-After")
	if o.HasRetryAfter {
		o.RetryAfter = time.Duration(rapid.Int64().Draw(t, "Retry-After"))
	}
	return o
}

// TestProperties holds for any layer and any outcomes: a decision is the same when asked again and
// changes nothing, waits stay between zero and their cap, tries stay within attempts, and what must
// never be retried is not.
func TestProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawLayer(t)
		var tries []Outcome
		for range 12 {
			tries = append(tries, drawOutcome(t))
			last := tries[len(tries)-1]
			u := rapid.Float64Range(0, 0.999999).Draw(t, "u")
			before := slices.Clone(tries)
			d := l.Next(tries, u)
			if again := l.Next(tries, u); again != d {
				t.Fatalf("asked twice: %+v, then %+v", d, again)
			}
			if !reflect.DeepEqual(before, tries) {
				t.Fatal("the tries were changed")
			}
			if d.Reason == "" {
				t.Fatal("no reason")
			}
			if !d.Retry {
				if d.Wait != 0 || d.Move {
					t.Fatalf("no retry, and yet %+v", d)
				}
				return
			}
			if last.Failure == TotalTimeout || last.CallerGone {
				t.Fatalf("retried %+v", last)
			}
			if !l.Peers && l.Attempts > 0 && len(tries) >= l.Attempts {
				t.Fatalf("retried after try %d of %d", len(tries), l.Attempts)
			}
			if chosen, _ := l.choose(last); d.Wait < 0 || d.Wait > longestWait(l, l.Rules[chosen]) {
				t.Fatalf("wait of %v", d.Wait)
			}
		}
	})
}

// longestWait is the cap of whatever the rule may wait for.
func longestWait(l Layer, r Rule) time.Duration {
	waits := l.Waits
	if r.Wait != nil {
		waits = *r.Wait
	}
	longest := Forever
	if waits.Max > 0 {
		// A share above the wait and the noise come on top of the longest; the shortest holds whatever that is.
		_, high, _ := spread(waits.Jitter)
		added := math.Ceil(float64(waits.Max)*max(high, 1)) + float64(waits.Noise)
		longest = max(time.Duration(min(added, float64(Forever))), waits.Min)
	}
	if r.HonourRetryAfter {
		if r.RetryAfterCap == 0 {
			return Forever
		}
		longest = max(longest, r.RetryAfterCap)
	}
	return longest
}

// TestOneAttempt holds for any layer: with one attempt it never retries, but for nginx's try for
// nothing on a cached connection.
func TestOneAttempt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawLayer(t)
		l.Attempts = 1
		l.Peers = false
		if d := l.Next([]Outcome{drawOutcome(t)}, 0); d.Retry {
			t.Fatalf("decision %+v", d)
		}
	})
}
