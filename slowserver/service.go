// Package slowserver is the receiving side: a deliberately slow order service over a real
// net/http server. It receives, asks its guard, works, commits and answers, and can be given
// faults at every step. It knows nothing of scenarios, expectations or callers; it meets a caller
// only over HTTP.
package slowserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"retrylab/internal/lab"
	"retrylab/internal/vtime"
	"retrylab/slowserver/fault"
	"retrylab/slowserver/guard"
	"retrylab/slowserver/store"
)

// maxBody bounds the body of an order, in bytes; maxKey bounds an idempotency key.
const (
	maxBody = 64 << 10
	maxKey  = 255
)

// Config says how a service behaves. Processing, Guard and Faults are as a scenario gives them.
type Config struct {
	Processing time.Duration // scenario time between the guard and the commit
	Guard      guard.Settings
	Faults     []fault.Settings
	// CancelWhenGone gives work up when its client leaves. The default goes on, as services do
	// that do not look at the request's context.
	CancelWhenGone bool
	// OwnKeys makes the service give each arrival a key of its own, as one does that makes the
	// key itself when the client should have: it protects nothing.
	OwnKeys bool

	Clock  *vtime.Clock
	Store  store.Store
	Record func(lab.Event)
	// Pause is a moment derived from id that keeps requests which one event wakes from acting in
	// one instant.
	Pause func(ctx context.Context, id string) error
}

// Service is one order service of any number of replicas over one store.
type Service struct {
	config Config
	guard  guard.Guard
	life   context.Context

	mu       sync.Mutex
	arrivals int   // over all replicas
	fired    []int // per fault
	inside   int   // requests in processing
	overlap  int   // most of them at one instant
}

// New returns a service whose work goes on until life ends, whatever its clients do.
func New(life context.Context, c Config) (*Service, error) {
	g, ok := guard.Find(c.Guard.Kind)
	if !ok {
		return nil, fmt.Errorf("unknown guard %q", c.Guard.Kind)
	}
	return &Service{config: c, guard: g, life: life, fired: make([]int, len(c.Faults))}, nil
}

// Fired returns how often each fault of the configuration has fired.
func (s *Service) Fired() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]int(nil), s.fired...)
}

// Overlap returns the largest number of requests that were in processing at one instant.
func (s *Service) Overlap() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.overlap
}

// Fire records that fault i fired at node for a request; the network plays faults at connect and
// reports them here.
func (s *Service) Fire(i int, node, operation, send string) {
	s.mu.Lock()
	s.fired[i]++
	s.mu.Unlock()
	s.config.Record(lab.Event{Kind: lab.Fault, Operation: operation, Send: send, Node: node, Detail: s.config.Faults[i].Name()})
}

// Replica returns the handler of the replica called node, the n-th from 1.
func (s *Service) Replica(node string, n int) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+lab.HealthPath, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc(lab.OrderPath, func(w http.ResponseWriter, r *http.Request) {
		h := handling{service: s, node: node, replica: n, w: w, r: r}
		h.handle()
	})
	return mux
}

// handling is one request on its way through the service.
type handling struct {
	service *Service
	node    string
	replica int
	arrival int
	w       http.ResponseWriter
	r       *http.Request

	body  []byte
	order lab.OrderRequest
	key   string
	pass  guard.Pass
	work  context.Context // ends when the work must be given up
}

// errEnded says that the client broke its request off: there is nobody to answer.
var errEnded = errors.New("the request has ended")

func (h *handling) handle() {
	s := h.service
	switch err := h.receive(); {
	case errors.Is(err, errEnded):
		return
	case err != nil:
		h.refuse(refusal(err), lab.ProblemInvalid, err)
		return
	}
	h.work = s.life
	if s.config.CancelWhenGone {
		h.work = h.r.Context()
	}
	answer, err := h.process()
	if err == nil {
		answer, err = h.strike(fault.InReply, answer)
	}
	switch {
	case errors.Is(err, fault.ErrEnded):
	case s.life.Err() != nil:
		h.drop(false) // the lab has ended; who is still there is not to be told anything
	case errors.Is(err, guard.ErrGone), err != nil && h.work.Err() != nil:
		h.record(lab.Event{Kind: lab.ClientGone})
		h.drop(false)
	case err != nil:
		h.refuse(http.StatusInternalServerError, lab.ProblemStore, err)
	default:
		h.answer(answer)
	}
}

