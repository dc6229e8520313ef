package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, unicode, ascii string }{
		{"plain", "plain", "plain"},
		{"a\nb\tc\r", `a\nb\tc\r`, `a\nb\tc\r`},
		{"\x1b[31mred\x1b[0m", `\x1b[31mred\x1b[0m`, `\x1b[31mred\x1b[0m`},
		{"\x00\x7f", `\x00\x7f`, `\x00\x7f`},
		{"\u0085\u009b31m", `\u0085\u009b31m`, `\u0085\u009b31m`},
		{"right\u202eto left", `right\u202eto left`, `right\u202eto left`},
		{"zero\u200bwidth \ufeffmark", `zero\u200bwidth \ufeffmark`, `zero\u200bwidth \ufeffmark`},
		{"two\u2028lines", `two\u2028lines`, `two\u2028lines`},
		{"\xff", "\ufffd", `\ufffd`},
		{"❤\ufe0f 👩\u200d👩", "❤ 👩👩", `\u2764 \U0001f469\U0001f469`},
		{"👍🏽 🇩🇪", "👍 DE", `\U0001f44d DE`},
		{"注文 é", "注文 é", `\u6ce8\u6587 \u00e9`},
		{"3×4 → “5” – ₹50…", "3×4 → “5” – ₹50…", `3x4 -> "5" - Rs 50...`},
	} {
		if got := newSetting(Options{Unicode: true}).text(tt.in); got != tt.unicode {
			t.Errorf("Unicode: %q gives %q, want %q", tt.in, got, tt.unicode)
		}
		if got := newSetting(Options{}).text(tt.in); got != tt.ascii {
			t.Errorf("ASCII: %q gives %q, want %q", tt.in, got, tt.ascii)
		}
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		ms   int64
		want string
	}{
		{0, "0s"}, {1, "0.001s"}, {150, "0.15s"}, {1000, "1s"}, {60150, "60.15s"}, {120375, "120.375s"}, {599999, "599.999s"},
		{600000, "10m"}, {3603000, "1h3s"}, {90000000, "25h"}, {90000200, "25h"}, {88200000, "24h30m"}, {-1500, "-1.5s"},
	} {
		if got := clock(tt.ms); got != tt.want {
			t.Errorf("clock(%d) = %q, want %q", tt.ms, got, tt.want)
		}
	}
}

func TestTimeOfDay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		begin string
		ms    int64
		want  string
	}{
		{"14:08:33.512", 0, "14:08:33.512"},
		{"14:08:33.512", 12000, "14:08:45.512"},
		{"14:08:33", 12000, "14:08:45.000"},
		{"23:59:59.000", 2000, "00:00:01.000"},
		{"", 0, ""},
		{"noon", 0, ""},
	} {
		if got := timeOfDay(tt.begin, tt.ms, "15:04:05.000"); got != tt.want {
			t.Errorf("timeOfDay(%q, %d) = %q, want %q", tt.begin, tt.ms, got, tt.want)
		}
	}
}

func TestMoney(t *testing.T) {
	t.Parallel()
	s := newSetting(Options{Unicode: true})
	for _, tt := range []struct {
		minor int64
		want  string
	}{{0, "₹0"}, {20000, "₹200"}, {5050, "₹50.50"}, {5, "₹0.05"}, {-5000, "-₹50"}, {-1, "-₹0.01"}} {
		if got := s.money("₹", tt.minor); got != tt.want {
			t.Errorf("money(%d) = %q, want %q", tt.minor, got, tt.want)
		}
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text     string
		first, n int
		want     []string
	}{
		{"", 10, 10, []string{""}},
		{"   ", 10, 10, []string{""}},
		{"one two three", 20, 20, []string{"one two three"}},
		{"one two three", 7, 7, []string{"one two", "three"}},
		{"one two three", 3, 9, []string{"one", "two three"}},
		{"averylongword x", 5, 5, []string{"avery", "longw", "ord x"}},
		{"caller.timeouts.read=5s", 17, 17, []string{"caller.timeouts.", "read=5s"}},
		{"注文注文", 5, 5, []string{"注文", "注文"}},
		{"注", 1, 1, []string{"注"}},
	} {
		if diff := cmp.Diff(tt.want, wrap(tt.text, tt.first, tt.n)); diff != "" {
			t.Errorf("wrap(%q, %d, %d): -want +got:\n%s", tt.text, tt.first, tt.n, diff)
		}
	}
}

// TestFoldLine: words are whole, however long, and the further lines are indented.
func TestFoldLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line string
		n    int
		want string
	}{
		{"retrylab: no", 20, "retrylab: no"},
		{"retrylab: there is no such thing", 20, "retrylab: there is\n  no such thing"},
		{"  one of: mermaid, html, svg", 16, "  one of:\n    mermaid,\n    html, svg"},
		{"  see /a/path/that/is/longer/than/a/line now", 16, "  see\n    /a/path/that/is/longer/than/a/line\n    now"},
		{"漢字 漢字 漢字", 10, "漢字 漢字\n  漢字"},
		{"", 10, ""},
	} {
		if got := FoldLine(c.line, c.n); got != c.want {
			t.Errorf("%q in %d columns: %q, want %q", c.line, c.n, got, c.want)
		}
	}
}

func TestWrapKeepsText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := newSetting(Options{Unicode: true}).prose(rapid.String().Draw(t, "text"))
		first, n := rapid.IntRange(2, 40).Draw(t, "first"), rapid.IntRange(2, 40).Draw(t, "n")
		lines := wrap(text, first, n)
		for i, l := range lines {
			limit := n
			if i == 0 {
				limit = first
			}
			if width(l) > limit {
				t.Errorf("line %d of %q has %d columns, want at most %d", i, lines, width(l), limit)
			}
		}
		squash := func(s string) string { return strings.ReplaceAll(s, " ", "") }
		if got, want := squash(strings.Join(lines, "")), squash(text); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestShorten(t *testing.T) {
	t.Parallel()
	u, a := newSetting(Options{Unicode: true}), newSetting(Options{})
	for _, tt := range []struct {
		s    *setting
		text string
		n    int
		want string
	}{
		{u, "order-service", 13, "order-service"},
		{u, "order-service", 8, "order-s…"},
		{a, "order-service", 8, "order..."},
		{a, "order-service", 2, "or"},
		{u, "注文サービス", 6, "注文…"},
		{u, "one two", 5, "one…"},
	} {
		if got := tt.s.shorten(tt.text, tt.n); got != tt.want {
			t.Errorf("shorten(%q, %d) = %q, want %q", tt.text, tt.n, got, tt.want)
		}
	}
}
