package lab

// Verdict is what a trial comes to. Its zero value is Inconclusive, so that nothing is green
// because nobody looked.
type Verdict int

// The verdicts.
const (
	Inconclusive  Verdict = iota // what the file injects did not take place, or the lab broke
	AsExpected                   // every check held
	NotAsExpected                // a check did not hold
	Measured                     // no check to hold or not
)

var verdictNames = [...]string{"inconclusive", "as_expected", "not_as_expected", "measured"}

// String returns the verdict's name in JSON.
func (v Verdict) String() string { return verdictNames[v] }

// MarshalText writes the verdict's name.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads a verdict's name; an unknown one is inconclusive.
func (v *Verdict) UnmarshalText(text []byte) error {
	*v = Inconclusive
	for i, name := range verdictNames {
		if name == string(text) {
			*v = Verdict(i)
		}
	}
	return nil
}

// Counts are the numbers of one trial. Sends come from the caller, arrivals from the last server,
// effects from the database.
type Counts struct {
	Operations            int   `json:"operations"`
	Wanted                int   `json:"wanted"`
	Sends                 int   `json:"sends"`
	Arrivals              int   `json:"arrivals"`
	Lookups               int   `json:"lookups,omitempty"` // questions of the callers what became of an order
	Effects               int   `json:"effects"`
	EffectsWhenCallerDone int   `json:"effects_when_caller_done"`
	Duplicates            int   `json:"duplicates"`                  // effects above wanted
	Lost                  int   `json:"lost"`                        // operations believed ok with too few effects
	FalseFailures         int   `json:"false_failures"`              // operations believed failed though an effect exists
	Late                  int   `json:"late"`                        // effects after the caller was done
	LedgerDuplicates      int   `json:"ledger_duplicates,omitempty"` // entries above wanted in the ledgers beside the orders
	LostUpdates           int   `json:"lost_updates,omitempty"`      // effects that the number in the row which requests share does not show
	TurnedAway            int   `json:"turned_away,omitempty"`       // operations that found no thread of the caller free
	Amount                int64 `json:"amount_minor"`                // sum of the effects' amounts
}

// Beliefs counts the operations by what their callers believe.
type Beliefs struct {
	OK      int `json:"ok"`
	Failed  int `json:"failed"`
	Unknown int `json:"unknown"`
}

// Add counts one more operation.
func (b *Beliefs) Add(belief Belief) { b.AddTimes(belief, 1) }

// AddTimes counts n more operations.
func (b *Beliefs) AddTimes(belief Belief, n int) {
	switch belief {
	case OK:
		b.OK += n
	case Failed:
		b.Failed += n
	case Unknown:
		b.Unknown += n
	}
}

// Ledger is what a ledger beside the orders has come to.
type Ledger struct {
	Name       string `json:"name"`
	Entries    int    `json:"entries"`
	Duplicates int    `json:"duplicates,omitempty"` // entries above wanted
	Note       bool   `json:"note,omitempty"`       // it is the service's own: what it is about to do or has handed to a relay, and no result
}

// Check is one thing that was demanded of a trial.
type Check struct {
	Kind     string `json:"kind"` // premise, expect, invariant or assert
	Name     string `json:"name"` // effects, belief, … or the expression
	Expected string `json:"expected"`
	Actual   string `json:"actual"`
	Held     bool   `json:"held"`
	// Undefined says that it neither holds nor does not: Actual is why, such as a division by zero.
	Undefined bool     `json:"undefined,omitempty"`
	File      string   `json:"file,omitempty"` // where the demand stands
	Line      int      `json:"line,omitempty"`
	Column    int      `json:"column,omitempty"`
	Evidence  []string `json:"evidence,omitempty"` // the events it rests on, at most a few
}

// Said is a number that is widely said to come out of a configuration, beside the one that did.
type Said struct {
	Name     string `json:"name"` // sends, arrivals, effects, or answers with a status
	Said     int    `json:"said"`
	Measured int    `json:"measured"`
}

// Setting is one value of a scenario file, by its path.
type Setting struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

// Varying is a setting that takes several values in turn.
type Varying struct {
	Path   string   `json:"path"`
	Values []string `json:"values"`
}

// Tie says what the seed alone decides.
type Tie struct {
	Pairs []string `json:"pairs"`         // what falls into one instant, each in words
	Least int      `json:"effects_least"` // with one first or the other: measured, by a little more and less processing
	Most  int      `json:"effects_most"`
}

