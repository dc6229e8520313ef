package policy

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.March, 2, 14, 8, 33, 0, time.UTC)
	tests := []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		{"0", 0, true},
		{"7", 7 * time.Second, true},
		{"007", 7 * time.Second, true},
		{" 7\t", 7 * time.Second, true},
		{"3155760000", Forever, true}, // a hundred years of 365.25 days
		{"99999999999999999999999999", Forever, true},
		{"Mon, 02 Mar 2026 14:08:35 GMT", 2 * time.Second, true},
		{"Monday, 02-Mar-26 14:08:35 GMT", 2 * time.Second, true},
		{"Mon Mar  2 14:08:35 2026", 2 * time.Second, true},
		{"Mon, 02 Mar 2026 14:08:33 GMT", 0, true},
		{"Mon, 02 Mar 2026 14:08:03 GMT", -30 * time.Second, true},
		{"Fri, 31 Dec 9999 23:59:59 GMT", Forever, true},
		{"", 0, false},
		{"-1", 0, false},
		{"+1", 0, false},
		{"1.5", 0, false},
		{"1, 2", 0, false},
		{"1s", 0, false},
		{"soon", 0, false},
		{"٧", 0, false}, // a digit, but not one of HTTP's
		{"Mon, 02 Mar 2026 14:08:35 CET", 0, false},
		{"Mon, 30 Feb 2026 14:08:35 GMT", 0, false},
		{"2026-03-02T14:08:35Z", 0, false},
	}
	for _, tt := range tests {
		if got, ok := ParseRetryAfter(tt.value, now); got != tt.want || ok != tt.ok {
			t.Errorf("ParseRetryAfter(%q) = %v, %t, want %v, %t", tt.value, got, ok, tt.want, tt.ok)
		}
	}
}

// TestParseRetryAfterZone makes sure that the zone of now does not matter: dates are in GMT.
func TestParseRetryAfterZone(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.March, 2, 15, 8, 33, 0, time.FixedZone("", 3600))
	if got, _ := ParseRetryAfter("Mon, 02 Mar 2026 14:08:35 GMT", now); got != 2*time.Second {
		t.Errorf("%v, want 2s", got)
	}
}

func TestParseRetryAfterProperties(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, time.March, 2, 14, 8, 33, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`[0-9]{1,40}`).Draw(t, "digits")
		if d, ok := ParseRetryAfter(digits, now); !ok || d < 0 || d > Forever || d%time.Second != 0 {
			t.Fatalf("%q: %v, %t", digits, d, ok)
		}
		text := rapid.String().Draw(t, "text")
		if d, ok := ParseRetryAfter(text, now); d > Forever || !ok && d != 0 {
			t.Fatalf("%q: %v, %t", text, d, ok)
		}
		if strings.ContainsAny(text, "+-") && !strings.Contains(text, ":") {
			if _, ok := ParseRetryAfter(text, now); ok {
				t.Fatalf("%q was read", text)
			}
		}
	})
}
