package caller

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retrylab/internal/lab"
)

// TestAsk has a caller give up after a second, and answers its questions one after the other.
func TestAsk(t *testing.T) {
	t.Parallel()
	const processing, done, failed = `{"status":"processing"}`, `{"status":"done","code":201,"answer":{"order":7,"status":"created"}}`, `{"status":"failed","code":500}`
	ask := Ask{By: "key", First: time.Second, Every: 2 * time.Second, Until: time.Minute, NotFound: "ask-again", Failed: "report", Key: "same"}
	with := func(change func(*Ask)) Ask { a := ask; change(&a); return a }
	again := with(func(a *Ask) { a.NotFound = "send-again" })
	tests := []struct {
		name    string
		ask     Ask
		answers []string // to the questions, the last of them again and again; "" is a 404, a number another status, "hang" none
		belief  lab.Belief
		reason  string
		order   int64
		at      time.Duration
		orders  int // requests for an order
		asked   int
	}{
		{"done", ask, []string{done}, lab.OK, "asked: done", 7, 2 * time.Second, 1, 1},
		{"processing, then done", ask, []string{processing, processing, done}, lab.OK, "asked: done", 7, 6 * time.Second, 1, 3},
		{"not found, then done", ask, []string{"", done}, lab.OK, "asked: done", 7, 4 * time.Second, 1, 2},
		{"failed", ask, []string{processing, failed}, lab.Failed, "asked: failed", 0, 4 * time.Second, 1, 2},
		{"an error settles nothing", ask, []string{"500", "hang", done}, lab.OK, "asked: done", 7, 7 * time.Second, 1, 3},
		{"until its time is over", with(func(a *Ask) { a.Until = 4 * time.Second }), []string{processing}, lab.Unknown, "asked: processing", 0, 4 * time.Second, 1, 2},
		{"once", with(func(a *Ask) { a.Until = 0 }), []string{processing}, lab.Unknown, "asked: processing", 0, 2 * time.Second, 1, 1},
		{"no answer at all", with(func(a *Ask) { a.Until = 0 }), []string{"hang"}, lab.Unknown, "asked: read timeout", 0, 3 * time.Second, 1, 1},
		{"not found is taken for failed", with(func(a *Ask) { a.NotFound = "failed" }), []string{""}, lab.Failed, "asked: not found", 0, 2 * time.Second, 1, 1},
		{"not found is sent again", again, []string{processing, ""}, lab.OK, "201", 2, 4 * time.Second, 2, 2},
		{"failed is sent again", with(func(a *Ask) { a.Failed = "send-again" }), []string{failed}, lab.OK, "201", 2, 2 * time.Second, 2, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bench) {
				orders, asked := 0, 0
				b.script = func(x *exchange) {
					if x.request.URL.Path == lab.OrderPath {
						if orders++; orders == 1 {
							x.hang()
							return
						}
						x.reply(201, created(orders))
						return
					}
					answer := tt.answers[min(asked, len(tt.answers)-1)]
					asked++
					switch {
					case answer == "":
						x.reply(404, problem(lab.ProblemUnknownKey))
					case answer == "hang":
						x.hang()
					case strings.HasPrefix(answer, "{"):
						x.reply(200, answer)
					default:
						x.reply(500, "")
					}
				}
				c := b.caller(Config{Timeouts: Timeouts{Read: time.Second}, Asked: hosts[:2]}, Habits{Key: "operation", Ask: &tt.ask})
				defer c.Close()
				out := c.Place(context.Background(), Intent{Operation: "op-1"})
				sends, questions := 0, 0
				for _, e := range b.events {
					switch e.Kind {
					case lab.Send:
						sends++
					case lab.Question:
						questions++
					}
				}
				got := fmt.Sprint(out.Belief, ", ", out.Reason, ", order ", out.Order, " at ", out.DoneAt.Round(time.Millisecond), ": ", sends, " sent, ", questions, " asked")
				want := fmt.Sprint(tt.belief, ", ", tt.reason, ", order ", tt.order, " at ", tt.at, ": ", tt.orders, " sent, ", tt.asked, " asked")
				if got != want || orders != tt.orders || asked != tt.asked {
					t.Errorf("%s (%d and %d arrived)\nwant %s", got, orders, asked, want)
				}
			})
		})
	}
}

// TestAskedBy looks at what a caller asks by, whom it asks, and under which key it sends again.
func TestAskedBy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, key, by, again string
		paths                []string
		same                 bool
	}{
		{"the key", "operation", "key", "same", []string{"/results/KEY"}, true},
		{"the key, sent again as a new one", "operation", "key", "new", []string{"/results/KEY"}, false},
		{"the key of the last try", "attempt", "key", "same", []string{"/results/KEY"}, false},
		{"the operation", "none", "operation", "same", []string{"/references/op-1"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bench) {
				var keys, paths []string
				b.script = func(x *exchange) {
					if x.request.URL.Path == lab.OrderPath {
						keys = append(keys, x.request.Header.Get(lab.HeaderKey))
						x.hang()
						return
					}
					path := x.request.URL.Path
					if last := keys[len(keys)-1]; last != "" {
						path = strings.TrimSuffix(path, last) + "KEY"
					}
					paths = append(paths, path)
					x.reply(404, "")
				}
				c := b.caller(Config{Timeouts: Timeouts{Read: time.Second}, Asked: hosts[:1]},
					Habits{Key: tt.key, Ask: &Ask{By: tt.by, Every: time.Second, NotFound: "send-again", Key: tt.again}})
				defer c.Close()
				out := c.Place(context.Background(), Intent{Operation: "op-1"})
				if out.Belief != lab.Unknown || out.Reason != "read timeout" {
					t.Errorf("%s, %s: what was sent again is not asked after", out.Belief, out.Reason)
				}
				if diff := cmp.Diff(tt.paths, paths); diff != "" {
					t.Error(diff)
				}
				if len(keys) != 2 || (keys[0] == keys[1]) != tt.same {
					t.Errorf("keys %q", keys)
				}
			})
		})
	}
}
