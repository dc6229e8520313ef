package scenarios

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"retrylab/caller/policy"
	"retrylab/caller/preset"
	"retrylab/internal/expression"
	"retrylab/internal/lab"
	"retrylab/slowserver/capacity"
	"retrylab/slowserver/change"
	"retrylab/slowserver/fault"
	"retrylab/slowserver/guard"
	"retrylab/slowserver/ledger"
)

// checker looks at the meaning of a decoded trial, fills in its defaults and resolves its layers.
type checker struct {
	scenario *Scenario
	root     *node
	trial    *Trial
	prefix   string // of expect and invariant
	err      error
}

// fail is about the value at path.
func (c *checker) fail(path, what, hint string) {
	if c.err == nil {
		c.failAt(find(c.root, path), what, hint)
	}
}

// failKey is about the key at path: it should not be there.
func (c *checker) failKey(path, what, hint string) {
	if c.err == nil {
		c.failAt(findKey(c.root, path), what, hint)
	}
}

func (c *checker) failAt(at position, what, hint string) {
	if c.err != nil {
		return
	}
	e := &Error{At: at, What: what, Hint: hint}
	if e.At.line > 0 {
		e.Source = c.scenario.Source
	}
	c.err = e
}

func (c *checker) check() error {
	p := &c.trial.Setup
	c.defaults(p)
	c.load(p)
	if most := p.mostOperations(); p.Operations < 1 || p.Operations > most {
		hint := ""
		if p.Operations > most && p.Operations <= maxSimulated {
			hint = "so many can be had with simulate: true"
		}
		c.fail("operations", fmt.Sprintf("operations must be between 1 and %d, not %d", most, p.Operations), hint)
	}
	c.schedule(p)
	c.number("concurrency", p.Concurrency)
	if n := p.Operations + p.FurtherSends(); n*p.Concurrency > maxSides && !p.Simulate {
		c.fail("concurrency", fmt.Sprintf("%d operations × %d sends side by side are more than %d", n, p.Concurrency, maxSides), "")
	}
	for i, f := range p.Server.Faults {
		if sides := (p.Operations + p.FurtherSends()) * p.Concurrency; f.Chunks > 0 && sides > 0 && f.Chunks*f.ChunkSize > maxDribble/sides {
			c.fail(fmt.Sprintf("server.faults[%d].chunk-size", i), fmt.Sprintf("%d answers of %d × %d bytes are more than %d MiB", sides, f.Chunks, f.ChunkSize, maxDribble>>20), "")
		}
	}
	if p.Amount <= 0 {
		c.fail("amount", "an order's amount must be above 0", "")
	}
	c.caller(&p.Caller)
	if len(p.Hops) > maxHops {
		c.fail(fmt.Sprintf("hops[%d]", maxHops), fmt.Sprintf("more than %d hops", maxHops), "")
	}
	for i := range p.Hops {
		c.hop(fmt.Sprintf("hops[%d]", i), &p.Hops[i])
	}
	c.server(&p.Server)
	if c.err != nil {
		return c.err // what follows relies on the bounds
	}
	machines := c.machines(p)
	c.layers("caller.layers", p.Caller.Layers, &c.trial.Layers)
	c.word("caller.key", p.Caller.Key)
	c.word("caller.content", p.Caller.Content)
	for i, l := range c.trial.Layers {
		if l.Name == lab.Again && p.FurtherSends() > 0 {
			c.fail(fmt.Sprintf("caller.layers[%d]", i), "a layer cannot be called "+lab.Again+" here: the paths of further sends have that name", "give it a name of its own")
		}
	}
	for i := range p.Hops {
		var resolved []policy.Layer
		c.layers(fmt.Sprintf("hops[%d].layers", i), p.Hops[i].Layers, &resolved)
		c.trial.HopLayers = append(c.trial.HopLayers, resolved)
	}
	c.deadline()
	c.series(p)
	c.simulation(p)
	c.demands("premise", p.Premises)
	c.demands("invariant", c.trial.Invariants)
	c.demands("assert", c.trial.Asserts)
	c.expect(machines)
	c.said()
	return c.err
}

