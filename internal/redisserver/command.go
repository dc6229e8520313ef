package redisserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
)

// ask sends a command on a connection of its own and returns what the server answers.
func (s *Server) ask(ctx context.Context, command ...string) (string, error) {
	return s.askInOrder(ctx, command)
}

// askInOrder sends commands on one connection and returns the answer to the last.
func (s *Server) askInOrder(ctx context.Context, commands ...[]string) (answer string, err error) {
	network, address := s.Addr()
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return "", err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	r := bufio.NewReader(c)
	for _, command := range append([][]string{{"AUTH", s.password}}, commands...) {
		if _, err = c.Write(request(command)); err == nil {
			answer, err = reply(r)
		}
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return "", fmt.Errorf("redis %s: %w", command[0], err)
		}
	}
	return answer, nil
}

// request writes a command as Redis' protocol has it.
func request(command []string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "*%d\r\n", len(command))
	for _, word := range command {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
	}
	return b.Bytes()
}

// reply reads a reply that is text or a number. That of a list is not among them.
func reply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return "", errors.New("an empty reply")
	}
	switch kind, rest := line[0], line[1:]; kind {
	case '+', ':':
		return rest, nil
	case '-':
		return "", errors.New(rest)
	case '$':
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 || n > 1<<20 {
			return "", fmt.Errorf("a reply of length %q", rest)
		}
		text := make([]byte, n+len("\r\n"))
		if _, err := io.ReadFull(r, text); err != nil {
			return "", err
		}
		return string(text[:n]), nil
	default:
		return "", fmt.Errorf("a reply of an unknown kind: %q", kind)
	}
}
