package suite

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"retrylab/internal/lab"
)

// Shard is a part of a run: the Index-th of Count, from 1.
type Shard struct{ Index, Count int }

// has reports whether the n-th of what a run consists of is in the part. What stands side by side costs
// alike, so neighbours go to different parts.
func (s Shard) has(n int) bool { return s.Count == 0 || n%s.Count == s.Index-1 }

// split leaves the jobs of a part, and its share of what is skipped. The seeds of a configuration stay
// together.
func split(jobs []job, o Options, doc *lab.Document) []job {
	shard := doc.Run.Shard
	if shard == nil {
		return jobs
	}
	shard.Planned = len(jobs)
	skipped := doc.Skipped
	doc.Skipped = []lab.Skip{}
	for i, skip := range skipped {
		if o.Shard.has(i) {
			leaveOut(doc, skip, i)
		}
	}
	var own []job
	configuration := -1
	for i, j := range jobs {
		if i == 0 || j.scenario != jobs[i-1].scenario || j.trial.ID != jobs[i-1].trial.ID {
			configuration++
		}
		if o.Shard.has(configuration) {
			j.place, j.skip = i, len(skipped)+i
			own = append(own, j)
		}
	}
	return own
}

// Merge puts the parts of a run together: to the same document as that of the run in one. names are
// what the parts are called in errors, which say what is missing, doubled or not of this run.
func Merge(parts []*lab.Document, names []string) (*lab.Document, error) {
	if err := fit(parts, names); err != nil {
		return nil, err
	}
	type placed[T any] struct {
		place int
		of    T
		part  *lab.Document
	}
	var results []placed[lab.Result]
	var skipped []placed[lab.Skip]
	infos, said := map[string]lab.ScenarioInfo{}, map[string]lab.ShardScenario{}
	doc := *parts[0]
	exit, late, incomplete := doc.Run.Shard.Exit, false, false
	interrupted := 0 // the exit code
	for _, p := range parts {
		for i, r := range p.Results {
			results = append(results, placed[lab.Result]{p.Run.Shard.Results[i], r, p})
		}
		for i, s := range p.Skipped {
			skipped = append(skipped, placed[lab.Skip]{p.Run.Shard.Skipped[i], s, p})
		}
		for _, info := range p.Scenarios {
			infos[info.Name] = info
		}
		for _, s := range p.Run.Shard.Scenarios {
			said[s.Name] = s
		}
		late = late || p.Run.Shard.Incomplete
		incomplete = incomplete || p.Run.Incomplete
		if p.Run.Interrupted && interrupted == 0 {
			interrupted = p.ExitCode
		}
	}
	doc.Run.Shard, doc.Run.Store = nil, lab.Store{}
	doc.Run.Interrupted, doc.Run.Incomplete = interrupted != 0, incomplete
	doc.Results, doc.Skipped, doc.Scenarios, doc.Summary = []lab.Result{}, []lab.Skip{}, []lab.ScenarioInfo{}, lab.Summary{}
	slices.SortStableFunc(results, func(a, b placed[lab.Result]) int { return cmp.Compare(a.place, b.place) })
	for _, r := range results {
		served(&doc, &r.of, *cmp.Or(r.of.Store, &r.part.Run.Store))
		doc.Results = append(doc.Results, r.of)
	}
	slices.SortStableFunc(skipped, func(a, b placed[lab.Skip]) int { return cmp.Compare(a.place, b.place) })
	for _, s := range skipped {
		doc.Skipped = append(doc.Skipped, s.of)
	}
	for rest := doc.Results; len(rest) > 0; {
		name, n := rest[0].Scenario, 1
		for n < len(rest) && rest[n].Scenario == name {
			n++
		}
		doc.Scenarios = append(doc.Scenarios, concluded(infos[name], rest[:n], doc.Run.Vary, said[name].Focus, said[name].Remedy))
		rest = rest[n:]
	}
	summarize(&doc)
	doc.ExitCode = exitCode(&doc, Options{NotHeld: exit.NotHeld, Lenient: doc.Run.InconclusivePasses, RequireAll: exit.RequireAll}, interrupted != 0, late)
	if doc.ExitCode == ExitInterrupted {
		doc.ExitCode = interrupted
	}
	return &doc, nil
}

// fit reports why documents are not the parts of one run, each once.
func fit(parts []*lab.Document, names []string) error {
	if len(parts) == 0 {
		return fmt.Errorf("there is nothing to put together")
	}
	var seen []string // by index, from 0
	for i, p := range parts {
		s := p.Run.Shard
		switch {
		case s == nil:
			return fmt.Errorf("%s is no part: its run was not split", names[i])
		case s.Count < 1 || s.Index < 1 || s.Index > s.Count || s.Count > MostShards ||
			len(s.Results) != len(p.Results) || len(s.Skipped) != len(p.Skipped):
			return fmt.Errorf("%s is not as it was written: it does not fit what it says of itself", names[i])
		}
		first := parts[0].Run.Shard
		switch {
		case p.Run.ID != parts[0].Run.ID || p.Tool != parts[0].Tool:
			return fmt.Errorf("%s is a part of another run than %s (%s and %s)", names[i], names[0], p.Run.ID, parts[0].Run.ID)
		case s.Count != first.Count:
			return fmt.Errorf("%s is one of %d parts and %s one of %d", names[i], s.Count, names[0], first.Count)
		case s.Planned != first.Planned || s.Exit != first.Exit || p.Run.InconclusivePasses != parts[0].Run.InconclusivePasses:
			return fmt.Errorf("%s and %s were not run with the same flags", names[i], names[0])
		}
		if seen == nil {
			seen = make([]string, s.Count)
		}
		if other := seen[s.Index-1]; other != "" {
			return fmt.Errorf("%s and %s are both part %d of %d", other, names[i], s.Index, s.Count)
		}
		seen[s.Index-1] = names[i]
	}
	var missing []string
	for i, name := range seen {
		if name == "" {
			missing = append(missing, fmt.Sprint(i+1))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("of %d parts there is no %s", len(seen), strings.Join(missing, ", "))
	}
	return nil
}

// MostShards bounds into how many parts a run can be split.
const MostShards = 1000
