// Package policy decides whether a request is tried again, and when. It is pure: it opens nothing,
// reads no clock and draws no random numbers; what it needs of the world it is given. The caller's
// middleware plays its decisions on sockets, and a simulation can play the same decisions without.
//
// A [Settings] is one retry layer as a scenario file writes it. A [Layer] is the same layer with
// every default filled in; package preset makes the one from the other. [Layer.Next] is the decision.
package policy

import "time"

// Failure is how a try ended without a usable answer.
type Failure string

// The failures, in the order of a request's life.
const (
	NoFailure      Failure = ""
	AcquireTimeout Failure = "acquire-timeout" // no connection became free in the pool; nothing left the host
	UnknownHost    Failure = "unknown-host"    // the name has no address; nothing left the host
	Refused        Failure = "refused"         // the connection was refused; nothing left the host
	ConnectTimeout Failure = "connect-timeout" // no connection in time; nothing left the host
	EOF            Failure = "eof"             // closed before a whole answer
	Reset          Failure = "reset"           // reset before a whole answer
	ReadTimeout    Failure = "read-timeout"    // no byte for longer than the read timeout
	Malformed      Failure = "malformed"       // a whole answer that cannot be understood
	Empty          Failure = "empty"           // a success without a body, where a layer wants one
	AttemptTimeout Failure = "attempt-timeout" // one try took longer than its own limit
	TotalTimeout   Failure = "total-timeout"   // the limit over all tries; never retried
)

// Failures lists every failure.
var Failures = []Failure{
	AcquireTimeout, UnknownHost, Refused, ConnectTimeout,
	EOF, Reset, ReadTimeout, Malformed, Empty, AttemptTimeout, TotalTimeout,
}

// Left reports whether any of the request may have left the host before f.
func (f Failure) Left() bool {
	switch f {
	case AcquireTimeout, UnknownHost, Refused, ConnectTimeout:
		return false
	}
	return true
}

// Body is how a request's body is sent, which decides in many layers whether it can be sent again.
type Body string

// The bodies.
const (
	NoBody   Body = "none"     // no body, or one of length zero
	Buffered Body = "buffered" // held in memory: can be sent again
	Fixed    Body = "fixed"    // streamed with a known length (fixed-length streaming mode)
	Chunked  Body = "chunked"  // streamed in chunks
)

// Bodies lists every kind of body.
var Bodies = []Body{NoBody, Buffered, Fixed, Chunked}

// Repeatable lists the bodies that can be sent a second time. Streams are read once.
var Repeatable = []Body{NoBody, Buffered}

// Outcome is how one try ended, with what a layer may look at.
//
// A layer is given the outcomes of its own tries. What an inner layer ended with is one outcome here,
// so the total limit of an inner layer arrives as AttemptTimeout: to the outer layer it is a try that
// took too long. TotalTimeout is the layer's own total, or one outside it.
type Outcome struct {
	Method        string
	Key           bool // the request carries an Idempotency-Key
	Body          Body
	Failure       Failure       // NoFailure when there is a Status
	InBody        bool          // the failure came after the status and the headers had arrived
	Status        int           // 0 when there is a Failure
	RetryAfter    time.Duration // time to wait from now; negative when its date is past; meaningful with HasRetryAfter
	HasRetryAfter bool          // the answer has a Retry-After that can be parsed
	Reused        bool          // the connection had served a request before
	AddressLeft   bool          // another address of the same host has not been tried
	Instances     int           // instances (servers) the target has, 0 when there is only the one; a proxy tries each once
	CallerGone    bool          // whoever asked for this request has gone, and the layer has noticed (a proxy does, a library does not)
	Timeout       time.Duration // read (response) timeout in force, 0 for none
	Remaining     time.Duration // what is left of the total limit, 0 when there is none
	Elapsed       time.Duration // since the first try of the layer began
	Waited        time.Duration // the layer's own wait before this try; decorrelated jitter grows from it
}

// Succeeded reports whether the try ended with a success.
func (o Outcome) Succeeded() bool {
	return o.Failure == NoFailure && o.Status >= 200 && o.Status < 300
}

// Decision is what a layer does after a try.
type Decision struct {
	Retry  bool
	Wait   time.Duration // before the next try
	Move   bool          // the next try goes to another instance
	Reason string        // why, for people: "maxAttempts 3 reached", "POST is not retried on read-timeout"
}
