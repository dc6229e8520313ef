package cmd

import (
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// patience is how long nothing is shown: most runs are over by then.
const patience = time.Second

// progress shows on a terminal how far a run is that takes longer than that.
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
	if isTerminal(a.stderr) {
		p.timer = time.AfterFunc(patience, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.ended {
				return
			}
			p.bar = progressbar.NewOptions(p.total,
				progressbar.OptionSetWriter(a.stderr),
				progressbar.OptionShowCount(),
				progressbar.OptionSetWidth(30),
				progressbar.OptionClearOnFinish(),
				progressbar.OptionThrottle(100*time.Millisecond),
			)
			p.show()
		})
	}
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
