package report

import (
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"retrylab/internal/lab"
)

// TestOTLP reads the traces back with a reader that is not ours, and holds the spans against the events.
func TestOTLP(t *testing.T) {
	t.Parallel()
	for name, d := range documents() {
		traces, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces([]byte(printed(t, OTLP, d, Options{})))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := map[string]int{}
		operations := 0
		for _, r := range d.Results {
			for _, e := range r.Events {
				switch e.Kind {
				case lab.Start:
					operations++
				case lab.Send, lab.Arrival:
					want[e.Node+" "+string(e.Kind)]++
				}
			}
		}
		spans := map[string]ptrace.Span{}
		roots := 0
		for i := range traces.ResourceSpans().Len() {
			r := traces.ResourceSpans().At(i)
			node, _ := r.Resource().Attributes().Get("service.name")
			for k := range r.ScopeSpans().At(0).Spans().Len() {
				s := r.ScopeSpans().At(0).Spans().At(k)
				id := s.SpanID().String()
				if _, twice := spans[id]; twice || id == "" || s.TraceID().IsEmpty() {
					t.Errorf("%s: the span %q is there twice, or has no id", name, id)
				}
				spans[id] = s
				switch s.Kind() {
				case ptrace.SpanKindClient:
					want[node.Str()+" send"]--
				case ptrace.SpanKindServer:
					want[node.Str()+" arrival"]--
				case ptrace.SpanKindInternal:
					if s.ParentSpanID().IsEmpty() {
						roots++
					}
				}
				for n := range s.Events().Len() {
					if e := s.Events().At(n); e.Timestamp() < s.StartTimestamp() || e.Timestamp() > s.EndTimestamp() {
						t.Errorf("%s: %s is outside of the time of %s", name, e.Name(), s.Name())
					}
				}
				if s.EndTimestamp() < s.StartTimestamp() {
					t.Errorf("%s: %s ends before it begins", name, s.Name())
				}
			}
		}
		for what, n := range want {
			if n != 0 {
				t.Errorf("%s: %d events of %s have no span", name, n, what)
			}
		}
		if roots != operations {
			t.Errorf("%s: %d spans of operations, there were %d", name, roots, operations)
		}
		for _, s := range spans {
			parent, known := spans[s.ParentSpanID().String()]
			if s.ParentSpanID().IsEmpty() {
				continue
			}
			if !known || parent.TraceID() != s.TraceID() || parent.StartTimestamp() > s.StartTimestamp() {
				t.Errorf("%s: %s hangs on nothing, on another trace, or on what begins later", name, s.Name())
			}
		}
	}
}

// TestOTLPAfter puts what takes place after the end of a span into one behind it.
func TestOTLPAfter(t *testing.T) {
	t.Parallel()
	b := newBench("s", "c", "c", lab.Node{Name: "app", Role: "caller"}, lab.Node{Name: "order-1", Role: "server"})
	b.event(lab.Event{Kind: lab.Start, Operation: "op-1", Node: "app"})
	b.send("app", "op-1/retry.1", 0)
	b.arrive("order-1", "op-1/retry.1", 0)
	b.answer("order-1", "op-1/retry.1", 1, 202)
	b.event(lab.Event{At: at(1), Kind: lab.Reply, Node: "app", Send: "op-1/retry.1", Status: 202, Operation: "op-1"})
	b.event(lab.Event{At: at(1), Kind: lab.Done, Operation: "op-1", Node: "app", Detail: "unknown"})
	b.commit("order-1", "op-1/retry.1", 12)
	b.event(lab.Event{At: at(13), Kind: lab.Reconciled, Operation: "op-1", Node: "app"})
	b.r.SettledMs = 13000
	var got []string
	for _, s := range traces(&lab.Document{}, &b.r) {
		line := s.Name + " " + s.Start[7:10] + "-" + s.End[7:10]
		for _, e := range s.Events {
			line += " " + e.Name + " " + e.Time[7:10]
		}
		got = append(got, line)
	}
	want := "order op-1 600-601, send retry.1 600-601, serve retry.1 600-601, after serve retry.1 601-612 commit 612, after order op-1 601-613 reconciled 613"
	if strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
}

// TestOTLPTree looks at whose child each span is, along a hop.
func TestOTLPTree(t *testing.T) {
	t.Parallel()
	b := newBench("s", "c", "c", lab.Node{Name: "app", Role: "caller"}, lab.Node{Name: "gateway", Role: "hop"}, lab.Node{Name: "order-1", Role: "server"})
	b.event(lab.Event{Kind: lab.Start, Operation: "op-1", Node: "app"})
	b.send("app", "op-1/retry.1", 0)
	b.arrive("gateway", "op-1/retry.1", 0)
	b.send("gateway", "op-1/retry.1/gw.1", 0)
	b.arrive("order-1", "op-1/retry.1/gw.1", 0)
	b.event(lab.Event{At: at(5), Kind: lab.Timeout, Node: "app", Send: "op-1/retry.1", Detail: "read"})
	b.commit("order-1", "op-1/retry.1/gw.1", 12)
	b.answer("order-1", "op-1/retry.1/gw.1", 12, 201)
	b.event(lab.Event{At: at(5), Kind: lab.Done, Operation: "op-1", Node: "app", Detail: "unknown"})
	b.r.SettledMs = 12000
	parents := map[string]string{}
	names := map[string]string{}
	for _, s := range traces(&lab.Document{}, &b.r) {
		names[s.SpanID] = s.node + " " + s.Name
		parents[s.node+" "+s.Name] = names[s.Parent]
		if s.Name == "send retry.1" && (s.Status == nil || s.Status.Message != "read time-out") {
			t.Errorf("the send that timed out has the status %+v", s.Status)
		}
		if s.Name == "serve gw.1" && (len(s.Events) != 1 || s.Events[0].Name != "commit") {
			t.Errorf("the order service's span has the events %+v", s.Events)
		}
		if !strings.HasSuffix(s.Start, "000000") {
			t.Errorf("%s begins at %s, which is no whole millisecond", s.Name, s.Start)
		}
	}
	for child, parent := range map[string]string{
		"app order op-1": "", "app send retry.1": "app order op-1", "gateway serve retry.1": "app send retry.1",
		"gateway send gw.1": "gateway serve retry.1", "order-1 serve gw.1": "gateway send gw.1",
	} {
		if got, ok := parents[child]; !ok || got != parent {
			t.Errorf("%q is a child of %q, not of %q", child, got, parent)
		}
	}
}
