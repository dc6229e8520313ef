package redisserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"retrylab/internal/privatedir"
	"retrylab/internal/vtime"
)

// prefix begins the name of every private directory.
const prefix = "retrylab-redis-"

// longest is the length of the longest path of a Unix socket that every system takes.
const longest = 103

// A directory is the path of a server's private directory.
type directory string

// newDirectory makes a private directory in parent, after removing those that dead labs left there.
func newDirectory(ctx context.Context, parent string) (*privatedir.Dir, error) {
	if supported != nil {
		return nil, supported
	}
	parent, err := shortParent(parent)
	if err != nil {
		return nil, err
	}
	// What cannot be swept is not in the way.
	_, _ = privatedir.Sweep(parent, prefix, func(path string) error {
		endServer(ctx, directory(path))
		return nil
	})
	return privatedir.New(parent, prefix)
}

// shortParent returns an absolute path in which the path of a socket is not too long for the
// system.
func shortParent(parent string) (string, error) {
	asked := parent != ""
	if !asked {
		parent = os.TempDir()
	}
	parent, err := filepath.Abs(parent)
	if err != nil {
		return "", err
	}
	fits := func(p string) bool {
		return len(directory(filepath.Join(p, prefix+"4294967295")).socket()) <= longest
	}
	switch {
	case fits(parent):
		return parent, nil
	case asked:
		return "", fmt.Errorf("%s is too long for a Unix socket, whose path has at most %d bytes", parent, longest)
	default:
		return "/tmp", nil
	}
}

// file returns the path of a file in the directory.
func (d directory) file(name string) string { return filepath.Join(string(d), name) }

// socket returns the path of the server's socket.
func (d directory) socket() string { return d.file("s") }

// endServer ends the server of a dead lab, should it still run: it does where the system cannot tie
// it to the life of the lab. Its socket says which one it is, as no process id could.
func endServer(ctx context.Context, d directory) {
	config, err := os.ReadFile(d.file("redis.conf"))
	if err != nil {
		return
	}
	_, after, _ := strings.Cut(string(config), `requirepass "`)
	password, _, _ := strings.Cut(after, `"`)
	ctx, cancel := vtime.NewWall(time.Time{}, 1).WithTimeout(ctx, time.Second, errSlow)
	defer cancel()
	// The answer to SHUTDOWN is the end of the connection.
	_, _ = (&Server{dir: d, password: password}).ask(ctx, "SHUTDOWN", "NOSAVE")
}
