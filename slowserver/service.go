// Package slowserver is the receiving side: a deliberately slow order service over a real
// net/http server. It receives, asks its guard, works, commits and answers, and can be given
// faults at every step. It knows nothing of scenarios, expectations or callers; it meets a caller
// only over HTTP.
package slowserver

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"retrylab/internal/lab"
	"retrylab/internal/vtime"
	"retrylab/slowserver/capacity"
	"retrylab/slowserver/change"
	"retrylab/slowserver/fault"
	"retrylab/slowserver/guard"
	"retrylab/slowserver/ledger"
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
	// Spread comes on top of Processing where each request takes another time.
	Spread capacity.Spread
	Seed   int64              // what is drawn depends on it, and on the request
	Pool   capacity.Pool      // of each replica; the zero value works on all requests at once
	Limit  capacity.RateLimit // over all replicas; the zero value lets all in
	Guard  guard.Settings
	Faults []fault.Settings
	// CancelWhenGone gives work up when its client leaves. The default goes on, as services do
	// that do not look at the request's context.
	CancelWhenGone bool
	// HonourDeadline gives work up, and the order with it, when the time is over that the client has
	// given. The default looks at no deadline.
	HonourDeadline bool
	// ReadOnly answers reads: the work is done, and no order written. It has no guard.
	ReadOnly bool
	// AnswerAccepted answers 202 as soon as the guard has let a request through, and works afterwards,
	// whoever waits. A crash of the replica loses what it has accepted.
	AnswerAccepted bool
	// OwnKeys makes the service give each arrival a key of its own, as one does that makes the
	// key itself when the client should have: it protects nothing.
	OwnKeys bool
	// Rows are the rows that orders share, which each order's transaction changes in this order,
	// with RowTime of work between one and the next. AlternateRows has every second arrival
	// change them the other way round.
	Rows          []string
	RowTime       time.Duration
	AlternateRows bool
	// Change is what a request does with a row that all share. An order is written where it has changed it.
	Change change.Settings
	// OrderOutside writes the order in a statement of its own, as code does that calls the pool
	// where it should call the transaction. It cannot be where the guard holds a transaction
	// during the work: the two would wait for each other.
	OrderOutside bool
	// Ledgers are what the service writes beside the order.
	Ledgers []ledger.Settings
	// TransactionRetries is how often a transaction that the database has refused is done again,
	// from its beginning.
	TransactionRetries int
	// OnUnknownCommit is what follows a commit whose outcome is not known: fail (the default),
	// retry, ask or commit-again.
	OnUnknownCommit string

	Clock  *vtime.Clock
	Store  store.Store
	Keys   store.Keys // beside the store, for what needs it; else nil
	Record func(lab.Event)
	// Pause is a moment derived from id that keeps requests which one event wakes from acting in
	// one instant.
	Pause func(ctx context.Context, id string) error
	// Crash takes the process of a replica away. Without it there is no fault crash.
	Crash func(Crash)

	// Job runs f beside the replicas, as a process of its own that outlives each of them. Without it
	// there is no outbox.
	Job func(f func())

	// Afterwards runs f in the process of the replica, when its request has been answered. Without it
	// nothing is answered before it is done.
	Afterwards func(f func())

	Counts Counts // over all replicas; nil for the service's own
	// Committed is called after each commit, for processes that share the store; nil for nobody.
	Committed func()
	// Releasable makes requests that wait ones that [Service.Endpoints] can let go.
	Releasable bool
	// Conflict is the status of the answer to a key that was used for another request: 422 when 0.
	Conflict int
	// Prefix stands before the number that a foreign client's request is known by. Processes that
	// share a store have one each.
	Prefix string
}

// Service is one order service of any number of replicas over one store.
type Service struct {
	config Config
	guard  guard.Guard
	life   context.Context
	counts Counts
	tally  *Tally // the counts, unless another process keeps them
	held   *held  // nil where nobody can let a request go
	relay  relay
	bucket *capacity.Bucket // nil without a limit
}