// refusal is the status for a request that is no order.
func refusal(err error) int {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadRequest
}

// receive reads the request and records its arrival. The body is read to its end: net/http
// notices that a client has left only after that. A client that leaves before has sent no order.
func (h *handling) receive() error {
	s := h.service
	body, err := io.ReadAll(http.MaxBytesReader(h.w, h.r.Body, maxBody))
	s.mu.Lock()
	s.arrivals++
	h.arrival = s.arrivals
	s.mu.Unlock()
	h.body = body
	h.record(lab.Event{Kind: lab.Arrival, Key: h.r.Header.Get(lab.HeaderKey)})
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		h.record(lab.Event{Kind: lab.ClientGone})
		h.drop(false)
		return errEnded
	case err != nil:
		return fmt.Errorf("read the body: %w", err)
	}
	if len(body) == 0 {
		q := h.r.URL.Query()
		amount, _ := strconv.ParseInt(q.Get("amount_minor"), 10, 64)
		h.order = lab.OrderRequest{Item: q.Get("item"), Amount: amount}
		h.body = []byte(h.r.URL.RawQuery)
	} else if err := json.Unmarshal(body, &h.order); err != nil {
		return fmt.Errorf("the body is not an order: %w", err)
	}
	if h.order.Item == "" || h.order.Amount <= 0 {
		return errors.New("an order needs an item and an amount_minor above 0")
	}
	h.key = h.findKey()
	if len(h.key) > maxKey {
		return fmt.Errorf("an Idempotency-Key has at most %d bytes", maxKey)
	}
	return nil
}

// findKey returns the key that the request is known by.
func (h *handling) findKey() string {
	if h.service.config.OwnKeys {
		return "own-" + strconv.Itoa(h.arrival)
	}
	keys := h.r.Header.Values(lab.HeaderKey)
	switch {
	case len(keys) == 0:
		return ""
	case h.service.config.Guard.KeyValue == "last":
		return keys[len(keys)-1]
	}
	return keys[0]
}

// process takes the request from the guard to the commit and returns its answer.
func (h *handling) process() (_ guard.Answer, err error) {
	s := h.service
	defer func() {
		if e := h.giveUp("given up"); e != nil {
			err = errors.Join(err, e)
		}
	}()
	if a, err := h.strike(fault.BeforeGuard, guard.Answer{}); err != nil {
		return a, err
	}
	if h.key != "" {
		pass, err := s.guard.Admit(h.work, h.desk(), guard.Request{
			Send: h.path(), Key: h.key, Hash: h.fingerprint(), Gone: h.r.Context(),
		})
		if err != nil {
			return guard.Answer{}, err
		}
		if pass.Answer != nil {
			return *pass.Answer, nil
		}
		h.pass = pass
	}
	if a, err := h.strike(fault.AfterClaim, guard.Answer{}); err != nil {
		return a, err
	}
	if err := h.doWork(); err != nil {
		return guard.Answer{}, err
	}
	if a, err := h.strike(fault.BeforeCommit, guard.Answer{}); err != nil {
		return a, err
	}
	answer, committed, err := h.commit()
	if err != nil || !committed {
		return answer, err
	}
	return h.strike(fault.AfterCommit, answer)
}

// giveUp rolls the guard's transaction back, if it is still open: a fault, an error or the client's
// leaving has ended the request in the middle of it.
func (h *handling) giveUp(why string) error {
	tx := h.pass.Tx
	if tx == nil {
		return nil
	}
	h.pass.Tx = nil
	if err := tx.Rollback(); err != nil {
		return err
	}
	h.record(lab.Event{Kind: lab.Rollback, Key: h.key, Detail: why})
	return nil
}

// doWork is the slow part of the work.
func (h *handling) doWork() error {
	s := h.service
	h.record(lab.Event{Kind: lab.Work})
	s.mu.Lock()
	s.inside++
	s.overlap = max(s.overlap, s.inside)
	s.mu.Unlock()
	err := s.config.Clock.Sleep(h.work, s.config.Processing)
	s.mu.Lock()
	s.inside--
	s.mu.Unlock()
	return err
}

