package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"retrylab/internal/lab"
)

// store lays out the band of what is durable: the wanted orders, the orders beyond them, and each
// ledger.
func (f *drafter) store(y int) {
	if f.servers == 0 && len(f.r.Orders) == 0 {
		f.d.height = y - bandGap
		return
	}
	b := band{name: "store", role: "store", top: y}
	kinds := []string{"orders"}
	for i, e := range f.r.Events {
		name := ""
		switch {
		case f.extra[i] && e.Kind == lab.Commit:
			name = "too many"
		case e.Kind == lab.Entered:
			name, _, _ = strings.Cut(e.Detail, ",")
		}
		if name != "" && !slices.Contains(kinds, name) {
			kinds = append(kinds, name)
		}
	}
	if i := slices.Index(kinds, "too many"); i > 1 {
		kinds = slices.Insert(slices.Delete(kinds, i, i+1), 1, "too many")
	}
	y += bandPad
	if b.headed = len(kinds) > 1; b.headed {
		y += headHigh
	}
	b.row = y + rowHigh/2
	for _, k := range kinds {
		row := y + rowHigh/2
		f.nodeAt["store "+k] = row
		if len(kinds) > 1 {
			b.labels = append(b.labels, label{f.text(k), row})
		}
		y += rowHigh
	}
	b.height = y + bandPad - b.top
	f.d.bands = append(f.d.bands, b)
	f.d.height = b.top + b.height
	f.kept(kinds)
}

// kept puts the marks of what became durable into the store's band. Those of one instant share one.
func (f *drafter) kept(kinds []string) {
	at := map[[2]int64]int{}
	since := map[[2]int64]int64{}
	durable := 0
	for _, e := range f.r.Events {
		if e.Kind == lab.Commit || e.Kind == lab.Entered {
			durable++
		}
	}
	grain := int64(1)
	if durable > storeDrawn {
		grain = max(1, f.end*2/storeDrawn)
	}
	count := map[string]int{}
	last := map[string]int{}
	for i, e := range f.r.Events {
		kind, row := "", ""
		switch {
		case e.Kind == lab.Commit && f.absent[i]:
			kind, row = "gone", "orders"
		case e.Kind == lab.Commit && f.extra[i]:
			kind, row = "extra", "too many"
		case e.Kind == lab.Commit:
			kind, row = "commit", "orders"
		case e.Kind == lab.Entered:
			row, _, _ = strings.Cut(e.Detail, ",")
			if kind = "entry"; f.extra[i] {
				kind = "extra"
			}
		default:
			continue
		}
		y, ms := f.nodeAt["store "+row], lab.Millis(e.At)
		count[row]++
		// Marks of a crowd that would hide each other are one, which stands at the first of them.
		if key := [2]int64{ms / grain, int64(y)}; grain > 1 {
			if first, ok := since[key]; ok {
				ms = first
			} else {
				since[key] = ms
			}
		}
		key := [2]int64{ms, int64(y)*100 + int64(slices.IndexFunc(pictured, func(g glyph) bool { return g.kind == kind }))}
		if j, ok := at[key]; ok {
			m := &f.d.marks[j]
			n, _ := strconv.Atoi(strings.TrimPrefix(m.text, "×"))
			m.text = "×" + strconv.Itoa(max(n, 1)+1)
			if m.count++; m.count <= toldAtOnce {
				m.title += "\n\n" + f.sentence(i)
			}
			last[row] = j
			continue
		}
		at[key] = len(f.d.marks)
		last[row] = len(f.d.marks)
		f.d.marks = append(f.d.marks, mark{kind: kind, at: ms, y: y, title: f.sentence(i), event: i, count: 1})
	}
	for _, j := range at {
		if m := &f.d.marks[j]; m.count > toldAtOnce {
			m.title += "\n\nand " + strconv.Itoa(m.count-toldAtOnce) + " more"
		}
	}
	if grain > 1 {
		f.d.left = append(f.d.left, "orders within "+clock(grain)+" of each other are one mark")
	}
	for row, j := range last {
		m := &f.d.marks[j]
		if row == "too many" {
			m.text, m.loud = strconv.Itoa(count[row])+" too many", true
		}
	}
	if count["orders"] == 0 {
		f.d.marks = append(f.d.marks, mark{kind: "", at: 0, y: f.nodeAt["store orders"], text: "no order", event: -1})
	}
}

