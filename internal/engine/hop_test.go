package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"retrylab/internal/engine"
	"retrylab/internal/judge"
	"retrylab/internal/lab"
	"retrylab/scenarios"
)

// TestHop plays one order through a hop that is set up in different ways. What happened stands in
// the journal by machine; how it ended for the caller comes last.
func TestHop(t *testing.T) {
	t.Parallel()
	const base = "name: hop\ncaller: {timeouts: {connect: 1s, read: 60s}}\nhops: [{name: shop}]\nserver: {processing: 1s}\n"
	const deadline = "caller.timeouts.total=5s caller.deadline=header hops[0].deadline=pass"
	for _, tt := range []struct {
		name string
		set  string // path=value, one after the other
		want []string
	}{
		{"as it is", "", []string{
			"0.000 arrival shop", "0.000 send shop", "0.000 arrival order-1", "1.000 answer order-1 201", "1.000 answer shop 201", "ok 201 1",
		}},
		{"work of its own", "hops[0].work-before=2s hops[0].work-after=3s", []string{
			"0.000 arrival shop", "2.000 send shop", "2.000 arrival order-1", "3.000 answer order-1 201", "6.000 answer shop 201", "ok 201 1",
		}},
		{"its client goes, it finishes", "caller.timeouts.read=1s hops[0].work-before=2s", []string{
			"0.000 arrival shop", "1.000 timeout caller read", "2.000 send shop", "2.000 arrival order-1", "3.000 answer order-1 201",
			"3.000 client-gone shop 201", "unknown read timeout 1",
		}},
		{"its client goes, it gives up", "caller.timeouts.read=1s hops[0].work-before=2s hops[0].on-client-gone=cancel", []string{
			"0.000 arrival shop", "1.000 timeout caller read", "1.000 client-gone shop 502", "unknown read timeout 0",
		}},
		{"nginx that finishes", "caller.timeouts.read=500ms hops[0].kind=nginx hops[0].on-client-gone=finish", []string{
			"0.000 arrival shop", "0.000 send shop", "0.000 arrival order-1", "0.500 timeout caller read", "1.000 answer order-1 201",
			"1.000 client-gone shop 201", "unknown read timeout 1",
		}},
		{"a failed send", "server.faults=[{at: after-commit, do: reset}]", []string{
			"0.000 arrival shop", "0.000 send shop", "0.000 arrival order-1", "1.000 fault order-1 reset@after-commit", "1.000 answer shop 502", "unknown 502 1",
		}},
		{"a failed send, as a mesh has it", "server.faults=[{at: after-commit, do: reset}] hops[0].error-status=503", []string{
			"0.000 arrival shop", "0.000 send shop", "0.000 arrival order-1", "1.000 fault order-1 reset@after-commit", "1.000 answer shop 503", "unknown 503 upstream 1",
		}},
		{"a 503 of the service itself", "server.faults=[{at: before-guard, do: status, status: 503}]", []string{
			"0.000 arrival shop", "0.000 send shop", "0.000 arrival order-1", "0.000 fault order-1 status@before-guard", "0.000 answer order-1 503", "0.000 answer shop 503", "failed 503 0",
		}},
		{"a slow send", "hops[0].timeouts.read=500ms", []string{
			"0.000 arrival shop", "0.000 send shop", "0.000 arrival order-1", "0.500 timeout shop read", "0.500 answer shop 504",
			"1.000 client-gone order-1 201", "unknown 504 1",
		}},
		{"a slow send, another status", "hops[0].timeouts.read=500ms hops[0].timeout-status=500", []string{
			"0.000 arrival shop", "0.000 send shop", "0.000 arrival order-1", "0.500 timeout shop read", "0.500 answer shop 500",
			"1.000 client-gone order-1 201", "unknown 500 upstream 1",
		}},
		{"a deadline that leaves nothing", deadline + " hops[0].work-before=4960ms", []string{
			"0.000 arrival shop", "4.960 timeout shop deadline", "4.960 answer shop 504", "unknown 504 0",
		}},
		{"a deadline that leaves enough for this one", deadline + " hops[0].work-before=4960ms hops[0].min-remaining=10ms server.processing=10ms", []string{
			"0.000 arrival shop", "4.960 send shop", "4.960 arrival order-1", "4.970 answer order-1 201", "4.970 answer shop 201", "ok 201 1",
		}},
		{"a deadline that the hop cuts", deadline + " hops[0].max-deadline=500ms", []string{
			"0.000 arrival shop", "0.000 send shop", "0.000 arrival order-1", "0.500 timeout shop deadline", "0.500 answer shop 504",
			"1.000 client-gone order-1 201", "unknown 504 1",
		}},
		{"a deadline in the work after", deadline + " hops[0].work-after=9s", []string{
			"0.000 arrival shop", "0.000 send shop", "0.000 arrival order-1", "1.000 answer order-1 201", "5.000 timeout caller total",
			"5.000 timeout shop deadline", "5.000 answer shop 504", "unknown total timeout 1",
		}},
		{"a limit of the hop's own passed on", "hops[0].deadline=pass hops[0].timeouts.attempt=500ms server.deadline=honour", []string{
			"0.000 arrival shop", "0.000 send shop", "0.000 arrival order-1", "0.500 timeout shop attempt", "0.500 answer shop 504",
			"0.500 timeout order-1 deadline", "0.500 answer order-1 504", "unknown 504 0",
		}},
		{"a fault before it sends", "hops[0].faults=[{at: before-send, do: status, status: 503, retry-after: '7'}] hops[0].work-before=1s", []string{
			"0.000 arrival shop", "1.000 fault shop status@before-send", "1.000 answer shop 503", "failed 503 0",
		}},
		{"a good answer made a bad one", "hops[0].faults=[{at: after-answer, do: status, status: 502}] hops[0].work-after=1s", []string{
			"0.000 arrival shop", "0.000 send shop", "0.000 arrival order-1", "1.000 answer order-1 201", "1.000 fault shop status@after-answer",
			"1.000 answer shop 502", "unknown 502 1",
		}},
		{"a good answer made an error of its own", "hops[0].faults=[{at: after-answer, do: status, status: 500}]", []string{
			"0.000 arrival shop", "0.000 send shop", "0.000 arrival order-1", "1.000 answer order-1 201", "1.000 fault shop status@after-answer",
			"1.000 answer shop 500", "failed 500 1",
		}},
		{"it dies with the answer", "hops[0].faults=[{at: after-answer, do: reset}]", []string{
			"0.000 arrival shop", "0.000 send shop", "0.000 arrival order-1", "1.000 answer order-1 201", "1.000 fault shop reset@after-answer",
			"unknown reset 1",
		}},
		{"a proxy dies with the answer", "hops[0].kind=proxy hops[0].faults=[{at: after-answer, do: close}]", []string{
			"0.000 arrival shop", "0.000 send shop", "0.000 arrival order-1", "1.000 answer order-1 201", "1.000 fault shop close@after-answer",
			"unknown eof 1",
		}},
		{"it dies before it sends", "hops[0].faults=[{at: before-send, do: close}]", []string{
			"0.000 arrival shop", "0.000 fault shop close@before-send", "unknown eof 0",
		}},
		{"it loses the answer", "caller.timeouts.read=5s hops[0].faults=[{at: after-answer, do: lose}]", []string{
			"0.000 arrival shop", "0.000 send shop", "0.000 arrival order-1", "1.000 answer order-1 201", "1.000 fault shop lose@after-answer",
			"5.000 timeout caller read", "5.000 client-gone shop", "unknown read timeout 1",
		}},
		{"it is slow before it sends, and a deadline is over", deadline + " hops[0].faults=[{at: before-send, do: delay, delay: 6s}]", []string{
			"0.000 arrival shop", "0.000 fault shop delay@before-send", "5.000 timeout caller total", "5.000 timeout shop deadline", "5.000 answer shop 504",
			"unknown total timeout 0",
		}},
		{"two faults, one of them later", "hops[0].faults=[{at: before-send, do: delay, delay: 2s},{at: before-send, do: status, status: 429, from: 1s}]", []string{
			"0.000 arrival shop", "0.000 fault shop delay@before-send", "2.000 fault shop status@before-send", "2.000 answer shop 429", "failed 429 0",
		}},
		{"an error from behind is an answer", "server.faults=[{at: before-guard, do: status, status: 503}] hops[0].faults=[{at: after-answer, do: delay, delay: 1s}]", []string{
			"0.000 arrival shop", "0.000 send shop", "0.000 arrival order-1", "0.000 fault order-1 status@before-guard", "0.000 answer order-1 503",
			"0.000 fault shop delay@after-answer", "1.000 answer shop 503", "failed 503 0",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			trial := planned(t, base, tt.set)
			diffLines(t, tt.want, told(newLab(t, engine.Virtual, 1).Run(t.Context(), trial)))
		})
	}
}

