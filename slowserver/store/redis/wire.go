package redis

import (
	"bytes"
	"io"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// Traffic is what has crossed between a client and its server. What a client does on its own when
// it connects (HELLO, AUTH, SELECT) is not in it.
type Traffic struct {
	Sent map[string]int // commands by name, as "SET" and "GET"; one with NX is "SET NX"
	Cut  int            // replies that the server gave and the client did not get
}

// A wire counts what a client's connections carry, and cuts replies.
type wire struct {
	mu    sync.Mutex
	sent  map[string]int
	cut   int
	armed bool // the reply to the next command is to be cut
}

func (w *wire) cutNext() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = true
}

func (w *wire) traffic() Traffic {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := Traffic{Sent: map[string]int{}, Cut: w.cut}
	maps.Copy(t.Sent, w.sent)
	return t
}

// wrap returns a connection that the wire watches.
func (w *wire) wrap(c net.Conn) net.Conn {
	watched := &conn{Conn: c, wire: w}
	watched.requests.done = watched.crossed
	// The pool looks at the socket for the end of a connection before it uses it again, as it would
	// without the wire. A connection without a socket must not say that it has one.
	if s, ok := c.(syscall.Conn); ok {
		return &socket{watched, s}
	}
	return watched
}

// A conn is one connection of a client.
type conn struct {
	net.Conn
	wire     *wire
	requests requests
	doomed   atomic.Bool // the next thing that arrives is the reply to be cut
}

// A socket is a conn over a socket.
type socket struct {
	*conn
	syscall.Conn
}

// Write counts the commands that have been sent with p.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.requests.feed(p[:n])
	return n, err
}

// crossed is called with each command that has been sent whole.
func (c *conn) crossed(words []string) {
	name := strings.ToUpper(words[0])
	switch name {
	case "HELLO", "AUTH", "SELECT":
		return
	case "SET":
		if len(words) > 3 && strings.EqualFold(words[len(words)-1], "NX") {
			name = "SET NX"
		}
	}
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	if c.wire.sent == nil {
		c.wire.sent = map[string]int{}
	}
	c.wire.sent[name]++
	if c.wire.armed {
		c.wire.armed = false
		c.doomed.Store(true)
	}
}

// Read drops what arrives on a connection whose reply is to be cut. That it has arrived is the sign
// that the server has run the command.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil || !c.doomed.Load() {
		return n, err
	}
	c.Conn.Close()
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	c.wire.cut++
	return 0, io.EOF
}

// requests reads the commands out of what a client sends, in pieces of any size: lists of words,
//
//	*2\r\n$3\r\nGET\r\n$1\r\nk\r\n
type requests struct {
	done func(words []string) // called with each

	line  []byte   // the beginning of a line
	word  []byte   // the beginning of a word
	left  int      // bytes missing of the word and its end
	more  int      // words missing of the command
	words []string // of the command so far
}

func (r *requests) feed(p []byte) {
	for len(p) > 0 {
		if r.left > 0 {
			n := min(r.left, len(p))
			r.word = append(r.word, p[:n]...)
			r.left -= n
			p = p[n:]
			if r.left == 0 {
				r.endWord()
			}
			continue
		}
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			r.line = append(r.line, p...)
			return
		}
		r.line = append(r.line, p[:i]...)
		p = p[i+1:]
		r.endLine()
	}
}

func (r *requests) endLine() {
	line := string(bytes.TrimSuffix(r.line, []byte("\r")))
	r.line = r.line[:0]
	if line == "" {
		return
	}
	n, err := strconv.Atoi(line[1:])
	switch {
	case err != nil:
	case line[0] == '*':
		r.more, r.words = n, nil
	case line[0] == '$':
		r.left = n + len("\r\n")
	}
}

func (r *requests) endWord() {
	r.words = append(r.words, string(r.word[:len(r.word)-len("\r\n")]))
	r.word = r.word[:0]
	if r.more--; r.more == 0 {
		r.done(r.words)
	}
}
