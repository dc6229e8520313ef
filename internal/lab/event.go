package lab

import (
	"bytes"
	"encoding/json"
	"time"
)

// Kind names what happened in an [Event].
type Kind string

// The kinds of events. The caller's side and every hop record send to stop; the servers record
// arrival to client-gone, and a time-out where they keep a deadline; the engine records start, done and settled.
const (
	Start    Kind = "start"    // an operation begins
	Send     Kind = "send"     // a request starts at its innermost layer, even if it never leaves the host
	Reply    Kind = "reply"    // the sender has a whole status line: Status
	Told     Kind = "told"     // the caller has a whole answer: Order is the number in it
	Timeout  Kind = "timeout"  // the sender gave up: Detail is the stage (acquire, connect, read, attempt, total)
	Failure  Kind = "failure"  // the connection failed: Detail is refused, eof, reset, …
	Retry    Kind = "retry"    // a layer decided to try again after Wait
	Question Kind = "question" // the caller asks what became of an order: Target. It is no send
	Learnt   Kind = "learnt"   // what came of that: Detail is done, processing, failed, not found, or what failed
	Stop     Kind = "stop"     // a layer decided not to try again: Detail says why

	Arrival    Kind = "arrival"     // a request reached a handler: Node
	Queue      Kind = "queue"       // a request found no worker idle: Detail is waits, full, what it was dropped as (expired, late), or limited
	LookUp     Kind = "check"       // a guard looked a key up: Detail is absent, processing, done or failed
	Claim      Kind = "claim"       // a guard tried to claim a key: Detail is won, held, done or conflict
	Lock       Kind = "lock"        // a guard asked for a lock, or did something to the one it had: Key is its name, Detail is won, held, taken over, renewed, lost, freed, freed another's or gone
	Work       Kind = "work"        // processing begins
	Read       Kind = "read"        // a request read the row that all share: Detail is what it found
	Changed    Kind = "changed"     // what a request has made of that row is durable: Detail
	Commit     Kind = "commit"      // an effect became durable: Order is its number
	Rollback   Kind = "rollback"    // a transaction was given up
	Entered    Kind = "entry"       // a ledger beside the orders was given an entry: Detail is its name, and what it made of it
	Fault      Kind = "fault"       // an injected fault fired: Detail is kind@place
	Answer     Kind = "answer"      // a server handed its answer to the connection: Status
	Answered   Kind = "answered"    // the last of an answer was handed over, where that took its time
	Crash      Kind = "crash"       // a replica died, with all that it had open: the request is the one at which it did
	CleanedUp  Kind = "cleaned-up"  // a job removed keys that were too old: Detail is how many
	Restart    Kind = "restart"     // a replica that died is there again, with nothing in its memory
	ClientGone Kind = "client-gone" // a server found that nobody waits for its answer any more

	ClockJump  Kind = "clock-jump" // the calendar clock of a machine was set: Detail says how far
	Done       Kind = "done"       // an operation ended: Detail is the belief
	Reconciled Kind = "reconciled" // a job compared what a caller left open with the database: Detail is what it found
	Settled    Kind = "settled"    // nothing more can happen
)

// StageDeadline is the detail of a [Timeout] that a deadline has brought about which came with a
// request: at whoever kept it.
const StageDeadline = "deadline"

// QueueWaits is the detail of a [Queue] of a request that has taken a place in it.
const QueueWaits = "waits"

// QueueLimited is the detail of a [Queue] of a request that is over the limit of the rate.
const QueueLimited = "limited"

// PastDeadline is the detail of a failure of a try that began when the limit around it was over: it
// sends nothing.
const PastDeadline = "past-deadline"

// Kinds lists every kind in the order of a request's life.
var Kinds = []Kind{
	Start, Send, Reply, Told, Timeout, Failure, Retry, Question, Learnt, Stop,
	Arrival, Queue, LookUp, Claim, Lock, Read, Work, Changed, Commit, Rollback, Entered, Fault, CleanedUp, Crash, Restart, Answer, Answered, ClientGone,
	ClockJump, Done, Reconciled, Settled,
}

