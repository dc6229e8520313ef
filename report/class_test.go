package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"retrylab/internal/lab"
)

// TestTimelineTellsNothingAhead: what is drawn at an instant is the same whatever happens to spans after it, it is as
// high at every instant, and at the end it is what the table draws.
func TestTimelineTellsNothingAhead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := anyResult().Draw(t, "result")
		o := Options{Width: rapid.IntRange(60, 120).Draw(t, "width"), Unicode: true}
		tl := NewTimeline(&r, o, rapid.IntRange(2, 14).Draw(t, "lanes"))
		lines := len(tl.At(tl.End()))
		for range 5 {
			at := lab.FromMillis(rapid.Int64Range(-1, lab.Millis(tl.End())+1).Draw(t, "at"))
			if got := tl.At(at); len(got) != lines {
				t.Fatalf("at %s there are %d lines, at the end %d", at, len(got), lines)
			}
		}
	})
	for name, d := range documents() {
		for i := range d.Results {
			r := &d.Results[i]
			tl := NewTimeline(r, Options{Width: 80, Unicode: true}, lanesDrawn)
			if tl.whole == nil {
				continue
			}
			for at := time.Duration(0); at < tl.End(); at += max(tl.End()/7, time.Millisecond) {
				for _, l := range tl.whole.until(lab.Millis(at)).lanes {
					for _, s := range l.spans {
						if ms := lab.Millis(at); s.from > ms || s.to > ms || s.end == committed && s.commit > ms || s.answerAt > ms && s.going {
							t.Errorf("%s, %s: at %s it knows of %+v", name, r.ID, at, s)
						}
					}
				}
			}
			if whole := strings.Join(tl.At(tl.End()), "\n"); slices.ContainsFunc(tl.whole.lanes, func(l lane) bool { return len(l.spans) > 0 }) && len(strings.TrimSpace(whole)) == 0 {
				t.Errorf("%s, %s: nothing is drawn at the end", name, r.ID)
			}
		}
	}
}
