package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"retrylab/internal/lab"
	"retrylab/internal/suite"
	"retrylab/report"
)

// outputFlags say which reports are made of a result, where they go, and how they look. They are the same
// for every command that prints one.
type outputFlags struct {
	format   string
	json     bool
	plain    bool
	output   string
	reports  []string // KIND=PATH
	dir      string   // keeps everything
	otlp     string   // file or address that takes the traces
	allowed  []string // hosts that traces may go to beside this one
	timeline string
	rows     bool
	wide     bool
	verbose  bool
	quiet    bool
}

var timelines = []string{"always", "never", "auto"}

func (f *outputFlags) flags(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.format, "format", "table", "`format` of the report: "+strings.Join(formatNames(), ", "))
	fl.BoolVar(&f.json, "json", false, "the same as --format json")
	fl.BoolVar(&f.plain, "plain", false, "the same as --format plain: one line per configuration, for awk and cut")
	fl.StringVarP(&f.output, "output", "o", "", "write the report to this `file` (- is standard output)")
	fl.StringArrayVar(&f.reports, "report", nil, "write one more report: `format=file` (repeatable)")
	fl.StringVar(&f.dir, "out-dir", "", "keep the result, its events, the page and the diagram in this `directory`, in one of the run's own")
	fl.StringVar(&f.otlp, "otlp", "", "write OpenTelemetry traces to this `file`, or post them to a collector such as http://localhost:4318")
	fl.StringArrayVar(&f.allowed, "allow-host", nil, "a `host` other than this one that --otlp may send to (repeatable)")
	fl.StringVar(&f.timeline, "timeline", "auto", "draw the timeline `when`: always, never, or auto (with one scenario)")
	fl.BoolVar(&f.rows, "rows", false, "print the order rows as the database has them")
	fl.BoolVar(&f.wide, "wide", false, "print every column, however wide")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "say of the database what it is, how it is set, and how it counted; and on standard error what is used and over")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "print what does not hold and the summary alone, and nothing but errors on standard error")
	c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formatNames(), cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("timeline", cobra.FixedCompletions(timelines, cobra.ShellCompDirectiveNoFileComp))
	c.RegisterFlagCompletionFunc("report", func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		if strings.Contains(begun, "=") {
			return nil, cobra.ShellCompDirectiveDefault
		}
		var kinds []string
		for _, name := range formatNames() {
			kinds = append(kinds, name+"=")
		}
		return kinds, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
}

func formatNames() []string {
	var names []string
	for _, f := range report.Formats {
		names = append(names, f.Name)
	}
	return names
}

// outputs are the reports that a command makes, each with its place, which is kept open from before the run:
// nobody waits for a run to learn that there is no such directory.
type outputs struct {
	list  []destination
	dir   *outDir    // nil unless it was asked for
	otlp  *collector // nil unless it was asked for
	flags outputFlags
	look  *look
	// section folds a part of standard output, where GitHub shows it; nil elsewhere.
	section func(title string) error
}

type destination struct {
	format report.Format
	name   string // of the place, for people
	stdout bool
	*output
}

