package guard

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		settings Settings
		want     *Problem
	}{
		{"nothing", Settings{}, nil},
		{"none", Settings{Kind: "none"}, nil},
		{"check-then-insert", Settings{Kind: "check-then-insert", Fingerprint: "canonical", KeyValue: "last"}, nil},
		{"unique-index", Settings{
			Kind: "unique-index", Claim: "first", InProgress: "409", RetryAfter: time.Second,
			Fingerprint: "raw", KeyValue: "first", OnFailure: "delete",
		}, nil},
		{"unique-index, at-insert", Settings{Kind: "unique-index", Claim: "at-insert", Fingerprint: "none"}, nil},
		{"same-transaction", Settings{Kind: "same-transaction", Fingerprint: "none", KeyValue: "last"}, nil},
		{"a lease", Settings{Kind: "unique-index", Lease: 10 * time.Second, Fencing: "owner-and-fence"}, nil},
		{"check-then-insert, serializable", Settings{Kind: "check-then-insert", Isolation: "serializable"}, nil},
		{"same-transaction, with everything", Settings{
			Kind: "same-transaction", Isolation: "repeatable-read", LockTimeout: 50 * time.Millisecond, IdleTimeout: 10 * time.Second,
			Lock: "advisory", Insert: "plain", OnDuplicate: "start-over",
		}, nil},
		{"per-process", Settings{Kind: "per-process", RetryAfter: time.Second, OnFailure: "mark"}, nil},
		{"redis-precheck", Settings{
			Kind: "redis-precheck", TTL: 5 * time.Second, Presence: "status", Write: "first", Index: true, OnFailure: "delete", RetryAfter: time.Second,
		}, nil},
		{"redis-precheck with retries of the client", Settings{Kind: "redis-precheck", Retries: 10}, nil},
		{"too many retries of the client", Settings{Kind: "redis-precheck", Retries: 11}, &Problem{"client-retries", "client-retries must be between 0 and 10, not 11", ""}},
		{"client-retries of another guard", Settings{Kind: "per-process", Retries: 1}, foreign("client-retries", "per-process")},
		{"redis-precheck, write last", Settings{Kind: "redis-precheck", Write: "last", Presence: "done"}, nil},

		{"unknown kind", Settings{Kind: "prayer"}, &Problem{
			"kind", `unknown guard "prayer"`, "one of: none, check-then-insert, unique-index, same-transaction, natural-key, per-process, redis-precheck, lock",
		}},
		{"unknown claim", Settings{Kind: "unique-index", Claim: "last"}, &Problem{
			"claim", `claim cannot be "last"`, "one of: first, at-insert",
		}},
		{"unknown in-progress", Settings{Kind: "unique-index", InProgress: "425"}, &Problem{
			"in-progress", `in-progress cannot be "425"`, "one of: 409, conflict, wait, replay",
		}},
		{"unknown fingerprint", Settings{Kind: "same-transaction", Fingerprint: "md5"}, &Problem{
			"fingerprint", `fingerprint cannot be "md5"`, "one of: none, raw, canonical",
		}},
		{"unknown key-value", Settings{Kind: "unique-index", KeyValue: "all"}, &Problem{
			"key-value", `key-value cannot be "all"`, "one of: first, last",
		}},
		{"unknown on-failure", Settings{Kind: "unique-index", OnFailure: "retry"}, &Problem{
			"on-failure", `on-failure cannot be "retry"`, "one of: keep, delete, mark, mark-final",
		}},
		{"an unknown word before one that does not apply", Settings{Claim: "last"}, &Problem{
			"claim", `claim cannot be "last"`, "one of: first, at-insert",
		}},

		{"claim without a guard", Settings{Claim: "first"}, &Problem{"claim", "claim means nothing to the guard none", ""}},
		{"key-value without a guard", Settings{Kind: "none", KeyValue: "last"}, &Problem{"key-value", "key-value means nothing to the guard none", ""}},
		{"claim of another guard", Settings{Kind: "same-transaction", Claim: "first"}, &Problem{
			"claim", "claim means nothing to the guard same-transaction", "",
		}},
		{"on-failure of another guard", Settings{Kind: "check-then-insert", OnFailure: "mark"}, &Problem{
			"on-failure", "on-failure means nothing to the guard check-then-insert", "",
		}},
		{"retry-after of another guard", Settings{Kind: "same-transaction", RetryAfter: time.Second}, &Problem{
			"retry-after", "retry-after means nothing to the guard same-transaction", "",
		}},
		{"a fraction of a second", Settings{Kind: "unique-index", RetryAfter: 1500 * time.Millisecond}, &Problem{
			"retry-after", "a Retry-After has whole seconds, not 1.5s", "",
		}},
		{"a negative time", Settings{Kind: "unique-index", RetryAfter: -time.Second}, &Problem{
			"retry-after", "a Retry-After has whole seconds, not -1s", "",
		}},

		{"unknown fencing", Settings{Kind: "unique-index", Fencing: "token"}, &Problem{
			"fencing", `fencing cannot be "token"`, "one of: none, fence, owner-and-fence",
		}},
		{"unknown isolation", Settings{Kind: "same-transaction", Isolation: "snapshot"}, &Problem{
			"isolation", `isolation cannot be "snapshot"`, "one of: read-committed, repeatable-read, serializable",
		}},
		{"unknown lock", Settings{Kind: "same-transaction", Lock: "table"}, &Problem{"lock", `lock cannot be "table"`, "one of: none, advisory"}},
		{"unknown insert", Settings{Kind: "same-transaction", Insert: "loud"}, &Problem{"insert", `insert cannot be "loud"`, "one of: quiet, plain"}},
		{"unknown on-duplicate", Settings{Kind: "same-transaction", Insert: "plain", OnDuplicate: "panic"}, &Problem{
			"on-duplicate", `on-duplicate cannot be "panic"`, "one of: replay, conflict, fail, read-on, start-over",
		}},
		{"unknown presence", Settings{Kind: "redis-precheck", Presence: "maybe"}, &Problem{"presence", `presence cannot be "maybe"`, "one of: status, done"}},
		{"unknown write", Settings{Kind: "redis-precheck", Write: "never"}, &Problem{"write", `write cannot be "never"`, "one of: first, last"}},

		{"isolation of another guard", Settings{Kind: "unique-index", Isolation: "serializable"}, foreign("isolation", "unique-index")},
		{"lease of another guard", Settings{Kind: "same-transaction", Lease: time.Second}, foreign("lease", "same-transaction")},
		{"fencing of another guard", Settings{Kind: "per-process", Fencing: "fence"}, foreign("fencing", "per-process")},
		{"lock-timeout of another guard", Settings{Kind: "check-then-insert", LockTimeout: time.Second}, foreign("lock-timeout", "check-then-insert")},
		{"idle-timeout of another guard", Settings{Kind: "unique-index", IdleTimeout: time.Second}, foreign("idle-timeout", "unique-index")},
		{"lock of another guard", Settings{Kind: "unique-index", Lock: "advisory"}, foreign("lock", "unique-index")},
		{"insert of another guard", Settings{Kind: "unique-index", Insert: "plain"}, foreign("insert", "unique-index")},
		{"ttl of another guard", Settings{Kind: "per-process", TTL: time.Second}, foreign("ttl", "per-process")},
		{"presence of another guard", Settings{Kind: "per-process", Presence: "done"}, foreign("presence", "per-process")},
		{"write of another guard", Settings{Kind: "per-process", Write: "last"}, foreign("write", "per-process")},
		{"index of another guard", Settings{Kind: "per-process", Index: true}, foreign("index", "per-process")},

		{"on-duplicate without a plain insert", Settings{Kind: "same-transaction", OnDuplicate: "fail"}, &Problem{
			"on-duplicate", "on-duplicate means nothing without insert plain: a quiet insert meets no unique violation", "use insert: plain of same-transaction",
		}},
		{"read-on of another guard", Settings{Kind: "unique-index", OnDuplicate: "read-on"}, &Problem{
			"on-duplicate", "on-duplicate means nothing without insert plain: a quiet insert meets no unique violation", "use insert: plain of same-transaction",
		}},
		{"in-progress where nobody looks", Settings{Kind: "unique-index", OnDuplicate: "fail", InProgress: "wait"}, &Problem{
			"in-progress", "in-progress means nothing with on-duplicate fail: nobody looks at what is there", "use on-duplicate replay or conflict",
		}},
		{"key-value of no header", Settings{Kind: "unique-index", KeyFrom: "content", KeyValue: "last"}, &Problem{
			"key-value", "key-value means nothing without key-from header: no key of the request counts", "use key-from header",
		}},
		{"key-value of a reference", Settings{Kind: "natural-key", KeyValue: "last"}, &Problem{
			"key-value", "key-value means nothing without key-from header: no key of the request counts", "use key-from header",
		}},
		{"no fingerprint for a key of it", Settings{Kind: "unique-index", KeyFrom: "content", Fingerprint: "none"}, &Problem{
			"fingerprint", "fingerprint means nothing with key-from content: the key is made of it", "use raw or canonical",
		}},
		{"fingerprint of an order that keeps no body", Settings{Kind: "natural-key", Fingerprint: "raw"}, &Problem{
			"fingerprint", "fingerprint means nothing here: orders do not keep the body they came from", "use key-from content",
		}},
		{"keys that are forgotten", Settings{
			Kind: "unique-index", TTL: 24 * time.Hour, OpenTTL: 10 * time.Minute, CleanUp: CleanUp{At: 24*time.Hour + 30*time.Minute, Every: time.Second},
		}, nil},
		{"a look that forgets", Settings{Kind: "same-transaction", TTL: time.Hour, Expiry: "lookup"}, nil},
		{"a time to live that nobody looks at", Settings{Kind: "unique-index", OpenTTL: time.Hour, Expiry: "job"}, &Problem{
			"open-ttl", "open-ttl means nothing here: nobody looks how old a key is", "add clean-up: {every: 1h}, or expiry: lookup",
		}},
		{"a clean-up of nothing", Settings{Kind: "unique-index", CleanUp: CleanUp{At: time.Hour}}, &Problem{
			"clean-up", "clean-up means nothing without a time to live: no key is ever too old", "add ttl: 24h",
		}},
		{"a clean-up that never rests", Settings{Kind: "unique-index", TTL: time.Hour, CleanUp: CleanUp{Every: time.Millisecond}}, &Problem{
			"clean-up.every", "a job does not run every 1ms", "1s or more",
		}},
		{"a negative time to live", Settings{Kind: "redis-precheck", TTL: -time.Second}, &Problem{
			"ttl", "no key is kept for less than no time, and no job runs before the start", "",
		}},
		{"expiry of another guard", Settings{Kind: "redis-precheck", Expiry: "lookup"}, foreign("expiry", "redis-precheck")},
		{"finish of another guard", Settings{Kind: "same-transaction", Finish: "after"}, foreign("finish", "same-transaction")},
		{"open-ttl at insert", Settings{Kind: "unique-index", Claim: "at-insert", OpenTTL: time.Second, Expiry: "lookup"}, atInsert("open-ttl")},
		{"fencing of what is committed", Settings{Kind: "unique-index", Finish: "after", Fencing: "fence"}, &Problem{
			"fencing", "fencing means nothing with finish after: the order is committed by then, whoever holds the key", "use finish with-order",
		}},
		{"scope", Settings{Kind: "unique-index", Scope: "tenant", UniqueOver: "key-and-day"}, nil},
		{"unknown scope", Settings{Kind: "unique-index", Scope: "world"}, &Problem{"scope", `scope cannot be "world"`, "one of: none, tenant, tenant-and-operation"}},
		{"unknown key-from", Settings{Kind: "unique-index", KeyFrom: "cookie"}, &Problem{"key-from", `key-from cannot be "cookie"`, "one of: header, content, reference"}},
		{"unique-over of another guard", Settings{Kind: "same-transaction", UniqueOver: "key"}, foreign("unique-over", "same-transaction")},
		{"fingerprint of orders", Settings{Kind: "check-then-insert", Isolation: "serializable", Fingerprint: "raw"}, &Problem{
			"fingerprint", "fingerprint means nothing with isolation: the look is at the orders, which do not keep the body they came from", "",
		}},
		{"fingerprint of a presence", Settings{Kind: "redis-precheck", Presence: "done", Fingerprint: "none"}, &Problem{
			"fingerprint", "fingerprint means nothing with presence done: nobody looks at the value", "use presence status",
		}},
		{"retry-after of a presence", Settings{Kind: "redis-precheck", Presence: "done", RetryAfter: time.Second}, nobodyAtWork()},
		{"retry-after of a key that is written last", Settings{Kind: "redis-precheck", Write: "last", RetryAfter: time.Second}, nobodyAtWork()},
		{"on-failure of a key that is written last", Settings{Kind: "redis-precheck", Write: "last", OnFailure: "mark"}, &Problem{
			"on-failure", "on-failure means nothing with write last: a request that fails has not written its key", "use write first",
		}},
		{"lease at insert", Settings{Kind: "unique-index", Claim: "at-insert", Lease: time.Second}, &Problem{
			"lease", "lease means nothing with claim at-insert: the claim lasts no longer than its transaction", "use claim first",
		}},
		{"fencing at insert", Settings{Kind: "unique-index", Claim: "at-insert", Fencing: "fence"}, &Problem{
			"fencing", "fencing means nothing with claim at-insert: the claim lasts no longer than its transaction", "use claim first",
		}},

		{"in-progress at insert", Settings{Kind: "unique-index", Claim: "at-insert", InProgress: "wait"}, atInsert("in-progress")},
		{"retry-after at insert", Settings{Kind: "unique-index", Claim: "at-insert", RetryAfter: time.Second}, atInsert("retry-after")},
		{"on-failure at insert", Settings{Kind: "unique-index", Claim: "at-insert", OnFailure: "keep"}, atInsert("on-failure")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, tt.settings.Check()); diff != "" {
				t.Errorf("problem (-want +got):\n%s", diff)
			}
		})
	}
}

