package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retrylab/slowserver/store"
)

// kinds of random plots: what may happen in them beside claims, touches and commits.
var kinds = []struct {
	name                        string
	cancelled, idle, repeatable bool
}{
	{name: "plain"},
	{name: "cancelled", cancelled: true},
	{name: "everything", cancelled: true, idle: true, repeatable: true},
}

// failed is what a journal says where the server had to be given up.
const failed = "the database has failed the trial"

// errNever ends a wait that has no end.
var errNever = errors.New("it never came to its end")

// randomly is a plot of some transactions over few keys and rows. It is drawn from the seed alone.
func randomly(seed uint64, cancelled, idle, repeatable bool) func(p *plot) {
	return func(p *plot) {
		r := rand.New(rand.NewPCG(seed, 7))
		// Drawn to the nanosecond: no two things fall on one instant.
		drawn := func(most time.Duration) time.Duration { return time.Duration(r.Int64N(int64(most))) }
		for i := range 3 + r.IntN(5) {
			var o store.TxOptions
			if r.IntN(4) == 0 {
				o.LockTimeout = 500*time.Millisecond + drawn(3*time.Second)
			}
			if idle && r.IntN(4) == 0 {
				o.IdleTimeout = time.Second + drawn(3*time.Second)
			}
			if repeatable && r.IntN(3) == 0 {
				o.Isolation = store.RepeatableRead
			}
			var steps []func(a *actor)
			for range 1 + r.IntN(5) {
				row, key, pause := []string{"x", "y", "z"}[r.IntN(3)], []string{"k1", "k2"}[r.IntN(2)], drawn(3*time.Second)
				step := []func(a *actor){
					func(a *actor) { a.touch(row) },
					func(a *actor) { a.touch(row) },
					func(a *actor) { a.claim(key) },
					func(a *actor) { a.claim(key) },
					func(a *actor) {
						held, err := a.tx.Finish(a.ctx, key, store.Holder{}, store.Record{Status: store.Done, Code: 201})
						a.note("%s finishes %s: %v, %v", a.name, key, held, class(err))
					},
					func(a *actor) {
						held, err := a.tx.Release(a.ctx, key, store.Holder{})
						a.note("%s releases %s: %v, %v", a.name, key, held, class(err))
					},
				}[r.IntN(6)]
				steps = append(steps, func(a *actor) { a.wait(pause); step(a) })
			}
			commits := r.IntN(3) > 0
			patience := 1000 * time.Second
			if cancelled && r.IntN(4) == 0 {
				patience = 500*time.Millisecond + drawn(5*time.Second)
			}
			p.at(drawn(4*time.Second), fmt.Sprintf("t%d", i), o, func(a *actor) {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				a.ctx = ctx
				for _, step := range steps {
					step(a)
				}
				if a.clock.Now() > 900*time.Second {
					a.note("%s: %v", a.name, errNever)
				}
				if commits {
					a.commit()
				} else {
					a.rollback()
				}
			})
		}
		p.all.Wait()
		if err := p.store.(*Store).Lost(); err != nil {
			p.note(failed+": %v", err)
		}
	}
}

// TestRandomPlots plays what nobody thought of: every plot comes to an end, the server never has to
// be given up, and the journal is the same when it is played again; also where the role may not
// have the server look for circles.
func TestRandomPlots(t *testing.T) {
	t.Parallel()
	seeds := 40
	if testing.Short() {
		seeds = 12
	}
	for _, detects := range []bool{true, false} {
		d := open(t, Options{Jobs: 1})
		d.detects = d.detects && detects
		for _, k := range kinds {
			for seed := range uint64(seeds) {
				f := randomly(seed, k.cancelled, k.idle, k.repeatable)
				first := play(t, d, f)
				if again := play(t, d, f); !slices.Equal(first, again) {
					t.Errorf("%s, seed %d, detects %v: another journal (-first +again):\n%s", k.name, seed, detects, cmp.Diff(first, again))
				}
				for _, e := range first {
					if strings.Contains(e, failed) || strings.Contains(e, errNever.Error()) {
						t.Errorf("%s, seed %d, detects %v: %s", k.name, seed, detects, e)
					}
				}
			}
		}
	}
}
