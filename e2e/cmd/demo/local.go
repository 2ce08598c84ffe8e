package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/cluster"
)

// defaultDir is where the demo's cluster is unless the user names another directory.
const defaultDir localDemo = "/tmp/akri-demo"

// localDemo is the demo in a cluster of its own: the cluster's run directory.
type localDemo string

// processes returns the directory of Akri's processes where Akri cannot run in Pods.
func (d localDemo) processes() string { return string(d) + "-processes" }

// makeTarget returns the command that runs a target of the Makefile for this demo.
func (d localDemo) makeTarget(name string) string {
	if d == defaultDir {
		return "make " + name
	}
	return "make " + name + " DIR=" + string(d)
}

// check returns an error if the demo cannot be started in this directory.
func (d localDemo) check() error {
	nodes := cluster.Probe() == nil
	if err := cluster.CheckDir(string(d), nodes); err != nil || nodes {
		return err
	}
	return akri.CheckProcessesDir(d.processes())
}

// down stops and removes everything.
func (d localDemo) down() error {
	err := errors.Join(akri.StopProcesses(d.processes()), cluster.Down(string(d)))
	if err == nil {
		logf("stopped and removed everything")
	}
	return err
}

// up starts everything, or shows the demo that is already running.
func (d localDemo) up(ctx context.Context) error {
	if _, err := cluster.Open(string(d)); err != nil { // before a build that takes minutes
		if err := d.check(); err != nil {
			return err
		}
	}
	if err := announce(); err != nil {
		return err
	}
	if err := build.All(ctx, build.Options{Log: os.Stderr}); err != nil {
		return err
	}
	programs, images, err := buildAll(ctx)
	if err != nil {
		return err
	}
	if running, err := cluster.Open(string(d)); err == nil {
		logf("already running in %s; stop it with: %s", running.Dir(), d.makeTarget("demo-down"))
		return show(ctx, d.target(running), programs)
	}
	began := time.Now()
	c, err := d.start(ctx)
	if err != nil {
		return err
	}
	t := d.target(c)
	if err := d.populate(ctx, c, t, programs, images); err != nil {
		return d.abort(ctx, c, err)
	}
	logf("ready after %.0fs", time.Since(began).Seconds())
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

// buildAll builds Akri, the examples and helm, and returns the archives of the examples.
func buildAll(ctx context.Context) (programs akri.Programs, images []string, err error) {
	for _, each := range []struct {
		step string
		run  func() error
	}{
		{"building Akri", func() error { programs, err = akri.Build(ctx, progress); return err }},
		{"building the examples", func() error { images, err = akri.BuildExamples(ctx, programs, progress); return err }},
		{"building helm", func() error { return buildHelm(ctx, programs) }},
	} {
		if err := during(each.step, each.run); err != nil {
			return programs, nil, err
		}
	}
	return programs, images, nil
}

// start starts the cluster.
func (d localDemo) start(ctx context.Context) (c *cluster.Cluster, err error) {
	config := cluster.Config{Dir: string(d), Nodes: 1, Detached: true, Progress: func(text string) { logf("%s", text) }}
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
	load := func() error { return c.Load(ctx, append(images, programs.Images...)...) }
	if err := during("loading the images into the node", load); err != nil {
		return fmt.Errorf("load the images: %w", err)
	}
	if err := t.install(ctx, programs, values(t)); err != nil {
		return err
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
