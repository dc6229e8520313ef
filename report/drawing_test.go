package report

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retrylab/internal/lab"
)

func TestAxis(t *testing.T) {
	t.Parallel()
	whole := &axis{end: 24_000, kept: 24_000}
	for ms, want := range map[int64]float64{-1: 0, 0: 0, 6000: 0.25, 24_000: 1, 30_000: 1} {
		if got := whole.at(ms); math.Abs(got-want) > 1e-9 {
			t.Errorf("at(%d) = %v, want %v", ms, got, want)
		}
	}
	if got := (&axis{}).at(5); got != 0 {
		t.Errorf("an axis of no time puts 5 ms at %v", got)
	}

	r := documents()["expired-key"].Results[0]
	a := newAxis([]*lab.Result{&r})
	if diff := cmp.Diff([]idle{{200, 90_000_000}}, a.cuts, cmp.AllowUnexported(idle{})); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	before, after := a.at(200)-a.at(0), a.at(90_000_200)-a.at(90_000_000)
	if math.Abs(before-after) > 1e-9 {
		t.Errorf("0.2 s are %v long before the cut and %v behind it", before, after)
	}
	if got := a.at(90_000_000) - a.at(200); math.Abs(got-cutWide) > 1e-9 {
		t.Errorf("the cut is %v wide, want %v", got, cutWide)
	}
	if got := a.at(90_000_200); math.Abs(got-1) > 1e-9 {
		t.Errorf("the end is at %v, want 1", got)
	}
}

// TestAxisNeverTurns checks that later is never further left, and that ticks stand at their instants.
func TestAxisNeverTurns(t *testing.T) {
	t.Parallel()
	for name, d := range documents() {
		for _, b := range blocksOf(d) {
			a := newAxis(b.results)
			last := -1.0
			for i := range 1000 {
				x := a.at(a.end * int64(i) / 999)
				if x < last || x < 0 || x > 1+1e-9 {
					t.Fatalf("%s: %d ms stand at %v, after %v", name, a.end*int64(i)/999, x, last)
				}
				last = x
			}
			for _, tick := range a.ticks() {
				if got := a.at(tick.ms); math.Abs(got-tick.x) > 1e-9 {
					t.Errorf("%s: the tick of %d ms stands at %v, not %v", name, tick.ms, tick.x, got)
				}
			}
		}
	}
}

func drawingOf(r *lab.Result) *drawing {
	return draft(newSetting(Options{Unicode: true}), r, newAxis([]*lab.Result{r}))
}

// TestDraft shows what is drawn of read-timeout, and when.
func TestDraft(t *testing.T) {
	t.Parallel()
	r := readTimeout()[1]
	d := drawingOf(&r)
	var bands, bars, arrows, marks []string
	for _, b := range d.bands {
		bands = append(bands, b.role+" "+b.name)
	}
	for _, b := range d.bars {
		bars = append(bars, string(b.kind)+" "+clock(b.from)+"–"+clock(b.to)+" "+b.text)
	}
	for _, a := range d.arrows {
		arrows = append(arrows, string(a.kind)+" "+clock(a.from))
	}
	for _, m := range d.marks {
		marks = append(marks, clock(m.at)+" "+m.kind+" "+m.text)
	}
	if diff := cmp.Diff([]string{"caller caller", "server order-1", "store store"}, bands); diff != "" {
		t.Errorf("bands: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"send 0s–5s #1", "send 6s–11s #2", "send 12s–17s #3", "wait 0s–12s #1", "wait 6s–18s #2", "wait 12s–24s #3",
	}, bars); diff != "" {
		t.Errorf("bars: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"request 0s", "request 6s", "request 12s", "lost 12s", "effect 12s", "lost 18s", "effect 18s", "lost 24s", "effect 24s",
	}, arrows); diff != "" {
		t.Errorf("arrows: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"5s timeout read time-out", "11s timeout read time-out", "12s commit ", "12s commit order 1", "12s deaf ",
		"17s timeout read time-out", "17s done believes: unknown", "18s extra ", "18s extra order 2, too many", "18s deaf ",
		"24s extra 2 too many", "24s extra order 3, too many", "24s deaf ",
	}, marks); diff != "" {
		t.Errorf("marks: -want +got:\n%s", diff)
	}
}

