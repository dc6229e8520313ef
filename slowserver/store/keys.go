package store

import (
	"context"
	"time"

	"retrylab/internal/lab"
)

// Keys is a store of keys beside the database, as a cache is: it is fast, and what it knows can be
// lost. A value of "" is as good as any.
type Keys interface {
	// Claim stores value under key if there is none, for ttl of scenario time; 0 is for ever.
	Claim(ctx context.Context, key, value string, ttl time.Duration) (won bool, err error)
	// Get returns the value of key.
	Get(ctx context.Context, key string) (value string, found bool, err error)
	// Set stores value under key, whatever was there.
	Set(ctx context.Context, key, value string, ttl time.Duration) error
	// Delete removes key.
	Delete(ctx context.Context, key string) error
	// Restart ends the server and starts it again, without what it knew.
	Restart(ctx context.Context) error
	// Failover ends the server and promotes a replica that has not got what was last written. It
	// is [ErrUnsupported] where there is no replica.
	Failover(ctx context.Context) error
	// CutNextReply loses the next reply of the server: it does what it was told, and the client
	// does not hear of it.
	CutNextReply()
	// Info says which server this is, as it itself reports.
	Info() lab.Store
	// Close ends the store and removes what it stored.
	Close() error
}
