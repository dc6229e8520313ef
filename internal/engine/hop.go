package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"retrylab/caller"
	"retrylab/caller/policy"
	"retrylab/internal/lab"
	"retrylab/scenarios"
)

// maxForward bounds the request that a hop passes on, and maxAnswer the answer, in bytes.
const (
	maxForward = 64 << 10
	maxAnswer  = 8 << 20
)

// hop is a machine between caller and server: it receives a request and sends it on through layers
// of its own.
type hop struct {
	spec   scenarios.Hop
	chain  *caller.Chain
	life   context.Context
	record func(lab.Event)
}

// ServeHTTP passes a request on and its answer back.
func (h *hop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == lab.HealthPath {
		fmt.Fprintln(w, "ok")
		return
	}
	e := lab.Event{Operation: r.Header.Get(lab.HeaderOperation), Send: r.Header.Get(lab.HeaderSend), Node: h.spec.Name}
	content, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxForward))
	h.note(e, lab.Arrival, 0)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		h.problem(w, e, http.StatusRequestEntityTooLarge, err.Error())
		return
	case err != nil:
		panic(http.ErrAbortHandler) // the sender broke off; there is nobody to answer
	}
	trip := caller.Trip{Operation: e.Operation, Path: e.Send, Body: policy.Buffered}
	if len(content) == 0 {
		trip.Body, content = policy.NoBody, []byte(r.URL.RawQuery)
	}
	keys := r.Header.Values(lab.HeaderKey)
	if h.spec.StripKey {
		keys = nil
	}
	// A service goes on with a request whose client has left; nginx gives it up.
	ctx := h.life
	if h.spec.Kind == "nginx" {
		ctx = r.Context()
		trip.Gone = func() bool { return r.Context().Err() != nil }
	}
	resp, err := h.chain.Forward(ctx, trip, r.Method, content, keys)
	if err != nil {
		h.refuse(w, r, e, err)
		return
	}
	defer resp.Body.Close()
	body := io.Reader(resp.Body)
	if h.spec.Kind != "nginx" {
		// A service has its answer when it has read it; a proxy passes on what comes as it comes.
		whole, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		if err != nil {
			h.refuse(w, r, e, err)
			return
		}
		body = bytes.NewReader(whole)
	}
	if r.Context().Err() != nil {
		h.note(e, lab.ClientGone, resp.StatusCode)
		return
	}
	for _, name := range []string{"Content-Type", "Retry-After", lab.HeaderReplayed} {
		if v := resp.Header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	h.note(e, lab.Answer, resp.StatusCode)
	w.WriteHeader(resp.StatusCode)
	if err := passOn(w, body); err != nil {
		if r.Context().Err() != nil {
			h.note(e, lab.ClientGone, 0)
		}
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

// refuse answers for a server that did not.
func (h *hop) refuse(w http.ResponseWriter, r *http.Request, e lab.Event, err error) {
	status, title := http.StatusBadGateway, err.Error()
	var failed *caller.Error
	if errors.As(err, &failed) {
		switch failed.Failure {
		case policy.ReadTimeout, policy.AttemptTimeout, policy.TotalTimeout, policy.ConnectTimeout:
			status = http.StatusGatewayTimeout
		}
	}
	if r.Context().Err() != nil {
		h.note(e, lab.ClientGone, status)
		return
	}
	h.problem(w, e, status, title)
}

// problem answers in the hop's own name.
func (h *hop) problem(w http.ResponseWriter, e lab.Event, status int, title string) {
	h.note(e, lab.Answer, status)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(lab.Problem{Type: lab.ProblemUpstream, Title: title, Status: status})
}

func (h *hop) note(e lab.Event, kind lab.Kind, status int) {
	e.Kind, e.Status = kind, status
	h.record(e)
}
