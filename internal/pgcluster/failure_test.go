//go:build unix && !aix && !solaris

package pgcluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"syscall"
	"testing"
)

var (
	another = account{name: "postgres", uid: 101, gid: 104, other: true}
	oneself = account{name: "1000", uid: 1000, gid: 1000}
)

// TestFailure shows what is made of the riddles of a machine.
func TestFailure(t *testing.T) {
	t.Parallel()
	exit := fmt.Errorf("exit status 1: %w", &exec.ExitError{})
	for _, test := range []struct {
		name string
		a    account
		err  error
		said string
		cure string
	}{
		{name: "no reason to be seen", a: another, err: exit, said: "initdb: error: invalid locale"},
		{
			name: "a user without a name", a: oneself, err: exit,
			said: "initdb: error: could not look up effective user ID 4711: user does not exist",
			cure: "initdb needs a user with a name: run as one, or give this user id an entry in the password database",
		},
		{
			name: "too little shared memory", a: oneself, err: exit,
			said: `FATAL:  could not resize shared memory segment "/PostgreSQL.1" to 1048576 bytes: No space left on device`,
			cure: "the machine grants too little shared memory: enlarge /dev/shm (docker run --shm-size), or lift the limits of kernel.shmmax and kernel.shmall",
		},
		{
			name: "a full disk", a: oneself, err: exit,
			said: `FATAL:  could not write to file "pg_wal/xlogtemp.9": No space left on device`, cure: noSpace,
		},
		{
			name: "a directory that is closed to the server", a: another, err: exit,
			said: `initdb: error: could not access directory "/x/data": Permission denied`,
			cure: "another user must be able to enter every directory above it: choose another temporary directory",
		},
		{
			name: "root without SETUID", a: another, err: &fs.PathError{Op: "fork/exec", Path: "/x/postgres", Err: syscall.EPERM},
			cure: "root may not become user postgres (uid 101) here: run as an ordinary user, or with the capabilities SETUID and SETGID and, in a user namespace, with these ids mapped into it",
		},
		{
			name: "a program that may not be run", a: oneself, err: &fs.PathError{Op: "fork/exec", Path: "/x/postgres", Err: syscall.EACCES},
			cure: "user 1000 (uid 1000) may not run this program: look at its mode and at those of the directories above it, or whether its file system is mounted noexec",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := failure("run initdb", test.a, test.err, test.said)
			want := "run initdb: " + test.err.Error()
			if test.said != "" {
				want += ":\n  " + test.said
			}
			if test.cure != "" {
				want += "\n" + test.cure
			}
			if err.Error() != want {
				t.Errorf("got\n%v\nwant\n%s", err, want)
			}
			if !errors.Is(err, test.err) {
				t.Error("the error does not wrap its cause")
			}
		})
	}
}

func TestFileFailure(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		err  error
		cure string
	}{
		{"nothing", nil, ""},
		{"in a user namespace", &fs.PathError{Op: "chown", Path: "/x", Err: syscall.EINVAL},
			"user postgres (uid 101) does not exist in this user namespace: map its ids into it, or run as an ordinary user"},
		{"root without CHOWN", &fs.PathError{Op: "lchown", Path: "/x", Err: syscall.EPERM},
			"root may not give files to user postgres (uid 101) here: run as an ordinary user, or with the capability CHOWN"},
		{"a full disk", &fs.PathError{Op: "write", Path: "/x", Err: syscall.ENOSPC}, noSpace},
		{"anything else", &fs.PathError{Op: "open", Path: "/x", Err: syscall.EIO}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := fileFailure(another, test.err)
			if test.cure == "" {
				if got != test.err {
					t.Errorf("got %v, want %v", got, test.err)
				}
				return
			}
			if want := test.err.Error() + "\n" + test.cure; got.Error() != want {
				t.Errorf("got\n%v\nwant\n%s", got, want)
			}
			if !errors.Is(got, test.err) {
				t.Error("the error does not wrap its cause")
			}
		})
	}
}

func TestLastLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                "",
		"\n":              "",
		"a\n":             "a",
		"a\r\nb\n\nc\nd":  "b\nc\nd",
		"a\nb\nc\nd\ne\n": "c\nd\ne",
	} {
		if got := lastLines(text, 3); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestPasses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		mode     fs.FileMode
		uid, gid int
		want     bool
	}{
		{0o700, 0, 0, false},
		{0o711, 0, 0, true},
		{0o701, 0, 104, false}, // the group's bits count for its members, the others' do not
		{0o710, 0, 104, true},
		{0o700, 101, 0, true},
		{0o077, 101, 104, false},
		{fs.ModeSticky | 0o777, 0, 0, true},
	} {
		if got := another.passes(test.mode, test.uid, test.gid); got != test.want {
			t.Errorf("%v of %d:%d: got %v, want %v", test.mode, test.uid, test.gid, got, test.want)
		}
	}
}