// Event is one thing that happened, where it happened. Fields that do not apply are zero and are
// left out of the JSON form.
type Event struct {
	At        time.Duration // scenario time since the trial began
	Kind      Kind
	Operation string        // op-1, op-2, …
	Send      string        // the path of tries: op-1/feign-retryer.2/lb.1
	Node      string        // who recorded it: caller, a hop's name, a replica such as order-1
	Target    string        // where a send goes
	Status    int           // HTTP status of a reply or an answer
	Key       string        // idempotency key, as sent or as claimed
	Order     int64         // number of the committed order
	Wait      time.Duration // pause before a retry
	Remaining time.Duration // budget left at a send; 0 where no total bounds it
	Detail    string
}

// Path returns what identifies the request that e belongs to. A send's path is unique for the
// node that sends it.
func (e Event) Path() string {
	if e.Send != "" {
		return e.Send
	}
	return e.Operation
}

type eventJSON struct {
	T         int64  `json:"t_ms"`
	Kind      Kind   `json:"kind"`
	Operation string `json:"operation,omitempty"`
	Send      string `json:"send,omitempty"`
	Node      string `json:"node,omitempty"`
	Target    string `json:"target,omitempty"`
	Status    int    `json:"status,omitempty"`
	Key       string `json:"key,omitempty"`
	Order     int64  `json:"order,omitempty"`
	Wait      *int64 `json:"wait_ms,omitempty"`
	Remaining int64  `json:"remaining_ms,omitempty"`
	Fired     bool   `json:"fired,omitempty"`
	Detail    string `json:"detail,omitempty"`
}

func (e Event) wire() eventJSON {
	out := eventJSON{
		T: Millis(e.At), Kind: e.Kind, Operation: e.Operation, Send: e.Send, Node: e.Node, Target: e.Target,
		Status: e.Status, Key: e.Key, Order: e.Order, Remaining: Millis(e.Remaining),
		Fired: e.Kind == Fault, Detail: e.Detail,
	}
	if e.Kind == Retry {
		wait := Millis(e.Wait)
		out.Wait = &wait
	}
	return out
}

// EventRecord is an event by itself: with the trial that it belongs to. Its JSON form is that of the
// event and these fields before it.
type EventRecord struct {
	Type     string `json:"type"` // always "event"
	Scenario string `json:"scenario"`
	ID       string `json:"id"` // of the configuration
	Seed     int64  `json:"seed"`
	eventJSON
}

// Record returns an event of r as a record.
func (r *Result) Record(e Event) EventRecord {
	return EventRecord{Type: "event", Scenario: r.Scenario, ID: r.ID, Seed: r.Seed, eventJSON: e.wire()}
}

// MarshalJSON writes e with its times in whole milliseconds of scenario time.
func (e Event) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // whether to escape is up to whoever writes the whole document
	if err := encoder.Encode(e.wire()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (e *Event) UnmarshalJSON(data []byte) error {
	var in eventJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*e = Event{
		At: FromMillis(in.T), Kind: in.Kind, Operation: in.Operation, Send: in.Send, Node: in.Node, Target: in.Target,
		Status: in.Status, Key: in.Key, Order: in.Order, Remaining: FromMillis(in.Remaining), Detail: in.Detail,
	}
	if in.Wait != nil {
		e.Wait = FromMillis(*in.Wait)
	}
	return nil
}

// Millis rounds d to whole milliseconds, the unit of every output: the microseconds that keep
// independent flows apart are of no interest to a reader.
func Millis(d time.Duration) int64 { return int64(d.Round(time.Millisecond) / time.Millisecond) }

// FromMillis is the inverse of [Millis].
func FromMillis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
