package engine

// EndsWithCommit is what the comparison of the two clocks leaves out.
var EndsWithCommit = endsWithCommit
