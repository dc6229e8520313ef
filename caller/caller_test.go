package caller

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"retrylab/caller/policy"
	"retrylab/internal/lab"
)

func problem(kind string) string { return fmt.Sprintf(`{"type":%q,"title":"no"}`, kind) }

// TestBeliefs is the table of what a caller ends with.
func TestBeliefs(t *testing.T) {
	t.Parallel()
	reply := func(status int, body string, header ...string) func(*exchange) {
		return func(x *exchange) { x.reply(status, body, header...) }
	}
	// first does one thing to the first request and another to those after it.
	first := func(one, then func(*exchange)) func(*exchange) {
		return func(x *exchange) {
			if x.number == 1 {
				one(x)
				return
			}
			then(x)
		}
	}
	hang := func(x *exchange) { x.hang() }
	closing := func(x *exchange) { x.close() }
	timeouts := Timeouts{Connect: time.Second, Read: 5 * time.Second}
	for _, tt := range []struct {
		name   string
		config Config
		habits Habits
		script func(*exchange)
		dark   string
		belief lab.Belief
		reason string
		status int
		order  int64
	}{
		{name: "201", script: ok, belief: lab.OK, reason: "201", status: 201, order: 1},
		{name: "200", script: reply(200, created(7)), belief: lab.OK, reason: "200", status: 200, order: 7},
		{name: "202 without a number", script: reply(202, `{"status":"accepted"}`), belief: lab.OK, reason: "202", status: 202},
		{name: "204", script: func(x *exchange) { x.raw("HTTP/1.1 204 No Content\r\n\r\n") }, belief: lab.OK, reason: "204", status: 204},
		{name: "a replay", script: reply(201, created(3), lab.HeaderReplayed+": true"), belief: lab.OK, reason: "201 replay", status: 201, order: 3},

		{name: "a success that cannot be read", script: reply(201, `{"order":`), belief: lab.Unknown, reason: "201 malformed", status: 201},
		{
			name: "a success that cannot be read, and a layer that reads it", config: Config{Layers: []policy.Layer{retry(2)}},
			script: reply(201, `{"order":`), belief: lab.Unknown, reason: "201 malformed", status: 201,
		},
		{
			name:   "a success without a body, and a layer that wants one",
			config: Config{Layers: []policy.Layer{layerOf(policy.Settings{Preset: "retry", Attempts: new(2), On: []string{"empty"}})}},
			script: first(reply(201, ""), ok), belief: lab.OK, reason: "201", status: 201, order: 2,
		},

		{name: "a redirection that is followed", config: Config{Follow: true}, script: first(reply(302, "", "Location: /elsewhere"), ok), belief: lab.OK, reason: "201", status: 201, order: 2},
		{name: "redirections without an end", config: Config{Follow: true}, script: reply(307, "", "Location: /elsewhere"), belief: lab.Failed, reason: "307", status: 307},
		{name: "a redirection to another host", config: Config{Follow: true}, script: reply(302, "", "Location: http://i2/"), belief: lab.Failed, reason: "302", status: 302},
		{name: "a redirection", script: reply(302, "", "Location: http://i2/"), belief: lab.Failed, reason: "302", status: 302},
		{name: "400", script: reply(400, problem(lab.ProblemInvalid)), belief: lab.Failed, reason: "400", status: 400},
		{name: "401", script: reply(401, ""), belief: lab.Failed, reason: "401", status: 401},
		{name: "403", script: reply(403, ""), belief: lab.Failed, reason: "403", status: 403},
		{name: "404", script: reply(404, ""), belief: lab.Failed, reason: "404", status: 404},
		{name: "404, accepted", habits: Habits{Accept: []int{404}}, script: reply(404, ""), belief: lab.OK, reason: "404 accepted", status: 404},
		{name: "400, where another is accepted", habits: Habits{Accept: []int{404}}, script: reply(400, ""), belief: lab.Failed, reason: "400", status: 400},
		{name: "422: a conflict", script: reply(422, problem(lab.ProblemConflict)), belief: lab.Failed, reason: "422", status: 422},
		{name: "429", script: reply(429, "", "Retry-After: 1"), belief: lab.Failed, reason: "429", status: 429},
		{name: "500", script: reply(500, problem(lab.ProblemStore)), belief: lab.Failed, reason: "500", status: 500},
		{name: "503", script: reply(503, problem(lab.ProblemInjected)), belief: lab.Failed, reason: "503", status: 503},
		{name: "409: a conflict", script: reply(409, problem(lab.ProblemConflict)), belief: lab.Failed, reason: "409", status: 409},
		{name: "409 without a problem", script: reply(409, "busy"), belief: lab.Failed, reason: "409", status: 409},

		{name: "409: in progress", script: reply(409, problem(lab.ProblemInProgress)), belief: lab.Unknown, reason: "409 in progress", status: 409},
		{name: "502", script: reply(502, problem(lab.ProblemUpstream)), belief: lab.Unknown, reason: "502", status: 502},
		{name: "504", script: reply(504, problem(lab.ProblemUpstream)), belief: lab.Unknown, reason: "504", status: 504},
		{name: "read time-out", script: hang, belief: lab.Unknown, reason: "read timeout"},
		{name: "eof", script: closing, belief: lab.Unknown, reason: "eof"},
		{name: "reset", script: func(x *exchange) { x.reset() }, belief: lab.Unknown, reason: "reset"},
		{name: "malformed", script: func(x *exchange) { x.raw("hello\r\n\r\n"); x.hang() }, belief: lab.Unknown, reason: "malformed"},
		{name: "half an answer", script: func(x *exchange) { x.raw("HTTP/1.1 201 Created\r\nContent-Length: 99\r\n\r\n{"); x.close() }, belief: lab.Unknown, reason: "eof"},
		{name: "attempt time-out", config: Config{Timeouts: Timeouts{Attempt: time.Second}}, script: hang, belief: lab.Unknown, reason: "attempt timeout"},
		{name: "total time-out", config: Config{Timeouts: Timeouts{Total: time.Second}}, script: hang, belief: lab.Unknown, reason: "total timeout"},

		{name: "refused", config: Config{Targets: []string{"nobody"}}, belief: lab.Failed, reason: "refused"},
		{name: "connect time-out", dark: "i1", belief: lab.Failed, reason: "connect timeout"},
		{name: "attempt time-out while connecting", config: Config{Timeouts: Timeouts{Attempt: time.Second}}, dark: "i1", belief: lab.Failed, reason: "attempt timeout"},
		{name: "refused again and again", config: Config{Targets: []string{"nobody"}, Layers: []policy.Layer{retry(3)}}, belief: lab.Failed, reason: "refused"},

		{
			// The first try left, and nobody knows what became of it.
			name: "left once, then refused", config: Config{Targets: []string{"i1", "nobody"}, Layers: []policy.Layer{layerOf(policy.Settings{Preset: "okhttp"})}},
			script: closing, belief: lab.Unknown, reason: "refused",
		},
		{
			name: "left once, then no connection", config: Config{Targets: hosts[:2], Layers: []policy.Layer{layerOf(policy.Settings{Preset: "okhttp"})}},
			script: closing, dark: "i2", belief: lab.Unknown, reason: "connect timeout",
		},
		{
			name: "refused, then done", config: Config{Targets: []string{"nobody", "i1"}, Layers: []policy.Layer{layerOf(policy.Settings{Preset: "okhttp"})}},
			script: ok, belief: lab.OK, reason: "201", status: 201, order: 1,
		},
		{
			name: "the last answer counts", config: Config{Layers: []policy.Layer{retry(2)}},
			script: first(hang, reply(503, "")), belief: lab.Failed, reason: "503", status: 503,
		},
		{
			name: "done at the second try", config: Config{Layers: []policy.Layer{retry(2)}},
			script: first(closing, ok), belief: lab.OK, reason: "201", status: 201, order: 2,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bench) {
				b.script = tt.script
				if tt.dark != "" {
					b.network.Blackhole(tt.dark)
				}
				if tt.config.Timeouts == (Timeouts{}) {
					tt.config.Timeouts = timeouts
				}
				out := b.place(tt.config, tt.habits)
				out.DoneAt = 0
				diff(t, "outcome", lab.Outcome{
					Operation: "op-1", Belief: tt.belief, Reason: tt.reason, Status: tt.status, Order: tt.order,
				}, out)
				last := "" // the send that brought the answer
				for _, e := range b.events {
					if e.Kind == lab.Reply {
						last = e.Send
					}
				}
				told := slices.ContainsFunc(b.events, func(e lab.Event) bool {
					return e.Kind == lab.Told && e.Status == tt.status && e.Order == tt.order && e.Send == last && e.Node == "caller"
				})
				diff(t, "told", tt.belief == lab.OK, told)
			})
		})
	}
}

