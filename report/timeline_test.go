package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"retrylab/internal/lab"
)

// anyText is text that a file could hold.
func anyText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"", "one attempt", "feign retryer, 3", "注文サービス", "👩‍👩‍👧", "\x1b[2J", "a\nb", "caller.timeouts.read=5s"}),
		rapid.StringN(0, 30, -1),
	)
}

// anyEvent is an event that may make sense or not.
func anyEvent() *rapid.Generator[lab.Event] {
	return rapid.Custom(func(t *rapid.T) lab.Event {
		op := fmt.Sprintf("op-%d", rapid.IntRange(1, 5).Draw(t, "op"))
		e := lab.Event{
			At:     lab.FromMillis(rapid.Int64Range(0, 20_000).Draw(t, "at")),
			Kind:   rapid.SampledFrom(lab.Kinds).Draw(t, "kind"),
			Node:   rapid.SampledFrom([]string{"caller", "gateway", "注文サービス", "order-1", "order-2"}).Draw(t, "node"),
			Detail: rapid.SampledFrom([]string{"", "read", "reset", "done", "unknown", "ok", "reset@after-commit", "\x1b"}).Draw(t, "detail"),
			Status: rapid.SampledFrom([]int{0, 200, 201, 409, 503}).Draw(t, "status"),
		}
		if rapid.IntRange(0, 20).Draw(t, "late") == 0 {
			e.At += 25 * time.Hour
		}
		e.Operation = op
		e.Send = op
		for d := range rapid.IntRange(0, 3).Draw(t, "depth") {
			e.Send += fmt.Sprintf("/%s.%d", []string{"retry", "balancer", "client"}[d], rapid.IntRange(1, 3).Draw(t, "try"))
		}
		switch e.Kind {
		case lab.Start, lab.Done:
			e.Send, e.Node = "", ""
		case lab.Retry:
			e.Wait = lab.FromMillis(rapid.Int64Range(0, 1000).Draw(t, "wait"))
		}
		return e
	})
}

func anyResult() *rapid.Generator[lab.Result] {
	return rapid.Custom(func(t *rapid.T) lab.Result {
		r := lab.Result{
			Scenario:      rapid.SampledFrom([]string{"read-timeout", "注文", "x"}).Draw(t, "scenario"),
			Configuration: anyText().Draw(t, "configuration"),
			ID:            rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "id"),
			Seed:          rapid.Int64Range(1, 3).Draw(t, "seed"),
			Verdict:       lab.Verdict(rapid.IntRange(0, 3).Draw(t, "verdict")),
			Why:           anyText().Draw(t, "why"),
			Defect:        rapid.Bool().Draw(t, "defect"),
			Amplification: float64(rapid.IntRange(0, 100_000).Draw(t, "amplification")) / 1000,
			Reasons:       []string{},
			Nodes: []lab.Node{
				{Name: "caller", Role: "caller"}, {Name: "gateway", Role: "hop", Sends: 4, Arrivals: 4}, {Name: "order-1", Role: "server"},
			}[:rapid.IntRange(0, 3).Draw(t, "nodes")],
			Checks: []lab.Check{}, Orders: []lab.Effect{},
		}
		number := rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, 100_000_000))
		r.Counts = lab.Counts{
			Operations: number.Draw(t, "operations"), Sends: number.Draw(t, "sends"), Arrivals: number.Draw(t, "arrivals"),
			Effects: number.Draw(t, "effects"), Duplicates: number.Draw(t, "duplicates"), Lost: number.Draw(t, "lost"),
			Amount: rapid.Int64Range(-1_000_000, 1_000_000_000).Draw(t, "amount"),
		}
		r.Beliefs = lab.Beliefs{OK: number.Draw(t, "ok"), Failed: number.Draw(t, "failed"), Unknown: number.Draw(t, "unknown")}
		for range rapid.IntRange(0, 3).Draw(t, "checks") {
			r.Checks = append(r.Checks, lab.Check{
				Kind: rapid.SampledFrom([]string{"premise", "expect", "invariant"}).Draw(t, "check"), Name: anyText().Draw(t, "name"),
				Expected: anyText().Draw(t, "expected"), Actual: anyText().Draw(t, "actual"), Held: rapid.Bool().Draw(t, "held"),
				File: anyText().Draw(t, "file"), Line: rapid.IntRange(0, 100).Draw(t, "line"),
				Evidence: rapid.SliceOfN(anyText(), 1, 3).Draw(t, "evidence"),
			})
		}
		for i := range rapid.IntRange(0, 5).Draw(t, "orders") {
			r.Orders = append(r.Orders, lab.Effect{
				Order: int64(i + 1), Operation: "op-1", Send: anyText().Draw(t, "send"), Node: anyText().Draw(t, "by"), Key: anyText().Draw(t, "key"),
				Amount: rapid.Int64Range(0, 10_000).Draw(t, "minor"), CreatedMs: rapid.Int64Range(0, 100_000_000).Draw(t, "created"),
			})
		}
		r.Events = rapid.SliceOfN(anyEvent(), 0, 60).Draw(t, "events")
		if rapid.Bool().Draw(t, "elsewhere") {
			r.Store = anyStore().Draw(t, "store")
		}
		if rapid.Bool().Draw(t, "beside") {
			r.Keys = anyStore().Draw(t, "keys")
		}
		slices.SortStableFunc(r.Events, func(a, b lab.Event) int { return int(a.At - b.At) })
		return r
	})
}

