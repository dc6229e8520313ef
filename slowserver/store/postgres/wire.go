package postgres

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"retrylab/slowserver/store"
)

// wire is a connection to the server that can be cut, above TLS, and counts what crosses it.
type wire struct {
	net.Conn

	mu       sync.Mutex
	cut      store.Cut // what happens to the next thing that is written
	crossed  int       // bytes that reached the server since it was armed
	lost     int       // bytes of the server's reply that were dropped
	happened bool
}

var errCut = errors.New("the connection was cut")

// arm makes the cut wait for the next thing that is written.
func (w *wire) arm(c store.Cut) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = c
}

// Write lets through what is written, unless the cut comes before it.
func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.cut {
	case store.CutBefore, store.Partition:
		w.happened = true
		w.Conn.Close()
		return 0, errCut
	case store.CutAfter:
		n, err := w.Conn.Write(p)
		w.crossed += n
		return n, err
	}
	return w.Conn.Write(p)
}

// Read reads, unless the reply is to be lost: it then waits until there is one, which says that
// the server has done what it was told, and drops it.
func (w *wire) Read(p []byte) (int, error) {
	w.mu.Lock()
	lose := w.cut == store.CutAfter && w.crossed > 0
	w.mu.Unlock()
	n, err := w.Conn.Read(p)
	if !lose || err != nil {
		return n, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.happened = true
	w.lost += n
	w.Conn.Close()
	return 0, io.ErrUnexpectedEOF
}

// injure says that what becomes of the connection from now on was injected.
func (w *wire) injure() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.happened = true
}

// injured reports whether the connection has failed, or is about to, because somebody wanted it.
func (w *wire) injured() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.happened
}

// String says what crossed the connection at its cut.
func (w *wire) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("%d bytes sent, %d bytes of the reply lost", w.crossed, w.lost)
}
