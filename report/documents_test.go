package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"retrylab/internal/lab"
)

// A bench writes down what happened in one trial, as the engine would, and counts it.
type bench struct {
	r      lab.Result
	orders int64
	done   time.Duration
}

func newBench(scenario, configuration, id string, nodes ...lab.Node) *bench {
	if len(nodes) == 0 {
		nodes = []lab.Node{{Name: "caller", Role: "caller"}, {Name: "order-1", Role: "server"}}
	}
	return &bench{r: lab.Result{
		Scenario: scenario, Configuration: configuration, ID: id, Seed: 1, Verdict: lab.AsExpected,
		Nodes: nodes, Counts: lab.Counts{Operations: 1, Wanted: 1},
	}}
}

func at(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Microsecond)
}

func (b *bench) event(e lab.Event) {
	if e.Operation == "" {
		e.Operation = operationOf(e.Send)
	}
	b.r.Events = append(b.r.Events, e)
}

func operationOf(path string) string {
	for i := range path {
		if path[i] == '/' {
			return path[:i]
		}
	}
	return path
}

func (b *bench) node(name string) *lab.Node {
	for i := range b.r.Nodes {
		if b.r.Nodes[i].Name == name {
			return &b.r.Nodes[i]
		}
	}
	panic("no node " + name)
}

func (b *bench) start(op string, t float64) {
	b.event(lab.Event{At: at(t), Kind: lab.Start, Operation: op})
}

func (b *bench) send(node, path string, t float64) {
	b.node(node).Sends++
	if b.node(node).Role == "caller" {
		b.r.Counts.Sends++
	}
	b.event(lab.Event{At: at(t), Kind: lab.Send, Send: path, Node: node, Target: "order-1"})
}

// try is a send and its end: a status, or the name of a stage or of a failure.
func (b *bench) try(node, path string, from, to float64, end any) {
	b.send(node, path, from)
	switch end := end.(type) {
	case int:
		b.event(lab.Event{At: at(to), Kind: lab.Reply, Send: path, Node: node, Status: end})
	case string:
		kind := lab.Failure
		if slices.Contains([]string{"acquire", "connect", "read", "attempt", "total"}, end) {
			kind = lab.Timeout
		}
		b.event(lab.Event{At: at(to), Kind: kind, Send: path, Node: node, Detail: end})
	}
}

func (b *bench) arrive(node, path string, t float64) {
	b.node(node).Arrivals++
	if b.node(node).Role == "server" {
		b.r.Counts.Arrivals++
	}
	b.event(lab.Event{At: at(t) + 10*time.Microsecond, Kind: lab.Arrival, Send: path, Node: node})
}

func (b *bench) commit(node, path string, t float64) {
	b.orders++
	b.r.Counts.Effects++
	b.r.Orders = append(b.r.Orders, lab.Effect{
		Order: b.orders, Operation: operationOf(path), Send: path, Node: node, Amount: 5000,
		Created: at(t), CreatedMs: lab.Millis(at(t)),
	})
	b.r.Counts.Amount += 5000
	b.event(lab.Event{At: at(t) + 20*time.Microsecond, Kind: lab.Commit, Send: path, Node: node, Order: b.orders})
}

func (b *bench) answer(node, path string, t float64, status int) {
	b.event(lab.Event{At: at(t) + 30*time.Microsecond, Kind: lab.Answer, Send: path, Node: node, Status: status})
}

func (b *bench) gone(node, path string, t float64) {
	b.event(lab.Event{At: at(t) + 40*time.Microsecond, Kind: lab.ClientGone, Send: path, Node: node})
}

func (b *bench) fault(node, path string, t float64, detail string) {
	b.event(lab.Event{At: at(t) + 25*time.Microsecond, Kind: lab.Fault, Send: path, Node: node, Detail: detail})
}

// serve is an arrival that commits and answers 201.
func (b *bench) serve(node, path string, from, to float64) {
	b.arrive(node, path, from)
	b.commit(node, path, to)
	b.answer(node, path, to, 201)
}

// refuse is an arrival that is answered without an effect.
func (b *bench) refuse(node, path string, from, to float64, status int) {
	b.arrive(node, path, from)
	b.answer(node, path, to, status)
}

func (b *bench) end(op string, t float64, belief lab.Belief, reason string) {
	b.done = max(b.done, at(t))
	switch belief {
	case lab.OK:
		b.r.Beliefs.OK++
	case lab.Failed:
		b.r.Beliefs.Failed++
	case lab.Unknown:
		b.r.Beliefs.Unknown++
	}
	b.r.Reasons = append(b.r.Reasons, reason)
	b.event(lab.Event{At: at(t) + 50*time.Microsecond, Kind: lab.Done, Operation: op, Detail: string(belief)})
}

// result sorts the events and counts.
func (b *bench) result() lab.Result {
	r := b.r
	slices.SortStableFunc(r.Events, func(x, y lab.Event) int { return int(x.At - y.At) })
	var last time.Duration
	for _, e := range r.Events {
		last = max(last, e.At)
	}
	r.Events = append(r.Events, lab.Event{At: last, Kind: lab.Settled})
	r.CallerDoneMs, r.SettledMs = lab.Millis(b.done), lab.Millis(last)
	for _, o := range r.Orders {
		if o.CreatedMs <= r.CallerDoneMs {
			r.Counts.EffectsWhenCallerDone++
		}
	}
	r.Counts.Late = r.Counts.Effects - r.Counts.EffectsWhenCallerDone
	r.Counts.Duplicates = max(0, r.Counts.Effects-r.Counts.Wanted)
	r.Amplification = float64(r.Counts.Arrivals*1000/max(1, r.Counts.Operations)) / 1000
	return r
}

