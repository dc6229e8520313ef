package report

import (
	"context"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"retrylab/internal/browsertest"
	"retrylab/internal/lab"
)

// watched collects what a page does that it must not.
type watched struct {
	mu       sync.Mutex
	requests []string
	errors   []string
}

// watch listens to a tab from now on.
func watch(t *testing.T, tab context.Context) *watched {
	t.Helper()
	w := &watched{}
	if err := chromedp.Listen(tab, w.see); err != nil {
		t.Fatal(err)
	}
	empty := cdp.Empty{}
	for _, cmd := range []cdp.Command[cdp.Empty, cdp.Empty]{runtime.Enable, log.Enable} {
		if _, err := chromedp.Call(tab, cmd, empty); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := chromedp.Call(tab, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *watched) see(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		w.requests = append(w.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		w.errors = append(w.errors, e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		w.errors = append(w.errors, "the console is written to: "+string(e.Type))
	case *log.EventEntryAdded:
		w.errors = append(w.errors, e.Entry.Text)
	}
}

// ask evaluates an expression in a page.
func ask[T any](t *testing.T, tab context.Context, expression string) T {
	t.Helper()
	got, err := chromedp.Run(tab, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return got
}

// place is where the browser has drawn an event.
type place struct {
	Figure int     `json:"figure"`
	Event  int     `json:"event"`
	T      float64 `json:"t"`
	X      float64 `json:"x"`
	From   float64 `json:"from"` // of the axis
	Wide   float64 `json:"wide"`
}

const places = `document.querySelectorAll("details").forEach((d) => { d.open = true; });
[...document.querySelectorAll("figure")].flatMap((figure, i) => {
	const svg = figure.querySelector(".lanes:not(.paper) svg").getBoundingClientRect();
	return [...figure.querySelectorAll(".m")].map((m) => {
		const use = m.querySelector("use");
		return {figure: i, event: +m.dataset.e, t: +m.dataset.t, x: svg.left + use.x.baseVal.value, from: svg.left, wide: svg.width};
	});
})`

// TestBrowser opens pages as a user would, in both themes and two widths.
func TestBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long, above all with the race detector")
	}
	t.Parallel()
	ctx := browsertest.Start(t)
	for _, name := range []string{"read-timeout", "verdicts", "hostile", "suite", "recovery", "three-layers", "expired-key", "retry-storm"} {
		d := documents()[name]
		for _, theme := range []string{"light", "dark"} {
			for _, wide := range []int64{1280, 360} {
				if (wide > 500 || theme == "dark") && name != "read-timeout" && name != "hostile" {
					continue // the others are looked at where room is short
				}
				tab, end := chromedp.NewContext(ctx)
				w := watch(t, tab)
				address := browsertest.Save(t, printed(t, HTML, d, Options{}))
				browsertest.Open(t, tab, address, browsertest.View{Theme: theme, Width: wide, Height: 800})
				ground := ask[string](t, tab, `getComputedStyle(document.body).backgroundColor`)
				overflow := ask[int](t, tab, `document.documentElement.scrollWidth - document.documentElement.clientWidth`)
				drawn := ask[[]place](t, tab, places)
				if overflow > 0 {
					t.Errorf("%s: at a width of %d the page is %d pixels too wide", name, wide, overflow)
				}
				if light := ground == "rgb(251, 250, 248)"; light != (theme == "light") {
					t.Errorf("%s: the ground of the %s theme is %s", name, theme, ground)
				}
				w.mu.Lock()
				for _, r := range w.requests {
					if r != address && r != "data:," {
						t.Errorf("%s: the page asks for %s", name, r)
					}
				}
				for _, e := range w.errors {
					t.Errorf("%s: %s", name, e)
				}
				w.mu.Unlock()
				inPlace(t, name, d, drawn)
				end()
			}
		}
	}
}

// inPlace checks that marks stand at the instants that the JSON gives their events.
func inPlace(t *testing.T, name string, d *lab.Document, drawn []place) {
	t.Helper()
	if name == "suite" {
		return // which figure is whose is known of one scenario
	}
	d = decode(t, printed(t, JSON, d, Options{}))
	b := blocksOf(d)[0]
	pictures := b.pictured(0)
	a := newAxis(pictures)
	for _, p := range drawn {
		e := pictures[p.Figure].Events[p.Event]
		if ms := lab.Millis(e.At); ms != int64(p.T) {
			t.Errorf("%s: event %d is drawn at %v ms, the JSON says %d", name, p.Event, p.T, ms)
		}
		want := p.From + p.Wide*a.at(lab.Millis(e.At))
		if len(a.cuts) == 0 && a.end > 0 {
			want = p.From + p.Wide*float64(lab.Millis(e.At))/float64(a.end)
		}
		if math.Abs(want-p.X) > 0.5 {
			t.Errorf("%s: the %s at %d ms stands at %.1f, want %.1f", name, e.Kind, lab.Millis(e.At), p.X, want)
		}
	}
	if len(drawn) == 0 && name != "recovery" {
		t.Errorf("%s: no mark is drawn", name)
	}
}

// TestBrowserKeyboard walks through the events of a timeline with the keyboard, and stretches the time.
func TestBrowserKeyboard(t *testing.T) {
	t.Parallel()
	tab, end := chromedp.NewContext(browsertest.Start(t))
	defer end()
	browsertest.Open(t, tab, browsertest.Save(t, printed(t, HTML, documents()["read-timeout"], Options{})), browsertest.View{Theme: "light", Width: 1280, Height: 800})
	const wide = `document.querySelector(".plot > svg").getBoundingClientRect().width`
	press := func(key string) {
		t.Helper()
		if err := chromedp.Do(tab, chromedp.KeyEvent(key)); err != nil {
			t.Fatal(err)
		}
	}
	const at, panel = `document.activeElement.dataset.t`, `document.getElementById("panel").textContent`
	ask[any](t, tab, `document.querySelector('figure .e[tabindex="0"]').focus()`)
	press(kb.ArrowLeft) // left of the first there is nothing
	before, first := ask[string](t, tab, at), ask[string](t, tab, panel)
	press(kb.End)
	after, second := ask[string](t, tab, at), ask[string](t, tab, panel)
	press(kb.Escape)
	hidden := ask[bool](t, tab, `document.getElementById("panel").hidden`)
	once := ask[float64](t, tab, wide)
	ask[any](t, tab, `document.querySelector('.zoom input[value="4"]').click()`)
	wider := ask[float64](t, tab, wide)
	if before != "0" || after != "12000" {
		t.Errorf("the keys lead from %s ms to %s ms, want 0 and 12000", before, after)
	}
	if !strings.Contains(first, "send #1 is under way") || second == first || !hidden {
		t.Errorf("the panel says %q, then %q, and is hidden: %v", first, second, hidden)
	}
	if wider < 3.5*once {
		t.Errorf("stretched to 4× the time is %v wide, at first %v", wider, once)
	}
}

// TestBrowserTelephone checks that at the width of a telephone the name, the orders and the verdict of every row
// are seen without scrolling sideways, and that the table is one still to whoever hears it.
func TestBrowserTelephone(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long, above all with the race detector")
	}
	t.Parallel()
	tab, end := chromedp.NewContext(browsertest.Start(t))
	defer end()
	browsertest.Open(t, tab, browsertest.Save(t, printed(t, HTML, documents()["read-timeout"], Options{})), browsertest.View{Theme: "light", Width: 390, Height: 800})
	type box struct {
		Text  string  `json:"text"`
		Left  float64 `json:"left"`
		Right float64 `json:"right"`
		Tall  float64 `json:"tall"`
	}
	cells := ask[[]box](t, tab, `[...document.querySelectorAll('table.stacks tbody tr')].flatMap((row) =>
		[row.querySelector("th"), row.querySelector('td[data-head="orders"]'), row.lastElementChild].map((cell) => {
			const range = document.createRange();
			range.selectNodeContents(cell);
			const r = range.getBoundingClientRect();
			return {text: cell.textContent, left: r.left, right: r.right, tall: r.height};
		}))`)
	if want := 3 * len(documents()["read-timeout"].Results); len(cells) != want {
		t.Errorf("%d cells, want %d", len(cells), want)
	}
	for _, c := range cells {
		if c.Left < 0 || c.Right > 390 || c.Tall == 0 {
			t.Errorf("%q stands from %.0f to %.0f, of 390 pixels", c.Text, c.Left, c.Right)
		}
	}
	tree, err := chromedp.Call(tab, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]int{}
	for _, n := range tree.Nodes {
		if !n.Ignored && n.Role != nil {
			roles[string(n.Role.Value)]++
		}
	}
	rows := len(documents()["read-timeout"].Results)
	for role, least := range map[string]int{`"table"`: 1, `"row"`: 1 + rows, `"rowheader"`: rows, `"columnheader"`: 8, `"cell"`: 7 * rows} {
		if roles[role] < least {
			t.Errorf("%d of the role %s, want %d", roles[role], role, least)
		}
	}
}

// TestBrowserPanel checks that what is said of an event stands within the window and not on the event, wherever the
// event is, and that Escape puts it away.
func TestBrowserPanel(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long, above all with the race detector")
	}
	t.Parallel()
	ctx := browsertest.Start(t)
	for _, wide := range []int64{1280, 390} {
		tab, end := chromedp.NewContext(ctx)
		browsertest.Open(t, tab, browsertest.Save(t, printed(t, HTML, documents()["read-timeout"], Options{})), browsertest.View{Theme: "dark", Width: wide, Height: 700})
		faults := ask[[]string](t, tab, `(() => {
			const panel = document.getElementById("panel");
			const faults = [];
			const look = (how, g) => {
				const p = panel.getBoundingClientRect();
				const e = g.querySelector("use, rect:not(.plate), line").getBoundingClientRect();
				const what = how + " " + g.getAttribute("aria-label") + ": ";
				if (panel.hidden || !panel.textContent) faults.push(what + "nothing is said");
				if (p.left < 0 || p.top < 0 || p.right > innerWidth || p.bottom > innerHeight) faults.push(what + "outside of the window");
				if (p.left < e.right && p.right > e.left && p.top < e.bottom && p.bottom > e.top) faults.push(what + "on the event");
				if (g.querySelector("title")) faults.push(what + "said twice");
			};
			const all = [...document.querySelectorAll(".e")];
			for (const g of all) {
				for (const block of ["start", "end"]) {
					g.querySelector("use, rect, line").scrollIntoView({block, inline: "center"});
					g.focus({preventScroll: true});
					look("focus", g);
					g.blur();
					const e = g.querySelector("use, rect, line").getBoundingClientRect();
					const x = Math.max(1, Math.min(innerWidth - 1, e.right));
					g.dispatchEvent(new PointerEvent("pointerover", {bubbles: true, clientX: x, clientY: e.top}));
					look("pointer", g);
					document.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape"}));
					if (!panel.hidden) faults.push("Escape leaves it there");
				}
			}
			if (all.length < 30) faults.push(all.length + " events");
			return faults;
		})()`)
		for _, f := range faults[:min(len(faults), 8)] {
			t.Errorf("%d wide: %s", wide, f)
		}
		end()
	}
}
