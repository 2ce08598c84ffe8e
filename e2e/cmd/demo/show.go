package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/build"
)

// show prints the objects of all parts, the addresses of the pages, and commands to
// explore the cluster.
func show(ctx context.Context, t demoTarget, programs akri.Programs) error {
	fmt.Println()
	tree := exec.CommandContext(ctx, filepath.Join(programs.Dir, "kubectl-akri"), "tree", "--namespace", t.namespace,
		"--kubeconfig", t.kubeconfig, "--context", t.context)
	tree.Stdout, tree.Stderr = os.Stdout, os.Stderr
	if err := tree.Run(); err != nil {
		return fmt.Errorf("kubectl akri tree: %w", err)
	}
	if err := t.showPages(ctx); err != nil {
		return err
	}
	// The commands also work in another shell, whose current cluster is another one.
	var k, downCommand string
	if t.local == nil {
		k, downCommand = "kubectl --context "+t.context, "make demo-down CLUSTER=current"
		fmt.Printf("\nExplore the cluster:\n  export PATH=%s:$PATH\n", programs.Dir)
	} else {
		k, downCommand = "kubectl --kubeconfig "+t.kubeconfig, localDemo(t.local.Dir()).makeTarget("demo-down")
		kubernetes, err := build.DefaultDir() // of the version that runs
		if err != nil {
			return err
		}
		fmt.Printf("\nExplore the cluster:\n  export PATH=%s:%s:$PATH\n", programs.Dir, kubernetes)
	}
	inNamespace := k
	if t.namespace != "default" {
		inNamespace += " -n " + t.namespace
	}
	fmt.Printf("  %s get akric,akrii,pods,services\n  %s describe akric %s\n  kubectl akri tree%s -n %s\n",
		inNamespace, inNamespace, debugEcho.Configuration, strings.TrimPrefix(k, "kubectl"), t.namespace)
	fmt.Printf("%sStop the demo and remove everything:\n  %s\n", t.unplugging(k), downCommand)
	return nil
}

// unplugging returns the commands that make devices go and come again. k is how kubectl
// reaches the cluster.
func (t demoTarget) unplugging(k string) string {
	var b strings.Builder
	for _, state := range []struct {
		text, replicas, availability string
	}{
		{"Unplug a device, and watch its objects go:", "0", "OFFLINE"},
		{"Plug it in again:", "1", "ONLINE"},
	} {
		fmt.Fprintln(&b, state.text)
		for _, p := range t.parts() {
			if p.Device != "" {
				fmt.Fprintf(&b, "  %s -n %s scale deployment/%s --replicas=%s\n", k, t.devices, p.Device, state.replicas)
			}
		}
		if t.availability != "" {
			fmt.Fprintf(&b, "  echo %s > %s\n", state.availability, t.availability)
		}
	}
	return b.String()
}
