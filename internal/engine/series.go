package engine

import (
	"slices"

	"retrylab/internal/lab"
	"retrylab/scenarios"
)

// countSeries counts what took place over time, nil where nobody asks for it.
func countSeries(setup scenarios.Setup, obs lab.Observation) *lab.Series {
	if setup.Series.Window == 0 {
		return nil
	}
	s := &lab.Series{WindowMs: lab.Millis(setup.Series.Window)}
	servers := setup.Server.ReplicaNames()
	waiting := map[sendID]bool{}
	for _, e := range obs.Events {
		s.Wait(len(waiting), e.At)
		served := slices.Contains(servers, e.Node)
		switch {
		case e.Kind == lab.Start:
			s.Count(&s.Operations, e.At)
		case e.Kind == lab.Send && e.Node == setup.Caller.Name:
			s.Count(&s.Starts, e.At)
		case e.Kind == lab.Done && e.Detail == string(lab.OK):
			s.Count(&s.OK, e.At)
		case e.Kind == lab.Arrival && served:
			s.Count(&s.Arrivals, e.At)
		case e.Kind == lab.Queue && e.Detail == lab.QueueWaits:
			waiting[sendID{e.Node, e.Send}] = true
		case served: // whatever it is, the request waits no more
			delete(waiting, sendID{e.Node, e.Send})
		}
	}
	s.Fill()
	s.Summary(setup.Series.After, setup.Series.CauseEnds)
	return s
}