// TestKeys is what four sends of an operation carry, and the first of the next operation.
func TestKeys(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		key     string
		content string
		want    string // equal letters are equal keys
	}{
		{"none", "same", "- - - - | -"},
		{"", "same", "- - - - | -"},
		{"server", "same", "- - - - | -"},
		{"operation", "same", "a a a a | b"},
		{"operation", "changing", "a a a a | b"},
		{"attempt", "same", "a b c d | e"},
		{"content", "same", "a a a a | a"},
		{"content", "changing", "a b c d | a"},
		{"appended", "same", "a ab abc abcd | e"},
	} {
		t.Run(fmt.Sprintf("%s, content %s", tt.key, tt.content), func(t *testing.T) {
			onBoth(t, func(t *testing.T, b *bench) {
				b.script = func(x *exchange) {
					if x.number < 4 || x.number == 5 {
						x.close()
						return
					}
					ok(x)
				}
				caller := b.caller(Config{Layers: []policy.Layer{retry(4)}}, Habits{Key: tt.key, Content: tt.content})
				defer caller.Close()
				caller.Place(context.Background(), Intent{Operation: "op-1"})
				caller.Place(context.Background(), Intent{Operation: "op-2"})
				letters := map[string]string{}
				var got []string
				for _, x := range b.arrived()[:5] {
					text := ""
					for _, key := range x.request.Header[lab.HeaderKey] {
						if letters[key] == "" {
							letters[key] = string(rune('a' + len(letters)))
						}
						text += letters[key]
					}
					if text == "" {
						text = "-"
					}
					got = append(got, text)
				}
				diff(t, "keys", tt.want, strings.Join(got[:4], " ")+" | "+got[4])
				sent := map[string]string{}
				for _, e := range b.events {
					if e.Kind == lab.Send {
						sent[e.Send] = e.Key
					}
				}
				for _, x := range b.arrived() {
					send := x.request.Header.Get(lab.HeaderSend)
					diff(t, "first key recorded of "+send, x.request.Header.Get(lab.HeaderKey), sent[send])
				}
			})
		})
	}
}

