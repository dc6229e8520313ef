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
	"sync/atomic"
	"time"

	"retrylab/caller"
	"retrylab/caller/policy"
	"retrylab/internal/lab"
	"retrylab/internal/vtime"
	"retrylab/scenarios"
	"retrylab/slowserver"
	"retrylab/slowserver/fault"
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
	seed   int64

	arrivals atomic.Int64
	fired    []atomic.Int64 // by fault
}

// ServeHTTP passes a request on and its answer back.
func (h *hop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == lab.HealthPath {
		fmt.Fprintln(w, "ok")
		return
	}
	p := &passage{hop: h, w: w, r: r, ctx: h.life}
	content, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxForward))
	p.arrival = int(h.arrivals.Add(1))
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
	w       http.ResponseWriter
	r       *http.Request
	arrival int             // its number, from 1
	ctx     context.Context // ends when the hop gives the request up
	until   time.Duration   // scenario time at which the deadline is over that came with it; 0 for none
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
	if err := p.strike(fault.AfterAnswer); err != nil {
		p.refuse(err)
		return
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
	if err := p.strike(fault.BeforeSend); err != nil {
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
	return p.chain.Forward(p.ctx, trip, method, content, p.keys)
}

// keys are the keys of a send of the hop, by its path.
func (p *passage) keys(path string) []string {
	own := func(of string) []string { return []string{caller.MakeKey(p.seed, p.spec.Name+" "+of)} }
	switch p.spec.Key {
	case scenarios.KeyNone:
		return nil
	case scenarios.KeyRequest:
		return own(p.r.Header.Get(lab.HeaderSend))
	case scenarios.KeyAttempt:
		return own(path)
	}
	return p.r.Header.Values(lab.HeaderKey)
}

// strike plays the faults of a place. It returns [fault.ErrEnded] when one of them has ended the
// request.
func (p *passage) strike(at fault.Place) error {
	for i, f := range p.spec.Faults {
		s := f.Settings()
		if s.At != at || !s.Strikes(fault.Arrival{Number: p.arrival, Replica: 1, At: p.clock.Now()}) {
			continue
		}
		kind, _ := fault.Find(s.Do)
		p.fired[i].Add(1)
		p.note(lab.Fault, 0, s.Name())
		if err := kind.Strike(stricken{passage: p}, s); err != nil {
			return err
		}
	}
	return nil
}

// stricken is a request as a fault of the hop acts on it. What a hop's faults do not do is left to
// the server's.
type stricken struct {
	fault.Request
	*passage
}

// Sleep holds the request up, no longer than the deadline that the hop keeps.
func (s stricken) Sleep(d time.Duration) error { return s.work(d) }

// Drop ends the connection without an answer.
func (s stricken) Drop(reset bool) { slowserver.Drop(s.w, reset) }

// Refuse answers with a status of the fault's own.
func (s stricken) Refuse(status int, retryAfter, title string) error {
	if s.gone(status) {
		return nil
	}
	if retryAfter != "" {
		s.w.Header().Set("Retry-After", fault.RetryAfterAt(retryAfter, s.clock.Date()))
	}
	s.problem(status, lab.ProblemInjected, title)
	return nil
}

// Hold keeps the connection open and silent until the client has left.
func (s stricken) Hold() {
	select {
	case <-s.r.Context().Done():
		s.note(lab.ClientGone, 0, "")
	case <-s.life.Done():
	}
	s.Drop(false)
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

// refuse answers for a server that did not, or was not asked, unless a fault has ended the request.
func (p *passage) refuse(err error) {
	if errors.Is(err, fault.ErrEnded) {
		return
	}
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