// TestHopFaultCounts has a hop count its own requests, tell how often a fault fired, and leave a trial
// inconclusive whose fault did not.
func TestHopFaultCounts(t *testing.T) {
	t.Parallel()
	const base = "name: hop\ncaller: {layers: [{preset: retry, attempts: 3, wait: 1s, on: [502]}]}\n" +
		"hops: [{name: edge}, {name: shop, faults: [{at: after-answer, do: status, status: 502, arrivals: [1, 2]}]}]\n" +
		"server: {faults: [{at: before-guard, do: delay, delay: 1s}]}\n"
	for _, tt := range []struct {
		set  string
		want string
	}{
		{"", "S3 A3 E3 ok: 201 [{delay@before-guard order 3} {status@after-answer shop 2}]"},
		{"hops[1].faults[0].from=1500ms", "S1 A1 E1 ok: 201 [{delay@before-guard order 1} {status@after-answer shop 0}], inconclusive"},
		{"hops[1].faults[0].until=1500ms hops[1].faults[0].arrivals=[]", "S2 A2 E2 ok: 201 [{delay@before-guard order 2} {status@after-answer shop 1}]"},
	} {
		trial := planned(t, base, tt.set)
		obs := newLab(t, engine.Virtual, 1).Run(t.Context(), trial)
		r := judge.Decide(trial, obs)
		got := fmt.Sprintf("%s %v", summary(r, obs), obs.Faults)
		if r.Verdict == lab.Inconclusive {
			got += ", inconclusive"
		}
		if got != tt.want {
			t.Errorf("%q: got %s (%s), want %s", tt.set, got, obs.Broken, tt.want)
		}
	}
}

