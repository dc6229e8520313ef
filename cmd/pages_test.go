package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// pageDirs is where the pages of all commands stand.
var pageDirs = []string{"../docs/cli", "../man"}

// TestPages holds the pages of all commands, for the web and for man, against the commands. They are made
// here and not by a program, so that what makes them is in no binary: go test ./cmd -update -run TestPages
// writes them anew.
func TestPages(t *testing.T) {
	want := pages(t)
	if *update {
		for _, dir := range pageDirs {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for name, page := range want {
			if err := os.WriteFile(name, page, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	for name, page := range want {
		got, err := os.ReadFile(name)
		if err != nil {
			t.Errorf("%v: go test ./cmd -update -run TestPages writes it", err)
			continue
		}
		got = bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n"))
		if diff := cmp.Diff(strings.Split(string(got), "\n"), strings.Split(string(page), "\n")); diff != "" {
			t.Errorf("%s is not what its command says (-page +command; go test ./cmd -update -run TestPages):\n%s", name, diff)
		}
	}
	for _, dir := range pageDirs {
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if want[filepath.ToSlash(filepath.Join(dir, f.Name()))] == nil {
				t.Errorf("%s/%s is of no command any more", dir, f.Name())
			}
		}
	}
}

// pages makes the pages of all commands, by their paths.
func pages(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.IsAdditionalHelpTopicCommand() {
			out["../man/"+manName(c)] = topicPage(t, c)
			return
		}
		if !c.IsAvailableCommand() {
			return
		}
		c.DisableAutoGenTag = true // it has a date
		c.InitDefaultHelpFlag()
		var web bytes.Buffer
		if err := doc.GenMarkdown(c, &web); err != nil {
			t.Fatal(err)
		}
		out["../docs/cli/"+strings.ReplaceAll(c.CommandPath(), " ", "_")+".md"] = tidy(web.Bytes())
		out["../man/"+manName(c)] = manPage(t, c, "1")
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	root := newApp(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}).root()
	walk(root)
	if len(out) < 20 {
		t.Fatalf("%d pages: this test looks at the wrong tree", len(out))
	}
	return out
}

// manName is the file of a command's page: retrylab-run.1, and retrylab-words.7 for a topic.
func manName(c *cobra.Command) string {
	section := ".1"
	if c.IsAdditionalHelpTopicCommand() {
		section = ".7"
	}
	return strings.ReplaceAll(c.CommandPath(), " ", "-") + section
}

// manDate is the date in the head of a man page, which is left empty: the same commands give the same bytes.
var manDate = regexp.MustCompile(`(?m)^(\.TH "[^"]*" "[^"]*") "[^"]*"`)

// manFlag is the line of a flag in a man page: its names, and what the writer puts behind them.
var manFlag = regexp.MustCompile(`(?m)^((?:\\fB-\w\\fP, )?\\fB--([a-z-]+)\\fP)(\[?=.*)$`)

func manPage(t *testing.T, c *cobra.Command, section string) []byte {
	t.Helper()
	var page bytes.Buffer
	never := time.Unix(0, 0).UTC()
	header := &doc.GenManHeader{Section: section, Date: &never, Source: "retrylab", Manual: "retrylab"}
	if err := doc.GenMan(c, header, &page); err != nil {
		t.Fatal(err)
	}
	text := manDate.ReplaceAll(page.Bytes(), []byte(`$1 ""`))
	return tidy(manFlag.ReplaceAllFunc(text, func(line []byte) []byte {
		m := manFlag.FindSubmatch(line)
		flag := c.Flag(string(m[2]))
		if flag == nil {
			t.Fatalf("%s: %s is no flag", c.CommandPath(), line)
		}
		// As --help has it: what the value is, and its default below. The writer makes an assignment of both.
		value, _ := pflag.UnquoteUsage(flag)
		if value != "" {
			value = " " + value
		}
		if d := flag.DefValue; !slices.Contains([]string{"", "false", "0", "0s", "[]"}, d) {
			if flag.Value.Type() == "string" {
				d = strconv.Quote(d)
			}
			value += " (default " + d + ")"
		}
		return slices.Concat(m[1], []byte(value))
	}))
}

// topicPage is the man page of a help topic: its screen, word for word.
func topicPage(t *testing.T, c *cobra.Command) []byte {
	t.Helper()
	var lines []string
	for line := range strings.Lines(c.Long) {
		lines = append(lines, "    "+line)
	}
	screen := &cobra.Command{Use: c.Name(), Short: c.Short, Long: strings.Join(lines, "")}
	parent := &cobra.Command{Use: "retrylab"}
	parent.AddCommand(screen)
	screen.DisableAutoGenTag, screen.DisableFlagsInUseLine = true, true
	called := []byte("retrylab help " + c.Name() + `\fP`)
	return bytes.Replace(manPage(t, screen, "7"), []byte("retrylab "+c.Name()+`\fP`), called, 1)
}

// tidy is a page without blanks at the ends of its lines, and with one line break at its own.
func tidy(page []byte) []byte {
	lines := strings.Split(strings.TrimSpace(string(page)), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t")
	}
	return []byte(strings.Join(slices.Clip(lines), "\n") + "\n")
}
