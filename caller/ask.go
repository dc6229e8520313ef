package caller

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"retrylab/caller/policy"
	"retrylab/internal/lab"
)

// Ask is how a caller asks what became of an order whose outcome it does not know.
type Ask struct {
	By       string        // key or operation: what it asks by
	First    time.Duration // from the unknown outcome to the first question
	Every    time.Duration // from an answer that settles nothing to the next question
	Until    time.Duration // since the unknown outcome: later it asks no more; 0 for one question
	NotFound string        // ask-again, send-again or failed
	Failed   string        // report or send-again
	Key      string        // of an order that is sent again: same or new
}

// What a question can come to, beside the failures of a send.
const (
	learntDone     = "done"
	learntFailed   = "failed"
	learntNotFound = "not found"
)

// pursue asks what became of an order until it knows, or its time is over. What it has learnt may
// have it send the order again, once: it then takes what comes of that, unless that is a promise again.
func (c *Caller) pursue(ctx context.Context, o *order, out lab.Outcome) lab.Outcome {
	ask := c.habits.Ask
	status, number := c.learn(ctx, o, out.DoneAt)
	out.DoneAt, out.Reason = c.config.Clock.Now(), "asked: "+status
	again := false
	switch status {
	case learntDone:
		out.Belief, out.Order = lab.OK, number
	case learntFailed:
		again = ask.Failed == "send-again"
		out.Belief = lab.Failed
	case learntNotFound:
		again = ask.NotFound == "send-again"
		if ask.NotFound == "failed" {
			out.Belief = lab.Failed
		}
	}
	if !again {
		return out
	}
	next := &order{habits: o.habits, intent: o.intent, seed: o.seed, clock: o.clock, path: o.path + "/again.1", sends: o.sends}
	if ask.Key == "new" {
		next.salt = "-again"
	}
	c.config.Record(lab.Event{Kind: lab.Retry, Operation: o.intent.Operation, Send: o.path, Node: c.config.Node, Detail: status + ": sent again"})
	if out = c.send(ctx, next); out.Belief == lab.Unknown && isAccepted(out) {
		status, number := c.learn(ctx, next, out.DoneAt)
		out.DoneAt, out.Reason = c.config.Clock.Now(), "asked: "+status
		switch status {
		case learntDone:
			out.Belief, out.Order = lab.OK, number
		case learntFailed:
			out.Belief = lab.Failed
		}
	}
	return out
}

// learn asks until the answer settles something, and returns what it was and the number of the order.
func (c *Caller) learn(ctx context.Context, o *order, since time.Duration) (status string, number int64) {
	clock, ask := c.config.Clock, c.habits.Ask
	wait := ask.First
	for n := 1; ; n++ {
		if n > 1 && clock.Now()+wait > since+ask.Until {
			return status, 0
		}
		if clock.Sleep(ctx, wait) != nil {
			return cmp.Or(status, "nothing"), 0
		}
		status, number = c.question(ctx, o, n)
		if status == learntDone || status == learntFailed || status == learntNotFound && ask.NotFound != "ask-again" {
			return status, number
		}
		wait = ask.Every
	}
}

// question asks once, and returns the answer, or what there was instead of one.
func (c *Caller) question(ctx context.Context, o *order, n int) (status string, number int64) {
	hosts := c.config.Asked
	trip := Trip{
		Operation: o.intent.Operation, Path: o.path + "/ask." + strconv.Itoa(n), Targets: []string{hosts[(n-1)%len(hosts)]},
		Body: policy.NoBody, payload: forwarded{}, left: o.left,
	}
	path := lab.ResultPath + url.PathEscape(o.lastKey())
	if c.habits.Ask.By == "operation" {
		path = lab.ReferencePath + url.PathEscape(o.intent.Operation)
	}
	req, err := http.NewRequestWithContext(trip.with(ctx), http.MethodGet, "http://"+trip.Targets[0]+path, nil)
	if err != nil {
		panic(err) // the path is made here
	}
	resp, err := c.asking.RoundTrip(req)
	var content []byte
	if err == nil {
		content, err = readAll(resp.Body)
	}
	if err != nil {
		return words(asError(err).Failure), 0
	}
	var result lab.ResultReply
	switch json.Unmarshal(content, &result); {
	case resp.StatusCode == http.StatusNotFound:
		status = learntNotFound
	case resp.StatusCode != http.StatusOK:
		status = strconv.Itoa(resp.StatusCode)
	default:
		status = result.Status
	}
	c.config.Record(lab.Event{Kind: lab.Learnt, Operation: o.intent.Operation, Send: trip.Path, Node: c.config.Node, Status: resp.StatusCode, Detail: status})
	if status != learntDone {
		return status, 0
	}
	var reply lab.OrderReply
	json.Unmarshal(result.Answer, &reply) // absent where it was asked by the operation
	if reply.Order != 0 {
		c.config.Record(lab.Event{Kind: lab.Told, Operation: o.intent.Operation, Send: trip.Path, Node: c.config.Node, Status: result.Code, Order: reply.Order})
	}
	return status, reply.Order
}

// asQuestions records what a transport does as questions: they are no sends of an order.
func asQuestions(record func(lab.Event)) func(lab.Event) {
	return func(e lab.Event) {
		switch e.Kind {
		case lab.Send:
			e.Kind = lab.Question
		case lab.Timeout, lab.Failure:
			e.Kind = lab.Learnt
		default:
			return // what was learnt is recorded when it has been read
		}
		record(e)
	}
}
