package suite

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"retrylab/internal/lab"
	"retrylab/scenarios"
)

// parts runs every part of a run.
func parts(t *testing.T, list []*scenarios.Scenario, o Options, n int) (docs []*lab.Document, names []string) {
	t.Helper()
	for i := range n {
		o.Shard = Shard{Index: i + 1, Count: n}
		doc, err := Run(context.Background(), list, o)
		if err != nil {
			t.Fatal(err)
		}
		docs, names = append(docs, doc), append(names, fmt.Sprintf("part%d.json", i+1))
	}
	return docs, names
}

// TestMerge puts parts together, in any order, to what the whole run is.
func TestMerge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		ids  []string
		o    func(*Options)
	}{
		{"all held", []string{"held", "held-2", "held-3"}, func(*Options) {}},
		{"of each", []string{"held", "not-held", "inconclusive", "held-2"}, func(*Options) {}},
		{"with codes of its own", []string{"held", "not-held", "inconclusive"}, func(o *Options) { o.NotHeld, o.Lenient = 77, true }},
		{"lenient", []string{"held", "inconclusive"}, func(o *Options) { o.Lenient = true }},
		{"with a defect", []string{"not-held", "defect", "no-ground"}, func(*Options) {}},
		{"without its ground", []string{"not-held", "no-ground"}, func(*Options) {}},
		{"with seeds", []string{"held", "not-held"}, func(o *Options) { o.Repeat = 5 }},
	} {
		// The second cannot be run here, and is skipped.
		list := []*scenarios.Scenario{file(t, rows(c.ids...)), file(t, "name: other\nneeds: [postgres]\n"), file(t, "name: third\n")}
		o := options()
		o.run = outcome
		c.o(&o)
		whole, err := Run(context.Background(), list, o)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 9 {
			docs, names := parts(t, list, o, n+1)
			docs, names = append(docs[1:], docs[0]), append(names[1:], names[0])
			merged, err := Merge(docs, names)
			if err != nil {
				t.Errorf("%s, %d parts: %v", c.name, n+1, err)
			}
			if diff := cmp.Diff(whole, merged); diff != "" {
				t.Errorf("%s, %d parts: -whole +merged:\n%s", c.name, n+1, diff)
			}
		}
	}
}

// TestMergeStopped keeps the exit code of a part that was stopped.
func TestMergeStopped(t *testing.T) {
	t.Parallel()
	o := options()
	o.run = outcome
	list := []*scenarios.Scenario{file(t, rows("held", "not-held"))}
	docs, names := parts(t, list, o, 2)
	docs[1].Run.Shard.Incomplete = true
	if doc, err := Merge(docs, names); err != nil || doc.ExitCode != ExitTimeLimit {
		t.Errorf("the limit was spent: %v, %v", doc, err)
	}
	docs[0].Run.Interrupted, docs[0].ExitCode = true, 143
	if doc, err := Merge(docs, names); err != nil || doc.ExitCode != 143 || !doc.Run.Interrupted {
		t.Errorf("it was terminated: %v, %v", doc, err)
	}
}

// TestMergeRefuses says what is missing, doubled or foreign.
func TestMergeRefuses(t *testing.T) {
	t.Parallel()
	o := options()
	o.run = outcome
	list := []*scenarios.Scenario{file(t, rows("a", "b", "c", "d"))}
	of3, _ := parts(t, list, o, 3)
	of4, _ := parts(t, list, o, 4)
	whole, err := Run(context.Background(), list, o)
	if err != nil {
		t.Fatal(err)
	}
	o.Plan.Seed = 2
	other, _ := parts(t, list, o, 3)
	o.Plan.Seed, o.Lenient = 1, true
	lenient, _ := parts(t, list, o, 3)
	broken := *of3[2]
	broken.Results = nil
	names := []string{"a.json", "b.json", "c.json"}
	for _, c := range []struct {
		docs []*lab.Document
		want string
	}{
		{nil, "there is nothing to put together"},
		{of3[:2], "of 3 parts there is no 3"},
		{of4[1:2], "of 4 parts there is no 1, 3, 4"},
		{[]*lab.Document{of3[0], of3[1], of3[1]}, "b.json and c.json are both part 2 of 3"},
		{[]*lab.Document{of3[0], of3[1], whole}, "c.json is no part: its run was not split"},
		{[]*lab.Document{of3[0], of4[1]}, "b.json is one of 4 parts and a.json one of 3"},
		{[]*lab.Document{of3[0], other[1]}, "b.json is a part of another run than a.json"},
		{[]*lab.Document{of3[0], lenient[1]}, "b.json and a.json were not run with the same flags"},
		{[]*lab.Document{of3[0], of3[1], &broken}, "c.json is not as it was written"},
	} {
		_, err := Merge(c.docs, names[:len(c.docs)])
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("the error is %v, want %s…", err, c.want)
		}
	}
}

// TestShardsAlike gives every part its share, and each configuration to one.
func TestShardsAlike(t *testing.T) {
	t.Parallel()
	o := options()
	o.run = outcome
	list := []*scenarios.Scenario{file(t, rows("a", "b", "c", "d", "e", "f", "g"))}
	docs, _ := parts(t, list, o, 3)
	for i, want := range []int{3, 2, 2} {
		if got := len(docs[i].Results); got != want {
			t.Errorf("part %d has %d results, want %d", i+1, got, want)
		}
	}
	docs, _ = parts(t, list, o, 9)
	if d := docs[8]; len(d.Results) != 0 || d.ExitCode != ExitHeld {
		t.Errorf("the part without a trial has %d results and code %d", len(d.Results), d.ExitCode)
	}
}
