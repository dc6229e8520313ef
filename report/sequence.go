package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"retrylab/internal/lab"
)

// Mermaid is the sequence diagram that GitHub, GitLab and many editors draw.
// Syntax: https://mermaid.js.org/syntax/sequenceDiagram.html
var Mermaid = Format{
	Name:  "mermaid",
	Doc:   "a Mermaid sequence diagram of the configuration that matters; of several scenarios, Markdown with one each",
	Runs:  true,
	Write: writeMermaid,
}

// PlantUML is the same diagram for PlantUML: one for each scenario.
// Syntax: https://plantuml.com/sequence-diagram
var PlantUML = Format{
	Name:  "plantuml",
	Doc:   "a PlantUML sequence diagram of the configuration that matters",
	Runs:  true,
	Write: writePlantUML,
}

// A diagram that is longer than a page or two is read by nobody. What is left out is counted in it.
const (
	sequenceEvents  = 150 // events that are drawn before further operations are left out
	sequenceSteps   = 120 // arrows and notes
	sequenceParties = 16
	sequenceText    = 100 // columns of a line
	sequenceName    = 40  // columns of a party's name
)

// arrow says what a step of a sequence is.
type arrow int

const (
	note        arrow = iota // words over the parties from … to
	request                  // it arrived
	answer                   // it reached the sender
	lostRequest              // it reached nobody
	lostAnswer               // it reached nobody
)

// A step is one line of a sequence diagram, or one note with its lines.
type step struct {
	arrow    arrow
	from, to int // parties
	at       int64
	lines    []string
}

// A sequence is what a sequence diagram of one result says, for whichever language writes it down.
// Its texts are as they were recorded: each language escapes them.
type sequence struct {
	title   string
	parties []string
	steps   []step
}

// A scribe makes a sequence of events as they come.
type scribe struct {
	sequence
	index   map[string]int      // of the parties
	targets map[route]string    // by sender: whom a send or a question was for
	senders map[route]string    // by target: who sent it
	arrived map[route]bool      // by target
	replied map[route]bool      // by target: its answer reached the sender
	told    map[route]int64     // by sender: the order that was in the answer
	lost    map[route]bool      // by target: it is drawn already that no answer came
	open    map[string][]string // by path: who has sent it so far
	orders  map[string]int      // committed, by operation
	several bool                // operations
	grain   int64               // see grainOf
	cut     int                 // events for which there was no room
}

// sequenceOf reads the events of a result of the named scenario.
func sequenceOf(scenario string, r *lab.Result) *sequence {
	end := int64(0)
	for _, e := range r.Events {
		end = max(end, lab.Millis(e.At))
	}
	s := &scribe{
		sequence: sequence{title: scenario + ": " + cmp.Or(r.Configuration, r.ID)},
		index:    make(map[string]int), targets: make(map[route]string), senders: make(map[route]string),
		arrived: make(map[route]bool), replied: make(map[route]bool), told: make(map[route]int64),
		lost: make(map[route]bool), open: make(map[string][]string), orders: make(map[string]int), grain: grainOf(end),
	}
	for _, n := range r.Nodes {
		s.party(n.Name)
	}
	if len(s.parties) == 0 {
		s.party("caller")
	}
	drawn, all := chosenOperations(r)
	s.several = all > 1
	switch {
	case r.Simulated:
		s.over("simulated: there are counts, and no events to draw")
	case len(r.Events) == 0:
		s.over("no event was recorded")
	case len(drawn) < all:
		s.over(fmt.Sprintf("%d of %d operations drawn, those with the most orders", len(drawn), all))
	}
	for _, e := range r.Events {
		s.foresee(e)
	}
	for _, e := range r.Events {
		if e.Operation != "" && !drawn[e.Operation] {
			continue
		}
		if len(s.steps) >= sequenceSteps {
			s.cut++
			continue
		}
		s.event(e)
	}
	if s.cut > 0 {
		s.over(lab.Count(s.cut, "more event") + " left out; the JSON has them all")
	}
	if len(r.Events) > 0 && !r.Uncounted {
		s.over(fmt.Sprintf("%s nothing more can happen: %s, %d wanted",
			clock(round(end, s.grain)), lab.Count(r.Counts.Effects, "order"), r.Counts.Wanted))
	}
	return &s.sequence
}

