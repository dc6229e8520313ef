package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"retrylab/caller/policy"
	"retrylab/slowserver/fault"
)

// Hop is a machine between caller and server: a server and a caller in one.
type Hop struct {
	Name     string            `yaml:"name" doc:"what it is called in reports"`
	Kind     string            `yaml:"kind" doc:"what it is, which decides what it does unless told otherwise: service (its own work, reads an answer before it gives one, goes on when its client leaves), proxy (passes an answer on as it comes, gives up when its client leaves) or nginx (a proxy with the layer nginx unless it has others)"`
	Timeouts Timeouts          `yaml:"timeouts" doc:"limits of each of its sends"`
	Layers   []policy.Settings `yaml:"layers" doc:"its own retry layers, outermost first"`
	Key      string            `yaml:"key" doc:"the Idempotency-Key of what it sends on: pass (the one that came, the default), none (it is dropped), request (one of its own for each request that comes in) or attempt (one of its own for each of its sends)"`

	Method        string         `yaml:"method" doc:"HTTP method of what it sends on; that of the request when absent"`
	WorkBefore    time.Duration  `yaml:"work-before" doc:"its own work before it sends on"`
	WorkAfter     time.Duration  `yaml:"work-after" doc:"its own work after it has its answer"`
	OnClientGone  string         `yaml:"on-client-gone" doc:"finish (the default of a service) or cancel (that of a proxy)"`
	ErrorStatus   int            `yaml:"error-status" doc:"what it answers when what it sent on failed: refused, reset, closed without an answer; 502 when absent"`
	TimeoutStatus int            `yaml:"timeout-status" doc:"what it answers when what it sent on took too long; 504 when absent"`
	Deadline      string         `yaml:"deadline" doc:"what it does with a deadline that comes with a request: ignore (the default), pass (keeps it and passes on what is left of it and of its own limits) or forward (hands it on as it came, without a look)"`
	MinRemaining  *time.Duration `yaml:"min-remaining" doc:"deadline pass: with no more than this left it sends nothing on and answers as after a time-out; 50ms when absent"`
	MaxDeadline   time.Duration  `yaml:"max-deadline" doc:"deadline pass: a longer one is cut to this; no limit when absent"`

	Faults []HopFault `yaml:"faults" doc:"defects of its own, by place"`
}

// HopFault is a fault of a hop as a file writes it.
type HopFault struct {
	At         fault.Place   `yaml:"at" doc:"where it strikes: before-send (its work before is done, and nothing has been sent on) or after-answer (it has the answer from behind, an error too, and nothing has been given back)"`
	Do         string        `yaml:"do" doc:"what it does: delay, close, reset, status or lose, as with the server's"`
	Arrivals   []int         `yaml:"arrivals" doc:"the requests that it strikes, counted from 1 as they come to this hop; all of them when absent"`
	From       time.Duration `yaml:"from" doc:"when it begins to strike; from the start when absent"`
	Until      time.Duration `yaml:"until" doc:"when it strikes no more; to the end when absent"`
	Delay      time.Duration `yaml:"delay" doc:"delay: how long"`
	Status     int           `yaml:"status" doc:"status: the HTTP status that is answered, 400 to 599"`
	RetryAfter string        `yaml:"retry-after" doc:"status: the value of the Retry-After header, as with the server's faults"`
}

// Settings is the fault as faults are played.
func (f HopFault) Settings() fault.Settings {
	return fault.Settings{
		At: f.At, Do: f.Do, Arrivals: f.Arrivals, From: f.From, Until: f.Until,
		Delay: f.Delay, Status: f.Status, RetryAfter: f.RetryAfter,
	}
}

// FaultAt is a fault with the machine that has it: the server, as one, or a hop.
type FaultAt struct {
	Node string
	fault.Settings
}

// AllFaults lists the faults of a setup: those of the server, then those of each hop.
func (p Setup) AllFaults() (out []FaultAt) {
	for _, f := range p.Server.Faults {
		out = append(out, FaultAt{p.Server.Name, f})
	}
	for _, h := range p.Hops {
		for _, f := range h.Faults {
			out = append(out, FaultAt{h.Name, f.Settings()})
		}
	}
	return out
}

// What a hop does with the Idempotency-Key.
const (
	KeyPass    = "pass"
	KeyNone    = "none"
	KeyRequest = "request"
	KeyAttempt = "attempt"
)

// HopKind is what a machine between caller and server can be: what it does unless its file says
// otherwise.
type HopKind struct {
	Name         string
	OnClientGone string
	ErrorStatus  int
	Preset       string // of its retry layer; empty for none
	// Streams makes it pass an answer on as it comes. A machine that does not has read the whole
	// of it before it gives one.
	Streams bool
}

