//go:build unix

package cmd

import (
	"bytes"
	stdcmp "cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
	"github.com/chromedp/chromedp"
	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"

	"retrylab/internal/browsertest"
)

// picture is one that the documentation shows: of a terminal, or of a page.
type picture struct {
	name  string
	args  []string // of retrylab, which prints what the terminal shows, or writes the page
	shows []string // what must be seen, or it is a picture of something else

	terminal pty.Winsize // of as many lines as are written, where there are fewer
	turns    []turn      // with who sits there; without them it is left to its end

	page browsertest.View
}

// turn is what is awaited at a terminal, and what is typed then.
type turn struct{ sees, types string }

var (
	narrow = pty.Winsize{Cols: 80, Rows: 50}
	wide   = pty.Winsize{Cols: 120, Rows: 50}
	hall   = pty.Winsize{Cols: 80, Rows: 24} // what a projector shows

	sideBySide = []string{"compare", "read-timeout:feign-retryer-3", "read-timeout:key-unique-index"}
	stepping3  = []string{"run", "read-timeout:feign-retryer-3", "--step", "--pace", "instant"}
)

// density is how many pixels a picture has for a CSS pixel: letters are sharp on a dense screen, and files small.
const density = 1.5

var pictures = []picture{
	{name: "table-80", args: []string{"run", "read-timeout"}, terminal: narrow, shows: []string{"held, 2 too many", "next: retrylab run"}},
	{name: "table-120", args: []string{"run", "three-layers"}, terminal: wide, shows: []string{"4→16→64", "next: retrylab run"}},
	{
		name: "grid", terminal: narrow, shows: []string{"2-3!~", "unique-index: 1 order"},
		args: []string{"run", "read-timeout", "--set", "caller.key=operation", "--vary", "caller.timeouts.read=1s..15s/1s", "--vary", "server.guard=none,check-then-insert,unique-index"},
	},
	{name: "compare", args: sideBySide, terminal: narrow, shows: []string{"2 orders fewer"}},
	{name: "step-question", args: stepping3, terminal: hall, turns: []turn{{sees: asks}}, shows: []string{asks}},
	{name: "step-answer", args: stepping3, terminal: hall, turns: []turn{{asks, "1\r"}, {sees: sideways}}, shows: []string{"Not 1: 3 orders for 1 intent"}},
	{
		name: "page-light", args: append(sideBySide[:3:3], "--format", "html"), shows: []string{"A feign retryer, 3", "order 3, too many"},
		page: browsertest.View{Theme: "light", Width: 1280, Height: 1040, Scale: density},
	},
	{
		name: "page-dark", args: append(sideBySide[:3:3], "--format", "html"), shows: []string{"A feign retryer, 3", "order 3, too many"},
		page: browsertest.View{Theme: "dark", Width: 1280, Height: 1040, Scale: density},
	},
	{
		name: "page-phone", args: []string{"run", "read-timeout", "--format", "html"}, shows: []string{"feign retryer, 3"},
		page: browsertest.View{Theme: "light", Width: 390, Height: 844, Scale: density},
	},
	{
		name: "page-load", args: []string{"run", "retry-storm", "--format", "html"}, shows: []string{"the disturbance ends"},
		page: browsertest.View{Theme: "light", Width: 1280, Height: 900, Scale: density},
	},
}