func document(infos []lab.ScenarioInfo, results ...lab.Result) *lab.Document {
	d := &lab.Document{
		Schema: lab.ResultSchema, SchemaVersion: lab.ResultSchemaVersion,
		Tool: lab.Tool{Name: "retrylab", Version: "1.0.0"},
		Run: lab.RunInfo{ID: "4f1c", Seed: 1, Clock: "virtual", Store: lab.Store{
			Engine: "sqlite", Version: "3.54.1", Mode: "embedded", ChosenBy: "default",
		}},
		Scenarios: infos, Results: results, Skipped: []lab.Skip{},
	}
	for _, r := range results {
		switch r.Verdict {
		case lab.AsExpected:
			d.Summary.AsExpected++
		case lab.NotAsExpected:
			d.Summary.NotAsExpected++
		case lab.Inconclusive:
			d.Summary.Inconclusive++
		case lab.Measured:
			d.Summary.Measured++
		}
	}
	return d
}

// retryer is the caller of read-timeout: n tries of 5 s, a second apart.
func (b *bench) retryer(n int) {
	b.start("op-1", 0)
	for i := range n {
		from := float64(i * 6)
		b.try("caller", fmt.Sprintf("op-1/feign-retryer.%d", i+1), from, from+5, "read")
	}
	b.end("op-1", float64(n*6-1), lab.Unknown, "read timeout")
}

var readTimeoutInfo = lab.ScenarioInfo{
	Name: "read-timeout", Title: "The caller gives up before the server is done", Family: "timeouts",
	Shown: `3 orders for 1 intent in "feign retryer, 3": the incident is reproduced. 1 order once the key has a unique index.`,
	Next:  "stacked-retries", Focus: "feign-retryer-3", Baseline: "one-attempt",
}

func readTimeout() []lab.Result {
	const name = "read-timeout"
	one := newBench(name, "one attempt", "one-attempt")
	one.start("op-1", 0)
	one.try("caller", "op-1", 0, 5, "read")
	one.serve("order-1", "op-1", 0, 12)
	one.gone("order-1", "op-1", 12)
	one.end("op-1", 5, lab.Unknown, "read timeout")

	three := newBench(name, "feign retryer, 3", "feign-retryer-3")
	three.retryer(3)
	for i := range 3 {
		path := fmt.Sprintf("op-1/feign-retryer.%d", i+1)
		three.serve("order-1", path, float64(i*6), float64(i*6+12))
		three.gone("order-1", path, float64(i*6+12))
	}

	key := newBench(name, "key + unique index, claim at insert", "key-unique-index-claim-at-insert")
	key.retryer(3)
	key.serve("order-1", "op-1/feign-retryer.1", 0, 12)
	key.refuse("order-1", "op-1/feign-retryer.2", 6, 18, 201)
	key.refuse("order-1", "op-1/feign-retryer.3", 12, 24, 201)

	first := newBench(name, "key + unique index, claim first", "key-unique-index-claim-first")
	first.start("op-1", 0)
	first.try("caller", "op-1/feign-retryer.1", 0, 5, "read")
	first.try("caller", "op-1/feign-retryer.2", 6, 6, 409)
	first.serve("order-1", "op-1/feign-retryer.1", 0, 12)
	first.refuse("order-1", "op-1/feign-retryer.2", 6, 6, 409)
	first.end("op-1", 6, lab.Unknown, "in progress")

	long := newBench(name, "read timeout 15 s", "read-timeout-15-s")
	long.start("op-1", 0)
	long.try("caller", "op-1/feign-retryer.1", 0, 12, 201)
	long.serve("order-1", "op-1/feign-retryer.1", 0, 12)
	long.end("op-1", 12, lab.OK, "201")

	return []lab.Result{one.result(), three.result(), key.result(), first.result(), long.result()}
}

// stacked is a Feign retryer around a load balancer that tries four times over two instances.
func stacked() lab.Result {
	b := newBench("stacked-retries", "POST, same 1, next 1, all operations", "post-all",
		lab.Node{Name: "caller", Role: "caller"}, lab.Node{Name: "order-1", Role: "server"}, lab.Node{Name: "order-2", Role: "server"})
	b.start("op-1", 0)
	t := 0.0
	for i := range 3 {
		for j := range 4 {
			path := fmt.Sprintf("op-1/feign-retryer.%d/load-balancer.%d", i+1, j+1)
			b.try("caller", path, t, t+5, "read")
			b.serve([]string{"order-1", "order-2"}[j/2], path, t, t+12)
			t += 5
		}
		t++
	}
	b.end("op-1", t-1, lab.Unknown, "read timeout")
	r := b.result()
	r.Said = []lab.Said{{Name: "arrivals", Said: 9, Measured: 12}, {Name: "answers 409", Said: 11}}
	return r
}