// TestHopKey looks at the keys that reach the service from a hop that makes its own.
func TestHopKey(t *testing.T) {
	t.Parallel()
	const base = "name: hop\ncaller: {key: operation, layers: [{preset: retry, attempts: 2, wait: 1s, on: [503]}]}\n" +
		"hops: [{name: shop, layers: [{preset: retry, attempts: 2, wait: 1s, on: [503]}]}]\n" +
		"server: {faults: [{at: after-commit, do: status, status: 503}]}\n"
	for key, want := range map[string]string{"pass": "1 1 1 1", "none": "- - - -", "request": "1 1 2 2", "attempt": "1 2 3 4"} {
		obs := newLab(t, engine.Virtual, 1).Run(t.Context(), planned(t, base, "hops[0].key="+key))
		numbers := map[string]int{}
		var got []string
		for _, e := range obs.Events {
			switch {
			case e.Kind != lab.Arrival || e.Node != "order-1":
			case e.Key == "":
				got = append(got, "-")
			default:
				if numbers[e.Key] == 0 {
					numbers[e.Key] = len(numbers) + 1
				}
				got = append(got, fmt.Sprint(numbers[e.Key]))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: the keys were %v (%s), want %s", key, got, obs.Broken, want)
		}
	}
}

// TestHopMethod sends an order on by another method than it came by.
func TestHopMethod(t *testing.T) {
	t.Parallel()
	for _, outer := range []string{"GET", "POST", "PUT", "DELETE"} {
		for _, inner := range []string{"GET", "POST", "PUT", "DELETE"} {
			t.Run(outer+" to "+inner, func(t *testing.T) {
				t.Parallel()
				trial := planned(t, "name: hop\namount: 12.34\nhops: [{}]\n", "caller.method="+outer+" hops[0].method="+inner)
				obs := newLab(t, engine.Virtual, 1).Run(t.Context(), trial)
				if obs.Broken != "" || obs.Outcomes[0].Belief != lab.OK || len(obs.Effects) != 1 || obs.Effects[0].Amount != 1234 {
					t.Errorf("%s%+v %+v", obs.Broken, obs.Outcomes, obs.Effects)
				}
			})
		}
	}
}

// TestHopMethodDecides has a layer of the hop look at the method of what it sends, not of what it
// got.
func TestHopMethodDecides(t *testing.T) {
	t.Parallel()
	const base = "name: hop\ncaller: {method: GET}\nserver: {faults: [{at: before-guard, do: status, status: 503}]}\n" +
		"hops: [{layers: [{preset: retry, attempts: 3, on: [503], methods: [GET]}]}]\n"
	for set, want := range map[string]int{"": 3, "hops[0].method=POST": 1} {
		obs := newLab(t, engine.Virtual, 1).Run(t.Context(), planned(t, base, set))
		if got := obs.Nodes[1].Sends; got != want {
			t.Errorf("%q: %d sends of the hop, want %d", set, got, want)
		}
	}
}

// planned is the one trial of a scenario with some values set.
func planned(t *testing.T, file, set string) scenarios.Trial {
	t.Helper()
	s, err := scenarios.Parse("hop.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	var sets []string
	for _, word := range strings.Fields(set) {
		// A value may have blanks in it: only what has a path before it begins a new one.
		if path, _, ok := strings.Cut(word, "="); ok && strings.Contains(path, ".") {
			sets = append(sets, word)
		} else {
			sets[len(sets)-1] += " " + word
		}
	}
	trials, err := s.Plan(scenarios.Options{Seed: 1, Set: sets})
	if err != nil {
		t.Fatal(err)
	}
	return trials[0]
}

// told are the events of a trial that say how a request went its way, and how it ended.
func told(obs lab.Observation) (lines []string) {
	if obs.Broken != "" {
		return []string{obs.Broken}
	}
	for _, e := range obs.Events {
		status := ""
		if e.Status > 0 {
			status = fmt.Sprintf(" %d", e.Status)
		}
		if e.Detail != "" {
			status += " " + e.Detail
		}
		server := e.Node != "caller"
		if e.Kind == lab.Timeout || server && slices.Contains([]lab.Kind{lab.Arrival, lab.Send, lab.Answer, lab.ClientGone, lab.Fault}, e.Kind) {
			lines = append(lines, fmt.Sprintf("%.3f %s %s%s", e.At.Seconds(), e.Kind, e.Node, status))
		}
	}
	o := obs.Outcomes[0]
	return append(lines, fmt.Sprintf("%s %s %d", o.Belief, o.Reason, len(obs.Effects)))
}

func diffLines(t *testing.T, want, got []string) {
	t.Helper()
	if !slices.Equal(want, got) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// TestHopRedirect has a client follow a redirect that comes through hops: they hand on where it leads,
// and what is asked for there.
func TestHopRedirect(t *testing.T) {
	t.Parallel()
	const base = "name: hop\ncaller: {redirects: follow}\nhops: [{name: edge, kind: proxy}, {name: shop}]\n" +
		"server: {faults: [{at: before-guard, do: redirect, status: 307}]}\n"
	trial := planned(t, base, "")
	obs := newLab(t, engine.Virtual, 1).Run(t.Context(), trial)
	if got, want := summary(judge.Decide(trial, obs), obs), "S2 A2 E1 ok: 201"; got != want {
		t.Errorf("got %s (%s), want %s", got, obs.Broken, want)
	}
}
