package simulation

import "time"

// kind is what an event is about.
type kind uint8

const (
	arrives kind = iota // a request reaches the service
	worked              // the service has done the work on a request
	replied             // an answer, or the end of a connection, reaches a client
	refused             // a client hears that nobody listens
	limited             // a limit on a send is over, or the silence has lasted too long
	woken               // a wait before a retry is over
	cut                 // a limit ends such a wait
)

// event is something that is to happen.
type event struct {
	at     time.Duration // scenario time
	number uint32        // the order in which they were planned: what decides where two are at one time
	send   uint32        // of refused, limited: the number of the send that it is about
	who    int32         // the operation; of arrives, worked and replied the request
	kind   kind
	level  uint8 // of woken, cut: the layer
}

func (e event) before(o event) bool {
	return e.at < o.at || e.at == o.at && e.number < o.number
}

// agenda is what is to happen: a binary heap, the next event first. It is typed: with the standard
// library's each event would be boxed.
type agenda struct {
	events []event
	number uint32
}

func (a *agenda) add(e event) {
	a.number++
	e.number = a.number
	a.events = append(a.events, e)
	i := len(a.events) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(a.events[parent]) {
			break
		}
		a.events[i] = a.events[parent]
		i = parent
	}
	a.events[i] = e
}

func (a *agenda) take() event {
	first, last := a.events[0], len(a.events)-1
	e := a.events[last]
	a.events = a.events[:last]
	i := 0
	for {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && a.events[child+1].before(a.events[child]) {
			child++
		}
		if !a.events[child].before(e) {
			break
		}
		a.events[i] = a.events[child]
		i = child
	}
	if last > 0 {
		a.events[i] = e
	}
	return first
}