// machines lists the names of all machines, each of which has one of its own.
func (c *checker) machines(p *Setup) []string {
	names := p.Server.ReplicaNames()
	owner := map[string]string{}
	for _, name := range names {
		owner[name] = "a replica of the order service"
	}
	add := func(path, name, what string) {
		if other := owner[name]; other != "" {
			c.fail(path, fmt.Sprintf("two machines are called %q", name), other+" has that name; a chain has no cycle, each machine in it needs a name of its own")
		}
		owner[name] = what
		names = append(names, name)
	}
	add("caller.name", p.Caller.Name, "the caller")
	for i, h := range p.Hops {
		add(fmt.Sprintf("hops[%d].name", i), h.Name, fmt.Sprintf("hops[%d]", i))
	}
	return names
}

func (c *checker) defaults(p *Setup) {
	if p.Operations == 0 && c.root.get("operations") == nil {
		p.Operations = max(1, len(p.Schedule)-p.FurtherSends())
	}
	if p.Concurrency == 0 && c.root.get("concurrency") == nil {
		p.Concurrency = 1
	}
	if p.Amount == 0 && c.root.get("amount") == nil {
		p.Amount = 5000
	}
	def := func(s *string, value string) {
		if *s == "" {
			*s = value
		}
	}
	def(&p.Caller.Name, "caller")
	def(&p.Caller.Method, "POST")
	def(&p.Caller.Key, "none")
	def(&p.Caller.Content, "same")
	def(&p.Caller.Connection, "fresh")
	def(&p.Caller.Redirects, "none")
	if p.Caller.Body == "" {
		p.Caller.Body = policy.Buffered
		if !HasBody(p.Caller.Method) {
			p.Caller.Body = policy.NoBody
		}
	}
	if p.Caller.Connection == "reused" && p.Caller.Idle == 0 {
		p.Caller.Idle = 1
	}
	def(&p.Caller.Deadline, "local")
	for i := range p.Hops {
		p.Hops[i].defaults()
	}
	def(&p.Server.Name, "order")
	def(&p.Server.Answer, "done")
	def(&p.Server.OnClientGone, "finish")
	def(&p.Server.Deadline, "ignore")
	def(&p.Server.Shed, capacity.ShedNone)
	def(&p.Server.RowsOrder, "fixed")
	def(&p.Server.OnUnknownCommit, "fail")
	if a := p.Caller.Ask; a != nil {
		askDefaults(a, p.Caller.Key)
	}
	for i := range p.Server.Ledgers {
		p.Server.Ledgers[i].Default()
	}
	p.Server.Change.Default()
	p.Server.RateLimit.Default()
	if s := c.root.get("server"); p.Server.Replicas == 0 && (s == nil || s.get("replicas") == nil) {
		p.Server.Replicas = 1
	}
}

// schedule checks the operations that are listed one by one.
func (c *checker) schedule(p *Setup) {
	if n := len(p.Schedule) - p.FurtherSends(); len(p.Schedule) > 0 && n != p.Operations {
		c.fail("operations", fmt.Sprintf("operations is %d, and schedule has %d", p.Operations, n), "leave operations out: the schedule says how many there are")
	}
	if c.err != nil {
		return // what follows relies on the bounds
	}
	var starts []time.Duration // of the operations so far
	begins := p.items()
	for i, o := range p.Schedule {
		path := fmt.Sprintf("schedule[%d]", i)
		switch {
		case o.Of == 0:
			starts = append(starts, begins[i])
		case o.Of < 0 || o.Of > len(starts):
			c.fail(path+".of", fmt.Sprintf("there is no operation %d before it", o.Of), "the operations are counted from 1, further sends left out")
			return
		case begins[i] < starts[o.Of-1]:
			c.fail(path+".of", fmt.Sprintf("operation %d begins after this further send of it", o.Of), "give it an at that is no earlier")
		}
		if o.Amount < 0 {
			c.fail(path+".amount", "an order's amount must be above 0", "")
		}
		c.header(path+".key", o.Key)
		c.header(path+".tenant", o.Tenant)
		if len(o.Item) > maxItem {
			c.fail(path+".item", fmt.Sprintf("an item has at most %d bytes", maxItem), "")
		}
	}
}