// chosenOperations chooses whole operations as long as there is room for their events, those with the
// most orders first, and says how many there are.
func chosenOperations(r *lab.Result) (chosen map[string]bool, all int) {
	events, orders := make(map[string]int), make(map[string]int)
	var ids []string
	room := sequenceEvents
	for _, e := range r.Events {
		switch {
		case e.Operation == "":
			room--
			continue
		case events[e.Operation] == 0:
			ids = append(ids, e.Operation)
		case e.Kind == lab.Commit:
			orders[e.Operation]++
		}
		events[e.Operation]++
	}
	slices.SortStableFunc(ids, func(a, b string) int { return orders[b] - orders[a] })
	chosen = make(map[string]bool)
	for _, id := range ids {
		if room -= events[id]; room < 0 && len(chosen) > 0 {
			break
		}
		chosen[id] = true
	}
	return chosen, len(ids)
}

// party returns the place of a machine or a job; one that is new is the last. There is none where the
// diagram has no room for it.
func (s *scribe) party(name string) (i int, ok bool) {
	if name == "" {
		return 0, true // of nobody's in particular: it is with the caller
	}
	i, ok = s.index[name]
	if !ok && len(s.parties) < sequenceParties {
		i, ok = len(s.parties), true
		s.index[name] = i
		s.parties = append(s.parties, name)
	}
	return i, ok
}

// foresee notes what must be known of a request before it is drawn: whether it arrives, and whether
// its answer does.
func (s *scribe) foresee(e lab.Event) {
	k := route{e.Node, e.Path()}
	switch e.Kind {
	case lab.Send, lab.Question:
		s.targets[k] = e.Target
		s.senders[route{e.Target, e.Path()}] = e.Node
		if e.Kind == lab.Send {
			s.open[e.Path()] = append(s.open[e.Path()], e.Node)
		}
	case lab.Arrival:
		// A hop may send a request on under the path that it came with: the last sender is whose it is.
		if open := s.open[e.Path()]; s.senders[k] == "" && len(open) > 0 {
			sender := open[len(open)-1]
			s.targets[route{sender, e.Path()}], s.senders[k] = e.Node, sender
		}
		s.arrived[k] = true
	case lab.Reply:
		s.replied[route{cmp.Or(e.Target, s.targets[k]), e.Path()}] = true
	case lab.Told:
		s.told[k] = e.Order
	}
}

// event draws what happened. Kinds that only repeat what an arrow says are left out.
func (s *scribe) event(e lab.Event) {
	k := route{e.Node, e.Path()}
	target := s.targets[k]
	to := route{target, e.Path()}
	switch e.Kind {
	case lab.Start:
		if s.several {
			s.note(e, e.Operation+" begins")
		}
	case lab.Send:
		kind, label := request, s.label(e)
		if !s.arrived[to] {
			kind = lostRequest
		}
		s.arrow(e, kind, e.Node, target, label)
	case lab.Question:
		s.arrow(e, request, e.Node, target, s.label(e))
	case lab.Learnt:
		s.arrow(e, answer, target, e.Node, join(e.Detail, s.orderTold(k)))
	case lab.Reply:
		s.arrow(e, answer, cmp.Or(e.Target, target), e.Node, join(strconv.Itoa(e.Status), s.orderTold(k)))
	case lab.Answer:
		if !s.replied[k] {
			s.loseAnswer(e, k, strconv.Itoa(e.Status)+", which nobody gets")
		}
	case lab.ClientGone:
		s.loseAnswer(e, k, join(status(e.Status), "nobody waits any more"))
	case lab.Timeout:
		s.note(e, "time-out: "+e.Detail)
	case lab.Failure:
		if s.arrived[to] && !s.replied[to] && !s.lost[to] {
			s.loseAnswer(e, to, "the connection is lost")
		}
		s.note(e, "failure: "+e.Detail)
	case lab.Retry:
		if wait := clock(lab.Millis(e.Wait)); e.Wait > 0 {
			s.note(e, "waits "+wait+": "+e.Detail)
		} else {
			s.note(e, e.Detail)
		}
	case lab.Stop:
		s.note(e, "gives up: "+e.Detail)
	case lab.Done:
		s.note(e, s.of(e)+"believes "+e.Detail)
	case lab.Commit:
		s.orders[e.Operation]++
		text := fmt.Sprintf("%scommits order %d", s.of(e), e.Order)
		if n := s.orders[e.Operation]; n > 1 {
			text += fmt.Sprintf(", number %d for %s", n, e.Operation)
		}
		s.note(e, text)
	case lab.Told, lab.Arrival, lab.Work, lab.Answered, lab.Settled:
	default:
		s.note(e, strings.TrimSuffix(string(e.Kind)+": "+e.Detail, ": "))
	}
}