func foreign(field, guard string) *Problem {
	return &Problem{field, field + " means nothing to the guard " + guard, ""}
}

func nobodyAtWork() *Problem {
	return &Problem{"retry-after", "retry-after means nothing here: nobody is told of a request in progress", "use presence status and write first"}
}

func atInsert(field string) *Problem {
	return &Problem{field, field + " means nothing with claim at-insert: nobody knows of a request in progress", "use claim first"}
}

func TestGuards(t *testing.T) {
	t.Parallel()
	var settings []string
	for _, f := range fields {
		settings = append(settings, f.name)
	}
	var names []string
	for _, g := range All {
		if g.Name == "" || strings.Trim(g.Name, "abcdefghijklmnopqrstuvwxyz-") != "" {
			t.Errorf("%q is no name", g.Name)
		}
		if slices.Contains(names, g.Name) {
			t.Errorf("two guards are called %s", g.Name)
		}
		names = append(names, g.Name)
		if g.Doc == "" || strings.Contains(g.Doc, "\n") || strings.HasSuffix(g.Doc, ".") {
			t.Errorf("%s: its doc is not one line without a full stop: %q", g.Name, g.Doc)
		}
		if g.Admit == nil {
			t.Errorf("%s admits nobody", g.Name)
		}
		for _, name := range g.Takes {
			if !slices.Contains(settings, name) {
				t.Errorf("%s takes %q, which is no setting", g.Name, name)
			}
		}
		if found, ok := Find(g.Name); !ok || found.Name != g.Name {
			t.Errorf("Find(%q) found %q, %v", g.Name, found.Name, ok)
		}
	}
	for _, name := range settings {
		if !slices.ContainsFunc(All, func(g Guard) bool { return slices.Contains(g.Takes, name) }) {
			t.Errorf("no guard takes %s", name)
		}
	}
	if g, ok := Find(""); !ok || g.Name != "none" {
		t.Errorf("no name is %q, %v; want none", g.Name, ok)
	}
	if g, ok := Find("prayer"); ok {
		t.Errorf("there is a guard %q", g.Name)
	}
}

