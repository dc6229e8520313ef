package redis

import (
	"context"
	"errors"
	"net"
	"time"

	"retrylab/internal/lab"
	"retrylab/internal/redisserver"
)

// NewServer returns a source of private redis-servers, one for each trial: a trial that kills its
// server takes nothing from another. The binary is looked for at once.
func NewServer(o redisserver.Options) (*Source, error) {
	binary, err := redisserver.Find(o.Binary)
	if err != nil {
		return nil, err
	}
	o.Binary = binary
	return &Source{mode: serverMode, open: func(ctx context.Context, t Options) (backend, error) {
		return openServer(ctx, o, t)
	}}, nil
}

const serverMode = "private server"

// server is a redis-server of the trial's own. Keys sees to it that nothing runs beside restart,
// follow and failover.
type server struct {
	master   *redisserver.Server
	replica  *redisserver.Replica // nil without one, or after it has become the master
	password string
}

func openServer(ctx context.Context, o redisserver.Options, t Options) (backend, error) {
	master, err := redisserver.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	b := &server{master: master, password: master.Password()}
	if t.Replica {
		if b.replica, err = master.Replica(ctx); err != nil {
			return nil, errors.Join(err, master.Stop())
		}
		b.replica.Hold()
	}
	return b, nil
}

func (b *server) dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	network, address := b.master.Addr()
	return d.DialContext(ctx, network, address)
}

func (b *server) access() access { return access{password: b.password} }

// restart takes the replica with it, which follows a master that knows nothing any more.
func (b *server) restart(ctx context.Context) error {
	if err := b.master.Restart(ctx); err != nil {
		return err
	}
	return b.follow(ctx)
}

func (b *server) follow(ctx context.Context) error {
	if b.replica == nil {
		return nil
	}
	return b.replica.CatchUp(ctx)
}

// proof is how long the master is asked to wait for its replica, in real time. Nothing gets there
// any more, so it says how many have got everything, whenever it is asked.
const proof = 10 * time.Millisecond

func (b *server) failover(ctx context.Context) (int, error) {
	if b.replica == nil {
		return 0, &UnsupportedError{What: "a failover", Mode: "a server without a replica", Want: "a replica from the start"}
	}
	n, err := b.replica.Acknowledged(ctx, proof)
	if err == nil {
		err = errors.Join(b.replica.Cut(), b.master.Stop(), b.replica.Promote(ctx))
	}
	if err != nil {
		return 0, err
	}
	b.master, b.replica = b.replica.Server, nil
	return n, nil
}

func (b *server) info() lab.Store {
	s := lab.Store{
		Version: b.master.Version(), Mode: serverMode,
		Settings: map[string]string{
			"persistence": "none",
			"restart":     "killed and started again",
			"failover":    "no replica",
		},
	}
	if b.replica != nil {
		s.Settings["failover"] = "one replica, which the last key has not reached"
	}
	return s
}

func (b *server) close() error {
	err := b.master.Stop()
	if b.replica != nil {
		err = errors.Join(err, b.replica.Stop())
	}
	return err
}
