package lab_test

import (
	"testing"
	"time"

	"retrylab/internal/lab"
)

func TestDeadline(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		left time.Duration
		text string
		back time.Duration // rounded up to the unit
	}{
		{0, "0n", 0},
		{-time.Second, "0n", 0},
		{99_999_999, "99999999n", 99_999_999},
		{100_000_001, "100001u", 100_001 * time.Microsecond},
		{3 * time.Second, "3000000u", 3 * time.Second},
		{100*time.Second + 1, "100001m", 100_001 * time.Millisecond},
		{10_000 * time.Hour, "36000000S", 10_000 * time.Hour},
	} {
		if got := lab.FormatDeadline(c.left); got != c.text {
			t.Errorf("FormatDeadline(%v): got %q, want %q", c.left, got, c.text)
		}
		if got, ok := lab.ParseDeadline(c.text); got != c.back || !ok {
			t.Errorf("ParseDeadline(%q): got %v, %v, want %v", c.text, got, ok, c.back)
		}
	}
	for _, text := range []string{"", "m", "5", "5x", "-5m", "+5m", "5 m", "999999999m", "1.5S"} {
		if got, ok := lab.ParseDeadline(text); ok {
			t.Errorf("ParseDeadline(%q): got %v, want none", text, got)
		}
	}
	if got, ok := lab.ParseDeadline("99999999H"); got <= 0 || !ok {
		t.Errorf("a deadline longer than a duration: got %v, %v", got, ok)
	}
}
