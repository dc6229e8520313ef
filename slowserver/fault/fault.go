// Package fault names the defects that an order service can be given, by their place around the
// commit and by what they do: one file per kind, each a value in [Kinds]. A fault acts on a
// [Request], which the service gives it; it knows nothing of HTTP, scenarios, callers or clocks.
package fault

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"retrylab/internal/lab"
)

// Place is where a fault strikes in the life of a request.
type Place string

// The places, in the order of a request's life.
const (
	AtConnect    Place = "connect"       // before there is a connection
	BeforeGuard  Place = "before-guard"  // the request has been read, nothing has been looked up
	AfterClaim   Place = "after-claim"   // the guard let the request through, work has not begun
	InWork       Place = "in-work"       // so far into the work as the fault says
	BeforeCommit Place = "before-commit" // work is done, nothing is durable
	InCommit     Place = "in-commit"     // the order is written, and the COMMIT is on its way
	AfterCommit  Place = "after-commit"  // the effect is durable, nobody has been told
	InReply      Place = "in-reply"      // the answer is being written
)

// Places lists every place.
var Places = []Place{AtConnect, BeforeGuard, AfterClaim, InWork, BeforeCommit, InCommit, AfterCommit, InReply}

// The places at a machine between caller and service, which passes requests on.
const (
	BeforeSend  Place = "before-send"  // it has done its work before, and nothing has been sent on
	AfterAnswer Place = "after-answer" // the answer from behind is there, and nothing has been given back
)

// HopPlaces lists them.
var HopPlaces = []Place{BeforeSend, AfterAnswer}

// Settings is a fault as a scenario file writes it.
type Settings struct {
	At         Place         `yaml:"at" doc:"where it strikes: connect, before-guard, after-claim, in-work, before-commit, in-commit, after-commit or in-reply"`
	Do         string        `yaml:"do" doc:"what it does: delay, close, reset, status, lose, dribble, crash, lose-commit, lose-commit-reply, lose-finish, partition, redis-restart, redis-failover, redis-lose-reply, redis-down, malformed, empty, truncate, redirect, refuse, blackhole, unknown-host or lose-request"`
	Into       time.Duration `yaml:"into" doc:"in-work: how far into the work it strikes, at the latest at its end"`
	Arrivals   []int         `yaml:"arrivals" doc:"the arrivals it strikes, counted from 1 over all replicas; all of them when absent"`
	OfEach     []int         `yaml:"of-each" doc:"the arrivals of each operation that it strikes, counted from 1 over all replicas; all of them when absent"`
	Operations []int         `yaml:"operations" doc:"the operations whose requests it strikes, counted from 1; all of them when absent"`
	Share      *float64      `yaml:"share" doc:"the share of the requests that it strikes, above 0 and below 1: which ones is drawn for each, from the seed; all of them when absent"`
	Replicas   []int         `yaml:"replicas" doc:"the replicas it strikes, counted from 1; all of them when absent"`
	From       time.Duration `yaml:"from" doc:"when it begins to strike; from the start when absent"`
	Until      time.Duration `yaml:"until" doc:"when it strikes no more; to the end when absent"`
	Delay      time.Duration `yaml:"delay" doc:"delay: how long"`
	Status     int           `yaml:"status" doc:"the HTTP status that is answered: status, 400 to 599; redirect, 301, 302, 303, 307 or 308"`
	RetryAfter string        `yaml:"retry-after" doc:"status: the value of the Retry-After header, as it goes over the wire; date+2s is the HTTP-date in two seconds, in whole seconds and rounded up"`
	Chunks     int           `yaml:"chunks" doc:"dribble: into how many chunks the answer is cut"`
	ChunkSize  int           `yaml:"chunk-size" doc:"dribble: bytes in a chunk"`
	Pause      time.Duration `yaml:"pause" doc:"dribble: silence before each chunk"`
	Reset      bool          `yaml:"reset" doc:"truncate: with a reset, and not in order"`
	Restart    time.Duration `yaml:"restart" doc:"crash: after how long the replica is there again, without what was in its memory"`
}

// Name returns what the fault is called in events and reports: reset@after-commit.
func (s Settings) Name() string { return fmt.Sprintf("%s@%s", s.Do, s.At) }