// header checks a text that is sent as the value of a header.
func (c *checker) header(path, value string) {
	if len(value) > maxHeader || value != strings.TrimSpace(value) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' }) {
		c.fail(path, fmt.Sprintf("%s cannot be sent as a header", quote(value)), fmt.Sprintf("printable ASCII, at most %d characters, no space at either end", maxHeader))
	}
}

func (c *checker) caller(x *Caller) {
	if x.Ask != nil {
		c.ask(*x.Ask, x.Key, c.trial.Setup.Server.Guard)
	}
	c.word("caller.method", x.Method)
	c.word("caller.connection", x.Connection)
	c.word("caller.redirects", x.Redirects)
	c.word("caller.deadline", x.Deadline)
	c.word("caller.body", string(x.Body))
	if x.Body != policy.NoBody && !slices.Contains([]string{"POST", "PUT", "PATCH", "DELETE"}, x.Method) {
		c.fail("caller.body", fmt.Sprintf("a %s is sent without a body here", x.Method), "real clients turn a GET with a body into a POST; write method: POST")
	}
	c.number("caller.pool", x.Pool)
	c.number("caller.idle", x.Idle)
	if x.Idle > 0 && x.Connection != "reused" {
		c.fail("caller.idle", "idle connections are there only with connection: reused", "")
	}
	for i, n := range x.Leak {
		if operations := c.trial.Setup.Operations; n < 1 || n > operations {
			c.fail(fmt.Sprintf("caller.leak[%d]", i), fmt.Sprintf("there is no operation %d", n), fmt.Sprintf("they are counted from 1, and operations is %d", operations))
		}
	}
	for i, status := range x.Accept {
		if status < 300 || status > 599 {
			c.fail(fmt.Sprintf("caller.accept[%d]", i), fmt.Sprintf("%d cannot be accepted", status), "a status from 300 to 599; those below are success anyhow")
		}
	}
	if len(x.Leak) > 0 && x.Pool == 0 {
		c.failKey("caller.leak", "caller.leak means nothing without a pool: nobody misses the connection", "set caller.pool to the number of connections")
	}
	if x.Timeouts.Acquire > 0 && x.Pool == 0 {
		c.fail("caller.timeouts.acquire", "an acquire timeout needs a pool", "set caller.pool to the number of connections")
	}
	c.name("caller.name", x.Name, "a machine")
	c.threads(x)
	c.clock("caller", x.Timeouts)
	c.clockJumps(x)
}

// threads checks the threads of the caller.
func (c *checker) threads(x *Caller) {
	c.number("caller.threads", x.Threads)
	if x.Queue == nil {
		return
	}
	c.number("caller.queue", *x.Queue)
	if x.Threads == 0 {
		c.failKey("caller.queue", "nobody waits for a thread where there is no end of them", "set caller.threads")
	}
}

// clock checks what a sender measures its total limit with.
func (c *checker) clock(path string, t Timeouts) {
	if t.TotalClock != "" {
		c.word(path+".timeouts.total-clock", t.TotalClock)
	}
	for _, key := range []struct {
		name string
		set  bool
	}{{"total-clock", t.TotalClock != ""}, {"poll", t.Poll > 0}} {
		if key.set && t.Total == 0 {
			c.failKey(path+".timeouts."+key.name, "there is no total limit to measure", "set "+path+".timeouts.total")
		}
	}
}

// clockJumps checks the moments at which the caller's clock is set.
func (c *checker) clockJumps(x *Caller) {
	if len(x.ClockJumps) > maxJumps {
		c.fail(fmt.Sprintf("caller.clock-jumps[%d]", maxJumps), fmt.Sprintf("more than %d jumps of the clock", maxJumps), "")
	}
	for i, j := range x.ClockJumps {
		path := fmt.Sprintf("caller.clock-jumps[%d]", i)
		if (j.Forward > 0) == (j.Back > 0) {
			c.fail(path, "a clock is set either forward or back", "for example {at: 1s, back: 1h}")
		}
		if i > 0 && j.At <= x.ClockJumps[i-1].At {
			c.fail(path+".at", "the jumps of a clock stand in the order of time", "")
		}
	}
}

