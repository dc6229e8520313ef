package ledger

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		settings Settings
		want     *Problem
	}{
		{"a name alone", Settings{Name: "messages"}, nil},
		{"in the work", Settings{Name: "charges", When: InWork, At: time.Second, Reference: ByOperation}, nil},
		{"before the work", Settings{Name: "initiated", When: BeforeWork, Reference: ByKey}, nil},
		{"with the order", Settings{Name: "events", When: WithOrder, Reference: ByOrder, Duplicates: true}, nil},
		{"an outbox", Settings{Name: "messages", When: Outbox, Relay: Relay{After: time.Second, Sends: 10}}, nil},

		{"no name", Settings{}, &Problem{"name", `"" is no name for a ledger`, "lower-case letters, digits and hyphens, at most 40"}},
		{"a long name", Settings{Name: strings.Repeat("m", 41)}, &Problem{"name", `"` + strings.Repeat("m", 41) + `" is no name for a ledger`, "lower-case letters, digits and hyphens, at most 40"}},
		{"an unknown moment", Settings{Name: "m", When: "later"}, &Problem{"when", `when cannot be "later"`, "one of: before-work, in-work, with-order, outbox, after-commit"}},
		{"an unknown reference", Settings{Name: "m", Reference: "cart"}, &Problem{"reference", `reference cannot be "cart"`, "one of: none, attempt, key, operation, order"}},
		{"a time after the commit", Settings{Name: "m", At: 1}, &Problem{"at", "at means nothing to an entry that is made after-commit", "write when: in-work"}},
		{"an order in the work", Settings{Name: "m", When: InWork, Reference: ByOrder}, &Problem{"reference", "there is no order yet when the entry is made in-work", "use key or operation"}},
		{"duplicates of the work", Settings{Name: "m", When: InWork, Duplicates: true}, &Problem{"duplicates", "duplicates means nothing to an entry that is made in-work", "an entry of the work is made for each request that works"}},
		{"a relay without an outbox", Settings{Name: "m", Relay: Relay{Sends: 1}}, &Problem{"relay", "a relay sends the rows of an outbox on, and this is none", "write when: outbox"}},
		{"a relay that sends for ever", Settings{Name: "m", When: Outbox, Relay: Relay{Sends: 11}}, &Problem{"relay", "relay.sends must be between 1 and 10, not 11", ""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.settings.Default()
			if d := cmp.Diff(tt.want, tt.settings.Check()); d != "" {
				t.Error(d)
			}
		})
	}
}
