package slowserver_test

import (
	"testing"
	"time"

	"retrylab/internal/lab"
	"retrylab/slowserver"
	"retrylab/slowserver/capacity"
	"retrylab/slowserver/fault"
)

// TestQueue sends requests a second apart to a service with one worker and 4 s of work.
func TestQueue(t *testing.T) {
	t.Parallel()
	one := 1
	none := 0
	const served = "arrival, work, commit, answer 201"
	const waited = "arrival, queue waits, work, commit, answer 201"
	type got struct {
		Answer string
		At     time.Duration
		Story  string
	}
	tests := []struct {
		name     string
		config   slowserver.Config
		requests []request // the first at 0, the second at 1 s, …
		want     []got
	}{
		{
			"first come, first served", slowserver.Config{Pool: capacity.Pool{Workers: 1}},
			[]request{{}, {}, {}},
			[]got{{"201, order 1", 4 * time.Second, served}, {"201, order 2", 8 * time.Second, waited}, {"201, order 3", 12 * time.Second, waited}},
		},
		{
			"two workers", slowserver.Config{Pool: capacity.Pool{Workers: 2}},
			[]request{{}, {}, {}},
			[]got{{"201, order 1", 4 * time.Second, served}, {"201, order 2", 5 * time.Second, served}, {"201, order 3", 8 * time.Second, waited}},
		},
		{
			"each replica has its own", slowserver.Config{Pool: capacity.Pool{Workers: 1}},
			[]request{{}, {replica: 2}, {}},
			[]got{{"201, order 1", 4 * time.Second, served}, {"201, order 2", 5 * time.Second, served}, {"201, order 3", 8 * time.Second, waited}},
		},
		{
			"one place to wait", slowserver.Config{Pool: capacity.Pool{Workers: 1, Queue: &one}},
			[]request{{}, {}, {}},
			[]got{{"201, order 1", 4 * time.Second, served}, {"201, order 2", 8 * time.Second, waited}, {"503, busy", 2 * time.Second, "arrival, queue full, answer 503"}},
		},
		{
			"no place to wait", slowserver.Config{Pool: capacity.Pool{Workers: 1, Queue: &none}},
			[]request{{}, {}},
			[]got{{"201, order 1", 4 * time.Second, served}, {"503, busy", time.Second, "arrival, queue full, answer 503"}},
		},
		{
			// A worker is busy until the answer is given.
			"held after the commit", slowserver.Config{
				Pool:   capacity.Pool{Workers: 1},
				Faults: []fault.Settings{{At: fault.AfterCommit, Do: "delay", Delay: 3 * time.Second, Arrivals: []int{1}}},
			},
			[]request{{}, {}},
			[]got{{"201, order 1", 7 * time.Second, "arrival, work, commit, fault delay@after-commit, answer 201"}, {"201, order 2", 11 * time.Second, waited}},
		},
		{
			"nothing is dropped", slowserver.Config{Pool: capacity.Pool{Workers: 1, Shed: capacity.ShedNone}},
			[]request{{}, {deadline: "2S"}},
			[]got{{"201, order 1", 4 * time.Second, served}, {"201, order 2", 8 * time.Second, waited}},
		},
		{
			// The third would be late, and nobody looks at that.
			"expired is dropped", slowserver.Config{Pool: capacity.Pool{Workers: 1, Shed: capacity.ShedExpired}},
			[]request{{}, {deadline: "2S"}, {deadline: "4S"}, {}},
			[]got{
				{"201, order 1", 4 * time.Second, served}, {"503, busy", 4 * time.Second, "arrival, queue waits, queue expired, answer 503"},
				{"201, order 2", 8 * time.Second, waited}, {"201, order 3", 12 * time.Second, waited},
			},
		},
		{
			"late is dropped", slowserver.Config{Pool: capacity.Pool{Workers: 1, Shed: capacity.ShedLate}},
			[]request{{}, {deadline: "2S"}, {deadline: "4S"}, {deadline: "6S"}, {}},
			[]got{
				{"201, order 1", 4 * time.Second, served}, {"503, busy", 4 * time.Second, "arrival, queue waits, queue expired, answer 503"},
				{"503, busy", 4 * time.Second, "arrival, queue waits, queue late, answer 503"},
				{"201, order 2", 8 * time.Second, waited}, {"201, order 3", 12 * time.Second, waited},
			},
		},
		{
			"a deadline that is honoured in the queue", slowserver.Config{Pool: capacity.Pool{Workers: 1}, HonourDeadline: true},
			[]request{{}, {deadline: "2S"}, {}},
			[]got{
				{"201, order 1", 4 * time.Second, served}, {"504, deadline", 3 * time.Second, "arrival, queue waits, timeout deadline, answer 504"},
				{"201, order 2", 8 * time.Second, waited},
			},
		},
		{
			"a client that leaves, and nobody looks", slowserver.Config{Pool: capacity.Pool{Workers: 1}},
			[]request{{}, {patience: 2 * time.Second}, {}},
			[]got{
				{"201, order 1", 4 * time.Second, served}, {"silence", 3 * time.Second, "arrival, queue waits, work, commit, client-gone 201"},
				{"201, order 3", 12 * time.Second, waited},
			},
		},
		{
			"a client that leaves the queue", slowserver.Config{Pool: capacity.Pool{Workers: 1}, CancelWhenGone: true},
			[]request{{}, {patience: 2 * time.Second}, {}},
			[]got{
				{"201, order 1", 4 * time.Second, served}, {"silence", 3 * time.Second, "arrival, queue waits, client-gone"},
				{"201, order 2", 8 * time.Second, waited},
			},
		},
		{
			"a replica that dies with its queue", slowserver.Config{
				Pool:   capacity.Pool{Workers: 1},
				Faults: []fault.Settings{{At: fault.BeforeCommit, Do: "crash", Restart: time.Second, Arrivals: []int{1}}},
			},
			[]request{{}, {}, {at: 6 * time.Second}},
			[]got{
				{"EOF", 4 * time.Second, "arrival, work, fault crash@before-commit, crash"}, {"EOF", 4 * time.Second, "arrival, queue waits"},
				{"201, order 1", 10 * time.Second, served},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.config.Processing = 4 * time.Second
			requests := make([]request, len(tt.requests))
			for i, r := range tt.requests {
				r.id, r.body = string(rune('a'+i)), book
				if r.at == 0 {
					r.at = time.Duration(i) * time.Second
				}
				requests[i] = r
			}
			var answers []answer
			b := play(t, tt.config, func(b *bench) { answers = b.sendAll(requests...) })
			for i, a := range answers {
				diff(t, requests[i].id, tt.want[i], got{a.String(), a.at, b.journal(requests[i].id)})
			}
		})
	}
}

// TestSpreadOfWork draws how long each request is worked on from the seed and from who sent it.
func TestSpreadOfWork(t *testing.T) {
	t.Parallel()
	took := func(seed int64, ids ...string) (out []time.Duration) {
		c := slowserver.Config{Spread: capacity.Spread{P50: 80 * time.Millisecond, P999: 300 * time.Millisecond}, Seed: seed}
		b := play(t, c, func(b *bench) {
			for _, id := range ids {
				b.send(order(id, ""))
			}
		})
		for _, id := range ids {
			out = append(out, b.when(id, lab.Commit)-b.when(id, lab.Work))
		}
		return out
	}
	first := took(1, "a", "b")
	if first[0] == first[1] {
		t.Errorf("two requests take %v each", first[0])
	}
	diff(t, "in another order", []time.Duration{first[1], first[0]}, took(1, "b", "a"))
	if other := took(2, "a"); other[0] == first[0] {
		t.Errorf("with another seed it takes %v as well", other[0])
	}
	for _, d := range first {
		if d < 10*time.Millisecond || d > time.Second {
			t.Errorf("%v is not what such a spread gives", d)
		}
	}
}
