package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"retrylab/slowserver/store"
)

// The SQLSTATEs that mean something here.
const (
	uniqueViolation      = "23505"
	readOnlyTransaction  = "25006"
	failedTransaction    = "25P02"
	idleTimeout          = "25P03"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	lockNotAvailable     = "55P03"
	queryCanceled        = "57014"
	adminShutdown        = "57P01"
	tooManyConnections   = "53300"
	invalidPassword      = "28P01"
	invalidAuthorization = "28000"
	unknownDatabase      = "3D000"
	noPrivilege          = "42501"
)

var classes = map[string]error{
	uniqueViolation:      store.ErrDuplicate,
	failedTransaction:    store.ErrAborted,
	serializationFailure: store.ErrSerialization,
	deadlockDetected:     store.ErrDeadlock,
	lockNotAvailable:     store.ErrBusy,
	idleTimeout:          store.ErrLost,
	adminShutdown:        store.ErrLost,
}

// classified wraps an error of a statement in the class that a service knows.
func classified(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		if class := classes[e.Code]; class != nil {
			return fmt.Errorf("%w (%s %s)", class, e.Code, e.Message)
		}
		return fmt.Errorf("%s (%s)", e.Message, e.Code)
	}
	return fmt.Errorf("%w (%s)", store.ErrLost, err)
}

// parseError says what is wrong with a connection string, and nothing of what is in it: it may
// hold a password in any place.
func parseError(err error) error {
	e, ok := errors.AsType[*pgconn.ParseConfigError](err)
	if !ok {
		return errors.New("the connection string cannot be read")
	}
	why := "it is no URL of the form postgres://user:password@host:port/database"
	for _, known := range []string{
		"invalid port", "sslmode is invalid", "sslnegotiation", "target_session_attrs", "connect_timeout",
		"unable to read CA file", "unable to add CA", "unable to read sslcert", "unable to read sslkey", "failed to read passfile",
	} {
		if strings.Contains(e.Error(), known) {
			why = known
		}
	}
	return fmt.Errorf("the connection string cannot be read: %s", why)
}

// environment says why the server cannot be used, in one line and without a secret.
func (d *Database) environment(what string, err error) error {
	where := d.where()
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch e.Code {
		case invalidPassword, invalidAuthorization:
			return fmt.Errorf("%s refuses user %q: %s", where, d.config.User, e.Message)
		case unknownDatabase:
			return fmt.Errorf("%s: %s", where, e.Message)
		case tooManyConnections:
			return fmt.Errorf("%s takes no more connections: %s", where, e.Message)
		case readOnlyTransaction:
			return fmt.Errorf("%s is read-only: orders cannot be written there", where)
		case noPrivilege:
			return fmt.Errorf("%s does not let user %q %s: %s", where, d.config.User, what, e.Message)
		}
		return fmt.Errorf("%s: %s: %s (%s)", where, what, e.Message, e.Code)
	}
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return fmt.Errorf("%s cannot be reached: there is no host %q", where, dns.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s cannot be reached: nobody listens there (connection refused)", where)
	case errors.Is(err, syscall.ENOENT):
		return fmt.Errorf("%s cannot be reached: there is no such socket", where)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s cannot be reached: permission denied", where)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %s: %w", where, what, context.Canceled)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), pgconn.Timeout(err):
		return fmt.Errorf("%s cannot be reached: no answer within %s", where, d.config.ConnectTimeout)
	case strings.Contains(err.Error(), "server refused TLS connection"):
		return fmt.Errorf("%s does not speak TLS, and the connection string demands it (sslmode)", where)
	}
	return fmt.Errorf("%s: %s: %s", where, what, innermost(err))
}

// innermost is the cause at the end of a chain: what is around it repeats the connection string.
func innermost(err error) error {
	for {
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			if e.Unwrap() == nil {
				return err
			}
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			if len(e.Unwrap()) == 0 {
				return err
			}
			err = e.Unwrap()[0]
		default:
			return err
		}
	}
}
