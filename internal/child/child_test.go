//go:build unix

package child

import (
	"io"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"retrylab/internal/vtime"
)

// played is what the test binary is called with to be a child.
const played = "play a child"

// TestMain is also the child: it says on its first file what it has been given, and waits there for
// the end of its second.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == played {
		says, waits := os.NewFile(3, ""), os.NewFile(4, "")
		input, _ := io.ReadAll(os.Stdin)
		io.WriteString(says, strings.Join(os.Args[2:], " ")+"|"+strings.Join(os.Environ(), " ")+"|"+string(input)+"\n")
		io.WriteString(os.Stderr, strings.Repeat("noise ", 2000)+"last words")
		says.Close()
		io.ReadAll(waits)
		os.Exit(3)
	}
	goleak.VerifyTestMain(m)
}

// start starts a child; the function ends it in order.
func start(t *testing.T, group *vtime.Group, log *Tail) (p *Process, said string, end func()) {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	hears, says := pipe(t)
	waits, ends := pipe(t)
	p, err = Start(group, Command{Path: path, Args: []string{played, "one", "two"}, Env: []string{"A=b"}, Files: []*os.File{says, waits}, Log: log})
	says.Close()
	waits.Close()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(hears)
	if err != nil {
		t.Error(err)
	}
	hears.Close()
	return p, string(text), func() { ends.Close() }
}

func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

func TestProcess(t *testing.T) {
	t.Parallel()
	var group vtime.Group
	var log Tail
	p, said, end := start(t, &group, &log)
	if want := "one two|A=b|\n"; said != want {
		t.Errorf("it was given %q, want %q", said, want)
	}
	select {
	case <-p.Exited():
		t.Error("it ended before its time")
	default:
	}
	end()
	<-p.Exited()
	if err := p.Err(); err == nil || err.Error() != "exit status 3" {
		t.Errorf("it ended with %v", err)
	}
	if text := log.String(); len(text) != kept || !strings.HasSuffix(text, "noise last words") {
		t.Errorf("%d bytes of its words are kept: …%s", len(text), text[max(0, len(text)-40):])
	}
	if err := p.Kill(); err != nil {
		t.Errorf("kill after the end: %v", err)
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

func TestKill(t *testing.T) {
	t.Parallel()
	var group vtime.Group
	p, _, end := start(t, &group, nil)
	defer end()
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	if err := p.Err(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("it ended with %v", err)
	}
	if err := p.Kill(); err != nil {
		t.Errorf("kill again: %v", err)
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

func TestNothingToStart(t *testing.T) {
	t.Parallel()
	var group vtime.Group
	if p, err := Start(&group, Command{Path: t.TempDir() + "/nothing"}); err == nil {
		t.Errorf("started %d", p.ID())
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}
