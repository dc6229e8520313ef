package redis

import (
	"context"
	"net"

	"github.com/alicebob/miniredis/v2"

	"retrylab/internal/lab"
)

// miniredisVersion is that of the module, which a running miniredis does not tell. A test compares
// it with go.mod.
const miniredisVersion = "2.40.0"

// NewEmbedded returns a source of miniredis servers inside the lab, one for each trial. They need no
// port: their connections are pipes.
func NewEmbedded() *Source {
	return &Source{mode: embeddedMode, open: openEmbedded}
}

const embeddedMode = "embedded (miniredis)"

type embedded struct{ server *miniredis.Miniredis }

func openEmbedded(_ context.Context, o Options) (backend, error) {
	b := &embedded{miniredis.NewMiniRedis()}
	if o.Replica {
		return nil, b.unsupported("a replica")
	}
	return b, nil
}

func (b *embedded) dial(context.Context) (net.Conn, error) { return b.server.Dial() }

func (b *embedded) access() access { return access{} }

func (b *embedded) restart(context.Context) error {
	b.server.FlushAll()
	return nil
}

func (b *embedded) follow(context.Context) error { return nil }

func (b *embedded) failover(context.Context) (int, error) { return 0, b.unsupported("a failover") }

func (b *embedded) unsupported(what string) error {
	return &UnsupportedError{What: what, Mode: embeddedMode, Want: "a redis-server of the lab's own"}
}

func (b *embedded) info() lab.Store {
	return lab.Store{
		Version: "miniredis " + miniredisVersion, Mode: embeddedMode,
		Settings: map[string]string{
			"persistence": "none",
			"restart":     "imitated loss (FLUSHALL)",
			"failover":    "unsupported",
		},
	}
}

func (b *embedded) close() error {
	b.server.Close()
	return nil
}