func anyStore() *rapid.Generator[*lab.Store] {
	return rapid.Custom(func(t *rapid.T) *lab.Store {
		return &lab.Store{
			Engine: rapid.SampledFrom([]string{"postgres", "redis", "注文"}).Draw(t, "engine"), Version: anyText().Draw(t, "version"),
			Mode: anyText().Draw(t, "mode"), ChosenBy: anyText().Draw(t, "chosen by"), Counting: anyText().Draw(t, "sql"),
			Settings: rapid.MapOfN(anyText(), anyText(), 0, 3).Draw(t, "settings"),
		}
	})
}

func anyDocument() *rapid.Generator[*lab.Document] {
	return rapid.Custom(func(t *rapid.T) *lab.Document {
		d := document([]lab.ScenarioInfo{}, rapid.SliceOfN(anyResult(), 0, 4).Draw(t, "results")...)
		if d.Results == nil {
			d.Results = []lab.Result{}
		}
		for range rapid.IntRange(0, 2).Draw(t, "scenarios") {
			d.Scenarios = append(d.Scenarios, lab.ScenarioInfo{
				Name:  rapid.SampledFrom([]string{"read-timeout", "注文", "y"}).Draw(t, "name"),
				Title: anyText().Draw(t, "title"), Shown: anyText().Draw(t, "shown"), Next: anyText().Draw(t, "next"),
				Currency: rapid.SampledFrom([]string{"", "₹", "€"}).Draw(t, "currency"),
				Begin:    rapid.SampledFrom([]string{"", "14:08:33.512", "noon"}).Draw(t, "begin"),
				Baseline: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "baseline"),
				Focus:    rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "focus"),
			})
		}
		if rapid.Bool().Draw(t, "skip") {
			d.Skipped = append(d.Skipped, lab.Skip{Scenario: anyText().Draw(t, "skipped"), ID: anyText().Draw(t, "id"), Reason: anyText().Draw(t, "reason"), Missing: anyText().Draw(t, "missing")})
		}
		d.Run.Interrupted = rapid.Bool().Draw(t, "interrupted")
		return d
	})
}

func anyOptions() *rapid.Generator[Options] {
	return rapid.Custom(func(t *rapid.T) Options {
		return Options{
			Width:    rapid.IntRange(60, 200).Draw(t, "width"),
			Color:    rapid.Bool().Draw(t, "color"),
			Unicode:  rapid.Bool().Draw(t, "unicode"),
			Timeline: rapid.SampledFrom([]string{"always", "never", "auto", ""}).Draw(t, "timeline"),
			Rows:     rapid.Bool().Draw(t, "rows"),
			Wide:     rapid.Bool().Draw(t, "wide"),
			Verbose:  rapid.Bool().Draw(t, "verbose"),
		}
	})
}

func TestAnyDocument(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d, o := anyDocument().Draw(t, "document"), anyOptions().Draw(t, "options")
		if err := sound(d, o); err != nil {
			t.Fatal(err)
		}
		var first, again bytes.Buffer
		if err := JSON.Write(&first, d, o); err != nil {
			t.Fatal(err)
		}
		read := decode(t, first.String())
		if err := JSON.Write(&again, read, o); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first.String(), again.String()); diff != "" {
			t.Fatalf("-first +again:\n%s", diff)
		}
	})
}