func (c *checker) name(path, name, what string) {
	if !slugPattern.MatchString(name) || len(name) > 40 {
		c.fail(path, fmt.Sprintf("%s is no name for %s", quote(name), what), "lower-case letters, digits and hyphens, at most 40")
	}
}

func (c *checker) server(x *Server) {
	c.name("server.name", x.Name, "a machine")
	c.word("server.on-client-gone", x.OnClientGone)
	c.word("server.deadline", x.Deadline)
	c.capacity(x)
	c.number("server.replicas", x.Replicas)
	c.word("server.on-unknown-commit", x.OnUnknownCommit)
	c.number("server.transaction-retries", x.TransactionRetries)
	c.rows(x)
	c.change(x)
	c.guard("server.guard", x.Guard)
	if x.Processes && (Setup{Server: *x}).NeedsKeys() {
		c.failKey("server.processes", "processes of their own do not share a store of keys beside the database", "leave it out: replicas in one process share it")
	}
	if x.OrderOutsideTransaction && x.Guard.Open() {
		c.failKey("server.order-outside-transaction", fmt.Sprintf("the guard %s holds a transaction during the work: an order outside it would wait for it, and it for the order", x.Guard.Kind), "use another guard")
	}
	c.ledgers(x)
	c.accepted(x)
	c.readOnly(x)
	for i, f := range x.Faults {
		path := fmt.Sprintf("server.faults[%d]", i)
		c.fault(path, f, x.Replicas)
		kind, _ := fault.Find(f.Do)
		if kind.Finish && !x.Guard.WritesAfter() {
			c.fail(path+".do", "the guard writes nothing after the commit: the fault would strike nothing", "use finish: after of the guard unique-index, or the guard redis-precheck")
		}
		if g, ok := guard.Find(x.Guard.Kind); kind.Keys && ok && !g.Keys {
			c.fail(path+".do", fmt.Sprintf("the guard %s asks no Redis: the fault would strike nothing", g.Name), "use the guard redis-precheck")
		}
	}
}

// accepted checks what a server has that answers before it works.
func (c *checker) accepted(x *Server) {
	c.word("server.answer", x.Answer)
	if x.Answer != "accepted" {
		return
	}
	const hint = "leave it out, or answer: accepted"
	switch {
	case x.ReadOnly:
		c.failKey("server.answer", "a read is answered with what was read: it cannot be accepted and done afterwards", "leave it out, or read-only")
	case x.Guard.Open():
		c.failKey("server.answer", fmt.Sprintf("the guard %s holds a transaction during the work: a request that is accepted in it is not even noted", x.Guard.Kind), "use a guard that claims the key first, or none")
	case x.OnClientGone == "cancel":
		c.failKey("server.on-client-gone", "who has been told that the order is accepted leaves, and that is no reason to give it up", hint)
	case x.Deadline == "honour":
		c.failKey("server.deadline", "an order that is accepted is worked on, whatever the client's deadline was", hint)
	case x.Queue != nil:
		c.failKey("server.queue", "a request is accepted before it waits for a worker: nobody is turned away", hint)
	case x.Shed != capacity.ShedNone:
		c.failKey("server.shed", "a request is accepted before it waits for a worker: nobody is turned away", hint)
	}
	for i, f := range x.Faults {
		if kind, _ := fault.Find(f.Do); kind.Answers && slices.Contains([]fault.Place{fault.InWork, fault.BeforeCommit, fault.AfterCommit}, f.At) {
			c.fail(fmt.Sprintf("server.faults[%d].at", i), fmt.Sprintf("with answer: accepted the answer has been given before the work: %s cannot change it any more", f.Do), "in-reply strikes the 202; delay and crash strike the work")
		}
	}
}