// chain is app → gateway → order service → payments, four tries each on a 503.
func chain() lab.Result {
	b := newBench("three-layers", "four tries at each layer", "four-each",
		lab.Node{Name: "caller", Role: "caller"}, lab.Node{Name: "gateway", Role: "hop"},
		lab.Node{Name: "order-service", Role: "hop"}, lab.Node{Name: "payments", Role: "server"})
	b.start("op-1", 0)
	t := 0.0
	for i := range 4 {
		a := fmt.Sprintf("op-1/app.%d", i+1)
		b.send("caller", a, t)
		b.arrive("gateway", a, t)
		for j := range 4 {
			g := fmt.Sprintf("%s/gateway.%d", a, j+1)
			b.send("gateway", g, t)
			b.arrive("order-service", g, t)
			for k := range 4 {
				o := fmt.Sprintf("%s/orders.%d", g, k+1)
				b.try("order-service", o, t, t+0.02, 503)
				b.refuse("payments", o, t, t+0.02, 503)
				t += 0.12
			}
			t -= 0.1
			b.answer("order-service", g, t, 503)
			b.event(lab.Event{At: at(t), Kind: lab.Reply, Send: g, Node: "gateway", Status: 503})
			t += 0.1
		}
		t -= 0.1
		b.answer("gateway", a, t, 503)
		b.event(lab.Event{At: at(t), Kind: lab.Reply, Send: a, Node: "caller", Status: 503})
		t += 0.1
	}
	b.end("op-1", t-0.1, lab.Failed, "503")
	return b.result()
}

// twelve are concurrent sends of one operation, with and without a unique index that is claimed
// first.
func twelve(guarded bool) lab.Result {
	name, id := "no guard", "no-guard"
	if guarded {
		name, id = "unique index, claim first", "unique-index-claim-first"
	}
	b := newBench("unique-index", name, id)
	b.start("op-1", 0)
	for i := range 12 {
		path := fmt.Sprintf("op-1/side.%d", i+1)
		if guarded && i != 4 {
			b.try("caller", path, 0, 0, 409)
			b.refuse("order-1", path, 0, 0, 409)
			continue
		}
		b.try("caller", path, 0, 1, 201)
		b.serve("order-1", path, 0, 1)
	}
	b.end("op-1", 1, lab.OK, "201")
	return b.result()
}

// incident is order-incident: a production timeline with a time of day.
func incident() *lab.Document {
	b := newBench("order-incident", "production", "production")
	b.start("op-1", 0)
	for i := range 3 {
		path, t := fmt.Sprintf("op-1/feign-retryer.%d", i+1), float64(i*11)
		b.try("caller", path, t, t+10, "read")
		b.serve("order-1", path, t, t+12)
		b.gone("order-1", path, t+12)
	}
	b.end("op-1", 32, lab.Unknown, "read timeout")
	key := newBench("order-incident", "key + unique index", "key-unique-index")
	key.start("op-1", 0)
	key.end("op-1", 32, lab.Unknown, "read timeout")
	return document([]lab.ScenarioInfo{{
		Name: "order-incident", Title: "Three orders eleven seconds apart", Begin: "14:08:33.512", Focus: "production",
	}}, b.result(), key.result())
}

// cashback credits money, so its amounts are shown.
func cashback() *lab.Document {
	b := newBench("cashback", "no key", "no-key")
	b.start("op-1", 0)
	for i := range 4 {
		path, t := fmt.Sprintf("op-1/retry.%d", i+1), float64(i*2)
		b.try("caller", path, t, t+2, "read")
		b.serve("order-1", path, t, t+2.5)
	}
	b.end("op-1", 8, lab.Unknown, "read timeout")
	wait := newBench("cashback", "key, claim first, wait", "key-wait")
	wait.start("op-1", 0)
	wait.try("caller", "op-1/retry.1", 0, 2, "read")
	wait.try("caller", "op-1/retry.2", 2, 2.5, 201)
	wait.serve("order-1", "op-1/retry.1", 0, 2.5)
	wait.arrive("order-1", "op-1/retry.2", 2)
	wait.event(lab.Event{At: at(2.5) + 25*time.Microsecond, Kind: lab.LookUp, Send: "op-1/retry.2", Node: "order-1", Detail: "done"})
	wait.answer("order-1", "op-1/retry.2", 2.5, 201)
	wait.end("op-1", 2.5, lab.OK, "201")
	return document([]lab.ScenarioInfo{{
		Name: "cashback", Title: "₹50 of cashback, four times", Currency: "₹", Focus: "no-key",
	}}, b.result(), wait.result())
}

// drop is commit-then-drop: the effect is there at once, its answer is held for five seconds.
func drop() lab.Result {
	b := newBench("commit-then-drop", "retry with the key", "retry-key")
	b.start("op-1", 0)
	b.try("caller", "op-1/retry.1", 0, 1, "read")
	b.try("caller", "op-1/retry.2", 1.1, 1.1, 201)
	b.arrive("order-1", "op-1/retry.1", 0)
	b.commit("order-1", "op-1/retry.1", 0)
	b.fault("order-1", "op-1/retry.1", 0, "delay@after-commit")
	b.answer("order-1", "op-1/retry.1", 5, 201)
	b.gone("order-1", "op-1/retry.1", 5)
	b.arrive("order-1", "op-1/retry.2", 1.1)
	b.event(lab.Event{At: at(1.1) + 15*time.Microsecond, Kind: lab.LookUp, Send: "op-1/retry.2", Node: "order-1", Detail: "done"})
	b.answer("order-1", "op-1/retry.2", 1.1, 201)
	b.end("op-1", 1.1, lab.OK, "201")
	return b.result()
}

