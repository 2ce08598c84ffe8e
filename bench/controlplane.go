package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

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
	var err error
	b.cluster, err = cluster.Start(ctx, cluster.Config{
		AuditLog:    audit,
		Controllers: []string{"serviceaccount-controller"}, // Start waits for a ServiceAccount
	})
	if err != nil {
		b.cluster = nil
		return fmt.Errorf("start a control plane: %w", err)
	}
	err = b.prepareCluster(ctx)
	if err != nil {
		err = errors.Join(err, b.cluster.Stop())
		b.cluster = nil
	}
	return err
}

// prepareCluster stops Kubernetes' own controllers, installs the CRDs and creates the
// clients.
func (b *bench) prepareCluster(ctx context.Context) error {
	for _, component := range []string{"kube-controller-manager", "kube-scheduler"} {
		if err := b.cluster.Do(ctx, cluster.Stop, component); err != nil {
			return err
		}
	}
	var err error
	if b.servers, err = serversOf(b.cluster.Dir()); err != nil {
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

// serversOf returns the process IDs of etcd and the API server whose command lines
// name the run directory dir.
func serversOf(dir string) ([]int, error) {
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, command := range commands {
		text, err := os.ReadFile(command)
		if err != nil {
			continue // it has exited
		}
		program, rest, _ := strings.Cut(string(text), "\x00")
		if name := filepath.Base(program); name != "etcd" && name != "kube-apiserver" || !strings.Contains(rest, dir+"/") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(command)))
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	if len(pids) != 2 {
		return nil, fmt.Errorf("find etcd and the API server: got %d processes, want 2", len(pids))
	}
	return pids, nil
}
