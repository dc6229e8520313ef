package cmd

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestOTLPPost: the traces go to whoever collects them, after the report; one that refuses them is told of, and
// one on another machine gets none unless it is allowed to.
func TestOTLPPost(t *testing.T) {
	t.Parallel()
	status := make(chan int, 1)
	got := make(chan *http.Request, 1)
	bodies := make(chan []byte, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- r
		bodies <- body
		w.WriteHeader(<-status)
		io.WriteString(w, "the collector's own words")
	}))
	defer server.Close()

	status <- http.StatusOK
	run := runMain("run", "read-timeout", "--otlp", server.URL)
	if run.code != 0 || !strings.Contains(run.stdout, "feign retryer, 3") {
		t.Errorf("exit code %d: %s", run.code, run.stderr)
	}
	r, body := <-got, <-bodies
	var traces struct{ ResourceSpans []any }
	if err := json.Unmarshal(body, &traces); err != nil || len(traces.ResourceSpans) != 2 {
		t.Errorf("the body has %d resources: %v", len(traces.ResourceSpans), err)
	}
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("it is %s %s, %s", r.Method, r.URL, r.Header.Get("Content-Type"))
	}

	status <- http.StatusServiceUnavailable
	run = runMain("run", "read-timeout", "--otlp", server.URL+"/collect")
	if r = <-got; r.URL.Path != "/collect" {
		t.Errorf("the path is %s", r.URL.Path)
	}
	<-bodies
	if want := "it answers 503 Service Unavailable: the collector's own words"; run.code != 3 || !strings.Contains(run.stderr, want) || run.stdout == "" {
		t.Errorf("exit code %d, %q; want 3, %q, and the report all the same", run.code, run.stderr, want)
	}

	closed := httptest.NewServer(nil)
	closed.Close()
	run = runMain("run", "read-timeout", "--otlp", closed.URL)
	if want := "/v1/traces: nobody listens there (connection refused)\n  is a collector there? --otlp traces.json writes them to a file\n"; run.code != 3 || !strings.HasSuffix(run.stderr, want) || run.stdout == "" {
		t.Errorf("exit code %d, %q; want 3, …%q, and the report all the same", run.code, run.stderr, want)
	}

	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--otlp", "http://collector.example"}, "--allow-host collector.example says that it may have them"},
		{[]string{"--otlp", "http://collector.example", "--allow-host", "other.example"}, "which is not this machine"},
		{[]string{"--otlp", "http://"}, "--otlp cannot be"},
		{[]string{"--otlp", ""}, "--otlp names neither a file nor an address"},
	} {
		run := runMain(append([]string{"run", "read-timeout"}, c.args...)...)
		if run.code != 2 || !strings.Contains(run.stderr, c.want) || run.stdout != "" {
			t.Errorf("%q: exit code %d, %q", c.args, run.code, run.stderr)
		}
	}
}
