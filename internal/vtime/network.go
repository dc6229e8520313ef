package vtime

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
)

// A Network is what the machines of a trial are connected by. Hosts are names
// without a port. All methods may be called by several goroutines.
//
// The connections of both networks have, beside the methods of [net.Conn], the
// methods SetLinger and CloseWrite of [net.TCPConn], and end as TCP connections
// do on Linux:
//
//   - Close tells the peer that no more data comes: it reads what was sent and
//     then [io.EOF]. Close after SetLinger(0), or with data unread, is a reset:
//     the peer reads what was sent and then gets [syscall.ECONNRESET].
//   - Data that reaches a closed end draws a reset. After a peer's Close the
//     first write may therefore succeed; later ones fail with [syscall.EPIPE],
//     and reads go on returning [io.EOF].
//   - After CloseWrite an end can still read, but its writes fail with EPIPE.
//   - At an end that was closed by its owner everything fails with
//     [net.ErrClosed], after a deadline with [os.ErrDeadlineExceeded].
//
// All errors but io.EOF are wrapped in [*net.OpError]. A Memory returns the
// error of a reset every time, a Loopback only once, as the system does: then
// reads return io.EOF, and writes EPIPE.
type Network interface {
	// Listen returns the listener of a host. A host has one at a time; it may
	// have another after the first is closed. Connections which are dialled
	// and not yet accepted when a listener closes are reset.
	Listen(host string) (net.Listener, error)

	// Dial connects to a host. The id names the connection: what is drawn at
	// random for a connection is drawn from its id and a seed. The error wraps
	// [syscall.ECONNREFUSED] if nothing listens; if ctx ends first it wraps
	// [context.Cause] of it, and is a time-out in the sense of [net.Error] if
	// it was a deadline that ended ctx.
	Dial(ctx context.Context, host, id string) (net.Conn, error)

	// Blackhole makes a host swallow what is sent to connect to it: from now
	// on Dial to it waits until its context ends. What is connected stays so.
	Blackhole(host string)

	// Crash ends what a host has open, as the system does for a process that
	// was killed: its listener closes, and so does every connection that it has
	// accepted, with a reset only if there is something that it has not read;
	// what it has not accepted is reset. It may listen again afterwards.
	Crash(host string)

	// Busy reports whether there is a connection, established by Dial, that
	// the listening side has not yet accepted and closed. While there is, a
	// server can still do something, even if every caller has gone.
	Busy() bool

	// Close closes every listener and both ends of every connection, and ends
	// every Dial. Afterwards Listen and Dial fail with [net.ErrClosed].
	Close() error
}

var (
	_ Network = (*Memory)(nil)
	_ Network = (*Loopback)(nil)
)

// errInUse is the cause of a second Listen for one host.
var errInUse = os.NewSyscallError("bind", syscall.EADDRINUSE)

// errRefused is the cause of a Dial to a host where nothing listens.
var errRefused = os.NewSyscallError("connect", syscall.ECONNREFUSED)

// A dialError is the cause of a Dial that the end of its context has ended.
type dialError struct {
	cause   error
	timeout bool
}

// ended returns the error of an operation given up because ctx has ended.
func ended(ctx context.Context) error {
	return &dialError{
		cause:   context.Cause(ctx),
		timeout: errors.Is(ctx.Err(), context.DeadlineExceeded),
	}
}

func (e *dialError) Error() string   { return e.cause.Error() }
func (e *dialError) Unwrap() error   { return e.cause }
func (e *dialError) Timeout() bool   { return e.timeout }
func (e *dialError) Temporary() bool { return e.timeout }
