// Package scenarios holds the catalogue, one YAML file per scenario, and what a scenario is: the
// strict decoder, and the plan that turns a file into trials. It is data: it runs nothing, judges
// nothing and prints nothing.
package scenarios

import (
	"reflect"
	"slices"
	"time"

	"retrylab/caller/policy"
	"retrylab/slowserver/capacity"
	"retrylab/slowserver/change"
	"retrylab/slowserver/fault"
	"retrylab/slowserver/guard"
	"retrylab/slowserver/ledger"
)

// Setup is what is run: operations, caller, hops and server. Durations are scenario time.
type Setup struct {
	Simulate    bool          `yaml:"simulate" doc:"plays the decisions of the layers and a queue of the service, and no sockets and no database: for more clients than real ones can be"`
	Operations  int           `yaml:"operations" doc:"how many intents, 1 to 10000; with simulate up to 1000000"`
	Interval    time.Duration `yaml:"interval" doc:"time from one operation to the next"`
	Schedule    []Intent      `yaml:"schedule" doc:"operations that differ, one item each; takes the place of operations"`
	Load        []Phase       `yaml:"load" doc:"in place of operations and interval: phases, one after the other, in which operations begin at some rate"`
	Concurrency int           `yaml:"concurrency" doc:"sends of one operation side by side, each through all layers"`
	Stagger     time.Duration `yaml:"stagger" doc:"time from one of them to the next"`
	Amount      Money         `yaml:"amount" doc:"amount of each order, in major units"`
	Caller      Caller        `yaml:"caller" doc:"the sending side"`
	Hops        []Hop         `yaml:"hops" doc:"gateways and services between caller and server, in order"`
	Server      Server        `yaml:"server" doc:"the order service"`
	Reconcile   Reconcile     `yaml:"reconcile" doc:"a job that compares what callers left open with the database"`
	Series      Series        `yaml:"series" doc:"counts over time, in windows: for the picture, and for what is said of peaks and recovery"`
	Premises    []Demand      `yaml:"premises" doc:"what must have taken place for a trial to count, beside the faults"`
}

// Intent is an operation that differs from the others, or a further send of one. What it leaves out is
// as for all of them, and as in its operation.
type Intent struct {
	At     *time.Duration `yaml:"at" doc:"when it starts; interval after the one before when absent"`
	Of     int            `yaml:"of" doc:"it is no operation of its own but a further send of this earlier one, counted from 1: from a second tab or device, or by another path. It goes through all layers, and what it leaves out is as in its operation"`
	Amount Money          `yaml:"amount" doc:"amount of its order, in major units"`
	Key    string         `yaml:"key" doc:"the idempotency key that each of its sends carries, word for word"`
	Tenant string         `yaml:"tenant" doc:"whose order it is, sent in the header X-Tenant"`
	Item   string         `yaml:"item" doc:"what is ordered (a book when absent)"`
}

// Timeouts are the separate limits of a sender; zero is none.
type Timeouts struct {
	Acquire time.Duration `yaml:"acquire" doc:"wait for a free connection of the pool"`
	Connect time.Duration `yaml:"connect" doc:"wait for a connection"`
	Read    time.Duration `yaml:"read" doc:"longest silence between two reads; not a total"`
	Attempt time.Duration `yaml:"attempt" doc:"limit of one send, from its start to its whole answer"`
	Total   time.Duration `yaml:"total" doc:"limit over all layers and tries"`

	TotalClock string        `yaml:"total-clock" doc:"what total is measured with: monotonic (the default) or calendar, the clock that clock-jumps set"`
	Poll       time.Duration `yaml:"poll" doc:"how often the sender looks whether total is over; always when absent"`
}

// ClockJump is a moment at which somebody sets a machine's calendar clock.
type ClockJump struct {
	At      time.Duration `yaml:"at" doc:"when, in scenario time"`
	Forward time.Duration `yaml:"forward" doc:"how far it is set forward"`
	Back    time.Duration `yaml:"back" doc:"how far it is set back"`
}

// String says what is done to the clock.
func (j ClockJump) String() string {
	if j.Back > 0 {
		return "set back by " + duration(j.Back)
	}
	return "set forward by " + duration(j.Forward)
}

