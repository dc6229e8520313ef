package caller

import (
	"sync"

	"retrylab/caller/policy"
)

// account is the account of a layer's retry budget, which calls side by side share. A nil account
// has no end.
type account struct {
	mu sync.Mutex
	of *policy.Account
}

func newAccount(b *policy.Budget) *account {
	if b == nil {
		return nil
	}
	return &account{of: b.Open()}
}

// with has f look at the account, and reports false where there is none.
func (a *account) with(f func(*policy.Account)) bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	f(a.of)
	return true
}

func (a *account) call() { a.with((*policy.Account).Call) }

func (a *account) fail(out policy.Outcome) { a.with(func(of *policy.Account) { of.Fail(out) }) }

func (a *account) succeed(paid float64) { a.with(func(of *policy.Account) { of.Succeed(paid) }) }

func (a *account) pay(out policy.Outcome) (cost float64, ok bool) {
	bounded := a.with(func(of *policy.Account) { cost, ok = of.Pay(out) })
	return cost, ok || !bounded
}
