package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Options are the settings of [All].
type Options struct {
	Dir   string    // for the results; empty: DefaultDir
	Force bool      // rebuild everything, even if it is up to date
	Log   io.Writer // receives progress; nil: none
}

// workDir is the subdirectory of the results with stamps and intermediate files.
const workDir = ".build"

// builder holds the state of one call to All.
type builder struct {
	*progress
	dir       string // for the results
	module    string // directory of the module this package belongs to
	goVersion string
	force     bool
}

// step builds some files.
type step struct {
	name    string // of its stamp
	title   string // as shown in progress and errors
	inputs  inputs
	results []string // paths relative to the results directory
	run     func(context.Context) error
}

// All builds everything that is not up to date. Concurrent calls for the same
// directory wait for each other.
func All(ctx context.Context, o Options) error {
	root, err := Root()
	if err != nil {
		return err
	}
	if o.Dir == "" {
		if o.Dir, err = DefaultDir(); err != nil {
			return err
		}
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return err
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	version, err := exec.CommandContext(ctx, "go", "env", "GOVERSION").Output()
	if err != nil {
		return fmt.Errorf("the go command is required: %w", err)
	}
	b := &builder{
		progress:  &progress{out: o.Log, began: time.Now()},
		dir:       o.Dir,
		module:    filepath.Join(root, moduleDir),
		goVersion: strings.TrimSpace(string(version)),
		force:     o.Force,
	}
	unlock, err := b.lock()
	if err != nil {
		return err
	}
	defer unlock()
	for _, s := range b.steps() {
		if err := b.perform(ctx, s); err != nil {
			return fmt.Errorf("building %s: %w", s.title, err)
		}
	}
	b.logf("up to date: %s", b.dir)
	return nil
}

// perform runs a step unless it is up to date.
func (b *builder) perform(ctx context.Context, s step) error {
	current, err := s.inputs.stamp(b.goVersion)
	if err != nil {
		return err
	}
	var results []string
	for _, r := range s.results {
		results = append(results, filepath.Join(b.dir, r))
	}
	file := b.work(s.name + ".stamp")
	if !b.force && current.matches(file, results) {
		return nil
	}
	b.logf("%s: building", s.title)
	began := time.Now()
	os.Remove(file) // a step that fails halfway is not up to date
	if err := s.run(ctx); err != nil {
		return err
	}
	b.logf("%s: done in %.1fs", s.title, time.Since(began).Seconds())
	return current.write(file)
}

// lock locks the results directory until the returned function is called or this
// process exits.
func (b *builder) lock() (unlock func(), err error) {
	if err := os.MkdirAll(b.work(""), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(b.work("lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		b.logf("waiting for another build into %s", b.dir)
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

func (b *builder) work(name string) string   { return filepath.Join(b.dir, workDir, name) }
func (b *builder) result(name string) string { return filepath.Join(b.dir, name) }