// TestAppendedSideBySide has an interceptor add a key on each try of each side: one side's requests
// do not carry the keys of the other.
func TestAppendedSideBySide(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		b.script = func(x *exchange) { x.pause(time.Second); x.close() }
		b.place(Config{Layers: []policy.Layer{retry(2)}}, Habits{Key: "appended", Concurrency: 2})
		counts := map[string]int{}
		first := map[string]bool{}
		for _, x := range b.arrived() {
			keys := x.request.Header[lab.HeaderKey]
			counts[x.request.Header.Get(lab.HeaderSend)] = len(keys)
			first[keys[0]] = true
		}
		diff(t, "keys by send", map[string]int{
			"op-1/side.1/retry.1": 1, "op-1/side.1/retry.2": 2, "op-1/side.2/retry.1": 1, "op-1/side.2/retry.2": 2,
		}, counts)
		diff(t, "first keys", 2, len(first))
	})
}

func TestKeysOfOneSeed(t *testing.T) {
	t.Parallel()
	order := func(seed int64) *order {
		return &order{habits: Habits{Key: "operation"}, seed: seed, intent: Intent{Operation: "op-1"}, path: "op-1", sends: &atomic.Int64{}}
	}
	one, again, two := order(1).keys("op-1", 1), order(1).keys("op-1", 1), order(2).keys("op-1", 1)
	diff(t, "keys of one seed", one, again)
	if one[0] == two[0] {
		t.Errorf("two seeds have the key %s", one[0])
	}
}