// bars draws what lasts of a span.
func (f *drafter) bars(row placedRow, s *span) {
	which := (&picture{setting: f.setting}).number(s)
	add := func(kind barKind, a, b int64, text, title string, event int) {
		f.d.bars = append(f.d.bars, bar{kind: kind, from: a, to: b, y: row.y, thick: barThick, text: text, number: which, title: title, event: event})
	}
	number := join(which, times(s.count))
	switch {
	case row.kind == layerLane:
		title := f.between(s.from, s.to) + "\n" + f.text(s.path)
		if why := f.decided[route{s.node, s.path}]; why != "" {
			title += "\n" + why
		}
		if (f.axis.at(s.to)-f.axis.at(s.from))*nominal < shortest {
			f.d.marks = append(f.d.marks, f.stack(mark{kind: "try", at: s.from, y: row.y, text: s.detail, title: title, event: -1}))
			return
		}
		add(barLayer, s.from, s.to, s.detail, title, -1)
		return
	case !row.served:
		add(barSend, s.from, s.to, number, f.between(s.from, s.to)+"\n"+join("send", number)+" is under way, and its sender waits\n"+f.text(s.path), -1)
		return
	}
	add(barWait, s.from, s.to, number, f.between(s.from, s.to)+"\n"+join("request", number)+" is at "+f.text(row.node)+"\n"+f.text(s.path), -1)
}

func times(n int) string {
	if n < 2 {
		return ""
	}
	return "×" + strconv.Itoa(n)
}

func (f *drafter) between(from, to int64) string {
	if from == to {
		return clock(from)
	}
	return clock(from) + " – " + clock(to) + " (" + clock(to-from) + ")"
}

// rowFor finds the row of an event.
func (f *drafter) rowFor(e lab.Event) (y int, ok bool) {
	switch e.Kind {
	case lab.Send, lab.Reply, lab.Told, lab.Timeout, lab.Failure, lab.Retry, lab.Stop:
		if y, ok = f.rowOf[route{e.Node, e.Path()}]; ok {
			return y, true
		}
	case lab.Done, lab.Start, lab.Question, lab.Learnt, lab.Reconciled:
		y, ok = f.opRow[e.Operation]
		return y, ok
	case lab.ClockJump, lab.Restart, lab.CleanedUp:
		y, ok = f.nodeAt[e.Node]
		return y, ok
	}
	if y, ok = f.rowOf[route{e.Node + " has", e.Path()}]; ok {
		return y, true
	}
	if e.Kind == lab.Crash && e.Send == "" {
		y, ok = f.nodeAt[e.Node]
	}
	return y, ok
}