// New returns a service whose work goes on until life ends, whatever its clients do.
func New(life context.Context, c Config) (*Service, error) {
	g, ok := guard.Find(c.Guard.Kind)
	if !ok {
		return nil, fmt.Errorf("unknown guard %q", c.Guard.Kind)
	}
	if c.Crash == nil && slices.ContainsFunc(c.Faults, func(f fault.Settings) bool { return f.Do == fault.Crash.Name }) {
		return nil, errors.New("the fault crash needs a host that takes a process away")
	}
	if err := c.check(g); err != nil {
		return nil, err
	}
	s := &Service{config: c, guard: g, life: life, counts: c.Counts, bucket: c.Limit.Open()}
	if s.counts == nil {
		s.tally = &Tally{fired: make([]int, len(c.Faults)), ofEach: map[string]int{}}
		s.counts = s.tally
	}
	if c.Releasable {
		s.held = &held{waiting: map[context.Context]context.CancelCauseFunc{}}
	}
	return s, nil
}

// check finds what the configuration asks for and has not been given.
func (c Config) check(g guard.Guard) error {
	if c.Keys == nil && g.Keys {
		return fmt.Errorf("the guard %s needs a store of keys beside the database", g.Name)
	}
	for _, f := range c.Faults {
		if kind, _ := fault.Find(f.Do); c.Keys == nil && kind.Keys {
			return fmt.Errorf("the fault %s needs a store of keys beside the database", f.Name())
		}
	}
	switch {
	case c.AnswerAccepted && c.Afterwards == nil:
		return errors.New("to work after the answer needs a host that runs that")
	case c.AnswerAccepted && c.Guard.Open():
		return fmt.Errorf("a request cannot be accepted in a transaction that the guard %s holds", g.Name)
	}
	if c.OrderOutside && c.Guard.Open() {
		return fmt.Errorf("the order cannot be written outside the transaction that the guard %s holds", g.Name)
	}
	if err := c.checkLedgers(g); err != nil {
		return err
	}
	if _, ok := c.Store.(store.Asker); !ok && c.OnUnknownCommit == "ask" {
		return fmt.Errorf("ask what became of a commit: %w", store.ErrUnsupported)
	}
	return nil
}

// Tally returns the counts over all replicas, nil where another process keeps them.
func (s *Service) Tally() *Tally { return s.tally }

// Fire records that fault i fired at node for a request; the network plays faults at connect and
// reports them here.
func (s *Service) Fire(i int, node, operation, send string) {
	s.counts.Fire(i)
	s.config.Record(lab.Event{Kind: lab.Fault, Operation: operation, Send: send, Node: node, Detail: s.config.Faults[i].Name()})
}

// Replica starts the replica called node, the n-th from 1, and returns its handler. After a crash
// it is called again.
func (s *Service) Replica(node string, n int) http.Handler {
	life := s.start(node, n)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+lab.HealthPath, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ok")
	})
	for path, answer := range map[string]http.HandlerFunc{resultPath: s.result, referencePath: s.reference} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			if life.isDead() {
				panic(http.ErrAbortHandler) // to return would be to answer
			}
			answer(w, r)
		})
	}
	orders := func(w http.ResponseWriter, r *http.Request) {
		h := handling{service: s, life: life, node: node, replica: n, w: w, r: r}
		h.store = life.connect(&h)
		h.handle()
		if life.isDead() {
			panic(http.ErrAbortHandler) // to return would be to answer
		}
	}
	mux.HandleFunc(lab.OrderPath, orders)
	mux.HandleFunc(lab.MovedPath, orders)
	return mux
}

// handling is one request on its way through the service.
type handling struct {
	service *Service
	life    *incarnation
	store   store.Store
	node    string
	replica int
	arrival int // among all, from 1
	ofEach  int // among those of its operation, from 1
	w       http.ResponseWriter
	r       *http.Request

	body     []byte
	order    lab.OrderRequest
	key      string
	tenant   string          // whose order it is; empty where nobody says
	pass     guard.Pass      // its Tx is the order's transaction while that is open
	work     context.Context // ends when the work must be given up
	until    time.Duration   // scenario time at which the client's deadline is over; 0 for none
	accepted bool            // the guard has let it through, and it is to be answered before the work

	struck []bool // per fault: it has been played on this request

	noKeys  bool          // it cannot reach the store of keys
	row     store.Row     // the shared row as it was read before the work
	state   string        // what the order's transaction has made of it
	same    bool          // it has changed nothing, and there is no order
	worked  bool          // the work is done, and no transaction that fails takes it back
	number  int64         // of the order, where it was written outside the transaction
	entered []store.Entry // in the order's transaction
	durable bool          // the order's transaction is committed
	ticket  string        // what the order's transaction is known by on the server
	cut     store.Cut     // what the connection to the database will suffer
}

