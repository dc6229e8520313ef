package cmd

import (
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// debugLog returns what writes a line of a structured log for everything that a run does: how long after
// the first one, what, and about what.
func debugLog(w io.Writer) func(what string, about ...any) {
	var once sync.Once
	var begin time.Time
	logger := slog.New(slog.NewTextHandler(asciiWriter{w}, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			switch {
			case len(groups) > 0:
			case a.Key == slog.TimeKey:
				at := a.Value.Time()
				once.Do(func() { begin = at })
				return slog.String("after", at.Sub(begin).Round(10*time.Microsecond).String())
			case a.Key == slog.LevelKey:
				return slog.Attr{} // they are all of one
			}
			return a
		},
	}))
	return func(what string, about ...any) { logger.Debug(what, about...) }
}

// redacted is a value without what may be secret in it: what comes after a scheme may be a password.
func redacted(value string) string {
	if scheme, _, ok := strings.Cut(value, "://"); ok {
		return scheme + "://…"
	}
	return value
}
