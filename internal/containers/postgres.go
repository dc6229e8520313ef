//go:build !nodocker

package containers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/modules/postgres"

	"retrylab/internal/vtime"
)

// user is the name of the database and of its one user, who is a superuser.
const user = "retrylab"

// port is where PostgreSQL listens inside its container.
const port = "5432/tcp"

// Postgres starts PostgreSQL in a new container and returns when it takes connections. An empty
// image stands for [DefaultImage]. The database has fsync off and synchronous_commit on: what was
// acknowledged survives the end of any process, not that of the machine.
//
// The error is an [*ImageError] if image is no reference to an image, and a [*NoDockerError] if no
// engine can be reached; the library finds it by DOCKER_HOST, the usual sockets and the file
// .testcontainers.properties, once per process: an engine that is started later is not seen.
// Nothing is written to stdout or stderr, but for the library's complaint about such a file that it
// cannot read. It takes real time, so it is not for a bubble.
//
// An image that is not on the machine is fetched first, however long that takes; ctx ends it.
// Beside the database the library starts its reaper, a container that removes the database's when
// this process ends without [Database.Stop]. Who has switched that off in the library's own
// settings (TESTCONTAINERS_RYUK_DISABLED) has done so.
func Postgres(ctx context.Context, image string) (*Database, error) {
	if image == "" {
		image = DefaultImage
	}
	if err := CheckImage(image); err != nil {
		return nil, err
	}
	silence()
	host, err := engineHost(ctx)
	if err != nil {
		return nil, err
	}
	// The port is within reach of others wherever the engine is not on this machine, so the
	// password is one that cannot be guessed, whatever the seed of the run.
	password := rand.Text()
	var c *postgres.PostgresContainer
	var dsn string
	err = caught(func() (err error) {
		c, err = postgres.Run(ctx, image,
			testcontainers.WithLogger(log.NewNoopLogger()),
			postgres.WithDatabase(user), postgres.WithUsername(user), postgres.WithPassword(password),
			testcontainers.WithCmdArgs("-c", "synchronous_commit=on"),
			testcontainers.WithHostConfigModifier(func(h *container.HostConfig) { publish(h, host) }),
			// The image starts PostgreSQL twice, the first time for its own initialisation and
			// without TCP: only the second time it is ready.
			postgres.BasicWaitStrategies(),
		)
		if err != nil {
			return err
		}
		dsn, err = c.ConnectionString(ctx, "sslmode=disable")
		return err
	})
	if err != nil {
		if c != nil {
			// It must go even where ctx has ended.
			stop := context.WithoutCancel(ctx)
			err = errors.Join(err, terminate(stop, c))
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("start PostgreSQL in a container of %s: %w", image, context.Cause(ctx))
		}
		return nil, fmt.Errorf("start PostgreSQL in a container of %s: %s", image, oneLine(strings.ReplaceAll(err.Error(), password, "xxxxx")))
	}
	return &Database{dsn: dsn, image: image, stop: func(ctx context.Context) error { return terminate(ctx, c) }}, nil
}

// engineHost looks for the Docker engine, and returns the host under which its published ports are
// reached.
func engineHost(ctx context.Context) (string, error) {
	var host string
	err := abandoned(ctx, func() error {
		provider, err := testcontainers.NewDockerProvider(testcontainers.WithLogger(log.NewNoopLogger()))
		if err != nil {
			return err
		}
		defer provider.Close()
		if err := provider.Health(ctx); err != nil {
			return err
		}
		host, err = provider.DaemonHost(ctx)
		return err
	})
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("look for a Docker engine: %w", context.Cause(ctx))
	case err != nil:
		return "", &NoDockerError{Reason: reason(err)}
	}
	return host, nil
}

// looked are the beginnings of the lines in which the library says that the places where it looks
// last, which are those of Docker without root, have no socket. They name no cause: who has no such
// Docker misses none.
var looked = []string{"rootless Docker not found", "rootless Docker is not supported on Windows", "checked path: "}

// reason is the library's error on one line, without what says nothing.
func reason(err error) string {
	var causes []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if !slices.ContainsFunc(looked, func(l string) bool { return strings.HasPrefix(line, l) }) {
			causes = append(causes, line)
		}
	}
	if len(causes) == 0 {
		return "DOCKER_HOST is not set, and there is no socket in the usual places"
	}
	return oneLine(strings.Join(causes, "\n"))
}

// publish makes the port of the database one that the engine chooses, and where the engine is on
// this machine one that only this machine can reach. The library's own way is to open it to all.
func publish(h *container.HostConfig, host string) {
	binding := network.PortBinding{HostPort: "0"}
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.IsLoopback() {
		binding.HostIP = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	h.PortBindings = network.PortMap{network.MustParsePort(port): {binding}}
}

// terminate removes a container at once, since there is nothing in it that would have to be saved.
// One that has gone already is as good.
func terminate(ctx context.Context, c *postgres.PostgresContainer) error {
	return abandoned(ctx, func() error {
		return testcontainers.TerminateContainer(c, testcontainers.StopContext(ctx), testcontainers.StopTimeout(0))
	})
}

// caught calls f and returns its panic as an error: the library panics over settings that it does
// not like.
func caught(f func() error) (err error) {
	var g vtime.Group
	g.Go(func() { err = f() })
	if p := g.Wait(); p != nil {
		return p
	}
	return err
}

// abandoned is like caught, but leaves f to itself when ctx ends before it: some questions of the
// library to an engine regard no context, and the engine may not answer.
func abandoned(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	var g vtime.Group
	g.Go(func() { done <- caught(f) })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// silence turns off the logger that the parts of the library share, which writes to stderr. It is
// set once, since the library reads it without a lock.
var silence = sync.OnceFunc(func() { log.SetDefault(log.NewNoopLogger()) })
