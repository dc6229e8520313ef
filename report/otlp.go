package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"retrylab/internal/lab"
)

// OTLP is OpenTelemetry's protocol in its JSON encoding: one trace for each operation, with a span for the
// operation, for each send and for each arrival. The form is that of opentelemetry-proto 1.x, traces only: ids in
// hexadecimal, times in nanoseconds as decimal strings. Times are scenario time after a fixed date, and ids
// follow from what was run, so that the same run gives the same bytes.
var OTLP = Format{
	Name:  "otlp",
	Doc:   "OpenTelemetry traces as OTLP JSON: one trace per operation, a span per send, hop and arrival",
	Runs:  true,
	Write: writeOTLP,
}

// The kinds of spans and the codes of their status, as the protocol numbers them.
const (
	spanInternal = 1
	spanServer   = 2
	spanClient   = 3

	statusOK    = 1
	statusError = 2
)

type otlpTraces struct {
	ResourceSpans []otlpResource `json:"resourceSpans"`
}

type otlpResource struct {
	Resource struct {
		Attributes []otlpAttribute `json:"attributes"`
	} `json:"resource"`
	ScopeSpans []otlpScope `json:"scopeSpans"`
}

type otlpScope struct {
	Scope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	} `json:"scope"`
	Spans []*otlpSpan `json:"spans"`
}

type otlpSpan struct {
	TraceID    string          `json:"traceId"`
	SpanID     string          `json:"spanId"`
	Parent     string          `json:"parentSpanId,omitempty"`
	Name       string          `json:"name"`
	Kind       int             `json:"kind"`
	Start      string          `json:"startTimeUnixNano"`
	End        string          `json:"endTimeUnixNano"`
	Attributes []otlpAttribute `json:"attributes,omitempty"`
	Events     []otlpEvent     `json:"events,omitempty"`
	Status     *otlpStatus     `json:"status,omitempty"`

	node  string
	ended time.Duration // scenario time; of no meaning before End is set
	after *otlpSpan     // of what takes place once it has ended
}

type otlpEvent struct {
	Time       string          `json:"timeUnixNano"`
	Name       string          `json:"name"`
	Attributes []otlpAttribute `json:"attributes,omitempty"`
}

type otlpStatus struct {
	Code    int    `json:"code"`
	Message string `json:"message,omitempty"`
}

type otlpAttribute struct {
	Key   string    `json:"key"`
	Value otlpValue `json:"value"`
}

// otlpValue is a text or a whole number, which the protocol writes as text too.
type otlpValue struct {
	String *string `json:"stringValue,omitempty"`
	Int    *string `json:"intValue,omitempty"`
}

func otlpText(key, value string) otlpAttribute {
	return otlpAttribute{Key: key, Value: otlpValue{String: &value}}
}

func otlpInt(key string, n int64) otlpAttribute {
	text := strconv.FormatInt(n, 10)
	return otlpAttribute{Key: key, Value: otlpValue{Int: &text}}
}

func writeOTLP(w io.Writer, d *lab.Document, _ Options) error {
	var order []string // nodes, in the order in which they come
	spans := map[string][]*otlpSpan{}
	for i := range d.Results {
		for _, s := range traces(d, &d.Results[i]) {
			if spans[s.node] == nil {
				order = append(order, s.node)
			}
			spans[s.node] = append(spans[s.node], s)
		}
	}
	out := otlpTraces{ResourceSpans: []otlpResource{}}
	for _, node := range order {
		var r otlpResource
		r.Resource.Attributes = []otlpAttribute{otlpText("service.name", node)}
		var scope otlpScope
		scope.Scope.Name, scope.Scope.Version = d.Tool.Name, d.Tool.Version
		scope.Spans = spans[node]
		r.ScopeSpans = []otlpScope{scope}
		out.ResourceSpans = append(out.ResourceSpans, r)
	}
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(out); err != nil {
		return fmt.Errorf("encode traces: %w", err)
	}
	if _, err := w.Write(unescape(buf.Bytes())); err != nil {
		return fmt.Errorf("write traces: %w", err)
	}
	return nil
}

// epoch is the moment of scenario time zero in traces, unless the scenario begins at a time of day of its own.
var epoch = time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC)

