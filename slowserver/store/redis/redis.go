// Package redis keeps keys in Redis: in miniredis inside the lab, in a redis-server that the lab
// starts for the trial, or in one that somebody else runs. It is the door of go-redis and of
// miniredis.
//
// All that waits for Redis runs outside the bubble of its caller, in real time, on both clocks:
// inside, a socket would stop the time, and the client would take its deadlines from a time that is
// not that of the server. The time of the bubble stands still meanwhile, so a command takes no
// scenario time.
//
// The package knows no guards and no orders. What a key means is said elsewhere.
package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"retrylab/internal/lab"
	"retrylab/slowserver/store"
)

// A Source makes the key stores of a run's trials, all on one kind of server. It is made by
// [NewEmbedded], [NewServer] or [NewURL].
type Source struct {
	mode string
	open func(ctx context.Context, o Options) (backend, error)
}

// Mode says what kind of server it is, as reports name it.
func (s *Source) Mode() string { return s.mode }

// Options are a trial's.
type Options struct {
	// Now is the scenario time. It is called in the goroutine that calls a method of [Keys], inside
	// its bubble.
	Now func() time.Duration
	// Outside runs a function outside the bubble of its caller and returns when it is done, as
	// vtime.Outside.Do does. Nil is for callers that are in no bubble.
	Outside func(f func())
	// Retries is how often the client repeats a command by itself when it got no reply. Clients have
	// this on by default (go-redis: 3); here it is a hidden layer, and off unless asked for.
	Retries int
	// Replica gives the server a replica, for [Keys.Failover]. Each change from one key to another
	// then costs some real time.
	Replica bool
	// Prefix stands before each key on a server that others use too. Processes that share their
	// keys have the same; empty for one that nobody else has.
	Prefix string
}

// A backend is the server behind a trial's keys. Its methods run outside any bubble.
type backend interface {
	// dial connects to the server that is in charge at the moment.
	dial(ctx context.Context) (net.Conn, error)
	// access is what a client must show.
	access() access
	restart(ctx context.Context) error
	// follow lets the replica, if there is one, get what was written so far and nothing that comes
	// after it.
	follow(ctx context.Context) error
	// failover returns how many replicas had acknowledged everything.
	failover(ctx context.Context) (acknowledged int, err error)
	info() lab.Store
	close() error
}

// access is what a client shows when it connects, and how it must behave.
type access struct {
	username, password string
	database           int
	// forget is not 0 if others use the server too: the real time after which it may forget a key
	// that the lab has left behind.
	forget time.Duration
}

var _ store.Keys = (*Keys)(nil)

// Keys are a trial's keys. It implements store.Keys, and is safe for use by several goroutines.
type Keys struct {
	now     func() time.Duration
	outside func(func())
	backend backend
	ctx     context.Context // of what runs outside: that of the caller belongs to its bubble
	client  *client         // the service's
	own     *client         // the lab's: what it tidies up does not count, and is not cut
	wire    wire
	prefix  string // of all keys; empty on a server of the trial's own
	forget  time.Duration
	secret  string
	replica bool

	// running is held for reading while a command is under way, and for writing while what must
	// not meet one is: a key that ends, a server that ends.
	running sync.RWMutex
	newest  string   // the key that was written last, for a replica
	behind  []string // the keys that have ended and may not have on the replica

	mu   sync.Mutex
	ends map[string]time.Duration // the keys that may be on the server, by scenario time; 0: no end
	next time.Duration            // no key ends before that; 0: none ends
	info lab.Store

	once     sync.Once
	closeErr error
}

// Open makes the keys of a trial. It must be called outside any bubble. The end of ctx ends a server
// that was started for the trial, and nothing else.
func (s *Source) Open(ctx context.Context, o Options) (*Keys, error) {
	b, err := s.open(ctx, o)
	if err != nil {
		return nil, err
	}
	a := b.access()
	k := &Keys{
		now:     o.Now,
		outside: o.Outside,
		backend: b,
		ctx:     context.WithoutCancel(ctx),
		forget:  a.forget,
		secret:  a.password,
		replica: o.Replica,
		ends:    map[string]time.Duration{},
		info:    b.info(),
	}
	if k.outside == nil {
		k.outside = func(f func()) { f() }
	}
	switch {
	case a.forget != 0 && o.Prefix != "":
		k.prefix = o.Prefix
	case a.forget != 0:
		k.prefix = "retrylab:" + rand.Text() + ":" // another lab may be there at this moment
	}
	k.client = newClient(b, max(0, o.Retries), k.wire.wrap)
	k.own = newClient(b, 0, func(c net.Conn) net.Conn { return c })
	k.info.Engine = "redis"
	k.info.Settings["ttl"] = "by the lab's clock"
	k.info.Settings["client_retries"] = k.client.retries()
	return k, nil
}