// TestDraftSound checks of every document what is true of any drawing: nothing lies outside of it, no
// mark is moved along the time, the effects beyond the wanted ones are as many as were counted, and it is
// the same each time.
func TestDraftSound(t *testing.T) {
	t.Parallel()
	for name, d := range documents() {
		for i := range d.Results {
			r := &d.Results[i]
			if len(r.Events) == 0 {
				continue
			}
			dr := drawingOf(r)
			if diff := cmp.Diff(dr, drawingOf(r), cmp.AllowUnexported(drawing{}, band{}, label{}, bar{}, flight{}, mark{})); diff != "" {
				t.Errorf("%s: drawn twice, it differs:\n%s", name, diff)
			}
			extra := 0
			for _, m := range dr.marks {
				if m.y < 0 || m.y > dr.height {
					t.Errorf("%s: a mark at %d of %d", name, m.y, dr.height)
				}
				if m.event >= 0 && m.at != lab.Millis(r.Events[m.event].At) {
					t.Errorf("%s: %s is drawn at %d ms", name, m.title, m.at)
				}
				if m.kind == "extra" {
					if strings.Contains(m.title, "commit") && m.y > dr.bands[len(dr.bands)-1].top {
						extra += m.count
					}
					if m.event < 0 || !strings.Contains(m.title, "beyond the wanted one") {
						t.Errorf("%s: an effect too many is not called so: %q", name, m.title)
					}
				}
			}
			if len(dr.left) == 0 && extra != r.Counts.Duplicates && name != "hostile" && r.Counts.Operations == 1 {
				t.Errorf("%s: %d effects too many are drawn, want %d", name, extra, r.Counts.Duplicates)
			}
			for _, b := range dr.bars {
				if b.to < b.from || b.y < 0 || b.y > dr.height {
					t.Errorf("%s: bar %+v", name, b)
				}
			}
			for _, a := range dr.arrows {
				if min(a.fromY, a.toY) < -bandGap || max(a.fromY, a.toY) > dr.height+bandGap {
					t.Errorf("%s: arrow %+v", name, a)
				}
			}
		}
	}
}

// TestEveryKindIsPictured keeps the legend complete.
func TestEveryKindIsPictured(t *testing.T) {
	t.Parallel()
	for _, kind := range lab.Kinds {
		for _, e := range []lab.Event{{Kind: kind}, {Kind: kind, Detail: "won"}, {Kind: kind, Status: 201}} {
			name := markOf(e)
			if name != "" && !slices.ContainsFunc(pictured, func(g glyph) bool { return g.kind == name }) {
				t.Errorf("%s is marked with %q, which has no shape", kind, name)
			}
		}
	}
	for i, g := range pictured {
		for _, other := range pictured[:i] {
			if g.path == other.path && g.filled == other.filled {
				t.Errorf("%s and %s look the same", g.kind, other.kind)
			}
		}
	}
}

// TestDraftCrowd draws what is far too much, and says what is left out.
func TestDraftCrowd(t *testing.T) {
	t.Parallel()
	r := crowd()
	d := drawingOf(&r)
	if len(d.left) == 0 {
		t.Error("nothing is left out of 200 operations")
	}
	if n := len(d.bars); n > 2*spansDrawn {
		t.Errorf("%d bars are drawn", n)
	}
}

// sent is a result of one operation whose sends have these paths, one second each and one after the other.
func sent(paths ...string) *lab.Result {
	b := newBench("layers", "layers", "layers")
	b.start("op-1", 0)
	for i, path := range paths {
		t := float64(2 * i)
		b.try("caller", path, t, t+1, "read")
		b.serve("order-1", path, t, t+1)
	}
	b.end("op-1", float64(2*len(paths)), lab.Unknown, "read timeout")
	r := b.result()
	return &r
}

