package slowserver

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"retrylab/internal/lab"
	"retrylab/slowserver/guard"
	"retrylab/slowserver/store"
)

// Crash is the death of a replica's process as the service tells its host of it.
type Crash struct {
	Node    string
	Replica int           // from 1
	Restart time.Duration // scenario time after which it is to be there again
	// Events are what is to be recorded of it, in order: the crash, and the rollback of each
	// transaction that is open. Die records them itself.
	Events []lab.Event
	// Die stops every request of the replica where it is. It calls cut, which takes its listener
	// and its connections away, when nothing of it can be told any more and before anything of it
	// has noticed. A host that kills a real process has no need of it.
	Die func(cut func())
}

// errCrashed is why what a replica had begun does not go on.
var errCrashed = errors.New("the replica has crashed")

// incarnation is one life of a replica's process, from its start to its crash. What it has open at
// the database ends with it, as the sessions of a killed client do.
type incarnation struct {
	service *Service
	node    string
	replica int
	ctx     context.Context // ends with it
	end     context.CancelCauseFunc
	memory  guard.Memory // what it knows of keys
	queue   *queue       // for its workers; nil where there are enough for all

	mu   sync.Mutex
	dead bool
	open []*session
}

func (s *Service) start(node string, replica int) *incarnation {
	ctx, end := context.WithCancelCause(s.life)
	return &incarnation{service: s, node: node, replica: replica, ctx: ctx, end: end, queue: s.newQueue()}
}

func (p *incarnation) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// record records an event of the living.
func (p *incarnation) record(e lab.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.dead {
		p.service.config.Record(e)
	}
}

// crash kills the replica at a point of one of its requests.
func (p *incarnation) crash(at *handling, restart time.Duration) {
	death := at.stamp(lab.Event{Kind: lab.Crash})
	events := []lab.Event{death}
	for _, t := range p.sessions() {
		events = append(events, t.rolledBack())
	}
	p.service.config.Crash(Crash{
		Node: p.node, Replica: p.replica, Restart: restart, Events: events,
		Die: func(cut func()) { p.die(death, cut) },
	})
}

// sessions are the transactions that are open, in the order in which their requests arrived.
func (p *incarnation) sessions() []*session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.SortedStableFunc(slices.Values(p.open), func(a, b *session) int {
		return cmp.Compare(a.request.arrival, b.request.arrival)
	})
}

func (p *incarnation) die(death lab.Event, cut func()) {
	p.mu.Lock()
	if p.dead {
		p.mu.Unlock()
		return
	}
	p.service.config.Record(death)
	p.dead = true
	p.mu.Unlock()
	cut()
	p.end(errCrashed)
	for _, t := range p.sessions() {
		t.kill()
	}
}

// database is the store as one request of a replica reaches it: nothing gets there any more once
// the replica is dead.
type database struct {
	store.Store
	request *handling
}

// connect returns the store for a request. What the engine can do beyond a store it can do here.
func (p *incarnation) connect(h *handling) store.Store {
	d := &database{Store: p.service.config.Store, request: h}
	if asker, ok := d.Store.(store.Asker); ok {
		return asking{d, asker}
	}
	return d
}

// asking is a database that can find out afterwards what became of a transaction.
type asking struct {
	*database
	asker store.Asker
}

// ID returns what a transaction is known by on the server.
func (a asking) ID(ctx context.Context, tx store.Tx) (string, error) {
	if t, ok := tx.(interface{ bare() store.Tx }); ok {
		tx = t.bare()
	}
	return a.asker.ID(ctx, tx)
}

// Committed reports what became of a transaction.
func (a asking) Committed(ctx context.Context, id string) (bool, error) {
	return a.asker.Committed(ctx, id)
}

// Begin starts a transaction that the crash of the replica rolls back.
func (d *database) Begin(ctx context.Context, id string, o store.TxOptions) (store.Tx, error) {
	tx, err := d.Store.Begin(ctx, id, o)
	if err != nil {
		return nil, err
	}
	p := d.request.life
	t := &session{Tx: tx, request: d.request}
	p.mu.Lock()
	dead := p.dead
	if !dead {
		p.open = append(p.open, t)
	}
	p.mu.Unlock()
	if dead {
		return nil, errors.Join(errCrashed, tx.Rollback())
	}
	locker, locks := tx.(store.Locker)
	cutter, cuts := tx.(store.Cutter)
	switch {
	case locks && cuts:
		return struct {
			*session
			store.Locker
			store.Cutter
		}{t, locker, cutter}, nil
	case locks:
		return struct {
			*session
			store.Locker
		}{t, locker}, nil
	case cuts:
		return struct {
			*session
			store.Cutter
		}{t, cutter}, nil
	}
	return t, nil
}

