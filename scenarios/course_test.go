package scenarios

import (
	"slices"
	"testing"
)

// TestCourse orders scenarios whose next lead nowhere, in circles and across families.
func TestCourse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		in   []*Scenario
		want []string
	}{
		{"nothing", nil, nil},
		{"a chain against the alphabet", []*Scenario{
			{Name: "a", Family: "layers"}, {Name: "b", Family: "layers", Next: "a"}, {Name: "c", Family: "layers", Next: "b"},
		}, []string{"c", "b", "a"}},
		{"a circle", []*Scenario{
			{Name: "b", Family: "layers", Next: "a"}, {Name: "a", Family: "layers", Next: "b"},
		}, []string{"a", "b"}},
		{"two that lead to one", []*Scenario{
			{Name: "a", Family: "layers", Next: "c"}, {Name: "b", Family: "layers", Next: "c"}, {Name: "c", Family: "layers"},
		}, []string{"a", "c", "b"}},
		{"across families and back", []*Scenario{
			{Name: "a", Family: "guards", Next: "b"}, {Name: "b", Family: "timeouts", Next: "c"}, {Name: "c", Family: "guards"},
		}, []string{"b", "a", "c"}},
		{"to one that there is not", []*Scenario{{Name: "a", Family: "load", Next: "nowhere"}, {Name: "b"}}, []string{"a", "b"}},
	} {
		var got []string
		for _, s := range course(c.in) {
			got = append(got, s.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
