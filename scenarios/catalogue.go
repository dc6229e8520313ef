package scenarios

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

//go:embed *.yaml
var files embed.FS

// Names lists the built-in scenarios. It reads no file.
func Names() []string {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// Builtin returns the built-in scenario of that name.
func Builtin(name string) (*Scenario, error) {
	data, err := files.ReadFile(name + ".yaml")
	if err != nil {
		return nil, &Error{What: fmt.Sprintf("there is no scenario %q", name), Hint: suggestScenario(name)}
	}
	return Parse("scenarios/"+name+".yaml", data)
}

func suggestScenario(name string) string {
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
