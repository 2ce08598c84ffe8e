package build

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options are the settings of [All].
type Options struct {
	Versions Versions  // of Kubernetes; zero: Requested
	Dir      string    // for the results; empty: DefaultDir
	Force    bool      // rebuild everything, even if it is up to date
	Log      io.Writer // receives progress; nil: none
}

// workDir is the subdirectory of the results with stamps and intermediate files.
const workDir = ".build"

// builder builds into one directory.
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
	results []string                    // paths relative to the results directory
	fetch   func(context.Context) error // downloads what run needs; nil: nothing
	run     func(context.Context) error
}

// All builds everything that is not up to date. Concurrent calls for the same
// directory wait for each other.
//
// What does not depend on the version of Kubernetes, and the pinned version, are built in
// bin/k8s. Each other version is built in a directory of its own, with links to the rest.
func All(ctx context.Context, o Options) error {
	root, err := Root()
	if err != nil {
		return err
	}
	if o.Versions == (Versions{}) {
		o.Versions = Requested()
	}
	if err := o.Versions.validate(); err != nil {
		return err
	}
	if o.Dir == "" {
		o.Dir = dirFor(root, o.Versions)
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
	if o.Versions == (Versions{}) {
		err = b.perform(ctx, append(b.shared(), b.kubernetes(kubernetesVersion), b.coredns(), b.images())...)
	} else {
		err = b.variant(ctx, filepath.Join(root, binDir), o.Versions)
	}
	if err != nil {
		return err
	}
	b.logf("up to date: %s", b.dir)
	return nil
}

// variant builds versions of Kubernetes other than the pinned one. bin is the directory
// that holds the directories of all versions.
func (b *builder) variant(ctx context.Context, bin string, versions Versions) error {
	pinned := b.in(filepath.Join(bin, Versions{}.dir()))
	shared := append(pinned.shared(), pinned.coredns(), pinned.images())
	if err := pinned.perform(ctx, shared...); err != nil {
		return err
	}
	built := map[string]*builder{}
	for _, version := range []string{versions.ControlPlane(), versions.Nodes()} {
		if built[version] != nil {
			continue
		}
		at := pinned
		if version != kubernetesVersion {
			at = b.in(filepath.Join(bin, Versions{Kubernetes: version}.dir()))
		}
		if err := at.perform(ctx, at.kubernetes(version)); err != nil {
			return err
		}
		built[version] = at
	}
	unlock, err := b.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for _, s := range shared {
		if err := b.link(pinned.dir, s.results...); err != nil {
			return err
		}
	}
	for _, program := range programs {
		from := built[versions.ControlPlane()]
		if slices.Contains(nodePrograms, program) {
			from = built[versions.Nodes()]
		}
		if err := b.link(from.dir, program); err != nil {
			return err
		}
	}
	return nil
}

// in returns a builder like b for another directory.
func (b *builder) in(dir string) *builder {
	other := *b
	other.dir = dir
	return &other
}

// perform runs the steps that are not up to date, in order. While a step compiles, the
// downloads of the later ones proceed.
func (b *builder) perform(ctx context.Context, steps ...step) error {
	unlock, err := b.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	var stale []pendingStep
	for _, s := range steps {
		pending, err := b.check(s)
		if err != nil {
			return fmt.Errorf("building %s: %w", s.title, err)
		}
		if pending.current != "" {
			stale = append(stale, pending)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var fetching sync.WaitGroup
	fetching.Go(func() { fetch(ctx, stale) })
	defer fetching.Wait()
	defer cancel()
	for _, s := range stale {
		if err := b.run(ctx, s); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx) // instead of "signal: killed" of a compiler
			}
			return fmt.Errorf("building %s: %w", s.title, err)
		}
	}
	return nil
}

// pendingStep is a step that is not up to date.
type pendingStep struct {
	step
	current stamp
	fetched chan error // receives the result of fetch
}

// check returns the step as pending. Its stamp is empty if the step is up to date.
func (b *builder) check(s step) (pendingStep, error) {
	current, err := s.inputs.stamp(b.goVersion)
	if err != nil {
		return pendingStep{}, err
	}
	var results []string
	for _, r := range s.results {
		results = append(results, b.result(r))
	}
	if !b.force && current.matches(b.stampFile(s), results) {
		return pendingStep{}, nil
	}
	return pendingStep{step: s, current: current, fetched: make(chan error, 1)}, nil
}

// fetch downloads what the steps need, in their order.
func fetch(ctx context.Context, steps []pendingStep) {
	for _, s := range steps {
		var err error
		if s.fetch != nil {
			err = s.fetch(ctx)
		}
		s.fetched <- err
	}
}

// run runs a step when its downloads have finished.
func (b *builder) run(ctx context.Context, s pendingStep) error {
	b.logf("%s: building", s.title)
	began := time.Now()
	os.Remove(b.stampFile(s.step)) // a step that fails halfway is not up to date
	stop := b.repeat(func() string { return s.title + ": downloading Go modules" })
	err := <-s.fetched
	stop()
	if err != nil {
		return err
	}
	if err := s.step.run(ctx); err != nil {
		return err
	}
	b.logf("%s: done in %.1fs", s.title, time.Since(began).Seconds())
	return s.current.write(b.stampFile(s.step))
}

func (b *builder) stampFile(s step) string { return b.work(s.name + ".stamp") }

// lock locks the results directory until the returned function is called or this
// process exits.
func (b *builder) lock(ctx context.Context) (unlock func(), err error) {
	return Lock(ctx, b.work(""), func() { b.logf("waiting for another build into %s", b.dir) })
}

func (b *builder) work(name string) string   { return filepath.Join(b.dir, workDir, name) }
func (b *builder) result(name string) string { return filepath.Join(b.dir, name) }
