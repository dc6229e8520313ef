package containers

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestCheckImage(t *testing.T) {
	t.Parallel()
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	for _, image := range []string{
		DefaultImage, "postgres", "postgres:16", "postgres:16.4-bookworm", "postgis/postgis:17-3.5", "a/b/c/d:e",
		"registry.example:5000/team/postgres:17", "localhost:5000/postgres", "Registry.Example/postgres",
		"postgres@" + digest, "postgres:17@" + digest, "my__db", "my-db", "my--db", "my.db", "p", "192.0.2.1/x",
		"postgres:" + strings.Repeat("x", 128), strings.Repeat("x", 255),
	} {
		if err := CheckImage(image); err != nil {
			t.Errorf("%q is refused: %v", image, err)
		}
	}
	for _, image := range []string{
		"", " ", "postgres ", " postgres", "post gres", "postgres:", ":17", "postgres:17:18", "Postgres", "postgres/", "/postgres", "a//b",
		"postgres:-17", "postgres:.17", "postgres:17/x:18/", "postgres@", "postgres@sha256", "postgres@sha256:12", "postgres@" + digest[:40] + "zz",
		"-postgres", "postgres-", "my___db", "my..db", "my_-db", ".", "..", "../x", "a/../b", "postgres\n", "postgres:17\n", "postgres\x00", "postgres:17;rm",
		"$(id)", "`id`", "postgres:${TAG}", "--privileged", "docker://postgres", "https://registry.example/postgres", "user:pw@host/postgres",
		"pöstgres", "postgres:1\u200b7", "postgres:" + strings.Repeat("x", 129), strings.Repeat("x", 256), strings.Repeat("x", 1<<20),
	} {
		err := CheckImage(image)
		var typed *ImageError
		if !errors.As(err, &typed) {
			t.Errorf("%.40q is taken (%v)", image, err)
			continue
		}
		if strings.ContainsAny(err.Error(), "\n\r\x00") || len(err.Error()) > 1000 {
			t.Errorf("the error for %.40q is not one line of bounded length: %.80q", image, err)
		}
		// What is wrong with a name is known before anybody looks for an engine.
		if image != "" {
			if _, err := Postgres(t.Context(), image); !errors.As(err, &typed) {
				t.Errorf("Postgres takes %.40q (%v)", image, err)
			}
		}
	}
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                              "",
		"one":                           "one",
		"one.":                          "one",
		"one\ntwo\r\n\n three  \t four": "one; two; three four",
		"a\x1b[31mb\x00c":               "a [31mb c",
		"\n\n":                          "",
		strings.Repeat("ü", 400):        strings.Repeat("ü", maxReason) + "…",
	} {
		if got := oneLine(text); got != want {
			t.Errorf("%.40q becomes %q, not %q", text, got, want)
		}
	}
}

func TestNoPasswordIsPrinted(t *testing.T) {
	t.Parallel()
	d := &Database{dsn: "postgres://retrylab:secret@127.0.0.1:5432/retrylab", image: DefaultImage}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if got, want := fmt.Sprintf(verb, d), "PostgreSQL in a container of postgres:17-alpine"; got != want {
			t.Errorf("%s prints %q, not %q", verb, got, want)
		}
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Errorf("a database that is not running cannot be stopped: %v", err)
	}
}