// Read looks a key up, unless the replica is dead.
func (d *database) Read(ctx context.Context, key string) (store.Record, bool, error) {
	if d.request.life.isDead() {
		return store.Record{}, false, errCrashed
	}
	return d.Store.Read(ctx, key)
}

// Enter makes an entry at another system, unless the replica is dead.
func (d *database) Enter(ctx context.Context, e store.Entry) (bool, error) {
	if d.request.life.isDead() {
		return false, errCrashed
	}
	return d.Store.Enter(ctx, e)
}

// session is a transaction of a replica. Its request and the crash of the replica take turns with
// it: when a statement has come back, the crash rolls it back, and the request can do no more.
type session struct {
	store.Tx
	request *handling

	mu    sync.Mutex
	ended bool
}

func (t *session) bare() store.Tx { return t.Tx }

// use performs a statement, unless the replica is dead.
func (t *session) use(statement func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.request.life.isDead() {
		return errCrashed
	}
	return statement()
}

// leave is told when the transaction has ended by its own request. The caller holds t.mu.
func (t *session) leave() {
	if t.ended {
		return
	}
	t.ended = true
	p := t.request.life
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = slices.DeleteFunc(p.open, func(other *session) bool { return other == t })
}

// kill is what the database does with a session whose client is gone. A request that waits in it
// has been told to give up.
func (t *session) kill() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	t.leave()
	if t.Tx.Rollback() == nil {
		t.request.service.config.Record(t.rolledBack())
	}
}

func (t *session) rolledBack() lab.Event {
	return t.request.stamp(lab.Event{Kind: lab.Rollback, Key: t.request.key, Detail: "crash"})
}

// abandon leaves a transaction open that nothing can be told any more.
func (t *session) abandon() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave()
}

func (t *session) Claim(ctx context.Context, key string, c store.Claim) (fence int64, err error) {
	err = t.use(func() (err error) { fence, err = t.Tx.Claim(ctx, key, c); return err })
	return fence, err
}

func (t *session) Insert(ctx context.Context, key string, c store.Claim) error {
	return t.use(func() error { return t.Tx.Insert(ctx, key, c) })
}

func (t *session) Read(ctx context.Context, key string) (r store.Record, found bool, err error) {
	err = t.use(func() (err error) { r, found, err = t.Tx.Read(ctx, key); return err })
	return r, found, err
}

func (t *session) Finish(ctx context.Context, key string, by store.Holder, r store.Record) (held bool, err error) {
	err = t.use(func() (err error) { held, err = t.Tx.Finish(ctx, key, by, r); return err })
	return held, err
}

func (t *session) Release(ctx context.Context, key string, by store.Holder) (held bool, err error) {
	err = t.use(func() (err error) { held, err = t.Tx.Release(ctx, key, by); return err })
	return held, err
}

func (t *session) Order(ctx context.Context, o store.Order) (number int64, err error) {
	err = t.use(func() (err error) { number, err = t.Tx.Order(ctx, o); return err })
	return number, err
}

func (t *session) Placed(ctx context.Context, key string) (number int64, found bool, err error) {
	err = t.use(func() (err error) { number, found, err = t.Tx.Placed(ctx, key); return err })
	return number, found, err
}

func (t *session) Expire(ctx context.Context, key string, e store.Expiry) (deleted int64, err error) {
	err = t.use(func() (err error) { deleted, err = t.Tx.Expire(ctx, key, e); return err })
	return deleted, err
}

func (t *session) Row(ctx context.Context, name string) (r store.Row, found bool, err error) {
	err = t.use(func() (err error) { r, found, err = t.Tx.Row(ctx, name); return err })
	return r, found, err
}

func (t *session) Write(ctx context.Context, w store.Write) (changed bool, err error) {
	err = t.use(func() (err error) { changed, err = t.Tx.Write(ctx, w); return err })
	return changed, err
}

func (t *session) Enter(ctx context.Context, e store.Entry) (entered bool, err error) {
	err = t.use(func() (err error) { entered, err = t.Tx.Enter(ctx, e); return err })
	return entered, err
}

func (t *session) Commit() error {
	err := t.use(func() error {
		t.leave()
		return t.Tx.Commit()
	})
	if tell := t.request.service.config.Committed; err == nil && tell != nil {
		tell()
	}
	return err
}

func (t *session) Rollback() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || t.request.life.isDead() {
		return nil // of a dead replica it is rolled back in its turn
	}
	t.leave()
	return t.Tx.Rollback()
}
