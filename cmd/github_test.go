package cmd

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// TestInert writes what GitHub's runner would take for commands, in one piece and in two.
func TestInert(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"held\n", "held\n"},
		{"a :: b\n", "a :: b\n"},
		{"::error::x\n", ": :error::x\n"},
		{"\u3000 ::error::x", "\u3000 : :error::x"},
		{"a\n\n  ::stop-commands::x\n::y::\n", "a\n\n  : :stop-commands::x\n: :y::\n"},
		{"name ##[add-mask]x ##[y]", `name #\u0023[add-mask]x #\u0023[y]`},
	} {
		var b bytes.Buffer
		w := &inert{Writer: &b}
		if n, err := w.Write([]byte(tt.in)); n != len(tt.in) || err != nil {
			t.Errorf("%q: %d, %v", tt.in, n, err)
		}
		if got := b.String(); got != tt.want {
			t.Errorf("%q is passed on as %q, want %q", tt.in, got, tt.want)
		}
	}
	var b bytes.Buffer
	w := &inert{Writer: &b}
	for _, part := range []string{"a ", "::b", "", "\n", "::c"} {
		w.Write([]byte(part))
	}
	if got, want := b.String(), "a ::b\n: :c"; got != want {
		t.Errorf("in parts: %q, want %q", got, want)
	}
	b.Reset()
	want := "a ##[b]::"
	data, _ := json.Marshal(want)
	var got string
	if (&inert{Writer: &b}).Write(data); json.Unmarshal(b.Bytes(), &got) != nil || got != want {
		t.Errorf("JSON is passed on as %s", strings.TrimSpace(b.String()))
	}
}
