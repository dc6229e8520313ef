package cmd

import (
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress shows on a terminal how far a run is that takes longer than a second.
type progress struct {
	app   *app
	begin time.Time

	mu    sync.Mutex
	bar   *progressbar.ProgressBar
	ended bool
}

// patience is how long nothing is shown: most runs are over by then.
const patience = time.Second

func (a *app) newProgress() *progress { return &progress{app: a, begin: time.Now()} }

func (p *progress) step(done, total int, scenario string) {
	if !isTerminal(p.app.stderr) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || (p.bar == nil && time.Since(p.begin) < patience) {
		return
	}
	if p.bar == nil {
		p.bar = progressbar.NewOptions(total,
			progressbar.OptionSetWriter(p.app.stderr),
			progressbar.OptionShowCount(),
			progressbar.OptionSetWidth(30),
			progressbar.OptionClearOnFinish(),
			progressbar.OptionThrottle(100*time.Millisecond),
		)
	}
	p.bar.Describe(scenario)
	p.bar.Set(done)
}

// end removes the bar.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil && !p.ended {
		p.bar.Finish()
	}
	p.ended = true
}
