package caller

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"retrylab/caller/policy"
)

// chooser picks the instance that a layer sends to.
type chooser interface {
	// pick returns the instance for the next try of a call; tried are those of the call so far.
	pick(now time.Duration, tried []string) (string, bool)
	// report says how a try at an instance ended, and whether the request is tried again.
	report(now time.Duration, target string, out policy.Outcome, again bool)
	size() int
}

// roundRobin chooses as Spring Cloud LoadBalancer's RoundRobinLoadBalancer does with its
// retry-aware supplier: the position moves on with every choice, over all instances but the one
// tried last. A new call begins anew and may choose the instance that has just failed.
type roundRobin struct {
	targets []string

	mu       sync.Mutex
	position int
}

func (r *roundRobin) pick(_ time.Duration, tried []string) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	candidates := r.targets
	if len(tried) > 0 && len(r.targets) > 1 {
		last := tried[len(tried)-1]
		candidates = slices.DeleteFunc(slices.Clone(r.targets), func(t string) bool { return t == last })
	}
	target := candidates[r.position%len(candidates)]
	r.position++
	return target, true
}

func (r *roundRobin) report(time.Duration, string, policy.Outcome, bool) {}

func (r *roundRobin) size() int { return len(r.targets) }

// upstreams chooses as nginx's round robin does (src/http/ngx_http_upstream_round_robin.c,
// release-1.30.4): smooth weighted round robin over servers of weight 1, where one that has failed
// max_fails times is passed over until fail_timeout has gone by. nginx counts in whole seconds.
type upstreams struct {
	maxFails    int
	failTimeout time.Duration

	mu    sync.Mutex
	peers []peer
}

type peer struct {
	name               string
	current, effective int
	fails              int
	accessed, checked  time.Duration
}

func newUpstreams(targets []string, maxFails int, failTimeout time.Duration) *upstreams {
	u := &upstreams{maxFails: maxFails, failTimeout: failTimeout}
	for _, t := range targets {
		u.peers = append(u.peers, peer{name: t, effective: 1})
	}
	return u
}

func (u *upstreams) size() int { return len(u.peers) }

func (u *upstreams) pick(now time.Duration, tried []string) (string, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now = now.Truncate(time.Second)
	if len(u.peers) == 1 {
		return u.peers[0].name, true // a single server is never out
	}
	var best *peer
	total := 0
	for i := range u.peers {
		p := &u.peers[i]
		if slices.Contains(tried, p.name) || (u.maxFails > 0 && p.fails >= u.maxFails && now-p.checked <= u.failTimeout) {
			continue
		}
		p.current += p.effective
		total += p.effective
		p.effective = min(1, p.effective+1)
		if best == nil || p.current > best.current {
			best = p
		}
	}
	if best == nil {
		return "", false
	}
	best.current -= total
	if now-best.checked > u.failTimeout {
		best.checked = now
	}
	return best.name, true
}

// report counts what nginx counts as a failure of the server: every error, and a status for which
// the request is passed on, unless that is 403 or 404. A client that leaves is none.
func (u *upstreams) report(now time.Duration, target string, out policy.Outcome, again bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.peers) == 1 {
		return
	}
	failed := out.Failure != policy.NoFailure
	if !failed {
		failed = again && out.Status != http.StatusForbidden && out.Status != http.StatusNotFound
	}
	now = now.Truncate(time.Second)
	p := &u.peers[slices.IndexFunc(u.peers, func(p peer) bool { return p.name == target })]
	switch {
	case failed && !out.CallerGone:
		p.fails++
		p.accessed, p.checked = now, now
		if u.maxFails > 0 {
			p.effective = max(0, p.effective-1/u.maxFails)
		}
	case p.accessed < p.checked:
		p.fails = 0
	}
}