// Arrival is a request as a fault looks at it to see whether it is meant.
type Arrival struct {
	Number    int           // among all that arrived, from 1; 0 where there is no arrival yet
	OfEach    int           // among those of its operation, from 1; 0 where there is no arrival yet
	Replica   int           // where it is, from 1
	Operation string        // op-1, op-2, …
	At        time.Duration // now, in scenario time
	// Luck is a number in [0, 1) that depends on the seed, the request and the fault, and is the
	// same however often it is asked for. It is nil for a request that no share can be drawn of.
	Luck func() float64
}

// Strikes reports whether the fault is meant for a request.
func (s Settings) Strikes(a Arrival) bool {
	return names(s.Arrivals, a.Number) && names(s.OfEach, a.OfEach) && names(s.Replicas, a.Replica) &&
		a.At >= s.From && (s.Until == 0 || a.At < s.Until) &&
		(len(s.Operations) == 0 || slices.ContainsFunc(s.Operations, func(n int) bool { return a.Operation == "op-"+strconv.Itoa(n) })) &&
		(s.Share == nil || a.Luck != nil && a.Luck() < *s.Share)
}

// Luck draws for the fault at a place in the configuration, from 0, and the request with a path of
// tries: a number in [0, 1).
func Luck(seed int64, place int, path string) float64 {
	return lab.Draw(seed, path, "fault", strconv.Itoa(place))
}

// names reports whether a list of numbers names n, as one does that is empty.
func names(list []int, n int) bool { return len(list) == 0 || slices.Contains(list, n) }

// DatePrefix begins a Retry-After that is a date, so long after the answer.
const DatePrefix = "date+"

// httpDate is the form of a date in a header (RFC 9110, section 5.6.7).
const httpDate = "Mon, 02 Jan 2006 15:04:05 GMT"

// RetryAfterAt is a Retry-After as it goes over the wire at a moment. A date has whole seconds, and is
// rounded up.
func RetryAfterAt(value string, now time.Time) string {
	after, dated := strings.CutPrefix(value, DatePrefix)
	if !dated {
		return value
	}
	d, _ := time.ParseDuration(after) // checked with the settings
	return now.Add(d + time.Second - 1).Truncate(time.Second).Format(httpDate)
}

// Wanted is how often the fault must fire in a trial of so many operations for it to count: once for
// each arrival that it names, of each operation that it names, else once. A share may come to anything
// but nothing; so may arrivals of each operation that are struck at some replicas, or for a time, only.
func (s Settings) Wanted(operations int) int {
	if len(s.Operations) > 0 {
		operations = len(s.Operations)
	}
	switch partly := len(s.Replicas) > 0 || s.From > 0 || s.Until > 0; {
	case s.Share != nil:
		return 1
	case len(s.OfEach) > 0 && partly:
		return len(s.OfEach)
	case len(s.OfEach) > 0:
		return len(s.OfEach) * operations
	}
	return max(1, len(s.Arrivals), len(s.Operations))
}

// Request is what a fault can do to a request on its way through the service.
type Request interface {
	// Sleep holds the request up for d of scenario time.
	Sleep(d time.Duration) error
	// Drop ends the connection without an answer, with a reset or in order.
	Drop(reset bool)
	// Refuse answers with an error status of the fault's own, and tells the guard that the
	// request failed where the guard let it through and does not take it for done yet.
	Refuse(status int, retryAfter, title string) error
	// Hold keeps the connection open and silent until the client has left.
	Hold()
	// Dribble writes the answer in chunks of a size in bytes, with silence before each.
	Dribble(chunks, size int, pause time.Duration)
	// Spoil answers with the status that the request would have got, and what spoil makes of its body.
	Spoil(spoil func(body []byte) []byte)
	// Truncate writes the headers and half of the answer's body and ends the connection, with a
	// reset or in order.
	Truncate(reset bool)
	// Redirect answers that the client is to send its request to the same service again.
	Redirect(status int)
	// Crash kills the replica that the request is at, with all that it has open, and starts it
	// again after restart of scenario time.
	Crash(restart time.Duration)
	// Cut breaks the connection that the order's transaction goes over: [CutBefore], [CutAfter] or
	// [CutSilent]. After a silent cut the service has left the transaction as it is.
	Cut(how string) error
	// RestartKeys restarts the store of keys beside the database, which forgets them.
	RestartKeys() error
	// FailOverKeys has a replica of the store of keys take over, without what was written last.
	FailOverKeys() error
	// LoseFinish loses what the guard would write when the order is committed.
	LoseFinish()
	// CutOffKeys keeps the request from the store of keys from now on.
	CutOffKeys()
	// LoseKeysReply loses the next reply of the store of keys.
	LoseKeysReply()
}

