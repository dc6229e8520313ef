// Package containers starts a throw-away PostgreSQL in a Docker container. It is the door of
// testcontainers-go and holds all of it; built with the tag nodocker the package is there, refuses
// to start anything, and links none of it. It does not know what the database is for, and it does
// not fall back to another one.
package containers

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// DefaultImage is the image that [Postgres] starts when none is named.
const DefaultImage = "postgres:17-alpine"

// Database is a PostgreSQL that runs in a container of its own until it is stopped.
type Database struct {
	dsn   string
	image string
	stop  func(context.Context) error
}

// DSN returns where the database is and how to get in. There is a password in it, which is good
// for this one run; it is not to be printed all the same.
func (d *Database) DSN() string { return d.dsn }

// Image returns the image as it was asked for.
func (d *Database) Image() string { return d.image }

// Stop removes the container with all that is in it. A second call does nothing. A context that
// has already ended keeps it from doing so, and leaves the container to the reaper of
// testcontainers, which removes it soon after this process has gone.
func (d *Database) Stop(ctx context.Context) error {
	if d.stop == nil {
		return nil
	}
	if err := d.stop(ctx); err != nil {
		return fmt.Errorf("stop the container of %s: %s", d.image, oneLine(err.Error()))
	}
	d.stop = nil
	return nil
}

// String names the image, so that a database that is printed by accident shows no password.
func (d *Database) String() string { return "PostgreSQL in a container of " + d.image }

// GoString is String for the verb %#v.
func (d *Database) GoString() string { return d.String() }

// A NoDockerError says that there is no Docker engine that could start a container. What to do
// instead is for the caller to say.
type NoDockerError struct {
	Reason string // one line, without a full stop
}

func (e *NoDockerError) Error() string { return "no Docker engine can be reached: " + e.Reason }

// An ImageError says that a text is no reference to an image.
type ImageError struct {
	Image  string // as it was given, cut when it is long
	Reason string
}

func (e *ImageError) Error() string { return fmt.Sprintf("image %q: %s", e.Image, e.Reason) }

// maxImage bounds a reference to an image: 255 characters of name, 128 of tag and a digest, as
// registries take them, with room to spare.
const maxImage = 512

// imagePattern is the grammar of references: an optional host with a port, path components in
// lower case, a tag, a digest. The groups are the name with its host, the tag and the digest.
var imagePattern = regexp.MustCompile(`^` +
	`((?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?/)?` +
	`[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*)` +
	`(?::([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?` +
	`(?:@([a-z0-9]+(?:[+._-][a-z0-9]+)*:[0-9a-f]{32,}))?$`)

// CheckImage returns an [*ImageError] if a text cannot be a reference to an image, such as
// postgres:17-alpine. Whether there is such an image, only the engine knows.
func CheckImage(image string) error {
	switch {
	case image == "":
		return &ImageError{Image: image, Reason: "it is empty"}
	case len(image) > maxImage:
		return &ImageError{Image: image[:32] + "…", Reason: fmt.Sprintf("it is longer than %d characters", maxImage)}
	}
	m := imagePattern.FindStringSubmatch(image)
	if m == nil {
		return &ImageError{Image: image, Reason: "a reference is a name in lower case, a colon and a tag, such as " + DefaultImage}
	}
	if len(m[1]) > 255 {
		return &ImageError{Image: image[:32] + "…", Reason: "its name is longer than 255 characters"}
	}
	return nil
}

// maxReason bounds what is passed on of somebody else's error, in characters.
const maxReason = 300

// oneLine turns the error text of a library, which may be several errors below each other, into
// one line of bounded length without control characters.
func oneLine(text string) string {
	var parts []string
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		part = strings.Map(func(r rune) rune {
			if r < ' ' || r == 0x7f {
				return ' '
			}
			return r
		}, part)
		if part = strings.Join(strings.Fields(part), " "); part != "" {
			parts = append(parts, part)
		}
	}
	out := strings.TrimRight(strings.Join(parts, "; "), ".")
	if r := []rune(out); len(r) > maxReason {
		out = string(r[:maxReason]) + "…"
	}
	return out
}
