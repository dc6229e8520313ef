package scenarios_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retrylab/scenarios"
)

// TestLoad: phases follow one another, and make the number of operations.
func TestLoad(t *testing.T) {
	t.Parallel()
	s, err := scenarios.Parse("load.yaml", []byte("name: load\nload: [{rate: 2, for: 2s}, {rate: 10, for: 500ms}, {rate: 0.5, for: 4s}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	setup := plan(t, s)[0].Setup
	begins := setup.Begins(1)
	if setup.Operations != 11 {
		t.Fatalf("%d operations, want 4, 5 and 2", setup.Operations)
	}
	for n, want := range map[int]time.Duration{
		0: 0, 1: 500 * time.Millisecond, 3: 1500 * time.Millisecond, 4: 2 * time.Second, 8: 2400 * time.Millisecond,
		9: 2500 * time.Millisecond, 10: 4500 * time.Millisecond,
	} {
		if got := begins[n]; got != want {
			t.Errorf("operation %d begins at %s, want %s", n, got, want)
		}
	}
	even := scenarios.Setup{Operations: 5, Interval: 3 * time.Second}
	if got := even.Begins(1)[4]; got != 12*time.Second {
		t.Errorf("the fifth of operations 3 s apart begins at %s", got)
	}
}

// TestFurtherSends: they are no operations, and have what their operation has.
func TestFurtherSends(t *testing.T) {
	t.Parallel()
	s, err := scenarios.Parse("s.yaml", []byte(`{name: s, interval: 1s, schedule: [
		{at: 2s, key: a, amount: 70}, {at: 4s, of: 1}, {key: b, tenant: north}, {of: 1, key: c}, {of: 2, at: 5s, item: pen}]}`))
	if err != nil {
		t.Fatal(err)
	}
	setup := plan(t, s)[0].Setup
	if diff := cmp.Diff([]time.Duration{2 * time.Second, 5 * time.Second}, setup.Begins(1)); diff != "" || setup.Operations != 2 {
		t.Errorf("%d operations begin: %s", setup.Operations, diff)
	}
	type planned struct {
		Key, Tenant, Item string
		Amount            scenarios.Money
		After             time.Duration
	}
	for i, want := range [][]planned{
		{{Key: "a", Amount: 7000}, {Key: "a", Amount: 7000, After: 2 * time.Second}, {Key: "c", Amount: 7000, After: 4 * time.Second}},
		{{Key: "b", Tenant: "north"}, {Key: "b", Tenant: "north", Item: "pen"}},
		{{}},
	} {
		first, further, after := setup.Planned(i)
		var got []planned
		for n, o := range append([]scenarios.Intent{first}, further...) {
			p := planned{o.Key, o.Tenant, o.Item, o.Amount, 0}
			if n > 0 {
				p.After = after[n-1]
			}
			got = append(got, p)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("operation %d: %s", i+1, diff)
		}
	}
}

// TestRandomArrivals: they are as many as even ones, each in its phase, and others for another seed.
func TestRandomArrivals(t *testing.T) {
	t.Parallel()
	setup := scenarios.Setup{Operations: 1500, Load: []scenarios.Phase{
		{Rate: 50, For: 10 * time.Second, Arrivals: "random"}, {Rate: 100, For: 10 * time.Second, Arrivals: "random"},
	}}
	begins := setup.Begins(1)
	if len(begins) != setup.Operations || !slices.IsSorted(begins) {
		t.Fatalf("%d operations, want %d in the order of time", len(begins), setup.Operations)
	}
	if begins[499] >= 10*time.Second || begins[500] < 10*time.Second || begins[1499] >= 20*time.Second {
		t.Errorf("the phases end with %s and %s", begins[499], begins[1499])
	}
	perSecond := map[time.Duration]int{}
	for _, at := range begins[:500] {
		perSecond[at.Truncate(time.Second)]++
	}
	least, most := 1000, 0
	for _, n := range perSecond {
		least, most = min(least, n), max(most, n)
	}
	if least == most || least < 25 || most > 80 {
		t.Errorf("between %d and %d operations in a second, want about 50 and not each time", least, most)
	}
	if slices.Equal(begins, setup.Begins(2)) || !slices.Equal(begins, setup.Begins(1)) {
		t.Error("the moments are not those of the seed")
	}
}
