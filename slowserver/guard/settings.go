package guard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"retrylab/slowserver/store"
)

// Settings is a guard as a scenario file writes it.
type Settings struct {
	Kind        string        `yaml:"kind" doc:"none, check-then-insert, unique-index, same-transaction, natural-key, per-process, redis-precheck or lock"`
	Claim       string        `yaml:"claim" doc:"unique-index: when the key is claimed: first (before the work, the default) or at-insert (with the order)"`
	InProgress  string        `yaml:"in-progress" doc:"unique-index, claim first, and lock: what a duplicate, or who finds the lock held, gets while the first is at work: 409 (the default; it says that the first is at work), conflict (a 409 that does not say so), wait, or replay (a success that is not one yet)"`
	RetryAfter  time.Duration `yaml:"retry-after" doc:"Retry-After of a 409 for a duplicate in progress, whole seconds; none when absent"`
	Fingerprint string        `yaml:"fingerprint" doc:"how the bodies of one key are compared: none, raw (bytes, the default) or canonical (white space apart)"`
	KeyFrom     string        `yaml:"key-from" doc:"what the key is: header (the Idempotency-Key, the default), content (made of the body by the server) or reference (the business's own number of what is ordered, the same whoever sends it again; the default of natural-key)"`
	KeyValue    string        `yaml:"key-value" doc:"key-from header: which Idempotency-Key counts when a request carries several: first (the default) or last"`
	Scope       string        `yaml:"scope" doc:"within what a key is one: none (the whole service, the default), tenant (the header X-Tenant) or tenant-and-operation (the method as well)"`
	OnFailure   string        `yaml:"on-failure" doc:"what a failed request leaves of its key: keep (in progress, the default), delete, mark (the error is its answer) or mark-final (so is a refusal, a 4xx that asks for no other try; after any other error the key is deleted)"`
	Finish      string        `yaml:"finish" doc:"unique-index, claim first: when the answer is written into the key's record: with-order (in its transaction, the default) or after (in one of its own, when the order is committed)"`
	Lease       time.Duration `yaml:"lease" doc:"unique-index, claim first, and lock: how long a claim holds; a later request takes it over when it has run out. For ever when absent"`
	LockOn      string        `yaml:"lock-on" doc:"lock: what there is one lock for: service (for all requests, the default), item (what is ordered) or key (the Idempotency-Key, where there is one)"`
	Release     string        `yaml:"release" doc:"lock: what is freed when a request is over: owner (the lock, if it still holds it; the default) or any (whatever is there, as a DEL without a look)"`
	Renew       time.Duration `yaml:"renew" doc:"lock, with a lease: the holder makes the lease anew so often, until its request is over or it has lost the lock; not at all when absent"`
	Fencing     string        `yaml:"fencing" doc:"unique-index, claim first: what of its claim a request compares before it finishes or releases it: none (the default), fence or owner-and-fence"`
	Isolation   string        `yaml:"isolation" doc:"the level of the transaction that is open during the work: read-committed, repeatable-read or serializable; the engine's own when absent"`
	LockTimeout time.Duration `yaml:"lock-timeout" doc:"same-transaction: how long a statement waits for another transaction, its turn included; the claim is then a 409, anything else a 500; for ever when absent"`
	IdleTimeout time.Duration `yaml:"idle-timeout" doc:"same-transaction: how long the transaction may do nothing before the database ends it; for ever when absent"`
	Lock        string        `yaml:"lock" doc:"same-transaction: what is asked for before the claim: none (the default) or advisory, a lock that is refused at once with a 409"`
	Insert      string        `yaml:"insert" doc:"same-transaction: how the key is inserted: quiet (ON CONFLICT DO NOTHING, the default) or plain (a look at the key, then an INSERT)"`
	OnDuplicate string        `yaml:"on-duplicate" doc:"what a duplicate gets when the first is done: replay (its answer, the default), conflict (a 409) or fail (a 500: nobody has thought of the unique violation). same-transaction with insert plain knows read-on (in the same transaction) and start-over (in a new one) as well, and fails by default"`
	UniqueOver  string        `yaml:"unique-over" doc:"unique-index: what the index holds: key (the default), or key-and-time or key-and-day, as a table must have it that is partitioned by time: the key is let in again with another time"`
	TTL         time.Duration `yaml:"ttl" doc:"how long a key is kept, from its claim: in Redis from when it was written last; for ever when absent"`
	OpenTTL     time.Duration `yaml:"open-ttl" doc:"how long a key is kept that is in progress, where that is another time than ttl"`
	Expiry      string        `yaml:"expiry" doc:"who sees that a key in the database is too old: job (the clean-up removes it, and until then it holds; the default) or lookup (the next request with it does)"`
	CleanUp     CleanUp       `yaml:"clean-up" doc:"the job that removes keys which are too old from the database"`
	Presence    string        `yaml:"presence" doc:"redis-precheck: what it means that a key is there: status (its value says in progress or holds the answer, the default) or done"`
	Write       string        `yaml:"write" doc:"redis-precheck: when the key is written: first (SET NX before the work, the default) or last (after the commit)"`
	Retries     int           `yaml:"client-retries" doc:"redis-precheck: how often the client of Redis repeats a command by itself when its reply is lost, 0 to 10; not at all when absent"`
	FailOpen    bool          `yaml:"fail-open" doc:"redis-precheck: lets a request through when Redis cannot be reached; it is told 503 when absent"`
	Index       bool          `yaml:"index" doc:"redis-precheck: the database has a unique index behind it"`
}

