package guard

import (
	"context"
	"sync"

	"retrylab/internal/lab"
	"retrylab/slowserver/store"
)

// PerProcess remembers keys in a map. It is right as long as there is one process and it never
// ends: another replica has a map of its own, and a restart begins with an empty one.
var PerProcess = Guard{
	Name:  "per-process",
	Doc:   "remembers keys in a map of the process: every replica has its own, and a restart forgets it",
	Takes: []string{"retry-after", "fingerprint", "key-from", "key-value", "scope", "on-failure"},
	Admit: func(_ context.Context, d Desk, r Request) (Pass, error) {
		rec, won := d.Memory.claim(r.Key, store.Record{Hash: r.Hash, Owner: r.Send})
		if !won {
			a, ok := d.known(lab.Claim, r, rec)
			if !ok {
				return d.held(), nil
			}
			return Pass{Answer: a}, nil
		}
		d.Record(lab.Claim, "won")
		return Pass{
			Committed: func(_ context.Context, a Answer) error {
				d.Memory.finish(r.Key, done(a))
				return nil
			},
			Failed: func(_ context.Context, a Answer) error {
				switch d.Settings.leaves(a) {
				case "delete":
					d.Memory.release(r.Key)
				case "mark":
					d.Memory.finish(r.Key, failed(a))
				}
				return nil
			},
		}, nil
	},
}

// Memory is what one process remembers of keys. Its zero value remembers nothing yet.
type Memory struct {
	mu      sync.Mutex
	records map[string]store.Record
}

// claim keeps r as the record of key if there is none, else it returns the one that there is.
func (m *Memory) claim(key string, r store.Record) (store.Record, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if there, ok := m.records[key]; ok {
		return there, false
	}
	if m.records == nil {
		m.records = map[string]store.Record{}
	}
	m.records[key] = r
	return r, true
}

// finish keeps status and answer of r in the record of key.
func (m *Memory) finish(key string, r store.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	there := m.records[key]
	there.Status, there.Code, there.Body = r.Status, r.Code, r.Body
	m.records[key] = there
}

func (m *Memory) release(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records, key)
}
