package engine

import (
	"retrylab/internal/lab"
	"retrylab/scenarios"
)

// EndsWithCommit is what the comparison of the two clocks leaves out.
var EndsWithCommit = endsWithCommit

// Disagreement is what the comparison of two runs of a trial finds once operations that are alike have the
// names of the parts that they played.
func Disagreement(t scenarios.Trial, plan, obs lab.Observation) string {
	return disagreement(plan, recast(t, plan, obs))
}

// Renamed plays a run in which other operations were first.
var Renamed = renamed