// commit writes the order. It reports false, with the answer to give, when the guard found a
// duplicate in the order's transaction.
func (h *handling) commit() (guard.Answer, bool, error) {
	s := h.service
	ctx, tx := h.work, h.pass.Tx
	if tx == nil {
		var err error
		if tx, err = s.config.Store.Begin(ctx, h.path(), store.TxOptions{}); err != nil {
			return guard.Answer{}, false, err
		}
		defer tx.Rollback() // after a commit this does nothing
	}
	if h.pass.Claim != nil {
		dup, err := h.pass.Claim(ctx, tx)
		if err != nil {
			return guard.Answer{}, false, err
		}
		if dup != nil {
			h.record(lab.Event{Kind: lab.Rollback, Key: h.key, Detail: "duplicate"})
			return *dup, false, nil
		}
	}
	id, err := tx.Order(ctx, store.Order{
		Operation: h.operation(), Send: h.path(), Node: h.node, Key: h.key,
		Amount: h.order.Amount, Created: s.config.Clock.Now(),
	})
	if err != nil {
		return guard.Answer{}, false, err
	}
	body, err := json.Marshal(lab.OrderReply{Order: id, Status: "created"})
	if err != nil {
		return guard.Answer{}, false, err
	}
	answer := guard.Answer{Status: http.StatusCreated, Body: append(body, '\n')}
	if h.pass.Finish != nil {
		if err := h.pass.Finish(ctx, tx, answer); err != nil {
			return guard.Answer{}, false, err
		}
	}
	h.pass.Tx = nil // Commit ends it, whatever it returns
	if err := tx.Commit(); err != nil {
		return guard.Answer{}, false, err
	}
	h.record(lab.Event{Kind: lab.Commit, Key: h.key, Order: id})
	h.work = s.life // what is done cannot be given up any more
	return answer, true, nil
}

// strike plays the faults of a place. It returns [fault.ErrEnded] when one of them has ended the request.
func (h *handling) strike(at fault.Place, answer guard.Answer) (guard.Answer, error) {
	s := h.service
	for i, f := range s.config.Faults {
		if f.At != at || !f.Strikes(h.arrival, h.replica) {
			continue
		}
		kind, ok := fault.Find(f.Do)
		if !ok || kind.Strike == nil {
			return answer, fmt.Errorf("the fault %s cannot be played", f.Name())
		}
		s.Fire(i, h.node, h.operation(), h.path())
		if err := kind.Strike(&stricken{handling: h, at: at, answer: answer}, f); err != nil {
			return answer, err
		}
	}
	return answer, nil
}

// stricken is a request as a fault acts on it.
type stricken struct {
	*handling
	at     fault.Place
	answer guard.Answer // what it would be answered
}

// Sleep holds the request up.
func (s *stricken) Sleep(d time.Duration) error { return s.service.config.Clock.Sleep(s.work, d) }

// Drop ends the connection without an answer.
func (s *stricken) Drop(reset bool) { s.drop(reset) }

// Refuse answers with a status of the fault's own.
func (s *stricken) Refuse(status int, retryAfter, title string) error {
	a := problem(status, lab.ProblemInjected, title)
	if s.at == fault.AfterClaim || s.at == fault.BeforeCommit {
		if err := s.failed(a); err != nil {
			return err
		}
	}
	s.answerWith(a, retryAfter)
	return nil
}

// Hold keeps the connection open and silent until the client has left.
func (s *stricken) Hold() {
	select {
	case <-s.r.Context().Done():
		s.record(lab.Event{Kind: lab.ClientGone})
	case <-s.service.life.Done():
	}
	s.drop(false)
}

// failed tells the guard that the request ends with an error of the service's own. The
// transaction goes first: the guard may need the lock that it holds.
func (h *handling) failed(a guard.Answer) error {
	if err := h.giveUp("failed"); err != nil {
		return err
	}
	if h.pass.Failed == nil {
		return nil
	}
	return h.pass.Failed(h.service.life, a)
}

func problem(status int, kind, title string) guard.Answer {
	body, _ := json.Marshal(lab.Problem{Type: kind, Title: title, Status: status})
	return guard.Answer{Status: status, Body: append(body, '\n')}
}

