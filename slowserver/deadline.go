package slowserver

import (
	"errors"
	"net/http"

	"retrylab/internal/lab"
)

// errDeadline is why work ends whose client has said how long it has.
var errDeadline = errors.New("the deadline of the request is over")

// limit sets what ends the work on the request: the end of the replica, and what the service is
// configured to notice, its client's leaving and its client's deadline. The function gives up what
// that takes.
func (h *handling) limit() (release func()) {
	s := h.service
	h.work = h.life.ctx
	if s.config.CancelWhenGone {
		h.work = h.r.Context()
	}
	left, ok := lab.ParseDeadline(h.r.Header.Get(lab.HeaderDeadline))
	if ok {
		h.until = s.config.Clock.Now() + left
	}
	if !ok || !s.config.HonourDeadline {
		return func() {}
	}
	h.work, release = s.config.Clock.WithTimeout(h.work, left, errDeadline)
	return release
}

// expire ends a request whose deadline is over: nothing of it is kept. It answers without a look at
// who is still there: whoever has set the deadline leaves in the same moment.
func (h *handling) expire() {
	h.record(lab.Event{Kind: lab.Timeout, Detail: lab.StageDeadline})
	a := problem(http.StatusGatewayTimeout, lab.ProblemDeadline, errDeadline.Error())
	if err := h.failed(a); err != nil {
		h.fail(err)
		return
	}
	h.head(a, "")
	h.w.Write(a.Body)
}