// ledgers checks what orders bring about beside themselves.
func (c *checker) ledgers(x *Server) {
	if len(x.Ledgers) > ledger.Most {
		c.fail(fmt.Sprintf("server.ledgers[%d]", ledger.Most), fmt.Sprintf("more than %d ledgers", ledger.Most), "")
	}
	names := map[string]bool{}
	for i, l := range x.Ledgers {
		path := fmt.Sprintf("server.ledgers[%d]", i)
		if p := l.Check(); p != nil {
			c.fail(path+"."+p.Field, p.What, p.Hint)
		}
		for _, name := range l.Names() {
			if names[name] {
				c.fail(path+".name", fmt.Sprintf("two ledgers are called %s", quote(name)), "give this one a name of its own")
			}
			names[name] = true
		}
		switch {
		case l.When == ledger.BeforeWork && x.Guard.Open():
			c.fail(path+".when", fmt.Sprintf("the guard %s holds a transaction during the work: a row before it would wait for it, and it for the row", x.Guard.Kind), "use another guard")
		case l.When == ledger.Outbox && x.Processes:
			c.fail(path+".when", "the relay of an outbox outlives each replica, and is no part of a process of its own", "leave server.processes out")
		}
	}
}

// capacity checks how long the service works and on how many at once.
func (c *checker) capacity(x *Server) {
	const spread = "server.processing-spread"
	if p := x.ProcessingSpread.Check(); p != nil {
		c.fail(strings.TrimSuffix(spread+"."+p.Field, "."), spread+": "+p.What, p.Hint)
	}
	const limit = "server.rate-limit"
	if p := x.RateLimit.Check(); p != nil {
		c.fail(strings.TrimSuffix(limit+"."+p.Field, "."), limit+": "+p.What, p.Hint)
	}
	c.number("server.workers", x.Workers)
	c.word("server.shed", x.Shed)
	if x.Queue != nil {
		c.number("server.queue", *x.Queue)
	}
	if x.Workers > 0 {
		return
	}
	const why, hint = "means nothing without workers: nobody waits", "for example workers: 2"
	if x.Queue != nil {
		c.failKey("server.queue", "server.queue "+why, hint)
	}
	if x.Shed != capacity.ShedNone {
		c.failKey("server.shed", "server.shed "+why, hint)
	}
}

// readOnly checks what a server has that writes no order.
func (c *checker) readOnly(x *Server) {
	if !x.ReadOnly {
		return
	}
	const hint = "leave it out, or read-only"
	switch {
	case x.Guard.Kind != "" && x.Guard.Kind != "none":
		c.failKey("server.guard", "a read has nothing to guard", hint)
	case len(x.Rows) > 0:
		c.failKey("server.rows", "a read changes no rows", hint)
	case len(x.Ledgers) > 0:
		c.failKey("server.ledgers", "a read makes no entries", hint)
	case x.Change.Do != "":
		c.failKey("server.change", "a read changes no row", hint)
	case x.OrderOutsideTransaction:
		c.failKey("server.order-outside-transaction", "a read writes no order", hint)
	}
	for i, f := range x.Faults {
		places := []fault.Place{fault.AtConnect, fault.BeforeGuard, fault.InWork, fault.InReply}
		if f.At != "" && !slices.Contains(places, f.At) {
			c.fail(fmt.Sprintf("server.faults[%d].at", i), fmt.Sprintf("a read does not come to %s", f.At), suggest("", texts(places)))
		}
	}
}

// rows checks the rows that orders share.
func (c *checker) rows(x *Server) {
	c.word("server.rows-order", x.RowsOrder)
	if len(x.Rows) > maxRows {
		c.fail(fmt.Sprintf("server.rows[%d]", maxRows), fmt.Sprintf("more than %d rows", maxRows), "")
	}
	for i, row := range x.Rows {
		path := fmt.Sprintf("server.rows[%d]", i)
		c.name(path, row, "a row")
		if slices.Contains(x.Rows[:i], row) {
			c.fail(path, fmt.Sprintf("the row %s stands twice", quote(row)), "a transaction that has changed a row does not wait for it again")
		}
	}
	if len(x.Rows) < 2 {
		const why, hint = "means nothing with fewer than two rows", "for example rows: [stock, ledger]"
		if x.RowTime > 0 {
			c.failKey("server.row-time", "server.row-time "+why, hint)
		}
		if x.RowsOrder == "alternate" {
			c.failKey("server.rows-order", "server.rows-order "+why, hint)
		}
	}
}

