package main

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	command "retrylab/cmd"
)

// What can be said of a release without making one. The packages themselves are made and looked at by .ci/package.

// TestChangelogIsOfThisVersion holds the newest section of the changelog against the version that the command
// prints, which is the only place where it is written.
func TestChangelogIsOfThisVersion(t *testing.T) {
	t.Parallel()
	var stdout, stderr strings.Builder
	if code := command.Main([]string{"version", "--format", "json"}, strings.NewReader(""), &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, &stderr)
	}
	var build struct{ Version string }
	if err := json.Unmarshal([]byte(stdout.String()), &build); err != nil {
		t.Fatal(err)
	}
	changelog, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	newest := regexp.MustCompile(`(?m)^## \[(.+)\] - (?:unreleased|\d{4}-\d\d-\d\d)$`).FindSubmatch(changelog)
	if newest == nil || string(newest[1]) != build.Version {
		t.Errorf("the newest section of CHANGELOG.md is %q, and retrylab is %s", newest, build.Version)
	}
}

// TestReleaseDockerfile: the image of a release holds what GoReleaser puts beside this file, and makes nothing.
func TestReleaseDockerfile(t *testing.T) {
	t.Parallel()
	var copied []string
	last := map[string]string{}
	for _, i := range dockerfile(t, "deploy/release.Dockerfile") {
		last[i.name] = i.args
		switch i.name {
		case "FROM":
			if i.args != "scratch" {
				t.Errorf("the image is made from %s, which must be downloaded", i.args)
			}
		case "COPY":
			words := slices.DeleteFunc(strings.Fields(i.args), func(word string) bool { return strings.HasPrefix(word, "--") })
			copied = append(copied, words[:len(words)-1]...)
		case "RUN", "ADD":
			t.Errorf("%s %s: the binary has been built, and is all there is", i.name, i.args)
		}
	}
	if want := []string{"${TARGETPLATFORM}/retrylab", "LICENSE", "dist/files/third-party-licences.txt"}; !slices.Equal(copied, want) {
		t.Errorf("the image holds %q, not %q", copied, want)
	}
	if uid, _, _ := strings.Cut(last["USER"], ":"); !numericUser(uid) {
		t.Errorf("USER is %q, not a number that is not root's", last["USER"])
	}
	if last["ENTRYPOINT"] != `["/retrylab"]` {
		t.Errorf("ENTRYPOINT is %s, which without a shell must be a list", last["ENTRYPOINT"])
	}
}
