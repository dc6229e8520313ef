package slowserver

import (
	"context"
	"time"

	"retrylab/slowserver/store"
)

// keys is the store of keys as a replica reaches it: nothing gets there any more once it is dead.
type keys struct {
	store.Keys
	life *incarnation
}

// keys returns the store of keys for a replica, nil where there is none.
func (p *incarnation) keys() store.Keys {
	if p.service.config.Keys == nil {
		return nil
	}
	return keys{p.service.config.Keys, p}
}

// Claim claims a key, unless the replica is dead.
func (k keys) Claim(ctx context.Context, key, value string, ttl time.Duration) (won bool, err error) {
	if k.life.isDead() {
		return false, errCrashed
	}
	return k.Keys.Claim(ctx, key, value, ttl)
}

// Get returns the value of a key, unless the replica is dead.
func (k keys) Get(ctx context.Context, key string) (value string, found bool, err error) {
	if k.life.isDead() {
		return "", false, errCrashed
	}
	return k.Keys.Get(ctx, key)
}

// Set stores a value under a key, unless the replica is dead.
func (k keys) Set(ctx context.Context, key, value string, ttl time.Duration) error {
	if k.life.isDead() {
		return errCrashed
	}
	return k.Keys.Set(ctx, key, value, ttl)
}

// Delete removes a key, unless the replica is dead.
func (k keys) Delete(ctx context.Context, key string) error {
	if k.life.isDead() {
		return errCrashed
	}
	return k.Keys.Delete(ctx, key)
}
