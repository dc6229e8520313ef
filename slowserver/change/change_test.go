package change

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("v", 41)
	tests := []struct {
		name     string
		settings Settings
		want     *Problem
	}{
		{"none", Settings{}, nil},
		{"one less", Settings{Do: Add, Start: "10", By: -1}, nil},
		{"read, then written", Settings{Do: ReadThenWrite, Row: "stock", Start: "-3", By: 2, Version: ReadAgain}, nil},
		{"a state machine", Settings{Do: Set, Start: "pending", From: "pending", To: "paid", Otherwise: Conflict}, nil},
		{"put", Settings{Do: Put, To: "v1"}, nil},
		{"delete", Settings{Do: Delete, Start: "v1", From: "v1"}, nil},

		{"nothing to do", Settings{Row: "stock"}, &Problem{"", "it does not say what a request does with the row", "add do: with one of add, read-then-write, set, put, delete"}},
		{"something unknown", Settings{Do: "patch"}, &Problem{"do", `do cannot be "patch"`, "one of: add, read-then-write, set, put, delete"}},
		{"no name", Settings{Do: Delete, Row: "My Row"}, &Problem{"row", `"My Row" is no name for a row`, "lower-case letters, digits and hyphens, at most 40"}},
		{"a sum put", Settings{Do: Put, To: "1", By: 1}, &Problem{"by", "put takes no by", "it takes: row, start, to"}},
		{"a version deleted", Settings{Do: Delete, Version: Refuse}, &Problem{"version", "delete takes no version", "it takes: row, start, from, otherwise"}},
		{"nothing to start with", Settings{Do: Add, By: 1}, &Problem{"start", "add needs a whole number to start with", "for example start: 10"}},
		{"a word to add to", Settings{Do: ReadThenWrite, Start: "ten", By: 1}, &Problem{"start", "read-then-write needs a whole number to start with", "for example start: 10"}},
		{"nothing to add", Settings{Do: Add, Start: "10"}, &Problem{"by", "add does not say how much", "for example by: -1"}},
		{"too much to add", Settings{Do: Add, Start: "10", By: MostBy + 1}, &Problem{"by", "by must be between -1000000 and 1000000", ""}},
		{"nothing to set", Settings{Do: Set, Start: "a"}, &Problem{"to", "set does not say to what", "for example to: paid"}},
		{"from a to a", Settings{Do: Set, From: "a", To: "a"}, &Problem{"to", "it changes the row to what it is", "to must differ from from"}},
		{"otherwise than what", Settings{Do: Set, To: "a", Otherwise: Done}, &Problem{"otherwise", "without from there is no otherwise", "add from: with the value that the row must have"}},
		{"an unknown way out", Settings{Do: Set, From: "a", To: "b", Otherwise: "retry"}, &Problem{"otherwise", `otherwise cannot be "retry"`, "one of: done, conflict"}},
		{"an unknown version", Settings{Do: ReadThenWrite, Start: "1", By: 1, Version: "lock"}, &Problem{"version", `version cannot be "lock"`, "one of: ignore, refuse, read-again"}},
		{"a long value", Settings{Do: Put, To: long}, &Problem{"to", `"` + long + `" is no value for a row`, "printable ASCII, at most 40 characters, no space at either end"}},
		{"a value with a space", Settings{Do: Put, To: "v1 "}, &Problem{"to", `"v1 " is no value for a row`, "printable ASCII, at most 40 characters, no space at either end"}},
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
