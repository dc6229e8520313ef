package preset

import "retrylab/caller/policy"

// HTTPURLConnection is the resend inside the JDK's oldest HTTP client, which stands below Feign
// unless another client is chosen.
var HTTPURLConnection = &Preset{
	Name:     "httpurlconnection",
	Entry:    "jdk-httpurlconnection",
	Group:    java,
	Title:    "JDK HttpURLConnection",
	Version:  "OpenJDK 17.0.15 run, 17.0.21 read; the same code on the main branch",
	Verified: "both",
	Source: []string{
		"openjdk/jdk src/java.base/share/classes/sun/net/www/http/HttpClient.java@jdk-17.0.21 parseHTTP, parseHTTPHeader, failedOnce, retryPostProp",
		"openjdk/jdk src/java.base/share/classes/sun/net/www/protocol/http/HttpURLConnection.java@jdk-17 writeRequests, getOutputStream0",
	},
	Counts: "at most one silent resend of a request",
	Doc:    "Sends a request once more when the connection breaks before the answer, even a POST, even a new connection.",
	Triggers: []string{
		"eof or reset before the first bytes of the answer, on fresh and reused connections alike",
		"every method, POST included, as long as the body was buffered or is empty",
	},
	NotRetried: []string{
		"a read time-out",
		"a body in fixed-length or chunked streaming mode",
		"POST with sun.net.http.retryPost=false; CONNECT",
		"any status",
	},
	Waits:       "none: at once, on a new connection",
	Timeouts:    "connect and read are infinite by default; read is the silence between two socket reads, so a dripping server never trips it",
	OnByDefault: "yes",
	Originals:   []Original{{"-Dsun.net.http.retryPost", "retry-post", "true"}},
	Drips:       []Drip{{"setReadTimeout", never, never}},
	Traps: []string{
		"A first request on a new connection is sent again too.",
		"retryPost=false stops POST alone; GET, PUT and DELETE cannot be stopped.",
		"A GET whose output stream is opened goes out as POST.",
	},
	Takes:    []string{"retry-post"},
	Defaults: policy.Settings{RetryPost: new(true)},
	Layer:    httpURLConnectionLayer,
	Body:     policy.Buffered,
	words: []word{
		{"retryPost_true", "sun.net.http.retryPost=true, the default", setRetryPost(true)},
		{"retryPost_false", "sun.net.http.retryPost=false", setRetryPost(false)},
	},
}

func httpURLConnectionLayer(s policy.Settings) (policy.Layer, error) {
	never := []string{"CONNECT"}
	if !*s.RetryPost {
		never = append(never, "POST")
	}
	return policy.Layer{
		Attempts: 2,
		Limit:    "one resend",
		Rules: []policy.Rule{
			{Failures: []policy.Failure{policy.EOF, policy.Reset}, NotMethods: never, Bodies: policy.Repeatable},
		},
	}, nil
}

func setRetryPost(on bool) func(*builder, []string) error {
	return func(b *builder, _ []string) error {
		return b.set("httpurlconnection", "retryPost", func(s *policy.Settings) { s.RetryPost = &on })
	}
}
