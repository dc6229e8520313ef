// Package browsertest opens pages in a headless Chromium, for tests of what is drawn.
package browsertest

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// find is the path of the Chromium of this machine, or "".
func find() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "headless-shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Start starts the one Chromium of a test, which ends with it, or skips the test where there is none. In CI
// there must be one. A tab is opened in the context that it returns, with [chromedp.NewContext].
func Start(t testing.TB) context.Context {
	t.Helper()
	path := find()
	if path == "" {
		required := slices.Contains(strings.Split(os.Getenv("RETRYLAB_TEST_REQUIRE"), ","), "chromium")
		if required || os.Getenv("CI") != "" {
			t.Fatal("there is no Chromium on this machine, and one is required")
		}
		t.Skip("there is no Chromium on this machine")
	}
	// Chromium puts a socket into the temporary directory, whose path must be short, and leaves it there when it is killed.
	temporary, err := os.MkdirTemp("", "cr")
	if err != nil {
		t.Fatal(err)
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()),
		chromedp.Env("TMPDIR="+temporary), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.NoFirstRun,
		chromedp.WSURLReadTimeout(time.Minute),
	)
	// The test's own context ends before its cleanup, and Chromium is to leave by itself.
	outer, stop := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute)
	allocated, end := chromedp.NewExecAllocator(outer, options...)
	ctx, leave := chromedp.NewContext(allocated)
	t.Cleanup(func() {
		chromedp.Cancel(ctx) // the process is gone before its directory is removed
		leave()
		end()
		stop()
		if err := os.RemoveAll(temporary); err != nil {
			t.Error(err)
		}
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	return ctx
}

// Save writes a page into a directory of the test and returns the address to open it at.
func Save(t testing.TB, page string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(page), 0o666); err != nil {
		t.Fatal(err)
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
}

// View is how a page is looked at.
type View struct {
	Theme         string  // light or dark
	Width, Height int64   // CSS pixels
	Scale         float64 // pixels of the screen for each; 0 means 1
}

// Open opens a page in a tab, and returns when it has been loaded.
func Open(t testing.TB, tab context.Context, address string, v View) {
	t.Helper()
	if v.Scale == 0 {
		v.Scale = 1
	}
	if _, err := chromedp.Call(tab, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: v.Width, Height: v.Height, DeviceScaleFactor: v.Scale, Mobile: v.Width < 500,
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: v.Theme}},
	}); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(tab, chromedp.Navigate(address)); err != nil {
		t.Fatal(err)
	}
}
