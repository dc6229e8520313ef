package engine_test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"retrylab/caller/policy"
	"retrylab/internal/judge"
	"retrylab/internal/lab"
	"retrylab/scenarios"
	"retrylab/slowserver/capacity"
	"retrylab/slowserver/change"
	"retrylab/slowserver/fault"
	"retrylab/slowserver/guard"
	"retrylab/slowserver/ledger"
)

// A sabotage is one thing done to a trial that its checks should notice.
type sabotage struct {
	name  string
	trial scenarios.Trial
	// part is set when a part of the scenario was taken away. If no check notices that, the part
	// is for show, and the reason must be listed in testdata/harmless.txt.
	part bool
}

// defaults are the words of a guard's settings that say what is so without them.
var defaults = []string{"first", "409", "raw", "keep", "none", "quiet", "fail", "status"}

// sabotages takes away each part of a trial once, and does three things that nothing can survive
// unnoticed.
func sabotages(t scenarios.Trial) []sabotage {
	var out []sabotage
	add := func(name string, part bool, change func(*scenarios.Trial)) {
		c := t
		c.Setup.Server.Faults = slices.Clone(t.Setup.Server.Faults)
		c.Setup.Schedule = slices.Clone(t.Setup.Schedule)
		c.Setup.Server.Ledgers = slices.Clone(t.Setup.Server.Ledgers)
		c.Setup.Hops = slices.Clone(t.Setup.Hops)
		c.Layers = slices.Clone(t.Layers)
		c.HopLayers = slices.Clone(t.HopLayers)
		for i := range c.HopLayers {
			c.HopLayers[i] = slices.Clone(t.HopLayers[i])
		}
		change(&c)
		out = append(out, sabotage{name, c, part})
	}
	if t.Setup.Server.Guard.Kind != "" && t.Setup.Server.Guard.Kind != "none" {
		add("without the guard", true, func(c *scenarios.Trial) { c.Setup.Server.Guard = guard.Settings{} })
	}
	settings := reflect.TypeFor[guard.Settings]()
	for i := range settings.NumField() {
		field := settings.Field(i)
		changed := t.Setup.Server.Guard
		v := reflect.ValueOf(&changed).Elem().Field(i)
		if field.Name == "Kind" || v.IsZero() || slices.Contains(defaults, v.String()) {
			continue
		}
		if v.SetZero(); changed.Check() != nil {
			continue // means nothing without it
		}
		name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		add("without the guard's "+name, true, func(c *scenarios.Trial) { c.Setup.Server.Guard = changed })
	}
	if t.Setup.Server.Workers > 0 {
		add("with workers for all", true, func(c *scenarios.Trial) { c.Setup.Server.Workers = 0 })
	}
	if t.Setup.Server.Queue != nil {
		add("with a queue for all", true, func(c *scenarios.Trial) { c.Setup.Server.Queue = nil })
	}
	if t.Setup.Server.RateLimit.Rate > 0 {
		add("without the limit of the rate", true, func(c *scenarios.Trial) { c.Setup.Server.RateLimit = capacity.RateLimit{} })
		if t.Setup.Server.RateLimit.RetryAfter > 0 {
			add("without the Retry-After of the limit", true, func(c *scenarios.Trial) { c.Setup.Server.RateLimit.RetryAfter = 0 })
		}
	}
	if t.Setup.Server.Shed != capacity.ShedNone {
		add("without shed", true, func(c *scenarios.Trial) { c.Setup.Server.Shed = capacity.ShedNone })
	}
	if spread := t.Setup.Server.ProcessingSpread; spread.P50 > 0 {
		add("without processing-spread", true, func(c *scenarios.Trial) {
			c.Setup.Server.Processing, c.Setup.Server.ProcessingSpread = spread.P50, capacity.Spread{}
		})
	}
	if t.Setup.Server.Answer == "accepted" {
		add("answered when it is done", true, func(c *scenarios.Trial) { c.Setup.Server.Answer = "done" })
	}
	if t.Setup.Server.Deadline != "ignore" {
		add("without the server's deadline", true, func(c *scenarios.Trial) { c.Setup.Server.Deadline = "ignore" })
	}
	if t.Setup.Caller.Deadline != "local" {
		add("without the caller's deadline", true, func(c *scenarios.Trial) { c.Setup.Caller.Deadline = "local" })
	}
	if t.Setup.Caller.Ask != nil {
		add("without questions", true, func(c *scenarios.Trial) { c.Setup.Caller.Ask = nil })
	}
	if t.Setup.Reconcile.After > 0 {
		add("without the reconciliation", true, func(c *scenarios.Trial) { c.Setup.Reconcile.After = 0 })
	}
	for i, l := range t.Setup.Server.Ledgers {
		change := func(what string, f func(*ledger.Settings)) {
			add("without "+what+" of "+l.Name, true, func(c *scenarios.Trial) { f(&c.Setup.Server.Ledgers[i]) })
		}
		add("without the ledger "+l.Name, true, func(c *scenarios.Trial) { c.Setup.Server.Ledgers = slices.Delete(c.Setup.Server.Ledgers, i, i+1) })
		if l.Reference != ledger.ByNothing {
			change("the reference", func(l *ledger.Settings) { l.Reference = ledger.ByNothing })
		}
		if l.Duplicates {
			change("the duplicates", func(l *ledger.Settings) { l.Duplicates = false })
		}
		if l.Relay.Sends > 1 {
			change("the second send", func(l *ledger.Settings) { l.Relay.Sends = 1 })
		}
	}
	if forgetful := t.Setup.Server.Guard; forgetful.CleanUp != (guard.CleanUp{}) || forgetful.Expiry != "" {
		forgetful.TTL, forgetful.OpenTTL, forgetful.Expiry, forgetful.CleanUp = 0, 0, "", guard.CleanUp{}
		add("without the guard's time to live", true, func(c *scenarios.Trial) { c.Setup.Server.Guard = forgetful })
	}
	if c := t.Setup.Server.Change; c.Do != "" {
		for _, s := range []struct {
			name  string
			given bool
			set   func(*change.Settings)
		}{
			{"without the state of the row", c.From != "", func(c *change.Settings) { c.From, c.Otherwise = "", "" }},
			{"with another way out", c.Otherwise == change.Conflict, func(c *change.Settings) { c.Otherwise = change.Done }},
			{"without the version", c.Version == change.Refuse || c.Version == change.ReadAgain, func(c *change.Settings) { c.Version = change.Ignore }},
			{"with a look and a write", c.Do == change.Add, func(c *change.Settings) { c.Do, c.Version = change.ReadThenWrite, change.Ignore }},
			{"without the change", true, func(c *change.Settings) { *c = change.Settings{} }},
		} {
			if s.given {
				add(s.name, true, func(c *scenarios.Trial) { s.set(&c.Setup.Server.Change) })
			}
		}
	}
	if t.Setup.Caller.Accept != nil {
		add("without what is accepted", true, func(c *scenarios.Trial) { c.Setup.Caller.Accept = nil })
	}
	if t.Setup.Server.TransactionRetries > 0 {
		add("without transaction-retries", true, func(c *scenarios.Trial) { c.Setup.Server.TransactionRetries = 0 })
	}
	if t.Setup.Server.OnUnknownCommit != "fail" {
		add("without on-unknown-commit", true, func(c *scenarios.Trial) { c.Setup.Server.OnUnknownCommit = "fail" })
	}
	if t.Setup.Server.RowsOrder != "fixed" {
		add("without rows-order", true, func(c *scenarios.Trial) { c.Setup.Server.RowsOrder = "fixed" })
	}
	if len(t.Setup.Server.Rows) > 0 {
		add("without rows", true, func(c *scenarios.Trial) { c.Setup.Server.Rows = nil })
	}
	for i, o := range t.Setup.Schedule {
		if o.Of > 0 {
			add(fmt.Sprintf("without the further send %d", i+1), true, func(c *scenarios.Trial) { c.Setup.Schedule = slices.Delete(c.Setup.Schedule, i, i+1) })
			add(fmt.Sprintf("with the key of its operation for the further send %d", i+1), o.Key != "", func(c *scenarios.Trial) { c.Setup.Schedule[i].Key = "" })
		}
	}
	if t.Setup.Caller.Key != "none" {
		add("without the key", true, func(c *scenarios.Trial) { c.Setup.Caller.Key = "none" })
	}
	if t.Setup.Caller.Content != "same" {
		add("with the same content", true, func(c *scenarios.Trial) { c.Setup.Caller.Content = "same" })
	}
	if t.Setup.Server.ReadOnly {
		add("without read-only", false, func(c *scenarios.Trial) { c.Setup.Server.ReadOnly = false })
	}
	if t.Setup.Caller.Pool > 0 {
		add("without the pool", true, func(c *scenarios.Trial) { c.Setup.Caller.Pool = 0 })
	}
	if t.Setup.Caller.Threads > 0 {
		add("with threads for all", true, func(c *scenarios.Trial) { c.Setup.Caller.Threads = 0 })
	}
	if t.Setup.Caller.Queue != nil {
		add("with a caller's queue for all", true, func(c *scenarios.Trial) { c.Setup.Caller.Queue = nil })
	}
	if t.Setup.Caller.CancelAfter > 0 {
		add("without cancel-after", true, func(c *scenarios.Trial) { c.Setup.Caller.CancelAfter = 0 })
	}
	if t.Setup.Caller.ClockJumps != nil {
		add("without the clock's jumps", true, func(c *scenarios.Trial) { c.Setup.Caller.ClockJumps = nil })
	}
	if t.Setup.Caller.Timeouts.TotalClock == "calendar" {
		add("with a monotonic clock", true, func(c *scenarios.Trial) { c.Setup.Caller.Timeouts.TotalClock = "monotonic" })
	}
	if t.Setup.Caller.Leak != nil {
		add("without the leak", true, func(c *scenarios.Trial) { c.Setup.Caller.Leak = nil })
	}
	if t.Setup.Caller.Redirects == "follow" {
		add("without following redirects", true, func(c *scenarios.Trial) { c.Setup.Caller.Redirects = "none" })
	}
	for i, f := range t.Setup.Server.Faults {
		add("without the fault "+f.Name(), true, func(c *scenarios.Trial) { c.Setup.Server.Faults = slices.Delete(c.Setup.Server.Faults, i, i+1) })
		change := func(what string, set func(*fault.Settings)) {
			add("without the "+what+" of the fault "+f.Name(), true, func(c *scenarios.Trial) { set(&c.Setup.Server.Faults[i]) })
		}
		if f.From > 0 || f.Until > 0 {
			change("window", func(f *fault.Settings) { f.From, f.Until = 0, 0 })
		}
		if f.OfEach != nil {
			change("of-each", func(f *fault.Settings) { f.OfEach = nil })
		}
		if f.Operations != nil {
			change("operations", func(f *fault.Settings) { f.Operations = nil })
		}
		if f.Share != nil {
			change("share", func(f *fault.Settings) { f.Share = nil })
		}
		if f.RetryAfter != "" {
			change("Retry-After", func(f *fault.Settings) { f.RetryAfter = "" })
		}
	}
	for i, l := range t.Layers {
		add("without the layer "+l.Name, true, func(c *scenarios.Trial) { c.Layers = slices.Delete(c.Layers, i, i+1) })
		if l.Attempts > 1 {
			add("one attempt more in "+l.Name, true, func(c *scenarios.Trial) { c.Layers[i].Attempts++ })
		}
		if l.Budget != nil {
			add("without the budget of "+l.Name, true, func(c *scenarios.Trial) { c.Layers[i].Budget = nil })
		}
		if l.Losers == policy.CancelLosers {
			add("with losers that finish in "+l.Name, true, func(c *scenarios.Trial) { c.Layers[i].Losers = policy.FinishLosers })
		}
		if l.FreeWhenPaced {
			add("with pauses that count in "+l.Name, true, func(c *scenarios.Trial) { c.Layers[i].FreeWhenPaced = false })
		}
		if l.PastDeadline {
			add("with an eye on the limit in "+l.Name, true, func(c *scenarios.Trial) { c.Layers[i].PastDeadline = false })
		}
		if l.ResendsEmpty {
			add("with a whole body in "+l.Name, true, func(c *scenarios.Trial) { c.Layers[i].ResendsEmpty = false })
		}
	}
	for h, hop := range t.Setup.Hops {
		for i, l := range t.HopLayers[h] {
			if !l.Peers { // a proxy without its balancing would be another machine
				add("without the layer "+l.Name+" of "+hop.Name, true, func(c *scenarios.Trial) { c.HopLayers[h] = slices.Delete(c.HopLayers[h], i, i+1) })
			}
		}
		for _, s := range hopSabotages(hop) {
			add("without "+s.name+" of "+hop.Name, true, func(c *scenarios.Trial) { s.change(&c.Setup.Hops[h]) })
		}
		add("without the hop "+hop.Name, true, func(c *scenarios.Trial) {
			c.Setup.Hops = slices.Delete(c.Setup.Hops, h, h+1)
			c.HopLayers = slices.Delete(c.HopLayers, h, h+1)
		})
	}
	if t.Setup.Caller.Timeouts != (scenarios.Timeouts{}) {
		add("without time-outs", false, func(c *scenarios.Trial) { c.Setup.Caller.Timeouts = scenarios.Timeouts{} })
	}
	add("time-outs a tenth as long", false, func(c *scenarios.Trial) {
		for _, d := range []*time.Duration{&c.Setup.Caller.Timeouts.Read, &c.Setup.Caller.Timeouts.Attempt, &c.Setup.Caller.Timeouts.Total} {
			*d /= 10
		}
	})
	add("with one more layer that retries anything", false, func(c *scenarios.Trial) {
		anything := policy.Rule{Failures: policy.Failures, Statuses: policy.Non2xx}
		c.Layers = append([]policy.Layer{{Name: "anything", Preset: "retry", Attempts: 3, Rules: []policy.Rule{anything}}}, c.Layers...)
	})
	add("one operation more", false, func(c *scenarios.Trial) { c.Setup.Operations++ })
	add("every order refused", false, func(c *scenarios.Trial) {
		c.Setup.Server.Faults = []fault.Settings{{At: fault.BeforeGuard, Do: "status", Status: 400}}
	})
	add("every order accepted at once", false, func(c *scenarios.Trial) {
		c.Setup.Server.Faults, c.Setup.Server.Processing, c.Setup.Server.Guard = nil, 0, guard.Settings{}
		c.Setup.Server.ProcessingSpread, c.Setup.Server.Workers = capacity.Spread{}, 0
		c.Layers = []policy.Layer{}
	})
	return out
}

