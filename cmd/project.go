package cmd

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"retrylab/internal/engine"
	"retrylab/internal/expression"
	"retrylab/internal/storage"
	"retrylab/report"
	"retrylab/scenarios"
)

// projectFile holds what the runs of a project have in common.
const projectFile = ".retrylab.yaml"

// defaultKey is a flag of run that need not stand on the command line.
type defaultKey struct {
	flag     string
	words    []string                              // what it can be, where there are words for it
	check    func(value string) (why, want string) // otherwise: why it cannot be that, and what it can be
	noFile   string                                // why a project file must not have it
	noEnv    bool                                  // it takes several values: no variable holds them
	relative bool                                  // format=path, from the directory of the file
}

// defaultKeys lists every flag of run that a project file or a variable can give.
var defaultKeys = []defaultKey{
	{flag: "store", check: checkStore},
	{flag: "redis", check: checkRedis},
	{flag: "pg-bindir", noFile: "a file that comes with a project must not say what is executed"},
	{flag: "clock", words: []string{engine.Virtual, engine.Wall}},
	{flag: "speed", check: bounds(0.001, 100_000, "for example 20")},
	{flag: "seed"},
	{flag: "jobs", check: bounds(0, 1024, "0 chooses")},
	{flag: "time-limit", check: checkTimeLimit},
	{flag: "fail-fast"},
	{flag: "inconclusive", words: inconclusives},
	{flag: "fail-exit-code", check: bounds(1, 125, "")},
	{flag: "require-all"},
	{flag: "assert", noEnv: true, check: checkAssert},
	{flag: "format", words: formatNames()},
	{flag: "report", noEnv: true, relative: true, check: checkReport},
	{flag: "timeline", words: timelines},
	{flag: "github", words: gitHubs},
	{flag: "rows"},
	{flag: "wide"},
	{flag: "color", words: colors},
	{flag: "quiet"},
	{flag: "verbose"},
}

// mistake says what is wrong with a value, and what would be right; it is "" where nothing is.
func (k defaultKey) mistake(value string) (what, hint string) {
	switch {
	case k.words != nil && !slices.Contains(k.words, value):
		hint = "one of: " + strings.Join(k.words, ", ")
	case k.check != nil:
		what, hint = k.check(value)
	}
	if what == "" && hint == "" {
		return "", ""
	}
	if what != "" {
		what = ": " + what
	}
	if k.flag == "store" || k.flag == "redis" {
		value = storage.WithoutSecret(value)
	}
	return fmt.Sprintf("cannot be %q%s", value, what), hint
}

func checkStore(value string) (why, want string) {
	_, err := storage.Engine(value)
	switch {
	case err == nil:
		return "", ""
	case strings.HasPrefix(value, storage.Docker+":"):
		return err.Error(), "for example docker:postgres:18"
	}
	return "", "one of: " + strings.Join(storage.Choices, ", ")
}

func checkRedis(value string) (why, want string) {
	if storage.CheckRedis(value) == nil {
		return "", ""
	}
	return "", "one of: " + strings.Join(storage.RedisChoices, ", ")
}

// bounds checks a number; what is none is for the flag to refuse.
func bounds(least, most float64, more string) func(string) (why, want string) {
	return func(value string) (why, want string) {
		n, err := strconv.ParseFloat(value, 64)
		if err != nil || least <= n && n <= most {
			return "", ""
		}
		want = fmt.Sprintf("a number from %s to %s", strconv.FormatFloat(least, 'f', -1, 64), strconv.FormatFloat(most, 'f', -1, 64))
		if more != "" {
			want += ", " + more
		}
		return "", want
	}
}

func checkTimeLimit(value string) (why, want string) {
	if limit, err := time.ParseDuration(value); err != nil || limit >= time.Millisecond {
		return "", ""
	}
	return "", "1ms or more, for example 30s"
}

func checkAssert(value string) (why, want string) {
	_, err := expression.Compile(value)
	var wrong *expression.Error
	if !errors.As(err, &wrong) {
		return "", ""
	}
	if near := scenarios.Nearest(wrong.Unknown, expression.Names()); wrong.Unknown != "" && near != "" {
		return wrong.What, fmt.Sprintf("did you mean %q?", near)
	}
	return wrong.What, wrong.Hint
}