// change checks what each request does with a row that all share.
func (c *checker) change(x *Server) {
	const path = "server.change"
	p := x.Change.Check()
	switch at := path + "."; {
	case p != nil && p.Field == "":
		c.fail(path, path+": "+p.What, p.Hint)
	case p != nil && find(c.root, at+p.Field) == find(c.root, path):
		c.fail(path, path+": "+p.What, p.Hint) // it is missing
	case p != nil && p.Field == "do":
		c.fail(at+p.Field, path+"."+p.What, suggest(x.Change.Do, change.Verbs))
	case p != nil:
		c.fail(at+p.Field, path+": "+p.What, p.Hint)
	case x.Change.Do != "" && x.OrderOutsideTransaction:
		c.failKey("server.order-outside-transaction", "the order is written where the row has changed, which is known in the transaction alone", "leave it out, or server.change")
	case x.Change.Do != "" && slices.Contains(x.Rows, x.Change.Row):
		c.fail(at+"row", fmt.Sprintf("%s is one of server.rows as well", quote(x.Change.Row)), "give it a name of its own")
	}
}

func (c *checker) guard(path string, s guard.Settings) {
	g, known := guard.Find(s.Kind)
	p := s.Check()
	switch {
	case p == nil:
	case !known:
		c.fail(path+".kind", p.What, suggest(s.Kind, guardNames()))
	case !slices.Contains(g.Takes, p.Field):
		hint := p.Hint
		switch {
		case s.Kind == "":
			hint = "say which guard: kind: unique-index"
		case len(g.Takes) > 0:
			hint = "it takes: " + strings.Join(g.Takes, ", ")
		}
		c.failKey(path+"."+p.Field, p.What, hint)
	default:
		c.fail(path+"."+p.Field, p.What, p.Hint)
	}
}

func (c *checker) fault(path string, s fault.Settings, replicas int) {
	kinds, places := faultNames(fault.Kinds), texts(fault.Places)
	kind, known := fault.Find(s.Do)
	switch {
	case s.Do == "":
		c.fail(path, "the fault does not say what it does", "add do: with one of "+strings.Join(kinds, ", "))
		return
	case !known:
		c.fail(path+".do", fmt.Sprintf("unknown fault %s", quote(s.Do)), suggest(s.Do, kinds))
		return
	case s.At == "":
		c.fail(path, "the fault does not say where it strikes", "add at: with one of "+strings.Join(places, ", "))
		return
	case !slices.Contains(fault.Places, s.At):
		c.fail(path+".at", fmt.Sprintf("unknown place %s", quote(string(s.At))), suggest(string(s.At), places))
		return
	}
	for i, n := range s.Replicas {
		if n < 1 || n > replicas {
			c.fail(fmt.Sprintf("%s.replicas[%d]", path, i), fmt.Sprintf("there is no replica %d", n), fmt.Sprintf("they are counted from 1, and server.replicas is %d", replicas))
			return
		}
	}
	if at := find(c.root, path+".into"); s.At == fault.InWork && s.Into == 0 && at != find(c.root, path) {
		c.failAt(at, "a fault at 0s into the work strikes before it has begun", "a time such as 700ms, or at: after-claim without into")
		return
	}
	for i, n := range s.Operations {
		if operations := c.trial.Setup.Operations; n < 1 || n > operations {
			c.fail(fmt.Sprintf("%s.operations[%d]", path, i), fmt.Sprintf("there is no operation %d", n), fmt.Sprintf("they are counted from 1, and operations is %d", operations))
			return
		}
	}
	c.faultProblem(path, kind, s.Check())
}

// faultProblem refuses a fault for what is wrong with it, if anything is. What the kind does not take
// should not be there; of the rest it is the value that is wrong.
func (c *checker) faultProblem(path string, kind fault.Kind, p *fault.Problem) {
	common := []string{"at", "do", "arrivals", "of-each", "operations", "share", "replicas"}
	switch {
	case p == nil:
	case !slices.Contains(common, p.Field) && !slices.Contains(kind.Takes, p.Field):
		c.failKey(path+"."+p.Field, p.What, p.Hint)
	default:
		c.fail(path+"."+p.Field, p.What, p.Hint)
	}
}

