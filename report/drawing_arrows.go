package report

import (
	"cmp"
	"slices"
	"strings"

	"retrylab/internal/lab"
)

// arrows draws what went from one row to another.
func (f *drafter) arrows() {
	chain := []string{f.caller}
	for _, h := range f.hops {
		chain = append(chain, h.name)
	}
	// next finds the row of a request at whoever it was sent to.
	hop := map[string]int{}
	for i, n := range chain {
		hop[n] = i
	}
	arrived := map[string][]int{}
	answered := map[route]int{}
	replied := map[route]int{}
	ended := map[route]int{} // where an answer ends that nobody gets
	for i, e := range f.r.Events {
		switch e.Kind {
		case lab.Arrival:
			arrived[e.Path()] = append(arrived[e.Path()], i)
		case lab.Answer:
			answered[route{e.Node, e.Path()}] = i
			ended[route{e.Node, e.Path()}] = i
		case lab.ClientGone, lab.Fault:
			if _, ok := ended[route{e.Node, e.Path()}]; !ok && !strings.HasPrefix(e.Detail, "delay@") {
				ended[route{e.Node, e.Path()}] = i
			}
		case lab.Reply:
			replied[route{e.Node, e.Path()}] = i
		}
	}
	below := func(y int) (top, bottom int) {
		for _, b := range f.d.bands {
			if y >= b.top && y < b.top+b.height {
				return b.top, b.top + b.height
			}
		}
		return y, y
	}
	reached := map[int]string{} // the sender of an arrival
	for _, e := range f.r.Events {
		if e.Kind != lab.Send {
			continue
		}
		y, ok := f.rowOf[route{e.Node, e.Path()}]
		if !ok {
			continue
		}
		found := -1
		for _, i := range arrived[e.Path()] {
			at := f.r.Events[i].Node
			depth, isHop := hop[at]
			if at != e.Node && reached[i] == "" && (!isHop || depth > hop[e.Node]) {
				found = i
				break
			}
		}
		from := lab.Millis(e.At)
		if found < 0 {
			_, bottom := below(y)
			f.d.arrows = append(f.d.arrows, flight{flightLost, from, from, y + barThick/2, bottom + bandGap/2})
			continue
		}
		reached[found] = e.Node
		a := f.r.Events[found]
		to, ok := f.rowOf[route{a.Node + " has", a.Path()}]
		if !ok {
			continue
		}
		f.d.arrows = append(f.d.arrows, flight{flightRequest, from, lab.Millis(a.At), y + barThick/2, to - barThick/2})
		if i, ok := replied[route{e.Node, e.Path()}]; ok {
			if j, ok := answered[route{a.Node, a.Path()}]; ok {
				f.d.arrows = append(f.d.arrows, flight{flightAnswer, lab.Millis(f.r.Events[j].At), lab.Millis(f.r.Events[i].At), to - barThick/2, y + barThick/2})
			}
			continue
		}
		if i, ok := ended[route{a.Node, a.Path()}]; ok {
			at := lab.Millis(f.r.Events[i].At)
			top, _ := below(to)
			f.d.arrows = append(f.d.arrows, flight{flightLost, at, at, to - barThick/2, top - bandGap/2})
		}
	}
	for i, e := range f.r.Events {
		if e.Kind != lab.Commit && e.Kind != lab.Entered {
			continue
		}
		y, ok := f.rowFor(e)
		if !ok {
			continue
		}
		row := "orders"
		switch {
		case e.Kind == lab.Entered:
			row, _, _ = strings.Cut(e.Detail, ",")
		case f.extra[i]:
			row = "too many"
		}
		if to, ok := f.nodeAt["store "+row]; ok {
			at := lab.Millis(e.At)
			f.d.arrows = append(f.d.arrows, flight{flightEffect, at, at, y + barThick/2, to - barThick/2})
		}
	}
	slices.SortFunc(f.d.arrows, func(a, b flight) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.fromY, b.fromY), cmp.Compare(a.toY, b.toY), cmp.Compare(a.kind, b.kind), cmp.Compare(a.to, b.to))
	})
	f.d.arrows = slices.Compact(f.d.arrows)
}