// Caller is the sending side.
type Caller struct {
	Name       string            `yaml:"name" doc:"what the caller is called in reports"`
	Method     string            `yaml:"method" doc:"HTTP method of the order: POST, GET, PUT, DELETE, PATCH, HEAD, OPTIONS or TRACE"`
	Body       policy.Body       `yaml:"body" doc:"how the body is sent: none, buffered, fixed or chunked (streamed)"`
	Content    string            `yaml:"content" doc:"what later sends of an operation carry: same, changing (another amount each), spaced (the same, with other white space), signed (the same order, with a time of its own in the body), or the name of a layer (another amount on each of its tries: somebody changes the order and submits again)"`
	Timeouts   Timeouts          `yaml:"timeouts" doc:"limits of each send"`
	Layers     []policy.Settings `yaml:"layers" doc:"retry layers, outermost first"`
	Key        string            `yaml:"key" doc:"idempotency key: none, operation, attempt, content, appended (an interceptor adds one on each send), server (the service makes its own), or the name of a layer (a new one on each of its tries)"`
	Pool       int               `yaml:"pool" doc:"connections that may be open at once; no limit when absent"`
	Connection string            `yaml:"connection" doc:"fresh (one for each send) or reused (the first sends find idle connections that served a request before)"`
	Idle       int               `yaml:"idle" doc:"reused: how many idle connections there are at the start"`
	Leak       []int             `yaml:"leak" doc:"the operations, counted from 1, whose answer is never closed: its connection stays taken"`
	Redirects  string            `yaml:"redirects" doc:"none (the default) or follow: a 301, 302 or 303 makes a GET without a body of the request, a 307 or 308 keeps it"`
	Ask        *Ask              `yaml:"ask" doc:"asks what became of an order whose outcome it does not know; it does not when absent"`
	Accept     []int             `yaml:"accept" doc:"statuses that it takes for success beside those below 300, as a DELETE may a 404; its layers do not"`
	Deadline   string            `yaml:"deadline" doc:"its limits on a request (total, attempt, those of its layers): local (the default: nobody else knows of them) or header (what is left of them goes along)"`

	Threads     int           `yaml:"threads" doc:"operations that it has under way at once; no limit when absent"`
	Queue       *int          `yaml:"queue" doc:"threads: how many more operations may wait for one, the rest is turned away and sends nothing; any number when absent"`
	CancelAfter time.Duration `yaml:"cancel-after" doc:"so long after its start an operation is given up by whoever wanted it; never when absent"`
	ClockJumps  []ClockJump   `yaml:"clock-jumps" doc:"moments at which its calendar clock is set, in their order"`
}

