package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/kubebox/build"
)

// options are the settings for a cluster that exists.
type options struct {
	registry string // from which its nodes pull; empty: images are loaded into the nodes
	yes      bool   // do not ask
}

// demoNamespace is where the Configurations and the virtual devices are in a cluster that
// exists.
const demoNamespace = "akri-demo"

// broughtLabel is on Akri's namespace if the demo installed Akri. Its value says whether
// the demo brought the CRDs, too, or found them.
const (
	broughtLabel = "demo.akri.sh/crds"
	brought      = "brought"
	found        = "found"
)

// kubectl runs kubectl against a context of the environment's kubeconfig.
type kubectl struct{ program, context string }

// Kubectl implements [akri.Client].
func (k kubectl) Kubectl(ctx context.Context, arguments ...string) ([]byte, error) {
	return k.KubectlInput(ctx, nil, arguments...)
}

// KubectlInput implements [akri.Client].
func (k kubectl) KubectlInput(ctx context.Context, input []byte, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, k.program, append([]string{"--context", k.context}, arguments...)...)
	command.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return output, fmt.Errorf("kubectl %q: %w: %s", arguments, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return output, nil
}

// currentTarget returns the cluster of the current context. The context is fixed: if the
// current one changes later, the demo stays where it is.
func currentTarget(ctx context.Context) (demoTarget, error) {
	program, err := exec.LookPath("kubectl")
	if err != nil {
		dir, dirErr := build.DefaultDir()
		if dirErr != nil {
			return demoTarget{}, dirErr
		}
		if program = filepath.Join(dir, "kubectl"); !isFile(program) {
			return demoTarget{}, errors.New("kubectl is not in the PATH: install it")
		}
	}
	output, err := exec.CommandContext(ctx, program, "config", "current-context").Output()
	if err != nil {
		return demoTarget{}, errors.New("there is no current kubeconfig context: set KUBECONFIG, or choose one with kubectl config use-context")
	}
	name := strings.TrimSpace(string(output))
	return demoTarget{
		Client:    kubectl{program, name},
		context:   name,
		hasNodes:  true,
		namespace: demoNamespace,
		devices:   demoNamespace,
	}, nil
}

// upCurrent installs Akri and the demo in the cluster of the current context.
func upCurrent(ctx context.Context, o options) error {
	t, err := currentTarget(ctx)
	if err != nil {
		return err
	}
	s, err := survey(ctx, t)
	if err != nil {
		return err
	}
	way, err := chooseDelivery(s, o.registry, exec.LookPath)
	if err != nil {
		return err
	}
	if !o.yes && !term.IsTerminal(int(os.Stdin.Fd())) {
		return fmt.Errorf("the cluster of the context %q: nobody can be asked whether to use it: standard input is not a terminal: "+
			"to agree, add YES=1", t.context)
	}
	logf("nothing is added to the cluster before you agree; building Akri, the examples and helm first")
	programs, archives, err := buildAll(ctx)
	if err != nil {
		return err
	}
	if err := during("building helm", func() error { return akri.BuildHelm(ctx, programs.Root) }); err != nil {
		return err
	}
	archives = append(archives, programs.Images...)
	settings := append(values(t), s.crdValues()...)
	added, err := t.render(ctx, programs, settings)
	if err != nil {
		return err
	}
	fmt.Fprint(os.Stderr, plan(s, added, way.describe(len(archives))))
	if err := agree(ctx, o.yes, os.Stdin); err != nil {
		return err
	}
	began := time.Now()
	names, err := way.deliver(ctx, archives)
	if err != nil {
		return err
	}
	t.images = names.replacements()
	if err := t.createNamespaces(ctx, s); err != nil {
		return err
	}
	err = t.install(ctx, programs, append(settings, names.values()...))
	if err == nil {
		err = t.runParts(ctx, programs)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, akri.Evidence(context.WithoutCancel(ctx), t.Client, demoNamespace))
		return fmt.Errorf("%w\ndemo: remove what was added with: make demo-down CLUSTER=current", err)
	}
	logf("ready after %.0fs", time.Since(began).Seconds())
	return show(ctx, t, programs)
}

