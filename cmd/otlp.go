package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"retrylab/internal/lab"
	"retrylab/internal/suite"
	"retrylab/report"
)

// traceTimeout is how long, in real time, whoever collects traces has to take them.
const traceTimeout = 10 * time.Second

// collector is where traces are posted.
type collector struct{ url *url.URL }

// parseCollector reads what --otlp names, where it is an address and no file. An address without a path is that
// of a collector, which takes traces at /v1/traces. One that is not on this machine has to be allowed by name.
func parseCollector(target string, allowed []string) (*collector, error) {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" {
		return nil, usagef("for example --otlp http://localhost:4318", "--otlp cannot be %q", target)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	if host != "localhost" && (ip == nil || !ip.IsLoopback()) && !slices.Contains(allowed, host) {
		return nil, usagef(fmt.Sprintf("--allow-host %s says that it may have them", host), "--otlp would send traces to %s, which is not this machine", host)
	}
	return &collector{u}, nil
}

// isAddress reports whether --otlp names a collector and no file.
func isAddress(target string) bool {
	return strings.HasPrefix(target, "http://") || strings.HasPrefix(target, "https://")
}

// unreached says why nobody has answered.
func unreached(err error) string {
	var unknown *net.DNSError
	var slow net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nobody listens there (connection refused)"
	case errors.As(err, &unknown) && unknown.IsNotFound:
		return fmt.Sprintf("there is no host %q", unknown.Name)
	case errors.As(err, &slow) && slow.Timeout():
		return fmt.Sprintf("there is no answer within %s", traceTimeout)
	}
	return root(err).Error()
}

// post sends the traces of a result. What goes wrong is about the environment.
func (c *collector) post(ctx context.Context, doc *lab.Document) error {
	fail := func(format string, args ...any) error {
		return &suite.EnvironmentError{Err: fmt.Errorf("send the traces to %s: "+format, append([]any{c.url.Redacted()}, args...)...)}
	}
	var body bytes.Buffer
	if err := report.OTLP.Write(&body, doc, report.Options{}); err != nil {
		return fail("%w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url.String(), &body)
	if err != nil {
		return fail("%w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	client := &http.Client{
		Timeout:       traceTimeout,
		Transport:     &http.Transport{Proxy: nil, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return &suite.EnvironmentError{
			Err:  fmt.Errorf("send the traces to %s: %s", c.url.Redacted(), unreached(err)),
			Hint: "is a collector there? --otlp traces.json writes them to a file",
		}
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 200))
		return fail("it answers %s: %s", response.Status, strings.TrimSpace(string(text)))
	}
	return nil
}
