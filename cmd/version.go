package cmd

import (
	"context"
	"encoding/json"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"retrylab/internal/storage"
)

// release is the version of this source tree, as CHANGELOG.md has it.
const release = "0.1.0"

// version is the release with the revision it was built from, where the build knows it.
func version() string {
	rev, dirty := revision()
	switch {
	case rev == "":
		return release
	case dirty:
		return release + "+" + rev[:min(12, len(rev))] + ".dirty"
	}
	return release + "+" + rev[:min(12, len(rev))]
}

// revision is the commit that was built, and whether something had been changed in it; "" where the build
// does not say.
func revision() (rev string, dirty bool) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", false
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			rev = s.Value
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	return rev, dirty
}

// build is what `version --format json` prints. What is not known says so.
type build struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Revision string `json:"revision"` // the commit, or unknown
	Dirty    bool   `json:"dirty"`    // there were changes on top of it
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	SQLite   string `json:"sqlite"`
}

func thisBuild(ctx context.Context) build {
	b := build{Name: "retrylab", Version: release, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, SQLite: "unknown"}
	if b.Revision, b.Dirty = revision(); b.Revision == "" {
		b.Revision = "unknown"
	}
	if d, err := storage.Open(ctx, storage.SQLite, storage.Options{Jobs: 1}); err == nil {
		b.SQLite = d.Info().Version
		d.Close() // nothing is in it
	}
	return b
}

func (a *app) versionCommand() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "Print the version, and with --format json what it was built from and with.",
		Example: "  retrylab version --format json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch format {
			case "text":
				say(a.stdout, "retrylab %s, %s, %s/%s", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
				return nil
			case "json":
				e := json.NewEncoder(a.stdout)
				e.SetIndent("", "  ")
				return e.Encode(thisBuild(cmd.Context()))
			}
			return usagef("one of: text, json", "there is no format %q", format)
		},
	}
	c.Flags().StringVar(&format, "format", "text", "`format`: text or json")
	c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}
