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

		{"unknown kind", Settings{Kind: "prayer"}, &Problem{
			"kind", `unknown guard "prayer"`, "one of: none, check-then-insert, unique-index, same-transaction",
		}},
		{"unknown claim", Settings{Kind: "unique-index", Claim: "last"}, &Problem{
			"claim", `claim cannot be "last"`, "one of: first, at-insert",
		}},
		{"unknown in-progress", Settings{Kind: "unique-index", InProgress: "425"}, &Problem{
			"in-progress", `in-progress cannot be "425"`, "one of: 409, wait, replay",
		}},
		{"unknown fingerprint", Settings{Kind: "same-transaction", Fingerprint: "md5"}, &Problem{
			"fingerprint", `fingerprint cannot be "md5"`, "one of: none, raw, canonical",
		}},
		{"unknown key-value", Settings{Kind: "unique-index", KeyValue: "all"}, &Problem{
			"key-value", `key-value cannot be "all"`, "one of: first, last",
		}},
		{"unknown on-failure", Settings{Kind: "unique-index", OnFailure: "retry"}, &Problem{
			"on-failure", `on-failure cannot be "retry"`, "one of: keep, delete, mark",
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

func atInsert(field string) *Problem {
	return &Problem{field, field + " means nothing with claim at-insert: nobody knows of a request in progress", "use claim first"}
}

func TestGuards(t *testing.T) {
	t.Parallel()
	var fields []string
	for _, w := range words {
		fields = append(fields, w.field)
	}
	fields = append(fields, "retry-after")
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
			if !slices.Contains(fields, name) {
				t.Errorf("%s takes %q, which is no setting", g.Name, name)
			}
		}
		if found, ok := Find(g.Name); !ok || found.Name != g.Name {
			t.Errorf("Find(%q) found %q, %v", g.Name, found.Name, ok)
		}
	}
	for _, name := range fields {
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
