package scenarios

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"retrylab/caller/policy"
	"retrylab/internal/expression"
	"retrylab/slowserver/fault"
)

// What a simulation plays. These are lists of what is allowed: a setting that is new is refused until
// somebody has taught the simulation what it means.
var (
	// simulatedSettings are the paths that may say what they like, with all below them.
	simulatedSettings = []string{
		"simulate", "operations", "interval", "load", "amount", "series", "premises",
		"caller.name", "caller.method", "caller.body", "caller.layers", "caller.deadline",
		"caller.timeouts.connect", "caller.timeouts.read", "caller.timeouts.attempt", "caller.timeouts.total",
		"server.name", "server.processing", "server.processing-spread", "server.workers", "server.queue", "server.shed", "server.faults",
	}

	// simulatedLayer are the fields of a layer; ResendsEmpty means something to streams alone, which
	// are refused.
	simulatedLayer = []string{"Name", "Preset", "Attempts", "Limit", "Rules", "Waits", "Timeout", "Total", "Window", "Budget", "ResendsEmpty"}

	// simulatedFaults are the faults, by their names in reports.
	simulatedFaults = []string{"refuse@connect", "status@before-guard", "close@before-guard", "reset@before-guard", "lose@after-commit"}

	// simulatedChecks are the keys of an expectation that a simulation can answer for.
	simulatedChecks = []string{
		"tries", "sends", "arrivals", "runs", "effects", "effects-when-caller-done", "duplicates", "lost", "false-failures", "late",
		"amount", "belief", "beliefs", "reason", "amplification", "caller-done", "longest-hold", "goodput",
		"peak-starts", "recovered-after", "settled", "sends-by", "arrivals-at", "answers", "budget-spent",
	}

	// simulatedNames are those of an expression.
	simulatedNames = []string{
		"operations", "wanted", "sends", "arrivals", "effects", "effects_when_caller_done", "duplicates", "lost", "false_failures", "late",
		"amplification", "ok", "failed", "unknown", "caller_done_ms", "longest_hold_ms", "goodput_per_s",
		"peak_starts", "recovered_after_ms", "goodput_after_per_s", "settled_ms", "faults_fired",
	}
)

// shortestSimulated is the shortest limit in a simulation: a request is on its way for up to 0.15 ms.
const shortestSimulated = time.Millisecond

// mostDrawn bounds the faults of a simulation: each request has a bit for each.
const mostDrawn = 64

const simulateHint = "leave it out, or simulate"

// mostOperations is how many operations there may be.
func (s Setup) mostOperations() int {
	if s.Simulate {
		return maxSimulated
	}
	return maxOperations
}

// simulation refuses what cannot be simulated.
func (c *checker) simulation(p *Setup) {
	if !p.Simulate || c.err != nil {
		return
	}
	unsaid := Setup{Simulate: true}
	(&checker{root: &node{kind: mapping}, trial: &Trial{}}).defaults(&unsaid)
	said := *p
	if said.Server.Guard.Kind == "none" {
		said.Server.Guard.Kind = ""
	}
	c.asUnsaid("", reflect.ValueOf(said), reflect.ValueOf(unsaid))
	if !slices.Contains(policy.Repeatable, p.Caller.Body) {
		c.fail("caller.body", fmt.Sprintf("a body that is %s cannot be simulated", p.Caller.Body), "buffered or none")
	}
	limit := func(path string, d time.Duration) {
		if d > 0 && d < shortestSimulated {
			c.fail(path, path+" is too short to be simulated", "at least "+shortestSimulated.String())
		}
	}
	limit("caller.timeouts.connect", p.Caller.Timeouts.Connect)
	limit("caller.timeouts.read", p.Caller.Timeouts.Read)
	limit("caller.timeouts.attempt", p.Caller.Timeouts.Attempt)
	limit("caller.timeouts.total", p.Caller.Timeouts.Total)
	for i, l := range c.trial.Layers {
		path := fmt.Sprintf("caller.layers[%d]", i)
		limit(path+".timeout", l.Timeout)
		limit(path+".total", l.Total)
		v := reflect.ValueOf(l)
		for j := range v.NumField() {
			if name := v.Type().Field(j).Name; !v.Field(j).IsZero() && !slices.Contains(simulatedLayer, name) {
				c.fail(path, fmt.Sprintf("the layer %s cannot be simulated: it has %s", l.Name, words(name)), "use another preset, or leave out simulate")
			}
		}
	}
	if len(p.Server.Faults) > mostDrawn {
		c.fail(fmt.Sprintf("server.faults[%d]", mostDrawn), fmt.Sprintf("a simulation has at most %d faults", mostDrawn), "")
	}
	for i, f := range p.Server.Faults {
		path := fmt.Sprintf("server.faults[%d]", i)
		if !slices.Contains(simulatedFaults, f.Name()) {
			c.fail(path, fmt.Sprintf("the fault %s cannot be simulated", f.Name()), "there are "+strings.Join(simulatedFaults, ", "))
		}
		if f.At == fault.AfterCommit && p.Server.Workers > 0 {
			c.fail(path, "a worker that waits until its client has left cannot be simulated", "leave out server.workers, or the fault")
		}
		for _, key := range []struct {
			name  string
			given bool
		}{{"of-each", len(f.OfEach) > 0}, {"operations", len(f.Operations) > 0}} {
			if key.given {
				c.failKey(path+"."+key.name, key.name+" of a fault cannot be simulated", "name arrivals, or a share")
			}
		}
		if strings.HasPrefix(f.RetryAfter, fault.DatePrefix) {
			c.fail(path+".retry-after", "a simulation has no calendar", "give the seconds")
		}
	}
	c.simulatedChecks(p)
}

// asUnsaid refuses what differs from a setup that says nothing, but for what a simulation plays.
func (c *checker) asUnsaid(path string, v, unsaid reflect.Value) {
	for _, f := range fieldsOf(v.Type()) {
		at := join(path, f.name)
		inside := slices.ContainsFunc(simulatedSettings, func(s string) bool { return strings.HasPrefix(s, at+".") })
		field, other := v.FieldByIndex(f.index), unsaid.FieldByIndex(f.index)
		switch {
		case slices.Contains(simulatedSettings, at):
		case inside:
			c.asUnsaid(at, field, other)
		case field.Kind() == reflect.Slice && field.Len() == 0 && other.Len() == 0:
		case !reflect.DeepEqual(field.Interface(), other.Interface()):
			c.failKey(at, at+" cannot be simulated", simulateHint)
		}
	}
}

// simulatedChecks refuses to expect what a simulation knows nothing of.
func (c *checker) simulatedChecks(p *Setup) {
	if c.trial.Expect != nil {
		v := reflect.ValueOf(*c.trial.Expect)
		for _, f := range fieldsOf(v.Type()) {
			if !v.FieldByIndex(f.index).IsZero() && !slices.Contains(simulatedChecks, f.name) {
				c.failKey(c.prefix+"expect."+f.name, f.name+" is not counted in a simulation", simulateHint)
			}
		}
	}
	for _, d := range c.trial.Demands() {
		condition, err := expression.Compile(d.Expression)
		if err != nil {
			continue // it is refused as an expression
		}
		for _, name := range condition.Names() {
			if !slices.Contains(simulatedNames, name) {
				c.failAt(c.demanded(d), name+" is not counted in a simulation", simulateHint)
			}
		}
	}
}

// words writes the name of a field as a file would: PerInstance is per-instance.
func words(field string) string {
	var b strings.Builder
	for i, r := range field {
		if r >= 'A' && r <= 'Z' && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}
