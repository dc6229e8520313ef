package policy

import (
	"fmt"
	"math"
)

// Budget bounds the retries of all calls of a layer together, as a scenario file writes it. It is
// either a share of the calls (ratio, min) or a bucket of tokens (the rest).
type Budget struct {
	Ratio *float64 `yaml:"ratio" doc:"retries that are allowed for each call so far, such as 0.1; not together with tokens"`
	Min   int      `yaml:"min" doc:"ratio: retries that are allowed besides, however few calls there were"`

	Tokens      *float64 `yaml:"tokens" doc:"tokens in the bucket when it is full, as it is at the start; not together with ratio"`
	Cost        float64  `yaml:"cost" doc:"tokens: what a retry takes (default 1); the call that it helps gives the last one back"`
	TimeoutCost float64  `yaml:"timeout-cost" doc:"tokens: what a retry after a time-out takes (default: cost)"`
	Refill      float64  `yaml:"refill" doc:"tokens: what a call gives back that succeeds without a retry; with stop: half, each call that succeeds (default 0)"`
	Stop        string   `yaml:"stop" doc:"tokens: empty (the default: no retry when too few are left to pay for it) or half (each failure takes the cost, retried or not, and there is no retry while half or less is left, as gRPC has it)"`
}

// The values of Budget.Stop.
const (
	StopEmpty = "empty"
	StopHalf  = "half"
)

// BudgetSpent is the reason for which a try is not followed by another when its layer has a budget
// and that is spent.
const BudgetSpent = "retry budget is spent"

// maxTokens bounds the numbers of a budget: in floating point, whole numbers are exact far beyond.
const maxTokens = 1_000_000

// String lists what is set, as a scenario file writes it.
func (b Budget) String() string { return listed(b) }

func (b *Budget) validate() error {
	switch {
	case b == nil:
		return nil
	case b.Ratio != nil && b.Tokens != nil:
		return &FieldError{"budget.tokens", "a budget is a share of the calls or a bucket of tokens, not both"}
	case b.Tokens == nil && (b.Cost != 0 || b.TimeoutCost != 0 || b.Refill != 0 || b.Stop != ""):
		return &FieldError{"budget", "it says what a retry takes, and not of how many tokens; write tokens: 500"}
	case b.Tokens != nil && b.Min != 0:
		return &FieldError{"budget.min", "a bucket of tokens has no min; it goes with ratio"}
	case b.Tokens == nil && b.Ratio == nil && b.Min == 0:
		return &FieldError{"budget", "it does not say how much; write ratio: 0.1 or tokens: 500"}
	}
	for _, n := range []struct {
		field string
		value *float64
	}{{"ratio", b.Ratio}, {"tokens", b.Tokens}, {"cost", &b.Cost}, {"timeout-cost", &b.TimeoutCost}, {"refill", &b.Refill}} {
		if n.value != nil && !(*n.value >= 0 && *n.value <= maxTokens) {
			return &FieldError{"budget." + n.field, fmt.Sprintf("%v is not between 0 and %d", *n.value, maxTokens)}
		}
	}
	if err := number("budget.min", &b.Min, 0, maxTokens); err != nil {
		return err
	}
	return choice("budget.stop", b.Stop, StopEmpty, StopHalf)
}

// Account is what the calls of a layer have spent of its budget. It belongs to one owner, who calls
// it in the order of time; it has no lock and reads no clock.
type Account struct {
	budget         Budget
	calls, retries int
	tokens         float64
}

// Open returns the account of a budget of which nothing is spent.
func (b Budget) Open() *Account {
	if b.Cost == 0 {
		b.Cost = 1
	}
	if b.TimeoutCost == 0 {
		b.TimeoutCost = b.Cost
	}
	a := &Account{budget: b}
	if b.Tokens != nil {
		a.tokens = *b.Tokens
	}
	return a
}

// Call notes that a call begins.
func (a *Account) Call() { a.calls++ }

// Pay pays for a try that follows one which ended with out, or for one beside it where out is zero.
// It returns what it cost, and false when too little is left: then there is no further try.
func (a *Account) Pay(out Outcome) (float64, bool) {
	if a.budget.Tokens == nil {
		allowed := float64(a.budget.Min)
		if a.budget.Ratio != nil {
			allowed += *a.budget.Ratio * float64(a.calls)
		}
		if float64(a.retries+1) > allowed+1e-9 { // 0.1·30 is more than 3 by a hair
			return 0, false
		}
		a.retries++
		return 0, true
	}
	cost := a.cost(out)
	if a.budget.Stop == StopHalf {
		return 0, a.tokens > *a.budget.Tokens/2
	}
	if a.tokens < cost {
		return 0, false
	}
	a.tokens -= cost
	return cost, true
}

// Fail notes a try that failed, whatever comes after it. It is to be called before [Account.Pay].
func (a *Account) Fail(out Outcome) {
	if a.budget.Stop == StopHalf {
		a.tokens = max(0, a.tokens-a.cost(out))
	}
}

// Succeed notes that a call has succeeded; paid is what its last retry cost, 0 for none.
func (a *Account) Succeed(paid float64) {
	if a.budget.Tokens == nil {
		return
	}
	if paid == 0 {
		paid = a.budget.Refill
	}
	a.tokens = math.Min(*a.budget.Tokens, a.tokens+paid)
}

func (a *Account) cost(out Outcome) float64 {
	switch out.Failure {
	case ConnectTimeout, ReadTimeout, AttemptTimeout:
		return a.budget.TimeoutCost
	}
	return a.budget.Cost
}