// Server is the order service.
type Server struct {
	Name             string             `yaml:"name" doc:"what its replicas are called, before their number"`
	Processing       time.Duration      `yaml:"processing" doc:"time between the guard and the commit"`
	ProcessingSpread capacity.Spread    `yaml:"processing-spread" doc:"on top of processing: another time for each request, from the seed (log-normal, by two of its quantiles)"`
	Replicas         int                `yaml:"replicas" doc:"how many instances share the store"`
	Guard            guard.Settings     `yaml:"guard" doc:"protection against duplicates"`
	Faults           []fault.Settings   `yaml:"faults" doc:"defects, by place"`
	Answer           string             `yaml:"answer" doc:"when a request is answered: done (the default: after the commit) or accepted (202 as soon as the guard has let it through; then it works, whoever waits, and a crash loses what was accepted)"`
	ReadOnly         bool               `yaml:"read-only" doc:"what is asked for is a read: it does the work and writes no order, and none is wanted"`
	OnClientGone     string             `yaml:"on-client-gone" doc:"finish (the default) or cancel"`
	RateLimit        capacity.RateLimit `yaml:"rate-limit" doc:"how many requests it lets in over time; the rest is told 429. All when absent"`
	Workers          int                `yaml:"workers" doc:"requests that each replica works on at once, first come first served; no limit when absent"`
	Queue            *int               `yaml:"queue" doc:"workers: how many more may wait, the rest is told 503 at once; any number when absent"`
	Shed             string             `yaml:"shed" doc:"workers: which of those that wait are told 503 when their turn comes: none (the default), expired (whose deadline is over) or late (which cannot be done 10ms before it either)"`
	Deadline         string             `yaml:"deadline" doc:"what it does with a deadline that comes with a request: ignore (the default) or honour (gives up when it is over, unless the order is committed)"`
	Processes        bool               `yaml:"processes" doc:"on the wall clock each replica is a process of its own, which a crash really kills; the virtual clock plays the same within one"`

	Ledgers []ledger.Settings `yaml:"ledgers" doc:"what each order brings about beside itself, in ledgers of its own: messages, events, charges; counted by SQL like the orders"`

	Change                  change.Settings `yaml:"change" doc:"a row that all requests share and that each changes, such as a stock, a status or a document; an order is written, and counted as the effect, where it has changed the row, and for each that was read, then written"`
	Rows                    []string        `yaml:"rows" doc:"rows that orders share, such as an article's stock: each order's transaction changes them, in this order"`
	RowTime                 time.Duration   `yaml:"row-time" doc:"work between the change of one row and that of the next"`
	RowsOrder               string          `yaml:"rows-order" doc:"fixed (the default), or alternate: every second arrival changes the rows the other way round"`
	OrderOutsideTransaction bool            `yaml:"order-outside-transaction" doc:"writes the order in a statement of its own when the work is done, as code does that calls the pool where it should call the transaction"`
	TransactionRetries      int             `yaml:"transaction-retries" doc:"how often a transaction is done again, from its beginning, that the database has refused with a serialization failure or a deadlock; 0 to 10"`
	OnUnknownCommit         string          `yaml:"on-unknown-commit" doc:"when the reply to a COMMIT is lost: fail (a 500, the default), retry (the whole transaction once more), ask (the database what became of it) or commit-again (the COMMIT alone, on a new connection, where it commits nothing)"`
}

// Expect is what a configuration must come to. A field that is absent is not checked.
type Expect struct {
	Tries                 *int            `yaml:"tries" doc:"tries of the caller's innermost layer: its sends, and those that failed at once because a limit was over"`
	Sends                 *int            `yaml:"sends" doc:"requests started by the caller's innermost layer"`
	Arrivals              *int            `yaml:"arrivals" doc:"requests that reached the order service"`
	Runs                  *int            `yaml:"runs" doc:"times that the order service began to work: arrivals that no guard answered"`
	Effects               *int            `yaml:"effects" doc:"orders when everything has settled"`
	Lookups               *int            `yaml:"lookups" doc:"questions of the caller what became of an order; they are no sends"`
	EffectsWhenCallerDone *int            `yaml:"effects-when-caller-done" doc:"orders when the caller was done"`
	Duplicates            *int            `yaml:"duplicates" doc:"effects above wanted"`
	Lost                  *int            `yaml:"lost" doc:"operations believed ok with too few effects"`
	FalseFailures         *int            `yaml:"false-failures" doc:"operations believed failed though an effect exists"`
	Late                  *int            `yaml:"late" doc:"effects after the caller was done"`
	Amount                *Money          `yaml:"amount" doc:"sum of the orders' amounts, in major units"`
	Belief                string          `yaml:"belief" doc:"of every operation: ok, failed or unknown"`
	Beliefs               *Beliefs        `yaml:"beliefs" doc:"operations by belief, where they differ"`
	BeliefWhenCallerDone  string          `yaml:"belief-when-caller-done" doc:"of every operation, before a job has settled what was left open"`
	Reason                string          `yaml:"reason" doc:"what every operation's belief rests on"`
	Amplification         *float64        `yaml:"amplification" doc:"arrivals divided by operations"`
	CallerDone            *time.Duration  `yaml:"caller-done" doc:"when the last operation ended"`
	LongestHold           *time.Duration  `yaml:"longest-hold" doc:"longest time from the start of an operation to its end, the wait for a thread included: for so long its caller waited"`
	Goodput               *float64        `yaml:"goodput" doc:"operations believed ok per second until the last operation has ended, to a hundredth"`
	PeakStarts            *int            `yaml:"peak-starts" doc:"sends of the caller in the busiest window of the series"`
	RecoveredAfter        *time.Duration  `yaml:"recovered-after" doc:"from the end of the disturbance to the window from which on the goodput is back: nine operations believed ok in a window for ten that begin"`
	Settled               *time.Duration  `yaml:"settled" doc:"when nothing more could happen"`
	Starts                []time.Duration `yaml:"starts" doc:"when the caller's sends began"`
	Outcomes              []string        `yaml:"outcomes" doc:"what the caller's innermost layer saw of each of its sends, in the order in which they began: the status of the answer, or in the words of reason what took its place"`
	Arrived               []time.Duration `yaml:"arrived" doc:"when the requests reached the order service"`
	Overlap               *int            `yaml:"overlap" doc:"most requests that the order service was at work on at one instant"`
	Commits               []time.Duration `yaml:"commits" doc:"when the orders were committed"`
	SendsBy               map[string]int  `yaml:"sends-by" doc:"sends of each machine"`
	ArrivalsAt            map[string]int  `yaml:"arrivals-at" doc:"arrivals at each machine"`
	Answers               map[string]int  `yaml:"answers" doc:"answers of the order service by status"`
	Ledgers               map[string]int  `yaml:"ledgers" doc:"entries of each ledger when everything has settled"`
	LostUpdates           *int            `yaml:"lost-updates" doc:"effects that the number in the row which requests share does not show: somebody has written over them"`
	State                 string          `yaml:"state" doc:"value of the row that requests share, or absent"`
	TurnedAway            *int            `yaml:"turned-away" doc:"operations that found no thread of the caller free and no place in its queue"`
	ThreadsUsed           *int            `yaml:"threads-used" doc:"most operations that the caller had under way at one instant; on the virtual clock only"`
	BudgetSpent           *int            `yaml:"budget-spent" doc:"times that a try was not followed by another because a retry budget was spent"`
	OrdersTold            *int            `yaml:"orders-told" doc:"different order numbers that the caller was told"`
	ClientsGone           *int            `yaml:"clients-gone" doc:"times that the order service found its client gone"`
}

