package report

import (
	"slices"
	"strconv"

	"retrylab/internal/lab"
)

// A drawing is the picture of one result in lanes: what stands on which row, from when to when. It
// knows milliseconds and rows; where a millisecond lies is the axis's business, so that several
// drawings can share one.
type drawing struct {
	bands  []band
	bars   []bar
	arrows []flight
	marks  []mark
	height int
	end    int64
	left   []string // what is not drawn, in words
}

// A band is the lane of one party: the caller, a hop, a replica, the store. Distances are in pixels.
type band struct {
	name, role  string
	top, height int
	labels      []label // of its rows
	row         int     // the first
	headed      bool    // the name stands above the rows
}

type label struct {
	text string
	y    int
}

// barKind says what a bar stands for.
type barKind string

const (
	barSend  barKind = "send"  // a send is under way: its sender waits
	barPause barKind = "pause" // a layer waits before its next try
	barLayer barKind = "layer" // a try of an outer layer
	barWait  barKind = "wait"  // a request is at a machine that is not working on it
	barWork  barKind = "work"  // a request is being processed
	barDown  barKind = "down"  // a machine is dead
)

// A bar lasts.
type bar struct {
	kind     barKind
	from, to int64
	y, thick int
	text     string // on it
	number   string // which request it is
	title    string // what it is, in full
	event    int    // the event it begins with, −1 for none
}

// flightKind says what an arrow carries.
type flightKind string

const (
	flightRequest flightKind = "request"
	flightAnswer  flightKind = "answer"
	flightLost    flightKind = "lost" // a request or an answer that never gets there
	flightEffect  flightKind = "effect"
)

// A flight is an arrow: it goes from a row to another.
type flight struct {
	kind       flightKind
	from, to   int64
	fromY, toY int
}

// A mark is an instant.
type mark struct {
	kind  string // of glyphs
	at    int64
	y     int
	text  string // beside it
	short string // the same without the number of its request, "" where it has none
	loud  bool   // the text is said in bold
	room  int64  // where the next thing on its row begins; −1 for never
	plate bool   // the text lies on a bar that is dark
	title string
	count int // effects that it stands for, in the store
	event int
}

// glyph is the shape of a mark, with what it means.
type glyph struct {
	kind, word string
	path       string // SVG around 0,0
	filled     bool
}

// pictured are the marks in the order of the legend. No two differ by their colour alone.
var pictured = []glyph{
	{"commit", "order committed", "M0-5.5A5.5 5.5 0 1 1 0 5.5A5.5 5.5 0 1 1 0-5.5Z", true},
	{"extra", "order beyond the wanted one", "M0-9.5L9.5 0L0 9.5L-9.5 0ZM-.8-4V-.8H-4V.8H-.8V4H.8V.8H4V-.8H.8V-4Z", true},
	{"gone", "commit that is not there at the end", "M0-5A5 5 0 1 1 0 5A5 5 0 1 1 0-5ZM-5 5L5-5", false},
	{"entry", "entry in a ledger", "M-4.5-4.5H4.5V4.5H-4.5Z", true},
	{"ok", "answer 2xx", "M-5 0.5L-1.5 4L5-4", false},
	{"other", "other answer", "M0-4.5A4.5 4.5 0 1 1 0 4.5A4.5 4.5 0 1 1 0-4.5Z", false},
	{"timeout", "time-out", "M-4.5-4.5L4.5 4.5M-4.5 4.5L4.5-4.5", false},
	{"failure", "connection failed", "M-5-5H5V5H-5ZM-2.5-2.5L2.5 2.5M-2.5 2.5L2.5-2.5", false},
	{"fault", "injected fault", "M1.5-8L-4.5 1H-0.5L-1.5 8L4.5-1H0.5Z", true},
	{"won", "key claimed", "M0-5.5L5.5 4.5H-5.5Z", true},
	{"held", "key or lock not won", "M0-5.5L5.5 4.5H-5.5Z", false},
	{"look", "looked up", "M0-3A3 3 0 1 1 0 3A3 3 0 1 1 0-3ZM2.2 2.2L6 6", false},
	{"queue", "queue", "M-4.5-3.5H4.5M-4.5 0H4.5M-4.5 3.5H4.5", false},
	{"undo", "transaction given up", "M0-5A5 5 0 1 1 0 5A5 5 0 1 1 0-5ZM-2.5 0H2.5", false},
	{"deaf", "nobody waits for the answer", "M0-5A5 5 0 1 1 0 5A5 5 0 1 1 0-5ZM-3.5-3.5L3.5 3.5", false},
	{"crash", "machine died", "M0-8L2-2.5L7.5-4L4 0.5L7 5.5L1.5 3.5L-1.5 8L-2.5 3L-7.5 3.5L-4 0L-7-4.5L-2-2.5Z", true},
	{"restart", "machine is back", "M-4-5.5L5.5 0L-4 5.5Z", true},
	{"changed", "shared row changed", "M0-6L6 0L0 6L-6 0Z", false},
	{"asked", "asked what became of it", "M0-5.5A5.5 5.5 0 1 1 0 5.5A5.5 5.5 0 1 1 0-5.5ZM0-2.5V0.5M0 2.4V3", false},
	{"clock", "clock was set", "M0-5.5A5.5 5.5 0 1 1 0 5.5A5.5 5.5 0 1 1 0-5.5ZM0-3.5V0L2.5 1.5", false},
	{"try", "try of an outer layer, in an instant", "M-3-5.5H3V5.5H-3Z", false},
	{"done", "caller is done", "M-3.5 7V-6.5M-3.5-6.5L5-3.5L-3.5-0.5", false},
}