// CleanUp says when the job runs that removes old keys.
type CleanUp struct {
	At    time.Duration `yaml:"at" doc:"when it runs first; after every when absent"`
	Every time.Duration `yaml:"every" doc:"time from one run to the next, 1s or more; it runs once when absent"`
}

// Next returns when the job runs next, after its n-th run, and false when it does not.
func (c CleanUp) Next(n int) (time.Duration, bool) {
	first := cmp.Or(c.At, c.Every)
	return first + time.Duration(n)*c.Every, first > 0 && (n == 0 || c.Every > 0)
}

// WritesAfter reports whether the guard writes a key outside the order's transaction, after it.
func (s Settings) WritesAfter() bool { return s.Finish == "after" || s.Kind == RedisPrecheck.Name }

// Open reports whether the guard holds a transaction open during the work.
func (s Settings) Open() bool { return s.Kind == SameTransaction.Name || s.Isolation != "" }

// From is what the key of a request is.
func (s Settings) From() string {
	switch {
	case s.KeyFrom != "":
		return s.KeyFrom
	case s.Kind == NaturalKey.Name:
		return "reference"
	}
	return "header"
}

// NoRecord says why the database has no record of a request under the key that the client has sent,
// "" where it can have one. A client that asks by that key then never learns anything.
func (s Settings) NoRecord() string {
	switch {
	case s.Kind == Lock.Name, s.Kind == NaturalKey.Name, s.Kind == PerProcess.Name, s.Kind == RedisPrecheck.Name && !s.Index:
		return "keeps no record of a key in the database"
	case s.From() != "header":
		return "makes the key of the " + s.From()
	case s.Scope == "tenant":
		return "keeps its records by tenant and key"
	case s.Scope == "tenant-and-operation":
		return "keeps its records by tenant, method and key"
	case s.UniqueOver != "" && s.UniqueOver != "key":
		return "keeps its records by " + strings.ReplaceAll(s.UniqueOver, "-", " ")
	}
	return ""
}

// Problem is what is wrong with settings: which, why, and what would be right.
type Problem struct{ Field, What, Hint string }

// field is a setting: whether it is written down, and what it may be.
type field struct {
	name  string
	set   func(Settings) bool
	value func(Settings) string // nil where it is no word
	words []string
}

func word(name string, value func(Settings) string, words ...string) field {
	return field{name, func(s Settings) bool { return value(s) != "" }, value, words}
}

