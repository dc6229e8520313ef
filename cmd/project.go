package cmd

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"retrylab/internal/engine"
	"retrylab/internal/storage"
	"retrylab/report"
	"retrylab/scenarios"
)

// projectFile holds what the runs of a project have in common.
const projectFile = ".retrylab.yaml"

// defaultKey is a flag of run that need not stand on the command line.
type defaultKey struct {
	flag     string
	words    []string                 // what it can be, where there are words for it
	check    func(value string) error // what else there is to say
	noFile   string                   // why a project file must not have it
	noEnv    bool                     // it takes several values: no variable holds them
	relative bool                     // format=path, from the directory of the file
}

// defaultKeys lists every flag of run that a project file or a variable can give.
var defaultKeys = []defaultKey{
	{flag: "store", check: func(v string) error { _, err := storage.Engine(v); return err }},
	{flag: "redis", check: storage.CheckRedis},
	{flag: "pg-bindir", noFile: "a file that comes with a project must not say what is executed"},
	{flag: "clock", words: []string{engine.Virtual, engine.Wall}},
	{flag: "speed"},
	{flag: "seed"},
	{flag: "jobs"},
	{flag: "time-limit"},
	{flag: "fail-fast"},
	{flag: "inconclusive", words: inconclusives},
	{flag: "fail-exit-code"},
	{flag: "require-all"},
	{flag: "assert", noEnv: true},
	{flag: "format", words: formatNames()},
	{flag: "report", noEnv: true, relative: true},
	{flag: "timeline", words: timelines},
	{flag: "github", words: gitHubs},
	{flag: "rows"},
	{flag: "wide"},
	{flag: "color", words: colors},
	{flag: "quiet"},
	{flag: "verbose"},
}

// origins says of each flag that has a value where it comes from: "--clock", "RETRYLAB_CLOCK",
// ".retrylab.yaml:3". A flag that is not in it has its built-in value.
type origins struct {
	of   map[string]string
	file string // the project file that was used, or ""
}

// name is where the value of a flag comes from.
func (o origins) name(flag string) string {
	if of := o.of[flag]; of != "" {
		return of
	}
	return "default"
}

// chosenBy is who has chosen a flag's value, as a result names it: the same wherever the run was started.
func (o origins) chosenBy(flag string) string {
	if by := o.name(flag); !strings.Contains(by, projectFile) {
		return by
	}
	return projectFile
}

// defaults gives the flags of a command that were not given their values: of the environment, else of the
// project file, else the built-in ones.
func (a *app) defaults(c *cobra.Command, project bool) (origins, error) {
	o := origins{of: map[string]string{}}
	flags := c.Flags()
	flags.Visit(func(f *pflag.Flag) { o.of[f.Name] = "--" + f.Name })
	for _, pair := range [][2]string{{"json", "format"}, {"plain", "format"}, {"no-color", "color"}, {"quiet", "verbose"}, {"verbose", "quiet"}} {
		if of := o.of[pair[0]]; of != "" && o.of[pair[1]] == "" {
			o.of[pair[1]] = of // it says so in another word
		}
	}
	for _, k := range defaultKeys {
		name := variable(k.flag)
		if flags.Lookup(k.flag) == nil || k.noEnv || o.of[k.flag] != "" || os.Getenv(name) == "" {
			continue
		}
		if err := environment(flags, k.flag, name); err != nil {
			return o, err
		}
		o.of[k.flag] = name
	}
	if !project {
		return o, nil
	}
	path, err := findProject()
	if err != nil || path == "" {
		return o, err
	}
	data, err := readFile(path)
	if err != nil {
		return o, err
	}
	o.file = filepath.ToSlash(path)
	list, err := scenarios.ParseDefaults(o.file, data, fileKeys())
	if err != nil {
		return o, err
	}
	for _, d := range list {
		if err := giveDefault(flags, &o, d); err != nil {
			return o, err
		}
	}
	return o, nil
}

// fileKeys lists the keys of a project file. Those that it must not have are among them: they are refused
// with the reason.
func fileKeys() []string {
	var out []string
	for _, k := range defaultKeys {
		out = append(out, k.flag)
	}
	return out
}

// giveDefault gives a flag the value of the project file, unless the command line or the environment has
// given it one.
func giveDefault(flags *pflag.FlagSet, o *origins, d scenarios.Default) error {
	k := defaultKeys[slices.IndexFunc(defaultKeys, func(k defaultKey) bool { return k.flag == d.Key })]
	flag := flags.Lookup(k.flag)
	switch {
	case k.noFile != "":
		return d.Fail(fmt.Sprintf("%s cannot stand in a project file: %s", k.flag, k.noFile), fmt.Sprintf("--%s or %s says it", k.flag, variable(k.flag)))
	case d.List && !k.noEnv:
		return d.Fail(k.flag+" takes one value, not a list", "")
	}
	values := slices.Clone(d.Values)
	for i, value := range values {
		switch {
		case secret(value):
			return d.Fail(fmt.Sprintf("there is a password in %s, and a project file is read by others", k.flag), variable(k.flag)+" in the environment keeps it to yourself")
		case k.words != nil && !slices.Contains(k.words, value):
			return d.Fail(fmt.Sprintf("%s cannot be %q", k.flag, value), "one of: "+strings.Join(k.words, ", "))
		case k.check != nil && k.check(value) != nil:
			return d.Fail(k.check(value).Error(), "see: retrylab run --help")
		case k.relative:
			format, path, ok := strings.Cut(value, "=")
			if _, known := report.Find(format); !ok || !known {
				return d.Fail(fmt.Sprintf("%q is no format=file", value), "for example: junit=result.xml")
			}
			if !filepath.IsLocal(path) || path == "-" {
				return d.Fail(fmt.Sprintf("%s: a project file writes below its own directory alone", path), "--report can name any place")
			}
			values[i] = format + "=" + filepath.Join(filepath.Dir(filepath.FromSlash(o.file)), path)
		}
	}
	if o.of[k.flag] != "" || flag == nil {
		return nil // what was given comes first; what is wrong here is said all the same
	}
	for _, value := range values {
		if err := flag.Value.Set(value); err != nil {
			return d.Fail(fmt.Sprintf("%s cannot be %q", k.flag, value), wanted(flag))
		}
	}
	o.of[k.flag] = fmt.Sprintf("%s:%d", o.file, d.At.Line)
	return nil
}

// secret reports whether there is a password in a URL.
func secret(value string) bool {
	u, err := url.Parse(value)
	if err != nil {
		return strings.Contains(value, "://") // nobody can say what is in it
	}
	if _, has := u.User.Password(); has {
		return true
	}
	for name := range u.Query() {
		if strings.Contains(strings.ToLower(name), "password") {
			return true
		}
	}
	return false
}

// findProject returns the project file that is nearest above the working directory, as a path from there, or
// "". It is looked for up to the root of the repository or the user's home, and nowhere above: in a directory
// that is neither, others may have put one.
func findProject() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", usagef("", "the working directory cannot be told: %v", err)
	}
	home, _ := os.UserHomeDir()
	if real, err := filepath.EvalSymlinks(home); err == nil && home != "" {
		home = real
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	here := func(dir, name string) bool { _, err := os.Lstat(filepath.Join(dir, name)); return err == nil }
	if here(dir, projectFile) {
		return projectFile, nil
	}
	found, path := "", projectFile
	for {
		if here(dir, ".git") || dir == home {
			return found, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", nil // the walk has left what is the user's own
		}
		if dir, path = up, filepath.Join("..", path); found == "" && here(dir, projectFile) {
			found = path
		}
	}
}
