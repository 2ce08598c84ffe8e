package akri

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"akri.sh/akri/kubebox/cluster"
)

// Namespace is Akri's namespace in the manifests.
const Namespace = "akri-system"

// workloads lists the workloads that Install waits for.
var workloads = []string{
	"deployment/akri-controller",
	"deployment/akri-webhook",
	"daemonset/akri-agent",
	"daemonset/akri-debug-echo-discovery",
}

// Install installs Akri and the discovery handler debugEcho in a cluster with nodes, with
// the kustomize components in directories of config/, and returns when they are ready.
func Install(ctx context.Context, c *cluster.Cluster, programs Programs, components ...string) error {
	if err := c.Load(ctx, programs.Images...); err != nil {
		return fmt.Errorf("load the images: %w", err)
	}
	if err := applyWith(ctx, c, programs, components); err != nil {
		return err
	}
	for _, workload := range workloads {
		if _, err := c.Kubectl(ctx, "rollout", "status", "--namespace", Namespace, "--timeout=60s", workload); err != nil {
			return fmt.Errorf("wait for %s: %w", workload, err)
		}
	}
	return nil
}

// InstallHandler installs the handler in a directory of config/, and returns when it is
// ready. The name of its DaemonSet is akri-NAME-discovery.
func InstallHandler(ctx context.Context, c *cluster.Cluster, programs Programs, name string) error {
	if err := applyBase(ctx, c, programs, name); err != nil {
		return err
	}
	workload := "daemonset/akri-" + name + "-discovery"
	if _, err := c.Kubectl(ctx, "rollout", "status", "--namespace", Namespace, "--timeout=60s", workload); err != nil {
		return fmt.Errorf("wait for %s: %w", workload, err)
	}
	return nil
}

// InstallCRDs installs only Akri's CRDs.
func InstallCRDs(ctx context.Context, c *cluster.Cluster, programs Programs) error {
	if err := applyBase(ctx, c, programs, "crd"); err != nil {
		return err
	}
	_, err := c.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=30s",
		"crd/configurations.akri.sh", "crd/instances.akri.sh")
	if err != nil {
		return fmt.Errorf("wait for the CRDs: %w", err)
	}
	return nil
}

// applyWith applies config/default and config/debug-echo with components in config/.
func applyWith(ctx context.Context, c *cluster.Cluster, programs Programs, components []string) error {
	dir, err := os.MkdirTemp(filepath.Join(programs.Root, "bin"), "install-") // kustomize takes only relative paths
	if err != nil {
		return fmt.Errorf("create a kustomization: %w", err)
	}
	defer os.RemoveAll(dir)
	kustomization := "resources: [../../config/default, ../../config/debug-echo]\n"
	if len(components) > 0 {
		kustomization += "components: [../../config/" + strings.Join(components, ", ../../config/") + "]\n"
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomization), 0o600); err != nil {
		return fmt.Errorf("create a kustomization: %w", err)
	}
	if _, err := c.Kubectl(ctx, "apply", "--server-side", "-k", dir); err != nil {
		return fmt.Errorf("apply config/default and config/debug-echo with %v: %w", components, err)
	}
	return nil
}

// applyBase applies the kustomization in a directory of config/.
func applyBase(ctx context.Context, c *cluster.Cluster, programs Programs, base string) error {
	if _, err := c.Kubectl(ctx, "apply", "--server-side", "-k", filepath.Join(programs.Root, "config", base)); err != nil {
		return fmt.Errorf("apply config/%s: %w", base, err)
	}
	return nil
}