// Result is one judged trial.
type Result struct {
	Scenario      string `json:"scenario"`
	Configuration string `json:"configuration"`
	ID            string `json:"id"`
	Seed          int64  `json:"seed"`
	// Varied are the settings that make this row, where the run is a sweep.
	Varied []Setting `json:"varied,omitempty"`
	// Tie is there where two deciding events fall into one instant, and which of them is first makes
	// another number of effects. It is looked for in sweeps only.
	Tie           *Tie    `json:"tie,omitempty"`
	Simulated     bool    `json:"simulated,omitempty"` // no machines and no database: there are counts, and neither events nor orders nor reasons
	Counts        Counts  `json:"counts"`
	Uncounted     bool    `json:"uncounted,omitempty"` // the trial broke before anything was counted: the zeros mean nothing
	Amplification float64 `json:"amplification"`       // arrivals ÷ operations
	// Answers counts the answers of the order service by status, those that nobody waited for included.
	Answers map[string]int `json:"answers,omitempty"`
	// Ledgers are the ledgers beside the orders, as the file lists them.
	Ledgers []Ledger `json:"ledgers,omitempty"`
	// State is the row that requests share, where they change one.
	State   *State  `json:"state,omitempty"`
	Beliefs Beliefs `json:"beliefs"`
	// BeliefsWhenCallerDone are what the callers were done with, where a job has settled some since.
	BeliefsWhenCallerDone *Beliefs `json:"beliefs_when_caller_done,omitempty"`
	Reasons               []string `json:"belief_reasons"` // one per operation, in order: "read timeout", "201", …
	CallerDoneMs          int64    `json:"caller_done_ms"`
	// LongestHoldMs is how long the operation took that took longest, the wait for a
	// thread included: for so long its caller waited.
	LongestHoldMs int64 `json:"longest_hold_ms"`
	// GoodputPerS is how many operations a second came to an end that their callers believe ok, from
	// the start of the trial to the end of the last operation.
	GoodputPerS float64 `json:"goodput_per_s"`
	// Series are the counts over time, where the scenario asks for some.
	Series    *Series `json:"series,omitempty"`
	SettledMs int64   `json:"settled_ms"`
	// Said is what is widely, and wrongly, said to come out, with what was measured.
	Said        []Said   `json:"said,omitempty"`
	Verdict     Verdict  `json:"verdict"`
	Why         string   `json:"why,omitempty"`         // why a trial is inconclusive
	Defect      bool     `json:"defect,omitempty"`      // why is a defect of the lab's own code
	Environment bool     `json:"environment,omitempty"` // why is about what the lab stands on
	Store       *Store   `json:"store,omitempty"`       // only where it is not the run's
	Keys        *Store   `json:"keys,omitempty"`        // of the keys beside the database, where there are some
	Nodes       []Node   `json:"nodes"`
	Checks      []Check  `json:"checks"`
	Orders      []Effect `json:"orders"`
	Entries     []Entry  `json:"entries,omitempty"` // of the ledgers beside the orders
	Events      []Event  `json:"events"`
}

// Skip is a scenario or configuration that was not run, with the reason.
type Skip struct {
	Scenario string `json:"scenario"`
	ID       string `json:"id,omitempty"`
	Reason   string `json:"reason"`
	Missing  string `json:"missing,omitempty"` // the store for want of which it was not run
}

// Summary counts results by verdict.
type Summary struct {
	AsExpected    int `json:"as_expected"`
	NotAsExpected int `json:"not_as_expected"`
	Inconclusive  int `json:"inconclusive"`
	Measured      int `json:"measured"`
	Skipped       int `json:"skipped"`
}

// ScenarioInfo is what a report says of a scenario beside its numbers.
type ScenarioInfo struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Family string `json:"family"`
	File   string `json:"file,omitempty"` // as it was named; of a built-in one its place in the source
	Lesson string `json:"lesson"`
	// Shown is one or two sentences that say what the numbers came to.
	Shown    string   `json:"shown"`
	Next     string   `json:"next,omitempty"`     // the scenario to try after this one
	Currency string   `json:"currency,omitempty"` // symbol before amounts; empty where amounts teach nothing
	Begin    string   `json:"begin,omitempty"`    // time of day of scenario time zero, hh:mm:ss.mmm, where one is given
	Baseline string   `json:"baseline,omitempty"` // id of the configuration that the others are compared with
	Focus    string   `json:"focus,omitempty"`    // id of the configuration whose timeline is drawn
	Notes    []string `json:"notes,omitempty"`
}

// Tool names the program that made a document.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// RunInfo is what was asked for.
type RunInfo struct {
	ID    string  `json:"id"` // digest of what was asked for: the same run has the same id
	Seed  int64   `json:"seed"`
	Clock string  `json:"clock"`           // virtual or wall
	Speed float64 `json:"speed,omitempty"` // scenario seconds per real second; absent on the virtual clock
	// Set, Assert, Repeat and Only are what was asked for beside the scenarios themselves.
	Set    []string `json:"set,omitempty"`
	Assert []string `json:"assert,omitempty"`
	Repeat int      `json:"repeat,omitempty"`
	Only   []string `json:"only,omitempty"` // scenario:id
	// InconclusivePasses is set when an inconclusive trial was not to fail the run.
	InconclusivePasses bool `json:"inconclusive_passes,omitempty"`
	// Shard is set where the document holds a part of the run.
	Shard *Shard `json:"shard,omitempty"`
	// Vary are the settings that take several values in turn, each combination a row.
	Vary  []Varying `json:"vary,omitempty"`
	Store Store     `json:"store"`
	// Interrupted is set when the run was stopped before its end; the results are those that
	// were complete by then.
	Interrupted bool `json:"interrupted,omitempty"`
	// Incomplete is set when some of what was asked for was not run: for an interrupt, a limit of time or the
	// first that did not hold. It stands among what was skipped.
	Incomplete bool `json:"incomplete,omitempty"`
}