func (h *handling) refuse(status int, kind string, err error) {
	h.answer(problem(status, kind, err.Error()))
}

func (h *handling) answer(a guard.Answer) {
	retryAfter := ""
	if a.RetryAfter > 0 {
		retryAfter = strconv.FormatInt(int64(a.RetryAfter/time.Second), 10)
	}
	h.answerWith(a, retryAfter)
}

// answerWith writes the answer, unless net/http has already found that the client left: an answer
// is counted once, by the event that carries its status.
func (h *handling) answerWith(a guard.Answer, retryAfter string) {
	if h.r.Context().Err() != nil {
		h.record(lab.Event{Kind: lab.ClientGone, Status: a.Status})
		return
	}
	h.head(a, retryAfter)
	if _, err := h.w.Write(a.Body); err != nil {
		h.record(lab.Event{Kind: lab.ClientGone})
	}
}

func (h *handling) head(a guard.Answer, retryAfter string) {
	header := h.w.Header()
	header.Set("Content-Type", "application/json")
	if a.Status >= 400 {
		header.Set("Content-Type", "application/problem+json")
	}
	if a.Replayed {
		header.Set(lab.HeaderReplayed, "true")
	}
	if retryAfter != "" {
		header.Set("Retry-After", retryAfter)
	}
	h.record(lab.Event{Kind: lab.Answer, Status: a.Status})
	h.w.WriteHeader(a.Status)
}

// Dribble writes the answer, padded with white space, in chunks with silence before each. Chunks
// too small for the answer grow: their number, and with it the time it takes, is what was asked for.
func (s *stricken) Dribble(chunks, size int, pause time.Duration) {
	body := bytes.TrimSpace(s.answer.Body)
	size = max(size, (len(body)+chunks-1)/chunks)
	body = slices.Concat(body, bytes.Repeat([]byte{' '}, chunks*size-len(body)))
	s.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	s.head(s.answer, "")
	control := http.NewResponseController(s.w)
	err := control.Flush()
	for err == nil && len(body) > 0 {
		if err = s.service.config.Clock.Sleep(s.r.Context(), pause); err != nil {
			break
		}
		_, err = s.w.Write(body[:size])
		err = errors.Join(err, control.Flush())
		body = body[size:]
	}
	if err != nil {
		s.record(lab.Event{Kind: lab.ClientGone})
		return
	}
	s.record(lab.Event{Kind: lab.Answered, Status: s.answer.Status})
}

// drop closes the connection without an answer, with a reset if asked.
func (h *handling) drop(reset bool) {
	conn, _, err := http.NewResponseController(h.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // closes it too; to return would be to answer 200
	}
	if l, ok := conn.(interface{ SetLinger(sec int) error }); ok && reset {
		l.SetLinger(0)
	}
	conn.Close()
}

func (h *handling) desk() guard.Desk {
	s := h.service
	return guard.Desk{
		Settings: s.config.Guard,
		Store:    s.config.Store,
		Now:      s.config.Clock.Now,
		Record: func(kind lab.Kind, detail string) {
			h.record(lab.Event{Kind: kind, Key: h.key, Detail: detail})
		},
		Pause: func(ctx context.Context) error { return s.config.Pause(ctx, h.path()) },
	}
}

// fingerprint is what the guard compares the bodies of one key by.
func (h *handling) fingerprint() string {
	body := h.body
	switch h.service.config.Guard.Fingerprint {
	case "none":
		return ""
	case "canonical":
		var compact bytes.Buffer
		if json.Compact(&compact, body) == nil {
			body = compact.Bytes()
		}
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:8])
}

func (h *handling) operation() string { return h.r.Header.Get(lab.HeaderOperation) }

// path names the request: the path of tries that sent it, or for a foreign client its number.
func (h *handling) path() string {
	if p := h.r.Header.Get(lab.HeaderSend); p != "" {
		return p
	}
	return "arrival-" + strconv.Itoa(h.arrival)
}

func (h *handling) record(e lab.Event) {
	e.Operation, e.Send, e.Node = h.operation(), h.path(), h.node
	h.service.config.Record(e)
}
