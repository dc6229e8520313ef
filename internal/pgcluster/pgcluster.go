// Package pgcluster runs a private PostgreSQL server for as long as a lab needs one: a new cluster
// in a temporary directory, from the PostgreSQL that is installed on the machine, reached through a
// Unix socket that nobody else can open, and gone without a trace afterwards.
//
// It downloads nothing, reads no connection settings from the environment, and knows nothing of
// what is stored. A server is a process in real time: nothing here may be called in a bubble.
//
// What the server has acknowledged it keeps when its processes are killed (synchronous_commit is
// on). It would not survive a power failure (fsync is off), which nobody can notice: its data ends
// with it.
package pgcluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"retrylab/internal/privatedir"
	"retrylab/internal/vtime"
)

// The superuser, the one database and the port, which is only a part of the socket's name.
const (
	superuser = "postgres"
	database  = "postgres"
	port      = 5432
)

// Options say where a cluster gets what it needs. The zero value asks for the defaults.
type Options struct {
	// Bin is the directory of initdb and postgres; "" lets [Find] look for it.
	Bin string

	// Cache is where templates are kept from one run to the next, which saves most of the time of
	// a start; "" is retrylab in the user's cache directory, or nowhere if that cannot be had.
	Cache string

	// Temp is where the private directory is made; "" is the system's directory for such files.
	Temp string

	// MaxConnections is how many sessions there may be at once; 0 is 100.
	MaxConnections int

	// Extra are further settings of the server. They win over the cluster's own, but for those
	// that it could not be reached or watched without.
	Extra map[string]string
}

// Timing is where the time of a start went.
type Timing struct {
	Template time.Duration // initdb, 0 when a template was there
	Copy     time.Duration // of the template, into the private directory or out of it
	Start    time.Duration // of the server, until it accepts connections
	Cached   bool          // the template was there
}

// Cluster is a running server with its private directory.
type Cluster struct {
	options Options
	clock   *vtime.Clock // real time
	bin     Binaries
	version string
	account account
	private *privatedir.Dir
	dir     directory // its path
	server  *server
	timing  Timing
	stop    func() error
}

// ErrUnsupported says that there are no private clusters on this system.
var ErrUnsupported = errors.New("a private PostgreSQL cluster is not supported on this system: name a running server instead")

// Start makes a cluster and starts its server. It returns when the server accepts connections, and
// leaves nothing behind when it fails or when ctx ends before that. Afterwards ctx does not matter:
// the cluster runs until [Cluster.Stop], or until this process dies, however it does.
//
// What earlier runs had to leave behind is removed on the way: see [Sweep].
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if !supported {
		return nil, ErrUnsupported
	}
	c := &Cluster{options: o, clock: vtime.NewWall(time.Time{}, 1)}
	c.stop = sync.OnceValue(c.end)
	if err := c.prepare(ctx); err != nil {
		return nil, fmt.Errorf("start a private PostgreSQL: %w", err)
	}
	if err := c.run(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start a private PostgreSQL %s: %w", c.version, err), c.private.Remove())
	}
	return c, nil
}

// prepare finds out whether a server can run here at all, and makes its directory.
func (c *Cluster) prepare(ctx context.Context) (err error) {
	if c.bin, err = Find(ctx, c.options.Bin); err != nil {
		return err
	}
	if c.account, err = serverAccount(); err != nil {
		return err
	}
	if err := c.account.canEnter(c.bin.Dir, "where the programs of PostgreSQL are"); err != nil {
		return err
	}
	temp, err := resolve(c.options.Temp)
	if err != nil {
		return err
	}
	if err := socketFits(temp); err != nil {
		return err
	}
	if err := c.account.canEnter(temp, "where its data would be"); err != nil {
		return fmt.Errorf("%w; choose another temporary directory, or let others enter this one (chmod o+x)", err)
	}
	if c.version, err = c.bin.version(ctx, c.account); err != nil {
		return err
	}
	Sweep(ctx, temp) // What cannot be swept is not in the way.
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if c.private, err = privatedir.New(temp, prefix); err != nil {
		return err
	}
	c.dir = directory(c.private.Path())
	return nil
}

