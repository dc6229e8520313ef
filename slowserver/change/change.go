// Package change says what an order service does to a row that all its requests share: an article's stock, a
// payment's status, a document. It is what may be written down; the service plays it.
package change

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// What a request does with the row.
const (
	Add           = "add"
	ReadThenWrite = "read-then-write"
	Set           = "set"
	Put           = "put"
	Delete        = "delete"
)

// Verbs lists them.
var Verbs = []string{Add, ReadThenWrite, Set, Put, Delete}

// What a request gets whose row is not in the state that it changes.
const (
	Done     = "done"
	Conflict = "conflict"
)

// Otherwises lists them.
var Otherwises = []string{Done, Conflict}

// What is made of a row that has changed since it was read.
const (
	Ignore    = "ignore"
	Refuse    = "refuse"
	ReadAgain = "read-again"
)

// Versions lists them.
var Versions = []string{Ignore, Refuse, ReadAgain}

// Most bounds by, and the length of a value in bytes.
const (
	MostBy     = 1_000_000
	mostLength = 40
)

// Settings is a change as a scenario file writes it.
type Settings struct {
	Do        string `yaml:"do" doc:"what a request does with the row, in the place of its order: add (by, in one statement), read-then-write (reads the value before the work and writes what it has made of it afterwards), set (a row that is there), put (makes the row where there is none) or delete"`
	Row       string `yaml:"row" doc:"what the row is called, such as stock or status (state when absent)"`
	Start     string `yaml:"start" doc:"its value before the first request; when absent there is no row"`
	By        int    `yaml:"by" doc:"add, read-then-write: what is added to the value, below 0 to take away"`
	To        string `yaml:"to" doc:"set, put: the new value"`
	From      string `yaml:"from" doc:"set, delete: only while the value is this one, as a state machine has it; the statement that changes it also looks"`
	Otherwise string `yaml:"otherwise" doc:"from: what a request gets while the row has another value: done (a 200, as if it had changed it; the default) or conflict (a 409)"`
	Version   string `yaml:"version" doc:"read-then-write: what is made of a row that has changed since it was read: ignore (it is written over, the default), refuse (a 409) or read-again (and written again)"`
}

// Default fills in what is left out of a change that is one.
func (s *Settings) Default() {
	if s.Do == "" {
		return
	}
	for _, d := range []struct {
		of    *string
		value string
		goes  bool
	}{
		{&s.Row, "state", true},
		{&s.Otherwise, Done, s.From != ""},
		{&s.Version, Ignore, s.Do == ReadThenWrite},
	} {
		if d.goes && *d.of == "" {
			*d.of = d.value
		}
	}
}

// Problem is what is wrong with settings: which, why, and what would be right.
type Problem struct{ Field, What, Hint string }

var namePattern = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// takes are the settings that go with a verb, beside the row and its start.
var takes = map[string][]string{
	Add:           {"by"},
	ReadThenWrite: {"by", "version"},
	Set:           {"to", "from", "otherwise"},
	Put:           {"to"},
	Delete:        {"from", "otherwise"},
}

// Check returns the first thing that is wrong with s, nil when the service can play it. The zero value is no
// change.
func (s Settings) Check() *Problem {
	switch {
	case s == Settings{}:
		return nil
	case s.Do == "":
		return &Problem{"", "it does not say what a request does with the row", "add do: with one of " + strings.Join(Verbs, ", ")}
	case !slices.Contains(Verbs, s.Do):
		return &Problem{"do", fmt.Sprintf("do cannot be %q", s.Do), "one of: " + strings.Join(Verbs, ", ")}
	case !namePattern.MatchString(s.Row) || len(s.Row) > mostLength:
		return &Problem{"row", fmt.Sprintf("%q is no name for a row", s.Row), "lower-case letters, digits and hyphens, at most 40"}
	}
	for _, f := range []struct {
		name  string
		given bool
	}{{"by", s.By != 0}, {"to", s.To != ""}, {"from", s.From != ""}, {"otherwise", s.Otherwise != ""}, {"version", s.Version != ""}} {
		if f.given && !slices.Contains(takes[s.Do], f.name) {
			return &Problem{f.name, fmt.Sprintf("%s takes no %s", s.Do, f.name), "it takes: " + strings.Join(append([]string{"row", "start"}, takes[s.Do]...), ", ")}
		}
	}
	return s.checkValues()
}

func (s Settings) checkValues() *Problem {
	for _, v := range []struct{ name, value string }{{"start", s.Start}, {"to", s.To}, {"from", s.From}} {
		if len(v.value) > mostLength || v.value != strings.TrimSpace(v.value) || strings.ContainsFunc(v.value, func(r rune) bool { return r < ' ' || r > '~' }) {
			return &Problem{v.name, fmt.Sprintf("%q is no value for a row", v.value), fmt.Sprintf("printable ASCII, at most %d characters, no space at either end", mostLength)}
		}
	}
	_, numberErr := strconv.ParseInt(s.Start, 10, 32)
	switch numeric := s.Do == Add || s.Do == ReadThenWrite; {
	case numeric && numberErr != nil:
		return &Problem{"start", fmt.Sprintf("%s needs a whole number to start with", s.Do), "for example start: 10"}
	case numeric && s.By == 0:
		return &Problem{"by", s.Do + " does not say how much", "for example by: -1"}
	case s.By < -MostBy || s.By > MostBy:
		return &Problem{"by", fmt.Sprintf("by must be between %d and %d", -MostBy, MostBy), ""}
	case slices.Contains(takes[s.Do], "to") && s.To == "":
		return &Problem{"to", s.Do + " does not say to what", "for example to: paid"}
	case s.From != "" && s.From == s.To:
		return &Problem{"to", "it changes the row to what it is", "to must differ from from"}
	case s.Otherwise != "" && s.From == "":
		return &Problem{"otherwise", "without from there is no otherwise", "add from: with the value that the row must have"}
	case s.Otherwise != "" && !slices.Contains(Otherwises, s.Otherwise):
		return &Problem{"otherwise", fmt.Sprintf("otherwise cannot be %q", s.Otherwise), "one of: " + strings.Join(Otherwises, ", ")}
	case s.Version != "" && !slices.Contains(Versions, s.Version):
		return &Problem{"version", fmt.Sprintf("version cannot be %q", s.Version), "one of: " + strings.Join(Versions, ", ")}
	}
	return nil
}
