package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/cluster"
)

// replaceCluster replaces the control plane with a new one, which has no history.
func (b *bench) replaceCluster(ctx context.Context) error {
	if err := b.stopController(); err != nil {
		return err
	}
	err := b.cluster.Stop()
	b.cluster = nil
	if err != nil {
		return fmt.Errorf("stop the control plane: %w", err)
	}
	b.current, b.currentCount = "", 0
	return b.startCluster(ctx)
}

// startCluster starts a control plane and prepares it for the measurements.
func (b *bench) startCluster(ctx context.Context) error {
	b.planes++
	audit := filepath.Join(b.dir, fmt.Sprintf("audit-%d.log", b.planes))
	b.log = followLog(ctx, audit)
	controllers := []string{"serviceaccount-controller"} // Start waits for a ServiceAccount
	if b.Controllers {
		controllers = []string{"*"}
	}
	var err error
	config := cluster.Config{AuditLog: audit, Controllers: controllers}
	if b.defaultRates {
		config.Flags = map[string][]string{controllerManager: {"--kube-api-qps=20", "--kube-api-burst=30"}}
	}
	b.cluster, err = cluster.Start(ctx, config)
	if err != nil {
		b.cluster = nil
		return fmt.Errorf("start a control plane: %w", err)
	}
	if err = b.prepareCluster(ctx); err == nil {
		err = b.awaitControlPlane(ctx)
	}
	if err != nil {
		err = errors.Join(err, b.cluster.Stop())
		b.cluster = nil
	}
	return err
}

// The programs of the control plane that take part in the measurements.
const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
)

// prepareCluster stops what does not take part in the measurements, installs the CRDs
// and creates the clients.
func (b *bench) prepareCluster(ctx context.Context) error {
	stopped, programs := []string{"kube-scheduler", controllerManager}, []string{etcd, apiServer}
	if b.Controllers {
		stopped, programs = stopped[:1], append(programs, controllerManager)
	}
	for _, component := range stopped {
		if err := b.cluster.Do(ctx, cluster.Stop, component); err != nil {
			return err
		}
	}
	var err error
	if b.servers, err = processesOf("/proc", b.cluster.Dir(), programs); err != nil {
		return err
	}
	root, err := build.Root()
	if err != nil {
		return err
	}
	if _, err := b.cluster.Kubectl(ctx, "apply", "--server-side", "-k", filepath.Join(root, "config/crd")); err != nil {
		return err
	}
	_, err = b.cluster.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s",
		"crd/configurations.akri.sh", "crd/instances.akri.sh")
	if err != nil {
		return err
	}
	if b.config, err = clientcmd.BuildConfigFromFlags("", b.cluster.Kubeconfig()); err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	if b.admin, err = connect(b.config, "bench"); err != nil {
		return err
	}
	if b.bare, err = connect(b.config, bareAgent); err != nil {
		return err
	}
	b.creators = nil
	for range creators {
		client, err := connect(b.config, "agents")
		if err != nil {
			return err
		}
		b.creators = append(b.creators, client)
	}
	return nil
}

// awaitControlPlane waits until Kubernetes' controllers have finished with the objects
// so far: what they still do would slow down what is measured next.
func (b *bench) awaitControlPlane(ctx context.Context) error {
	if !b.Controllers {
		return nil
	}
	const quietFor = 3 * time.Second
	_, err := b.log.awaitQuiet(ctx, b.log.mark(), "", quietFor)
	return err
}

// processesOf returns the process IDs of programs, one each, whose command lines name
// the run directory dir. The processes are listed in proc.
func processesOf(proc, dir string, programs []string) ([]int, error) {
	commands, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "cmdline"))
	if err != nil {
		return nil, err
	}
	found := map[string][]int{}
	for _, command := range commands {
		text, err := os.ReadFile(command)
		if err != nil {
			continue // it has exited
		}
		path, rest, _ := strings.Cut(string(text), "\x00")
		program := filepath.Base(path)
		if !slices.Contains(programs, program) || !strings.Contains(rest, dir+"/") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(command)))
		if err != nil {
			return nil, err
		}
		found[program] = append(found[program], pid)
	}
	var pids []int
	for _, program := range programs {
		if len(found[program]) != 1 {
			return nil, fmt.Errorf("find %s: got %d processes, want 1", program, len(found[program]))
		}
		pids = append(pids, found[program]...)
	}
	return pids, nil
}
