package suite

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"retrylab/internal/engine"
	"retrylab/internal/judge"
	"retrylab/internal/lab"
	"retrylab/internal/storage"
	"retrylab/scenarios"
)

func newDocument(list []*scenarios.Scenario, o Options) *lab.Document {
	doc := &lab.Document{
		Schema: lab.ResultSchema, SchemaVersion: lab.ResultSchemaVersion,
		Tool: lab.Tool{Name: "retrylab", Version: o.Version},
		Run: lab.RunInfo{
			Seed: o.Plan.Seed, Clock: o.Clock, Set: o.Plan.Set, Assert: o.Plan.Assert, Repeat: o.Repeat, InconclusivePasses: o.Lenient,
		},
		Results: []lab.Result{}, Skipped: []lab.Skip{}, Scenarios: []lab.ScenarioInfo{},
	}
	if o.Clock == engine.Wall {
		doc.Run.Speed = o.Speed
	}
	if o.Shard.Count > 0 {
		doc.Run.Shard = &lab.Shard{
			Index: o.Shard.Index, Count: o.Shard.Count,
			Results: []int{}, Skipped: []int{}, Scenarios: []lab.ShardScenario{},
			Exit: lab.ShardExitOptions{NotHeld: o.NotHeld, RequireAll: o.RequireAll},
		}
	}
	for _, v := range o.Vary {
		doc.Run.Vary = append(doc.Run.Vary, lab.Varying{Path: v.Path, Values: v.Values})
	}
	digest := sha256.New()               // of the whole run: its parts have the same
	engine, _ := storage.Engine(o.Store) // and no more of it: there may be a password in it
	fmt.Fprintln(digest, o.Version, o.Plan.Seed, o.Repeat, o.Clock, doc.Run.Speed, o.Plan.Set, engine, kindOf(o.Redis))
	for _, text := range o.Plan.Assert {
		fmt.Fprintf(digest, "assert %q\n", text)
	}
	if len(o.Vary) > 0 {
		fmt.Fprintln(digest, doc.Run.Vary)
	}
	for _, s := range list {
		if id := o.Only[s.Name]; id != "" {
			doc.Run.Only = append(doc.Run.Only, s.Name+":"+id)
		}
		fmt.Fprintf(digest, "%s %q %x\n", s.Name, o.Only[s.Name], sha256.Sum256(s.Source))
	}
	doc.Run.ID = hex.EncodeToString(digest.Sum(nil)[:8])
	return doc
}

// finish fills the document in. What was not run stands among the skipped, with why. It reports
// whether there is such.
func finish(doc *lab.Document, list []*scenarios.Scenario, jobs []job, results []lab.Result, labs map[ground]*engine.Lab, why string) (left bool) {
	for i, s := range list {
		var own []lab.Result
		for k, j := range jobs {
			switch {
			case j.scenario != i:
				continue
			case results[k].Scenario == "":
				left = true
				after := 0
				if doc.Run.Shard != nil {
					after = doc.Run.Shard.Planned
				}
				leaveOut(doc, lab.Skip{Scenario: s.Name, ID: j.trial.ID, Reason: why}, j.skip+after)
				continue
			}
			store := labs[j.ground].Store()
			store.ChosenBy = j.ground.chosenBy
			served(doc, &results[k], store)
			if keys := results[k].Keys; keys != nil {
				keys.ChosenBy = j.ground.redisBy
			}
			own = append(own, results[k])
			if doc.Run.Shard != nil {
				doc.Run.Shard.Results = append(doc.Run.Shard.Results, j.place)
			}
		}
		if len(own) == 0 {
			continue
		}
		info := lab.ScenarioInfo{
			Name: s.Name, Title: s.Title, Family: s.Family, File: s.File, Lesson: s.Lesson, Next: s.Next,
			Currency: s.Currency, Begin: s.Begin,
		}
		if len(doc.Run.Vary) == 0 {
			only := ""
			if i := slices.IndexFunc(doc.Run.Only, func(o string) bool { return strings.HasPrefix(o, s.Name+":") }); i >= 0 {
				only = strings.TrimPrefix(doc.Run.Only[i], s.Name+":")
			}
			info.Notes = s.Overridden(doc.Run.Set, only)
		}
		doc.Results = append(doc.Results, own...)
		doc.Scenarios = append(doc.Scenarios, concluded(info, own, doc.Run.Vary, s.Focus, s.Remedy))
		if doc.Run.Shard != nil {
			doc.Run.Shard.Scenarios = append(doc.Run.Shard.Scenarios, lab.ShardScenario{Name: s.Name, Focus: s.Focus, Remedy: s.Remedy})
		}
	}
	summarize(doc)
	return left
}