// How a connection to the database can break at a commit, as stores name it.
const (
	CutBefore = "before" // before the COMMIT has reached the server
	CutAfter  = "after"  // after the server has committed, before its reply has come
	CutSilent = "silent" // nothing gets through any more, and neither side is told
)

// ErrEnded is what Strike returns when the fault was the end of the request: there is nothing left
// to answer.
var ErrEnded = errors.New("a fault has ended the request")

// Kind is one thing that a fault can do.
type Kind struct {
	Name   string
	Doc    string
	Places []Place  // where it can strike
	Takes  []string // the settings it needs, by their names in a file
	// Strike plays it on a request. It is nil for a fault at connect, which comes before there is
	// a request: the network plays that.
	Strike func(r Request, s Settings) error
	// AtHop says that a machine between caller and service can have it too, at each of [HopPlaces].
	AtHop bool
	// Elsewhere says that it sends the client to where it strikes nobody.
	Elsewhere bool
	// Connect is what becomes of a connection, for a fault at connect.
	Connect Connect
	// Cuts says that it breaks the connection to a database server: an embedded database has none.
	Cuts bool
	// Answers says that it changes the answer, or ends the request without one.
	Answers bool
	// Finish says that it strikes what a guard writes after the commit.
	Finish bool
	// Keys says that it strikes the store of keys beside the database.
	Keys bool
}

// Connect is what becomes of an attempt to connect.
type Connect int

// The ends of an attempt to connect.
const (
	Connected Connect = iota
	Refused           // the host answers that nobody listens
	Silent            // nobody answers
	NoAddress         // the name has no address
	Swallowed         // there is a connection, and nothing that is sent on it arrives
)

// maxNumbers bounds the arrivals or replicas that a fault names.
const maxNumbers = 1000

// maxAnswer bounds an answer that is dribbled, in bytes.
const maxAnswer = 4 << 20

// handling is everything from the first look at a request to its answer, but for the commit itself:
// there only the database can be struck.
var handling = []Place{BeforeGuard, AfterClaim, InWork, BeforeCommit, AfterCommit, InReply}

// Kinds lists what a fault can do.
var Kinds = []Kind{Delay, Close, Reset, Status, Lose, Dribble, Crash, LoseCommit, LoseCommitReply, LoseFinish, Partition, RedisRestart, RedisFailover, RedisLoseReply, RedisDown, Malformed, Empty, Truncate, Redirect, Refuse, Blackhole, UnknownHost, LoseRequest}

// Find returns the kind of that name.
func Find(name string) (Kind, bool) {
	i := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return Kinds[i], true
}

// Problem is what is wrong with a fault: the setting, why, and what would be right.
type Problem struct{ Field, What, Hint string }

// HopKinds lists what a fault of a machine between caller and service can do.
func HopKinds() []Kind {
	return slices.DeleteFunc(slices.Clone(Kinds), func(k Kind) bool { return !k.AtHop })
}

// Check returns the first thing that is wrong with s, nil when the service can play it.
func (s Settings) Check() *Problem {
	return s.check(Kinds, func(k Kind) []Place { return k.Places })
}

// CheckHop returns the first thing that is wrong with s, nil when a machine between caller and
// service can play it.
func (s Settings) CheckHop() *Problem {
	return s.check(HopKinds(), func(Kind) []Place { return HopPlaces })
}

