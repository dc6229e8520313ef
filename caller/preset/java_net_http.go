package preset

import "retrylab/caller/policy"

// JavaNetHTTP is the resend inside the JDK's newer HTTP client.
var JavaNetHTTP = &Preset{
	Name:     "java-net-http",
	Entry:    "jdk-java-net-http",
	Group:    java,
	Title:    "JDK java.net.http.HttpClient, HTTP/1.1",
	Version:  "OpenJDK 17.0.15 run, 17.0.21 read; newer main branch read for comparison",
	Verified: "both",
	Source: []string{
		"openjdk/jdk src/java.net.http/share/classes/jdk/internal/net/http/MultiExchange.java@jdk-17 getExceptionalCF, canRetryRequest, retryOnFailure",
		"openjdk/jdk src/java.net.http/share/classes/jdk/internal/net/http/Http1Exchange.java@jdk-17 sendHeadersAsync",
		"openjdk/jdk src/java.net.http/share/classes/jdk/internal/net/http/Http1AsyncReceiver.java@jdk-17 onReadError",
	},
	Counts: "one resend in all (JDK 17)",
	Doc:    "Sends GET and HEAD once more when the connection closes before the first byte of the answer.",
	Triggers: []string{
		"eof or reset before any byte of the answer, on fresh and reused connections, for GET and HEAD",
		"a refused connection, for any method: one more connect",
	},
	NotRetried: []string{
		"any time-out",
		"POST, PUT and DELETE, unless jdk.httpclient.enableAllMethodRetry",
		"any status",
	},
	Waits:       "none",
	Timeouts:    "unset by default; HttpRequest.timeout stops at the headers on JDK 17, runs on over the body on newer ones, and starts anew with a resend; connectTimeout is apart",
	OnByDefault: "yes",
	Originals: []Original{
		{"-Djdk.httpclient.enableAllMethodRetry", "all-methods", "false"},
		{"-Djdk.httpclient.disableRetryConnect", "", "false"},
	},
	Drips: []Drip{{"HttpRequest.timeout (JDK 17)", fires, never}},
	Traps: []string{
		"A comment in its source says that this is for pooled connections; a fresh one is resent on as well.",
		"Newer JDKs allow up to jdk.httpclient.redirects.retrylimit (5) tries on an expired connection.",
	},
	Takes:    []string{"all-methods"},
	Defaults: policy.Settings{AllMethods: new(false)},
	Layer:    javaNetHTTPLayer,
	Body:     policy.Buffered,
	words: []word{
		{"enableAllMethodRetry", "jdk.httpclient.enableAllMethodRetry is set", func(b *builder, _ []string) error {
			return b.set("java-net-http", "methods", func(s *policy.Settings) { s.AllMethods = new(true) })
		}},
	},
}

func javaNetHTTPLayer(s policy.Settings) (policy.Layer, error) {
	methods := policy.GetOrHead
	if *s.AllMethods {
		methods = nil
	}
	return policy.Layer{
		Attempts: 2,
		Limit:    "one resend",
		Rules: []policy.Rule{
			{Failures: []policy.Failure{policy.EOF, policy.Reset}, Methods: methods},
			{Failures: []policy.Failure{policy.Refused}},
		},
	}, nil
}
