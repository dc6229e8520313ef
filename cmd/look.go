package cmd

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

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
	f.StringVar(&l.color, "color", "", "colour: auto, always or never (default auto)")
	f.BoolVar(&l.noColor, "no-color", false, "the same as --color=never")
}

func (l *look) check() error {
	if l.color == "" {
		l.color = os.Getenv("RETRYLAB_COLOR")
	}
	if l.color == "" {
		l.color = "auto"
	}
	if !slices.Contains(colors, l.color) {
		return usagef("one of: auto, always, never", "--color cannot be %q", l.color)
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

// environment returns the value of a variable of the tool's own, as the default of a flag that
// was not given.
func environment(f *pflag.FlagSet, flag, variable string) error {
	value := os.Getenv(variable)
	if value == "" || f.Changed(flag) {
		return nil
	}
	if err := f.Set(flag, value); err != nil {
		return usagef("", "%s=%s: %v", variable, value, err)
	}
	return nil
}

// plain takes what only a terminal that shows Unicode can show out of a text of the tool's own.
func plain(s string) string {
	if unicodeLocale() {
		return s
	}
	return strings.NewReplacer("→", "->", "×", "x", "…", "...", "·", "-", "÷", "/").Replace(s)
}

// say writes a line of the tool's own words.
func say(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, plain(fmt.Sprintf(format, args...)))
}