// check looks at a fault of one of the kinds, each of which strikes at some places.
func (s Settings) check(kinds []Kind, placesOf func(Kind) []Place) *Problem {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == s.Do })
	if i < 0 {
		var names []string
		for _, k := range kinds {
			names = append(names, k.Name)
		}
		return &Problem{"do", fmt.Sprintf("unknown fault %q", s.Do), "one of: " + strings.Join(names, ", ")}
	}
	kind := kinds[i]
	if places := placesOf(kind); !slices.Contains(places, s.At) {
		return &Problem{"at", fmt.Sprintf("%s cannot strike at %q", s.Do, s.At), "it strikes at: " + placeList(places)}
	}
	switch {
	case s.At == InWork && s.Into <= 0:
		return &Problem{"at", "the fault does not say how far into the work it strikes", "add into: with a time such as 700ms"}
	case s.At != InWork && s.Into != 0:
		return &Problem{"into", fmt.Sprintf("into means nothing to a fault at %s", s.At), "write at: in-work"}
	}
	set := map[string]bool{
		"delay": s.Delay != 0, "status": s.Status != 0, "retry-after": s.RetryAfter != "",
		"chunks": s.Chunks != 0, "chunk-size": s.ChunkSize != 0, "pause": s.Pause != 0,
		"reset": s.Reset, "restart": s.Restart != 0,
	}
	for _, name := range []string{"delay", "status", "retry-after", "chunks", "chunk-size", "pause", "reset", "restart"} {
		switch takes := slices.Contains(kind.Takes, name); {
		case set[name] && !takes:
			return &Problem{name, fmt.Sprintf("%s means nothing to the fault %s", name, s.Do), ""}
		case takes && !set[name] && name != "retry-after" && name != "reset":
			return &Problem{"do", fmt.Sprintf("the fault %s needs the key %q", s.Do, name), ""}
		}
	}
	if strings.ContainsFunc(s.RetryAfter, func(r rune) bool { return r < ' ' || r > '~' }) {
		return &Problem{"retry-after", "a header holds printable ASCII characters only", ""}
	}
	if s.Until != 0 && s.Until <= s.From {
		return &Problem{"until", fmt.Sprintf("a fault from %s until %s never strikes", s.From, s.Until), "until comes after from"}
	}
	if s.Do == "redirect" && !slices.Contains([]int{301, 302, 303, 307, 308}, s.Status) {
		return &Problem{"status", fmt.Sprintf("%d is no redirect", s.Status), "301, 302, 303, 307 or 308"}
	}
	if after, dated := strings.CutPrefix(s.RetryAfter, DatePrefix); dated {
		if d, err := time.ParseDuration(after); err != nil || d < 0 {
			return &Problem{"retry-after", fmt.Sprintf("%q is no time from now", after), "for example date+2s"}
		}
	}
	if s.Do == "status" && (s.Status < 400 || s.Status > 599) {
		return &Problem{"status", fmt.Sprintf("%d is no error status", s.Status), "400 to 599"}
	}
	if s.Chunks < 0 || s.ChunkSize < 0 || s.Chunks > 10_000 || s.ChunkSize > maxAnswer || s.Chunks*s.ChunkSize > maxAnswer {
		return &Problem{"chunks", fmt.Sprintf("an answer has at most 10000 chunks and %d bytes", maxAnswer), ""}
	}
	for _, list := range []struct {
		field   string
		numbers []int
	}{{"arrivals", s.Arrivals}, {"of-each", s.OfEach}, {"operations", s.Operations}, {"replicas", s.Replicas}} {
		if len(list.numbers) > maxNumbers {
			return &Problem{list.field, fmt.Sprintf("%s names more than %d", list.field, maxNumbers), ""}
		}
		for i, n := range list.numbers {
			switch {
			case n < 1:
				return &Problem{list.field, "arrivals, operations and replicas are counted from 1", ""}
			case slices.Contains(list.numbers[:i], n):
				return &Problem{list.field, fmt.Sprintf("%s names %d twice", list.field, n), ""}
			}
		}
	}
	const counted = "arrivals are counted over all operations: "
	switch {
	case s.At == AtConnect && len(s.Arrivals) > 0:
		return &Problem{"arrivals", "a fault at connect comes before there is an arrival", "name replicas instead"}
	case s.At == AtConnect && len(s.OfEach) > 0:
		return &Problem{"of-each", "a fault at connect comes before there is an arrival", "name operations or a share instead"}
	case len(s.Arrivals) > 0 && len(s.OfEach) > 0:
		return &Problem{"of-each", counted + "with of-each as well they say nothing", "leave one of the two out"}
	case len(s.Arrivals) > 0 && len(s.Operations) > 0:
		return &Problem{"operations", counted + "whose they are is not chosen", "write of-each instead of arrivals"}
	case len(s.Arrivals) > 0 && s.Share != nil:
		return &Problem{"share", "the arrivals that are named are struck, all of them", "leave one of the two out"}
	case s.Share != nil && (*s.Share <= 0 || *s.Share >= 1):
		return &Problem{"share", fmt.Sprintf("%g is no share of the requests", *s.Share), "above 0 and below 1; leave it out to strike all"}
	}
	return nil
}

func placeList(places []Place) string {
	var names []string
	for _, p := range places {
		names = append(names, string(p))
	}
	return strings.Join(names, ", ")
}
