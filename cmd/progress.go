package cmd

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"retrylab/internal/suite"
)

const (
	moment    = 100 * time.Millisecond // how long nothing is shown: a run that is over by then needs no bar
	patience  = time.Second            // the same where somebody reads what stands above it
	beat      = time.Second            // from one look at the clock to the next, while no trial ends
	heartbeat = 15 * time.Second       // from one line to the next where nobody looks at a terminal
)

// progress shows how far a run is that takes longer than a moment: on a terminal as a bar, elsewhere as a
// line now and then, so that whoever reads a log knows that it lives.
type progress struct {
	timer *time.Timer
	lines io.Writer // for a line of each scenario that is over; nil for none

	mu          sync.Mutex
	bar         *progressbar.ProgressBar
	done, total int
	scenario    string
	ended       bool
}

// newProgress returns the progress of a run that begins now, of which a terminal shows something after a while. Quiet shows nothing; verbose says where
// standard error is no terminal of each scenario that it is over.
func (a *app) newProgress(after time.Duration, quiet, verbose bool) *progress {
	p := &progress{total: 1}
	if quiet {
		return p
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !isTerminal(a.stderr) {
		if verbose {
			p.lines = a.stderr
		}
		p.timer = time.AfterFunc(heartbeat, func() { p.alive(a.stderr) })
		return p
	}
	p.timer = time.AfterFunc(after, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.ended {
			return
		}
		if p.bar == nil {
			theme := progressbar.ThemeDefault
			if !unicodeLocale() {
				theme = progressbar.ThemeASCII
			}
			p.bar = progressbar.NewOptions(p.total,
				progressbar.OptionSetTheme(theme),
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

// alive writes a line that says how far the run is.
func (p *progress) alive(w io.Writer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	if text := fmt.Sprintf("%d of %d trials are over", p.done, p.total); p.scenario == "" {
		say(w, "retrylab: still running: %s", text)
	} else {
		say(w, "retrylab: still running: %s, the last of %s", text, p.scenario)
	}
	p.timer.Reset(heartbeat)
}

// step takes note of how far the run is.
func (p *progress) step(s suite.Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.total, p.scenario = s.Done, s.Total, s.Scenario
	if s.Over && p.lines != nil && !p.ended {
		trials := "1 trial"
		if s.Trials != 1 {
			trials = fmt.Sprintf("%d trials", s.Trials)
		}
		if s.Failed > 0 {
			trials += fmt.Sprintf(", %d not held or inconclusive", s.Failed)
		}
		say(p.lines, "retrylab: %s is over: %s", s.Scenario, trials)
	}
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
	if p == nil {
		return
	}
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
