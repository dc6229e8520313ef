package engine_test

import (
	"context"
	"testing"

	"retrylab/internal/engine"
	"retrylab/internal/judge"
	"retrylab/scenarios"
)

func TestX(t *testing.T) {
	l, err := engine.New(engine.Virtual, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s, err := scenarios.Builtin("read-timeout")
	if err != nil {
		t.Fatal(err)
	}
	trials, err := s.Plan(scenarios.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range trials {
		obs := l.Run(context.Background(), tr)
		r := judge.Decide(tr, obs)
		t.Log(r.ID, r.Verdict, r.Why, r.Counts, r.Beliefs)
		for _, c := range r.Checks {
			if !c.Held {
				t.Log(c)
			}
		}
		if testing.Verbose() && tr.ID == "key-claimed-first-409" {
			for _, e := range obs.Events {
				t.Log(e)
			}
		}
	}
}