// fields lists the settings beside kind.
var fields = []field{
	word("claim", func(s Settings) string { return s.Claim }, "first", "at-insert"),
	word("in-progress", func(s Settings) string { return s.InProgress }, "409", "conflict", "wait", "replay"),
	word("fingerprint", func(s Settings) string { return s.Fingerprint }, "none", "raw", "canonical"),
	word("key-from", func(s Settings) string { return s.KeyFrom }, "header", "content", "reference"),
	word("key-value", func(s Settings) string { return s.KeyValue }, "first", "last"),
	word("scope", func(s Settings) string { return s.Scope }, "none", "tenant", "tenant-and-operation"),
	word("on-failure", func(s Settings) string { return s.OnFailure }, "keep", "delete", "mark", "mark-final"),
	word("finish", func(s Settings) string { return s.Finish }, "with-order", "after"),
	word("fencing", func(s Settings) string { return s.Fencing }, "none", "fence", "owner-and-fence"),
	word("lock-on", func(s Settings) string { return s.LockOn }, "service", "item", "key"),
	word("release", func(s Settings) string { return s.Release }, "owner", "any"),
	{name: "renew", set: func(s Settings) bool { return s.Renew != 0 }},
	word("isolation", func(s Settings) string { return s.Isolation },
		string(store.ReadCommitted), string(store.RepeatableRead), string(store.Serializable)),
	word("lock", func(s Settings) string { return s.Lock }, "none", "advisory"),
	word("insert", func(s Settings) string { return s.Insert }, "quiet", "plain"),
	word("on-duplicate", func(s Settings) string { return s.OnDuplicate }, "replay", "conflict", "fail", "read-on", "start-over"),
	word("unique-over", func(s Settings) string { return s.UniqueOver }, "key", "key-and-time", "key-and-day"),
	word("presence", func(s Settings) string { return s.Presence }, "status", "done"),
	word("write", func(s Settings) string { return s.Write }, "first", "last"),
	{name: "retry-after", set: func(s Settings) bool { return s.RetryAfter != 0 }},
	{name: "lease", set: func(s Settings) bool { return s.Lease != 0 }},
	{name: "lock-timeout", set: func(s Settings) bool { return s.LockTimeout != 0 }},
	{name: "idle-timeout", set: func(s Settings) bool { return s.IdleTimeout != 0 }},
	word("expiry", func(s Settings) string { return s.Expiry }, "job", "lookup"),
	{name: "clean-up", set: func(s Settings) bool { return s.CleanUp != CleanUp{} }},
	{name: "open-ttl", set: func(s Settings) bool { return s.OpenTTL != 0 }},
	{name: "ttl", set: func(s Settings) bool { return s.TTL != 0 }},
	{name: "client-retries", set: func(s Settings) bool { return s.Retries != 0 }},
	{name: "fail-open", set: func(s Settings) bool { return s.FailOpen }},
	{name: "index", set: func(s Settings) bool { return s.Index }},
}

// exclusions lists the settings that mean nothing beside others.
var exclusions = []struct {
	when       func(Settings) bool
	fields     []string
	what, hint string
}{
	{
		when:   func(s Settings) bool { return s.Claim == "at-insert" },
		fields: []string{"in-progress", "retry-after", "on-failure", "finish", "open-ttl"},
		what:   "with claim at-insert: nobody knows of a request in progress", hint: "use claim first",
	},
	{
		when:   func(s Settings) bool { return s.Claim == "at-insert" },
		fields: []string{"lease", "fencing"},
		what:   "with claim at-insert: the claim lasts no longer than its transaction", hint: "use claim first",
	},
	{
		when:   func(s Settings) bool { return s.Kind == CheckThenInsert.Name && s.Isolation != "" },
		fields: []string{"fingerprint"},
		what:   "with isolation: the look is at the orders, which do not keep the body they came from",
	},
	{
		when: func(s Settings) bool {
			return s.Insert != "plain" && (s.OnDuplicate == "read-on" || s.OnDuplicate == "start-over" || s.OnDuplicate == "fail" && s.Kind == SameTransaction.Name)
		},
		fields: []string{"on-duplicate"},
		what:   "without insert plain: a quiet insert meets no unique violation", hint: "use insert: plain of same-transaction",
	},
	{
		when:   func(s Settings) bool { return s.Lease == 0 },
		fields: []string{"release", "renew"},
		what:   "without a lease: nobody else ever has the lock", hint: "add lease: 10s",
	},
	{
		when:   func(s Settings) bool { return s.Kind == Lock.Name && s.InProgress == "wait" },
		fields: []string{"retry-after"},
		what:   "with in-progress wait: nobody is refused", hint: "use in-progress 409",
	},
	{
		when:   func(s Settings) bool { return s.OnDuplicate == "fail" },
		fields: []string{"in-progress", "lease"},
		what:   "with on-duplicate fail: nobody looks at what is there", hint: "use on-duplicate replay or conflict",
	},
	{
		when:   func(s Settings) bool { return s.From() != "header" },
		fields: []string{"key-value"},
		what:   "without key-from header: no key of the request counts", hint: "use key-from header",
	},
	{
		when:   func(s Settings) bool { return s.KeyFrom == "content" && s.Fingerprint == "none" },
		fields: []string{"fingerprint"},
		what:   "with key-from content: the key is made of it", hint: "use raw or canonical",
	},
	{
		when:   func(s Settings) bool { return s.Kind == NaturalKey.Name && s.KeyFrom != "content" },
		fields: []string{"fingerprint"},
		what:   "here: orders do not keep the body they came from", hint: "use key-from content",
	},
	{
		when:   func(s Settings) bool { return s.Finish == "after" },
		fields: []string{"fencing"},
		what:   "with finish after: the order is committed by then, whoever holds the key", hint: "use finish with-order",
	},
	{
		when: func(s Settings) bool {
			return s.Kind != RedisPrecheck.Name && s.CleanUp == CleanUp{} && s.Expiry != "lookup"
		},
		fields: []string{"ttl", "open-ttl"},
		what:   "here: nobody looks how old a key is", hint: "add clean-up: {every: 1h}, or expiry: lookup",
	},
	{
		when:   func(s Settings) bool { return s.TTL == 0 && s.OpenTTL == 0 },
		fields: []string{"expiry", "clean-up"},
		what:   "without a time to live: no key is ever too old", hint: "add ttl: 24h",
	},
	{
		when:   func(s Settings) bool { return s.Presence == "done" },
		fields: []string{"fingerprint"},
		what:   "with presence done: nobody looks at the value", hint: "use presence status",
	},
	{
		when:   func(s Settings) bool { return s.Presence == "done" || s.Write == "last" },
		fields: []string{"retry-after"},
		what:   "here: nobody is told of a request in progress", hint: "use presence status and write first",
	},
	{
		when:   func(s Settings) bool { return s.Write == "last" },
		fields: []string{"on-failure", "open-ttl"},
		what:   "with write last: a request that fails has not written its key", hint: "use write first",
	},
}