// openOutputs checks what the flags ask for and opens each place.
func (a *app) openOutputs(cmd *cobra.Command, f outputFlags) (*outputs, error) {
	changed := cmd.Flags().Changed
	switch {
	case f.json && f.plain:
		return nil, usagef("one of the two will do", "--json and --plain")
	case f.json && changed("format") && f.format != "json":
		return nil, usagef("one of the two will do", "--json and --format %s", f.format)
	case f.plain && changed("format") && f.format != "plain":
		return nil, usagef("one of the two will do", "--plain and --format %s", f.format)
	case changed("out-dir") && f.dir == "":
		return nil, usagef("for example --out-dir results", "--out-dir names no directory")
	case changed("output") && f.output == "":
		return nil, usagef("- is standard output", "--output names no file")
	case changed("quiet") && changed("verbose") && f.quiet && f.verbose:
		return nil, usagef("one of the two will do", "--quiet and --verbose")
	case f.json:
		f.format = "json"
	case f.plain:
		f.format = "plain"
	}
	a.interrupts.outlivePipes()
	outs := &outputs{flags: f, look: &a.look, section: a.gitHubSection()}
	add := func(format, path string, stdout bool) error {
		kind, _ := report.Find(format)
		out, err := a.openOutput(path)
		if err != nil {
			return err
		}
		outs.list = append(outs.list, destination{format: kind, output: out, name: placeName(path), stdout: stdout})
		return nil
	}
	if err := add(f.format, f.output, place(f.output) == "-"); err != nil {
		return nil, err
	}
	switch {
	case changed("otlp") && f.otlp == "":
		return nil, errors.Join(usagef("for example --otlp traces.json or --otlp http://localhost:4318", "--otlp names neither a file nor an address"), outs.discard())
	case isAddress(f.otlp):
		var err error
		if outs.otlp, err = parseCollector(f.otlp, f.allowed); err != nil {
			return nil, errors.Join(err, outs.discard())
		}
	case f.otlp != "":
		f.reports = append(slices.Clone(f.reports), report.OTLP.Name+"="+f.otlp)
	}
	taken := map[string]bool{place(f.output): true}
	for i, r := range f.reports {
		err := a.checkPlace(r, taken)
		if err == nil {
			kind, path, _ := strings.Cut(r, "=")
			err = add(kind, path, false)
		}
		if d, ok := a.written["report"]; ok && err != nil && i < len(d.Values) {
			if wrong := (*usageError)(nil); errors.As(err, &wrong) {
				err = d.FailValue(i, wrong.Error(), wrong.hint)
			}
		}
		if err != nil {
			return nil, errors.Join(err, outs.discard())
		}
	}
	if changed("out-dir") {
		dir, err := openOutDir(f.dir)
		if err != nil {
			return nil, errors.Join(err, outs.discard())
		}
		outs.dir = dir
	}
	return outs, nil
}

// checkPlace refuses what is no report=file, or has a place that another report has taken.
func (a *app) checkPlace(r string, taken map[string]bool) error {
	if why, want := checkReport(r); want != "" {
		if why != "" {
			why = ": " + why
		}
		return usagef(want, "--report cannot be %q%s", r, why)
	}
	_, path, _ := strings.Cut(r, "=")
	if taken[place(path)] {
		return usagef("each needs a place of its own", "two reports would go to %s", placeName(path))
	}
	taken[place(path)] = true
	return nil
}

// place is what two names of one file have in common.
func place(path string) string {
	if path == "" || path == "-" {
		return "-"
	}
	if absolute, err := filepath.Abs(path); err == nil {
		return absolute
	}
	return filepath.Clean(path)
}

func placeName(path string) string {
	if path == "" || path == "-" {
		return "standard output"
	}
	return path
}

// errNobodyReads is what standard output ends with when whoever read it has left: the rest of a run is for nobody.
var errNobodyReads = errors.New("nobody reads standard output any more")

// write makes every report and puts it in its place: first those that stay, whoever reads standard output. One that
// cannot be written keeps none from those behind it. What goes wrong is about the environment.
func (o *outputs) write(ctx context.Context, doc *lab.Document) error {
	var errs []error
	left := false // standard output has no reader
	report := func(stdout bool) {
		for _, out := range o.list {
			if out.stdout != stdout {
				continue
			}
			switch err := o.writeTo(out, doc); {
			case err == nil:
			case stdout && errors.Is(err, syscall.EPIPE):
				left = true
			default:
				errs = append(errs, &suite.EnvironmentError{Err: fmt.Errorf("cannot write the %s report to %s: %w", out.format.Name, out.name, root(err))})
			}
		}
	}
	report(false)
	if o.dir != nil {
		errs = append(errs, o.dir.write(doc, o.options(io.Discard)))
	}
	report(true)
	if o.otlp != nil {
		errs = append(errs, o.otlp.post(context.WithoutCancel(ctx), doc)) // also what was complete before an interrupt
	}
	if err := errors.Join(errs...); err != nil || !left {
		return err
	}
	return errNobodyReads
}

