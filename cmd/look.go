package cmd

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"retrylab/report"
)

// look is how output looks: what the flags say, and where they are silent the environment and the
// terminal.
type look struct {
	color   string
	noColor bool
}

var colors = []string{"auto", "always", "never"}

func (l *look) flags(f *pflag.FlagSet) {
	f.StringVar(&l.color, "color", "", "colour the output `when`: auto (the default), always or never")
	f.BoolVar(&l.noColor, "no-color", false, "the same as --color=never")
}

func (l *look) check() error {
	source := "--color"
	if l.color == "" {
		source, l.color = "RETRYLAB_COLOR", os.Getenv("RETRYLAB_COLOR")
	}
	if l.color == "" {
		l.color = "auto"
	}
	if !slices.Contains(colors, l.color) {
		return usagef("one of: auto, always, never", "%s cannot be %q", source, l.color)
	}
	return nil
}

// options is how a report to w looks.
func (l *look) options(w io.Writer) report.Options {
	return report.Options{Width: width(w), Color: l.colored(w), Unicode: unicodeLocale()}
}

// colored decides as the common conventions do: the flag, NO_COLOR, CLICOLOR_FORCE or FORCE_COLOR,
// CLICOLOR=0, TERM=dumb, and whether this very stream is a terminal.
func (l *look) colored(w io.Writer) bool {
	set := func(name string) bool { v := os.Getenv(name); return v != "" && v != "0" }
	switch {
	case l.noColor, l.color == "never":
		return false
	case l.color == "always":
		return true
	case os.Getenv("NO_COLOR") != "":
		return false
	case set("CLICOLOR_FORCE"), set("FORCE_COLOR"):
		return true
	case os.Getenv("CLICOLOR") == "0", os.Getenv("TERM") == "dumb":
		return false
	}
	return isTerminal(w)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// width is the number of columns of w: COLUMNS, the terminal's own, else 80.
func width(w io.Writer) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return 80
}

// unicodeLocale reports whether the terminal can be taken to show more than ASCII: it can, unless
// the locale says that it cannot.
func unicodeLocale() bool {
	if runtime.GOOS == "windows" {
		return true
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(os.Getenv(name)); v != "" {
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return true
}

// environment makes the value of a variable of the tool's own the default of a flag that was not
// given.
func environment(f *pflag.FlagSet, flag, variable string) error {
	value := os.Getenv(variable)
	if value == "" || f.Changed(flag) {
		return nil
	}
	// Not by the set of flags: the flag was not given, whatever its default.
	if err := f.Lookup(flag).Value.Set(value); err != nil {
		return usagef(wanted(f.Lookup(flag)), "%s cannot be %q", variable, value)
	}
	return nil
}

// variable is what a flag is called in the environment.
func variable(flag string) string {
	return "RETRYLAB_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// wanted says what the value of a flag must be.
func wanted(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "it needs no value"
	case "int", "int64":
		return "a whole number"
	case "float64":
		return "a number, for example 20"
	case "duration":
		return "a number with its unit: 500ms, 30s, 5m"
	}
	return ""
}

// plain makes a text fit to be printed: what a scenario file says cannot steer the terminal, and a
// terminal that shows no more than ASCII is given no more.
func plain(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '\n' || unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return ascii(b.String())
}

// ascii spells out what is more than ASCII, where the terminal shows no more than that.
func ascii(s string) string {
	if unicodeLocale() {
		return s
	}
	return report.ASCII(s)
}

// asciiWriter passes on what others print, such as help.
type asciiWriter struct{ io.Writer }

func (w asciiWriter) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.Writer, ascii(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// say writes a line of the tool's own words.
func say(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, plain(fmt.Sprintf(format, args...)))
}