// Check returns the first thing that is wrong with s, nil when a guard can work with it.
func (s Settings) Check() *Problem {
	g, ok := Find(s.Kind)
	if !ok {
		var names []string
		for _, g := range All {
			names = append(names, g.Name)
		}
		return &Problem{"kind", fmt.Sprintf("unknown guard %q", s.Kind), "one of: " + strings.Join(names, ", ")}
	}
	for _, f := range fields {
		switch {
		case !f.set(s):
			continue
		case f.value != nil && !slices.Contains(f.words, f.value(s)):
			return &Problem{f.name, fmt.Sprintf("%s cannot be %q", f.name, f.value(s)), "one of: " + strings.Join(f.words, ", ")}
		case !slices.Contains(g.Takes, f.name):
			return &Problem{f.name, fmt.Sprintf("%s means nothing to the guard %s", f.name, g.Name), ""}
		}
	}
	if s.RetryAfter%time.Second != 0 || s.RetryAfter < 0 {
		return &Problem{"retry-after", fmt.Sprintf("a Retry-After has whole seconds, not %s", s.RetryAfter), ""}
	}
	if s.Kind == Lock.Name && (s.InProgress == "conflict" || s.InProgress == "replay") {
		return &Problem{"in-progress", fmt.Sprintf("in-progress of a lock cannot be %q", s.InProgress), "one of: 409, wait"}
	}
	if s.Renew < 0 || s.Lease > 0 && s.Renew >= s.Lease {
		return &Problem{"renew", fmt.Sprintf("a lease of %s is over before it is renewed after %s", s.Lease, s.Renew), "renew it in less than the lease"}
	}
	if s.Retries < 0 || s.Retries > 10 {
		return &Problem{"client-retries", fmt.Sprintf("client-retries must be between 0 and 10, not %d", s.Retries), ""}
	}
	switch c := s.CleanUp; {
	case c.Every != 0 && c.Every < time.Second:
		return &Problem{"clean-up.every", fmt.Sprintf("a job does not run every %s", c.Every), "1s or more"}
	case s.TTL < 0 || s.OpenTTL < 0 || c.At < 0:
		return &Problem{"ttl", "no key is kept for less than no time, and no job runs before the start", ""}
	}
	for _, x := range exclusions {
		if !x.when(s) {
			continue
		}
		for _, f := range fields {
			if slices.Contains(x.fields, f.name) && f.set(s) {
				return &Problem{f.name, f.name + " means nothing " + x.what, x.hint}
			}
		}
	}
	return nil
}
