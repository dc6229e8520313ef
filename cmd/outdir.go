package cmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"retrylab/internal/lab"
	"retrylab/internal/suite"
	"retrylab/report"
)

// kept are the reports that --out-dir keeps of a run.
var kept = []struct {
	file   string
	format report.Format
}{
	{"result.json", report.JSON},
	{"events.ndjson", report.NDJSON},
	{"report.html", report.HTML},
	{"report.txt", report.Table},
	{"sequence.mmd", report.Mermaid},
}

// latest is what in a directory leads to the newest run: a link, or a file with its name where there are no links.
const latest = "latest"

// outDir is a directory that keeps runs, each in a directory of its own that is called after the run's id: the
// same run takes the place of itself.
type outDir struct {
	root string
	made bool // root was made for this run
	// scenario is what was run, with every value that was in effect; nil keeps none.
	scenario []byte
	draft    string // where the run is written before it is put in its place; empty once it is
}

// openOutDir makes the directory and a draft in it, before anything is run.
func openOutDir(root string) (*outDir, error) {
	_, err := os.Stat(root)
	o := &outDir{root: root, made: errors.Is(err, fs.ErrNotExist)}
	if err := os.MkdirAll(root, 0o777); err != nil {
		return nil, usagef("", "cannot keep the run in %s: %v", root, cause(err))
	}
	draft := filepath.Join(root, fmt.Sprintf(".run.%d.tmp", os.Getpid()))
	if err := os.Mkdir(draft, 0o777); err != nil {
		return nil, errors.Join(usagef("", "cannot keep the run in %s: %v", root, cause(err)), o.discard())
	}
	o.draft = draft
	return o, nil
}

// write writes every report into the draft and puts it in its place.
func (o *outDir) write(doc *lab.Document, options report.Options) error {
	fail := func(err error) error {
		return &suite.EnvironmentError{Err: fmt.Errorf("keep the run in %s: %w", o.root, err)}
	}
	options.Color = false
	for _, k := range kept {
		f, err := os.Create(filepath.Join(o.draft, k.file))
		if err != nil {
			return fail(err)
		}
		if err := errors.Join(k.format.Write(f, doc, options), f.Close()); err != nil {
			return fail(err)
		}
	}
	if o.scenario != nil {
		if err := os.WriteFile(filepath.Join(o.draft, "scenario.resolved.yaml"), o.scenario, 0o666); err != nil {
			return fail(err)
		}
	}
	place := filepath.Join(o.root, doc.Run.ID)
	before := o.draft + ".old"
	switch err := os.Rename(place, before); {
	case err == nil:
		defer os.RemoveAll(before)
	case !errors.Is(err, fs.ErrNotExist):
		return fail(err)
	}
	if err := os.Rename(o.draft, place); err != nil {
		return fail(err)
	}
	o.draft = ""
	if err := o.point(doc.Run.ID); err != nil {
		return fail(err)
	}
	return nil
}

// point makes latest lead to a run: the new one is made beside it and renamed.
func (o *outDir) point(id string) error {
	beside := filepath.Join(o.root, fmt.Sprintf(".%s.%d", latest, os.Getpid()))
	if err := os.Symlink(id, beside); err != nil {
		if err := os.WriteFile(beside, []byte(id+"\n"), 0o666); err != nil {
			return err
		}
	}
	if err := os.Rename(beside, filepath.Join(o.root, latest)); err != nil {
		return errors.Join(err, os.Remove(beside))
	}
	return nil
}

// discard removes what was not kept.
func (o *outDir) discard() error {
	var err error
	if o.draft != "" {
		err = os.RemoveAll(o.draft)
		o.draft = ""
	}
	if o.made {
		os.Remove(o.root) // unless something is in it
	}
	return err
}
