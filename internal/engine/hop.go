package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"retrylab/caller"
	"retrylab/caller/policy"
	"retrylab/internal/lab"
	"retrylab/internal/vtime"
	"retrylab/scenarios"
)

// maxForward bounds the request that a hop passes on, and maxAnswer the answer, in bytes.
const (
	maxForward = 64 << 10
	maxAnswer  = 8 << 20
)

// hop is a machine between caller and server: it receives a request, does work of its own, and
// sends the request on through layers of its own.
type hop struct {
	spec   scenarios.Hop
	kind   scenarios.HopKind
	chain  *caller.Chain
	clock  *vtime.Clock
	life   context.Context
	record func(lab.Event)
}

// ServeHTTP passes a request on and its answer back.
func (h *hop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == lab.HealthPath {
		fmt.Fprintln(w, "ok")
		return
	}
	p := &passage{hop: h, w: w, r: r, ctx: h.life}
	content, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxForward))
	p.note(lab.Arrival, 0, "")
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		p.problem(http.StatusRequestEntityTooLarge, lab.ProblemInvalid, err.Error())
		return
	case err != nil:
		panic(http.ErrAbortHandler) // the sender broke off; there is nobody to answer
	}
	if h.spec.OnClientGone == "cancel" {
		p.ctx = r.Context()
	}
	p.limit()
	p.pass(content)
}

// passage is one request on its way through a hop.
type passage struct {
	*hop
	w     http.ResponseWriter
	r     *http.Request
	ctx   context.Context // ends when the hop gives the request up
	until time.Duration   // scenario time at which the deadline is over that came with it; 0 for none
}

// errSpent says that a deadline leaves too little time to send anything on.
var errSpent = errors.New("too little of the deadline is left")

// limit takes up the deadline that came with the request, where the hop keeps it.
func (p *passage) limit() {
	given, ok := lab.ParseDeadline(p.r.Header.Get(lab.HeaderDeadline))
	if !ok || p.spec.Deadline != "pass" {
		return
	}
	if most := p.spec.MaxDeadline; most > 0 {
		given = min(given, most)
	}
	p.until = p.clock.Now() + given
}

// left is what is left of the deadline. It reports false where there is none.
func (p *passage) left() (time.Duration, bool) { return p.until - p.clock.Now(), p.until > 0 }

// pass does the work of the hop around what it sends on, and answers.
func (p *passage) pass(content []byte) {
	resp, err := p.forward(content)
	if err != nil {
		p.refuse(err)
		return
	}
	defer resp.Body.Close()
	body := io.Reader(resp.Body)
	if !p.kind.Streams {
		whole, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		if err != nil {
			p.refuse(err)
			return
		}
		body = bytes.NewReader(whole)
	}
	if err := p.work(p.spec.WorkAfter); err != nil {
		p.refuse(err)
		return
	}
	p.answer(resp, body)
}

// forward does the work before and sends the request on.
func (p *passage) forward(content []byte) (*http.Response, error) {
	if err := p.work(p.spec.WorkBefore); err != nil {
		return nil, err
	}
	trip := caller.Trip{
		Operation: p.r.Header.Get(lab.HeaderOperation), Tenant: p.r.Header.Get(lab.HeaderTenant),
		Path: p.r.Header.Get(lab.HeaderSend), Body: policy.Buffered, To: p.r.URL.Path,
	}
	if left, bounded := p.left(); bounded {
		if left <= *p.spec.MinRemaining {
			p.note(lab.Timeout, 0, lab.StageDeadline)
			return nil, errSpent
		}
		trip.Within = left
	}
	if p.spec.Deadline == "forward" {
		trip.Deadline = p.r.Header.Get(lab.HeaderDeadline)
	}
	if p.spec.OnClientGone == "cancel" {
		trip.Gone = func() bool { return p.r.Context().Err() != nil }
	}
	method := p.r.Method
	if p.spec.Method != "" {
		method = p.spec.Method
	}
	trip.Body, content = rewrite(method, p.r.URL.Query(), content)
	keys := p.r.Header.Values(lab.HeaderKey)
	if p.spec.StripKey {
		keys = nil
	}
	return p.chain.Forward(p.ctx, trip, method, content, keys)
}

