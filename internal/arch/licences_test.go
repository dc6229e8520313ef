package arch

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// platforms are the systems that binaries are built for. Modules differ between them.
var platforms = []string{"linux", "darwin", "windows"}

// TestLicences holds docs/licenses.md against the modules that are linked into the binary, and
// against the licence in each module's own directory. A new dependency thus shows in a review,
// with its licence.
func TestLicences(t *testing.T) {
	t.Parallel()
	base := root(t)
	linked := map[string]string{} // module: directory
	complete := true
	for _, goos := range platforms {
		out, err := goList(t, []string{"GOOS=" + goos, "GOARCH=amd64", "CGO_ENABLED=0"},
			"-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Dir}}{{end}}{{end}}", ".")
		if err != nil {
			// The modules of another system may not be on this machine, which may be offline.
			if os.Getenv("CI") != "" {
				t.Fatalf("list the modules for %s: %v", goos, err)
			}
			t.Logf("the modules for %s could not be listed: %v", goos, err)
			complete = false
			continue
		}
		for _, line := range lines(out) {
			module, dir, _ := strings.Cut(line, "\t")
			linked[module] = dir
		}
	}
	if len(linked) == 0 {
		t.Fatal("no module was found: this test looks at the wrong place")
	}
	listed := licences(t, filepath.Join(base, "docs", "licenses.md"))
	for _, module := range slices.Sorted(maps.Keys(linked)) {
		got := licenceIn(t, linked[module])
		switch want, ok := listed[module]; {
		case !slices.Contains(accepted, got):
			t.Errorf("%s is under %q, which this project does not take; accepted are %s", module, got, strings.Join(accepted, ", "))
		case !ok:
			t.Errorf("docs/licenses.md does not list %s (%s)", module, got)
		case want != got:
			t.Errorf("docs/licenses.md says that %s is under %s; its own file says %s", module, want, got)
		}
		delete(listed, module)
	}
	if complete {
		for _, module := range slices.Sorted(maps.Keys(listed)) {
			t.Errorf("docs/licenses.md lists %s, which is not linked into the binary", module)
		}
	}
}

// accepted are the licences that may be linked into a binary under the MIT licence with no more
// than their notice. There is no copyleft among them.
var accepted = []string{"MIT", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Apache-2.0", "MIT and Apache-2.0"}

var row = regexp.MustCompile("^\\| `([^`]+)` \\| ([^|]+) \\|")

// licences reads the table of modules and licences.
func licences(t *testing.T, file string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, line := range lines(string(data)) {
		if m := row.FindStringSubmatch(line); m != nil {
			out[m[1]] = strings.TrimSpace(m[2])
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s has no table of modules", file)
	}
	return out
}

// licenceIn names the licence of a module by the words of its file.
func licenceIn(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Error(err)
		return "unknown"
	}
	for _, e := range entries {
		// What a module took from elsewhere has files of its own, such as LICENSE-GO.
		name := strings.ToUpper(strings.TrimSuffix(strings.TrimSuffix(e.Name(), ".md"), ".txt"))
		if !slices.Contains([]string{"LICENSE", "LICENCE", "COPYING", "UNLICENSE"}, name) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Error(err)
			continue
		}
		return classify(string(data))
	}
	return "none"
}

// classify names the licence that a text is. A copyleft licence is found first, wherever it is
// mentioned.
func classify(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	has := func(words string) bool { return strings.Contains(text, words) }
	switch {
	case has("GNU AFFERO GENERAL PUBLIC LICENSE"):
		return "AGPL"
	case has("GNU LESSER GENERAL PUBLIC LICENSE"), has("GNU Lesser General Public License"):
		return "LGPL"
	case has("GNU GENERAL PUBLIC LICENSE"), has("GNU General Public License"):
		return "GPL"
	case has("Mozilla Public License"):
		return "MPL-2.0"
	}
	mit := has("Permission is hereby granted, free of charge, to any person obtaining a copy")
	apache := has("Apache License") && has("Version 2.0")
	switch {
	case mit && apache:
		return "MIT and Apache-2.0"
	case mit:
		return "MIT"
	case apache:
		return "Apache-2.0"
	case has("Permission to use, copy, modify, and/or distribute this software"), has("Permission to use, copy, modify, and distribute this software"):
		return "ISC"
	case has("Redistribution and use in source and binary forms") && (has("Neither the name") || has("names of its contributors may not be used") || has("nor the names of")):
		return "BSD-3-Clause"
	case has("Redistribution and use in source and binary forms"):
		return "BSD-2-Clause"
	}
	return "unknown"
}

// TestClassify shows what the words of a licence are taken for.
func TestClassify(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Permission is hereby granted, free of charge,\nto any person obtaining a copy of this software": "MIT",
		"Apache License\n  Version 2.0, January 2004":                                                    "Apache-2.0",
		"Redistribution and use in source and binary forms … Neither the name of …":                      "BSD-3-Clause",
		"Redistribution and use in source and binary forms … disclaimer":                                 "BSD-2-Clause",
		"GNU GENERAL PUBLIC LICENSE Version 3":                                                           "GPL",
		"GNU AFFERO GENERAL PUBLIC LICENSE Version 3":                                                    "AGPL",
		"Mozilla Public License, version 2.0":                                                            "MPL-2.0",
		"All rights reserved.":                                                                           "unknown",
	} {
		if got := classify(text); got != want {
			t.Errorf("%q is taken for %s, not %s", text, got, want)
		}
	}
}