// run fills the private directory and starts the server on it. A template is not trusted further
// than it carries: if the server does not start on a copy of it, a new one is made and tried.
func (c *Cluster) run(ctx context.Context) error {
	if err := c.dir.open(c.account); err != nil {
		return err
	}
	t := newTemplate(c.options.Cache, c.bin, c.version)
	if err := c.fill(ctx, t); err != nil {
		return err
	}
	err := c.launch(ctx)
	if err == nil || !c.timing.Cached || ctx.Err() != nil {
		return err
	}
	t.discard(ctx)
	if err := c.fill(ctx, t); err != nil {
		return err
	}
	return c.launch(ctx)
}

// fill puts a cluster into the data directory: a copy of the template, or a new one, which then
// becomes the template.
func (c *Cluster) fill(ctx context.Context, t template) error {
	began := c.clock.Now()
	if t.copyTo(ctx, c.dir.data(), c.account) == nil {
		c.timing = Timing{Cached: true, Copy: c.clock.Now() - began}
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// What is wrong with the template is not worth a word: if it is not the template, making one
	// meets the same trouble, and says so.
	t.discard(ctx)
	began = c.clock.Now()
	if err := c.bin.initdb(ctx, c.dir.data(), c.account); err != nil {
		return err
	}
	made := c.clock.Now()
	if err := t.keep(ctx, c.dir.data()); err != nil && c.options.Cache != "" {
		return fmt.Errorf("keep the template of a cluster in %s: %w", c.options.Cache, err)
	}
	c.timing = Timing{Template: made - began, Copy: c.clock.Now() - made}
	return nil
}

func (c *Cluster) launch(ctx context.Context) (err error) {
	began := c.clock.Now()
	c.server, err = launch(ctx, c.clock, c.bin, c.account, c.arguments())
	c.timing.Start = c.clock.Now() - began
	return err
}

// Stop ends the server with all its sessions and removes the private directory. It returns when
// both are gone, whoever called it first, and always with the same error: it may be called any
// number of times and at once. An error also says that the server had ended before.
func (c *Cluster) Stop() error { return c.stop() }

func (c *Cluster) end() error {
	err := c.server.stop(c.clock)
	if err != nil {
		err = fmt.Errorf("stop the private PostgreSQL: %w", err)
	}
	if !c.server.hasEnded() {
		return err // Its files stay, for the sweep that comes after both.
	}
	return errors.Join(err, c.private.Remove())
}

// Socket returns the directory of the server's Unix socket and the port in its name.
func (c *Cluster) Socket() (dir string, number int) { return c.dir.socket(), port }

// DSN is how to connect to the one database there is. There is no template1 either, so CREATE
// DATABASE does not work: a user of the cluster who wants a place apart makes a schema.
func (c *Cluster) DSN() string {
	u := url.URL{Scheme: "postgres", User: url.User(superuser), Path: "/" + database, RawQuery: url.Values{
		"host":    {c.dir.socket()},
		"port":    {strconv.Itoa(port)},
		"sslmode": {"disable"},
	}.Encode()}
	return u.String()
}

// Version is the server's version, as it prints it: "15.18 (Debian 15.18-0+deb12u1)".
func (c *Cluster) Version() string { return c.version }

// Binaries are the programs that the cluster runs on.
func (c *Cluster) Binaries() Binaries { return c.bin }

// Timing says where the time of the start went.
func (c *Cluster) Timing() Timing { return c.timing }

// Log is the end of what the server has written to its log: little, unless something went wrong.
func (c *Cluster) Log() string { return c.server.log.String() }

// resolve makes a directory's path absolute and free of symbolic links, which is how the system
// itself shows it; "" is the system's temporary directory.
func resolve(dir string) (string, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

// socketFits refuses a directory whose path is so long that a socket in it could not be opened.
func socketFits(temp string) error {
	longest := directory(filepath.Join(temp, prefix+"4294967295")).socket()
	longest = filepath.Join(longest, ".s.PGSQL."+strconv.Itoa(port))
	if len(longest) <= maxSocketPath {
		return nil
	}
	return fmt.Errorf("the temporary directory %s is too long for a Unix socket in it: %d bytes, and %d are allowed; choose a shorter one",
		temp, len(temp), len(temp)-(len(longest)-maxSocketPath))
}
