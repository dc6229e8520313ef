package cmd

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"retrylab/internal/lab"
	"retrylab/internal/suite"
	"retrylab/report"
	"retrylab/scenarios"
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

// outDir is a directory that keeps runs, each in a directory of its own that is called after what it is: the
// same run takes the place of itself, and of nothing else.
type outDir struct {
	root string
	made bool // root was made for this run
	// scenarios are what was run, with every value that was in effect, by the names of their files.
	scenarios map[string][]byte
	draft     string // where the run is written before it is put in its place; empty once it is
}

// runName is what the directory of a run is called: its id, and what tells it from the whole run of that id. A
// comparison goes by what it says, since the runs that it is of have ids of their own.
func runName(doc *lab.Document) (string, error) {
	if !lab.IsRunID(doc.Run.ID) {
		return "", fmt.Errorf("the run's id %q is none", doc.Run.ID)
	}
	name := doc.Run.ID
	if doc.Comparison != nil {
		said, err := json.Marshal(doc.Comparison)
		if err != nil {
			return "", err
		}
		digest := sha256.Sum256(said)
		name += "-compared-" + hex.EncodeToString(digest[:4])
	}
	if s := doc.Run.Shard; s != nil {
		name += fmt.Sprintf("-part-%d-of-%d", s.Index, s.Count)
	}
	if doc.Run.Interrupted || doc.Run.Incomplete {
		name += "-incomplete"
	}
	return name, nil
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

// keepScenarios keeps what is run: a file has one scenario, so several are in a directory.
func (o *outDir) keepScenarios(list []*scenarios.Scenario, files [][]byte) {
	o.scenarios = map[string][]byte{}
	for i, s := range list {
		name := "scenario.resolved.yaml"
		if len(list) > 1 {
			name = filepath.Join("resolved", s.Name+".yaml")
		}
		o.scenarios[name] = files[i]
	}
}

// write writes every report into the draft and puts it in its place.
func (o *outDir) write(doc *lab.Document, options report.Options) error {
	fail := func(err error) error {
		return &suite.EnvironmentError{Err: fmt.Errorf("keep the run in %s: %w", o.root, err)}
	}
	options.Color = false
	for _, k := range kept {
		if k.format.Name == report.Mermaid.Name && len(doc.Scenarios) > 1 {
			k.file = "sequence.md" // Markdown with a diagram of each
		}
		f, err := os.Create(filepath.Join(o.draft, k.file))
		if err != nil {
			return fail(err)
		}
		if err := errors.Join(k.format.Write(f, doc, options), f.Close()); err != nil {
			return fail(err)
		}
	}
	for name, text := range o.scenarios {
		place := filepath.Join(o.draft, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(place), 0o777), os.WriteFile(place, text, 0o666)); err != nil {
			return fail(err)
		}
	}
	name, err := runName(doc)
	if err != nil {
		return fail(err)
	}
	if err := o.place(name); err != nil {
		return fail(err)
	}
	if err := o.point(name); err != nil {
		return fail(err)
	}
	return nil
}

// place gives the draft its name. Only a run that was kept there before makes room for it, and is removed once the
// draft has its place.
func (o *outDir) place(name string) error {
	place, before := filepath.Join(o.root, name), ""
	switch _, err := os.Lstat(place); {
	case err == nil:
		if !isKept(place, name) {
			return fmt.Errorf("%s is there, and is no run that was kept", place)
		}
		before = o.draft + ".old"
		if err := os.Rename(place, before); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.Rename(o.draft, place); err != nil {
		if before != "" {
			err = errors.Join(err, os.Rename(before, place))
		}
		return err
	}
	o.draft = ""
	if before != "" {
		return os.RemoveAll(before)
	}
	return nil
}

// isKept reports whether a directory holds the run that it is called after.
func isKept(dir, name string) bool {
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return false
	}
	data, err := os.ReadFile(filepath.Join(dir, kept[0].file))
	if err != nil {
		return false
	}
	doc, err := lab.ReadDocument(dir, data)
	if err != nil {
		return false
	}
	own, err := runName(doc)
	return err == nil && own == name
}

// point makes latest lead to a run: the new one is made beside it and renamed.
func (o *outDir) point(name string) error {
	beside := filepath.Join(o.root, fmt.Sprintf(".%s.%d", latest, os.Getpid()))
	if err := os.Symlink(name, beside); err != nil {
		if err := os.WriteFile(beside, []byte(name+"\n"), 0o666); err != nil {
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

// keptResult is the result in the directory of a run, or that of the newest run in a directory of runs; "" without one.
func keptResult(dir string) string {
	newest := filepath.Join(dir, latest)
	if name, err := os.ReadFile(newest); err == nil && filepath.IsLocal(strings.TrimSpace(string(name))) {
		newest = filepath.Join(dir, strings.TrimSpace(string(name))) // where there are no links
	}
	for _, dir := range []string{dir, newest} {
		if file := filepath.Join(dir, kept[0].file); isRegular(file) {
			return file
		}
	}
	return ""
}

func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