// errEnded says that there is nothing left to do for a request: its client broke it off, or it was no
// order and is answered.
var errEnded = errors.New("the request has ended")

func (h *handling) handle() {
	switch err := h.receive(); {
	case errors.Is(err, errEnded):
		return
	case err != nil:
		h.refuse(refusal(err), lab.ProblemInvalid, err)
		return
	}
	if !h.letIn() {
		return
	}
	defer h.limit()()
	var err error
	if !h.service.config.AnswerAccepted { // who only accepts needs no worker
		var leave func()
		leave, err = h.enter()
		defer leave()
	}
	var answer guard.Answer
	if err == nil {
		answer, err = h.process()
	}
	if h.accepted && err == nil {
		defer func() { h.service.config.Afterwards(h.goOn) }()
	}
	if err == nil {
		answer, err = h.strike(fault.InReply, answer)
	}
	switch {
	case errors.Is(err, fault.ErrEnded):
	case h.life.ctx.Err() != nil:
		h.drop(false) // the lab has ended; who is still there is not to be told anything
	case errors.Is(err, errDeadline), err != nil && context.Cause(h.work) == errDeadline:
		h.expire()
	case errors.As(err, new(busyError)):
		h.refuse(http.StatusServiceUnavailable, lab.ProblemBusy, err)
	case errors.Is(err, guard.ErrGone), err != nil && h.work.Err() != nil:
		h.record(lab.Event{Kind: lab.ClientGone})
		h.drop(false)
	case err != nil:
		h.fail(err)
	default:
		h.answer(answer)
	}
}

// goOn does the work on a request that was accepted. Nobody is told what comes of it but the guard.
func (h *handling) goOn() {
	leave, err := h.enter()
	defer leave()
	if err == nil {
		_, err = h.process()
	}
	if err == nil || errors.Is(err, fault.ErrEnded) || h.life.ctx.Err() != nil {
		return
	}
	h.failure(err)
}

// refusal is the status for a request that is no order.
func refusal(err error) int {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return http.StatusRequestEntityTooLarge
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return http.StatusRequestTimeout
	}
	return http.StatusBadRequest
}

// receive reads the request and records its arrival. The body is read to its end: net/http
// notices that a client has left only after that. A client that leaves before has sent no order.
func (h *handling) receive() error {
	s := h.service
	body, err := io.ReadAll(http.MaxBytesReader(h.w, h.r.Body, maxBody))
	h.arrival, h.ofEach = s.counts.Arrive(h.r.Header.Get(lab.HeaderOperation))
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
	if h.r.Method == http.MethodGet && len(body) == 0 && h.r.URL.RawQuery == "" {
		h.list()
		return errEnded
	}
	if len(body) == 0 {
		q := h.r.URL.Query()
		amount, _ := strconv.ParseInt(q.Get("amount_minor"), 10, 64)
		h.order = lab.OrderRequest{Item: q.Get("item"), Amount: amount, Reference: q.Get("reference")}
		h.body = []byte(h.r.URL.RawQuery)
	} else if err := json.Unmarshal(body, &h.order); err != nil {
		return fmt.Errorf("the body is not an order: %w", err)
	}
	if h.order.Item == "" || h.order.Amount <= 0 {
		return errors.New("an order needs an item and an amount_minor above 0")
	}
	h.tenant = h.r.Header.Get(lab.HeaderTenant)
	h.key = h.findKey()
	if len(h.key) > maxKey {
		return fmt.Errorf("a key has at most %d bytes", maxKey)
	}
	return nil
}

// list answers a GET that carries no order: with the numbers of those that there are.
func (h *handling) list() {
	effects, err := h.service.config.Store.Effects(h.life.ctx)
	if err != nil {
		h.refuse(http.StatusInternalServerError, lab.ProblemStore, err)
		return
	}
	list := struct {
		Orders []int64 `json:"orders"`
	}{[]int64{}}
	for _, e := range effects {
		list.Orders = append(list.Orders, e.Order)
	}
	body, _ := json.Marshal(list)
	h.answer(guard.Answer{Status: http.StatusOK, Body: append(body, '\n')})
}