// root is what an error began with.
func root(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

func (o *outputs) writeTo(out destination, doc *lab.Document) error {
	write := out.format.Write
	if o.flags.quiet && out.format.Name == report.Table.Name {
		write = report.Summary
	}
	options := o.options(out.Writer)
	if out.stdout {
		options.Section = o.section
	}
	if err := write(out, doc, options); err != nil {
		return err
	}
	return out.keep()
}

// options are how a report to w looks.
func (o *outputs) options(w io.Writer) report.Options {
	options := o.look.options(w)
	options.Timeline, options.Rows, options.Wide, options.Verbose = o.flags.timeline, o.flags.rows, o.flags.wide, o.flags.verbose
	return options
}

// discard removes what was not kept.
func (o *outputs) discard() error {
	var errs []error
	for _, out := range o.list {
		errs = append(errs, out.discard())
	}
	if o.dir != nil {
		errs = append(errs, o.dir.discard())
	}
	return errors.Join(errs...)
}

// output is where a report goes. A file is written beside its place and renamed when it is whole.
type output struct {
	io.Writer
	path string   // of a file that is to be put in its place
	made []string // directories that were made for it, the innermost first

	mu   sync.Mutex // discard comes from a signal too
	file *os.File   // nil for standard output, and once it is kept or discarded
}

func (a *app) openOutput(path string) (*output, error) {
	if path == "" || path == "-" {
		return &output{Writer: a.stdout}, nil
	}
	mode := fs.FileMode(0o666) // less what the user's umask takes
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil, usagef("name a file in it", "cannot write %s: it is a directory", path)
	case err == nil && !info.Mode().IsRegular():
		// A device or a pipe is written to, never replaced.
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, usagef("", "cannot write %s: %v", path, cause(err))
		}
		return &output{Writer: f, file: f}, nil
	case err == nil:
		mode = info.Mode().Perm()
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
	}
	made, err := makeDirectories(filepath.Dir(path))
	if err != nil {
		return nil, usagef("", "cannot write %s: %v", path, cause(err))
	}
	temporary := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d.tmp", filepath.Base(path), os.Getpid()))
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		removeEmpty(made)
		return nil, usagef("", "cannot write %s: %v", path, cause(err))
	}
	return &output{Writer: f, path: path, made: made, file: f}, nil
}

// makeDirectories makes a directory with those above it, and returns those that were not there, the innermost first.
func makeDirectories(dir string) (made []string, err error) {
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); !errors.Is(err, fs.ErrNotExist) || d == filepath.Dir(d) {
			break
		}
		made = append(made, d)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		removeEmpty(made)
		return nil, err
	}
	return made, nil
}

// removeEmpty removes directories, the innermost first, unless something is in them.
func removeEmpty(dirs []string) {
	for _, d := range dirs {
		os.Remove(d)
	}
}

// keep ends the output: a whole file is put in its place.
func (o *output) keep() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file == nil {
		return nil
	}
	if err := o.file.Close(); err != nil {
		return fmt.Errorf("write %s: %w", o.file.Name(), cause(err))
	}
	if o.path != "" {
		if err := os.Rename(o.file.Name(), o.path); err != nil {
			return fmt.Errorf("write %s: %w", o.path, cause(err))
		}
	}
	o.file = nil
	return nil
}

// discard removes what was not kept, with the directories that were made for it.
func (o *output) discard() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file == nil {
		return nil
	}
	err := o.file.Close()
	if o.path != "" {
		err = os.Remove(o.file.Name())
		removeEmpty(o.made)
	}
	o.file = nil
	return err
}
