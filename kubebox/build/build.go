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

// Options say what to build and where.
type Options struct {
	Dir   string    // of the results; empty: DefaultDir
	Force bool      // even what is up to date
	Log   io.Writer // told about progress; nil: nobody
}

// workDir holds stamps and intermediate results, below the results.
const workDir = ".build"

// builder is one run of All.
type builder struct {
	*progress
	dir       string // of the results
	module    string // directory of the module this package belongs to
	goVersion string
	force     bool
}

// step makes some files.
type step struct {
	name    string // of its stamp
	what    string // for people
	inputs  inputs
	results []string // relative to the directory of results
	run     func(context.Context) error
}

// All builds whatever is not up to date. Two runs for the same directory wait
// for each other.
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
		return fmt.Errorf("the go command is needed: %w", err)
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
			return fmt.Errorf("building %s: %w", s.what, err)
		}
	}
	b.say("up to date: %s", b.dir)
	return nil
}

func (b *builder) perform(ctx context.Context, s step) error {
	now, err := s.inputs.stamp(b.goVersion)
	if err != nil {
		return err
	}
	var results []string
	for _, r := range s.results {
		results = append(results, filepath.Join(b.dir, r))
	}
	file := b.work(s.name + ".stamp")
	if !b.force && now.current(file, results) {
		return nil
	}
	b.say("%s: building", s.what)
	began := time.Now()
	os.Remove(file) // half of a step is none
	if err := s.run(ctx); err != nil {
		return err
	}
	b.say("%s: done in %.1fs", s.what, time.Since(began).Seconds())
	return now.write(file)
}

// lock keeps other runs out of the directory until the returned function is
// called, or this process ends.
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
		b.say("waiting for another build into %s", b.dir)
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