// tracer makes the spans of one result.
type tracer struct {
	r     *lab.Result
	seed  string // what the ids of this result follow from
	begin time.Time
	spans []*otlpSpan
	ops   map[string]*otlpSpan
	sends map[[2]string]*otlpSpan // by node and path
	serve map[[2]string]*otlpSpan // arrivals, by node and path
}

// spanAttributes is how many attributes say what a span belongs to: those that every span begins with.
const spanAttributes = 4

// traces returns the spans of a result in the order in which they begin. What has no events has none.
func traces(d *lab.Document, r *lab.Result) []*otlpSpan {
	t := &tracer{
		r: r, seed: fmt.Sprint(d.Run.ID, "/", r.Scenario, "/", r.ID, "/", r.Seed), begin: epoch,
		ops: map[string]*otlpSpan{}, sends: map[[2]string]*otlpSpan{}, serve: map[[2]string]*otlpSpan{},
	}
	for _, info := range d.Scenarios {
		if at, err := time.Parse("15:04:05", info.Begin); err == nil && info.Name == r.Scenario {
			t.begin = epoch.Truncate(24 * time.Hour).Add(at.Sub(at.Truncate(24 * time.Hour)))
		}
	}
	for _, e := range r.Events {
		t.event(e)
	}
	for _, s := range t.spans {
		if s.End == "" {
			s.End = t.time(lab.FromMillis(r.SettledMs)) // nobody saw its end
		}
	}
	return t.spans
}

// time writes a moment of scenario time, in whole milliseconds as everywhere.
func (t *tracer) time(at time.Duration) string {
	return strconv.FormatInt(t.begin.Add(at.Round(time.Millisecond)).UnixNano(), 10)
}

// id is n bytes that follow from the run and a name, as it is written: bytes that are no UTF-8 are not.
func (t *tracer) id(n int, name ...string) string {
	text := []rune(t.seed + "\x00" + strings.Join(name, "\x00"))
	sum := sha256.Sum256([]byte(string(text)))
	return hex.EncodeToString(sum[:n])
}

// begins adds a span that begins with an event.
func (t *tracer) begins(e lab.Event, what, name string, kind int, parent *otlpSpan) *otlpSpan {
	s := &otlpSpan{
		TraceID: t.id(16, e.Operation), SpanID: t.id(8, what, e.Node, e.Send, e.Operation), Name: name, Kind: kind, node: e.Node,
		Start: t.time(e.At),
		Attributes: []otlpAttribute{
			otlpText("retrylab.scenario", t.r.Scenario), otlpText("retrylab.configuration", t.r.ID), otlpInt("retrylab.seed", t.r.Seed),
			otlpText("retrylab.operation", e.Operation),
		},
	}
	if e.Send != "" {
		s.Attributes = append(s.Attributes, otlpText("retrylab.send", e.Send))
	}
	if e.Target != "" {
		s.Attributes = append(s.Attributes, otlpText("server.address", e.Target))
	}
	if e.Key != "" {
		s.Attributes = append(s.Attributes, otlpText("retrylab.idempotency_key", e.Key))
	}
	if parent != nil {
		s.Parent = parent.SpanID
	}
	t.spans = append(t.spans, s)
	return s
}

// event puts an event where it belongs: it begins a span, ends one, or stands in one.
func (t *tracer) event(e lab.Event) {
	at := [2]string{e.Node, e.Send}
	switch e.Kind {
	case lab.Start:
		t.ops[e.Operation] = t.begins(e, "operation", "order "+e.Operation, spanInternal, nil)
	case lab.Done:
		if s := t.ops[e.Operation]; s != nil {
			t.ends(s, e)
			s.Attributes = append(s.Attributes, otlpText("retrylab.belief", e.Detail))
			s.Status = &otlpStatus{Code: statusOK}
			if e.Detail != string(lab.OK) {
				s.Status = &otlpStatus{Code: statusError, Message: "the caller believes: " + e.Detail}
			}
		}
	case lab.Send:
		t.sends[at] = t.begins(e, "send", "send "+lastTry(e.Send), spanClient, t.around(e))
	case lab.Reply, lab.Timeout, lab.Failure:
		s := t.sends[at]
		if s == nil || s.End != "" {
			t.note(t.around(e), e)
			return
		}
		t.ends(s, e)
		s.Attributes = append(s.Attributes, httpAttributes(e)...)
		s.Status = spanStatus(e)
	case lab.Arrival:
		t.serve[at] = t.begins(e, "arrival", "serve "+lastTry(e.Send), spanServer, t.sender(e))
	case lab.Answer, lab.ClientGone:
		s := t.serve[at]
		if s == nil {
			t.note(t.ops[e.Operation], e)
			return
		}
		if e.Kind == lab.ClientGone {
			t.note(s, e)
		}
		t.ends(s, e)
		if e.Kind == lab.Answer {
			s.Attributes = append(s.Attributes, httpAttributes(e)...)
			s.Status = spanStatus(e)
		}
	case lab.Settled:
	default:
		s := t.serve[at]
		if s == nil {
			s = t.around(e)
		}
		t.note(s, e)
	}
}

