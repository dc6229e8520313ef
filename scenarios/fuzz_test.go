package scenarios_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"retrylab/scenarios"
)

// hang is far beyond what any input may take on any machine: what takes longer hangs.
const hang = 20 * time.Second

// FuzzParse feeds the decoder whatever comes: it never panics and never hangs, an error has a
// place, and a file that parses can be planned, twice alike.
func FuzzParse(f *testing.F) {
	for _, name := range scenarios.Names() {
		s, err := scenarios.Builtin(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(s.Source)
	}
	f.Add(scenarios.Skeleton)
	for _, data := range wrongFiles(f) {
		if len(data) < 8<<10 { // the fuzzer is lost in large ones; TestErrors reads them
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		begin := time.Now()
		s, err := scenarios.Parse("fuzz.yaml", data)
		if d := time.Since(begin); d > hang {
			t.Errorf("%d bytes took %s", len(data), d)
		}
		if err != nil {
			checkError(t, "fuzz.yaml", data, err)
			return
		}
		first, err := s.Plan(scenarios.Options{Seed: 1})
		if err != nil {
			t.Fatalf("it parses and cannot be planned: %v", err)
		}
		second, err := s.Plan(scenarios.Options{Seed: 1})
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Fatalf("two plans differ (%v)", err)
		}
		if len(first) != len(s.Variants) {
			t.Fatalf("%d trials of %d variants", len(first), len(s.Variants))
		}
		if _, err := s.Base(); err != nil {
			t.Fatalf("its variants can be planned and what they differ from cannot: %v", err)
		}
	})
}

// FuzzSet overrides values of a scenario with whatever comes: a change is made or refused, and the
// scenario stays as it was.
func FuzzSet(f *testing.F) {
	for _, seed := range []string{
		"caller.timeouts.read=15s", "caller.layers=[]", "caller.layers[0].attempts=3", "caller.layers.inner.on=[503, eof]",
		"server.guard=none", "server.guard.claim=first", "server.guard={kind: none}", "hops.gateway.name=x", "server.faults[0].at=in-reply",
		"a.b.c", "=", "caller.layers[", "caller.layers[]=x", "caller.layers[99999999999999999999]=x", "caller=&a [*a]", "premises=effects > 0",
		"server={<<: 1}", "operations=-1", "caller.timeouts.read=\x00", "caller\xff=1", "..=..", "[0][1]=2", "hops[0].layers[0]=nginx",
	} {
		f.Add(seed)
	}
	s, err := scenarios.Parse("mine.yaml", []byte(strings.TrimPrefix(chain, "\n")))
	if err != nil {
		f.Fatal(err)
	}
	before, err := s.Plan(scenarios.Options{Seed: 1})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, set string) {
		begin := time.Now()
		_, err := s.Plan(scenarios.Options{Seed: 1, Set: []string{set}})
		if d := time.Since(begin); d > hang {
			t.Errorf("%d bytes took %s", len(set), d)
		}
		var e *scenarios.Error
		if err != nil && (!errors.As(err, &e) || e.What == "" || !strings.HasPrefix(err.Error(), "--set ")) {
			t.Errorf("%T: %v", err, err)
		}
		after, err := s.Plan(scenarios.Options{Seed: 1})
		if err != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("it changed the scenario (%v)", err)
		}
	})
}