// TestPictures takes the pictures of the documentation: it runs the tool at a terminal, opens its pages in a
// browser, and sees that both show what they must. PNG files differ with the fonts and the Chromium of a machine, so what is
// compared with the files in docs/pictures is what they were taken of, by the sums in sources.txt.
// "go test ./cmd -update -run TestPictures" takes them anew.
func TestPictures(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long, above all with the race detector")
	}
	t.Parallel()
	browser := browsertest.Start(t)
	directory := filepath.Join("..", "docs", "pictures")
	var sources strings.Builder
	for _, p := range pictures {
		page := p.source(t)
		tab, end := chromedp.NewContext(browser)
		shot := p.shot(t, tab, page)
		end()
		fmt.Fprintf(&sources, "%x  %s.png\n", sha256.Sum256([]byte(page)), p.name)
		if *update {
			if err := os.WriteFile(filepath.Join(directory, p.name+".png"), shot, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	list := filepath.Join(directory, "sources.txt")
	if *update {
		if err := os.WriteFile(list, []byte(sources.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	taken, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(taken), sources.String()); diff != "" {
		t.Errorf("docs/pictures shows what the tool no longer says (-shown +said; go test ./cmd -update -run TestPictures takes the pictures anew):\n%s", diff)
	}
	files, err := filepath.Glob(filepath.Join(directory, "*.png"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".png"); !slices.ContainsFunc(pictures, func(p picture) bool { return p.name == name }) {
			t.Errorf("%s is made by nothing here", f)
		}
	}
}

// source is the page that a picture is taken of.
func (p picture) source(t *testing.T) string {
	t.Helper()
	if p.terminal.Cols == 0 {
		command := exec.CommandContext(t.Context(), "retrylab", p.args...)
		command.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TMPDIR="+t.TempDir())
		out, err := command.Output()
		if err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
		return string(out)
	}
	s := sitAt(t, p.terminal, []string{"TERM=xterm-256color"}, p.args...)
	var text string
	if p.turns == nil {
		s.leaves(0)
		text = fmt.Sprintf("$ retrylab %s\r\n%s", strings.Join(p.args, " "), s.all())
	}
	for _, turn := range p.turns {
		s.sees(turn.sees)
		s.sees("\x1b[J") // the screen is drawn to its end
		text = s.written()
		s.types(turn.types)
	}
	if p.turns != nil {
		s.types("\x04")
		s.leaves(0)
	}
	screen := vt.NewEmulator(int(p.terminal.Cols), int(p.terminal.Rows))
	if _, err := screen.WriteString(text); err != nil {
		t.Fatal(err)
	}
	return screenPage(screen)
}

// shot opens a page, sees that it shows what it must, and takes the picture.
func (p picture) shot(t *testing.T, tab context.Context, page string) []byte {
	t.Helper()
	view, take := p.page, chromedp.CaptureScreenshot()
	if p.terminal.Cols > 0 {
		view = browsertest.View{Theme: "dark", Width: 1600, Height: 1200, Scale: density} // larger than any terminal
		take = chromedp.Screenshot(chromedp.CSS("body"))
	}
	browsertest.Open(t, tab, browsertest.Save(t, page), view)
	text, err := chromedp.Run(tab, chromedp.Evaluate[string]("document.body.innerText"))
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	for _, s := range p.shows {
		if !strings.Contains(text, s) {
			t.Errorf("%s does not show %q, but\n%s", p.name, s, text)
		}
	}
	shot, err := chromedp.Run(tab, take)
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	return small(t, shot)
}

// small writes a PNG with the 256 colours that it has most of, and the others as the nearest of them: where
// colours are flat nobody sees a difference, and it is less than half as long.
func small(t *testing.T, shot []byte) []byte {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	often := map[color.RGBA]int{}
	for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y++ {
		for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x++ {
			often[color.RGBAModel.Convert(img.At(x, y)).(color.RGBA)]++
		}
	}
	if len(often) < 10 {
		t.Errorf("a picture of %d colours shows nothing", len(often))
	}
	colours := slices.SortedFunc(maps.Keys(often), func(a, b color.RGBA) int {
		return stdcmp.Or(stdcmp.Compare(often[b], often[a]), stdcmp.Compare(a.R, b.R), stdcmp.Compare(a.G, b.G), stdcmp.Compare(a.B, b.B))
	})
	var few color.Palette
	for _, c := range colours[:min(len(colours), 256)] {
		few = append(few, c)
	}
	flat := image.NewPaletted(img.Bounds(), few)
	draw.Draw(flat, flat.Rect, img, flat.Rect.Min, draw.Src)
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, flat); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

const (
	ground = "#1d1f23"
	ink    = "#e4e4e4"
)

// palette are the colours of a terminal that has a dark ground, by their numbers.
var palette = [16]string{
	"#1d1f23", "#ff7b72", "#7ee787", "#f0c25a", "#79b8ff", "#d2a8ff", "#76d9e6", "#e4e4e4",
	"#8b949e", "#ffa198", "#a5f0ac", "#ffdf8a", "#a5d0ff", "#e2c5ff", "#b3f0f7", "#ffffff",
}

// screenPage is what stands on a screen as HTML, down to the last line with something on it.
func screenPage(screen *vt.Emulator) string {
	var lines []string
	for y := range screen.Height() {
		var line strings.Builder
		for x := 0; x < screen.Width(); {
			first, text := screen.CellAt(x, y), ""
			for x < screen.Width() {
				cell := screen.CellAt(x, y)
				if !cell.Style.Equal(&first.Style) {
					break
				}
				text += cell.Content
				x += max(cell.Width, 1)
			}
			if style := css(first.Style); style != "" {
				fmt.Fprintf(&line, `<span style="%s">%s</span>`, style, html.EscapeString(text))
			} else {
				line.WriteString(html.EscapeString(text))
			}
		}
		lines = append(lines, strings.TrimRight(line.String(), " "))
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return fmt.Sprintf(`<!doctype html>
<meta charset="utf-8">
<style>
html { background: %[1]s }
body { margin: 0; padding: 14px 20px; width: %[3]dch; background: %[1]s; color: %[2]s; font: 14px/16px "DejaVu Sans Mono", monospace }
pre { margin: 0; font: inherit }
</style>
<pre>%[4]s</pre>
`, ground, ink, screen.Width(), strings.Join(lines, "\n"))
}

func css(s uv.Style) string {
	var out []string
	for property, c := range map[string]color.Color{"color": s.Fg, "background": s.Bg} {
		switch c := c.(type) {
		case nil:
		case ansi.BasicColor:
			out = append(out, property+": "+palette[c])
		default:
			r, g, b, _ := c.RGBA()
			out = append(out, fmt.Sprintf("%s: #%02x%02x%02x", property, r>>8, g>>8, b>>8))
		}
	}
	slices.Sort(out)
	if s.Attrs&uv.AttrBold != 0 {
		out = append(out, "font-weight: bold")
	}
	if s.Attrs&uv.AttrFaint != 0 {
		out = append(out, "opacity: .7")
	}
	return strings.Join(out, "; ")
}