// label names a request by its tries, outermost first.
func (s *scribe) label(e lab.Event) string {
	path := strings.TrimPrefix(strings.TrimPrefix(e.Path(), e.Operation), "/")
	if s.several || path == "" {
		return e.Path()
	}
	return path
}

// of says whose a note is where there are several operations.
func (s *scribe) of(e lab.Event) string {
	if !s.several || e.Operation == "" {
		return ""
	}
	return e.Operation + ": "
}

func (s *scribe) orderTold(k route) string {
	if order := s.told[k]; order > 0 {
		return fmt.Sprintf("with order %d", order)
	}
	return ""
}

func status(code int) string {
	if code == 0 {
		return ""
	}
	return strconv.Itoa(code) + ":"
}

// loseAnswer draws, once, that the answer to a request reaches nobody.
func (s *scribe) loseAnswer(e lab.Event, k route, text string) {
	if s.lost[k] || s.replied[k] || s.senders[k] == "" {
		return
	}
	s.lost[k] = true
	s.arrow(e, lostAnswer, k.node, s.senders[k], text)
}

// at is the instant of an event, as finely as a diagram shows it.
func (s *scribe) at(e lab.Event) int64 { return round(lab.Millis(e.At), s.grain) }

func (s *scribe) arrow(e lab.Event, kind arrow, from, to, text string) {
	a, okA := s.party(from)
	b, okB := s.party(to)
	if !okA || !okB {
		s.cut++
		return
	}
	s.steps = append(s.steps, step{arrow: kind, from: a, to: b, at: s.at(e), lines: []string{join(clock(s.at(e)), text)}})
}

// note writes words beside a party, several of one instant together.
func (s *scribe) note(e lab.Event, text string) {
	i, ok := s.party(e.Node)
	if !ok {
		s.cut++
		return
	}
	if n := len(s.steps) - 1; n >= 0 {
		if last := &s.steps[n]; last.arrow == note && last.from == i && last.to == i && last.at == s.at(e) {
			last.lines = append(last.lines, text)
			return
		}
	}
	s.steps = append(s.steps, step{from: i, to: i, at: s.at(e), lines: []string{join(clock(s.at(e)), text)}})
}

// over writes words over all parties.
func (s *scribe) over(text string) {
	s.steps = append(s.steps, step{to: len(s.parties) - 1, at: -1, lines: []string{text}})
}

// A tongue is a language of sequence diagrams.
type tongue struct {
	head, title, party, note, over, foot string
	arrows                               map[arrow]string // how a step of its kind begins and is divided
	line                                 string           // between lines of one text
	code                                 string           // of a character that must not stand for itself
}

var (
	mermaid = tongue{
		head:   "sequenceDiagram\n",
		title:  "    title: %s\n",
		party:  "    participant p%d as %s\n",
		note:   "    Note over p%d: %s\n",
		over:   "    Note over p%d,p%d: %s\n",
		arrows: map[arrow]string{request: "    p%d->>p%d: %s\n", answer: "    p%d-->>p%d: %s\n", lostRequest: "    p%d-xp%d: %s\n", lostAnswer: "    p%d--xp%d: %s\n"},
		line:   "<br/>",
		code:   "#%d;",
	}
	plantUML = tongue{
		head:   "@startuml\n",
		title:  "title %s\n",
		party:  "participant \"%[2]s\" as p%[1]d\n",
		note:   "note over p%d : %s\n",
		over:   "note over p%d, p%d : %s\n",
		foot:   "@enduml\n",
		arrows: map[arrow]string{request: "p%d -> p%d : %s\n", answer: "p%d --> p%d : %s\n", lostRequest: "p%d ->x p%d : %s\n", lostAnswer: "p%d -->x p%d : %s\n"},
		line:   `\n`,
		code:   "<U+%04X>",
	}
)