// hopSabotage takes one setting of a hop away.
type hopSabotage struct {
	name   string
	change func(*scenarios.Hop)
}

// hopSabotages lists those of the settings that the hop has.
func hopSabotages(h scenarios.Hop) (out []hopSabotage) {
	kind, _ := scenarios.FindHopKind(h.Kind)
	for i, f := range h.Faults {
		at := f.Settings().Name()
		out = append(out, hopSabotage{"the fault " + at, func(h *scenarios.Hop) { h.Faults = slices.Delete(slices.Clone(h.Faults), i, i+1) }})
		change := func(what string, set func(*scenarios.HopFault)) {
			out = append(out, hopSabotage{"the " + what + " of the fault " + at, func(h *scenarios.Hop) {
				h.Faults = slices.Clone(h.Faults)
				set(&h.Faults[i])
			}})
		}
		if len(f.Arrivals) > 0 {
			change("arrivals", func(f *scenarios.HopFault) { f.Arrivals = nil })
		}
		if f.From > 0 || f.Until > 0 {
			change("window", func(f *scenarios.HopFault) { f.From, f.Until = 0, 0 })
		}
		if f.RetryAfter != "" {
			change("Retry-After", func(f *scenarios.HopFault) { f.RetryAfter = "" })
		}
	}
	for _, s := range []struct {
		hopSabotage
		given bool
	}{
		{hopSabotage{"its way with the key", func(h *scenarios.Hop) { h.Key = scenarios.KeyPass }}, h.Key != scenarios.KeyPass},
		{hopSabotage{"the method", func(h *scenarios.Hop) { h.Method = "" }}, h.Method != ""},
		{hopSabotage{"the work before", func(h *scenarios.Hop) { h.WorkBefore = 0 }}, h.WorkBefore > 0},
		{hopSabotage{"the work after", func(h *scenarios.Hop) { h.WorkAfter = 0 }}, h.WorkAfter > 0},
		{hopSabotage{"on-client-gone", func(h *scenarios.Hop) { h.OnClientGone = kind.OnClientGone }}, h.OnClientGone != kind.OnClientGone},
		{hopSabotage{"the error status", func(h *scenarios.Hop) { h.ErrorStatus = kind.ErrorStatus }}, h.ErrorStatus != kind.ErrorStatus},
		{hopSabotage{"the deadline", func(h *scenarios.Hop) { h.Deadline = "ignore" }}, h.Deadline != "ignore"},
		{hopSabotage{"the longest deadline", func(h *scenarios.Hop) { h.MaxDeadline = 0 }}, h.MaxDeadline > 0},
	} {
		if s.given {
			out = append(out, s.hopSabotage)
		}
	}
	return out
}

