//go:build unix

package cmd

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestServe runs the service as a process of its own, orders a book, and tells it to stop.
func TestServe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		args   []string
		env    []string
		signal syscall.Signal
		first  string // of what it prints, before the address
		hints  bool
	}{
		{"as it is", []string{"--listen", "127.0.0.1:0"}, nil, syscall.SIGTERM, "order-1 listens on ", true},
		{"quiet, by the environment", []string{"--quiet"}, []string{"RETRYLAB_LISTEN=127.0.0.1:0", "RETRYLAB_NAME=order-2", "RETRYLAB_STORE=sqlite"}, syscall.SIGINT, "order-2 listens on ", false},
		{"of a scenario", []string{"read-timeout:key-unique-index", "--listen", "localhost:0"}, nil, syscall.SIGTERM, "order-1 listens on ", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), "retrylab", append([]string{"serve", "--set", "server.processing=1ms"}, c.args...)...)
			tmp := t.TempDir()
			command.Env = append(append(os.Environ(), "TMPDIR="+tmp, "LC_ALL=C.UTF-8", "GORACE="+noNap), c.env...)
			var stderr bytes.Buffer
			command.Stderr = &stderr
			stdout, err := command.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(stdout)
			line, err := lines.ReadString('\n')
			if err != nil || !strings.HasPrefix(line, c.first) {
				t.Errorf("it says %q (%v)", line, err)
			}
			base, _, _ := strings.Cut(strings.TrimPrefix(line, c.first), ",")
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/orders", strings.NewReader(`{"item":"book","amount_minor":4999}`))
			if err != nil {
				t.Fatal(err)
			}
			client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusCreated {
				t.Errorf("an order is answered %s", resp.Status)
			}
			if err := command.Process.Signal(c.signal); err != nil {
				t.Error(err)
			}
			rest, err := io.ReadAll(lines)
			if err != nil || len(rest) > 0 {
				t.Errorf("it also says %q (%v)", rest, err)
			}
			if err := command.Wait(); err != nil {
				t.Errorf("it ends with %v", err)
			}
			if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
				t.Errorf("it leaves %v (%v)", left, err)
			}
			text := stderr.String()
			if hints := strings.Contains(text, "curl -i "+base+"/orders"); hints != c.hints {
				t.Errorf("it hints:\n%s", text)
			}
			if logged := strings.Contains(text, " POST /orders 201 in "); logged != c.hints {
				t.Errorf("it logs:\n%s", text)
			}
			if !strings.Contains(text, "retrylab: stopping; requests at work have a few seconds") {
				t.Errorf("at the end it says:\n%s", text)
			}
		})
	}
}