// TestContent is what the sends of an operation ask for.
func TestContent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		content string
		body    policy.Body
		want    []string
	}{
		{"same", policy.Buffered, []string{`{"item":"book","amount_minor":5000}`, `{"item":"book","amount_minor":5000}`, `{"item":"book","amount_minor":5000}`}},
		{"changing", policy.Buffered, []string{`{"item":"book","amount_minor":5000}`, `{"item":"book","amount_minor":5100}`, `{"item":"book","amount_minor":5200}`}},
		{"changing", policy.NoBody, []string{"amount_minor=5000&item=book", "amount_minor=5100&item=book", "amount_minor=5200&item=book"}},
	} {
		t.Run(fmt.Sprintf("%s, %s", tt.content, tt.body), func(t *testing.T) {
			onBoth(t, func(t *testing.T, b *bench) {
				b.script = func(x *exchange) { x.close() }
				b.place(Config{Layers: []policy.Layer{retry(3)}}, Habits{Content: tt.content, Body: tt.body})
				var got []string
				for _, x := range b.arrived() {
					got = append(got, x.body+x.request.URL.RawQuery)
				}
				diff(t, "content", tt.want, got)
			})
		})
	}
}

// TestOfALayer has a user submit twice over a client that tries twice: what belongs to the tries of
// the one stays the same over those of the other.
func TestOfALayer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		layer string
		sides int
		want  string // of the sends in the order of their paths: equal letters are equal keys
	}{
		{"user", 1, "a:5000 a:5000 b:5100 b:5100"},
		{"client", 1, "a:5000 b:5100 c:5000 d:5100"},
		{"user", 2, "a:5000 a:5000 b:5100 b:5100 c:5000 c:5000 d:5100 d:5100"},
	} {
		t.Run(fmt.Sprintf("%s, %d", tt.layer, tt.sides), func(t *testing.T) {
			onBoth(t, func(t *testing.T, b *bench) {
				b.script = func(x *exchange) { x.close() }
				user, client := retry(2), retry(2)
				user.Name, client.Name = "user", "client"
				b.place(Config{Layers: []policy.Layer{user, client}}, Habits{Key: tt.layer, Content: tt.layer, Concurrency: tt.sides})
				sent := map[string]*exchange{}
				for _, x := range b.arrived() {
					sent[x.request.Header.Get(lab.HeaderSend)] = x
				}
				letters := map[string]string{}
				var got []string
				for _, path := range slices.Sorted(maps.Keys(sent)) {
					key := sent[path].request.Header.Get(lab.HeaderKey)
					if letters[key] == "" {
						letters[key] = string(rune('a' + len(letters)))
					}
					var order lab.OrderRequest
					if err := json.Unmarshal([]byte(sent[path].body), &order); err != nil {
						t.Fatal(err)
					}
					got = append(got, fmt.Sprintf("%s:%d", letters[key], order.Amount))
				}
				diff(t, "keys and amounts", tt.want, strings.Join(got, " "))
			})
		})
	}
}

// TestIntent is an operation that differs from the others: what it says goes before the habits.
func TestIntent(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bench) {
		b.script = func(x *exchange) { x.close() }
		caller := b.caller(Config{Layers: []policy.Layer{retry(2)}}, Habits{Key: "attempt"})
		defer caller.Close()
		caller.Place(context.Background(), Intent{Operation: "op-1", Amount: 700, Item: "pen", Key: "1", Tenant: "a"})
		for _, x := range b.arrived() {
			diff(t, "body", `{"item":"pen","amount_minor":700}`, x.body)
			diff(t, "key", "1", x.request.Header.Get(lab.HeaderKey))
			diff(t, "tenant", "a", x.request.Header.Get(lab.HeaderTenant))
		}
		diff(t, "arrivals", 2, len(b.arrived()))
	})
}

