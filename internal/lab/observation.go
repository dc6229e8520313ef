package lab

import (
	"cmp"
	"time"
)

// Belief is what a caller ends an operation with.
type Belief string

// The beliefs. A time-out after the request left the host is Unknown, never Failed.
const (
	OK      Belief = "ok"      // a 2xx for this intent; a replay counts
	Failed  Belief = "failed"  // a definite refusal, or nothing ever left the host
	Unknown Belief = "unknown" // time-out after the request left, eof, reset, 502, 504, in progress
)

// NoThread is the reason of an operation that was turned away: its caller had no thread for it, and no
// place in its queue.
const NoThread = "no thread free"

// Again is what the path of an operation's n-th send as its user sees it goes on with, for n from 2:
// op-1/again.2. What comes after it are tries of that send.
const Again = "again"

// Effect is one durable order row, as the database gave it back.
type Effect struct {
	Order     int64         `json:"order"`         // the order's number
	Operation string        `json:"operation"`     // which intent it belongs to
	Send      string        `json:"send"`          // the send that made it
	Node      string        `json:"node"`          // the replica that wrote it
	Key       string        `json:"key,omitempty"` // idempotency key, empty where none was sent
	Amount    int64         `json:"amount_minor"`  // in the currency's minor unit (cents)
	Created   time.Duration `json:"-"`             // scenario time
	CreatedMs int64         `json:"created_ms"`    // Created in whole milliseconds
}

// Entry is one durable result beside the order, in a ledger of its own: a message, a charge.
type Entry struct {
	Ledger    string        `json:"ledger"`
	Operation string        `json:"operation"`           // which intent it belongs to
	Send      string        `json:"send"`                // the send that made it
	Node      string        `json:"node"`                // the replica or the job that made it
	Reference string        `json:"reference,omitempty"` // what its ledger knows it by, empty where none was given
	Amount    int64         `json:"amount_minor"`        // in the currency's minor unit (cents)
	Created   time.Duration `json:"-"`                   // scenario time
	CreatedMs int64         `json:"created_ms"`          // Created in whole milliseconds
}

// State is the row that all requests share, as the database gave it back.
type State struct {
	Row     string `json:"row"`
	Value   string `json:"value,omitempty"`
	Absent  bool   `json:"absent,omitempty"`  // there is no such row
	Version int64  `json:"version,omitempty"` // 1 when it was made, and one more for each change
}

// String is the value, or absent.
func (s State) String() string {
	if s.Absent {
		return Absent
	}
	return s.Value
}

// Horizon is the scenario time after which a trial is given up: two waits of a hundred years and more,
// so what is still waiting then waits for ever. A bubble's clock, which begins in the year 2000, ends in
// 2262.
const Horizon = 250 * 365 * 24 * time.Hour

// Absent is what stands for the value of a row that is not there.
const Absent = "absent"

// Outcome is how one operation ended for its caller.
type Outcome struct {
	Operation string
	Belief    Belief        // empty while the operation has no outcome
	Status    int           // of the last reply, 0 without one
	Reason    string        // what the belief rests on: "201", "read timeout", "eof", …
	Order     int64         // the order number that the caller was told, 0 without one
	DoneAt    time.Duration // scenario time
	Effects   int           // effects of this operation when its caller was done
	Left      Belief        // what the caller was done with, where a job has settled it since; else empty
}

// Done is what the caller was done with, whatever has been settled since.
func (o Outcome) Done() Belief { return cmp.Or(o.Left, o.Belief) }

// Node is one machine of a trial with what it sent and what reached it.
type Node struct {
	Name     string `json:"name"`
	Role     string `json:"role"` // caller, hop or server
	Sends    int    `json:"sends"`
	Arrivals int    `json:"arrivals"`
}

// Store says which database held the orders, as the engine itself reports it.
type Store struct {
	Engine   string            `json:"engine"`  // sqlite, postgres
	Version  string            `json:"version"` // read back from the engine
	Mode     string            `json:"mode"`    // embedded, …
	ChosenBy string            `json:"chosen_by"`
	Counting string            `json:"counting_sql,omitempty"` // the statement that counted the effects
	Settings map[string]string `json:"settings,omitempty"`
}

// Totals are the counts of a trial of which nobody has kept the events and the rows: a simulated one.
type Totals struct {
	Runs                  int // times that the order service began to work
	Effects               int
	EffectsWhenCallerDone int
	Duplicates            int // effects above wanted
	Lost                  int // operations believed ok with too few effects
	FalseFailures         int // operations believed failed though an effect exists
	Late                  int // effects after the caller was done
	Amount                int64
	BudgetSpent           int         // tries that were not followed by another because a retry budget was spent
	Answers               map[int]int // of the order service, by status
	Ends                  []End       // how the operations ended
	CallerDone            time.Duration
	LongestHold           time.Duration
}

// End is how some operations ended.
type End struct {
	Belief     Belief
	Reason     string // what the belief rests on
	Operations int    // how many
}

// Observation is everything that was seen in one trial. It holds no judgement and can be judged
// again.
type Observation struct {
	Events      []Event   // in order of time
	Effects     []Effect  // read by SQL when everything had settled
	Entries     []Entry   // of all ledgers beside the orders, read by SQL in the same moment
	State       *State    // of the row that requests share, read by SQL in the same moment; nil where there is none
	Outcomes    []Outcome // one per operation
	Totals      *Totals   // in place of events, effects and outcomes where the trial was simulated; else nil
	Nodes       []Node    // caller, hops in order, replicas
	Faults      []FaultCount
	Store       Store
	Keys        Store         // of the keys beside the database; without an engine where there are none
	Series      *Series       // nil where nobody asked for one
	Ties        []string      // which deciding events fall into one instant, each pair in words; looked for in sweeps only
	Settled     time.Duration // scenario time of the last event
	Threads     int           // most operations that were under way at one instant
	Overlap     int           // most requests that were inside processing at one instant
	Exact       bool          // times are those of the virtual clock; on the wall clock the machine has a part in them
	Broken      string        // why the lab itself could not finish the trial; empty when it did
	Defect      bool          // Broken is a fault of the lab's own code: a panic, a disagreement of the clocks
	Environment bool          // Broken is about what the lab stands on: a database that cannot be opened, or is lost
}

// FaultCount says how often a configured fault fired.
type FaultCount struct {
	Name  string // kind@place, with its position when there are several
	Node  string // where it is configured
	Fired int
}