// markOf is the shape of an event, "" for one that is told by a bar, an arrow or another mark.
func markOf(e lab.Event) string {
	switch e.Kind {
	case lab.Commit:
		return "commit"
	case lab.Entered:
		return "entry"
	case lab.Reply:
		if e.Status/100 == 2 {
			return "ok"
		}
		return "other"
	case lab.Timeout:
		return "timeout"
	case lab.Failure:
		return "failure"
	case lab.Fault:
		return "fault"
	case lab.LookUp, lab.Read:
		return "look"
	case lab.Claim, lab.Lock:
		if e.Detail == "won" || e.Detail == "taken over" {
			return "won"
		}
		return "held"
	case lab.Queue:
		return "queue"
	case lab.Rollback:
		return "undo"
	case lab.ClientGone:
		return "deaf"
	case lab.Crash:
		return "crash"
	case lab.Restart:
		return "restart"
	case lab.Changed:
		return "changed"
	case lab.Question, lab.Learnt:
		return "asked"
	case lab.ClockJump:
		return "clock"
	case lab.Done, lab.Reconciled:
		return "done"
	}
	return ""
}

const (
	rowsDrawn  = 64  // rows of a drawing; what is more is merged where it is alike, else counted
	spansDrawn = 700 // spans of a drawing
	toldAtOnce = 4   // events of one mark that are told in full
	storeDrawn = 300 // marks of the store; what is more is merged where it is close together

	rowHigh   = 26
	denseHigh = 17 // of the rows of a band that has many
	denseFrom = 7
	barThick  = 14
	beside    = 13 // between marks of one row that share an instant
	headHigh  = 20 // of the name of a band that has names for its rows, too
	bandPad   = 7
	bandGap   = 20
	apart     = 16 // between what is too short to be seen as a bar
	shortest  = 6  // of a bar in which a layer's try can be seen

	// nominal is the width at which a drawing decides what there is room for. A page is this wide or
	// wider.
	nominal = 720
	letter  = 6.3 // width of a character of the small text
)

// A drafter makes a drawing.
type drafter struct {
	*setting
	*story
	r       *lab.Result
	d       drawing
	axis    *axis
	rowOf   map[route]int    // what is drawn for itself: the row of a request at the node that sent it or had it
	many    map[route]int    // requests that are drawn as one
	opRow   map[string]int   // the row at which an operation ends
	nodeAt  map[string]int   // a row of the machine
	dense   map[int]bool     // rows that are close to their neighbours
	free    map[[2]int64]int // marks at an instant of a row
	edges   map[int][]*span  // by row: what begins there
	extra   map[int]bool     // events with an effect beyond the wanted one
	absent  map[int]bool     // commits that nobody can read back
	decided map[route]string // what a layer made of the end of a try
	rows    []placedRow
}

