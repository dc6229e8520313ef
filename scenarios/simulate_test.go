package scenarios_test

import (
	"strings"
	"testing"

	"retrylab/scenarios"
)

// TestSimulateRefuses: what a simulation would leave out without a word is refused, each at its line. The
// same files without simulate are in order.
func TestSimulateRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"caller: {key: operation}":                           "caller.key cannot be simulated",
		"caller: {pool: 1}":                                  "caller.pool cannot be simulated",
		"caller: {threads: 1}":                               "caller.threads cannot be simulated",
		"caller: {connection: reused}":                       "caller.connection cannot be simulated",
		"caller: {redirects: follow}":                        "caller.redirects cannot be simulated",
		"caller: {content: changing}":                        "caller.content cannot be simulated",
		"caller: {cancel-after: 1s}":                         "caller.cancel-after cannot be simulated",
		"caller: {ask: {by: operation, every: 1s}}":          "caller.ask cannot be simulated",
		"caller: {body: chunked}":                            "a body that is chunked cannot be simulated",
		"caller: {timeouts: {total: 1s, poll: 1s}}":          "caller.timeouts.poll cannot be simulated",
		"caller: {timeouts: {read: 100us}}":                  "caller.timeouts.read is too short to be simulated",
		"caller: {layers: [{preset: retry, timeout: 10us}]}": "caller.layers[0].timeout is too short to be simulated",
		"caller: {layers: [{preset: spring-lb}]}":            "the layer spring-lb cannot be simulated: it has per-instance",
		"caller: {layers: [{preset: hedge, after: 1s}]}":     "the layer hedge cannot be simulated: it has hedge",
		"hops: [{kind: proxy}]":                              "hops cannot be simulated",
		"schedule: [{at: 1s}]":                               "schedule cannot be simulated",
		"concurrency: 2":                                     "concurrency cannot be simulated",
		"reconcile: {after: 1s}":                             "reconcile cannot be simulated",
		"server: {replicas: 2}":                              "server.replicas cannot be simulated",
		"server: {guard: unique-index}":                      "server.guard cannot be simulated",
		"server: {deadline: honour}":                         "server.deadline cannot be simulated",
		"server: {on-client-gone: cancel}":                   "server.on-client-gone cannot be simulated",
		"server: {read-only: true}":                          "server.read-only cannot be simulated",
		"server: {rows: [stock]}":                            "server.rows cannot be simulated",
		"server: {ledgers: [{name: mail}]}":                  "server.ledgers cannot be simulated",
		"server: {faults: [{at: connect, do: blackhole}]}":   "the fault blackhole@connect cannot be simulated",
		"server: {faults: [{at: in-reply, do: reset}]}":      "the fault reset@in-reply cannot be simulated",
		"server: {faults: [{at: before-guard, do: status, status: 503, retry-after: date+2s}]}": "a simulation has no calendar",
		"expect: {starts: [0s]}":       "starts is not counted in a simulation",
		"expect: {clients-gone: 0}":    "clients-gone is not counted in a simulation",
		"expect: {threads-used: 1}":    "threads-used is not counted in a simulation",
		"expect: {orders-told: 1}":     "orders-told is not counted in a simulation",
		"expect: {lookups: 0}":         "lookups is not counted in a simulation",
		"invariant: lookups == 0":      "lookups is not counted in a simulation",
		"premises: [overlap == 1]":     "overlap is not counted in a simulation",
		"operations: 1000001":          "operations must be between 1 and 1000000",
		"load: [{rate: 1e6, for: 2s}]": "load makes 2000000 operations, more than 1000000",
	} {
		_, err := scenarios.Parse("s.yaml", []byte("name: s\nsimulate: true\n"+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "s.yaml:3:") {
			t.Errorf("%s: %v, want an error at its line that says %q", text, err, want)
		}
		if strings.HasPrefix(want, "operations ") || strings.HasPrefix(want, "load ") {
			continue
		}
		if _, err := scenarios.Parse("s.yaml", []byte("name: s\n"+text+"\n")); err != nil {
			t.Errorf("%s without simulate: %v", text, err)
		}
	}
}
