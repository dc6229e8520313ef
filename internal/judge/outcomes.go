package judge

import (
	"slices"
	"strconv"
	"strings"

	"retrylab/internal/lab"
	"retrylab/scenarios"
)

// outcomes compares what became of the caller's sends. The order of sends that do not wait for each
// other is the machine's where time is real: there it does not decide.
var outcomes = expectation{
	name: "outcomes",
	compare: func(e *scenarios.Expect, v view) (string, string, bool, bool) {
		want, got := slices.Clone(e.Outcomes), v.outcomes()
		if !v.obs.Exact {
			slices.Sort(want)
			slices.Sort(got)
		}
		return words(want), words(got), slices.Equal(want, got), e.Outcomes != nil
	},
	evidence: []lab.Kind{lab.Send, lab.Reply, lab.Timeout, lab.Failure},
}

func words(list []string) string { return "[" + strings.Join(list, ", ") + "]" }

// outcomes is how each send of the caller ended, in the order in which they began.
func (v view) outcomes() []string {
	var out []string
	open := map[string]int{} // by path: the place in out of a send whose end has not been seen
	for _, e := range v.obs.Events {
		if e.Node != v.trial.Setup.Caller.Name {
			continue
		}
		i, sent := open[e.Send]
		switch e.Kind {
		case lab.Send:
			open[e.Send] = len(out)
			out = append(out, "nothing")
		case lab.Reply:
			if sent {
				out[i] = strconv.Itoa(e.Status) // unless its body breaks off
			}
		case lab.Timeout, lab.Failure:
			if sent {
				out[i] = failure(e)
				delete(open, e.Send)
			}
		case lab.Retry, lab.Stop:
			delete(open, e.Send) // a limit that ends the wait after a try is no end of its send
		}
	}
	return out
}

// failure names what took the place of an answer as the reason of a belief does.
func failure(e lab.Event) string {
	if e.Kind == lab.Failure {
		return strings.ReplaceAll(e.Detail, "-", " ")
	}
	switch stage := e.Detail; {
	case slices.Contains(scenarios.Outcomes(), stage+" timeout"):
		return stage + " timeout"
	case strings.HasSuffix(stage, " total"): // of a layer
		return "total timeout"
	}
	return "attempt timeout" // the limit that a layer, whose name it has, sets to a try
}