// TestSideBySide has one operation sent several times at once.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		habits  Habits
		starts  []time.Duration
		done    time.Duration
		amounts int
	}{
		{"one", Habits{Concurrency: 1}, []time.Duration{0}, time.Second, 1},
		{"absent", Habits{}, []time.Duration{0}, time.Second, 1},
		{"three", Habits{Concurrency: 3}, []time.Duration{0, 0, 0}, time.Second, 1},
		{"three, changing", Habits{Concurrency: 3, Content: "changing"}, []time.Duration{0, 0, 0}, time.Second, 3},
		{"staggered", Habits{Concurrency: 3, Stagger: 2 * time.Second}, []time.Duration{0, 2 * time.Second, 4 * time.Second}, 5 * time.Second, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bench) {
				b.script = func(x *exchange) { x.pause(time.Second); ok(x) }
				out := b.place(Config{}, tt.habits)
				diff(t, "belief", lab.OK, out.Belief)
				diff(t, "done", tt.done, out.DoneAt)
				var starts []time.Duration
				paths, amounts := map[string]bool{}, map[string]bool{}
				for _, x := range b.arrived() {
					starts = append(starts, x.at)
					paths[x.request.Header.Get(lab.HeaderSend)] = true
					amounts[x.body] = true
				}
				diff(t, "arrivals", tt.starts, starts)
				diff(t, "paths", len(tt.starts), len(paths))
				diff(t, "amounts", tt.amounts, len(amounts))
				if len(tt.starts) > 1 && !paths["op-1/side.2"] {
					t.Errorf("no send is called op-1/side.2: %v", paths)
				}
				instants := map[time.Duration]bool{}
				for _, e := range b.events {
					if e.Kind == lab.Send {
						instants[e.At] = true
					}
				}
				diff(t, "instants of the sends", len(tt.starts), len(instants))
			})
		})
	}
}

// TestFurther: an operation that is sent again by whoever wants it has one outcome, and each of its
// sends a path, a key and a thread.
func TestFurther(t *testing.T) {
	t.Parallel()
	further := []Further{
		{After: 2 * time.Second, Intent: Intent{Operation: "op-1", Key: "web"}},
		{After: 2 * time.Second, Intent: Intent{Operation: "op-1", Key: "mail"}},
	}
	for _, tt := range []struct {
		name   string
		config Config
		habits Habits
		script func(*exchange)
		sends  []string // path and key, in order
		belief lab.Belief
		done   time.Duration
	}{
		{
			"all are answered", Config{}, Habits{}, ok,
			[]string{"op-1 app", "op-1/again.2 web", "op-1/again.3 mail"}, lab.OK, 2 * time.Second,
		},
		{
			"the last is refused", Config{}, Habits{}, func(x *exchange) {
				if x.number == 1 {
					ok(x)
				} else {
					x.reply(409, "")
				}
			},
			[]string{"op-1 app", "op-1/again.2 web", "op-1/again.3 mail"}, lab.OK, 2 * time.Second,
		},
		{
			"each with its tries", Config{Layers: []policy.Layer{retry(2)}}, Habits{}, func(x *exchange) { x.reply(503, "") },
			[]string{
				"op-1/again.2/retry.1 web", "op-1/again.2/retry.2 web", "op-1/again.3/retry.1 mail", "op-1/again.3/retry.2 mail",
				"op-1/retry.1 app", "op-1/retry.2 app",
			}, lab.Failed, 2 * time.Second,
		},
		{
			"side by side", Config{}, Habits{Concurrency: 2}, ok,
			[]string{
				"op-1/again.2/side.1 web", "op-1/again.2/side.2 web", "op-1/again.3/side.1 mail", "op-1/again.3/side.2 mail",
				"op-1/side.1 app", "op-1/side.2 app",
			}, lab.OK, 2 * time.Second,
		},
		{
			"one thread", Config{}, Habits{Threads: 1, Queue: new(0)}, func(x *exchange) { x.pause(4 * time.Second); ok(x) },
			[]string{"op-1 app"}, lab.OK, 4 * time.Second,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bench) {
				b.script = tt.script
				caller := b.caller(tt.config, tt.habits)
				defer caller.Close()
				out := caller.Place(context.Background(), Intent{Operation: "op-1", Key: "app", Further: further})
				diff(t, "belief", tt.belief, out.Belief)
				diff(t, "done", tt.done, out.DoneAt.Round(10*time.Millisecond))
				var sends []string
				instants := map[time.Duration]bool{}
				for _, e := range b.events {
					if e.Kind == lab.Send {
						sends = append(sends, e.Send+" "+e.Key)
						instants[e.At] = true
					}
				}
				diff(t, "instants", len(sends), len(instants))
				slices.Sort(sends)
				diff(t, "sends", tt.sends, sends)
			})
		})
	}
}