// draft draws a result on an axis. It is a pure function of the two.
func draft(s *setting, r *lab.Result, a *axis) *drawing {
	f := &drafter{
		setting: s, story: tellBy(r, func(int64) int64 { return 1 }), r: r, axis: a,
		rowOf: map[route]int{}, many: map[route]int{}, opRow: map[string]int{}, nodeAt: map[string]int{}, dense: map[int]bool{},
		free: map[[2]int64]int{}, edges: map[int][]*span{},
	}
	f.effects()
	f.decided = map[route]string{}
	for _, e := range r.Events {
		if e.Kind == lab.Retry || e.Kind == lab.Stop {
			f.decided[route{e.Node, e.Path()}] = string(e.Kind) + ": " + f.text(e.Detail)
		}
	}
	f.d.end = f.end
	f.sample()
	f.layOut()
	for _, row := range f.rows {
		for _, s := range row.spans {
			f.bars(row, s)
		}
		for _, s := range row.busy {
			f.bars(placedRow{lane: row.lane, served: true, role: "hop", node: row.node, y: row.y}, s)
		}
	}
	f.instants()
	f.arrows()
	f.room()
	return &f.d
}

// effects finds the events that made an effect too many: the second and further of an operation that
// the database gave back, and the same in each ledger that has some.
func (f *drafter) effects() {
	f.extra, f.absent = map[int]bool{}, map[int]bool{}
	there := map[int64]bool{}
	for _, o := range f.r.Orders {
		there[o.Order] = true
	}
	over := map[string]bool{}
	for _, l := range f.r.Ledgers {
		over[l.Name] = l.Duplicates > 0 && !l.Note
	}
	had := map[[2]string]int{}
	for i, e := range f.r.Events {
		switch {
		case e.Kind == lab.Commit && !there[e.Order]:
			f.absent[i] = true
		case e.Kind == lab.Commit:
			had[[2]string{e.Operation, ""}]++
			f.extra[i] = had[[2]string{e.Operation, ""}] > 1
		case e.Kind == lab.Entered && over[e.Detail]:
			had[[2]string{e.Operation, e.Detail}]++
			f.extra[i] = had[[2]string{e.Operation, e.Detail}] > 1
		}
	}
}

// sample leaves out operations where there are more than a drawing has rows for: of those that stay, evenly spread
// over all, every request is drawn.
func (f *drafter) sample() {
	if len(f.ops) < 2 || rowsOf(f.parties(true)) <= rowsDrawn {
		return
	}
	whole := *f.story
	groups := slices.DeleteFunc((&picture{setting: f.setting, story: f.story}).operationLanes(true), func(l lane) bool { return len(l.alike) == 0 })
	for keep := min(len(groups)-1, rowsDrawn/2); keep >= 4; keep = keep * 2 / 3 {
		stays := map[string]bool{}
		part := whole
		part.ops = nil
		for i := range keep {
			for _, o := range groups[i*len(groups)/keep].alike {
				stays[o.id] = true
			}
		}
		for _, o := range whole.ops {
			if stays[o.id] {
				part.ops = append(part.ops, o)
			}
		}
		of := func(spans []*span) (out []*span) {
			for _, s := range spans {
				if stays[s.op] {
					out = append(out, s)
				}
			}
			return out
		}
		part.sends, part.served, part.hops = of(whole.sends), of(whole.served), nil
		for _, h := range whole.hops {
			part.hops = append(part.hops, &hop{name: h.name, arrivals: of(h.arrivals), sends: of(h.sends)})
		}
		f.story = &part
		if rowsOf(f.parties(true)) <= rowsDrawn {
			break
		}
	}
	f.d.left = append(f.d.left, strconv.Itoa(len(f.story.ops))+" of "+strconv.Itoa(len(whole.ops))+" operations are drawn, evenly spread, with all their requests; the store has every order")
}