// leaveOut adds to what was skipped, once for all seeds. place is where it stands among what the whole
// run skips.
func leaveOut(doc *lab.Document, skip lab.Skip, place int) {
	if slices.Contains(doc.Skipped, skip) {
		return
	}
	doc.Skipped = append(doc.Skipped, skip)
	if doc.Run.Shard != nil {
		doc.Run.Shard.Skipped = append(doc.Run.Shard.Skipped, place)
	}
}

// served notes which store had the orders of a result: that of the first is the run's. What is
// simulated had none.
func served(doc *lab.Document, r *lab.Result, store lab.Store) {
	r.Store = nil
	if r.Simulated {
		return
	}
	if doc.Run.Store.Engine == "" {
		doc.Run.Store = store
	}
	if store.Engine != doc.Run.Store.Engine || store.ChosenBy != doc.Run.Store.ChosenBy {
		r.Store = &store
	}
}

// concluded says what all results of a scenario come to. focus and remedy are those of its file.
func concluded(info lab.ScenarioInfo, own []lab.Result, vary []lab.Varying, focus, remedy string) lab.ScenarioInfo {
	if !slices.ContainsFunc(own, func(r lab.Result) bool { return r.ID == focus }) {
		focus = judge.Focus(own)
	}
	info.Shown, info.Baseline, info.Focus = judge.Conclude(own, focus, remedy, info.Currency), own[0].ID, focus
	if len(vary) > 0 {
		info.Shown = judge.ConcludeSweep(own, vary)
	}
	return info
}

// summarize counts the results by verdict.
func summarize(doc *lab.Document) {
	for _, r := range doc.Results {
		switch r.Verdict {
		case lab.AsExpected:
			doc.Summary.AsExpected++
		case lab.NotAsExpected:
			doc.Summary.NotAsExpected++
		case lab.Measured:
			doc.Summary.Measured++
		default:
			doc.Summary.Inconclusive++
		}
	}
	doc.Summary.Skipped = len(doc.Skipped)
}

// exitCode is the worst of what happened.
func exitCode(doc *lab.Document, o Options, interrupted, late bool) int {
	code, defect, lost := ExitHeld, false, false
	add := func(happened bool, with int) {
		if happened {
			code = worse(code, with)
		}
	}
	for _, r := range doc.Results {
		defect, lost = defect || r.Defect, lost || r.Environment
	}
	missing := slices.ContainsFunc(doc.Skipped, func(s lab.Skip) bool { return s.Missing != "" })
	add(defect, ExitInternal)
	add(interrupted, ExitInterrupted)
	add(lost || missing && o.RequireAll, ExitEnvironment)
	add(late, ExitTimeLimit)
	add(doc.Summary.NotAsExpected > 0, cmp.Or(o.NotHeld, ExitNotHeld))
	add(doc.Summary.Inconclusive > 0 && !o.Lenient, ExitInconclusive)
	if code == ExitHeld && len(doc.Results) == 0 && (doc.Run.Shard == nil || doc.Run.Shard.Planned == 0) {
		return ExitUsage // nothing was run, nor is it in another part
	}
	return code
}

// worse is the worse of two exit codes: 70 > 130 > 3 > 5 > 1 > 4 > 0. Whatever else is the code for what does not
// hold, or of a signal.
func worse(a, b int) int {
	rank := func(code int) int {
		switch {
		case code == ExitInternal:
			return 6
		case code > 128:
			return 5
		case code == ExitEnvironment:
			return 4
		case code == ExitTimeLimit:
			return 3
		case code == ExitInconclusive:
			return 1
		case code == ExitHeld:
			return 0
		}
		return 2
	}
	if rank(b) > rank(a) {
		return b
	}
	return a
}
