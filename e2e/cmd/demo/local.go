package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/cluster"
)

// defaultDir is where the demo's cluster is unless the user names another directory.
const defaultDir localDemo = "/tmp/akri-demo"

// localDemo is the demo in a cluster of its own: the cluster's run directory.
type localDemo string

// purpose is that of the demo's clusters: others are somebody else's.
const purpose = "akri-demo"

// extent is how much of a demo there is.
type extent int

const (
	absent      extent = iota
	interrupted        // a part of it: a run was killed, or the cluster has crashed
	complete
)

// mark returns the file that says that the demo is complete.
func (d localDemo) mark() string { return filepath.Join(string(d), "demo-complete") }

// processes returns the directory of Akri's processes where Akri cannot run in Pods.
func (d localDemo) processes() string { return string(d) + "-processes" }

// makeTarget returns the command that runs a target of the Makefile for this demo, as the user who started it.
func (d localDemo) makeTarget(name string) string {
	command := sudoPrefix() + "make " + name
	if d == defaultDir {
		return command
	}
	return command + " DIR=" + string(d)
}

// lock lets one process at a time start the demo, until the returned function is called or the process exits, even if it
// is killed.
func (d localDemo) lock() (unlock func(), err error) {
	name := fmt.Sprintf("@akri-demo-%x", sha256.Sum256([]byte(d))) // in the abstract namespace, which has no files
	listener, err := net.Listen("unix", name)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("the demo in %s is being started by another process: wait until it is ready, or stop that process", d)
	}
	if err != nil {
		return nil, err
	}
	return func() { listener.Close() }, nil
}

// find returns the extent of the demo and, unless it is absent or has crashed, its cluster. It returns an error if the
// demo cannot be in this directory.
func (d localDemo) find() (*cluster.Cluster, extent, error) {
	c, err := cluster.Open(string(d))
	switch {
	case err == nil && c.Purpose() != purpose:
		return nil, absent, d.foreignError()
	case err == nil && isFile(d.mark()):
		return c, complete, nil
	case err == nil:
		return c, interrupted, nil
	}
	if err := d.check(); err != nil {
		return nil, absent, err
	}
	if _, none := errors.AsType[*cluster.NoClusterError](err); none && !akri.HasProcesses(d.processes()) {
		return nil, absent, nil
	}
	return nil, interrupted, nil
}

// check returns an error if the demo cannot be started in this directory.
func (d localDemo) check() error {
	nodes := cluster.Probe() == nil
	if err := cluster.CheckDir(string(d), nodes); err != nil || nodes {
		return err
	}
	return akri.CheckProcessesDir(d.processes())
}

// down stops and removes everything, even if the demo is not complete.
func (d localDemo) down() error {
	if c, err := cluster.Open(string(d)); err == nil && c.Purpose() != purpose {
		return d.foreignError()
	}
	hadProcesses := akri.HasProcesses(d.processes())
	err := akri.StopProcesses(d.processes())
	downErr := cluster.Down(string(d))
	if _, none := errors.AsType[*cluster.NoClusterError](downErr); none && hadProcesses {
		downErr = nil // a run before this one has got further
	}
	if err = errors.Join(err, downErr); err == nil {
		logf("stopped and removed everything")
	}
	return err
}

// foreignError says that the cluster in the directory is somebody else's.
func (d localDemo) foreignError() error {
	return fmt.Errorf("the cluster in %s is not the demo's: choose another directory with DIR=PATH, or stop it with: "+
		"go -C kubebox run ./cmd/cluster down --dir %s", d, d)
}

// up starts everything, or shows the demo that is already running. What is left of an interrupted run is removed first:
// it could have stopped anywhere.
func (d localDemo) up(ctx context.Context) error {
	unlock, err := d.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if _, _, err := d.find(); err != nil { // before a build that takes minutes
		return err
	}
	if err := announce(); err != nil {
		return err
	}
	shareBuilds()
	if err := build.All(ctx, build.Options{Log: os.Stderr}); err != nil {
		return err
	}
	programs, images, err := buildAll(ctx)
	if err != nil {
		return err
	}
	if err := handOverBuilds(programs); err != nil {
		return err
	}
	c, found, err := d.find()
	switch {
	case err != nil:
		return err
	case found == complete:
		logf("already running in %s; stop it with: %s", d, d.makeTarget("demo-down"))
		return d.show(ctx, c, programs)
	case found == interrupted:
		logf("the demo in %s is not complete: a run was interrupted, or its cluster has crashed; starting it again", d)
		if err := d.down(); err != nil {
			return err
		}
	}
	began := time.Now()
	if c, err = d.start(ctx); err != nil {
		return err
	}
	err = d.populate(ctx, c, d.target(c), programs, images)
	if err == nil {
		err = os.WriteFile(d.mark(), nil, 0o600)
	}
	if err != nil {
		return d.abort(ctx, c, err)
	}
	logf("ready after %.0fs", time.Since(began).Seconds())
	return d.show(ctx, c, programs)
}

