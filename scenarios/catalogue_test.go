package scenarios_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"retrylab/scenarios"
)

var sentenceEnd = regexp.MustCompile(`[.!?]["')]?(\s|$)`)

// TestBuiltins demands of every built-in scenario what a course needs.
func TestBuiltins(t *testing.T) {
	t.Parallel()
	all, err := scenarios.Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range all {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			folder := "scenarios/"
			if s.Family == scenarios.Incidents {
				folder += "incidents/"
			}
			if s.File != folder+s.Name+".yaml" {
				t.Errorf("its file has another name than it: %s", s.File)
			}
			if s.Title == "" || strings.HasSuffix(s.Title, ".") {
				t.Errorf("the title is %q", s.Title)
			}
			if !slices.Contains(scenarios.Families, s.Family) {
				t.Errorf("the family is %q", s.Family)
			}
			if n := len(sentenceEnd.FindAllString(s.Lesson, -1)); n < 3 || n > 10 {
				t.Errorf("the lesson has %d sentences", n)
			}
			last := i == len(all)-1
			if (s.Next == "") != last || s.Next == s.Name || !last && !slices.Contains(scenarios.Names(), s.Next) {
				t.Errorf("the next one is %q", s.Next)
			}
			if len(s.Tags) == 0 {
				t.Error("it has no tags")
			}
			for _, trial := range plan(t, s) {
				// Where chance has a part in every number, invariants say what must be so for any seed.
				if trial.Expect == nil && len(trial.Invariants) == 0 {
					t.Errorf("%s expects nothing", trial.ID)
				}
			}
		})
	}
}

// TestCatalogueOrder: every scenario once, family by family, and within a family each before the
// one it leads to.
func TestCatalogueOrder(t *testing.T) {
	t.Parallel()
	all, err := scenarios.Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	position := map[string]int{}
	family := 0
	for i, s := range all {
		position[s.Name] = i
		f := slices.Index(scenarios.Families, s.Family)
		if f < family {
			t.Errorf("%s of %s comes after %s", s.Name, s.Family, scenarios.Families[family])
		}
		family = f
	}
	if len(position) != len(all) || len(all) != len(scenarios.Names()) {
		t.Errorf("%d scenarios of %d, %d of them different", len(all), len(scenarios.Names()), len(position))
	}
	for i, s := range all[:len(all)-1] {
		if s.Next == "" {
			continue // the last of the course, before the incidents
		}
		if next := all[position[s.Next]]; next.Family == s.Family && position[s.Next] != i+1 {
			t.Errorf("%s leads to %s, and %s follows it", s.Name, s.Next, all[i+1].Name)
		}
	}
	if all[0].Name != "read-timeout" {
		t.Errorf("the course begins with %s", all[0].Name)
	}
}

func TestUnknownBuiltin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, hint string }{
		{"read-timout", "did you mean \"read-timeout\"? `retrylab list` shows all"},
		{"READ_TIMEOUT", "did you mean \"read-timeout\"? `retrylab list` shows all"},
		{"x", "`retrylab list` shows all; a file of your own needs a slash or .yaml in its name"},
		{"", "`retrylab list` shows all; a file of your own needs a slash or .yaml in its name"},
		{"../scenarios/read-timeout", ""},
		{"skeleton/skeleton", ""},
		{"inc-02", "`retrylab list incidents` shows the incidents; the id of one is enough, as in inc-01"},
		{"incidents/inc-0", "`retrylab list incidents` shows the incidents; the id of one is enough, as in inc-01"},
		{"incidents/read-timeout", "`retrylab list incidents` shows the incidents; the id of one is enough, as in inc-01"},
	} {
		s, err := scenarios.Builtin(c.name)
		if err == nil {
			t.Errorf("%q is %s", c.name, s.Name)
			continue
		}
		if !strings.HasSuffix(err.Error(), c.hint) {
			t.Errorf("%q: got %v, want the hint %s", c.name, err, c.hint)
		}
	}
}

// TestIncidentNames: an incident is found by its name and by its id alone, with the folder and without.
func TestIncidentNames(t *testing.T) {
	t.Parallel()
	const whole = "inc-01-caller-gives-up"
	for _, name := range []string{whole, "incidents/" + whole, "inc-01", "INC-01", "incidents/inc-01", "incidents/INC-01"} {
		s, err := scenarios.Builtin(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if s.Name != whole || s.File != "scenarios/incidents/"+whole+".yaml" {
			t.Errorf("%s is %s in %s", name, s.Name, s.File)
		}
	}
}

// TestIncidents holds the files against the ids of the collection: each is a file, or docs/limits.md says
// why it is none.
func TestIncidents(t *testing.T) {
	t.Parallel()
	limits, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("testdata/incidents.txt")
	if err != nil {
		t.Fatal(err)
	}
	ids := strings.Fields(string(data))
	for _, id := range ids {
		_, err := scenarios.Builtin(id)
		if none := strings.Contains(string(limits), "**"+id+"**"); (err == nil) == none {
			t.Errorf("%s: %v, and docs/limits.md says that it is none: %v", id, err, none)
		}
	}
	for _, name := range scenarios.IncidentNames() {
		if id := strings.ToUpper(scenarios.IncidentID(name)); !slices.Contains(ids, id) {
			t.Errorf("%s is no incident of testdata/incidents.txt", name)
		}
		s, err := scenarios.Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Sources) == 0 || !strings.HasPrefix(s.Sources[0], "https://") {
			t.Errorf("%s does not link to its report", name)
		}
	}
}

// TestSkeleton: what `retrylab new` writes is a scenario, in plain ASCII, with its keys explained.
func TestSkeleton(t *testing.T) {
	t.Parallel()
	s, err := scenarios.Parse("mine.yaml", scenarios.Skeleton)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan(t, s)) < 2 {
		t.Error("it has nothing to compare")
	}
	for i, b := range scenarios.Skeleton {
		if b > 0x7e {
			t.Errorf("byte %d is %#x", i, b)
		}
	}
	// What it shows as a comment must work too, once the marks are removed.
	var lines []string
	for line := range strings.SplitSeq(string(scenarios.Skeleton), "\n") {
		if m := commented.FindStringSubmatch(line); m != nil {
			line = m[1] + m[2]
		}
		lines = append(lines, line)
	}
	if _, err := scenarios.Parse("mine.yaml", []byte(strings.Join(lines, "\n"))); err != nil {
		t.Errorf("with its comments taken in:\n%v", err)
	}
}

// commented is a line of YAML behind a mark.
var commented = regexp.MustCompile(`^( *)# ( *(?:- )?\{?[a-z-]+:(?: .*)?)$`)
