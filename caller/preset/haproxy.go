package preset

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"retrylab/caller/policy"
)

// HAProxy is HAProxy's retries with retry-on and redispatch, which live in a hop.
var HAProxy = &Preset{
	Name:     "haproxy",
	Entry:    "haproxy",
	Group:    proxies,
	Title:    "HAProxy retries, retry-on and option redispatch",
	Version:  "3.4.0 and the manual of the main branch read, 2.6.12 run",
	Verified: "both",
	Source: []string{
		"haproxy/haproxy doc/configuration.txt (main, August 2026) retries, retry-on, option redispatch, disable-l7-retry",
		"haproxy/haproxy src/stream.c@v3.4.0 (TX_L7_RETRY is set without a look at the method)",
		"haproxy/haproxy src/backend.c@v3.4.0 back_handle_st_cer",
		"haproxy/haproxy include/haproxy/stream.h stream_choose_redispatch",
		"haproxy/haproxy include/haproxy/defaults.h CONN_RETRIES",
	},
	Counts: "retries = retries: three, so four tries in total",
	Doc:    "Four tries at one server, only while no connection could be made; retry-on adds what came after sending, POST included.",
	Triggers: []string{
		"conn-failure: refused, connect time-out; nothing was sent",
		"with retry-on: empty-response (eof, reset), response-timeout, junk-response, listed statuses, for any method",
		"all-retryable-errors is all of these with 500, 502, 503 and 504",
	},
	NotRetried: []string{
		"anything after sending, by default",
		"a request that does not fit into one buffer",
		"the methods for which http-request disable-l7-retry is set, once they were sent",
	},
	Waits:       "after a refused connection, at the same server, the connect time-out, at most 1 s; otherwise none",
	Timeouts:    "timeout connect, server and client must be set; each try has the first two anew, nothing bounds them all",
	OnByDefault: "for failed connections only",
	Originals: []Original{
		{"retries (retries; attempts is one more)", "attempts", "3"},
		{"retry-on (its words take the place of the default)", "on", "conn-failure"},
		{"retry-on 503 and the like", "statuses", "none"},
		{"http-request disable-l7-retry if METH_POST: the methods that are left", "methods", "any"},
		{"option redispatch <interval>", "redispatch", "off"},
		{"timeout connect, at most 1 s", "wait", "1 s"},
	},
	Traps: []string{
		"retry-on response-timeout sends a POST four times, all of them to the server that was too slow.",
		"A word of retry-on replaces conn-failure; who wants both must list both.",
		"option redispatch goes to another server at the last retry only, unless round robin chooses and nothing is sticky: then at every retry.",
		"option redispatch alone does not retry what was sent.",
	},
	Takes: []string{"attempts", "on", "statuses", "methods", "redispatch", "wait"},
	Defaults: policy.Settings{
		Attempts:   new(4),
		On:         []string{"connect"},
		Methods:    []string{policy.AnyMethod},
		Redispatch: new(0),
		Wait:       new(time.Second),
	},
	Layer: haproxyLayer,
	Body:  policy.Buffered,
	InHop: true,
	words: slices.Concat(haproxyConditions(), []word{
		{"disable_l7_retry", "http-request disable-l7-retry if METH_POST", noHAProxyPost},
		{"with_disable_l7_retry", "http-request disable-l7-retry if METH_POST", noHAProxyPost},
		{"redispatch", "option redispatch with round robin: every retry goes to the next server", setRedispatch(1)},
		{"option_redispatch", "option redispatch with round robin: every retry goes to the next server", setRedispatch(1)},
		{"redispatch_last", "option redispatch with a hash or a cookie: only the last retry does", setRedispatch(-1)},
		{"redispatch_#", "option redispatch with this interval", func(b *builder, a []string) error {
			return b.setNumber("haproxy", "redispatch", a[0], func(s *policy.Settings, n int) { s.Redispatch = &n })
		}},
	}),
}

// haproxyConditions are the words of retry-on, each beside what it is here. Where a name has several,
// retry_on need not be said again.
func haproxyConditions() []word {
	var words []word
	for _, c := range []struct {
		theirs string
		ours   []string
	}{
		{"conn_failure", []string{"connect"}},
		{"empty_response", []string{"eof", "reset"}},
		{"response_timeout", []string{"timeout"}},
		{"junk_response", []string{"malformed"}},
		{"0rtt_rejected", nil},
		{"all_retryable_errors", []string{"connect", "eof", "reset", "timeout", "malformed", "500", "502", "503", "504"}},
		{"none", nil},
	} {
		set := func(b *builder, _ []string) error {
			return b.set("haproxy", "condition "+c.theirs, func(s *policy.Settings) { s.On = append(slices.Clip(orEmpty(s.On)), c.ours...) })
		}
		doc := "retry-on " + strings.ReplaceAll(c.theirs, "_", "-")
		words = append(words, word{"retry_on_" + c.theirs, doc, set})
		if c.theirs != "response_timeout" && c.theirs != "none" {
			words = append(words, word{c.theirs, doc, set})
		}
	}
	// A listed status replaces the default, as any other word does.
	return append(words, word{"retry_on_#", "retry-on with this status", func(b *builder, a []string) error {
		return b.set("haproxy", "status "+a[0], func(s *policy.Settings) { s.On = append(slices.Clip(orEmpty(s.On)), a[0]) })
	}})
}

// orEmpty returns list, or one that is there and empty.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func noHAProxyPost(b *builder, _ []string) error {
	return b.set("haproxy", "methods", func(s *policy.Settings) {
		s.Methods = []string{"GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"}
	})
}

func setRedispatch(n int) func(*builder, []string) error {
	return func(b *builder, _ []string) error {
		return b.set("haproxy", "redispatch", func(s *policy.Settings) { s.Redispatch = &n })
	}
}

func haproxyLayer(s policy.Settings) (policy.Layer, error) {
	triggers, err := proxyTriggers(s.On, "HAProxy")
	if err != nil {
		return policy.Layer{}, err
	}
	before, after := split(triggers.Failures)
	methods := policy.MethodSet(s.Methods)
	atOnce := &policy.Waits{}
	// The wait is for a server that may be starting again. Another server, or one that has let the
	// connect time-out go by, is tried at once.
	afterRefusal := new(policy.FixedWait(min(*s.Wait, time.Second)))
	perServer := *s.Attempts
	switch r := *s.Redispatch; {
	case r > 0:
		perServer, afterRefusal = r, atOnce
	case r < 0:
		perServer = max(1, *s.Attempts+r)
	}
	refused := slices.DeleteFunc(slices.Clone(before), func(f policy.Failure) bool { return f != policy.Refused })
	return policy.Layer{
		Attempts:    *s.Attempts,
		Limit:       fmt.Sprintf("retries %d", *s.Attempts-1),
		PerInstance: perServer,
		Rules: []policy.Rule{
			{Failures: refused, Wait: afterRefusal},
			{Failures: before, Wait: atOnce},
			{Failures: after, Methods: methods, Bodies: policy.Repeatable, Wait: atOnce},
			{
				Statuses: slices.Concat(triggers.Statuses, policy.StatusSet(s.Statuses)),
				Methods:  methods, Bodies: policy.Repeatable, Wait: atOnce,
			},
		},
	}, nil
}