// show prints what there is, and commands that work for the user who reads them.
func (d localDemo) show(ctx context.Context, c *cluster.Cluster, programs akri.Programs) error {
	t := d.target(c)
	if err := d.handOver(t); err != nil {
		return err
	}
	return show(ctx, t, programs)
}

// buildMinutes is how long one core needs to build Kubernetes and everything else from
// their sources, in minutes.
const buildMinutes = 22

// announce says what to expect of the first run, which has to build Kubernetes.
func announce() error {
	bin, err := build.DefaultDir()
	if err != nil {
		return err
	}
	_, missing := errors.AsType[*build.MissingError](build.Check(bin, cluster.Probe() == nil))
	if !missing {
		return nil
	}
	if problem := cluster.Probe(); problem != nil {
		fmt.Fprintf(os.Stderr, `demo: Pods cannot run on this machine: %v.
demo: There will be a control plane and no cameras. To have both, stop this with Ctrl+C and run it as root:
demo:   sudo env "PATH=$PATH" make demo
demo:
`, problem)
	}
	fmt.Fprintf(os.Stderr, `demo: The first run builds Kubernetes, containerd and Akri from their sources. That takes about %d minutes on
demo: the %d cores of this machine. Later runs take less than a minute. Everything is in bin/ and Go's caches.
demo:
demo: Meanwhile, you can read
demo:   README.md                          what Akri does, and what the demo will show
demo:   examples/cameras/configuration.yaml   the Configuration that it applies
demo:   docs/architecture.md               how it works
demo:
demo: Do you have a cluster already? Then stop this with Ctrl+C, and run the demo there, without that wait:
demo:   make demo CLUSTER=current          uses the current kubeconfig context, and asks before it adds anything
`, max(2, (buildMinutes+runtime.NumCPU()-1)/runtime.NumCPU()), runtime.NumCPU())
	return nil
}

// buildAll builds Akri and the examples, and returns the archives of the examples.
func buildAll(ctx context.Context) (programs akri.Programs, images []string, err error) {
	for _, each := range []struct {
		step string
		run  func() error
	}{
		{"building Akri", func() error { programs, err = akri.Build(ctx, progress); return err }},
		{"building the examples", func() error { images, err = akri.BuildExamples(ctx, programs, progress); return err }},
	} {
		if err := during(each.step, each.run); err != nil {
			return programs, nil, err
		}
	}
	return programs, images, nil
}

// start starts the cluster.
func (d localDemo) start(ctx context.Context) (c *cluster.Cluster, err error) {
	config := cluster.Config{
		Dir: string(d), Nodes: 1, Purpose: purpose, Detached: true, Progress: func(text string) { logf("%s", text) },
	}
	if missing := cluster.Probe(); missing != nil {
		logf("pods cannot run on this machine: %v", missing)
		logf("starting only a control plane, and Akri as local processes: the example's Pods will stay Pending")
		config.Nodes = 0
	}
	err = during("starting Kubernetes in "+string(d), func() error { c, err = cluster.Start(ctx, config); return err })
	return c, err
}

// target returns the demo's own cluster as a target.
func (d localDemo) target(c *cluster.Cluster) demoTarget {
	t := demoTarget{
		Client:     c,
		kubeconfig: c.Kubeconfig(),
		hasNodes:   len(c.Nodes()) > 0,
		namespace:  "default",
		devices:    "devices",
		local:      c,
	}
	t.availability = filepath.Join(d.processes(), "debug-echo", "debug-echo-availability.txt")
	if t.hasNodes {
		t.availability = filepath.Join(c.AkriDir("node1"), "debug-echo", "debug-echo-availability.txt")
	}
	return t
}

// populate installs Akri and the parts of the demo in its own cluster.
func (d localDemo) populate(ctx context.Context, c *cluster.Cluster, t demoTarget, programs akri.Programs, images []string) error {
	logf("installing Akri")
	if !t.hasNodes {
		if err := akri.StartProcesses(ctx, c, programs, d.processes()); err != nil {
			return err
		}
		return t.runParts(ctx, programs)
	}
	if err := during("loading the images into the node", func() error { return c.Load(ctx, images...) }); err != nil {
		return fmt.Errorf("load the images: %w", err)
	}
	if err := akri.Install(ctx, c, programs); err != nil {
		return err
	}
	for _, p := range t.parts() {
		if p.Handler == "" {
			continue
		}
		if err := akri.InstallHandler(ctx, c, programs, p.Handler); err != nil {
			return err
		}
	}
	return t.runParts(ctx, programs)
}

// abort shows the state of Akri after a failure, keeps the logs, and then stops everything.
func (d localDemo) abort(ctx context.Context, c *cluster.Cluster, err error) error {
	if ctx.Err() != nil {
		return errors.Join(err, d.down())
	}
	fmt.Fprintln(os.Stderr, akri.Evidence(ctx, c, "default"))
	kept, keepErr := d.keepLogs(c)
	if keepErr != nil {
		keepErr = fmt.Errorf("keep the logs: %w", keepErr)
	}
	if kept != "" {
		err = fmt.Errorf("%w\ndemo: the logs of the cluster and of Akri are in %s", err, kept)
	}
	return errors.Join(err, keepErr, d.down())
}
