package cmd

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTopics keeps every topic on one screen that ends with the next place to look.
func TestTopics(t *testing.T) {
	t.Parallel()
	for _, topic := range helpTopics {
		got := runMain("help", topic.name)
		lines := strings.Split(strings.TrimRight(got.stdout, "\n"), "\n")
		if got.code != 0 || len(lines) > 40 {
			t.Errorf("%s: exit code %d, %d lines", topic.name, got.code, len(lines))
		}
		for _, line := range lines {
			if len([]rune(line)) > 80 {
				t.Errorf("%s: %d columns: %s", topic.name, len([]rune(line)), line)
			}
		}
		last := lines[len(lines)-1]
		if !strings.HasPrefix(last, "Next: ") {
			t.Errorf("%s ends with %q", topic.name, last)
		}
		for _, page := range regexp.MustCompile(`docs/[a-z-]+\.md`).FindAllString(last, -1) {
			if _, err := os.Stat("../" + page); err != nil {
				t.Errorf("%s: %v", topic.name, err)
			}
		}
		if root := runMain("--help"); !strings.Contains(root.stdout, "\n  "+topic.name+" ") {
			t.Errorf("%s does not stand in the help of all", topic.name)
		}
	}
}

// TestWordsTopic holds the topic against the page: each word stands in both.
func TestWordsTopic(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/words.md")
	if err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(string(page), "\n## ")
	screen := runMain("help", "words").stdout
	words := regexp.MustCompile(`(?m)^\| ([a-z][a-z -]*) \|`).FindAllStringSubmatch(table, -1)
	if len(words) < 20 {
		t.Fatalf("%d words: this test looks at the wrong thing", len(words))
	}
	for _, w := range words {
		if w[1] != "word" && !regexp.MustCompile(`(?m)^  ([a-z, -]+, )?`+w[1]+`[, ]`).MatchString(screen) {
			t.Errorf("the topic has no %s", w[1])
		}
	}
}

// TestDefaultsPage holds the page against the list: each key with its variable, in order.
func TestDefaultsPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/defaults.md")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z][a-z-]*)( \(not in a file\))? \| (.*) \|$`).FindAllStringSubmatch(string(page), -1) {
		got = append(got, row[1]+row[2]+" "+row[3])
	}
	run, _, err := newApp(nil, nil, nil).root().Find([]string{"run"})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range defaultKeys {
		row := k.flag
		if k.noFile != "" {
			row += " (not in a file)"
		}
		if k.noEnv {
			row += " –"
		} else {
			row += " `" + variable(k.flag) + "`"
		}
		want = append(want, row)
		if run.Flags().Lookup(k.flag) == nil && run.InheritedFlags().Lookup(k.flag) == nil {
			t.Errorf("run has no flag --%s", k.flag)
		}
	}
	if diff := cmp.Diff(want, got[:min(len(got), len(want))]); diff != "" {
		t.Errorf("-wanted +in docs/defaults.md:\n%s", diff)
	}
}
