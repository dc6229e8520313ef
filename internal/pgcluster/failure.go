package pgcluster

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// causes are what the programs of PostgreSQL complain of when a machine does not let them work, and
// what a person can do about it. The first that is found counts.
var causes = []struct{ said, cure string }{
	{"could not look up effective user ID", "initdb needs a user with a name: run as one, or give this user id an entry in the password database"},
	{"shared memory segment", "the machine grants too little shared memory: enlarge /dev/shm (docker run --shm-size), or lift the limits of kernel.shmmax and kernel.shmall"},
	{"anonymous shared memory", "the machine grants too little memory: lower max_connections or shared_buffers, or lift the limit"},
	{"could not create semaphores", "the machine grants too few semaphores: lower max_connections, or lift the limits of kernel.sem"},
	{"No space left on device", noSpace},
	{"Disk quota exceeded", noSpace},
	{"could not access directory", "another user must be able to enter every directory above it: choose another temporary directory"},
	{"cannot be run as root", "the account of the server is root under another name: run as an ordinary user"},
}

const noSpace = "the disk is full: free 50 MB, or choose another temporary directory"

// failure says that a program failed: what was tried, the last words of the program, and what to do
// where that is known.
func failure(tried string, a account, err error, said string) error {
	cure := cureFor(a, err, said)
	if said = lastLines(said, 5); said != "" {
		err = fmt.Errorf("%w:\n  %s", err, strings.ReplaceAll(said, "\n", "\n  "))
	}
	if cure != "" {
		err = fmt.Errorf("%w\n%s", err, cure)
	}
	return fmt.Errorf("%s: %w", tried, err)
}

func cureFor(a account, err error, said string) string {
	for _, c := range causes {
		if strings.Contains(said, c.said) {
			return c.cure
		}
	}
	switch {
	case a.other && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EINVAL)):
		return fmt.Sprintf("root may not become %s here: run as an ordinary user, or with the capabilities SETUID and SETGID and, in a user namespace, with these ids mapped into it", a)
	case errors.Is(err, syscall.EACCES):
		return fmt.Sprintf("%s may not run this program: look at its mode and at those of the directories above it, or whether its file system is mounted noexec", a)
	}
	return ""
}

// fileFailure is the same for what the lab itself does with files.
func fileFailure(a account, err error) error {
	var failed *fs.PathError
	chown := errors.As(err, &failed) && strings.HasSuffix(failed.Op, "chown")
	switch {
	case err == nil:
		return nil
	case chown && errors.Is(err, syscall.EINVAL):
		return fmt.Errorf("%w\n%s does not exist in this user namespace: map its ids into it, or run as an ordinary user", err, a)
	case chown && errors.Is(err, syscall.EPERM):
		return fmt.Errorf("%w\nroot may not give files to %s here: run as an ordinary user, or with the capability CHOWN", err, a)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w\n%s", err, noSpace)
	}
	return err
}

// lastLines returns the last n lines of a text that are not empty.
func lastLines(text string, n int) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
