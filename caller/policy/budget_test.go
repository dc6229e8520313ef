package policy

import (
	"errors"
	"strings"
	"testing"
)

// TestBudget plays calls one after the other: "f" is a try that failed, "t" one that timed out, "s"
// a success, "|" the end of a call. The result has a + for each retry that was paid for and a - for
// each that was not.
func TestBudget(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		budget Budget
		play   string
		want   string
	}{
		{"a tenth of the calls", Budget{Ratio: new(0.1)}, strings.Repeat("f|", 25), "---------+---------+-----"},
		{"a tenth and two", Budget{Ratio: new(0.1), Min: 2}, strings.Repeat("f|", 12), "++-------+--"},
		{"some that no call earned", Budget{Min: 1}, "ff|f", "+--"},
		{"nothing", Budget{Ratio: new(0.0)}, "f|f", "--"},
		{"no rounding error", Budget{Ratio: new(0.7)}, strings.Repeat("f|", 10), "-++-++-+++"},
		{"aws: a retry costs five", Budget{Tokens: new(12.0), Cost: 5, TimeoutCost: 10, Refill: 1}, "fff", "++-"},
		{"aws: after a time-out ten", Budget{Tokens: new(12.0), Cost: 5, TimeoutCost: 10, Refill: 1}, "tf", "+-"},
		{"aws: a retry that helped is given back", Budget{Tokens: new(10.0), Cost: 5, Refill: 1}, "ffs|ff|f", "+++--"},
		{"aws: a first try gives one back", Budget{Tokens: new(5.0), Cost: 5, Refill: 1}, "f|s|s|s|s|f|s|f", "+-+"},
		{"a full bucket takes no more", Budget{Tokens: new(1.0), Refill: 5}, "s|s|f|f", "+-"},
		{"grpc: half is the end", Budget{Tokens: new(10.0), Refill: 0.1, Stop: StopHalf}, "ffffff", "++++--"},
		{"grpc: each success gives a tenth", Budget{Tokens: new(4.0), Refill: 0.5, Stop: StopHalf}, "f|f|s|s|s|f|f", "+-+-"},
	}
	for _, tt := range tests {
		if err := tt.budget.validate(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		account, paid, got := tt.budget.Open(), 0.0, ""
		account.Call()
		for _, c := range tt.play {
			out := Outcome{Status: 503}
			switch c {
			case '|':
				account.Call()
				paid = 0
				continue
			case 's':
				account.Succeed(paid)
				continue
			case 't':
				out = Outcome{Failure: ReadTimeout}
			}
			account.Fail(out)
			cost, ok := account.Pay(out)
			if paid = cost; ok {
				got += "+"
			} else {
				got += "-"
			}
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestBudgetValidate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		budget Budget
		field  string
	}{
		{Budget{}, "budget"},
		{Budget{Cost: 5}, "budget"},
		{Budget{Ratio: new(0.1), Tokens: new(1.0)}, "budget.tokens"},
		{Budget{Min: 1, Tokens: new(1.0)}, "budget.min"},
		{Budget{Ratio: new(-0.1)}, "budget.ratio"},
		{Budget{Tokens: new(1e9)}, "budget.tokens"},
		{Budget{Tokens: new(1.0), Refill: -1}, "budget.refill"},
		{Budget{Tokens: new(1.0), Stop: "full"}, "budget.stop"},
		{Budget{Min: -1}, "budget.min"},
	} {
		var refused *FieldError
		if err := (Settings{Budget: &tt.budget}).Validate(); !errors.As(err, &refused) || refused.Field != tt.field {
			t.Errorf("%+v: %v, want an error about %s", tt.budget, err, tt.field)
		}
	}
}