// findKey returns the key that the request is known by, within its scope; "" for none.
func (h *handling) findKey() string {
	config := h.service.config
	key := ""
	switch keys := h.r.Header.Values(lab.HeaderKey); {
	case config.OwnKeys:
		key = "own-" + strconv.Itoa(h.arrival)
	case config.Guard.From() == "content":
		key = "content-" + h.fingerprint()
	case config.Guard.From() == "reference":
		key = h.reference()
	case len(keys) > 0 && config.Guard.KeyValue == "last":
		key = keys[len(keys)-1]
	case len(keys) > 0:
		key = keys[0]
	}
	if key == "" {
		return ""
	}
	// Escaped, so that no two tenants with their keys come to the same.
	tenant := url.PathEscape(h.tenant)
	switch config.Guard.Scope {
	case "tenant":
		return tenant + "/" + key
	case "tenant-and-operation":
		return tenant + "/" + h.r.Method + "/" + key
	}
	return key
}

// guarded is what the guard knows the request by: its key, or the lock that it needs. It is empty for
// a request that passes.
func (h *handling) guarded() string {
	switch on := h.service.config.Guard.LockOn; {
	case !h.service.guard.Exclusive, on == "key":
		return h.key
	case on == "item":
		return "lock/" + h.order.Item
	}
	return "lock"
}

// reference is the business's own number of what is ordered. The lab's caller has one for each
// operation, whatever key it sends.
func (h *handling) reference() string { return cmp.Or(h.order.Reference, h.operation()) }

// strike plays the faults of a place, each once on a request: a transaction that is done again
// does not meet them again. It returns [fault.ErrEnded] when one of them has ended the request.
func (h *handling) strike(at fault.Place, answer guard.Answer) (guard.Answer, error) {
	return h.strikeInto(at, 0, answer)
}

// strikeInto is strike at a point of a place that takes its time.
func (h *handling) strikeInto(at fault.Place, into time.Duration, answer guard.Answer) (guard.Answer, error) {
	s := h.service
	for i, f := range s.config.Faults {
		if f.At != at || f.Into != into || !f.Strikes(s.arrival(i, h)) || h.struck != nil && h.struck[i] {
			continue
		}
		kind, ok := fault.Find(f.Do)
		if !ok || kind.Strike == nil {
			return answer, fmt.Errorf("the fault %s cannot be played", f.Name())
		}
		if kind.Elsewhere && h.r.URL.Path == lab.MovedPath {
			continue
		}
		if h.struck == nil {
			h.struck = make([]bool, len(s.config.Faults))
		}
		h.struck[i] = true
		s.Fire(i, h.node, h.operation(), h.path())
		if err := kind.Strike(&stricken{handling: h, at: at, answer: answer}, f); err != nil {
			return answer, err
		}
	}
	return answer, nil
}

// arrival is a request as fault i looks at it.
func (s *Service) arrival(i int, h *handling) fault.Arrival {
	return fault.Arrival{
		Number: h.arrival, OfEach: h.ofEach, Replica: h.replica, Operation: h.operation(), At: s.config.Clock.Now(),
		Luck: func() float64 { return fault.Luck(s.config.Seed, i, h.path()) },
	}
}

// stricken is a request as a fault acts on it.
type stricken struct {
	*handling
	at     fault.Place
	answer guard.Answer // what it would be answered
}

// Sleep holds the request up.
func (s *stricken) Sleep(d time.Duration) error { return s.service.wait(s.work, d) }

// Drop ends the connection without an answer.
func (s *stricken) Drop(reset bool) { s.drop(reset) }

// Refuse answers with a status of the fault's own.
func (s *stricken) Refuse(status int, retryAfter, title string) error {
	a := problem(status, lab.ProblemInjected, title)
	if s.at == fault.AfterClaim || s.at == fault.InWork || s.at == fault.BeforeCommit || s.at == fault.AfterCommit && s.pass.Committed != nil {
		if err := s.failed(a); err != nil {
			return err
		}
	}
	s.answerWith(a, retryAfter)
	return nil
}