// TestPictureTellsTheTruth checks what a picture is made of: every mark stands in the cell of its
// instant, cells never run against time, and no two tries of a lane overlap.
func TestPictureTellsTheTruth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := anyResult().Draw(t, "result")
		p := &picture{setting: newSetting(Options{Width: rapid.IntRange(60, 200).Draw(t, "width"), Unicode: true}), story: tell(&r)}
		p.lanes = p.chooseLanes()
		p.room = p.width - 20
		p.scale = p.chooseScale()
		if p.scale.cells > p.room {
			t.Fatalf("%d cells in %d columns", p.scale.cells, p.room)
		}
		if got := len(p.lanes); got > lanesDrawn {
			t.Errorf("%d lanes, want at most %d", got, lanesDrawn)
		}
		a := rapid.Int64Range(0, p.end).Draw(t, "a")
		b := rapid.Int64Range(a, p.end).Draw(t, "b")
		if p.scale.at(a) > p.scale.at(b) {
			t.Errorf("%d ms stands in cell %d, %d ms in %d", a, p.scale.at(a), b, p.scale.at(b))
		}
		for _, l := range p.lanes {
			tries := p.place(l)
			total := 0
			for i, try := range tries {
				if try.first != p.scale.at(try.from) || try.stop != p.scale.at(try.to) {
					t.Errorf("%d to %d ms stands in cells %d to %d", try.from, try.to, try.first, try.stop)
				}
				if i > 0 && (try.from < tries[i-1].to || try.stop <= tries[i-1].stop) {
					t.Errorf("try %d of lane %q does not follow the one before", i, l.name)
				}
				total += try.many
			}
			want := 0
			for _, s := range l.spans {
				want += s.count
			}
			if total != want {
				t.Errorf("lane %q shows %d spans, want %d", l.name, total, want)
			}
		}
	})
}

// TestPictureCounts checks that what is not drawn is counted: no send and no arrival gets lost on the
// way into the picture.
func TestPictureCounts(t *testing.T) {
	t.Parallel()
	for name, d := range documents() {
		for i := range d.Results {
			r := &d.Results[i]
			st := tell(r)
			p := &picture{setting: newSetting(Options{Unicode: true}), story: st}
			for _, crowd := range []bool{false, true} {
				sends, arrivals := 0, 0
				for _, sec := range p.sections(crowd) {
					for _, l := range sec {
						for _, s := range l.spans {
							switch l.kind {
							case tryLane:
								sends += s.count
							case servedLane, packedLane:
								arrivals += s.count
							}
						}
					}
				}
				wantSends, wantArrivals := 0, 0
				for _, e := range r.Events {
					switch {
					case e.Kind == lab.Send:
						wantSends++
					case e.Kind == lab.Arrival && !slices.ContainsFunc(st.hops, func(h *hop) bool { return h.name == e.Node }):
						wantArrivals++
					}
				}
				if sends != wantSends || arrivals != wantArrivals {
					t.Errorf("%s, %s: %d sends and %d arrivals, want %d and %d", name, r.ID, sends, arrivals, wantSends, wantArrivals)
				}
			}
		}
	}
}

// TestPictureKeepsTime reads the columns back from a picture whose scale is simple.
func TestPictureKeepsTime(t *testing.T) {
	t.Parallel()
	b := newBench("x", "x", "x")
	b.start("op-1", 0)
	b.try("caller", "op-1/retry.1", 0, 10, "read")
	b.try("caller", "op-1/retry.2", 20, 30, 503)
	b.serve("order-1", "op-1/retry.1", 0, 40)
	b.end("op-1", 30, lab.Failed, "503")
	r := b.result()
	for _, w := range []int{60, 80, 120, 200} {
		s := newSetting(Options{Width: w, Unicode: true})
		lines := s.timeline("x", "", &r)
		column := func(name, text string) int {
			for _, line := range lines {
				if i := strings.Index(line, text); strings.HasPrefix(line, "  "+name) && i >= 0 {
					return width(line[:i])
				}
			}
			t.Fatalf("no %q beside %s in\n%s", text, name, strings.Join(lines, "\n"))
			return 0
		}
		zero := column("caller", "├")
		unit := column("server", "●") - zero // 40 s
		for _, tt := range []struct {
			name, text string
			at         int // seconds
		}{{"time", "0s", 0}, {"caller", "✗", 10}, {"caller", "○", 30}, {"server", "├", 0}, {"time", "20s", 20}} {
			got, want := column(tt.name, tt.text)-zero, (unit*tt.at+20)/40
			if got != want {
				t.Errorf("width %d: %q stands %d columns on, want %d of %d\n%s", w, tt.text, got, want, unit, strings.Join(lines, "\n"))
			}
		}
	}
}
