package suite

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"retrylab/internal/lab"
)

// Join puts the result of a further run, with the same options, behind others. The first may be nil.
func Join(whole, next *lab.Document) *lab.Document {
	if whole == nil {
		return next
	}
	for _, r := range next.Results {
		if r.Store == nil && next.Run.Store.Engine != whole.Run.Store.Engine {
			store := next.Run.Store
			r.Store = &store
		}
		whole.Results = append(whole.Results, r)
	}
	for _, info := range next.Scenarios {
		if !slices.ContainsFunc(whole.Scenarios, func(other lab.ScenarioInfo) bool { return other.Name == info.Name }) {
			whole.Scenarios = append(whole.Scenarios, info)
		}
	}
	whole.Skipped = append(whole.Skipped, next.Skipped...)
	whole.Run.Only = append(whole.Run.Only, next.Run.Only...)
	whole.Run.Interrupted = whole.Run.Interrupted || next.Run.Interrupted
	whole.Run.Incomplete = whole.Run.Incomplete || next.Run.Incomplete
	whole.Run.ID = joinedID(whole, next)
	whole.Summary = lab.Summary{}
	summarize(whole)
	whole.ExitCode = worse(whole.ExitCode, next.ExitCode)
	return whole
}

// Compared is the document of a comparison of two saved results. Its run is that of the second, with an id that both
// decide; what both have skipped is skipped.
func Compared(before, after *lab.Document, c *lab.Comparison) *lab.Document {
	doc := &lab.Document{
		Schema: lab.ResultSchema, SchemaVersion: lab.ResultSchemaVersion, Run: after.Run,
		Scenarios: []lab.ScenarioInfo{}, Results: []lab.Result{}, Skipped: []lab.Skip{}, Comparison: c,
	}
	doc.Run.Shard, doc.Run.Interrupted = nil, before.Run.Interrupted || after.Run.Interrupted
	doc.Run.Incomplete = before.Run.Incomplete || after.Run.Incomplete
	doc.Run.ID = joinedID(before, after)
	for _, s := range after.Skipped {
		if slices.ContainsFunc(before.Skipped, func(o lab.Skip) bool { return o.Scenario == s.Scenario && o.ID == s.ID }) {
			doc.Skipped = append(doc.Skipped, s)
		}
	}
	doc.Summary.Skipped = len(doc.Skipped)
	return doc
}

// joinedID is the id of what two runs are put together to.
func joinedID(a, b *lab.Document) string {
	id := sha256.Sum256(fmt.Append(nil, a.Run.ID, b.Run.ID))
	return hex.EncodeToString(id[:8])
}
