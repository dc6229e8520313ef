package child

import "sync"

// Tail keeps the end of what is written to it. Its zero value is ready.
type Tail struct {
	mu   sync.Mutex
	text []byte
}

// kept is how many bytes a Tail keeps.
const kept = 8 << 10

// Write keeps the end of what has been written.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-kept):]
	return len(p), nil
}

// String returns what is kept.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