// instants puts the marks on the rows, and the bars that events alone tell of: pauses, work, death.
func (f *drafter) instants() {
	working := map[route]int{}
	down := map[string]int{}
	begun := map[route]int64{} // when a try of a layer sent something first
	for _, e := range f.r.Events {
		for path := e.Path(); e.Kind == lab.Send && path != ""; path = path[:max(0, strings.LastIndexByte(path, '/'))] {
			if _, ok := begun[route{e.Node, path}]; !ok {
				begun[route{e.Node, path}] = lab.Millis(e.At)
			}
		}
	}
	stop := func(k route, at int64) {
		i, ok := working[k]
		if !ok {
			return
		}
		delete(working, k)
		y := f.rowOf[k]
		b := lab.Millis(f.r.Events[i].At)
		f.d.bars = append(f.d.bars, bar{
			kind: barWork, from: b, to: at, y: y, thick: barThick,
			title: f.between(b, at) + "\n" + f.text(f.r.Events[i].Node) + " works\n" + f.text(f.r.Events[i].Path()), event: i,
		})
	}
	for i, e := range f.r.Events {
		at := lab.Millis(e.At)
		k := route{e.Node + " has", e.Path()}
		y, ok := f.rowFor(e)
		switch e.Kind {
		case lab.Work:
			if ok {
				stop(k, at)
				working[k] = i
			}
		case lab.Commit, lab.Answer, lab.Rollback, lab.ClientGone, lab.Crash:
			stop(k, at)
		case lab.Retry:
			until := at + lab.Millis(e.Wait)
			if next, ok := begun[route{e.Node, tryAfter(e.Path())}]; ok {
				until = next // a hedge has waited already
			}
			if ok && until > at {
				f.d.bars = append(f.d.bars, bar{
					kind: barPause, from: at, to: min(until, max(f.end, at)), y: y, thick: barThick,
					title: f.between(at, until) + "\nwaits before the next try: " + f.text(e.Detail) + "\n" + f.text(e.Path()), event: i,
				})
			}
		}
		if e.Kind == lab.Crash {
			down[e.Node] = i
			for k := range working {
				if k.node == e.Node+" has" {
					stop(k, at)
				}
			}
		}
		if c, was := down[e.Node]; was && e.Kind == lab.Restart {
			delete(down, e.Node)
			b := lab.Millis(f.r.Events[c].At)
			if row, ok := f.rowFor(f.r.Events[c]); ok {
				f.d.bars = append(f.d.bars, bar{kind: barDown, from: b, to: at, y: row, thick: 4, title: f.between(b, at) + "\n" + f.text(e.Node) + " is dead", event: c})
				y = row
			}
		}
		kind := markOf(e)
		if kind == "" || !ok || len(f.d.marks) > 3*spansDrawn {
			continue
		}
		m := mark{kind: kind, at: at, y: y, title: f.sentence(i), event: i}
		switch {
		case e.Kind == lab.Commit && f.absent[i]:
			m.kind, m.text = "gone", "not there at the end"
		case e.Kind == lab.Commit && f.extra[i]:
			m.kind, m.text, m.loud = "extra", "order "+strconv.FormatInt(e.Order, 10)+", too many", true
		case e.Kind == lab.Commit && e.Order > 0:
			m.text = "order " + strconv.FormatInt(e.Order, 10)
		case e.Kind == lab.Entered && f.extra[i]:
			m.kind, m.text, m.loud = "extra", f.text(e.Detail)+", too many", true
		case e.Kind == lab.Entered:
			m.text = f.text(e.Detail)
		case e.Kind == lab.Reply:
			m.text = strconv.Itoa(e.Status)
		case e.Kind == lab.Timeout:
			m.text = f.text(e.Detail) + " time-out"
		case e.Kind == lab.Failure, e.Kind == lab.Fault, e.Kind == lab.ClockJump, e.Kind == lab.Changed:
			m.text = f.text(e.Detail)
		case e.Kind == lab.Claim && m.kind == "held", e.Kind == lab.Lock && m.kind == "held", e.Kind == lab.Queue, e.Kind == lab.Learnt:
			m.text = f.text(e.Detail)
		case e.Kind == lab.Rollback:
			m.text = f.text(e.Detail)
		case e.Kind == lab.Crash:
			m.text = "died"
		case e.Kind == lab.Done:
			m.text, m.loud = "believes: "+f.text(e.Detail), true
		case e.Kind == lab.Reconciled:
			m.text = "reconciled: " + f.text(e.Detail)
		}
		if n := max(f.many[route{e.Node, e.Path()}], f.many[k]); n > 1 && m.text != "" {
			m.text += " " + times(n)
		}
		if e.Kind == lab.Done && len(f.ops) > 1 && f.append(m) {
			continue
		}
		f.d.marks = append(f.d.marks, f.stack(m))
	}
	for k := range working {
		stop(k, f.end)
	}
	// What was found by walking over a map has no order of its own.
	slices.SortStableFunc(f.d.bars, func(a, b bar) int {
		return cmp.Or(cmp.Compare(layer(a.kind), layer(b.kind)), cmp.Compare(a.from, b.from), cmp.Compare(a.y, b.y), cmp.Compare(a.event, b.event))
	})
}

// tryAfter is the path of the next try of the layer that a path ends with.
func tryAfter(path string) string {
	layer, try := tryOf(path)
	n, err := strconv.Atoi(try)
	if err != nil {
		return ""
	}
	return layer + "." + strconv.Itoa(n+1)
}

// layer is what is drawn over what.
func layer(k barKind) int {
	return slices.Index([]barKind{barLayer, barSend, barPause, barWait, barDown, barWork}, k)
}

// append says in the words of the mark that ends an operation what its caller believes: a row among many
// has no room for another mark.
func (f *drafter) append(m mark) bool {
	for i := len(f.d.marks) - 1; i >= 0 && f.d.marks[i].at == m.at; i-- {
		if other := &f.d.marks[i]; other.y == m.y {
			other.text = strings.TrimLeft(other.text+", "+m.text, ", ")
			other.title += "\n" + m.title
			return true
		}
	}
	return false
}

// stack moves a mark off those that stand at its instant already: up and down, never along the time.
func (f *drafter) stack(m mark) mark {
	at := [2]int64{m.at, int64(m.y)}
	if f.dense[m.y] {
		// There is no room above or below: the one that tells most says the rest, too.
		for i := range f.d.marks {
			other := &f.d.marks[i]
			if other.at != m.at || other.y != m.y || other.kind == "" {
				continue
			}
			m.also(other)
			f.d.marks = slices.Delete(f.d.marks, i, i+1)
			return m
		}
	}
	n := f.free[at]
	f.free[at]++
	switch {
	case n == 2:
		m.y += beside
	case n > 0:
		m.y -= beside
	}
	return m
}