// write writes a sequence down.
func (t tongue) write(b *bytes.Buffer, s *sequence) {
	b.WriteString(t.head)
	fmt.Fprintf(b, t.title, t.text(s.title, sequenceText))
	for i, name := range s.parties {
		fmt.Fprintf(b, t.party, i+1, cmp.Or(t.text(name, sequenceName), "-"))
	}
	for _, st := range s.steps {
		var lines []string
		for _, l := range st.lines {
			lines = append(lines, t.text(l, sequenceText))
		}
		text := strings.Join(lines, t.line)
		switch {
		case st.arrow != note:
			fmt.Fprintf(b, t.arrows[st.arrow], st.from+1, st.to+1, text)
		case st.from == st.to:
			fmt.Fprintf(b, t.note, st.from+1, text)
		default:
			fmt.Fprintf(b, t.over, st.from+1, st.to+1, text)
		}
	}
	b.WriteString(t.foot)
}

// text makes a text fit to stand in the language, on one line of at most n columns. Letters, digits, and a little
// punctuation stand for themselves, but not twice in a row, which may be markup; whatever else ASCII
// has is coded, and so is what Mermaid codes with itself.
func (t tongue) text(raw string, n int) string {
	raw = strings.Join(strings.Fields(escape(raw)), " ")
	if width(raw) > n {
		head, _ := split(raw, n-1)
		raw = head + "…"
	}
	var b strings.Builder
	before := rune(0)
	for _, r := range raw {
		safe := r == ' ' || unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(".,:()/+-", r) && r != before
		if safe && r != 'ﬂ' || r > unicode.MaxASCII && r != 'ﬂ' && r != '¶' {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, t.code, r)
		}
		before = r
	}
	return b.String()
}

// sequences gathers the diagrams of a document, one of each scenario; of a comparison, one of each of two rows.
func sequences(d *lab.Document) (out []*sequence) {
	for _, b := range blocksOf(d) {
		if pair, left := b.compared(); b.letters != nil && len(pair) > 0 {
			for _, r := range pair {
				s := sequenceOf(r.Scenario, r)
				s.title = b.letters[[2]string{r.Scenario, r.ID}] + " " + s.title
				out = append(out, s)
			}
			if len(left) > 0 {
				last := out[len(out)-1]
				last.steps = append(last.steps, step{lines: []string{"not drawn: " + strings.Join(left, " ")}})
			}
			continue
		}
		r := b.focus()
		if r == nil {
			r = b.results[0]
		}
		out = append(out, sequenceOf(cmp.Or(b.info.Name, r.Scenario), r))
	}
	return out
}

func writePlantUML(w io.Writer, d *lab.Document, _ Options) error {
	var b bytes.Buffer
	for i, s := range sequences(d) {
		if i > 0 {
			b.WriteByte('\n')
		}
		plantUML.write(&b, s)
	}
	if b.Len() == 0 {
		plantUML.write(&b, nothingRan)
	}
	return writeSequences(w, b.Bytes())
}

// nothingRan is the diagram of a document without results.
var nothingRan = &sequence{title: "retrylab", parties: []string{"caller"}, steps: []step{{lines: []string{"no scenario was run"}}}}

// writeMermaid writes one diagram as it is. A file of Mermaid cannot hold several: those are written
// as Markdown, which is what draws them.
func writeMermaid(w io.Writer, d *lab.Document, _ Options) error {
	var b bytes.Buffer
	all := sequences(d)
	switch len(all) {
	case 0:
		mermaid.write(&b, nothingRan)
	case 1:
		mermaid.write(&b, all[0])
	default:
		for i, s := range all {
			if i > 0 {
				b.WriteByte('\n')
			}
			b.WriteString("```mermaid\n")
			mermaid.write(&b, s)
			b.WriteString("```\n")
		}
	}
	return writeSequences(w, b.Bytes())
}

func writeSequences(w io.Writer, text []byte) error {
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("write sequence diagram: %w", err)
	}
	return nil
}