func checkReport(value string) (why, want string) {
	format, path, ok := strings.Cut(value, "=")
	if !ok || format == "" || path == "" {
		return "", "format=file, for example junit=result.xml"
	}
	if _, known := report.Find(format); !known {
		return fmt.Sprintf("there is no format %q", format), "one of: " + strings.Join(formatNames(), ", ")
	}
	return "", ""
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
	for _, k := range slices.Concat(defaultKeys, serveKeys) {
		flag, name := flags.Lookup(k.flag), variable(k.flag)
		if flag == nil || k.noEnv {
			continue
		}
		if flag.Changed {
			if what, hint := k.mistake(flag.Value.String()); what != "" {
				return o, usagef(hint, "--%s %s", k.flag, what)
			}
		}
		value := os.Getenv(name)
		if o.of[k.flag] != "" || value == "" {
			continue
		}
		if what, hint := k.mistake(value); what != "" {
			return o, usagef(hint, "%s %s", name, what)
		}
		if err := environment(flags, k.flag, name); err != nil {
			return o, err
		}
		o.of[k.flag] = name
	}
	if err := a.projectDefaults(flags, project, &o); err != nil {
		return o, err
	}
	if quiet := flags.Lookup("quiet"); quiet == nil || quiet.Value.String() == "false" {
		a.warnOfVariables(os.Environ())
	}
	return o, nil
}

// warnOfVariables says which variables look as if they were the tool's own and are not read.
func (a *app) warnOfVariables(environ []string) {
	known := []string{"DEBUG"} // without what they all begin with
	for _, k := range slices.Concat(defaultKeys, serveKeys) {
		if !k.noEnv {
			known = append(known, strings.TrimPrefix(variable(k.flag), variable("")))
		}
	}
	slices.Sort(environ)
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		own, is := strings.CutPrefix(name, variable(""))
		if !is || value == "" || slices.Contains(known, own) || strings.HasPrefix(own, "TEST_") {
			continue
		}
		several := slices.ContainsFunc(defaultKeys, func(k defaultKey) bool { return k.noEnv && variable(k.flag) == name })
		if several {
			flag := strings.ToLower(own)
			say(a.stderr, "retrylab: warning: %s is not read: --%s or %s in %s says it", name, flag, flag, projectFile)
		} else if near := scenarios.Nearest(own, known); near != "" {
			say(a.stderr, "retrylab: warning: %s is not read; did you mean %s?", name, variable("")+near)
		}
	}
}

// projectDefaults gives what the command line and the environment have not given the values of the project file.
func (a *app) projectDefaults(flags *pflag.FlagSet, project bool, o *origins) error {
	if !project {
		return nil
	}
	path, err := findProject()
	if err != nil || path == "" {
		return err
	}
	data, err := readFile(path)
	if err != nil {
		return err
	}
	o.file = filepath.ToSlash(path)
	list, err := scenarios.ParseDefaults(o.file, data, fileKeys())
	if err != nil {
		return err
	}
	for _, d := range list {
		if err := a.giveDefault(flags, o, d); err != nil {
			return err
		}
	}
	return nil
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
func (a *app) giveDefault(flags *pflag.FlagSet, o *origins, d scenarios.Default) error {
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
		what, hint := k.mistake(value)
		switch {
		case secret(value):
			return d.FailValue(i, fmt.Sprintf("there is a password in %s, and a project file is read by others", k.flag), variable(k.flag)+" in the environment keeps it to yourself")
		case what != "":
			return d.FailValue(i, k.flag+" "+what, hint)
		case k.relative:
			format, path, _ := strings.Cut(value, "=")
			if !filepath.IsLocal(path) || path == "-" {
				return d.FailValue(i, fmt.Sprintf("%s: a project file writes below its own directory alone", path), "--report can name any place")
			}
			values[i] = format + "=" + filepath.Join(filepath.Dir(filepath.FromSlash(o.file)), path)
		}
	}
	if o.of[k.flag] != "" || flag == nil {
		return nil // what was given comes first; what is wrong here is said all the same
	}
	for i, value := range values {
		if err := flag.Value.Set(value); err != nil {
			return d.FailValue(i, fmt.Sprintf("%s cannot be %q", k.flag, value), wanted(flag))
		}
	}
	o.of[k.flag] = fmt.Sprintf("%s:%d", o.file, d.At.Line)
	a.written[k.flag] = d
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