// also has a mark tell what another of its instant does.
func (m *mark) also(other *mark) {
	first, second := other, m
	if weight(m.kind) > weight(other.kind) {
		first, second = m, other
	}
	text := first.text
	if second.text != "" {
		text = strings.TrimLeft(text+", "+second.text, ", ")
	}
	*m = mark{kind: first.kind, at: m.at, y: m.y, text: text, loud: first.loud, title: first.title + "\n\n" + second.title, event: first.event}
}

// weight is how much a mark tells, among those of one instant.
func weight(kind string) int {
	return slices.Index([]string{"deaf", "queue", "look", "won", "held", "fault", "commit", "gone", "extra"}, kind)
}

// room leaves out words that would run into what comes next on their row.
func (f *drafter) room() {
	slices.SortStableFunc(f.d.marks, func(a, b mark) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.event, b.event)) })
	next := func(y int, after int64, self int) float64 {
		least := 1e9
		for i, m := range f.d.marks {
			if i != self && m.y == y && m.at > after {
				least = min(least, f.axis.at(m.at)*nominal-6)
				break
			}
		}
		for _, s := range f.edges[y] {
			if s.from > after || s.from == after && s.to > s.from {
				least = min(least, f.axis.at(s.from)*nominal)
			}
		}
		return least
	}
	// What has no room on its bar is said by the mark at the end of it.
	for i := range f.d.bars {
		b := &f.d.bars[i]
		if b.text == "" || (f.axis.at(b.to)-f.axis.at(b.from))*nominal >= 10+letter*float64(width(b.text)) {
			continue
		}
		for j := range f.d.marks {
			if m := &f.d.marks[j]; b.number != "" && m.y == b.y && m.at == b.to && m.kind != "" && m.kind != "deaf" {
				m.short, m.text = m.text, join(b.number, m.text)
				break
			}
		}
		b.text = ""
	}
	for i := range f.d.marks {
		m := &f.d.marks[i]
		if m.text == "" || m.kind == "" {
			continue
		}
		x := f.axis.at(m.at) * nominal
		limit := min(next(m.y, m.at, i), nominal+140)
		if m.short != "" && x+11+letter*float64(width(m.text)) > limit {
			m.text = m.short
		}
		need := 11 + letter*float64(width(m.text))
		switch {
		case x+need <= limit:
			m.room = 1
		case f.before(m, x-need):
			m.room = -1
		default:
			m.text = ""
		}
		m.plate = m.text != "" && slices.ContainsFunc(f.d.bars, func(b bar) bool {
			return b.y == m.y && (b.kind == barWork || b.kind == barDown) && (b.from <= m.at && m.at < b.to || m.room < 0 && b.to == m.at)
		})
	}
}

// before reports whether the words of a mark have room before it: in the bar that it ends.
func (f *drafter) before(m *mark, x float64) bool {
	for _, b := range f.d.bars {
		if b.y == m.y && b.kind != barWork && b.to == m.at {
			return f.axis.at(b.from)*nominal+4+letter*float64(width(b.text)+1) <= x
		}
	}
	return false
}

// sentence tells an event in full.
func (f *drafter) sentence(i int) string {
	e := f.r.Events[i]
	var b strings.Builder
	b.WriteString(clock(lab.Millis(e.At)) + "  " + string(e.Kind))
	if e.Detail != "" {
		b.WriteString(": " + f.text(e.Detail))
	}
	if e.Status > 0 {
		b.WriteString(" " + strconv.Itoa(e.Status))
	}
	if e.Order > 0 {
		b.WriteString(", order " + strconv.FormatInt(e.Order, 10))
	}
	switch {
	case f.extra[i]:
		b.WriteString(", beyond the wanted one")
	case f.absent[i]:
		b.WriteString(", which is not there at the end")
	}
	if e.Kind == lab.Retry {
		b.WriteString(", after " + clock(lab.Millis(e.Wait)))
	}
	b.WriteString("\n" + join(f.text(e.Node), f.text(e.Path())))
	if e.Target != "" {
		b.WriteString(" → " + f.text(e.Target))
	}
	if e.Key != "" {
		b.WriteString("\nkey " + f.text(e.Key))
	}
	if e.Remaining > 0 {
		b.WriteString("\n" + clock(lab.Millis(e.Remaining)) + " of the time left")
	}
	return b.String()
}