// TestDraftLayers looks for a lane of each layer of a caller, with its tries and the pauses between them.
func TestDraftLayers(t *testing.T) {
	t.Parallel()
	names := func(r *lab.Result) (out []string) {
		for _, l := range drawingOf(r).bands[0].labels {
			out = append(out, l.text)
		}
		return out
	}
	r := sent("op-1/framework.1/client.1/transport.1", "op-1/framework.1/client.1/transport.2", "op-1/framework.1/client.2/transport.1", "op-1/framework.2/client.1/transport.1")
	r.Events = append(r.Events, lab.Event{At: 5 * time.Second, Kind: lab.Retry, Operation: "op-1", Send: "op-1/framework.1", Node: "caller", Wait: time.Second, Detail: "try 2 of 2"})
	if diff := cmp.Diff([]string{"framework", "client", "transport"}, names(r)); diff != "" {
		t.Errorf("lanes: -want +got:\n%s", diff)
	}
	d := drawingOf(r)
	rows := map[int][]string{}
	for _, b := range d.bars {
		if b.kind == barLayer || b.kind == barPause {
			rows[b.y] = append(rows[b.y], string(b.kind)+" "+clock(b.from)+"–"+clock(b.to)+" "+b.text)
		}
	}
	for i, want := range [][]string{{"layer 0s–5s 1", "layer 6s–7s 2", "pause 5s–6s "}, {"layer 0s–3s 1", "layer 4s–5s 2", "layer 6s–7s 1"}} {
		if diff := cmp.Diff(want, rows[d.bands[0].labels[i].y]); diff != "" {
			t.Errorf("tries of layer %d: -want +got:\n%s", i, diff)
		}
	}
	// A try that is one send, too, is one of its layer.
	if diff := cmp.Diff([]string{"framework", "client"}, names(sent("op-1/framework.1/client.1", "op-1/framework.2/client.1"))); diff != "" {
		t.Errorf("lanes: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"client"}, names(sent("op-1/client.1", "op-1/client.2"))); diff != "" {
		t.Errorf("lanes: -want +got:\n%s", diff)
	}
	if got := names(sent("op-1")); len(got) > 0 {
		t.Errorf("a caller without layers has lanes of %v", got)
	}
}

// TestDraftHedge checks that a pause ends with the try that it was for, also where it was over already.
func TestDraftHedge(t *testing.T) {
	t.Parallel()
	r := sent("op-1/hedge.1", "op-1/hedge.2")
	r.Events = append(r.Events, lab.Event{At: 2 * time.Second, Kind: lab.Retry, Operation: "op-1", Send: "op-1/hedge.1", Node: "caller", Wait: 2 * time.Second})
	for _, b := range drawingOf(r).bars {
		if b.kind == barPause {
			t.Errorf("a pause from %d to %d ms is drawn", b.from, b.to)
		}
	}
}

// TestDraftSample draws some of many operations that differ, first and last, and counts all of their orders.
func TestDraftSample(t *testing.T) {
	t.Parallel()
	r := large(3000).Results[0]
	d := drawingOf(&r)
	labels := d.bands[0].labels
	if n := len(labels); n < 4 || n > rowsDrawn || labels[0].text != "op-1" || labels[n-1].text == "op-"+strconv.Itoa(n) {
		t.Errorf("the operations that are drawn are %v", labels)
	}
	if !slices.ContainsFunc(d.left, func(s string) bool { return strings.Contains(s, "operations are drawn, evenly spread") }) {
		t.Errorf("what is left out is said as %q", d.left)
	}
	orders := 0
	for _, m := range d.marks {
		orders += m.count
	}
	if want := len(r.Orders); orders != want {
		t.Errorf("%d orders are in the store, want %d", orders, want)
	}
}
