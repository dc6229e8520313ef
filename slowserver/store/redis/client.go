package redis

import (
	"context"
	"errors"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// The limits of a client, in real time. They are there for a server that hangs, not to decide
// anything: a command takes microseconds.
const (
	dialTimeout  = 5 * time.Second
	replyTimeout = 10 * time.Second
)

// A client is go-redis with everything off that it would do by itself.
type client struct {
	redis *redis.Client
	tries int // 0: no retries
}

// newClient makes a client whose connections go through wrap. It connects with its first command.
func newClient(b backend, retries int, wrap func(net.Conn) net.Conn) *client {
	// The library writes to stderr when it cannot connect, and so does every retry. The error is
	// returned too. There is one logger for the process, and nobody else uses it.
	logging.Disable()
	a := b.access()
	o := &redis.Options{
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := b.dial(ctx)
			if err != nil {
				return nil, err
			}
			return wrap(c), nil
		},
		Protocol: 2, // nothing is pushed
		Username: a.username,
		Password: a.password,
		DB:       a.database,

		MaxRetries:    retries,
		DialerRetries: 1,
		// A wait before a retry would be one in real time: it takes none of the scenario's.
		MinRetryBackoff: -1,
		MaxRetryBackoff: -1,

		DialTimeout:  dialTimeout,
		ReadTimeout:  replyTimeout,
		WriteTimeout: replyTimeout,
		PoolTimeout:  2 * replyTimeout,

		PoolSize:         64,
		PipelinePoolSize: -1,
		ConnMaxIdleTime:  -1,
		ReadBufferSize:   4 << 10,
		WriteBufferSize:  4 << 10,

		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if retries == 0 {
		o.MaxRetries = -1 // 0 would be the default, which is 3
	}
	return &client{redis: redis.NewClient(o), tries: retries}
}

func (c *client) retries() string {
	if c.tries == 0 {
		return "off"
	}
	return strconv.Itoa(c.tries)
}

// setNX stores a value if there is none.
func (c *client) setNX(ctx context.Context, key, value string, expire time.Duration) (won bool, err error) {
	err = c.redis.SetArgs(ctx, key, value, redis.SetArgs{Mode: "NX", TTL: expire}).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, err
}

func (c *client) set(ctx context.Context, key, value string, expire time.Duration) error {
	return c.redis.SetArgs(ctx, key, value, redis.SetArgs{TTL: expire}).Err()
}

func (c *client) get(ctx context.Context, key string) (value string, found bool, err error) {
	value, err = c.redis.Get(ctx, key).Result()
	if errors.Is(err, redis.Nil) {
		return "", false, nil
	}
	return value, err == nil, err
}

// delete removes keys, a command for each hundred of them.
func (c *client) delete(ctx context.Context, keys ...string) error {
	for len(keys) > 0 {
		n := min(len(keys), 100)
		if err := c.redis.Del(ctx, keys[:n]...).Err(); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

// info asks the server about itself.
func (c *client) info(ctx context.Context) (string, error) { return c.redis.Info(ctx).Result() }

func (c *client) close() error { return c.redis.Close() }
