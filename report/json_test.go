package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"retrylab/internal/lab"
)

func decode(t interface {
	Helper()
	Fatal(...any)
}, text string) *lab.Document {
	t.Helper()
	d := new(lab.Document)
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestJSONRoundTrip(t *testing.T) {
	t.Parallel()
	for name, d := range documents() {
		first := printed(t, JSON, d, Options{})
		again := decode(t, first)
		if diff := cmp.Diff(first, printed(t, JSON, again, Options{})); diff != "" {
			t.Errorf("%s: -first +second:\n%s", name, diff)
		}
		// Once in whole milliseconds nothing is lost any more.
		if diff := cmp.Diff(again, decode(t, printed(t, JSON, again, Options{}))); diff != "" {
			t.Errorf("%s: -encoded +decoded:\n%s", name, diff)
		}
	}
}

func TestJSONForm(t *testing.T) {
	t.Parallel()
	for name, d := range documents() {
		text := printed(t, JSON, d, Options{})
		if !strings.HasPrefix(text, "{\n  \"schema\": ") || !strings.HasSuffix(text, "\n}\n") {
			t.Errorf("%s: neither indented by two nor ended by a line break", name)
		}
		if strings.Contains(text, ": null") || strings.Contains(text, "[null") {
			t.Errorf("%s: holds null", name)
		}
		for _, escaped := range []string{`\u003c`, `\u003e`, `\u0026`} {
			if strings.Contains(text, escaped) {
				t.Errorf("%s: holds %s", name, escaped)
			}
		}
	}
}

func TestUnescape(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{``, ``},
		{`"plain"`, `"plain"`},
		{`"\u003cscript\u003e \u0026amp;"`, `"<script> &amp;"`},
		{`"\ufffd"`, "\"\ufffd\""},
		{`"\\u003c"`, `"\\u003c"`},
		{`"\\\u003c"`, `"\\<"`},
		{`"\u2028 \n \" \u00"`, `"\u2028 \n \" \u00"`},
		{`\`, `\`},
		{`\u003`, `\u003`},
	} {
		if got := string(unescape([]byte(tt.in))); got != tt.want {
			t.Errorf("unescape(%s) = %s, want %s", tt.in, got, tt.want)
		}
	}
}

// FuzzUnescape: what the encoder wrote means the same afterwards.
func FuzzUnescape(f *testing.F) {
	f.Add("<script>&amp;</script>")
	f.Add(`\u003c \\u003c`)
	f.Fuzz(func(t *testing.T, s string) {
		data, err := json.Marshal(s)
		if err != nil {
			t.Skip()
		}
		var want, got string
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(unescape(bytes.Clone(data)), &got); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
