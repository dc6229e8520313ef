package report

import (
	"math"
	"slices"
	"strings"
	"testing"

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
						extra += strings.Count(m.title, "beyond the wanted one")
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