// around is the span in which somebody sends: the arrival at the machine whose path is the longest beginning of
// the send's, or the operation.
func (t *tracer) around(e lab.Event) *otlpSpan {
	for path := e.Send; ; {
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return t.ops[e.Operation]
		}
		path = path[:i]
		if s := t.serve[[2]string{e.Node, path}]; s != nil {
			return s
		}
	}
}

// sender is the span of the send that has arrived.
func (t *tracer) sender(e lab.Event) *otlpSpan {
	for _, n := range t.r.Nodes {
		if s := t.sends[[2]string{n.Name, e.Send}]; s != nil && n.Name != e.Node {
			return s
		}
	}
	return t.ops[e.Operation]
}

// ends ends a span with an event.
func (t *tracer) ends(s *otlpSpan, e lab.Event) { s.End, s.ended = t.time(e.At), e.At }

// later is the span of what takes place after another has ended, such as the work of a service that has answered
// before: it begins there, and ends with the last event that is put into it.
func (t *tracer) later(s *otlpSpan) *otlpSpan {
	if s.after == nil {
		s.after = &otlpSpan{
			TraceID: s.TraceID, SpanID: t.id(8, "after", s.SpanID), Parent: s.SpanID, Name: "after " + s.Name, Kind: spanInternal,
			Start: s.End, Attributes: s.Attributes[:spanAttributes:spanAttributes], node: s.node,
		}
		t.spans = append(t.spans, s.after)
	}
	return s.after
}

// note puts an event into a span, or where that has ended into one behind it.
func (t *tracer) note(s *otlpSpan, e lab.Event) {
	if s == nil {
		return
	}
	if s.End != "" && lab.Millis(e.At) > lab.Millis(s.ended) {
		s = t.later(s)
		t.ends(s, e)
	}
	out := otlpEvent{Time: t.time(e.At), Name: string(e.Kind)}
	if e.Detail != "" {
		out.Attributes = append(out.Attributes, otlpText("retrylab.detail", e.Detail))
	}
	if e.Key != "" {
		out.Attributes = append(out.Attributes, otlpText("retrylab.idempotency_key", e.Key))
	}
	if e.Order != 0 {
		out.Attributes = append(out.Attributes, otlpInt("retrylab.order", e.Order))
	}
	if e.Kind == lab.Retry {
		out.Attributes = append(out.Attributes, otlpInt("retrylab.wait_ms", lab.Millis(e.Wait)))
	}
	s.Events = append(s.Events, out)
}

// httpAttributes are the attributes of how a request ended, in the names of the semantic conventions for HTTP.
func httpAttributes(e lab.Event) []otlpAttribute {
	var out []otlpAttribute
	if e.Status > 0 {
		out = append(out, otlpInt("http.response.status_code", int64(e.Status)))
	}
	if e.Kind == lab.Timeout || e.Kind == lab.Failure {
		out = append(out, otlpText("error.type", e.Detail))
	}
	return out
}

func spanStatus(e lab.Event) *otlpStatus {
	switch {
	case e.Kind == lab.Timeout:
		return &otlpStatus{Code: statusError, Message: e.Detail + " time-out"}
	case e.Kind == lab.Failure:
		return &otlpStatus{Code: statusError, Message: e.Detail}
	case e.Status >= 500 || e.Status >= 400 && e.Kind == lab.Reply: // of a server's own span a 4xx is no error
		return &otlpStatus{Code: statusError, Message: strconv.Itoa(e.Status)}
	}
	return nil
}

// lastTry is the end of a path: feign-retryer.2.
func lastTry(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