// Claim implements store.Keys. It is SET with NX.
func (k *Keys) Claim(ctx context.Context, key, value string, ttl time.Duration) (won bool, err error) {
	err = k.command(ctx, "claim", key, func(now time.Duration) error {
		var err error
		won, err = k.client.setNX(k.ctx, k.prefix+key, value, k.forget)
		k.mu.Lock()
		defer k.mu.Unlock()
		// A key that is there and that nobody is known to have claimed was claimed just now, by
		// a command whose reply was lost; so may one be after an error.
		if _, known := k.ends[key]; won || !known {
			k.keep(key, now, ttl)
		}
		return err
	})
	return won, err
}

// Get implements store.Keys.
func (k *Keys) Get(ctx context.Context, key string) (value string, found bool, err error) {
	err = k.command(ctx, "read", key, func(time.Duration) error {
		var err error
		value, found, err = k.client.get(k.ctx, k.prefix+key)
		return err
	})
	return value, found, err
}

// Set implements store.Keys.
func (k *Keys) Set(ctx context.Context, key, value string, ttl time.Duration) error {
	return k.command(ctx, "set", key, func(now time.Duration) error {
		err := k.client.set(k.ctx, k.prefix+key, value, k.forget)
		k.mu.Lock()
		defer k.mu.Unlock()
		k.keep(key, now, ttl) // after an error too: the server may have done it
		return err
	})
}

// Delete implements store.Keys.
func (k *Keys) Delete(ctx context.Context, key string) error {
	return k.command(ctx, "delete", key, func(time.Duration) error {
		if err := k.client.delete(k.ctx, k.prefix+key); err != nil {
			return err
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.ends, key)
		return nil
	})
}

// keep notes when a key ends that has been set. The caller holds mu.
func (k *Keys) keep(key string, now, ttl time.Duration) {
	k.ends[key] = 0
	if ttl > 0 {
		k.ends[key] = now + ttl
		k.next = earlier(k.next, now+ttl)
	}
}

// earlier returns the earlier of two ends, either of which may be none.
func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// command runs one command outside, after the keys that have ended by now are gone.
func (k *Keys) command(ctx context.Context, what, key string, f func(now time.Duration) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	now := k.now()
	var err error
	k.outside(func() {
		if err = k.tidy(now); err == nil && k.replica && what != "read" {
			err = k.lag(key)
		}
		if err == nil {
			k.running.RLock()
			defer k.running.RUnlock()
			err = f(now)
		}
	})
	if err != nil {
		return fmt.Errorf("%s key %q in redis: %w", what, key, k.redact(err))
	}
	return nil
}

// lag lets the replica get everything but what is written to the key that was written last, which key
// is about to be: replication that is always late, and always by as much.
func (k *Keys) lag(key string) error {
	k.running.Lock()
	defer k.running.Unlock()
	if k.newest == key {
		return nil
	}
	if err := k.backend.follow(k.ctx); err != nil {
		return err
	}
	k.newest, k.behind = key, nil
	return nil
}

