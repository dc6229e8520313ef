package slowserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"retrylab/internal/lab"
	"retrylab/slowserver/store"
)

// The paths of what people at a terminal ask beside placing an order.
const (
	statsPath   = "/stats"
	releasePath = "/release"
)

// The paths of the questions what became of an order.
const (
	resultPath    = lab.ResultPath + "{key}"
	referencePath = lab.ReferencePath + "{reference}"
)

// Endpoints is [Service.Replica] with endpoints for people: what there is by now, and the end of
// every wait. What it does not know it refuses with a problem. Info says which
// store this is.
func (s *Service) Endpoints(node string, n int, info lab.Store) http.Handler {
	replica := s.Replica(node, n)
	p := public{service: s, node: node, info: info}
	mux := http.NewServeMux()
	mux.Handle(lab.OrderPath, replica)
	for _, e := range []struct {
		method, path string
		handler      http.Handler
	}{
		{http.MethodGet, lab.HealthPath, replica},
		{http.MethodGet, resultPath, replica},
		{http.MethodGet, referencePath, replica},
		{http.MethodGet, statsPath, http.HandlerFunc(p.stats)},
		{http.MethodPost, releasePath, http.HandlerFunc(p.release)},
	} {
		mux.Handle(e.method+" "+e.path, e.handler)
		mux.HandleFunc(e.path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", e.method)
			writeProblem(w, http.StatusMethodNotAllowed, lab.ProblemInvalid, fmt.Sprintf("%s is asked with %s, not %s", r.URL.Path, e.method, r.Method))
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, http.StatusNotFound, lab.ProblemInvalid, "there is nothing at "+r.URL.Path+"; there are POST /orders, GET /results/KEY, GET /references/NUMBER, GET /stats, POST /release and GET /healthz")
	})
	return mux
}

// public answers people.
type public struct {
	service *Service
	node    string
	info    lab.Store
}

// result answers what became of a key: the record that a guard keeps of it.
func (s *Service) result(w http.ResponseWriter, r *http.Request) {
	key := r.PathValue("key")
	if len(key) > maxKey {
		writeProblem(w, http.StatusBadRequest, lab.ProblemInvalid, fmt.Sprintf("an Idempotency-Key has at most %d bytes", maxKey))
		return
	}
	record, found, err := s.config.Store.Read(r.Context(), key)
	switch {
	case err != nil:
		writeProblem(w, http.StatusInternalServerError, lab.ProblemStore, err.Error())
	case !found:
		writeProblem(w, http.StatusNotFound, lab.ProblemUnknownKey, "nothing is known of this key, which does not mean that nothing has happened")
	default:
		out := lab.ResultReply{Key: key, Status: record.Status.String(), Code: record.Code}
		if json.Valid(record.Body) {
			out.Answer = record.Body
		}
		writeJSON(w, out)
	}
}

// reference answers how many orders an intent has, by its business number. Of an order that is not
// committed nothing shows.
func (s *Service) reference(w http.ResponseWriter, r *http.Request) {
	reference := r.PathValue("reference")
	n, err := s.config.Store.Count(r.Context(), reference)
	switch {
	case err != nil:
		writeProblem(w, http.StatusInternalServerError, lab.ProblemStore, err.Error())
	case n == 0:
		writeProblem(w, http.StatusNotFound, lab.ProblemUnknownKey, "there is no order with this reference, which does not mean that there will be none")
	default:
		writeJSON(w, lab.ResultReply{Reference: reference, Status: store.Done.String(), Orders: n})
	}
}

// stats is what there is by now. Orders are counted by SQL: those of every replica on the database.
type stats struct {
	Replica    string      `json:"replica"`
	Arrivals   int         `json:"arrivals"`   // at this replica, since it started
	Processing int         `json:"processing"` // at this replica, now
	Orders     int         `json:"orders"`
	Duplicates []duplicate `json:"duplicates"` // keys with more than one order
	Store      lab.Store   `json:"store"`
}

type duplicate struct {
	Key    string `json:"key"`
	Orders int    `json:"orders"`
}

func (p public) stats(w http.ResponseWriter, r *http.Request) {
	effects, err := p.service.config.Store.Effects(r.Context())
	if err != nil {
		writeProblem(w, http.StatusInternalServerError, lab.ProblemStore, err.Error())
		return
	}
	out := stats{Replica: p.node, Orders: len(effects), Duplicates: []duplicate{}, Store: p.info}
	out.Arrivals, out.Processing = p.service.tally.now()
	perKey := map[string]int{}
	for _, e := range effects {
		perKey[e.Key]++
	}
	for _, e := range effects { // in the order of their first orders
		if n := perKey[e.Key]; n > 1 && e.Key != "" {
			out.Duplicates = append(out.Duplicates, duplicate{e.Key, n})
		}
		delete(perKey, e.Key)
	}
	writeJSON(w, out)
}

func (p public) release(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, struct {
		Released int `json:"released"`
	}{p.service.held.release()})
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v) // whoever asked may be gone
}

func writeProblem(w http.ResponseWriter, status int, kind, title string) {
	a := problem(status, kind, title)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(a.Status)
	w.Write(a.Body)
}

// errReleased is why a wait is over before its time.
var errReleased = errors.New("released")

// held is what people can let go: every request that is in its work or held up by a fault.
type held struct {
	mu      sync.Mutex
	waiting map[context.Context]context.CancelCauseFunc
}

// wait is a wait of a request for d of scenario time, or until it is released.
func (s *Service) wait(ctx context.Context, d time.Duration) error {
	if s.held == nil {
		return s.config.Clock.Sleep(ctx, d)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.held.mu.Lock()
	s.held.waiting[ctx] = cancel
	s.held.mu.Unlock()
	defer func() {
		s.held.mu.Lock()
		defer s.held.mu.Unlock()
		delete(s.held.waiting, ctx)
	}()
	err := s.config.Clock.Sleep(ctx, d)
	if errors.Is(err, errReleased) {
		return nil
	}
	return err
}

// release ends every wait that goes on, and returns how many there were.
func (h *held) release() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.waiting)
	for ctx, cancel := range h.waiting {
		cancel(errReleased)
		delete(h.waiting, ctx)
	}
	return n
}