// Shard says which part of a run a document holds, with what it takes to put the parts together.
type Shard struct {
	Index   int `json:"index"`   // from 1
	Count   int `json:"count"`   // parts of the run
	Planned int `json:"planned"` // trials of the whole run
	// Results and Skipped are the places of what the document lists in the order of the whole run.
	Results    []int            `json:"results"`
	Skipped    []int            `json:"skipped"`
	Scenarios  []ShardScenario  `json:"scenarios"`
	Incomplete bool             `json:"incomplete,omitempty"` // --time-limit was spent before all of it was run
	Exit       ShardExitOptions `json:"exit"`
}

// ShardScenario is what the sentence about a scenario is made with, once all its results are there.
type ShardScenario struct {
	Name   string `json:"name"`
	Focus  string `json:"focus,omitempty"`  // id of the configuration that the sentence is to be about
	Remedy string `json:"remedy,omitempty"` // id of the one that it is held against
}

// ShardExitOptions are what the exit code of the run depends on beside its results.
type ShardExitOptions struct {
	NotHeld    int  `json:"not_held"`              // the code where something does not hold
	RequireAll bool `json:"require_all,omitempty"` // what was skipped for want of a store does
}

// Comparison holds configurations against the first of them, or one saved result against another.
type Comparison struct {
	// Sources are the names of the two saved results that were compared, the earlier first; absent where
	// configurations were held against each other.
	Sources []string `json:"sources,omitempty"`
	// Settings are those in which the rows differ or, between two saved results, what was asked for otherwise.
	Settings []Contrast    `json:"settings"`
	Rows     []ComparedRow `json:"rows"` // in the order of the results, the baseline first; none between saved results
	// Changes are the trials that came out otherwise in the second of two saved results, or are in one of them only.
	Changes  []Change `json:"changes,omitempty"`
	Same     []Trial  `json:"same,omitempty"`     // trials in which everything that is measured is what it was
	Open     []Change `json:"open,omitempty"`     // trials that are inconclusive in both: nothing is known of a change
	Compared int      `json:"compared,omitempty"` // trials that are in both
}

// OfSaved reports whether two saved results were compared. It is false of a nil comparison.
func (c *Comparison) OfSaved() bool { return c != nil && len(c.Sources) > 0 }

// Contrast is a setting with its value in each row, or in each of two saved results; "" where it is not set.
type Contrast struct {
	Path   string   `json:"path"`
	Values []string `json:"values"`
}

// ComparedRow is one configuration of a comparison.
type ComparedRow struct {
	Scenario    string   `json:"scenario"`
	ID          string   `json:"id"`
	Differences []string `json:"differences"` // from the baseline, in words; empty where there is none
	// Varies are the numbers that hang on the seed, with in how many seeds each came; absent where nobody asked.
	Varies []string `json:"varies,omitzero"`
}

// Trial names one trial of a result.
type Trial struct {
	Scenario string `json:"scenario"`
	ID       string `json:"id"`
	Seed     int64  `json:"seed"`
}

// The kinds of a [Change].
const (
	ChangeMeasured = "changed"      // it came out otherwise
	ChangeNew      = "new"          // it is in the second result only
	ChangeGone     = "gone"         // it is in the first result only
	ChangeOpen     = "inconclusive" // it is inconclusive in one of the two or in both
)

// Change is a trial that came out otherwise.
type Change struct {
	Trial
	Kind string   `json:"kind"`
	What []string `json:"what"`
}

// Document is one run's outcome: what every report format is a view of.
type Document struct {
	Schema        string         `json:"schema"`         // always "retrylab.result"
	SchemaVersion string         `json:"schema_version"` // additive within a major
	Tool          Tool           `json:"tool"`
	Run           RunInfo        `json:"run"`
	Scenarios     []ScenarioInfo `json:"scenarios"`
	Results       []Result       `json:"results"`
	Skipped       []Skip         `json:"skipped"`
	// Comparison is there where the results were held against each other.
	Comparison *Comparison `json:"comparison,omitempty"`
	Summary    Summary     `json:"summary"`
	ExitCode   int         `json:"exit_code"`
}

// The identity of a result document.
const (
	ResultSchema        = "retrylab.result"
	ResultSchemaVersion = "1.0.0"
)