// tidy deletes the keys that have ended. The server is never told of a time to live, because its
// time is not the lab's: a real one counts real seconds, of which a scenario on the virtual clock
// takes none and one at a speed takes fewer, and miniredis counts none unless it is told to. So the
// lab keeps the time, the same for all servers, and no command sees a key that has ended.
func (k *Keys) tidy(now time.Duration) error {
	if len(k.ended(now)) == 0 {
		return nil
	}
	k.running.Lock()
	defer k.running.Unlock()
	ended := k.ended(now) // another goroutine may have done it
	if err := k.own.delete(k.ctx, k.on(ended)...); err != nil {
		return fmt.Errorf("end what has outlived its time: %w", err)
	}
	if k.replica {
		k.behind = append(k.behind, ended...)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range ended {
		delete(k.ends, key)
	}
	return nil
}

// ended lists the keys whose time is over. At its last instant a key is still there, as in Redis.
func (k *Keys) ended(now time.Duration) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.next == 0 || now <= k.next {
		return nil
	}
	var out []string
	k.next = 0
	for key, end := range k.ends {
		k.next = earlier(k.next, end)
		if end != 0 && now > end {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

// on returns keys as they are named on the server.
func (k *Keys) on(keys []string) []string {
	out := make([]string, len(keys))
	for i, key := range keys {
		out[i] = k.prefix + key
	}
	return out
}

// Restart implements store.Keys. A server of the trial's own is killed and started again; miniredis
// keeps its keys over a restart, so there the loss is imitated by FLUSHALL; a server of somebody
// else is left alone, and the error is an [*UnsupportedError].
func (k *Keys) Restart(ctx context.Context) error {
	return k.alone(ctx, "restart", func() error {
		if err := k.backend.restart(k.ctx); err != nil {
			return err
		}
		k.behind = nil
		k.mu.Lock()
		defer k.mu.Unlock()
		clear(k.ends)
		return nil
	})
}

// Failover implements store.Keys: it ends the master and promotes the replica, which the client
// finds in its place. The key that was claimed or written last is lost, though the master had
// confirmed it; all others are kept. Where there is no replica the error is an
// [*UnsupportedError].
func (k *Keys) Failover(ctx context.Context) error {
	return k.alone(ctx, "fail over", func() error {
		n, err := k.backend.failover(k.ctx)
		if err != nil {
			return err
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.info.Settings["failover"] = fmt.Sprintf("replica promoted; WAIT 1 had said %d", n)
		return k.takeStock()
	})
}

// takeStock brings what is known of the keys in line with a server that has become the master. What
// had ended ends there too, as it would without the lab: a replica knows the time. The caller holds
// running and mu.
func (k *Keys) takeStock() error {
	if err := k.own.delete(k.ctx, k.on(k.behind)...); err != nil {
		return err
	}
	k.behind = nil
	for key := range k.ends {
		_, found, err := k.own.get(k.ctx, k.prefix+key)
		if err != nil {
			return err
		}
		if !found {
			delete(k.ends, key)
		}
	}
	return nil
}

// alone runs f outside while no command is under way.
func (k *Keys) alone(ctx context.Context, what string, f func() error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var err error
	k.outside(func() {
		k.running.Lock()
		defer k.running.Unlock()
		err = f()
	})
	if err != nil {
		return fmt.Errorf("%s redis: %w", what, k.redact(err))
	}
	return nil
}

// CutNextReply implements store.Keys: the server runs the next command of the client, its reply is
// dropped when it has arrived, and the connection is closed.
func (k *Keys) CutNextReply() { k.wire.cutNext() }

// Traffic returns what has crossed between the client and the server so far.
func (k *Keys) Traffic() Traffic { return k.wire.traffic() }

// Info implements store.Keys.
func (k *Keys) Info() lab.Store {
	k.mu.Lock()
	defer k.mu.Unlock()
	info := k.info
	info.Settings = maps.Clone(info.Settings)
	return info
}

// Close deletes the keys that are left, if the server goes on, and ends it, if it is the trial's
// own.
func (k *Keys) Close() error {
	k.once.Do(func() { k.outside(func() { k.closeErr = k.close() }) })
	return k.closeErr
}

func (k *Keys) close() error {
	k.running.Lock()
	defer k.running.Unlock()
	var errs []error
	if k.prefix != "" {
		var left []string
		for key := range k.ends {
			left = append(left, key)
		}
		if err := k.own.delete(k.ctx, k.on(left)...); err != nil {
			errs = append(errs, fmt.Errorf("delete the keys %s* in redis: %w", k.prefix, k.redact(err)))
		}
	}
	return errors.Join(append(errs, k.client.close(), k.own.close(), k.backend.close())...)
}

// redact takes the password out of an error. Neither a server nor the client says it today, except
// that old servers repeat a command that they do not know, and HELLO carries it.
func (k *Keys) redact(err error) error { return redact(err, k.secret) }

func redact(err error, password string) error {
	if err == nil || password == "" || !strings.Contains(err.Error(), password) {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), password, "[password]"))
}

// An UnsupportedError says that a server cannot be made to do something.
type UnsupportedError struct {
	What string // that was asked
	Mode string // of the server
	Want string // what could do it
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s cannot be had with %s: it needs %s", e.What, e.Mode, e.Want)
}

// Unwrap returns [store.ErrUnsupported].
func (e *UnsupportedError) Unwrap() error { return store.ErrUnsupported }
