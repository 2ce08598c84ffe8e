package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/cluster"
)

// demoTarget is the cluster in which the demo runs.
type demoTarget struct {
	akri.Client
	// kubeconfig is a file; empty: that of the environment. context is a context in it;
	// empty: its current one.
	kubeconfig, context string
	hasNodes            bool
	// namespace is where the Configurations are, devices where the virtual devices are.
	namespace, devices string
	// images are names of images in manifests, each followed by its replacement.
	images []string
	// availability is the file that makes the devices of debugEcho disappear. Empty: it is
	// not on this machine.
	availability string
	// local is the demo's own cluster, or nil.
	local *cluster.Cluster
}

// parts returns the parts that run in a cluster.
func (t demoTarget) parts() []part {
	if !t.hasNodes {
		return []part{debugEcho}
	}
	return append([]part{debugEcho}, others...)
}

// runParts applies all parts, and returns when they are ready.
func (t demoTarget) runParts(ctx context.Context, programs akri.Programs) error {
	for _, p := range t.parts() {
		if err := p.apply(ctx, t, programs); err != nil {
			return err
		}
	}
	for _, p := range t.parts() {
		if err := p.await(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// adapt returns the manifest in a file with some replacements, and then with the
// namespaces and images of the target.
func (t demoTarget) adapt(file string, replacements ...string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	adapted := strings.NewReplacer(replacements...).Replace(string(text))
	return []byte(strings.NewReplacer(append([]string{
		"namespace: devices\n", "namespace: " + t.devices + "\n",
		"  name: devices\n", "  name: " + t.devices + "\n",
		".devices.svc", "." + t.devices + ".svc",
		"namespace: plant\n", "namespace: " + t.namespace + "\n",
	}, t.images...)...).Replace(adapted)), nil
}

// applyManifest applies a manifest, whose objects are in the Configurations' namespace
// unless they have another.
func (t demoTarget) applyManifest(ctx context.Context, manifest []byte) error {
	arguments := []string{"apply", "--server-side", "-f", "-"}
	if t.namespace == t.devices { // with a namespace, kubectl refuses objects of others
		arguments = append(arguments, "--namespace", t.namespace)
	}
	_, err := t.KubectlInput(ctx, manifest, arguments...)
	return err
}

// helmFlags returns the flags that select the cluster for helm.
func (t demoTarget) helmFlags() []string {
	var flags []string
	if t.kubeconfig != "" {
		flags = append(flags, "--kubeconfig", t.kubeconfig)
	}
	if t.context != "" {
		flags = append(flags, "--kube-context", t.context)
	}
	return flags
}

// chartDir is the directory of the chart in the repository.
const chartDir = "charts/akri"

// values returns the values of the chart for the demo: all its handlers, and images
// with the tag that akri.Build gives them.
func values(t demoTarget) []string {
	settings := []string{"image.tag=dev", "handlers.debugEcho.enabled=true"}
	for _, p := range t.parts() {
		if p.Handler != "" {
			settings = append(settings, "handlers."+p.Handler+".enabled=true")
		}
	}
	return settings
}

// helm runs helm in the root of the repository and returns its output.
func (t demoTarget) helm(ctx context.Context, programs akri.Programs, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, filepath.Join(programs.Dir, "helm"), append(arguments, t.helmFlags()...)...)
	command.Dir = programs.Root
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("helm %q: %w: %s", arguments, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return output, nil
}

// install installs Akri by its chart, with values of the form key=value, and returns when
// it is ready.
func (t demoTarget) install(ctx context.Context, programs akri.Programs, settings []string) error {
	arguments := []string{"upgrade", "--install", "akri", chartDir, "--namespace", akri.Namespace, "--create-namespace"}
	for _, setting := range settings {
		arguments = append(arguments, "--set", setting)
	}
	arguments = append(arguments, "--wait", "--timeout=3m")
	return during("helm "+strings.Join(arguments, " "), func() error {
		_, err := t.helm(ctx, programs, arguments...)
		return err
	})
}
