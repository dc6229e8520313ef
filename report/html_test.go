package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"retrylab/internal/lab"
)

// pictureGoldens are the documents whose page and slide are kept.
var pictureGoldens = []string{"held", "one-failed", "inconclusive", "empty", "hostile", "only-skipped", "interrupted", "recovery", "expired-key", "deadline"}

// bodyOnly leaves out the style and the script, which are files of their own.
func bodyOnly(page string) string {
	for _, own := range []string{pageStyle, pageScript, slideStyle, shapes()} {
		page = strings.ReplaceAll(page, own, "…")
	}
	page = regexp.MustCompile(`sha256-[^']*`).ReplaceAllString(page, "sha256-…")
	return strings.NewReplacer("<rect", "\n<rect", "<g ", "\n<g ", "<line", "\n<line", "<text", "\n<text").Replace(page)
}

func TestPictureGoldens(t *testing.T) {
	t.Parallel()
	for _, name := range pictureGoldens {
		golden(t, name+".html", []byte(bodyOnly(printed(t, HTML, documents()[name], Options{}))))
		golden(t, name+".svg.txt", []byte(bodyOnly(printed(t, SVG, documents()[name], Options{}))))
	}
}

// TestSVGIsXML reads every slide as XML, in which a character that is not allowed ends the document.
func TestSVGIsXML(t *testing.T) {
	t.Parallel()
	for name, d := range documents() {
		dec := xml.NewDecoder(strings.NewReader(printed(t, SVG, d, Options{})))
		for {
			token, err := dec.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
			if e, ok := token.(xml.StartElement); ok && (e.Name.Local == "script" || e.Name.Local == "image") {
				t.Errorf("%s: there is a %s", name, e.Name.Local)
			}
		}
	}
}

// TestPageStandsAlone finds whatever would be fetched from elsewhere, and text that became markup.
func TestPageStandsAlone(t *testing.T) {
	t.Parallel()
	foreign := regexp.MustCompile(`(?i)(src|href|action)="?(https?:|//|file:)|url\((?:[^#)])|@import|<link rel="?stylesheet|<img|<iframe`)
	for name, d := range documents() {
		page := printed(t, HTML, d, Options{})
		if found := foreign.FindString(page); found != "" {
			t.Errorf("%s: %s", name, found)
		}
		if n := strings.Count(page, "<script"); n != 1 {
			t.Errorf("%s: %d scripts, want the page's own alone", name, n)
		}
		for _, bad := range []string{"\x1b", "\x07", "\u202e"} {
			if strings.Contains(page, bad) {
				t.Errorf("%s: the page holds %q", name, bad)
			}
		}
	}
}

// large is one result of about n events.
func large(n int) *lab.Document {
	b := newBench("retry-storm", "many callers", "many")
	for i := 0; len(b.r.Events) < n; i++ {
		op, t := fmt.Sprintf("op-%d", i+1), float64(i)*0.013
		b.start(op, t)
		for j := range 3 {
			path := fmt.Sprintf("%s/retry.%d", op, j+1)
			b.try("caller", path, t, t+1+float64(i%7)/10, "read")
			b.serve("order-1", path, t, t+2+float64(i%5)/10)
			t += 3
		}
		b.end(op, t, lab.Unknown, "read timeout")
		b.r.Counts.Operations, b.r.Counts.Wanted = i+1, i+1
	}
	return document([]lab.ScenarioInfo{{Name: "retry-storm", Title: "Many"}}, b.result())
}

func TestLargePage(t *testing.T) {
	t.Parallel()
	page := printed(t, HTML, large(10_000), Options{})
	if n := len(page); n > 3<<20 {
		t.Errorf("a result of 10,000 events makes a page of %d bytes", n)
	}
	for _, want := range []string{"not drawn", "further event"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func BenchmarkHTML(b *testing.B) {
	for name, d := range map[string]*lab.Document{"read-timeout": documents()["read-timeout"], "10000-events": large(10_000)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var buf bytes.Buffer
				if err := HTML.Write(&buf, d, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