// HopKinds lists them. The first is what a hop is that does not say.
var HopKinds = []HopKind{
	{Name: "service", OnClientGone: "finish", ErrorStatus: 502},
	{Name: "proxy", OnClientGone: "cancel", ErrorStatus: 502, Streams: true},
	{Name: "nginx", OnClientGone: "cancel", ErrorStatus: 502, Preset: "nginx", Streams: true},
}

// FindHopKind returns the kind of that name.
func FindHopKind(name string) (HopKind, bool) {
	i := slices.IndexFunc(HopKinds, func(k HopKind) bool { return k.Name == name })
	if i < 0 {
		return HopKind{}, false
	}
	return HopKinds[i], true
}

func hopKindNames() []string {
	var names []string
	for _, k := range HopKinds {
		names = append(names, k.Name)
	}
	return names
}

// minRemaining is what a hop wants to have left of a deadline to send on, unless its file says so.
const minRemaining = 50 * time.Millisecond

// defaults fills in what the kind of the hop decides.
func (h *Hop) defaults() {
	if h.Kind == "" {
		h.Kind = HopKinds[0].Name
	}
	kind, _ := FindHopKind(h.Kind)
	if h.Name == "" {
		h.Name = h.Kind
	}
	if h.Layers == nil && kind.Preset != "" {
		h.Layers = []policy.Settings{{Preset: kind.Preset}}
	}
	if h.OnClientGone == "" {
		h.OnClientGone = kind.OnClientGone
	}
	if h.ErrorStatus == 0 {
		h.ErrorStatus = kind.ErrorStatus
	}
	if h.TimeoutStatus == 0 {
		h.TimeoutStatus = 504
	}
	if h.Deadline == "" {
		h.Deadline = "ignore"
	}
	if h.Key == "" {
		h.Key = KeyPass
	}
	if h.MinRemaining == nil && h.Deadline == "pass" {
		least := minRemaining
		h.MinRemaining = &least
	}
}

func (c *checker) hop(path string, h *Hop) {
	c.word(path+".kind", h.Kind)
	c.name(path+".name", h.Name, "a machine")
	if h.Timeouts.Acquire > 0 {
		c.fail(path+".timeouts.acquire", "a hop has no pool to wait for", "")
	}
	c.clock(path, h.Timeouts)
	if h.Method != "" {
		c.word(path+".method", h.Method)
	}
	c.word(path+".on-client-gone", h.OnClientGone)
	c.number(path+".error-status", h.ErrorStatus)
	c.number(path+".timeout-status", h.TimeoutStatus)
	c.word(path+".deadline", h.Deadline)
	c.word(path+".key", h.Key)
	for i, f := range h.Faults {
		c.hopFault(fmt.Sprintf("%s.faults[%d]", path, i), f.Settings())
	}
	if h.Deadline == "pass" {
		return
	}
	for _, setting := range []struct {
		name  string
		given bool
	}{{"min-remaining", h.MinRemaining != nil}, {"max-deadline", h.MaxDeadline > 0}} {
		if at := path + "." + setting.name; setting.given {
			c.failKey(at, fmt.Sprintf("%s means nothing with deadline %s", at, h.Deadline), "add deadline: pass")
		}
	}
}

// hopFault checks one fault of a hop.
func (c *checker) hopFault(path string, s fault.Settings) {
	kind, known := fault.Find(s.Do)
	switch kinds, places := faultNames(fault.HopKinds()), texts(fault.HopPlaces); {
	case s.Do == "":
		c.fail(path, "the fault does not say what it does", "add do: with one of "+strings.Join(kinds, ", "))
	case known && !kind.AtHop:
		c.fail(path+".do", fmt.Sprintf("the fault %s is one of the server's, and nothing that a hop can do", s.Do), suggest("", kinds))
	case !known:
		c.fail(path+".do", fmt.Sprintf("unknown fault %s", quote(s.Do)), suggest(s.Do, kinds))
	case s.At == "":
		c.fail(path, "the fault does not say where it strikes", "add at: with one of "+strings.Join(places, ", "))
	case slices.Contains(fault.Places, s.At):
		c.fail(path+".at", fmt.Sprintf("%s is a place in the server", s.At), suggest("", places))
	case !slices.Contains(fault.HopPlaces, s.At):
		c.fail(path+".at", fmt.Sprintf("unknown place %s", quote(string(s.At))), suggest(string(s.At), places))
	default:
		c.faultProblem(path, kind, s.CheckHop())
	}
}

// deadline checks that there is a limit to pass on where one is to be.
func (c *checker) deadline() {
	from := c.trial.Setup.Caller
	bounded := from.Timeouts.Total > 0 || from.Timeouts.Attempt > 0 ||
		slices.ContainsFunc(c.trial.Layers, func(l policy.Layer) bool { return l.Total > 0 || l.Timeout > 0 })
	if from.Deadline == "header" && !bounded {
		c.fail("caller.deadline", "the caller has no deadline to pass on",
			"set caller.timeouts.total or .attempt, or the total or timeout of a layer; a read time-out is one for each read")
	}
}