// resets are crash-points and resets around the commit.
func resets() lab.Result {
	b := newBench("crash-points", "crash before commit, then reset after commit", "crash-reset")
	b.start("op-1", 0)
	b.try("caller", "op-1/retry.1", 0, 2, "eof")
	b.arrive("order-1", "op-1/retry.1", 0)
	b.fault("order-1", "op-1/retry.1", 2, "crash@before-commit")
	b.event(lab.Event{At: at(2) + 26*time.Microsecond, Kind: lab.Crash, Send: "op-1/retry.1", Node: "order-1"})
	b.event(lab.Event{At: at(2) + 30*time.Microsecond, Kind: lab.Rollback, Send: "op-1/retry.1", Node: "order-1"})
	b.try("caller", "op-1/retry.2", 3, 3, "refused")
	b.event(lab.Event{At: at(3.5), Kind: lab.Restart, Node: "order-1"})
	b.try("caller", "op-1/retry.3", 4, 6, "reset")
	b.arrive("order-1", "op-1/retry.3", 4)
	b.commit("order-1", "op-1/retry.3", 6)
	b.fault("order-1", "op-1/retry.3", 6, "reset@after-commit")
	b.try("caller", "op-1/retry.4", 7, 9, 201)
	b.serve("order-1", "op-1/retry.4", 7, 9)
	b.end("op-1", 9, lab.OK, "201")
	return b.result()
}

// pool is pool-exhausted: three operations, one connection.
func pool() lab.Result {
	b := newBench("pool-exhausted", "pool of 1", "pool-1")
	b.r.Counts.Operations, b.r.Counts.Wanted = 3, 3
	for i := range 3 {
		op := fmt.Sprintf("op-%d", i+1)
		b.start(op, 0)
		if i == 1 {
			b.try("caller", op, 0, 12, 201)
			b.serve("order-1", op, 0, 12)
			b.end(op, 12, lab.OK, "201")
			continue
		}
		b.try("caller", op, 0, 3, "acquire")
		b.end(op, 3, lab.Failed, "acquire timeout")
	}
	return b.result()
}

// hedged sends a second request beside the first.
func hedged() lab.Result {
	b := newBench("hedged-write", "hedge after 1 s", "hedge")
	b.start("op-1", 0)
	b.try("caller", "op-1/hedge.1", 0, 3, 201)
	b.try("caller", "op-1/hedge.2", 1, 3, "canceled")
	b.serve("order-1", "op-1/hedge.1", 0, 3)
	b.serve("order-1", "op-1/hedge.2", 1, 4)
	b.gone("order-1", "op-1/hedge.2", 4)
	b.end("op-1", 3, lab.OK, "201")
	return b.result()
}

// deadline is deadline-propagation: a hop that works before it calls on.
func deadline() lab.Result {
	b := newBench("deadline-propagation", "not passed down", "not-passed-down",
		lab.Node{Name: "caller", Role: "caller"}, lab.Node{Name: "a", Role: "hop"}, lab.Node{Name: "b", Role: "server"})
	b.start("op-1", 0)
	b.try("caller", "op-1", 0, 3, "total")
	b.arrive("a", "op-1", 0)
	b.try("a", "op-1", 2.5, 3.5, 201)
	b.serve("b", "op-1", 2.5, 3.5)
	b.answer("a", "op-1", 3.5, 201)
	b.gone("a", "op-1", 3.5)
	b.end("op-1", 3, lab.Unknown, "total timeout")
	return b.result()
}

// closed is get-mapped-write under three layers, where whole groups of sends share an instant.
func closed() lab.Result {
	b := newBench("get-mapped-write", "feign 3 × balancer 2 × client 2", "feign-lb-client")
	b.start("op-1", 0)
	for i := range 12 {
		path, t := fmt.Sprintf("op-1/feign-retryer.%d/load-balancer.%d/httpclient5.%d", i/4+1, i/2%2+1, i%2+1), float64(i/4)
		b.try("caller", path, t, t, "eof")
		b.arrive("order-1", path, t)
		b.commit("order-1", path, t)
		b.fault("order-1", path, t, "close@after-commit")
	}
	b.end("op-1", 2, lab.Unknown, "eof")
	return b.result()
}

// crowd is 200 operations, one every 50 ms, each tried three times.
func crowd() lab.Result {
	b := newBench("retry-storm", "200 callers", "callers-200")
	b.r.Counts.Operations, b.r.Counts.Wanted = 200, 200
	for i := range 200 {
		op, t := fmt.Sprintf("op-%d", i+1), float64(i)*0.05
		b.start(op, t)
		for j := range 3 {
			path := fmt.Sprintf("%s/retry.%d", op, j+1)
			b.try("caller", path, t, t+1, "read")
			b.serve("order-1", path, t, t+2)
			t += 1.5
		}
		b.end(op, t-0.5, lab.Unknown, "read timeout")
	}
	return b.result()
}