// agree returns an error unless the user agrees at the terminal, or has agreed with --yes. Ctrl+C, which ends ctx, is no.
func agree(ctx context.Context, yes bool, terminal *os.File) error {
	if yes {
		return nil
	}
	fmt.Fprint(progress, "Continue? [y/N] ")
	var answer string
	if err := awaitInput(ctx, terminal); err == nil {
		_, _ = fmt.Fscanln(terminal, &answer) // no answer is no
	}
	if ctx.Err() != nil {
		fmt.Fprintln(progress)
		return errors.New("interrupted: nothing was added")
	}
	if answer = strings.ToLower(answer); answer != "y" && answer != "yes" {
		return errors.New("nothing was added")
	}
	return nil
}

// awaitInput returns when a file can be read, without an error, or when ctx is done: a read would not end then.
func awaitInput(ctx context.Context, file *os.File) error {
	const interval = 100 // in milliseconds
	for ctx.Err() == nil {
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(file.Fd()), Events: unix.POLLIN}}, interval)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if ready > 0 {
			return nil
		}
	}
	return ctx.Err()
}

// createNamespaces creates Akri's namespace and that of the demo. They permit host
// paths and the host's network, which agents and cameras use.
func (t demoTarget) createNamespaces(ctx context.Context, s site) error {
	crds := s.Demo
	if crds == "" {
		crds = brought
		if s.CRDs {
			crds = found
		}
	}
	for _, name := range []string{akri.Namespace, demoNamespace} {
		manifest, err := json.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name, "labels": map[string]string{
				broughtLabel:                         crds,
				"pod-security.kubernetes.io/enforce": "privileged",
			}},
		})
		if err != nil {
			return err
		}
		if err := t.applyManifest(ctx, manifest); err != nil {
			return err
		}
	}
	return nil
}

// downCurrent removes what upCurrent added to the cluster of the current context.
func downCurrent(ctx context.Context) error {
	t, err := currentTarget(ctx)
	if err != nil {
		return err
	}
	s, err := survey(ctx, t)
	if err != nil {
		return err
	}
	if s.Demo == "" {
		return fmt.Errorf("the demo is not in the cluster of the context %q (%s): no namespace %s has the label %s",
			t.context, s.Server, akri.Namespace, broughtLabel)
	}
	if others := s.foreignConfigurations(); len(others) > 0 && s.Demo == brought {
		return fmt.Errorf("removing the demo's CRDs would delete Configurations that are not the demo's: %s: delete them first",
			strings.Join(others, ", "))
	}
	logf("removing the demo from the cluster of the context %q (%s)", t.context, s.Server)
	root, err := build.Root()
	if err != nil {
		return err
	}
	programs := akri.Programs{Root: root, Dir: filepath.Join(root, "bin")}
	if !isFile(filepath.Join(programs.Dir, "helm")) {
		if err := akri.BuildHelm(ctx, programs.Root); err != nil {
			return err
		}
	}
	// Configurations first, while the agents run: they withdraw the resources from the
	// nodes.
	steps := [][]string{
		{"delete", "configurations.akri.sh", "--namespace", demoNamespace, "--all", "--ignore-not-found", "--timeout=60s"},
		{"wait", "instances.akri.sh", "--namespace", demoNamespace, "--all", "--for=delete", "--timeout=60s"},
	}
	if !s.CRDs {
		steps = nil // a run before this one has got further
	}
	for _, step := range steps {
		if _, err := t.Kubectl(ctx, step...); err != nil {
			return err
		}
	}
	_, err = t.helm(ctx, programs, "uninstall", "akri", "--namespace", akri.Namespace, "--ignore-not-found", "--wait", "--timeout=2m")
	if err != nil {
		return err
	}
	// Akri's namespace is last: its label says that this is not finished.
	for _, namespace := range []string{demoNamespace, akri.Namespace} {
		if _, err := t.Kubectl(ctx, "delete", "namespace", namespace, "--ignore-not-found", "--timeout=2m"); err != nil {
			return err
		}
	}
	logf("removed everything, except for images and the directory /var/lib/akri on the nodes; " +
		"kubelets list the resources akri.sh/... with 0 allocatable until they restart")
	return nil
}

// isFile reports whether a path is an existing file.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