// rewrite gives an order the form that goes with a method: one that came without a body gets one
// where the method has one, and the other way round. An order that goes on as it came is not read.
func rewrite(method string, query url.Values, body []byte) (policy.Body, []byte) {
	switch carries := scenarios.HasBody(method); {
	case len(body) == 0 && carries:
		amount, _ := strconv.ParseInt(query.Get("amount_minor"), 10, 64)
		body, _ = json.Marshal(lab.OrderRequest{Item: query.Get("item"), Amount: amount})
		return policy.Buffered, body
	case len(body) == 0:
		return policy.NoBody, []byte(query.Encode())
	case !carries && method != http.MethodDelete:
		var order lab.OrderRequest
		if json.Unmarshal(body, &order) != nil {
			return policy.NoBody, nil
		}
		query = url.Values{"item": {order.Item}, "amount_minor": {strconv.FormatInt(order.Amount, 10)}}
		return policy.NoBody, []byte(query.Encode())
	}
	return policy.Buffered, body
}

// work is the hop's own. The deadline that the hop keeps ends it.
func (p *passage) work(d time.Duration) error {
	left, bounded := p.left()
	if !bounded || d <= left {
		return p.clock.Sleep(p.ctx, d)
	}
	if err := p.clock.Sleep(p.ctx, left); err != nil {
		return err
	}
	p.note(lab.Timeout, 0, lab.StageDeadline)
	return errSpent
}

// answer passes on what came back.
func (p *passage) answer(resp *http.Response, body io.Reader) {
	if p.gone(resp.StatusCode) {
		return
	}
	for _, name := range []string{"Content-Type", "Retry-After", "Location", lab.HeaderReplayed} {
		if v := resp.Header.Get(name); v != "" {
			p.w.Header().Set(name, v)
		}
	}
	p.note(lab.Answer, resp.StatusCode, "")
	p.w.WriteHeader(resp.StatusCode)
	if err := passOn(p.w, body); err != nil {
		p.gone(0)
		panic(http.ErrAbortHandler) // half an answer: all that can be done is to break off
	}
}

// passOn copies an answer as it comes, not when it is whole.
func passOn(w http.ResponseWriter, body io.Reader) error {
	control := http.NewResponseController(w)
	buffer := make([]byte, 32<<10)
	for {
		n, err := body.Read(buffer)
		if n > 0 {
			_, e := w.Write(buffer[:n])
			if e = errors.Join(e, control.Flush()); e != nil {
				return e
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// refuse answers for a server that did not, or was not asked.
func (p *passage) refuse(err error) {
	status, kind := p.spec.ErrorStatus, lab.ProblemUpstream
	var failed *caller.Error
	switch {
	case errors.Is(err, errSpent):
		status, kind = p.spec.TimeoutStatus, lab.ProblemDeadline
	case errors.As(err, &failed):
		switch failed.Failure {
		case policy.ReadTimeout, policy.AttemptTimeout, policy.TotalTimeout, policy.ConnectTimeout:
			status = p.spec.TimeoutStatus
		}
	}
	// Whoever has set a deadline leaves when it is over, in the same moment: a look at who is still
	// there would find one or the other.
	left, bounded := p.left()
	if over := bounded && left <= 0; over || !p.gone(status) {
		p.problem(status, kind, err.Error())
	}
}

// gone reports whether nobody waits any more for the answer of that status, and notes it.
func (p *passage) gone(status int) bool {
	if p.r.Context().Err() == nil {
		return false
	}
	p.note(lab.ClientGone, status, "")
	return true
}

// problem answers in the hop's own name.
func (p *passage) problem(status int, kind, title string) {
	p.note(lab.Answer, status, "")
	p.w.Header().Set("Content-Type", "application/problem+json")
	p.w.WriteHeader(status)
	json.NewEncoder(p.w).Encode(lab.Problem{Type: kind, Title: title, Status: status})
}

func (p *passage) note(kind lab.Kind, status int, detail string) {
	p.record(lab.Event{
		Kind: kind, Operation: p.r.Header.Get(lab.HeaderOperation), Send: p.r.Header.Get(lab.HeaderSend), Node: p.spec.Name,
		Status: status, Detail: detail,
	})
}
