package report

import (
	"maps"
	"slices"
	"strings"

	"retrylab/internal/lab"
)

// storesOf lists the databases of a document, each once, the run's own first. With verbose those
// that differ in a setting alone are two.
func storesOf(d *lab.Document, verbose bool) []*lab.Store {
	var out []*lab.Store
	add := func(s *lab.Store) {
		if s.Engine != "" && !slices.ContainsFunc(out, func(o *lab.Store) bool {
			return o.Engine == s.Engine && o.Mode == s.Mode && o.ChosenBy == s.ChosenBy &&
				(!verbose || maps.Equal(o.Settings, s.Settings))
		}) {
			out = append(out, s)
		}
	}
	add(&d.Run.Store)
	for i := range d.Results {
		for _, s := range []*lab.Store{d.Results[i].Store, d.Results[i].Keys} {
			if s != nil {
				add(s)
			}
		}
	}
	return out
}

// stores says what the numbers were counted in: every database that somebody chose, and with
// verbose all of them, with their settings and the statement that counted.
func (p *page) stores(d *lab.Document) {
	stores := storesOf(d, p.verbose)
	if !p.verbose {
		stores = slices.DeleteFunc(stores, func(s *lab.Store) bool { return s.ChosenBy == "" || s.ChosenBy == "default" })
	}
	if len(stores) == 0 {
		return
	}
	p.gap()
	for _, s := range stores {
		text := s.Engine
		for _, more := range []string{s.Version, s.Mode} {
			if more != "" {
				text += ", " + more
			}
		}
		if s.ChosenBy != "" {
			text += "; chosen by: " + s.ChosenBy
		}
		p.wrapped(dim, "store: ", p.text(strings.Replace(text, ", ", " ", 1)), 7)
		if !p.verbose {
			continue
		}
		var settings []string
		for _, name := range slices.Sorted(maps.Keys(s.Settings)) {
			settings = append(settings, name+": "+s.Settings[name])
		}
		if len(settings) > 0 {
			p.wrapped(dim, "  settings: ", p.text(strings.Join(settings, "; ")), 4)
		}
		if s.Counting != "" {
			p.wrapped(dim, "  orders counted by: ", p.text(s.Counting), 4)
		}
	}
}