// TestBest is the outcome of several sends: that of the one that knows most, at the end of the
// last.
func TestBest(t *testing.T) {
	t.Parallel()
	one := lab.Outcome{Belief: lab.OK, Reason: "201", Order: 1, DoneAt: time.Second}
	two := lab.Outcome{Belief: lab.OK, Reason: "201", Order: 2, DoneAt: 5 * time.Second}
	replay := lab.Outcome{Belief: lab.OK, Reason: "201 replay", Order: 2, DoneAt: 6 * time.Second}
	unknown := lab.Outcome{Belief: lab.Unknown, DoneAt: 3 * time.Second}
	failed := lab.Outcome{Belief: lab.Failed, DoneAt: 9 * time.Second}
	at := func(o lab.Outcome, done time.Duration) lab.Outcome { o.DoneAt = done; return o }
	for _, tt := range []struct {
		in   []lab.Outcome
		want lab.Outcome
	}{
		{[]lab.Outcome{failed}, failed},
		{[]lab.Outcome{one, two}, at(one, 5*time.Second)},
		{[]lab.Outcome{replay, two}, at(two, 6*time.Second)}, // by the reason, not by who comes first
		{[]lab.Outcome{two, replay}, at(two, 6*time.Second)},
		{[]lab.Outcome{failed, one}, at(one, 9*time.Second)},
		{[]lab.Outcome{one, failed}, at(one, 9*time.Second)},
		{[]lab.Outcome{failed, unknown}, at(unknown, 9*time.Second)},
		{[]lab.Outcome{unknown, failed, two}, at(two, 9*time.Second)},
		{[]lab.Outcome{{}, failed}, failed},
		{[]lab.Outcome{{}, {}}, lab.Outcome{}},
	} {
		diff(t, fmt.Sprintf("best of %v", tt.in), tt.want, best(tt.in))
	}
}

// TestEndOfTheLab ends an operation in the middle: it has no outcome, and nothing hangs.
func TestEndOfTheLab(t *testing.T) {
	t.Parallel()
	for _, habits := range []Habits{{}, {Concurrency: 3, Stagger: 2 * time.Second}} {
		t.Run(fmt.Sprint(max(1, habits.Concurrency)), func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(b *bench) {
				b.script = func(x *exchange) { x.hang() }
				life, stop := context.WithCancel(context.Background())
				b.clock.AfterFunc(3*time.Second, stop)
				caller := b.caller(Config{Layers: []policy.Layer{plain(9, time.Minute)}}, habits)
				caller.Place(life, Intent{Operation: "op-1"})
				diff(t, "ended", 3*time.Second, b.clock.Now().Round(time.Millisecond))
				for _, e := range b.journal() {
					if strings.HasPrefix(e, "retry") || strings.HasPrefix(e, "timeout") {
						t.Errorf("recorded %s", e)
					}
				}
			})
		})
	}
}

// TestDeterminism plays twelve operations through layers with jitter again and again: not a
// nanosecond may differ.
func TestDeterminism(t *testing.T) {
	t.Parallel()
	tell := func() (events []string) {
		inBubble(t, func(b *bench) {
			b.script = func(x *exchange) {
				x.pause(time.Second)
				if strings.HasSuffix(x.request.Header.Get(lab.HeaderSend), "3") {
					ok(x)
					return
				}
				x.hang()
			}
			layer := retry(3, func(s *policy.Settings) {
				s.Backoff = &policy.Backoff{Initial: time.Second, Jitter: policy.FullJitter}
			})
			caller := b.caller(Config{Pool: 5, Timeouts: Timeouts{Read: 2 * time.Second, Acquire: 20 * time.Second}, Layers: []policy.Layer{layer}}, Habits{Method: http.MethodPut, Key: "attempt"})
			b.operations(caller, 12)
			for _, e := range b.events {
				events = append(events, fmt.Sprintf("%d %s %s %s", e.At, tell(e), e.Operation, e.Key))
			}
		})
		slices.Sort(events)
		return events
	}
	first := tell()
	for range 5 {
		diff(t, "events", first, tell())
	}
}