// refused is a caller that never gets through.
func refused() lab.Result {
	b := newBench("no-connection", "refused, then never answered", "refused")
	b.start("op-1", 0)
	b.try("caller", "op-1/retry.1", 0, 0, "refused")
	b.try("caller", "op-1/retry.2", 1, 1, "refused")
	b.try("caller", "op-1/retry.3", 2, 12, "connect")
	b.end("op-1", 12, lab.Failed, "connect timeout")
	return b.result()
}

// cut is a trial that was stopped half-way.
func cut() lab.Result {
	b := newBench("read-timeout", "one attempt", "one-attempt")
	b.start("op-1", 0)
	b.send("caller", "op-1", 0)
	b.arrive("order-1", "op-1", 0)
	b.event(lab.Event{At: at(3), Kind: lab.Work, Send: "op-1", Node: "order-1"})
	return b.result()
}

// day is expired-key: seconds and hours on one axis.
func day() lab.Result {
	b := newBench("expired-key", "redelivery after 25 h", "redelivery-25-h")
	b.start("op-1", 0)
	b.try("caller", "op-1/delivery.1", 0, 0.2, 201)
	b.serve("order-1", "op-1/delivery.1", 0, 0.2)
	b.try("caller", "op-1/delivery.2", 90000, 90000.2, 201)
	b.serve("order-1", "op-1/delivery.2", 90000, 90000.2)
	b.end("op-1", 90000.2, lab.OK, "201")
	return b.result()
}

// judged gives a result of read-timeout another name and verdict.
func judged(name, id string, verdict lab.Verdict) lab.Result {
	r := readTimeout()[1]
	r.Configuration, r.ID, r.Verdict = name, id, verdict
	return r
}

// verdicts holds one result of every kind.
func verdicts() *lab.Document {
	held := judged("feign retryer, 3", "feign-retryer-3", lab.AsExpected)
	held.Counts.Lost, held.Counts.FalseFailures = 1, 1
	failed := judged("key + unique index, claim first", "claim-first", lab.NotAsExpected)
	failed.Checks = []lab.Check{
		{Kind: "expect", Name: "sends", Expected: "3", Actual: "3", Held: true},
		{
			Kind: "expect", Name: "effects", Expected: "1", Actual: "3", File: "scenarios/read-timeout.yaml", Line: 41, Column: 14,
			Evidence: []string{
				"12 s commit order-1 op-1/feign-retryer.1", "18 s commit order-1 op-1/feign-retryer.2", "24 s commit order-1 op-1/feign-retryer.3",
			},
		},
		{Kind: "expect", Name: "belief", Expected: "ok", Actual: "unknown", File: "scenarios/read-timeout.yaml", Line: 41, Column: 26},
		{Kind: "invariant", Name: "effects <= wanted", Expected: "true", Actual: "3 <= 1", File: "scenarios/read-timeout.yaml", Line: 44},
	}
	broken := judged("reset after commit", "reset-after-commit", lab.Inconclusive)
	broken.Why = "the fault reset@after-commit never fired: no arrival reached its place before the trial had settled"
	broken.Checks = []lab.Check{{
		Kind: "premise", Name: "reset@after-commit fired", Expected: "at least 1", Actual: "0", File: "scenarios/read-timeout.yaml", Line: 52,
	}}
	lab1 := judged("a panic", "a-panic", lab.Inconclusive)
	lab1.Why, lab1.Defect = "panic: runtime error: index out of range [3] with length 3", true
	measured := judged("server.processing=2s caller.timeouts.read=5s", "vary-1", lab.Measured)
	d := document([]lab.ScenarioInfo{readTimeoutInfo}, held, failed, broken, lab1, measured)
	d.ExitCode = 1
	return d
}

// suite holds several scenarios, some of which did not run.
func suite() *lab.Document {
	b := twelve(false)
	g := twelve(true)
	d := document([]lab.ScenarioInfo{
		readTimeoutInfo,
		{Name: "unique-index", Title: "Twelve at once", Focus: "no-guard"},
		{Name: "stacked-retries", Title: "Retries behind retries"},
		{Name: "commit-reply-lost", Title: "The reply to COMMIT is lost"},
	}, append(verdicts().Results, b, g, stacked())...)
	d.Skipped = []lab.Skip{
		{Scenario: "commit-reply-lost", Reason: "needs postgres: run with --store postgres"},
		{Scenario: "stacked-retries", ID: "jdk-resend", Reason: "skipped: 25 h of scenario time on the wall clock"},
	}
	d.Summary.Skipped = 2
	d.ExitCode = 1
	return d
}

// seeds repeats one configuration.
func seeds() *lab.Document {
	results := readTimeout()[:2]
	for i, seed := range []int64{2, 3} {
		r := readTimeout()[1]
		r.Seed = seed
		if i == 1 {
			r.Verdict = lab.NotAsExpected
			r.Checks = []lab.Check{{Kind: "expect", Name: "effects", Expected: "3", Actual: "2"}}
		}
		results = append(results, r)
	}
	return document([]lab.ScenarioInfo{readTimeoutInfo}, results...)
}