// Crash kills the replica.
func (s *stricken) Crash(restart time.Duration) { s.life.crash(s.handling, restart) }

// Cut breaks the connection that the order's transaction goes over.
func (s *stricken) Cut(how string) error {
	cutter, ok := s.pass.Tx.(store.Cutter)
	if !ok {
		return fmt.Errorf("cut the connection to the database: %w", store.ErrUnsupported)
	}
	s.cut = store.Cut(how)
	cutter.Cut(s.cut)
	if s.cut == store.Partition {
		// Nothing reaches the server any more, so nothing can be told it, a rollback least of all.
		if t, ok := s.pass.Tx.(interface{ abandon() }); ok {
			t.abandon()
		}
		s.pass.Tx = nil
	}
	return nil
}

// RestartKeys restarts the store of keys, which forgets them.
func (s *stricken) RestartKeys() error { return s.service.config.Keys.Restart(s.work) }

// FailOverKeys has a replica of the store of keys take over, without what was written last.
func (s *stricken) FailOverKeys() error { return s.service.config.Keys.Failover(s.work) }

// LoseFinish loses what the guard would write now that the order is committed.
func (s *stricken) LoseFinish() { s.pass.Committed = nil }

// CutOffKeys keeps the request from the store of keys.
func (s *stricken) CutOffKeys() { s.noKeys = true }

// LoseKeysReply loses the next reply of the store of keys.
func (s *stricken) LoseKeysReply() { s.service.config.Keys.CutNextReply() }

// Hold keeps the connection open and silent until the client has left.
func (s *stricken) Hold() {
	select {
	case <-s.r.Context().Done():
		s.record(lab.Event{Kind: lab.ClientGone})
	case <-s.life.ctx.Done():
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
	return h.pass.Failed(h.life.ctx, a)
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
	retryAfter = fault.RetryAfterAt(retryAfter, h.service.config.Clock.Date())
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

// Spoil answers with another body.
func (s *stricken) Spoil(spoil func([]byte) []byte) {
	a := s.answer
	a.Body = spoil(a.Body)
	s.handling.answer(a)
}

// Truncate breaks the answer off.
func (s *stricken) Truncate(reset bool) {
	body := s.answer.Body
	s.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	s.head(s.answer, "")
	s.w.Write(body[:len(body)/2])
	http.NewResponseController(s.w).Flush()
	s.drop(reset)
}

// Redirect sends the client to where the service has moved.
func (s *stricken) Redirect(status int) {
	to := url.URL{Path: lab.MovedPath, RawQuery: s.r.URL.RawQuery}
	s.w.Header().Set("Location", to.String())
	s.answerWith(guard.Answer{Status: status}, "")
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

func (h *handling) drop(reset bool) { Drop(h.w, reset) }

// Drop ends the connection of a request without an answer, with a reset or in order.
func Drop(w http.ResponseWriter, reset bool) {
	conn, _, err := http.NewResponseController(w).Hijack()
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
		Conflict: s.config.Conflict,
		Store:    h.store,
		Keys:     h.keys(),
		Memory:   &h.life.memory,
		Now:      s.config.Clock.Now,
		Date:     s.config.Clock.Date,
		Record: func(kind lab.Kind, detail string) {
			h.record(lab.Event{Kind: kind, Key: h.guarded(), Detail: detail})
		},
		Life:      h.life.ctx,
		AfterFunc: s.config.Clock.AfterFunc,
		Pause:     func(ctx context.Context) error { return s.config.Pause(ctx, h.path()) },
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

// operation names the intent: a foreign client's request is one of its own.
func (h *handling) operation() string {
	if op := h.r.Header.Get(lab.HeaderOperation); op != "" {
		return op
	}
	return h.path()
}

// path names the request: the path of tries that sent it, or for a foreign client its number.
func (h *handling) path() string {
	if p := h.r.Header.Get(lab.HeaderSend); p != "" {
		return p
	}
	return h.service.config.Prefix + "arrival-" + strconv.Itoa(h.arrival)
}

func (h *handling) record(e lab.Event) {
	h.life.record(h.stamp(e))
}

// stamp makes an event one of the request.
func (h *handling) stamp(e lab.Event) lab.Event {
	e.Operation, e.Send, e.Node = h.operation(), h.path(), h.node
	return e
}