func (c *checker) layers(path string, in []policy.Settings, out *[]policy.Layer) {
	if len(in) > maxLayers {
		c.fail(fmt.Sprintf("%s[%d]", path, maxLayers), fmt.Sprintf("more than %d layers", maxLayers), "")
		return
	}
	names := map[string]bool{}
	for i, s := range in {
		at := fmt.Sprintf("%s[%d]", path, i)
		if s.Preset == "" {
			s.Preset = "retry"
		}
		p, ok := preset.Find(s.Preset)
		if !ok {
			hint := "`retrylab layers` lists and describes those there are"
			if near := Nearest(s.Preset, preset.Names()); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			c.fail(at+".preset", fmt.Sprintf("unknown preset %s", quote(s.Preset)), hint)
			return
		}
		layer, err := p.Resolve(s)
		if err != nil {
			c.setting(at, p, s, err)
			return
		}
		c.name(at+".name", layer.Name, "a layer")
		if names[layer.Name] {
			c.fail(at, fmt.Sprintf("two layers are called %q", layer.Name), "give this one a name of its own")
		}
		names[layer.Name] = true
		*out = append(*out, layer)
	}
}

// setting is about a setting of the layer at path that its preset refuses.
func (c *checker) setting(path string, p *preset.Preset, s policy.Settings, err error) {
	var refused *policy.FieldError
	if !errors.As(err, &refused) {
		c.fail(path, fmt.Sprintf("%s: %v", path, err), "")
		return
	}
	at := path + "." + refused.Field
	hint := "`retrylab layers " + p.Name + "` shows what it takes"
	name := strings.FieldsFunc(refused.Field, func(r rune) bool { return r == '.' || r == '[' })[0]
	switch {
	case !slices.Contains(append([]string{"preset", "name"}, p.Takes...), name):
		if len(p.Takes) > 0 {
			hint = "it takes: " + strings.Join(p.Takes, ", ")
		} else {
			hint = "it has no settings"
		}
		c.failKey(at, fmt.Sprintf("%s means nothing to %s", at, p.Name), hint)
	default:
		what, place := refused.Problem, at
		if i := wrongItem(s, refused.Field); i >= 0 {
			place = fmt.Sprintf("%s[%d]", at, i)
			if refused.Field == "on" {
				what = quote(s.On[i]) + " is nothing that can be retried"
				hint = strings.Replace(suggest(s.On[i], policy.TriggerWords()), "one of:", "a status from 300 to 599, or one of:", 1)
			}
		}
		c.fail(place, fmt.Sprintf("%s: %s", at, what), hint)
	}
}

// wrongItem returns the first item of a list among the settings that is refused by itself, -1 when
// it is not about a list or not about one item.
func wrongItem(s policy.Settings, field string) int {
	index := slices.Index(keysOf(reflect.TypeFor[policy.Settings]()), field)
	if index < 0 {
		return -1
	}
	list, _ := reflect.ValueOf(s).Field(index).Interface().([]string)
	for i, word := range list {
		var alone policy.Settings
		reflect.ValueOf(&alone).Elem().Field(index).Set(reflect.ValueOf([]string{word}))
		if alone.Validate() != nil {
			return i
		}
	}
	return -1
}

func (c *checker) demands(what string, list []Demand) {
	for _, d := range list {
		_, err := expression.Compile(d.Expression)
		var wrong *expression.Error
		if !errors.As(err, &wrong) {
			continue
		}
		hint := wrong.Hint
		if hint == "" && wrong.Unknown != "" {
			hint = suggest(wrong.Unknown, expression.Names())
		}
		text := wrong.What
		if d.At.File != "" { // else the place is the expression
			text = fmt.Sprintf("%s %s: %s", what, quote(strings.TrimSpace(d.Expression)), text)
		}
		c.failAt(c.inside(c.demanded(d), d.Expression, wrong.At), text, hint)
	}
}

// demanded is where a demand stands: in the file, or on the command line of a run of it.
func (c *checker) demanded(d Demand) position {
	if d.At.File == "" {
		return position{file: fmt.Sprintf("%s: --assert %s", c.scenario.Name, short(d.Expression))}
	}
	return position{file: d.At.File, line: d.At.Line, column: d.At.Column}
}

// inside is the place of a text's n-th character, where the text stands on one line of the file.
func (c *checker) inside(at position, text string, n int) position {
	lines := strings.Split(string(c.scenario.Source), "\n")
	if at.line < 1 || at.line > len(lines) {
		return at
	}
	rest := string(skip([]rune(lines[at.line-1]), at.column-1))
	if q := strings.TrimLeft(rest, `"'`); len(rest)-len(q) == 1 {
		rest, n = q, n+1
	}
	if strings.HasPrefix(rest, text) {
		at.column += n
	}
	return at
}

