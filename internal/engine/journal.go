package engine

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"retrylab/internal/lab"
	"retrylab/internal/vtime"
)

// maxEvents bounds what one trial may record. A scenario file is untrusted: layers multiply.
const maxEvents = 150_000

// journal collects the events of a trial.
type journal struct {
	clock *vtime.Clock
	outer context.Context // only its Err is asked for: on the virtual clock it comes from outside the bubble
	life  context.Context // the trial's: what happens while it is taken down is not of interest
	stop  func(cause error)

	mu     sync.Mutex
	events []lab.Event
}

// record stamps an event with the scenario time.
func (j *journal) record(e lab.Event) {
	e.At = j.clock.Now()
	j.add(e)
}

// add takes an event down that has its time. It is also where a trial notices that it has been
// interrupted, since nothing of interest happens without a record.
func (j *journal) add(e lab.Event) {
	if j.outer.Err() != nil {
		j.stop(ErrInterrupted)
	}
	if j.life.Err() != nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.events) >= maxEvents {
		j.stop(errTooMuch)
		return
	}
	j.events = append(j.events, e)
}

// sorted returns the events by (time, operation, sequence). Flows that do not depend on each other
// never share an instant, and within one flow the sequence is that of its one goroutine.
func (j *journal) sorted() []lab.Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	events := slices.Clone(j.events)
	slices.SortStableFunc(events, func(a, b lab.Event) int {
		return cmp.Or(cmp.Compare(a.At, b.At), compareNumbered(a.Operation, b.Operation))
	})
	return events
}

// compareNumbered compares op-2 and op-10 as people do.
func compareNumbered(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}