// TestTeeth sabotages every configuration in every listed way. Each of its checks must fail under
// at least one sabotage, and each part that is taken away must be missed by at least one check.
func TestTeeth(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes minutes with the race detector, and plays nothing that the other tests do not")
	}
	l := newLabs(t)
	harmless := readHarmless(t)
	var mu sync.Mutex
	var missing []string
	used := make([]bool, len(harmless))
	// The subtests run in parallel; the group's end is waited for before the list is looked at.
	t.Run("configurations", func(t *testing.T) {
		for _, trial := range catalogue(t) {
			t.Run(name(trial), func(t *testing.T) {
				t.Parallel()
				own := l.of(trial)
				if own == nil {
					t.Skip("this machine has no redis-server")
				}
				sound := judge.Decide(trial, own.Run(t.Context(), trial))
				bitten := map[string]bool{}
				for _, s := range sabotages(trial) {
					noticed := false
					r := judge.Decide(s.trial, own.Run(t.Context(), s.trial))
					for _, c := range r.Checks {
						if c.Kind != "premise" && !c.Held {
							noticed = true
							bitten[c.Kind+" "+c.Name] = true
						}
					}
					noticed = noticed || r.Verdict == lab.Inconclusive
					entry := name(trial) + " " + s.name
					if !s.part || noticed {
						continue
					}
					mu.Lock()
					i := slices.IndexFunc(harmless, func(pattern string) bool {
						ok, err := path.Match(pattern, entry)
						return ok && err == nil
					})
					if i < 0 {
						missing = append(missing, entry)
					} else {
						used[i] = true
					}
					mu.Unlock()
				}
				for _, c := range sound.Checks {
					if c.Kind != "premise" && !bitten[c.Kind+" "+c.Name] {
						t.Errorf("%s:%d: %s %s (%s) holds under every sabotage: it checks nothing", c.File, c.Line, c.Kind, c.Name, c.Expected)
					}
				}
			})
		}
	})
	slices.Sort(missing)
	for _, entry := range missing {
		t.Errorf("%s: no check notices; if that is right, say why in testdata/harmless.txt", entry)
	}
	for i, pattern := range harmless {
		if !used[i] {
			t.Errorf("testdata/harmless.txt lists %q, which nothing harmless needs", pattern)
		}
	}
}

// readHarmless reads the sabotages that rightly change nothing: a line each, in which * stands for
// any part of a name, with the reason after a colon and a space.
func readHarmless(t *testing.T) (patterns []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "harmless.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(string(data), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, reason, ok := strings.Cut(line, ": ")
		if !ok || strings.TrimSpace(reason) == "" {
			t.Fatalf("testdata/harmless.txt:%d: no reason", i+1)
		}
		patterns = append(patterns, pattern)
	}
	return patterns
}