// Said is what is widely said to come out of a configuration, where that is wrong. It is shown
// beside what was measured, and each number of it stands in expect as well, as what is true.
type Said struct {
	Sends    *int           `yaml:"sends" doc:"requests started by the caller's innermost layer"`
	Arrivals *int           `yaml:"arrivals" doc:"requests that reached the order service"`
	Effects  *int           `yaml:"effects" doc:"orders when everything has settled"`
	Answers  map[string]int `yaml:"answers" doc:"answers of the order service by status"`
}

// Beliefs counts operations by belief.
type Beliefs struct {
	OK      int `yaml:"ok" doc:"operations believed done"`
	Failed  int `yaml:"failed" doc:"operations believed refused"`
	Unknown int `yaml:"unknown" doc:"operations whose outcome the caller does not know"`
}

// Demand is an expression over a trial's counts that must be true, with the place where it stands.
type Demand struct {
	Expression string
	At         Place
}

// Place is where something stands in a file.
type Place struct {
	File         string
	Line, Column int
}

// header is what a file says of its scenario beside what is run.
type header struct {
	Name     string   `yaml:"name" doc:"the scenario's name: lower-case letters, digits and hyphens"`
	Title    string   `yaml:"title" doc:"one line"`
	Family   string   `yaml:"family" doc:"timeouts, layers, guards, unknown-outcomes, load or incidents"`
	Lesson   string   `yaml:"lesson" doc:"three to ten plain sentences"`
	Tags     []string `yaml:"tags" doc:"for run --tag"`
	Needs    []string `yaml:"needs" doc:"stores without which it shows nothing"`
	Clocks   []string `yaml:"clocks" doc:"clocks it can run on: virtual, wall; both when absent"`
	Seeds    []int    `yaml:"seeds" doc:"seeds that each configuration is run with, unless --seed or --repeat says otherwise; 1 when absent"`
	Next     string   `yaml:"next" doc:"the name of the scenario to try after this one"`
	Focus    string   `yaml:"focus" doc:"id of the configuration that is drawn and spoken of; the most harmful one when absent"`
	Remedy   string   `yaml:"remedy" doc:"id of the configuration that is held against it; none when absent"`
	Currency string   `yaml:"currency" doc:"symbol before amounts, at most 8 characters; amounts are shown when it is given"`
	Begin    string   `yaml:"begin" doc:"time of day at scenario time zero, as 14:08:33.512"`
	Sources  []string `yaml:"sources" doc:"where its facts come from"`
}