// stores was served by several databases, and has keys beside them.
func stores() *lab.Document {
	on := func(scenario string, store, keys *lab.Store) lab.Result {
		r := judged("as written", "as-written", lab.AsExpected)
		r.Scenario, r.Store, r.Keys = scenario, store, keys
		r.Events, r.Orders = []lab.Event{}, []lab.Effect{}
		return r
	}
	private := &lab.Store{
		Engine: "postgres", Version: "16.4", Mode: "private cluster", ChosenBy: "the scenario needs it",
		Counting: "SELECT count(*) FROM orders WHERE operation = $1", Settings: map[string]string{"fsync": "off", "driver": "pgx v5.13.0"},
	}
	redis := func(failover string) *lab.Store {
		return &lab.Store{
			Engine: "redis", Version: "7.0.15", Mode: "private server", ChosenBy: "--redis",
			Settings: map[string]string{"failover": failover, "persistence": "none"},
		}
	}
	d := document(
		[]lab.ScenarioInfo{{Name: "on-the-default"}, {Name: "on-postgres"}, {Name: "keys"}, {Name: "keys-twice"}, {Name: "keys-with-a-replica"}},
		on("on-the-default", nil, nil), on("on-postgres", private, nil),
		on("keys", nil, redis("no replica")), on("keys-twice", nil, redis("no replica")), on("keys-with-a-replica", private, redis("replica promoted")),
	)
	d.Run.Store.Counting = "SELECT count(*) FROM orders WHERE operation = ?"
	d.Run.Store.Settings = map[string]string{"writers": "one", "journal_mode": "wal"}
	d.Skipped = []lab.Skip{{Scenario: "partition", Reason: "it needs postgres (a lock-timeout: SQLite has one lock for all rows)", Missing: "postgres"}}
	d.Summary.Skipped = 1
	return d
}

// herd has counts over time, of a crowd and of one that is spread; what is left out broke.
func herd(recovery bool) *lab.Document {
	made := func(name string, verdict lab.Verdict, starts, ok []int) lab.Result {
		r := judged(name, strings.ReplaceAll(name, " ", "-"), verdict)
		r.Events, r.Orders = []lab.Event{}, []lab.Effect{}
		none := make([]int, len(starts))
		s := &lab.Series{WindowMs: 200, Operations: none, Starts: starts, Arrivals: none, OK: ok, Queue: none}
		s.Count(&s.Operations, 0)
		s.Fill()
		s.Summary(200*time.Millisecond, 0)
		if recovery {
			s.WindowMs, s.Recovery = 1000, &lab.Recovery{CauseEndsMs: 1000, GoodputPerS: 0.2}
			if len(ok) > 0 {
				s.Recovery.Recovered, s.Recovery.AfterMs = true, 2500
			}
		}
		r.Series = s
		return r
	}
	spread := make([]int, 300)
	for i := range spread {
		spread[i] = 300 - i
	}
	broken := judged("broken", "broken", lab.Inconclusive)
	broken.Uncounted = true
	return document([]lab.ScenarioInfo{{Name: "read-timeout", Title: "All at once", Focus: "together"}},
		made("together", lab.AsExpected, []int{1000, 0, 0, 0, 0, 1000, 0, 0, 0, 0, 1000}, nil),
		made("spread over a long time", lab.AsExpected, spread, []int{0, 0, 5, 50, 500}), broken)
}

// simulated has rows that no machine has played, beside real ones or alone; the crowds differ in size.
func simulated(beside bool) *lab.Document {
	d := herd(false)
	for i := range d.Results {
		r := &d.Results[i]
		if r.Simulated = i > 0 || !beside; r.Simulated {
			r.Counts.Operations *= 20
		}
	}
	if !beside {
		d.Run.Store = lab.Store{}
	}
	return d
}

// hundred has a hundred rows, as a sweep makes them.
func hundred() *lab.Document {
	var results []lab.Result
	for i := range 100 {
		r := judged(fmt.Sprintf("processing=%ds, read=%ds", i/10+1, i%10+1), fmt.Sprintf("vary-%d", i+1), lab.Measured)
		results = append(results, r)
	}
	return document([]lab.ScenarioInfo{readTimeoutInfo}, results...)
}

