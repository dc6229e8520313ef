package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"retrylab/internal/lab"
	"retrylab/internal/redisserver"
)

// NewURL returns a source that uses the server at a URL, which somebody else runs: redis, rediss
// (TLS) or unix. It asks the server at once who it is. Of what is stored there, the lab touches
// nothing but the keys that it has made.
//
// No error contains the password, nor anything of a URL that cannot be read: any part of it may be
// one.
func NewURL(ctx context.Context, address string) (*Source, error) {
	r, err := parseURL(address)
	if err != nil {
		return nil, err
	}
	if err := r.greet(ctx); err != nil {
		return nil, err
	}
	return &Source{mode: remoteMode, open: func(_ context.Context, o Options) (backend, error) {
		if o.Replica {
			return nil, r.unsupported("a replica")
		}
		return r, nil
	}}, nil
}

const remoteMode = "server at a URL"

// leftover is how long a key may stay, in real time, that the lab could not delete because it was
// killed. No trial on the wall clock lasts that long, and on the virtual one none lasts a minute.
const leftover = 24 * time.Hour

// remote is a server that somebody else runs.
type remote struct {
	name    string // host and database, without what is secret
	shown   access
	connect func(ctx context.Context) (net.Conn, error)
	version string
}

// errURL is what is wrong with a URL that cannot be read, and no more.
var errURL = errors.New("the Redis URL cannot be read: want redis://[user:password@]host[:port][/database], " +
	"rediss:// for TLS, or unix://[user:password@]/path?db=database; write :, /, ?, #, @ and % in a password as %3A, %2F, %3F, %23, %40 and %25")

func parseURL(address string) (*remote, error) {
	u, err := url.Parse(address)
	// A fragment is the rest of a password with a # in it, for which the beginning would otherwise
	// be taken as the port.
	if err != nil || u.Fragment != "" || u.Opaque != "" {
		return nil, errURL
	}
	switch u.Scheme {
	case "redis", "rediss", "unix":
	default:
		return nil, errURL
	}
	for name := range u.Query() {
		if name != "db" && name != "skip_verify" {
			return nil, fmt.Errorf("the Redis URL has an option that the lab does not take: it takes db, and skip_verify with rediss")
		}
	}
	o, err := redis.ParseURL(address)
	if err != nil {
		return nil, errURL
	}
	r := &remote{
		name:    fmt.Sprintf("%s, database %d", o.Addr, o.DB),
		shown:   access{o.Username, o.Password, o.DB, leftover},
		version: "unknown",
	}
	o.DialTimeout = dialTimeout
	dial := redis.NewDialer(o)
	r.connect = func(ctx context.Context) (net.Conn, error) { return dial(ctx, o.Network, o.Addr) }
	return r, nil
}

// greet asks the server for its version, and says what is wrong if it does not tell.
func (r *remote) greet(ctx context.Context) error {
	c := newClient(r, 0, func(c net.Conn) net.Conn { return c })
	defer c.close()
	info, err := c.info(ctx)
	refused, isRefused := errors.AsType[redis.Error](err)
	switch {
	case err == nil:
	case !isRefused:
		return r.silence(err)
	case !redis.HasErrorPrefix(refused, "NOPERM"): // this user may not ask, and need not
		return r.refusal(refused)
	}
	if redisserver.Field(info, "cluster_enabled") == "1" {
		return fmt.Errorf("redis at %s is part of a cluster, which the lab does not follow", r.name)
	}
	if v := redisserver.Field(info, "redis_version"); v != "" {
		r.version = v
	}
	return nil
}

// refusal explains an error that the server has sent.
func (r *remote) refusal(err redis.Error) error {
	switch {
	case redis.HasErrorPrefix(err, "WRONGPASS"), redis.HasErrorPrefix(err, "invalid password"):
		return fmt.Errorf("redis at %s refuses the user or the password of the URL", r.name)
	case redis.HasErrorPrefix(err, "NOAUTH"):
		return fmt.Errorf("redis at %s wants a password: redis://:PASSWORD@host", r.name)
	case strings.Contains(err.Error(), "DB index is out of range"):
		return fmt.Errorf("redis at %s: there is no such database", r.name)
	default:
		return fmt.Errorf("redis at %s: %w", r.name, redact(err, r.shown.password))
	}
}

// silence explains why there was no answer that Redis could have given.
func (r *remote) silence(err error) error {
	err = redact(err, r.shown.password)
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return fmt.Errorf("redis at %s cannot be reached: %w", r.name, err)
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Errorf("redis at %s shows a certificate that cannot be trusted: %w", r.name, err)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return fmt.Errorf("redis at %s closes the connection without an answer (it may want TLS: rediss://)", r.name)
	}
	return fmt.Errorf("what is at %s does not answer as Redis does: %w", r.name, err)
}

func (r *remote) dial(ctx context.Context) (net.Conn, error) { return r.connect(ctx) }

func (r *remote) access() access { return r.shown }

func (r *remote) restart(context.Context) error { return r.unsupported("a restart") }

func (r *remote) follow(context.Context) error { return nil }

func (r *remote) failover(context.Context) (int, error) { return 0, r.unsupported("a failover") }

func (r *remote) unsupported(what string) error {
	return &UnsupportedError{What: what, Mode: "a " + remoteMode, Want: "a redis-server of the lab's own"}
}

func (r *remote) info() lab.Store {
	return lab.Store{
		Version: r.version, Mode: remoteMode,
		Settings: map[string]string{
			"persistence": "as it is configured there",
			"restart":     "unsupported",
			"failover":    "unsupported",
		},
	}
}

// close leaves the server as it is.
func (r *remote) close() error { return nil }
