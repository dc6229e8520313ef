package scenarios

import (
	"fmt"
	"time"

	"retrylab/slowserver/guard"
)

// Ask is how a caller asks what became of an order whose outcome it does not know. It asks the order
// service itself, past all hops. Its questions are no sends.
type Ask struct {
	By       string        `yaml:"by" doc:"what it asks by: key (GET /results/KEY, what the guard knows; the default with a key) or operation (GET /references/NUMBER, whether there is an order; the default without)"`
	First    time.Duration `yaml:"first" doc:"from the unknown outcome to the first question; at once when absent"`
	Every    time.Duration `yaml:"every" doc:"from an answer that settles nothing to the next question; 1s when absent"`
	Until    time.Duration `yaml:"until" doc:"how long after the unknown outcome it asks no more, and leaves the outcome open; one question when absent"`
	NotFound string        `yaml:"not-found" doc:"what it makes of an answer that nothing is there: ask-again (the default), send-again (once) or failed"`
	Failed   string        `yaml:"failed" doc:"what it makes of an answer that the order failed: report (the default) or send-again (once)"`
	Key      string        `yaml:"key" doc:"the key of an order that it sends again: same (the default) or new"`
}

// Reconcile is a job that compares what callers left open with the database, by the business number.
type Reconcile struct {
	After time.Duration `yaml:"after" doc:"how long after the caller was done; there is no such job when absent"`
}

// maxQuestions bounds how often a caller asks after one order.
const maxQuestions = 1000

func askDefaults(a *Ask, key string) {
	if a.By == "" {
		a.By = "key"
		if key == "none" || key == "server" {
			a.By = "operation"
		}
	}
	if a.Every == 0 {
		a.Every = time.Second
	}
	for _, w := range []struct {
		word *string
		def  string
	}{{&a.NotFound, "ask-again"}, {&a.Failed, "report"}, {&a.Key, "same"}} {
		if *w.word == "" {
			*w.word = w.def
		}
	}
}

func (c *checker) ask(a Ask, key string, g guard.Settings) {
	c.word("caller.ask.by", a.By)
	c.word("caller.ask.not-found", a.NotFound)
	c.word("caller.ask.failed", a.Failed)
	c.word("caller.ask.key", a.Key)
	switch {
	case a.By == "key" && (key == "none" || key == "server"):
		c.fail("caller.ask.by", "the caller has no key to ask by", "set caller.key, or ask by: operation")
	case a.By == "key" && g.NoRecord() != "":
		c.fail("caller.ask", fmt.Sprintf("the guard %s %s: a question by key finds nothing", g.Kind, g.NoRecord()), "ask by: operation")
	case a.Every <= 0 || a.Until/a.Every > maxQuestions:
		c.fail("caller.ask", fmt.Sprintf("a caller asks at most %d times", maxQuestions), "make every longer or until shorter")
	case a.Key == "new" && a.NotFound != "send-again" && a.Failed != "send-again":
		c.fail("caller.ask.key", "nothing is sent again that could have a new key", "write not-found: send-again or failed: send-again")
	}
}
