package slowserver

import (
	"context"
	"time"

	"retrylab/slowserver/store"
)

// keys is the store of keys as a request reaches it: nothing gets there any more once its replica is dead,
// or it is cut off.
type keys struct {
	store.Keys
	request *handling
}

// keys returns the store of keys for a request, nil where there is none.
func (h *handling) keys() store.Keys {
	if h.service.config.Keys == nil {
		return nil
	}
	return keys{h.service.config.Keys, h}
}

// gone says why nothing gets to the store of keys, nil when it does.
func (k keys) gone() error {
	switch {
	case k.request.life.isDead():
		return errCrashed
	case k.request.noKeys:
		return store.ErrUnreachable
	}
	return nil
}

// Claim claims a key, if that can be reached.
func (k keys) Claim(ctx context.Context, key, value string, ttl time.Duration) (won bool, err error) {
	if err := k.gone(); err != nil {
		return false, err
	}
	return k.Keys.Claim(ctx, key, value, ttl)
}

// Get returns the value of a key, if that can be reached.
func (k keys) Get(ctx context.Context, key string) (value string, found bool, err error) {
	if err := k.gone(); err != nil {
		return "", false, err
	}
	return k.Keys.Get(ctx, key)
}

// Set stores a value under a key, if that can be reached.
func (k keys) Set(ctx context.Context, key, value string, ttl time.Duration) error {
	if err := k.gone(); err != nil {
		return err
	}
	return k.Keys.Set(ctx, key, value, ttl)
}

// Delete removes a key, if that can be reached.
func (k keys) Delete(ctx context.Context, key string) error {
	if err := k.gone(); err != nil {
		return err
	}
	return k.Keys.Delete(ctx, key)
}
