// Package ledger says what an order service does beside the order: which other ledgers it writes
// to, a message broker or a payment gateway, at which moment, and what they know an entry by. It is
// what may be written down; the service plays it.
package ledger

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The moments at which an entry is made.
const (
	BeforeWork  = "before-work"  // a row of the service's own, durable before anything else is done
	InWork      = "in-work"      // at another system, in the middle of the work
	WithOrder   = "with-order"   // in the order's transaction
	Outbox      = "outbox"       // a row in the order's transaction, which a relay sends on
	AfterCommit = "after-commit" // at another system, when the order is committed
)

// Moments lists them in the order of a request's life.
var Moments = []string{BeforeWork, InWork, WithOrder, Outbox, AfterCommit}

// What a ledger knows an entry by.
const (
	ByNothing   = "none"
	ByAttempt   = "attempt"
	ByKey       = "key"
	ByOperation = "operation"
	ByOrder     = "order"
)

// References lists them.
var References = []string{ByNothing, ByAttempt, ByKey, ByOperation, ByOrder}

// Settings is a ledger as a scenario file writes it.
type Settings struct {
	Name       string        `yaml:"name" doc:"what it is called in expectations and reports, such as messages or charges"`
	When       string        `yaml:"when" doc:"when the entry is made: before-work (a row of the service's own), in-work (at another system), with-order (in the order's transaction), outbox (a row in the order's transaction, which a relay sends on) or after-commit (at another system, the default)"`
	At         time.Duration `yaml:"at" doc:"in-work: how far into the work, at the latest at its end; at its beginning when absent"`
	Reference  string        `yaml:"reference" doc:"what the ledger knows an entry by, and takes one of each: none (it takes every one, the default), attempt (made for the call), key (the Idempotency-Key), operation (the business number of the intent) or order (the number of the order)"`
	Duplicates bool          `yaml:"duplicates" doc:"with-order, outbox, after-commit: an entry is made for a duplicate too that the guard answers with what is stored"`
	Relay      Relay         `yaml:"relay" doc:"outbox: the job that sends the rows on"`
}

// Relay is the job that sends the rows of an outbox on.
type Relay struct {
	After time.Duration `yaml:"after" doc:"how long after the commit it sends"`
	Sends int           `yaml:"sends" doc:"how often it sends each row, 1 to 10, as one does that dies before it has noted that it has sent; 1 when absent"`
}

// Most is how many ledgers a service has at most.
const Most = 8

var namePattern = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// OutboxName is the ledger that holds the rows of an outbox, in the service's own database.
func (s Settings) OutboxName() string { return s.Name + "-outbox" }

// Names lists the ledgers that are written to for s: one, or two with an outbox.
func (s Settings) Names() []string {
	if s.When == Outbox {
		return []string{s.Name, s.OutboxName()}
	}
	return []string{s.Name}
}

// Problem is what is wrong with settings: which, why, and what would be right.
type Problem struct{ Field, What, Hint string }

// Check returns the first thing that is wrong with s, nil when the service can play it.
func (s Settings) Check() *Problem {
	switch {
	case !namePattern.MatchString(s.Name) || len(s.Name) > 40:
		return &Problem{"name", fmt.Sprintf("%q is no name for a ledger", s.Name), "lower-case letters, digits and hyphens, at most 40"}
	case !slices.Contains(Moments, s.When):
		return &Problem{"when", fmt.Sprintf("when cannot be %q", s.When), "one of: " + strings.Join(Moments, ", ")}
	case !slices.Contains(References, s.Reference):
		return &Problem{"reference", fmt.Sprintf("reference cannot be %q", s.Reference), "one of: " + strings.Join(References, ", ")}
	case s.At != 0 && s.When != InWork:
		return &Problem{"at", "at means nothing to an entry that is made " + s.When, "write when: in-work"}
	case s.Reference == ByOrder && (s.When == BeforeWork || s.When == InWork):
		return &Problem{"reference", "there is no order yet when the entry is made " + s.When, "use key or operation"}
	case s.Duplicates && (s.When == BeforeWork || s.When == InWork):
		return &Problem{"duplicates", "duplicates means nothing to an entry that is made " + s.When, "an entry of the work is made for each request that works"}
	case s.Relay != (Relay{}) && s.When != Outbox:
		return &Problem{"relay", "a relay sends the rows of an outbox on, and this is none", "write when: outbox"}
	case s.When == Outbox && (s.Relay.Sends < 1 || s.Relay.Sends > 10):
		return &Problem{"relay", fmt.Sprintf("relay.sends must be between 1 and 10, not %d", s.Relay.Sends), ""}
	}
	return nil
}

// Default fills in what a file leaves out.
func (s *Settings) Default() {
	if s.When == "" {
		s.When = AfterCommit
	}
	if s.Reference == "" {
		s.Reference = ByNothing
	}
	if s.When == Outbox && s.Relay.Sends == 0 {
		s.Relay.Sends = 1
	}
}
