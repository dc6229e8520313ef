package preset

import "retrylab/caller/policy"

// ReactorNetty is Reactor Netty's one retry, of a request of which nothing was sent.
var ReactorNetty = &Preset{
	Name:     "reactor-netty",
	Entry:    "reactor-netty",
	Group:    java,
	Title:    "Reactor Netty HttpClient, retry once",
	Version:  "1.3.6 read",
	Verified: "source",
	Source: []string{
		"reactor/reactor-netty reactor-netty-http HttpClientConnect.java@v1.3.6 HttpObserver.onUncaughtException, HttpClientHandler.test",
		"reactor/reactor-netty reactor-netty-http HttpClientOperations.java@v1.3.6 onInboundClose",
		"reactor/reactor-netty reactor-netty-core AbortedException.java@v1.3.6 isConnectionReset",
	},
	Counts:   "one resend",
	Doc:      "Sends again only a request of which nothing was written, on a pooled connection that had died: never twice to a server.",
	Triggers: []string{"a pooled connection that breaks before the headers of the request were sent, for any method"},
	NotRetried: []string{
		"anything once the headers or the body were sent",
		"every time-out",
		"any status",
	},
	Waits:       "none",
	Timeouts:    "responseTimeout unset by default; connect 30 s",
	OnByDefault: "yes; HttpClient.disableRetry(true) switches it off",
	Traps: []string{
		"Older releases could send again what had been sent.",
		"What a server of this lab does to a request comes after it was sent, so this preset sends once here.",
	},
	Layer: func(policy.Settings) (policy.Layer, error) {
		return policy.Layer{Attempts: 1, Limit: "what was sent is not sent again"}, nil
	},
	Body: policy.Buffered,
}