// hostile has names that try to be something else.
func hostile() *lab.Document {
	names := []string{
		`"quoted" 'name' \ back`, "emoji 👩‍👩‍👧 ❤️ 🇩🇪 ⚡ end", "注文サービスが遅い、とても遅い、とてもとても遅い設定", "<script>alert(1)</script> & more",
		"100% %s %d %!v", "line one\nline two\r\n\ttab", "\x1b[31mred\x1b[0m \x1b]0;title\x07 bell\a", "right\u202eto left", "\xff\xfe broken utf-8",
		"e\u0301 combining", "a | b ` c `` d", "# SKIP not me, @everyone #1 www.example.org https://example.org :tada:", "]]> --- ... $1$ **b** _i_ [l](x) ![i](y)", "1. - + = > ~~s~~ &lt; C:\\dir\\", "", "averyveryveryveryveryveryveryveryveryveryveryveryverylongnamewithoutanyblank",
	}
	var results []lab.Result
	for i, name := range names {
		r := readTimeout()[1]
		r.Scenario = "hostile\x1b[2J"
		r.Configuration, r.ID = name, fmt.Sprintf("id-%d-%s", i, name)
		for j := range r.Orders {
			r.Orders[j].Key = name
		}
		results = append(results, r)
	}
	bad := &results[1]
	bad.Verdict = lab.NotAsExpected
	bad.Checks = []lab.Check{{Kind: "expect", Name: "na\nme", Expected: "\x1b[31m1", Actual: "注文", File: "a b\n.yaml", Line: 3, Evidence: []string{"<b>\x00"}}}
	for i, name := range names {
		r := &results[i]
		r.Checks = append(r.Checks,
			lab.Check{Kind: "invariant", Name: name, Expected: name, Actual: name, Held: i != 1, File: "-" + name, Line: i},
			lab.Check{Kind: "premise", Name: "\t" + name + "# SKIP", Expected: "\n", Held: true, Evidence: []string{name}},
		)
	}
	ops := newBench("hostile\x1b[2J", "hostile nodes", "nodes",
		lab.Node{Name: "caller", Role: "caller"}, lab.Node{Name: "注文サービス・東京", Role: "hop"}, lab.Node{Name: "a\nb", Role: "server"}, lab.Node{Name: "\x1b[1m", Role: "server"})
	ops.start("op\n1", 0)
	ops.try("caller", "op\n1/la\x1byer.1", 0, 1, "re\x1bset")
	ops.try("注文サービス・東京", "op\n1/la\x1byer.1", 0, 1, 503)
	ops.serve("a\nb", "op\n1/la\x1byer.1", 0, 1)
	ops.serve("\x1b[1m", "op\n1/la\x1byer.1", 1, 2)
	ops.fault("\x1b[1m", "op\n1/la\x1byer.1", 2, "close\n@after")
	ops.end("op\n1", 1, "un\x1bknown", "")
	first := ops.result()
	return document([]lab.ScenarioInfo{{
		Name: "hostile\x1b[2J", Title: "A title\nover two lines \x1b[31m ⚡ 注文", Currency: "₹\x1b[0m", Focus: "nodes",
		Shown: "注文 \x1b[5m blink\n\n  many   blanks", Next: "x\ny", Notes: []string{"a note\x07"}, Begin: "nonsense",
	}}, append(results, first)...)
}

// checked gives results checks that held.
func checked(results ...lab.Result) []lab.Result {
	for i := range results {
		r := &results[i]
		r.Checks = []lab.Check{
			{Kind: "premise", Name: "every operation has an outcome", Expected: "1", Actual: "1", Held: true},
			{Kind: "expect", Name: "effects", Expected: fmt.Sprint(r.Counts.Effects), Actual: fmt.Sprint(r.Counts.Effects), Held: true, File: "scenarios/read-timeout.yaml", Line: 30 + 10*i, Column: 14},
			{Kind: "invariant", Name: "lost == 0", Expected: "true", Actual: "true", Held: true, File: "scenarios/read-timeout.yaml", Line: 33 + 10*i},
		}
	}
	return results
}

// oneFailed has a check among many that did not hold.
func oneFailed() *lab.Document {
	results := checked(readTimeout()...)
	r := &results[2]
	r.Verdict = lab.NotAsExpected
	r.Checks[1] = lab.Check{
		Kind: "expect", Name: "effects", Expected: "2", Actual: "1", File: "scenarios/read-timeout.yaml", Line: 50, Column: 14,
		Evidence: []string{"commit at 12s op-1/feign-retryer.1"},
	}
	d := document([]lab.ScenarioInfo{readTimeoutInfo}, results...)
	d.Run.Set, d.Run.Assert = []string{"caller.timeouts.read=5s", "title=it's new"}, []string{"effects <= 3"}
	d.ExitCode = 1
	return d
}

// inconclusive has a fault that never fired, and a trial that broke before anything was counted.
func inconclusive(passes bool) *lab.Document {
	results := checked(readTimeout()[:3]...)
	results[1].Verdict, results[1].Why = lab.Inconclusive, "fault reset@after-commit fired: 0 times, not at least once"
	results[1].Checks = []lab.Check{{Kind: "premise", Name: "fault reset@after-commit fired", Expected: "at least once", Actual: "0 times"}, results[1].Checks[0]}
	results[2] = lab.Result{
		Scenario: "read-timeout", Configuration: "broken", ID: "broken", Seed: 1, Uncounted: true, Why: "the machine stumbled: it slept for 2s",
	}
	d := document([]lab.ScenarioInfo{readTimeoutInfo}, results...)
	if d.Run.InconclusivePasses = passes; !passes {
		d.ExitCode = 4
	}
	return d
}

// thousand has a thousand rows, of which some did not hold.
func thousand() *lab.Document {
	var results []lab.Result
	for i := range 1000 {
		r := checked(readTimeout()[0])[0]
		r.Configuration, r.ID = fmt.Sprintf("read timeout %d ms", i), fmt.Sprintf("read-%d-ms", i)
		if i%100 == 99 {
			r.Verdict, r.Checks[1].Held, r.Checks[1].Expected = lab.NotAsExpected, false, "2"
		}
		results = append(results, r)
	}
	d := document([]lab.ScenarioInfo{readTimeoutInfo}, results...)
	d.ExitCode = 1
	return d
}

