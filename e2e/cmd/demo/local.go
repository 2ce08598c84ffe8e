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

// dir is the run directory of the demo's cluster. processDir is the directory of Akri's
// processes where Akri cannot run in Pods.
const (
	dir        = "/tmp/akri-demo"
	processDir = "/tmp/akri-demo-processes"
)

// down stops and removes everything.
func down() error {
	err := errors.Join(akri.StopProcesses(processDir), cluster.Down(dir))
	if err == nil {
		logf("stopped and removed everything")
	}
	return err
}

// up starts everything, or shows the demo that is already running.
func up(ctx context.Context) error {
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
	if running, err := cluster.Open(dir); err == nil {
		logf("already running in %s; stop it with: make demo-down", running.Dir())
		return show(ctx, localTarget(running), programs)
	}
	began := time.Now()
	c, err := start(ctx)
	if err != nil {
		return err
	}
	t := localTarget(c)
	if err := populate(ctx, c, t, programs, images); err != nil {
		return abort(ctx, c, err)
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
func start(ctx context.Context) (c *cluster.Cluster, err error) {
	config := cluster.Config{Dir: dir, Nodes: 1, Detached: true, Progress: func(text string) { logf("%s", text) }}
	if missing := cluster.Probe(); missing != nil {
		logf("pods cannot run on this machine: %v", missing)
		logf("starting only a control plane, and Akri as local processes: the example's Pods will stay Pending")
		config.Nodes = 0
	}
	err = during("starting Kubernetes in "+dir, func() error { c, err = cluster.Start(ctx, config); return err })
	return c, err
}

// localTarget returns the demo's own cluster as a target.
func localTarget(c *cluster.Cluster) demoTarget {
	t := demoTarget{
		Client:     c,
		kubeconfig: c.Kubeconfig(),
		hasNodes:   len(c.Nodes()) > 0,
		namespace:  "default",
		devices:    "devices",
		local:      c,
	}
	t.availability = filepath.Join(processDir, "debug-echo", "debug-echo-availability.txt")
	if t.hasNodes {
		t.availability = filepath.Join(c.AkriDir("node1"), "debug-echo", "debug-echo-availability.txt")
	}
	return t
}

// populate installs Akri and the parts of the demo in its own cluster.
func populate(ctx context.Context, c *cluster.Cluster, t demoTarget, programs akri.Programs, images []string) error {
	logf("installing Akri")
	if !t.hasNodes {
		if err := akri.StartProcesses(ctx, c, programs, processDir); err != nil {
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

// abort shows the state of Akri after a failure, and then stops everything.
func abort(ctx context.Context, c *cluster.Cluster, err error) error {
	if ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, akri.Evidence(ctx, c, "default"))
	}
	return errors.Join(err, down())
}
