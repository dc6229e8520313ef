package caller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"retrylab/caller/policy"
)

// TestUpstreams holds upstreams against the rules of nginx's round robin. A line of a script is a
// time, a request, and either the server that the request is given or how its try there ended.
func TestUpstreams(t *testing.T) {
	t.Parallel()
	ends := map[string]struct {
		out   policy.Outcome
		again bool
	}{
		"succeeds":         {out: policy.Outcome{Status: 201}},
		"fails":            {out: policy.Outcome{Failure: policy.ReadTimeout}},
		"refuses":          {out: policy.Outcome{Failure: policy.Refused}, again: true},
		"fails, passed on": {out: policy.Outcome{Failure: policy.EOF}, again: true},
		"503":              {out: policy.Outcome{Status: 503}},
		"503, passed on":   {out: policy.Outcome{Status: 503}, again: true},
		"403, passed on":   {out: policy.Outcome{Status: 403}, again: true},
		"404, passed on":   {out: policy.Outcome{Status: 404}, again: true},
		"abandoned":        {out: policy.Outcome{Failure: policy.TotalTimeout, CallerGone: true}},
	}
	tests := []struct {
		name        string
		servers     string
		maxFails    int
		failTimeout time.Duration
		script      string
	}{
		{"in turn", "a b c", 1, 10 * time.Second, `
			0s 1 picks a
			0s 2 picks b
			0s 3 picks c
			0s 4 picks a
			0s 4 picks b
			0s 4 picks c
			0s 4 picks nobody
			0s 5 picks c`},
		{"as shipped: both are out after the first round", "a b", 1, 10 * time.Second, `
			2s 1 picks a
			2s 1 a fails, passed on
			2s 1 picks b
			2s 1 b fails
			2s 1 picks nobody
			3s 2 picks nobody
			12s 3 picks nobody
			13s 4 picks b
			13s 4 b succeeds
			13s 5 picks b
			13s 6 picks a`},
		{"one request tries a server that was out, the others wait for what it finds", "a b", 1, 10 * time.Second, `
			0s 1 picks a
			0s 1 a fails, passed on
			0s 1 picks b
			0s 1 b succeeds
			11s 2 picks b
			11s 3 picks b
			11s 4 picks a
			11s 5 picks b
			12s 6 picks b
			12s 7 picks b
			13s 4 a succeeds
			13s 8 picks b
			13s 9 picks a`},
		{"out again when it fails again", "a b", 1, 10 * time.Second, `
			0s 1 picks a
			0s 1 a fails, passed on
			0s 1 picks b
			0s 1 b succeeds
			11s 2 picks b
			11s 3 picks b
			11s 4 picks a
			11s 4 a fails, passed on
			11s 4 picks b
			21s 5 picks b
			21s 6 picks b
			22s 7 picks b
			22s 8 picks b
			22s 9 picks a`},
		{"two failures take it out", "a b", 2, 10 * time.Second, `
			0s 1 picks a
			0s 1 a fails, passed on
			0s 1 picks b
			0s 1 b succeeds
			1s 2 picks b
			1s 3 picks a
			1s 3 a fails, passed on
			1s 3 picks b
			2s 4 picks b
			2s 5 picks b
			11s 6 picks b
			12s 7 picks b
			12s 8 picks a`},
		{"a success does not make up for a failure of the same time", "a b", 2, 10 * time.Second, `
			0s 1 picks a
			0s 1 a fails, passed on
			0s 2 picks b
			1s 3 picks a
			1s 3 a succeeds
			1s 4 picks b
			2s 5 picks a
			2s 5 a fails
			3s 6 picks b
			3s 7 picks b`},
		{"a success after fail_timeout does", "a b", 2, 10 * time.Second, `
			0s 1 picks a
			0s 1 a fails, passed on
			0s 2 picks b
			11s 3 picks a
			11s 3 a succeeds
			11s 4 picks b
			12s 5 picks a
			12s 5 a fails
			12s 6 picks b
			13s 7 picks a`},
		{"max_fails 0: never out", "a b", 0, 10 * time.Second, `
			0s 1 picks a
			0s 1 a fails, passed on
			0s 1 picks b
			0s 1 b fails
			0s 2 picks b
			0s 2 b fails, passed on
			0s 2 picks a
			0s 2 a fails
			0s 3 picks a`},
		{"a single server is never out", "a", 1, 10 * time.Second, `
			0s 1 picks a
			0s 1 a fails
			0s 2 picks a
			0s 2 a fails
			0s 2 picks a`},
		{"whole seconds are counted", "a b", 1, 10 * time.Second, `
			900ms 1 picks a
			900ms 1 a refuses
			900ms 1 picks b
			10900ms 2 picks b
			10999ms 3 picks b
			11s 4 picks b
			11s 5 picks b
			11s 6 picks a`},
		{"a status counts when the request is passed on", "a b", 1, 10 * time.Second, `
			0s 1 picks a
			0s 1 a 503
			0s 2 picks b
			0s 3 picks a
			0s 3 a 503, passed on
			0s 3 picks b
			0s 4 picks b
			0s 5 picks b`},
		{"403 and 404 never count", "a b", 1, 10 * time.Second, `
			0s 1 picks a
			0s 1 a 404, passed on
			0s 1 picks b
			0s 1 b 403, passed on
			0s 2 picks b
			0s 3 picks a`},
		{"a client that leaves is no failure", "a b", 1, 10 * time.Second, `
			0s 1 picks a
			0s 1 a abandoned
			0s 2 picks b
			0s 3 picks a`},
		{"a server that failed comes back with less weight", "a b", 1, time.Second, `
			0s 1 picks a
			0s 1 a fails, passed on
			0s 1 picks b
			0s 1 b succeeds
			2s 2 picks b
			2s 3 picks b
			2s 4 picks a
			2s 4 a succeeds
			2s 5 picks b
			2s 6 picks a`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			servers := strings.Fields(tt.servers)
			u := newUpstreams(servers, tt.maxFails, tt.failTimeout)
			diff(t, "size", len(servers), u.size())
			tried := map[string][]string{} // by request
			for i, line := range strings.Split(strings.TrimSpace(tt.script), "\n") {
				part := strings.SplitN(strings.TrimSpace(line), " ", 4)
				now, request, what, rest := must(time.ParseDuration(part[0])), part[1], part[2], part[3]
				if what != "picks" {
					end, ok := ends[rest]
					if !ok {
						t.Fatalf("line %d: nobody knows how a try ends that %q", i+1, rest)
					}
					u.report(now, what, end.out, end.again)
					continue
				}
				got, ok := u.pick(now, tried[request])
				if !ok {
					got = "nobody"
				}
				tried[request] = append(tried[request], got)
				if got != rest {
					t.Fatalf("line %d: request %s is given %s, want %s", i+1, request, got, rest)
				}
			}
		})
	}
}

// TestRoundRobin is Spring Cloud LoadBalancer: the position moves on over the calls, and the
// instance before is left out.
func TestRoundRobin(t *testing.T) {
	t.Parallel()
	for targets, calls := range map[string][]string{
		"i1":       {"i1 i1", "i1 i1"},
		"i1 i2":    {"i1 i2", "i1 i2", "i1", "i2 i1"},
		"i1 i2 i3": {"i1 i3", "i3 i2", "i2", "i3 i1 i3"},
	} {
		r := &roundRobin{targets: strings.Fields(targets)}
		diff(t, "size", len(strings.Fields(targets)), r.size())
		for i, want := range calls {
			var seen []string
			for range strings.Fields(want) {
				target, ok := r.pick(0, seen)
				if !ok {
					t.Errorf("%s: nobody is left", targets)
				}
				r.report(0, target, policy.Outcome{Failure: policy.EOF}, true) // means nothing to it
				seen = append(seen, target)
			}
			diff(t, fmt.Sprintf("call %d of %s", i+1, targets), want, strings.Join(seen, " "))
		}
	}
}