// variant is one row of a scenario.
type variant struct {
	Name      string   `yaml:"name" doc:"the row's name"`
	ID        string   `yaml:"id" doc:"the row's id; made of the name when absent"`
	Set       sets     `yaml:"set" doc:"what differs from the scenario: path: value"`
	Expect    *Expect  `yaml:"expect" doc:"the numbers that it must give"`
	Said      *Said    `yaml:"said" doc:"what is widely said to come out, where that is wrong"`
	Invariant []Demand `yaml:"invariant" doc:"expressions that must be true whatever the numbers are"`
}

// file is a scenario file, whole.
type file struct {
	header
	Setup
	Expect    *Expect   `yaml:"expect" doc:"the numbers that it must give, where there are no variants"`
	Invariant []Demand  `yaml:"invariant" doc:"expressions that must be true, where there are no variants"`
	Variants  []variant `yaml:"variants" doc:"one row each, baseline first"`
}

// Scenario is a parsed file: what it says of itself, and what it takes to plan trials from it.
type Scenario struct {
	Name, Title, Family, Lesson string
	Tags, Needs, Clocks         []string
	Seeds                       []int
	Next, Focus, Remedy         string
	Currency, Begin             string
	Sources                     []string

	File     string // as given on the command line, or scenarios/name.yaml for a built-in one
	Source   []byte // the file's bytes
	Variants []Variant

	tree *node
}

// Variant is one configuration of a scenario as its file names it.
type Variant struct {
	Name, ID string
	Changes  []Change // what it sets, in the file's order
	Said     *Said    // what is widely, and wrongly, said of it
	at       position
}

// Change is one path that a variant sets, with the value as written.
type Change struct{ Path, Value string }

// Trial is one configuration of a scenario, resolved and checked: all that is needed to run it
// once and to judge what was seen.
type Trial struct {
	Scenario      string
	Configuration string
	ID            string
	Setup         Setup
	Layers        []policy.Layer   // the caller's, resolved
	HopLayers     [][]policy.Layer // one list per hop
	Expect        *Expect
	Said          *Said            // nil where nothing wrong is said of it
	Places        map[string]Place // where each expectation stands, by its key
	Invariants    []Demand
	Asserts       []Demand // demanded of every trial of the run; they stand in no file
	Seed          int64
	Row           int      // its place among the rows of the scenario, from 0
	Varied        []Change // in a sweep, the settings that make this row, in the order of the sweep
	Begin         string
	Needs         string // the engine without which it shows nothing, with the reason in Why; empty for any
	Why           string

	written, checks *node // what is written of the setup, and of what is demanded
	prefix          string
	own             map[position]bool // places of what the configuration itself changes
	nameAt, idAt    position
}

// Demands lists every expression that is asked of the trial.
func (t Trial) Demands() []Demand { return slices.Concat(t.Setup.Premises, t.Invariants, t.Asserts) }

// Wanted is the number of effects that the user meant.
func (t Trial) Wanted() int {
	if t.Setup.Server.ReadOnly {
		return 0
	}
	return t.Setup.Operations
}

// ReplicaNames lists the names of the order service's instances.
func (s Server) ReplicaNames() []string {
	if s.Replicas == 1 {
		return []string{s.Name + "-1"}
	}
	names := make([]string, s.Replicas)
	for i := range names {
		names[i] = s.Name + "-" + itoa(i+1)
	}
	return names
}

// Position is the place of a configuration among the scenario's, from 0.

// FileType is the type of a scenario file, for the schema that is made from it.
func FileType() reflect.Type { return reflect.TypeFor[file]() }

// SetsType is the type of a variant's set.
func SetsType() reflect.Type { return reflect.TypeFor[sets]() }