// saved is a comparison of two saved results, with a trial of each kind and hostile names.
func saved() *lab.Document {
	d := document(nil)
	trial := func(id string, seed int64) lab.Trial { return lab.Trial{Scenario: "read-timeout", ID: id, Seed: seed} }
	d.Comparison = &lab.Comparison{
		Sources:  []string{"before.json", "a <script>|\x1b[31m.json"},
		Settings: []lab.Contrast{{Path: "server.processing", Values: []string{"", "3s"}}, {Path: "--assert", Values: []string{"effects == wanted, `x` | # y", ""}}},
		Rows:     []lab.ComparedRow{},
		Changes: []lab.Change{
			{Trial: trial("feign-retryer-3", 1), Kind: lab.ChangeMeasured, What: []string{"sends: 1, was 3 (0.3×)", "reasons: ]]> %0A\n::error::x, was none"}},
			{Trial: trial("one-attempt", 1), Kind: lab.ChangeMeasured, What: []string{"settled: 3s, was 12s"}},
			{Trial: trial("one-attempt", 2), Kind: lab.ChangeMeasured, What: []string{"settled: 3s, was 12s"}},
			{Trial: trial("key", 1), Kind: lab.ChangeOpen, What: []string{"inconclusive, was as expected: no fault fired"}},
			{Trial: lab.Trial{Scenario: "<b>#\n*", ID: "x", Seed: 1}, Kind: lab.ChangeNew, What: []string{"it is new"}},
			{Trial: trial("old", 1), Kind: lab.ChangeGone, What: []string{"it is not there any more"}},
		},
		Same:     []lab.Trial{trial("one-attempt", 3), trial("other", 1)},
		Open:     []lab.Change{{Trial: trial("open", 1), Kind: lab.ChangeOpen, What: []string{"inconclusive in both: too slow"}}},
		Compared: 7,
	}
	d.ExitCode = 1
	return d
}

// savedAlike is a comparison of two saved results between which nothing changed.
func savedAlike() *lab.Document {
	d := document(nil)
	d.Comparison = &lab.Comparison{
		Sources: []string{"before.json", "after.json"}, Settings: []lab.Contrast{}, Rows: []lab.ComparedRow{},
		Same: []lab.Trial{{Scenario: "read-timeout", ID: "one-attempt", Seed: 1}}, Compared: 1,
	}
	return d
}

// documents are what the golden tests print, by name.
func documents() map[string]*lab.Document {
	one := func(title string, r lab.Result) *lab.Document {
		return document([]lab.ScenarioInfo{{Name: r.Scenario, Title: title, Focus: r.ID}}, r)
	}
	interrupted := suite()
	interrupted.Run.Interrupted = true
	interrupted.Results = interrupted.Results[:3]
	interrupted.Summary = lab.Summary{AsExpected: 1, NotAsExpected: 1, Inconclusive: 1}
	interrupted.Skipped = nil
	nothing := document(nil)
	nothing.Run.Interrupted = true
	wall := document([]lab.ScenarioInfo{readTimeoutInfo}, readTimeout()...)
	wall.Run.Clock, wall.Run.Speed = "wall", 20
	wall.Run.Store = lab.Store{Engine: "postgres", Version: "16.4", Mode: "private cluster", ChosenBy: "RETRYLAB_STORE"}
	return map[string]*lab.Document{
		"read-timeout":        document([]lab.ScenarioInfo{readTimeoutInfo}, readTimeout()...),
		"read-timeout-wall":   wall,
		"stacked-retries":     one("A load balancer behind a Feign retryer", stacked()),
		"three-layers":        one("Four tries at each of three layers", chain()),
		"unguarded":           one("Twelve at once", twelve(false)),
		"guarded":             one("Twelve at once", twelve(true)),
		"order-incident":      incident(),
		"cashback":            cashback(),
		"commit-then-drop":    one("The order is there, the answer is not", drop()),
		"crash-points":        one("Before the commit, after the commit", resets()),
		"pool-exhausted":      one("Three operations, one connection", pool()),
		"hedged-write":        one("A second request beside the first", hedged()),
		"deadline":            one("A deadline that is not passed down", deadline()),
		"get-mapped-write":    one("Three layers, twelve sends", closed()),
		"retry-storm":         one("Two hundred callers", crowd()),
		"no-connection":       one("Nothing ever left the host", refused()),
		"unfinished":          one("Stopped half-way", cut()),
		"expired-key":         one("Redelivered after a day", day()),
		"verdicts":            verdicts(),
		"suite":               suite(),
		"seeds":               seeds(),
		"stores":              stores(),
		"herd":                herd(false),
		"recovery":            herd(true),
		"simulated":           simulated(false),
		"simulated-beside":    simulated(true),
		"hundred":             hundred(),
		"hostile":             hostile(),
		"saved":               saved(),
		"saved-alike":         savedAlike(),
		"comparison":          compared(3),
		"empty":               document(nil),
		"interrupted":         interrupted,
		"interrupted-nothing": nothing,
		"held":                document([]lab.ScenarioInfo{readTimeoutInfo}, checked(readTimeout()...)...),
		"one-failed":          oneFailed(),
		"inconclusive":        inconclusive(false),
		"inconclusive-passes": inconclusive(true),
		"only-skipped": {
			Schema: lab.ResultSchema, SchemaVersion: lab.ResultSchemaVersion, Run: lab.RunInfo{Clock: "virtual"},
			Skipped: []lab.Skip{{Scenario: "commit-reply-lost", Reason: "needs postgres"}}, Summary: lab.Summary{Skipped: 1}, ExitCode: 2,
		},
	}
}