// TestAll parses the package: a guard that is declared must be in the list, in a file of its own
// that is called as scenarios write it.
func TestAll(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	declared := map[string]string{} // variable: file
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 {
				return true
			}
			value, ok := spec.Values[0].(*ast.CompositeLit)
			if !ok {
				return true
			}
			if typ, ok := value.Type.(*ast.Ident); ok && typ.Name == "Guard" {
				declared[spec.Names[0].Name] = e.Name()
			}
			if spec.Names[0].Name == "All" {
				for _, v := range value.Elts {
					listed = append(listed, v.(*ast.Ident).Name)
				}
			}
			return true
		})
	}
	for name, file := range declared {
		i := slices.Index(listed, name)
		if i < 0 {
			t.Errorf("%s is not in All", name)
			continue
		}
		if want := strings.ReplaceAll(All[i].Name, "-", "_") + ".go"; file != want {
			t.Errorf("the guard %s is in %s, want %s", All[i].Name, file, want)
		}
	}
	if len(declared) != len(All) {
		t.Errorf("%d guards are declared, %d listed", len(declared), len(All))
	}
}

func TestNoRecord(t *testing.T) {
	t.Parallel()
	for want, settings := range map[string][]Settings{
		"": {
			{}, {Kind: "none"}, {Kind: "unique-index"}, {Kind: "same-transaction"}, {Kind: "check-then-insert"}, {Kind: "redis-precheck", Index: true},
			{Kind: "unique-index", KeyFrom: "header", Scope: "none", UniqueOver: "key"},
		},
		"keeps no record of a key in the database":    {{Kind: "natural-key"}, {Kind: "per-process"}, {Kind: "redis-precheck"}},
		"makes the key of the content":                {{Kind: "unique-index", KeyFrom: "content"}},
		"keeps its records by tenant and key":         {{Kind: "same-transaction", Scope: "tenant"}},
		"keeps its records by key and day":            {{Kind: "unique-index", UniqueOver: "key-and-day"}},
		"keeps its records by tenant, method and key": {{Kind: "unique-index", Scope: "tenant-and-operation"}},
	} {
		for _, s := range settings {
			if got := s.NoRecord(); got != want {
				t.Errorf("%+v: %q, want %q", s, got, want)
			}
		}
	}
}

