package cmd

import (
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

const (
	patience = time.Second // how long nothing is shown: most runs are over by then
	beat     = time.Second // from one look at the clock to the next, while no trial ends
)

// progress shows on a terminal how far a run is that takes longer than a moment.
type progress struct {
	timer *time.Timer

	mu          sync.Mutex
	bar         *progressbar.ProgressBar
	done, total int
	scenario    string
	ended       bool
}

// newProgress returns the progress of a run that begins now. Where standard error is no terminal
// it shows nothing.
func (a *app) newProgress() *progress {
	p := &progress{total: 1}
	if !isTerminal(a.stderr) {
		return p
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(patience, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.ended {
			return
		}
		if p.bar == nil {
			p.bar = progressbar.NewOptions(p.total,
				progressbar.OptionSetWriter(a.stderr),
				progressbar.OptionShowCount(),
				progressbar.OptionSetPredictTime(false),
				progressbar.OptionSetWidth(30),
				progressbar.OptionClearOnFinish(),
			)
		}
		p.show()
		p.timer.Reset(beat) // a trial may take long: time at least is seen to pass
	})
	return p
}

// step says how many trials are over, and of which scenario the last one was.
func (p *progress) step(done, total int, scenario string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.total, p.scenario = done, total, scenario
	p.show()
}

func (p *progress) show() {
	if p.bar == nil || p.ended {
		return
	}
	p.bar.ChangeMax(p.total)
	p.bar.Describe(p.scenario)
	p.bar.Set(p.done)
	p.bar.RenderBlank()
}

// end removes what is shown.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.ended = true
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.bar != nil {
		p.bar.Finish()
	}
}