// said checks that what is widely said is something else than what is expected: else it would not
// be wrong.
func (c *checker) said() {
	said, expect := c.trial.Said, c.trial.Expect
	if said == nil {
		return
	}
	if expect == nil {
		expect = &Expect{}
	}
	const hint = "write under expect what really comes out"
	path := c.prefix + "said."
	for _, n := range []struct {
		key        string
		said, true *int
	}{{"sends", said.Sends, expect.Sends}, {"arrivals", said.Arrivals, expect.Arrivals}, {"effects", said.Effects, expect.Effects}} {
		switch {
		case n.said == nil:
		case n.true == nil:
			c.failKey(path+n.key, "nothing is expected of "+n.key+" that could be held against what is said", hint)
		case *n.said == *n.true:
			c.fail(path+n.key, fmt.Sprintf("what is said of %s is what is expected", n.key), "said is for what is wrong")
		}
	}
	for _, status := range slices.Sorted(maps.Keys(said.Answers)) {
		at := path + "answers." + status
		switch n, expected := expect.Answers[status]; {
		case !expected:
			c.failKey(at, "nothing is expected of answers "+status+" that could be held against what is said", hint)
		case n == said.Answers[status]:
			c.fail(at, fmt.Sprintf("what is said of answers %s is what is expected", status), "said is for what is wrong")
		}
	}
}

// expect checks the words in an expectation; its numbers are the judge's.
func (c *checker) expect(machines []string) {
	e := c.trial.Expect
	if e == nil {
		return
	}
	path := c.prefix + "expect."
	if e.Belief != "" {
		c.word(path+"belief", e.Belief)
	}
	if e.BeliefWhenCallerDone != "" {
		c.word(path+"belief-when-caller-done", e.BeliefWhenCallerDone)
	}
	for _, counts := range []struct {
		key string
		of  map[string]int
	}{{"sends-by", e.SendsBy}, {"arrivals-at", e.ArrivalsAt}} {
		for _, machine := range slices.Sorted(maps.Keys(counts.of)) {
			if !slices.Contains(machines, machine) {
				c.failKey(path+counts.key+"."+machine, fmt.Sprintf("there is no machine %s", quote(machine)), suggest(machine, machines))
			}
		}
	}
	for _, of := range []struct {
		key   string
		asked bool
		told  bool
	}{
		{"state", e.State != "", c.trial.Setup.Server.Change.Do != ""},
		{"lost-updates", e.LostUpdates != nil, c.trial.Setup.Server.Change.By != 0},
	} {
		if of.asked && !of.told {
			c.failKey(path+of.key, "requests do not change a shared row so that it could be told", "server.change says which row they change, and how")
		}
	}
	var ledgers []string
	for _, l := range c.trial.Setup.Server.Ledgers {
		ledgers = append(ledgers, l.Names()...)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Ledgers)) {
		if !slices.Contains(ledgers, name) {
			hint := suggest(name, ledgers)
			if len(ledgers) == 0 {
				hint = "server.ledgers says which there are"
			}
			c.failKey(path+"ledgers."+name, fmt.Sprintf("there is no ledger %s", quote(name)), hint)
		}
	}
	for _, status := range slices.Sorted(maps.Keys(e.Answers)) {
		if !isStatus(status) {
			c.failKey(path+"answers."+status, fmt.Sprintf("%s is no HTTP status", quote(status)), "a number such as 201 or 503")
		}
	}
	for i, o := range e.Outcomes {
		if known := Outcomes(); !isStatus(o) && !slices.Contains(known, o) {
			c.fail(fmt.Sprintf("%soutcomes[%d]", path, i), fmt.Sprintf("no send ends with %s", quote(o)), "a status, or "+suggest("", known))
		}
	}
}

// isStatus reports whether a text is an HTTP status.
func isStatus(s string) bool {
	code, err := strconv.Atoi(s)
	return err == nil && len(s) == 3 && code >= 100 && code <= 599
}