func TestCleanUpNext(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		job  CleanUp
		want []time.Duration // of the first three runs
	}{
		{CleanUp{}, nil},
		{CleanUp{At: time.Hour}, []time.Duration{time.Hour}},
		{CleanUp{Every: time.Minute}, []time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute}},
		{CleanUp{At: time.Hour, Every: time.Minute}, []time.Duration{time.Hour, 61 * time.Minute, 62 * time.Minute}},
	} {
		var got []time.Duration
		for n := range 3 {
			if at, more := tt.job.Next(n); more {
				got = append(got, at)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.job, diff)
		}
	}
}

// TestLeaves is what each setting leaves of a key after each kind of error.
func TestLeaves(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]map[int]string{
		"":           {400: "keep", 429: "keep", 500: "keep"},
		"delete":     {400: "delete", 500: "delete"},
		"mark":       {400: "mark", 500: "mark"},
		"mark-final": {400: "mark", 404: "mark", 422: "mark", 408: "delete", 409: "delete", 425: "delete", 429: "delete", 500: "delete", 503: "delete"},
	} {
		for status, want := range want {
			if got := (Settings{OnFailure: setting}).leaves(Answer{Status: status}); got != want {
				t.Errorf("on-failure %q leaves %s after a %d, want %s", setting, got, status, want)
			}
		}
	}
}
