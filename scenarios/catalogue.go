package scenarios

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed *.yaml incidents/*.yaml
var files embed.FS

// Incidents is the family of the public reports, and the folder that they are in. One of them may be named
// with the folder before its name, and by its id alone: incidents/inc-01.
const Incidents = "incidents"

// Names lists the built-in scenarios, the incidents last. It reads no file.
func Names() []string { return append(namesIn("."), IncidentNames()...) }

// IncidentNames lists the incidents, without their folder. It reads no file.
func IncidentNames() []string { return namesIn(Incidents) }

func namesIn(folder string) []string {
	entries, err := files.ReadDir(folder)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".yaml"); ok {
			names = append(names, name)
		}
	}
	return names
}

// Builtin returns the built-in scenario of that name.
func Builtin(name string) (*Scenario, error) {
	file := name + ".yaml"
	if incident := findIncident(name); incident != "" {
		file = path.Join(Incidents, incident+".yaml")
	}
	data, err := files.ReadFile(file)
	if err != nil {
		return nil, &Error{What: fmt.Sprintf("there is no scenario %q", name), Hint: suggestScenario(name)}
	}
	return Parse("scenarios/"+file, data)
}

// IncidentID is the part of an incident's name that is enough to name it: inc-01.
func IncidentID(name string) string {
	parts := strings.SplitN(name, "-", 3)
	return strings.Join(parts[:min(len(parts), 2)], "-")
}

// findIncident returns the whole name of an incident. Its id alone is enough, in either case.
func findIncident(name string) string {
	name = strings.TrimPrefix(strings.ToLower(name), Incidents+"/")
	for _, whole := range IncidentNames() {
		if whole == name || IncidentID(whole) == name {
			return whole
		}
	}
	return ""
}

func suggestScenario(name string) string {
	if strings.HasPrefix(strings.ToLower(name), "inc") {
		return "`retrylab list incidents` shows the incidents; the id of one is enough, as in inc-01"
	}
	if near := Nearest(name, Names()); near != "" {
		return fmt.Sprintf("did you mean %q? `retrylab list` shows all", near)
	}
	return "`retrylab list` shows all; a file of your own needs a slash or .yaml in its name"
}

// Catalogue returns every built-in scenario in the order of a course: by family, and within a
// family along their next.
func Catalogue() ([]*Scenario, error) {
	var all []*Scenario
	for _, name := range Names() {
		s, err := Builtin(name)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return course(all), nil
}

// course puts scenarios in the order in which they lead to each other. A chain begins where
// nothing leads; what is left when a chain ends or closes follows by family and name.
func course(all []*Scenario) []*Scenario {
	rank := func(s *Scenario) int {
		if i := slices.Index(Families, s.Family); i >= 0 {
			return i
		}
		return len(Families)
	}
	slices.SortStableFunc(all, func(a, b *Scenario) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	led := map[string]bool{}
	for _, s := range all {
		led[s.Next] = true
	}
	byName := map[string]*Scenario{}
	for _, s := range all {
		byName[s.Name] = s
	}
	var out []*Scenario
	taken := map[string]bool{}
	follow := func(s *Scenario) {
		for s != nil && !taken[s.Name] {
			taken[s.Name] = true
			out = append(out, s)
			s = byName[s.Next]
		}
	}
	for _, s := range all {
		if !led[s.Name] {
			follow(s)
		}
	}
	for _, s := range all {
		follow(s)
	}
	// Along their next, but family by family: a list is read in groups.
	slices.SortStableFunc(out, func(a, b *Scenario) int { return rank(a) - rank(b) })
	return out
}
