// Command demo starts a Kubernetes cluster with Akri and the example debug-echo, and
// shows the discovered devices and the objects created for them.
//
//	demo up     # build anything out of date, start everything, show the result
//	demo down   # stop and remove everything
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/cluster"
)

// dir is the run directory of the demo's cluster. processDir is the directory of Akri's
// processes where Akri cannot run in pods.
const (
	dir        = "/tmp/akri-demo"
	processDir = "/tmp/akri-demo-processes"
)

// configuration is the name of the example's Configuration.
const configuration = "akri-debug-echo-foo"

func main() {
	cluster.Reexec()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "up":
		err = up(ctx)
	case len(os.Args) == 2 && os.Args[1] == "down":
		err = down()
	default:
		err = errors.New("usage: demo up|down")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

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
	if err := build.All(ctx, build.Options{Log: os.Stderr}); err != nil {
		return err
	}
	programs, err := akri.Build(ctx, os.Stderr)
	if err != nil {
		return err
	}
	if running, err := cluster.Open(dir); err == nil {
		logf("already running in %s; stop it with: make demo-down", running.Dir())
		return show(ctx, running, programs)
	}
	began := time.Now()
	c, err := start(ctx, programs)
	if err != nil {
		return err
	}
	example := filepath.Join(programs.Root, "examples", "debug-echo", "configuration.yaml")
	logf("applying %s", example)
	if _, err := c.Kubectl(ctx, "apply", "--server-side", "-f", example); err != nil {
		return abort(ctx, c, err)
	}
	if err := awaitExample(ctx, c); err != nil {
		return abort(ctx, c, err)
	}
	logf("ready after %.0fs", time.Since(began).Seconds())
	return show(ctx, c, programs)
}

// start starts the cluster and installs Akri in it.
func start(ctx context.Context, programs akri.Programs) (*cluster.Cluster, error) {
	config := cluster.Config{Dir: dir, Nodes: 1, Detached: true, Progress: func(text string) { logf("%s", text) }}
	if missing := cluster.Probe(); missing != nil {
		logf("pods cannot run on this machine: %v", missing)
		logf("starting only a control plane, and Akri as local processes: the example's Pods will stay Pending")
		config.Nodes = 0
	}
	logf("starting Kubernetes in %s", dir)
	c, err := cluster.Start(ctx, config)
	if err != nil {
		return nil, err
	}
	logf("installing Akri")
	if config.Nodes > 0 {
		err = akri.Install(ctx, c, programs)
	} else {
		err = akri.StartProcesses(ctx, c, programs, processDir)
	}
	if err != nil {
		return nil, abort(ctx, c, err)
	}
	return c, nil
}

// abort shows the state of Akri after a failure, and then stops everything.
func abort(ctx context.Context, c *cluster.Cluster, err error) error {
	if ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, akri.Evidence(ctx, c, "default"))
	}
	return errors.Join(err, down())
}

// awaitExample waits until the example's objects exist and, with nodes, are ready.
func awaitExample(ctx context.Context, c *cluster.Cluster) error {
	condition := "Ready"
	if len(c.Nodes()) == 0 {
		condition = "Applied" // no Pod becomes ready without nodes
	}
	logf("waiting until the example is %s", condition)
	// Applied is True before the first device is found, so wait for the devices too.
	for _, wait := range [][]string{
		{"--for=jsonpath={.status.instances}=2"},
		{"--for=condition=" + condition},
	} {
		arguments := append([]string{"wait", "--timeout=60s", "configuration/" + configuration}, wait...)
		if _, err := c.Kubectl(ctx, arguments...); err != nil {
			return fmt.Errorf("wait for the example: %w", err)
		}
	}
	return nil
}

// show prints the example's objects, and commands to explore them.
func show(ctx context.Context, c *cluster.Cluster, programs akri.Programs) error {
	fmt.Println()
	tree := exec.CommandContext(ctx, filepath.Join(programs.Dir, "kubectl-akri"), "tree", "--kubeconfig", c.Kubeconfig())
	tree.Stdout, tree.Stderr = os.Stdout, os.Stderr
	if err := tree.Run(); err != nil {
		return fmt.Errorf("kubectl akri tree: %w", err)
	}
	fmt.Println()
	objects, err := c.Kubectl(ctx, "get", "akric,akrii,pods,services", "--selector=!component")
	if err != nil {
		return err
	}
	os.Stdout.Write(objects)
	availability := filepath.Join(processDir, "debug-echo", "debug-echo-availability.txt")
	if len(c.Nodes()) > 0 {
		availability = filepath.Join(c.AkriDir("node1"), "debug-echo", "debug-echo-availability.txt")
	}
	fmt.Printf(`
Explore the cluster:
  export KUBECONFIG=%s PATH=%s:%s:$PATH
  kubectl get akric,akrii,pods,services
  kubectl describe akric %s
  kubectl akri tree
Unplug the devices, and plug them in again:
  echo OFFLINE > %s
  echo ONLINE > %s
Stop the demo and remove everything:
  make demo-down
`, c.Kubeconfig(), programs.Dir, filepath.Join(programs.Dir, "k8s"), configuration, availability, availability)
	return nil
}

// logf prints progress.
func logf(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, "demo: "+format+"\n", arguments...)
}
