package cmd

import (
	"encoding/json"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is the version of this source tree, as CHANGELOG.md has it.
const release = "0.1.0"

// version is the release with the revision it was built from, where the build knows it.
func version() string {
	if rev := revision(); rev != "" {
		return release + "+" + rev
	}
	return release
}

// revision is the short hash of the commit that was built, "" where the build does not say.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	rev, dirty := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			rev = s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				dirty = ".dirty"
			}
		}
	}
	if rev == "" {
		return ""
	}
	return rev + dirty
}

func (a *app) versionCommand() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  retrylab version --format json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			switch format {
			case "text":
				say(a.stdout, "retrylab %s, %s, %s/%s", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
				return nil
			case "json":
				e := json.NewEncoder(a.stdout)
				e.SetIndent("", "  ")
				return e.Encode(map[string]string{
					"name": "retrylab", "version": release, "revision": revision(),
					"go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
				})
			}
			return usagef("one of: text, json", "there is no format %q", format)
		},
	}
	c.Flags().StringVar(&format, "format", "text", "`format`: text or json")
	c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}
